"""Every ranking of the goals below balance, beside all assignments of tiny groups and the flows of larger ones."""
from itertools import permutations, product

import numpy as np
import pytest
from oracles import random_columns
from test_reference import cases
from test_ranked import with_racks

from kafka_assign import Group, assign
from kafka_assign.arrays.columns import side_by_side
from kafka_assign.arrays.goals import GOALS, checked_prefer
from kafka_assign.assignors.sticky.cycles import improve
from kafka_assign.assignors.sticky.proving import prove
from kafka_assign.assignors.sticky.solve import sticky_assign
from kafka_assign.groups.certificate import Certificate, CertificateError, check, check_columns

RANKINGS = [ranking for length in (1, 2, 3) for ranking in permutations(GOALS, length)]
UNIFORM = {name: {key: case[key] for key in ("topics", "members", "best")}
           for name, case in cases("kip848-uniform").items() if "spread" in case["best"]}


# --- what an assignment costs, by definition -----------------------------------------------------------------------

def near_members(columns):
    """The members in a rack of each partition's replicas, bool; the last column is for no owner."""
    near = np.zeros((columns.size, columns.member_count + 1), bool)
    if columns.racks:
        member, offsets, replicas = columns.racks
        for place, (first, end) in enumerate(zip(offsets, offsets[1:])):
            near[place, :-1] = (member >= 0) & np.isin(member, replicas[first:end])
    return near


def figures(columns, owners):
    """Costs of owner columns, the rows of a table: sum of squared loads, and of each goal; less is better."""
    owners = np.atleast_2d(owners)
    members, near = range(columns.member_count), near_members(columns)

    def squares(table):
        return sum(((table == member).sum(1) ** 2 for member in members), np.zeros(len(table), int))
    return {"balance": squares(owners), "kept": -((owners >= 0) & (owners == columns.previous)).sum(1),
            "racks": -near[np.arange(columns.size), owners].sum(1),
            "spread": sum((squares(owners[:, columns.start[topic]:columns.start[topic + 1]])
                           for topic in range(columns.topic_count)), np.zeros(len(owners), int))}


def ranked(found, prefer):
    """The figures as rows that compare by a ranking."""
    return np.stack([found[goal] for goal in ("balance", *checked_prefer(prefer))], 1).tolist()


def all_owners(columns, most=2000):
    """All assignments, a row each; None if they are too many."""
    choices = [columns.subscribers_of(topic) or [-1] for topic in columns.topic_of.tolist()]
    if np.prod([len(choice) for choice in choices], dtype=float) > most:
        return None
    rows = list(product(*choices))
    return np.array(rows, np.int32).reshape(len(rows), columns.size)


def fails(columns, owner, certificate):
    try:
        check_columns(columns, owner, certificate)
    except CertificateError:
        return True
    return False


# --- tiny groups ---------------------------------------------------------------------------------------------------

def tiny_groups(seed, count):
    """Random tiny groups with racks; all assignments of each, and what they cost."""
    random = np.random.default_rng(seed)
    while count:
        columns = with_racks(random, random_columns(random, 3, 3, 3))
        owners = all_owners(columns)
        if owners is not None:
            count -= 1
            yield columns, owners, figures(columns, owners)


def best_of_all(seed, count):
    """The best by each ranking, found from any flattest answer and by the solver; proved, and stable."""
    random = np.random.default_rng(seed)
    for columns, owners, found in tiny_groups(seed, count):
        flattest = np.flatnonzero(found["balance"] == found["balance"].min())
        for ranking in RANKINGS:
            prefer, best = checked_prefer(ranking), min(ranked(found, ranking))
            for owner in (improve(columns, owners[random.choice(flattest)], prefer), sticky_assign(columns, ranking)):
                assert ranked(figures(columns, owner), ranking) == [best]
                check_columns(columns, owner, prove(columns, owner, prefer))
                again = columns.with_owners(owner, owner)
                assert improve(again, owner, prefer).tolist() == owner.tolist()


def test_the_best_of_all_assignments_by_every_ranking():
    best_of_all(1, 6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 14))
def test_the_best_of_all_assignments_by_every_ranking_long(seed):
    best_of_all(seed, 500)


def forged(certificate, random):
    """The certificate with a few numbers changed a little."""
    def changed(numbers):
        numbers = numbers.copy()
        numbers[random.integers(len(numbers), size=2)] += random.integers(-2, 3, 2)
        return numbers
    return certificate._replace(**{
        name: changed(part) for name, part in certificate._asdict().items()
        if isinstance(part, np.ndarray) and len(part) and random.random() < 0.5})


def worse_is_rejected(ranking, seed, count):
    """Answers that are strictly worse by a ranking, most of them as flat: no certificate is accepted."""
    random, prefer = np.random.default_rng(seed), checked_prefer(ranking)
    for columns, owners, found in tiny_groups(seed, 100 * count):
        rows = ranked(found, ranking)
        best = min(rows)
        worse = np.flatnonzero([row > best for row in rows])
        as_flat = worse[found["balance"][worse] == best[0]]
        if not len(worse):
            continue
        choice = as_flat if len(as_flat) and random.random() < 0.9 else worse
        other, right = owners[random.choice(choice)], owners[rows.index(best)]
        proofs = [prove(columns, other, prefer), prove(columns, right, prefer)]
        assert not fails(columns, right, proofs[1])
        for proof in (*proofs, *(forged(proof, random) for proof in proofs for _ in range(4))):
            assert fails(columns, other, proof), (columns, other, proof)
        count -= 1
        if not count:
            return


@pytest.mark.parametrize("ranking", RANKINGS, ids="+".join)
def test_worse_answers_are_rejected_whatever_the_certificate(ranking):
    worse_is_rejected(ranking, 3, 20)


@pytest.mark.long
@pytest.mark.parametrize("ranking", RANKINGS, ids="+".join)
def test_worse_answers_are_rejected_whatever_the_certificate_long(ranking):
    worse_is_rejected(ranking, 4, 1000)


def test_what_is_proved_is_the_ranking_that_the_certificate_names():
    """A best answer by one ranking has no certificate for another by which it is not best."""
    refused = 0
    for columns, _, found in tiny_groups(4, 1):
        for ranking, claimed in permutations(RANKINGS, 2):
            owner = sticky_assign(columns, ranking)
            is_best = ranked(figures(columns, owner), claimed) == [min(ranked(found, claimed))]
            prefer = checked_prefer(claimed)
            assert fails(columns, owner, prove(columns, owner, prefer)) != is_best
            refused += not is_best
    assert refused > 20


def test_side_by_side():
    """The certificate of a union proves each of its groups, by weights of its own."""
    parts = [columns for columns, *_ in tiny_groups(6, 12)]
    union = side_by_side(parts)
    for ranking in RANKINGS:
        prefer, answers = checked_prefer(ranking), [sticky_assign(columns, ranking) for columns in parts]
        shifts = zip(answers, union.member_offsets)
        owner = np.concatenate([np.where(answer >= 0, answer + first, -1) for answer, first in shifts])
        check_columns(union, owner, prove(union, owner.astype(np.int32), prefer))


def test_a_price_for_a_topic_must_lie_between_two_steps():
    group = Group({"t": 2, "u": 2}, dict.fromkeys("AB", ["t", "u"]))
    owner = improve(group.columns, np.array([0, 0, 1, 1]), ("spread", "kept"))
    proof = prove(group.columns, owner, ("spread", "kept"))
    a = assign(group, "fair")
    assert figures(group.columns, owner)["spread"] == [4] and check(group, a, proof) is None
    for far in 100, -100:
        beyond = proof._replace(topic_price=proof.topic_price + [far, far, 0, 0])
        with pytest.raises(CertificateError, match="^condition 6: .* last and next step .violated by t on A.$"):
            check(group, a, beyond)
    for part in None, proof.topic_price[:3], proof.topic_price + 0.5:
        with pytest.raises(CertificateError, match="^condition 0: .* one for each of 4 pairs of topic and subscriber"):
            check(group, a, Certificate(*proof[:3], part))


# --- larger groups, beside a minimum-cost flow ---------------------------------------------------------------------

def best_flow(columns, ranking):
    """The figures of a best assignment: a flow of equal partitions with each cost far above those ranked below it."""
    networkx = pytest.importorskip("networkx")
    graph, far_above = networkx.MultiDiGraph(), 1 << 20
    cost = dict.fromkeys(GOALS, 0) | {
        goal: far_above ** nth for nth, goal in enumerate(reversed(("balance", *checked_prefer(ranking))))}
    near, supply = near_members(columns), {}
    for place, topic in enumerate(columns.topic_of.tolist()):
        kind = topic, int(columns.previous[place]), tuple(near[place, :-1].tolist())
        supply[kind] = supply.get(kind, 0) + 1
    most = np.bincount(columns.subscribers, columns.partitions.repeat(columns.subscriber_counts), columns.member_count)
    total, cells = 0, set()
    for kind, count in supply.items():
        topic, previous, at = kind
        subscribers = columns.subscribers_of(topic)
        total += count * bool(subscribers)
        if subscribers:
            graph.add_node(kind, demand=-count)
        for member in subscribers:
            cells.add((topic, member))
            graph.add_edge(kind, ("cell", topic, member), capacity=count,
                           weight=cost["kept"] * (member != previous) + cost["racks"] * (not at[member]))
    for topic, member in sorted(cells):
        for nth in range(columns.partitions[topic]):
            graph.add_edge(("cell", topic, member), ("member", member), capacity=1,
                           weight=cost["spread"] * (2 * nth + 1))
    for member in {member for _, member in cells}:
        for nth in range(int(most[member])):
            graph.add_edge(("member", member), "sink", capacity=1, weight=cost["balance"] * (2 * nth + 1))
    if not total:
        return None
    graph.add_node("sink", demand=total)
    least, _ = networkx.network_simplex(graph)
    digits = []
    for _ in range(1 + len(checked_prefer(ranking))):
        least, digit = divmod(least, far_above)
        digits.append(digit)
    return digits[::-1]


def against_flow(seed, count, *most, rankings=1):
    random = np.random.default_rng(seed)
    for _ in range(count):
        columns = with_racks(random, random_columns(random, *most))
        for nth in random.choice(len(RANKINGS), rankings, replace=False):
            ranking, lost = RANKINGS[nth], columns.subscriber_counts[columns.topic_of] > 0
            owner = sticky_assign(columns, ranking)
            check_columns(columns, owner, prove(columns, owner, checked_prefer(ranking)))
            found = figures(columns, owner)
            for goal in "kept", "racks":                       # what it costs, not what it gains
                found[goal] = found[goal] + lost.sum()
            if best := best_flow(columns, ranking):
                assert ranked(found, ranking) == [best]


def test_against_minimum_cost_flow():
    against_flow(1, 8, 6, 8, 12)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 20))
def test_against_minimum_cost_flow_long(seed):
    against_flow(seed, 30, 9, 15, 25, rankings=5)


# --- the vectors that count how topics are spread ------------------------------------------------------------------

def test_the_vectors_are_all_there():
    assert len(UNIFORM) == 200


@pytest.mark.parametrize("name", UNIFORM)
def test_exactly_the_least_spread_of_the_best(name):
    a = assign(Group.from_json(UNIFORM[name]), "sticky", prefer=["kept", "spread"])
    found = {"loads": sorted(a.loads.tolist()), "kept": int(a.kept.sum()), "spread": a.summary()["topic_spread"]}
    assert found == {key: UNIFORM[name]["best"][key] for key in found}
    check(a.group, a, a.certificate)
