"""Groups and fleets to measure with: seeded, so that two runs see the same, and shaped like the real thing.

A group comes as arrays (`Arrays`), of one of six shapes of subscription, and lives through the events of Kafka's own
benchmark of consumer assignors (`events`). A fleet comes as rows of the table that sources deliver.

Partitions and members of a group are log-normal: most groups are small, a few are large. Six in seven groups subscribe
alike; the others are the shapes on which assignors differ. One group in three is in some disorder. Offsets are what a
broker knows: log end and commit, now and then none.
"""
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafka_assign import Group
from kafka_assign.fleet.tables import ROWS

SHAPES = ["equal", "disjoint", "nested", "half", "sparse", "narrow"]
WORDS = "orders billing search fraud events clicks stock mail audit prices media risk".split()


def subscriptions(random: np.random.Generator, shape: str, members: int, topics: int) -> np.ndarray:
    "Who reads what, bool, members x topics: everybody everything, or one of the shapes on which assignors differ."
    reads = np.ones((members, topics), bool)
    if shape == "disjoint":
        reads = (np.arange(members)[:, None] - np.arange(topics)) % min(members, topics) == 0
    elif shape == "nested":
        reads = np.arange(topics) <= np.sort(random.integers(0, topics, members))[:, None]
    elif shape in ("half", "sparse"):
        reads = random.random((members, topics)) < (0.5 if shape == "half" else 0.05)
    elif shape == "narrow":
        reads[0] = np.arange(topics) == 0
    return reads


# --- one group as arrays -------------------------------------------------------------------------------------------

class Arrays(NamedTuple):
    "A group as `Group.from_arrays` takes it: names in order, so nothing has to be sorted."
    topics: list[str]
    partitions: np.ndarray
    members: list[str]
    subscriptions: np.ndarray
    previous: np.ndarray | None = None
    lag: np.ndarray | None = None

    def group(self) -> Group:
        "The group."
        return Group.from_arrays(*self)


def arrays(shape: str, partitions: int, members: int, topics: int, skewed: bool = False, seed: int = 0) -> Arrays:
    "A group nobody owned anything of; its topics equally large, or `skewed`: the k-th largest has 1/k of the largest."
    random = np.random.default_rng(seed)
    weight = 1 / np.arange(1, topics + 1) if skewed else np.ones(topics)
    counts = np.maximum(1, (partitions * weight / weight.sum()).astype(np.int64))
    counts[0] += partitions - counts.sum()
    reads = subscriptions(random, shape, members, topics)
    names = [f"topic-{i:06}" for i in range(topics)], [f"member-{i:06}" for i in range(members)]
    lag = random.lognormal(4, 1, int(counts.sum())).astype(np.int64)
    return Arrays(names[0], counts, names[1], reads, lag=lag)


def without_members(of: Arrays, gone: np.ndarray) -> Arrays:
    "The group after members left."
    stay = np.setdiff1d(np.arange(len(of.members)), gone)
    place = np.full(len(of.members) + 1, -1, np.int32)
    place[stay] = np.arange(len(stay))
    return of._replace(members=[of.members[i] for i in stay], subscriptions=of.subscriptions[stay],
                       previous=None if of.previous is None else place[of.previous])


def events(full: Arrays, assign: Callable[[Group], np.ndarray], seed: int = 0) -> Iterator[tuple[str, Arrays]]:
    """The group in the moments of Kafka's benchmark: FULL is fresh; before the others `assign` had assigned it, and
    then nothing happened, one or a tenth of the members joined or left, a tenth of each topic was added; RANDOM_OWNERS
    is what no assignor would have left behind."""
    random, count = np.random.default_rng(seed), len(full.members)
    yield "FULL", full
    stable = full._replace(previous=assign(full.group()))
    yield "STABLE", stable
    one, many = random.choice(count, 1), random.choice(count, max(1, count // 10), replace=False)
    for name, some in (("ONE", one), ("MANY", many)):
        yield f"LEAVE_{name}", without_members(stable, some)
        before = without_members(full, some)
        owner, stayed = assign(before.group()), np.setdiff1d(np.arange(count), some)
        yield f"JOIN_{name}", full._replace(previous=np.append(stayed, -1)[owner])
    yield "PARTITIONS_ADDED", full._replace(previous=with_partitions(full, assign))
    topic = np.repeat(np.arange(len(full.topics)), full.partitions)
    order = np.argsort(-full.subscriptions, axis=0, kind="stable")          # the readers of each topic first
    readers = full.subscriptions.sum(axis=0)[topic]
    any_reader = order[(random.random(len(topic)) * readers).astype(int), topic]
    yield "RANDOM_OWNERS", full._replace(previous=np.where(readers > 0, any_reader, -1))


def with_partitions(full: Arrays, assign: Callable[[Group], np.ndarray]) -> np.ndarray:
    "Owners before a tenth of the partitions of each topic was there."
    before = full._replace(partitions=np.maximum(1, full.partitions * 9 // 10), lag=None)
    at, had = np.cumsum(full.partitions) - full.partitions, np.cumsum(before.partitions) - before.partitions
    previous = np.full(int(full.partitions.sum()), -1)
    topic = np.repeat(np.arange(len(full.topics)), before.partitions)
    previous[at[topic] + np.arange(len(topic)) - had[topic]] = assign(before.group())
    return previous


# --- fleets ----------------------------------------------------------------------------------------------------------

def owners(random: np.random.Generator, reads: np.ndarray, counts: np.ndarray) -> np.ndarray:
    "Who owned what: dealt in turn; where there was disorder, a tenth to any reader and a twentieth to nobody."
    owner, disorder = [], random.random() < 0.33
    for topic, count in enumerate(counts):
        readers = np.flatnonzero(reads[:, topic])
        if not len(readers):
            owner.append(np.full(count, -1))
            continue
        dealt = readers[np.arange(count) % len(readers)]
        if disorder:
            dealt = np.where(random.random(count) < 0.1, random.choice(readers, count), dealt)
            dealt = np.where(random.random(count) < 0.05, -1, dealt)
        owner.append(dealt)
    return np.concatenate(owner)


def offsets(random: np.random.Generator, count: int) -> dict:
    "Log end and committed offsets of a topic's partitions; one commit in fifty is missing."
    end = random.integers(0, 10**9, count)
    lag = random.lognormal(4, 1, count).astype(np.int64)
    return {"end": end, "committed": np.where(random.random(count) < 0.02, -1, np.maximum(end - lag, 0))}


def held(owner: np.ndarray, topic: np.ndarray, place: np.ndarray, members: int) -> list[list[tuple]]:
    "What each member owns: pairs of a topic and the numbers of its partitions."
    order = np.lexsort((place, topic, owner))
    owner, topic, place = owner[order], topic[order], place[order]
    cuts = np.flatnonzero((np.diff(owner, prepend=-2) != 0) | (np.diff(topic, prepend=-2) != 0))
    claims = [[] for _ in range(members)]
    for at, numbers in zip(cuts, np.split(place, cuts[1:])):
        if owner[at] >= 0:
            claims[owner[at]].append((topic[at], numbers))
    return claims


def group_row(random: np.random.Generator, number: int, shape: str, members: int, topics: int, partitions: int) -> dict:
    "One group as a row of the table of groups."
    topics = min(topics, partitions)
    counts = 1 + random.multinomial(partitions - topics, random.dirichlet(np.ones(topics)))
    names = [f"{WORDS[random.integers(len(WORDS))]}.{WORDS[number % len(WORDS)]}-{i}" for i in range(topics)]
    reads = subscriptions(random, shape, members, topics)
    owner, topic = owners(random, reads, counts), np.repeat(np.arange(topics), counts)
    place = np.arange(partitions) - np.repeat(np.cumsum(counts) - counts, counts)
    claims = held(owner, topic, place, members)
    rows = [{
        "id": f"consumer-{member + 1}-{random.bytes(8).hex()}", "client_id": f"consumer-{member + 1}",
        "host": f"/10.0.{number % 256}.{member % 256}", "topics": [names[t] for t in np.flatnonzero(reads[member])],
        "owned": [{"topic": names[t], "partitions": numbers} for t, numbers in claims[member]],
        "generation": 7} for member in range(members)]
    return {
        "cluster": f"cluster-{number % 7}", "group": f"{WORDS[number % len(WORDS)]}-{number}",
        "time": "2025-01-01T00:00:00Z", "type": "classic", "state": "Stable", "strategy": "range", "generation": 7,
        "members": rows,
        "topics": [{"topic": n, "partitions": int(c)} | offsets(random, c) for n, c in zip(names, counts)]}


def group_rows(groups: int, partitions: int = 50, seed: int = 0, giants: int = 0) -> Iterator[dict]:
    "Rows of `groups` groups with `partitions` partitions on average, and of `giants` of a million."
    random = np.random.default_rng(seed)
    sizes = random.lognormal(0, 0.8, groups)
    sizes = np.maximum(1, np.rint(sizes / sizes.mean() * partitions)).astype(int)
    members = np.clip(np.rint(random.lognormal(1.6, 0.8, groups)), 1, 500).astype(int)
    topics = random.geometric(1 / 3.6, groups)
    shape = random.choice(SHAPES, groups, p=[0.86] + [0.028] * 5)
    for number in range(groups):
        yield group_row(random, number, shape[number], members[number], topics[number], sizes[number])
    for number in range(groups, groups + giants):
        yield group_row(random, number, "equal", 2_000, 100, 1_000_000)


def fleet(groups: int, partitions: int = 50, seed: int = 0, giants: int = 0) -> pa.Table:
    "A fleet as the table that sources deliver, 1,000 groups a chunk."
    rows, batches = [], []
    for row in group_rows(groups, partitions, seed, giants):
        rows.append({"source": "generated", "position": len(batches) * 1_000 + len(rows) + 1} | row)
        if len(rows) == 1_000:
            batches.append(pa.RecordBatch.from_pylist(rows, ROWS))
            rows = []
    return pa.Table.from_batches(batches + ([pa.RecordBatch.from_pylist(rows, ROWS)] if rows else []), ROWS)
