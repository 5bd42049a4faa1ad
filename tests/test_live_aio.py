"""Consumers of aiokafka in one process, with our assignors, on a real broker."""
import asyncio
from contextlib import AsyncExitStack

import pytest
from live_members import SECONDS, live_group

from kafka_assign.clients.aio import assignor
from kafka_assign.protocol.wire import decode_assignment, decode_sticky, decode_subscription

pytestmark = pytest.mark.needs("broker")


def claimed(state):
    """What the members claimed when they joined, by client id: partitions and the generation."""
    claims = {state.names[one]: decode_sticky(decode_subscription(data).user_data)
              for one, (_, data) in state.joined.items()}
    return {name: (frozenset(map(tuple, claim.owned)), claim.generation) for name, claim in claims.items()}


def test_two_consumers_in_one_process_keep_separate_state_and_send_their_generation(broker):
    """State that they share, as with aiokafka's own sticky assignor, shows as claims of the other one's partitions; a
    generation that is not theirs, as claims of another rebalance than the last."""
    from aiokafka import AIOKafkaConsumer

    async def run(group):
        async with AsyncExitStack() as stack:
            consumers = {}

            async def join(name):
                consumer = AIOKafkaConsumer(
                    *group.topics, bootstrap_servers=broker.bootstrap, group_id=group.name, client_id=name,
                    partition_assignment_strategy=[assignor("sticky")], heartbeat_interval_ms=200,
                    session_timeout_ms=6000)
                consumers[name] = consumer
                await consumer.start()
                stack.push_async_callback(consumer.stop)

            async def settled():
                """The group at rest, as the coordinator and the consumers say, and its generation."""
                while True:
                    state = await asyncio.to_thread(group.settled, *consumers)
                    known = {name: frozenset(map(tuple, one.assignment())) for name, one in consumers.items()}
                    generations = {one._coordinator.generation for one in consumers.values()}
                    if known == state.owned and len(generations) == 1:
                        return state, *generations
                    await asyncio.sleep(0.05)
            await join("a")
            first, generation = await settled()
            await join("b")
            second, after = await settled()
            assert claimed(second) == {"a": (first.owned["a"], generation), "b": (frozenset(), -1)}
            assert after > generation and sorted(map(len, second.owned.values())) == [3, 3]
            assert second.owned["a"] < first.owned["a"]
            await join("c")
            third, _ = await settled()
            assert claimed(third) == {**{name: (second.owned[name], after) for name in "ab"}, "c": (frozenset(), -1)}
            assert all(third.owned[name] < second.owned[name] for name in "ab")
            assert sorted(map(len, third.owned.values())) == [2, 2, 2]
            answers = {third.names[one]: decode_assignment(data).assigned for one, data in third.answers.items()}
            assert {name: frozenset(map(tuple, some)) for name, some in answers.items()} == third.owned

    with live_group(broker, "aio", {"aio": 6}, []) as group:
        asyncio.run(asyncio.wait_for(run(group), 2 * SECONDS))
