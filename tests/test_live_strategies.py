"""Every strategy in live groups of kafka-python, on a real broker, while their members come and go.

The assignors are tested without a broker, too. Here it shows what only real clients do to them: a member forgets its
claims or its generation, a leader does not know a topic, a lag is not the broker's, a join is lost, a partition has two
consumers, a record has none.
"""
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from threading import Event

import pytest
from live_members import SECONDS, live_group, until
from oracles import best

from kafka_assign import Group, lead
from kafka_assign.clients import assignor
from kafka_assign.assignors.registry import BUILT_IN, resolve
from kafka_assign.protocol.wire import decode_assignment, decode_subscription

pytestmark = pytest.mark.needs("broker")

STORIES = ["sticky", "cooperative-sticky", "stream-join-sticky", "lag"]
OTHERS = sorted(name for name in BUILT_IN if resolve(name).protocol != "broker" and name not in STORIES)


# --- rules beside `lead`: what members owned `before` is what they had at rest, and not what they claim ---

def flattest_and_kept(topics, members, owned, before):
    """Loads are as flat as can be, and then no partition moves that could stay: dynamic programming."""
    remembered = {name: before.get(name, ()) for name in members}
    kept = sum(len(own & before.get(name, frozenset())) for name, own in owned.items())
    assert (sorted(map(len, owned.values())), kept) == best(Group(topics, members, owned=remembered).columns)


def numbers_together(topics, members, owned, before):
    """Each number is on one member for all topics; their counts are even, and then only those move that must."""
    def numbers(given):
        for own in given.values():
            assert own == {(topic, number) for topic in topics for _, number in own}
        return {name: frozenset(("number", number) for _, number in own) for name, own in given.items()}
    [most] = {*topics.values()}
    kept = {name: frozenset((topic, number) for topic, number in own) for name, own in before.items()}
    flattest_and_kept({"number": most}, dict.fromkeys(members, ["number"]), numbers(owned), numbers(kept))


def largest_lag_first(topics, members, owned, lag):
    """KAFKA-5337: per topic, the largest lag first, to the member with the fewest partitions, then the least lag."""
    expected = {member: set() for member in members}
    for topic, count in topics.items():
        load = {member: (0, 0, member) for member, wanted in members.items() if topic in wanted}
        for number in sorted(range(count), key=lambda number: -lag[topic, number]):
            partitions, total, member = min(load.values())
            load[member] = partitions + 1, total + lag[topic, number], member
            expected[member].add((topic, number))
    assert owned == expected


# --- what a group at rest must be ---

def led(group, strategy, **known):
    """The group at rest: its assignment is what `lead` makes of what the members sent when they joined."""
    state = group.settled()
    for answers in (state.answers, lead(strategy, state.joined, state.topics, **known)):
        assert {state.names[member]: frozenset(decode_assignment(data).assigned)
                for member, data in answers.items()} == state.owned, strategy
    return state


def subscriptions(state):
    """The topics that each member subscribes to, by name."""
    return {state.names[member]: decode_subscription(data).topics for member, (_, data) in state.joined.items()}


def lags(group, ends):
    """The lag of each partition by what the group has committed; `ends` are those of partitions with records."""
    [committed] = group.admin.list_group_offsets(group.name).values()
    committed = {tuple(place): found.offset for place, found in committed.items()}
    places = [(row["name"], number) for row in group.admin.describe_topics(sorted(group.topics))
              for number in range(len(row["partitions"]))]
    return {place: ends.get(place, 0) - committed.get(place, 0) for place in places}


def rest(group, strategy, before=None, ends=()):
    """The group at rest, once it is sure that it is right by `lead` and by the strategy's own rule."""
    if strategy == "lag":
        lag = lags(group, ends)
        state = led(group, strategy, lag=lag)
        ids = {name: member for member, name in state.names.items()}
        largest_lag_first(state.topics, {ids[name]: wanted for name, wanted in subscriptions(state).items()},
                          {ids[name]: owned for name, owned in state.owned.items()}, lag)
    else:
        state = led(group, strategy)
        rule = numbers_together if strategy == "stream-join-sticky" else flattest_and_kept
        rule(state.topics, subscriptions(state), state.owned, before.owned if before else {})
    return state


def produce(broker, ends):
    """Send so many records to each partition, and wait until the broker has them."""
    from kafka import KafkaProducer
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
        for future in [producer.send(topic, b"", partition=number) for (topic, number), end in ends.items()
                       for _ in range(end)]:
            future.get(SECONDS)


def test_groups_survive_whatever_happens_to_their_members(broker):
    """Join, restart of a static member, a rebalance without a reason, leave, crash, loss of the leader, topic growth.

    At rest each group has what `lead` makes of the bytes that its members sent. That finds what is wrong with the
    leader: topics or lags that it does not know, an answer that is lost or changed. What is wrong with the bytes, such
    as claims that are forgotten, shows in the second rule, which knows what each member owned before.
    """
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata
    topics = {strategy: {f"{strategy}-x": 5, f"{strategy}-y": 5} for strategy in STORIES} | {
        "lag": {"lag-x": 9, "lag-y": 6}}
    ends = {(topic, number): 30 * (number * 5 % 7) + number for topic, count in topics["lag"].items()
            for number in range(count)}
    settings = {"bootstrap_servers": broker.bootstrap, "group_id": "s-lag", "auto_offset_reset": "earliest"}
    options = dict.fromkeys(STORIES, {}) | {"lag": {"offsets_from": settings, "offsets_timeout": SECONDS}}
    static = {"group_instance_id": "s", "session_timeout_ms": 20_000}
    with ExitStack() as stack:
        groups = {strategy: stack.enter_context(live_group(
            broker, f"s-{strategy}", topics[strategy], [partial(assignor, strategy, **options[strategy])]))
            for strategy in STORIES}
        states = dict.fromkeys(STORIES)

        def after(change):
            for strategy, group in groups.items():
                change(group, states[strategy])
            for strategy, group in groups.items():
                try:
                    states[strategy] = rest(group, strategy, states[strategy], ends)
                except AssertionError as error:
                    error.add_note(f"{strategy}: {[(name, one.events[-20:]) for name, one in group.members.items()]}")
                    raise

        def form(group, _):
            match sorted(group.topics):
                case ["lag-x", _]:          # members commit only if they are told to: the lags stand still
                    group.join(*"abcdefg", enable_auto_commit=False)
                case ["stream-join-sticky-x", _]:
                    group.join(*"abcde")
                case [x, y]:
                    group.join(*"abc")
                    group.join("d", topics=[x])
                    group.join("e", topics=[y])

        def follower(group, state):
            return min(group.members.keys() - {state.leader, "s"})

        produce(broker, ends)
        groups["lag"].admin.alter_group_offsets("s-lag", {
            TopicPartition(*place): OffsetAndMetadata(end // 3, "", -1) for place, end in ends.items()
            if place[1] % 4 != 2})
        after(form)
        one_topic = {"topics": ["cooperative-sticky-y"]}        # so that a new leader does not know the other one
        after(lambda group, _: group.join("s", enable_auto_commit=group is not groups["lag"], **(
            static if group is groups["sticky"] else one_topic if group is groups["cooperative-sticky"] else {})))
        assert [instance for instance, _ in states["sticky"].joined.values() if instance] == ["s"]
        groups["sticky"].kill("s")
        groups["sticky"].join("s", **static)
        assert groups["sticky"].settled().owned == states["sticky"].owned

        def rebalance(group, state):
            group[state.leader].call("_coordinator.request_rejoin")
            until(lambda: group.settled().generation > state.generation)
        settled = dict(states)
        after(rebalance)
        assert all(states[strategy].owned == settled[strategy].owned for strategy in STORIES)

        groups["lag"]["s"].call("commit")
        after(lambda group, state: group.leave(follower(group, state)))
        after(lambda group, state: group.kill(follower(group, state)))
        after(lambda group, state: group.kill(state.leader))
        after(lambda group, state: group.admin.create_partitions(
            {topic: count + 2 for topic, count in state.topics.items()}))
        assert not [text for group in groups.values() for member in group.members.values()
                    for level, text in member.of("logged") if level != "INFO"]


def test_every_other_strategy_forms_a_group(broker):
    """Two members, then three, then one leaves: an answer that a client cannot use, or that is not that of `lead`."""
    with ExitStack() as stack:
        groups = {strategy: stack.enter_context(live_group(
            broker, f"o-{strategy}", {f"{strategy}-v": 4, f"{strategy}-w": 3}, [partial(assignor, strategy)]))
            for strategy in OTHERS}
        for change in (lambda group: group.join("a", "b"), lambda group: group.join("c"),
                       lambda group: group.leave("a")):
            for group in groups.values():
                change(group)
            for strategy, group in groups.items():
                led(group, strategy)


# --- records ---

@contextmanager
def records(broker, topic, least):
    """Send keyed records during the block, at least so many: (partition, offset) -> key, complete after the block."""
    from kafka import KafkaProducer
    done, sent = Event(), {}

    def send():
        futures = []
        with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
            while len(futures) < least or not done.is_set():
                futures += [producer.send(topic, key=b"%d" % number)
                            for number in range(len(futures), len(futures) + 20)]
                done.wait(0.02)         # about as many as in the changes of a group
            for number, future in enumerate(futures):
                record = future.get(SECONDS)
                sent[record.partition, record.offset] = b"%d" % number
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send)
        try:
            yield sent
        finally:
            done.set()
        sending.result()


def delivered(members):
    """Who got which record: (partition, offset) -> list of (member, generation, key)."""
    found = {}
    for member in members:
        for batch in member.of("records"):
            for offset, key in zip(batch.offsets, batch.keys):
                found.setdefault((batch.partition, offset), []).append((member.name, batch.generation, key))
    return found


def most_kept(member):
    """In how many generations a cooperative member kept a partition at most; it is sure that it kept them undisturbed.

    Callbacks are about partitions that come or go, and while a member has a partition, it gets every offset once.
    """
    held, following, kept = frozenset(), {}, Counter()
    for kind, value in member.events:
        if kind == "assigned":
            assert not value & held
            held |= value
            following, kept = ({key: old[key] for key in old.keys() - value} for old in (following, kept))
        elif kind in ("revoked", "lost"):
            assert value <= held
            held -= value
        elif kind == "membership":
            assert value.partitions == held
            kept = Counter(kept) + Counter(held)
        elif kind == "records":
            place = value.topic, value.partition
            first = following.get(place, value.offsets[0])
            assert place in held and value.offsets == [*range(first, first + len(value.offsets))]
            following[place] = first + len(value.offsets)
    return max(kept.values(), default=0)


def test_no_record_is_skipped_or_delivered_twice(broker):
    """Ten changes of the members, records all the time: only what a killed member had not committed comes again.

    Two members that own a partition in a generation, a cooperative leader that hands out what another member still
    consumes, offsets that are committed too early or too late, and kept partitions that are revoked or read again.
    """
    with ExitStack() as stack:
        groups = [stack.enter_context(live_group(broker, f"r-{strategy}", topics, [partial(assignor, strategy)]))
                  for strategy, topics in (("sticky", {"r-records": 12}), ("cooperative-sticky", {}))]
        states, killed = {}, {group: set() for group in groups}

        def change(do):
            for group in groups:
                do(group)
            for group in groups:
                states[group] = group.settled()

        def followers(group):
            return sorted(group.members.keys() - {states[group].leader})

        def kill(group, *names):
            killed[group].update(*(states[group].owned[name] for name in names))
            group.kill(*names)
        change(lambda group: group.join("a", "b", "c", topics=["r-records"]))
        with records(broker, "r-records", 10_000) as sent:
            change(lambda group: group.join("d", topics=["r-records"]))
            change(lambda group: group.leave(followers(group)[0]))
            change(lambda group: group.join("e", "f", topics=["r-records"]))
            change(lambda group: kill(group, *followers(group)[-2:]))
            change(lambda group: group.join("g", topics=["r-records"]))
            change(lambda group: kill(group, states[group].leader))
            change(lambda group: group.join("h", topics=["r-records"]))
            change(lambda group: group.leave(followers(group)[0]))
        for group in groups:
            everybody = [*group.gone, *group.members.values()]
            until(lambda: delivered(everybody).keys() >= sent.keys())
            found = delivered(everybody)
            assert {place: {key for *_, key in got} for place, got in found.items()} == {
                place: {key} for place, key in sent.items()}
            for (number, _), got in found.items():
                assert len(got) == 1 or ("r-records", number) in killed[group]
                assert len({generation for _, generation, _ in got} - {-1}) == len(got)
            memberships = [(member.name, mine.generation, mine.partitions) for member in everybody
                           for mine in {mine.generation: mine for mine in member.of("membership")}.values()]
            owners = [((generation, place), name) for name, generation, own in memberships for place in own]
            assert len(owners) == len(dict(owners))
        owner, present = dict(owners), {(name, generation) for name, generation, _ in memberships}
        for (generation, place), name in owners:        # of the cooperative group
            after = owner.get((generation + 1, place), name)
            assert after == name or (name, generation + 1) not in present, "it must be withheld for a generation"
        assert max(most_kept(member) for member in everybody) > 5
