"""The cooperative assignor beside the answers of Kafka's own, round after round."""
from dataclasses import replace

import numpy as np
import pytest
from groups import groups
from hypothesis import given
from test_reference import answered, cases

from kafka_assign import Group, Member, assign
from kafka_assign.assignors.sticky.solve import sticky_assign
from kafka_assign.protocol.wire import encode_cooperative

CASES, FRESH = cases("cooperative-sticky"), cases("cooperative-sticky-fresh")
LAST = 2**31 - 1          # a generation after those of all claims


def claimed_by_others(group, name):
    """The partitions of which another member than `name` says that it has them."""
    return {tuple(pair) for member in group.details if member.id != name for pair in member.owned}


def newest(group, name, pair):
    """Whether a member claims a partition in a later generation than all others."""
    generations = {member.id: member.generation for member in group.details if pair in map(tuple, member.owned)}
    return name in generations and all(
        other == name or at < generations[name] for other, at in generations.items())


def rejoined(assignment):
    """The group in the next rebalance: members have revoked what is missing from their lists."""
    return assignment.group.replace(members=[
        Member(member.id, member.topics, owned=assignment[member.id], generation=LAST, instance_id=member.instance_id)
        for member in assignment.group.details])


def test_the_vectors_are_all_there():
    assert (len(CASES), len(FRESH)) == (176, 20)
    assert sum(not case["ambiguous"] for case in CASES.values()) > 150
    assert any(case["java"].get("rounds", 0) > 2 for case in CASES.values())
    assert any(case["java"].get("two_owners") for case in CASES.values())


@pytest.mark.parametrize("name", CASES)
def test_at_most_two_rounds_and_never_two_owners(name):
    first = assign(Group.from_json(CASES[name]), "cooperative-sticky")
    handed_out = [pair for owned in first.values() for pair in owned]
    assert len(handed_out) == len(set(handed_out))
    for member, owned in first.items():
        for pair in claimed_by_others(first.group, member).intersection(owned):
            assert newest(first.group, member, pair)           # those that had it before have lost it
    second = assign(rejoined(first), "cooperative-sticky")
    assert not second.withheld.any()
    assert second.owner[~first.withheld].tolist() == first.owner[~first.withheld].tolist()


@pytest.mark.parametrize("name", CASES)
def test_exactly_the_best_after_the_last_round(name):
    case, first = CASES[name], assign(Group.from_json(CASES[name]), "cooperative-sticky")
    last, previous = assign(rejoined(first), "cooperative-sticky"), first.group.previous
    assert sorted(last.loads.tolist()) == case["best"]["loads"] and last.balance_score == case["best"]["score"]
    if not case["ambiguous"]:
        assert np.count_nonzero(previous >= 0) == case["valid_owned"]
        assert np.count_nonzero((last.owner == previous) & (previous >= 0)) == case["best"]["kept"]


@pytest.mark.parametrize("name", FRESH)
def test_fresh_with_equal_subscriptions_it_is_the_assignment_of_java(name):
    assert answered(assign(Group.from_json(FRESH[name]), "cooperative-sticky")) == FRESH[name]["expected"]


@pytest.mark.parametrize("data", [None, b"", b"?"], ids=["none", "empty", "malformed"])
def test_an_owner_that_does_not_say_since_when_is_waited_for(data):
    """The cooperative assignor of kafka-python sends no generation: nobody knows how old its claims are."""
    undated = Member("undated", ["t"], owned=[("t", 0)], user_data=data)
    dated = Member("dated", ["t", "u"], owned=[("t", 0)], generation=6)
    for members in ([undated, dated], [dated, undated]):
        found = assign(Group({"t": 1, "u": 1}, [*members, Member("other", ["u"])]), "cooperative-sticky")
        assert found.withheld.tolist() == [True, False] and ("t", 0) not in found["dated"]
        assert found.group.members[found.group.previous[0]] == "dated"
        alone = assign(Group({"t": 1, "u": 1}, [undated, Member("dated", ["t", "u"])]), "cooperative-sticky")
        assert alone["undated"] == [("t", 0)] and not alone.withheld.any()


def joins(name, owned, generation, version, user_data=None):
    """A member as a client joins: with a subscription of some version, and user data or none."""
    return Member(name, ["t"], owned=[("t", number) for number in owned], generation=generation, version=version,
                  user_data=user_data)


@pytest.mark.parametrize("user_data", [None, encode_cooperative(-1)], ids=["no user data", "user data"])
@pytest.mark.parametrize("version, undated", [(None, True), (1, True), (2, False), (3, False), (9, False)])
def test_owned_partitions_without_a_generation(version, undated, user_data):
    """What a member lists although it says that it has no generation contests no claim that has one.

    The group is Kafka's own, of `testOwnedPartitionsAreInvalidatedForConsumerWithNoGeneration` (KIP-792): consumer2
    lost its generation, and lists what consumer1 owns in the current one. Kafka voids all that consumer2 lists; here,
    what no member claims with a generation remains its own, as for a group that starts.
    """
    dated = encode_cooperative(10) if user_data else None
    group = Group({"t": 4}, [joins("consumer1", [0, 1], 10, 3, dated),
                             joins("consumer2", [0, 2, 3], -1, version, user_data)])
    found = assign(group, "cooperative-sticky")
    assert (found.withheld.tolist() == [True, False, False, False]) is undated
    assert found.owner.tolist() == [-1 if undated else 0, 0, 1, 1]
    assert [claim for claim, _ in found.group.dropped] == [("consumer2", "t", 0)]


def test_user_data_may_know_the_generation():
    """librdkafka lists partitions, and has the generation in its user data only."""
    group = Group({"t": 1}, [joins("a", [0], 4, 3), joins("b", [0], -1, 3, encode_cooperative(5))])
    found = assign(group, "cooperative-sticky")
    assert found.owner.tolist() == [1] and not found.withheld.any()


@given(groups())
def test_the_target_is_the_answer_of_the_second_rebalance(group):
    """Also where nothing is withheld, and the second rebalance is not computed."""
    first = assign(group, "cooperative-sticky")
    second = sticky_assign(replace(group.columns, previous=first.owner, consumer=None))
    assert first.target.tolist() == second.tolist()
