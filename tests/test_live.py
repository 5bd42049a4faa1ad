"""A group's life under each strategy, step by step: what must hold at every moment, whatever happens to it."""

import pickle
import sys
from itertools import pairwise
from threading import Barrier, Thread
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test)

from kafka_assign import (
    Event, Group, GroupError, LiveGroup, Member, StrategyError, assign, co_partitioned, lead,
    step, strategies)
from kafka_assign.groups.certificate import check
from kafka_assign.assignors.base import Strategy
from kafka_assign.assignors.registry import resolve
from kafka_assign.protocol.wire import (
    Claims, Subscription, decode_assignment, encode_sticky, encode_stream_join,
    encode_subscription)

EXACT = "sticky", "cooperative-sticky"
TOPICS, NAMES = ["t0", "t1", "t2", "é"], ["C0", "C1", "C2", "C3", "ö"]
subscriptions = st.lists(st.sampled_from(TOPICS), unique=True, max_size=len(TOPICS))
new_members = st.dictionaries(st.sampled_from(NAMES), subscriptions, max_size=len(NAMES))


def named_members(event, among, **become):
    """A rule: an event of one or two of the members `among`, which then are, or no longer are, frozen or evicted."""
    def happen(self, data):
        names = self.choose(data, among(self))
        for state, holds in become.items():
            (getattr(self, state).update if holds else getattr(self, state).difference_update)(names)
        self.both(event, *names)
    happen.__name__ = event
    return precondition(among)(rule(data=st.data())(happen))


class Life(RuleBasedStateMachine):
    """Two groups live through the same events; in `twin`, other members lead."""

    name = ""

    @initialize(topics=st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 5)), members=new_members,
                static=st.booleans())
    def begin(self, topics, members, static):
        made = [Member(name, wanted, instance_id=f"i-{name}" if static else None) for name, wanted in members.items()]
        self.live = LiveGroup(self.name, topics, made)
        self.twin = LiveGroup(self.name, topics, made[::-1])
        self.frozen, self.evicted = set(), set()
        self.looked_at = 0

    def both(self, event, *arguments):
        for one in (self.live, self.twin):
            getattr(one, event)(*arguments)
        if self.live.history[-1].rounds or not len(self.live):
            self.evicted |= self.frozen - set(self.live)

    def answering(self):
        return [name for name in self.live if name not in self.frozen]

    def choose(self, data, names, least=1):
        return data.draw(st.lists(st.sampled_from(sorted(names)), unique=True, min_size=least, max_size=2))

    @rule(members=new_members)
    def join(self, members):
        new = {name: topics for name, topics in members.items() if name not in self.live}
        self.evicted -= new.keys()
        self.frozen -= new.keys()
        if new:
            self.both("join", new)

    leave = named_members("leave", answering)
    crash = named_members("crash", lambda self: self.live, evicted=True)
    rejoin = named_members("rejoin", lambda self: self.evicted, evicted=False, frozen=False)
    freeze = named_members("freeze", answering, frozen=True)
    thaw = named_members("thaw", lambda self: self.frozen, evicted=False, frozen=False)

    @precondition(lambda self: self.answering())
    @rule(data=st.data())
    def restart(self, data):
        [name] = self.choose(data, self.answering())[:1]
        if self.live.group.details[self.live.group.members.index(name)].instance_id is None:
            with pytest.raises(GroupError, match="instance id"):
                self.live.restart(name)
        else:
            self.both("restart", name)

    @precondition(lambda self: self.answering())
    @rule(data=st.data(), topics=subscriptions)
    def resubscribe(self, data, topics):
        self.both("resubscribe", self.choose(data, self.answering())[0], topics)

    @rule(topic=st.sampled_from(TOPICS), count=st.integers(0, 3))
    def add_partitions(self, topic, count):
        self.both("add_partitions", topic, count)

    @precondition(lambda self: self.live.topics)
    @rule(data=st.data())
    def delete_topic(self, data):
        self.both("delete_topic", data.draw(st.sampled_from(sorted(self.live.topics))))

    @precondition(lambda self: self.answering())
    @rule(data=st.data())
    def change_leader(self, data):
        [name] = self.choose(data, self.answering())[:1]
        settled = not self.frozen & set(self.live)
        before = {member: self.live[member] for member in self.live}
        self.live.change_leader(name)
        self.twin.change_leader()
        self.evicted |= self.frozen - set(self.live)
        if settled:
            assert {member: self.live[member] for member in self.live} == before

    @rule()
    def reset_generation(self):
        self.both("reset_generation")

    @invariant()
    def the_leader_makes_no_difference(self):
        assert {name: self.live[name] for name in self.live} == {name: self.twin[name] for name in self.twin}

    @invariant()
    def every_moment_is_sound(self):
        for rebalance in self.live.history[self.looked_at:]:
            assert rebalance.rounds <= (2 if self.live.strategy.protocol == "cooperative" else 1)
            assert rebalance.shared == ()
            for phase in rebalance.phases:
                assert sum(map(len, phase.consuming.values())) == len(phase.consumers), "two consumers"
        self.looked_at = len(self.live.history)

    @invariant()
    def every_partition_with_a_subscriber_has_one_owner_that_subscribes(self):
        owners = self.live.history[-1].phases[-1].consumers
        topics = {member.id: member.topics for member in self.live.group.details}
        assert all(one.topic in topics[owner] for one, owner in owners.items())
        if not self.frozen & set(self.live):
            wanted = {(topic, number) for own in topics.values() for topic in own
                      for number in range(self.live.topics.get(topic, 0))}
            complete = "each-partition-once" not in self.live.strategy.without
            assert owners.keys() == wanted if complete else owners.keys() <= wanted

    @invariant()
    def joined_numbers_have_one_owner(self):
        answers = self.live.history[-1].assignments
        if self.live.strategy.name == "stream-join-sticky" and answers:
            topics = answers[-1].group.topics
            joined = set(self.live.strategy.options.get("joins", "+".join(topics)).split("+")) & {*topics}
            assert not joined or not any(co_partitioned(answers[-1], [joined]).values())

    @invariant()
    def exact_strategies_are_optimal_and_change_only_what_was_withheld(self):
        answers = self.live.history[-1].assignments
        if self.live.strategy.name in EXACT and answers:
            for answer in answers:
                check(answer.group, answer, answer.certificate)
            assert all(np.array_equal(answer.target, answers[0].target) for answer in answers)
            assert not answers[-1].withheld.any()


@pytest.mark.parametrize(
    "name", [*EXACT, *(f"{one}:prefer=spread+kept" for one in EXACT), "cooperative-sticky:prefer=kept+spread",
             "range", "roundrobin", "stream-join-sticky", "stream-join-sticky:joins=t0+t1",
             "lag", "lag:scope=group,max_skew=2", "lag:min_gain=1"])
def test_life(name):
    run_state_machine_as_test(type("Life", (Life,), {"name": name}), settings=settings(stateful_step_count=25))


def pure_step(state, event):
    """A step, and the same step of copies: it changes neither state nor event, and leads to the same state again."""
    copies = pickle.loads(pickle.dumps((state, event)))
    try:
        found = step(state, event)
    finally:
        assert (state, event) == copies
    assert step(*copies) == found and pickle.loads(pickle.dumps(found)) == found
    return found


@pytest.mark.parametrize("name", ["stream-join-sticky", "cooperative-sticky"])
def test_a_step_is_pure(name):
    with mock.patch("kafka_assign.life.live.step", pure_step):
        run_state_machine_as_test(type("Life", (Life,), {"name": name}), settings=settings(max_examples=8))


@pytest.mark.parametrize("name", [name for name in strategies() if resolve(name).protocol != "broker"])
def test_the_state_of_every_strategy_is_plain_data(name):
    live = LiveGroup(name, {"t": 3}, {"C0": ["t"]})
    state = live.state
    after, rebalance = pure_step(state, Event("join", (Member("C1", ["t"]),)))
    assert live.state is state and live.join("C1", ["t"]) == rebalance and live.state == after != state


def test_a_cooperative_strategy_that_withholds_nothing_shares_partitions():
    hasty = Strategy("hasty", lambda group: assign(group, "sticky").owner, protocol="cooperative", claims="cooperative")
    live = LiveGroup(hasty, {"t": 4}, {"C0": ["t"]})
    assert len(live.join("C1", ["t"]).shared) == 2
    assert live.leave("C0").shared == ()


def test_a_cooperative_strategy_that_never_settles_is_stopped():
    def restless(group):
        return np.full(len(group.previous), (group.previous.max(initial=0) + 1) % len(group.members))

    live = LiveGroup(Strategy("restless", restless, protocol="cooperative"), {"t": 1}, {"C0": ["t"], "C1": ["t"]})
    with pytest.raises(StrategyError, match="'restless' must settle within 10 rounds"):
        live.change_leader()


class Fragile:
    """A group whose strategy raises in a given round of the next rebalance."""

    def __init__(self, protocol):
        exact = "sticky" if protocol == "eager" else "cooperative-sticky"
        self.rounds_left = np.inf

        def fragile(group):
            self.rounds_left -= 1
            if self.rounds_left < 0:
                raise RuntimeError("out of order")
            answer = assign(group, exact)
            return answer.owner, answer.target

        own = Strategy("fragile", fragile, protocol=protocol, claims="sticky" if protocol == "eager" else "cooperative")
        self.live = LiveGroup(own, {"t": 4, "u": 3}, {name: ["t", "u"] for name in "ABCEF"})

    def everything(self):
        """All that the group knows."""
        return self.live.state, *map(id, self.live.history)

    def fails(self, event, *arguments, rounds=0):
        before, self.rounds_left = self.everything(), rounds
        with pytest.raises(StrategyError, match="out of order"):
            getattr(self.live, event)(*arguments)
        assert self.everything() == before
        self.rounds_left = np.inf


# --- the strategies that members list ------------------------------------------------------------------------------

LISTS = [["range"], ["cooperative-sticky", "range"], ["range", "cooperative-sticky"], ["cooperative-sticky"],
         ["sticky", "range"]]


def restarted(live, member, strategies):
    return live.leave(member), live.join(member, ["t"], strategies=strategies)


def test_a_change_of_assignor_needs_one_in_common_at_every_moment():
    live = LiveGroup("range", {"t": 6}, dict.fromkeys("abc", ["t"]))
    live.leave("a")
    before = live.state
    with pytest.raises(GroupError, match="all members list .got cooperative-sticky; Kafka raises"):
        live.join("a", ["t"], strategies=["cooperative-sticky"])
    assert live.state == before and live.members == ("b", "c")
    live.join("a", ["t"], strategies=["cooperative-sticky", "range"])
    for member in "bc":
        assert live.strategy.label == "range"
        restarted(live, member, ["cooperative-sticky", "range"])
    assert live.strategy.label == "cooperative-sticky"


def test_members_with_an_eager_strategy_in_their_list_stop_everything():
    """Kafka's default list since 3.0 runs range, eagerly; without range, what stays is consumed all the time."""
    live = LiveGroup("range", {"t": 6}, {})
    live.join(dict.fromkeys("abc", ["t"]), strategies=["range", "cooperative-sticky"])
    assert live.strategy.label == "range" and live.leave("a").stopped == 6
    live.join("a", ["t"], strategies=["cooperative-sticky"])
    assert live.strategy.label == "cooperative-sticky" and live.leave("b").stopped == 4       # c lists range still
    live.join("b", ["t"], strategies=["cooperative-sticky"])
    restarted(live, "c", ["cooperative-sticky"])
    assert live.leave("a").stopped == 2


def test_the_majority_elects():
    live = LiveGroup("range", {"t": 6}, {})
    live.join("a", ["t"], strategies=["range", "sticky"])
    live.join("b", ["t"], strategies=["sticky", "range"])
    assert live.strategy.label == "sticky"                      # one vote each: the first in the order of a HashMap
    live.join("c", ["t"], strategies=["range", "sticky"])
    assert live.strategy.label == "range"
    live.leave("a")
    live.leave("c")
    assert live.strategy.label == "sticky"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(LISTS)), max_size=12))
def test_members_with_any_lists_never_share_a_partition(restarts):
    """A member either joins and has its part of the partitions, or is refused and the others have them all."""
    live = LiveGroup("range", {"t": 7}, dict.fromkeys("abcd", ["t"]))
    listed = dict.fromkeys("abcd", {"range"})
    for member, strategies in restarts:
        done = []
        if member in live.members:
            done.append(live.leave(member))
        listed.pop(member, None)
        common = set.intersection(set(strategies), *listed.values())
        if common:
            done.append(live.join(member, ["t"], strategies=strategies))
            listed[member] = set(strategies)
            assert live.strategy.label in common
        else:
            with pytest.raises(GroupError, match="must list a strategy that all members list"):
                live.join(member, ["t"], strategies=strategies)
        assert not any(rebalance.shared for rebalance in done) and set(live.members) == set(listed)
        if listed:
            assert sorted(one for name in live for one in live[name]) == [("t", n) for n in range(7)]


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
@pytest.mark.parametrize("event", [
    ("join", "D", ["t"]), ("leave", "A"), ("crash", "A"), ("rejoin", "B"), ("thaw", "E", "C"),
    ("resubscribe", "A", ["u"]), ("add_partitions", "t", 2), ("add_partitions", "new"), ("delete_topic", "t"),
    ("change_leader",), ("change_leader", "A"), ("reset_generation",)], ids=lambda event: "-".join(map(str, event)))
def test_an_event_whose_rebalance_fails_has_not_happened(event, protocol):
    made = Fragile(protocol)
    made.live.crash("B")
    made.live.freeze("E")
    made.live.change_leader()
    made.live.freeze("C")
    for _ in range(2):
        made.fails(*event)
    assert getattr(made.live, event[0])(*event[1:]).rounds


def test_an_event_that_fails_in_its_second_round_has_not_happened():
    made = Fragile("cooperative")
    made.fails("join", "D", ["t"], rounds=1)
    assert made.live.join("D", ["t"]).rounds == 2


def test_members_are_named_once_in_an_event():
    live = LiveGroup("sticky", {"t": 2}, {"C0": ["t"], "C1": ["t"]})
    assert live.leave("C1", "C1").event == "C1 leaves" and live.members == ("C0",)
    with pytest.raises(GroupError, match="member ids must differ .got C2 twice"):
        live.join([Member("C2", ["t"]), Member("C2", [])])
    with pytest.raises(GroupError, match="a member that joins must be named .got none"):
        live.join({})
    assert live.members == ("C0",) and len(live.history) == 2


def test_the_history_is_bounded():
    live = LiveGroup("range", {"t": 1}, {})
    for _ in range(120):
        live.change_leader()
    assert [one.generation for one in live.history] == list(range(22, 122))
    none = LiveGroup("range", {"t": 1}, {"C0": ["t"]}, keep=0)
    assert none.leave("C0").event == "C0 leaves" and none.history == ()
    with pytest.raises(GroupError, match="the number of rebalances to keep must be a whole number .* .got -1"):
        LiveGroup("range", {"t": 1}, {}, keep=-1)


def test_the_history_cannot_be_changed():
    live = LiveGroup("sticky", {"t": 2}, {"C0": ["t"]})
    before = live.history
    live.join("C1", ["t"])
    assert isinstance(before, tuple) and live.history[:1] == before and len(live.history) == 2
    with pytest.raises(AttributeError):
        live.history = []


def test_an_instance_id_belongs_to_one_member():
    """Kafka fences a member as soon as another one joins with its instance id."""
    def static(name, instance_id):
        return Member(name, ["t"], instance_id=instance_id)
    live = LiveGroup("cooperative-sticky", {"t": 4}, [static("A", "i"), static("B", "j"), Member("C", ["t"])])
    live.freeze("B")
    before = live.group, live.history, live["A"]
    for joining, found in (([static("D", "i")], "'D' with that of 'A'"), ([static("D", "j")], "'D' with that of 'B'"),
                           ([static("D", "k"), static("E", "k")], "'E' with that of 'D'")):
        with pytest.raises(GroupError, match=f"must have an instance id of its own .got {found}"):
            live.join(joining)
    assert (live.group, live.history, live["A"]) == before
    live.crash("A", "C")
    live.join([static("D", "i"), Member("E", ["t"])])
    with pytest.raises(GroupError, match="must have been evicted .got 'A'"):
        live.rejoin("A")
    with pytest.raises(GroupError, match="must be frozen .got 'A'"):
        live.thaw("A")
    live.rejoin("C")
    assert live.members == ("D", "E", "C")
    live.thaw("B")
    assert live.members == ("D", "E", "C", "B")


def test_a_topic_that_gets_partitions_is_named():
    live = LiveGroup("sticky", {"t": 2}, {"C0": ["t"]})
    with pytest.raises(GroupError, match=r"a topic that gets partitions must be text .got \['x'\]"):
        live.add_partitions(["x"])
    assert live.topics == {"t": 2} and len(live.history) == 1


def test_a_rebalance_of_many_members_shows_the_first_of_them():
    live = LiveGroup("sticky", {"t": 30}, {f"web_{i:02}": ["t"] for i in range(12)})
    head, *rows, last = repr(live.history[0]).splitlines()[1:]
    assert head.split() == ["member", "before", "round", "1", "after"] and last.strip() == "and 2 more members"
    assert [row.split() for row in rows] == [[f"web_{i:02}", "-", "0", "3" if i < 6 else "2"] for i in range(10)]


def test_a_strategy_of_the_broker_has_no_live_group():
    served = Strategy("served", lambda group: group.previous, protocol="broker")
    for start in (LiveGroup, lead):
        with pytest.raises(StrategyError, match="strategy of its members .got 'served', which the broker runs"):
            start(served, {}, {})


def test_stopped_counts_every_partition_in_every_round_without_a_consumer():
    live = LiveGroup("cooperative-sticky", {"t": 4, "u": 3}, {"C0": ["t"]})
    assert live.history[0].stopped == 4                  # nobody subscribes to u
    assert live.join("C1", ["t"]).stopped == 2           # one round without the two that move
    assert live.add_partitions("t", 2).stopped == 2
    eager = LiveGroup("sticky", {"t": 4, "u": 3}, {"C0": ["t"]})
    assert eager.join("C1", ["t"]).stopped == 4


def test_an_evicted_member_is_fenced_and_its_partitions_go_to_others():
    live = LiveGroup("cooperative-sticky", {"t": 2}, {"C0": ["t"], "C1": ["t"]})
    held = live["C1"]
    assert live.freeze("C1").rounds == 0 and live["C1"] == held
    joined = live.join("C2", ["t"])
    assert (joined.rounds, live["C2"], joined.revoked) == (1, held, ())
    back = live.thaw("C1")                               # it still claims what C2 consumes
    assert (back.shared, back.moved, live["C2"]) == ((), (), held)


def test_a_claim_from_a_later_generation_takes_nothing():
    """The coordinator counts generations: a claim from one that it has not reached is forged, or of another group."""
    live = LiveGroup("cooperative-sticky", {"t": 2}, [Member("C0", ["t"], owned=[("t", 0)], generation=5)])
    assert live.generation == 6
    joined = live.join([Member("C1", ["t"], owned=[("t", 0)], generation=2**31 - 1)])
    first = joined.assignments[0]
    assert first.group.details[1].generation == -1 and first.withheld[0]
    assert [claim for claim, _ in first.group.dropped] == [("C1", "t", 0)] and not joined.shared


def test_state_that_does_not_survive():
    static = [Member(name, ["t"], instance_id=name) for name in ("C0", "C1")]
    for name in EXACT:
        live = LiveGroup(name, {"t": 4}, static)
        assert live.restart("C0").survived == tuple(live["C1"])
        assert live.reset_generation().survived == () and live.generation == 1
        assert len(live.change_leader().survived) == 4
        assert live.delete_topic("t").survived == ()


@pytest.fixture
def hasty_threads():
    """Threads take turns as often as the interpreter lets them."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_threads_share_a_group(hasty_threads):
    """Each of eight threads lets its own members join and leave: no event is lost, and none happens by halves."""
    threads, turns = 8, 10
    live, start, errors = LiveGroup("sticky", {"t": 12}, {"first": ["t"]}, keep=1000), Barrier(threads), []

    def work(number):
        try:
            start.wait()
            for turn in range(turns):
                live.join({f"{number}-{turn}": ["t"], f"{number}-extra": ["t"]})
                live.crash(f"{number}-extra")
                assert len(live.history) > 2 * turn and f"{number}-{turn}" in live and live.group
                if turn:
                    live.leave(f"{number}-{turn - 1}")
        except BaseException as error:
            errors.append(repr(error))

    running = [Thread(target=work, args=[number]) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert errors == []
    assert set(live) == {"first", *(f"{number}-{turns - 1}" for number in range(threads))}
    assert [one.generation for one in live.history] == [*range(1, 1 + threads * (3 * turns - 1) + 1)]
    assert all(one.phases[-1].consuming == other.phases[0].consuming for one, other in pairwise(live.history))
    assert sum(len(live[name]) for name in live) == 12


# --- what a leader makes of bytes --------------------------------------------------------------------------------

@st.composite
def hostile_subscriptions(draw):
    """Topics that can be read, and behind them any bytes, or those of a claim of which some are changed or missing."""
    topics, pairs = draw(subscriptions), st.tuples(st.sampled_from(TOPICS), st.integers(-2, 5))
    head = encode_subscription(Subscription(topics), version=0)[2:-4]
    claims = Claims(draw(st.lists(pairs, max_size=4)), draw(st.integers(-2, 3)))
    user_data = draw(st.sampled_from([encode_sticky(claims), encode_stream_join([0, 2, 9], 7), b"", None]))
    valid = encode_subscription(Subscription(topics, user_data, *claims))[2 + len(head):]
    tail = bytearray(draw(st.binary(max_size=60) | st.just(valid)))
    for place in draw(st.lists(st.integers(0, 60), max_size=2)):
        tail[place:place + 1] = draw(st.binary(max_size=1))
    return topics, draw(st.integers(0, 5)).to_bytes(2, "big") + head + bytes(tail)


@pytest.mark.parametrize("name", ["range", "lag", "stream-join-sticky", *EXACT])
@settings(max_examples=60)
@given(sent=st.lists(hostile_subscriptions(), max_size=4), counts=st.dictionaries(
    st.sampled_from(TOPICS), st.integers(0, 4)))
def test_no_bytes_of_a_member_keep_the_leader_from_answering_all(name, sent, counts):
    members = {f"C{i}": (None, data) for i, (_, data) in enumerate(sent)}
    answers = lead(name, members, counts)
    assert answers.keys() == members.keys()
    owned = {member: list(decode_assignment(data).assigned) for member, data in answers.items()}
    pairs = [pair for own in owned.values() for pair in own]
    assert len(pairs) == len(set(pairs))
    assert all(topic in topics and number < counts[topic]
               for (topics, _), own in zip(sent, owned.values()) for topic, number in own)


def test_a_leader_knows_racks_lag_and_instance_ids():
    topics, lag = {"t": 3}, {"t": [5, 70, 600]}
    racks = {"t": [["b"], ["a"], ["a"]]}
    known = [Member("C0", ["t"], rack="a", instance_id="z"), Member("C1", ["t"], rack="b", instance_id="y")]
    sent = {one.id: (one.instance_id, encode_subscription(Subscription(one.topics, rack=one.rack))) for one in known}
    for name in ("range", "sticky", "lag"):
        group = Group(topics, known, lag=lag, partition_racks=racks)
        answers = lead(name, sent, topics, partition_racks=racks, lag=lag)
        assert {one: list(decode_assignment(data).assigned) for one, data in answers.items()} == assign(group, name)
        assert assign(group, name) != assign(Group(topics, {"C0": ["t"], "C1": ["t"]}), name)
