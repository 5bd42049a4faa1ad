"""Classic groups move to the new protocol on a real broker, member by member, as `migration` says."""
from collections import Counter
from contextlib import closing, contextmanager
from functools import partial

import pytest
from live_members import live_group, until
from test_live_confluent import consumer_of
from test_live_mixed import JavaMembers

from kafka_assign import assign, migration
from kafka_assign.assignors.registry import resolve
from kafka_assign.clients import assignor
from kafka_assign.clients.cluster import CaptureError, capture
from kafka_assign.life.rolling import restart_in_turn

pytestmark = [pytest.mark.needs("broker"), pytest.mark.needs("jdk")]


@contextmanager
def java_members(broker):
    """Java members in a JVM of their own, which may fail."""
    members = JavaMembers(broker.bootstrap)
    try:
        yield members
    finally:
        members.process.stdin.close()
        members.process.wait()
        members.reader.join()
        members.process.stdout.close()


def java_joins(java, group, name, topics, assignor="RangeAssignor"):
    print("join", name, group, ",".join(topics), assignor, file=java.process.stdin)


def captured(broker, name, clients, poll=lambda: None):
    """A group once it is at rest with members of these client ids; `poll` is called meanwhile."""
    def ask():
        poll()
        found = capture(broker.bootstrap, [name])[name]
        here = sorted(one.client_id for one in found.details)
        moving = any(note.kind == "target-not-reached" for note in found.notes)
        at_rest = found.state == "Stable" and not moving and (found.previous >= 0).all()
        return here == sorted(clients) and at_rest and found
    return until(ask, CaptureError)


def owners(group):
    """The client id that owns each partition."""
    return [group.details[owner].client_id for owner in group.previous.tolist()]


def compared(group, before, expected):
    """How many partitions changed hands; loads and the number of kept ones must be those of the `expected` answer."""
    loads = sorted(Counter(owners(group)).values())
    kept = sum(map(str.__eq__, owners(before), owners(group)))
    assert (loads, kept) == (sorted(filter(None, expected.loads.tolist())), int(expected.kept.sum()))
    return len(owners(group)) - kept


def restarted(broker, group, client, topics, leave, join, poll=lambda: None):
    """The group after a member has left and is back with the new protocol, and how many partitions changed hands."""
    others = [one.client_id for one in group.details if one.client_id != client]
    [member] = [one.id for one in group.details if one.client_id == client]
    leave(client)
    left = captured(broker, group.name, others, poll)
    moved = compared(left, group, assign(group.leave(member), "uniform" if group.type == "consumer" else "range"))
    join(client)
    back = captured(broker, group.name, [*others, client], poll)
    assert back.type == "consumer"
    return back, moved + compared(back, left, assign(left.join(f"{client}-new", topics), "uniform"))


def test_members_of_three_clients_move_one_by_one(broker):
    """Those of Java and librdkafka move; one of kafka-python stays classic, and the broker assigns it, too. When the
    others have left, the group is classic again."""
    name, topics = "migrate-mixed", {"migrate-x": 7, "migrate-y": 5}
    java_id, python_id, native_id = "consumer-migrate-mixed-1", "kafka-python-3.0.12", "rdkafka"
    native = []

    def poll():
        for one in native:
            one.poll(0.02)

    def native_consumer(client):
        from confluent_kafka import Consumer, KafkaException
        with pytest.raises(KafkaException, match="session.timeout.ms"):     # as the reasons say
            consumer_of(broker, name, client, **{"group.protocol": "consumer"})
        return Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name, "client.id": client,
                         "group.protocol": "consumer", "topic.metadata.refresh.interval.ms": 500})

    def join(client, protocol="consumer"):
        if client == java_id:
            java_joins(java, name, client, topics, {"consumer": "consumer"}.get(protocol, "RangeAssignor"))
        elif client == python_id:
            group.join(client)
        else:
            native.append(native_consumer(client) if protocol == "consumer" else consumer_of(broker, name, client))
            native[0].subscribe([*topics])

    def leave(client):
        if client == java_id:
            java.leave(client)
        elif client == python_id:
            group.leave(client)
        else:
            native.pop().close()
    with java_members(broker) as java, live_group(broker, name, topics, [partial(assignor, "range")]) as group:
        clients = [java_id, python_id, native_id]
        for client in clients:
            join(client, "classic")
        now = captured(broker, name, clients, poll)
        found = migration(now)
        assert found.possible == "online"
        assert any("is not supported yet by kafka-python" in reason for reason in found.reasons)
        sums = []
        for client in clients:
            now, moved = restarted(broker, now, client, topics, leave, join, poll)
            sums.append(moved)
        assert found.restarts is None                   # several libraries: which `range` the leader has is not known
        expected = restart_in_turn(found.group, found.group.members, resolve("uniform"), before=resolve("range"))
        assert [one.client_id for one in found.group.details] == clients and sum(sums) == expected.moved
        assert migration(now).possible == "done"
        leave(java_id)
        leave(native_id)
        assert captured(broker, name, [python_id]).type == "classic"


def test_members_with_differing_subscriptions_move_one_by_one(broker):
    name, topics = "migrate-differing", {"migrate-p": 6, "migrate-q": 4, "migrate-r": 4}
    names = [*topics]
    subscriptions = {"a": names[:2], "b": names[1:], "c": names}
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
        admin.create_topics([NewTopic(topic, count, 1) for topic, count in topics.items()])
    with java_members(broker) as java:
        for client, some in subscriptions.items():
            java_joins(java, name, client, some)
        now = captured(broker, name, subscriptions)
        assert migration(now).possible == "online"
        for client, some in subscriptions.items():
            now, _ = restarted(broker, now, client, some, java.leave, lambda client, some=some: java_joins(
                java, name, client, some, "consumer"))
        java.leave(*subscriptions)


def test_a_stream_join_is_refused_until_all_members_have_stopped(broker):
    """Its assignments carry user data. After the stop, a member with the new protocol gets all partitions."""
    name, topics = "migrate-join", {"migrate-s": 4, "migrate-t": 4}
    strategy = partial(assignor, "stream-join-sticky")
    with java_members(broker) as java, live_group(broker, name, topics, [strategy]) as group:
        group.join("a")
        found = migration(captured(broker, name, "a"))
        assert found.possible == "after a stop"
        java_joins(java, name, "b", topics, "consumer")
        [line] = until(lambda: [line for line in java.lines if line.startswith("b failed ")])
        assert "GroupIdNotFoundException" in line and "custom assignor" in line
        assert captured(broker, name, "a").type == "classic"
        group.leave("a")
        java_joins(java, name, "c", topics, "consumer")
        now = captured(broker, name, "c")
        assert now.type == "consumer"
        java.leave("c")
