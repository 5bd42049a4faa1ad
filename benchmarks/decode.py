"""User data of the sticky assignor decoded into columns: 2,000 members that own a million partitions.

What is measured is what `Group.decode_claims` does between the bytes and the columns of claims: a member, a topic and
a partition for each claim, and a generation for each member. The floor reads every byte once and writes it as a number
of four bytes. Beside them all of `decode_claims`, which also applies the claims and makes the members. CPU, medians,
everything in one run.

    python benchmarks/decode.py [partitions]
"""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from clock import cpu, verdict, warm
from record import record

from kafka_assign import Group, Member
from kafka_assign.groups.inputs import coded_claims
from kafka_assign.groups.members import decoded_members
from kafka_assign.protocol.wire import Claims, TopicPartitions, encode_sticky

MEMBERS, TOPICS, GENERATION, TIMES = 2_000, 100, 7, 15
TOPICS_OF_MEMBER = (1, 10, 100)
MOST = 25                                              # times the floor, with ten topics per member


def group_of(partitions: int, topics_of_member: int) -> Group:
    "Members that send their claims as user data: each has as many partitions of each of its topics, next in turn."
    names = [f"topic-{topic:03}" for topic in range(TOPICS)]
    each = partitions // MEMBERS // topics_of_member
    counts, members = np.zeros(TOPICS, np.int64), []
    for member in range(MEMBERS):
        topics = [(member * topics_of_member + i) % TOPICS for i in range(topics_of_member)]
        mine = [names[topic] for topic in topics]
        numbers = (counts[topics][:, None] + np.arange(each)).ravel().astype(np.int32)
        data = encode_sticky(Claims(TopicPartitions(mine, [each] * len(mine), numbers), GENERATION))
        members.append(Member(f"member-{member:04}", mine, user_data=data))
        counts[topics] += each
    return Group(dict(zip(names, counts.tolist())), members)


def read_bytes(data: bytes) -> np.ndarray:
    "Every byte as a number of four bytes."
    return np.frombuffer(data, "u1").astype("i4")


def anew(group: Group) -> Group:
    "The group with its claims decoded, although they were decoded before."
    return group.replace(name="again").decode_claims("sticky")


def report(partitions: int, topics_of_member: int) -> dict:
    "Print a line for one number of topics per member, and return it as a row."
    group = group_of(partitions, topics_of_member)
    data = b"".join(member.user_data for member in group.details)

    def decode():
        return coded_claims(decoded_members(group.details, "sticky")[0], group.index)
    decoded = anew(group)
    assert len(decode().member) == group.columns.size == (decoded.previous >= 0).sum()
    assert {member.generation for member in decoded.details} == {GENERATION}
    warm(decode, 5)
    least, taken, whole = cpu(lambda: read_bytes(data), TIMES), cpu(decode, TIMES), cpu(lambda: anew(group))
    ratio = taken / least
    asked = f"  (asked: {MOST}, {verdict(ratio <= MOST)})" if topics_of_member == 10 else ""
    print(f"{topics_of_member:4} topics per member, {len(data):,} bytes: floor {least * 1e3:5.2f} ms, decoded "
          f"{taken * 1e3:6.1f} ms = {ratio:5.1f} x the floor; decode_claims {whole * 1e3:6.1f} ms{asked}")
    return {"topics of a member": topics_of_member, "partitions": partitions, "floor": least, "decoded": taken,
            "decode_claims": whole}


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{size:,} partitions, {MEMBERS:,} members, {TOPICS} topics")
    record("decode", [report(size, some) for some in TOPICS_OF_MEMBER])
