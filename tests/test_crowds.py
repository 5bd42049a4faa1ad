"""What giants need, handing on in crowds and parting by means, made to work on small groups and proved each time."""

import numpy as np
import pytest

from kafka_assign import Group
from kafka_assign.assignors.sticky import solve as sticky
from kafka_assign.certificate.making import prove
from kafka_assign.assignors.sticky.solve import sticky_assign
from kafka_assign.certificate import check_columns
from kafka_assign.columns import Columns, side_by_side
from kafka_assign.ragged import row_offsets


def subscriptions(random, kind, topics, members):
    """Who reads what, topics x members: at random, nested, or like scales."""
    if kind == "random":
        return random.random((topics, members)) < random.choice([.1, .3, .6])
    if kind == "nested":
        return np.arange(topics)[:, None] <= np.sort(random.integers(0, topics, members))
    return (np.arange(topics)[:, None] - np.arange(members) * topics // members) % topics < 3


def group(random, kind):
    """A group of which some members own a lot, as columns."""
    topics, members = int(random.integers(1, 20)), int(random.integers(2, 25))
    reads = subscriptions(random, kind, topics, members)
    counts = random.integers(0, random.choice([3, 30, 200]), topics)
    weight = random.random(members) ** random.choice([0, 3]) * reads
    previous = np.full(int(counts.sum()), -1, np.int32)
    for topic, (begin, count) in enumerate(zip(row_offsets(counts), counts)):
        if reads[topic].any():
            owners = random.choice(members, count, p=weight[topic] / weight[topic].sum())
            previous[begin:begin + count] = np.where(random.random(count) < .8, owners, -1)
    return Columns(np.array([0, topics]), np.array([0, members]), counts, np.zeros(topics, bool), row_offsets(reads.sum(1)),
                   np.nonzero(reads)[1].astype(np.int32), np.arange(members, dtype=np.int32), previous)


@pytest.mark.parametrize("large", [1, 30, 10_000])
@pytest.mark.parametrize("kind", ["random", "nested", "scales"])
def test_the_answers_of_crowds_are_best(monkeypatch, kind, large):
    monkeypatch.setattr(handing, "WALKS", 0)
    for module, name in ((splitting, "LARGE"), (sticky, "AT_ONCE")):
        monkeypatch.setattr(module, name, large)
    random = np.random.default_rng(large)
    for _ in range(100):
        columns = group(random, kind)
        owner = sticky_assign(columns)
        check_columns(columns, owner, prove(columns, owner))


@pytest.mark.parametrize("rounds", [1, 2, 10])
def test_a_chain_of_crowds_longer_than_the_rounds(monkeypatch, rounds):
    links = rounds + 1
    for module, name, value in ((splitting, "LARGE", 1), (sticky, "AT_ONCE", 1), (sticky, "ROUNDS", rounds)):
        monkeypatch.setattr(module, name, value)
    pairs = {f"row{i:02}": {i, i + 1} for i in range(links)}           # each crowded when its left end is gone
    readers = {**pairs, "pool": set(range(links, links + 50)), "one": {links - 1}}
    topics = {**dict.fromkeys(pairs, 16), "row00": 1000, f"row{links - 1:02}": 6, "pool": 510, "one": 1}
    members = {m: [name for name, who in readers.items() if m in who] for m in range(links + 50)}
    columns = Group(topics, {f"m{m:02}": names for m, names in members.items()}).columns
    owner = sticky_assign(columns)
    check_columns(columns, owner, prove(columns, owner))


@pytest.mark.parametrize("own_turns", [0, 300])
@pytest.mark.parametrize("kind", ["random", "nested", "scales"])
def test_no_block_decides_for_another(monkeypatch, kind, own_turns):
    """Of some blocks too much is stuck, some cannot be balanced, some can; in one call as one by one."""
    monkeypatch.setattr(sticky, "AT_ONCE", 0)
    monkeypatch.setattr(pouring, "OWN_TURNS", own_turns)
    random = np.random.default_rng(29)
    for _ in range(20):
        fleet = [group(random, kind) for _ in range(20)]
        union = side_by_side(fleet)
        alone = [np.where(one >= 0, one + first, -1) for one, first in zip(map(sticky_assign, fleet), union.member_offsets)]
        assert (sticky_assign(union) == np.concatenate(alone)).all()


def test_they_are_used(monkeypatch):
    called = []

    def counted(module, name):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *arguments: called.append(name) or original(*arguments))

    monkeypatch.setattr(handing, "WALKS", 0)
    for module, name in ((splitting, "LARGE"), (sticky, "AT_ONCE")):
        monkeypatch.setattr(module, name, 1)
    for module, name in ((pushing, "relay"), (handing, "hand_on"), (handing, "lift"), (splitting, "part_by_means"),
                         (parting, "hand_on"), (parting, "split")):
        counted(module, name)
    random = np.random.default_rng(5)
    for kind in ["random", "nested", "scales"] * 30:
        sticky_assign(group(random, kind))
    assert set(called) == {"relay", "hand_on", "lift", "part_by_means", "split"}
