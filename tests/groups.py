"""Random consumer groups for property tests, awkward ones included."""

import struct
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from kafka_assign import Group, Member
from kafka_assign.arrays.columns import Columns
from kafka_assign.fleet.codec import row_from_group
from kafka_assign.fleet.schemas import GROUP_SCHEMA
from kafka_assign.arrays.ragged import row_offsets
from kafka_assign.protocol.wire import (
    Claims, encode_cooperative, encode_sticky, encode_stream_join)

NAMES = ["a", "B", "c1", "c10", "c2", "t.x", "t_x", "é", "\U0001F600", "\uff41", "-"]


# Building a strategy takes longer than drawing from it, so each is built once.
GENERATIONS = st.integers(-1, 2)
VERSIONS = st.none() | st.integers(0, 4)
RACKS = st.none() | st.sampled_from(["r1", "r2"])
EPOCHS = st.integers(-1, 3)
NUMBERS = st.integers(-1, 7)
LAGS = st.integers(-1, 2**57)
REPLICAS = st.lists(st.sampled_from(["r1", "r2", "r3"]), max_size=2)


@cache
def lists(of, least, most):
    return st.lists(of, min_size=least, max_size=most)


@cache
def topic_counts(max_topics, max_partitions):
    return st.dictionaries(st.sampled_from(NAMES), st.integers(0, max_partitions), max_size=max_topics)


@cache
def member_ids(max_members):
    return st.lists(st.sampled_from(NAMES), unique=True, max_size=max_members)


@cache
def subscriptions(topics):
    """What a member may subscribe to: some of the topics, in any order, repeated ones included."""
    return st.lists(st.sampled_from(topics), max_size=len(topics) + 1)


@cache
def claims_on(topics, max_partitions, most=8):
    """What a member may claim of the topics."""
    return st.lists(st.tuples(st.sampled_from(topics), st.integers(-1, max_partitions)), max_size=most)


@cache
def instance_ids(member):
    return st.none() | st.sampled_from(NAMES).map(lambda name: name + member)


@st.composite
def groups(draw, max_topics=5, max_members=6, max_partitions=7):
    """A group of any shape: no members, no topics, no partitions, missing metadata, static members, void claims."""
    topics = draw(topic_counts(max_topics, max_partitions))
    asked = (*sorted(topics), "missing")
    members = [Member(
        name, draw(subscriptions(asked)), owned=draw(claims_on(asked, max_partitions)), generation=draw(GENERATIONS),
        instance_id=draw(instance_ids(name)), rack=draw(RACKS), version=draw(VERSIONS))
        for name in draw(member_ids(max_members))]
    lag, racks = (
        draw(st.none() | st.fixed_dictionaries({name: lists(of, count, count) for name, count in topics.items()}))
        for of in (LAGS, REPLICAS))
    return Group(topics, draw(st.permutations(members)), lag=lag, partition_racks=racks)


@st.composite
def sent_claims(draw, rule, member, topics):
    """User data, what its member claims by a rule (pairs, and their generation), and whether the bytes mean any."""
    pairs = draw(claims_on(topics, 7, most=6))
    numbers, generation = draw(lists(NUMBERS, 0, 3)), draw(EPOCHS)
    said = {"sticky": [(encode_sticky(Claims(pairs, generation)), (pairs, generation)),
                       (encode_sticky(Claims(pairs), version=0), (pairs, -1))],
            "cooperative": [(encode_sticky(Claims(pairs, generation)), (pairs, generation)),
                            (encode_cooperative(generation), ((), generation))],
            "stream-join": [(encode_stream_join(numbers, generation),
                             ([(topic, number) for topic in member.topics for number in numbers], generation))]}
    data, claims = draw(st.sampled_from([*said[rule], (None, None), (b"", ((), -1)), (b"?", None),
                                         (b"\0\0\0\x09!", None)]))
    by_subscription = rule == "cooperative" and member.generation >= 0
    if data is None or by_subscription:
        return data, (member.owned, member.generation), True
    if rule == "cooperative" and member.owned:                 # these decide, the bytes only say when
        return data, (member.owned, claims[1] if claims else -1), claims is not None
    return data, claims or ((), -1), claims is not None


@st.composite
def sending_groups(draw, rule):
    """A group whose members send user data; the group in which they claim the same by name; who sends nonsense."""
    group = draw(groups())
    sent, told, lost, numbers = [], [], set(), {}
    for member in (group.details[at] for at in group.listed):
        data, (owned, generation), understood = draw(sent_claims(rule, member, (*group.topics, "missing")))
        if data and understood:
            numbers[member.id] = generation, struct.unpack(f">{len(data) // 4}i", data[:len(data) // 4 * 4])[1:-1]
        sent.append(replace(member, user_data=data))
        listed = data is None or rule == "cooperative" and understood      # else the bytes alone decide
        told.append(replace(member, owned=owned, generation=generation, version=member.version if listed else None))
        lost |= set() if understood else {member.id}
    if rule == "stream-join":
        told = [replace(member, owned=[own for own in member.owned if own[1] not in lost_numbers(member.id, numbers)])
                if member.id in numbers else member for member in told]
        lost |= {name for name in numbers if lost_numbers(name, numbers)}
    return group.replace(members=sent), group.replace(members=told), lost


def lost_numbers(name, sent):
    """The numbers of a member that another one claims in the same or a later epoch; `sent`: epoch, numbers of each."""
    return {number for number in sent[name][1] for other, (epoch, numbers) in sent.items()
            if other != name and number in numbers and epoch >= sent[name][0]}


def owners(group):
    """Owner columns of a group in which only subscribers own anything."""
    choices = [st.sampled_from([-1, *group.subscribers(group.topics[topic]).tolist()])
               for topic in group.columns.topic_of]
    return st.tuples(*choices).map(list)


def subscription_table(random, kind, topics, members):
    """Who subscribes to what, topics x members: at random, nested, or like scales."""
    if kind == "random":
        return random.random((topics, members)) < random.choice([.1, .3, .6])
    if kind == "nested":
        return np.arange(topics)[:, None] <= np.sort(random.integers(0, topics, members))
    return (np.arange(topics)[:, None] - np.arange(members) * topics // members) % topics < 3


def crowded_group(random, kind):
    """A group of which some members own a lot, as columns."""
    topics, members = int(random.integers(1, 20)), int(random.integers(2, 25))
    reads = subscription_table(random, kind, topics, members)
    counts = random.integers(0, random.choice([3, 30, 200]), topics)
    weight = random.random(members) ** random.choice([0, 3]) * reads
    previous = np.full(int(counts.sum()), -1, np.int32)
    for topic, (begin, count) in enumerate(zip(row_offsets(counts), counts)):
        if reads[topic].any():
            owners = random.choice(members, count, p=weight[topic] / weight[topic].sum())
            previous[begin:begin + count] = np.where(random.random(count) < .8, owners, -1)
    return Columns(np.array([0, topics]), np.array([0, members]), counts, np.zeros(topics, bool),
                   row_offsets(reads.sum(1)), np.nonzero(reads)[1].astype(np.int32),
                   np.arange(members, dtype=np.int32), previous)


def rows_of_groups(fleet):
    """A table of groups, as Parquet may hold it."""
    return pa.Table.from_pylist([row_from_group(group) for group in fleet], GROUP_SCHEMA)
