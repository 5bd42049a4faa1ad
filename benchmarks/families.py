"""Groups as arrays: families of subscriptions, sizes of topics and events of Kafka's benchmark of consumer assignors.

From its `ConsumerAssignorBenchmark` (jmh-benchmarks, trunk of 2026): topics EQUAL or SKEWED; HOMOGENEOUS, DISJOINT and
NESTED subscriptions, where members go in turn into five buckets and topics, largest first, into as many ranges; the
events from FULL to PARTITIONS_ADDED, members with the highest numbers joining and leaving, a tenth rounded up.

Not from there: DISJOINT_FINE and NESTED_FINE have as many buckets as topics, so that every topic is a group of its own,
or has subscribers of its own; RANDOM50 and RANDOM5 subscribe to each topic with 50 or 5 %; of ONE_NARROW one member
reads one topic and all others everything; RANDOM_OWNERS is what no assignor would have left behind. Before an event
the assignor under test had assigned, so that all assignors compared start from the same owners.
"""
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kafka_assign import Group
from kafka_assign.arrays.columns import Racks

SHAPES = ["HOMOGENEOUS", "DISJOINT", "NESTED", "DISJOINT_FINE", "NESTED_FINE", "RANDOM50", "RANDOM5", "ONE_NARROW"]
EVENTS = ["FULL", "STABLE", "JOIN_ONE", "JOIN_MANY", "LEAVE_ONE", "LEAVE_MANY", "PARTITIONS_ADDED", "RANDOM_OWNERS"]
MEMBERS_AND_TOPICS = {10: (3, 2), 100: (10, 5), 1_000: (50, 50), 10_000: (200, 100), 100_000: (1_000, 200),
                      1_000_000: (2_000, 500)}
BUCKETS = 5


class Arrays(NamedTuple):
    "A group as `Group.from_arrays` takes it: names in order, so nothing has to be sorted."
    topics: list[str]
    partitions: np.ndarray
    members: list[str]
    subscriptions: np.ndarray
    previous: np.ndarray | None = None
    lag: np.ndarray | None = None
    racks: int = 0

    def group(self) -> Group:
        "The group; members are in its racks in turn, and partition n has replicas in two, from the nth on."
        *given, racks = self
        group = Group.from_arrays(*given)
        if not racks:
            return group
        first = group.columns.number
        where = Racks(np.arange(len(self.members)) % racks, 2 * np.arange(len(first) + 1),
                      (np.stack([first, first + 1], axis=1) % racks).ravel())
        return Group.from_columns(replace(group.columns, racks=where), group.topics, group.members)


# --- who reads what -------------------------------------------------------------------------------------------------

def in_buckets(members: int, topics: int, buckets: int) -> tuple[np.ndarray, np.ndarray]:
    "The bucket of each member, as a column, and the range of each topic: in turn, and one after the other."
    begin = topics * np.arange(1, buckets) // buckets
    return np.arange(members)[:, None] % buckets, np.searchsorted(begin, np.arange(topics), side="right")


def everything(random: np.random.Generator, members: int, topics: int) -> np.ndarray:
    "Everybody reads everything."
    return np.ones((members, topics), bool)


def disjoint(random: np.random.Generator, members: int, topics: int, buckets: int = BUCKETS) -> np.ndarray:
    "The members of a bucket read a range of topics that nobody else reads."
    bucket, place = in_buckets(members, topics, min(buckets, members, topics))
    return place == bucket


def nested(random: np.random.Generator, members: int, topics: int, buckets: int = BUCKETS) -> np.ndarray:
    "The members of a bucket read its range of topics and all before."
    bucket, place = in_buckets(members, topics, min(buckets, members, topics))
    return place <= bucket


def disjoint_fine(random: np.random.Generator, members: int, topics: int) -> np.ndarray:
    "As many buckets as topics: every topic has readers that read nothing else."
    return disjoint(random, members, topics, topics)


def nested_fine(random: np.random.Generator, members: int, topics: int) -> np.ndarray:
    "As many buckets as topics: no two topics have the same readers."
    return nested(random, members, topics, topics)


def random_half(random: np.random.Generator, members: int, topics: int) -> np.ndarray:
    "Everybody reads about half of the topics."
    return random.random((members, topics)) < 0.5


def random_twentieth(random: np.random.Generator, members: int, topics: int) -> np.ndarray:
    "Everybody reads about one topic in twenty."
    return random.random((members, topics)) < 0.05


def one_narrow(random: np.random.Generator, members: int, topics: int) -> np.ndarray:
    "One member reads one topic, the others everything."
    reads = np.ones((members, topics), bool)
    reads[0, 1:] = False
    return reads


READERS = dict(zip(SHAPES, [everything, disjoint, nested, disjoint_fine, nested_fine, random_half, random_twentieth,
                            one_narrow]))


def subscriptions(random: np.random.Generator, shape: str, members: int, topics: int) -> np.ndarray:
    "Who reads what, bool, members x topics, of the family `shape`."
    return READERS[shape](random, members, topics)


# --- how large topics are -------------------------------------------------------------------------------------------

def tiers(topics: int) -> list[int]:
    "Topics in each tier of SKEWED, the tier of the smallest first: two thirds, then always a third of the one before."
    sizes, share = [], 2 / 3
    while sum(sizes) < topics:
        sizes.append(min(topics - sum(sizes), max(1, round(topics * share))))
        share /= 3
    return sizes


def skewed_counts(partitions: int, topics: int) -> np.ndarray:
    "SKEWED, largest first: two topics in three have one partition, a tier of the rest twice as many as the one before."
    sizes = tiers(topics)
    weight = np.repeat(2 ** np.arange(len(sizes) - 1), sizes[1:])[::-1]
    rest = partitions - sizes[0]
    if weight.sum() > rest:                                # too few to double from tier to tier
        weight = np.ones(topics - sizes[0], np.int64)
    upto = np.cumsum(weight) * rest // weight.sum()
    return np.concatenate([np.diff(upto, prepend=0), np.ones(sizes[0], np.int64)])


def topic_counts(partitions: int, topics: int, skewed: bool) -> np.ndarray:
    "Partitions of each topic, EQUAL but for the remainder, or SKEWED."
    if skewed and topics > 1:
        return skewed_counts(partitions, topics)
    return partitions // topics + (np.arange(topics) < partitions % topics)


def arrays(shape: str, partitions: int, members: int, topics: int, skewed: bool = False, seed: int = 0) -> Arrays:
    "A group of the family `shape` in which nobody owned anything."
    random = np.random.default_rng(seed)
    counts = topic_counts(partitions, topics, skewed)
    reads = subscriptions(random, shape, members, topics)
    lag = random.lognormal(4, 1, int(counts.sum())).astype(np.int64)
    return Arrays([f"topic-{i:06}" for i in range(topics)], counts, member_names(members), reads, lag=lag)


def member_names(members: int) -> list[str]:
    "Names in order."
    return [f"member-{i:06}" for i in range(members)]


# --- what happened --------------------------------------------------------------------------------------------------

def with_members(of: Arrays, members: int) -> Arrays:
    "The group with its first members only, or with more that subscribe like its last."
    more = max(0, members - len(of.members))
    reads = np.concatenate([of.subscriptions, of.subscriptions[len(of.members) - more:]])[:members]
    return of._replace(members=member_names(members), subscriptions=reads)


def with_partitions(of: Arrays) -> Arrays:
    "The group after a tenth of the topics, at regular intervals, got a partition more that nobody owns."
    topics = len(of.topics)
    grown = np.arange(-(-topics // 10)) * topics // -(-topics // 10)
    end = np.cumsum(of.partitions)[grown]
    lag = None if of.lag is None else np.insert(of.lag, end, 0)
    counts = of.partitions + np.isin(np.arange(topics), grown)
    return of._replace(partitions=counts, previous=np.insert(of.previous, end, -1), lag=lag)


def any_owner(of: Arrays, seed: int = 0) -> np.ndarray:
    "For each partition any of its readers."
    topic = np.repeat(np.arange(len(of.topics)), of.partitions)
    readers_first = np.argsort(-of.subscriptions.astype(np.int8), axis=0, kind="stable").astype(np.int32)
    readers = of.subscriptions.sum(axis=0)[topic]
    chosen = readers_first[(np.random.default_rng(seed).random(len(topic)) * readers).astype(np.int64), topic]
    return np.where(readers > 0, chosen, np.int32(-1))


def events(full: Arrays, assign: Callable[[Group], np.ndarray]) -> Iterator[tuple[str, Arrays]]:
    "The group in all moments of `EVENTS`, in their order; `assign` makes the owners before."
    count, many = len(full.members), -(-len(full.members) // 10)
    before = {"STABLE": count, "JOIN_ONE": count - 1, "JOIN_MANY": count - many, "LEAVE_ONE": count + 1,
              "LEAVE_MANY": count + many}
    yield "FULL", full
    for event, members in before.items():
        owner = assign(with_members(full, members).group())
        had = full._replace(previous=np.where(owner < count, owner, np.int32(-1)))
        yield event, had
        if event == "STABLE":
            added = with_partitions(had)
    yield "PARTITIONS_ADDED", added
    yield "RANDOM_OWNERS", full._replace(previous=any_owner(full))
