"""Groups as columns: one builder behind all five ways in; groups and assignments are values."""
import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pyarrow as pa
import pytest
from groups import NAMES, groups, owners
from hypothesis import example, given
from hypothesis import strategies as st
from outputs import table

from kafka_assign import Assignment, Group, GroupError, Member, assign
from kafka_assign.groups import inputs
from kafka_assign.groups.fields import ABOUT
from kafka_assign.groups import assignment as assignment_module
from kafka_assign.arrays import columns as columns_module
from kafka_assign.groups.build import (
    MOST_PARTITIONS, ClaimColumns, Offsets, build_columns, check_sizes, overflowing_groups,
    oversized_groups, subscriber_rows)
from kafka_assign.arrays.columns import Columns, Racks, side_by_side, take_groups
from kafka_assign.fleet.codec import decode_rows, group_from_row, row_from_group
from kafka_assign.fleet.schemas import GROUP_SCHEMA
from kafka_assign.protocol.java import java_sorted
from kafka_assign.protocol.ownership import claimed_in
from kafka_assign.snapshot import read_groups


def arrays_of(columns):
    """Every array of some columns, by name; what is not there is None."""
    found = {field.name: getattr(columns, field.name) for field in fields(Columns)}
    racks = found.pop("racks") or Racks(None, None, None)
    return found | {f"racks.{name}": array for name, array in racks._asdict().items()}


def assert_identical(one, other):
    """Columns with the same entries of the same types."""
    mine, theirs = arrays_of(one), arrays_of(other)
    for name, array in mine.items():
        if array is None or theirs[name] is None:
            assert array is theirs[name], name
        else:
            assert (name, array.dtype, array.tolist()) == (name, theirs[name].dtype, theirs[name].tolist())
    assert one == other


# --- the five ways in --------------------------------------------------------------------------------------------

def batch_of(fleet):
    return pa.RecordBatch.from_pylist([row_from_group(group) for group in fleet], GROUP_SCHEMA)


@st.composite
def known_groups(draw):
    """A group with lag, or offsets of either reset rule, or neither, and with all that a document may say of it."""
    group = draw(groups())
    offset = st.integers(-1, 2**40)
    def by_topic(count_of=group.topic_counts):
        return {topic: draw(st.lists(offset, min_size=count, max_size=count)) for topic, count in count_of.items()}
    offsets = {name: by_topic() for name in ("committed", "begin", "end")} if draw(st.booleans()) else {}
    if offsets and group.columns.size:
        group = group.replace(lag=None, **offsets, reset=draw(st.sampled_from(["latest", "earliest", "none"])))
    members = [Member(**(vars(member) | draw(st.fixed_dictionaries({}, optional={
        "client_id": st.sampled_from(NAMES), "host": st.just("/10.0.0.7"), "user_data": st.binary(max_size=3),
        "counted": st.integers(0, 9)}))))
        for member in as_listed(group)]
    return group.replace(
        members=members, name=draw(st.sampled_from(NAMES)), state=draw(st.sampled_from(["", "Stable"])),
        generation=draw(st.integers(-1, 5)), type=draw(st.sampled_from(inputs.TYPES)), moment=draw(st.integers(0, 3)))


@given(st.lists(known_groups(), max_size=4))
def test_documents_and_rows_are_the_groups_by_name(fleet):
    for group in fleet:
        assert Group.from_json(group.to_json()) == group
        assert_identical(Group.from_json(group.to_json()).columns, group.columns)
        if group.columns.size:                      # a row cannot say that the lag of no partition is known
            assert_identical(group_from_row(row_from_group(group)).columns, group.columns)
            assert_identical(decode_rows(batch_of([group]))[0].columns, group.columns)
    some = [group for group in fleet if group.columns.size]
    assert_identical(decode_rows(batch_of(some))[0].columns, side_by_side([group.columns for group in some]))


@given(st.data())
def test_arrays_are_the_group_by_name(data):
    """A group that arrays can express: dynamic members, no racks, no topic without metadata, owners that subscribe."""
    drawn = data.draw(groups())
    topics, members = drawn.topic_counts, as_listed(drawn)
    ids = [member.id for member in members]
    subscribed = [[topic in member.topics for topic in topics] for member in members]
    owners = [data.draw(st.sampled_from([-1, *(i for i, member in enumerate(members) if topic in member.topics)]))
              for topic, count in topics.items() for _ in range(count)]
    lag = data.draw(st.none() | st.lists(st.integers(-9, 99), min_size=len(owners), max_size=len(owners)))
    partitions = [(topic, number) for topic, count in topics.items() for number in range(count)]
    by_name = Group(
        topics, {member.id: [topic for topic in topics if topic in member.topics] for member in members},
        owned={name: [partition for partition, owner in zip(partitions, owners) if owner == i]
               for i, name in enumerate(ids)},
        lag=None if lag is None else dict(zip(partitions, lag)))
    matrix = np.array(subscribed, bool).reshape(len(members), len(topics))
    rows = np.append(0, np.cumsum(matrix.sum(axis=1))), np.nonzero(matrix)[1]
    for subscriptions in (matrix, rows):
        by_arrays = Group.from_arrays(list(topics), list(topics.values()), ids, subscriptions, previous=owners, lag=lag)
        assert_identical(by_arrays.columns, by_name.columns)
        assert by_arrays.topics == by_name.topics and by_arrays.members == by_name.members
    assert Group(by_arrays.topic_counts, as_listed(by_arrays), lag=lag_by_topic(by_arrays)) == by_arrays


def as_listed(group):
    return [group.details[i] for i in group.listed]


def lag_by_topic(group):
    """Lag as `Group` takes it, of the topics that have metadata."""
    start = group.columns.start
    return None if group.lag is None else {
        topic: group.lag[start[i]:start[i + 1]] for topic, i in group.index.items() if topic in group.topic_counts}


OFFSETS = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
MEMBERS = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"]
PLAIN = ["a", "B", "c1", "c10", "c2", "t.x", "t_x", "-z"]


@st.composite
def printed_groups(draw):
    """A group as the tool prints it, and what it says: topics, members with what they own, offsets."""
    topics = draw(st.dictionaries(st.sampled_from(PLAIN), st.integers(1, 4), min_size=1, max_size=3))
    ids = draw(st.lists(st.sampled_from(PLAIN), unique=True, min_size=1, max_size=4))
    partitions = [(topic, number) for topic, count in topics.items() for number in range(count)]
    owners = [draw(st.sampled_from(["-", *ids])) for _ in partitions]
    offset = st.integers(-1, 99)
    committed, end = ([draw(offset) for _ in partitions] for _ in range(2))
    instance = {name: draw(st.sampled_from(["", f"i{len(ids) - at}"])) for at, name in enumerate(ids)}
    return topics, ids, dict(zip(partitions, owners)), dict(zip(partitions, zip(committed, end))), instance


def printed(name, group):
    """The tables of members and of offsets."""
    topics, ids, owner, offsets, instance = group
    def shown(offset):
        return "-" if offset < 0 else offset
    def of_member(member):
        owned = {topic: [number for number in range(count) if owner[topic, number] == member]
                 for topic, count in topics.items()}
        cells = [f"{topic}({','.join(map(str, numbers))})" for topic, numbers in owned.items() if numbers]
        return [name, member, instance[member], "/h", "c", sum(map(len, owned.values())), ", ".join(cells) or "-"]
    def of_partition(topic, number):
        member = owner[topic, number]
        known = map(shown, offsets[topic, number])
        return [name, topic, number, *known, "-", *("---" if member == "-" else [member, "/h", "c"])]
    rows = [of_partition(*partition) for partition in owner]
    return table(MEMBERS, *map(of_member, ids)), table(OFFSETS, *rows)


def by_name(name, group):
    """The same group by name. Subscriptions are no part of the tables: they are taken to be equal."""
    topics, ids, owner, offsets, instance = group
    owned = {member: [partition for partition in owner if owner[partition] == member] for member in ids}
    taken = {topic for (topic, _), member in owner.items() if member != "-"} or set(topics)
    committed, end = ({partition: known[i] for partition, known in offsets.items()} for i in range(2))
    return Group(topics, [
        Member(member, taken, owned=owned[member], instance_id=instance[member], host="/h", client_id="c")
        for member in ids],
        committed=committed, begin={}, end=end, name=name)


@given(st.lists(printed_groups(), min_size=1, max_size=4))
def test_printed_tables_are_the_groups_by_name(fleet):
    tables = [printed(f"g{at}", group) for at, group in enumerate(fleet)]
    together = read_groups("".join(members for members, _ in tables) + "".join(rows for _, rows in tables))
    for at, group in enumerate(fleet):
        alone, = read_groups("".join(tables[at])).values()
        named = by_name(f"g{at}", group)
        for one in (alone, together[f"g{at}"]):
            assert_identical(one.columns, named.columns)
            for mine, theirs in zip(as_listed(one), as_listed(named), strict=True):
                assert (mine.id, mine.instance_id, mine.host) == (theirs.id, theirs.instance_id, theirs.host)
        for again in (Group.from_json(alone.to_json()), group_from_row(row_from_group(alone))):
            assert_identical(again.columns, named.columns)


@given(st.lists(groups(), max_size=4), st.data())
def test_side_by_side_and_alone_again(fleet, data):
    """Groups taken from a union equal the originals; a column that is unknown in all of them may be None."""
    fleet = [replace(group.columns, counted=data.draw(st.sampled_from([None, np.arange(len(group.members)) - 1])))
             for group in fleet]
    union = side_by_side(fleet)
    some = data.draw(st.permutations(range(len(fleet))))[:data.draw(st.integers(0, len(fleet)))]
    for places in [*([at] for at in range(len(fleet))), some, [*range(len(fleet))][::-1]]:
        taken, originals = take_groups(union, places), side_by_side([fleet[at] for at in places])
        found, given = arrays_of(taken), arrays_of(originals)
        for name in found.keys() - {"lag", "counted", "racks.member", "racks.replica_offsets", "racks.replicas"}:
            assert (found[name].dtype, found[name].tolist()) == (given[name].dtype, given[name].tolist()), name
        for name, size in (("lag", taken.size), ("counted", taken.member_count)):
            one, other = ([-1] * size if getattr(of, name) is None else getattr(of, name).tolist()
                          for of in (taken, originals))
            assert one == other, name
        assert racks_of(taken) == [racks for at in places for racks in racks_of(fleet[at])]


def racks_of(columns):
    """By group: the racks of its members and of each partition's replicas, in order of first appearance; -1 = none."""
    found, racks = [], columns.racks
    for group in range(columns.groups):
        number = {-1: -1}

        def numbered(racks):
            return [number.setdefault(rack, len(number) - 1) for rack in racks.tolist()]

        members, places = (range(*offsets[group:group + 2])
                           for offsets in (columns.member_offsets, columns.group_offsets))
        found.append((
            [-1] * len(members) if racks is None else numbered(racks.member[members]),
            [[] if racks is None else numbered(racks.replicas[slice(*racks.replica_offsets[at:at + 2])])
             for at in places]))
    return found


@given(st.lists(groups(), max_size=4), st.data())
def test_only_members_of_the_same_group_subscribe(fleet, data):
    union = side_by_side([group.columns for group in fleet])
    pairs = {(topic, member) for topic in range(union.topic_count) for member in union.subscribers_of(topic)}
    topic, member = np.indices((union.topic_count, union.member_count + 2)).reshape(2, -1)
    member -= 1                                 # one before the first, and one after the last
    wanted = [pair in pairs for pair in zip(topic.tolist(), member.tolist())]
    assert union.subscribed(topic, member).tolist() == wanted
    owner = np.array([data.draw(st.integers(-1, union.member_count)) for _ in range(union.size)], np.int32)
    wanted = [pair in pairs for pair in zip(union.topic_of.tolist(), owner.tolist())]
    assert union.owners_subscribed(owner).tolist() == wanted


# --- the builder, beside plain Python ----------------------------------------------------------------------------

def described(columns, group):
    """One group of columns in plain words: numbers of members and topics within the group."""
    first, end = columns.member_offsets[group:group + 2].tolist()
    topics = range(*columns.topic_offsets[group:group + 2].tolist())
    position = range(*columns.group_offsets[group:group + 2].tolist())
    return {"subscribers": [[member - first for member in columns.subscribers_of(topic)] for topic in topics],
            "turn": [int(turn) - first for turn in columns.turn[first:end]],
            "previous": [max(int(columns.previous[i]) - first, -1) for i in position],
            "lag": None if columns.lag is None else columns.lag[position.start:position.stop].tolist()}


def by_rule(group):
    """The same from a `Group`'s members, by the words of the rules."""
    details, ids = group.details, {member.id: i for i, member in enumerate(group.details)}
    static = java_sorted({member.instance_id for member in details if member.instance_id})
    def place(member):
        return (0, static.index(member.instance_id)) if member.instance_id else (1, ids[member.id])
    turn = {member.id: at for at, member in enumerate(sorted(details, key=place))}
    def owner(partition):
        claims = {ids[m.id]: m.generation for m in details if tuple(partition) in set(map(tuple, m.owned))}
        best = [member for member, made in claims.items() if made == max(claims.values())]
        return best[0] if len(best) == 1 and partition[0] in details[best[0]].topics else -1
    return {"subscribers": [[ids[m.id] for m in details if topic in m.topics] for topic in group.topics],
            "turn": [turn[member.id] for member in details],
            "previous": [owner(group.at(i)) for i in range(group.columns.size)],
            "lag": None if group.lag is None else group.lag.tolist()}


@given(groups())
def test_columns_follow_the_rules(group):
    assert described(group.columns, 0) == by_rule(group)


@given(st.data())
def test_a_union_is_built_as_its_groups(data):
    """Codes of all groups in one call, pairs and claims shuffled: the columns are those of the groups side by side."""
    fleet = data.draw(st.lists(groups(), max_size=4))
    parts = [group.columns for group in fleet]
    union = side_by_side(parts)
    known = java_sorted({member.instance_id for group in fleet for member in group.details} - {None})
    ids = {name: i for i, name in enumerate(known)}
    instance = np.array([ids.get(member.instance_id, -1) for group in fleet for member in group.details], int)
    generation = np.array([claimed_in(member) for group in fleet for member in group.details], int)
    claims = [(first_member + i, group.index.get(topic, -1 - first_topic) + first_topic, number)
              for group, first_member, first_topic in zip(fleet, union.member_offsets, union.topic_offsets)
              for i, member in enumerate(group.details) for topic, number in member.owned]
    claims = np.array(data.draw(st.permutations(claims)), int).reshape(-1, 3)
    topic = np.repeat(np.arange(union.topic_count), union.subscriber_counts)
    pairs = [*zip(topic.tolist(), union.subscribers.tolist())] * data.draw(st.integers(1, 2))
    pairs = data.draw(st.permutations(pairs))
    rows = subscriber_rows(*np.array(pairs, int).reshape(-1, 2).T, union.topic_count, union.member_count)
    built = build_columns(
        union.topic_offsets, union.member_offsets, union.partitions, rows, missing=union.missing, listed=union.listed,
        claims=ClaimColumns(*claims.T), generation=generation, instance=instance, lag=union.lag, racks=union.racks)
    assert_identical(built, union)


lags = st.lists(st.lists(st.integers(-3, 2**63 - 1) | st.integers(2**61, 2**62), max_size=4), max_size=4)


@given(lags)
def test_groups_whose_lag_overflows(groups_of_lags):
    lag = np.array([value for part in groups_of_lags for value in part], np.int64)
    offsets = np.append(0, np.cumsum([len(part) for part in groups_of_lags], dtype=int))
    wanted = [sum(max(value, 0) for value in part) >= 2**63 for part in groups_of_lags]
    assert overflowing_groups(lag, offsets).tolist() == wanted


@example([[0], [MOST_PARTITIONS, 1]])
@given(st.lists(st.lists(st.sampled_from([0, 1, MOST_PARTITIONS - 1, MOST_PARTITIONS, 2**62]), max_size=3), max_size=4))
def test_groups_of_too_many_partitions(groups_of_counts):
    counts = np.array([count for part in groups_of_counts for count in part], np.int64)
    offsets = np.append(0, np.cumsum([len(part) for part in groups_of_counts], dtype=int))
    totals = [sum(part) for part in groups_of_counts]
    assert oversized_groups(counts, offsets).tolist() == [total > MOST_PARTITIONS for total in totals]
    large = [total for total in totals if total > MOST_PARTITIONS]
    if large:
        with pytest.raises(GroupError, match=f"at most 16,777,216 partitions \\(got {large[0]:,}\\)"):
            check_sizes(counts, offsets)
    else:
        check_sizes(counts, offsets)


def test_nothing_per_partition_is_made_of_an_oversized_group():
    huge = {f"t{i}": 2**31 - 1 for i in range(1000)}                # 16 TB as a column
    for more in ({}, {"lag": {}}, {"committed": {}}, {"partition_racks": {"t0": []}}):
        with pytest.raises(GroupError, match="at most 16,777,216 partitions"):
            Group(huge, {}, **more)
    with pytest.raises(GroupError, match="at most 16,777,216 partitions"):
        Group.from_arrays(["t", "u"], [2**62, 2**62], [], [], lag=[])


def test_offsets_fill_in_where_lag_is_unknown():
    one, rows = np.array([0, 1]), (np.array([0, 0]), np.zeros(0, int))
    offsets = Offsets(np.array([4, 4, -1, 4]), np.full(4, -1), np.array([9, 9, 9, -1]))
    built = build_columns(one, np.array([0, 0]), np.array([4]), rows, lag=np.array([7, -1, -1, -9]), offsets=offsets)
    assert built.lag.tolist() == [7, 5, 0, 0]


@given(groups(), st.data())
def test_limits_of_tables_and_caches_change_nothing(group, data):
    owner = data.draw(owners(group))
    pairs = [(t, m) for t in range(len(group.topics)) for m in range(len(group.members))]
    by_topic = [{member.id for member in group.details if topic in member.topics} for topic in group.topics]
    with pytest.MonkeyPatch.context() as patch:
        for most in (1, 2, 1 << 30):
            patch.setattr(columns_module, "_LARGEST_CELL_TABLE", most)
            assert group.replace(members=as_listed(group)) == group
            assert Assignment(group, owner).to_dict() == dict(Assignment(group, owner).check())
            subscribed = [group.members[m] in by_topic[t] for t, m in pairs]
            assert group.columns.subscribed(*np.array(pairs, int).reshape(-1, 2).T).tolist() == subscribed


# --- values ------------------------------------------------------------------------------------------------------

def arrays_within(value):
    """All arrays that a caller can reach from a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays_within(part)
    elif isinstance(value, (Columns, Group, Assignment)):
        for part in vars(value).values():
            yield from arrays_within(part)


def whole_group():
    """A group with something in each field."""
    return Group({"t": 2, "u": 1}, [
        Member("b", ["t", "gone"], owned=[("t", 0)], generation=3, instance_id="i", client_id="c", host="/h", rack="r1",
               user_data=b"\1"), Member("a", ["t", "u"], owned=[("u", 0)])],
        committed={"t": [1, 2]}, begin={"t": [0, 0]}, end={"t": [5, -1]}, reset="earliest",
        partition_racks={"t": [["r1"], ["r2", "r1"]]}, topic_ids={"t": "x"}, name="g", type="classic", state="Stable",
        strategy="range", generation=4, time="2026-01-01", cluster="c", inferred="nothing")


DERIVED = {Group: ["details", "subscribed", "index"], Assignment: ["loads", "lag_per_member", "lag_unknown_per_member"],
           Columns: ["start", "topic_of", "number", "group_offsets", "subscriber_counts", "first_cell"]}


@pytest.mark.parametrize("make", [whole_group, lambda: assign(whole_group(), "range"), lambda: whole_group().columns,
                                  lambda: whole_group().details[0]])
def test_values_do_not_change(make):
    value = make()
    for name in DERIVED.get(type(value), []):
        getattr(value, name)
    for name in [*vars(value), "something_new"]:
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, None)
        with pytest.raises(FrozenInstanceError):
            delattr(value, name)
    for again in (value, copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert again == value and not (again != value)
        assert not any(array.flags.writeable for array in arrays_within(again))


@pytest.mark.parametrize("name", ["partition_racks", "topic_ids", "index"])
def test_mappings_of_a_group_do_not_change(name):
    with pytest.raises(TypeError, match="does not support item assignment"):
        getattr(whole_group(), name)["t"] = None


def test_arrays_of_the_caller_stay_the_callers():
    partitions, previous, lag = np.array([2]), np.array([0, -1]), np.array([5, 6])
    matrix = np.ones((1, 1), bool)
    group = Group.from_arrays(["t"], partitions, ["a"], matrix, previous=previous, lag=lag)
    owner = np.array([0, 0], np.int32)
    answer = Assignment(group, owner)
    for array in (partitions, previous, lag, matrix, owner):
        array[...] = 0
    assert (group.partitions.tolist(), group.previous.tolist(), group.lag.tolist()) == ([2], [0, -1], [5, 6])
    assert group.subscribed.tolist() == [[True]] and answer.owner.tolist() == [0, 0]


def with_member(**changes):
    def change(group):
        first, *others = as_listed(group)
        return group.replace(members=[Member(**(vars(first) | changes)), *others])
    return change


OTHER = {"type": "consumer", "time": "2026-01-31"}
CHANGES = {
    **{name: lambda group, name=name: group.replace(**{name: OTHER.get(name, "other")})
       for name, one in ABOUT.items() if one.kind is str},
    "generation": lambda group: group.replace(generation=5), "moment": lambda group: group.replace(moment=5),
    "topic_ids": lambda group: group.replace(topic_ids={"t": "y"}),
    "partition_racks": lambda group: group.replace(partition_racks={"t": [["r1"], ["r1", "r2"]]}),
    "reset": lambda group: group.replace(reset="none"),
    "end": lambda group: group.replace(end={"t": [6, -1]}),
    "begin": lambda group: group.replace(begin={"t": [0, 1]}),
    "committed": lambda group: group.replace(committed={"t": [1, 3]}),
    "lag instead of offsets": lambda group: Group(
        group.topic_counts, as_listed(group), lag={"t": group.lag[1:3]}, topic_ids={"t": "x"},
        partition_racks=group.partition_racks, **{name: getattr(group, name) for name in ABOUT}),
    "listed": lambda group: group.replace(members=group.details),
    "partitions": lambda group: group.with_partitions(u=2),
    "metadata": lambda group: group.with_partitions(gone=0),
    "a member less": lambda group: group.leave("a"),
    "a member more": lambda group: group.join("c", []),
    **{f"member's {name}": with_member(**{name: value}) for name, value in {
        "id": "B", "topics": ["t"], "owned": [("t", 1)], "instance_id": "j", "client_id": "d", "host": "/g",
        "rack": "r2", "user_data": b"\2"}.items()},
    "member's generation": with_member(generation=2),
    "an invalid claim": with_member(owned=[("t", 0), ("t", 7)]),
    "the order of topics": with_member(topics=["gone", "t"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_groups_differ_by_content(what):
    group, other = whole_group(), CHANGES[what](whole_group())
    assert group == whole_group() and group != other and other != group
    assert CHANGES[what](group) == other
    assert Assignment(group, [0] * group.columns.size) != Assignment(other, [0] * other.columns.size)


@given(groups(), st.data())
def test_assignments_are_equal_by_content(group, data):
    owner, other = data.draw(owners(group)), data.draw(owners(group))
    one = Assignment(group, owner, "range")
    assert one == Assignment(group.replace(), owner, "range") and one == dict(one) and dict(one) == one
    assert (one == Assignment(group, other, "range")) == (owner == other)
    assert one != Assignment(group, owner, "fair") and one != Assignment(group.replace(name="other"), owner, "range")
    assert one != {**one, "nobody": []} and one != 7


@given(groups())
def test_groups_survive_pickle_and_copies(group):
    lazy = Group.from_columns(group.columns, group.topics, group.members, known={"host": ["/h"] * len(group.members)})
    for one in (group, lazy):
        for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one)), one.replace(name=one.name)):
            assert again == one and again.details == one.details
            assert_identical(again.columns, one.columns)
    assert lazy != Group.from_columns(group.columns, group.topics, group.members) or not group.members
    assert [member.host for member in lazy.details] == ["/h"] * len(group.members)


def test_nothing_of_ours_has_a_hash():
    group = whole_group()
    for value in (group, group.columns, assign(group, "range")):
        with pytest.raises(TypeError, match="unhashable"):
            hash(value)
    assert group != 7 and group.columns != 7


@given(groups())
def test_counts_of_a_group_make_it_again(group):
    counts = {topic: count for topic, count in zip(group.topics, group.partitions) if topic in group.topic_counts}
    assert {type(count) for count in counts.values()} <= {np.int64}
    assert Group(counts, as_listed(group), partition_racks=group.partition_racks, lag=lag_by_topic(group)) == group


@given(st.data())
def test_listed_is_the_order_given_whatever_changes(data):
    group = data.draw(groups())
    members = as_listed(group)
    order = data.draw(st.permutations(members))
    def ids(some):
        return [some.members[i] for i in some.listed]
    listed = group.replace(members=order)
    assert ids(listed) == [member.id for member in order]
    assert ids(listed.replace(name="x")) == ids(listed.with_partitions(new=1)) == ids(listed)
    assert ids(listed.join("newcomer", [])) == [*ids(listed), "newcomer"]
    for member in order[:1]:
        assert ids(listed.leave(member.id)) == ids(listed)[1:]
        assert ids(listed.subscribe(member.id, [])) == ids(listed)


def test_user_data_is_noticed():
    group = whole_group()
    assert group.has_user_data and not group.leave("b").has_user_data
    columns, names = group.columns, (group.topics, group.members)
    assert not Group.from_columns(columns, *names).has_user_data
    assert Group.from_columns(columns, *names, known={"user_data": [None, b""]}).has_user_data


def test_what_is_no_field_of_a_group_is_refused():
    group = whole_group()
    for make in (lambda: Group({}, {}, owner="me"), lambda: group.replace(owner="me"),
                 lambda: Group.from_columns(group.columns, group.topics, group.members, owner="me")):
        with pytest.raises(TypeError, match="unexpected keyword argument 'owner'"):
            make()
