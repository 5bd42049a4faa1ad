"""The answers of the real code, partition for partition: one group at a time, and each file as one union."""

import json
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from kafka_assign import Group, assign, assign_many
from kafka_assign.assignors import lag
from kafka_assign.assignors.lag import partition_lag
from kafka_assign.groups.documents import is_group_document

REFERENCE = Path(__file__).parent / "reference"
STRATEGIES = {"range": "RangeAssignor", "roundrobin": "RoundRobinAssignor",
              "fair": "FairAssignor", "lag": "LagBasedAssignor"}
FILES = {**{name: name for name in STRATEGIES}, "range-rack": "range"}              # file -> strategy


@cache
def cases(name):
    lines = (REFERENCE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


def answered(assignment):
    """An assignment as the vectors have it."""
    return {member: [[topic, partition] for topic, partition in sorted(owned)] for member, owned in assignment.items()}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_vectors_are_all_there(strategy):
    assert len(cases(strategy)) == 101
    sizes = [(len(case["members"]), sum(case["topics"].values())) for case in cases(strategy).values()]
    assert max(sizes) == (200, 5000)


def test_the_vectors_with_racks_are_all_there_and_racks_matter():
    assert len(cases("range-rack")) == 80
    hidden = [Group.from_json(case).replace(partition_racks=None) for case in cases("range-rack").values()]
    differ = [answered(assignment) != case["expected"]
              for assignment, case in zip(assign_many(hidden, "range"), cases("range-rack").values())]
    assert sum(differ) > 30


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_vector_of_a_group_is_a_document(path):
    """The keys that only vectors have are ignored."""
    for case in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if is_group_document(case):
            assert Group.from_json(case).topic_counts.keys() >= case["topics"].keys()


@pytest.mark.parametrize("file, case", [(file, case) for file in FILES for case in cases(file)])
def test_alone(file, case):
    case = cases(file)[case]
    assert answered(assign(Group.from_json(case), FILES[file])) == case["expected"]


@pytest.mark.parametrize("file", FILES)
def test_all_groups_of_a_file_as_one(file):
    groups = {case["id"]: Group.from_json(case) for case in cases(file).values()}
    together = assign_many(groups, STRATEGIES[FILES[file]])
    assert {name: answered(assignment) for name, assignment in together.items()} == {
        name: case["expected"] for name, case in cases(file).items()}


@pytest.mark.parametrize("file", FILES)
def test_in_the_other_order_too(file):
    last_first = list(cases(file).values())[::-1]
    together = assign_many(map(Group.from_json, last_first), FILES[file])
    assert [answered(assignment) for assignment in together] == [case["expected"] for case in last_first]


def test_range_with_and_without_racks_as_one():
    """Groups without racks between groups that have some."""
    mixed = [case for pair in zip(cases("range-rack").values(), cases("range").values()) for case in pair]
    together = assign_many(map(Group.from_json, mixed), "range")
    assert [answered(assignment) for assignment in together] == [case["expected"] for case in mixed]


@pytest.mark.parametrize("small_round", [0, 10**9], ids=["NumPy", "Python"])
def test_lag_by_either_way_of_computing_a_round(small_round):
    groups = {case["id"]: Group.from_json(case) for case in cases("lag").values()}
    with patch.object(lag, "SMALL_ROUND", small_round):
        together = assign_many(groups, "lag")
    assert {name: answered(assignment) for name, assignment in together.items()} == {
        name: case["expected"] for name, case in cases("lag").items()}


def arithmetic():
    return cases("lag-arithmetic").values()


def test_lag_of_one_partition():
    for case in arithmetic():
        committed = -1 if case["committed"] is None else case["committed"]
        assert partition_lag(committed, case["begin"], case["end"], case["reset"]) == case["expected"], case["id"]


@pytest.mark.parametrize("reset", sorted({case["reset"] for case in arithmetic()}))
def test_lag_of_many_partitions(reset):
    those = [case for case in arithmetic() if case["reset"] == reset]
    committed = [-1 if case["committed"] is None else case["committed"] for case in those]
    begin, end, expected = (np.array([case[key] for case in those], np.int64) for key in ("begin", "end", "expected"))
    assert partition_lag(committed, begin, end, reset).tolist() == expected.tolist()
