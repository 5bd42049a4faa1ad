"""What people reported about their groups, retold with other names: each gets the answer that is right for it.

Each folder of `reported/` is the input of one case, in the form in which somebody had it; the tests are named by its
number. A case stands for its kind, so beside it stands a variation with other names, numbers or assignors.
"""
import json
from pathlib import Path

import pytest
from outputs import table
from test_cli import run, unwrapped

from kafka_assign import Group, LiveGroup, assign, compare, read_groups

REPORTED = Path(__file__).parent / "reported"


def inputs(case, *names):
    """The files of a case as arguments: those named, or all that its folder has."""
    return [str(REPORTED / case / name) for name in names] or sorted(map(str, (REPORTED / case).iterdir()))


def ranked(case, *names, options=("--all",), code=0):
    """The rows of `rank` for files of a case, and what it printed on standard error."""
    done = run(["rank", *inputs(case, *names), *options, "--format", "json"])
    assert done.code == code, done.err
    return json.loads(done.out), done.err


def kinds(group):
    """The kinds of the notes on a group."""
    return {note.kind for note in group.notes}


# 01: every line broken in two


def test_01_wrapped_lines_are_put_together():
    groups = read_groups(inputs("01"))
    group = groups["orders-normalizer"]
    assert groups.rejects == [] and (groups.read, groups.used) == (5, 5)
    assert group.topic_counts == {"orders-in": 5} and group.previous.tolist() == [1, 0, 0, 0, 0]
    assert [(one.client_id, one.host) for one in group.details] == [
        ("consumer-orders-normalizer-1", "/10.101.3.225"), ("consumer-orders-normalizer-2", "/10.101.3.226")]
    ranked("01")


@pytest.mark.parametrize("old, new", [
    ("\nconsumer-orders-normalizer-1-92ff", " consumer-orders-normalizer-1-92ff"), ("3.226   consumer", "3.226\nconsumer")])
def test_01_rows_broken_in_another_place_are_refused_with_advice(old, new):
    text = Path(*inputs("01")).read_text()
    assert old in text
    done = run(["rank", "-"], text.replace(old, new, 1))
    assert (done.code, done.out) == (3, "") and "> file.txt" in done.err and "wider" in done.err


# 02: a strategy by lag must spread partitions without lag, too


@pytest.mark.parametrize("options", [{}, {"max_skew": 3}])
def test_02_partitions_without_lag_are_spread(options):
    lag, end = [0] * 11 + [250_000], 13_955_389
    group = Group({"streaming": 12}, {f"consumer-{i}": ["streaming"] for i in range(1, 5)},
                  committed={"streaming": [end - one for one in lag]}, end={"streaming": [end] * 12})
    assert list(map(len, assign(group, "lag", **options).values())) == [3] * 4


# 05: cooperative-sticky leaves a topic on some of the members


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "sticky", "of-our-own", ""])
def test_05_members_with_equal_loads_are_taken_to_subscribe_to_the_same_topics(assignor):
    text = "\n".join(Path(file).read_text() for file in inputs("05", "describe.txt", "members.txt", "state.txt"))
    text = text.replace("cooperative-sticky", f"{assignor or '-':18}")
    done = run("compare - -s range -s roundrobin --format json", text)
    assert done.code == 0, done.err
    [found] = json.loads(done.out)
    rows = {row["strategy"]: (row["min_load"], row["max_load"], row["lag_max"]) for row in found["rows"]}
    assert rows["range"] == rows["roundrobin"] == (4, 4, 10_000) and rows["current"] == (4, 4, 20_000)
    [note] = [note for note in found["inferred_notes"] if note["kind"].startswith("subscriptions")]
    assert note["kind"] == "subscriptions-agree" and "loads differ by at most one" in note["text"]
    assert run(["compare", "-", "-s", "range", "--fail-if", "lag_max>10000"], text).code == 0


# 07: assignments without blanks, idle members, and no more


def test_07_all_rows_are_read_and_nothing_confirms_the_subscriptions():
    groups = read_groups(inputs("07"))
    group = groups["my-group"]
    assert groups.rejects == [] and (len(group.members), len(group.topics)) == (8, 5)
    assert sum(not member.owned for member in group.details) == 2
    assert "subscriptions-assumed" in kinds(group) and "5 partitions not in the input" in group.inferred
    _, err = ranked("07")
    assert "my-group: subscriptions are unknown: " in err
    done = run(["compare", *inputs("07"), "-s", "range", "--fail-if", "max_load>9"])
    assert done.code == 3 and "kafka-assign capture" in done.err and "--subscribe '*:" in done.err
    topics = ",".join(group.topics)
    assert run(["compare", *inputs("07"), "-s", "range", "--fail-if", "max_load>9", "--subscribe", f"*:{topics}"]).code == 0


# 08: a rebalance that does not end; columns aligned by hand, and rows of dashes


def test_08_idle_members_that_rows_of_dashes_show_are_not_missing():
    groups = read_groups(inputs("08"))
    [group] = groups.values()
    assert groups.rejects == [] and len(group.members) == 3 and group.lag.sum() == 35_000
    assert "idle-members-not-shown" not in kinds(group)
    _, err = ranked("08")
    assert "idle members are not in the input" not in err
    done = run(["rank", "-"], "\n".join(line for line in Path(*inputs("08")).read_text().splitlines() if line[:1] != "-"))
    assert done.code == 0 and "idle" not in done.err                                 # nor if no member is shown at all


# 10: what other tools print, without owners


@pytest.mark.parametrize("file, words", {
    "ns4kafka.txt": ("no owners", "kafka-consumer-groups.sh --describe"),
    "rpk-cluster-offsets.txt": ("rpk cluster offsets", "rpk group describe GROUP")}.items())
def test_10_tables_of_other_tools_say_what_to_print_instead(file, words):
    done = run(["rank", *inputs("10", file)])
    assert (done.code, done.out) == (3, "") and done.err.count("\n") == 1
    assert all(one in done.err for one in words)


# 14: a partition with two owners


@pytest.mark.parametrize("names", [["members.txt", "state.txt"], ["describe.txt"], ["group.json"],
                                   ["describe.txt", "members.txt", "state.txt"]], ids="+".join)
def test_14_two_owners_are_both_kept(names):
    groups = read_groups(inputs("14", *names))
    group = groups["reactive"]
    assert groups.rejects == [] and [[number for _, number in one.owned] for one in group.details] == [[0, 1], [1, 2]]
    assert group.previous.tolist() == [0, -1, 1] and group.columns.consumer[1] < -1
    ranked("14", *names)
    [found] = json.loads(run(["compare", *inputs("14", *names), "--format", "json"]).out)
    assert "owned: moves-1 by more than one member" in found["notes"]


def test_14_three_owners_of_some_partitions():
    """The offsets are those of the row with the highest end; equal rows count once."""
    columns = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
    rows = [["g", "t", number, end - 4, end, 4, owner, "/h", "c"] for number, end, owner in (
        (0, 9, "a"), (0, 12, "b"), (0, 9, "a"), (0, 8, "c"), (1, 5, "b"), (2, 5, "c"), (2, 5, "a"))]
    groups = read_groups(table(columns, *rows))
    [group] = groups.values()
    assert groups.rejects == [] and (groups.read, groups.used, groups.repeated) == (6, 6, 1)
    assert group.offsets.end.tolist() == [12, 5, 5] and group.previous.tolist() == [-1, 1, -1]
    assert {one.id: one.owned for one in group.details} == {
        "a": (("t", 0), ("t", 2)), "b": (("t", 0), ("t", 1)), "c": (("t", 0), ("t", 2))}
    [note] = [one for one in compare(group).notes if one.startswith("owned: ")]
    assert note == "owned: t-0, t-2 by more than one member"


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
