"""A running group changes its assignor without a shuffle, on a real broker: Python consumers that list ours of both.

One member lists range alone, the client's own. When it leaves, the group changes, and the others keep what they had;
one that comes and goes later makes the group fall back and return. Ours lead.
"""
import asyncio
from contextlib import AsyncExitStack, ExitStack
from functools import partial

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor
from live_members import SECONDS, live_group
from test_live_mixed import JavaMembers

from kafka_assign.clients import aio, assignor

pytestmark = pytest.mark.needs("broker")
CHANGES = ["sticky", "stream-join-sticky", "cooperative-sticky"]


def topics_of(prefix):
    """Two topics: where one has ten partitions, the other one has, so that they can be joined."""
    return {f"{prefix}-t": 10, f"{prefix}-u": 10}


def kept(held, after, names):
    """Whether each of these members still has all that it had."""
    return all(held[name] <= after[name] for name in names)


def test_members_of_kafka_python_keep_what_they_had_when_the_group_changes(broker):
    """Dynamic and static members; without a shared memory, about half of the partitions move."""
    with ExitStack() as stack:
        groups = {}
        for name in [*CHANGES, "static"]:
            new = "sticky" if name == "static" else name
            lists = [partial(assignor, new), partial(assignor, "range")]
            groups[name] = stack.enter_context(live_group(
                broker, f"tied-{name}", topics_of(f"tied-{name}"), lists))
        for name, group in groups.items():
            for member in "abc":
                group.join(member, **{"group_instance_id": member} if name == "static" else {})
        for _ in range(2):
            held = {}
            for name, group in groups.items():      # the client's own loses members in a group that is half static
                old = partial(assignor, "range") if name == "static" else RangePartitionAssignor
                group.join("old", assignors=[old])
            for name, group in groups.items():
                state = group.settled()
                assert state.protocol == "range"
                held[name] = state.owned
            for group in groups.values():
                group.leave("old")
            for name, group in groups.items():
                state = group.settled()
                assert state.protocol == ("sticky" if name == "static" else name)
                assert kept(held[name], state.owned, "abc")


def test_all_members_of_kafka_python_restart_twice(broker):
    """The whole way from the client's own range to `cooperative-sticky`, member by member: those that stay when the
    last old one leaves keep all, and in the second restart, so do all others."""
    lists = [[partial(assignor, "cooperative-sticky"), partial(assignor, "range")],
             [partial(assignor, "cooperative-sticky")]]
    with live_group(broker, "tied-twice", topics_of("tied-twice"), [RangePartitionAssignor]) as group:
        group.join(*"abc")
        group.settled()
        for assignors in lists:
            for name in "abc":
                before = group.settled()
                group.leave(name)
                left = group.settled()
                if left.protocol == "cooperative-sticky":
                    assert kept(before.owned, left.owned, left.owned)
                group.join(name, assignors=assignors)
        assert group.settled().protocol == "cooperative-sticky"


@pytest.mark.needs("jdk")
def test_members_of_kafka_python_keep_what_they_had_beside_a_java_member(broker):
    """The Java member claims nothing when the group changes: its assignors share no memory."""
    java = JavaMembers(broker.bootstrap)
    try:
        with live_group(broker, "tied-java", topics_of("tied-java"),
                        [partial(assignor, "sticky"), partial(assignor, "range")]) as group:
            group.join("a")
            group.settled()
            classes = "StickyAssignor,RangeAssignor"
            print("join", "java", group.name, ",".join(group.topics), classes, file=java.process.stdin, flush=True)
            group.join("b", "c")
            for _ in range(2):
                group.join("old", assignors=[RangePartitionAssignor])
                held = group.settled("java")
                assert (held.protocol, held.leader) == ("range", "a")
                group.leave("old")
                after = group.settled("java")
                assert (after.protocol, after.leader) == ("sticky", "a")
                assert kept(held.owned, after.owned, "abc")
            java.leave("java")
    finally:
        java.end()


def test_members_of_aiokafka_keep_what_they_had_when_the_group_changes(broker):
    """c joins while the group runs range: aiokafka first asks with the first assignor of its list alone."""
    from aiokafka import AIOKafkaConsumer

    async def run(group):
        async with AsyncExitStack() as stack:
            async def join(*names):
                for name in names:
                    consumer = AIOKafkaConsumer(
                        *group.topics, bootstrap_servers=broker.bootstrap, group_id=group.name, client_id=name,
                        partition_assignment_strategy=aio.tied(aio.assignor("sticky"), aio.assignor("range")),
                        heartbeat_interval_ms=200, session_timeout_ms=6000)
                    await consumer.start()
                    stack.push_async_callback(consumer.stop)
            await join("a", "b")
            for newcomers in "c", "":
                group.join("old", assignors=[RangePartitionAssignor])
                await asyncio.to_thread(group.settled, *"ab", *("" if newcomers else "c"))
                await join(*newcomers)
                held = await asyncio.to_thread(group.settled, *"abc")
                assert held.protocol == "range"
                await asyncio.to_thread(group.leave, "old")
                after = await asyncio.to_thread(group.settled, *"abc")
                assert after.protocol == "sticky" and kept(held.owned, after.owned, "abc")

    with live_group(broker, "tied-aio", topics_of("tied-aio"), []) as group:
        asyncio.run(asyncio.wait_for(run(group), 2 * SECONDS))
