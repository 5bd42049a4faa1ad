"""Fleets to measure with: seeded, so that two runs see the same, and shaped like the real thing.

A fleet is a table of rows of groups. Partitions and members of a group are log-normal: most groups are small, a few
are large. In six of seven groups all members subscribe to the same topics; the others are the families (`families.py`)
on which assignors differ. One group in three is in some disorder. A broker knows the log end and the committed offset
of each partition; some partitions have no commit.
"""
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent))

from families import subscriptions

from kafka_assign.fleet.schemas import GROUP_SCHEMA

SHAPES = ["HOMOGENEOUS", "DISJOINT_FINE", "NESTED_FINE", "RANDOM50", "RANDOM5", "ONE_NARROW"]
WORDS = "orders billing search fraud events clicks stock mail audit prices media risk".split()


def owners(random: np.random.Generator, subscribed: np.ndarray, counts: np.ndarray) -> np.ndarray:
    "Owners in turn; in a group in disorder, a tenth belongs to random subscribers and a twentieth to no member."
    owner, disorder = [], random.random() < 0.33
    for topic, count in enumerate(counts):
        subscribers = np.flatnonzero(subscribed[:, topic])
        if not len(subscribers):
            owner.append(np.full(count, -1))
            continue
        in_turn = subscribers[np.arange(count) % len(subscribers)]
        if disorder:
            in_turn = np.where(random.random(count) < 0.1, random.choice(subscribers, count), in_turn)
            in_turn = np.where(random.random(count) < 0.05, -1, in_turn)
        owner.append(in_turn)
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
    subscribed = subscriptions(random, shape, members, topics)
    owner, topic = owners(random, subscribed, counts), np.repeat(np.arange(topics), counts)
    place = np.arange(partitions) - np.repeat(np.cumsum(counts) - counts, counts)
    claims = held(owner, topic, place, members)
    rows = [{
        "id": f"consumer-{member + 1}-{random.bytes(8).hex()}", "client_id": f"consumer-{member + 1}",
        "host": f"/10.0.{number % 256}.{member % 256}",
        "topics": [names[t] for t in np.flatnonzero(subscribed[member])],
        "owned": [{"topic": names[t], "partitions": numbers} for t, numbers in claims[member]],
        "generation": 7} for member in range(members)]
    return {
        "cluster": f"cluster-{number % 7}", "group_id": f"{WORDS[number % len(WORDS)]}-{number}",
        "time": "2025-01-01T00:00:00Z", "type": "classic", "state": "Stable", "strategy": "range", "generation": 7,
        "members": rows,
        "topics": [{"topic": n, "partitions": int(c)} | offsets(random, c) for n, c in zip(names, counts)]}


def group_rows(groups: int, partitions: int = 50, seed: int = 0, giants: int = 0) -> Iterator[dict]:
    "Rows of `groups` groups with `partitions` partitions on average, and of `giants` groups with a million."
    random = np.random.default_rng(seed)
    sizes = random.lognormal(0, 0.8, groups)
    sizes = np.maximum(1, np.rint(sizes / sizes.mean() * partitions)).astype(int)
    members = np.clip(np.rint(random.lognormal(1.6, 0.8, groups)), 1, 500).astype(int)
    topics = random.geometric(1 / 3.6, groups)
    shape = random.choice(SHAPES, groups, p=[0.86] + [0.028] * 5)
    for number in range(groups):
        yield group_row(random, number, shape[number], members[number], topics[number], sizes[number])
    for number in range(groups, groups + giants):
        yield group_row(random, number, "HOMOGENEOUS", 2_000, 100, 1_000_000)


def fleet(groups: int, partitions: int = 50, seed: int = 0, giants: int = 0) -> pa.Table:
    "A fleet as a table of rows of groups, in chunks of 1,000."
    rows, batches = [], []
    for row in group_rows(groups, partitions, seed, giants):
        rows.append({"source": "generated", "position": len(batches) * 1_000 + len(rows) + 1} | row)
        if len(rows) == 1_000:
            batches.append(pa.RecordBatch.from_pylist(rows, GROUP_SCHEMA))
            rows = []
    if rows:
        batches.append(pa.RecordBatch.from_pylist(rows, GROUP_SCHEMA))
    return pa.Table.from_batches(batches, GROUP_SCHEMA)
