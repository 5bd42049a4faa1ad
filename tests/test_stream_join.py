"""KIP-315: joined topics stay together, as few partition numbers move as possible, and no input makes it raise."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import best, outcome
from outputs import texts

from kafka_assign import (
    Group, LiveGroup, Member, StrategyError, assign, assign_many, co_partitioned)
from kafka_assign.assignors.stream_join import unjoined
from kafka_assign.assignors.stream_join_rule import (
    draft, eligible_count, previous_ownership, stream_join_by_rule, unowned_numbers)
from kafka_assign.arrays.columns import Columns
from kafka_assign.assignors.registry import resolve
from kafka_assign.assignors.running import running_strategy
from kafka_assign.life.rebalance import lead
from kafka_assign.protocol.wire import (
    Subscription, decode_assignment, decode_epoch, decode_stream_join, decode_subscription, encode_stream_join,
    encode_subscription)

REFERENCE = Path(__file__).parent / "reference" / "stream-join-sticky.jsonl"
CASES = {case["id"]: case for case in map(json.loads, REFERENCE.read_text(encoding="utf-8").splitlines())}
NAMES = "ABCDEF"


def sending(members, claims):
    """Members that send the numbers and epochs of `claims`."""
    return [Member(name, topics, user_data=encode_stream_join(*claims[name]) if name in claims else None)
            for name, topics in members.items()]


def owners_of_numbers(assignment):
    """The owner of each partition number, once it is sure that no number has two."""
    assert not any(co_partitioned(assignment).values())
    return {number: name for name, owned in assignment.items() for _, number in owned}


def takes_part(topics, wanted):
    """Whether a member subscribes to any topic that has partitions."""
    return any(topics.get(topic) for topic in wanted)


def moved_numbers(topics, members, claims, assignment):
    """How many numbers leave their previous owner, and the state as columns of one topic with only numbers."""
    names = [name for name in members if takes_part(topics, members[name])]
    eligible = min((topics[topic] for wanted in members.values() for topic in wanted if topics.get(topic)), default=0)
    previous = np.full(eligible, -1, np.int32)
    for number in range(eligible):
        epochs = {name: epoch for name, (numbers, epoch) in claims.items() if number in numbers}
        newest = [name for name in epochs if epochs[name] == max(epochs.values())]
        if len(newest) == 1 and newest[0] in names:
            previous[number] = names.index(newest[0])
    subscribers = np.arange(len(names), dtype=np.int32)
    state = Columns(np.array([0, 1]), np.array([0, len(names)]), np.array([eligible]), np.array([False]),
                    np.array([0, len(names)]), subscribers, subscribers, previous)
    selected = owners_of_numbers(assignment)
    owner = np.array([names.index(selected[number]) for number in range(eligible)], np.int32)
    return state, owner


# --- the example and the steps of the proposal -------------------------------------------------------------------

BOTH = ["impressions", "clicks"]
TEN = Group(dict.fromkeys(BOTH, 10), dict.fromkeys("ABCD", BOTH))


def numbers_of(assignment):
    """Each member's numbers, as in `0 1 2`; the same in both topics."""
    found = {topic: [" ".join(str(number) for one, number in owned if one == topic) for owned in assignment.values()]
             for topic in BOTH}
    assert found["clicks"] == found["impressions"]
    return found["clicks"]


def changes(assignment):
    """Number -> previous and new owner, of the numbers with another one."""
    group, names = assignment.group, [*assignment.group.members, None]
    return {group.at(place).partition: (names[group.previous[place]], names[assignment.owner[place]])
            for place in np.flatnonzero(assignment.group.previous != assignment.owner)}


def test_the_example_of_the_proposal():
    """Its tables: round robin splits every number, range moves 3 and 6 without need; only 8 and 9 must be placed."""
    assert list(co_partitioned(assign(TEN, "roundrobin")).values()) == [list(range(10))]
    ranged = assign(TEN, "range")
    assert numbers_of(ranged) == ["0 1 2", "3 4 5", "6 7", "8 9"]
    after = TEN.replace(owned=ranged.to_dict()).leave("D")
    assert numbers_of(assign(after, "range")) == ["0 1 2 3", "4 5 6", "7 8 9"]
    assert changes(assign(after, "range")) == {3: ("B", "A"), 6: ("C", "B"), 8: (None, "C"), 9: (None, "C")}
    assert numbers_of(assign(after, "stream-join-sticky")) == ["0 1 2 9", "3 4 5", "6 7 8"]
    assert changes(assign(after, "stream-join-sticky")) == {8: (None, "C"), 9: (None, "A")}


@pytest.mark.parametrize("name", ["sticky", "kip54", "StickyAssignor"])
def test_the_sticky_assignors_split_numbers(name):
    """From scratch all ten; from a valid assignment those that they place."""
    assert list(co_partitioned(assign(TEN, name)).values()) == [list(range(10))]
    after = TEN.replace(owned=assign(TEN, "range").to_dict()).leave("D")
    assert list(co_partitioned(assign(after, name)).values()) == [[8, 9]]


@pytest.mark.parametrize("topics, members, eligible", [
    ({"x": 10, "y": 10}, {"A": ["x", "y"]}, 10), ({"x": 12, "y": 10}, {"A": ["x"], "B": ["y"]}, 10),
    ({"x": 12, "y": 1}, {"A": ["x"]}, 12), ({"x": 12, "y": 0}, {"A": ["x", "y", "z"]}, 12), ({"x": 3}, {}, 0),
    ({"x": 0}, {"A": ["x"]}, 0)])
def test_step_1_takes_the_minimum(topics, members, eligible):
    """Over the subscribed topics that have partitions."""
    assert eligible_count(topics, members) == eligible


def test_step_2_prefers_the_higher_epoch():
    """In random claims: the owner of a number is the first of two in the order of epochs, unless they are tied."""
    rng = random.Random(2)
    for _ in range(500):
        claims = {name: (rng.sample(range(-1, 9), rng.randrange(9)), rng.randint(0, 3)) for name in "ABCD"}
        eligible = rng.randrange(8)
        expected = {name: [] for name in claims}
        for number in range(eligible):
            order = sorted((-epoch, name) for name, (numbers, epoch) in claims.items() if number in numbers)
            if order and (len(order) == 1 or order[0][0] < order[1][0]):
                expected[order[0][1]].append(number)
        assert previous_ownership(claims, eligible) == expected


def test_step_3_the_rest_is_unowned():
    assert unowned_numbers({"A": [4, 1], "B": []}, 6) == [0, 2, 3, 5]
    assert unowned_numbers({}, 2) == [0, 1] and unowned_numbers({"A": [0, 1]}, 2) == []


def test_step_4_is_a_fair_draft():
    """Every pick of 1,000 drafts follows the three rules, and no consumer is a round ahead of another."""
    rng = random.Random(4)
    for _ in range(1_000):
        own = {name: [] for name in NAMES[:rng.randint(1, 5)]}
        eligible, unowned = rng.randrange(12), []
        for number in range(eligible):
            rng.choice([*own.values(), unowned]).append(number)
        left, free, picks = {name: set(numbers) for name, numbers in own.items()}, set(unowned), Counter()
        for name, number in draft(own, unowned):
            assert not left[name] or number in left[name]                                         # rule 1
            assert left[name] or not free or number in free                                       # rule 2
            owner = next((one for one in left if number in left[one]), None)
            assert owner in (None, name) or len(left[owner]) == max(map(len, left.values()))      # rule 3
            assert picks[name] == min(picks[one] for one in own)
            ahead = [one for one in own if picks[one] == picks[name] and left[one]]
            assert left[name] or not ahead                                    # those with numbers of their own first
            (free if owner is None else left[owner]).remove(number)
            picks[name] += 1
        assert picks.total() == eligible and not free and not any(left.values())


def test_step_5_with_a_topic_of_one_consumer():
    """The proposal's topic X: A has numbers 0 to 10, and gets these of its 100 partitions; no one gets the rest."""
    group = Group({**dict.fromkeys(BOTH, 22), "X": 100}, {"A": [*BOTH, "X"], "B": BOTH},
                  owned={"A": [(topic, number) for topic in BOTH for number in range(11)]})
    tried = assign(group, "stream-join-sticky")
    assert [number for topic, number in tried["A"] if topic == "X"] == list(range(11))
    assert [group.at(place) for place in np.flatnonzero(tried.unassigned)] == [("X", at) for at in range(11, 100)]
    assert numbers_of(tried)[1] == " ".join(map(str, range(11, 22)))


def test_what_the_leader_sends_has_the_next_epoch():
    """One more than the highest of all subscriptions, also of one whose claims are void; 0 if there is none."""
    for epochs, expected in ((7, 6, 7), 8), ((3, 9, 9), 10), ((None,) * 3, 0):
        sent = {name: (None, encode_subscription(Subscription(
            BOTH, None if epoch is None else encode_stream_join([number], epoch))))
            for name, number, epoch in zip("ABC", (0, 1, 1), epochs)}
        answers = lead("stream-join-sticky", sent, dict.fromkeys(BOTH, 3))
        assert {decode_epoch(decode_assignment(data).user_data) for data in answers.values()} == {expected}


def test_violated_expectations_are_met_again():
    """Members add a topic, then remove one, one by one; then topics get partitions, one by one: nothing moves."""
    live = LiveGroup("stream-join-sticky", dict.fromkeys(BOTH, 3), dict.fromkeys("ABC", BOTH))
    first = {number: name for name in "ABC" for _, number in live[name]}
    live.add_partitions("purchases", 3)
    wanted = dict.fromkeys("ABC", BOTH)

    def check():
        for name in "ABC":
            assert live[name] == sorted((topic, number) for topic in wanted[name]
                                        for number in first if first[number] == name)
    for new in [*BOTH, "purchases"], ["impressions", "purchases"]:
        for name in "ABC":
            live.resubscribe(name, new)
            wanted[name] = new
            check()
    live.add_partitions("purchases")
    check()
    live.join("D", wanted["A"])
    check()
    assert not live["D"]
    live.add_partitions("impressions")
    check()
    assert live["D"] == [("impressions", 3), ("purchases", 3)]


# --- the strategy ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("case", CASES)
def test_vectors(case):
    case = CASES[case]
    claims = {name: (one["partitions"], one["epoch"]) for name, one in case["previous"].items()}
    topics, members = case["topics"], {member["id"]: member["topics"] for member in case["members"]}
    group = Group.from_json({"topics": topics, "members": case["members"]})
    group = group.replace(members=sending(members, claims))
    state, owner = moved_numbers(topics, members, claims, assign(group, "StickyStreamJoinAssignor"))
    loads, kept = outcome(state, owner)
    expected = case["expected"]
    assert (len(owner), int((state.previous >= 0).sum())) == (expected["eligible"], expected["valid_previous"])
    assert (loads, kept) == (expected["counts"], expected["most_kept"])
    assert expected["valid_previous"] - kept == expected["fewest_moved"]


def random_case(rng, alike=True):
    """Topics, members and claims; all members subscribe to all topics if they are `alike`."""
    topics = {name: rng.randrange(0, 9) for name in "xyz"[:rng.randint(1, 3)]}
    if alike:
        topics = dict.fromkeys(topics, rng.randrange(0, 9))
    members = {name: [topic for topic in topics if alike or rng.random() < .8] for name in NAMES[:rng.randint(0, 4)]}
    claims = {name: ([rng.randrange(-1, 11) for _ in range(rng.randrange(9))], rng.randint(0, 2))
              for name in members if rng.random() < .8}
    return topics, members, claims


@pytest.mark.parametrize("alike", [True, False])
def test_no_balanced_assignment_moves_fewer_numbers(alike):
    """Of 2,000 random previous states each: as few as trying every assignment of the numbers tells."""
    rng, groups, cases = random.Random(315), [], []
    for _ in range(2_000):
        cases.append(random_case(rng, alike))
        topics, members, claims = cases[-1]
        groups.append(Group(topics, sending(members, claims)))
    for case, assignment in zip(cases, assign_many(groups, "stream-join-sticky")):
        if not case[1]:
            assert not assignment
            continue
        if alike:
            state, owner = moved_numbers(*case, assignment)
            assert outcome(state, owner) == best(state), case
        assert dict(assignment) == stream_join_by_rule(*case), case


def test_a_zombie_with_more_topics_loses_its_numbers_in_all_of_them():
    zombie = Member("A", ["x", "y"], user_data=encode_stream_join([0, 1], 4))
    newer = Member("B", ["y"], user_data=encode_stream_join([0], 6))
    owned = assign(Group({"x": 2, "y": 2}, [zombie, newer]), "stream-join-sticky")
    assert (owned["A"], owned["B"]) == ([("x", 1), ("y", 1)], [("y", 0)])


@given(st.lists(st.binary(max_size=40) | st.none(), max_size=4))
def test_user_data_of_any_kind(sent):
    members = [Member(name, ["x", "y"], user_data=data) for name, data in zip(NAMES, sent)]
    loads = assign(Group({"x": 5, "y": 5}, members), "stream-join-sticky").loads
    assert loads.sum() == (10 if sent else 0) and (not sent or np.ptp(loads) in (0, 2))


def test_names_of_the_strategy():
    for name in "stream-join-sticky", "sticky-join", "StickyStreamJoinAssignor":
        assert resolve(name).name == "stream-join-sticky"
    with pytest.raises(StrategyError, match="does not ship with Kafka"):
        running_strategy(Group({}, {}, strategy="sticky-join"))


def test_epochs_travel_in_user_data():
    live = LiveGroup("stream-join-sticky", {"x": 4, "y": 4}, {"A": ["x", "y"], "B": ["x", "y"]})
    for epoch in range(4):
        sent = decode_subscription(live.state.members[0].subscription(live.strategy))
        assert decode_stream_join(sent.user_data) == ([0, 2], epoch)
        live.change_leader()
    live.reset_generation()
    assert (live.generation, live.state.members[0].epoch) == (1, 5)
    assert decode_epoch(None) == -1


def random_joined_group(rng):
    """A group whose members subscribe to whole joins, some with previous owners; and its joins."""
    joins = [["a", "b"], ["c", "d"]][:rng.randint(1, 2)]
    topics = {name: rng.randrange(0, 3) for name in "ef"[:rng.randint(0, 2)]}
    for join in joins:
        topics |= dict.fromkeys(join, rng.randrange(0, 3))
    units = [*joins, *([name] for name in "ef" if name in topics)]
    members = {name: [topic for unit in units if rng.random() < .8 for topic in unit]
               for name in NAMES[:rng.randint(1, 3)]}
    partitions = [(topic, number) for topic, count in topics.items() for number in range(count)]
    owned = {name: [] for name in members}
    for topic, number in partitions:
        able = [name for name in members if topic in members[name]]
        if able and rng.random() < .7:
            owned[rng.choice(able)].append((topic, number))
    return Group(topics, members, owned), joins


def test_the_rest_is_assigned_around_the_joins():
    """In 1,000 random groups: every join is whole, and no assignment of the rest is flatter, or keeps more."""
    rng = random.Random(2)
    for _ in range(1_000):
        group, joins = random_joined_group(rng)
        answer = assign(group, "stream-join-sticky", joins=joins)
        assert not any(co_partitioned(answer, joins).values())
        joined = {topic for join in joins for topic in join}
        fixed = [int(owner) if group.topics[topic] in joined else None
                 for topic, owner in zip(group.columns.topic_of, answer.owner)]
        assert outcome(group.columns, answer.owner) == best(group.columns, fixed=fixed)
        assert not answer.unassigned[(group.columns.subscriber_counts > 0)[group.columns.topic_of]].any()


def test_joins_as_text_and_as_lists():
    group = Group({"a": 2, "b": 2, "c": 3}, {"A": ["a", "b", "c"], "B": ["a", "b", "c"]})
    answer = assign(group, "stream-join-sticky", joins=[["a", "b"]])
    assert answer.strategy == "stream-join-sticky:joins=a+b"
    assert assign(group, answer.strategy) == answer
    assert assign_many([group, group], answer.strategy) == [answer, answer]


def test_a_join_of_which_the_group_has_one_topic_only():
    group = Group({"a": 3}, {"A": ["a"], "B": ["a"]})
    assert assign(group, "stream-join-sticky:joins=a+elsewhere").loads.tolist() == [2, 1]


def test_what_stays_unassigned_is_reported():
    group = Group({"a": 4, "b": 6, "trial": 9}, {"A": ["a", "b", "trial"], "B": ["a", "b"], "C": ["trial"]})
    answer = assign(group, "stream-join-sticky")
    found = {(topic, number): reason for topic, numbers, reason in unjoined(answer) for number in numbers}
    free = [group.at(place) for place in np.flatnonzero(answer.unassigned)]
    assert list(found) == sorted(free, key=lambda one: (one[0], one[1]))
    for (topic, number), reason in found.items():
        if number >= 4:
            assert reason == "a has only 4 partitions"
        else:
            assert reason.startswith("the number's owner") and reason.endswith(f"not subscribe to {topic}")
    assert "partitions 4 and 5 of b are unassigned, because a has only 4 partitions" in texts(answer)


def test_notes_of_a_single_number_are_singular():
    group = Group({"a": 2, "b": 2}, {"A": ["a", "b"], "B": ["a"]})
    assert texts(assign(group, "stream-join-sticky")) == [
        "partition 1 of b is unassigned, because the number's owner does not subscribe to b"]


def test_notes_about_many_partitions_are_few_and_short():
    topics = {f"t{at:03}": at % 17 + 1 for at in range(100)}
    answer = assign(Group(topics, {"A": list(topics)}), "stream-join-sticky")
    *shown, last = texts(answer)
    assert len(shown) == 10
    assert last == f"unassigned for such reasons, too: {785 - sum(range(1, 11))} more partitions"
    scattered = assign(Group({"a": 1000, "b": 1000}, {"A": ["a", "b"], "B": ["a"]}), "stream-join-sticky")
    assert texts(scattered) == ["partitions 1, 3, 5, 7, 9 and 495 more of b are unassigned, because "
                               "the number's owner does not subscribe to b"]


def test_joined_topics_without_a_subscriber_are_reported():
    group = Group({"clicks": 2, "views": 2}, {"A": ["clicks", "views"]})
    assert texts(assign(group, "stream-join-sticky:joins=clicks+vews")) == [
        "no member subscribes to the joined topic 'vews'; did you mean 'views'?"]
    assert texts(assign(group, "stream-join-sticky:joins=clicks + views"))[0].startswith(
        "no member subscribes to the joined topic 'clicks '")


@pytest.mark.parametrize("topic", ["5", "none", "true", "a+b", "a|b", "a,b"])
def test_notes_know_joins_whatever_their_topics_are_called(topic):
    group = Group({topic: 2, "c": 3}, {"A": [topic, "c"]})
    for joins in ([[topic, "c"]], [{topic, "c"}]):
        answer = assign(group, "stream-join-sticky", joins=joins)
        assert texts(answer) == [f"partition 2 of c is unassigned, because {topic} has only 2 partitions"]
    assert texts(assign(group, "stream-join-sticky", joins=[[topic]])) == []


def test_unjoined_takes_joins_as_lists_or_text():
    group = Group({"a": 2, "b": 3, "c": 4}, {"A": ["a", "b", "c"]})
    answer = assign(group, "stream-join-sticky:joins=a+b")
    for joins in ("a+b", [["a", "b"]]):
        assert unjoined(answer, joins) == [("b", [2], "a has only 2 partitions")]


@pytest.mark.parametrize("joins", ["a+", "a|a", ["a", "b"], 5, [["a"], ["a"]]])
def test_an_error_in_joins_names_the_option(joins):
    group = Group({"a": 2, "b": 2}, {"A": ["a", "b"]})
    with pytest.raises(StrategyError, match=r"^option joins of strategy 'stream-join-sticky': .*\(got "):
        assign(group, "stream-join-sticky", joins=joins)
