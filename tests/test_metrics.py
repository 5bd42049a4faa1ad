"""Figures against their definitions, word for word and one pair at a time, for one group and for many side by side."""

from collections import Counter
from itertools import combinations

import numpy as np
from groups import groups, owners
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign import metrics
from kafka_assign.columns import one_group, side_by_side


def by_definition(group, owner):
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
    return {
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
        "topic_spread": sum(count * count for count in cell.values()),
        "topic_gap": max((max(counts) - min(counts) for topic in group.topics
                          if (counts := [cell[topic, m] for m in asked[topic]])), default=0),
        "split_numbers": sum(len({m for tp, m in holder.items() if tp.partition == n}) > 1 for n in numbers),
        "lag_max": max(member_lag, default=0) if known else -1, "lag_min": min(member_lag, default=0) if known else -1,
        "lag_total": sum(known.values()) if known else -1, "lag_unknown": len(lag) - len(known) if known else -1,
        "in_rack": in_rack_by_definition(group, holder)}


def in_rack_by_definition(group, holder):
    racks = {member.id: member.rack for member in group.details}
    if not any(racks.values()):
        return -1
    def replicas(tp):
        return group.partition_racks.get(tp.topic, {tp.partition: []})[tp.partition]
    return sum(racks[m] is not None and racks[m] in replicas(tp) for tp, m in holder.items())


def figures(columns, owner, group=0):
    return {name: figure[group].item() for name, figure in metrics.measure(columns, owner).items()}


@given(st.data())
def test_every_figure_is_what_its_definition_says(data):
    group = data.draw(groups())
    owner = np.array(data.draw(owners(group)), np.int32)
    assert figures(group.columns, owner) == by_definition(group, owner.tolist())


@given(st.data())
def test_many_groups_side_by_side_measure_as_each_alone(data):
    several = data.draw(st.lists(groups(), max_size=4))
    columns = side_by_side([group.columns for group in several])
    alone = [np.array(data.draw(owners(group)), np.int32) for group in several]
    shifted = [np.where(owner >= 0, owner + first, -1) for owner, first in zip(alone, columns.member_offsets)]
    together = np.concatenate([np.zeros(0, np.int32), *shifted]).astype(np.int32)
    for g, (group, owner) in enumerate(zip(several, alone)):
        assert figures(columns, together, g) == figures(group.columns, owner)
        again = one_group(columns, g)
        assert again.previous.tolist() == group.previous.tolist()
        assert again.subscribers.tolist() == group.columns.subscribers.tolist()
        assert again.turn.tolist() == group.columns.turn.tolist()


@given(st.data())
def test_pairs_counted_by_sorting_are_those_counted_by_table(data):
    group = data.draw(groups())
    cells = int(group.columns.cell_offsets[-1]) + 1
    cell = np.array(data.draw(st.lists(st.integers(0, cells - 1), max_size=20)), np.int64)
    by_table = metrics._count_cells(cell, cells)
    by_sorting = metrics._count_cells(cell, 4 * len(cell) + 1_000_001)
    assert [part.tolist() for part in by_table] == [part.tolist() for part in by_sorting]
