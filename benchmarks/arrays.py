"""What the simple strategies cost on one large group, from arrays to the owner column.

The floor is what nobody can go below: count a sorted owner column and copy it. Beside it, at a size that they
finish, the assignors of kafka-python. CPU, medians of five, everything in one run.

    python benchmarks/arrays.py [partitions]
"""
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from clock import cpu, floor
from families import SHAPES, arrays
from record import record

from kafka_assign import Group, assign

STRATEGIES = {"range": 60, "roundrobin": 60, "lag": 60, "fair": 600}
LEAST_GAIN = 50


def from_arrays(shape, partitions, members, topics, least):
    """Each strategy beside the floor, as rows; what is asked holds for equal subscriptions."""
    of, rows = arrays(shape, partitions, members, topics), []
    made = cpu(lambda: Group.from_arrays(*of))
    for name, most in STRATEGIES.items():
        taken = cpu(lambda: assign(Group.from_arrays(*of), name).owner)
        ratio = taken / least
        asked = f"(asked: {most}){'' if ratio <= most else '  MISSED'}" if shape == "HOMOGENEOUS" else ""
        print(f"{shape:13} {name:11} {taken * 1e3:8.1f} ms {ratio:7.1f} x the floor {asked:20} "
              f"of it making the group {made * 1e3:.1f} ms")
        rows.append({"subscriptions": shape, "strategy": name, "ours": taken, "floor": least})
    return rows


def kafka_python(name, of):
    """What kafka-python needs for the same group, names and tuples included."""
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
    counts = dict(zip(of.topics, of.partitions.tolist()))
    cluster = SimpleNamespace(partitions_for_topic=lambda topic: set(range(counts[topic])))
    topics = np.array(of.topics, object)
    members = [SimpleNamespace(member_id=member, group_instance_id=None, metadata=ConsumerProtocolSubscription(
        topics=topics[reads].tolist(), user_data=b"", owned_partitions=[]))
        for member, reads in zip(of.members, of.subscriptions)]
    assignor = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}[name]()
    return cpu(lambda: assignor.assign(cluster, members), 3)


def beside_kafka_python(partitions=100_000, members=2_000, topics=500):
    """Range and round robin beside kafka-python's, as rows."""
    of, rows = arrays("HOMOGENEOUS", partitions, members, topics), []
    for name in ("range", "roundrobin"):
        ours, theirs = cpu(lambda: assign(Group.from_arrays(*of), name).owner), kafka_python(name, of)
        missed = "" if theirs >= LEAST_GAIN * ours else "  MISSED"
        print(f"{partitions:,} partitions, {members:,} members, {name}: {ours * 1e3:.2f} ms, "
              f"kafka-python {theirs * 1e3:.1f} ms: {theirs / ours:.0f} x (asked: {LEAST_GAIN}){missed}")
        rows.append({"strategy": name, "partitions": partitions, "ours": ours, "kafka-python": theirs})
    return rows


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    least = floor(size, 2000)
    print(f"{size:,} partitions, 2,000 members, 500 topics; floor {least * 1e3:.2f} ms")
    record("arrays", [row for shape in SHAPES for row in from_arrays(shape, size, 2000, 500, least)])
    record("arrays beside kafka-python", beside_kafka_python())
