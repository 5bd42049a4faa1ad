"""The exact optimum in plain Python beside the fast solver, reference answers, and dynamic programming."""

import json
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from groups import groups
from hypothesis import given
from oracles import best, outcome, random_columns
from test_reference import REFERENCE, answered, cases

from kafka_assign import Assignment, Group
from kafka_assign.assignors.registry import resolve
from kafka_assign.assignors.sticky.rule import bellman_ford, residual_graph, sticky_by_rule
from kafka_assign.groups.certificate import check_columns
from kafka_assign.arrays.columns import side_by_side, take_groups

STICKY = resolve("sticky")
FILES = ["sticky", "sticky-fresh", "cooperative-sticky", "cooperative-sticky-fresh", "kip54", "fair", "lag", "range",
         "roundrobin", "kafka-sticky", "kip848-uniform", "kip848-range", "sticky-rack", "range-rack",
         "stream-join-sticky"]


@cache
def different_cases():
    """The groups of all files by file and id, each group once: other files have the same groups with other answers."""
    known = {}
    for file in FILES:
        for case in cases(file).values():
            group = json.dumps([case["topics"], case["members"]], sort_keys=True)
            known.setdefault(group, (f"{file}/{case['id']}", case))
    return dict(known.values())


def assert_same(columns):
    """The rule has the loads of the fast solver and keeps the same number; the outcome."""
    owner = sticky_by_rule(columns)
    assert columns.owners_subscribed(owner)[owner >= 0].all()
    assert ((owner >= 0) == (columns.subscriber_counts[columns.topic_of] > 0)).all()
    found = outcome(columns, owner)
    assert found == outcome(columns, STICKY.function(columns))
    return found


# --- reference groups ----------------------------------------------------------------------------------------------

def test_all_files_with_groups_are_tried():
    with_groups = [path.stem for path in REFERENCE.glob("*.jsonl")
                   if {"topics", "members"} <= json.loads(path.read_text(encoding="utf-8").partition("\n")[0]).keys()]
    assert sorted(with_groups) == sorted(FILES)
    assert len(different_cases()) > 500


@pytest.mark.parametrize("name", different_cases())
def test_as_the_fast_solver_on_every_reference_group(name):
    case = different_cases()[name]
    case = {key: value for key, value in case.items() if key != "topic_ids"}      # they name deleted topics, too
    columns = Group.from_json(case).columns
    loads, kept = assert_same(columns)
    if "best" in case and not case.get("ambiguous"):
        assert (loads, kept) == (case["best"]["loads"], case["best"]["kept"])


@pytest.mark.parametrize("name", cases("sticky-fresh"))
def test_fresh_with_equal_subscriptions_it_is_the_assignment_of_java(name):
    group = Group.from_json(cases("sticky-fresh")[name])
    assert answered(Assignment(group, sticky_by_rule(group.columns))) == cases("sticky-fresh")[name]["expected"]


# --- random groups -------------------------------------------------------------------------------------------------

def against_the_fast_solver(seed, count):
    """Small and larger random groups; every tenth time several side by side, which must not change the answers."""
    random = np.random.default_rng(seed)
    for number in range(count):
        size = [(4, 4, 4), (8, 8, 8), (12, 16, 5), (3, 5, 40)][random.choice(4, p=[.3, .3, .2, .2])]
        if number % 10:
            assert_same(random_columns(random, *size))
            continue
        parts = [random_columns(random, 5, 5, 5) for _ in range(random.integers(2, 5))]
        union = side_by_side(parts)
        assert_same(union)
        owner = sticky_by_rule(union)
        for part, (begin, end), first in zip(parts, pairwise(union.group_offsets), union.member_offsets):
            alone = sticky_by_rule(part)
            assert owner[begin:end].tolist() == np.where(alone >= 0, alone + first, -1).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_as_the_fast_solver_on_random_groups(seed):
    against_the_fast_solver(seed, 500)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 30))
def test_as_the_fast_solver_on_many_random_groups(seed):
    against_the_fast_solver(seed, 2000)


@given(groups())
def test_groups_with_void_claims_and_missing_topics(group):
    assert_same(group.columns)


@pytest.mark.parametrize("seed", range(4))
def test_dynamic_programming_on_tiny_groups(seed):
    random = np.random.default_rng(100 + seed)
    for _ in range(500):
        columns = random_columns(random, 6, 5, 3)
        assert outcome(columns, sticky_by_rule(columns)) == best(columns)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_dynamic_programming_on_many_tiny_groups(seed):
    random = np.random.default_rng(200 + seed)
    for _ in range(2000):
        columns = random_columns(random, 6, 6, 4)
        assert outcome(columns, sticky_by_rule(columns)) == best(columns)


def test_a_partition_that_was_sent_elsewhere_comes_back():
    """b gets B-0 at level 1; at level 2, a path from class C to b and back from B lets a keep B-0 after all."""
    group = Group({"A": 1, "B": 1, "C": 2, "D": 1},
                  {"a": ["A", "B", "C", "D"], "b": ["B", "C", "D"], "c": ["C", "D"], "d": ["D"]},
                  owned={"a": [("A", 0), ("B", 0), ("D", 0)], "c": [("C", 0)]})
    assert outcome(group.columns, sticky_by_rule(group.columns)) == ([1, 1, 1, 2], 3) == best(group.columns)


@given(groups())
def test_its_answers_are_proved_and_final(group):
    columns = group.columns
    owner = sticky_by_rule(columns)
    check_columns(columns, owner, STICKY.prove(columns, owner))
    again = group.replace(owned=Assignment(group, owner))
    assert sticky_by_rule(again.columns).tolist() == owner.tolist()


# --- the graph -----------------------------------------------------------------------------------------------------

def test_a_class_for_each_set_of_subscribers():
    random = np.random.default_rng(7)
    for _ in range(200):
        columns = random_columns(random)
        classes, members = residual_graph(columns)
        sets = {tuple(columns.subscribers_of(topic)) for topic in np.flatnonzero(columns.partitions).tolist()} - {()}
        assert sorted(tuple(member.member for member in node.owned) for node in classes) == sorted(sets)
        assert sum(node.left for node in classes) == (columns.subscriber_counts[columns.topic_of] > 0).sum()
        assert sum(sum(node.owned.values()) for node in classes) == (columns.previous >= 0).sum()
        assert all(node in other.classes for node in classes for other in node.owned)
        assert all(node in bellman_ford(classes)[0] for member in members for node in member.classes)


def test_one_group_of_many():
    random = np.random.default_rng(8)
    union = side_by_side([random_columns(random, 5, 5, 5) for _ in range(20)])
    for group in range(union.groups):
        assert_same(take_groups(union, [group]))
