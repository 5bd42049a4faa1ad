"""kafka-python's sticky assignor beside ours, for groups that are small enough."""
import signal
import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from families import Arrays

MOST_SECONDS = 10


def kafka_python_members(of: Arrays) -> list[SimpleNamespace]:
    "The members as kafka-python hands them to an assignor, user data of the sticky one included."
    from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
    names, previous = np.array(of.topics, object), of.previous
    topic = np.repeat(np.arange(len(of.topics)), of.partitions)
    number = np.arange(len(topic)) - (np.cumsum(of.partitions) - of.partitions)[topic]
    members = []
    for place, (member, reads) in enumerate(zip(of.members, of.subscriptions)):
        mine = np.flatnonzero(previous == place) if previous is not None else np.zeros(0, int)
        owned = [(of.topics[t], number[mine[topic[mine] == t]].tolist()) for t in np.unique(topic[mine])]
        data = StickyAssignorUserData(owned, 1).encode() if owned else b""
        subscription = ConsumerProtocolSubscription(topics=names[reads].tolist(), user_data=data, owned_partitions=[])
        members.append(SimpleNamespace(member_id=member, group_instance_id=None, metadata=subscription))
    return members


def _stop(number, frame):
    raise TimeoutError


def seconds_within(most: float, call: Callable) -> float:
    "CPU seconds of a call; `most` if it was stopped after as many."
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, most)
    begin = time.process_time()
    try:
        call()
        return time.process_time() - begin
    except TimeoutError:
        return most
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def kafka_python_sticky(of: Arrays) -> float:
    "CPU seconds of one call, names and tuples included; `MOST_SECONDS` if it was stopped after as many."
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    counts = dict(zip(of.topics, of.partitions.tolist()))
    cluster = SimpleNamespace(topics=lambda: set(counts), partitions_for_topic=lambda topic: set(range(counts[topic])))
    members, assignor = kafka_python_members(of), StickyPartitionAssignor()
    return seconds_within(MOST_SECONDS, lambda: assignor.assign(cluster, members))
