"""Hash codes and orders of iteration beside a table that Java wrote; where there is a JDK, it writes it again."""
import json
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign.protocol.java import _INITIAL_CAPACITY, JavaHashSet, java_hash, partition_hash

HERE = Path(__file__).parent
TABLE = HERE / "reference" / "java-order.jsonl"


@cache
def rows(key):
    return [row for row in map(json.loads, TABLE.read_text(encoding="ascii").splitlines()) if key in row]


def texts():
    return [row["text"] for row in rows("text")]


def test_the_table_is_all_there():
    assert len(texts()) == len(set(texts())) == 1016
    assert any("\ud800" <= one <= "\udfff" for text in texts() for one in text)        # half of a pair
    assert any(ord(one) > 0xffff for text in texts() for one in text) and max(map(len, texts())) > 900
    assert max(len(row["texts"]) for row in rows("texts")) == 200 and len(rows("partitions")) == 64


def test_hash_codes():
    for row in rows("text"):
        assert java_hash(row["text"]) == row["hash"], row


def test_sets_of_texts():
    for row in rows("texts"):
        names = JavaHashSet(texts()[place] for place in row["texts"])
        for place in row["texts"][:row["removed"]]:
            names.discard(texts()[place])
        assert list(names) == [texts()[place] for place in row["order"]]


def test_sets_of_partitions():
    for row in rows("partitions"):
        topic = texts()[row["topic"]]
        found = JavaHashSet([(topic, number) for number in row["partitions"]], partition_hash)
        assert list(found) == [(topic, number) for number in row["order"]]


@pytest.mark.needs("jdk")
def test_java_writes_the_same_table():
    from java import find_jdk

    written = subprocess.run([find_jdk(), HERE / "JavaOrder.java"], capture_output=True, check=True).stdout
    assert written == TABLE.read_bytes()


class Table:
    """A hash table as Java has it: buckets that are split in two as it grows."""

    def __init__(self):
        self.buckets = [[] for _ in range(16)]

    def add(self, key, code):
        spread = code ^ code >> 16
        bucket = self.buckets[spread % len(self.buckets)]
        if any(key == other for other, _ in bucket):
            return
        bucket.append((key, spread))
        if len(bucket) > 8 and len(self.buckets) < 64:
            self.grow()
        if sum(map(len, self.buckets)) > len(self.buckets) * 3 // 4:
            self.grow()

    def grow(self):
        former, self.buckets = self.buckets, [[] for _ in range(2 * len(self.buckets))]
        for bucket in former:
            for key, spread in bucket:
                self.buckets[spread % len(self.buckets)].append((key, spread))


@given(st.lists(st.integers(0, 40) | st.integers(0, 2**32 - 1), max_size=60))
def test_it_is_the_order_of_a_table_of_buckets(codes):
    keys, table = JavaHashSet(codes, lambda code: code), Table()
    for code in codes:
        table.add(code, code)
    assert list(keys) == [key for bucket in table.buckets for key, _ in bucket]
    assert keys.capacity == len(table.buckets) >= _INITIAL_CAPACITY
