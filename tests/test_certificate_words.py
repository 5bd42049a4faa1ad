"""Proofs in words: what they say of levels and of room is held against all assignments of small groups."""
import itertools
import re
from contextlib import redirect_stdout
from functools import partial

import numpy as np
import pytest
from groups import groups
from hypothesis import assume, example, given
from test_foreign_names import Screen

from kafka_assign import Assignment, AssignmentError, Group, Member, assign
from kafka_assign.arrays.metrics import in_rack
from kafka_assign.assignors.sticky import proving
from kafka_assign.reports.comparison import Comparison
from kafka_assign.groups.certificate import CertificateError
from kafka_assign.reports.proof import _SHOWN_LINES, proof_of
from kafka_assign.samples import demo_group
from kafka_assign.cli.output import proof_blocks
from kafka_assign.cli.writing import write_blocks

prove = partial(proving.prove, prefer=("kept",))
tiny = groups(max_topics=3, max_members=4, max_partitions=3)


def flattest(group):
    """All owner columns of least squares that leave no partition without an owner for whom there is one."""
    columns = group.columns
    choices = [group.subscribers(group.topics[topic]).tolist() or [-1] for topic in columns.topic_of]
    assume(np.prod([len(choice) for choice in choices]) <= 3000)
    every = [np.array(owner, np.int32) for owner in itertools.product(*choices)]
    squares = [int((np.bincount(owner[owner >= 0], minlength=1) ** 2).sum()) for owner in every]
    return [owner for owner, square in zip(every, squares) if square == min(squares)]


def all_proofs(group):
    """Every flattest assignment, and the proof of each that keeps most."""
    every = flattest(group)
    kept = [int(((owner >= 0) & (owner == group.previous)).sum()) for owner in every]
    best = [owner for owner, count in zip(every, kept) if count == max(kept)]
    return every, [proof_of(Assignment(group, owner, "best", prove)) for owner in best[:20]]


@given(tiny)
def test_so_many_had_to_move(group):
    every, proofs = all_proofs(group)
    fewest = min(int(((group.previous >= 0) & (owner != group.previous)).sum()) for owner in every)
    assert all(proof.document()["least_moved"] == fewest for proof in proofs)


def counted(proof):
    """How many partitions each reason counts, by its level: "above" or "on"."""
    found = (re.match(r"([\d,]+) partitions? had a previous owner (above|on) ", reason) for reason in proof.reasons)
    return {"above": 0, "on": 0} | {one[2]: int(one[1].replace(",", "")) for one in found}


def too_high(proof):
    """The partitions whose previous owner is above the lowest level of the topic, one by one."""
    group, level = proof.assignment.group, proof.certificate.level
    return np.array([at for at, previous in enumerate(group.previous.tolist())
                     if previous >= 0 and level[previous] > min(level[group.subscribers(group.at(at).topic)])], int)


@given(tiny)
def test_each_reason_is_true_of_every_flattest_assignment(group):
    every, proofs = all_proofs(group)
    for proof in proofs:
        level, price, *_ = proof.certificate
        new, old = proof.assignment.owner, group.previous
        high = too_high(proof)
        others = np.setdiff1d(np.flatnonzero(proof.assignment.moved), high)
        assert counted(proof) == {"above": len(high), "on": len(others)}
        assert proof.assignment.moved[high].all() and (level[old[others]] == level[new[others]]).all()
        assert (price[old[others]] > price[new[others]]).all()
        for owner in every:
            assert (owner[high] != old[high]).all()
            moved = (old >= 0) & (owner != old)
            if not moved[others].all():
                assert (moved & ~proof.assignment.moved).any()


@given(tiny)
def test_levels_say_what_is_so(group):
    for proof in all_proofs(group)[1]:
        loads, owner, level = proof.assignment.loads, proof.assignment.owner, proof.certificate.level
        rows = proof.level_table.rows
        assert [int(row[0]) for row in rows] == sorted(set(level.tolist()), reverse=True)
        assert sum(int(row[3]) for row in rows) == (owner >= 0).sum()
        for row in rows:
            one, members, carry, partitions, topics = row
            of_level = np.flatnonzero(level == int(one))
            assert re.split(", | and ", members) == [group.members[member] for member in of_level]
            assert sorted(map(int, carry.split(" or "))) == sorted(set(loads[of_level].tolist()))
            owned = np.isin(owner, of_level)
            assert int(partitions) == owned.sum()
            assert all(group.topics[topic] in topics for topic in group.columns.topic_of[owned])


@given(groups())
def test_numbers_in_the_text_add_up(group):
    proof = proof_of(assign(group, "sticky"))
    text = repr(proof)
    assert len(proof.reasons) <= 2 and all(line.isprintable() for line in text.split("\n"))
    moved = int(proof.assignment.moved.sum())
    assert sum(counted(proof).values()) == moved
    tables = [proof.level_table.rows, proof.reasons]
    assert proof._repr_html_().count("<tr>") == sum(len(rows) + 1 for rows in tables if rows)
    document = proof.document()
    assert (document["holds"], document["least_moved"]) == (True, moved)
    assert list(document["levels"]) == list(document["prices"]) == list(group.members)


def test_long_proofs_are_cut():
    topics = {f"t{n:02}": n + 2 for n in range(40)}
    members = {f"{side}{topic}": [topic] for topic in topics for side in "ab"}
    owned = {f"a{topic}": [(topic, number) for number in range(count)] for topic, count in topics.items()}
    proof = proof_of(assign(Group(topics, members, owned), "sticky"))
    assert len(proof.level_table.rows) == _SHOWN_LINES + 1 and proof.level_table.rows[-1][0] == "and 9 more levels"
    assert len(repr(proof).splitlines()) < 60


def test_what_lay_too_high():
    subscribed, had = {"a": ["t", "u"], "b": ["u"]}, [("t", 0), ("t", 1), ("t", 2), ("u", 0)]
    group = Group({"t": 3, "u": 1}, subscribed, owned={"a": had})
    proof = proof_of(assign(group, "sticky"))
    assert proof.reasons == [
        "1 partition had a previous owner above the lowest level of the topic: "
        "every equally flat assignment moves it"]


def test_reasons_of_the_demo():
    proof = proof_of(assign(demo_group(), "sticky"))
    assert proof.reasons == [
        "2 partitions had a previous owner on the lowest level, with a higher price than the new owner: "
        "if an equally flat assignment keeps one of them, it moves another partition instead"]


@pytest.mark.parametrize("prefer, said", [
    ("kept", "moves fewer"), ("kept+racks", "moves fewer; of those that equal it, none has more partitions in their "
                                            "owner's rack"),
    ("spread+racks", "spreads topics more evenly; of those that equal it, none has more partitions in their owner's "
                     "rack; of those that equal it, none moves fewer")])
def test_the_ranking_is_said(prefer, said):
    group = Group({"t": 2}, [Member("a", ["t"], rack="r1"), Member("b", ["t"], rack="r2")],
                  partition_racks={"t": [["r1"], ["r2"]]})
    start = ": no assignment is flatter, and no equally flat one "
    assert proof_of(assign(group, "sticky", prefer=prefer)).head == f"sticky:prefer={prefer}{start}{said}"
    unknown = group.replace(partition_racks=None)                    # then nobody can be nearer
    assert "rack;" not in proof_of(assign(unknown, "sticky", prefer="racks+kept")).head


@given(tiny)
@example(Group({"t": 2}, [Member("a", ["t"], owned=[("t", 1)], rack="r1"),
                          Member("b", ["t"], owned=[("t", 0)], rack="r2")],
               partition_racks={"t": [["r1"], ["r2"]]}))           # random groups rarely have such moves
def test_reasons_are_true_where_racks_come_first(group):
    """Moves into a rack are counted; whoever keeps one of the others moves another, if as many are in their rack."""
    a = assign(group, "sticky", prefer="racks+kept")
    proof, every = proof_of(a), flattest(group)
    near = [in_rack(group.columns, owner)[0] for owner in every]
    moved = [(group.previous >= 0) & (owner != group.previous) for owner in every]
    as_good = [mask for mask, count in zip(moved, near) if count == max(near)]
    assert min(mask.sum() for mask in as_good) == proof.document()["least_moved"] == a.moved.sum()
    assert sum(int(reason.split()[0]) for reason in proof.reasons) == a.moved.sum()
    entered = [at for at in np.flatnonzero(a.moved) if at not in too_high(proof)
               and in_rack_of(group, at, group.previous[at]) < in_rack_of(group, at, a.owner[at])]
    said = [int(reason.split()[0]) for reason in proof.reasons if "only the rack of the new owner" in reason]
    assert said == [len(entered)] * bool(entered)


def in_rack_of(group, place, member):
    """Whether a replica of the partition is in the member's rack."""
    if group.columns.racks is None:
        return False
    racks, offsets, replicas = group.columns.racks
    return racks[member] >= 0 and racks[member] in replicas[offsets[place]:offsets[place + 1]]


def test_prices_of_topics_are_in_the_document():
    group = Group({"t": 2, "u": 2}, {"a": ["t", "u"], "b": ["t"]})
    document = proof_of(assign(group, "sticky", prefer="spread")).document()
    assert document["prefer"] == ["spread", "kept"]
    assert {topic: list(prices) for topic, prices in document["topic_prices"].items()} == {"t": ["a", "b"], "u": ["a"]}


def test_nobody_and_nothing():
    for group in (Group({}, {}), Group({"t": 2}, {}), Group({}, {"a": ["t"]}), Group({"t": 0}, {"a": ["t"]})):
        proof = proof_of(assign(group, "sticky"))
        assert proof.moves == "Moves: none; no partition had a valid owner." and not proof.reasons
    proof = proof_of(assign(Group({"t": 2}, {}), "sticky"))
    assert "2 partitions without an owner: no subscribers." in " ".join(repr(proof).split())
    assert "<tr>" not in proof._repr_html_()


def test_claims_that_do_not_hold_are_no_valid_owners():
    void = {"a": [("t", 0)], "b": [("t", 0), ("u", 0)]}
    proof = proof_of(assign(Group({"t": 1, "u": 1}, {"a": ["t", "u"], "b": ["t"]}, owned=void), "sticky"))
    assert proof.moves == "Moves: none; no partition had a valid owner."
    void["a"] = [("t", 1)]
    proof = proof_of(assign(Group({"t": 2, "u": 1}, {"a": ["t", "u"], "b": ["t"]}, owned=void), "sticky"))
    assert proof.moves == "Moves: none; every partition that had a valid owner stays with it."


def test_what_is_not_best_has_no_proof():
    group = Group({"t": 4}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", 0), ("t", 1), ("t", 2), ("t", 3)]})
    for owner in ([0, 0, 0, 1], [1, 1, 1, 0]):
        with pytest.raises(CertificateError):
            proof_of(Assignment(group, owner, "worse", prove))
    with pytest.raises(AssignmentError, match="proves its answers"):
        proof_of(assign(group, "range"))


def test_any_columns_of_whole_numbers_are_a_certificate():
    group = Group({"t": 300}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", number) for number in range(300)]})
    best = assign(group, "sticky")
    for kind in (list, tuple, np.asarray):
        own = Assignment(group, best.owner, "own", lambda *answer: [kind(part.tolist()) for part in prove(*answer)[:2]])
        assert repr(proof_of(own)) == repr(proof_of(best)).replace("sticky", "own")
        assert proof_of(own).document() == proof_of(best).document() | {"prefer": ["kept"]}
    nobody = Assignment(Group({"t": 2}, {}), [-1, -1], "nobody", lambda *answer: ([], []))
    assert proof_of(nobody).document()["least_moved"] == 0
    small = Assignment(
        Group({"t": 150}, {"a": ["t"], "b": ["t"]}),
        [0] * 75 + [1] * 75,
        "small",
        lambda columns, owner: np.array([[75, 75], [0, 0]], np.int8),
    )
    assert "150" in repr(proof_of(small))


def test_names_are_not_torn_and_numbers_are_written_alike():
    members = [f"billing-{number}" for number in range(4)]
    group = Group(
        {"very-long-topic": 40_000},
        dict.fromkeys(members, ["very-long-topic"]),
        owned={members[0]: [("very-long-topic", number) for number in range(40_000)]},
    )
    text = repr(proof_of(assign(group, "sticky")))
    assert "10,000      40,000" in text and not any(line.endswith("-") for line in text.splitlines())


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_a_proof_fits_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(Screen()) as file:
        write_blocks(*proof_blocks(Comparison(demo_group(), {"sticky": assign(demo_group(), "sticky")})))
    text = re.sub(r"\x1b\[\d*m", "", file.getvalue())  # bold
    assert max(map(len, text.splitlines())) <= min(columns, 120)
    words = " ".join(text.split())
    assert "no equally flat one moves fewer Balance: every member" in words and words.endswith("no strategy.")
