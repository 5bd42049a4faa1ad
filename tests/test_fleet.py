"""A fleet without Spark: rows to columns and back, and the kernel that makes rows of rows."""

import io
import os
import re
import shutil
import threading
from dataclasses import fields, replace
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from groups import groups, rows_of_groups, sending_groups
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kafka_assign import Group, Member, StrategyError, assign, compare, rank, read_groups
from kafka_assign.assignors import registry
from kafka_assign.assignors.base import Strategy
from kafka_assign.assignors.registry import resolve
from kafka_assign.assignors.batch import batch_of_groups
from kafka_assign.groups.build import MOST_PARTITIONS, GroupError
from kafka_assign.cli.app import program
from kafka_assign.arrays.columns import same_content, side_by_side
from kafka_assign.fleet.codec import decode_rows, group_from_row, row_from_group
from kafka_assign.fleet.job import Run, all_take_many, chosen_strategies, compare_fleet
from kafka_assign.fleet.kernel import (
    compare_batch, compare_batches, importable_name, pick_moments, split_batch)
from kafka_assign.fleet.schemas import (
    COMPARED_SCHEMA, GROUP_SCHEMA, FleetError)
from kafka_assign.fleet import tables
from kafka_assign.fleet.inputs import find_inputs, needs_driver
from kafka_assign.fleet.runs import folder_of_runs
from kafka_assign.groups.notes import Note, instant
from kafka_assign.ranking.judging import NeedRow, judge
from kafka_assign.protocol.wire import Claims, encode_sticky
from kafka_assign.ranking.rules import NEEDS
from kafka_assign.snapshot.moments import time_order
from kafka_assign.snapshot.sources import end_of

STRATEGIES = ["range", "roundrobin", "fair", "lag"]
RULES = ["sticky", "cooperative", "stream-join"]
HOSTILE = ["<script>alert(1)</script>", "[red]x[/b]", "\x1b[2J", "a\nb", "\u202eb", "n" * 249, "'; --", "\U0001F600",
           "\uff41", ""]


COLUMNS = ["topic_offsets", "member_offsets", "partitions", "missing", "subscriber_offsets", "subscribers", "turn",
           "previous", "listed", "consumer"]
OPTIONAL = ["racks", "counted"]


def batch_of(rows):
    return pa.RecordBatch.from_pylist(rows, GROUP_SCHEMA)


def table_of(fleet):
    return batch_of([row_from_group(group, "fleet", at) for at, group in enumerate(fleet, 1)])


def compared(rows, strategies=STRATEGIES, **options):
    """The kernel's rows, as Python has them, in the order of their positions."""
    chosen = [resolve(name) if isinstance(name, str) else name for name in strategies]
    return compare_batch(rows, chosen, **options).sort_by("position").to_pylist()


# --- rows and columns ----------------------------------------------------------------------------------------------

NEED_KEYS = [one for one in NeedRow.__annotations__ if one not in ("rank", "cluster", "group_id", "time", "moment")]


@given(st.lists(groups(), max_size=6))
def test_rows_decode_to_the_columns_of_their_groups(fleet):
    batch, rejects = decode_rows(table_of(fleet))
    ours, theirs = batch.columns, side_by_side([group.columns for group in fleet])
    assert not rejects
    for name in COLUMNS:
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist(), name
    unknown = np.full(ours.size, -1)
    assert [-1 if lag is None else lag for lag in (unknown if ours.lag is None else ours.lag).tolist()] == \
        (unknown if theirs.lag is None else theirs.lag).tolist()
    assert [name for group in fleet for name in group.topics] == batch.topics.to_pylist()
    assert [name for group in fleet for name in group.members] == batch.members.to_pylist()


@given(st.lists(groups(), min_size=1, max_size=4))
def test_racks_decode_to_the_same_racks(fleet):
    ours, theirs = decode_rows(table_of(fleet))[0].columns, side_by_side([group.columns for group in fleet])
    assert same_content(ours.racks, theirs.racks)


def in_order(members):
    return [replace(one, topics=sorted({*one.topics}), owned=sorted(one.owned)) for one in members]


@given(groups(), st.booleans())
def test_a_group_survives_its_row(group, with_offsets):
    if with_offsets:
        end = {topic: np.arange(count) * 3 for topic, count in group.topic_counts.items()}
        group = group.replace(lag=None, end=end, committed={topic: column // 2 for topic, column in end.items()})
    again = group_from_row(row_from_group(group))
    assert row_from_group(again) == row_from_group(group)
    for name in [*COLUMNS, *OPTIONAL, *(["lag"] if group.columns.size else [])]:
        assert same_content(getattr(again.columns, name), getattr(group.columns, name)), name
    assert [again.details[at].id for at in again.listed] == [group.details[at].id for at in group.listed]
    batch, _ = decode_rows(table_of([group]))
    alone = batch.group(0)
    assert batch.plain.tolist() == batch_of_groups([again]).plain.tolist()
    assert all(same_content(getattr(alone, field.name), getattr(again, field.name)) for field in fields(Group))
    assert in_order(alone.details) == in_order(again.details) and alone.dropped == again.dropped


def lists_of(values):
    return st.none() | st.lists(values, max_size=3)


NAME = st.none() | st.sampled_from(["a", "b", "t0", "t1"])
NUMBER = st.none() | st.integers(-2, 4)
GENERATION = NUMBER | st.sampled_from([-5, -2**31, -2**31 - 1, 2**31 - 1, 2**31, 2**40])
LAG = NUMBER | st.sampled_from([2**61, 2**62, 2**63 - 1])
TYPE = st.sampled_from([None, "", "classic", "Consumer", "SHARE", "clasic", " consumer"])
MESSY_TOPIC = st.none() | st.fixed_dictionaries(
    {"topic": NAME, "partitions": st.integers(1, 2) | NUMBER},
    optional={what: lists_of(LAG) for what in ("begin", "end", "committed", "lag")} | {
        "racks": lists_of(lists_of(NAME))})
MESSY_MEMBER = st.none() | st.fixed_dictionaries(
    {"id": NAME}, optional={
        "topics": lists_of(NAME), "generation": GENERATION, "counted": GENERATION, "instance_id": NAME, "rack": NAME,
        "owned": lists_of(st.none() | st.fixed_dictionaries({"topic": NAME, "partitions": lists_of(NUMBER)}))})
MESSY_ROW = st.fixed_dictionaries(
    {"group_id": st.just("g") | NAME}, optional={
        "type": TYPE, "generation": GENERATION, "moment": GENERATION, "members": lists_of(MESSY_MEMBER),
        "topics": lists_of(MESSY_TOPIC)})


@given(st.lists(MESSY_ROW, max_size=8))
def test_masks_and_words_agree_on_what_a_valid_row_is(rows):
    batch, rejects = decode_rows(batch_of(rows))
    good = []
    for at, row in enumerate(batch_of(rows).to_pylist()):
        try:
            good.append(group_from_row(row))
        except GroupError as error:
            assert rejects[at] == str(error)
        else:
            assert at not in rejects
    theirs = side_by_side([group.columns for group in good])
    for name in COLUMNS:
        assert getattr(batch.columns, name).tolist() == getattr(theirs, name).tolist(), name
    assert same_content(batch.columns.counted, theirs.counted)
    if batch.columns.lag is not None or theirs.lag is not None:
        unknown = np.full(theirs.size, -1)
        ours = unknown if batch.columns.lag is None else batch.columns.lag
        assert ours.tolist() == (unknown if theirs.lag is None else theirs.lag).tolist()


def test_counts_of_members_and_numbers_of_moments_survive():
    members = [Member("a", ["t"], counted=3), Member("b", ["t"], counted=0)]
    fleet = [Group({"t": 4}, {"c": ["t"]}, name="plain"), Group({"t": 4}, members, name="counted", moment=2)]
    rows = [row_from_group(group) for group in fleet]
    assert [row.get("moment") for row in rows] == [None, 2] and [group_from_row(row) for row in rows] == fleet
    batch, _ = decode_rows(batch_of(rows))
    assert batch.columns.counted.tolist() == [-1, 3, 0]
    counted = compared(batch_of(rows), ["range"])[1]
    current, ranged = counted["results"]
    assert counted["moment"] == 2 and (current["max_load"], current["moved"]) == (3, None)
    assert (ranged["max_load"], ranged["moved"]) == (2, None)


@given(st.permutations(["a", "B", "c1", "c10"]), st.permutations(["z", "y", "x"]))
def test_the_order_in_which_members_are_listed_is_kept(one, two):
    fleet = [Group({"t": 1}, dict.fromkeys(ids, ["t"])) for ids in (one, two)]
    rows = [row_from_group(group) for group in fleet]
    assert [[member["id"] for member in row["members"]] for row in rows] == [one, two]
    batch, _ = decode_rows(batch_of(rows))
    ids = batch.members.to_pylist()
    assert ids == sorted(one) + sorted(two) and [ids[at] for at in batch.columns.listed] == [*one, *two]
    for at, group in enumerate(fleet):
        assert batch.group(at) == group


def test_offsets_follow_the_rule_and_lag_goes_first():
    topics = [{"topic": "a", "partitions": 3, "end": [9, 9, 9], "committed": [4, -1, 99]},
              {"topic": "b", "partitions": 2, "lag": [7, -9], "end": [100, 100], "committed": [0, 0]},
              {"topic": "c", "partitions": 1, "committed": [5]}]
    batch, _ = decode_rows(batch_of([{"group_id": "g", "topics": topics}, {"group_id": "without"}]))
    assert batch.columns.lag.tolist() == [5, 0, 0, 7, 0, -1]


def test_too_many_partitions_are_a_reject_and_no_full_memory():
    topics = [{"topic": str(i), "partitions": 2**31 - 1} for i in range(3)]
    rows = [{"group_id": "g", "topics": topics}, {"group_id": "h"}]
    batch, rejects = decode_rows(batch_of(rows))
    assert batch.columns.groups == 1
    assert rejects == {0: f"a group must have at most {MOST_PARTITIONS:,} partitions (got {3 * (2**31 - 1):,})"}


@pytest.mark.parametrize("lag", [{"lag": [2**62, 2**62]}, {"end": [2**62, 2**62], "committed": [0, 0]}])
def test_lag_beyond_64_bits_is_a_reject(lag):
    [most] = [{"group_id": "most", "topics": [{"topic": "t", "partitions": 2, "lag": [2**62, 2**62 - 1]}]}]
    over = {"group_id": "over", "topics": [{"topic": "t", "partitions": 2, **lag}]}
    batch, rejects = decode_rows(batch_of([most, over, most]))
    assert rejects == {1: f"the lag of a group must add up to less than 2**63 (got {2**63})"}
    assert batch.columns.lag.tolist() == [2**62, 2**62 - 1] * 2


@pytest.mark.parametrize("generation", [-2**31 - 1, 2**31, 2**40])
def test_generations_that_cannot_be_are_rejects(generation):
    rows = [{"group_id": "g"}, {"group_id": "h", "members": [{"id": "a", "generation": generation}]},
            {"group_id": "i", "generation": generation}]
    words = f"must be a whole number of 32 bits (got {generation})"
    assert decode_rows(batch_of(rows))[1] == {1: f"generation of member a {words}", 2: f"generation {words}"}


@pytest.mark.parametrize("where", ["group", "cluster", "id", "topic", "rack", "ninstance", "place"])
def test_text_that_is_none_is_a_reject(where):
    rows = batch_of([
        {"group_id": "before", "members": [{"id": "a", "rack": "z", "instance_id": "z"}]},
        {"group_id": "g" * 8, "cluster": "c" * 8, "members": [{"id": "i" * 8, "rack": "r" * 8, "instance_id": "n" * 8}],
         "topics": [{"topic": "t" * 8, "partitions": 1, "racks": [["p" * 8]]}]}, {"group_id": "after"}])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    data = sink.getvalue().to_pybytes().replace(where[0].encode() * 8, b"\x01" + b"\xff" * 7)
    rows = pa.ipc.open_stream(data).read_next_batch()
    done = compared(rows, ["range"])
    assert {row["group_id"] for row in done} == {None, "after", "before"}
    [reason] = [row["reject"] for row in done if row["reject"]]
    assert ": text must be UTF-8 (got" in reason


# --- the kernel ----------------------------------------------------------------------------------------------------

def summaries(row):
    return [{key: value for key, value in result.items() if key not in ("assignment", "running")}
            for result in row["results"]]


IN_USE = st.sampled_from(["", "range", "roundrobin", "com.example.OwnAssignor"])
MORE = st.sampled_from(["stream-join-sticky", "stream-join-sticky:joins=a+c1|B+c10", "lag:scope=group,max_skew=2",
                        "lag:max_moves=1"])


@given(st.lists(st.tuples(groups(), IN_USE), max_size=5), st.booleans(), MORE)
def test_the_kernel_says_what_compare_says(pairs, one_by_one, more):
    """The strategies that were named, and what each group runs now, whether it takes many groups or one at a time."""
    fleet, chosen = [group.replace(strategy=name) for group, name in pairs], [*STRATEGIES[1:], more]
    columns_to_owners = resolve("range").function
    alone = Strategy("range", lambda group: columns_to_owners(group.columns), kafka="RangeAssignor")
    with patch.dict(registry._registered, {"range": alone} if one_by_one else {}):
        done, comparisons = compared(table_of(fleet), chosen), [compare(group, chosen) for group in fleet]
    assert len(done) == len(fleet)
    for row, group, comparison in zip(done, fleet, comparisons):
        marks = [result["strategy"] == comparison.running if comparison.running else None for result in row["results"]]
        assert [result["running"] for result in row["results"]] == marks
        known = group.strategy in ("range", "roundrobin") and group.type != "consumer"
        assert (True in marks) == known
        expected = [comparison.current.summary(), *comparison.rows]
        assert summaries(row) == [{key: value for key, value in one.items() if key != "inferred"} for one in expected]
        for result, assignment in zip(row["results"], [comparison.current, *comparison.assignments.values()]):
            assert [topic["topic"] for topic in result["assignment"]] == list(group.topics)
            assert [owner for topic in result["assignment"] for owner in topic["owner"]] == assignment.owner.tolist()
        assert row["member_ids"] == list(group.members)


def failures(row):
    """Why strategies have no answer for the group of a row, by strategy."""
    return {one["strategy"]: one["reason"] for one in row["failures"]}


def test_a_group_whose_next_rebalance_fails_is_no_failure():
    """It has a need of kind 0 and no row for what it runs; if it runs something else, a strategy has no answer."""
    members = [Member("a", ["t"], owned=[("t", 7)], generation=3), Member("b", ["t"], generation=3)]
    shrunk = Group({"t": 1}, members, name="shrunk")           # Java's own: IllegalStateException
    fleet = [shrunk.replace(strategy="sticky"), Group({"t": 1}, {"a": ["t"]}, name="fine", strategy="sticky")]
    doomed, fine = compared(table_of(fleet), ["range"])
    assert [result["strategy"] for result in doomed["results"]] == ["current", "range"] and not failures(doomed)
    assert [result["strategy"] for result in fine["results"]] == ["current", "kafka-sticky", "range"]
    need, *others = doomed["needs"]
    assert need["need"] == "failing" and "IllegalStateException" in need["reason"]
    assert [one["need"] for one in others] == ["no-owner", "incurable"]
    assert (need["strategy"], need["affected"]) == ("range", 1)
    doomed, other = compared(table_of([shrunk.replace(strategy="sticky"), shrunk]), ["range", "kafka-sticky"])
    assert doomed["needs"][0]["need"] == "failing" and not failures(doomed)
    assert list(failures(other)) == ["kafka-sticky"] and "IllegalStateException" in failures(other)["kafka-sticky"]
    assert [result["strategy"] for result in other["results"]] == ["current", "range"]


@given(st.lists(groups(), max_size=5), st.booleans())
def test_the_kernel_says_what_rank_says(fleet, everything):
    """`rank` sees the groups as rows hold them, without claims of negative partitions."""
    fleet = [group_from_row(row_from_group(group.replace(name=f"g{at}"))) for at, group in enumerate(fleet)]
    done = compared(table_of(fleet), everything=everything)
    needs = {row["group_id"]: row["needs"] for row in done if row["needs"]}
    ranked = {name: [{key: row[key] for key in NEED_KEYS} for row in rows] for name, rows in
              groupby(rank(fleet, STRATEGIES, everything=everything), lambda row: row["group_id"])}
    assert needs == ranked


def test_the_kernel_knows_that_partitions_are_missing_from_the_input():
    """Of partition 0 nothing is known, so it may have an owner; if its lag is shown, it has none."""
    about = {"owned": {"a": [("t", 1)]}, "notes": [Note("partitions-counted")]}
    for lag, count in ((None, 0), ({"t": [1, 1]}, 1)):
        needs = compared(table_of([Group({"t": 2}, {"a": ["t"]}, **about, lag=lag)]))[0]["needs"] or []
        assert [(need["need"], need["affected"]) for need in needs] == [("no-owner", 1)] * count


@given(st.lists(groups(), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_neighbours_change_nothing(fleet, random):
    rows = [row_from_group(group, "fleet", at) for at, group in enumerate(fleet, 1)]
    together = compared(batch_of(rows))
    shuffled = random.sample(rows, len(rows))
    broken = [{"group_id": "broken", "topics": [{"topic": "t", "partitions": -1}], "source": "", "position": 10**6}]
    assert compared(batch_of(shuffled[:1] + broken + shuffled[1:]))[:len(fleet)] == together
    assert [row for one in rows for row in compared(batch_of([one]))] == together


def fussy(columns):
    "Raises if any topic has exactly three partitions."
    if (columns.partitions == 3).any():
        raise RuntimeError("three")
    return np.full(columns.size, -1)


fussy.strategy = Strategy("fussy", fussy, many=True)       # what workers find under `test_fleet:fussy`


def wild(group):
    "Answers nonsense for groups named bad, each time another kind of it."
    if group.name.startswith("bad"):
        answers = {"bad1": np.full(group.columns.size, 99), "bad2": [0.5], "bad3": None, "bad4": np.zeros(7, int)}
        return answers[group.name]
    return group.previous


def some_groups():
    return [Group({"t": count}, {"a": ["t"], "b": ["t"]}, name=name) for name, count in
            [("one", 1), ("bad1", 2), ("two", 2), ("bad2", 3), ("three", 3), ("bad3", 2), ("bad4", 2), ("four", 4)]]


def without(row, strategy):
    """A row as it is if a strategy was not compared."""
    return row | {"results": [one for one in row["results"] if one["strategy"] != strategy],
                  "failures": [one for one in row["failures"] if one["strategy"] != strategy]}


def test_a_strategy_that_raises_costs_only_its_own_row():
    rows = table_of(some_groups())
    done = compare_batch(rows, [resolve("range"), fussy.strategy]).to_pylist()
    assert [row["position"] for row in done] == list(range(1, 9)) and not any(row["reject"] for row in done)
    failed = {row["position"]: failures(row) for row in done if row["failures"]}
    assert list(failed) == [4, 5]
    line = fussy.__code__.co_firstlineno + 3
    assert failed[5] == {"fussy": "group three: strategy 'fussy' must not raise "
                                  f"(got RuntimeError: three in {__file__}, line {line})"}
    assert [len(row["results"]) for row in done] == [3, 3, 3, 2, 2, 3, 3, 3]
    assert [without(row, "fussy") for row in done] == compared(rows, ["range"])


def test_the_strategy_that_a_group_runs_fails_once_whether_it_is_compared_or_not():
    own = Strategy("own", wild, kafka="OwnAssignor")
    fleet = [group.replace(strategy="own") for group in some_groups()]
    with patch.dict(registry._registered, own=own):
        asked, named = compared(table_of(fleet), ["range"]), compared(table_of(fleet), ["range", "own"])
    for done in (asked, named):
        assert [[one["strategy"] for one in row["failures"]] for row in done] == [
            ["own"] * group.name.startswith("bad") for group in fleet]
    assert list(map(failures, asked)) == list(map(failures, named))


def test_a_strategy_that_raises_on_a_batch_is_logged_once(caplog):
    rows, fine = table_of(some_groups()), table_of([group for group in some_groups() if 3 not in group.partitions])
    compare_batch(fine, [resolve("range"), fussy.strategy])
    assert not caplog.records
    compare_batch(rows, [resolve("range"), fussy.strategy])
    [record] = caplog.records
    assert record.levelname == "ERROR" and "strategy fussy has no answer for a batch of 8 groups" in record.getMessage()
    assert "RuntimeError: three" in caplog.text and "Traceback" in caplog.text


def test_a_strategy_is_not_blamed_for_a_batch_without_groups(caplog):
    def raises(columns):
        raise ValueError("nothing to do")
    rows = batch_of([{"group_id": None}, {"group_id": "s", "type": "share"}])
    done = compare_batch(rows, [Strategy("raises", raises, many=True)])
    assert done.num_rows == 2 and not caplog.records


class Mute(Exception):
    """An error that fails when it is asked what it says."""

    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("error, words", [
    (SystemExit(3), "SystemExit: 3"), (GeneratorExit(), "GeneratorExit: "), (Mute(), "Mute"),
    (ValueError("a\nb"), r"ValueError: a\nb")])
@pytest.mark.parametrize("many", [True, False])
def test_any_error_of_a_strategy_is_its_failure(error, words, many):
    def raises(one):
        raise error
    done = compared(table_of(some_groups()), ["range", Strategy("raises", raises, many=many)])
    place = f" in {__file__}, line {raises.__code__.co_firstlineno + 1}"
    assert list(map(failures, done)) == [
        {"raises": f"group {group.name}: strategy 'raises' must not raise (got {words}{place})"}
        for group in some_groups()]


@pytest.mark.parametrize("column", ["topic_of", "number", "start", "previous", "subscribers", "turn", "partitions"])
def test_a_strategy_that_writes_into_the_columns_harms_itself_only(column):
    def scribbler(columns):
        getattr(columns, column)[:] = 0
        return columns.previous
    done = compared(table_of(some_groups()), [Strategy("scribbler", scribbler, many=True), "range"])
    assert all("strategy 'scribbler' must not raise (got ValueError" in failures(row)["scribbler"] for row in done)

    def scribbles_when_many(columns):
        if columns.groups > 1:
            getattr(columns, column)[:] = 0
        return columns.previous
    done = compared(table_of(some_groups()), [Strategy("scribbler", scribbles_when_many, many=True), "range"])
    alone = compared(table_of(some_groups()), ["range"])
    assert [row["results"][2] for row in done] == [row["results"][1] for row in alone]


def all_of(group):
    """All that a strategy can see of a group."""
    about = {name: getattr(group, name) for name in ("name", "type", "state", "strategy", "generation", "time",
                                                     "cluster", "inferred", "topics", "members", "details",
                                                     "partition_racks", "topic_ids")}
    offsets = None if group.offsets is None else [np.asarray(column).tolist() for column in group.offsets]
    return about | {"offsets": offsets, "lag": None if group.lag is None else group.lag.tolist()}


def test_a_strategy_sees_in_a_fleet_the_group_that_assign_shows_it():
    group = Group(
        {"t": 2, "u": 1}, name="g", type="Classic", state="Stable", strategy="x", generation=7, cluster="c",
        members=[Member("a", ["t", "u"], owned=[("t", 0), ("gone", 4)], generation=3, user_data=b"x", rack="r2"),
                 Member("b", ["t"], owned=[("t", 0)], instance_id="i", rack="r1", generation=3, client_id="k",
                        host="h")],
        committed={"t": [1, 2]}, end={"t": [5, 9], "u": [1]}, begin={"t": [0, 0]},
        partition_racks={"t": [["r1"], ["r2", "r1"]]}, topic_ids={"t": "A" * 22})
    seen = []

    def watcher(one):
        seen.append(all_of(one))
        return one.previous
    watching = Strategy("watcher", watcher)
    rows = pa.RecordBatch.from_pylist([row_from_group(Group({}, {}, name="f")), row_from_group(group)], GROUP_SCHEMA)
    judge(decode_rows(rows)[0], [watching])        # in this process
    watching.run(group_from_row(rows.to_pylist()[1]))
    watching.run(group)
    _, in_the_fleet, from_row, by_name = seen
    assert in_the_fleet == from_row
    assert {what: by_name[what] for what in by_name if by_name[what] != in_the_fleet[what]} == {}


def by_topic(group, owner):
    """An owner column as the rows of a fleet have it."""
    ends = zip(group.topics, np.split(owner, group.columns.start[1:-1]))
    return [{"topic": topic, "owner": part.tolist()} for topic, part in ends]


@pytest.mark.parametrize("schema", [GROUP_SCHEMA])
@given(st.data())
def test_claims_in_user_data_are_decoded_as_by_assign(schema, data):
    """A strategy answers the same for a row as for its group, by whatever rule it reads claims."""
    keeping = [Strategy(rule, lambda given: given.previous, many=many, claims=rule)
               for rule, many in (("sticky", True), ("cooperative", True), ("stream-join", False))]
    strategies = [resolve("range"), resolve("sticky"), resolve("cooperative-sticky"), *keeping]
    strategies = [replace(one, name=f"{one.name}-{at}") for at, one in enumerate(strategies)]
    fleet = [data.draw(sending_groups(rule))[0] for rule in data.draw(st.lists(st.sampled_from(RULES), max_size=4))]
    rows = pa.RecordBatch.from_pylist([row_from_group(group, "fleet", at) for at, group in enumerate(fleet)], schema)
    done = compared(rows, strategies)
    assert [row["reject"] for row in done] == [None] * len(fleet)
    for group, row in zip(fleet, done):
        for strategy, result in zip(strategies, row["results"][1:], strict=True):
            alone = assign(group, strategy)
            assert result["assignment"] == by_topic(group, alone.target)
            for figure in ("kept", "moved", "placed", "withheld"):
                assert result[figure] == alone.summary()[figure], figure


def test_claims_that_no_member_could_send_stay_in_a_row_with_user_data():
    """A list of claims may hold null, and numbers of 64 bits; user data of another member changes neither."""
    claims = [None, {"topic": "t", "partitions": None}, {"topic": "t", "partitions": [2**40, 1]}]
    members = [{"id": "a", "topics": ["t"], "owned": claims, "generation": 2, "user_data": b"\0\0\0\0"},
               {"id": "b", "topics": None, "user_data": b"x"}]
    batch, rejects = decode_rows(batch_of([
        {"group_id": "g", "topics": [{"topic": "t", "partitions": 2}], "members": members}] * 2))
    assert not rejects
    assert batch.read("cooperative").previous.tolist() == [-1, 0, -1, 2]
    assert batch.read("sticky").previous.tolist() == [-1] * 4
    assert batch.read(None) is batch.columns


def test_user_data_that_cannot_be_decoded_is_no_reject(caplog):
    fleet = [Group({"t": 2}, [Member("a", ["t"], owned=[("t", 0), ("t", 1)], user_data=data), Member("b", ["t"])])
             for data in (None, b"\x00\x01", b"")]
    done = compared(table_of(fleet), ["sticky"])
    assert [row["reject"] for row in done] == [None] * 3
    assert [(row["results"][0]["max_load"], row["results"][1]["moved"], row["results"][1]["placed"])
            for row in done] == [(2, 1, 0), (2, 0, 2), (2, 0, 2)]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_a_batch_logs_one_warning_for_all_user_data_that_cannot_be_decoded(caplog):
    fine = encode_sticky(Claims([("t", 0)], 1))
    fleet = [Group({"t": 2}, [Member(member, ["t"], user_data=data) for member, data in sent.items()], name=name)
             for name, sent in {"fine": {"a": fine, "b": None}, "\x07": {"a": fine, "b\n": b"\0", "c": b"\0\1"},
                                "last": {"a": b"?", "b": fine}}.items()]
    compared(table_of(fleet), ["sticky"])
    by_rule = [record.getMessage().partition(": ") for record in caplog.records if "codec" in record.name]
    assert [words for words, *_ in by_rule] == [
        r"the user data of 3 members of 2 groups cannot be decoded; the first is member b\n of group \x07"] * 2
    assert by_rule[0][-1].startswith("the previous assignment must lie within 1 bytes")


def test_a_strategy_that_answers_nonsense_costs_only_the_group():
    done = compared(table_of(some_groups()), ["range", Strategy("wild", wild)])
    failed = [failures(row)["wild"].partition(":")[0] for row in done if row["failures"]]
    assert failed == [f"group bad{i}" for i in range(1, 5)]
    assert [without(row, "wild") for row in done] == compared(table_of(some_groups()), ["range"])


def test_groups_of_the_broker_get_figures_and_no_client_strategy():
    uneven = {"members": [Member("a", ["t"], owned=[("t", i) for i in range(4)]), Member("b", ["t"])]}
    classic, broker = (compared(table_of([Group({"t": 4}, **uneven, name="g", type=kind)]))[0]["needs"]
                       for kind in ("classic", "consumer"))
    assert classic[0]["strategy"] in STRATEGIES and classic[0]["need"] == broker[0]["need"] == "idle"
    assert broker[0]["strategy"] is None and "broker" in broker[0]["remedy"]


def test_share_groups_are_passed_over():
    rows = [{"group_id": "s", "type": "share"}, {"group_id": "S", "type": "Share"}, {"group_id": "g"}]
    done = compared(batch_of([row | {"position": at} for at, row in enumerate(rows)]))
    passed_over = [(row["group_id"], row["ignored"], len(row["results"])) for row in done]
    assert passed_over == [("s", "share group", 0), ("S", "share group", 0), ("g", None, 5)]


def test_the_type_of_a_group_counts_in_any_case():
    uneven = {"topics": [{"topic": "t", "partitions": 4}], "members": [
        {"id": "a", "topics": ["t"], "owned": [{"topic": "t", "partitions": [0, 1, 2, 3]}]},
        {"id": "b", "topics": ["t"]}]}
    rows = [{"group_id": kind, "type": kind, "position": at, **uneven} for at, kind in
            enumerate(["consumer", "Consumer", "CLASSIC", "clasic"])]
    lower, upper, classic, unknown = compared(batch_of(rows))
    assert lower["needs"] == upper["needs"] and "broker" in upper["needs"][0]["remedy"]
    assert (upper["type"], classic["type"]) == ("consumer", "classic")
    assert classic["needs"][0]["strategy"] in STRATEGIES
    words = "group clasic: type must be classic, consumer, share, streams or empty (got 'clasic')"
    assert (unknown["reject"], unknown["results"]) == (words, [])


def test_declared_joins_are_the_fleet_s():
    split = Group({"clicks": 2, "views": 2, "other": 2}, name="g", members=[
        Member("a", ["clicks", "views", "other"], owned=[("clicks", 0), ("views", 1), ("other", 0)]),
        Member("b", ["clicks", "views", "other"], owned=[("clicks", 1), ("views", 0), ("other", 1)])])
    assert compared(table_of([split]))[0]["needs"] == []
    need = compared(table_of([split]), joins=[["clicks", "views"]])[0]["needs"][0]
    assert (need["need"], need["strategy"]) == ("split-join", "range")


def test_the_strategy_for_joins_is_the_fleet_s():
    """The workers find it by its label, and the rows have its results where the joined topics are."""
    joins = [["clicks", "views"]]
    several = Group({"clicks": 4, "views": 4, "visits": 2}, name="shop", members={
        "a": ["clicks", "views"], "b": ["clicks", "views", "visits"], "c": ["clicks", "views", "visits"]})
    several = several.replace(owned=dict(assign(several, "roundrobin")))
    owned = {"m": [("t", 0)], "n": [("t", 1)]}
    fleet = [Group({"t": 2}, {"m": ["t"], "n": ["t"]}, owned, name="other"), several]
    chosen = chosen_strategies(None, joins)
    assert chosen_strategies(["range"], joins) == {"range": "range"}
    done = {row["group_id"]: row for row in compared(table_of(fleet), list(chosen.values()), joins=joins)}
    label = "stream-join-sticky:joins=clicks+views"
    [ranked], [need] = rank(fleet, joins=joins), done["shop"]["needs"]
    assert ranked["remedy"] == need["remedy"] and need["remedy"].endswith(f"({label})") and done["other"]["needs"] == []
    assert {name: label in {one["strategy"] for one in row["results"]} for name, row in done.items()} == {
        "shop": True, "other": False}


def test_a_topic_is_in_one_join(tmp_path):
    words = r"a topic must be in one join \(got 'a' in two\)"
    joins = [["a", "b"], ["a", "c"]]
    with pytest.raises(ValueError, match=words):
        compare_fleet(tmp_path / "missing", tmp_path, joins=joins)
    with pytest.raises(ValueError, match=words):
        list(compare_batches([batch_of([])], ["range"], joins))
    line = ["fleet", "compare", "missing", "-o", str(tmp_path), "--joins", "a+b", "--joins", "a+c"]
    done = CliRunner().invoke(program, line)
    assert done.exit_code in (2, 3) and "a topic must be in one join (got 'a' in two)" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_hostile_names_pass_through_unchanged():
    fleet = [Group({topic or "t": 3}, {member or "m": [topic or "t"]}, name=name, cluster=name)
             for name, topic, member in zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1], HOSTILE[2:] + HOSTILE[:2])]
    done = compared(table_of(fleet))
    assert [row["group_id"] for row in done] == HOSTILE and not any(row["reject"] for row in done)
    assert [row["member_ids"] for row in done] == [list(group.members) for group in fleet]
    twice = batch_of([{"group_id": name, "members": [{"id": name}, {"id": name}]} for name in HOSTILE])
    assert all(row["reject"].isprintable() for row in compared(twice))


def test_large_batches_are_cut():
    large = {"group_id": "g", "topics": [{"topic": "t", "partitions": 900_000}]}
    rows = batch_of([large] * 5 + [{"group_id": "h"}] * 2500)
    assert sum(piece.num_rows for piece in split_batch(rows)) == 2505
    assert max(piece.num_rows for piece in split_batch(rows)) <= 1000
    assert [piece.num_rows for piece in split_batch(rows)][:2] == [2, 2]
    assert sum(done.num_rows for done in compare_batches(iter([rows.slice(5, 2000)]), ["range"])) == 2000


@pytest.mark.parametrize("rows, partitions", [(1, 2_000_000), (3, 2_000_000), (1_000, 1), (1_000_000, 10**12)])
def test_results_do_not_depend_on_the_size_of_a_batch(monkeypatch, rows, partitions):
    everything = table_of(some_groups())
    expected = compared(everything)
    monkeypatch.setattr("kafka_assign.assignors.batch.GROUPS_AT_ONCE", rows)
    monkeypatch.setattr("kafka_assign.assignors.batch._PARTITIONS_AT_ONCE", partitions)
    done = pa.Table.from_batches(compare_batches([everything], STRATEGIES), COMPARED_SCHEMA)
    assert done.sort_by("position").to_pylist() == expected


def test_strategies_for_workers():
    assert importable_name("LagBasedAssignor") == "lag"
    assert importable_name(f"{__name__}:fussy") == f"{__name__}:fussy"
    with pytest.raises(StrategyError, match="workers can import"):
        def local(group):
            return group.previous
        importable_name(local)
    replaced = Strategy("range", fussy, many=True)     # on a worker, range would be the one of this package
    assert importable_name(replaced) == f"{__name__}:fussy" and importable_name("range") == "range"


@pytest.mark.parametrize("name, found", [
    ("missing_plug:deal", "ModuleNotFoundError: No module named 'missing_plug'"),
    ("broken_plug:deal", "RuntimeError: no licence"),
    (f"{__name__}:deal", f"AttributeError: module '{__name__}' has no 'deal'")])
def test_a_strategy_that_a_worker_cannot_import_is_one_clear_line(name, found, tmp_path, monkeypatch):
    (tmp_path / "broken_plug.py").write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StrategyError) as error:
        list(compare_batches([table_of(some_groups())], ["range", name]))
    assert str(error.value).startswith(f"strategy '{name}' must be importable on the workers: ship its module")
    assert found in str(error.value) and str(error.value).isprintable()
    with pytest.raises(StrategyError, match="did you mean 'range'"):
        list(compare_batches([], ["rnage"]))


# --- moments -------------------------------------------------------------------------------------------------------

TIMES = ["", "2026-11-20", "2026-11-19T23:30:00-02:00", "2026-11-20T02:00Z"]


def as_sorted(rows):
    """Rows sorted as the job sorts them."""
    return sorted(rows, key=lambda row: (row.get("cluster") or "", row["group_id"] or "", row.get("time") or "",
                                         row.get("moment") or 0, row["source"], row["position"]))


def picked(batches, at):
    """Places of the rows that are compared, and by place why others are not."""
    used, others = [], {}
    for rows, refused in pick_moments(batches, at):
        used += rows.select(["source", "position"]).to_pylist()
        for row in (row for part in refused for row in part.to_pylist()):
            others[row["source"], row["position"]] = row["ignored"] or row["reject"]
    return [tuple(row.values()) for row in used], others


@pytest.mark.parametrize("at, expected", [
    ("latest", [3, 4]), ("all", [0, 1, 2, 3, 4]), ("2026-11-20", [3]), ("2026-11-20T00:00Z", [1]),
    ("2026-11-20T01:45Z", [2]), ("2026-11-18", [])])
def test_times_in_any_form(at, expected):
    """Of group g the latest by the clock, not by the text; group h has no time."""
    rows = [{"source": "a", "position": place, "group_id": "g", "time": time} for place, time in enumerate(TIMES)]
    rows.append({"source": "a", "position": 4, "group_id": "h", "time": None})
    used, others = picked([batch_of(as_sorted(rows))], at)
    assert sorted(place for _, place in used) == expected
    assert others == {("a", place): "other moment" for place in {*range(5)} - {*expected}}


MOMENT_ROW = st.fixed_dictionaries({
    "cluster": st.sampled_from([None, "", "c"]), "group_id": st.sampled_from(["g", "h", None]),
    "time": st.sampled_from([None, *TIMES]), "moment": st.sampled_from([None, 0, 1]), "source": st.sampled_from("ab")})


@given(st.lists(MOMENT_ROW, max_size=9), st.sampled_from(["latest", "all", "2026-11-20T00:00Z"]),
       st.sets(st.integers(1, 8)))
def test_moments_do_not_depend_on_batches(rows, at, cuts):
    """Against the definition: of the rows of a group those of the wanted moments, and of equal ones the first."""
    rows = as_sorted([row | {"position": place} for place, row in enumerate(rows)])
    until, used, others = end_of(at), [], {}
    for row in rows:
        place = row["source"], row["position"]
        of_group = [row] if row["group_id"] is None else [
            other for other in rows
            if (other["cluster"] or "", other["group_id"]) == (row["cluster"] or "", row["group_id"])]
        moments = {(time_order(one["time"] or ""), one["moment"] or 0) for one in of_group
                   if until is None or (found := instant(one["time"] or "")) and found <= until}
        mine = time_order(row["time"] or ""), row["moment"] or 0
        same = [one for one in of_group if (time_order(one["time"] or ""), one["moment"] or 0) == mine]
        if mine not in (moments if at == "all" else {max(moments, default=None)}):
            others[place] = "other moment"
        elif row is same[0]:
            used.append(place)
        else:
            others[place] = (f"group {row['group_id']}: a group must occur only once at a moment (got it in "
                             f"{same[0]['source']}, row {same[0]['position']}, too)")
    bounds = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    batches = [batch_of(rows[begin:end]) for begin, end in zip(bounds, bounds[1:])]
    assert picked(batches, at) == (used, others)


# --- sources and runs ----------------------------------------------------------------------------------------------

def test_an_interrupt_also_ends_jobs_that_begin_after_it(monkeypatch):
    """A job that Spark does not know of yet when Ctrl-C comes is ended, too, once it runs."""
    interrupts, ended, really_wait, first = [], threading.Event(), tables.wait, iter([KeyboardInterrupt])

    class Session:
        def interruptAll(self):
            interrupts.append(1)
            if len(interrupts) == 3:
                ended.set()

    class Frame:
        sparkSession = Session()

    def wait(jobs, timeout=None):
        for error in first:
            raise error
        return really_wait(jobs, 0.01)
    monkeypatch.setattr(tables, "wait", wait)
    monkeypatch.setattr(tables, "write_table", lambda *_: ended.wait(60))
    with pytest.raises(KeyboardInterrupt):
        tables.write_tables({"groups": Frame(), "results": Frame()}, "", None, print)
    assert len(interrupts) >= 3


def of_other_writers(kind, bits):
    """The type as other writers have it: numbers of other widths, long lists, long strings."""
    if pa.types.is_list(kind):
        return pa.large_list(of_other_writers(kind.value_type, bits))
    if pa.types.is_struct(kind):
        return pa.struct([column.with_type(of_other_writers(column.type, bits)) for column in kind])
    return bits if pa.types.is_integer(kind) else pa.large_string() if pa.types.is_string(kind) else kind


@pytest.mark.parametrize("bits", [pa.int64(), pa.int32(), pa.int16()])
def test_parquet_of_other_writers(tmp_path, bits):
    table = rows_of_groups(some_groups())
    types = pa.schema([column.with_type(of_other_writers(column.type, bits)) for column in GROUP_SCHEMA])
    pq.write_table(pa.Table.from_pylist(table.to_pylist(), types), tmp_path / "other.parquet")
    pq.write_table(table, tmp_path / "ours.parquet")
    found = find_inputs([tmp_path])
    assert len(found.parquet) == 2 and not found.rejects


def reason_of(path):
    """Why the only file of a folder is rejected."""
    found = find_inputs([path.parent])
    [reject] = found.rejects
    assert reject.source == str(path) and found.files == 1 and "\n" not in reject.reason
    return reject.reason


@pytest.mark.parametrize("name, wrong", [("topics", pa.string()), ("topics", pa.list_(pa.struct({"lag": pa.int64()}))),
                                         ("members", pa.list_(pa.string())), ("generation", pa.float64()),
                                         ("generation", pa.uint64()), ("time", pa.int64())])
def test_columns_that_cannot_be_read_are_named(tmp_path, name, wrong):
    types = [field.with_type(wrong) if field.name == name else field for field in GROUP_SCHEMA]
    pq.write_table(pa.schema(types).empty_table(), tmp_path / "a.parquet")
    assert re.match(rf"{name}[.a-z]* must be .* \(got ", reason_of(tmp_path / "a.parquet"))


@pytest.mark.parametrize("content, words", [
    (b"PAR1 and then nothing", "footer"), (b"", "file size is 0 bytes"), (b"call Anna", "magic bytes")])
def test_files_that_are_no_parquet(tmp_path, content, words):
    (tmp_path / "input.parquet").write_bytes(content)
    assert re.match(rf"Parquet must be readable \(got .*{words}", reason_of(tmp_path / "input.parquet"))


def test_names_of_files(tmp_path):
    """Those that Spark passes over or cannot open are read by the driver, if they are named; paths must be UTF-8."""
    names = ["a.parquet", "2026-11-20T06:30:00Z.parquet", "_b.parquet", ".c.parquet", "d.parquet._COPYING_"]
    for name in names:
        pq.write_table(rows_of_groups(some_groups()), tmp_path / name)
    found = find_inputs([tmp_path / name for name in names])
    assert [needs_driver(file) for file in found.parquet] == [False, True, True, True, True]
    assert sorted(Path(file.path).name for file in find_inputs([tmp_path]).parquet) == sorted(names[:2])
    os.mkdir(os.fsencode(tmp_path) + b"/in\xff")
    os.rename(tmp_path / "a.parquet", os.fsencode(tmp_path) + b"/in\xff/a.parquet")
    [reject] = find_inputs([tmp_path]).rejects
    assert reject.reason == "the path of a file must be UTF-8" and "\n" not in reject.source


def test_a_file_behind_a_link_counts_once(tmp_path):
    (tmp_path / "in" / "real").mkdir(parents=True)
    pq.write_table(rows_of_groups(some_groups()), tmp_path / "in" / "real" / "a.parquet")
    (tmp_path / "in" / "real" / "b.txt").write_text("text")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "in" / "real")
    for sources in ([tmp_path / "in"], [tmp_path / "in" / "real", tmp_path / "in" / "link"]):
        found = find_inputs(sources)
        assert (len(found.parquet), len(found.text)) == (1, 1)


@pytest.mark.parametrize("codec", ["brotli", "gzip", "lz4", "snappy", "zstd", "none"])
def test_a_file_that_spark_cannot_decompress_is_named(tmp_path, codec):
    pq.write_table(rows_of_groups(some_groups()), tmp_path / "a.parquet", compression=codec)
    found = find_inputs([tmp_path])
    assert [one.reason for one in found.rejects] == [
        "Parquet must be compressed as Spark can read it (got BROTLI)"] * (codec == "brotli")


def test_columns_that_only_differ_in_case(tmp_path):
    table = rows_of_groups(some_groups())
    pq.write_table(table.append_column("Group_ID", table["group_id"]), tmp_path / "a.parquet")
    assert reason_of(tmp_path / "a.parquet").startswith("columns must have different names, regardless of case (got ")


def test_a_file_counts_once_and_runs_are_no_inputs(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(rows_of_groups(some_groups()), path)
    (tmp_path / "b.txt").write_text("text")
    for name in ("run-20261120T063000Z-0a1b2c/groups", "run-of-mine"):
        (tmp_path / name).mkdir(parents=True)
        shutil.copy(path, tmp_path / name)
    found = find_inputs([tmp_path, path, f"file:{path}", tmp_path / "b.txt", io.StringIO("x"), io.StringIO("x")])
    assert [Path(one.path).parent.name for one in found.parquet] == [tmp_path.name, "run-of-mine"]
    assert (len(found.text), found.files, found.text_size) == (3, 5, 6)


def test_a_pipe_that_is_named_is_read(tmp_path):
    """As a shell makes one for `<(command)`; a pipe in a folder is no input, because it may never end."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("text",))
    writer.start()
    [one] = find_inputs([tmp_path / "pipe"]).text
    writer.join()
    assert one.content == b"text"
    [one] = find_inputs([tmp_path]).text
    assert one.content == str(tmp_path / "pipe")


def test_folders_of_runs_that_cannot_be(tmp_path):
    not_utf8 = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    for place, words in (("", "must have a name"), (not_utf8, "must have a UTF-8")):
        with pytest.raises(FleetError, match=words):
            folder_of_runs(place)
    assert folder_of_runs("file:runs").path == Path("runs").absolute()
    (tmp_path / "run-20261120T063000Z-0a1b2c").symlink_to(tmp_path)
    assert folder_of_runs(tmp_path).folders() == []


@pytest.mark.parametrize("name", ["time", "Time"])
@pytest.mark.parametrize("kind, found", [
    (pa.timestamp("ms"), pa.timestamp("us")), (pa.timestamp("us", "Asia/Kathmandu"), pa.timestamp("us", "UTC")),
    (pa.large_string(), pa.string()), (pa.date32(), pa.date32()), (pa.timestamp("ns"), "timestamp[ns]"),
    (pa.int64(), "int64"), (pa.null(), "null")])
def test_how_a_time_is_stored(tmp_path, name, kind, found):
    """Spark casts it to text, or cannot read it; it finds the column in any case."""
    types = [pa.field(name, kind) if field.name == "time" else field for field in GROUP_SCHEMA]
    pq.write_table(pa.schema(types).empty_table(), tmp_path / "a.parquet")
    if isinstance(found, str):
        assert reason_of(tmp_path / "a.parquet") == (
            f"time must be text, a date or a timestamp in microseconds (got {found})")
    else:
        assert [file.time for file in find_inputs([tmp_path]).parquet] == [found]


def test_other_tables_are_named(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    assert reason_of(tmp_path / "a.parquet").endswith("must have the columns group_id, members, topics (got a)")
    pq.write_table(pa.table({"group": [1], "members": [[1]], "topics": [[1]]}), tmp_path / "a.parquet")
    assert reason_of(tmp_path / "a.parquet") == "group_id must be string (got int64)"


def test_a_path_that_is_not_there_is_no_reject(tmp_path):
    """It is a mistake of the caller; a file that vanishes in a folder is a reject."""
    for place in (tmp_path / "missing", f"file:{tmp_path}/missing"):
        with pytest.raises(ValueError, match="missing: No such file or directory"):
            find_inputs([tmp_path, place])
    (tmp_path / "broken").symlink_to(tmp_path / "missing")
    [one] = find_inputs([tmp_path]).text
    assert one.name == str(tmp_path / "broken")            # the readers of text say why


def test_the_generated_fleet_is_reproduced_and_needs_everything():
    """The sample is what its script writes; it has needs of all kinds, and remedies of those that Kafka's can cure."""
    import sample_fleet          # here: workers of Spark import this module, and do not find the tools
    assert sample_fleet.FILE.read_text(encoding="utf-8") == "".join(sample_fleet.lines())
    shipped = sample_fleet.lines(sample_fleet.SHIPPED_GROUPS, "")
    assert sample_fleet.SHIPPED.read_text(encoding="utf-8") == "".join(shipped)
    fleet = read_groups(sample_fleet.FILE)
    assert len(fleet) == sample_fleet.GROUPS and {group.cluster for group in fleet.values()} == {"generated"}
    needs = rank(fleet, joins=[["clicks", "impressions"]])
    assert {row["need"] for row in needs} == {*NEEDS} - {"two-owners", "failing", "stuck", "skew"}
    assert {row["need"] for row in needs if row["strategy"]} == {"idle", "overload", "lag", "split-join"}
    assert len({row["group_id"] for row in needs}) < len(fleet) / 2
    stable = [group for group in fleet.values()
              if group.state == "Stable" and group.strategy in ("range", "roundrobin")]
    assert len(stable) > 50 and all(
        np.array_equal(assign(group, group.strategy).owner, group.previous) for group in stable)


def test_only_whole_runs_are_read(tmp_path):
    (tmp_path / ".run-unfinished" / "results").mkdir(parents=True)
    with pytest.raises(FleetError, match="a run must be a folder with run.json"):
        Run(tmp_path / ".run-unfinished")
