"""Histories under other strategies: many at once, beside one live group after the other."""
import random
from dataclasses import replace

import pytest

from kafka_assign import assign, replay
from kafka_assign.assignors.base import ForecastError
from kafka_assign.assignors.registry import resolve
from kafka_assign.life.rebalance import Consumer, LiveState, run_rounds
from kafka_assign.life.what_if import plans
from kafka_assign.life.trace import Cause, Generation, History, Known

AT_ONCE = ["range", "roundrobin", "fair", "lag", "sticky", "sticky-yet-fair", "cooperative-sticky", "fairness-only"]
ONE_BY_ONE = ["kip54", "stream-join-sticky", "kafka-sticky", "kafka-cooperative-sticky"]


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


def live(plan, strategy):
    """Rebalances, moves and pauses of a live group that takes the steps of a plan, in the bytes that members send."""
    state, last, rebalances, moves, paused, known = LiveState(strategy), {}, 0, 0, 0.0, True
    for step in plan.steps:
        held = {id: len(own) for id, own in state.consuming.items()}
        paused += sum(held.get(id, 0) * seconds for id, seconds in step.away)
        if step.spared:
            continue
        there = {one.id: one for one in state.members}
        members = [replace(there.get(id) or Consumer(id, topics, plan.instances[id]), topics=topics)
                   for id, topics in step.members.items()]
        _, answers, state = run_rounds(replace(state, topics=tuple(step.counts.items()), members=tuple(members)))
        now = {pair: id for id, own in state.consuming.items() for pair in own}
        moved = sum(last.get(pair, id) != id for pair, id in now.items())
        last |= now
        rebalances, moves = rebalances + max(1, len(answers)), moves + moved
        stopped = sum(held.values()) if strategy.protocol == "eager" else moved
        known &= step.seconds is not None or not members or not stopped
        paused += stopped * (step.seconds or 0.0)
    return rebalances, moves, pytest.approx(paused) if known else None


@pytest.mark.parametrize("seed", range(12))
def test_histories_side_by_side_are_as_live_groups(seed):
    history = random_history(seed)
    for name in AT_ONCE + ONE_BY_ONE:
        try:
            expected = [live(plan, resolve(name)) for group in history.values() for plan in plans(group, 45)]
        except ForecastError as error:                   # a topic that shrinks may end the members of Java
            assert [note for note in replay(history, [name], static=45).notes if str(error) in note], name
        else:
            rows = [row for row in replay(history, [name], static=45).rows if row.strategy != "recorded"]
            assert [row[3:6] for row in rows] == expected, name


@pytest.mark.parametrize("seed", range(5))
def test_forecasts_of_recorded_assignments_are_those_of_the_group(seed):
    for name, group in random_history(seed).items():
        known = [one for one in group.generations if one.assignment is not None and one.members and (
            one.generation == 1 or one.before is not None and one.before.generation == one.generation - 1)]
        rows = replay({name: group}, AT_ONCE).rows[1:]
        assert [(row.forecast, row.known) for row in rows] == [
            (sum(dict(assign(one.group, label)) == dict(one.assignment) for one in known), len(known))
            for label in AT_ONCE]
