"""Groups of a live cluster: from an admin client that answers as asked, and from a real broker, beside Kafka's tool."""
import errno
import json
import logging
import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from test_cli import one_line, program, run
from test_connection import LOGIN, SECRET, certificate, token_server, unsecured

from kafka_assign import Group, TopicPartition, assign, compare, rank, read_groups
from kafka_assign.clients import assignor, cluster
from kafka_assign.clients.cluster import CaptureError, Requests, capture, read_cluster
from kafka_assign.groups.notes import absence_notes
from kafka_assign.protocol.wire import (
    Assigned, Subscription, encode_assignment, encode_subscription)

NOW = "2026-11-20T06:30:00Z"
SECONDS = 30


class NotCoordinatorError(Exception):
    """An error that passes, by its name."""


class IncompatibleBrokerVersion(Exception):
    """What kafka-python raises for a request that the broker does not know, by its name."""


def fails_with(error):
    """A request that has no answer."""
    def request(names):
        raise error
    return request


def member(id, topics, owned=(), claims=(), instance_id=None, **known):
    """A member as the coordinator describes it, with the bytes that it sent; `owned`, `claims`: pairs."""
    sent = Subscription(topics, owned=claims, **known)
    return SimpleNamespace(
        member_id=id, group_instance_id=instance_id, client_id=f"client of {id}", client_host="/10.0.0.1",
        member_metadata=encode_subscription(sent), member_assignment=encode_assignment(Assigned(owned)))


def changed(told, **fields):
    """What a coordinator says, with other values of some fields."""
    return SimpleNamespace(**vars(told) | fields)


class Cluster:
    """Answers like kafka-python's admin client. `groups`: name -> (what is known, members, commits)."""

    def __init__(self, groups, topics={"t": 3, "u": 2}, racks={1: "a", 2: "b", 3: "c"}, codes={}, leaderless=()):
        self.groups, self.topics, self.racks, self.codes = groups, topics, racks, codes
        self.leaderless, self.asked = leaderless, []

    def _ask(self, request, *about):
        self.asked.append((request, *about))

    def describe_cluster(self):
        self._ask("cluster")
        return {"cluster_id": "id", "brokers": [{"broker_id": id, "rack": rack} for id, rack in self.racks.items()]}

    def list_groups(self):
        self._ask("groups")
        usual = {"protocol_type": "consumer", "group_type": "classic", "group_state": "Stable"}
        return [{"group_id": name} | usual | about for name, (about, *_) in self.groups.items()]

    def describe_groups(self, names):
        self._ask("describe", len(names))
        usual = {"group_state": "Stable", "protocol_data": "range", "error_code": 0}
        return {name: SimpleNamespace(**usual | {"group_id": name, "members": self.groups[name][1]}
                                      | self.groups[name][0]) for name in names}

    def describe_consumer_groups(self, names):
        self._ask("describe new", len(names))
        usual = {"group_state": "Stable", "assignor_name": "uniform", "group_epoch": 5, "error_code": 0}
        return {name: SimpleNamespace(**usual | {"group_id": name, "members": self.groups[name][1]}
                                      | self.groups[name][0]) for name in names}

    def list_group_offsets(self, names):
        self._ask("commits", len(names))
        return {name: {TopicPartition(*pair): SimpleNamespace(offset=offset)
                       for pair, offset in self.groups[name][2].items()} for name in names}

    def describe_topics(self, names):
        self._ask("topics", len(names))
        return [{"name": name, "error_code": self.codes.get(name, 0 if name in self.topics else 3), "partitions": [
            {"partition_index": number, "leader_id": -1 if (name, number) in self.leaderless else 1,
             "replica_nodes": [1 + number % 3, 1 + (number + 1) % 3]}
            for number in reversed(range(self.topics.get(name, 0)))]} for name in names]

    def list_partition_offsets(self, asked):
        self._ask("offsets", len(asked))
        return {one: SimpleNamespace(offset={-1: 100, -2: 10}[spec]) for one, spec in asked.items()}


def read(groups, names=None, requests=None, **more):
    """The groups of a cluster that answers as `Cluster`."""
    about = {name: more.pop(name) for name in ("cluster", "reset", "progress") if name in more}
    return read_cluster(Cluster(groups, **more), requests or Requests("k:1"), names, time=NOW, **about)


def kinds(group):
    """The kinds of the notes of a group, with their numbers."""
    return [(note.kind, note.count) for note in group.notes]


TWO = [member("b", ["t", "u"], [("t", 0), ("t", 1), ("u", 0)], claims=[("t", 2)], generation=7, rack="a"),
       member("a", ["t"], [("t", 2)], instance_id="static")]


# --- what becomes of the answers -----------------------------------------------------------------------------------

def test_a_group_is_what_the_cluster_says():
    [group] = read({"g": ({}, TWO, {("t", 0): 40, ("u", 1): 120})}).values()
    a, b = group.details
    assert (a.instance_id, b.instance_id, a.rack, b.rack) == ("static", None, None, "a")
    assert (a.topics, b.topics, a.client_id, a.host) == (("t",), ("t", "u"), "client of a", "/10.0.0.1")
    assert set(b.owned) == {("t", 0), ("t", 1), ("u", 0)} and set(a.owned) == {("t", 2)}, "what they own now"
    assert {a.generation, b.generation} == {-1} and a.user_data is b.user_data is None
    assert not group.dropped and group.listed.tolist() == [1, 0]
    assert group.topic_counts == {"t": 3, "u": 2}
    assert group.partition_racks == {"t": (("a", "b"), ("b", "c"), ("c", "a")), "u": (("a", "b"), ("b", "c"))}
    committed, begin, end, reset = group.offsets
    assert (committed.tolist(), begin.tolist(), end.tolist()) == ([40, -1, -1, -1, 120], [10] * 5, [100] * 5)
    assert group.lag.tolist() == [60, 0, 0, 0, 0]
    assert (group.state, group.type, group.strategy, group.time, group.cluster) == (
        "Stable", "classic", "range", NOW, "id")
    assert kinds(group) == [("lag-from-end", 3), ("leader-assumed", None)]


def test_captured_racks_and_subscriptions_are_no_assumptions():
    [group] = read({"g": ({}, TWO, {})}).values()
    row = next(row for row in compare(group, ["range"]).rows if row["strategy"] == "range")
    assert "racks" not in row["inferred"] and "subscriptions" not in row["inferred"] and "leader" in row["inferred"]


def test_the_caller_decides_about_reset_and_the_name_of_the_cluster():
    [group] = read({"g": ({}, TWO, {})}, reset="earliest", cluster="east").values()
    assert (group.lag.tolist(), group.cluster) == ([90] * 5, "east")


def test_json_lines_are_the_same_groups():
    found = read({"g": ({}, TWO, {("t", 0): 40}), "empty": ({"group_state": "Empty"}, [], {}), "new": (
        {"group_type": "consumer"}, [], {("u", 0): 3}), "odd\x1b name": ({}, joining(), {})})
    again = read_groups("".join(group.to_json() + "\n" for group in found.values()))
    assert dict(again) == dict(found)


def joining():
    """Members of a group that rebalances: no metadata, assignments as before, and a new one."""
    return [changed(one, member_metadata=b"") for one in TWO] + [
        changed(member("c", []), member_metadata=b"", member_assignment=b"")]


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "AwaitingSync"])
def test_what_a_rebalancing_group_does_not_show_is_unknown(state):
    found = read({"g": ({"group_state": state, "protocol_data": ""}, joining(), {("u", 1): 5})})
    group, (reject,) = found["g"], found.rejects
    assert [one.topics for one in group.details] == [("t",), ("t", "u"), ("t", "u")]
    assert {"subscriptions-unknown", "racks-unknown"} <= {kind for kind, _ in kinds(group)} and group.state == state
    assert f"group 'g': subscriptions are unknown: it is rebalancing ({state})" in reject.reason
    assert not group.dropped and (group.previous >= 0).sum() == 4


def test_metadata_that_cannot_be_decoded_is_unknown():
    found = read({"g": ({}, [TWO[0], changed(TWO[1], member_metadata=b"\0\1")], {})})
    assert found["g"].details[0].topics == ("t",) and "cannot be decoded" in found.rejects[0].reason


@pytest.mark.parametrize("type", ["consumer", "streams"])
def test_members_that_cannot_be_asked_for_are_unknown(type):
    """Those of Streams groups, and those of KIP-848 if the broker is too old to describe them."""
    asked = Cluster({"g": ({"group_type": type}, None, {("t", 1): 99}), "h": ({"group_type": type}, None, {}),
                     "i": ({"group_type": type, "group_state": "Empty"}, None, {})})
    asked.describe_consumer_groups = fails_with(IncompatibleBrokerVersion("no ConsumerGroupDescribe"))
    found = read_cluster(asked, Requests())
    assert not {kind for kind, *_ in asked.asked} & {"describe", "describe new"}
    too_old = "group '{}': the broker is too old to show it (IncompatibleBrokerVersion: no ConsumerGroupDescribe)"
    assert [one.reason for one in found.rejects] == [too_old.format(name) for name in "ghi" * (type == "consumer")]
    assert (found["g"].type, found["g"].topics, found["g"].lag.tolist()) == (type, ("t",), [0, 1, 0])
    assert kinds(found["g"]) == [("members-not-shown", None), ("lag-from-end", 2)]
    assert kinds(found["h"]) == [("topics-not-shown", None), ("members-not-shown", None)]
    assert kinds(found["i"]) == []


NULL = b"\xff\xff\xff\xff"
BAD_SUBSCRIPTIONS = {                                   # what follows the version
    "null topics": NULL, "a null topic": b"\0\0\0\1\xff\xff", "no UTF-8": b"\0\0\0\1\0\1\xff", "cut off": b"\0\0\0\5",
    "null partitions": b"\0\0\0\1\0\1t" + NULL + NULL,
    "null numbers": b"\0\0\0\1\0\1t" + NULL + b"\0\0\0\1\0\1t" + NULL}


@pytest.mark.parametrize("sent", BAD_SUBSCRIPTIONS.values(), ids=BAD_SUBSCRIPTIONS)
def test_what_one_member_sent_is_one_reject(sent):
    """It names group and member; the other members are known, and the other groups are captured."""
    bad = changed(TWO[0], member_metadata=b"\0\3" + sent)
    found = read({"g": ({}, [bad, TWO[1]], {}), "h": ({}, TWO, {})})
    [reason] = [one.reason for one in found.rejects]
    assert reason.startswith("group 'g': what member 'b' sent cannot be decoded: ") and one_line(reason + "\n")
    a, b = found["g"].details
    assert (a.topics, b.rack) == (("t",), None) and "t" in b.topics and len(b.owned) == 3
    assert {"subscriptions-unknown", "racks-unknown"} <= {kind for kind, _ in kinds(found["g"])}
    assert found["h"] == read({"h": ({}, TWO, {})})["h"]


@pytest.mark.parametrize("assigned", [NULL, b"\0\0\0\1\0\1t" + NULL, b"\0\0\0\1\xff\xff" + NULL],
                         ids=["null partitions", "null numbers", "a null topic"])
def test_without_what_a_member_was_assigned_no_owner_is_known(assigned):
    found = read({"g": ({}, [changed(TWO[0], member_assignment=b"\0\1" + assigned), TWO[1]], {}), "h": ({}, TWO, {})})
    [reason] = [one.reason for one in found.rejects]
    assert "group 'g': " in reason and "what member 'b' was assigned cannot be decoded: " in reason
    assert [*found] == ["h"]


@given(st.data())
def test_bytes_of_one_member_never_end_a_capture(data):
    """Whatever they are; a group that is kept survives a round trip through JSON."""
    field = data.draw(st.sampled_from(["member_metadata", "member_assignment"]))
    right = getattr(TWO[0], field)
    at = data.draw(st.integers(0, len(right)))
    bad = data.draw(st.binary()) if data.draw(st.booleans()) else (
        right[:at] + data.draw(st.binary(max_size=6)) + right[at + data.draw(st.integers(0, 6)):])
    found = read({"g": ({}, [changed(TWO[0], **{field: bad}), TWO[1]], {}), "h": ({}, TWO, {})})
    assert "h" in found and len(found.rejects) <= 1
    assert all(one.reason.startswith("group 'g': ") and one_line(one.reason + "\n") for one in found.rejects)
    assert dict(read_groups("".join(group.to_json() + "\n" for group in found.values()))) == dict(found)


def modern(id, topics, owned, regex=None, has=None, **known):
    """A member of a group of the new protocol as the broker describes it: pairs of its target, and of what it has."""
    parts, there = ([SimpleNamespace(topic_name=topic, partitions=[number]) for topic, number in pairs]
                    for pairs in (owned, owned if has is None else has))
    return SimpleNamespace(**{
        "assignment": SimpleNamespace(topic_partitions=there),
        "member_id": id, "instance_id": None, "rack_id": None, "client_id": f"client of {id}",
        "client_host": "/10.0.0.1", "subscribed_topic_names": topics, "subscribed_topic_regex": regex,
        "target_assignment": SimpleNamespace(topic_partitions=parts)} | known)


def test_groups_of_the_new_protocol():
    members = [modern("b", ["t"], [("t", 0), ("t", 2)], rack_id="a", instance_id="static"),
               modern("a", [], [("t", 1)], regex="t|u"), modern("c", ["u"], [("u", 0)], regex="t|u")]
    found = read({"g": ({"group_type": "consumer"}, members, {("t", 1): 40}), "h": ({}, TWO, {})})
    group = found["g"]
    a, b, c = group.details
    assert (a.topics, b.topics, c.topics) == (("t",), ("t",), ("t", "u")), "only what is known of an expression"
    assert (b.owned, b.instance_id, b.rack, b.client_id, b.host) == (
        (("t", 0), ("t", 2)), "static", "a", "client of b", "/10.0.0.1")
    assert (group.type, group.state, group.strategy, group.generation) == ("consumer", "Stable", "uniform", 5)
    assert kinds(group) == [("lag-from-end", 4), ("subscriptions-unknown", None)] and "('t|u')" in group.inferred
    assert not found.rejects and not group.members_unknown and (group.lag == [0, 60, 0, 0, 0]).all()
    empty = read({"g": ({"group_type": "consumer", "group_state": "Empty"}, [], {("t", 0): 1})})["g"]
    assert not empty.members and not empty.members_unknown and kinds(empty) == [("lag-from-end", 2)]


@pytest.mark.parametrize("expression, state, said", [
    ("u.*x", "Stable", True), ("T|U", "Stable", True), ("u|t", "Stable", False),
    ("(", "Stable", False),                                       # Python cannot tell
    ("x.*", "Reconciling", False)])                               # the broker may not have resolved it yet
def test_a_regular_expression_that_matches_no_topic_is_a_need(expression, state, said):
    members = [modern("a", ["t"], [("t", 0), ("t", 1), ("t", 2)]), modern("b", ["u"], [("u", 0), ("u", 1)]),
               modern("c", [], [], regex=expression), modern("d", [], [], regex=expression)]
    group = read({"g": ({"group_type": "consumer", "group_state": state}, members, {("t", 1): 40})})["g"]
    for one in group, Group.from_json(group.to_json()):
        found = [row for row in rank(one) if "no topic is known that matches" in row["reason"]]
        assert [(row["need"], row["affected"], row["strategy"]) for row in found] == [("idle", 2, None)] * said
        assert all(f"'{expression}' (2 subscribers: c, d)" in row["reason"] for row in found)
        assert all("whole name" in row["remedy"] for row in found)


def test_a_target_that_is_not_reached_is_noted():
    members = [modern("a", ["t"], [("t", 0)], has=[("t", 0), ("t", 1), ("t", 2)]),
               modern("b", ["t"], [("t", 1), ("t", 2)], has=[])]
    group = read({"g": ({"group_type": "consumer", "group_state": "Reconciling"}, members, {("t", 1): 40})})["g"]
    assert group.details[1].owned == (("t", 1), ("t", 2)) and ("target-not-reached", 2) in kinds(group)


def test_a_group_that_its_coordinator_does_not_know_is_a_reject():
    """Its members are unknown, not none: a group may change its protocol between two requests."""
    found = read({"g": ({"group_state": "Dead"}, [], {("t", 0): 1}), "h": ({}, TWO, {})})
    assert list(found) == ["h"]
    assert [one.reason for one in found.rejects] == ["group 'g': its coordinator does not know it (Dead)"]


def test_a_group_of_the_new_protocol_that_cannot_be_described():
    """Its members are unknown, and nothing else of it or of others is."""
    odd = modern("a", ["t"], [], target_assignment=None)
    found = read({"g": ({"group_type": "consumer", "error_code": 30}, [], {("t", 0): 1}), "h": ({}, TWO, {}),
                  "i": ({"group_type": "consumer"}, [odd], {("t", 0): 1})})
    assert [found[name].members_unknown for name in "ghi"] == [True, False, True]
    assert [one.reason.split(" (")[0] for one in found.rejects][:1] == ["group 'g': this client may not describe it"]
    assert "group 'i': " in found.rejects[1].reason and len(found.rejects) == 2


@pytest.mark.parametrize("type", ["consumer", "streams"])
def test_members_that_are_not_known_are_not_none(type, tmp_path):
    """No partition is called unassigned; a gate on anything but the total lag cannot be judged."""
    asked = Cluster({"g": ({"group_type": type}, None, {("t", 1): 40})})
    asked.describe_consumer_groups = fails_with(IncompatibleBrokerVersion())
    file = tmp_path / "groups.jsonl"
    file.write_text(read_cluster(asked, Requests())["g"].to_json())
    [told] = json.loads(run(f"compare {file} --format json").out)
    known = {"strategy", "partitions", "lag_total", "lag_unknown", "inferred"}
    assert told["members"] is None and (told["rows"][0]["partitions"], told["rows"][0]["lag_total"]) == (3, 60)
    assert all(row[key] is None for row in told["rows"] for key in row.keys() - known)
    shown = run(f"compare {file}")
    assert "unassigned" not in shown.out and "0 members" not in shown.out + repr(read_groups(file)["g"])
    assert json.loads(run(f"rank {file} --all --format json").out) == []
    refused = run(f"assign {file} -s range")
    assert (refused.code, refused.out) == (3, "") and "id/g: its members must be known" in refused.err
    gates = {"unassigned>0": 3, "moved>0": 3, "lag_total>10": 1, "lag_total>100": 0}
    assert {gate: run(["compare", str(file), "--fail-if", gate]).code for gate in gates} == gates


def test_one_bad_topic_does_not_spoil_the_others():
    """A name that the client or the broker cannot take, which any member may subscribe to."""
    asked = Cluster({"g": ({}, [*TWO, member("c", ["bad"])], {("t", 1): 1})})
    answer = asked.describe_topics

    def request(names):
        if "bad" in names:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return answer(names)
    asked.describe_topics = request
    found = read_cluster(asked, Requests("k:1"))
    assert found["g"].topic_counts == {"t": 3, "u": 2} and [one.reason.split(":")[0] for one in found.rejects] == [
        "topic 'bad'"]


@pytest.mark.parametrize("numbers", [[1, 2], [0, 2], [7], [0, 1, 1], [-1, 0]], ids=str)
def test_a_topic_whose_partitions_are_not_numbered_from_0_costs_only_itself(numbers):
    """As a broker shows it that lacks a part of the metadata."""
    asked = Cluster({"g": ({}, TWO, {("t", 1): 1, ("u", 1): 4})})
    answer = asked.describe_topics

    def describe(names):
        found = answer(names)
        for topic in found:
            if topic["name"] == "u":
                topic["partitions"] = [{**topic["partitions"][0], "partition_index": number} for number in numbers]
        return found
    asked.describe_topics = describe
    found = read_cluster(asked, Requests("k:1"))
    assert found["g"].topic_counts == {"t": 3} and ("topics-not-described", 1) in kinds(found["g"])
    [reject] = found.rejects
    assert reject.reason.startswith("topic 'u': its partitions must be numbered from 0 without a gap (got ")
    assert found["g"].lag.tolist() == [0, 99, 0]


def test_share_groups_and_those_of_other_programs_are_ignored():
    groups = {"g": ({}, TWO, {}), "s": ({"group_type": "share", "protocol_type": "share"}, None, None),
              "c": ({"protocol_type": "connect"}, None, None), "d": ({"protocol_type": "sr"}, None, None)}
    found = read(groups)
    assert [*found] == ["g"] and [(one.kind, one.lines) for one in found.ignored] == [("share", 1), ("other", 2)]
    with pytest.raises(CaptureError, match="k:1: share groups have no"):
        read(groups, ["s"])


def test_empty_groups_and_readers_that_only_commit():
    found = read({"empty": ({"group_state": "Empty"}, [], {("t", 0): 4}), "none": ({"group_state": "Empty"}, [], {}),
                  "simple": ({"group_state": "Empty", "protocol_type": ""}, [], {("u", 1): 9})})
    assert [group.topics for group in found.values()] == [("t",), (), ("u",)]
    assert all(not group.members and group.state == "Empty" for group in found.values())
    assert kinds(found["none"]) == []


def test_topics_that_are_not_in_the_cluster():
    found = read({"g": ({}, [member("a", ["t", "mispelled"], [("gone", 0)])],
                        {("gone", 0): 5, ("gone", 1): 6, ("t", 3): 1, ("t", 0): 9})})
    group = found["g"]
    assert group.topic_counts == {"t": 3} and group.topics == ("mispelled", "t") and not found.rejects
    assert group.notes[0].text == ("3 partitions with a commit left out, since the cluster does not have them: gone, t")
    assert group.offsets.committed.tolist() == [9, -1, -1]


def test_partitions_without_a_leader_have_no_known_lag():
    [group] = read({"g": ({}, TWO, {("t", 1): 1})}, leaderless={("t", 1)}).values()
    assert group.lag.tolist() == [0, -1, 0, 0, 0] and kinds(group)[0] == ("lag-from-end", 4)


def test_a_topic_that_may_not_be_described_is_said():
    found = read({"g": ({}, TWO, {})}, codes={"u": 29})
    assert found["g"].topic_counts == {"t": 3}
    assert [one.reason for one in found.rejects] == ["topic 'u': this client may not describe it"]
    assert ("topics-not-described", 1) in kinds(found["g"]) and not absence_notes(found["g"])     # b owns u-0


def test_a_subscribed_topic_that_does_not_exist():
    """If the client may not describe it, it may exist."""
    members = [member("a", ["t"], [("t", 0), ("t", 1), ("t", 2)]), member("b", ["tt"], [])]
    for code, words in ((3, "tt does not exist; did they mean t?"),
                        (29, "tt is not in the input; if it does not exist, did they mean t?")):
        [group] = read({"g": ({}, members, {})}, codes={"tt": code}).values()
        for one in (group, *read_groups(group.to_json() + "\n").values()):
            [note] = absence_notes(one)
            assert note.text == f"{words} (1 subscriber: b)"


def test_no_rack_is_no_rack():
    [group] = read({"g": ({}, TWO, {})}, racks={1: None, 2: None, 3: None}).values()
    assert not group.partition_racks
    [group] = read({"g": ({}, TWO, {})}, racks={1: "a", 2: None}).values()
    assert group.partition_racks["t"] == (("a",), (), ("a",))


def test_old_brokers_tell_neither_type_nor_state():
    [group] = read({"g": ({"group_type": None}, TWO, {})}).values()
    assert group.type == "classic"


def test_groups_that_no_group_can_be_are_rejected():
    twice, failed = [TWO[0], TWO[0]], {"error_code": 16}
    found = read({"bad": ({}, twice, {}), "good": ({}, TWO, {}), "\x1b[31m": (failed, [], {})})
    assert [*found] == ["good"] and all(one_line(one.reason + "\n") for one in found.rejects)
    assert [one.reason.split(":")[0] for one in found.rejects] == ["group '\\x1b[31m'", "group 'bad'"]
    assert found.read == found.used + found.rejected == 3


def test_names():
    groups = {"billing": ({}, TWO, {}), "search": ({}, TWO, {})}
    assert [*read(groups, ["search"])] == ["search"]
    with pytest.raises(CaptureError, match=r"^k:1: no group 'biling' that this client may describe; .*'billing'\?$"):
        read(groups, ["search", "biling"])
    with pytest.raises(CaptureError, match="^k:1: no group that this client may describe$"):
        read({})


# --- requests -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_many_groups_cost_few_questions(at_once, monkeypatch):
    """No request per group, and each partition is asked about once."""
    monkeypatch.setattr(cluster, "GROUPS_PER_REQUEST", at_once)
    asked, steps = Cluster({f"g{i}": ({}, TWO, {("t", 0): i}) for i in range(20)}), []
    found = read_cluster(asked, Requests(), time=NOW, progress=lambda *step: steps.append(step))
    parts = -(-20 // at_once)
    assert len(asked.asked) == 2 * parts + 5 and ("offsets", 5) in asked.asked
    assert steps[-1] == (20, 20) and len(steps) == parts
    one_by_one = [read({f"g{i}": ({}, TWO, {("t", 0): i})})[f"g{i}"] for i in range(20)]
    assert list(found.values()) == one_by_one


@pytest.mark.parametrize("method", ["describe_groups", "list_group_offsets"])
def test_one_bad_group_does_not_spoil_the_others(method, monkeypatch):
    """A decoder that raises, or a right that is missing, is about one group; few requests find which one."""
    asked = Cluster({f"g{i:02}": ({}, TWO, {}) for i in range(64)})
    answer = getattr(asked, method)

    def request(names):
        answered = answer(names)
        if "g17" in names:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return answered
    setattr(asked, method, request)
    found = read_cluster(asked, Requests("k:1"))
    assert len(found) == 63 and [one.reason.split(":")[0] for one in found.rejects] == ["group 'g17'"]
    assert len(asked.asked) < 30


def test_one_bad_partition_does_not_spoil_the_others():
    asked = Cluster({"g": ({}, TWO, {("t", 1): 1})})
    answer = asked.list_partition_offsets

    def request(partitions):
        if ("t", 1) in partitions:
            raise RuntimeError("UnknownTopicOrPartitionError")
        return answer(partitions)
    asked.list_partition_offsets = request
    found = read_cluster(asked, Requests("k:1"))
    assert found["g"].lag.tolist() == [0, -1, 0, 0, 0] and len(found.rejects) == 2


def test_failures_that_pass_are_waited_for(monkeypatch):
    monkeypatch.setattr(cluster, "_PAUSE", 0)
    left = [3]

    def request():
        left[0] -= 1
        if left[0]:
            raise NotCoordinatorError
        return "answer"
    assert Requests("k:1", time.monotonic() + SECONDS).answer(request) == "answer"
    left[0] = -1
    with pytest.raises(NotCoordinatorError):
        Requests("k:1", deadline=0).answers("number", [1, 2], lambda items: request())


# --- the command line, without a cluster ---------------------------------------------------------------------------

WRONG = {
    "capture": "--bootstrap-server", "capture --bootstrap-server k:": "HOST:PORT",
    "compare --bootstrap-server k:1 --demo": "give one of", "rank --bootstrap-server k:1 f.txt": "give one of",
    "rank": "give one of these: files, - for standard input, --bootstrap-server",
    "compare --bootstrap-server k:1 --at all": "as they are now",
    "rank --bootstrap-server k:1 --time 2026-11-20": "as they are now",
    "capture --bootstrap-server k:1 --timeout 0": "--timeout", "capture --bootstrap-server k:1 --timeout x": "number",
    "capture --bootstrap-server k:1 -o no/such/file": "its folder must exist",
    "capture --bootstrap-server k:1 -o x.parquet": "a file must end in .json or .jsonl (got 'x.parquet')",
    "capture --bootstrap-server k:1 -o x.csv": "a file must end in .json or .jsonl (got 'x.csv')"}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_use_is_one_line(line):
    done = run(line)
    assert done.code == 2 and WRONG[line] in done.err and one_line(done.err) and not done.out


def test_the_commands_take_a_cluster_in_place_of_files(monkeypatch, tmp_path):
    given = []

    def captured(server, groups, settings, **more):
        given.append((server, groups, settings, more["timeout"], more["reset"]))
        more["progress"](1, 1)
        return read({"g": ({}, TWO, {("t", 0): 40})})
    monkeypatch.setattr(cluster, "capture", captured)
    file = tmp_path / "groups.jsonl"
    assert run(f"capture --bootstrap-server k:1 -g g -o {file} --timeout 5").code == 0
    assert given == [("k:1", ["g"], {}, 5, "latest")]
    for command in ("compare {} -g g --format json", "rank {} --all --format json"):
        live, kept = (run(command.format(source)) for source in ("--bootstrap-server k:1", shlex.quote(str(file))))
        assert live.code == kept.code == 0 and json.loads(live.out) == json.loads(kept.out) and live.err == kept.err
    assert [one[1] for one in given] == [["g"], ["g"], None]
    assert run("capture --bootstrap-server k:1").out == file.read_text()


def test_names_neither_reach_a_terminal_nor_depend_on_the_locale(monkeypatch, tmp_path):
    """A capture is ASCII, as all JSON of the program, so it is UTF-8 under any locale."""
    name = "odd \x1b[2J \x9b \u202e ä 注文"
    found = read({name: ({}, TWO, {})})
    monkeypatch.setattr(cluster, "capture", lambda *arguments, **more: found)
    done, file = run("capture --bootstrap-server k:1"), tmp_path / "groups"
    assert done.out.isascii() and one_line(done.out) and [*read_groups(done.out)] == [name]
    assert run(f"capture --bootstrap-server k:1 -o {file}").code == 0 and file.read_text() == done.out


def test_a_part_that_is_missing_is_a_line_and_exit_code_3(monkeypatch):
    found = read({"g": ({"group_state": "PreparingRebalance"}, joining(), {})})
    monkeypatch.setattr(cluster, "capture", lambda *arguments, **more: found)
    done = run("compare --bootstrap-server k:1 -s range")
    assert done.code == 3 and "k:1: group 'g': subscriptions are unknown: it is rebalancing" in done.err


# --- connections that fail -----------------------------------------------------------------------------------------

def fails(line, words, tmp_path, start=run, **settings):
    """The program says in one line what is wrong, and nothing else."""
    pytest.importorskip("kafka")
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    done = start(f"capture --command-config {shlex.quote(str(file))} {line}")
    assert done.code == 3 and not done.out and one_line(done.err), done.err
    assert words in done.err and SECRET not in done.err


def test_nothing_listens(tmp_path):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    for start in (run, program):                         # kafka-python logs a lot, and nothing of it is shown
        fails(f"--bootstrap-server 127.0.0.1:{port}", f"127.0.0.1:{port}: nothing is listening there", tmp_path, start)
    fails(f"--bootstrap-server nowhere.invalid:9092,127.0.0.1:{port}", "the host name is unknown", tmp_path)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_no_wait_beyond_the_limit(protocol, tmp_path):
    """A port that accepts and says nothing, and the program ends; kafka-python alone waits for its TLS forever."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        fails(f"--bootstrap-server {address} --timeout 0.5", "no answer within 0.5 seconds", tmp_path, program,
              **{"security.protocol": protocol})


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_time_out_ends_its_threads(protocol, tmp_path):
    """Of a server that never answers; kafka-python alone waits for its TLS forever."""
    before = {*threading.enumerate()}
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(CaptureError, match="no answer within 0.5 seconds"):
            capture(address, settings={"security.protocol": protocol}, timeout=0.5)
        until(lambda: not {*threading.enumerate()} - before, SECONDS)


@pytest.mark.parametrize(("code", "words"), [
    ("EHOSTUNREACH", "it cannot be reached (KafkaConnectionError: 113 EHOSTUNREACH)"),
    ("ENETUNREACH", "it cannot be reached (KafkaConnectionError: 101 ENETUNREACH)"),
    ("ECONNREFUSED", "nothing is listening there (KafkaConnectionError: 111 ECONNREFUSED)")])
def test_an_address_that_cannot_be_reached(code, words, monkeypatch, tmp_path):
    """Nothing is said about a login, since nobody asked for one; each of several servers has its reason."""
    inet = pytest.importorskip("kafka.net.inet")
    monkeypatch.setattr(inet.KafkaNetSocket, "connect_ex", lambda *given: getattr(errno, code))
    fails("--bootstrap-server 127.0.0.1:9,[::1]:8", f"127.0.0.1:9: {words}; [::1]:8: {words}", tmp_path)


def test_only_who_hung_up_is_said_to_have(tmp_path):
    def hang_up():
        with suppress(OSError):                          # when the server is closed
            while True:
                server.accept()[0].close()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        fails(f"--bootstrap-server {address}", f"{address}: the other side hung up: check the port", tmp_path)
        server.shutdown(socket.SHUT_RDWR)
        thread.join(SECONDS)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_port_that_speaks_something_else(protocol, tmp_path):
    def answer():
        with suppress(OSError):                          # when the server is closed
            while True:
                with closing(server.accept()[0]) as connection:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        fails(f"--bootstrap-server 127.0.0.1:{server.getsockname()[1]} --timeout 1",
              "check the port, security.protocol" if protocol == "SSL" else "check the port", tmp_path,
              **{"security.protocol": protocol})
        server.shutdown(socket.SHUT_RDWR)
        thread.join(SECONDS)


# --- a real broker -------------------------------------------------------------------------------------------------

needs_broker = pytest.mark.needs("broker")


def until(condition, seconds=60):
    """Call `condition` until it is true, at most a minute long; what it returned."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, condition
        time.sleep(0.02)
    return found


@pytest.fixture(scope="module")
def admin(broker):
    import kafka
    with closing(kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
        yield client


def polled_assignment(consumer):
    """Poll once, long enough for a rebalance; what the consumer owns then."""
    consumer.poll(500)
    return consumer.assignment()


def settled(consumers, members):
    """Poll side by side, as processes would, until so many own something and the next polls change nothing."""
    def same():
        with ThreadPoolExecutor(len(consumers)) as pool:
            polled = [list(pool.map(polled_assignment, consumers)) for _ in range(2)]
        return polled[0] == polled[1] and sum(map(bool, polled[1])) == members
    until(same)


def commit(consumer, offset):
    """Commit one offset for every partition that the consumer owns."""
    from kafka.structs import OffsetAndMetadata
    consumer.commit({one: OffsetAndMetadata(offset, "", -1) for one in consumer.assignment()})


@pytest.fixture(scope="module")
def groups(broker, admin):
    """Groups of every kind: `billing` with lag and a static member, `nightly` empty, `reader` only commits, `idle` has
    more members than partitions, `modern` is assigned by the broker, `stuck` rebalances."""
    import kafka
    from broker import java_command
    from kafka.structs import OffsetAndMetadata
    admin.create_topics({name: {"num_partitions": count, "replication_factor": 1} for name, count in (
        ("c-orders", 4), ("c-pays", 2), ("c-one", 1), ("c-modern", 3))}, wait_for_metadata=True)
    with closing(kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
        for future in [producer.send("c-orders", b"record", partition=i % 4) for i in range(40)]:
            future.get(SECONDS)

    def consumer(group, client_id, *topics, **more):
        return stack.enter_context(closing(kafka.KafkaConsumer(
            *topics, group_id=group, client_id=client_id, bootstrap_servers=broker.bootstrap, enable_auto_commit=False,
            heartbeat_interval_ms=100, session_timeout_ms=30_000, auto_offset_reset="earliest",
            partition_assignment_strategy=[assignor("range")], **more)))       # kafka-python's own ones lose joins
    with ExitStack() as stack:
        billing = [consumer("c-billing", "kafka-python-3.0.12", "c-orders", "c-pays"),
                   consumer("c-billing", "bill 2", "c-orders", group_instance_id="bill-static")]
        settled(billing[:1], 1)                          # it leads, and knows both topics
        settled(billing, 2)
        commit(billing[0], 3)
        idle = [consumer("c-idle", f"idle-{i}", "c-one") for i in range(2)]
        settled(idle, 1)
        nightly = consumer("c-nightly", "night", "c-pays")
        settled([nightly], 1)
        commit(nightly, 0)
        nightly.close()
        admin.alter_group_offsets("c-reader", {kafka.TopicPartition("c-orders", 1): OffsetAndMetadata(4, "", -1)})
        java = subprocess.Popen(
            java_command("org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", broker.bootstrap,
                         "--topic", "c-modern", "--group", "c-modern", "--command-property", "group.protocol=consumer"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(java.wait)
        stack.callback(java.kill)
        second, first = (consumer("c-stuck", client_id, "c-pays") for client_id in ("second", "first"))
        settled([first], 1)
        second.poll(500)                                 # the first one does not poll any more; it is closed first

        def there():
            states = {one["group_id"]: (one["group_type"], one["group_state"]) for one in admin.list_groups()}
            return (states.get("c-modern") == ("consumer", "Stable")
                    and states.get("c-stuck") == ("classic", "PreparingRebalance"))
        until(there)
        yield [name for name in (one["group_id"] for one in admin.list_groups()) if name.startswith("c-")]


def tool_output(broker, kind, folder, *options):
    """Let Kafka's own tool write what it shows of all groups into a file of `folder`."""
    from broker import java_command
    done = subprocess.run(
        java_command("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server",
                     broker.bootstrap, "--describe", "--all-groups", *options), capture_output=True, text=True)
    (folder / f"{kind}.txt").write_text(done.stdout)


@needs_broker
def test_agrees_with_kafkas_own_tool(broker, groups, tmp_path):
    """The same moment as the tool shows it; what it does not show is left out."""
    for kind, options in (("offsets", ["--offsets"]), ("members", ["--members", "--verbose"]), ("state", ["--state"])):
        tool_output(broker, kind, tmp_path, *options)
    live, shown = capture(broker.bootstrap), read_groups(tmp_path)
    assert set(groups) <= live.keys() & shown.keys()
    for name in set(groups) - {"c-modern", "c-stuck"}:          # `c-modern` commits meanwhile
        ours, theirs = live[name], shown[name]
        assert ours.state == theirs.state and ours.strategy == theirs.strategy, name
        for one, other in zip(ours.details, theirs.details, strict=True):
            assert (one.id, one.client_id, one.host) == (other.id, other.client_id, other.host)
            assert one.instance_id == other.instance_id and set(one.owned) == set(other.owned)
        for topic in theirs.topics:
            for number in range(theirs.topic_counts[topic]):
                at, there = ours.position(topic, number), theirs.position(topic, number)
                if theirs.offsets is not None and theirs.offsets.end[there] >= 0:
                    assert ours.offsets.committed[at] == theirs.offsets.committed[there]
                    assert ours.offsets.end[at] == theirs.offsets.end[there] and ours.lag[at] == theirs.lag[there]


@needs_broker
def test_groups_of_the_new_protocol_are_as_kafkas_own_tool_shows_them(broker, admin, tmp_path):
    """Members, owners and target at one moment: three consumers, of which one is static and one subscribes by an
    expression. `compare` and `rank` of the cluster show what they show of the tool's output."""
    from confluent_kafka import Consumer
    admin.create_topics({name: {"num_partitions": count, "replication_factor": 1} for name, count in (
        ("new-orders", 7), ("new-pays", 3))}, wait_for_metadata=True)

    def consumer(name, topics, **more):
        one = stack.enter_context(closing(Consumer({
            "bootstrap.servers": broker.bootstrap, "group.id": "new", "client.id": name, "group.protocol": "consumer",
            "auto.offset.reset": "earliest", "enable.auto.commit": False, **more})))
        one.subscribe(topics)
        return one

    def at_rest():
        for one in consumers:
            one.poll(0.05)
        found = capture(broker.bootstrap, ["new"])["new"]
        held = {one.memberid(): {(part.topic, part.partition) for part in one.assignment()} for one in consumers}
        settled = all(held.values()) and held == {one.id: {*one.owned} for one in found.details}
        return found.state == "Stable" and settled and found

    with ExitStack() as stack:
        consumers = [consumer("new-a", ["new-orders"], **{"client.rack": "r1"}),
                     consumer("new-b", ["new-orders", "new-pays"], **{"group.instance.id": "static-b"}),
                     consumer("new-c", ["^new-.*"])]
        until(at_rest)
        for kind, options in (("offsets", ["--offsets"]), ("members", ["--members", "--verbose"]),
                              ("state", ["--state", "--verbose"])):
            tool_output(broker, kind, tmp_path, *options)
        live, shown = until(at_rest), read_groups(tmp_path)["new"]
        row = json.loads(run(f"compare --bootstrap-server {broker.bootstrap} -g new --format json").out)[0]
        ranked = run(f"rank --bootstrap-server {broker.bootstrap} --all --format json").out
    for group in live, shown:
        assert (group.type, group.state, group.strategy) == ("consumer", "Stable", "uniform")
    assert live.generation == shown.generation > 0
    for one, other in zip(live.details, shown.details, strict=True):
        assert (one.id, one.client_id, one.host, one.instance_id) == (
            other.id, other.client_id, other.host, other.instance_id)
        assert {*one.owned} == {*other.owned} and one.owned
    assert sum(len(one.owned) for one in live.details) == 10 and not live.dropped
    by_client = {one.client_id: one for one in live.details}
    assert [by_client[name].topics for name in ("new-a", "new-b")] == [("new-orders",), ("new-orders", "new-pays")]
    assert by_client["new-a"].rack == "r1" and by_client["new-b"].instance_id == "static-b"
    guesses = [note.text for note in live.notes if note.kind == "subscriptions-unknown"]
    assert len(guesses) == 1 and "^new-.*" in guesses[0]
    assert {*by_client["new-c"].topics} == {topic for topic, _ in by_client["new-c"].owned}
    same = "members", "partitions", "assigned", "unassigned", "min_load", "max_load"
    expected = compare(shown, ["range"]).current.summary()
    assert {name: row["rows"][0][name] for name in same} == {name: expected[name] for name in same}
    assert expected["unassigned"] == 0 and not [one for one in json.loads(ranked) if one["group_id"] == "new"]


def join_with(admin, group, topic, sent):
    """A member that joins with these bytes, alone, and as the leader assigns itself a partition; its id."""
    from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest

    async def join(node, member_id):
        protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=sent)]
        return await admin._manager.send(JoinGroupRequest(
            group_id=group, session_timeout_ms=60_000, rebalance_timeout_ms=60_000, member_id=member_id,
            protocol_type="consumer", protocols=protocols), node_id=node)

    async def ask():
        node = await admin._find_coordinator_id(group)
        joined = await join(node, (await join(node, "")).member_id)
        assigned = SyncGroupRequest.SyncGroupRequestAssignment(
            member_id=joined.member_id, assignment=encode_assignment(Assigned([(topic, 0)])))
        await admin._manager.send(SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, protocol_type="consumer",
            protocol_name="range", assignments=[assigned]), node_id=node)
        return joined.member_id
    return admin._manager.run(ask)


@needs_broker
def test_members_that_send_anything(broker, admin):
    """The broker passes on what members send, if it can be cut into fields: each is one reject, and all groups are
    captured."""
    from kafka.admin import MemberToRemove
    topic, passed_on = "c-anything", ("no UTF-8", "null partitions", "null numbers")
    admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    names = [f"c-anything-{i}" for i in range(len(passed_on))]
    ids = [join_with(admin, name, topic, b"\0\3" + BAD_SUBSCRIPTIONS[one]) for name, one in zip(names, passed_on)]
    odd = encode_subscription(Subscription(["", "a b", "x" * 300, topic]))         # names that no topic has
    names, ids = [*names, "c-anything-odd"], [*ids, join_with(admin, "c-anything-odd", topic, odd)]
    found = capture(broker.bootstrap, names)
    for name, id in zip(names, ids):                       # kafka-python cannot describe these groups
        admin.remove_group_members(name, [MemberToRemove(member_id=id)])
    admin.delete_groups(names)
    assert found["c-anything-odd"].details[0].topics == ("", "a b", topic, "x" * 300)
    assert len(found.rejects) == len(passed_on) and all(found[name].details[0].owned == ((topic, 0),) for name in names)
    for name, id in zip(names[:-1], ids):
        [reason] = [one.reason for one in found.rejects if f"group '{name}'" in one.reason]
        assert f"what member '{id}' sent cannot be decoded" in reason


@needs_broker
def test_a_broker_that_cannot_be_reached_is_not_the_server_that_was_named(broker, monkeypatch):
    from kafka.errors import KafkaConnectionError

    def unreachable(*given, **more):
        raise KafkaConnectionError("111 ECONNREFUSED")
    monkeypatch.setattr(cluster, "read_cluster", unreachable)
    words = "a broker at the address that it advertises: nothing is listening there"
    with pytest.raises(CaptureError, match=f"^{broker.bootstrap}: {words}"):
        capture(broker.bootstrap)


@needs_broker
def test_shows_what_the_tool_does_not(broker, groups):
    """Subscriptions, racks of replicas, partitions that nobody owns; so nothing of it is assumed."""
    group = capture(broker.bootstrap, ["c-billing"])["c-billing"]
    static, dynamic = sorted(group.details, key=lambda one: one.instance_id is None)
    assert (static.instance_id, static.topics) == ("bill-static", ("c-orders",))
    assert set(dynamic.topics) == {"c-orders", "c-pays"}
    assert group.topic_counts == {"c-orders": 4, "c-pays": 2} and (group.previous >= 0).all()
    assert group.partition_racks == {"c-orders": (("a",),) * 4, "c-pays": (("a",),) * 2}
    assert not {note.kind for note in group.notes} & {"racks-unknown", "subscriptions-unknown", "partitions-counted"}
    assert group.lag.tolist().count(7) == 2 and group.cluster and group.time.endswith("Z")


@needs_broker
def test_foretells_what_a_member_leaves_to_the_others(broker, admin):
    """The forecast from a captured group is what its members own once the member is gone."""
    import kafka
    admin.create_topics({"c-leave": {"num_partitions": 7, "replication_factor": 1}}, wait_for_metadata=True)
    with ExitStack() as stack:
        consumers = [stack.enter_context(closing(kafka.KafkaConsumer(
            "c-leave", group_id="c-leave", client_id=f"leave-{i}", bootstrap_servers=broker.bootstrap,
            heartbeat_interval_ms=100, partition_assignment_strategy=[assignor("range")]))) for i in range(3)]
        settled(consumers, 3)
        before = capture(broker.bootstrap, "c-leave")["c-leave"]
        [gone] = [one.id for one in before.details if one.client_id == "leave-0"]
        forecast = assign(before.leave(gone), before.strategy)
        assert forecast.moved.any()
        consumers[0].close()
        settled(consumers[1:], 2)
        after = capture(broker.bootstrap, "c-leave")["c-leave"]
    assert {one.id: set(one.owned) for one in after.details} == {id: set(owned) for id, owned in forecast.items()}


@needs_broker
def test_a_group_that_rebalances(broker, groups):
    done = run(f"compare --bootstrap-server {broker.bootstrap} -g c-stuck -s range")
    assert done.code == 3 and one_line(done.err) and "rebalancing (PreparingRebalance)" in done.err
    group = capture(broker.bootstrap, ["c-stuck"])["c-stuck"]
    assert group.state == "PreparingRebalance" and {one.topics for one in group.details} == {("c-pays",)}


@needs_broker
def test_captured_groups_are_read_back(broker, groups, tmp_path):
    file = tmp_path / "groups.jsonl"
    names = " ".join(f"-g {name}" for name in groups if name != "c-stuck")
    assert run(f"capture --bootstrap-server {broker.bootstrap} {names} -o {file}").code == 0
    kept, live = read_groups(file), capture(broker.bootstrap, [name for name in groups if name != "c-stuck"])
    assert [group.replace(time="") for group in kept.values()] == [group.replace(time="") for group in live.values()]
    for command in ("compare {} -s range -s sticky --format json", "rank {} --all --format json"):
        assert json.loads(run(command.format(file)).out)
    assert run(f"rank --bootstrap-server {broker.bootstrap} --format json").code == 3, "c-stuck rebalances"


@needs_broker
def test_changes_nothing(broker, admin, groups):
    """Topics, groups, members and offsets are the same before and after."""
    def state():
        listed = sorted(admin.list_groups(), key=lambda one: one["group_id"])
        names = [one["group_id"] for one in listed]
        classic = [one["group_id"] for one in listed if one["group_type"] == "classic"]
        return (sorted(admin.list_topics()), listed, admin.describe_groups(classic), admin.list_group_offsets(names))
    before = state()
    capture(broker.bootstrap)
    capture(broker.bootstrap, [groups[0]])
    with pytest.raises(CaptureError, match="no group 'c-new'"):
        capture(broker.bootstrap, ["c-new"])
    assert state() == before


@needs_broker
def test_logins(broker, groups, tmp_path, caplog):
    """The right password, the wrong one, none, one that is not asked for; never in a log, however noisy that is."""
    from broker import ADMIN, GUEST
    caplog.set_level(logging.DEBUG)
    right = LOGIN | dict(zip(("sasl.username", "sasl.password"), ADMIN))
    assert set(groups) <= capture(broker.sasl, settings=right).keys()
    with pytest.raises(CaptureError, match="the login"):
        capture(broker.sasl, settings=LOGIN)
    assert caplog.records and not [one for one in caplog.records if ADMIN[1] in one.getMessage() + str(one.args)
                                   or SECRET in one.getMessage() + str(one.args)]
    for address, words, settings in (
            (broker.sasl, "the login", LOGIN), (broker.sasl, "hung up: check the port", {}),
            (broker.bootstrap, "takes no login", LOGIN),
            (broker.sasl, "check the port, security.protocol and ssl.ca.location", {"security.protocol": "SSL"}),
            (broker.sasl, "sasl.mechanism", LOGIN | {"sasl.mechanism": "SCRAM-SHA-512"}),
            (broker.sasl, "no group that this client may describe",
             LOGIN | dict(zip(("sasl.username", "sasl.password"), GUEST)))):
        fails(f"--bootstrap-server {address}", words, tmp_path, **settings)


@needs_broker
def test_logins_by_scram_and_by_token(broker, admin, groups, caplog):
    """As Java writes them; of the token, the broker believes who it is."""
    from broker import ADMIN
    from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
    caplog.set_level(logging.DEBUG)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion(ADMIN[0], ScramMechanism.SCRAM_SHA_256, SECRET)])
    scram = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256",
             "sasl.jaas.config": f'a.ScramLoginModule required username="{ADMIN[0]}" password="{SECRET}";'}
    assert set(groups) <= until(lambda: allowed(broker, scram)).keys()
    with token_server() as server:
        token = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
                 "sasl.oauthbearer.token.endpoint.url": server.url,
                 "sasl.jaas.config": f"a.OAuthBearerLoginModule required clientId=me clientSecret='{SECRET}';"}
        server.answer = {"access_token": unsecured(ADMIN[0]), "expires_in": 3600}
        assert set(groups) <= capture(broker.sasl, settings=token).keys() and len(server.seen) == 1
        server.answer = 401
        with pytest.raises(CaptureError, match=f"^{broker.sasl}: sasl.oauthbearer.token.endpoint.url must answer with "
                                               r"a token \(got HTTP 401\)$"):
            capture(broker.sasl, settings=token)
    assert not [one for one in caplog.records if SECRET in one.getMessage() + str(one.args)]


def allowed(broker, settings):
    """The groups that a user may describe, or None."""
    try:
        return capture(broker.sasl, settings=settings)
    except CaptureError:
        return None


@needs_broker
def test_missing_rights_are_named(broker, admin, groups, tmp_path):
    """A guest that may describe one group and one of its topics; afterwards none, as before."""
    from broker import GUEST
    from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
    rights = [f"User:{GUEST[0]}", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW]
    patterns = [ResourcePattern(ResourceType.TOPIC, "c-orders"), ResourcePattern(ResourceType.GROUP, "c-billing")]
    guest = LOGIN | dict(zip(("sasl.username", "sasl.password"), GUEST))
    admin.create_acls([ACL(*rights, pattern) for pattern in patterns])
    try:
        found = until(lambda: allowed(broker, guest))
        assert [one.reason for one in found.rejects] == ["topic 'c-pays': this client may not describe it"]
        file = tmp_path / "guest.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in guest.items()))
        done = run(f"capture --bootstrap-server {broker.sasl} --command-config {shlex.quote(str(file))}")
        assert done.code == 3 and one_line(done.err) and [*read_groups(done.out)] == ["c-billing"]
        assert "topic 'c-pays': this client may not describe it" in done.err
        assert found["c-billing"].topic_counts == {"c-orders": 4} and [*found] == ["c-billing"]
        with pytest.raises(CaptureError, match="no group 'c-idle' that this client may describe"):
            capture(broker.sasl, ["c-idle"], guest)
    finally:
        admin.delete_acls([ACLFilter(*rights, pattern) for pattern in patterns])
        until(lambda: allowed(broker, guest) is None)


# --- TLS -----------------------------------------------------------------------------------------------------------

@pytest.mark.needs("broker", "openssl")
@pytest.mark.parametrize("protocol", ["SSL", pytest.param("SASL_SSL", marks=pytest.mark.long)])
def test_tls(protocol, tmp_path):
    """A broker with a certificate for its address asks for one of the client, and perhaps for a login, too.

    In the end it hangs, and then it is down: no test but this one can do that to its broker.
    """
    import kafka
    from broker import ADMIN, start
    from kafka.structs import OffsetAndMetadata
    here = "subjectAltName=IP:127.0.0.1"
    for name, extensions in ("broker", [here]), ("other", [here]), ("client", []):
        certificate(tmp_path, name, *extensions)
    started = start(protocol, f"""
listener.name.login.ssl.keystore.type=PEM
listener.name.login.ssl.keystore.location={tmp_path}/broker.both
listener.name.login.ssl.truststore.type=PEM
listener.name.login.ssl.truststore.location={tmp_path}/client.pem
listener.name.login.ssl.client.auth=required
super.users=User:ANONYMOUS;User:{ADMIN[0]};User:CN=client
""")
    right = {"security.protocol": protocol, "ssl.ca.location": tmp_path / "broker.pem",
             "ssl.certificate.location": tmp_path / "client.pem", "ssl.key.location": tmp_path / "client.key"}
    if protocol == "SASL_SSL":
        right |= LOGIN | dict(zip(("sasl.username", "sasl.password"), ADMIN)) | {"security.protocol": protocol}
    other = {"ssl.certificate.location": tmp_path / "other.pem", "ssl.key.location": tmp_path / "other.key"}
    try:
        with closing(kafka.KafkaAdminClient(bootstrap_servers=started.bootstrap)) as client:
            client.create_topics({"t": {"num_partitions": 2}}, wait_for_metadata=True)
            client.alter_group_offsets("g", {kafka.TopicPartition("t", 1): OffsetAndMetadata(0, "", -1)})
        file = tmp_path / "right.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in right.items()))
        done = run(f"capture --bootstrap-server {started.sasl} --command-config {shlex.quote(str(file))}")
        assert (done.code, done.err, [*read_groups(done.out)]) == (0, "", ["g"])
        of_java = {key: value for key, value in right.items() if not key.startswith("ssl.")} | {
            "ssl.truststore.type": "PEM", "ssl.truststore.location": str(tmp_path / "broker.pem"),
            "ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "client.both")}
        assert [*capture(started.sasl, settings=of_java)] == ["g"]
        port = started.sasl.split(":")[1]
        for address, words, settings in (
                (started.sasl, "check the port, security.protocol and ssl.ca.location (KafkaConnectionError: Handshake "
                 "failed: [SSL: CERTIFICATE_VERIFY_FAILED]", right | {"ssl.ca.location": tmp_path / "other.pem"}),
                (f"localhost:{port}", "Hostname mismatch, certificate is not valid for 'localhost'", right),
                (started.sasl, "certificate of this client is refused: check ssl.certificate.location", right | other),
                (started.sasl, "check the port", {}),          # it hangs up, or the client reads an alert of TLS
                (started.bootstrap, "check the port, security.protocol and ssl.ca.location", right)):
            fails(f"--bootstrap-server {address}", words, tmp_path, **settings)
        os.killpg(started.process.pid, signal.SIGSTOP)
        try:
            for address, settings in (started.sasl, right), (started.bootstrap, {}):
                fails(f"--bootstrap-server {address} --timeout 1", "no answer within 1 seconds", tmp_path, **settings)
        finally:
            os.killpg(started.process.pid, signal.SIGCONT)
    finally:
        started.stop()
    fails(f"--bootstrap-server {started.bootstrap}", "nothing is listening there", tmp_path)
