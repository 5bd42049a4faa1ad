"""Proofs in words: what they say of levels and of room is held against all assignments of small groups."""
import itertools
import re
from contextlib import redirect_stdout

import numpy as np
import pytest
from groups import groups
from hypothesis import assume, given
from test_foreign_names import Screen

from kafka_assign import Assignment, AssignmentError, Group, assign
from kafka_assign.certificate.making import prove
from kafka_assign.comparison import Comparison
from kafka_assign.certificate import CertificateError
from kafka_assign.certificate.words import SHOWN_LINES, proof_of, shortage_words
from kafka_assign.cli.arguments import demo_group
from kafka_assign.cli.output import proof_block, proof_rows, show_blocks

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
        assert np.unique(np.concatenate([[], proof.too_high, *(short.places for short in proof.shortages)])).size == (
            len(proof.too_high) + sum(len(short.places) for short in proof.shortages))
        for owner in every:
            assert (owner[proof.too_high] != group.previous[proof.too_high]).all()
            for short in proof.shortages:
                stay = owner[short.places] == group.previous[short.places]
                assert stay.sum() <= short.room < len(short.places)
                assert set(group.previous[short.places].tolist()) <= set(short.dearer.tolist())


@given(tiny)
def test_each_reason_counts_what_it_says(group):
    proof = proof_of(assign(group, "sticky"))
    level, price = map(np.array, proof.certificate)
    readers = [group.subscribers(topic) for topic in group.topics]
    lowest = [set(who[level[who] == level[who].min(initial=len(level) * 9)].tolist()) for who in readers]
    opened = [lowest[topic] for topic in group.columns.topic_of.tolist()]
    for short in proof.shortages:
        dearer, takers, cheaper = (set(who.tolist()) for who in (short.dearer, short.takers, short.cheaper))
        assert takers <= cheaper and {price[m] for m in takers} == {max(price[m] for m in cheaper)}
        lay = [place for place, had in enumerate(group.previous.tolist()) if had in dearer and opened[place] & takers
               and not opened[place] & (cheaper - takers)]
        assert lay == sorted(short.places.tolist())
        if short.from_above:
            assert short.reserved == sum(bool(who) and who <= dearer for who in opened)
            assert short.available == proof.assignment.loads[short.dearer].sum()
        else:
            assert short.available == sum(bool(who & cheaper) for who in opened)
            assert short.reserved == proof.assignment.loads[short.cheaper].sum()
        assert f"{len(short.places)} partition" in shortage_words(group, short, price)
        assert (", but to nobody cheaper:" in shortage_words(group, short, price)) == (takers < cheaper)


@given(tiny)
def test_levels_say_what_is_so(group):
    for proof in all_proofs(group)[1]:
        loads, owner = proof.assignment.loads, proof.assignment.owner
        assert sorted(member for one in proof.levels for member in one.members) == list(range(len(group.members)))
        assert sum(one.partitions for one in proof.levels) == (owner >= 0).sum()
        level = {member: one.level for one in proof.levels for member in one.members.tolist()}
        for one in proof.levels:
            assert set(one.loads.tolist()) <= {one.level, one.level - 1}
            assert one.loads.tolist() == loads[one.members].tolist()
            carry = one.row(group)[2].split(" or ")
            assert sorted(map(int, carry)) == sorted(set(one.loads.tolist()))
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
    tables = [proof.level_table.rows, proof.reasons]
    assert proof._repr_html_().count("<tr>") == sum(len(rows) + 1 for rows in tables if rows)
    document = proof.document()
    assert (document["holds"], document["least_moved"]) == (True, proof.moved)
    assert list(document["levels"]) == list(document["prices"]) == list(group.members)


def test_long_proofs_are_cut_and_still_add_up():
    topics = {f"t{n:02}": n + 2 for n in range(40)}
    members = {f"{side}{topic}": [topic] for topic in topics for side in "ab"}
    owned = {f"a{topic}": [(topic, number) for number in range(count)] for topic, count in topics.items()}
    proof = proof_of(assign(Group(topics, members, owned), "sticky"))
    assert (
        len(proof.shortages) == 21 and len(proof.levels) == 21 and proof.level_table.rows[-1][0] == "and 9 more levels"
    )
    assert sum(int(re.match(r"[\d,]+", reason)[0]) for reason in proof.reasons) == proof.moved == proof.least
    assert proof.reasons[-1].endswith("for 9 reasons of this kind") and len(repr(proof).splitlines()) < 60


def test_what_lay_too_high():
    reads, had = {"a": ["t", "u"], "b": ["u"]}, [("t", 0), ("t", 1), ("t", 2), ("u", 0)]
    group = Group({"t": 3, "u": 1}, reads, owned={"a": had})
    proof = proof_of(assign(group, "sticky"))
    assert proof.reasons == ["1 partition that lay above the lowest level of its topic (u-0)"] and not proof.shortages


def test_reasons_of_the_demo():
    proof = proof_of(assign(demo_group(), "sticky"))
    assert proof.reasons == [
        "1 of 4 partitions that lay with billing-1 (price 2), open to billing-2 or billing-3 (price 1), but to nobody "
        "cheaper: billing-1 can carry 3, so 3 can stay",
        "2 of 3 partitions that lay with billing-1, billing-2 and billing-3 (price 1 to 2), open to newsletter "
        "(price 0): billing-1, billing-2 and billing-3 can carry 9, and 8 of that is for what is open to nobody "
        "cheaper, so 1 can stay",
    ]
    assert "is open to" not in proof.moves  # of one level: to all who subscribe


def test_with_several_levels_it_is_said_what_is_open_to_whom():
    owned = {"a": [("t", 0), ("t", 1), ("t", 2), ("u", 0)]}
    proof = proof_of(assign(Group({"t": 3, "u": 1}, {"a": ["t", "u"], "b": ["t"], "c": ["u"]}, owned), "sticky"))
    assert [one.level for one in proof.levels] == [2, 1] and (proof.moved, len(proof.shortages)) == (2, 1)
    assert "A partition is open to the subscribers on the lowest level of its topic." in proof.moves


def test_nobody_and_nothing():
    for group in (Group({}, {}), Group({"t": 2}, {}), Group({}, {"a": ["t"]}), Group({"t": 0}, {"a": ["t"]})):
        proof = proof_of(assign(group, "sticky"))
        assert proof.moves == "Moves: none; no partition had a valid owner." and not proof.reasons
    proof = proof_of(assign(Group({"t": 2}, {}), "sticky"))
    assert "Left without an owner, since nobody subscribes: 2 partitions." in " ".join(repr(proof).split())
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

    def rows(answer):
        return list(proof_rows(Comparison(group, {"best": answer})))

    for kind in (list, tuple, np.asarray):
        own = Assignment(group, best.owner, "own", lambda *answer: [kind(part.tolist()) for part in prove(*answer)])
        assert repr(proof_of(own)) == repr(proof_of(best)).replace("sticky", "own")
        assert proof_of(own).document() == proof_of(best).document()
        assert rows(own) == rows(best)
    assert proof_of(Assignment(Group({"t": 2}, {}), [-1, -1], "nobody", lambda *answer: ([], []))).least == 0
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
        show_blocks(proof_block(proof_of(assign(demo_group(), "sticky"))))
    text = re.sub(r"\x1b\[\d*m", "", file.getvalue())  # bold
    assert max(map(len, text.splitlines())) <= min(columns, 120)
    words = " ".join(text.split())
    assert "none as flat moves fewer Balance: every member" in words and words.endswith("of the strategy.")
