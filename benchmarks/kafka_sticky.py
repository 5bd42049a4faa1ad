"""The forecast of Kafka's sticky assignor beside the assignor itself: the same owners, and what each costs.

The strategy `kafka-sticky` and the real class from kafka-clients answer the same groups, and every owner column must be
the same. First random groups, which live through a series of events; their answers alone are compared. Then the grid of
Kafka's benchmark (`families.py`) with CPU times, medians; `grid.py` says what they include. Before an event both start
from what the assignor answered. Where Java was stopped after 60 s there is nothing to compare; at larger sizes it is
not tried again.

    python benchmarks/kafka_sticky.py [--random GROUPS] [--seed SEED] [--family NAME] [partitions ...]
"""
import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from clock import cpu, verdict
from families import MEMBERS_AND_TOPICS, SHAPES, Arrays, arrays, events, member_names, with_partitions
from grid import as_dictionaries, milliseconds
from java_sticky import NoJars, java_command, java_owners, java_sticky
from record import record

from kafka_assign import Group, assign
from kafka_assign.assignors.base import ForecastError

DEFAULT_SIZES = [1_000]
LIFE = 8
MOST_MEMBERS, MOST_TOPICS, MOST_PARTITIONS = 20, 20, 16
DENSITIES = [0.1, 0.2, 0.5, 0.9, 1]


def forecast(of: Arrays) -> np.ndarray | None:
    "Our owner column, from the claims as members send them; None if it says that Java does not return."
    try:
        return assign(Group(*as_dictionaries(of)), "kafka-sticky").owner
    except ForecastError as error:
        if error.kind != "endless":
            raise
        return None


def same(ours: np.ndarray | None, java: np.ndarray | None) -> bool:
    "Whether both gave the same answer, or neither gave one."
    return ours is java is None or np.array_equal(ours, java)


# --- random groups --------------------------------------------------------------------------------------------------

def any_subscriptions(random: np.random.Generator, members: int, topics: int) -> np.ndarray:
    "Subscriptions of a random density; nobody subscribes to nothing."
    reads = random.random((members, topics)) < random.choice(DENSITIES)
    reads[np.arange(members), random.integers(topics, size=members)] = True
    return reads


def any_group(random: np.random.Generator) -> Arrays:
    "A group in which nobody owned anything."
    members, topics = random.integers(2, MOST_MEMBERS + 1), random.integers(1, MOST_TOPICS + 1)
    counts = random.integers(1, MOST_PARTITIONS + 1, size=topics)
    of = arrays("HOMOGENEOUS", int(counts.sum()), int(members), int(topics))
    return of._replace(partitions=counts, subscriptions=any_subscriptions(random, members, topics), lag=None)


def left(of: Arrays, random: np.random.Generator) -> Arrays:
    "The group after some members left, though not the last one; the others move up to their names."
    stays = random.random(len(of.members)) > random.choice([.1, .4])
    stays[random.integers(len(stays))] = True
    place = np.append(np.where(stays, np.cumsum(stays) - 1, -1), -1).astype(np.int32)
    return of._replace(members=member_names(int(stays.sum())), subscriptions=of.subscriptions[stays],
                       previous=place[of.previous])


def joined(of: Arrays, random: np.random.Generator) -> Arrays:
    "The group after members joined that subscribe like others."
    more = random.integers(len(of.members), size=random.integers(1, 4))
    return of._replace(members=member_names(len(of.members) + len(more)),
                       subscriptions=np.concatenate([of.subscriptions, of.subscriptions[more]]))


def resubscribed(of: Arrays, random: np.random.Generator) -> Arrays:
    "The group after some members chose other topics; they still claim what they owned."
    other = any_subscriptions(random, *of.subscriptions.shape)
    changes = random.random(len(of.members)) < random.choice([.2, 1])
    return of._replace(subscriptions=np.where(changes[:, None], other, of.subscriptions))


def grown(of: Arrays, random: np.random.Generator) -> Arrays:
    "The group after topics got more partitions."
    return with_partitions(of)


CHANGES = [left, joined, resubscribed, grown]


def lives(random: np.random.Generator, count: int) -> Iterator[tuple[str, Arrays]]:
    "So many random groups, `LIFE` of which are moments of the same one: what happened last, and the group."
    while count > 0:
        event, of = "fresh", any_group(random)
        for _ in range(min(LIFE, count)):
            yield event, of
            count -= 1
            if (owner := forecast(of)) is None:
                break
            change = CHANGES[random.integers(len(CHANGES))]
            event, of = change.__name__, change(of._replace(previous=owner), random)


def compare_random(count: int, seed: int) -> bool:
    "Compare random groups, print what differs, and say whether nothing does."
    groups = list(lives(np.random.default_rng(seed), count))
    java = java_owners([of for _, of in groups])
    differing = [(event, of) for (event, of), owner in zip(groups, java) if not same(forecast(of), owner)]
    for event, of in differing:
        print(f"differs ({event}): {as_dictionaries(of)}")
    equal = sum(bool(of.subscriptions.all()) for _, of in groups)
    print(f"{len(groups):,} random groups of up to {max(int(of.partitions.sum()) for _, of in groups)} partitions, "
          f"{equal:,} with equal subscriptions: {len(differing)} answers differ")
    return not differing


# --- the grid -------------------------------------------------------------------------------------------------------

class Row(NamedTuple):
    "What was measured of a case; CPU seconds."
    ours: float
    java: float | None
    "None where Java was stopped"
    hot: float | None
    same: bool


def measured(of: Arrays, with_java: bool) -> Row:
    "Both, on one group."
    owner = forecast(of)
    ours = cpu(lambda: assign(of.group(), "kafka-sticky").owner, 3)
    answer = java_sticky(of) if with_java else None
    if answer is None or answer.owner is None:
        return Row(ours, None, None, True)
    return Row(ours, answer.seconds, answer.hot_seconds, same(owner, answer.owner))


def cases(partitions: int, shapes: Iterable[str]) -> Iterator[tuple[tuple[str, str, str], Arrays]]:
    "The grid at one size, or some families of it: topology, family and event, and the group."
    for topology in ("EQUAL", "SKEWED"):
        for family in shapes:
            full = arrays(family, partitions, *MEMBERS_AND_TOPICS[partitions], skewed=topology == "SKEWED")
            moments = events(full._replace(lag=None), lambda group: assign(group, "kafka-sticky").owner)
            for event, of in moments:
                yield (topology, family, event), of


TABLE = "{:7}{:14}{:18}{:>10}{:>11}{:>10}{:>11}  {}".format


def run(sizes: Iterable[int], shapes: Iterable[str]) -> bool:
    "Measure and print the grid, and say whether no answer differs."
    rows, kept, hopeless = [], [], set()
    for partitions in sizes:
        members, topics = MEMBERS_AND_TOPICS[partitions]
        print(f"\n{partitions:,} partitions, {members:,} members, {topics} topics")
        print(TABLE("", "", "", "ours ms", "Java ms", "hot ms", "ours/Java", ""))
        for case, of in cases(partitions, shapes):
            row = measured(of, case not in hopeless)
            rows.append(row)
            kept.append({"partitions": partitions, **dict(zip(("topology", "family", "event"), case)), **row._asdict()})
            if row.java is None:
                hopeless.add(case)
            ratio = "" if row.java is None else f"{row.ours / row.java:.1f}"
            java = [milliseconds(row.java) or "stopped", milliseconds(row.hot), ratio]
            print(TABLE(*case, milliseconds(row.ours), *java, "" if row.same else "DIFFERS"), flush=True)
    record("kafka-sticky", kept)
    compared = [row for row in rows if row.java is not None]
    differing = sum(not row.same for row in compared)
    print(f"\n{len(rows)} cases; Java was stopped in {len(rows) - len(compared)}; {differing} answers differ")
    if compared:
        print(f"ours/Java, mean: {geometric_mean(row.ours / row.java for row in compared):.1f}")
    return not differing


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("partitions", nargs="*", type=int, default=DEFAULT_SIZES)
    parser.add_argument("--random", type=int, default=2_000, metavar="GROUPS")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=SHAPES, action="append")
    chosen = parser.parse_args()
    try:
        java_command()
    except NoJars as reason:
        sys.exit(f"nothing to compare with: {reason}")
    alike = compare_random(chosen.random, chosen.seed)
    alike &= run(chosen.partitions, chosen.family or SHAPES)
    print(f"the same owners everywhere: {verdict(alike)}")
    sys.exit(not alike)
