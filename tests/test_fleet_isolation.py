"""A strategy that raises, ends its process or never answers costs only its own rows, and leaves nothing behind.

The oracle is the kernel without that strategy, and for the answers that it gives, `range`.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import unruly as strategies
from groups import groups
from hypothesis import given
from hypothesis import strategies as st
from test_fleet import failures, table_of, without
from unruly import DEEDS, unruly

from kafka_assign import Group
from kafka_assign.assignors import registry
from kafka_assign.assignors.batch import answer, batch_of_groups
from kafka_assign.fleet.apart import answer_apart, is_built_in
from kafka_assign.fleet.kernel import compare_batch, compare_batches
from kafka_assign.assignors.base import ForecastError, Strategy
from kafka_assign.assignors.registry import resolve

LIMIT = 3  # seconds, which no group takes that is not meant to
PATIENCE = 60  # seconds for what happens at once on an idle machine
both_kinds = pytest.mark.parametrize("many", [True, False], ids=["many", "alone"])


def fleet(*bad, count=6):
    """Groups of which those at the places `bad` have a topic of three partitions."""
    return [Group({"t": 3 if at in bad else 4, "u": 1}, {"a": ["t", "u"], "b": ["t"]}, name=f"g{at}",
                  owned={"a": [("t", 0), ("u", 0)]}) for at in range(count)]


def descriptors():
    return sorted(os.listdir("/proc/self/fd"))


def until(happens):
    """Wait for something that must happen."""
    late = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < late
        time.sleep(0.01)


def end_holders(pipe):
    """End all other processes that have a pipe open, so that a test that fails leaves none, either."""
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(file) == pipe and int(file.parts[2]) != os.getpid():
                os.kill(int(file.parts[2]), signal.SIGKILL)


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Every process that was started has this pipe open: it ends when they all have ended, whoever started them."""
    before, (end, held) = descriptors(), os.pipe()
    try:
        yield
        os.close(held)
        ready, _, _ = select.select([end], [], [], PATIENCE)
        assert ready and os.read(end, 1) == b"", "a process is left"
    except AssertionError:
        end_holders(os.readlink(f"/proc/self/fd/{end}"))
        raise
    finally:
        os.close(end)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    states = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] for child in children]
    assert "Z" not in states, "a child was not reaped"
    assert descriptors() == before


def compared(rows, strategy, **options):
    return compare_batch(rows, [resolve("range"), strategy, resolve("fair")], **options).to_pylist()


def check_rows(rows, strategy, bad, words, **options):
    """The groups at the places `bad` have no row of the strategy, and all else is as without it, or as by range."""
    done, label = compared(rows, strategy, **options), strategy.label
    assert [list(failures(row)) for row in done] == [[label] * (at in bad) for at in range(len(done))]
    for at in bad:
        assert failures(done[at])[label].startswith(f"group g{at}: strategy '{label}' {words}")
    plain = compare_batch(rows, [resolve("range"), resolve("fair")]).to_pylist()
    assert [without(row, label) for row in done] == plain
    for row in done:
        found = {one["strategy"]: one | {"strategy": ""} for one in row["results"]}
        assert found.get(label) == (None if row["failures"] else found["range"])


REASONS = {
    "raises": "must not raise (got RuntimeError: out of luck", "leaves": "must not raise (got SystemExit: 3 in ",
    "exits": "must not end its process (got exit code 7)", "exits_well": "must not end its process (got exit code 0)",
    "is_killed": "must not end its process (got signal 9)", "crashes": "must not end its process (got signal 11)",
    "aborts": "must not end its process (got signal 6)", "closes": "must not end its process (got exit code 1)",
    "leaves_a_process": "must not end its process (got exit code 3)"}


@both_kinds
@pytest.mark.parametrize("deed", REASONS)
def test_it_costs_its_own_rows_of_the_groups_at_fault(deed, many):
    bad = [0, 2, 3, 5]
    check_rows(table_of(fleet(*bad)), unruly(deed, many), bad, REASONS[deed])


@pytest.mark.parametrize("deed, many, bad", [
    ("hangs", True, [0]), ("hangs", False, [1]), ("loops_in_c", False, [0])])
def test_it_must_answer_in_time_if_there_is_a_limit(deed, many, bad):
    words = f"must answer within {LIMIT} s"
    check_rows(table_of(fleet(*bad, count=3)), unruly(deed, many), bad, words, time_limit=LIMIT)


@both_kinds
def test_a_strategy_that_forks_answers_once(many):
    check_rows(table_of(fleet(1, 4)), unruly("forks", many), [], "")


@both_kinds
def test_what_it_writes_reaches_no_output_and_no_socket_of_the_worker(many, capfd):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        strategies.inherited[:] = [theirs]
        check_rows(table_of(fleet(1, 4)), unruly("writes", many), [], "")
        strategies.inherited.clear()
        theirs.close()
        assert ours.recv(100) == b""
    out, err = capfd.readouterr()
    assert out == "" and "printed" in err and "written" in err


@both_kinds
def test_a_socket_is_not_held_by_a_strategy_that_hangs(many):
    """The other side sees that the worker has closed it, whatever children do."""
    ours, theirs = socket.socketpair()

    def hangs(given):
        strategies.interrupt_the_worker(signal.SIGUSR1)

    def closed(*_):
        theirs.close()
        assert select.select([ours], [], [], PATIENCE)[0] and ours.recv(1) == b""
        raise KeyboardInterrupt
    before = signal.signal(signal.SIGUSR1, closed)
    try:
        with ours, theirs, pytest.raises(KeyboardInterrupt):
            compared(table_of(fleet()), Strategy("hangs", hangs, many=many))
    finally:
        signal.signal(signal.SIGUSR1, before)


@both_kinds
def test_a_worker_that_is_interrupted_leaves_no_child(many):
    with pytest.raises(KeyboardInterrupt):
        compared(table_of(fleet(2)), unruly("interrupts", many))


@both_kinds
def test_an_interrupt_of_the_strategy_itself_is_its_own(many):
    def interrupted(given):
        raise KeyboardInterrupt
    done = compared(table_of(fleet()), Strategy("interrupted", interrupted, many=many))
    assert [failures(row) for row in done] == [
        {"interrupted": f"group g{at}: strategy 'interrupted' must not end its process (got exit code 1)"}
        for at in range(6)]


def state_of(process):
    """The state of a process as Linux shows it; Z = it has ended, as if it were gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def test_a_child_ends_with_its_worker(tmp_path):
    """Even in a loop in C, which looks at nothing."""
    (tmp_path / "endless.py").write_text(
        "import os, pathlib\n\n\ndef loop(group):\n"
        "    pathlib.Path('new').write_text(str(os.getpid()))\n    os.rename('new', 'child')\n    sum(range(10**13))\n")
    (tmp_path / "worker.py").write_text(
        "from test_fleet_isolation import *\n\nlist(compare_batches([table_of(fleet())], ['endless:loop']))\n")
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parent), *sys.path])
    environment = os.environ | {"PYTHONPATH": paths}
    with subprocess.Popen([sys.executable, "worker.py"], cwd=tmp_path, env=environment) as worker:
        try:
            until((tmp_path / "child").exists)
        finally:
            worker.kill()
    child = int((tmp_path / "child").read_text())
    try:
        until(lambda: state_of(child) == "Z")
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


@both_kinds
def test_a_group_is_not_blamed_for_what_others_left_behind(many):
    """The process ends with its third group, whichever it is; alone each of them is fine."""
    seen = []

    def used_up(given):
        seen.append(given)
        if many and given.groups > 1 or len(seen) == 3:
            os._exit(9)
        return (given if many else given.columns).previous
    done = compared(table_of(fleet(count=8)), Strategy("used_up", used_up, many=many))
    assert not any(row["failures"] for row in done) and all(len(row["results"]) == 4 for row in done)


@both_kinds
def test_a_forecast_that_fails_is_still_a_result(many):
    def hopeless(given):
        raise ForecastError("NullPointerException", "a was set aside")
    forecast = Strategy("forecast", hopeless, kafka="DoomedAssignor", many=many)
    rows = table_of([group.replace(strategy="forecast" if at == 1 else "") for at, group in enumerate(fleet(count=3))])
    with patch.dict(registry._registered, forecast=forecast):
        plain = compare_batch(rows, [resolve("range")]).to_pylist()
        named = compare_batch(rows, [resolve("range"), forecast]).to_pylist()
    assert not any(row["failures"] for row in plain)
    assert [len(row["failures"]) for row in named] == [1, 0, 1]
    for row in (plain[1], named[1]):
        first = row["needs"][0]
        assert first["need"] == "failing" and "NullPointerException: a was set aside" in first["reason"]


FOREIGN = st.sampled_from(["range", "sticky", "cooperative-sticky", "kip54"])


@given(st.lists(groups(), max_size=4), FOREIGN, st.data())
def test_the_answer_is_the_one_of_the_same_process(fleet, name, data):
    built_in = resolve(name)
    strategy = Strategy("mine", built_in.function, many=built_in.many, protocol=built_in.protocol)
    assert is_built_in(built_in) and not is_built_in(strategy)
    places = data.draw(st.none() | st.lists(st.sampled_from(range(len(fleet))), unique=True, min_size=1).map(sorted)
                       if fleet else st.none())
    batch = batch_of_groups(fleet)
    here, apart = (ask(batch, strategy, batch.columns, places) for ask in (answer, answer_apart))
    assert (here.owner.tolist(), here.target.tolist()) == (apart.owner.tolist(), apart.target.tolist())
    assert here[2:] == apart[2:]


@both_kinds
def test_an_answer_may_be_larger_than_a_pipe(many):
    batch = batch_of_groups([Group({"t": 500_000}, {"a": ["t"], "b": ["t"]})] * 2)
    given = answer_apart(batch, unruly("exits", many), batch.columns)
    assert (given.owner == np.repeat([0, 1, 2, 3], 250_000)).all() and not given.failures


@both_kinds
def test_strategies_of_this_package_run_apart_only_if_there_is_a_limit(many):
    seen = []

    def ours(given):
        seen.append(given)
        return (given if many else given.columns).previous
    strategy, batch = Strategy("range", ours, many=many), batch_of_groups(fleet())
    answer_apart(batch, strategy, batch.columns)
    assert not seen                             # it replaces one of this package, and is none
    ours.__module__ = "kafka_assign.assignors.baselines"
    answer_apart(batch, strategy, batch.columns, time_limit=PATIENCE)
    assert not seen
    answer_apart(batch, strategy, batch.columns)
    assert len(seen) == (1 if many else 6)


@pytest.mark.parametrize("deed, words", [
    ("exits", "must not end its process (got exit code 7)"), ("raises", "RuntimeError: out of luck")])
def test_a_batch_that_is_tried_again_is_logged_once(deed, words, caplog):
    compared(table_of(fleet(1, 2)), unruly(deed, many=True))
    [record] = caplog.records
    assert record.levelname == "ERROR" and record.getMessage() == (
        f"strategy {deed} has no answer for a batch of 6 groups, which are answered one by one")
    assert words in caplog.text


def test_batches_take_the_limit_and_names():
    first, second, third = fleet(count=3)
    bad = [first.replace(name="exits"), second.replace(name="hangs"), third]
    [done] = compare_batches([table_of(bad)], ["unruly:exits", "unruly:hangs"], time_limit=LIMIT)
    lost = [failures(row) for row in done.to_pylist()]
    assert lost == [
        {"unruly:exits": "group exits: strategy 'unruly:exits' must not end its process (got exit code 7)"},
        {"unruly:hangs": f"group hangs: strategy 'unruly:hangs' must answer within {LIMIT} s"}, {}]
    assert [one["strategy"] for one in done.to_pylist()[2]["results"]] == ["current", "unruly:exits", "unruly:hangs"]


def test_every_deed_is_tested():
    text = Path(__file__).read_text(encoding="utf-8")
    assert [deed for deed in DEEDS if f'"{deed}"' not in text] == []
