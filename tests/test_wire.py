"""Bytes as Kafka's own code writes and reads them, and bytes that nobody should have sent."""
import copy
import json
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign.protocol.java import java_sorted
from kafka_assign.protocol.wire import (
    Assigned, Claims, Subscription, TopicPartitions, WireError, decode_assignment,
    decode_cooperative, decode_epoch, decode_sticky, decode_stream_join, decode_subscription,
    encode_assignment, encode_assignments, encode_cooperative, encode_epoch, encode_sticky,
    encode_stream_join, encode_subscription)

REFERENCE = Path(__file__).parent / "reference"
DECODE = {"subscription": decode_subscription, "assignment": decode_assignment, "sticky": decode_sticky,
          "cooperative-sticky": decode_cooperative, "stream-join": decode_stream_join,
          "stream-join-epoch": decode_epoch}


def cases(name):
    "The vectors of a file."
    return [json.loads(line) for line in (REFERENCE / name).read_text(encoding="utf-8").splitlines()]


def pairs(listed):
    return tuple(map(tuple, listed))


def blob(text):
    return None if text is None else bytes.fromhex(text)


def value_of(kind, value, version=None):
    "The value that a vector describes, a subscription with the version that was sent."
    if kind == "subscription":
        return Subscription(tuple(value["topics"]), blob(value["user_data"]), pairs(value["owned"]),
                            value["generation"], value["rack"], version)
    if kind == "assignment":
        return Assigned(pairs(value["assigned"]), blob(value["user_data"]))
    if kind == "stream-join":
        return value["partitions"], value["epoch"]
    if kind == "stream-join-epoch":
        return value["epoch"]
    return Claims(pairs(value.get("owned", [])), value.get("generation", -1))


def encode(kind, value, version):
    "The bytes that ours writes for a value."
    if kind in ("subscription", "assignment", "sticky"):
        chosen = {"subscription": encode_subscription, "assignment": encode_assignment, "sticky": encode_sticky}[kind]
        return chosen(value, version=version)
    if kind == "stream-join":
        return encode_stream_join(*value)
    return encode_epoch(value) if kind == "stream-join-epoch" else encode_cooperative(value.generation)


@pytest.mark.parametrize("case", cases("wire.jsonl"), ids=lambda case: case["id"])
def test_as_java_writes_and_reads_it(case):
    kind, data = case["kind"], bytes.fromhex(case["hex"])
    version = int(case["hex"][:4], 16)
    value, read = (value_of(kind, case.get(name, case["value"]), version) for name in ("value", "decoded"))
    assert DECODE[kind](data) == read
    written = encode(kind, value, case.get("version"))
    assert DECODE[kind](written) == in_our_order(read)
    if case["canonical"]:
        assert written == data


def in_our_order(value):
    "The value with its topics and pairs as they are written."
    if isinstance(value, Subscription):
        return value._replace(topics=tuple(sorted(value.topics, key=java)), owned=sorted_pairs(value.owned))
    if isinstance(value, Assigned):
        return value._replace(assigned=sorted_pairs(value.assigned))
    return value._replace(owned=sorted_pairs(value.owned)) if isinstance(value, Claims) else value


def java(name):
    return name.encode("utf-16-be")


def sorted_pairs(listed):
    return tuple(sorted(listed, key=lambda pair: (java(pair[0]), pair[1])))


@pytest.mark.parametrize("case", cases("wire-malformed.jsonl"), ids=lambda case: case["id"])
def test_what_is_malformed_is_read_as_promised(case):
    kind, data, ours = case["kind"], blob(case["hex"]), case["ours"]
    try:
        found = DECODE[kind](data)
    except WireError:
        assert ours in ("error", "error or no ownership", "java or error"), case["why"]
        return
    assert ours != "error", case["why"]
    if kind == "subscription":
        found = found._replace(version=None)             # whether it could be decoded is not in the vectors
    if isinstance(ours, dict):
        assert found == value_of(kind, ours)
    elif ours == "nothing":
        assert found == Claims()
    elif "value" in case["java"] and ours != "error or no ownership":
        accepted = [value_of(kind, case["java"]["value"])]
        assert found in accepted + [Claims()] * (ours == "java or nothing"), case["why"]
    else:
        assert (tuple(found.owned), found.generation, found.rack) == ((), -1, None), case["why"]


# --- anything -------------------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(-2**31, 2**31 - 1)
PAIRS = st.lists(st.tuples(NAMES, NUMBERS), max_size=30)
BLOBS = st.none() | st.binary(max_size=20)
SUBSCRIPTIONS = st.builds(Subscription, st.lists(NAMES, max_size=5).map(tuple), BLOBS, PAIRS, NUMBERS,
                          st.none() | NAMES.filter(len))


@given(SUBSCRIPTIONS)
def test_a_subscription_comes_back(value):
    assert decode_subscription(encode_subscription(value)) == in_our_order(value)._replace(version=3)


@given(PAIRS, BLOBS, NUMBERS, st.permutations(range(30)))
def test_everything_else_comes_back_and_its_order_does_not_matter(owned, data, generation, order):
    shuffled = [owned[place] for place in order if place < len(owned)]
    ours = sorted_pairs(owned)
    assert decode_assignment(encode_assignment(Assigned(shuffled, data))) == Assigned(ours, data)
    assert decode_sticky(encode_sticky(Claims(shuffled, generation))) == Claims(ours, generation)
    assert encode_sticky(Claims(shuffled, generation)) == encode_sticky(Claims(owned, generation))
    numbers = [number for _, number in owned]
    assert decode_stream_join(encode_stream_join(numbers, generation)) == (sorted(numbers), generation)


@given(st.lists(PAIRS.map(set), max_size=5), BLOBS)
def test_many_assignments_are_those_of_each_member(rows, data):
    topics = java_sorted({topic for row in rows for topic, _ in row} | {"unused \ud800"})
    cells = [sorted((topics.index(topic), number) for topic, number in row) for row in rows]
    topic, number = np.array([cell for row in cells for cell in row], np.int64).reshape(-1, 2).T
    offsets = np.cumsum([0, *map(len, rows)])
    assert encode_assignments(topics, offsets, topic, number, data) == [
        encode_assignment(Assigned(list(row), data)) for row in rows]


@given(st.sampled_from(sorted(DECODE)), st.binary(max_size=200) | SUBSCRIPTIONS.map(encode_subscription), st.data())
def test_strange_bytes_are_a_value_or_an_error(kind, data, draw):
    data = bytearray(data[:draw.draw(st.integers(0, len(data)))])
    for place in draw.draw(st.lists(st.integers(0, max(len(data) - 1, 0)), max_size=4)) if data else []:
        data[place] = draw.draw(st.sampled_from([0, 1, 127, 128, 255]))
    try:
        DECODE[kind](bytes(data))
    except WireError as error:
        assert kind in ("subscription", "assignment") and str(error).isprintable()


# --- in bounds ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\x00\x10\x00\x00", b"\x80\x00\x00\x00"])
@pytest.mark.parametrize("kind", sorted(DECODE))
def test_counts_beyond_all_bytes_take_no_memory(kind, count):
    tracemalloc.start()
    for head in (b"", b"\0\3", b"\0\3" + b"\0" * 8, count, b"\0\0\0\1" + b"\0\2t0"):
        try:
            DECODE[kind](head + count + b"\0" * 40)
        except WireError:
            continue
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_warning_says_what_was_left_out(caplog):
    assert decode_sticky(b"\0\0\0\1\0\2\x1b[") == Claims()
    [record] = caplog.records
    assert record.levelname == "WARNING" and record.getMessage().isprintable()


def test_an_old_client_without_owned_partitions_needs_no_warning(caplog):
    assert decode_subscription(bytes.fromhex("00010000000100027430ffffffff")) == Subscription(("t0",), version=1)
    assert decode_sticky(b"") == decode_cooperative(b"") == Claims() and not caplog.records
    assert decode_subscription(bytes.fromhex("00010000000100027430ffffffff00000001")) == Subscription(("t0",))
    assert len(caplog.records) == 1                          # it says that a topic follows, and none does


@given(st.lists(st.tuples(NAMES, st.lists(NUMBERS, max_size=3)), max_size=4))
def test_columns_are_what_their_pairs_are(rows):
    numbers = np.array([number for _, some in rows for number in some], np.int32)
    columns = TopicPartitions([name for name, _ in rows], [len(some) for _, some in rows], numbers)
    listed = [(name, number) for name, some in rows for number in some]
    assert columns == listed and listed == columns and hash(columns) == hash(tuple(listed))
    assert [columns[place] for place in range(-len(listed), len(listed))] == listed * 2
    assert list(reversed(columns)) == listed[::-1]
    assert encode_assignment(Assigned(columns)) == encode_assignment(Assigned(listed))
    for again in (copy.deepcopy(columns), pickle.loads(pickle.dumps(columns, 0))):
        assert again == columns and not again.numbers.flags.writeable


def test_nothing_else_is_equal_to_no_partitions():
    nothing = TopicPartitions([], [], np.zeros(0, np.int32))
    assert nothing == () and nothing == [] and nothing not in ("", b"", range(0), None)


@pytest.mark.parametrize("columns", [
    (["a"], [1], np.array([2**31])), (["a"], [1], np.array([1.7])), (["a"], [5], np.ones(1, np.int32)),
    (["a", "b"], [1], np.ones(1, np.int32)), ([3], [1], np.ones(1, np.int32)),
    (["a", "b"], [2, -1], np.ones(1, np.int32)), (["a", "b"], np.array([-1, 2]), np.ones(1, np.int32))])
def test_columns_that_cannot_be_are_refused(columns):
    with pytest.raises(WireError, match="partitions must be int32|a topic must be text"):
        TopicPartitions(*columns)


@pytest.mark.parametrize("make, message", [
    (lambda: encode_subscription(Subscription(["t"]), version=-1), "version must be 0 to 3"),
    (lambda: encode_sticky(Claims(), version=2), "version must be 0 or 1"),
    (lambda: encode_assignment(Assigned([("t", 2**31)])), "must be a topic and a number of 32 bits"),
    (lambda: encode_assignment(Assigned([("t", "0")])), "must be a topic and a number"),
    (lambda: encode_assignment(Assigned([(3, 0)])), "must be a topic and a number"),
    (lambda: encode_assignment(Assigned([("t", 0, 1)])), "must be a topic and a number"),
    (lambda: encode_assignment(Assigned("t0")), "must be a topic and a number"),
    (lambda: encode_assignment(Assigned([], "text")), "user data must be bytes or None"),
    (lambda: encode_subscription(Subscription("t0")), "topics must be names"),
    (lambda: encode_subscription(Subscription(["t", 0])), r"a topic must be text .*\(got 0\)"),
    (lambda: encode_subscription(Subscription(None)), "topics must be names"),
    (lambda: encode_assignment(Assigned(None)), "partitions must be pairs"),
    (lambda: encode_subscription(Subscription(["t"], generation=1.5)), "the generation must be a whole number"),
    (lambda: encode_subscription(Subscription(["t"], rack=5)), "the rack must be text"),
    (lambda: encode_stream_join([0.5], 1), "partitions must be a whole number"),
    (lambda: encode_stream_join([1, "a"], 1), "partitions must be a whole number"),
    (lambda: encode_stream_join(None, 1), "partitions must be numbers"),
    (lambda: encode_epoch(10**5000), r"the epoch must be a whole number of 32 bits \(got int\)"),
    (lambda: encode_subscription(Subscription(["t"], rack=0)), "the rack must be text"),
    (lambda: encode_subscription(Subscription(["t"] * 9 + [3])), r"a topic must be text .*\(got 3\)"),
    (lambda: decode_subscription("text"), "a subscription must be bytes"),
    (lambda: decode_sticky("text"), "user data must be bytes"),
    (lambda: decode_assignment(None), "an assignment must be bytes")])
def test_what_cannot_be_written_is_said(make, message):
    with pytest.raises(WireError, match=message) as error:
        make()
    assert len(str(error.value)) < 200


class Loud:
    def __repr__(self):
        return "\x1b["


@pytest.mark.parametrize("value", ["x" * 10**6, "\ud800" * 10**6, ["t"] * 10**6, Loud()])
def test_errors_are_short_and_printable(value):
    for make in (lambda: decode_subscription(value), lambda: encode_assignment(Assigned([value])),
                 lambda: encode_assignment(Assigned([], value)), lambda: encode_subscription(Subscription([value]))):
        with pytest.raises(WireError) as error:
            make()
        assert len(str(error.value)) < 200 and str(error.value).isprintable()
