"""What people reported about their groups, retold with other names: each gets the answer that is right for it.

Each folder of `reported/` is the input of one case, in the form in which somebody had it; the tests are named by its
number. A case stands for its kind, so beside it stands a variation with other names, numbers or assignors.
"""
import json
from pathlib import Path

import pytest
from test_cli import run, unwrapped

from kafka_assign import Group, LiveGroup, assign, read_groups

REPORTED = Path(__file__).parent / "reported"


def inputs(case, *names):
    """The files of a case as arguments: those named, or all that its folder has."""
    return [str(REPORTED / case / name) for name in names] or sorted(map(str, (REPORTED / case).iterdir()))


def ranked(case, *names, options=("--all",), code=0):
    """The rows of `rank` for files of a case, and what it printed on standard error."""
    done = run(["rank", *inputs(case, *names), *options, "--format", "json"])
    assert done.code == code, done.err
    return json.loads(done.out), done.err


# 02: a strategy by lag must spread partitions without lag, too


@pytest.mark.parametrize("options", [{}, {"max_skew": 3}])
def test_02_partitions_without_lag_are_spread(options):
    lag, end = [0] * 11 + [250_000], 13_955_389
    group = Group({"streaming": 12}, {f"consumer-{i}": ["streaming"] for i in range(1, 5)},
                  committed={"streaming": [end - one for one in lag]}, end={"streaming": [end] * 12})
    assert list(map(len, assign(group, "lag", **options).values())) == [3] * 4


# 19: nothing but an error of the tool


@pytest.mark.parametrize(
    "file, error", [("paste.txt", "BufferUnderflowException"), ("timeout.txt", "TimeoutException")])
def test_19_an_error_of_the_tool_is_quoted(file, error):
    done = run(["rank", *inputs("19", file)])
    assert (done.code, done.out) == (3, "") and error in done.err and done.err.count("\n") == 1


# 23: members with different lists of assignors


def test_23_a_member_with_range_alone_leaves_and_nothing_is_lost():
    live = LiveGroup("range", {"orders": 6}, {})
    live.join("old", ["orders"], strategies=["range"])
    live.join("new", ["orders"], strategies=["cooperative-sticky", "range"])
    assert live.strategy.name == "range" and [len(live[one]) for one in live] == [3, 3]
    live.leave("old")
    assert live.strategy.name == "cooperative-sticky" and len(live["new"]) == 6
    with pytest.raises(ValueError, match="InconsistentGroupProtocol"):
        live.join("wrong", ["orders"], strategies=["roundrobin"])
