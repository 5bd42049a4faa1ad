"""The conformance suite finds what is broken, and only that; every registered strategy passes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from broken import BROKEN, right

from kafka_assign import conformance, strategies
from kafka_assign.registry import Strategy, resolve

HERE = Path(__file__).parent


def named(function):
    """The strategy under the name by which another process finds it."""
    return function if isinstance(function, Strategy) else Strategy(f"broken:{function.__name__}", function)


@pytest.mark.parametrize("name", strategies())
def test_every_registered_strategy_conforms(name):
    assert conformance.check_strategy(name).broken == []


def test_what_is_right_keeps_every_promise():
    assert set(conformance.check_strategy(named(right)).found.values()) == {""}


def test_every_promise_has_a_strategy_that_breaks_it():
    assert BROKEN.keys() == conformance.PROMISES.keys()


@pytest.mark.parametrize("promise", BROKEN)
def test_a_strategy_broken_on_purpose_fails_exactly_that(promise):
    wrong = named(BROKEN[promise])
    promises = set(conformance.PROMISES) - ({"nobody-idle"} if promise == "many" else set())
    assert conformance.check_strategy(wrong, sorted(promises)).broken == [promise]


@pytest.mark.parametrize("name", ["range", "roundrobin", "fair", "lag"])
def test_a_waived_promise_is_one_that_is_broken(name):
    chosen = resolve(name)
    assert chosen.without == ("nobody-idle",)
    assert conformance.PROMISES["nobody-idle"].broken(chosen)


@pytest.mark.parametrize("strategy, passed", [("broken:right", True), ("broken:forgets_one", False)])
def test_the_suite_runs_under_pytest_on_a_strategy_of_ones_own(strategy, passed):
    environment = {"KAFKA_ASSIGN_STRATEGY": strategy, "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}", "PATH": ""}
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "kafka_assign.conformance"]
    done = subprocess.run([sys.executable, *words], env=environment, cwd=HERE, capture_output=True, text=True)
    assert (done.returncode == 0) is passed, done.stdout + done.stderr
    assert f"{'9 passed' if passed else '1 failed, 8 passed'}" in done.stdout
