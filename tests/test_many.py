"""The promise `many=True`: the answer for several groups is their answers side by side; and what each must be."""

from dataclasses import replace

import numpy as np
import pytest
from groups import groups
from hypothesis import given
from hypothesis import strategies as st
from rules import range_rule, roundrobin_rule

from kafka_assign import Assignment, Group, Member, assign, assign_many, strategies
from kafka_assign.arrays import ragged
from kafka_assign.assignors import lag
from kafka_assign.assignors.fair_rule import fair_by_rule
from kafka_assign.assignors.lag_rule import lag_by_rule
from kafka_assign.assignors.batch import answer, batch_of_groups
from kafka_assign.assignors.registry import resolve
from kafka_assign.arrays.columns import Columns, side_by_side
from kafka_assign.arrays.ragged import row_offsets

NAMES = [name for name in strategies() if resolve(name).many]
RULES = {"range": range_rule, "roundrobin": roundrobin_rule, "fair": fair_by_rule, "lag": lag_by_rule}

every_strategy = pytest.mark.parametrize("name", NAMES)
every_rule = pytest.mark.parametrize("name", RULES)


def owners(assignments):
    """What is handed out, and on what the group settles."""
    return [(assignment.owner.tolist(), assignment.target.tolist()) for assignment in assignments]


@every_strategy
@given(st.lists(groups(), max_size=6), st.randoms(use_true_random=False))
def test_many_is_one_by_one_in_any_order(name, fleet, random):
    alone = owners(assign(group, name) for group in fleet)
    assert owners(assign_many(fleet, name)) == alone
    order = random.sample(range(len(fleet)), len(fleet))
    assert owners(assign_many([fleet[i] for i in order], name)) == [alone[i] for i in order]
    assert owners(assign_many(fleet + fleet, name)) == alone + alone


@pytest.mark.parametrize("name", ["kip54", "sticky"])
@given(st.lists(groups(), min_size=1, max_size=4))
def test_a_batch_is_answered_group_by_group_or_at_once(name, fleet):
    """`kip54` takes one group at a time; either way each group has the owners that it has alone."""
    batch, strategy = batch_of_groups(fleet), resolve(name)
    given = answer(batch, strategy, batch.read(strategy.claims))
    expected = side_by_side([replace(group.columns, previous=assign(group, name).owner) for group in fleet]).previous
    assert given.failures == {} and (given.owner == expected).all()


@every_strategy
@given(st.dictionaries(st.text(max_size=3), groups(), max_size=4))
def test_a_mapping_keeps_its_keys(name, fleet):
    together = assign_many(fleet, name)
    assert list(together) == list(fleet)
    assert all(assignment.group is fleet[key] for key, assignment in together.items())
    assert owners(together.values()) == owners(assign(group, name) for group in fleet.values())


@every_strategy
@given(groups())
def test_subscribers_own_every_partition_that_has_any(name, group):
    assignment = assign(group, name)
    assert isinstance(assignment.check(), Assignment)
    wanted = np.repeat(group.columns.subscriber_counts > 0, group.partitions)
    promised = "each-partition-once" not in resolve(name).without
    assert assignment.unassigned[~wanted].all()
    assert not promised or not assignment.unassigned[wanted].any()
    assert assignment.owner.dtype == np.int32
    assert list(assignment) == list(group.members)


@every_strategy
@given(groups(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(name, group, random):
    shuffled = [Member(**(vars(member) | {"topics": random.sample(member.topics, len(member.topics))}))
                for member in group.details]
    again = group.replace(members=random.sample(shuffled, len(shuffled)))
    assert dict(assign(again, name)) == dict(assign(group, name))


@every_rule
@given(st.lists(groups(), max_size=4))
def test_the_fast_way_is_the_rule(name, fleet):
    columns = side_by_side([group.columns for group in fleet])
    owner, target = resolve(name).run_many(columns)
    assert owner.tolist() == RULES[name](columns).tolist() and target is owner


@every_rule
@given(groups(max_topics=6, max_members=6, max_partitions=40))
def test_the_ways_for_large_input_are_the_rule_too(name, group):
    """Small groups take short cuts; without these they must come to the same."""
    usual = ragged.FEW_DEALT, lag.SMALL_ROUND
    try:
        ragged.FEW_DEALT, lag.SMALL_ROUND = 0, 0
        assert resolve(name).function(group.columns).tolist() == RULES[name](group.columns).tolist()
    finally:
        ragged.FEW_DEALT, lag.SMALL_ROUND = usual


def fleet_columns(seed, groups, partitions):
    """Columns of many random groups, most with equal subscriptions, a quarter with static members."""
    random = np.random.default_rng(seed)
    topics, members = random.integers(0, 8, groups), random.integers(0, 12, groups)
    topic_offsets, member_offsets = row_offsets(topics), row_offsets(members)
    counts = random.integers(0, partitions, topic_offsets[-1])
    share = np.repeat(np.where(random.random(groups) < 0.6, 1, 0.5), topics)
    rows = [np.flatnonzero(random.random(members[g]) < share[t]) + member_offsets[g]
            for t, g in enumerate(np.repeat(np.arange(groups), topics))]
    turn = [at + (random.permutation(n) if random.random() < 0.25 else np.arange(n))
            for n, at in zip(members, member_offsets)]
    size = counts.sum()
    lag = np.where(random.random(size) < 0.5, 0, random.integers(-1, 10 ** random.integers(1, 17), size))
    return Columns(topic_offsets, member_offsets, counts, np.zeros(len(counts), bool),
                   row_offsets(np.array([len(row) for row in rows])), np.concatenate(rows).astype(np.int32),
                   np.concatenate(turn).astype(np.int32), np.full(size, -1, np.int32), lag)


@every_rule
@pytest.mark.parametrize("seed, groups, partitions", [(1, 400, 20), (2, 40, 300), (3, 3, 2000)])
def test_a_fleet_by_the_rule(name, seed, groups, partitions):
    columns = fleet_columns(seed, groups, partitions)
    owner, target = resolve(name).run_many(columns)
    assert (owner == RULES[name](columns)).all() and target is owner


@every_strategy
def test_awkward_groups_beside_each_other(name):
    """Groups with nothing in them, between groups that share all names."""
    topics, ids = {"t0": 3, "t1": 0, "t2": 4}, ["a", "b", "c"]
    usual = Group(topics, {member: ["t0", "t2", "ghost"] for member in ids})
    static = Group(topics, [Member(member, ["t2", "t0"], instance_id=None if member == "b" else f"i{at}")
                            for at, member in zip("312", ids)])
    empty = [Group({}, {}), Group(topics, {}), Group({}, {"a": [], "b": ["t0"]}), Group({"t0": 0}, {"a": ["t0"]}),
             Group({"t0": 5}, {"a": [], "b": []})]
    fleet = [empty[0], usual, *empty, static, usual, *reversed(empty)]
    assert owners(assign_many(fleet, name)) == owners(assign(group, name) for group in fleet)
    assert assign_many([], name) == [] and assign_many({}, name) == {}


def test_fair_tells_rows_of_subscribers_apart():
    """The subscribers of t2 are, as stored, those of t0 and t1 side by side."""
    group = Group({"t0": 1, "t1": 1, "t2": 3}, {"a": ["t0", "t2"], "b": ["t1", "t2"], "c": ["t1", "t2"]})
    assert assign(group, "fair").owner.tolist() == fair_by_rule(group.columns).tolist()
