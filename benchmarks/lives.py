"""How evenly each topic stays spread over the members of a long-lived group, beside Java's sticky assignor.

All members subscribe to all topics. Members join and leave, and each assignment is owned before the next one. There are
two figures after every step. The gap is the largest difference between two members in partitions of one topic. The
spread is the sum over topics and members of the squared number of partitions, divided by its minimum: each topic spread
as evenly as so many members allow. Balance and stickiness come first and do not always allow the minimum. Java's
answers come from the real class. Member ids follow the order of joining.

    python benchmarks/lives.py
"""
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from clock import verdict
from families import Arrays, member_names
from java_sticky import NoJars, java_command, java_owner
from record import record

from kafka_assign import assign
from kafka_assign.arrays.metrics import measure

STEPS = 40


class Step(NamedTuple):
    "The figures of a group after a step."
    gap: int
    "largest difference between two members in partitions of one topic"
    spread: float
    "sum over topics and members of partitions squared, divided by its minimum"
    whole: bool
    "whether one of several members owns a whole topic"


def up_and_down(random: np.random.Generator) -> Iterator[int]:
    "The number of members after each step: 1, 2, 4, 2, and again; the newest leave first."
    yield from [1, 2, 4, 2] * (STEPS // 4)


def wandering(random: np.random.Generator, least: int, most: int) -> Iterator[int]:
    "The number of members after each step, `least` to `most`: up to a third of them join or leave."
    count = (least + most) // 2
    for _ in range(STEPS):
        yield count
        change = int(random.integers(1, max(2, count // 3 + 1))) * random.choice([-1, 1])
        count = int(np.clip(count + change, least, most))


LIVES = {
    "2 topics of 12; members 1, 2, 4, 2, ...": ([12, 12], up_and_down),
    "2 topics of 12; 1 to 8 members": ([12, 12], partial(wandering, least=1, most=8)),
    "10 topics of 60; 5 to 30 members": ([60] * 10, partial(wandering, least=5, most=30)),
    "100 topics of 12; 5 to 40 members": ([12] * 100, partial(wandering, least=5, most=40)),
    "40 topics of 1 to 40; 4 to 24 members": (list(range(1, 41)), partial(wandering, least=4, most=24))}


def changed(members: list[int], count: int, newest_first: bool, random: np.random.Generator, number: int) -> list[int]:
    "The members after enough have joined or left that there are `count`; `number` is the first free one."
    if count >= len(members):
        return members + list(range(number, number + count - len(members)))
    leave = members[count:] if newest_first else random.choice(members, len(members) - count, replace=False)
    return sorted(set(members) - set(leave))


def memberships(counts: Callable, seed: int) -> Iterator[list[int]]:
    "The members after each step, as numbers in the order of joining."
    random, members, number = np.random.default_rng(seed), [], 0
    for count in counts(random):
        members = changed(members, count, counts is up_and_down, random, number)
        number = max(number, *members) + 1
        yield members


def standing(of: Arrays, owner: np.ndarray) -> Step:
    "The figures of an assignment."
    figures, members = measure(of.group().columns, owner), len(of.members)
    topic = np.repeat(np.arange(len(of.topics)), of.partitions)
    counts = np.bincount(topic * members + owner, minlength=len(of.topics) * members).reshape(-1, members)
    each, more = np.divmod(of.partitions, members)
    least = (more * (each + 1) ** 2 + (members - more) * each ** 2).sum()
    whole = members > 1 and bool((counts.max(axis=1) == of.partitions)[of.partitions > 1].any())
    return Step(int(figures["topic_gap"][0]), float(figures["topic_spread"][0] / least), whole)


def life(partitions: list[int], counts: Callable, answer: Callable, seed: int = 0) -> list[Step]:
    "The figures after all steps of a group; each assignment is owned before the next one."
    topics = [f"topic-{i:06}" for i in range(len(partitions))]
    owner, before, steps = np.full(sum(partitions), -1, np.int32), [], []
    for members in memberships(counts, seed):
        place = {member: i for i, member in enumerate(members)}
        previous = np.array([place.get(member, -1) for member in before] + [-1], np.int32)[owner]
        of = Arrays(topics, np.array(partitions), member_names(len(members)),
                    np.ones((len(members), len(topics)), bool), previous)
        owner, before = answer(of), members
        steps.append(standing(of, owner))
    return steps


def ours(of: Arrays) -> np.ndarray:
    "Our owner column."
    return assign(of.group(), "sticky").owner


def line(name: str, steps: list[Step]) -> str:
    "The figures of a group as one line."
    gaps, spreads = [step.gap for step in steps], [step.spread for step in steps]
    return (f"  {name:5} gap {mean(gaps):5.2f} on average, {max(gaps):3} at worst, {gaps[-1]:3} in the end   "
            f"spread {mean(spreads):.3f}, {max(spreads):.3f}, {spreads[-1]:.3f} x the minimum   "
            f"one member owns a whole topic after {sum(step.whole for step in steps)} of {len(steps)} steps")


def main() -> None:
    "Run every group with both assignors."
    assignors = {"ours": ours}
    try:
        java_command()
        assignors["Java"] = java_owner
    except NoJars as reason:
        print(f"Java is skipped: {reason}")
    rows = []
    for name, (partitions, counts) in LIVES.items():
        print(name)
        steps = {assignor: life(partitions, counts, answer) for assignor, answer in assignors.items()}
        for assignor, some in steps.items():
            print(line(assignor, some), flush=True)
            rows.append({"group": name, "assignor": assignor, "gap": mean(step.gap for step in some),
                         "spread": mean(step.spread for step in some)})
        if counts is up_and_down:
            even = all(step.gap == 0 for step in steps["ours"])
            print(f"  equal counts per topic after every step: {verdict(even)}")
    record("lives", rows)


if __name__ == "__main__":
    main()
