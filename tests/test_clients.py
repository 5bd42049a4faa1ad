"""Assignors inside the real coordinators of kafka-python and aiokafka, but for the network (`clients.py`)."""
import asyncio
import json
import logging
import random
import sys
import threading
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import pytest
from broken import BROKEN
from clients import AioConsumer, Consumer, Group, Joined, aio_round, metadata, run_aio
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import AsyncConsumerRebalanceListener as AsyncKafkaListener
from kafka import ConsumerRebalanceListener as KafkaListener
from kafka import KafkaAdminClient, TopicPartition
from kafka.cluster import ClusterMetadata
from kafka.coordinator.base import Generation
from kafka.future import Future as KafkaFuture
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

import kafka_assign
from kafka_assign import Member, StrategyError, assign
from kafka_assign.clients import StickyRebalanceListener, assignor, read_offsets, read_subscription
from kafka_assign.clients.aio import assignor as aio_assignor
from kafka_assign.assignors.base import Strategy
from kafka_assign.assignors.registry import BUILT_IN, resolve
from kafka_assign.protocol.wire import (
    Claims, Subscription, WireError, decode_assignment, decode_sticky, decode_stream_join,
    decode_subscription, encode_cooperative, encode_sticky, encode_stream_join,
    encode_subscription)

OF_MEMBERS = [name for name in BUILT_IN if resolve(name).protocol != "broker"]
COOPERATIVE = ["cooperative-sticky", "kafka-cooperative-sticky"]
STICKY = ["sticky", "sticky-yet-fair", "kip54", "kafka-sticky", "stream-join-sticky", *COOPERATIVE]
COUNTS = {"t": 5, "u": 2, "v": 3}
JOINED = {"t": 4, "u": 4, "v": 4}  # topics that are joined have the same numbers of partitions
NOWHERE = {"bootstrap_servers": "127.0.0.1:1", "group_id": "g"}
REFERENCE = Path(__file__).parent / "reference"


@pytest.fixture(autouse=True)
def quiet():
    """Only our own lines are looked at."""
    loggers = [logging.getLogger(name) for name in ("kafka", "aiokafka")]
    for logger in loggers:
        logger.setLevel("CRITICAL")
    yield
    for logger in loggers:
        logger.setLevel("NOTSET")


def made(name, **options):
    """An assignor of kafka-python by name; one that needs lag has settings to read it with."""
    return assignor(name, **{"offsets_from": NOWHERE} if resolve(name).needs_lag else {}, **options)


def cluster_of(counts, **more):
    cluster = ClusterMetadata()
    cluster.update_metadata(metadata(counts, **more))
    return cluster


def answers(leader, counts, sent, **more):
    """What a leader answers to encoded subscriptions, by member id: pairs (topic, partition)."""
    joins = [Joined(member_id=name, group_instance_id=None, metadata=ConsumerProtocolSubscription.decode(data))
             for name, data in sent.items()]
    found = leader.assign(cluster_of(counts, **more), joins)
    assert list(found) == list(sent)
    return {name: list(decode_assignment(data).assigned) for name, data in found.items()}


def named(strategy, members="ABC", topics=("t", "u", "v")):
    group = Group(JOINED if strategy == "stream-join-sticky" else COUNTS)
    group.consumers = {name: Consumer(made(strategy), topics) for name in members}
    return group


def everything(counts):
    return [(topic, number) for topic, count in sorted(counts.items()) for number in range(count)]


def handed_out(settled):
    return sorted(pair for own in settled.values() for pair in own)


# --- what each strategy is on the wire --------------------------------------------------------------------------

def test_names_and_protocols():
    own = {"kafka-sticky": "sticky", "kafka-cooperative-sticky": "cooperative-sticky"}
    for name in OF_MEMBERS:
        one = made(name)
        assert one.name == own.get(name, name)
        assert [each.name for each in one.supported_protocols()] == ["COOPERATIVE" if name in COOPERATIVE else "EAGER"]
    assert assignor("org.apache.kafka.clients.consumer.StickyAssignor").name == "sticky"
    assert made("lag:scope=group").name == "lag"


@pytest.mark.parametrize("name", OF_MEMBERS)
def test_bytes_of_a_member(name):
    """The table of the page: who sends claims where, always with the generation beside them, and the rack."""
    one = made(name, rack="r")
    given = ConsumerProtocolAssignment(0, [("t", [4, 1])], b"\0\0\0\x09" if name == "stream-join-sticky" else None)
    one.on_assignment(given, 7)
    sent = decode_subscription(one.metadata({"t"}).encode())
    owned = [("t", 1), ("t", 4)]
    assert (sent.topics, sent.generation, sent.rack, sent.version) == (("t",), 7, "r", 3)
    assert sent.owned == (owned if name in COOPERATIVE else [])
    expected = {"stream-join-sticky": encode_stream_join([1, 4], 9)}
    expected |= dict.fromkeys(COOPERATIVE, encode_cooperative(7))
    expected |= dict.fromkeys(["sticky", "sticky-yet-fair", "kip54", "kafka-sticky"], encode_sticky(Claims(owned, 7)))
    assert sent.user_data == expected.get(name)


def test_every_subscription_of_java_is_read():
    """kafka-python's decoder and `read_subscription` see what our decoder sees, in bytes that Kafka's classes wrote."""
    read = 0
    for line in (REFERENCE / "wire.jsonl").read_text(encoding="utf-8").splitlines():
        vector = json.loads(line)
        if vector["kind"] == "subscription":
            data = bytes.fromhex(vector["hex"])
            ours, theirs = decode_subscription(data), read_subscription(ConsumerProtocolSubscription.decode(data))
            assert theirs._replace(rack=theirs.rack or None, version=None) == ours._replace(version=None)
            read += 1
    assert read > 100


# --- a group's life ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", OF_MEMBERS)
def test_form_join_leave_and_settle(name, monkeypatch):
    """Each settled state is what `assign` gives, and another rebalance with another leader changes nothing."""
    monkeypatch.setattr("kafka_assign.clients.read_offsets", lambda *given: {})
    group = named(name, members="B")
    for change in ("B", "AB", "ABC", "BC", "C"):
        old = group.consumers
        group.consumers = {one: old.get(one) or Consumer(made(name), ["t", "u", "v"]) for one in change}
        settled = group.settle()
        assert handed_out(settled) == everything(JOINED if name == "stream-join-sticky" else COUNTS)
    group.consumers = {one: Consumer(made(name), ["t", "u", "v"]) for one in "ABC"}
    settled = group.settle()
    group.consumers = dict(reversed(group.consumers.items()))
    assert group.settle() == settled


@pytest.mark.parametrize("name", STICKY)
def test_what_a_settled_group_is(name):
    """The answer is the one of `assign` for the members as they joined, and a member that leaves moves nothing."""
    group = named(name)
    before = group.settle()
    joined = [Member(one, ["t", "u", "v"], owned=sorted(before[one]), generation=group.generation) for one in "AB"]
    del group.consumers["C"]
    after = group.settle()
    if name != "stream-join-sticky":  # whose claims are partition numbers
        expected = assign(kafka_assign.Group(COUNTS, joined), name)
        assert {one: set(own) for one, own in expected.items()} == after
        assert all(before[one] <= after[one] for one in "AB")


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky", "range", "roundrobin", "fair", "stream-join-sticky"])
def test_the_order_of_members_does_not_matter(name):
    group = named(name)
    group.round()
    sent = {one: consumer.coordinator.group_protocols()[0][1].encode() for one, consumer in group.consumers.items()}
    sent["D"] = assignor(name).metadata({"t", "v"}).encode()
    found = [answers(assignor(name), COUNTS, dict(order)) for order in permutations(sent.items())]
    assert all(one == found[0] for one in found)


@st.composite
def stories(draw):
    """Members that come, go, lose their membership or change their topics; every consumer is new or one of before."""
    event = st.tuples(st.sampled_from(["join", "leave", "lose", "return", "topics", "grow"]), st.integers(0, 5))
    return draw(st.lists(event, min_size=1, max_size=8))


def careless(group):
    """Turns all partitions over to other members at every rebalance, and withholds nothing."""
    return resolve("roundrobin").run(group).owner[::-1] if len(group.members) == 1 else [
        int(group.subscribers(group.topics[topic])[(number + group.generation) % len(
            group.subscribers(group.topics[topic]))]) if len(group.subscribers(group.topics[topic])) else -1
        for topic, number in zip(group.columns.topic_of.tolist(), group.columns.number.tolist())]


def raises(group):
    raise LookupError("no table")


WRONG = Strategy("careless", careless, protocol="cooperative", claims="cooperative")
FAILS = Strategy("fails", raises, protocol="cooperative", claims="cooperative")


@pytest.mark.parametrize("strategy", [*COOPERATIVE, WRONG, FAILS], ids=[*COOPERATIVE, "careless", "fails"])
@settings(max_examples=40)
@given(events=stories())
def test_no_partition_of_a_cooperative_group_has_two_consumers(strategy, events):
    """kafka-python's coordinator says what each member holds; `settle` compares that with what others are given.

    It also asserts that the group settles, and so does the end: everything has a consumer.
    """
    group, gone = named(strategy), []
    counts, new = dict(COUNTS), iter("DEFGHIJKLMNOP")
    for event, which in [("", 0), *events]:
        one = sorted(group.consumers)[which % len(group.consumers)]
        if event == "join":
            group.consumers[next(new)] = Consumer(assignor(strategy), ["t", "u", "v"][which % 2:])
        elif event == "leave" and len(group.consumers) > 1:
            gone.append(group.consumers.pop(one))
            gone[-1].lose()
        elif event == "return" and gone:
            group.consumers[next(new)] = gone.pop()
        elif event == "lose":
            group.consumers[one].lose()
        elif event == "topics":
            group.consumers[one].coordinator._subscription.change_subscription(["t", "u", "v"][which % 3:])
        elif event == "grow":
            counts["u"] += 1
            group.metadata = metadata(counts)
        settled = group.settle()
    wanted = set().union(*(one.coordinator._subscription.subscription for one in group.consumers.values()))
    assert handed_out(settled) == everything({topic: count for topic, count in counts.items() if topic in wanted})


@pytest.mark.parametrize("leader", "AB")
def test_nothing_stays_withheld_for_a_member_that_lost_everything(leader):
    """A claims what it was assigned, and does not hold it any more: it revokes nothing, so it does not join again."""
    group = named("cooperative-sticky", members="A")
    group.settle()
    group.consumers["A"].lose()
    group.consumers["B"] = Consumer(assignor("cooperative-sticky"), ["t", "u", "v"])
    group.consumers = {leader: group.consumers.pop(leader), **group.consumers}
    assert sum(map(len, group.settle().values())) == sum(COUNTS.values())


def test_a_leader_does_not_rebalance_for_ever():
    """B claims all partitions whatever it was assigned, as no client should: the leader asks for one more rebalance."""
    group = named("cooperative-sticky", members="A")
    stubborn = group.consumers["B"] = Consumer(assignor("cooperative-sticky"), ["t", "u", "v"])
    owned = {name: list(range(count)) for name, count in COUNTS.items()}
    sent = Subscription(["t", "u", "v"], owned=[(name, number) for name in owned for number in owned[name]])
    [claiming] = stubborn.coordinator._assignors.values()
    claiming.metadata = lambda topics: ConsumerProtocolSubscription.decode(encode_subscription(sent, version=1))
    rounds = 0
    while group.consumers["A"].coordinator.rejoin_needed:
        group.round()
        rounds += 1
        assert rounds < 5
    assert rounds == 2


def test_a_leader_does_not_forget_its_join():
    """kafka-python 3.0.12 does not know any more that it joins, once its metadata or its topics are those it sent."""
    group = named("sticky", members="A")
    group.settle()
    coordinator = group.consumers["A"].coordinator
    coordinator._subscription.change_subscription(["t", "u"])
    [(protocol, sent)] = coordinator.group_protocols()
    assert not coordinator.need_rejoin()
    join = Joined(member_id="A", group_instance_id=None, metadata=sent.encode())
    coordinator._perform_assignment("A", protocol, [join])
    assert coordinator.need_rejoin()


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_consumers_that_are_given_one_assignor_get_copies(name):
    """Four members of 24 partitions, then five: with one state for all, each claims what the last one was assigned."""
    group, shared = Group({"t": 24}), assignor(name)
    group.consumers = {one: Consumer(shared, ["t"]) for one in "ABCD"}
    before = group.settle()
    group.consumers["E"] = Consumer(shared, ["t"])
    after = group.settle()
    assert sum(len(before[one] & after[one]) for one in before) == 20


def test_a_group_that_begins_again_at_generation_one():
    """The coordinator has lost the group: C has not noticed, and claims what A consumes, with a higher generation."""
    group = named("cooperative-sticky", members="C")
    group.generation = 50
    group.settle()
    unaware = group.consumers.pop("C")
    group.generation, group.consumers = 0, {"A": Consumer(assignor("cooperative-sticky"), ["t", "u", "v"])}
    group.settle()
    group.consumers["C"] = unaware
    assert handed_out(group.settle()) == everything(COUNTS)


def sticky_data(owned, made_in, version=1):
    return encode_sticky(Claims(owned, made_in), version=version)


VOICES = {         # how clients send claims and a generation under a rule: version of the subscription, and all of it
    "cooperative": [
        (3, lambda owned, made_in: Subscription(["t"], encode_cooperative(made_in), owned, made_in)),
        (1, lambda owned, made_in: Subscription(["t"], encode_cooperative(made_in), owned)),
        (0, lambda owned, made_in: Subscription(["t"], sticky_data(owned, made_in))),
        (1, lambda owned, made_in: Subscription(["t"], sticky_data(owned, made_in), owned)),
        (1, lambda owned, made_in: Subscription(["t"], sticky_data(owned, -1, version=0), owned)),
        (0, lambda owned, made_in: Subscription(["t"], sticky_data(owned, -1, version=0))),
        (1, lambda owned, made_in: Subscription(["t"], None, owned))],
    "sticky": [
        (3, lambda owned, made_in: Subscription(["t"], sticky_data(owned, made_in), owned, made_in)),
        (0, lambda owned, made_in: Subscription(["t"], sticky_data(owned, made_in))),
        (0, lambda owned, made_in: Subscription(["t"], sticky_data(owned, -1, version=0)))]}


def led(strategy, generation, sent):
    """What members get that sent these bytes: from the leader C0, from `lead`; partitions by member id."""
    consumer = Consumer(assignor(strategy), ["t"])
    consumer.client.cluster.update_metadata(metadata({"t": 6}))
    consumer.coordinator._generation = Generation(generation, "C0", "")
    [protocol] = consumer.coordinator._assignors
    joins = [Joined(member_id=one, group_instance_id=None, metadata=data) for one, data in sent.items()]
    found = [consumer.coordinator._perform_assignment("C0", protocol, joins)]
    if strategy == "cooperative-sticky":        # `lead` trusts all others to withhold, and Java overlooks some claims
        joined = {one: (None, data) for one, data in sent.items()}
        found.append(kafka_assign.lead(strategy, joined, {"t": 6}, generation=generation))
    return [{one: set(decode_assignment(data).assigned) for one, data in answer.items()} for answer in found]


OWN = Strategy("own", careless, protocol="cooperative", claims="sticky")
SPOKEN = [(strategy, at) for strategy in (*COOPERATIVE, OWN) for at in range(len(VOICES[resolve(strategy).claims]))]


@pytest.mark.parametrize("strategy, voice", SPOKEN, ids=lambda one: getattr(one, "name", str(one)))
def test_a_generation_that_nobody_has_reached_takes_nothing(strategy, voice):
    """C0 consumes t-0 and t-1 in generation 4; C1 claims them in the 50th, wherever it says so. Neither gets them."""
    voices = VOICES[resolve(strategy).claims]
    both = [("t", 0), ("t", 1)]
    for present, future in (voices[0], voices[voice]), (voices[voice], voices[0]):
        sent = {"C0": encode_subscription(present[1](both, 4), version=present[0]),
                "C1": encode_subscription(future[1](both, 50), version=future[0])}
        for answer in led(strategy, 5, sent):
            assert not answer["C1"] & set(both) and not answer["C0"] & set(both)


@pytest.mark.parametrize("strategy", [*COOPERATIVE, OWN], ids=lambda one: getattr(one, "name", one))
@given(latest=st.integers(0, 3), members=st.lists(st.tuples(
    st.integers(0, 5), st.booleans(), st.sets(st.integers(0, 5))), min_size=1, max_size=4))
def test_no_claim_takes_what_another_member_consumes(strategy, latest, members):
    """Some members have missed that the coordinator lost the group, and go on; their generation has not come yet.

    Those that have not missed it share the partitions; all of them consume what they claim.
    """
    voices, held, sent, free = VOICES[resolve(strategy).claims], {}, {}, set(range(6))
    for at, (voice, unaware, numbers) in enumerate(members):
        numbers = numbers if unaware else numbers & free
        free -= set() if unaware else numbers
        held[f"C{at}"] = {("t", number) for number in numbers}
        version, say = voices[voice % len(voices)]
        said = say(sorted(held[f"C{at}"]), latest + 1 + at if unaware else latest)
        sent[f"C{at}"] = encode_subscription(said, version=version)
    for answer in led(strategy, latest + 1, sent):
        for one, given_ in answer.items():
            assert not given_ & set().union(*(own for other, own in held.items() if other != one))


# --- bytes of others --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["range", "lag", *STICKY])
@settings(max_examples=40)
@given(sent=st.lists(st.tuples(
    st.lists(st.sampled_from(["t", "u", "\N{SNOWMAN}"]), max_size=3),
    st.none() | st.binary(max_size=40) | st.sampled_from([
        encode_sticky(Claims([("t", 1), ("x", -4)], 7)), encode_stream_join([1, 1, -9, 2**31 - 1], 2**31 - 1)]),
    st.lists(st.tuples(st.sampled_from(["t", "u", "x", ""]), st.integers(0, 3) | st.integers(-2**31, 2**31 - 1))),
    st.integers(-1, 2) | st.integers(-2**31, 2**31 - 1), st.integers(0, 3)), max_size=4))
def test_no_bytes_keep_the_leader_from_answering_all(name, sent):
    """And the answer is that of `lead`, which decodes the same bytes itself."""
    data = {f"C{i}": encode_subscription(Subscription(*one[:4]), version=one[4]) for i, one in enumerate(sent)}
    counts = {"t": 3, "u": 1}
    found = answers(made(name, offsets_timeout=0), counts, data)
    pairs = [pair for own in found.values() for pair in own]
    assert len(pairs) == len(set(pairs))
    for (topics, *_), own in zip(sent, found.values()):
        assert all(topic in topics and number < counts[topic] for topic, number in own)
    if not name.startswith("kafka-"):  # which raise what Kafka's own leader would raise
        expected = kafka_assign.lead(name, {one: (None, sent) for one, sent in data.items()}, counts)
        assert found == {one: list(decode_assignment(data).assigned) for one, data in expected.items()}


ODD = [dict(topics=None), dict(topics=[7]), dict(topics=["t"], owned_partitions=[None]),
       dict(topics=["t"], user_data=7), dict(topics=["t"], generation_id="x"), dict(topics=["t"], rack_id=[])]


@pytest.mark.parametrize("fields", ODD, ids=str)
def test_a_member_that_cannot_be_read_gets_nothing(fields, caplog):
    """What no decoder of today returns; the next one may."""
    usual = dict(user_data=None, owned_partitions=[], generation_id=-1, rack_id=None, version=3)
    joins = [Joined(member_id="A\x1b", group_instance_id=None, metadata=SimpleNamespace(**usual | fields)),
             Joined(member_id="B", group_instance_id="i", metadata=SimpleNamespace(**usual, topics=["t"]))]
    found = assignor("sticky").assign(cluster_of({"t": 2}), joins)
    assert {name: len(decode_assignment(data).assigned) for name, data in found.items()} == {"A\x1b": 0, "B": 2}
    assert "member 'A\\x1b' gets no partitions, because its subscription cannot be read" in caplog.text


def test_user_data_that_cannot_be_decoded(caplog):
    """Its member has no claims, which the log says once for all members; nobody else is disturbed."""
    caplog.set_level("INFO", logger="kafka_assign.clients")
    sent = {f"C{i}": encode_subscription(Subscription(["t"], b"\x7f\xff\xff\xff\1")) for i in range(5)}
    sent["A"] = encode_subscription(Subscription(["t"], encode_sticky(Claims([("t", 1)], 3)), generation=3))
    found = answers(assignor("sticky"), {"t": 6}, sent)
    assert found["A"] == [("t", 1)] and sorted(map(len, found.values())) == [1] * 6
    [warning, line] = caplog.messages
    assert warning.startswith("member 'C0': the user data of the member cannot be decoded")
    assert warning.endswith(" and 2 more") and line.endswith("withheld 0, 5 claims without effect")


def test_null_arrays():
    sent = SimpleNamespace(
        topics=["t"], user_data=None, owned_partitions=None, generation_id=-1, rack_id=None, version=1)
    assert read_subscription(sent).owned == ()
    sent.owned_partitions = [SimpleNamespace(topic="t", partitions=None)]
    assert read_subscription(sent).owned == []


def test_a_topic_without_metadata_is_left_out(caplog):
    caplog.set_level("INFO", logger="kafka_assign.clients")
    sent = {"A": assignor("sticky").metadata({"t", "gone"}).encode()}
    assert answers(assignor("sticky"), {"t": 1}, sent) == {"A": [("t", 0)]}
    assert caplog.messages == ["sticky: 1 member (0 had partitions before), 1 partition: kept 0, moved 0, placed 1, "
                               "withheld 0, 1 topic without metadata left out"]


@pytest.mark.parametrize("counts", [
    {"t": 2, "u": 7}, {"t": 3, "u": 4, "v": 1}, {"t": 4, "u": 4}, {"t": 900, "u": 1}], ids=str)
@pytest.mark.parametrize("members", [1, 3])
def test_a_leader_warns_of_partitions_that_nobody_gets(counts, members, caplog):
    """Topics that are joined have different numbers of partitions. The warning counts what no answer has, and names
    the first three; if everything has an owner, there is none."""
    sent = {f"C{at}": assignor("stream-join-sticky").metadata(counts).encode() for at in range(members)}
    found = answers(assignor("stream-join-sticky"), counts, sent)
    free = [pair for pair in everything(counts) if pair not in {pair for own in found.values() for pair in own}]
    names = ", ".join(f"{topic}-{number}" for topic, number in free[:3])
    more = f" and {len(free) - 3:,} more" if len(free) > 3 else ""
    plural = "s" if len(free) > 1 else ""
    expected = [f"stream-join-sticky leaves {len(free)} partition{plural} without a consumer: {names}{more}"]
    assert caplog.messages == (expected if free else [])


@pytest.mark.parametrize("name", STICKY)
def test_a_member_that_was_away_is_no_reason_for_a_warning(name, caplog):
    """It claims what it had in an old generation or epoch, which others own by now; and in a cooperative group, what is
    withheld for a while is not what nobody gets."""
    group = named(name)
    group.settle()
    away = group.consumers.pop("A")
    away.lose()
    for _ in range(2):
        group.settle()
    group.consumers["A"] = away
    group.settle()
    assert not caplog.messages


@pytest.mark.parametrize("answered", [True, False])
def test_a_leader_asks_about_topics_of_other_members(answered, monkeypatch, caplog):
    """B leads, and its client does not know t, of which C has partitions: those are lost if B does without."""
    asked = []

    def read(settings_, seconds, cluster):
        asked.append(sorted(one.name for one in cluster.metadata_request().topics))
        if not answered:
            raise TimeoutError("no answer")
        return metadata(COUNTS)
    monkeypatch.setattr("kafka_assign.clients.read_metadata", read)
    caplog.set_level("WARNING", logger="kafka_assign.clients")
    group = named("cooperative-sticky", members="C", topics=("t",))
    owned = group.settle()["C"]
    group.metadata = metadata({"u": 2})
    group.consumers = {"B": Consumer(assignor("cooperative-sticky"), ["u"]), "C": group.consumers["C"]}
    leader = group.consumers["B"].coordinator
    _, after = group.round()
    assert asked == [["t", "u"]] and set(after["C"]) == (owned if answered else set())
    assert ("topics of others cannot be read" in caplog.text) != answered
    if answered:        # and no other round is needed
        assert leader._assignment_snapshot == leader._metadata_snapshot


# --- strategies that fail ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["owner-column", "subscribers-only", "raises"])
@pytest.mark.parametrize("make", [assignor, aio_assignor], ids=["kafka-python", "aiokafka"])
def test_range_instead(name, make, caplog):
    strategy = BROKEN.get(name, raises)
    topics = {"A": ["t", "u"], "B": ["t", "v"]}
    caplog.set_level("INFO", logger="kafka_assign.clients")
    if make is assignor:
        found = answers(make(strategy), COUNTS, {one: assignor("range").metadata(own).encode()
                                                 for one, own in topics.items()})
    else:
        found = {one: list(decode_assignment(data).assigned) for one, data in make(strategy).assign(
            cluster_of(COUNTS), {one: SimpleNamespace(subscription=own, user_data=b"") for one, own in topics.items()}
        ).items()}
    assert found == assign(kafka_assign.Group(COUNTS, topics), "range")
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert f"{strategy.__name__} failed" in caplog.messages[0] and caplog.messages[1].startswith("range: 2 members")


def test_range_withholds_what_is_claimed_in_user_data():
    """As some clients send it, in a subscription without owned partitions."""
    claims = Subscription(["t"], encode_sticky(Claims([("t", 1)], 3)))
    sent = {"A": encode_subscription(claims, version=0), "B": assignor(FAILS).metadata({"t"}).encode()}
    assert answers(assignor(FAILS), {"t": 2}, sent) == {"A": [("t", 0)], "B": []}


def test_without_even_range_all_are_answered(monkeypatch, caplog):
    monkeypatch.setattr("kafka_assign.clients.member.Group", raises)
    sent = {one: assignor("sticky").metadata({"t"}).encode() for one in "AB"}
    assert answers(assignor("sticky"), COUNTS, sent) == {"A": [], "B": []}
    assert len(caplog.messages) == 2


def test_only_strategies_of_members():
    served = Strategy("served", raises, protocol="broker")
    for make in assignor, aio_assignor:
        with pytest.raises(StrategyError, match="'served', which the broker runs"):
            make(served)
    for name in COOPERATIVE:
        with pytest.raises(StrategyError, match=f"must be eager, because .*'{name}'"):
            aio_assignor(name)
    with pytest.raises(WireError, match="the rack must be text"):
        assignor("sticky", rack=7)


@pytest.mark.parametrize("what", [lambda: assignor("sticky"), lambda: aio_assignor("lag", offsets_from={})],
                         ids=["kafka-python", "aiokafka with offsets"])
def test_a_client_that_is_missing(monkeypatch, what):
    monkeypatch.setitem(sys.modules, "kafka", None)
    monkeypatch.setitem(sys.modules, "kafka.coordinator.assignors.abstract", None)
    with pytest.raises(ImportError, match=r"^this needs kafka\S*: pip install 'kafka_assign\[kafka\]'$"):
        what()


# --- racks, offsets ---------------------------------------------------------------------------------------------

def test_static_members_first():
    """By their instance ids, as Java has it; kafka-python's own range loses members that stand between others."""
    group = Group({"t": 3})
    group.consumers = {name: Consumer(assignor("range"), ["t"], instance_id=static)
                       for name, static in {"a": None, "b": "y", "c": "x"}.items()}
    assert group.settle() == {"a": {("t", 2)}, "b": {("t", 1)}, "c": {("t", 0)}}


def test_racks_of_brokers_and_members():
    known = {"racks": ("a", "b"), "replicas": lambda number: [number % 2]}
    near = {one: assignor("range", rack=rack).metadata({"t"}).encode() for one, rack in zip("AB", "ba")}
    assert answers(assignor("range"), {"t": 4}, near, **known) == {
        "A": [("t", 1), ("t", 3)], "B": [("t", 0), ("t", 2)]}
    unknown = {one: assignor("range").metadata({"t"}).encode() for one in "AB"}
    assert answers(assignor("range"), {"t": 4}, unknown, **known)["A"] == [("t", 0), ("t", 1)]


class Admin:
    """kafka-python's admin client, which knows the offsets of one topic."""

    DEFAULT_CONFIG = KafkaAdminClient.DEFAULT_CONFIG
    waits = threading.Event()

    def __init__(self, **settings):
        assert settings["bootstrap_servers"] == "b" and settings["request_timeout_ms"] == 5000
        assert "group_id" not in settings and "auto_offset_reset" not in settings

    def list_partition_offsets(self, specs):
        return {one: SimpleNamespace(offset=100 if spec.name == "LATEST" else 10) for one, spec in specs.items()}

    def list_group_offsets(self, groups):
        [(group, partitions)] = groups.items()
        committed = {one: SimpleNamespace(offset=[0, 95, -1][one.partition]) for one in partitions}
        return {group: committed} if group == "g" else {}


def test_lag_reads_offsets(monkeypatch):
    """Lags of 100 and 5 records; of the third partition what the reset rule says: 0 or 90."""
    monkeypatch.setattr("kafka.KafkaAdminClient", Admin)
    rules = {"latest": [100, 5, 0], "earliest": [100, 5, 90], "none": [100, 5, 90]}
    words = {"latest": ["latest", "largest", "LATEST"], "earliest": ["earliest", "smallest"],
             "none": ["none", "error", None, "by_duration:P7D"]}
    for reset, lags in [(word, rules[rule]) for rule in rules for word in words[rule]]:
        settings_ = {"bootstrap_servers": "b", "group_id": "g", "auto_offset_reset": reset}
        sent = {one: made("lag").metadata({"t"}).encode() for one in "AB"}
        found = answers(assignor("lag", offsets_from=settings_), {"t": 3}, sent)
        assert found == assign(kafka_assign.Group({"t": 3}, {"A": ["t"], "B": ["t"]}, lag={"t": lags}), "lag")


def test_lag_without_an_answer_counts(caplog, monkeypatch):
    counted = assign(kafka_assign.Group({"t": 3}, {"A": ["t"], "B": ["t"]}), "lag")
    sent = {one: made("lag").metadata({"t"}).encode() for one in "AB"}
    nowhere = {"bootstrap_servers": "127.0.0.1:1", "group_id": "g", "sasl_plain_password": "secret"}
    for broken in nowhere, nowhere | {"bootstrap_servers": 7}:
        caplog.clear()
        assert answers(assignor("lag", offsets_from=broken, offsets_timeout=0.2), {"t": 3}, sent) == counted
        assert "offsets cannot be read; the assignment ignores them" in caplog.text
        assert "secret" not in caplog.text
    never = threading.Event()
    monkeypatch.setattr("kafka_assign.clients.read_offsets", lambda *given: never.wait())
    assert answers(assignor("lag", offsets_from=nowhere, offsets_timeout=0.01), {"t": 3}, sent) == counted
    never.set()
    assert "TimeoutError: no answer within 0.01 seconds" in caplog.text
    with pytest.raises(StrategyError, match=r"with its group_id \(got none\)"):
        assignor("lag", offsets_from={})


@pytest.mark.parametrize("make", [assignor, aio_assignor], ids=["kafka-python", "aiokafka"])
def test_a_strategy_that_needs_lag_has_it_read(make):
    """Any strategy that says so, unless an option takes the place of lag."""
    needy = Strategy("needy", careless, needs_lag=True)
    for strategy in "lag", "lag:scope=group", "LagBasedAssignor", needy:
        with pytest.raises(StrategyError, match=r"offsets_from must be .* for strategy '(lag|needy).*which needs lag"):
            make(strategy)
    assert make("lag", weight={"t": [1]}).offsets is None


UNUSABLE = [
    ({"auto_offset_reset": "newest"}, {}, "auto_offset_reset of offsets_from: reset must be latest, earliest or none"),
    ({"auto_offset_reset": 5}, {}, "reset must be latest, earliest or none (got 5)"),
    ({"group_id": None}, {}, "group_id of offsets_from must be the name of a group (got None)"),
    ({"group_id": ""}, {}, "group_id of offsets_from must be the name of a group (got '')"),
    ({}, {"offsets_timeout": "5"}, "offsets_timeout must be a number of seconds, 0 or more (got '5')"),
    ({}, {"offsets_timeout": -1}, "(got -1)"), ({}, {"offsets_timeout": float("nan")}, "(got nan)"),
    ({}, {"offsets_timeout": True}, "(got True)"), ({}, {"offsets_timeout": 1e300}, "(got 1e+300)")]


@pytest.mark.parametrize("make", [assignor, aio_assignor], ids=["kafka-python", "aiokafka"])
@pytest.mark.parametrize("changed, more, message", UNUSABLE, ids=str)
def test_settings_that_no_rebalance_could_use_are_refused_at_once(make, changed, more, message):
    with pytest.raises(StrategyError) as raised:
        make("lag", offsets_from=NOWHERE | changed, **more)
    assert message in str(raised.value)
    with pytest.raises(StrategyError, match="offsets_from must be the settings of the consumer .got "):
        make("lag", offsets_from=["bootstrap_servers", "group_id"])


def test_a_client_that_cannot_connect_leaves_no_thread():
    before = set(threading.enumerate())
    with pytest.raises(Exception, match="Unable to bootstrap"):
        read_offsets({"bootstrap_servers": "127.0.0.1:1", "group_id": "g"}, 0.1, {"t": 1})
    assert set(threading.enumerate()) <= before


# --- aiokafka ---------------------------------------------------------------------------------------------------

def test_two_aiokafka_consumers_keep_separate_state():
    """The generation comes from aiokafka's coordinator; the one that dropped out loses to those that went on."""
    async def story():
        group = {name: AioConsumer(aio_assignor("sticky"), {"t": 6}) for name in "ABC"}
        first = await aio_round(group, 4)
        second = await aio_round({name: group[name] for name in "AB"}, 5)
        assert all(first[name] < second[name] for name in "AB")
        sent = {name: decode_subscription(one.coordinator._assignors[0].metadata({"t"}))
                for name, one in group.items()}
        claims = {name: decode_sticky(one.user_data) for name, one in sent.items()}
        assert {name: (len(one.owned), one.generation) for name, one in claims.items()} == {
            "A": (3, 5), "B": (3, 5), "C": (2, 4)}
        assert {name: one.generation for name, one in sent.items()} == {"A": 5, "B": 5, "C": 4}
        last = await aio_round(group, 6)
        assert sorted(map(len, last.values())) == [2, 2, 2]
        assert all(last[name] < second[name] for name in "AB")
        assert await aio_round(group, 7) == last
    run_aio(story)


@pytest.mark.parametrize("partitions", [6, 2], ids=["all own some", "one owns none"])
def test_consumers_of_aiokafka_that_share_an_assignor_are_told(partitions, caplog):
    """At once, by the second assignment that one assignor gets; consumers that have their own are not."""
    async def story():
        own = {name: AioConsumer(aio_assignor("sticky"), {"t": partitions}) for name in "ABC"}
        await aio_round(own, 1)
        await aio_round(own, 2)
        assert not caplog.messages
        shared = aio_assignor("sticky")
        await aio_round({name: AioConsumer(shared, {"t": partitions}) for name in "ABC"}, 1)
    run_aio(story)
    assert caplog.messages == ["several consumers share an assignor, so their claims overwrite one another: "
                                "create one for each consumer"]


def test_the_epoch_travels_in_aiokafka():
    async def story():
        group = {name: AioConsumer(aio_assignor("stream-join-sticky"), {"t": 4}) for name in "AB"}
        first = await aio_round(group, 1)
        sent = decode_subscription(group["A"].coordinator._assignors[0].metadata({"t"})).user_data
        assert decode_stream_join(sent) == (sorted(number for _, number in first["A"]), 0)
        assert await aio_round(group, 2) == first
    run_aio(story)


# --- the listener -----------------------------------------------------------------------------------------------

def test_no_error_of_a_callback_is_lost():
    """If `clean_up` raises after `commit`, the first error is the context of the second."""
    def fails(name):
        def callback(partitions):
            raise KeyError(name)
        return callback
    listener = StickyRebalanceListener(protocol="cooperative", commit=fails("commit"), clean_up=fails("clean_up"))
    with pytest.raises(KeyError, match="clean_up") as raised:
        listener.on_partitions_revoked([("t", 0)])
    assert str(raised.value.__context__) == "'commit'"


CALLBACKS = "commit", "clean_up", "initialize", "seek"


def recording(calls, protocol="eager"):
    def record(name):
        return lambda partitions: calls.append((name, partitions))
    return StickyRebalanceListener(protocol=protocol, **{name: record(name) for name in CALLBACKS})


def count(calls, name):
    return sum(len(partitions) for called, partitions in calls if called == name)


def test_the_example_of_the_kip_saves_all_clean_ups():
    """Example 2 in kafka-python's own coordinators: C0 leaves, five partitions stay, one is placed."""
    calls, members = [], {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}
    group = Group({"t0": 1, "t1": 2, "t2": 3})
    group.consumers = {name: Consumer(assignor("sticky"), topics, recording(calls)) for name, topics in members.items()}
    group.settle()
    del calls[:], group.consumers["C0"]
    group.settle()
    assert {name: count(calls, name) for name in CALLBACKS} == {"commit": 5, "clean_up": 0, "initialize": 1, "seek": 6}


def test_a_cooperative_group_cleans_up_what_moves_and_builds_it_again():
    """B comes and goes: what A gives up is cleaned up at once, and is new when it is back."""
    calls, group = {one: [] for one in "AB"}, Group({"t": 4, "u": 1})
    group.consumers["A"] = Consumer(assignor("cooperative-sticky"), ["t"], recording(calls["A"], "cooperative"))
    before = group.settle()["A"]
    calls["A"].clear()
    group.consumers["B"] = Consumer(assignor("cooperative-sticky"), ["t"], recording(calls["B"], "cooperative"))
    moved = sorted(before - group.settle()["A"])
    assert calls["A"] == [("commit", moved), ("clean_up", moved)] and len(moved) == 2
    assert calls["B"] == [("initialize", moved), ("seek", moved)]
    del group.consumers["B"], calls["A"][:]
    group.settle()
    assert calls["A"] == [("initialize", moved), ("seek", moved)]


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_lost_partitions_are_cleaned_up_and_not_committed(protocol):
    calls, group, strategy = [], Group({"t": 2}), {"eager": "sticky", "cooperative": "cooperative-sticky"}[protocol]
    group.consumers["A"] = Consumer(assignor(strategy), ["t"], recording(calls, protocol))
    both = sorted(group.settle()["A"])
    calls.clear()
    group.consumers["A"].lose()
    group.settle()
    assert calls == [("clean_up", both), ("initialize", both), ("seek", both)]


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
@given(events=st.lists(st.tuples(st.sampled_from(["rebalance", "lost", "silent", "fail"]), st.sets(st.integers(0, 3))),
                       max_size=8), ends=st.booleans())
def test_the_state_is_that_of_what_is_owned(protocol, events, ends):
    """Whatever the client reports, and whatever is lost without a word: a partition has state if and only if it is
    owned, built since it was last away; clean-up and initialization alternate, and close leaves nothing."""
    state, owned, fails = {}, set(), []

    def initialize(partitions):
        assert not state.keys() & set(partitions)
        state.update(dict.fromkeys(partitions, "fresh"))

    def clean_up(partitions):
        for one in partitions:
            del state[one]

    def commit(partitions):
        if fails:
            raise LookupError(fails.pop())
    listener = StickyRebalanceListener(protocol=protocol, commit=commit, clean_up=clean_up, initialize=initialize)
    for event, now in events:
        if event == "lost":
            listener.on_partitions_lost(owned)
            owned = set()
        elif event == "silent":                         # as after `unsubscribe` in kafka-python
            state.update(dict.fromkeys(state, "stale"))
            owned = set()
            continue
        fails += ["no"] if event == "fail" else []
        revoked, added = (owned, now) if protocol == "eager" else (owned - now, now - owned)
        if revoked or protocol == "eager":
            try:
                listener.on_partitions_revoked(revoked)
            except LookupError:
                assert event == "fail"
        fails.clear()
        if added or protocol == "eager":
            listener.on_partitions_assigned(added)
        owned = now
        assert owned <= state.keys() and all(state[one] == "fresh" for one in owned)
        if protocol == "eager" or "silent" not in [one for one, _ in events]:
            assert state.keys() == owned
    if ends and owned:
        listener.on_partitions_revoked(owned)           # all that `close` of kafka-python's consumer does
    listener.close()
    assert not state


def test_a_listener_remembers_all_that_was_revoked():
    """A rebalance that begins before the last one has ended revokes a second time."""
    calls = []
    listener = recording(calls)
    listener.on_partitions_revoked([("t", 0)])
    listener.on_partitions_revoked([("t", 1)])
    listener.on_partitions_assigned([("t", 1)])
    assert calls[2:] == [("clean_up", [("t", 0)]), ("seek", [("t", 1)])]


def test_what_is_lost_after_it_was_revoked_is_cleaned_up_once():
    calls = []
    listener = recording(calls)
    listener.on_partitions_revoked([("t", 0), ("t", 1)])
    listener.on_partitions_lost([("t", 0)])
    listener.on_partitions_assigned([])
    assert calls[1:] == [("clean_up", [("t", 0)]), ("clean_up", [("t", 1)])]


def test_a_callback_that_raises_changes_nothing_else():
    calls = []
    listener = recording(calls, "cooperative")
    listener.commit = raises
    with pytest.raises(LookupError):
        listener.on_partitions_revoked([("t", 1), ("t", 0)])
    assert calls == [("clean_up", [("t", 0), ("t", 1)])]


@pytest.mark.parametrize("protocol", ["", "EAGER", "sticky", None, ["eager"]], ids=str)
def test_a_listener_is_told_the_protocol(protocol):
    with pytest.raises(ValueError, match="protocol of a listener must be eager or cooperative, like that of "):
        StickyRebalanceListener(protocol=protocol)
    with pytest.raises(TypeError, match="protocol"):
        StickyRebalanceListener()


def test_coroutines_are_awaited_by_kafka_python():
    """Its coordinator awaits them if the listener's method is a coroutine function; B gets two of A's partitions."""
    calls = []

    async def commit(partitions):
        await KafkaFuture().success(None)
        calls.append(("commit", partitions))
    group = Group({"t": 4})
    for name in "AB":
        listener = StickyRebalanceListener(
            protocol="cooperative", commit=commit, clean_up=lambda some: calls.append(("clean_up", some)))
        assert isinstance(listener, AsyncKafkaListener)
        group.consumers[name] = Consumer(assignor("cooperative-sticky"), ["t"], listener)
        settled = group.settle()
    moved = sorted(settled["B"])
    assert calls == [("commit", moved), ("clean_up", moved)] and len(moved) == 2


def test_coroutines_are_awaited_by_aiokafka():
    from aiokafka import ConsumerRebalanceListener as AioListener
    calls = []

    async def clean_up(partitions):
        await asyncio.sleep(0)
        calls.append(partitions)

    async def story():
        listener = StickyRebalanceListener(protocol="eager", clean_up=clean_up, commit=calls.append)
        assert isinstance(listener, KafkaListener) and isinstance(listener, AioListener)
        async with listener:
            result = listener.on_partitions_revoked({TopicPartition("t", 1), TopicPartition("t", 0)})
            assert asyncio.iscoroutine(result)  # which aiokafka awaits
            await result
            await listener.on_partitions_assigned([TopicPartition("t", 2)])
    run_aio(story)
    assert calls == [[("t", 0), ("t", 1)]] * 2 + [[("t", 2)]]
    assert recording([]).on_partitions_revoked([]) is None


def test_a_coroutine_that_nothing_awaits_is_an_error():
    async def commit(partitions):
        raise AssertionError("it must not run")
    listener = StickyRebalanceListener(protocol="eager", commit=lambda partitions: commit(partitions))
    with pytest.raises(ValueError, match=r"must be defined with async def, .* \(got '<lambda>'\)"):
        listener.on_partitions_revoked([("t", 0)])
    with pytest.raises(ValueError, match=r"must be used with async with \(got with\)"):
        with StickyRebalanceListener(protocol="eager", clean_up=commit):
            pass
    with StickyRebalanceListener(protocol="eager", commit=commit) as listener:
        assert listener.close() is None


# --- the size that counts ---------------------------------------------------------------------------------------

def test_many_members_are_answered_at_once():
    """No member costs a pass over all partitions: kafka-python's own sticky assignor takes minutes for this."""
    topics, members = {f"t{i}": 500 for i in range(20)}, [f"C{i:04}" for i in range(1000)]
    random.Random(1).shuffle(members)
    consumers = {name: assignor("sticky") for name in members}
    for generation in 1, 2:
        sent = {name: one.metadata(topics).encode() for name, one in consumers.items()}
        found = answers(consumers[members[0]], topics, sent)
        for name, one in consumers.items():
            data = ConsumerProtocolAssignment(0, [(topic, [number]) for topic, number in found[name]], b"")
            one.on_assignment(data, generation)
    assert {len(own) for own in found.values()} == {10}
