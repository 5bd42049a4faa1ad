"""The recipe for confluent-kafka, as the guide shows it, with real consumers on a real broker."""
import json
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from live_members import until

from kafka_assign import Group, assign

pytestmark = pytest.mark.needs("broker")

GUIDE = Path(__file__).resolve().parent.parent / "nbs" / "guides" / "live_consumers.ipynb"


def recipe():
    """The names that the guide's cell with the recipe defines, after the imports of the guide."""
    sources = ["".join(cell["source"]) for cell in json.loads(GUIDE.read_text(encoding="utf-8"))["cells"]
               if cell["cell_type"] == "code"]
    [code] = [source for source in sources if "def own_share(" in source]
    names = {}
    for source in [*(source for source in sources if source.startswith(("import ", "from "))), code]:
        exec(source, names)
    return names


def consumer_of(broker, group, client, **more):
    from confluent_kafka import Consumer
    return Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "client.id": client,
                     "partition.assignment.strategy": "range", "session.timeout.ms": 6000,
                     "heartbeat.interval.ms": 200, "topic.metadata.refresh.interval.ms": 500,
                     "auto.offset.reset": "earliest", **more})


def admin_of(broker, topics):
    """An admin client, once it has created these topics."""
    from confluent_kafka.admin import AdminClient, NewTopic
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()]).values():
        future.result()
    return admin


def owned(consumer):
    return frozenset((one.topic, one.partition) for one in consumer.assignment())


def test_the_members_share_what_fair_gives_each_of_them(broker):
    """Members join, leave and come back as static members while a topic grows; each partition has one consumer.

    `range` would give the first member two partitions more. It finds members that compute different shares: from
    metadata of their own, from the member id of a static member, or in another generation.
    """
    from confluent_kafka.admin import NewPartitions
    topics = {"confluent-t": 3, "confluent-u": 3}
    admin, on_assign_with = admin_of(broker, topics), recipe()["on_assign_with"]
    consumers = {}

    def join(name, **more):
        consumers[name] = stack.enter_context(closing(consumer_of(broker, "confluent", name, **more)))
        consumers[name].subscribe([*topics], on_assign=on_assign_with(admin, "confluent"))

    def settled():
        """What each consumer has, once that is its share by the coordinator's members, and the shares are disjoint."""
        def ask():
            for one in consumers.values():
                one.poll(0.05)
            found = admin.describe_consumer_groups(["confluent"])["confluent"].result(10)
            names = {one.member_id: one.group_instance_id or one.member_id for one in found.members}
            if {one.memberid() for one in consumers.values()} != names.keys():
                return None
            shares = assign(Group(topics, dict.fromkeys(names.values(), [*topics])), "fair")
            present = {name: owned(one) for name, one in consumers.items()}
            together = [one for some in present.values() for one in some]
            assert len(together) == len({*together})
            expected = {name: frozenset(map(tuple, shares[names[one.memberid()]])) for name, one in consumers.items()}
            return present if present == expected else None
        return until(ask)

    with ExitStack() as stack:          # by its member id, "s-0-..." precedes the static "s-...": not by instance id
        join("s-0")
        assert len(settled()["s-0"]) == 6
        join("b", **{"group.instance.id": "s"})
        assert sorted(map(len, settled().values())) == [3, 3]
        topics["confluent-t"] = 8
        admin.create_partitions([NewPartitions("confluent-t", 8)])["confluent-t"].result()
        before = settled()
        assert sorted(map(len, before.values())) == [5, 6]
        consumers.pop("b").close()
        join("b", **{"group.instance.id": "s"})
        assert settled() == before
        consumers.pop("s-0").close()
        assert len(settled()["b"]) == 11


def test_a_consumer_that_cannot_ask_has_no_partitions(broker):
    """Otherwise it would consume what `range` gave it, which others consume, too."""
    from confluent_kafka import KafkaException
    admin, on_assign_with = admin_of(broker, {"confluent-e": 2}), recipe()["on_assign_with"]

    class Silent:
        def describe_consumer_groups(self, names):
            raise KafkaException("no answer")
    with closing(consumer_of(broker, "confluent-errors", "a")) as consumer:
        consumer.subscribe(["confluent-e"], on_assign=on_assign_with(Silent(), "confluent-errors"))
        with pytest.raises(KafkaException, match="no answer"):
            until(lambda: consumer.poll(0.1))
        assert not owned(consumer)
        assert admin.describe_consumer_groups(["confluent-errors"])["confluent-errors"].result(10).members
