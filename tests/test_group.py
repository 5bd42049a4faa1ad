"""Groups: who owned what, whatever the order of the input; made by name, of arrays, and read back from JSON."""

import json
import re

import numpy as np
import pytest
from groups import groups, owners
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign import Assignment, Group, GroupError, Member, assign
from kafka_assign.groups.documents import group_row
from kafka_assign.text.words import quoted

COLUMNS = [
    "topic_offsets",
    "member_offsets",
    "partitions",
    "missing",
    "subscriber_offsets",
    "subscribers",
    "turn",
    "previous",
]


def same(one, other, but=()):
    assert one.topics == other.topics and one.members == other.members
    for name in COLUMNS:
        if name not in but:
            assert getattr(one.columns, name).tolist() == getattr(other.columns, name).tolist(), name
    assert (one.lag is None) == (other.lag is None)
    assert one.lag is None or one.lag.tolist() == other.lag.tolist()


def previous_by_rule(group):
    """KIP-341, one partition at a time."""
    for i in range(group.columns.size):
        tp = group.at(i)
        claims = [(member.generation, member) for member in group.details if tp in member.owned]
        top = max((generation for generation, _ in claims), default=None)
        best = [member for generation, member in claims if generation == top]
        yield group.members.index(best[0].id) if len(best) == 1 and tp.topic in best[0].topics else -1


@given(groups())
def test_the_highest_generation_owns(group):
    assert group.previous.tolist() == list(previous_by_rule(group))


@given(st.data())
def test_the_order_of_the_input_changes_nothing(data):
    group = data.draw(groups())
    topics = [
        (name, count)
        for name, count, missing in zip(group.topics, group.partitions.tolist(), group.columns.missing)
        if not missing
    ]

    def shuffled(member):
        return {name: data.draw(st.permutations(getattr(member, name))) for name in ("topics", "owned")}

    members = [Member(**(vars(member) | shuffled(member))) for member in group.details]
    start = group.columns.start
    lag = (
        None
        if group.lag is None
        else {
            name: group.lag[start[t] : start[t + 1]]
            for t, name in enumerate(group.topics)
            if not group.columns.missing[t]
        }
    )
    same(group, Group(dict(data.draw(st.permutations(topics))), data.draw(st.permutations(members)), lag=lag))


@given(st.data())
def test_members_of_a_mapping_are_members(data):
    group = data.draw(groups())
    named = list if data.draw(st.booleans()) else tuple
    topics = {
        name: count
        for name, count, missing in zip(group.topics, group.partitions.tolist(), group.columns.missing)
        if not missing
    }
    twin = Group(
        topics,
        {member.id: named(member.topics) for member in group.details},
        {member.id: map(named, member.owned) for member in group.details if member.owned},
    )
    known = [Member(member.id, member.topics, owned=member.owned) for member in group.details]
    assert twin.details == tuple(known)
    same(twin, Group(topics, known))


class Odd:
    """Something that cannot be compared."""

    def __eq__(self, other):
        raise RuntimeError


@pytest.mark.parametrize("first", [np.array(["t", "u"]), ("t", "u"), {"t": 1, "u": 2}, iter(["t", "u"]), ["u", "t"]])
def test_subscriptions_of_any_kind_side_by_side(first):
    group = Group({"t": 1, "u": 1}, {"a": first, "b": ["t"], "c": ["t"], "d": ("t",)})
    assert [sorted(member.topics) for member in group.details] == [["t", "u"], ["t"], ["t"], ["t"]]


@pytest.mark.parametrize("odd", [Odd(), np.array(["t", "u"]), ["t"], None])
def test_what_is_no_topic_is_named(odd):
    with pytest.raises(GroupError, match="a topic of member b must be text"):
        Group({"t": 1}, {"a": ["t"], "b": [odd]})


@pytest.mark.parametrize(
    "owned, message",
    [
        (["a"], "owned must be a mapping"),
        ("a", "owned must be a mapping"),
        ({"a": ["t0"]}, "owned of member a must be pairs"),
        ({"a": [("t",)]}, "owned of member a must be pairs"),
        ({"a": [(["t"], 0)]}, "owned of member a must be pairs"),
        ({"a": [(None, 0)]}, "the topic of a partition owned by member a must be text"),
        ({"a": [b"tu"]}, "the topic of a partition owned by member a must be text"),
        ({"a": [("t", 0.0)]}, "partition of t owned by member a must be a whole number"),
        ({"a": [("t", True)]}, "partition of t owned by member a must be a whole number"),
    ],
)
def test_what_is_no_claim_is_said(owned, message):
    with pytest.raises(GroupError, match=message):
        Group({"t": 1}, {"a": ["t"]}, owned)


class Refilled(dict):
    """Subscriptions that are handed out in one list, filled anew each time."""

    def items(self):
        buffer = []
        for member, topics in super().items():
            buffer[:] = topics
            yield member, buffer


def test_a_list_of_the_caller_is_not_kept():
    group = Group({"t": 1, "u": 1}, Refilled({"a": ["t"], "b": ["u"], "c": ["t", "u"]}))
    assert [member.topics for member in group.details] == [("t",), ("u",), ("t", "u")]
    racks = {"t": [["r1"]], "u": [["r2"]]}
    group = Group({"t": 1, "u": 1}, {"a": ["t"]}, partition_racks=racks)
    racks["t"][0].append("r2")
    assert group.partition_racks == {"t": (("r1",),), "u": (("r2",),)}


def test_names_and_numbers_are_plain_whatever_was_given():
    text, number = np.str_, np.int16
    group = Group(
        {text("t"): number(300), "u": number(30_000), "v": number(30_000)},
        {text("a"): [text("t"), "u"], "b": np.array(["t", "u"])},
        {text("b"): [(text("t"), number(0))]},
    )
    arrays = Group.from_arrays(np.array(["t"]), [2], np.array(["a", "b"]), [[1], [1]])
    for lists in assign(group, "sticky").to_dict(), assign(arrays, "range").to_dict():
        parts = [part for own in lists.values() for pair in own for part in pair]
        assert set(map(type, [*lists, *parts])) == {str, int}
    assert {type(topic) for member in group.details for topic in member.topics} == {str}
    assert group.replace(topics={"t": np.uint8(1), "u": 1}).partitions.tolist() == [1, 1]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Group({f"t{i}": np.int32(2**31 - 1) for i in range(2)}, {}), "at most 16,777,216 partitions"),
        (lambda: Member("a", np.array("t")), "topics of member a must be a collection"),
        (lambda: Member("a", [], rack=np.array([1, 2])), "rack of member a must be text"),
        (lambda: Group({}, {}, partition_racks=[1]), "partition_racks must be a mapping"),
        (lambda: Group({}, {}, topic_ids=[1]), "topic_ids must be a mapping"),
        (lambda: Group({"t": 1}, {}, committed={"t": [1]}, reset=5), "reset must be text"),
        (lambda: Group.from_arrays(None, [], [], []), "topics must be a list of names"),
        (lambda: Group.from_arrays(["t", "u"], [1, 1], ["a", "b"], [[1, 0], [1]]), "a matrix, 2 members x 2 topics"),
        (lambda: Group.from_arrays(["t"], [1], ["a"], ([0],) * 3), "must be a matrix, 1 member x 1 topic"),
    ],
)
def test_what_cannot_be_is_said(make, message):
    with pytest.raises(GroupError, match=message):
        make()


@given(st.data())
def test_all_lists_at_once_are_those_one_by_one(data):
    group = data.draw(groups())
    a = Assignment(group, np.array(data.draw(owners(group)), np.int32))
    assert a.to_dict() == dict(a)
    assert sorted((member, *pair) for member in a for pair in a[member]) == sorted(
        (group.members[owner], *group.at(i)) for i, owner in enumerate(a.owner.tolist()) if owner >= 0
    )


@given(st.data())
def test_a_group_of_arrays_is_the_group_by_name(data):
    group = data.draw(groups())
    t = np.array(data.draw(st.permutations(range(len(group.topics)))), int)
    m = np.array(data.draw(st.permutations(range(len(group.members)))), int)
    at = group.columns.start
    take = np.concatenate([np.zeros(0, int), *(np.arange(at[i], at[i + 1]) for i in t)])
    place = np.append(np.argsort(m), -1)
    subscribed = group.subscribed[m][:, t]
    for subscriptions in (subscribed, (np.append(0, np.cumsum(subscribed.sum(axis=1))), np.nonzero(subscribed)[1])):
        twin = Group.from_arrays(
            [group.topics[i] for i in t],
            group.partitions[t],
            [group.members[i] for i in m],
            subscriptions,
            previous=place[group.previous[take]],
            lag=None if group.lag is None else group.lag[take],
        )
        same(group, twin, but=("turn", "missing"))
        owner = np.array(data.draw(owners(group)), np.int32)
        mine = Assignment(twin, owner).owner_for([group.topics[i] for i in t], [group.members[i] for i in m])
        assert mine.tolist() == place[owner[take]].tolist()
        for one, other in zip(twin.details, group.details):
            assert sorted(one.topics) == sorted(other.topics)


@given(groups())
def test_a_document_comes_back_the_same(group):
    again = Group.from_json(group.to_json())
    same(group, again)
    assert group_row(again) == group_row(group)


@given(groups())
def test_a_copy_without_changes_is_the_same(group):
    same(group, group.replace())


@given(st.data())
def test_an_assignment_names_every_member_and_every_owned_partition_once(data):
    group = data.draw(groups())
    owner = data.draw(owners(group))
    a = Assignment(group, owner).check()
    assert list(a) == list(group.members)
    named = {tp: member for member, partitions in a.items() for tp in partitions}
    assert named == {group.at(i): group.members[o] for i, o in enumerate(owner) if o >= 0}
    assert sum(map(len, a.values())) == len(named)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
KEYS = ["format", "name", "topics", "members", "lag", "offsets", "generation", "partition_racks", "topic_ids", "reset"]


@given(st.dictionaries(st.sampled_from(KEYS), json_values), st.data())
def test_a_broken_document_raises_group_error_and_nothing_else(document, data):
    member = st.fixed_dictionaries(
        {},
        optional={
            key: json_values for key in ("id", "topics", "owned", "generation", "instance_id", "rack", "user_data")
        },
    )
    document.setdefault("topics", {"t": 2})
    document.setdefault("members", data.draw(st.lists(member, max_size=2)))
    try:
        Group.from_json(document)
    except GroupError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("text", ["", "[]", "7", "{", '"x"', "[" * 100_000, '{"topics": {}, "members": [null]}'])
def test_text_that_is_no_group_is_said_to_be_none(text):
    with pytest.raises(GroupError):
        Group.from_json(text)


@pytest.mark.parametrize("place, key, meant", [
    ((), "lags", "lag"), ((), "partitionRacks", "partition_racks"), ((), "Reset", "reset"),
    (("members", 0), "Owned", "owned"), (("members", 0), "instanceId", "instance_id"),
    (("offsets", "t"), "commited", "committed"), (("notes", 0), "subject", "subjects"),
    ((), "\x1b[2J", None), (("offsets", "t"), "lag", None)])
def test_a_key_that_is_unknown_is_an_error_at_every_level(place, key, meant):
    document = {"topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}], "offsets": {"t": {"end": [7]}},
                "notes": [{"kind": "remark", "count": None, "subjects": ["x"]}]}
    Group.from_json(document)
    part = document
    for step in place:
        part = part[step]
    part[key] = None
    with pytest.raises(GroupError, match=re.escape(f"(got {quoted(key)})")) as caught:
        Group.from_json(document)
    assert str(caught.value).isprintable() and str(caught.value).startswith("a key of ")
    assert str(caught.value).partition("; ")[2] == ("" if meant is None else f"did you mean '{meant}'?")


@pytest.mark.parametrize("change", [
    {"topics": {"t": True}}, {"format": True}, {"lag": {"t": [True, 5]}}, {"lag": {"t": [None, False]}},
    {"offsets": {"t": {"end": [5, True]}}}, {"generation": True}, {"moment": True}, {"owned": {"a": [["t", True]]}},
    {"owned": {"a": {"t": [0, True]}}}, {"inferred": True},
    *({"members": [{"id": "a", "topics": ["t"], name: value}]} for name, value in {
        "generation": True, "version": True, "counted": True, "owned": [["t", True]]}.items())], ids=str)
def test_true_is_no_number(change):
    with pytest.raises(GroupError, match=" must be "):
        Group.from_json({"topics": {"t": 2}, "members": {"a": ["t"]}} | change)


def test_true_is_no_number_in_python():
    for lag in {"t": [True, 5]}, {"t": (5, True)}, {("t", 0): True}, {"t": np.array([True, True])}:
        with pytest.raises(GroupError, match="must be whole numbers of 64 bits"):
            Group({"t": 2}, {}, lag=lag)


def test_numbers_beyond_the_range_are_refused():
    with pytest.raises(GroupError, match="lag of t"):
        Group.from_json(json.loads('{"topics": {"t": 1}, "members": [], "lag": {"t": [1e400]}}'))
    with pytest.raises(GroupError, match="lag of t"):
        Group({"t": 1}, {}, lag={"t": [2**63]})


@given(st.sampled_from(["topics", "lag", "offsets", "partition_racks", "topic_ids"]), json_values, json_values)
def test_what_a_topic_maps_to_may_be_anything(key, value, inner):
    document = {"topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"]}]}
    document[key] = {"t": value if key != "offsets" else {"end": value, "committed": inner}}
    try:
        Group.from_json(document)
    except GroupError as error:
        assert "\n" not in str(error)
