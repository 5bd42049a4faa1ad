"""What people reported about their groups, retold with other names: each gets the answer that is right for it.

Each folder of `reported/` is the input of one case, in the form in which somebody had it; the tests are named by its
number. A case stands for its kind, so beside it stands a variation with other names, numbers or assignors.
"""
import json
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from test_cli import program, run, unwrapped

from kafka_assign import Group, LiveGroup, Member, assign, read_groups
from kafka_assign.clients.member import ClientMember
from kafka_assign.life.rebalance import joined_member
from kafka_assign.protocol.wire import decode_assignment, decode_subscription

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


# 04: a third cooperative consumer joins; only what it needs moves


@pytest.mark.parametrize("partitions, members, moved", [(10, 2, 3), (12, 3, 3), (9, 2, 3)])
def test_04_who_joins_gets_its_share_and_no_more(partitions, members, moved):
    """As reported with two members of 5 partitions each; the others are variations with other ids."""
    options = ["--join", "1", "-s", "cooperative-sticky", "-s", "kafka-cooperative-sticky", "--moves"]
    group = Group({"stam": partitions}, [Member(f"etl-{at}-{UUID(int=at)}", ["stam"], client_id=f"etl-{at}")
                                         for at in range(members)], name="g")
    group = group.replace(owned=assign(group, "sticky"), strategy="cooperative-sticky")
    files, text, form = (inputs("04"), None, "rdkafka-") if members == 2 and partitions == 10 else (
        ["-"], group.to_json(), f"etl-{members}-")
    [answer] = json.loads(run(["compare", *files, *options, "--format", "json"], text).out)
    rows = [row for row in answer["rows"] if row["strategy"] in options]
    assert [(row["kept"], row["moved"], row["withheld"]) for row in rows] == [(partitions - moved, moved, moved)] * 2
    assert answer["changes"][0]["member"].startswith(form)
    *_, moves = program(["compare", *files, *options], text or "").out.split("\n\n")
    lines = moves.splitlines()[1:]
    assert len(lines) == 2 * moved and all(answer["changes"][0]["member"] in line for line in lines)


# 11: a scaler starts one consumer more than there are partitions


@pytest.mark.parametrize("partitions, members", [(5, 5), (3, 3), (8, 9)])
def test_11_a_consumer_without_a_partition_is_said_to_be_idle(partitions, members):
    """As reported with 5 partitions and 5 consumers; also where some are idle already."""
    files, text, idle = inputs("11"), None, members + 1 - partitions
    if partitions != 5:
        group = Group({"invoices": partitions}, {f"billing-{at}": ["invoices"] for at in range(members)}, name="scaled",
                      strategy="range")
        files, text = ["-"], group.replace(owned=assign(group, "range")).to_json()
    shown = unwrapped(run(["compare", *files, "--join", "1"], text).out).partition("in short, under range: ")[2]
    paused = min(partitions, members)
    idle_words = f"{idle} of {members + 1} members would be idle"
    assert f"{paused} partitions of remaining members would pause, {idle_words}" in shown
    assert "lag of a member would go" not in shown
    assert f"no number of members above {partitions} changes the largest load" in shown
    [answer] = json.loads(run(["compare", *files, "--join", "1", "--format", "json"], text).out)
    assert answer["member_counts"] == {
        "least": partitions, "most": None, "next_max_load": None,
        "text": f"no number of members above {partitions} changes the largest load"}


# 13: librdkafka's range puts every topic on one member


def test_13_needs_and_moves_are_whole_lines_in_a_pipe():
    out = program(["rank", "--all", *inputs("13")]).out
    assert "rdkafka-ae658f33-fe3b-490b-93f4-48b3a5aa3c81, rdkafka-b774eb52-48db-40af-b215-8370d269a9a5" in out
    *_, moves = program(["compare", *inputs("13"), "-s", "roundrobin", "--moves"]).out.split("\n\n")
    head, *lines = moves.splitlines()
    assert len(lines) == 5 and all(line.count("rdkafka-") == 2 for line in lines)
    assert max(map(len, lines)) > 100


# 18: instance ids that are the names of a Deployment's pods


def rolling(*options, files=inputs("18"), text=None):
    """What `compare --rolling` says, as JSON and as text."""
    words = ["compare", *files, "--rolling", *options]
    [answer] = json.loads(run([*words, "--format", "json"], text).out)
    return answer, unwrapped(run(words, text).out)


def test_18_a_rollout_of_a_deployment_makes_new_members():
    answer, words = rolling()
    assert answer["restarts"] and {(row["static"], row["rebalances"], row["down"]) for row in answer["restarts"]} == {
        (0, 8, 16)}
    for text in (words, " ".join(answer["notes"])):
        assert all(part in text for part in ("same instance id", "session.timeout.ms", "Deployment"))
    assert "same instance id" in unwrapped(run(["rank", *inputs("18")]).err)
    lasting, words = rolling("--static")
    assert {(row["static"], row["rebalances"], row["down"]) for row in lasting["restarts"]} == {(4, 0, 16)}
    assert lasting["restarts_as_they_are"] == answer["restarts"]
    assert "as they are: 8 rebalances; static with lasting instance ids: 0, and up to 4 partitions down at a" in words


def test_18_pods_of_a_stateful_set_come_back():
    members = [Member(f"app-{at}-{UUID(int=at)}", ["events"], instance_id=f"app-{at}") for at in range(3)]
    group = Group({"events": 7}, members, name="g", strategy="range")
    text = group.replace(owned=assign(group, "range")).to_json()
    answer, words = rolling(files=["-"], text=text)
    assert {(row["static"], row["rebalances"], row["down"]) for row in answer["restarts"]} == {(3, 0, 7)}
    assert "Deployment" not in words + run("rank -", text).err and "Deployment" not in str(answer["notes"])
    dynamic = group.replace(members=[replace(one, instance_id=None) for one in members])
    answer, words = rolling("--static", files=["-"], text=dynamic.to_json())
    assert {row["rebalances"] for row in answer["restarts"]} == {0} and "as they are: 6 rebalances;" in words
    assert run("compare - --rolling --static --fail-if 'rebalances>0'", text).code == 0
    wrong = run("compare - --static", text)
    assert wrong.code == 2 and "--static: it must come with --rolling" in wrong.err


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


# 29: consumers that share an assignor


@pytest.mark.parametrize("shared, kept, warnings", [(False, 20, 0), (True, None, 1)])
def test_29_a_shared_assignor_is_warned_of_once(shared, kept, warnings, caplog):
    one = ClientMember("sticky")
    members = {f"c{at}": one if shared else ClientMember("sticky") for at in range(6)}
    owned = {}
    for generation in (1, 2, 3):
        if generation == 3:
            del members["c0"]
        joined = [joined_member(name, None, decode_subscription(member.subscription(["events"])))
                  for name, member in members.items()]
        before, answers = owned, members["c1"].lead(joined, {"events": 24}, generation)
        for name, data in answers.items():
            members[name].receive(data, generation)
        owned = {name: set(map(tuple, decode_assignment(data).assigned)) for name, data in answers.items()}
    assert kept in (None, sum(len(owned[name] & before[name]) for name in owned))
    assert len([text for text in caplog.messages if "several consumers share an assignor" in text]) == warnings
