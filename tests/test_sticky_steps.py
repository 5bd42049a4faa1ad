"""What large groups need, made to work on small ones and proved each time: residual graphs, levels."""

import numpy as np
import pytest
from groups import crowded_group

from kafka_assign import Group, assign
from kafka_assign.assignors.sticky import balance, levels, solve
from kafka_assign.assignors.sticky.classes import Tuning
from kafka_assign.assignors.sticky.solve import sticky_assign
from kafka_assign.groups.certificate import check_columns
from kafka_assign.assignors.sticky.proving import prove
from kafka_assign.arrays.columns import side_by_side

every_kind = pytest.mark.parametrize("kind", ["random", "nested", "scales"])


@every_kind
@pytest.mark.parametrize("small", [0, 30, 300])
def test_answers_are_optimal(monkeypatch, kind, small):
    monkeypatch.setattr(Tuning, "small_component", small)
    random = np.random.default_rng(small)
    for _ in range(100):
        columns = crowded_group(random, kind)
        owner = sticky_assign(columns)
        check_columns(columns, owner, prove(columns, owner))


@pytest.mark.parametrize("leaving", [0, 1, 4])
def test_a_component_of_one_level_needs_no_levels(monkeypatch, leaving):
    """Half of the topics each, and some members leave: the answer comes without levels, and is that of levels."""
    random = np.random.default_rng(leaving)
    reads = random.random((60, 40)) < .5
    topics = {f"t{n:02}": 25 for n in range(40)}
    group = Group(topics, {f"m{m:02}": [name for name, is_read in zip(topics, row) if is_read]
                           for m, row in enumerate(reads)})
    columns = group.replace(owned=assign(group, "sticky")).leave(*group.members[:leaving]).columns
    with monkeypatch.context() as patch:
        patch.setattr(solve, "try_one_level", lambda classes: (classes.owned.copy(), classes.owned >= 0))
        by_levels = sticky_assign(columns)
    monkeypatch.setattr(solve, "flattest", None)
    owner = sticky_assign(columns)
    check_columns(columns, owner, prove(columns, owner))
    assert owner.tolist() == by_levels.tolist()


@pytest.mark.parametrize("links", [1, 2, 10, 40])
@pytest.mark.parametrize("small", [0, 300])
def test_a_chain_of_overfull_classes(monkeypatch, links, small):
    """Every link is overfull once the one before it is filled; the members of a pool stay on the level below."""
    monkeypatch.setattr(Tuning, "small_component", small)
    pairs = {f"link{i:02}": {i, i + 1} for i in range(links)}
    subscribers = {**pairs, "pool": set(range(links, links + 50)), "one": {links - 1}}
    topics = {**dict.fromkeys(pairs, 16), "link00": 1000, f"link{links - 1:02}": 6, "pool": 510, "one": 1}
    members = {m: [name for name, who in subscribers.items() if m in who] for m in range(links + 50)}
    columns = Group(topics, {f"m{m:02}": names for m, names in members.items()}).columns
    owner = sticky_assign(columns)
    check_columns(columns, owner, prove(columns, owner))


@every_kind
@pytest.mark.parametrize("small", [0, 40, 300])
@pytest.mark.parametrize("pairs", [1, 200, 10**6])
def test_no_component_decides_for_another(monkeypatch, kind, small, pairs):
    """Some balance as a whole, others fall into levels; in one call as one by one."""
    monkeypatch.setattr(Tuning, "small_component", small)
    monkeypatch.setattr(Tuning, "graph_pairs", pairs)
    random = np.random.default_rng(29)
    for _ in range(3):
        fleet = [crowded_group(random, kind) for _ in range(20)]
        union = side_by_side(fleet)
        alone = [np.where(one >= 0, one + first, -1)
                 for one, first in zip(map(sticky_assign, fleet), union.member_offsets)]
        assert (sticky_assign(union) == np.concatenate(alone)).all()


def test_all_steps_are_used(monkeypatch):
    called = set()

    def counted(module, name):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, **named: called.add(name) or original(*given, **named))

    steps = [(solve, "balanced_counts"), (solve, "unsettled"), (solve, "flattest"), (solve, "undecided"),
             (solve, "try_one_level"),
             (balance, "augment_cheapest"), (balance, "single_class_counts"), (levels, "decompose"),
             (levels, "strongly_connected_components")]
    for module, name in steps:
        counted(module, name)
    monkeypatch.setattr(Tuning, "small_component", 30)
    monkeypatch.setattr(Tuning, "fill_passes", 1)
    random = np.random.default_rng(5)
    for kind in ["random", "nested", "scales"] * 10:
        sticky_assign(crowded_group(random, kind))
    assert called == {name for _, name in steps}
