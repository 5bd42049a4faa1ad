"""What `sticky` costs for many small groups: in one call, and in batches of 1,000.

Beside it `range` over the same columns, and what pyarrow needs to read these groups from Parquet: zstd, 10,000 groups
a row group, only the fields that are used, one thread. Twice: with the checks that `run_many` makes of every answer,
and without them, the functions alone. CPU, medians, the rounds alternating, everything in one process.

    python benchmarks/small.py [groups]
"""
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent))

from clock import verdict
from families import Arrays, member_names, subscriptions
from fleets import SHAPES, held
from record import record

from kafka_assign.assignors.registry import resolve
from kafka_assign.arrays.columns import Columns, side_by_side
from kafka_assign.fleet.schemas import GROUP_SCHEMA

TIMES, BATCH = 9, 1_000
MOST = {"one call": (8, 3), f"batches of {BATCH:,}": (12, 4)}          # times range, times reading
USED = ["group_id", "members.list.element.id", "members.list.element.instance_id",
        "members.list.element.topics.list.element", "members.list.element.owned.list.element.topic",
        "members.list.element.owned.list.element.partitions.list.element", "members.list.element.generation",
        "topics.list.element.topic", "topics.list.element.partitions"]


# --- the groups -----------------------------------------------------------------------------------------------------

def dealt_in_turn(random: np.random.Generator, reads: np.ndarray, counts: np.ndarray) -> np.ndarray:
    "Owners of all partitions: those of each topic dealt in turn to its readers, beginning with any of them."
    owner = []
    for topic, count in enumerate(counts):
        readers = np.flatnonzero(reads[:, topic])
        first = random.integers(0, max(len(readers), 1))
        owner.append(readers[(np.arange(count) + first) % len(readers)] if len(readers) else np.full(count, -1))
    return np.concatenate(owner)


def without_one(of: Arrays, gone: int) -> Arrays:
    "The group after a member left."
    place = np.append(np.arange(len(of.members)), -1)
    place[gone], place[gone + 1:-1] = -1, place[gone + 1:-1] - 1
    return of._replace(members=of.members[:-1], subscriptions=np.delete(of.subscriptions, gone, axis=0),
                       previous=place[of.previous])


def small_groups(groups: int, seed: int = 3) -> Iterator[Arrays]:
    """Small groups as there are most: log-normal, 1 to 50 members, 1 to 500 partitions, some three or four topics.

    Fifteen in a hundred do not subscribe alike. Three in four have lived: everything was dealt, and one member left.
    """
    random = np.random.default_rng(seed)
    for _ in range(groups):
        members = int(np.clip(np.rint(random.lognormal(1.6, 0.8)), 1, 50))
        partitions = int(np.clip(np.rint(random.lognormal(3.7, 0.9)), 1, 500))
        topics = min(int(random.geometric(1 / 3.6)), partitions)
        counts = 1 + random.multinomial(partitions - topics, random.dirichlet(np.ones(topics)))
        shape = random.choice(SHAPES, p=[0.85] + [0.03] * 5)
        reads = subscriptions(random, shape, members, topics)
        if shape == "RANDOM5":                                     # one in twenty would be next to nobody here
            reads = random.random((members, topics)) < 0.2
        group = Arrays([f"topic-{i:03}" for i in range(topics)], counts, member_names(members), reads)
        if random.random() < 0.75:
            group = group._replace(previous=dealt_in_turn(random, reads, counts))
            group = without_one(group, int(random.integers(0, members))) if members > 1 else group
        yield group


def rows_of(groups: list[Arrays]) -> pa.Table:
    "Groups as the table that sources deliver."
    rows = []
    for number, of in enumerate(groups):
        topic = np.repeat(np.arange(len(of.topics)), of.partitions)
        place = np.arange(len(topic)) - np.repeat(np.cumsum(of.partitions) - of.partitions, of.partitions)
        claims = [[]] * len(of.members) if of.previous is None else held(of.previous, topic, place, len(of.members))
        members = [{"id": id_, "topics": [of.topics[t] for t in np.flatnonzero(reads)], "generation": 7,
                    "owned": [{"topic": of.topics[t], "partitions": numbers} for t, numbers in mine]}
                   for id_, reads, mine in zip(of.members, of.subscriptions, claims)]
        rows.append({"source": "generated", "position": number + 1, "group_id": f"group-{number}", "members": members,
                     "topics": [{"topic": t, "partitions": int(c)} for t, c in zip(of.topics, of.partitions)]})
    return pa.Table.from_pylist(rows, GROUP_SCHEMA)


# --- the clock ------------------------------------------------------------------------------------------------------

def medians(functions: dict[str, tuple[Callable, list[Columns]]]) -> dict[str, float]:
    "CPU milliseconds of each function, given fresh columns each time, in alternation."
    taken = {name: [] for name in functions}
    for _ in range(TIMES + 1):
        for name, (function, batches) in functions.items():
            fresh = [replace(columns) for columns in batches]               # nothing derived from them is kept
            begin = time.process_time()
            for columns in fresh:
                function(columns)
            taken[name].append(time.process_time() - begin)
    return {name: median(times[1:]) * 1e3 for name, times in taken.items()}     # the first round only warms up


def read(path: str, _: Columns) -> pa.Table:
    "All groups, only the fields used, with one thread."
    return pq.ParquetFile(path).read(columns=USED, use_threads=False)


def same_as_alone(whole: Columns, parts: list[Columns]) -> bool:
    "Whether the first groups of a union are answered as they are alone."
    sticky = resolve("sticky").function
    alone = [np.where(one >= 0, one + first, -1) for one, first in zip(map(sticky, parts), whole.member_offsets)]
    answer = np.concatenate(alone)
    return np.array_equal(answer, sticky(whole)[:len(answer)])


def show(what: str, taken: dict[str, float], most: tuple[int, int], groups: int) -> None:
    "One line of results beside what is asked."
    print(f"  {what:16}", *(f"{name} {ms / groups * 1e3:6.2f}" for name, ms in taken.items()), end="")
    for name, bound in zip(("range", "reading"), most):
        ratio = taken["sticky"] / taken[name]
        print(f"   {ratio:5.1f} x {name} (asked {bound}: {verdict(ratio <= bound)})", end="")
    print(flush=True)


def main(groups: int = 10_000) -> None:
    "Generate the groups, then measure."
    arrays = list(small_groups(groups))
    parts = [of.group().columns for of in arrays]
    whole = side_by_side(parts)
    print(f"{groups:,} groups, {whole.member_count:,} members, {whole.topic_count:,} topics, {whole.size:,} partitions")
    batches = [side_by_side(parts[first:first + BATCH]) for first in range(0, groups, BATCH)]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/groups.parquet"
        pq.write_table(rows_of(arrays), path, compression="zstd", row_group_size=10_000)
        rows = []
        for (what, most), columns in zip(MOST.items(), ([whole], batches)):
            print(f"\n{what}, CPU ms per 1,000 groups")
            for checked in ("run_many", "function"):
                run = {name: (getattr(resolve(name), checked), columns) for name in ("range", "sticky")}
                taken = medians(run | {"reading": (partial(read, path), [whole])})
                show("with checks" if checked == "run_many" else "functions alone", taken, most, groups)
                rows.append({"call": what, "checked": checked == "run_many", "groups": groups,
                             **{name: ms / 1e3 for name, ms in taken.items()}})
    record("small groups", rows)
    print("\nas one by one:", same_as_alone(whole, parts[:BATCH]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
