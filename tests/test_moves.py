"""Why partitions moved: unnecessary moves can be taken back and no other can, checked by trying everything."""

import itertools
import pickle
import re
import time
from textwrap import fill

import numpy as np
from groups import groups, owners
from hypothesis import assume, given
from hypothesis import strategies as st

from kafka_assign import Assignment, Group, Member, assign
from kafka_assign.assignors.base import ForecastError
from kafka_assign.reports.moves import Move, MoveGraph, explain, least_moves, take_back_unnecessary


def squares(loads):
    return int((np.asarray(loads) ** 2).sum())


@st.composite
def assignments(draw):
    """A small group with previous owners, and any assignment of it."""
    group = draw(groups(max_topics=3, max_members=4, max_partitions=3))
    before = draw(owners(group))
    claims = {name: [group.at(place) for place, owner in enumerate(before) if owner == i]
              for i, name in enumerate(group.members)}
    members = [Member(member.id, member.topics, owned=claims[member.id]) for member in group.details]
    return Assignment(group.replace(members=members), draw(owners(group)))


@given(assignments())
def test_every_change_has_one_reason(a):
    why, before, after = explain(a), a.group.previous, a.owner
    names = [*a.group.members, None]
    changed = np.flatnonzero((before >= 0) & (before != after))
    assert [move[:3] for move in why] == [(a.group.at(p), names[before[p]], names[after[p]]) for p in changed.tolist()]
    placed = np.flatnonzero(a.placed)
    assert [(move.partition, move.target) for move in why.placed] == [
        (a.group.at(p), names[after[p]]) for p in placed.tolist()]
    assert all(isinstance(move, Move) and move.reason for move in [*why, *why.placed])
    lines = repr(why).count("\n") - sum(fill(str(note)).count("\n") + 1 for note in a.notes)
    assert lines <= 21 and why._repr_html_().count("<tr>") == lines + bool(lines)
    assert why[:] == list(why) and (not len(why) or why[-1] == why[len(why) - 1])


@given(assignments())
def test_loads_in_reasons_are_those_without_the_move(a):
    why, loads = explain(a), dict(zip(a.group.members, a.loads.tolist()))
    without = dict(zip(a.group.members, take_back_unnecessary(MoveGraph(a)).load.tolist()))
    for move in why:
        if move.reason.startswith("balance"):
            so = without if "the unnecessary moves" in move.reason else loads
            source, target = (move.source, so[move.source] + 1), (move.target, so[move.target] - 1)
            assert " {} would have {} and {} {}".format(*source, *target) in move.reason
            assert why.unnecessary or so is loads


@given(assignments(), st.lists(st.integers(0, 8)))
def test_figures_are_those_of_the_summary(a, left):
    owner = a.owner.copy()
    owner[[place for place in left if place < len(owner)]] = -1
    a = Assignment(a.group, owner)
    summary, lost = a.summary(), int(((a.group.previous >= 0) & (owner < 0)).sum())
    head = repr(explain(a)).splitlines()[0]
    moved, placed = (summary[key] if a.group.members else 0 for key in ("moved", "placed"))
    assert re.match(rf"<assignment: {moved} moved\b", head) and f"; {placed} placed" in head
    assert head.endswith(f"; {lost} now unassigned>") if lost else "unassigned" not in head
    assert "with these loads" not in head or not lost


def loads_within_reach(a, stay):
    """The loads of all assignments in which `stay` have their previous owners; placed partitions go anywhere."""
    owner = a.owner.copy()
    owner[stay] = a.group.previous[stay]
    free = np.flatnonzero(a.placed)
    choices = [a.group.subscribers(a.group.at(int(place)).topic).tolist() for place in free]
    assume(np.prod([len(choice) for choice in choices]) <= 3000)
    for chosen in itertools.product(*choices):
        owner[free] = chosen
        yield Assignment(a.group, owner).loads.tolist()


@given(assignments())
def test_all_unnecessary_moves_can_be_taken_back_together(a):
    changed = np.flatnonzero((a.group.previous >= 0) & (a.group.previous != a.owner))
    moves = list(zip(changed.tolist(), explain(a)))
    unnecessary = [place for place, move in moves if move.reason.startswith("unnecessary")]
    assert len(unnecessary) == explain(a).unnecessary
    loads = take_back_unnecessary(MoveGraph(a)).load.tolist()
    assert squares(loads) <= squares(a.loads)
    assert loads in loads_within_reach(a, unnecessary)


@given(assignments())
def test_no_choice_of_the_other_moves_can_be_taken_back(a):
    loads = take_back_unnecessary(MoveGraph(a)).load.tolist()
    number = {name: i for i, name in enumerate(a.group.members)}
    arrows = [(number[move.source], number[move.target]) for move in explain(a) if move.reason.startswith("balance")]
    for n in range(1, len(arrows) + 1):
        for some in itertools.combinations(arrows, n):
            back = np.array(loads)
            for source, target in some:
                back[source] += 1
                back[target] -= 1
            assert squares(back) > squares(loads)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5))
def test_the_bound_is_the_least_over_all_orders(pairs):
    had, has = map(np.array, zip(*pairs))
    orders = itertools.permutations(has.tolist())
    assert least_moves(had, has) == min(int(np.maximum(had - np.array(order), 0).sum()) for order in orders)


@given(assignments())
def test_no_assignment_moves_fewer_than_the_bound(a):
    assert explain(a).least <= len(explain(a))


@given(groups())
def test_an_answer_that_moves_nothing_needs_no_reasons(group):
    kept = explain(Assignment(group, group.previous))
    assert len(kept) == 0 and kept.placed == () and kept.unnecessary == kept.least == 0


def test_everything_moved_in_a_large_group():
    members, topics = [f"m{n:04}" for n in range(1000)], [f"t{n:03}" for n in range(100)]
    random = np.random.default_rng(7)
    before, after = random.integers(1000, size=(2, 100_000))
    group = Group.from_arrays(topics, np.full(100, 1000), members, np.ones((1000, 100), bool), previous=before)
    began = time.process_time()
    why = explain(Assignment(group, after))
    assert len(why) == (before != after).sum() and 80_000 < why.unnecessary < len(why) and repr(why)
    assert time.process_time() - began < 10         # about a second
    least = explain(assign(group, "sticky"))
    assert least.unnecessary == 0 and len(least) == least.least


def test_one_large_circle():
    group = Group({"t": 2000}, {f"m{n:04}": ["t"] for n in range(2000)}, {f"m{n:04}": [("t", n)] for n in range(2000)})
    why = explain(Assignment(group, (group.previous + 1) % 2000))
    assert len(why) == why.unnecessary == 2000 and why.least == 0


def test_void_claims():
    group = Group({"t": 4, "u": 1}, [
        Member("a", ["t"], owned=[("t", 0), ("u", 0), ("t", 2)], generation=3),
        Member("b", ["t", "u"], owned=[("t", 0), ("t", 0), ("t", 9), ("x", 0), ("u", 0)], generation=3),
        Member("c", ["t"], owned=[("t", 1)], generation=3), Member("d", [], owned=[("t", 1)], generation=4),
        Member("e", ["t"], owned=[("t", 2)], generation=4)])
    assert group.previous.tolist() == [-1, -1, 4, -1, -1]
    assert {move.partition: move[1:2] + move[3:] for move in explain(assign(group, "kip54")).placed} == {
        ("t", 0): (None, "void: a and b claim it in the same generation"),
        ("t", 1): ("d", "d no longer subscribes to t"),
        ("t", 3): (None, "no previous owner: it is new, or its owner has left"),
        ("u", 0): (None, "void: a and b claim it in the same generation")}


def test_names_are_shown_as_text():
    red = "\x1b[31m{source}"
    group = Group({"<i>": 2}, {red: ["<i>"], "b": ["<i>"]}, owned={red: [("<i>", 0), ("<i>", 1)]})
    for after in ([1, 1], [1, 0]):
        why = explain(Assignment(group, after))
        assert "\x1b" not in repr(why) and "\x1b" not in why._repr_html_() and "<i>" not in why._repr_html_()
        assert why[0].source in group.members and why[0].partition == ("<i>", 0)


def withholding(a):
    """The same assignment, of which a cooperative strategy hands out only what stays where it is."""
    return Assignment(a.group, np.where(a.kept, a.target, -1), a.strategy, target=a.target)


@given(assignments())
def test_what_is_withheld_is_said_at_each_move(a):
    later = withholding(a)
    at_once, why = explain(a), explain(later)
    assert list(why) == list(at_once) and why.placed == at_once.placed and why.unnecessary == at_once.unnecessary
    count = int((a.moved | a.placed).sum())
    assert later.withheld.sum() == count and "withheld" not in repr(at_once)
    lines = [line for line in repr(why).splitlines() if line.startswith("  ")]
    assert sum(line.startswith(("  moved, withheld ", "  placed, withheld ")) for line in lines) == min(
        count, 20 - int((a.unassigned & (a.group.previous >= 0)).sum()))
    noun = "partition" if count == 1 else "partitions"
    said = [text for text in (" ".join(repr(why).split()), why._repr_html_())
            if f"{count} {noun} withheld until the member that may still consume" in text]
    assert len(said) == 2 * (count > 0)


def test_one_of_two_moves_is_withheld():
    group = Group({"t": 4}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", number) for number in range(4)]})
    why = repr(explain(Assignment(group, [0, 0, 1, -1], "by hand", target=[0, 0, 1, 1]))).splitlines()
    assert [line.split("  ")[1] for line in why[1:3]] == ["moved", "moved, withheld"]
    assert why[1].split()[1] == "t-2" and why[2].split()[2] == "t-3"
    assert " ".join(why[3:]) == ("1 partition withheld until the member that may still consume it has revoked it; "
                                 "a second rebalance assigns it")


def test_a_void_claim_names_few_claimants():
    for count, words in (2, "m000 and m001"), (3, "m000, m001 and m002"), (200, "m000, m001, m002 and 197 more"):
        group = Group({"t": 1}, [Member(f"m{n:03}", ["t"], owned=[("t", 0)]) for n in range(count)])
        assert [move.reason for move in explain(assign(group, "range")).placed] == [
            f"void: {words} claim it in the same generation"]


@given(assignments())
def test_moves_pickle(a):
    why = explain(a)
    again = pickle.loads(pickle.dumps(why))
    assert list(again) == list(why) and again.placed == why.placed and repr(again) == repr(why)
    assert (again.unnecessary, again.least) == (why.unnecessary, why.least)


# --- forecasts of Kafka's own assignors ----------------------------------------------------------------------------

@given(groups(max_topics=3, max_members=4, max_partitions=4), st.sampled_from(["sticky", "cooperative-sticky"]))
def test_a_move_of_kafka_s_assignor_is_unnecessary_if_the_optimum_does_without(group, optimum):
    try:
        forecast = assign(group, f"kafka-{optimum}")
    except ForecastError:
        assume(False)
    best, why, names = assign(group, optimum), explain(forecast), forecast.group.members
    assert squares(best.loads) <= squares(forecast.loads)                     # what every such reason claims
    loads, spared = dict(zip(names, forecast.loads.tolist())), 0
    for move in why:
        place = forecast.group.position(*move.partition)
        keeps = best.target[place] == names.index(move.source)
        assert move.reason.startswith("unnecessary: ") == keeps
        spared += keeps
        if keeps:
            assert f"under {optimum}, {move.source} keeps it" in move.reason
        elif loads[move.source] >= loads[move.target]:
            assert f"{move.source} would have {loads[move.source] + 1} and {move.target} {loads[move.target] - 1}" \
                in move.reason
        else:
            assert move.reason == f"{optimum} moves it, too"
    assert why.unnecessary == spared == int((forecast.moved & best.kept).sum())
    assert (f"{spared} of them unnecessary: {optimum} does without;" in repr(why)) == (spared > 0)


def test_the_optimum_is_compared_only_with_what_kafka_computes():
    """The same owners under any other name are explained by themselves."""
    group = Group({"t0": 1, "t1": 3}, [Member("C0", ["t0", "t1"]), Member("C1", ["t0"]),
                                       Member("C2", ["t0", "t1"], owned=[("t0", 0), ("t1", 1), ("t1", 2)])])
    forecast = assign(group, "kafka-sticky")
    plain = explain(Assignment(group, forecast.owner, "by hand"))
    assert "sticky" not in repr(plain) and "under sticky" in repr(explain(forecast))
    assert repr(pickle.loads(pickle.dumps(explain(forecast)))) == repr(explain(forecast))
