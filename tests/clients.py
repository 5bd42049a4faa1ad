"""Consumer groups of real client code, kafka-python's or aiokafka's coordinators, that talk to no broker."""
import asyncio
from types import SimpleNamespace

from aiokafka.cluster import ClusterMetadata as AioCluster
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState as AioSubscriptions
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.base import Generation
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.future import Future
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer import JoinGroupResponse
from kafka.protocol.metadata import MetadataResponse

Broker = MetadataResponse.MetadataResponseBroker
Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition
Joined = JoinGroupResponse.JoinGroupResponseMember


def metadata(counts, racks=(None,), replicas=lambda number: [0]):
    """What a broker answers about topics with so many partitions, and about brokers in these racks."""
    return MetadataResponse(
        version=9, controller_id=0, cluster_id="c",
        brokers=[Broker(node, "h", 9092, rack, version=9) for node, rack in enumerate(racks)],
        topics=[Topic(name=name, error_code=0, is_internal=False, version=9, partitions=[
            Partition(partition_index=number, leader_id=0, error_code=0, replica_nodes=replicas(number), isr_nodes=[0],
                      version=9) for number in range(count)]) for name, count in counts.items()])


def elected(lists):
    """The assignor that a broker elects: each member votes for the first of its list that all members list."""
    common = set.intersection(*map(set, lists))
    votes = [next(name for name in names if name in common) for names in lists]
    return max(votes, key=votes.count)


class Consumer:
    """The coordinator of a kafka-python consumer, between the network and its assignors, one or a list."""

    def __init__(self, assignors, topics, listener=None, instance_id=None):
        self.client = KafkaNetClient(bootstrap_servers="127.0.0.1:1", api_version=(3, 0))
        self.client.cluster.request_update = Future  # which never asks anybody
        self.instance_id = instance_id
        subscriptions = SubscriptionState("latest")
        self.coordinator = ConsumerCoordinator(
            self.client, subscriptions, assignors=assignors if isinstance(assignors, list) else [assignors],
            group_id="g", enable_auto_commit=False, metrics=None, api_version=(3, 0))
        subscriptions.subscribe(topics=topics, listener=listener)

    @property
    def held(self):
        return {tuple(one) for one in self.coordinator._subscription.assigned_partitions()}

    def run(self, method, *given):
        return self.client._net.run(method, *given)

    def lose(self):
        """The heartbeat says that the coordinator does not know the member any more."""
        self.coordinator.reset_generation()


class Group:
    """What the broker's coordinator does: all join, the first one listed leads, all receive what it says."""

    def __init__(self, counts, generation=0, **cluster):
        self.metadata, self.generation, self.consumers = metadata(counts, **cluster), generation, {}
        self.protocol = ""               # the assignor of the last round

    def round(self):
        """One join of all: what each member holds before the leader decides, and what it is then given."""
        self.generation += 1
        sent, before = {}, {}
        for name, one in self.consumers.items():
            one.client.cluster.update_metadata(self.metadata)
            one.run(one.coordinator._on_join_prepare_async, self.generation, name)
            eager = one.coordinator._rebalance_protocol.name == "EAGER"
            before[name] = set() if eager else one.held
            sent[name] = dict(one.coordinator.group_protocols())
        protocol = self.protocol = elected(list(sent.values()))
        joins = [Joined(member_id=name, group_instance_id=self.consumers[name].instance_id,
                        metadata=by_protocol[protocol].encode()) for name, by_protocol in sent.items()]
        for name, one in self.consumers.items():
            one.coordinator._generation = Generation(self.generation, name, protocol)
        leader = next(iter(self.consumers))
        answers = self.consumers[leader].coordinator._perform_assignment(leader, protocol, joins)
        assert list(answers) == list(self.consumers)
        for name, one in self.consumers.items():
            one.coordinator.rejoin_needed = False
            one.run(one.coordinator._on_join_complete_async, self.generation, name, protocol, answers[name])
        return before, {name: one.held for name, one in self.consumers.items()}

    def settle(self, most=3):
        """Rounds until nobody asks for another one; asserts that nobody is given what another one consumes."""
        for _ in range(most):
            before, after = self.round()
            given = [pair for pairs in after.values() for pair in pairs]
            assert len(given) == len(set(given))
            for name, pairs in after.items():
                assert not any(pairs & held for other, held in before.items() if other != name)
            if not any(one.coordinator.rejoin_needed for one in self.consumers.values()):
                return after
        raise AssertionError("the group does not settle")


class AioConsumer:
    """The coordinator of an aiokafka consumer, as far as it has to do with its assignors, one or a list."""

    def __init__(self, assignors, counts):
        self.coordinator = coordinator = object.__new__(GroupCoordinator)
        coordinator._cluster, coordinator.group_id = AioCluster(), "g"
        coordinator._assignors = assignors if isinstance(assignors, list) else [assignors]
        coordinator._cluster.update_metadata(SimpleNamespace(
            API_VERSION=5, brokers=[(0, "h", 9092, "a")], controller_id=0, cluster_id="c",
            topics=[(0, name, False, [(0, number, 0, [0], [0], []) for number in range(count)])
                    for name, count in counts.items()]))
        subscriptions = coordinator._subscription = AioSubscriptions()
        subscriptions.subscribe(set(counts))

        async def nothing(*given):
            return None
        coordinator._client = SimpleNamespace(set_topics=lambda topics: None, _maybe_wait_metadata=nothing)
        coordinator._get_metadata_snapshot = dict
        coordinator._stop_commit_offsets_refresh_task = nothing
        coordinator.start_commit_offsets_refresh_task = lambda assignment: None
        coordinator._cluster.add_listener(coordinator._handle_metadata_update)


async def aio_round(consumers, generation):
    """All join with the bytes of their assignors, the first one leads; what each one is given."""
    sent = {}
    for name, one in consumers.items():
        one.coordinator.generation = generation
        topics = one.coordinator._subscription.subscription.topics
        sent[name] = {each.name: each.metadata(topics) for each in one.coordinator._assignors}
    protocol = elected(list(sent.values()))
    joins = [(name, None, by_protocol[protocol]) for name, by_protocol in sent.items()]
    leader = next(iter(consumers.values())).coordinator
    answers = await leader._perform_assignment(SimpleNamespace(
        group_protocol=protocol, members=joins, API_VERSION=5))
    for name, one in consumers.items():
        one.coordinator._subscription.begin_reassignment()
        await one.coordinator._on_join_complete(generation, name, protocol, answers[name])
    return {name: {tuple(pair) for pair in one.coordinator._subscription.assigned_partitions()}
            for name, one in consumers.items()}


def run_aio(story):
    """Run a coroutine function in a loop of its own."""
    return asyncio.run(story())
