"""Proofs in words: what they say of levels and of room is held against all assignments of small groups."""
import itertools
import re

import numpy as np
import pytest
from groups import groups
from hypothesis import assume, given

from kafka_assign import Assignment, AssignmentError, Group, assign
from kafka_assign.assignors.exact.proving import prove
from kafka_assign.certificate import CertificateError
from kafka_assign.proof import SHOWN_LINES, proof_document, proof_of

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
    assert all(proof.moved == proof.least == fewest for proof in proofs)


@given(tiny)
def test_each_reason_is_true_of_every_flattest_assignment(group):
    every, proofs = all_proofs(group)
    for proof in proofs:
        assert np.unique(np.concatenate([[], proof.lifted, *(short.places for short in proof.shortages)])).size == (
            len(proof.lifted) + sum(len(short.places) for short in proof.shortages))
        for owner in every:
            assert (owner[proof.lifted] != group.previous[proof.lifted]).all()
            for short in proof.shortages:
                stay = owner[short.places] == group.previous[short.places]
                assert stay.sum() <= short.room < len(short.places)
                assert set(group.previous[short.places].tolist()) <= set(short.dearer.tolist())


@given(tiny)
def test_levels_say_what_is_so(group):
    for proof in all_proofs(group)[1]:
        loads, owner = proof.assignment.loads, proof.assignment.owner
        assert sorted(member for one in proof.levels for member in one.members) == list(range(len(group.members)))
        assert sum(one.partitions for one in proof.levels) == (owner >= 0).sum()
        level = {member: one.level for one in proof.levels for member in one.members.tolist()}
        for one in proof.levels:
            assert {one.fewest, one.most} <= {one.level, one.level - 1}
            assert {one.fewest, one.most} == {int(loads[one.members].min()), int(loads[one.members].max())}
            for topic in one.topics.tolist():
                assert min(level[member] for member in group.subscribers(group.topics[topic]).tolist()) == one.level
                lie = owner[group.columns.topic_of == topic].tolist()
                assert {level[member] for member in lie} == {one.level}


@given(groups())
def test_numbers_in_the_text_add_up(group):
    proof = proof_of(assign(group, "sticky"))
    text = repr(proof)
    assert len(proof.reasons) <= SHOWN_LINES + 2 and all(line.isprintable() for line in text.split("\n"))
    assert sum(int(re.match(r"[\d,]+", reason)[0]) for reason in proof.reasons) == proof.moved == proof.least
    assert proof._repr_html_().count("<tr>") == 2 + len(proof.level_rows) + len(proof.more_levels) + len(proof.reasons)
    document = proof_document(proof)
    assert (document["holds"], document["least_moved"]) == (True, proof.moved)
    assert list(document["levels"]) == list(document["prices"]) == list(group.members)


def test_long_proofs_are_cut_and_still_add_up():
    topics = {f"t{n:02}": n + 2 for n in range(40)}
    members = {f"{side}{topic}": [topic] for topic in topics for side in "ab"}
    owned = {f"a{topic}": [(topic, number) for number in range(count)] for topic, count in topics.items()}
    proof = proof_of(assign(Group(topics, members, owned), "sticky"))
    assert len(proof.shortages) == 21 and len(proof.levels) == 21 and proof.more_levels == ["and 9 more levels"]
    assert sum(int(re.match(r"[\d,]+", reason)[0]) for reason in proof.reasons) == proof.moved == proof.least
    assert proof.reasons[-1].endswith("for 9 reasons of this kind") and len(repr(proof).splitlines()) < 60


def test_what_lay_too_high():
    reads, had = {"a": ["t", "u"], "b": ["u"]}, [("t", 0), ("t", 1), ("t", 2), ("u", 0)]
    group = Group({"t": 3, "u": 1}, reads, owned={"a": had})
    proof = proof_of(assign(group, "sticky"))
    assert proof.reasons == ["1 lay above the lowest level of their topic (u-0)"] and not proof.shortages


def test_nobody_and_nothing():
    for group in (Group({}, {}), Group({"t": 2}, {}), Group({}, {"a": ["t"]}), Group({"t": 0}, {"a": ["t"]})):
        proof = proof_of(assign(group, "sticky"))
        assert proof.moves == "Moves: none; nobody owned a partition before." and not proof.reasons
    assert "Nobody subscribes to the 2 that have no owner." in repr(proof_of(assign(Group({"t": 2}, {}), "sticky")))


def test_what_is_not_best_has_no_proof():
    group = Group({"t": 4}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", 0), ("t", 1), ("t", 2), ("t", 3)]})
    for owner in ([0, 0, 0, 1], [1, 1, 1, 0]):
        with pytest.raises(CertificateError):
            proof_of(Assignment(group, owner, "worse", prove))
    with pytest.raises(AssignmentError, match="proves its answers"):
        proof_of(assign(group, "range"))
