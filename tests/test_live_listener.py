"""The listener in consumers of kafka-python and aiokafka, with the guide's callbacks, on a real broker.

Each partition has a state: the sum of its records, and the offset of the next one. A consumer loads it from a store
when it gets the partition, and saves it when it commits. Committed offsets belong to what is saved: a record that is
lost or consumed twice, or a state that is kept too long, contradicts the state at the next record.
"""
import asyncio
import json
import threading
from collections import Counter
from contextlib import asynccontextmanager, closing
from itertools import islice
from pathlib import Path

import pytest
from live_members import CONFIG, SECONDS, live_group, until

from kafka_assign.clients import StickyRebalanceListener, aio, assignor
from kafka_assign.assignors.registry import resolve

pytestmark = pytest.mark.needs("broker")

GUIDE = Path(__file__).resolve().parent.parent / "nbs" / "guides" / "live_consumers.ipynb"
PARTITIONS = 12


def guide(consumer):
    """The names that the guide's cell with the callbacks defines, for this consumer."""
    [code] = [source for cell in json.loads(GUIDE.read_text(encoding="utf-8"))["cells"]
              if "def commit_without_waiting(partitions):" in (source := "".join(cell["source"]))]
    names = {"consumer": consumer}
    exec("from kafka.structs import OffsetAndMetadata\n" + code, names)
    return names


class States:
    """The states that a consumer keeps, and the callbacks of its listener."""

    def __init__(self, store, next_offset):
        self.sums, self.next_offset, self.store = {}, next_offset, store

    def load(self, partitions):
        for one in partitions:
            assert one not in self.sums
            self.sums[one], self.next_offset[one] = self.store.get(one, (0, 0))

    def save(self, partitions):
        self.store.update({one: (self.sums[one], self.next_offset[one]) for one in partitions})

    def drop(self, partitions):
        for one in partitions:
            del self.sums[one], self.next_offset[one]

    def process(self, batches):
        for partition, records in batches.items():
            for record in records:
                assert record.offset == self.next_offset[partition], (partition, record.offset)
                self.sums[partition] += int(record.value)
                self.next_offset[partition] = record.offset + 1


class Member(threading.Thread):
    """A consumer that polls until it is told to stop; `seen` is what it owned, its sums and offsets after a poll."""

    def __init__(self, broker, topic, strategy, store, waits):
        from kafka import KafkaConsumer
        super().__init__(daemon=True)
        self.waits = waits
        self.consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap, group_id=topic, enable_auto_commit=False,
            partition_assignment_strategy=[assignor(strategy)], **{**CONFIG, "session_timeout_ms": 10_000})
        names, self.stop, self.seen, self.error = guide(self.consumer), threading.Event(), (set(), {}, {}), None
        self.states = States(store, names["next_offset"])

        async def commit(partitions):
            self.states.save(partitions)
            await names["commit"](partitions)

        def commit_without_waiting(partitions):
            self.states.save(partitions)
            names["commit_without_waiting"](partitions)
        self.last_commit = lambda: self.consumer.commit(names["offsets_of"](self.consumer.assignment()))
        self.listener = StickyRebalanceListener(
            protocol=resolve(strategy).protocol, commit=commit if waits else commit_without_waiting,
            clean_up=self.states.drop, initialize=self.states.load)
        self.consumer.subscribe([topic], listener=self.listener)
        self.start()

    def run(self):
        """Until told to stop; a member that is joining can commit nothing, so it does not stop then."""
        from kafka.coordinator.base import MemberState
        try:
            with self.listener, self.consumer:
                while not self.stop.is_set() or self.consumer.group_metadata().state is not MemberState.STABLE:
                    self.states.process(self.consumer.poll(100))
                    self.seen = self.consumer.assignment(), dict(self.states.sums), dict(self.states.next_offset)
                if not self.waits:
                    self.last_commit()
        except BaseException as error:
            self.error = error

    def end(self):
        self.stop.set()
        self.join(SECONDS)
        assert self.error is None and not self.states.sums


@pytest.mark.parametrize("strategy, records", [("cooperative-sticky", 10_000), ("sticky", 2_000)])
def test_states_are_true_and_only_those_of_what_is_owned(broker, strategy, records):
    """Two members, then four, then two, then four, while records arrive: at each rest all sums are the truth."""
    from kafka import KafkaProducer
    from kafka.structs import TopicPartition
    topic, store, truth, end = f"listener-{strategy}", {}, Counter(), Counter()
    with live_group(broker, topic, {topic: PARTITIONS}, []) as group, closing(
            KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
        members, numbers = [], iter(range(records))

        def send(count):
            for number in islice(numbers, count):
                place = TopicPartition(topic, number % PARTITIONS)
                producer.send(topic, b"%d" % number, partition=place.partition)
                truth[place] += number
                end[place] += 1
            producer.flush()

        def rest():
            """All members own as many partitions, and have processed all records of these."""
            def settled():
                for one in members:
                    if one.error:
                        raise one.error
                seen = [one.seen for one in members]
                return seen if all(len(owned) == PARTITIONS / len(members) and all(
                    offsets.get(place) == end[place] for place in owned) for owned, _, offsets in seen) and set().union(
                        *(owned for owned, *_ in seen)) == end.keys() else None
            for owned, sums, _ in until(settled, why=lambda: [(one.seen, one.listener.pending) for one in members]):
                assert sums == {place: truth[place] for place in owned}

        for change in (2, 2, -2, 2):
            members += [Member(broker, topic, strategy, store, waits=bool(at % 2)) for at in range(change)]
            send(records // 8)
            for one in members[change:] if change < 0 else ():
                one.end()
            members = members[:change] if change < 0 else members
            send(records // 8)
            rest()
        for one in members:
            one.end()
        assert sum(end.values()) == records and {place: saved for place, (saved, _) in store.items()} == truth
        [committed] = group.admin.list_group_offsets(topic).values()
        assert {place: found.offset for place, found in committed.items()} == end


def test_coroutines_commit_and_clean_up_in_aiokafka(broker):
    """b comes and goes. Its client tells the listener nothing when it stops, so the listener cleans up when it closes;
    a continues what b committed."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    topic, store, cleaned = "listener-aio", {}, []
    running = {}                                # name -> consumer and its states

    @asynccontextmanager
    async def member(name):
        consumer = AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap, group_id=topic, enable_auto_commit=False, heartbeat_interval_ms=200,
            partition_assignment_strategy=[aio.assignor("sticky")], auto_offset_reset="earliest")
        states = States(store, {})

        async def commit(partitions):
            states.save(partitions)
            await consumer.commit({one: states.next_offset[one] for one in partitions})

        async def clean_up(partitions):
            states.drop(partitions)
            cleaned.append((name, len(partitions)))
        async with StickyRebalanceListener(
                protocol="eager", commit=commit, clean_up=clean_up, initialize=states.load) as listener, consumer:
            consumer.subscribe([topic], listener=listener)
            running[name] = consumer, states
            yield
            await commit(running.pop(name)[0].assignment())

    async def rest(end, **sizes):
        def is_true(name, states):
            return len(states.sums) == sizes[name] and all(
                states.sums[place] == sum(range(offset)) and offset == end
                for place, offset in states.next_offset.items())
        while not all(is_true(name, states) for name, (_, states) in running.items()):
            for consumer, states in running.values():
                states.process(await consumer.getmany(timeout_ms=50))

    async def story():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer, member("a"):
            async def send(numbers):
                for number in numbers:
                    for partition in range(4):
                        await producer.send_and_wait(topic, b"%d" % number, partition=partition)
            await send(range(5))
            await rest(5, a=4)
            async with member("b"):
                await rest(5, a=2, b=2)
                await send(range(5, 9))
                await rest(9, a=2, b=2)
            await send(range(9, 12))
            await rest(12, a=4)
        assert cleaned == [("a", 2), ("b", 2), ("a", 4)]

    with live_group(broker, topic, {topic: 4}, []):
        asyncio.run(asyncio.wait_for(story(), SECONDS))
