"""Java members change their assignor in two rolling restarts, event by event as `LiveGroup` foretells.

The switch itself, with members of other clients, is in `test_live_switches.py`; here are the restarts around it.
"""
from contextlib import closing

import pytest
from live_members import until
from test_live_migration import captured, java_members

from kafka_assign import LiveGroup, Member
from kafka_assign.assignors.memory import reported_name

pytestmark = [pytest.mark.needs("broker"), pytest.mark.needs("jdk")]

JAVA = {"range": "RangeAssignor", "kafka-sticky": "StickyAssignor",
        "kafka-cooperative-sticky": "CooperativeStickyAssignor"}
COUNTS = {"w": 4, "x": 4, "y": 4, "z": 4}


class Watched:
    """A group of Java members, and the live group that foretells what becomes of it."""

    def __init__(self, java, broker, name, static):
        self.java, self.broker, self.name = java, broker, name
        self.topics = {f"{name}-{topic}": count for topic, count in COUNTS.items()}
        clients = [f"{name}-{number}" for number in range(3)]
        self.instances = {client: client if static else None for client in clients}
        members = [Member(client, self.topics, instance_id=instance)
                   for client, instance in self.instances.items()]
        self.foretold, self.moves = LiveGroup("range", self.topics, members), []
        for client in self.instances:
            self.start(client, ["range"])
        self.check()

    def join(self, client, listed):
        """A further static member."""
        self.instances[client] = client
        self.foretold.join([Member(client, self.topics, instance_id=client)], strategies=listed)
        self.start(client, listed)
        self.check()

    def start(self, client, listed):
        classes = ",".join(JAVA[name] for name in listed)
        words = ["join", client, self.name, ",".join(self.topics), classes]
        if self.instances[client] is not None:
            words.append(self.instances[client])
        print(*words, file=self.java.process.stdin)

    def stop(self, client):
        left = f"{client} left\n"
        times = self.java.lines.count(left)
        print("leave", client, file=self.java.process.stdin)
        until(lambda: self.java.lines.count(left) > times)

    def check(self, former=None):
        """Wait until the group is as foretold, at rest, and no member has its `former` id."""
        def as_foretold():
            group = captured(self.broker, self.name, [*self.foretold])
            ids = {member.client_id: member.id for member in group.details}
            owned = {member.client_id: sorted(member.owned) for member in group.details}
            happened = group.strategy, owned
            return (former not in ids.values() and happened == expected) and ids
        live = self.foretold
        expected = reported_name(live.strategy), {client: live[client] for client in live}
        self.ids = until(as_foretold)

    def bounce(self, listed):
        for client, instance in self.instances.items():
            former = self.ids[client]
            self.stop(client)
            if instance is None:
                self.moves.append(len(self.foretold.leave(client).moved))
                self.check()
                back = Member(client, self.topics)
                self.moves.append(len(self.foretold.join([back], strategies=listed).moved))
            else:
                self.moves.append(len(self.foretold.restart(client, strategies=listed).moved))
            self.start(client, listed)
            self.check(former)


def test_a_change_of_assignor_moves_what_a_live_group_foretells(broker):
    """Static: nothing happens until the last member lists the new one, which starts from nothing.

    (Each of its 16 restarts waits for a consumer to close, and for the group to be at rest: 20 s.)
    """
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic
    names = {"switch-s": True, "switch-d": False}
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
        admin.create_topics([NewTopic(f"{name}-{topic}", count, 1)
                             for name in names for topic, count in COUNTS.items()])
    with java_members(broker) as java:
        static, dynamic = [Watched(java, broker, name, static) for name, static in names.items()]
        static.bounce(["kafka-sticky", "range"])
        static.join("switch-s-3", ["kafka-sticky", "range"])
        static.bounce(["kafka-cooperative-sticky", "kafka-sticky"])
        static.bounce(["kafka-cooperative-sticky"])
        assert static.moves == [0, 0, 11, 0, 0, 0, 6, 0, 0, 0, 0]
        dynamic.bounce(["kafka-cooperative-sticky", "range"])
        assert sum(dynamic.moves) == 54
