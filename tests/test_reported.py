"""What people reported about their groups, retold with other names: each gets the answer that is right for it.

Each folder of `reported/` is the input of one case, in the form in which somebody had it; the tests are named by its
number. A case stands for its kind, so beside it stands a variation with other names, numbers or assignors.
"""
import json
import re
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from outputs import table
from test_cli import program, run, unwrapped

from kafka_assign import Group, LiveGroup, Member, assign, compare, rank, read_groups
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
    ("\nconsumer-orders-normalizer-1-92ff", " consumer-orders-normalizer-1-92ff"),
    ("3.226   consumer", "3.226\nconsumer")])
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


def needs(rows):
    return {row["need"]: row for row in rows}


@pytest.mark.parametrize("names, inferred", [
    (("describe.txt", "members.txt", "state.txt"), True), (("truth-lag.json",), False), (("truth-rd.json",), False)])
def test_05_a_topic_with_the_lag_on_few_members_is_skew(names, inferred):
    found = needs(ranked("05", *names)[0])
    for need in ("skew", "lag"):
        row = found[need]
        assert row["strategy"] in ("range", "roundrobin") and ("if " in row["reason"]) == inferred
        assert "no strategy" not in row["remedy"] and "not forecast" not in row["remedy"]
        assert ("partition.assignment.strategy" in str(row["steps"]) + row["remedy"]) == (names == ("truth-rd.json",))
    assert "topic1" in found["skew"]["reason"] and "5 of the 9 members" in found["skew"]["reason"]


def test_05_a_topic_that_no_member_could_share_more_is_not_skew():
    group = Group.from_json((REPORTED / "05" / "truth-lag.json").read_text())
    assert "skew" not in needs(rank(group.replace(owned=dict(assign(group, "roundrobin")))))
    other = {topic: [9_000] * 18 for topic in group.topics}                  # both topics have half of the lag
    assert not {"skew", "lag"} & needs(rank(group.replace(lag=other), everything=True)).keys() - {"skew"}


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
    told = ["--subscribe", f"*:{','.join(group.topics)}"]
    assert run(["compare", *inputs("07"), "-s", "range", "--fail-if", "max_load>9", *told]).code == 0


def test_07_what_members_could_do_is_said_with_an_if():
    rows, err = ranked("07")
    assert {row["need"] for row in rows} & {"idle", "overload"} and "no-owner" not in needs(rows)
    unsure = [row for row in rows if row["need"] in ("idle", "overload", "incurable", "skew", "lag")]
    assert all("if " in row["reason"] for row in unsure)
    for words in ("can do without", "superfluous", "rolling restart"):
        assert words not in str(rows) + err


def test_07_idle_members_of_unknown_subscriptions_are_a_need_only_if_others_have_two():
    rows = [("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"), ("g", "c-1", "/h", "c", "3",
            "a(0,1,2)"), ("g", "c-2", "/h", "c", "1", "b(0)"), ("g", "c-3", "/h", "c", "0", "-")]
    text = "".join("".join(cell.ljust(16) for cell in row) + "\n" for row in rows)
    rows = rank(read_groups(text), everything=True)
    assert "idle" in needs(rows) and "incurable" not in needs(rows) and all("if " in row["reason"] for row in rows)
    assert {row["steps"][0][:34] for row in rows} == {"see what its members subscribe to "}


# 08: a rebalance that does not end; columns aligned by hand, and rows of dashes


def test_08_idle_members_that_rows_of_dashes_show_are_not_missing():
    groups = read_groups(inputs("08"))
    [group] = groups.values()
    assert groups.rejects == [] and len(group.members) == 3 and group.lag.sum() == 35_000
    assert "idle-members-not-shown" not in kinds(group)
    _, err = ranked("08")
    assert "idle members are not in the input" not in err
    lines = Path(*inputs("08")).read_text().splitlines()
    done = run(["rank", "-"], "\n".join(line for line in lines if line[:1] != "-"))
    assert done.code == 0 and "idle" not in done.err                                 # nor if no member is shown at all


def test_08_a_rebalance_that_lasts_has_two_causes():
    [row] = ranked("08")[0]
    assert row["need"] == "rebalancing" and "3 members" in row["reason"] and "35,000" in row["reason"]
    assert all(words in row["remedy"] for words in ("max.poll.interval.ms", "no assignor in common", "capture"))


# 10: what other tools print, without owners


@pytest.mark.parametrize("file, words", {
    "ns4kafka.txt": ("no owners", "kafka-consumer-groups.sh --describe"),
    "rpk-cluster-offsets.txt": ("rpk cluster offsets", "rpk group describe GROUP")}.items())
def test_10_tables_of_other_tools_say_what_to_print_instead(file, words):
    done = run(["rank", *inputs("10", file)])
    assert (done.code, done.out) == (3, "") and done.err.count("\n") == 1
    assert all(one in done.err for one in words)


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


# 13: librdkafka's range leaves members idle where its roundrobin would not


def test_13_librdkafka_is_forecast_and_gets_its_own_setting():
    found = needs(ranked("13")[0])
    for need in ("idle", "overload"):
        row = found[need]
        assert row["strategy"] == "roundrobin" and "5 moves" in row["remedy"] and "restart" in row["remedy"]
        assert "partition.assignment.strategy=roundrobin" in row["remedy"]
        assert "not forecast" not in row["remedy"] and "org.apache" not in str(row)
    assert "range (runs now)" in run(["compare", *inputs("13")]).out


# 13: librdkafka's range puts every topic on one member


def test_13_needs_and_moves_are_whole_lines_in_a_pipe():
    out = program(["rank", "--all", *inputs("13")]).out
    assert "rdkafka-ae658f33-fe3b-490b-93f4-48b3a5aa3c81, rdkafka-b774eb52-48db-40af-b215-8370d269a9a5" in out
    *_, moves = program(["compare", *inputs("13"), "-s", "roundrobin", "--moves"]).out.split("\n\n")
    head, *lines = moves.splitlines()
    assert len(lines) == 5 and all(line.count("rdkafka-") == 2 for line in lines)
    assert max(map(len, lines)) > 100


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


@pytest.mark.parametrize("names", [
    ("members.txt", "state.txt"), ("describe.txt",), ("describe.txt", "members.txt", "state.txt"), ("group.json",)])
def test_14_two_owners_come_first_and_are_named(names):
    rows, _ = ranked("14", *names)
    first = rows[0]
    ids = ("a and b",) if names == ("group.json",) else ("consumer-reactive-1-5affb229", "consumer-reactive-2-7e62aa0a")
    assert first["need"] == "two-owners" and first["affected"] == 1 and first["strategy"] is None
    assert "moves-1" in first["reason"] and all(one in first["reason"] for one in ids)
    assert all(words in first["remedy"] for words in ("assign()", "fenced", "two captures"))
    assert "no-owner" not in needs(rows)
    current = json.loads(run(["compare", *inputs("14", *names), "--format", "json"]).out)[0]["rows"][0]
    assert (current["strategy"], current["unassigned"]) == ("current", 0)


def test_14_each_partition_with_several_owners_counts_once_and_nothing_else_changes():
    names = [f"m{n}" for n in range(5)]
    even = Group({"t": 20}, dict.fromkeys(names, ["t"]))
    owned = {name: list(own) for name, own in assign(even, "roundrobin").items()}
    twice = {name: own + [("t", 4), ("t", 7)] * (name in ("m0", "m3")) for name, own in owned.items()}
    [row] = rank(even.replace(owned=twice, state="CompletingRebalance"))[:1]
    assert (row["need"], row["affected"]) == ("two-owners", 2) and "(and 1 more partition)" in row["reason"]
    assert "t-4 is owned by 3 members: m0 and m3 and m4" in row["reason"]
    assert rank(even.replace(owned=owned)) == []


# 15: a topic with records that nobody owns


def test_15_a_topic_that_nobody_owns_has_two_causes():
    row = needs(ranked("15")[0])["no-owner"]
    assert "user_update" in row["reason"] and "7 records" in row["reason"] and row["strategy"] is None
    assert all(words in row["remedy"] for words in ("no longer", "metadata.max.age.ms", "restart"))


def test_15_with_known_subscriptions_one_cause_is_left():
    group = Group({"t": 2, "old": 3}, {"a": ["t"]}, owned={"a": [("t", 0), ("t", 1)]}, committed={"t": [1, 1],
                  "old": [5, -1, 7]}, end={"t": [1, 1], "old": [9, 9, 7]})
    [row] = rank(group)
    assert (row["need"], row["affected"]) == ("no-owner", 1) and "no longer" in row["remedy"]
    assert row["reason"] == "old: 4 records wait and no member owns any of it" and "leader" not in row["remedy"]
    assert rank(group.replace(committed={"t": [1, 1], "old": [9, -1, 7]})) == []             # nothing waits
    [row] = rank(group.subscribe("a", ["t", "old"]))
    assert row["need"] == "no-owner" and row["reason"] == "old-0, old-1, old-2 have no owner; 4 records wait"
    assert row["remedy"].startswith("restart one member that subscribes to the topic (a)")


def test_15_an_owner_that_does_not_subscribe_is_named():
    group = Group({"t": 2, "u": 2}, [Member("a", ["t"], owned=[("t", 0), ("u", 1)]), Member("b", ["t", "u"], owned=[
        ("t", 1), ("u", 0)], instance_id="b")])
    [row] = rank(group)
    assert row["need"] == "no-owner" and row["affected"] == 1
    assert row["reason"] == "u-1 is with a, which does not subscribe to it"


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


# 24: kafkajs, whose assignor began every topic at the same member


def test_24_kafkajs_is_told_to_upgrade_and_nothing_of_javas():
    row = needs(ranked("24")[0])["overload"]
    assert row["strategy"] is None and "kafkajs" in row["remedy"] and "upgrad" in row["remedy"]
    assert "partitionAssigners" in row["remedy"] and "the largest is 6" in row["remedy"]
    assert not any(words in str(row) for words in ("Java", "runs it already", "cooperative-sticky"))


@pytest.mark.parametrize("client, reported, words", [
    ("sarama", "roundrobin", "upgrade Sarama to 1.28 or later"),
    ("ruby-kafka", "roundrobin", "upgrade ruby-kafka to 0.7.5"),
    ("sarama", "range", "Consumer.Group.Rebalance.GroupStrategies=sticky"), ("kgo", "range", "kgo.Balancers"),
    ("x@y (github.com/segmentio/kafka-go)", "roundrobin", "GroupBalancers: one of your own"),
    ("service", "BalanceStrategyRange", "GroupStrategies=sticky"), ("service", "rack-affinity", "GroupBalancers")])
def test_24_other_libraries_get_their_own_way(client, reported, words):
    topics = [f"t{n}" for n in range(9)]
    members = [Member(name, topics, client_id=client, owned=[(topic, 0) for topic in topics] * (name == "b"))
               for name in "abc"]
    for row in rank(Group(dict.fromkeys(topics, 1), members, strategy=reported)):
        assert row["strategy"] is None and words in row["remedy"] and "Java" not in row["remedy"]


# 25: partitions stand still between two captures


@pytest.mark.parametrize("options", [("--all", "--at", "all"), (), ("--all",)])
def test_25_what_stands_still_is_named_with_its_owners_and_both_moments(options):
    files = "describe-2026-03-01T0214.txt", "describe-2026-03-01T0219.txt"
    [row], err = ranked("25", *files, options=options)
    assert (row["need"], row["affected"], row["strategy"]) == ("stuck", 4, None)
    assert row["time"].startswith("2026-03-01T02:19") and row["remedy"].startswith("no assignment helps")
    ids = ("payment-events-2-66836886-a260-4d0b-bb45-145c1a81682c",
           "payment-events-3-fc132d0d-113d-417d-b0cb-c97d0fef7928")
    assert all(words in row["reason"] for words in (
        *(f"payments-{number}" for number in range(2, 6)), *ids, "02:14", "02:19", "900,000 records arrived on each"))
    assert "payments-0" not in row["reason"] and "payment-events, payment-events" not in err
    text = run(["rank", *inputs("25", *files), *options])
    assert "payment-events, payment-events" not in text.err and "stuck" in text.out


def test_25_what_went_on_is_said_and_a_pause_of_the_producer_is_no_need():
    text = (REPORTED / "25" / "describe-2026-03-01T0214.txt").read_text().replace("payment", "order")
    old = read_groups(text, time="2026-03-01T02:14Z")["order-events"]

    def later(**changes):
        offsets = {name: [*getattr(old.offsets, name)] for name in ("committed", "end")}
        for name, number in changes.items():
            for at in (2, 3):
                offsets[name][at] += number
        offsets["committed"][0] = offsets["end"][0] = 1050
        return old.replace(time="2026-03-01T02:24Z", **{name: {"orders": column} for name, column in offsets.items()})
    [row] = [row for row in rank([old, later(end=7)]) if row["need"] == "stuck"]
    assert row["affected"] == 2 and "orders-0 moved on" in row["reason"] and "whole group" not in row["reason"]
    for other in (later(), later(end=7, committed=1)):
        assert "stuck" not in needs(rank([old, other]))


@pytest.mark.parametrize("case, first, sentence", [
    ("25", "payment-events-3-fc132d0d", "nothing committed between"), ("05", "ingest-18f135d2", "")])
def test_05_and_25_show_who_lags_first(case, first, sentence, monkeypatch):
    files = [name for name in inputs(case) if name.endswith(".txt") and "state" not in name]
    out = run(["show", *files]).out
    lines = out[out.index("member  "):].splitlines()
    assert first in lines[1] and (sentence in out.partition("member  ")[0]) and ("odd:" in out) == bool(sentence)
    monkeypatch.setenv("COLUMNS", "80")
    screen = run(["show", *files]).out.splitlines()[:24]
    assert max(map(len, screen)) <= 80 and {"25": "9,800,009", "05": "20,000"}[case] in "\n".join(screen)


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


# 37: new partitions that nobody has yet


def test_37_new_partitions_need_one_restart():
    row = needs(ranked("37")[0])["no-owner"]
    assert row["remedy"].startswith("restart one member") and "metadata" in row["remedy"] and row["strategy"] is None
    assert len(row["steps"]) == 2 and not any("assignor" in step for step in row["steps"])
    assert "Java" not in row["remedy"] and "range" not in row["remedy"]


@pytest.mark.parametrize("client, reported", [
    ("consumer-g-1", "range"), ("consumer-g-1", "cooperative-sticky"), ("rdkafka", "roundrobin"), ("ruby-kafka", ""),
    ("kgo", "cooperative-sticky"), ("", "TeamAssignor"), ("kafka-python-3.0.12", "sticky")])
@pytest.mark.parametrize("static", [False, True])
def test_37_no_client_needs_another_assignor_for_new_partitions(client, reported, static):
    old = Group({"t": 6}, [Member(name, ["t"], client_id=client, instance_id=name if static else None)
                           for name in ("m-1", "m-2")])
    grown = old.replace(owned=dict(assign(old, "range")), strategy=reported).with_partitions({"t": 9})
    row = needs(rank(grown))["no-owner"]
    assert row["affected"] == 3 and row["strategy"] is None and "assignor" not in str(row["steps"])
    assert row["steps"][0].startswith("restart one member that subscribes to the topic (m-1)")
    assert ("session.timeout.ms" in row["steps"][0]) == static and len(row["steps"]) == 2 - (client == "ruby-kafka")
    assert (", 3 placed" in row["remedy"]) == (client in ("consumer-g-1", "rdkafka"))


# others of these kinds: nothing unknown is stated as a fact


def described(*rows):
    """What `--describe` prints of group `g`: topic, partition, committed offset, end and client id for each row."""
    heads = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
    return table(heads, *(
        ("g", topic, number, committed, end, "-" if "-" in (committed, end) else end - committed,
         *((f"{client}-{UUID(int=7)}", "/10.2.0.1", client) if client else "---"))
        for topic, number, committed, end, client in rows))


def test_even_lag_is_not_explained_while_idle_members_may_be_missing():
    text = described(("a", 0, 0, 40_000, "consumer-g-1"), ("a", 1, 0, 40_000, "consumer-g-2"))
    out = run("rank -", text).out
    assert "g: 80,000 records of lag, even over the members in the input" in out and "not the cause" not in out
    counted = table(["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"],
                    ["g", "b:9092 (1)", "range", "Stable", 2])
    assert "assignment is not the cause" in run("rank -", text + counted).out


def test_a_group_without_members_and_without_a_state_may_be_rebalancing():
    """The tool writes that a group is empty, or rebalances, on standard error, which a redirection does not save."""
    text = described(("a", 0, 5, 45, ""), ("a", 1, 5, 45, ""))
    [row] = json.loads(run("rank - --format json", text).out)
    assert row["need"] == "abandoned"
    assert row["reason"] == "the input shows neither members nor a state while 80 records wait"
    assert "rebalancing" in row["remedy"] and len(row["steps"]) == 2 and "--state" in row["steps"][0]
    assert row["reason"] in unwrapped(run("rank -", text).out)
    other = described(("a", 0, 45, 45, "consumer-h-1")).replace("\ng ", "\nh ")
    assert "1 group without members in the input" in run("rank -", text + other).out
    [row] = json.loads(run("rank - --format json", f"Consumer group 'g' has no active members.\n{text}").out)
    assert row["reason"].startswith("no active members") and "--state" not in row["remedy"]


def test_idle_members_with_unknown_subscriptions_may_be_helped():
    owned = {"a": "t(0,1,2,3)", "b": "t(4,5,6,7)", "c": "-"}       # as Sarama's range never deals them out
    text = table(["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"], *(
        ["g", f"{name}-{UUID(int=7)}", "/10.2.0.1", "sarama", 4 * (some != "-"), some] for name, some in owned.items()))
    text += table(["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"],
                  ["g", "b:9092 (1)", "range", "Stable", 3])
    [row] = json.loads(run("rank - --format json", text).out)
    assert row["need"] == "idle" and "if all members subscribe" in row["reason"]
    assert row["remedy"].startswith("check what the idle members subscribe to") and row["strategy"] is None


def test_clients_of_several_libraries_are_not_sent_to_what_they_run():
    members = [Member(name, ["t"], client_id=client, owned=[("t", n) for n in range(6)] * (name == "a"))
               for name, client in (("a", "rdkafka"), ("b", "sarama"))]
    for row in rank(Group({"t": 6}, members, strategy="range", state="Stable")):
        assert "that all of them ship (roundrobin)" in row["remedy"]


@pytest.mark.parametrize("client", ["kafkajs", "notifier"])
def test_an_assignor_of_another_library_is_no_unknown_one(client):
    members = [Member(name, ["t"], client_id=client, owned=[("t", at)]) for at, name in enumerate("ab")]
    group = Group({"t": 2}, members, strategy="RoundRobinAssigner", state="Stable", name="g")
    out = unwrapped(run("compare -", group.to_json()).out)
    assert "not known here" not in out and "RoundRobinAssigner is kafkajs's own assignor, which is not forecast" in out


def test_show_says_what_lag_is_unknown():
    text = described(("a", 0, "-", "-", "consumer-g-1"), ("a", 1, 0, 5, "consumer-g-2"))
    out = unwrapped(run("show -", text).out)
    assert "at least 5 records of lag; the lag of 1 partition is unknown" in out
    known = described(("a", 0, 3, 3, "consumer-g-1"), ("a", 1, 0, 5, "consumer-g-2"))
    assert "at least" not in run("show -", known).out


def test_show_gives_no_lag_of_0_where_some_is_unknown():
    text = described(("a", 0, "-", "-", "consumer-g-1"), ("a", 1, 4, 4, "consumer-g-1"), ("b", 0, 0, 5, "consumer-g-2"))
    [found] = json.loads(run("show - --format json", text).out)
    assert {row["client_id"]: row["lag"] for row in found["rows"]} == {"consumer-g-2": 5, "consumer-g-1": None}
    assert {row["topic"]: row["lag"] for row in found["topic_rows"]} == {"b": 5, "a": None}


def test_show_says_that_a_committed_offset_is_beyond_the_end():
    """The topic may have been recreated, or the offset reset: how many records wait is not known."""
    text = described(("a", 0, 900, 10, "consumer-g-1"), ("a", 1, 0, 5, "consumer-g-2"))
    [found] = json.loads(run("show - --wide --format json", text).out)
    assert [row["lag"] for row in found["partition_rows"]] == [None, 5]
    assert [(row["client_id"], row["lag"]) for row in found["rows"]] == [("consumer-g-2", 5), ("consumer-g-1", None)]
    [sentence] = found["odd"]
    assert "beyond the end of the log: a-0 (900, end 10); lag is unknown there" in sentence and sentence.endswith("?")
    assert "at least 5 records of lag; the lag of 1 partition is unknown" in unwrapped(run("show -", text).out)


def test_diff_says_that_offsets_were_reset(tmp_path):
    old, new = tmp_path / "2026-03-01T0214.txt", tmp_path / "2026-03-01T0219.txt"
    old.write_text(described(("a", 0, 900, 950, "consumer-g-1"), ("a", 1, 900, 950, "consumer-g-1")))
    new.write_text(described(("a", 0, 10, 950, "consumer-g-1"), ("a", 1, 920, 950, "consumer-g-1")))
    rows = json.loads(run(["diff", str(old), str(new), "--format", "json"]).out)
    rows = [row for row in (rows if isinstance(rows, list) else rows["rows"]) if row["what"] == "lag"]
    assert len(rows) == 2 and all("1 partition with a committed offset that went back" in row["words"] for row in rows)


def test_a_member_with_disputed_partitions_is_not_idle():
    """As if captured twice: the partitions of one member are those of another, too."""
    text = described(*(("q", number, 5, 20_005, "consumer-g-1") for number in range(6)),
                     *(("q", number, 5, 20_005, "consumer-g-2") for number in range(3, 6)))
    [row] = json.loads(run("rank - --all --format json", text).out)
    assert (row["need"], row["affected"]) == ("two-owners", 3)
    assert "even over" not in run("rank -", text).out
    [found] = json.loads(run("show - --format json", text).out)
    assert {row["client_id"]: (row["partitions"], row["lag"], row["assignment"]) for row in found["rows"]} == {
        "consumer-g-1": (6, 120_000, "q:0,1,2,3,4,5"), "consumer-g-2": (3, 60_000, "q:3,4,5")}


@pytest.mark.parametrize("client, reported", [("kafkajs", "RoundRobinAssigner"), ("sarama", "range"), ("kgo", "")])
def test_more_members_than_partitions_leave_some_idle_under_any_assignor(client, reported):
    members = [Member(name, ["t"], client_id=client, owned=[("t", at), ("t", at + 3)]) for at, name in enumerate("abc")]
    text = Group({"t": 6}, members, strategy=reported, state="Stable", name="g").to_json()
    sentence = "in short, under any assignor: at least 1 of 7 members would be idle"
    assert sentence in unwrapped(run("compare - --join 4", text).out)
    assert "any assignor" not in run("compare - --join 3", text).out


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_partitions_that_the_leader_has_not_seen_do_not_contradict_it(assignor):
    members = [Member(name, ["t", "u"], client_id="consumer-g-1") for name in "abc"]
    group = Group({"t": 6, "u": 4}, members, strategy=assignor, state="Stable", name="g")
    group = group.replace(owned=dict(assign(group, assignor)))
    grown = group.with_partitions({"t": 7, "u": 9})
    assert "cannot have produced" not in run("show -", grown.to_json()).out + run("compare -", grown.to_json()).out
    wrong = grown.replace(owned={"a": [("t", 0)], "b": [("t", number) for number in range(1, 6)]})
    assert f"{assignor} cannot have produced" in run("show -", wrong.to_json()).out


# an operator on call: groups of librdkafka clients, as `--describe` alone shows them


def on_call(*rows, client="rdkafka", before_uuid=""):
    """Members 1, 2 and so on that share a client id: topic, partition, lag and number of the owner (0 = none)."""
    heads = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
    text = table(heads, *(("g", topic, number, 100_000, 100_000 + lag, lag, *(
        (f"{before_uuid or client}-{UUID(int=owner)}", f"/10.2.0.{owner}", client) if owner else "---"))
        for topic, number, lag, owner in rows))
    host, last = map(text.splitlines()[1].index, ("HOST", "CLIENT-ID"))
    return "".join(f"{line[:host]}   {line[host:last]}   {line[last:]}\n" for line in text.splitlines())


LATE = [(topic, number, lag, number + 1) for topic in "abc" for number, lag in enumerate((50_000, 52_000, 120))]
UNEVEN = [("a", number, 9_000 + 311 * number, owner) for number, owner in enumerate([1] * 6 + [2, 2, 3, 3, 4, 4])]
SLOW = [(topic, number, lag, number % 3 + 1) for topic in "ab" for number, lag in enumerate((22_000, 15, 20, 30))]


@pytest.mark.parametrize("more", ["X", "XY", "XYZ"])
def test_a_row_off_its_header_is_read_and_no_instance_id_is_of_several_members(more):
    groups = read_groups(on_call(*LATE).replace("rdkafka-0", f"rdkafka{more}-0"))
    [group] = groups.values()
    assert groups.rejects == [] and {(one.host, one.client_id, one.instance_id) for one in group.details} == {
        (f"/10.2.0.{number}", "rdkafka", None) for number in (1, 2, 3)}
    assert f"instance ids: none inferred (3 members would share `rdkafka{more}`)" in group.inferred
    alone = read_groups(on_call(LATE[0], before_uuid="pod-0"))["g"]
    assert [one.instance_id for one in alone.details] == ["pod-0"] and "would share" not in alone.inferred


def test_large_lag_that_no_strategy_lowers_is_said_beside_the_verdict():
    late = f"rdkafka-{UUID(int=2)}, rdkafka-{UUID(int=1)}"
    words = (f"g: 306,360 records of lag, 306,000 on 2 of 3 members ({late}); "
             "no compared strategy that they can run lowers the largest lag by a third")
    done = run("rank -", on_call(*LATE))
    assert done.out.startswith("no group needs attention; idle members were not judged\n") and words in done.out
    assert words in run("rank - --format json", on_call(*LATE)).err
    small = [(topic, number, lag // 10, owner) for topic, number, lag, owner in LATE]
    assert "3,636 on" not in run("rank -", on_call(*small[:3])).out
    members = table(["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"],
                    *(["g", f"rdkafka-{UUID(int=owner)}", f"/10.2.0.{owner}", "rdkafka", 3] for owner in (1, 2, 3)))
    assert run("rank -", on_call(*LATE) + members).out.startswith("no group needs attention\n")


def test_the_best_lag_is_that_of_the_compared_strategies_which_the_clients_have():
    group = read_groups(on_call(*UNEVEN))["g"]
    reached = {row["strategy"]: row["lag_max"] for row in compare(group, ["range", "roundrobin", "lag"]).rows}
    least = min(reached["range"], reached["roundrobin"])
    assert reached["lag"] < least
    assert needs(rank(group))["lag"]["reason"].endswith(
        f"records behind, {least:,} under the best compared strategy that its members can run")
    unknown = needs(rank(read_groups(on_call(*UNEVEN, client="etl"))))["lag"]["reason"]
    assert unknown.endswith(f"{reached['lag']:,} under the best compared strategy")


def test_a_single_restart_is_said_whenever_the_default_list_allows_it():
    members = table(["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"], *(
        ["g", f"rdkafka-{UUID(int=at)}", f"/10.2.0.{at}", "rdkafka", count] for at, count in ((1, 4), (2, 0))))
    row = needs(rank(read_groups(on_call(*((topic, 0, 5, 1) for topic in "abcd")) + members)))["overload"]
    assert "set partition.assignment.strategy=roundrobin: two rolling restarts" in row["remedy"]
    assert "(a single restart if the members have librdkafka's default list range,roundrobin)" in row["remedy"]


def test_a_member_with_nearly_all_lag_is_looked_at_before_any_assignor():
    for client in ("notify", "rdkafka", "kafkajs"):
        row = needs(rank(read_groups(on_call(*SLOW, client=client))))["lag"]
        first = (f"first see whether {client}-{UUID(int=1)} is slow or stuck: "
                 "44,060 of 44,130 records of lag are on it, over 2 partitions")
        assert row["remedy"].startswith(f"{first}; ") and row["steps"][0] == first
    alone = [(topic, number, 22_000 * (topic == "a"), 1 if topic == "a" else 2) for topic in "ab" for number in (0, 1)]
    assert "slow or stuck" not in str(rank(read_groups(on_call(*alone))))             # the others do not consume `a`


def test_partitions_without_an_owner_are_named_and_their_lag_is_in_the_table():
    left = [("a", number, 500, 0) for number in (3, 4)]
    text = on_call(*LATE, *left)
    row = needs(rank(read_groups(text)))["no-owner"]
    assert row["reason"] == "a-3, a-4 have no owner; 1,000 records wait"
    done = run("show -", text)
    assert row["reason"] in done.out and "307,360 records of lag" in done.out
    assert re.search(r"\(no owner\) +- +2 +1,000 +<1%", done.out)
    [found] = json.loads(run("show - --format json", text).out)
    assert len(found["rows"]) == 3 and sum(one["lag"] for one in found["rows"]) == 306_360
    more = [("a", number, 500, 0) for number in range(3, 8)]
    row = needs(rank(read_groups(on_call(*LATE, *more))))["no-owner"]
    assert row["reason"] == "a-3, a-4, a-5 and 2 more have no owner; 2,500 records wait"


def test_every_need_of_a_table_has_its_remedy():
    group = Group({"t": 4}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", n) for n in range(4)]}, name="g")
    rows = rank(group)
    assert [row["need"] for row in rows] == ["idle", "overload"] and rows[0]["remedy"] == rows[1]["remedy"]
    assert run("rank -", group.to_json()).out.count("[1]\n") == 2


def test_what_only_python_clients_can_run_is_said_if_the_client_is_known_by_its_id():
    words = "shown for comparison; for Python clients only (kafka_assign.clients): fair, lag, sticky"
    assert words in run("compare -", on_call(*LATE)).out
    assert words not in run("compare -", on_call(*LATE, client="etl")).out
    out = run("strategies").out
    assert all(re.search(row, out) for row in (
        "librdkafka +range, roundrobin, cooperative-sticky +range, roundrobin", "Sarama +range, roundrobin, sticky +-",
        "kafkajs +RoundRobinAssigner +-"))


def test_owners_that_no_known_assignor_gives_are_odd():
    words = "no known assignor gives these owners: neither range nor roundrobin, nor a sticky one"
    assert words in run("show -", on_call(*UNEVEN, client="etl")).out
    assert "(here 2 to 6)" in run("show -", on_call(*UNEVEN)).out
    for rows, client in ((UNEVEN, "sarama"), (LATE, "etl"), ([("a", 0, 5, 1), ("a", 1, 5, 1)], "etl")):
        assert words not in run("show -", on_call(*rows, client=client)).out


def test_how_long_a_rebalance_lasts_is_said_with_a_change():
    words = "a rebalance lasts until every member has polled again, at most max.poll.interval.ms"
    assert words in run(f"compare - --leave rdkafka-{UUID(int=1)}", on_call(*LATE)).out
    assert words not in run("compare -", on_call(*LATE)).out
    by_broker = Group({"t": 2}, {"a": ["t"], "b": ["t"]}, type="consumer", name="g").to_json()
    assert words not in run("compare - --leave a", by_broker).out


def test_a_group_without_members_alone_has_its_row_and_no_equal_ones():
    text = "Consumer group 'g' has no active members.\n" + on_call(("a", 0, 88_000, 0), ("a", 1, 1_651, 0))
    out = run("rank -", text).out
    assert "abandoned" in out and "no active members while 89,651 records wait" in out and "--need" not in out
    out = run("compare -", text).out
    assert "current" in out and "roundrobin" not in out
    assert "roundrobin" in run("compare - --join n:a", text).out


def test_show_ends_with_the_next_command_and_shares_of_lag_are_never_all_or_nothing():
    rows = [("a", number, lag, number + 1) for number, lag in enumerate((90_000, 9, 0))]
    out = run("show -", on_call(*rows)).out
    assert out.endswith("\n\nwhat would help, and what it costs: kafka-assign rank FILE\n")
    shares = [line.split()[4] for line in out.splitlines() if "/10.2.0." in line]
    assert shares == [">99%", "<1%", "0%"]
    assert "100%" in run("show -", on_call(rows[0], rows[2])).out


def test_static_members_are_spoken_of_only_if_there_may_be_some():
    words = "range and roundrobin sort static members first"
    assert words not in run("compare -", on_call(*LATE)).out
    assert words in run("compare -", described(("a", 0, 1, 1, "pod-0"), ("a", 1, 1, 1, "pod-1"))).out


def test_a_notice_of_a_rebalance_is_no_state_of_the_broker():
    text = "\nWarning: Consumer group 'g' is rebalancing.\n" + on_call(*LATE)
    assert read_groups(text)["g"].state == "rebalancing"
    assert "PreparingRebalance" not in run("show -", text).out + run("rank -", text).out
    assert needs(rank(read_groups(text))).keys() == {"rebalancing"}
