"""Joins: what is taken for one, and which partition numbers an assignment splits, against the definition."""

import struct
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from groups import groups, owners
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign import Assignment, Group, Member, assign, co_partitioned
from kafka_assign.arrays.columns import side_by_side
from kafka_assign.fleet.codec import decode_rows, row_from_group
from kafka_assign.fleet.schemas import GROUP_SCHEMA
from kafka_assign.groups.joins import checked_joins, join_numbers, parsed_joins
from kafka_assign.arrays.metrics import split_numbers
from kafka_assign.assignors.registry import parse_options


def disjoint(topics):
    """Some topics, each in one of up to three joins."""
    return st.lists(st.sampled_from([None, 0, 1, 2]), min_size=len(topics), max_size=len(topics)).map(
        lambda choice: [join for at in range(3) if (join := [
            topic for topic, chosen in zip(topics, choice) if chosen == at])])


def split_by_definition(group, owner, join):
    """The partition numbers of the topics of a join that have more than one owner."""
    found = defaultdict(set)
    for at, member in enumerate(owner):
        topic, number = group.at(at)
        if topic in join and member >= 0:
            found[number].add(member)
    return sorted(number for number, members in found.items() if len(members) > 1)


@given(st.data())
def test_split_numbers_are_what_the_definition_says(data):
    group = data.draw(groups())
    owner, joins = data.draw(owners(group)), data.draw(disjoint(group.topics))
    answer = Assignment(group, np.array(owner, int))
    assert co_partitioned(answer, joins) == {
        tuple(join): split_by_definition(group, owner, join) for join in joins}
    split = split_by_definition(group, owner, group.topics)
    assert co_partitioned(answer) == ({group.topics: split} if group.topics else {})
    if group.members:
        assert answer.summary()["split_numbers"] == len(split)


@given(st.data())
def test_groups_side_by_side_are_counted_alone(data):
    many = data.draw(st.lists(groups(), max_size=4))
    joins = data.draw(disjoint(sorted({topic for group in many for topic in group.topics})))
    drawn = [data.draw(owners(group)) for group in many]
    columns = side_by_side([group.columns for group in many])
    first = columns.member_offsets.tolist()
    owner = np.array([at + first[place] if at >= 0 else -1 for place, one in enumerate(drawn) for at in one], np.int32)
    join = join_numbers([topic for group in many for topic in group.topics], joins)
    expected = [sum(len(split_by_definition(group, one, topics)) for topics in (joins or [group.topics]))
                for group, one in zip(many, drawn)]
    assert split_numbers(columns, owner, join).tolist() == expected


def test_a_cooperative_answer_is_judged_by_its_target():
    group = Group({"a": 1, "b": 1}, {"m": ["a", "b"], "n": ["a", "b"]})
    moving = Assignment(group, [0, -1], target=[0, 1])
    assert co_partitioned(moving) == {("a", "b"): [0]} and moving.summary()["split_numbers"] == 1


@given(st.lists(st.sampled_from(["a", "B", "c.1", "c_2", "-"]), unique=True).flatmap(disjoint))
def test_text_says_what_lists_say(joins):
    text = "|".join("+".join(join) for join in joins)
    assert parsed_joins(text) == joins == parsed_joins(joins)
    assert parse_options(f"joins={text}") == {"joins": text}


@pytest.mark.parametrize("text", ["+", "a+", "+a", "a++b", "a|", "|a+b", "a+b||c+d"])
def test_text_without_a_topic_is_refused(text):
    with pytest.raises(ValueError, match=r"joins must have the form TOPIC\+TOPIC.*\(got '"):
        parsed_joins(text)


@pytest.mark.parametrize("joins", [None, 1, [1], [None], [["a", 1]], [[["a"]]], [[]], [[""]], ["a+b"], [b"ab"]])
def test_what_is_no_list_of_topics_is_refused(joins):
    for parse in (checked_joins, parsed_joins):
        with pytest.raises(ValueError, match=r"^joins must be lists of topics, as in .* \(got "):
            parse(joins)


def test_joins_may_be_any_collections():
    assert checked_joins(iter([("a", "b", "a"), dict.fromkeys("cd")])) == [["a", "b"], ["c", "d"]]


def test_topics_that_the_group_lacks_are_named():
    answer = assign(Group({"clicks": 1, "views": 1}, {"m": ["clicks", "views"]}), "range")
    for joins in ("click+views", [["click", "views"]]):
        with pytest.raises(ValueError, match=r"must be in a group \(got 'click'; did you mean 'clicks'\?\)"):
            co_partitioned(answer, joins)
    with pytest.raises(ValueError, match=r"must be in one join \(got 'views' in two\)"):
        co_partitioned(answer, "clicks+views|views")


# --- claims of partition numbers -----------------------------------------------------------------------------------

def in_bytes(numbers, epoch):
    """What a member sends: partition numbers and an epoch."""
    return struct.pack(f">i{len(numbers)}ii", len(numbers), *numbers, epoch)


@st.composite
def claiming(draw):
    """A group whose members claim partition numbers; the epoch and the numbers of each."""
    group = draw(groups())
    said = {name: (draw(st.integers(-1, 2)), draw(st.lists(st.integers(0, 3), max_size=4))) for name in group.members}
    members = [replace(group.details[at], user_data=in_bytes(*said[group.members[at]][::-1])) for at in group.listed]
    return group.replace(members=members), said


def owner_by_number(group, said, at):
    """The valid previous owner of a partition, by the contest for its number alone."""
    topic, number = group.at(at)
    claims = sorted((epoch, name) for name, (epoch, numbers) in said.items() if number in numbers)
    if not claims or len(claims) > 1 and claims[-1][0] == claims[-2][0]:
        return -1
    winner = claims[-1][1]
    member = next(one for one in group.details if one.id == winner)
    return group.members.index(winner) if topic in member.topics else -1


@given(claiming())
def test_a_number_has_one_owner_in_all_topics(drawn):
    group, said = drawn
    decoded = group.decode_claims("stream-join")
    assert decoded.previous.tolist() == [owner_by_number(group, said, at) for at in range(group.columns.size)]
    assert co_partitioned(Assignment.current(decoded)) == ({group.topics: []} if group.topics else {})


@given(st.lists(claiming(), max_size=4))
def test_a_fleet_settles_the_same_contests(drawn):
    rows = [row_from_group(group.replace(name=f"g{at}")) for at, (group, _) in enumerate(drawn)]
    batch, rejects = decode_rows(pa.RecordBatch.from_pylist(rows, GROUP_SCHEMA))
    assert not rejects
    read = batch.read("stream-join")
    alone = side_by_side([group.decode_claims("stream-join").columns for group, _ in drawn])
    assert (read.previous.tolist(), read.consumer.tolist()) == (alone.previous.tolist(), alone.consumer.tolist())


@pytest.mark.parametrize("epochs, owner, losers", [
    ((6, 7), [-1, 1], "a"), ((7, 7), [-1, -1], "ab"), ((8, 7), [0, 0], "b")])
def test_a_zombie_keeps_its_number_in_no_topic(epochs, owner, losers):
    """`a` claims number 0 in x and y, `b` in y, the only topic to which it subscribes."""
    members = [Member(name, topics, user_data=in_bytes([0], epoch))
               for name, topics, epoch in zip("ab", (["x", "y"], ["y"]), epochs)]
    decoded = Group({"x": 1, "y": 1}, members).decode_claims("stream-join")
    assert decoded.previous.tolist() == owner
    words = "other members claim its partition numbers [0] in the same or a later epoch"
    assert decoded.dropped == tuple(((loser, None, None), words) for loser in losers)


def test_a_member_without_topics_decides_about_its_number_too():
    members = [Member("a", ["x"], user_data=in_bytes([0, 1], 6)), Member("b", [], user_data=in_bytes([1], 7))]
    assert Group({"x": 2}, members).decode_claims("stream-join").previous.tolist() == [0, -1]


def test_claims_of_numbers_nobody_contests_are_dropped_nowhere():
    """A topic that only one member subscribes to, as one is tried, is no concern of the others."""
    members = [Member("a", ["x", "trial"], user_data=in_bytes([0], 6)), Member("b", ["x"], user_data=in_bytes([1], 6))]
    decoded = Group({"trial": 2, "x": 2}, members).decode_claims("stream-join")
    assert decoded.previous.tolist() == [0, -1, 0, 1] and decoded.dropped == ()
