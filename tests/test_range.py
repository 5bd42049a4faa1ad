"""Range with racks: as the rule word for word on random groups, alone, side by side, and as rows of a fleet."""

import random

import numpy as np
import pyarrow as pa
import pytest
from rules import Shares, range_rule

from kafka_assign import Group, Member, assign, assign_many
from kafka_assign.assignors.baselines import TopicShares, racks_count, take_in_turn, take_together
from kafka_assign.arrays.columns import side_by_side
from kafka_assign.fleet.codec import row_from_group
from kafka_assign.fleet.kernel import compare_batch
from kafka_assign.fleet.schemas import GROUP_SCHEMA
from kafka_assign.assignors.registry import resolve

RACKS = ["east", "north", "south", "west"]
SEEDS = range(6)


def replica_racks(rng, style, count):
    """The racks of the replicas of each partition: the same for all, one or more by chance, some or none known."""
    if style == "same":
        return [rng.sample(RACKS, 2)] * count
    if style == "one":
        return [[rng.choice(RACKS)] for _ in range(count)]
    if style == "gaps":
        return [rng.choice([[], [None], ["east", "east"], ["east", None], ["west"]]) for _ in range(count)]
    return [rng.sample(RACKS, rng.randint(1, 3)) for _ in range(count)]


def racked_group(rng):
    """A group with few sizes of topics and few subscriptions, so that many topics are assigned together."""
    topics = {f"t{i}": rng.choice([0, 1, 2, 5, 5, 5, 8, 13]) for i in range(rng.randint(1, 7))}
    subscriptions = [rng.sample(sorted(topics), rng.randint(1, len(topics))) for _ in range(rng.randint(1, 2))]
    known = rng.choice([0, .5, .9, 1])
    members = [Member(f"m{i}", rng.choice(subscriptions), rack=rng.choice(RACKS) if rng.random() < known else None,
                      instance_id=rng.choice([None, f"i{rng.random()}"])) for i in range(rng.randint(0, 9))]
    style = rng.choice(["same", "one", "one", "gaps", "some", "some"])
    racks = {name: replica_racks(rng, style, count) for name, count in topics.items() if rng.random() < .9}
    return Group(topics, rng.sample(members, len(members)), partition_racks=rng.choice([racks, racks, racks, None]))


def racked_groups(seed, count=60):
    rng = random.Random(seed)
    return [racked_group(rng) for _ in range(count)]


def without_racks(group):
    return group.replace(partition_racks=None)


def counts_by_topic(assignment):
    """For each topic, how many partitions its owners have, sorted."""
    columns = assignment.group.columns
    return [sorted(np.unique(assignment.owner[columns.places(topic)], return_counts=True)[1].tolist())
            for topic in range(columns.topic_count)]


def test_the_random_groups_are_of_every_kind():
    groups = [group for seed in SEEDS for group in racked_groups(seed)]
    differ = [assign(group, "range").owner.tolist() != assign(without_racks(group), "range").owner.tolist()
              for group in groups]
    assert .2 < np.mean(differ) < .8
    together = sum(assign(group, "range").owner.tolist() != one_topic_at_a_time(group) for group in groups)
    assert together > 30


def one_topic_at_a_time(group):
    """The answer if each topic were alone in its group."""
    alone = [Group({name: count}, [Member(m.id, {name} & {*m.topics}, rack=m.rack, instance_id=m.instance_id)
                                   for m in group.details],
                   partition_racks={name: group.partition_racks[name]} if name in group.partition_racks else None)
             for name, count in zip(group.topics, group.partitions.tolist())]
    return [owner for one in alone for owner in assign(one, "range").owner.tolist()]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_fast_way_is_the_rule(seed):
    groups = racked_groups(seed)
    alone = [assign(group, "range").owner.tolist() for group in groups]
    assert alone == [range_rule(group.columns).tolist() for group in groups]
    assert [one.owner.tolist() for one in assign_many(groups, "range")] == alone
    assert [one.owner.tolist() for one in assign_many(groups[::-1], "range")] == alone[::-1]
    owner, target = resolve("range").run_many(side_by_side([group.columns for group in groups]))
    assert owner.tolist() == range_rule(side_by_side([group.columns for group in groups])).tolist()
    assert owner.dtype == np.int32 and target is owner


@pytest.mark.parametrize("seed", SEEDS)
def test_racks_count_where_the_rule_says_so(seed):
    for group in racked_groups(seed):
        columns = group.columns
        if columns.racks is not None:
            expected = [Shares(columns, topic).needs_racks() for topic in range(columns.topic_count)]
            assert racks_count(columns).tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_racks_change_no_quota_and_split_no_number(seed):
    for group in racked_groups(seed):
        near, anywhere = assign(group, "range"), assign(without_racks(group), "range")
        assert counts_by_topic(near.check()) == counts_by_topic(anywhere)
        assert near.unassigned.tolist() == anywhere.unassigned.tolist()
        columns, blocks = group.columns, {}
        for topic in range(columns.topic_count):
            partners = int(columns.partitions[topic]), *columns.subscribers_of(topic)
            block = near.owner[columns.places(topic)].tolist()
            assert blocks.setdefault(partners, block) == block


def test_racks_that_say_nothing_change_nothing():
    members = [Member("a", ["t", "u"], rack="east"), Member("b", ["t"], rack="west"), Member("c", ["t", "u"])]
    plain = Group({"t": 5, "u": 3}, members)
    expected = assign(plain, "range").owner.tolist()
    for racks in ({"t": [["east", "west"], ["west", "east"], ["east", "west", "west"]] + [["east", "west"]] * 2},
                  {"t": [["north"], ["south"], [], [None], [""]], "u": [["north"]] * 3}, {}, None):
        assert assign(plain.replace(partition_racks=racks), "range").owner.tolist() == expected
    nowhere = [Member(m.id, m.topics) for m in members]
    racks = {"t": [["east"], ["west"], ["west"], ["east"], ["east"]]}
    assert assign(Group({"t": 5, "u": 3}, nowhere, partition_racks=racks), "range").owner.tolist() == expected


def test_a_partner_without_racks_is_assigned_along_with_a_topic_that_has_some():
    """By hand: only c, without a rack, matches partitions of both; the rest goes in order."""
    members = [Member("a", ["t", "u"], rack="west"), Member("b", ["t", "u"], rack="east"), Member("c", ["t", "u"])]
    group = Group({"t": 3, "u": 3}, members, partition_racks={"t": [["east"], ["west"], ["west"]]})
    assert assign(group, "range").owner.tolist() == [2, 0, 1] * 2
    alone = group.replace(topics={"t": 3, "u": 4})
    assert assign(alone, "range").owner.tolist() == [1, 0, 2] + [0, 0, 1, 2]


def test_racks_that_count_for_one_topic_concern_others_of_the_group_only():
    near = Group({"t": 2, "v": 2, "w": 2},
                 [Member("a", ["t"], rack="east"), Member("b", ["v", "w"], rack="east"), Member("c", ["t", "v", "w"])],
                 partition_racks={"t": [["west"], ["east"]], "v": [["east"]] * 2, "w": [["west"]] * 2})
    assert assign(near, "range").owner.tolist() == [2, 0] + [2, 1] * 2      # b matches no number of both: c first
    indifferent = near.replace(partition_racks={"v": [["east"]] * 2, "w": [["west"]] * 2})
    assert assign(indifferent, "range").owner.tolist() == [0, 2] + [1, 2] * 2
    both = assign_many([near, indifferent, near], "range")
    assert [one.owner.tolist()[2:] for one in both] == [[2, 1] * 2, [1, 2] * 2, [2, 1] * 2]


class Counted(TopicShares):
    """Counts how often anyone asks how much room there is."""

    asked = 0

    def room(self, place):
        self.asked += 1
        return super().room(place)


@pytest.mark.parametrize("racks", [[0] * 300, [-1] * 300, [at % 3 for at in range(300)]], ids=["one", "none", "three"])
def test_no_partition_goes_through_all_members(racks):
    """300 members and 1,200 partitions: each partition looks at one member per rack, not at all of them."""
    near = [{at % 3} for at in range(1200)]
    together = Counted(1200, 300)
    take_together(together, racks, near)
    assert together.asked <= 300 + 2 * 1200
    alone = Counted(1200, 300)
    take_in_turn(alone, racks, {rack: [at for at in range(1200) if rack in near[at]] for rack in range(3)})
    assert alone.asked == 300


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_a_fleet_say_what_assign_says(seed):
    groups = [group.replace(name=f"g{at}") for at, group in enumerate(racked_groups(seed))]
    rows = pa.RecordBatch.from_pylist([row_from_group(group, "fleet", at) for at, group in enumerate(groups)],
                                      GROUP_SCHEMA)
    for row in compare_batch(rows, [resolve("range")], everything=True).to_pylist():
        expected = assign(groups[row["position"]], "range")
        [result] = [one for one in row["results"] if one["strategy"] == "range"]
        assert [owner for topic in result["assignment"] for owner in topic["owner"]] == expected.owner.tolist()
        assert result["in_rack"] == expected.summary()["in_rack"]
