"""Why partitions moved: some optimum leaves out all unnecessary moves, checked by trying everything."""

import itertools
import pickle
import re
import time
from textwrap import fill

import numpy as np
from groups import groups, owners
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kafka_assign import Assignment, Group, Member, assign
from kafka_assign.assignors.base import ForecastError
from kafka_assign.reports.moves import Move, explain


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
    loads = dict(zip(a.group.members, a.loads.tolist()))
    for move in explain(a):
        if move.reason.startswith("balance"):
            assert loads[move.source] >= loads[move.target]
            assert (f"{move.source} would have {loads[move.source] + 1} and "
                    f"{move.target} {loads[move.target] - 1}") in move.reason


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
    assert "no equally balanced" not in head or not lost


def optima(group):
    """All owner columns of flattest loads that keep most, by trying everything; -1 only where nobody subscribes."""
    choices = [group.subscribers(group.topics[topic]).tolist() or [-1] for topic in group.columns.topic_of]
    assume(np.prod([len(choice) for choice in choices]) <= 3000)
    every = [Assignment(group, owner) for owner in itertools.product(*choices)]
    rank = [(squares(one.loads), int(one.moved.sum())) for one in every]
    return [one for one, found in zip(every, rank) if found == min(rank)]


@given(assignments())
def test_all_unnecessary_moves_can_be_left_out_together(a):
    """Some optimum leaves all of these partitions where they were, and none leaves more of their kind."""
    why, best = explain(a), optima(a.group)
    unnecessary = [a.group.position(*move.partition) for move in why if move.reason.startswith("unnecessary")]
    assert len(unnecessary) == why.unnecessary
    assert any(one.kept[unnecessary].all() for one in best)
    assert (why.unnecessary == 0) or squares(best[0].loads) <= squares(a.loads) or a.unassigned.any()
    assert len(why) - why.unnecessary - int(a.unassigned[a.group.previous >= 0].sum()) <= int(best[0].moved.sum())


@given(groups(max_topics=3, max_members=4, max_partitions=3), st.data())
def test_no_move_of_an_optimum_is_unnecessary(group, data):
    one = data.draw(st.sampled_from(optima(group)))
    why = explain(one)
    assert why.unnecessary == 0 and why.optimum is one
    assert not any("sticky" in move.reason for move in why)
    assert ("no equally balanced assignment moves fewer" in repr(why)) == (len(why) > 0)


RANKINGS = ["racks", "spread", "racks+spread", "spread+racks", "kept+racks", "racks+kept+spread"]


@settings(max_examples=60)
@given(groups(max_topics=3, max_members=4, max_partitions=3), st.sampled_from(RANKINGS))
def test_a_ranked_answer_is_compared_with_its_own_ranking(group, prefer):
    """What the goals above few moves demand is not unnecessary, and a move for a rack brings its partition into it."""
    best = assign(group, f"sticky:prefer={prefer}")
    why, racks = explain(best), {member.id: member.rack for member in group.details}
    assert why.unnecessary == 0 and why.optimum is best
    for move in why:
        if move.reason.startswith("rack"):
            replicas = dict(enumerate(group.partition_racks[move.partition.topic]))[move.partition.partition]
            assert racks[move.target] in replicas and racks[move.source] not in replicas
            assert prefer.partition("kept")[0].count("racks") == 1


@settings(max_examples=60)
@given(assignments(), st.sampled_from(["racks", "racks+spread", "spread"]))
def test_a_worse_answer_is_compared_with_the_best_one_of_its_ranking(a, prefer):
    a = Assignment(a.group, a.owner, f"sticky:prefer={prefer}+kept")
    why, best = explain(a), assign(a.group, a.strategy)
    necessary = len(why) - why.unnecessary - int(a.unassigned[a.group.previous >= 0].sum())
    assert necessary <= int(best.moved.sum())
    assert why.optimum is a or why.optimum == best


def test_the_optimum_may_move_more():
    group = Group({"t": 4}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", number) for number in range(4)]})
    assert repr(explain(Assignment(group, [0] * 4, "lazy"))) == (
        "<lazy: 0 moved (sticky moves 2 with more balanced loads); 0 placed>")
    head, line = repr(explain(Assignment(group, [0, 0, 0, 1], "half"))).splitlines()
    assert head == "<half: 1 moved (sticky moves 2 with more balanced loads); 0 placed>"
    assert line.endswith("balance: without this move, a would have 4 and b 0")
    group = group.replace(owned={"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]})
    lines = repr(explain(Assignment(group, [1, 1, 1, 1], "all"))).splitlines()
    assert lines[0] == "<all: 2 moved, 2 of them unnecessary (sticky moves 0 with more balanced loads); 0 placed>"
    assert lines[1].endswith("unnecessary: sticky takes fewer partitions of this kind from a")


def test_partitions_of_one_kind_are_interchangeable():
    """It does not matter which partition of topics with the same subscribers a member gives away."""
    group = Group({"t": 2, "u": 2}, {"a": ["t", "u"], "b": ["t", "u"]},
                  owned={"a": [("t", 0), ("t", 1), ("u", 0), ("u", 1)]})
    best, moved = assign(group, "sticky").moved, [[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]]
    for owner in moved:
        assert explain(Assignment(group, owner)).unnecessary == 0
    assert explain(Assignment(group, [1, 1, 1, 0])).unnecessary == 1 and best.sum() == 2


@given(groups())
def test_an_answer_that_moves_nothing_needs_no_reasons(group):
    kept = explain(Assignment(group, group.previous))
    assert len(kept) == 0 and kept.placed == () and kept.unnecessary == 0


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
    assert least.unnecessary == 0 and least.optimum is least.assignment


def test_one_large_circle():
    group = Group({"t": 2000}, {f"m{n:04}": ["t"] for n in range(2000)}, {f"m{n:04}": [("t", n)] for n in range(2000)})
    why = explain(Assignment(group, (group.previous + 1) % 2000))
    assert len(why) == why.unnecessary == 2000 and why.optimum.moved.sum() == 0


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
    assert again.unnecessary == why.unnecessary


@given(groups(max_topics=3, max_members=4, max_partitions=4), st.sampled_from(["sticky", "cooperative-sticky"]))
def test_forecasts_are_explained_as_their_owners_are(group, optimum):
    """The optimum is that of the claims by the forecast's own rule, and its loads are never less balanced."""
    try:
        forecast = assign(group, f"kafka-{optimum}")
    except ForecastError:
        assume(False)
    why = explain(forecast)
    plain = explain(Assignment(forecast.group, forecast.target))
    assert list(why) == list(plain) and why.unnecessary == plain.unnecessary
    assert squares(why.optimum.loads) <= squares(forecast.loads)
    best = assign(group, optimum)
    assert int(why.optimum.moved.sum()) == int(best.moved.sum())
    assert np.sort(why.optimum.loads).tolist() == np.sort(best.loads).tolist()
