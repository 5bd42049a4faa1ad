"""Ranked goals below balance: answers with racks beside vectors, the rule in plain code, and all assignments."""
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from groups import groups
from hypothesis import given
from oracles import outcome, random_columns, squares
from test_reference import cases

from kafka_assign import Group, Member, assign, assign_many
from kafka_assign.arrays import goals
from kafka_assign.arrays.columns import Racks, side_by_side
from kafka_assign.arrays.metrics import in_rack
from kafka_assign.arrays.ragged import row_offsets
from kafka_assign.assignors.base import StrategyError
from kafka_assign.assignors.cooperative import cooperative_sticky_assign
from kafka_assign.assignors.sticky import classes
from kafka_assign.assignors.sticky.rule import sticky_by_rule
from kafka_assign.assignors.sticky.solve import sticky_assign
from kafka_assign.reports.proof import proof_of

KEPT_FIRST, RACKS_FIRST = ("kept", "racks"), ("racks", "kept")
RANKINGS = {"kept+racks": KEPT_FIRST, "racks+kept": RACKS_FIRST}
CASES = cases("sticky-rack")
each_ranking = pytest.mark.parametrize("prefer", RANKINGS.values(), ids=RANKINGS)


def with_racks(random, columns):
    """The columns with up to four racks; some members and partitions have none, in some groups."""
    racks = int(random.integers(1, 5))
    member = random.integers(-int(random.random() < 0.3), racks, columns.member_count)
    counts = random.integers(int(random.random() < 0.7), min(racks, 3) + 1, columns.size)
    replicas = np.concatenate([np.zeros(0, int), *(random.choice(racks, n, replace=False) for n in counts)])
    return replace(columns, racks=Racks(member, row_offsets(counts), replicas))


def figures(columns, owner):
    """The sorted loads, partitions kept, and partitions in their owner's rack."""
    return *outcome(columns, owner), int(in_rack(columns, owner)[0])


def best_of_all(columns, prefer):
    """The best figures of all assignments."""
    def rank(found):
        loads, kept, near = found
        return squares(loads), *(-{"kept": kept, "racks": near}[goal] for goal in prefer)
    choices = [columns.subscribers_of(topic) or [-1] for topic in columns.topic_of.tolist()]
    return min((figures(columns, np.array(owner, np.int32)) for owner in product(*choices)), key=rank)


# --- the vectors ---------------------------------------------------------------------------------------------------

def test_the_vectors_are_all_there():
    assert len(CASES) == 200


@pytest.mark.parametrize("name", CASES)
def test_exactly_the_best_of_both_rankings(name):
    """By default, what is kept comes first; what is found without racks is worse in them, and in nothing else."""
    group = Group.from_json(CASES[name])
    for options, key in ({}, "best_kept_first"), ({"prefer": "racks+kept"}, "best_rack_first"):
        summary, a = assign(group, "sticky", **options).summary(), assign(group, "sticky", **options)
        found = {"loads": sorted(a.loads.tolist()), "in_rack": summary["in_rack"], "kept": summary["kept"]}
        assert found == CASES[name][key]


def test_all_groups_of_the_file_as_one():
    fleet = [Group.from_json(case) for case in CASES.values()]
    for prefer in RANKINGS:
        alone = [assign(group, "sticky", prefer=prefer).owner.tolist() for group in fleet]
        assert [a.owner.tolist() for a in assign_many(fleet, "sticky", prefer=prefer)] == alone


# --- small groups, beside the rule and all that could be done ------------------------------------------------------

def small_groups(seed, count, *most):
    """Both rankings beside the rule and, where they are few, all assignments; fed back, and many groups as one."""
    random, fleet = np.random.default_rng(seed), []
    for _ in range(count):
        columns = with_racks(random, random_columns(random, *most))
        fleet.append(columns)
        several = [max(len(columns.subscribers_of(topic)), 1) for topic in columns.topic_of.tolist()]
        for prefer in KEPT_FIRST, RACKS_FIRST:
            owner = sticky_assign(columns, prefer)
            found = figures(columns, owner)
            assert found == figures(columns, sticky_by_rule(columns, prefer))
            if np.prod(np.array(several, float)) < 500:
                assert found == best_of_all(columns, prefer)
            again = columns.with_owners(owner, owner)
            assert sticky_assign(again, prefer).tolist() == owner.tolist()
    for prefer in KEPT_FIRST, RACKS_FIRST:
        for part in (fleet[first:first + 40] for first in range(0, count, 40)):
            union = side_by_side(part)
            answers = zip((sticky_assign(columns, prefer) for columns in part), union.member_offsets)
            alone = [np.where(owner >= 0, owner + first, -1) for owner, first in answers]
            assert sticky_assign(union, prefer).tolist() == np.concatenate(alone).tolist()


def test_small_groups():
    small_groups(1, 200)


def test_larger_groups():
    small_groups(2, 40, 6, 8, 9)


def test_larger_groups_with_counts_on_no_cycle_fixed(monkeypatch):
    monkeypatch.setattr(classes.Tuning, "small_component", 0)
    small_groups(3, 40, 6, 8, 9)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4, 10))
def test_many_groups(seed):
    small_groups(seed, 1000)
    small_groups(seed, 100, 12, 14, 16)


@given(groups())
@each_ranking
def test_as_the_rule_on_groups_of_any_shape(prefer, group):
    columns = group.columns
    owner = sticky_assign(columns, prefer)
    assert figures(columns, owner) == figures(columns, sticky_by_rule(columns, prefer))


# --- where racks change nothing ------------------------------------------------------------------------------------

@each_ranking
def test_racks_that_make_no_difference_change_no_owner(prefer):
    """Replicas in all racks, in none of a member's, and members without racks."""
    random = np.random.default_rng(5)
    for _ in range(100):
        columns = random_columns(random, 5, 6, 6)
        plain, size, members = sticky_assign(columns).tolist(), columns.size, columns.member_count
        everywhere = Racks(np.arange(members) % 2, np.arange(size + 1) * 2, np.tile([0, 1], size))
        elsewhere = everywhere._replace(replicas=np.full(2 * size, 2))
        for racks in everywhere, elsewhere, everywhere._replace(member=np.full(members, -1)):
            assert sticky_assign(replace(columns, racks=racks), prefer).tolist() == plain


def test_without_racks_in_the_ranking_they_change_nothing():
    random = np.random.default_rng(6)
    for _ in range(100):
        columns = with_racks(random, random_columns(random, 5, 6, 6))
        assert sticky_assign(columns, ["kept"]).tolist() == sticky_assign(replace(columns, racks=None)).tolist()


@pytest.fixture
def crossed():
    """Two members that each own the partition in the rack of the other."""
    return Group({"t": 2}, [Member("a", ["t"], owned=[("t", 1)], rack="r1"),
                            Member("b", ["t"], owned=[("t", 0)], rack="r2")],
                 partition_racks={"t": [["r1"], ["r2"]]})


def test_balanced_owners_out_of_their_racks_exchange_if_racks_come_first(crossed):
    assert assign(crossed, "sticky").owner.tolist() == [1, 0]
    assert assign(crossed, "sticky", prefer=["racks"]).owner.tolist() == [0, 1]


# --- the cooperative protocol --------------------------------------------------------------------------------------

@each_ranking
def test_the_second_rebalance_is_the_last(prefer):
    random = np.random.default_rng(7)
    for _ in range(150):
        columns = with_racks(random, random_columns(random, 6, 8, 9))
        first, target = cooperative_sticky_assign(columns, prefer)
        second, settled = cooperative_sticky_assign(columns.with_owners(first, first), prefer)
        assert second.tolist() == settled.tolist() == target.tolist()


# --- the option ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_a_ranking_is_an_option(name, crossed):
    for given, label in ("racks+kept", "racks+kept"), (["racks", "kept"], "racks+kept"), (("racks",), "racks"):
        a = assign(crossed, name, prefer=given)
        assert a.strategy == f"{name}:prefer={label}" and a.target.tolist() == [0, 1]
        assert assign(crossed, a.strategy).target.tolist() == [0, 1]


@pytest.mark.parametrize("given, found", [
    ("rack", "(got 'rack'); did you mean 'racks'?"), ("", "(got '')"), (["kept", "kept"], "(got ['kept', 'kept'])"),
    ("racks,kept", ""), (None, "(got None)"), ([1], "(got [1])")])
def test_a_ranking_names_each_goal_once(given, found, crossed):
    with pytest.raises(StrategyError) as error:
        assign(crossed, "sticky", prefer=given)
    assert str(error.value).startswith("strategy 'sticky': prefer must name goals among kept, racks, spread, each at")
    assert str(error.value).endswith(found)


def test_goals_in_a_text_are_joined_by_a_plus(crossed):
    with pytest.raises(StrategyError) as error:
        assign(crossed, "sticky:prefer=kept,racks")
    assert str(error.value).endswith("(got 'racks'); values of one option are joined by +, as in prefer=kept+racks")
    with pytest.raises(StrategyError, match=r"\(got 'scope'\)$"):
        assign(crossed, "lag:max_skew=1,scope")


# --- limits --------------------------------------------------------------------------------------------------------

def in_racks(count):
    """A member and a partition in each of some racks."""
    racks = [f"r{i}" for i in range(count)]
    members = [Member(f"m{i}", ["t"], rack=rack) for i, rack in enumerate(racks)]
    return Group({"t": count}, members, partition_racks={"t": [[rack] for rack in racks]})


def test_at_most_62_racks_with_members_and_replicas():
    """In a group: racks of another group, and racks without members or replicas, do not count."""
    most, more = in_racks(62), in_racks(63)
    assert assign(most, "sticky").summary()["in_rack"] == 62
    assert all(a.summary()["in_rack"] == 62 for a in assign_many([most, most], "sticky"))
    fewer = more.replace(members=[replace(m, rack=m.rack if i else "elsewhere") for i, m in enumerate(more.details)])
    assert assign(fewer, "sticky").summary()["in_rack"] == 62
    with pytest.raises(StrategyError, match=r"at most 62 in a group \(got 63\); prefer=kept leaves racks out"):
        assign(more, "sticky")
    assert proof_of(assign(more, "sticky", prefer="kept")).document()["holds"]


def test_pairs_of_a_subscriber_and_a_class_in_equal_racks_are_limited(monkeypatch):
    monkeypatch.setattr(classes, "MOST_PAIRS", 99)
    with pytest.raises(StrategyError, match=r"at most 99 pairs .* \(got 100\); prefer=kept leaves racks out"):
        assign(in_racks(10), "sticky")
    assert assign(in_racks(9), "sticky").summary()["in_rack"] == 9


def test_prices_that_would_not_fit_are_an_error():
    columns = in_racks(2).columns
    assert goals.weights(columns, ("spread", "racks", "kept")) == (1, 3, 9)
    many = replace(columns, partitions=np.array([1 << 20]), previous=np.full(1 << 20, -1, np.int32), consumer=None)
    with pytest.raises(ValueError, match=r"prefer=spread\+racks\+kept must stay below 2\*\*60 .* leave spread out"):
        goals.weights(many, ("spread", "racks", "kept"))
