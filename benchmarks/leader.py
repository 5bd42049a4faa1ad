"""What an assignor costs the leader of a group in kafka-python.

Ours (`kafka_assign.clients.assignor`) and kafka-python's own sticky assignor take the members as its coordinator passes
them on, decode their user data and assign; then the assignments are encoded. What the coordinator needs before, to
decode the subscriptions, is beside it. Java's `StickyAssignor` does the same, and its share includes the subscriptions.
CPU times of a call, without garbage collectors: ours and Java's are medians when they are warm, kafka-python's is one
call, stopped after 20 seconds, and Java is stopped after 60. What is asked is asked of the last size.

    python benchmarks/leader.py [members partitions]
"""
import gc
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent))

from clock import cpu, verdict, warm
from families import Arrays, arrays, events
from grid import as_dictionaries, milliseconds, sticky
from java_sticky import java_sticky
from python_sticky import kafka_python_members, seconds_within
from record import record

from kafka_assign.clients import assignor
from kafka_assign.protocol.wire import Claims, Subscription, encode_sticky, encode_subscription

SIZES = [(100, 2_000), (2_000, 100_000)]
FAMILIES = "HOMOGENEOUS", "RANDOM50"
TOPICS, GENERATION, TIMES, MOST_SECONDS = 100, 1, 7, 20
EVENTS = "FULL", "JOIN_ONE", "LEAVE_ONE"
LEAST = {"kafka-python": 10, "Java": 1}                # times our time
TABLE = "{:13}{:11}{:>8}{:>10}{:>14}{:>10}{:>11}{:>10}".format


def our_bytes(of: Arrays) -> list[tuple[str, bytes]]:
    "What members with our assignor send, by member id."
    _, topics, owned = as_dictionaries(of)
    data = {name: encode_sticky(Claims(owned[name], GENERATION)) if owned[name] else None for name in of.members}
    return [(name, encode_subscription(Subscription(topics[name], data[name], (), GENERATION))) for name in of.members]


def decoded(sent: list[tuple[str, bytes]]) -> list[SimpleNamespace]:
    "The members as kafka-python's coordinator passes them to the assignor of the leader."
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
    return [SimpleNamespace(member_id=name, group_instance_id=None, metadata=ConsumerProtocolSubscription.decode(data))
            for name, data in sent]


def led(one: object, of: Arrays, members: list[SimpleNamespace]) -> dict[str, bytes]:
    "What the leader sends to the members if it has this assignor."
    counts = dict(zip(of.topics, of.partitions.tolist()))
    cluster = SimpleNamespace(topics=lambda: set(counts), brokers=lambda: (),
                              partitions_for_topic=lambda topic: set(range(counts[topic])))
    answers = one.assign(cluster, members)
    return {name: answer if isinstance(answer, bytes) else answer.encode() for name, answer in answers.items()}


def ours(of: Arrays) -> tuple[float, float]:
    "CPU seconds of our assignor's share, and of decoding the subscriptions."
    sent, one = our_bytes(of), assignor("sticky")
    gc.disable()
    call = partial(led, one, of, decoded(sent))
    warm(call, seconds=5)
    taken = cpu(call, TIMES), cpu(lambda: decoded(sent), TIMES)
    gc.enable()
    return taken


def theirs(of: Arrays) -> float:
    "The same of kafka-python's own sticky assignor, `MOST_SECONDS` if it was stopped."
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    return seconds_within(MOST_SECONDS, partial(led, StickyPartitionAssignor(), of, kafka_python_members(of)))


def report(members: int, partitions: int) -> list[dict]:
    "Print a line for each event at one size, and return them as rows."
    print(f"\n{members:,} members, {partitions:,} partitions of {TOPICS} topics; CPU ms")
    print(TABLE("family", "event", "ours", "decoding", "kafka-python", "/ ours", "Java", "/ ours"))
    rows = []
    for family in FAMILIES:
        full = arrays(family, partitions, members, TOPICS)._replace(lag=None)
        for event, of in events(full, sticky):
            if event in EVENTS:
                (taken, decoding), python, java, cells = ours(of), theirs(of), java_sticky(of, "bytes"), []
                for who, seconds, stopped in (("kafka-python", python, python == MOST_SECONDS),
                                              ("Java", java.seconds, java.owner is None)):
                    mark = ">" if stopped else ""
                    cells += [milliseconds(seconds, mark), f"{mark}{seconds / taken:.1f}"]
                print(TABLE(family, event, milliseconds(taken), milliseconds(decoding), *cells), flush=True)
                rows.append({"members": members, "partitions": partitions, "family": family, "event": event,
                             "ours": taken, "decoding": decoding, "kafka-python": python, "Java": java.seconds,
                             "kafka-python stopped": python == MOST_SECONDS, "Java stopped": java.owner is None})
    return rows


if __name__ == "__main__":
    chosen = [int(text) for text in sys.argv[1:]]
    sizes = [report(*size) for size in ([tuple(chosen)] if chosen else SIZES)]
    record("leader", sum(sizes, []))
    for who, asked in LEAST.items():
        ratio = min(row[who] / row["ours"] for row in sizes[-1])
        print(f"{who}: at least {ratio:.1f} times ours (asked: {asked}, {verdict(ratio >= asked)})")
