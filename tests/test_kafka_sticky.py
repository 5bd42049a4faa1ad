"""The forecast of Kafka's sticky assignors beside the answers of the real ones, partition for partition."""
import json
import random
from dataclasses import replace
from functools import partial
from itertools import combinations, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_reference import REFERENCE, answered, cases

from kafka_assign import Group, LiveGroup, Member, assign
from kafka_assign.assignors.kafka_sticky import differing
from kafka_assign.assignors.kafka_sticky.differing import assign_balanced
from kafka_assign.assignors.kafka_sticky.forecast import (
    cooperative_answer, cooperative_member, cooperative_rounds, eager_answer, eager_member,
    group_in_java)
from kafka_assign.assignors.kafka_sticky.joined import have_equal_subscriptions, settle_claims
from kafka_assign.protocol.java import JavaHashSet
from kafka_assign.assignors.base import ForecastError
from kafka_assign.protocol.wire import Claims, encode_sticky

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
    return Group.from_json(case | {"members": members, "strategy": ""})


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

def as_walked(case, as_read):
    """The group as the assignor saw it when these vectors were made: it visited members as they are listed."""
    joined = group_in_java(Group.from_json(case), as_read)
    return replace(joined, members=[joined.by_id[member["id"]] for member in case["members"]])


def figures(group, assigned):
    """Loads, KIP-54's score, and how many valid owners are kept; not the latter where partitions have two owners."""
    loads = sorted(len(own) for own in assigned.values())
    owner = {tuple(pair): member for member, own in assigned.items() for pair in own}
    valid = [(group.at(place), group.members[owner]) for place, owner in enumerate(group.previous) if owner >= 0]
    found = {"loads": loads, "score": sum(b - a for a, b in combinations(loads, 2))}
    return found | ({"kept": sum(owner.get(pair) == name for pair, name in valid)} if len(owner) == sum(loads) else {})


def check_figures(case, assigned):
    found = figures(Group.from_json(case), assigned)
    if case["ambiguous"]:
        found.pop("kept", None)
    assert found == {key: case["java"][key] for key in found}


@pytest.mark.parametrize("name", cases("sticky"))
def test_the_figures_of_java(name):
    case = cases("sticky")[name]
    assigned = eager_answer(as_walked(case, eager_member))
    check_figures(case, assigned)
    assert sound(case, assigned) == case["java"]["valid"]


@pytest.mark.parametrize("name", cases("cooperative-sticky"))
def test_the_figures_of_java_after_the_last_round(name):
    case = cases("cooperative-sticky")[name]
    joined = as_walked(case, cooperative_member)
    if "error" in case["java"]:
        with pytest.raises(ForecastError) as error:
            cooperative_answer(joined)
        assert case["java"]["error"].endswith(error.value.kind)
        return
    rounds = list(islice(cooperative_rounds(joined), 8))
    check_figures(case, rounds[-1].assigned)
    handed_out = sum(map(len, rounds[0].assigned.values()))        # some twice, some that do not exist
    assert (len(rounds), len(joined.partitions) - handed_out) == (case["java"]["rounds"], case["java"]["withheld"])


@pytest.mark.parametrize("strategy, name", [
    (strategy, name) for strategy in ("sticky", "cooperative-sticky") for name in cases(f"{strategy}-fresh")])
def test_fresh(strategy, name):
    case = cases(f"{strategy}-fresh")[name]
    assert answered(assign(Group.from_json(case), f"kafka-{strategy}")) == case["expected"]


@pytest.mark.parametrize("racks", ["java", "java_without_racks"])
@pytest.mark.parametrize("name", cases("sticky-rack"))
def test_the_figures_of_java_with_racks_and_without(name, racks):
    case = cases("sticky-rack")[name]
    hidden = () if racks == "java" else ("partition_racks",)
    shown = {key: value for key, value in case.items() if key not in hidden}
    assigned = eager_answer(group_in_java(Group.from_json(shown), eager_member))
    rack_of = {member["id"]: member.get("rack") for member in case["members"]}
    in_rack = sum(rack_of[member] in case["partition_racks"][topic][number]
                  for member, own in assigned.items() for topic, number in own)
    found = figures(Group.from_json(case), assigned) | {"in_rack": in_rack}
    assert {key: found[key] for key in case[racks]} == case[racks]
    rounds = list(islice(cooperative_rounds(group_in_java(Group.from_json(shown), cooperative_member)), 8))
    assert len(rounds) == case["cooperative_rounds" + racks.removeprefix("java")]


# --- traces of real groups -----------------------------------------------------------------------------------------

def rebalances(assignor):
    """Of each rebalance in a trace: generation, topics, members as they joined, and what they owned after it."""
    lines = (REFERENCE / f"trace-{assignor}.jsonl").read_text().splitlines()
    events = sorted(map(json.loads, lines), key=lambda event: event["ts_ms"])
    topics, remembered, subscribed, after = {}, {}, {}, {}
    joined = {}
    for event in events:
        name = event.get("member")
        if event["event"] == "subscribed":
            subscribed[name] = event["topics"].split(",")
        elif event["event"] == "lost" and assignor == "CooperativeStickyAssignor":
            remembered[name].append((event["generation"], []))
        elif event["event"] == "assigned":
            generation = event["generation"]
            past = [one for one in remembered.setdefault(name, [(-1, [])]) if one[0] < generation]
            joined.setdefault(generation, []).append((event["member_id"], subscribed[name], *past[-1]))
            after.setdefault(generation, {})[event["member_id"]] = sorted(event["owned"])
            remembered[name].append((generation, event["owned"]))
            for topic, number in event["owned"]:
                topics.setdefault(generation, {}).setdefault(topic, 0)
                topics[generation][topic] = max(topics[generation][topic], number + 1)
    known = {}
    for generation, members in sorted(joined.items()):
        known = {topic: max(known.get(topic, 0), topics.get(generation, {}).get(topic, 0))
                 for topic in known.keys() | topics.get(generation, {}).keys()}
        yield generation, known, members, after[generation]


def are_shown(found, at):
    """Whether a trace shows what all members claimed and received: in some rounds, a member says nothing."""
    ids = [set(after) for *_, after in found]
    silent = set().union(*ids[:at]) & set().union(*ids[at + 1:]) - ids[at]
    was_silent = ids[at] & set().union(*ids[:max(at - 1, 0)]) - ids[at - 1] if at else set()
    return not silent and not was_silent


def test_what_follows_in_a_trace_of_the_eager_assignor():
    found = list(rebalances("StickyAssignor"))
    assert [generation for generation, *_ in found] == list(range(1, 13))
    for _, topics, members, after in found:
        group = Group(topics, [
            Member(name, subscribed, user_data=encode_sticky(Claims(owned, generation)), generation=generation)
            for name, subscribed, generation, owned in members])
        assert listed(assign(group, "StickyAssignor")) == after


def test_what_follows_in_a_trace_of_the_cooperative_assignor():
    found = list(rebalances("CooperativeStickyAssignor"))
    assert [generation for generation, *_ in found] == list(range(1, 19))
    shown = [one for at, one in enumerate(found) if are_shown(found, at)]
    assert len(shown) == 16
    for _, topics, members, after in shown:
        group = Group(topics, [
            Member(name, subscribed, owned=[pair for pair in owned if pair[0] in subscribed], generation=generation)
            for name, subscribed, generation, owned in members])
        assert listed(assign(group, "CooperativeStickyAssignor")) == after


# --- what members send ---------------------------------------------------------------------------------------------

# Java replaces what is no UTF-8 in a topic; no topic has such a name.
SENDERS = [case for case in cases("wire-malformed").values()
           if case["kind"] == "sticky" and "UTF-8" not in case["why"] and case["hex"] is not None]


def test_the_claims_in_user_data_are_what_java_reads():
    assert len(SENDERS) > 20
    for case in SENDERS:
        member = eager_member(Member("c", ["t"], user_data=bytes.fromhex(case["hex"])))
        value = case["java"]["value"]
        assert sorted(map(list, member.claims)) == sorted(value["owned"]), case["id"]
        assert member.generation == value["generation"], case["id"]


# --- properties ----------------------------------------------------------------------------------------------------

@st.composite
def any_groups(draw):
    """Small groups with claims of all kinds: honest, stale, doubled, on what does not exist."""
    topics = {f"t{at}": draw(st.integers(0, 6)) for at in range(draw(st.integers(1, 4)))}
    claim = st.tuples(st.sampled_from([*topics, "gone"]), st.integers(-1, 7))
    equal = draw(st.booleans())
    return Group(topics, [
        Member(f"{draw(st.sampled_from('abcdef'))}-{at}",
               topics if equal else draw(st.sets(st.sampled_from([*topics]))),
               owned=draw(st.lists(claim, max_size=6)), generation=draw(st.integers(-1, 3)))
        for at in range(draw(st.integers(1, 7)))])


def outcome(group, strategy):
    """The answer of a strategy, or why there is none."""
    try:
        a = assign(group, strategy)
    except ForecastError as error:
        return error.kind
    assert (a.owner >= 0).sum() + a.withheld.sum() == (a.target >= 0).sum()
    return a.owner.tolist(), a.target.tolist()


@pytest.mark.parametrize("strategy", ["kafka-sticky", "kafka-cooperative-sticky"])
@given(any_groups(), st.randoms())
def test_the_order_of_the_list_matters_only_inside_a_bucket(strategy, group, rng):
    names = JavaHashSet(group.members)
    buckets = [names.bucket(name) for name in group.members]
    shuffled = group.replace(members=rng.sample(group.details, len(group.details)))
    by_bucket = sorted(group.members, key=names.bucket)
    if len(set(buckets)) == len(buckets):
        assert [one.id for one in group_in_java(shuffled, eager_member).members] == by_bucket
        assert outcome(shuffled, strategy) == outcome(group, strategy)


@given(any_groups())
def test_every_partition_has_an_owner_and_nothing_goes_on_for_ever(group):
    joined = group_in_java(group, eager_member)
    try:
        assigned = eager_answer(joined)
    except ForecastError as error:
        assert error.kind in ("IllegalStateException", "NullPointerException", "endless")
        return
    handed_out = {pair for own in assigned.values() for pair in own}
    assert handed_out >= set(joined.partitions)


@given(any_groups())
def test_differing_subscriptions_end_balanced_if_claims_are_honest(group):
    free = {(topic, number) for topic, count in group.topic_counts.items() for number in range(count)}
    members = []
    for member in group.details:
        own = [pair for pair in dict.fromkeys(member.owned) if pair in free and pair[0] in member.topics]
        free -= set(own)
        members.append(Member(member.id, member.topics, owned=own, generation=3))
    joined = group_in_java(group.replace(members=members), eager_member)
    if not have_equal_subscriptions(joined.members):
        try:
            assigned = assign_balanced(joined, settle_claims(joined)).assigned
        except ForecastError as error:
            assert error.kind == "endless"
            return
        for name, own in assigned.items():
            for other, theirs in assigned.items():
                assert len(theirs) < len(own) + 2 or not {topic for topic, _ in theirs} & set(joined.by_id[name].topics)


def stale_group(partitions, generation):
    """Two members own all partitions of two topics; a third one claims some that it no longer subscribes to."""
    halves = {f"c{at}": [("t0", number) for number in range(at, partitions, 2)] for at in range(2)}
    return Group({"t0": partitions, "t1": partitions}, [
        *(Member(name, ["t0", "t1"], owned=own, generation=5) for name, own in halves.items()),
        Member("c2", ["t1"], owned=halves["c0"], generation=generation), Member("c3", ["t0"])])


def test_the_balance_test_is_limited_and_ordinary_groups_do_not_need_it(monkeypatch):
    ordinary, stale = stale_group(40, 5), stale_group(40, 3)
    answer = assign(ordinary, "kafka-sticky").owner.tolist()
    monkeypatch.setattr(differing, "MOST_STEPS", 0)
    assert assign(ordinary, "kafka-sticky").owner.tolist() == answer
    for strategy in ("kafka-sticky", "kafka-cooperative-sticky"):
        with pytest.raises(ForecastError, match="0 steps .* 0 of 80 partitions of 4 members .* unknown") as error:
            assign(stale, strategy)
        assert error.value.kind == "too long"


def test_one_balance_test_per_move_is_enough(monkeypatch):
    tests, moves = [], []
    monkeypatch.setattr(differing, "_is_balanced", partial(noted, tests, differing._is_balanced))
    monkeypatch.setattr(differing, "move", partial(noted, moves, differing.move))
    outcome(stale_group(400, 3), "kafka-sticky")
    assert len(moves) > 50 and len(tests) <= len(moves) + 5


def noted(calls, function, *args):
    calls.append(args)
    return function(*args)


def is_balanced_in_java(state):
    """The balance test as Java writes it: every partition that each member lacks."""
    open_to_moves = [one.id for one in state.group.members if one.id not in state.fixed]
    loads = list(map(state.load, open_to_moves))
    holder = {one: name for name in open_to_moves for one in state.assigned[name]}
    return not loads or max(loads) <= min(loads) + 1 or not any(
        state.load(holder.get(one, name)) > state.load(name) + 1
        for name in open_to_moves
        if state.load(name) != differing._max_assignment_size(state.group, name)
        for one in state.group.partitions
        if one.topic in state.group.by_id[name].topics and one not in state.assigned[name])


@given(any_groups(), st.integers(0, 20))
def test_the_balance_test_is_that_of_java(group, moves):
    joined = group_in_java(group, eager_member)
    state, _ = differing.keep_subscribed(joined, settle_claims(joined))
    for partition in joined.partitions[:moves]:
        state.give(partition, differing.least_loaded(state, partition.topic))
    assert differing._is_balanced(state) == is_balanced_in_java(state)


def test_nothing_moves_if_an_answer_for_equal_subscriptions_is_claimed():
    tried = 0
    for name in set(ANSWERED).difference(COOPERATIVE):
        case = CASES[name]
        equal = have_equal_subscriptions(seen(case, case["joined"]).members)
        if equal and "partition_racks" not in case and sound(case, case["expected"]):
            members = [Member(one["id"], one["topics"], owned=case["expected"][one["id"]], generation=9)
                       for one in case["members"]]
            tried += 1
            assert not assign(Group(case["topics"], members), "kafka-sticky").moved.any()
    assert tried > 40


@pytest.mark.parametrize("strategy", ["kafka-sticky", "kafka-cooperative-sticky"])
def test_a_group_without_members_has_no_leader(strategy):
    assert assign(Group({"t": 3}, {}), strategy).owner.tolist() == [-1, -1, -1]
    with pytest.raises(ForecastError, match="ArithmeticException"):
        eager_answer(group_in_java(Group({"t": 3}, {}), eager_member))
