"""Certificates: every best answer has one that the check accepts, and no certificate makes it accept a worse answer."""
import itertools
from functools import partial

import numpy as np
import pytest
from groups import groups, owners
from hypothesis import assume, given, strategies as st
from oracles import best_answers

from kafka_assign import Assignment, AssignmentError, Group, assign
from kafka_assign.assignors.sticky import proving
from kafka_assign.groups.certificate import Certificate, CertificateError, check, check_columns
from kafka_assign.arrays.columns import side_by_side

prove = partial(proving.prove, prefer=("kept",))        # what `best_answers` finds
tiny = groups(max_topics=3, max_members=4, max_partitions=3)
randoms = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def worth(columns, owner):
    """Flatter and keeping more is less."""
    load = np.bincount(owner[owner >= 0], minlength=columns.member_count)
    return int((load * load).sum()), -int(((owner == columns.previous) & (owner >= 0)).sum())


def failing(columns, owner, certificate):
    """The condition that fails, or None."""
    try:
        check_columns(columns, owner, certificate)
    except CertificateError as error:
        return int(str(error).removeprefix("condition ")[0])


def altered(columns, owner, random):
    """An owner column in which a few partitions are with other subscribers."""
    other = owner.copy()
    for partition in random.integers(columns.size, size=random.integers(1, 4)):
        may = columns.subscribers_of(columns.topic_of[partition])
        if may:
            other[partition] = random.choice(may)
    return other


def forged(certificate, random):
    """A certificate with some numbers changed: slightly, at random, or to the ends of what int64 can hold."""
    ends = np.array([2**63 - 1, -2**63, 2**62, -2**62, 2**60, -2**60])
    parts = [part.copy() for part in certificate[:2]]
    for part in parts:
        how, place = random.integers(6), random.integers(max(len(part), 1))
        if how < 3:
            part[place:place + 1] += random.integers(-2, 3)
        elif how == 3:
            part[:] = random.integers(-2, 5, len(part))
        elif how == 4:
            part[place:place + 1] = random.choice(ends)
    return Certificate(*parts, *certificate[2:])


@given(tiny)
def test_every_best_answer_is_proved(group):
    for owner in best_answers(group.columns):
        assignment = Assignment(group, owner, "by hand", prove)
        assert check(group, assignment, assignment.certificate) is None


@given(tiny, randoms)
def test_no_worse_answer_is_accepted_whatever_the_certificate(group, random):
    columns = group.columns
    assume(columns.size and columns.member_count > 1)
    best = best_answers(columns)[0]
    for _ in range(48):
        other = altered(columns, best, random)
        proofs = [prove(columns, best), prove(columns, other)]
        if worth(columns, other) == worth(columns, best):
            assert failing(columns, other, proofs[1]) is None
        else:
            proofs += [forged(proofs[random.integers(2)], random) for _ in range(10)]
            for proof in proofs:
                assert failing(columns, other, proof) is not None, (other, proof)


@given(groups(max_topics=2, max_members=2, max_partitions=3).flatmap(lambda g: st.tuples(st.just(g), owners(g))))
def test_small_numbers_one_by_one_prove_the_best_and_nothing_else(drawn):
    group, owner = drawn
    columns, owner = group.columns, np.array(owner, np.int32)
    assume(columns.member_count and columns.size)
    levels = itertools.product(range(5), repeat=columns.member_count)
    prices = itertools.product(range(-1, 2), repeat=columns.member_count)
    complete = ((owner >= 0) | (columns.subscriber_counts[columns.topic_of] == 0)).all()
    is_best = complete and worth(columns, owner) == worth(columns, best_answers(columns)[0])
    accepted = any(failing(columns, owner, Certificate(np.array(level), np.array(price))) is None
                   for level, price in itertools.product(levels, prices))
    assert accepted <= is_best
    if np.bincount(owner[owner >= 0], minlength=1).max() < 5:
        assert accepted == is_best


@given(st.lists(tiny, max_size=4))
def test_side_by_side_is_proved_as_one_by_one(several):
    parts = [group.columns for group in several]
    answers = [best_answers(columns)[-1] for columns in parts]
    union = side_by_side(parts)
    first = np.repeat(union.member_offsets[:-1], np.diff(union.group_offsets))
    owner = np.concatenate([np.zeros(0, np.int32), *answers])
    proof = prove(union, np.where(owner >= 0, owner + first, -1).astype(np.int32))
    assert failing(union, np.where(owner >= 0, owner + first, -1), proof) is None
    alone = [prove(columns, answer) for columns, answer in zip(parts, answers)]
    for at in (0, 1):
        assert proof[at].tolist() == [number for one in alone for number in one[at].tolist()]


@pytest.fixture
def group():
    """A had everything, and B joined."""
    return Group({"t": 4, "nobody's": 1}, {"A": ["t"], "B": ["t"]}, owned={"A": [("t", n) for n in range(4)]})


LEVEL, PRICE = np.array([2, 2]), np.array([1, 0])
BEST = np.array([-1, 0, 0, 1, 1])


@pytest.mark.parametrize("certificate", [
    None, 7, (), (LEVEL,), (LEVEL, PRICE, PRICE), "ab", (LEVEL, None), (LEVEL, [[1], [0, 1]]), ("2", "1"), {1: 2, 3: 4},
    (LEVEL[:1], PRICE), (LEVEL, np.append(PRICE, 0)), (LEVEL[:, None], PRICE), (2, 1), ([], []),
    (LEVEL.astype(float), PRICE), (LEVEL, PRICE.astype(object)), (LEVEL, PRICE.astype(bool)),
    (LEVEL, PRICE.astype(complex)),
    (LEVEL.astype(np.uint64), PRICE), (LEVEL, np.array([1, 2**63 - 1])), (LEVEL, np.array([-2**63, 0])),
    (LEVEL, PRICE.astype("m8[s]")), (LEVEL, np.array([2**60 + 1, 2**60])), (LEVEL, [2**70, 0]), (LEVEL, [np.nan, 0.0])])
def test_certificates_that_are_none(group, certificate):
    assert failing(group.columns, BEST, certificate) == 0


@pytest.mark.parametrize("owner", [
    BEST[:-1], np.append(BEST, 0), BEST[:, None], BEST.astype(float), BEST.astype(object), None, 3, [], "owner",
    [0, 0, 0, 1, 1], [-1, -1, 0, 1, 1], [-1, 2, 0, 1, 1], [-1, -2, 0, 1, 1],
    [-1, 2**62, 0, 1, 1], [-1, -2**63, 0, 1, 1]])
def test_owners_that_are_none(group, owner):
    assert failing(group.columns, owner, (LEVEL, PRICE)) == 1


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, ">i4"])
def test_any_whole_numbers_will_do(group, kind):
    assert failing(group.columns, BEST.astype(kind), (LEVEL.astype(kind), PRICE.astype(kind))) is None
    assert failing(group.columns, BEST.tolist(), (LEVEL.tolist(), PRICE.tolist())) is None
    assert failing(group.columns, BEST.astype(kind), ([127, 127], [127, -128])) == 2


@pytest.mark.parametrize("owner, level, price, message", [
    ([-1, 0, 0, 0, 1], LEVEL, PRICE, "condition 2: a load must be the level or one less (violated by A)"),
    ([-1, -1, 0, 1, 1], LEVEL, PRICE, "condition 1: a partition must be owned by a subscriber, if there is one "
                                      "(violated by t-0)"),
    (BEST, [2, 3], PRICE, "condition 3: an owner must be on the lowest level (violated by t-2)"),
    (BEST, LEVEL, [0, 0], "condition 4: an owner must make the least offer (violated by t-2)"),
    (BEST, LEVEL, [0, -1],
     "condition 5: a price must be >= 0 if its member is full, else <= 0 (violated by B)")])
def test_messages_name_condition_and_place(group, owner, level, price, message):
    with pytest.raises(CertificateError) as caught:
        check(group, Assignment(group, owner), Certificate(np.array(level), np.array(price)))
    assert str(caught.value) == message


def test_strategies_without_proof_say_so(group):
    with pytest.raises(AssignmentError, match="must come from a strategy that proves its answers .got 'range'"):
        assign(group, "range").certificate
