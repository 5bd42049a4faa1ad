"""The exact optimum beside reference answers, dynamic programming, min-cost flow, and itself."""

import numpy as np
import pytest
from groups import crowded_group, groups
from hypothesis import given
from hypothesis import strategies as st
from oracles import best, outcome, random_columns, squares
from test_reference import answered, cases

from kafka_assign import Group, Member, assign, assign_many
from kafka_assign.arrays import ragged
from kafka_assign.assignors.sticky import solve as sticky
from kafka_assign.assignors.sticky.classes import Tuning
from kafka_assign.assignors.sticky.proving import prove
from kafka_assign.assignors.registry import resolve, usual_strategies
from kafka_assign.groups.certificate import check_columns
from kafka_assign.arrays.columns import side_by_side
from kafka_assign.arrays.ragged import row_of

CASES, FRESH = cases("sticky"), cases("sticky-fresh")
CLEAR = [name for name, case in CASES.items() if not case["ambiguous"]]


def proved(columns, owner):
    check_columns(columns, owner, prove(columns, owner))
    return outcome(columns, owner)


# --- the vectors ---------------------------------------------------------------------------------------------------

def test_the_vectors_are_all_there():
    assert (len(CASES), len(FRESH)) == (193, 71) and len(CLEAR) > 150


@pytest.mark.parametrize("name", CLEAR)
def test_exactly_the_best(name):
    a = assign(Group.from_json(CASES[name]), "sticky")
    figures = {"loads": sorted(a.loads.tolist()), "score": a.balance_score, "kept": int(a.kept.sum())}
    assert figures == CASES[name]["best"]


@pytest.mark.parametrize("name", FRESH)
def test_fresh_with_equal_subscriptions_it_is_the_assignment_of_java(name):
    assert answered(assign(Group.from_json(FRESH[name]), "sticky")) == FRESH[name]["expected"]


def test_all_groups_of_a_file_as_one():
    fleet = [Group.from_json(case) for case in [*CASES.values(), *FRESH.values()]]
    alone = [assign(group, "sticky").owner.tolist() for group in fleet]
    assert [a.owner.tolist() for a in assign_many(fleet, "sticky")] == alone


@pytest.mark.parametrize("name", [*CASES, *FRESH])
def test_the_proof_of_every_answer_holds(name):
    columns = Group.from_json((CASES | FRESH)[name]).columns
    proved(columns, sticky.sticky_assign(columns))


@pytest.mark.parametrize("name", cases("kip54"))
def test_the_best_of_kip54_too(name):
    case = cases("kip54")[name]
    columns = Group.from_json(case).columns
    assert outcome(columns, sticky.sticky_assign(columns)) == (case["best"]["loads"], case["best"]["kept"])


# --- small groups, against everything that could be done -----------------------------------------------------------

def small_groups(seed, count):
    """Random small groups, each beside the best of all its assignments, and all of them as one."""
    random, fleet = np.random.default_rng(seed), []
    for _ in range(count):
        columns = random_columns(random)
        owner, bound = sticky.sticky_assign(columns), sticky.sticky_yet_fair_assign(columns)
        assert proved(columns, owner) == best(columns)
        assert outcome(columns, bound) == best(columns, keep_all=True)
        assert (bound[columns.previous >= 0] == columns.previous[columns.previous >= 0]).all()
        fleet.append(columns)
    for first in range(0, count, 50):
        part = fleet[first:first + 50]
        union = side_by_side(part)
        for name in "sticky", "sticky-yet-fair", "fairness-only":
            function = resolve(name).function
            answers = zip(map(function, part), union.member_offsets)
            alone = [np.where(owner >= 0, owner + first, -1) for owner, first in answers]
            assert function(union).tolist() == np.concatenate(alone).tolist()


def test_small_groups():
    small_groups(seed=1, count=1000)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 11))
def test_many_small_groups(seed):
    small_groups(seed, count=2000)


def test_a_member_that_is_full_without_the_topic_that_it_shares():
    owned = {"b": [("shared", i) for i in range(6)], "c": [("shared", i) for i in range(6, 12)]}
    reads = {"b": ["shared"], "c": ["shared"], "d": ["shared"], "z": ["own", "shared"]}
    a = assign(Group({"own": 5, "shared": 13}, reads, owned=owned), "sticky")
    assert proved(a.group.columns, a.owner) == ([4, 4, 5, 5], 9)


# --- larger groups, against min-cost flow --------------------------------------------------------------------------

def best_flow(columns):
    """The best outcome, by a flow: the n-th partition of a member costs 2 n - 1 large units, a kept one saves 1."""
    networkx = pytest.importorskip("networkx")
    graph, large = networkx.DiGraph(), 10 * columns.size + 10
    total = int(columns.partitions[columns.subscriber_counts > 0].sum())
    graph.add_node("source", demand=-total)
    graph.add_node("sink", demand=total)
    for topic in np.flatnonzero((columns.subscriber_counts > 0) & (columns.partitions > 0)).tolist():
        here, previous = ("topic", topic), columns.previous[columns.start[topic]:columns.start[topic + 1]]
        graph.add_edge("source", here, capacity=int(columns.partitions[topic]))
        for member in columns.subscribers_of(topic):
            had = int((previous == member).sum())
            graph.add_edge(here, ("member", member))
            if had:
                graph.add_edge(here, ("had", topic, member), capacity=had, weight=-1)
                graph.add_edge(("had", topic, member), ("member", member), capacity=had)
    offered = columns.partitions[row_of(columns.subscriber_offsets)]
    most = np.bincount(columns.subscribers, offered, columns.member_count).astype(int)
    for member in range(columns.member_count):
        for nth in range(most[member]):
            graph.add_edge(("member", member), ("place", member, nth), capacity=1, weight=large * (2 * nth + 1))
            graph.add_edge(("place", member, nth), "sink", capacity=1)
    _, flow = networkx.network_simplex(graph)
    loads = [sum(flow.get(("member", member), {}).values()) for member in range(columns.member_count)]
    return sorted(loads), sum(flow[a][b] for a, b, weight in graph.edges(data="weight") if weight == -1)


def against_flow(seed, count, *most):
    random = np.random.default_rng(seed)
    for _ in range(count):
        columns = random_columns(random, *most)
        assert proved(columns, sticky.sticky_assign(columns)) == best_flow(columns)


def test_against_min_cost_flow():
    against_flow(1, 20, 8, 8, 5)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_against_min_cost_flow_long(seed):
    against_flow(seed, 50, 40, 40, 4)


# --- what else is promised -----------------------------------------------------------------------------------------

@given(groups())
def test_asked_again_it_moves_nothing(group):
    a = assign(group, "sticky")
    again = group.replace(members=[Member(m.id, m.topics, owned=a[m.id], rack=m.rack) for m in group.details])
    assert assign(again, "sticky").owner.tolist() == a.owner.tolist()


@given(groups(), st.randoms(use_true_random=False))
def test_the_order_of_members_and_claims_changes_nothing(group, random):
    mixed = [Member(**(vars(m) | {"owned": random.sample(m.owned, len(m.owned))})) for m in group.details]
    again = group.replace(members=random.sample(mixed, len(mixed)))
    assert dict(assign(again, "sticky")) == dict(assign(group, "sticky"))


@given(groups())
def test_the_six_steps_are_never_better(group):
    six, exact = assign(group, "kip54"), assign(group, "sticky")
    assert squares(exact.loads.tolist()) <= squares(six.loads.tolist())
    if sorted(exact.loads.tolist()) == sorted(six.loads.tolist()):
        assert exact.kept.sum() >= six.kept.sum()


@given(groups())
def test_fairness_only_is_sticky_with_no_past(group):
    fresh = group.replace(members=[Member(m.id, m.topics, rack=m.rack) for m in group.details])
    assert assign(group, "fairness-only").owner.tolist() == assign(fresh, "sticky").owner.tolist()


def test_examples_of_the_proposal_as_printed():
    topics = {f"t{i}": 2 for i in range(4)}
    fresh = assign(Group(topics, dict.fromkeys(["C0", "C1", "C2"], list(topics))), "sticky")
    left = Group(topics, dict.fromkeys(["C0", "C2"], list(topics)), owned={m: fresh[m] for m in ("C0", "C2")})
    assert answered(assign(left, "sticky")) == {
        "C0": [["t0", 0], ["t1", 1], ["t2", 0], ["t3", 0]], "C2": [["t0", 1], ["t1", 0], ["t2", 1], ["t3", 1]]}


def test_as_it_is_registered():
    assert resolve("sticky").prove is prove
    assert {"sticky"} == {"sticky", "sticky-yet-fair", "fairness-only"} & set(usual_strategies())


# --- thresholds change how an answer is found, not how good it is --------------------------------------------------

EXTREMES = [(Tuning, "pair_table", 0, 1 << 40), (Tuning, "small_component", 0, 10**9),
            (Tuning, "trial_excess", 0, 10**9), (Tuning, "trial_raises", 0, 10**6),
            (Tuning, "graph_pairs", 1, 10**9), (Tuning, "fill_passes", 1, 50),
            (ragged, "FEW_DEALT", 0, 10**9), (ragged, "LONG_DEAL", 0, 10**9)]


def test_every_threshold_is_varied():
    named = {name for name in vars(Tuning) if name[0] != "_"}
    assert named == {name for where, name, *_ in EXTREMES if where is Tuning}


@pytest.mark.parametrize("place, name, least, most", EXTREMES, ids=[name for _, name, *_ in EXTREMES])
def test_no_result_depends_on_a_threshold(place, name, least, most, monkeypatch):
    """On small groups and on some of 20 topics and 25 members; the latter with all components treated as large, too."""
    random = np.random.default_rng(11)
    groups = [random_columns(random, 6, 7, 9) for _ in range(60)] + [
        crowded_group(random, kind) for kind in ("random", "nested", "scales") for _ in range(12)]
    usual = [proved(columns, sticky.sticky_assign(columns)) for columns in groups]
    for small_component in {0, Tuning.small_component} - ({0} if name == "small_component" else set()):
        for bound in least, most:
            monkeypatch.setattr(Tuning, "small_component", small_component)
            monkeypatch.setattr(place, name, bound)
            assert [proved(columns, sticky.sticky_assign(columns)) for columns in groups] == usual
            monkeypatch.undo()
