"""Calls as people write them: they work where their meaning is clear; else one line says what was expected."""
import copy
import json
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from groups import groups
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign import (
    Assignment, Group, GroupError, Member, StrategyError, assign, assign_many, check_strategy,
    compare, describe, explain, plot, proof_of, strategies, strategy)
from kafka_assign.arrays.metrics import partition_lag
from kafka_assign.clients.cluster import capture
from kafka_assign.fleet.codec import group_from_row, row_from_group
from kafka_assign.assignors.registry import resolve
from kafka_assign.protocol.wire import Claims, encode_sticky
from kafka_assign.snapshot import read_groups

TOPICS, MEMBERS = {"clicks": 2, "views": 1}, {"a": ["clicks", "views"], "b": ["clicks"]}
GROUP = Group(TOPICS, MEMBERS, {"a": [("clicks", 0), ("views", 0)], "b": [("clicks", 1)]})
RANGE = assign(GROUP, "range")


def to_the_first(group):
    return [group.subscribers(group.topics[topic])[0] for topic in group.columns.topic_of]


# --- what works --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make", [
    lambda: Group(pd.Series(TOPICS), MEMBERS, dict(RANGE)),
    lambda: Group(TOPICS, pd.Series(MEMBERS), pd.Series(RANGE.to_dict())),
    lambda: Group(TOPICS, pd.Series(MEMBERS).items(), RANGE),
    lambda: Group(TOPICS, MEMBERS, {"a": {"clicks": [0], "views": range(1)}, "b": {"clicks": np.array([1])}}),
    lambda: Group(TOPICS, MEMBERS, {"a": {("clicks", 0): "x", ("views", 0): "y"}, "b": [["clicks", 1]]}),
    lambda: GROUP.replace(topics=pd.Series(TOPICS)),
], ids=range(6))
def test_a_group_is_the_same_however_it_is_said(make):
    assert make() == GROUP


def test_lag_and_arrays_may_be_series():
    lag = pd.Series({("clicks", 0): 5, ("clicks", 1): 6, ("views", 0): 7})
    assert Group(TOPICS, MEMBERS, lag=lag).lag.tolist() == [5, 6, 7]
    table = pd.DataFrame([[True, True], [True, False]], ["a", "b"], ["clicks", "views"])
    arrays = Group.from_arrays(table.columns, pd.Series(TOPICS), table.index, table, pd.Series([0, 1, 0]), lag)
    assert arrays == GROUP.replace(lag=lag)


@pytest.mark.parametrize("answer", [
    {"a": [("clicks", 0), ("views", 0)], "b": [("clicks", 1)]},
    {"b": {"clicks": [1]}, "a": {"clicks": [0], "views": [0]}},
    RANGE.to_dict(), dict(RANGE), np.array([0, 1, 0]), (0, 1, 0), pd.Series([0, 1, 0])], ids=range(7))
def test_an_answer_may_be_by_name_or_by_number(answer):
    assert dict(assign(GROUP, lambda group: answer)) == dict(Assignment(GROUP, answer)) == dict(RANGE)


def test_a_strategy_that_answers_by_name_can_conform():
    def by_name(group):
        return assign(group, "roundrobin").to_dict()
    report = check_strategy(by_name)
    assert set(report.broken) <= {"no-idle-members"} and report.found["owner-column"] == ""
    forgetful = check_strategy(lambda group: {})
    assert forgetful.broken == ["each-partition-once"]


def test_the_index_of_a_series_says_which_partition_an_entry_is_for():
    lag = {"clicks": pd.Series([30, 20, 10, 0], index=[3, 2, 1, 0])}
    assert Group({"clicks": 4}, MEMBERS | {"a": []}, lag=lag).lag.tolist() == [0, 10, 20, 30]
    frame = pd.DataFrame({"topic": ["clicks", "views", "clicks"], "partition": [1, 0, 0], "lag": [6, 7, 5]})
    by_topic = {topic: rows.set_index("partition").lag for topic, rows in frame.groupby("topic")}
    assert Group(TOPICS, MEMBERS, lag=by_topic).lag.tolist() == [5, 6, 7]
    for name in ("committed", "begin", "end"):
        given_offsets = {"committed": {("clicks", 0): 1}} | {name: by_topic}
        assert getattr(Group(TOPICS, MEMBERS, **given_offsets).offsets, name).tolist() == [5, 6, 7]


@pytest.mark.parametrize("reset", ["latest", "Latest", "EARLIEST", "none"])
def test_reset_is_one_of_the_words_of_kafka_in_any_case(reset):
    group = Group({"t": 1}, {}, end={"t": [9]}, begin={"t": [2]}, reset=reset)
    assert group.lag.tolist() == [0 if reset.lower() == "latest" else 7]


SAME_RULE = {"latest": ["latest", "largest", "LARGEST", "end"], "earliest": ["earliest", "smallest", "beginning"],
             "none": ["none", "error", None]}
BY_DURATION = ["by_duration:P7D", "by_duration:PT0.5S", "BY_DURATION:p1dt2h"]


@pytest.mark.parametrize("rule, word", [(rule, word) for rule, words in SAME_RULE.items() for word in words])
def test_every_place_takes_the_words_of_all_clients_for_a_reset_rule(rule, word):
    """`none` of kafka-python is None; librdkafka and old clients have words of their own."""
    offsets = {"committed": {"t": [-1, 3]}, "end": {"t": [9, 9]}, "begin": {"t": [2, -1]}}
    group = Group({"t": 2}, {"m": ["t"]}, **offsets, reset=word, name="g")
    same = Group({"t": 2}, {"m": ["t"]}, **offsets, reset=rule, name="g")
    assert group == same and group.offsets.reset == rule
    assert partition_lag([-1, 3], [2, -1], [9, 9], word).tolist() == same.lag.tolist()
    document = json.loads(same.to_json())
    if word is not None:                # which is an absent key in a document, and a call that says nothing in others
        assert Group.from_json(document | {"reset": word}) == same
        assert group_from_row(row_from_group(same) | {"reset": word}) == same
        read = read_groups(same.replace(reset="latest").to_json() + "\n", reset=word)["g"]
        assert (read.offsets.reset, read.lag.tolist()) == (rule, same.lag.tolist())


@pytest.mark.parametrize("word", BY_DURATION)
def test_a_reset_by_duration_counts_as_none_with_a_note(word):
    """Java's begins at a time; which offset that is, no input of this package says."""
    offsets = {"committed": {"t": [-1, 3]}, "end": {"t": [9, 9]}}
    group = Group({"t": 2}, {"m": ["t"]}, **offsets, reset=word, name="g")
    assert group.lag.tolist() == group.replace(reset="none").lag.tolist() == [-1, 6]
    read = read_groups(group.to_json() + "\n")["g"]
    [note] = [note for note in read.notes if note.kind == "lag-by-time"]
    assert (note.count, note.subjects) == (1, (word,)) and word in note.text and read.offsets.reset == word


@pytest.mark.parametrize("word", ["newest", "", "by_duration", "by_duration:", "by_duration:P", "by_duration:P1DT",
                                  "by_duration:7d", "by_duration:-P1D", "latest ", "\u0661", 5, b"latest"], ids=repr)
def test_a_reset_that_no_client_takes_is_refused_everywhere(word):
    text = GROUP.to_json() + "\n"
    for call in (lambda: Group(TOPICS, MEMBERS, reset=word), lambda: read_groups(text, reset=word),
                 lambda: partition_lag(-1, 0, 9, word), lambda: capture("127.0.0.1:1", reset=word, timeout=0.1)):
        with pytest.raises(ValueError, match="^reset must be (latest, earliest or none|text) .got "):
            call()


def test_one_strategy_needs_no_list():
    for one in ("range", to_the_first, resolve("range")):
        assert len(compare(GROUP, one).rows) == 1


# --- what is said of what does not work --------------------------------------------------------------------------

DOCUMENT, OFFSETS = (json.loads(one.to_json()) for one in (GROUP, GROUP.replace(end={"views": [5]})))
WRONG = [
    (lambda: assign("range", GROUP), "group must be a Group, as in assign(group, strategy) (got 'range')"),
    (lambda: assign(DOCUMENT, "range"), "group must be a Group (got a document, of which "
                                        "Group.from_json makes one)"),
    (lambda: assign(RANGE, "range"), "group must be a Group, as in assign(group, strategy) (got <range:"),
    (lambda: assign(GROUP, GROUP), "strategy must be a name, a function or a Strategy (got <Group"),
    (lambda: assign(GROUP, ["range"]), "strategy must be a name, a function or a Strategy (got ['range'])"),
    (lambda: assign_many("range", [GROUP]), "group must be a Group, as in assign_many(groups, strategy) (got 'r')"),
    (lambda: assign_many(GROUP, "range"), "groups must be several: for a single group, use assign (got <Group"),
    (lambda: assign_many(7, "range"), "groups must be an Iterable, as in assign_many(groups, strategy) (got 7)"),
    (lambda: compare("range", GROUP), "group must be a Group, as in compare(group, strategies) (got 'range')"),
    (lambda: compare(GROUP, 7), "strategies must be an Iterable, as in compare(group, strategies) (got 7)"),
    (lambda: compare(GROUP, [7]), "strategy must be a name, a function or a Strategy (got 7)"),
    (lambda: explain(GROUP), "assignment must be an Assignment, as in explain(assign(group, strategy)) (got <Group"),
    (lambda: describe(GROUP), "assignment must be an Assignment, as in describe(assign(group, strategy)) (got <Gr"),
    (lambda: plot(GROUP), "must be given assignments or rebalances, as in plot(assign(group, strategy)) (got <Group"),
    (lambda: check_strategy(GROUP), "strategy must be a name, a function or a Strategy (got <Group"),
    (lambda: Assignment([0, 1, 0], GROUP), "group must be a Group, as in Assignment(group, owner) (got [0, 1, 0])"),
    (lambda: Assignment(GROUP, {"c": []}), "an owner must be a member of the group (got 'c')"),
    (lambda: Assignment(GROUP, {"a": ["clicks-0"]}), "partitions of member a must be pairs (topic, partition), or"),
    (lambda: Assignment(GROUP, {"a": [("clicks", 2)]}), "must name partitions of the group (got clicks-2)"),
    (lambda: Assignment(GROUP, {"a": [("click", 0)]}), "(got click-0; did you mean 'clicks'?)"),
    (lambda: Assignment(GROUP, {m: [("clicks", 0)] for m in "ab"}), "must have one owner (got clicks-0 on a and b)"),
    (lambda: assign(GROUP, lambda group: {"c": []}), "strategy '<lambda>': an owner must be a member of the group"),
    (lambda: Group(["clicks"], MEMBERS), "topics must be a mapping of names to numbers of partitions (got ['clicks'])"),
    (lambda: Group(MEMBERS, TOPICS), "topics of member clicks must be a collection of names, as in Group(topics, memb"),
    (lambda: Group(TOPICS, MEMBERS, {("clicks", 0): "a"}), "owned must map member ids to partitions (got a key ('clic"),
    (lambda: Group(TOPICS, MEMBERS, pd.Series({("clicks", 0): "a"})), "member ids to partitions (got a key ('clicks',"),
    (lambda: Group(TOPICS, MEMBERS, reset="newest"), "reset must be latest, earliest or none (got 'newest')"),
    (lambda: Group(TOPICS, MEMBERS, end={"views": [1]}, reset=""), "reset must be latest, earliest or none (got '')"),
    (lambda: Group.from_json({**OFFSETS, "reset": "newest"}), "reset must be latest, earliest or none (got 'new"),
    (lambda: Group(TOPICS, MEMBERS, lag={"clicks": 5}), "lag of clicks must have an entry for each of 2 partitions "
                                                        "(got the number 5)"),
    (lambda: Group(TOPICS, MEMBERS, lag={("clicks", 1): 1.0}), "lag of clicks-1 must be whole numbers of 64 bits, -1 "),
    (lambda: Group(TOPICS, MEMBERS, lag={"clicks": pd.Series([5, 6], [1, 2])}), "lag of clicks must have an entry for"),
    (lambda: Group(TOPICS, MEMBERS, lag={"clicks": pd.Series([5, 6], [1, 1])}), "names must differ (got [1, 1])"),
    (lambda: Group(TOPICS, MEMBERS, lag={"clicks": pd.Series([5, None])}), "lag of clicks must be whole numbers of 64"),
    (lambda: Group.from_arrays("op", [1, 1], ["a"], [[1, 1]]), "topics must be a list of names (got 'op')"),
    (lambda: Group.from_arrays(["o"], [1], "ab", [[1], [1]]), "member ids must be a list of names (got 'ab')"),
    (lambda: Group(pd.Series([1, 2], ["t", "t"]), {}), "names must differ (got ['t', 't'])"),
    (lambda: Group(pd.DataFrame({"t": [1]}), {}), "partitions of topic t must be a number from 0 on (got 0    1"),
    (lambda: Group(TOPICS, MEMBERS, [("clicks", 0)]), "owned must be a mapping of member ids to partitions"),
    (lambda: Group(TOPICS, MEMBERS, {"a": {"clicks": 0}}), "owned of member a must be pairs (topic, partition), or"),
    (lambda: Group(TOPICS, MEMBERS, {"c": ["clicks"]}), "owned of member c must be pairs (topic, partition), or"),
    (lambda: Group(TOPICS, MEMBERS, {"c": [("clicks", "0")]}), "owned by member c must be a whole number (got '0')"),
    (lambda: RANGE.owner_for(["click"], ["a"]), "topics must belong to the group (got 'click'); did you mean 'clicks'"),
    (lambda: RANGE.owner_for(["clicks"], ["c"]), "members must belong to the group (got 'c')"),
    (lambda: proof_of(GROUP), "assignment must be an Assignment, as in proof_of(assign(group, strategy)) (got <Group"),
    (lambda: compare(GROUP, ["range"], before="x"), "before must be a Group, as in compare(group, strategies, bef"),
    (lambda: strategy("zz bad:name"), "the name of a strategy must be letters, digits, -, _ and . (got 'zz bad:name')"),
    (lambda: strategy("a:b"), "(got 'a:b')"), (lambda: strategy(""), "(got '')"), (lambda: strategy("a b"), "(got 'a "),
    (lambda: strategy("RangeAssignor")(to_the_first), "(got 'RangeAssignor', which is another strategy)"),
    (lambda: strategy("org.LagBasedAssignor")(to_the_first), "(got 'org.LagBasedAssignor', which is another strategy)"),
    (lambda: strategy("cooperative-sticky")(to_the_first), "(got 'cooperative-sticky', which is another strategy)"),
    (lambda: strategy("q4")(3), "strategy 'q4' must be a function (got 3)"),
    (lambda: strategy("q3", option=1), "fields of strategy 'q3' must be fields of Strategy (got 'option'); did you me"),
    (lambda: assign(GROUP, "./mystrat:warm"), "must be named package.module:function (got './mystrat:warm')"),
    (lambda: assign(GROUP, "mystrat.py:warm"), "must be named package.module:function (got 'mystrat.py:warm')"),
    (lambda: assign(GROUP, f"{__name__}:to_the_fist"), "no 'to_the_fist'; did you mean 'to_the_first'?"),
    (lambda: strategy(to_the_first), '@strategy("my-strategy") (got to_the_first)'),
    (lambda: strategy("range")(to_the_first), "with replace=True (got 'range', which is another strategy)"),
]


@pytest.mark.parametrize("call, words", WRONG, ids=[words for _, words in WRONG])
def test_what_was_expected_is_said_in_a_line(call, words):
    with pytest.raises(ValueError) as error:
        call()
    assert words in str(error.value) and "\n" not in str(error.value)


NAN = float("nan")
ODD_MATRICES = [
    [["yes", "no"]], [["o", "p"]], [[2, -1]], [[.5, 1]], [[True, None]], [[NAN, 1]], [[1, pd.NA]],
    pd.DataFrame([[True, False]], ["a"], ["clicks", "views"]).reindex(["b"]), [[{}, 1]]]


@pytest.mark.parametrize("matrix", ODD_MATRICES, ids=repr)
def test_a_matrix_of_subscriptions_says_yes_or_no(matrix):
    with pytest.raises(GroupError, match="^subscriptions must be True or False, or 1 or 0"):
        Group.from_arrays(["clicks", "views"], [2, 1], ["a"], matrix)


@pytest.mark.parametrize("matrix", [
    [[True, False]], [[1, 0]], [[1.0, 0.0]], np.array([[True, 0]], object), np.array([[1, 0]], np.uint8),
    pd.DataFrame([[1, 0]], dtype="Int64")], ids=repr)
def test_a_matrix_may_be_of_any_type_that_does(matrix):
    group = Group.from_arrays(["clicks", "views"], [2, 1], ["a"], matrix)
    assert group.details[0].topics == ("clicks",)


# --- registering -------------------------------------------------------------------------------------------------

def define(name, **fields):
    @strategy(name, **fields)
    def deal(group):
        return to_the_first(group)
    return deal


def test_a_function_may_be_registered_again_and_no_other(registered):
    assert define("mine") is not define("mine")
    with pytest.raises(StrategyError, match="with replace=True"):
        strategy("mine")(to_the_first)
    assert not hasattr(to_the_first, "strategy") and "deal" in registered["mine"].function.__qualname__
    define("range", replace=True)
    assert assign(GROUP, "range").owner.tolist() == [0, 0, 0] and list(strategies()).count("range") == 1


def warm(group, spare: int = 0, share: "float" = 1, firmly: bool = False, limit: int = None, name: str = ""):
    return to_the_first(group)


@pytest.mark.parametrize("option, must", [
    ("spare=x", "spare of strategy 'test_manners:warm' must be a whole number (got 'x')"), ("spare=1.5", "(got 1.5)"),
    ("spare=true", "(got True)"), ("share=x", "share of strategy 'test_manners:warm' must be a number (got 'x')"),
    ("firmly=1", "must be true or false (got 1)"), ("spare=none", "(got None)")])
def test_an_option_is_what_its_annotation_says(option, must):
    with pytest.raises(StrategyError) as error:
        resolve(f"{__name__}:warm:{option}")
    assert str(error.value).startswith("option ") and must in str(error.value)


def test_options_that_fit_are_accepted():
    assert resolve(f"{__name__}:warm:spare=2,share=3,firmly=false,limit=none,name=x").options["share"] == 3
    assert resolve(warm, spare=np.int64(2), share=.5).options["share"] == .5


def test_a_strategy_without_a_docstring_is_listed(registered):
    define("silent")
    assert strategies()["silent"] == "no description"


def test_a_registered_strategy_that_fails_stops_only_those_who_named_it(registered):
    @strategy("needs-lag")
    def needs_lag(group):
        raise KeyError("lag")
    comparison = compare(GROUP)
    assert {"range", "sticky"} <= comparison.assignments.keys() and "needs-lag" not in comparison.assignments
    note = comparison.notes[0]
    assert note.startswith("needs-lag has no row: strategy 'needs-lag' must not raise (got KeyError: 'lag' in ")
    assert note in comparison._repr_html_().replace("&#x27;", "'")
    with pytest.raises(StrategyError, match="strategy 'needs-lag' must not raise"):
        compare(GROUP, ["needs-lag", "range"])
    runs_it = GROUP.replace(strategy="needs-lag")
    assert list(compare(runs_it, "range").assignments) == ["range"] and len(compare(runs_it, "range").notes) == 1
    failed = []
    comparison = compare(runs_it, ["needs-lag", "range"], on_failure=lambda *what: failed.append(what))
    assert list(comparison.assignments) == ["range"] and comparison.notes == []
    assert [(one.name, type(error)) for one, error in failed] == [("needs-lag", StrategyError)]


# --- where a strategy raised -------------------------------------------------------------------------------------

CRASHES = '''
import numpy as np


def helper(group):
    return group["nobody"]


def own(group):
    return helper(group)


def in_a_library(group):
    return np.stack([[1], [1, 2]])


def of_the_package(group):
    return group.subscribers("nobody")
'''


@pytest.fixture
def crashes(tmp_path, monkeypatch):
    """The path of a module `their_crashes` that can be imported."""
    (tmp_path / "their_crashes.py").write_text(CRASHES)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "their_crashes.py"
    del sys.modules["their_crashes"]


@pytest.mark.parametrize("name, line", [("own", 6), ("of_the_package", 18)])
def test_the_line_is_the_innermost_of_the_strategys_own_file(crashes, name, line):
    with pytest.raises(StrategyError) as error:
        assign(GROUP, f"their_crashes:{name}")
    assert str(error.value).endswith(f" in {crashes}, line {line})")


def test_a_value_error_of_a_library_has_a_note(crashes):
    with pytest.raises(ValueError) as error:
        assign(GROUP, "their_crashes:in_a_library")
    [note] = error.value.__notes__
    assert note.endswith(f" in {crashes}, line 14")


def test_a_function_that_takes_no_group_has_no_line():
    with pytest.raises(StrategyError, match=r"takes 0 positional arguments but 1 was given\)$"):
        assign(GROUP, lambda: [0, 0, 0])


# --- claims that do not hold -------------------------------------------------------------------------------------

def reasons(group):
    return {(claim.member, f"{claim.topic}-{claim.partition}"): reason for claim, reason in group.dropped}


def test_every_reason_is_given():
    group = Group({"t": 2, "u": 1}, [
        Member("a", ["t", "gone"], generation=4,
               owned=[("t", 0), ("t", 7), ("t", -1), ("gone", 0), ("none", 0), ("u", 0)]),
        Member("b", ["t"], owned=[("t", 0), ("t", 0), ("t", 1)], generation=5),
        Member("c", ["t"], owned=[("t", 1)], generation=5)], owned={"A": {"t": [0]}})
    assert reasons(group) == {
        ("a", "gone-0"): "topic 'gone' is not known", ("a", "none-0"): "topic 'none' is not known",
        ("a", "t--1"): "topic 't' has 2 partitions", ("a", "t-7"): "topic 't' has 2 partitions",
        ("a", "t-0"): "member 'b' claims it in a later generation",
        ("a", "u-0"): "the member does not subscribe to 'u'",
        ("b", "t-1"): "member 'c' claims it in the same generation",
        ("c", "t-1"): "member 'b' claims it in the same generation", ("A", "t-0"): "no member has this id"}
    assert repr(group) == "<Group: 3 members, 3 topics, 3 partitions, 9 dropped claims>"
    assert "9 dropped claims" in group._repr_html_()


@given(groups(), st.data())
def test_a_claim_holds_or_is_dropped(group, data):
    held = {(group.members[owner], *group.at(i)) for i, owner in enumerate(group.previous.tolist()) if owner >= 0}
    given_claims = {(member.id, *pair) for member in group.details for pair in member.owned}
    dropped = [tuple(claim) for claim, _ in group.dropped]
    assert len(set(dropped)) == len(dropped) and not held & set(dropped)
    assert held | set(dropped) == given_claims
    order = data.draw(st.permutations(range(len(group.members))))
    for again in (Group.from_json(group.to_json()), copy.deepcopy(group), group.replace(inferred="x"),
                  pickle.loads(pickle.dumps(group)), group.replace(members=[group.details[i] for i in order])):
        assert again.dropped == group.dropped
    if group.columns.size and all(0 <= number < 2**31 for _, _, number in dropped):  # as Kafka sends them
        assert group_from_row(row_from_group(group)).dropped == group.dropped


def test_claims_of_arrays_are_reported_and_no_member_is_made_for_those_that_hold():
    matrix = [[1, 1], [1, 0]]
    good = Group.from_arrays(["clicks", "views"], [2, 1], ["a", "b"], matrix, [0, 1, 0])
    assert good.dropped == () and "details" not in vars(good) and "dropped" not in repr(good)
    bad = Group.from_arrays(["views", "clicks"], [1, 2], ["b", "a"], [[0, 1], [1, 1]], [0, 1, 0])
    assert reasons(bad) == {("b", "views-0"): "the member does not subscribe to 'views'"}
    for again in (pickle.loads(pickle.dumps(bad)), copy.deepcopy(bad), bad.replace(name="x"), bad.replace(lag=None)):
        assert again.dropped == bad.dropped
    assert bad.leave("a").dropped == bad.dropped


def test_claims_given_by_member_replace_those_in_user_data():
    sent = Member("a", ["t"], user_data=encode_sticky(Claims([("t", 0)], 5)))
    group = Group({"t": 2}, [sent, Member("b", ["t"])])
    for changed in (group.replace(owned={"a": [("t", 1)]}), Group({"t": 2}, group.details, owned={"a": [("t", 1)]})):
        assert changed.decode_claims("sticky").previous.tolist() == [-1, 0]
    assert group.replace(owned={"b": [("t", 1)]}).decode_claims("sticky").previous.tolist() == [0, 1]


def test_groups_that_drop_different_claims_differ():
    """Groups in which the same claims hold, but `dropped` shows others."""
    def each_kind():
        users = [Member("a", ["t"], user_data=data) for data in (b"", b"?")]
        yield [Group({"t": 1}, {"a": ["t"]}, owned=owned)
               for owned in ({}, {"b": [("t", 0)]}, {"c": [("t", 0)]}, {"a": [("t", 1)]}, {"a": [("t", 2)]})]
        yield [Group.from_arrays(["t", "u"], [1, 1], ["a", "b"], [[1, 1], [0, 1]], previous)
               for previous in ([-1, 1], [1, 1])]
        yield [Group({"t": 1}, [user]).decode_claims("sticky") for user in users]
    for ones, twins in zip(each_kind(), each_kind(), strict=True):
        for i, one in enumerate(ones):
            for j, other in enumerate(twins):
                assert (one == other, one.dropped == other.dropped) == (i == j, i == j)


def test_claims_of_nobody_stay_until_the_members_change():
    stray = GROUP.replace(owned={"c": {"views": [0]}, "B": {"views": [0]}})
    assert list(reasons(stray)) == [("B", "views-0"), ("c", "views-0")]
    assert stray != GROUP and stray.previous.tolist() == GROUP.previous.tolist()
    again = pickle.loads(pickle.dumps(stray))
    for again in (again, stray.replace(time="2026-01-31"), stray.replace(lag={"clicks": [1, 2]})):
        assert again.dropped == stray.dropped
    joined = stray.join("c", ["views"])
    assert joined.dropped == () and joined.previous.tolist() == GROUP.previous.tolist()


def test_many_who_claim_the_same_are_reported_in_time():
    members = [Member(f"m{i:04}", ["t"], owned=[("t", number) for number in range(40)]) for i in range(1000)]
    dropped = Group({"t": 40}, members).dropped
    assert len(dropped) == 40_000
    assert dropped[0].reason == dropped[-41].reason == "member 'm0999' claims it in the same generation"
    assert dropped[-1].reason == "member 'm0998' claims it in the same generation"


def test_whether_a_member_is_there_takes_no_list_of_partitions():
    a = Assignment(GROUP, [0, 1, 0])
    assert "a" in a and "c" not in a and 7 not in a
    assert "_rows" not in vars(a)
