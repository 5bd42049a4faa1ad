"""Assignors that one Python consumer lists share what it was assigned: in the real coordinators, but for the network.

The oracle of a change of assignor is `assign` for a group in which each member claims what it had, whichever assignor
had assigned it.
"""
import logging
from copy import copy, deepcopy
from threading import Thread

import pytest
from clients import AioConsumer, Consumer, Group, aio_round, run_aio
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaConfigurationError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

import kafka_assign
from kafka_assign import Member, StrategyError, assign
from kafka_assign.assignors.kafka_sticky.forecast import cooperative_member
from kafka_assign.clients import aio, assignor, tied
from kafka_assign.protocol.wire import (
    decode_assignment, decode_cooperative, decode_epoch, decode_sticky, decode_stream_join, decode_subscription,
    encode_stream_join)

COUNTS = {"t": 7, "u": 3, "v": 5}
SQUARE = {"t": 5, "u": 5, "v": 5}          # for joins, all topics have the same numbers of partitions
EAGER = ["sticky", "sticky-yet-fair", "kip54", "kafka-sticky", "stream-join-sticky"]
CLAIMING = [*EAGER, "cooperative-sticky"]
SHARED = ("several consumers share an assignor, so their claims overwrite one another: "
          "create one for each consumer")


@pytest.fixture(autouse=True)
def quiet():
    """Only our own lines are looked at."""
    loggers = [logging.getLogger(name) for name in ("kafka", "aiokafka")]
    for logger in loggers:
        logger.setLevel("CRITICAL")
    yield
    for logger in loggers:
        logger.setLevel("NOTSET")


def plain(own):
    """Pairs (topic, partition) by member, as sets."""
    return {member: set(map(tuple, pairs)) for member, pairs in own.items()}


def after_the_change(counts, topics, held, generation, strategy):
    """What a strategy gives to members that all claim what they held, in the same generation."""
    members = []
    for name, own in held.items():
        numbers = sorted({number for _, number in own})
        joined = strategy == "stream-join-sticky"
        members.append(Member(name, topics[name], owned=() if joined else sorted(own), generation=generation,
                              user_data=encode_stream_join(numbers, generation) if joined else None))
    answer = assign(kafka_assign.Group(counts, members), strategy)
    return plain(kafka_assign.Assignment(answer.group, answer.target))


def received(plugin, pairs, generation, user_data=None):
    """Let an assignor of kafka-python receive these partitions of topic t."""
    plugin.on_assignment(ConsumerProtocolAssignment(0, [("t", pairs)], user_data), generation)


def claims(plugin):
    """What an assignor of kafka-python with the rule of `sticky` claims when its consumer joins."""
    return decode_sticky(decode_subscription(plugin.metadata({"t"}).encode()).user_data)


def listed(*assignors):
    """The assignors that a consumer of kafka-python with this list uses."""
    return list(Consumer(list(assignors), ["t"]).coordinator._assignors.values())


# --- a group that changes -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("new", CLAIMING)
@settings(max_examples=8)
@given(old=st.sampled_from(["range", "roundrobin"]), leader=st.sampled_from("ABC"), by_hand=st.booleans(),
       topics=st.lists(st.sampled_from([("t",), ("t", "u"), ("t", "u", "v")]), min_size=4, max_size=4))
def test_a_group_that_changes_claims_what_it_had(new, old, leader, by_hand, topics):
    """D lists the old assignor alone. It leaves, and the group changes; it comes and goes once more, and the group
    falls back and returns. Each time, the new assignor starts from what the old one had assigned."""
    counts = SQUARE if new == "stream-join-sticky" else COUNTS
    topics = dict(zip("ABCD", [("t", "u", "v")] * 4 if new == "stream-join-sticky" else topics))
    wrap = (lambda *assignors: list(assignors)) if not by_hand else tied
    group, others = Group(counts), [name for name in "ABC" if name != leader]
    for name in (leader, *others):
        group.consumers[name] = Consumer(wrap(assignor(new), assignor(old)), topics[name])
    for _ in range(2):
        group.consumers["D"] = Consumer([assignor(old)], topics["D"])
        held, made_in = group.settle(), group.generation
        assert group.protocol == old
        del group.consumers["D"], held["D"]
        assert group.settle() == after_the_change(counts, topics, held, made_in, new)
        assert group.protocol == resolve_name(new)


def resolve_name(strategy):
    """The name under which its assignor takes part."""
    return assignor(strategy).name


def test_a_member_that_knows_only_range_comes_and_goes():
    """The group of the defect: sticky, then range for one generation, then sticky. Sixteen of 20 partitions have an
    owner that stays, and can stay there: without a shared memory, the claims are those of before."""
    group = Group({"t": 10, "u": 10})
    for name in "ABCD":
        group.consumers[name] = Consumer([assignor("sticky"), assignor("range")], ["t", "u"])
    group.settle()
    group.consumers["E"] = Consumer([RangePartitionAssignor], ["t", "u"])
    held = group.settle()
    del group.consumers["E"]
    after = group.settle()
    assert all(held[name] <= after[name] for name in "ABCD")


@pytest.mark.parametrize("new", EAGER)
@settings(max_examples=8)
@given(old=st.sampled_from(["range", "roundrobin"]), members=st.integers(2, 4))
def test_a_group_of_aiokafka_that_changes_claims_what_it_had(new, old, members):
    """The leader under the old assignor sends the generation, which aiokafka keeps to itself."""
    counts = SQUARE if new == "stream-join-sticky" else COUNTS

    async def story():
        group = {f"C{at}": AioConsumer(aio.tied(aio.assignor(new), aio.assignor(old)), counts)
                 for at in range(members)}
        for generation in 4, 9:
            held = await aio_round({**group, "D": AioConsumer(aio.assignor(old), counts)}, generation)
            del held["D"]
            expected = after_the_change(counts, dict.fromkeys(held, [*counts]), held, generation, new)
            assert await aio_round(group, generation + 1) == expected
            sent = decode_subscription(group["C0"].coordinator._assignors[0].metadata([*counts]))
            assert sent.generation == (-1 if new == "stream-join-sticky" else generation + 1)
    run_aio(story)


def test_epochs_go_on_after_another_assignor():
    """An epoch is what the leader sent; after any other assignor, it is the generation of what that one assigned."""
    join, old = listed(assignor("stream-join-sticky"), assignor("range"))

    def sent():
        return decode_stream_join(decode_subscription(join.metadata({"t"}).encode()).user_data)
    received(join, [1, 2], 7, b"\0\0\0\x03")
    assert sent() == ([1, 2], 3)
    received(old, [0], 8, b"\0\0\0\x63")
    assert sent() == ([0], 8)
    received(join, [4], 9, b"\0\0\0\x09")
    assert sent() == ([4], 9)


def test_each_assignor_sends_its_own_rack():
    for plugin, rack in zip(listed(assignor("sticky", rack="a"), assignor("range", rack="b")), "ab"):
        assert decode_subscription(plugin.metadata({"t"}).encode()).rack == rack


@pytest.mark.parametrize("other, dated", [("sticky", True), ("kip54", True), ("roundrobin", False), (None, False)])
def test_a_leader_under_range_sends_the_generation_if_a_sticky_assignor_is_listed_too(other, dated):
    """Alone, it sends what Java's does: no user data."""
    consumer = Consumer([*([assignor(other)] if other else []), assignor("range")], ["t"])
    leader = consumer.coordinator._assignors["range"]
    [data] = leader.lead([Member("A", ["t"])], {"t": 2}, generation=6).values()
    assert decode_epoch(decode_assignment(data).user_data) == (6 if dated else -1)
    assert (decode_assignment(data).user_data is None) == (not dated)


# --- cooperative beside eager ---------------------------------------------------------------------------------------

def test_a_cooperative_assignor_beside_an_eager_one_is_eager():
    """It owns nothing when it joins, and says in its user data what it had: Java reads the generation there."""
    new, old = listed(assignor("cooperative-sticky"), assignor("range"))
    assert [each.supported_protocols()[0].name for each in (new, old)] == ["EAGER", "EAGER"]
    received(old, [1, 4], 7)
    sent = decode_subscription(new.metadata({"t"}).encode())
    assert len(sent.owned) == 0 and decode_cooperative(sent.user_data) == ([("t", 1), ("t", 4)], 7)
    as_java = cooperative_member(Member("A", ["t"], owned=sent.owned, generation=sent.generation,
                                        user_data=sent.user_data, version=sent.version))
    assert (list(as_java.claims), as_java.generation) == ([], 7)
    [alone] = listed(assignor("cooperative-sticky"))
    assert alone.supported_protocols()[0].name == "COOPERATIVE"


def test_members_that_have_revoked_everything_wait_for_no_second_rebalance():
    """D joins three members that list range, too: what moves to it is assigned at once."""
    group = Group({"t": 12})
    for name in "ABC":
        group.consumers[name] = Consumer([assignor("cooperative-sticky"), assignor("range")], ["t"])
    held = group.settle()
    group.consumers["D"] = Consumer([assignor("cooperative-sticky"), assignor("range")], ["t"])
    _, after = group.round()
    assert sorted(map(len, after.values())) == [3, 3, 3, 3] and all(after[name] < held[name] for name in "ABC")
    assert not any(one.coordinator.rejoin_needed for one in group.consumers.values())


@settings(max_examples=15)
@given(events=st.lists(st.tuples(st.sampled_from(["both", "new", "leave", "lose", "return"]), st.integers(0, 5)),
                       max_size=8))
def test_no_partition_has_two_consumers_while_members_of_both_kinds_come_and_go(events):
    """`settle` compares what each coordinator holds with what the others are given; and all ends up with a consumer."""
    group, gone, names = Group(COUNTS), [], iter("BCDEFGHIJK")
    group.consumers["A"] = Consumer([assignor("cooperative-sticky"), assignor("range")], [*COUNTS])
    for event, which in events:
        name = sorted(group.consumers)[which % len(group.consumers)]
        if event in ("both", "new"):
            lists = [assignor("cooperative-sticky"), assignor("range")][:1 + (event == "both")]
            group.consumers[next(names)] = Consumer(lists, [*COUNTS][which % 3:])
        elif event == "leave" and len(group.consumers) > 1:
            gone.append(group.consumers.pop(name))
            gone[-1].lose()
        elif event == "return" and gone:
            group.consumers[next(names)] = gone.pop()
        elif event == "lose":
            group.consumers[name].lose()
        settled = group.settle()
        wanted = set().union(*(one.coordinator._subscription.subscription for one in group.consumers.values()))
        assert sorted(pair for own in settled.values() for pair in own) == [
            (topic, number) for topic in sorted(wanted) for number in range(COUNTS[topic])]


def test_what_kafka_python_lists_itself_beside_a_cooperative_one_is_refused():
    for lists in [assignor("cooperative-sticky"), RangePartitionAssignor], [
            StickyPartitionAssignor, assignor("cooperative-sticky")]:
        with pytest.raises(KafkaConfigurationError, match="do not support a common RebalanceProtocol"):
            Consumer(lists, ["t"])


def test_the_second_restart_goes_on_from_the_first():
    """Members restart with the cooperative assignor alone, one by one, as new members; others are still eager."""
    group = Group({"t": 12})
    for name in "ABC":
        group.consumers[name] = Consumer([assignor("cooperative-sticky"), assignor("range")], ["t"])
    held = group.settle()
    for name in "ABC":
        del group.consumers[name]
        left = group.settle()
        assert all(held[other] <= left[other] for other in left)
        group.consumers[name.lower()] = Consumer([assignor("cooperative-sticky")], ["t"])
        held = group.settle()
        assert sorted(map(len, held.values())) == [4, 4, 4]
        assert all(held[other] <= left[other] for other in left)


# --- who shares -----------------------------------------------------------------------------------------------------

def shares(plugin, other):
    return plugin.memory is other.memory


@pytest.mark.parametrize("wrap", [lambda *assignors: list(assignors), tied], ids=["list", "tied"])
def test_the_list_of_one_consumer_and_no_other(wrap):
    """Also if the list is that of several consumers, and slices of it are those of others; and if one is listed with
    assignors of the client between."""
    pair = wrap(assignor("sticky"), assignor("range"))
    first, second = listed(*pair), listed(*pair)
    [only_new], [only_old] = listed(*pair[:1]), listed(*pair[1:])
    mixed = listed(pair[0], RangePartitionAssignor, assignor("roundrobin"))
    groups = [first, second, [only_new], [only_old], [mixed[0], mixed[2]]]
    assert all(shares(group[0], group[-1]) for group in groups)
    assert len({id(group[0].memory) for group in [*groups, pair]}) == len(groups) + 1


def test_a_consumer_that_could_not_be_made_shares_nothing():
    pair = [assignor("sticky"), assignor("range")]

    def fails():
        raise LookupError("no such assignor")
    with pytest.raises(LookupError):
        Consumer([*pair, fails], ["t"])
    first = listed(*pair)
    assert shares(*first) and len(first[0].consumer.listed) == 2


def test_consumers_of_several_threads_at_once():
    """Each thread creates consumers of lists of different lengths; no memory is that of two."""
    pair, made = [assignor("sticky"), assignor("range")], []

    def create(thread):
        for at in range(60):
            made.append(listed(*pair[at * thread % 2:]))
    threads = [Thread(target=create, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 240 and all(shares(one[0], one[-1]) for one in made)
    assert len({id(one[0].memory) for one in made}) == 240


@pytest.mark.parametrize("copied", [copy, lambda plugin: plugin(), lambda plugin: deepcopy(plugin)()],
                         ids=["copy", "call", "deep copy"])
def test_a_copy_remembers_nothing(copied):
    new, old = tied(assignor("sticky"), assignor("range"))
    received(old, [0, 1], 3)
    assert claims(new) == ([("t", 0), ("t", 1)], 3)
    another = copied(new)
    assert claims(another) == ([], -1)
    received(another, [5], 4)
    assert claims(new) == ([("t", 0), ("t", 1)], 3)


def test_what_cannot_be_tied():
    with pytest.raises(StrategyError, match=r"must be made by assignor of this package \(got .*tionAssignor"):
        tied(assignor("sticky"), RangePartitionAssignor)
    same = assignor("range")
    for twice in (same, same), (assignor("sticky"), assignor("kafka-sticky")):
        with pytest.raises(StrategyError, match="must have names of their own .got '(range|sticky)' twice"):
            tied(*twice)
    assert tied() == []


@pytest.mark.parametrize("elected", ["sticky", "range"])
def test_consumers_that_share_a_tied_list_are_told_and_others_are_not(elected, caplog):
    """Whichever is elected: a memory that is assigned something twice, while its consumer has not joined in between."""
    async def story():
        def consumers(make):
            pairs = [make(), make()]
            return {name: AioConsumer(pair[::-1] if elected == "range" else pair, {"t": 6})
                    for name, pair in zip("AB", pairs)}
        for make, told in (lambda: aio.tied(aio.assignor("sticky"), aio.assignor("range")), []), (
                lambda same=aio.tied(aio.assignor("sticky"), aio.assignor("range")): same, [SHARED]):
            group = consumers(make)
            for generation in 1, 2:
                await aio_round(group, generation)
            assert caplog.messages == told
    run_aio(story)
