"""The conformance suite finds what is broken, and only that; what strategies refuse, and how errors are reported."""

import copy
import os
import pickle
import subprocess
import sys
import unittest
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from broken import BROKEN, right
from groups import sending_groups
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign import (
    Assignment, AssignmentError, Group, Member, StrategyError, assign, assign_many, strategies)
from kafka_assign.assignors import conformance
from kafka_assign.fleet.codec import group_from_row, row_from_group
from kafka_assign.reports.moves import Moves
from kafka_assign.protocol.ownership import CLAIM_RULES
from kafka_assign.assignors.base import Strategy
from kafka_assign.assignors.registry import importable_place, resolve

HERE = Path(__file__).parent


def named(function):
    """The strategy under the name by which another process finds it."""
    return function if isinstance(function, Strategy) else Strategy(f"broken:{function.__name__}", function)


@pytest.mark.parametrize("name", strategies())
def test_every_registered_strategy_conforms(name):
    assert conformance.check_strategy(name).broken == []


def test_what_is_right_keeps_every_promise():
    assert set(conformance.check_strategy(named(right)).found.values()) == {""}


def test_words_do_not_decide_what_is_broken():
    """A finding may begin like the words for a promise that was not checked."""
    found = conformance.Promise("any-order", "same", lambda strategy: "not checked by the strategy: a has two owners")
    with patch.dict(conformance.PROMISES, {"any-order": found}):
        report = conformance.check_strategy("range", ["any-order"])
    assert report.broken == ["any-order"] and str(report).startswith("range: 1 broken")


def test_every_promise_has_a_strategy_that_breaks_it():
    assert BROKEN.keys() == conformance.PROMISES.keys()


@pytest.mark.parametrize("promise", BROKEN)
def test_a_strategy_broken_on_purpose_fails_exactly_that(promise):
    wrong = named(BROKEN[promise])
    promises = set(conformance.PROMISES) - ({"no-idle-members"} if promise == "many" else set())
    assert conformance.check_strategy(wrong, sorted(promises)).broken == [promise]


@pytest.mark.parametrize("answer", [None, {0}, [[0], [1, 2]]], ids=repr)
def test_what_is_no_owner_column_is_reported(answer):
    assert conformance.check_strategy(Strategy("mine", lambda group: answer)).broken == ["owner-column"]


@pytest.mark.parametrize("name", ["range", "roundrobin", "fair", "lag"])
def test_a_waived_promise_is_one_that_is_broken(name):
    chosen = resolve(name)
    assert list(chosen.without) == ["no-idle-members"]
    assert conformance.PROMISES["no-idle-members"].broken(chosen)


@pytest.mark.parametrize("strategy, passed", [("broken:right", True), ("broken:forgets_one", False)])
def test_the_suite_runs_under_pytest_on_a_strategy_of_ones_own(strategy, passed):
    environment = {"KAFKA_ASSIGN_STRATEGY": strategy, "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}", "PATH": ""}
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "kafka_assign.assignors.conformance"]
    done = subprocess.run([sys.executable, *words], env=environment, cwd=HERE, capture_output=True, text=True)
    assert (done.returncode == 0) is passed, done.stdout + done.stderr
    count = len(conformance.PROMISES)
    assert (f"{count} passed" if passed else f"1 failed, {count - 1} passed") in done.stdout


SEEDED = '''
from kafka_assign import strategy


@strategy("seeded")
def seeded(group):
    names = {member: place for place, member in enumerate(group.members)}
    first = [next(iter({group.members[place] for place in group.subscribers(topic)}), None) for topic in group.topics]
    return [names.get(first[topic], -1) for topic in group.columns.topic_of.tolist()]
'''


def test_a_decorated_strategy_of_the_current_folder_is_tested_with_other_hash_seeds(tmp_path):
    (tmp_path / "seedok.py").write_text(SEEDED)
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the user hides one of Python')\n")
    code = ("import json, sys; sys.path.insert(0, ''); from kafka_assign import check_strategy; "
            "print(check_strategy('seedok:seeded', ['any-hash-seed']))")
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "another hash seed (PYTHONHASHSEED) changes the answer" in done.stdout, done.stderr


def test_what_cannot_be_imported_has_no_place():
    assert importable_place(resolve("range")) == "kafka_assign.assignors.baselines:range_assign"
    assert importable_place(resolve("broken:swapped", which=2)) == "broken:swapped:which=2"
    assert importable_place(Strategy("other name", right)) == "broken:right"
    assert importable_place(Strategy("local", lambda group: right(group))) is None
    assert importable_place(Strategy("hides", resolve)) == "kafka_assign.assignors.registry:resolve"


def raises_always(group):
    raise KeyError("nothing")


@pytest.mark.parametrize("promise", sorted({*conformance.PROMISES} - {"odd-inputs", "any-hash-seed"}))
def test_a_promise_is_not_kept_by_raising(promise):
    report = conformance.check_strategy(raises_always, [promise])
    assert report.found == {promise: "not checked: it raised on every group"} and report.broken == []
    assert report.unchecked == {promise: len(conformance._all_groups())}
    assert "conforms" not in str(report) and "kept" not in str(report)
    report = conformance.check_strategy(named(BROKEN["odd-inputs"]), [promise])
    assert report.found[promise].startswith(f"not checked on {report.unchecked[promise]} of ")
    assert "kept" not in str(report)


def test_what_is_not_checked_is_skipped_under_pytest():
    for strategy in (raises_always, named(raises_always)):
        with pytest.raises(unittest.SkipTest, match="raised on every group"):
            conformance.test_conformance(strategy, "any-order")
    with pytest.raises(unittest.SkipTest, match="no other process could import"):
        conformance.test_conformance(lambda group: right(group), "any-hash-seed")
    with pytest.raises(AssertionError, match="however odd, makes it raise an error: .*KeyError"):
        conformance.test_conformance(raises_always, "odd-inputs")


@pytest.mark.parametrize("promises, words", [
    ([], r"\(got none\)"), (["any_order"], "got 'any_order'.; did you mean 'any-order'"), ("any", "got 'any'"),
    ([7], "got '7'")])
def test_promises_must_be_known(promises, words):
    with pytest.raises(StrategyError, match=words):
        conformance.check_strategy("range", promises)


def test_promises_that_are_not_made_must_be_known():
    with pytest.raises(StrategyError, match="'mine' must be .*no_idle_members'.; did you mean 'no-idle-members'"):
        conformance.check_strategy(Strategy("mine", right, without=["no_idle_members"]), ["any-order"])
    report = conformance.check_strategy(Strategy("mine", right, without="any-order"), "any-order")
    assert report.found == {"any-order": "not promised"}


# --- claims in user data --------------------------------------------------------------------------------------------

RULES = sorted(CLAIM_RULES)
AS_JAVA_READS_THEM = ["kafka-sticky", "kafka-cooperative-sticky"]        # tested in `test_kafka_sticky.py`
READS_CLAIMS = [name for name in strategies() if resolve(name).claims and name not in AS_JAVA_READS_THEM]
by_rule = st.sampled_from(RULES).flatmap(lambda rule: st.tuples(st.just(rule), sending_groups(rule)))


def keeper(rule, many=True):
    """A strategy that leaves every partition where it was, as far as it can tell by a rule."""
    return Strategy("keeper", lambda given: given.previous, many=many, claims=rule)


def answer(assignment):
    return assignment.owner.tolist(), assignment.target.tolist()


def test_some_strategies_read_claims():
    assert {"sticky", "kip54"} <= set(READS_CLAIMS) and not {"range", "roundrobin", "fair", "lag"} & set(READS_CLAIMS)
    assert {resolve(name).claims for name in READS_CLAIMS} <= set(RULES)


@pytest.mark.parametrize("rule, data, previous", [
    ("sticky", "00000001 0001 74 00000002 00000000 00000002 00000005", [0, -1, 0]),
    ("cooperative", "00000001 0001 74 00000002 00000000 00000002 00000005", [0, -1, 0]),
    ("stream-join", "00000002 00000000 00000002 00000005", [0, -1, 0]),
    ("sticky", "00000001 0001 74 00000002 00000000 0000", [-1, -1, -1])])
def test_bytes_written_by_hand(rule, data, previous):
    """Partitions 0 and 2 of topic t, of generation or epoch 5; and bytes that end too early."""
    group = Group({"t": 3}, [Member("a", ["t"], user_data=bytes.fromhex(data)), Member("b", ["t"])])
    assert group.previous.tolist() == [-1, -1, -1]
    assert assign(group, keeper(rule)).owner.tolist() == previous


@given(by_rule)
def test_claims_are_what_the_bytes_say(drawn):
    rule, (sent, told, lost) = drawn
    decoded = sent.decode_claims(rule)
    assert decoded.columns == told.columns and not decoded.has_user_data
    assert [(member.generation, sorted(member.owned)) for member in decoded.details] == [
        (member.generation, sorted(member.owned)) for member in told.details]
    assert sent.decode_claims(None) is sent
    assert [claim for claim, _ in decoded.dropped if claim.topic is None] == [
        (name, None, None) for name in sent.members if name in lost]
    assert {entry for entry in decoded.dropped if entry.claim.topic is not None} == set(told.dropped)


@given(by_rule)
def test_a_strategy_sees_them_however_it_is_asked(drawn):
    rule, (sent, told, _) = drawn
    wanted = told.previous.tolist()
    for strategy in (keeper(rule), keeper(rule, many=False)):
        alone, together = assign(sent, strategy), assign_many([told, sent, Group({}, {}), sent], strategy)
        named = assign_many({"sent": sent}, strategy)
        assert [one.owner.tolist() for one in (alone, *together, *named.values())] == [
            wanted, wanted, wanted, [], wanted, wanted]
        assert alone.kept.sum() == np.count_nonzero(told.previous >= 0) and not alone.moved.any()
        assert assign(sent.replace(name="again"), strategy).owner.tolist() == wanted
    assert assign(sent, keeper(None)).owner.tolist() == sent.previous.tolist()


@pytest.mark.parametrize("name", READS_CLAIMS)
@given(st.data())
def test_a_strategy_answers_as_if_the_claims_were_given_by_name(name, data):
    sent, told, _ = data.draw(sending_groups(resolve(name).claims))
    assert answer(assign(sent, name)) == answer(assign(told, name))
    assert [answer(one) for one in assign_many([told, sent], name)] == [answer(assign(told, name))] * 2


@pytest.mark.parametrize("name", sorted({*strategies()}.difference(READS_CLAIMS, AS_JAVA_READS_THEM)))
@given(by_rule)
def test_all_others_ignore_user_data(name, drawn):
    _, (sent, _, _) = drawn
    without = sent.replace(members=[replace(sent.details[at], user_data=None) for at in sent.listed])
    one, [many] = assign(sent, name), assign_many([sent], name)
    assert answer(one) == answer(many) == answer(assign(without, name))
    assert one.group is many.group is sent


def test_what_cannot_be_decoded_is_dropped_with_a_reason():
    sent = Group({"t": 2}, [Member("a", ["t"], owned=[("t", 0)], user_data=b"\0\1"), Member("b", ["t"])],
                 owned={"gone": [("t", 1)]})
    seen = assign(sent, "sticky").group
    assert seen.previous.tolist() == [-1, -1] and "2 dropped claims" in repr(seen)
    assert seen.dropped[0] == (("gone", "t", 1), "no member has this id")
    claim, reason = seen.dropped[1]
    assert claim == ("a", None, None) and reason.startswith("the user data of the member cannot be decoded: ")
    for again in (copy.deepcopy(seen), pickle.loads(pickle.dumps(seen)), seen.replace(name="renamed")):
        assert again.dropped == seen.dropped
    assert sent.dropped == seen.dropped[:1] and seen.leave("a").dropped == ()


@given(by_rule)
def test_a_decoded_group_is_a_group_like_any_other(drawn):
    rule, (sent, told, _) = drawn
    decoded = sent.decode_claims(rule)
    assert copy.deepcopy(decoded) == pickle.loads(pickle.dumps(decoded)) == decoded
    assert hash(decoded.details) == hash(copy.deepcopy(decoded).details)
    for again in (Group.from_json(decoded.to_json()), group_from_row(row_from_group(decoded))):
        assert again.columns.consumer.tolist() == told.columns.consumer.tolist()
        assert again.previous.tolist() == told.previous.tolist()
    assignment = assign(sent, keeper(rule))
    assert Assignment(decoded, dict(assignment)).owner.tolist() == told.previous.tolist()
    assert [move for move in Moves(assignment) if move.source] == []


def test_a_group_without_user_data_is_the_group_itself_by_any_rule():
    plain = Group({"t": 2}, {"a": ["t"]})
    assert plain.decode_claims("sticky") is plain


def test_a_group_made_from_arrays_makes_no_members_for_that():
    group = Group.from_arrays(["t"], [2], ["a", "b"], [[True], [True]])
    assert assign(group, "sticky").loads.tolist() == [1, 1]
    assert "details" not in vars(group)


# --- errors of other people's code ----------------------------------------------------------------------------------

ONE = Group({"t": 2}, {"a": ["t"]})


def raises(error):
    def function(*_):
        raise error
    return function


RAISED = raises.__code__.co_firstlineno + 2  # the line of `raise`


@pytest.mark.parametrize("many", [False, True])
def test_what_a_strategy_raises_names_it(many):
    broken = Strategy("mine", raises(KeyError("a\nb")), many=many)
    for ask in (lambda: assign(ONE, broken), lambda: assign_many([ONE], broken)):
        with pytest.raises(StrategyError) as error:
            ask()
        place = f"{__file__}, line {RAISED}"
        assert str(error.value) == f"strategy 'mine' must not raise (got KeyError: 'a\\nb' in {place})"
        assert isinstance(error.value.__cause__, KeyError)


def test_a_value_error_is_for_the_caller_and_an_exit_is_an_error():
    with pytest.raises(ValueError, match="^max_skew must be") as error:
        assign(ONE, Strategy("mine", raises(ValueError("max_skew must be 1 or more (got 0)"))))
    assert type(error.value) is ValueError
    assert error.value.__notes__ == [f"raised by strategy 'mine' in {__file__}, line {RAISED}"]
    with pytest.raises(StrategyError) as error:
        assign(ONE, Strategy("mine", raises(StrategyError("a clause of its own"))))
    assert not hasattr(error.value, "__notes__")
    with pytest.raises(StrategyError, match="must not raise"):     # or `sys.exit(0)` would open a gate
        assign(ONE, Strategy("mine", raises(SystemExit(0))))
    with pytest.raises(KeyboardInterrupt):
        assign(ONE, Strategy("mine", raises(KeyboardInterrupt())))


def test_what_a_proof_raises_names_the_strategy():
    unproven = assign(ONE, Strategy("mine", lambda group: [0, 0], prove=raises(KeyError("k"))))
    with pytest.raises(AssignmentError, match=r"the proof of strategy 'mine' must not raise \(got KeyError: 'k' in "):
        unproven.certificate
