"""The broker's assignors: the answers of the real code, their promises, and who must not run them."""

import json
import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kafka_assign import Assignment, Group, LiveGroup, Member, assign, assign_many, compare, rank
from kafka_assign.assignors.base import StrategyError
from kafka_assign.assignors.broker import (
    orders_given, orders_of_broker, uniform_differing, uniform_equal)
from kafka_assign.assignors.conformance import check_strategy, random_groups
from kafka_assign.assignors.registry import resolve
from kafka_assign.cli.rows import member_counts
from kafka_assign.clients import assignor

REFERENCE = Path(__file__).parent / "reference"
BUILDERS = {"HOMOGENEOUS": uniform_equal, "HETEROGENEOUS": uniform_differing}


@cache
def cases(name):
    lines = (REFERENCE / f"kip848-{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


@cache
def group_of(name, case):
    case = cases(name)[case]
    return Group.from_json(case).replace(topic_ids=case["topic_ids"])


def answered(assignment):
    """An assignment as the vectors have it."""
    return {member: [[topic, number] for topic, number in sorted(owned)] for member, owned in assignment.items()}


def orders_listed(case, group):
    """The orders in which a case lists members, topics (their ids ascend) and what is owned."""
    topics = sorted(case["topics"], key=lambda topic: urlsafe_b64decode(case["topic_ids"][topic] + "=="))
    missing = [name for name in group.topics if name not in topics]
    orders = orders_given(group, [member["id"] for member in case["members"]], topics + missing)
    owned = [group.position(topic, number) for member in case["members"] for topic, number in member["owned"]
             if number < case["topics"].get(topic, 0)]
    return orders._replace(owned=np.array(owned, np.int64))


LISTED = [name for name, case in cases("uniform").items() if case["order"] == "listed"]
HASHED = [name for name, case in cases("uniform").items() if case["order"] == "hash"]


def test_the_vectors_are_all_there():
    assert (len(LISTED), len(HASHED), len(cases("range"))) == (156, 51, 58)
    assert sum(case["builder"] == "HOMOGENEOUS" for case in cases("uniform").values()) == 101


@pytest.mark.parametrize("name", LISTED)
def test_uniform_in_the_order_listed(name):
    case, group = cases("uniform")[name], group_of("uniform", name)
    owner = BUILDERS[case["builder"]](group.columns, orders_listed(case, group))
    assert answered(Assignment(group, owner).check()) == case["expected"]


@pytest.mark.parametrize("name", HASHED)
def test_uniform_in_the_order_of_hash_tables(name):
    case, group = cases("uniform")[name], group_of("uniform", name)
    orders = orders_of_broker(group)
    assert [group.members[at] for at in orders.members] == case["member_order"]
    assert answered(assign(group, "uniform:order=broker")) == case["expected"]


@pytest.mark.parametrize("count, buckets", [(11, 16), (12, 32), (23, 32), (24, 64)])
def test_a_set_made_of_many_topics_at_once_is_larger(count, buckets):
    """Java makes room for a third more than it is given; one by one, twelve would fit into 16 buckets."""
    rng = random.Random(848)
    ids = {f"t{at}": urlsafe_b64encode(rng.randbytes(16)).decode()[:22] for at in range(count)}

    def bucket(topic):
        code = 0
        for at in range(0, 16, 4):
            code ^= int.from_bytes(urlsafe_b64decode(ids[topic] + "==")[at:at + 4])
        return (code ^ code >> 16) % buckets
    group = Group(dict.fromkeys(ids, 1), {"a": list(ids)}, topic_ids=ids)
    visited = [bucket(group.topics[at]) for at in orders_of_broker(group).topics]
    assert visited == sorted(visited)


DEPEND_ON_ORDER = {"kip848-uniform-0156", "kip848-uniform-0185"}        # both with differing subscriptions


def test_loads_and_kept_partitions_in_the_order_of_ids():
    """Only in two of 106 groups with differing subscriptions do they depend on the order."""
    found = assign_many({name: group_of("uniform", name) for name in cases("uniform")}, "uniform")
    differ = {name for name, case in cases("uniform").items() if (
        sorted(found[name].loads.tolist()), found[name].kept.sum()) != (
        case["uniform"]["loads"], case["uniform"]["kept"])}
    assert differ == DEPEND_ON_ORDER
    assert {cases("uniform")[name]["builder"] for name in differ} == {"HETEROGENEOUS"}


@pytest.mark.parametrize("order", ["id", "broker"])
def test_uniform_leaves_its_own_answer_as_it_is(order):
    for name in cases("uniform"):
        first = assign(group_of("uniform", name), "uniform", order=order)
        again = assign(first.group.replace(owned=first), "uniform", order=order)
        assert again.owner.tolist() == first.owner.tolist(), name


def test_range_one_by_one_and_as_one():
    groups = {name: group_of("range", name) for name in cases("range")}
    expected = {name: case["expected"] for name, case in cases("range").items()}
    assert {name: answered(assign(group, "server-range")) for name, group in groups.items()} == expected
    assert {name: answered(one) for name, one in assign_many(groups, "server-range").items()} == expected


def test_the_order_of_hash_tables_conforms():
    """The other orders are among the registered strategies of `test_conformance.py`."""
    assert check_strategy("uniform:order=broker").broken == []


def test_uniform_in_a_given_order_is_that_of_renamed_members_and_topics():
    """Reversed ids and topics, given in their order, are the same as ids and topics that sort the other way."""
    for group in random_groups(seed=848):
        members, topics = list(group.members)[::-1], list(group.topics)[::-1]
        new = {name: f"n{at}" for at, name in enumerate(members)} | {name: f"n{at}" for at, name in enumerate(topics)}
        renamed = Group({new[topic]: count for topic, count in group.topic_counts.items()}, [
            Member(new[one.id], [new[topic] for topic in one.topics], generation=one.generation,
                   owned=[(new[topic], number) for topic, number in one.owned]) for one in group.details])
        answer = assign(group, "uniform", order=(members, topics))
        assert {new[name]: {(new[topic], number) for topic, number in owned} for name, owned in answer.items()} == {
            name: set(owned) for name, owned in assign(renamed, "uniform").items()}


@pytest.mark.parametrize("order, words", [
    ("joined", "must be id, broker, or in Python a pair, member ids and topics .got 'joined'"),
    (["a"], "must be id, broker, or"), (None, "must be id, broker, or"),
    ((["a"], ["t"]), "must name all members and topics of the group once, as in .members, topics. .got"),
    ((["a", "b", "a"], ["t"]), "must name all members"), ((["a", "b"], []), "must name all members")])
def test_orders_that_are_none(order, words):
    with pytest.raises(StrategyError, match=words):
        assign(Group({"t": 2}, {"a": ["t"], "b": ["t"]}), "uniform", order=order)


def test_topic_ids_that_are_none():
    group = Group({"t": 2}, {"a": ["t"], "b": ["t"]}, topic_ids={"t": "?"})
    assert assign(group, "uniform").loads.tolist() == [1, 1]
    with pytest.raises(ValueError, match="id of a topic must be 22 characters of Base64 .got"):
        assign(group, "uniform:order=broker")


def test_the_names_of_its_classes():
    package = "org.apache.kafka.coordinator.group.assignor"
    assert [resolve(name).name for name in (
        f"{package}.UniformAssignor", "UniformAssignor", f"{package}.RangeAssignor", "RangeAssignor")] == [
        "uniform", "uniform", "server-range", "range"]
    with pytest.raises(StrategyError, match="unknown strategy .*SimpleAssignor"):
        resolve(f"{package}.SimpleAssignor")


@pytest.mark.parametrize("name", ["uniform", "server-range"])
def test_no_client_runs_them(name):
    group = Group({"t": 2, "u": 9}, {"a": ["t"], "b": ["t", "u"]}, name="g", type="classic", strategy="range",
                  owned={"b": [("t", 0), ("t", 1)]}, lag={"u": [10**9] * 9})
    for start in assignor, lambda strategy: LiveGroup(strategy, {}, {}):
        with pytest.raises(StrategyError, match=f"a strategy of its members .got '{name}', which the broker runs"):
            start(name)
    assert {row["strategy"] for row in rank(group, [name])} <= {None, "range"}
    [note] = [note for note in compare(group, [name]).notes if name in note and "only the broker" in note]
    assert note == f"shown for comparison; only the broker computes it, for groups of the new protocol: {name}"


@pytest.mark.parametrize("reported, label", [("uniform", "uniform"), ("range", "server-range")])
def test_a_group_that_the_broker_assigns_is_forecast(reported, label):
    members = [Member(name, ["t"], client_id="sarama") for name in "abc"]
    group = Group({"t": 7}, members, name="g", type="consumer", strategy=reported, state="Stable")
    owned = group.replace(owned=assign(group, label))
    comparison = compare(owned.leave("a"), ["sticky"], before=owned)
    assert comparison.running == label and list(comparison.assignments) == [label, "sticky"]
    assert "the broker assigns this group" in comparison.notes[0]
    assert not any("forecast" in note or "Java" in note for note in comparison.notes)
    assert comparison[label].summary()["moved"] == {"uniform": 0, "server-range": 1}[label]


@pytest.mark.parametrize("reported, label", [("uniform", "uniform"), ("range", "server-range")])
def test_how_many_members_change_the_largest_load_in_such_a_group(reported, label):
    group = Group({"t": 12}, dict.fromkeys("abcd", ["t"]), type="consumer", strategy=reported)
    owned = group.replace(owned=assign(group, label))
    assert member_counts(compare(owned.join("e", ["t"]), label, before=owned))["text"] == (
        "with 5 members the largest load stays 3; with 6 it would be 2")


def test_no_assignor_is_assumed_of_a_group_that_the_broker_assigns():
    group = Group({"t": 3}, dict.fromkeys("ab", ["t"]), type="consumer")
    assert compare(group.replace(owned=assign(group, "range")), ["server-range", "range"]).assumed is None


def test_an_assignor_of_the_broker_that_is_not_known():
    group = Group({"t": 7}, {"a": ["t"]}, type="consumer", strategy="own")
    assert compare(group, ["sticky"]).notes[0].endswith("topic by topic); 'own' is not known here")
