"""Histories under other strategies: many at once, beside one live group after the other."""
import random
from unittest.mock import patch

import pytest

from kafka_assign import assign, replay
from kafka_assign.life import what_if
from kafka_assign.life.trace import Cause, Generation, History, Known

AT_ONCE = ["range", "roundrobin", "fair", "lag", "sticky", "sticky-yet-fair", "cooperative-sticky", "fairness-only"]


def random_history(seed):
    """Groups whose members come, go, come back and change topics, which grow or are new."""
    rng = random.Random(seed)
    found = []
    for group in range(rng.randint(1, 4)):
        topics = [f"t{at}" for at in range(rng.randint(1, 4))]
        pool = [f"c{at}" for at in range(rng.randint(1, 6))]
        static = {name for name in pool if rng.random() < 0.4}
        counts, time, members, serial = {topic: rng.randint(0, 6) for topic in topics}, 0.0, {}, 0
        life, number = 1, 0
        for _ in range(rng.randint(1, 12)):
            for name in rng.sample(pool, rng.randint(0, len(pool))):
                if members.pop(name, None) is None or rng.random() < 0.3:
                    serial += 1
                    read = tuple(rng.sample(topics, rng.randint(1, len(topics))))
                    members[name] = f"{name}-{serial}", Known(name, name if name in static else "", None, read)
            if rng.random() < 0.3:
                counts[rng.choice(topics)] += rng.randint(0, 3)
            if rng.random() < 0.1:
                life, number = life + 1, 0
            number, time = number + 1, time + rng.choice([1, 20, 100])
            assigned = {id: [] for id, _ in members.values()}
            for topic, count in counts.items():
                readers = [id for id, known in members.values() if topic in known.topics]
                for at in range(count if readers else 0):
                    if rng.random() < 0.9:
                        assigned[rng.choice(readers)].append((topic, at))
            found.append(Generation(
                f"g{group}", life, number, *rng.choice([(time, time + 0.5, time + rng.choice([1, 2])), (None,) * 3]),
                causes=[Cause("join", "", "", "", "broker")], protocol=rng.choice(["range", "cooperative-sticky"]),
                members=dict(members.values()), assigned={id: tuple(own) for id, own in assigned.items()}))
    return History(found)


@pytest.mark.parametrize("seed", range(12))
def test_many_groups_at_once_are_as_one_live_group_after_the_other(seed):
    history = random_history(seed)
    together = replay(history, AT_ONCE, static=45)
    with patch.object(what_if, "_at_once", what_if._one_by_one):
        alone = replay(history, AT_ONCE, static=45)
    assert together.rows == alone.rows


@pytest.mark.parametrize("seed", range(5))
def test_forecasts_of_recorded_assignments_are_those_of_the_group(seed):
    for name, group in random_history(seed).items():
        known = [one for one in group.generations if one.assignment is not None and one.members and (
            one.generation == 1 or one.before is not None and one.before.generation == one.generation - 1)]
        rows = replay({name: group}, AT_ONCE).rows[1:]
        assert [(row.forecast, row.known) for row in rows] == [
            (sum(dict(assign(one.group, label)) == dict(one.assignment) for one in known), len(known))
            for label in AT_ONCE]
