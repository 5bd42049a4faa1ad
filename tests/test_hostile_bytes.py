"""Bytes that nobody should have sent: what is read from them, beside a second reader, and how much memory it takes."""
import logging
import random
import struct
import tracemalloc
from io import BytesIO

import numpy as np
import pytest
from conftest import LONG

from kafka_assign import Group, Member, assign
from kafka_assign.protocol.wire import (
    Assigned, Claims, Subscription, TopicPartitions, WireError, decode_assignment,
    decode_cooperative, decode_epoch, decode_sticky, decode_stream_join, decode_subscription,
    encode_assignment, encode_cooperative, encode_epoch, encode_sticky, encode_stream_join,
    encode_subscription)

MANY = 100_000 if LONG else 2_000
GROUPS = 1_000 if LONG else 150


@pytest.fixture(autouse=True)
def no_warnings():
    """A warning for each of many thousand blobs would be kept by pytest."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


# --- the format, read a second time: slowly, and straight from its description ---------------------------------------

class Malformed(Exception):
    pass


def take(file, size):
    data = file.read(size) if size >= 0 else b""
    if len(data) != size:
        raise Malformed
    return data


def number(file, kind=">i"):
    return struct.unpack(kind, take(file, struct.calcsize(kind)))[0]


def array(file, item):
    count = number(file)
    if count < 0:
        raise Malformed
    found = []
    while len(found) < count:                                # ends where the bytes end
        found.append(item(file))
    return found


def text(file):
    try:
        return take(file, number(file, ">h")).decode("utf-8", "strict")
    except UnicodeDecodeError:
        raise Malformed from None


def nullable(file):
    size = number(file)
    return None if size < 0 else take(file, size)


def rack(file):
    start = file.tell()
    if number(file, ">h") <= 0:
        return None
    file.seek(start)
    return text(file)


def partitions(file):
    rows = array(file, lambda file: (text(file), array(file, number)))
    return tuple((topic, partition) for topic, numbers in rows for partition in numbers)


def version(file):
    found = number(file, ">h")
    if found < 0:
        raise Malformed
    return found


def subscription(file):
    known, topics = version(file), tuple(array(file, text))
    value = Subscription(topics)
    try:
        value = value._replace(user_data=nullable(file))
        if known == 1 and not file.read():
            return value._replace(version=1)
        file.seek(2)
        array(file, text), nullable(file)
        owned = partitions(file) if known >= 1 else ()
        generation = number(file) if known >= 2 else -1
        found = rack(file) if known >= 3 else None
        return value._replace(owned=owned, generation=generation, rack=found, version=known)
    except Malformed:
        return value


def assignment(file):
    version(file)
    return Assigned(partitions(file), nullable(file))


def sticky(file, start=0):
    file.seek(start)
    try:
        owned = partitions(file)
    except Malformed:
        file.seek(0)
        if start or file.read(2) != b"\0\1":
            raise
        return sticky(file, start=2)
    try:
        return Claims(owned, number(file))
    except Malformed:
        return Claims(owned, -1)


def cooperative(file):
    try:
        value = Claims(partitions(file), number(file))
        if not file.read():
            return value
    except Malformed:
        pass
    file.seek(0)
    return Claims((), number(file))


def stream_join(file):
    return array(file, number), number(file)


READERS = {decode_subscription: (subscription, WireError), decode_assignment: (assignment, WireError),
           decode_sticky: (sticky, Claims()), decode_cooperative: (cooperative, Claims()),
           decode_stream_join: (stream_join, ([], -1)), decode_epoch: (number, -1)}


def expected(decode, data):
    read, otherwise = READERS[decode]
    try:
        return read(BytesIO(data))
    except Malformed:
        return otherwise


def found(decode, data):
    try:
        return decode(data)
    except WireError:
        return WireError


# --- bytes -----------------------------------------------------------------------------------------------------------

NAMES = ["t", "t0", "orders.eu", "é", "\U0001F600", "", "a" * 200]
NUMBERS = [-2**31, -1, 0, 1, 5, 2**31 - 1]


def valid(chance):
    """A blob that some client might send."""
    many, rack = chance.choice([0, 1, 3, 40]), chance.choice([None, "r"])
    owned = [(chance.choice(NAMES), chance.choice([*NUMBERS, *range(50)])) for _ in range(many)]
    generation, numbers = chance.choice(NUMBERS), [partition for _, partition in owned]
    data = chance.choice([None, b"", encode_sticky(Claims(owned, generation))])
    return chance.choice([
        lambda: encode_subscription(
            Subscription(chance.sample(NAMES, 3), data, owned, generation, rack), version=chance.randrange(4)),
        lambda: encode_assignment(Assigned(owned, data)), lambda: encode_sticky(Claims(owned, generation), version=1),
        lambda: encode_sticky(Claims(owned), version=0), lambda: b"\0\1" + encode_sticky(Claims(owned, generation)),
        lambda: encode_cooperative(generation), lambda: encode_stream_join(numbers, generation),
        lambda: encode_epoch(generation)])()


def mutated(chance, data, other):
    """The same blob with one to three mistakes in it."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        begin, end = sorted(chance.randint(0, len(data)) for _ in range(2))
        kind = chance.randrange(6)
        if kind == 0 and begin < len(data):                                             # flip
            data[begin] ^= 1 << chance.randrange(8)
        elif kind == 1:                                                                 # truncate
            del data[begin:]
        elif kind == 2:                                                                 # insert
            data[begin:begin] = chance.randbytes(chance.randint(1, 9))
        elif kind == 3:                                                                 # duplicate
            data[end:end] = data[begin:end]
        elif kind == 4:                                                                 # splice
            data[begin:] = other[chance.randint(0, len(other)):]
        else:                                                                           # a count
            absurd = chance.choice([-2**31, -2, -1, 0, 2, 255, 2**16, 2**20, 2**24, 2**30, 2**31 - 1])
            data[begin:begin + 4] = struct.pack(">i", absurd)
    return bytes(data)


def mutations(seed, count):
    chance = random.Random(seed)
    for _ in range(count):
        yield mutated(chance, valid(chance), valid(chance))


def noise(seed, count):
    """Random bytes, most of them small numbers, as in what is valid."""
    chance = random.Random(seed)
    for _ in range(count):
        size = chance.choice([0, 1, 4, 9, 30, 200])
        small = bytes(chance.choices([0, 0, 0, 1, 2, 97, 255], k=size))
        yield chance.randbytes(size) if chance.random() < .3 else small


SOURCES = pytest.mark.parametrize("source", [mutations, noise])


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


def peak(function, *arguments):
    """What a call returns, and the most memory that it held beyond what there was before."""
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    value = function(*arguments)
    return value, tracemalloc.get_traced_memory()[1] - before


def allowed(size):
    return 64 * size + 64 * 1024


@SOURCES
def test_every_decoder_finds_what_is_described_or_nothing(source):
    values = dict.fromkeys(READERS, 0)
    for data in source(1, MANY):
        for decode in READERS:
            wanted = expected(decode, data)
            assert found(decode, data) == wanted, (decode.__name__, data.hex())
            values[decode] += wanted != READERS[decode][1]
    assert all(values.values())                              # each finds something, too


@SOURCES
def test_memory_stays_in_proportion_to_the_bytes(source, traced):
    for data in source(2, MANY):
        for decode in READERS:
            _, most = peak(found, decode, data)
            assert most <= allowed(len(data)), (decode.__name__, data.hex())


# --- large ones ------------------------------------------------------------------------------------------------------

def rows(count, name, numbers):
    row = struct.pack(">h", len(name)) + name + struct.pack(f">{1 + len(numbers)}i", len(numbers), *numbers)
    return struct.pack(">i", count) + row * count


def different(count):
    """Topics of two letters and a digit, each with a partition."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = [one + other + str(digit) for one in letters for other in letters for digit in range(10)][:count]
    return encode_sticky(Claims(TopicPartitions(names, [1] * count, np.arange(count, dtype=np.int32)), 3))


LARGE = {
    "one topic": rows(1, b"t", range(25_000)) + b"\0\0\0\7", "topics without partitions": rows(16_000, b"", []),
    "topics of one partition": rows(9_000, b"t", [2**31 - 1]), "different topics": different(6_000),
    "a list of numbers": struct.pack(">25002i", 25_000, *range(25_001)),
    "empty names": struct.pack(">hi", 3, 48_000) + bytes(100_000), "zeros": bytes(100_000), "ones": b"\xff" * 100_000}


@pytest.mark.parametrize("name", LARGE)
def test_memory_for_large_blobs_with_absurd_counts(name, traced):
    data, chance = LARGE[name], random.Random(3)
    blobs, counts = [data, b"\0\3" + data], [2**31 - 1]
    if LONG:
        counts += [len(data) // 6, len(data) // 2, len(data) - 4, 2**24, -1]
        blobs += [struct.pack(">hi", 3, len(data)) + data, data[:-3]]
    for packed in (struct.pack(">i", count) for count in counts):
        at = chance.randrange(len(data))
        blobs += [packed + data[4:], data[:7] + packed + data[11:], data[:at] + packed + data[at + 4:]]
    for blob in blobs:
        for decode in READERS:
            value, most = peak(found, decode, blob)
            assert most <= allowed(len(blob)), (decode.__name__, most / len(blob))
            del value


def test_numbers_that_count_for_every_topic_take_bounded_memory(traced):
    numbers = encode_stream_join(range(25_000), 1)
    member = Member("m", [f"t{i}" for i in range(10_000)], user_data=numbers)
    group, most = peak(Group({"t0": 7}, [member, Member("n", ["t0"])]).decode_claims, "stream-join")
    assert most < 64 * 2**20 and group.previous.tolist() == [-1] * 7
    assert [(one.claim.member, "at most 4,194,304" in one.reason) for one in group.dropped] == [("m", True)]
    few = Group({"t0": 7}, [Member("m", ["t0", "t1"], user_data=numbers)]).decode_claims("stream-join")
    assert few.previous.tolist() == [0] * 7


@pytest.mark.parametrize("epochs", [range(300), [1] * 300])
def test_numbers_that_all_members_contest_take_bounded_memory(epochs, traced):
    """Each member claims the same numbers in topics of its own, which must not be compared pair by pair."""
    members = [Member(f"m{at:03}", [f"t{at}"], user_data=encode_stream_join(range(300), epoch))
               for at, epoch in enumerate(epochs)]
    group, most = peak(Group({"t0": 7, "t299": 7}, members).decode_claims, "stream-join")
    assert most < 64 * 2**20
    assert group.previous.tolist() == [-1] * 7 + [299 if epochs[0] == 0 else -1] * 7


# --- through a group -------------------------------------------------------------------------------------------------

STICKY = ["sticky", "cooperative-sticky", "kip54", "sticky-yet-fair"]
TOPICS = {"t": 7, "t0": 3, "é": 1, "empty": 0}


@pytest.mark.parametrize("strategy", [*STICKY, "range", "roundrobin", "fair", "fairness-only"])
@SOURCES
def test_a_group_forms_whatever_its_members_send(source, strategy):
    chance, decoded = random.Random(5), 0
    bytes_sent = source(6, 60 * GROUPS)
    for _ in range(GROUPS):
        subscriptions = [chance.sample([*TOPICS, "unknown"], chance.randint(0, 4))
                         for _ in range(chance.choice([1, 2, 3, 5, 8, 60]))]
        members = [Member(f"m{i}", topics, user_data=next(bytes_sent)) for i, topics in enumerate(subscriptions)]
        group = Group(TOPICS, members)
        assignment = assign(group, strategy)
        subscribed = {member.id: set(member.topics) for member in members}
        handed_out = [pair for owned in assignment.values() for pair in owned]
        assert len(handed_out) == len(set(handed_out))
        assert all(topic in subscribed[member] for member, owned in assignment.items() for topic, _ in owned)
        read = {topic for topics in subscribed.values() for topic in topics}
        wanted = {(topic, number) for topic, count in TOPICS.items() if topic in read for number in range(count)}
        withheld = {tuple(group.at(place)) for place in np.flatnonzero(assignment.withheld)}
        assert set(handed_out) | withheld == wanted and not withheld.intersection(handed_out)
        decoded += (assignment.group.previous >= 0).sum()
    assert decoded or source is noise or strategy not in STICKY


@pytest.mark.parametrize("junk", [b"\x7f\xff\xff\xff?", b"\x7f\xff\xff\xff" * 3,
                                  encode_sticky(Claims([("t", 1)], 99))[:-2]])
def test_junk_is_no_generation_that_wins_over_the_owner(junk):
    """`cooperative-sticky` trusted the first four bytes of any user data, so a zombie took the owner's partition."""
    owner = Member("a", ["t"], owned=[("t", 0)], generation=7)
    zombie = Member("b", ["t"], owned=[("t", 0)], user_data=junk)
    found = assign(Group({"t": 2}, [owner, zombie]), "cooperative-sticky")
    assert found.group.details[1].generation == -1 and found.withheld.tolist() == [True, False]
    assert [claim.member for claim, _ in found.group.dropped][-1] == "b"
