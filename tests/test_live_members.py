"""The live groups of the tests, in all that can happen to them: what they report is what happened."""
import os
import subprocess
import sys
from contextlib import closing
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest
from live_members import SECONDS, live_group, until

from kafka_assign import lead
from kafka_assign.clients import assignor
from kafka_assign.protocol.wire import decode_assignment

pytestmark = pytest.mark.needs("broker")

HERE = Path(__file__).resolve().parent
RANGE = [partial(assignor, "range")]


def sizes(state):
    return {name: len(owned) for name, owned in state.owned.items()}


def send(broker, topic, count):
    """Send records with the keys 0 to count - 1, and wait until the broker has them."""
    from kafka import KafkaProducer
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
        for future in [producer.send(topic, key=str(number).encode()) for number in range(count)]:
            future.get(SECONDS)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_settled_group_is_what_range_makes_of_its_members(broker):
    """Members join, change what they subscribe to, leave, die and freeze, and a topic grows."""
    with live_group(broker, "l-range", {"l-r": 6, "l-s": 2}, RANGE) as group:
        def settled(**expected):
            state = group.settled()
            assert sizes(state) == expected and state.protocol == "range"
            answers = lead("range", state.joined, state.topics)
            assert {state.names[one]: frozenset(decode_assignment(data).assigned) for one, data in answers.items()} == (
                state.owned)
            assert {state.names[one]: frozenset(decode_assignment(data).assigned)
                    for one, data in state.answers.items()} == state.owned
            return state
        group.join("a", "b")
        group.join("s", topics=["l-r"])
        first = settled(a=3, b=3, s=2)
        group["s"].call("subscribe", ["l-r", "l-s"])
        second = settled(a=3, b=3, s=2)
        assert second.generation > first.generation and second.leader in ("a", "b", "s")
        group.admin.create_partitions({"l-s": 4})
        settled(a=4, b=3, s=3)
        group.leave("a")
        assert [event for event in group.gone[0].events if event[0] != "membership"][-2:] == [
            ("revoked", group.gone[0].membership.partitions), ("ended", None)]
        settled(b=5, s=5)
        group.join("c")
        third = settled(b=4, c=3, s=3)
        group.kill("b")
        group.freeze("c")
        alone = settled(s=10)
        assert alone.leader == "s" and group["c"].membership.generation == third.generation
        assert not group.gone[1].of("ended")
        group.thaw("c")
        settled(c=5, s=5)
        assert group["c"].of("lost") == [third.owned["c"]]
        running = [member.process.pid for member in group.members.values()]
        assert all(map(is_running, running))
    assert not any(map(is_running, running))


def test_records_are_reported_with_the_generation_in_which_they_were_delivered(broker):
    """Each record is delivered once in a generation, in order, by the member that owns its partition then."""
    from kafka import TopicPartition
    with live_group(broker, "l-records", {"l-t": 4}, [partial(assignor, "cooperative-sticky")]) as group:
        group.join("a")
        group.settled()
        send(broker, "l-t", 200)
        group.join("b")
        group.settled()
        send(broker, "l-t", 200)

        def delivered():
            return {(batch.topic, batch.partition, offset): key for name in "ab" for batch in group[name].of("records")
                    for offset, key in zip(batch.offsets, batch.keys)}
        keys = until(lambda: (found := delivered()) and len(found) == 400 and found).values()
        assert sorted(keys, key=int) == sorted([str(number).encode() for number in range(200)] * 2, key=int)
        for name in "ab":
            owned = {mine.generation: mine.partitions for mine in group[name].of("membership")}
            batches = [batch for batch in group[name].of("records") if batch.generation >= 0]
            assert batches and all((batch.topic, batch.partition) in owned[batch.generation] for batch in batches)
            for _, some in groupby(sorted(batches, key=lambda batch: batch.partition), lambda batch: batch.partition):
                offsets = [offset for batch in some for offset in batch.offsets]
                assert offsets == sorted(set(offsets))
        topic, number = min(group["a"].membership.partitions)
        assert group["a"].call("position", TopicPartition(topic, number)) == 1 + max(
            offset for _, place, offset in delivered() if place == number)


def test_a_static_member_comes_back_without_a_rebalance(broker):
    with live_group(broker, "l-static", {"l-c": 3}, RANGE) as group:
        for name in "ab":
            group.join(name, group_instance_id=name, session_timeout_ms=20_000)
        before = group.settled()
        assert sorted(instance for instance, _ in before.joined.values()) == ["a", "b"]
        follower = "a" if before.leader == "b" else "b"
        group.kill(follower)
        group.join(follower, group_instance_id=follower)
        after = group.settled()
        assert after.owned == before.owned and after.generation == before.generation and after.names != before.names


def test_a_member_without_a_common_protocol_ends_with_its_error(broker):
    with live_group(broker, "l-protocols", {"l-p": 2}, RANGE) as group:
        group.join("a")
        group.settled()
        group.join("b", assignors=[partial(assignor, "roundrobin")])
        until(lambda: group["b"].of("ended"))
        assert group["b"].of("ended")[0].startswith("InconsistentGroupProtocolError")
        with pytest.raises(AssertionError, match="b ended: .'Inconsistent"):
            group.settled()


PROGRAM = """
import sys
from types import SimpleNamespace
from functools import partial
from kafka_assign.clients import assignor
from live_members import live_group

if __name__ == "__main__":
    broker = SimpleNamespace(bootstrap=sys.argv[1])
    with live_group(broker, "l-orphans", {"l-o": 2}, [partial(assignor, "range")]) as group:
        group.join("a")
        group.settled()
        print(group["a"].process.pid, flush=True)
        sys.stdin.read()
"""


def test_members_end_with_their_test(broker, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    starter = subprocess.Popen(
        [sys.executable, tmp_path / "program.py", broker.bootstrap], env={**os.environ, "PYTHONPATH": str(HERE)},
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        member = int(starter.stdout.readline())
        assert is_running(member)
        starter.kill()
        until(lambda: not is_running(member))
    finally:
        starter.kill()
        starter.communicate()
