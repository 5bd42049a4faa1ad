"""The forecast of Kafka's sticky assignors beside the answers of the real ones, partition for partition."""
import json
import random
from itertools import combinations, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_reference import REFERENCE, answered, cases

from kafka_assign import Group, LiveGroup, Member, assign
from kafka_assign.assignors.kafka_sticky.balancing import assign_balanced
from kafka_assign.assignors.kafka_sticky.forecast import (
    cooperative_answer, cooperative_member, cooperative_rounds, eager_answer, eager_member, group_in_java)
from kafka_assign.assignors.kafka_sticky.joined import have_equal_subscriptions, settle_claims
from kafka_assign.document import group_from_document
from kafka_assign.hash_order import JavaHashSet
from kafka_assign.registry import ForecastError
from kafka_assign.wire import Claims, encode_sticky

CASES = cases("kafka-sticky")
ANSWERED = [name for name, case in CASES.items() if "expected" in case]
FAILING = [name for name, case in CASES.items() if "error" in case]
COOPERATIVE = [name for name in ANSWERED if CASES[name]["strategy"] == "kafka-cooperative-sticky"]


def sent(member):
    """A member of a case with its claims as bytes, and the generation of its subscription beside them."""
    claims = Claims([tuple(pair) for pair in member["owned"]], member["generation"])
    joining = member.get("subscription_generation", member["generation"])
    rest = {key: value for key, value in member.items() if key not in ("owned", "subscription_generation")}
    return rest | {"generation": joining, "user_data": encode_sticky(claims).hex()}


def group_of(case, order):
    """The group of a case, its members listed in an order; eager ones send bytes."""
    members = [case["members"][at] for at in order]
    if case["strategy"] == "kafka-sticky":
        members = [sent(member) for member in members]
    return group_from_document(case | {"members": members, "strategy": ""})


def orders(case):
    """The order in which members joined and, where it does not matter, some others."""
    yield case["joined"]
    for seed in range(3 if case["order_free"] else 0):
        yield random.Random(seed).sample(case["joined"], len(case["joined"]))


def seen(case, order):
    """The group as the assignor sees it."""
    return group_in_java(group_of(case, order), eager_member if case["strategy"] == "kafka-sticky" else
                         cooperative_member)


def listed(assigned):
    """Partitions by member as the vectors have them."""
    return {member: sorted([topic, number] for topic, number in own) for member, own in assigned.items()}


def sound(case, assigned):
    """Whether partitions exist, have one owner each, and the owner subscribes."""
    pairs = [tuple(pair) for own in assigned.values() for pair in own]
    subscribed = {member["id"]: member["topics"] for member in case["members"]}
    return len(pairs) == len(set(pairs)) and all(
        topic in subscribed[member] and 0 <= number < case["topics"][topic]
        for member, own in assigned.items() for topic, number in own)


# --- the vectors ---------------------------------------------------------------------------------------------------

def test_the_vectors_are_all_there():
    assert len(CASES) == 253 and (len(ANSWERED), len(FAILING), len(COOPERATIVE)) == (246, 7, 119)
    assert {CASES[name]["error"] for name in FAILING} == {
        "IllegalStateException", "NullPointerException", "endless"}
    assert sum("final" in case for case in CASES.values()) > 50
    assert sum("partition_racks" in case for case in CASES.values()) > 30
    assert sum(not sound(CASES[name], CASES[name]["expected"]) for name in ANSWERED) > 15


@pytest.mark.parametrize("name", CASES)
def test_members_are_visited_in_the_order_of_java(name):
    case = CASES[name]
    assert [member.id for member in seen(case, case["joined"]).members] == [one["id"] for one in case["members"]]


@pytest.mark.parametrize("name", ANSWERED)
def test_exactly_what_java_answers(name):
    case = CASES[name]
    for order in orders(case):
        group = seen(case, order)
        if name not in COOPERATIVE:
            assert listed(eager_answer(group)) == case["expected"]
        else:
            assigned, withheld = cooperative_answer(group)
            assert listed(assigned) == case["expected"]
            assert sorted(map(list, withheld)) == case["withheld"]


@pytest.mark.parametrize("name", FAILING)
def test_fails_as_java(name):
    case = CASES[name]
    for order in orders(case):
        with pytest.raises(ForecastError, match=f"{case['error']}: .*; ") as error:
            assign(group_of(case, order), case["strategy"])
        assert error.value.kind == case["error"]


@pytest.mark.parametrize("name", COOPERATIVE)
def test_round_after_round(name):
    case = CASES[name]
    rounds = list(islice(cooperative_rounds(seen(case, case["joined"])), 8))
    assert len(rounds) == case["rounds"]
    assert listed(rounds[-1].assigned) == case.get("final", case["expected"])


@pytest.mark.parametrize("name", ANSWERED)
def test_the_strategy_answers_if_the_answer_is_an_assignment(name):
    case = CASES[name]
    group, final = group_of(case, case["joined"]), case.get("final", case["expected"])
    if sound(case, case["expected"]) and sound(case, final):
        a = assign(group, case["strategy"])
        assert answered(a) == listed(case["expected"])
        assert sorted([*a.group.at(place)] for place in a.withheld.nonzero()[0]) == [
            pair for pair in case.get("withheld", []) if any(pair in own for own in final.values())]
        settled = {member: [] for member in a.group.members}
        for place, owner in enumerate(a.target.tolist()):
            if owner >= 0:
                settled[a.group.members[owner]].append(a.group.at(place))
        assert listed(settled) == final
    else:
        with pytest.raises(ForecastError) as error:
            assign(group, case["strategy"])
        assert error.value.kind in ("no such partition", "two owners", "not subscribed")


def can_live(case):
    """Whether a live group can start from the case: consumers revoke what they no longer subscribe to."""
    honest = all(len(set(map(tuple, member["owned"]))) == len(member["owned"])
                 and all(topic in member["topics"] for topic, _ in member["owned"]) for member in case["members"])
    return honest and case["order_free"] and "partition_racks" not in case and all(
        sound(case, case[key]) for key in ("expected", "final") if key in case)


@pytest.mark.parametrize("name", [name for name in COOPERATIVE if can_live(CASES[name])])
def test_a_live_group_settles_as_in_java(name):
    case = CASES[name]
    members = [Member(one["id"], one["topics"], owned=one["owned"], generation=one["generation"])
               for one in case["members"]]
    life = LiveGroup("CooperativeStickyAssignor", case["topics"], members)
    [start] = life.history
    assert start.rounds == case["rounds"]
    assert answered(start.assignments[0]) == case["expected"]
    assert listed({name: life[name] for name in life}) == case.get("final", case["expected"])
    assert life.group.strategy == "cooperative-sticky"


# --- the figures of the older vectors ------------------------------------------------------------------------------

def figures(group, assigned):
    """Loads, KIP-54's score, and what is kept and moved of valid ownership; lists may name a partition twice."""
    loads = sorted(len(own) for own in assigned.values())
    owners = {}
    for member, own in assigned.items():
        for pair in own:
            owners.setdefault(tuple(pair), set()).add(member)
    valid = [(group.at(place), group.members[owner]) for place, owner in enumerate(group.previous) if owner >= 0]
    kept = sum(member in owners.get(pair, ()) for pair, member in valid)
    return {"loads": loads, "score": sum(b - a for a, b in combinations(loads, 2)), "kept": kept}


def check_figures(case, group, assigned):
    found = figures(group, assigned)
    if case["ambiguous"]:
        del found["kept"]
    assert found == {key: case["java"][key] for key in found}


@pytest.mark.parametrize("name", cases("sticky"))
def test_the_figures_of_java(name):
    case = cases("sticky")[name]
    group = group_from_document(case)
    assigned = eager_answer(group_in_java(group, eager_member))
    check_figures(case, group, assigned)
    assert sound(case, assigned) == case["java"]["valid"]


@pytest.mark.parametrize("name", cases("cooperative-sticky"))
def test_the_figures_of_java_after_the_last_round(name):
    case = cases("cooperative-sticky")[name]
    group = group_from_document(case)
    joined = group_in_java(group, cooperative_member)
    if "error" in case["java"]:
        with pytest.raises(ForecastError) as error:
            cooperative_answer(joined)
        assert case["java"]["error"].endswith(error.value.kind)
        return
    rounds = list(islice(cooperative_rounds(joined), 8))
    check_figures(case, group, rounds[-1].assigned)
    assert len(rounds) == case["java"]["rounds"]
    assert len(rounds[0].withheld) == case["java"]["withheld"]


@pytest.mark.parametrize("strategy, name", [
    (strategy, name) for strategy in ("sticky", "cooperative-sticky") for name in cases(f"{strategy}-fresh")])
def test_fresh(strategy, name):
    case = cases(f"{strategy}-fresh")[name]
    assert answered(assign(group_from_document(case), f"kafka-{strategy}")) == case["expected"]


@pytest.mark.parametrize("racks", ["java", "java_without_racks"])
@pytest.mark.parametrize("name", cases("sticky-rack"))
def test_the_figures_of_java_with_racks_and_without(name, racks):
    case = cases("sticky-rack")[name]
    group = group_from_document(case | {"name": "", "type": ""})
    seen_racks = group if racks == "java" else group_from_document(
        {key: value for key, value in case.items() if key != "partition_racks"})
    assigned = eager_answer(group_in_java(seen_racks, eager_member))
    found = figures(group, assigned)
    rack_of = {member["id"]: member.get("rack") for member in case["members"]}
    found["in_rack"] = sum(rack_of[member] in case["partition_racks"][topic][number]
                           for member, own in assigned.items() for topic, number in own)
    assert found == found | case[racks]
    rounds = "cooperative_rounds" + racks.removeprefix("java")
    joined = group_in_java(seen_racks, cooperative_member)
    assert len(list(islice(cooperative_rounds(joined), 8))) == case[rounds]


# --- traces of real groups -----------------------------------------------------------------------------------------

def trace(assignor):
    return sorted(map(json.loads, (REFERENCE / f"trace-{assignor}.jsonl").read_text().splitlines()),
                  key=lambda event: event["ts_ms"])
