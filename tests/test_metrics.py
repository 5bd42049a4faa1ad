"""Figures against their definitions, word for word and one pair at a time, for one group and for many side by side."""

from collections import Counter
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from groups import groups, owners
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign import Assignment, Group, Member, compare
from kafka_assign.arrays import metrics
from kafka_assign.arrays.columns import shifted, side_by_side, take_groups
from kafka_assign.arrays.ragged import row_of


def by_definition(group, owner, protocol=""):
    """The figures of a group, computed from names and lists."""
    partitions = [group.at(i) for i in range(group.columns.size)]
    subscribed = {member.id: set(member.topics) for member in group.details}
    holder = {tp: group.members[o] for tp, o in zip(partitions, owner) if o >= 0}
    before = {tp: group.members[o] for tp, o in zip(partitions, group.previous) if o >= 0}
    load = {member: sum(m == member for m in holder.values()) for member in group.members}
    cell = Counter((tp.topic, member) for tp, member in holder.items())
    asked = {topic: [m for m in group.members if topic in subscribed[m]] for topic in group.topics}
    numbers = {tp.partition for tp in holder}
    lag = {tp: int(value) for tp, value in zip(partitions, group.lag)} if group.lag is not None else {}
    known = {tp: value for tp, value in lag.items() if value >= 0}
    member_lag = [sum(known.get(tp, 0) for tp, m in holder.items() if m == member) for member in group.members]
    found = {
        "members": len(group.members), "partitions": len(partitions), "assigned": len(holder),
        "unassigned": len(partitions) - len(holder), "withheld": 0,
        "min_load": min(load.values(), default=0), "max_load": max(load.values(), default=0),
        "balance_score": sum(abs(load[a] - load[b]) for a, b in combinations(group.members, 2)),
        "balanced": not any(load[b] - load[a] >= 2 for tp, b in holder.items() for a in asked[tp.topic]),
        "unowned": sum(tp not in holder and bool(asked[tp.topic]) for tp in partitions),
        "idle": sum(value == 0 for value in load.values()),
        "could_take": sum(load[a] == 0 and any(load[b] >= 2 and tp.topic in subscribed[a] for tp, b in holder.items())
                          for a in group.members),
        "kept": sum(before.get(tp) == m for tp, m in holder.items()),
        "moved": sum(tp in before and before[tp] != m for tp, m in holder.items()),
        "placed": sum(tp not in before for tp in holder),
        "paused": {"": -1, "eager": len(before)}.get(protocol, sum(holder.get(tp) != m for tp, m in before.items())),
        "switch": -1, "switch_paused": -1,
        "topic_spread": sum(count * count for count in cell.values()),
        "topic_gap": max((max(counts) - min(counts) for topic in group.topics
                          if (counts := [cell[topic, m] for m in asked[topic]])), default=0),
        "split_numbers": sum(len({m for tp, m in holder.items() if tp.partition == n}) > 1 for n in numbers),
        "lag_max": max(member_lag, default=0) if known else -1, "lag_min": min(member_lag, default=0) if known else -1,
        "lag_total": sum(known.values()) if known else -1, "lag_unknown": len(lag) - len(known) if known else -1,
        "in_rack": in_rack_by_definition(group, holder)}
    moves = ["kept", "moved", "placed", "paused"]
    of_members = ["min_load", "max_load", "balance_score", "balanced", "topic_spread", "topic_gap", "split_numbers",
                  "lag_max", "lag_min", *moves]
    not_known = moves if any(member.counted is not None for member in group.details) else []
    return found | dict.fromkeys(not_known if group.members else of_members, -1)


def in_rack_by_definition(group, holder):
    racks = {member.id: member.rack for member in group.details}
    if not any(racks.values()):
        return -1
    def replicas(tp):
        return group.partition_racks.get(tp.topic, {tp.partition: []})[tp.partition]
    return sum(racks[m] is not None and racks[m] in replicas(tp) for tp, m in holder.items())


def figures(columns, owner, group=0, protocol=""):
    found = metrics.measure(columns, owner, protocol=protocol)
    return {name: figure[group].item() for name, figure in found.items()}


@given(st.data())
def test_every_figure_is_what_its_definition_says(data):
    group = data.draw(groups())
    owner = np.array(data.draw(owners(group)), np.int32)
    protocol = data.draw(st.sampled_from(["", "eager", "cooperative", "broker"]))
    assert figures(group.columns, owner, protocol=protocol) == by_definition(group, owner.tolist(), protocol)


@given(st.data())
def test_the_price_of_a_switch_is_what_its_definition_says(data):
    """For several groups side by side, each with its own answer to what changes over, and to what pauses."""
    found = data.draw(st.lists(groups(), min_size=1, max_size=3))
    firsts = [np.array(data.draw(owners(group)), np.int32) for group in found]
    changes, all_pause = (data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found))) for _ in "cp")
    columns = side_by_side([group.columns for group in found])
    shifts = columns.member_offsets.tolist()
    first = np.concatenate([shifted(owner, shift) for owner, shift in zip(firsts, shifts, strict=False)])
    prices = metrics.measure_switch(columns, first, np.array(changes), np.array(all_pause))
    for at, (group, owner) in enumerate(zip(found, firsts, strict=True)):
        pairs = [(before, after) for before, after in zip(group.previous, owner, strict=True) if before >= 0]
        moved = sum(after not in (-1, before) for before, after in pairs)
        paused = len(pairs) if all_pause[at] else sum(after != before for before, after in pairs)
        unknown = not changes[at] or not group.members or any(one.counted is not None for one in group.details)
        expected = (-1, -1) if unknown else (moved, paused)
        assert (prices["switch"][at], prices["switch_paused"][at]) == expected


@given(st.data())
def test_the_lag_of_a_member_is_unknown_if_that_of_all_its_partitions_is(data):
    """A member that owns nothing lags behind by nothing, if any lag is known at all."""
    group = data.draw(groups())
    answer = Assignment(group, data.draw(owners(group)))
    for member, lag in zip(answer, answer.lags, strict=True):
        own = [] if group.lag is None else [int(group.lag[group.position(*one)]) for one in answer[member]]
        known = [one for one in own if one >= 0]
        assert lag == (None if group.lag is None or own and not known else sum(known))


@given(st.data())
def test_where_owners_are_unknown_loads_are_as_counted(data):
    counts = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=5))
    members = [Member(f"m{i}", ["t"], counted=count) for i, count in enumerate(counts)]
    known = data.draw(groups())
    lag = None if data.draw(st.booleans()) else {"t": [5, -1, 7]}
    counted = Group({"t": 3}, members, lag=lag)
    columns = side_by_side([known.columns, counted.columns])
    both = {name: figure.tolist() for name, figure in metrics.measure_current(columns).items()}
    alone = figures(known.columns, known.previous)
    owned_twice = (known.columns.consumer < -1) & (known.previous < 0)
    free = (known.columns.consumer == -1) & (known.previous < 0)
    alone["unassigned"] -= int(owned_twice.sum())
    alone["unowned"] = int((free & (known.columns.subscriber_counts > 0)[known.columns.topic_of]).sum())
    assert {name: figure[0] for name, figure in both.items()} == alone
    expected = dict.fromkeys(alone, -1) | {
        "members": len(counts), "partitions": 3, "assigned": sum(counts), "unowned": 0, "could_take": 0,
        "idle": counts.count(0), "min_load": min(counts), "max_load": max(counts),
        "balance_score": sum(abs(a - b) for a, b in combinations(counts, 2)),
        "lag_total": -1 if lag is None else 12, "lag_unknown": -1 if lag is None else 1}
    assert {name: figure[1] for name, figure in both.items()} == expected
    owner = np.zeros(3, np.int32)
    assert figures(counted.columns, owner) == by_definition(counted, owner.tolist())


def test_counts_stay_with_members_whose_owners_are_unknown():
    columns = Group({"t": 4}, [Member("a", ["t"], counted=3), Member("b", ["t"], counted=1)]).columns
    group = Group.from_columns(columns, ["t"], ["a", "b"])
    after = group.leave("b").join("c", ["t"])
    assert [member.counted for member in after.details] == [3, None]
    assert compare(after, ["range"]).rows[0]["moved"] is None


def test_nothing_is_claimed_where_topics_are_unknown():
    found = figures(Group({}, [Member("a", (), counted=3)]).columns, np.zeros(0, np.int32))
    assert {found[name] for name in ("partitions", "assigned", "unassigned", "max_load", "balanced", "moved")} == {-1}


@given(st.data())
def test_many_groups_side_by_side_measure_as_each_alone(data):
    several = data.draw(st.lists(groups(), max_size=4))
    columns = side_by_side([group.columns for group in several])
    alone = [np.array(data.draw(owners(group)), np.int32) for group in several]
    shifted = [np.where(owner >= 0, owner + first, -1) for owner, first in zip(alone, columns.member_offsets)]
    together = np.concatenate([np.zeros(0, np.int32), *shifted]).astype(np.int32)
    for g, (group, owner) in enumerate(zip(several, alone)):
        assert figures(columns, together, g) == figures(group.columns, owner)
        again = take_groups(columns, [g])
        assert again.previous.tolist() == group.previous.tolist()
        assert again.subscribers.tolist() == group.columns.subscribers.tolist()
        assert again.turn.tolist() == group.columns.turn.tolist()


@pytest.mark.parametrize("dense", [0, 10**6], ids=["by sorting", "by table"])
@given(st.data())
def test_both_ways_of_counting_pairs_are_the_same(dense, data):
    group = data.draw(groups())
    owner = np.array(data.draw(owners(group)), np.int32)
    usual = metrics.topic_owner_pairs(group.columns, owner)
    with patch.object(metrics, "DENSE", dense):
        other = metrics.topic_owner_pairs(group.columns, owner)
    assert [part.tolist() for part in other] == [part.tolist() for part in usual]
    numbers = zip(row_of(usual.offsets).tolist(), usual.member.tolist(), usual.count.tolist())
    topic_of = group.columns.topic_of.tolist()
    counted = Counter((topic, member) for topic, member in zip(topic_of, owner.tolist()) if member >= 0)
    assert list(numbers) == [(topic, member, counted[topic, member]) for topic, member in sorted(counted)]


def test_a_replica_in_an_unknown_rack_is_near_no_member():
    members = [Member("a", ["t"]), Member("b", ["t"], rack="r1")]
    group = Group({"t": 2}, members, partition_racks={"t": [[None], ["r1", None]]})
    assert metrics.in_rack(group.columns, np.array([0, 1])).tolist() == [1]
