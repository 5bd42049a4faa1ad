"""Groups on a real broker change their assignor as an operator would, and each rebalance gives what was foretold.

No client is simulated: the members are Java's, kafka-python's and librdkafka's own.
"""
from collections import Counter
from contextlib import ExitStack
from functools import partial
from itertools import pairwise

import pytest
from live_members import live_group, until
from test_live_confluent import consumer_of
from test_live_migration import captured, java_members, owners

from kafka_assign import Assignment, LiveGroup, Member, compare
from kafka_assign.assignors.registry import resolve
from kafka_assign.clients import assignor

pytestmark = [pytest.mark.needs("broker"), pytest.mark.needs("jdk")]

JAVA_CLASSES = {"range": "RangeAssignor", "roundrobin": "RoundRobinAssignor", "sticky": "StickyAssignor",
                "cooperative-sticky": "CooperativeStickyAssignor"}


class JavaProcesses:
    """Members of the Java client in one group; `assignors` are names of Kafka's, the preferred one first."""

    def __init__(self, java, group, topics, static=False):
        self.java, self.group, self.topics, self.static = java, group, topics, static

    def start(self, client, assignors):
        classes = ",".join(JAVA_CLASSES.get(name, name) for name in assignors)
        instance = [client] if self.static else []
        assigned = self.times_assigned(client)
        print("join", client, self.group, ",".join(self.topics), classes, *instance, file=self.java.process.stdin)
        until(lambda: self.times_assigned(client) > assigned)

    def stop(self, client):
        self.java.leave(client)
        # its next life prints the line again
        self.java.lines.remove(f"{client} left\n")

    def end(self):
        running = {line.split()[0] for line in self.java.lines if line.startswith(f"{self.group}-")}
        for client in running - {line.split()[0] for line in self.java.lines if line.endswith(" left\n")}:
            self.java.leave(client)

    def times_assigned(self, client):
        return sum(line.startswith(f"{client} assigned") for line in self.java.lines)

    def poll(self):
        pass


class PythonProcesses:
    """Members of kafka-python, whose own range is beside a strategy of ours."""

    static = False

    def __init__(self, group):
        self.group = group

    def start(self, client, assignors):
        self.group.join(client, assignors=[
            own_range if name == "range" else partial(assignor, name) for name in assignors])

    def stop(self, client):
        self.group.leave(client)

    def end(self):
        pass                    # the group ends them

    def poll(self):
        pass


def own_range():
    """The class that kafka-python ships."""
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    return RangePartitionAssignor


class NativeProcesses:
    """Members of librdkafka, which must be polled."""

    static = False

    def __init__(self, broker, group, topics):
        self.broker, self.group, self.topics, self.consumers = broker, group, topics, {}

    def start(self, client, assignors):
        self.consumers[client] = consumer_of(self.broker, self.group, client, **{
            "partition.assignment.strategy": ",".join(assignors)})
        self.consumers[client].subscribe([*self.topics])

    def stop(self, client):
        self.consumers.pop(client).close()

    def end(self):
        for consumer in self.consumers.values():
            consumer.close()

    def poll(self):
        for consumer in self.consumers.values():
            consumer.poll(0.02)


def foretold(strategy, group, before=None):
    """The client id that owns each partition of a group after its rebalance under `strategy`.

    Members claim what they owned `before`, if they were there and their client id is the same; None = nothing.
    """
    claims = {}
    if before is not None:
        claims = {before.details[number].client_id: own
                  for number, own in enumerate(Assignment.current(before).values())}
    claiming = group.replace(owned={member.id: claims.get(member.client_id, []) for member in group.details})
    assignment = resolve(strategy).run(claiming)
    return [group.details[owner].client_id for owner in assignment.target.tolist()]


def bounce(broker, processes, name, clients, old, new):
    """The first rolling restart: each member gets the list [new, old]. Yields the group at rest after each rebalance.

    The rebalances before the group's assignor changes are left out, but for the last one.
    """
    for client in clients:
        processes.start(client, [old])
    group = captured(broker, name, clients, processes.poll)
    for client in clients:
        others = [other for other in clients if other != client]
        processes.stop(client)
        if not processes.static:
            before, group = group, captured(broker, name, others, processes.poll)
            if client == clients[-1]:
                yield before
                yield group
        elif client == clients[-1]:
            yield group
        assert (group.strategy == new) == (client == clients[-1] and not processes.static)
        processes.start(client, [new, old])
        group = captured(broker, name, clients, processes.poll)
    yield group


@pytest.fixture(scope="module")
def java(broker):
    with java_members(broker) as members:
        yield members
        assert not [line for line in members.lines if " failed " in line]


@pytest.fixture
def started(broker, java, request):
    """What starts members of a client, in a group of its own with these topics."""
    with ExitStack() as stack:
        def start(client, topics, static=False):
            name = f"switch-{request.node.callspec.id}"
            named = {f"{name}-{topic}": count for topic, count in topics.items()}
            group = stack.enter_context(live_group(broker, name, named, []))
            processes = {"Java": lambda: JavaProcesses(java, name, named, static),
                         "kafka-python": lambda: PythonProcesses(group),
                         "librdkafka": lambda: NativeProcesses(broker, name, named)}[client]()
            stack.callback(processes.end)
            return name, processes
        yield start


TWO_TOPICS = {"x": 10, "y": 10}
FOUR_TOPICS = {"p": 4, "q": 4, "r": 4, "s": 4}
SWITCHES = {  # client, whether its members are static, their number, topics, old and new assignor, our forecast
    "java-static": ("Java", True, 4, TWO_TOPICS, "range", "sticky", "kafka-sticky"),
    "java-dynamic": ("Java", False, 4, TWO_TOPICS, "range", "sticky", "kafka-sticky"),
    "java-cooperative": ("Java", True, 4, TWO_TOPICS, "sticky", "cooperative-sticky", "kafka-cooperative-sticky"),
    "java-default": ("Java", True, 3, FOUR_TOPICS, "range", "cooperative-sticky", "kafka-cooperative-sticky"),
    "python-join": ("kafka-python", False, 4, TWO_TOPICS, "range", "stream-join-sticky", "stream-join-sticky"),
    "python-sticky": ("kafka-python", False, 4, TWO_TOPICS, "range", "sticky", "sticky"),
    "librdkafka": ("librdkafka", False, 4, TWO_TOPICS, "range", "roundrobin", "roundrobin")}


def simulated(before, last, static, forecast, old):
    """The client id that owns each partition, by a simulated group: its last member with the old list stops.

    `before` is the group at that moment. Its other members list `forecast`, then `old`.
    """
    members = [Member(member.id, member.topics, owned=own, instance_id=member.instance_id)
               for member, own in zip(before.details, Assignment.current(before).values())]
    if static:
        group = LiveGroup(old, before.topic_counts, members)
        for member in members:
            group.restart(member.id, strategies=[forecast, old])
    else:
        group = LiveGroup(old, before.topic_counts, [member for member in members if member.id == last])
        group.join([member for member in members if member.id != last], strategies=[forecast, old])
        group.leave(last)
    assert group.state.strategy.label == forecast
    clients = {member.id: member.client_id for member in before.details}
    owner = {pair: clients[member] for member in group for pair in group[member]}
    return [owner[pair] for pair in map(before.at, range(before.columns.size))]


@pytest.mark.parametrize("case", SWITCHES.values(), ids=SWITCHES)
def test_the_first_rebalance_under_another_assignor_gives_what_was_foretold(broker, started, case):
    """It finds a claim that is foretold and that no client makes, or the reverse: nobody claims anything at the switch,
    and everybody what it owns afterwards. The strategy, `LiveGroup` and the price in `compare` say the same."""
    client, static, count, topics, old, new, forecast = case
    name, processes = started(client, topics, static)
    clients = [f"{name}-{number}" for number in range(count)]
    before, after, *later = bounce(broker, processes, name, clients, old, new)
    assert owners(after) == foretold(forecast, after)
    [last] = [member.id for member in before.details if member.client_id == clients[-1]]
    runs = resolve(f"kafka-{old}" if old == "sticky" else old).label
    assert owners(after) == simulated(before, last, static, forecast, runs)
    switched = before if static else before.leave(last)
    moved = sum(old_owner >= 0 and switched.details[old_owner].client_id != new_owner
                for old_owner, new_owner in zip(switched.previous.tolist(), owners(after)))
    assert compare(switched, [forecast], before=before)[forecast].summary()["switch"] == moved
    for before, after in pairwise([after, *later]):
        assert owners(after) == foretold(forecast, after, before)


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_a_group_that_moves_to_the_new_protocol_keeps_what_it_has(broker, java, static):
    """No claims are lost, unlike at a switch of the members' assignor: the broker knows who has what."""
    name = f"switch-online-{static}"
    topics = {f"{name}-x": 12, f"{name}-y": 9}
    clients = [f"{name}-{number}" for number in range(3)]
    with live_group(broker, name, topics, []):
        processes = JavaProcesses(java, name, topics, static)
        for client in clients:
            processes.start(client, ["range"])
        before = captured(broker, name, clients)
        for client in clients:
            processes.stop(client)
            if not static:
                before = captured(broker, name, [other for other in clients if other != client])
            processes.start(client, ["consumer"])
            after = captured(broker, name, clients)
            assert after.type == "consumer"
            expected = foretold("uniform", after, before)
            if static:
                assert owners(after) == owners(before) == expected
            # the order of the broker's hash tables decides which partitions the newcomer gets, not how many
            handed_over = sum(map(str.__ne__, owners(before), expected))
            assert sum(map(str.__ne__, owners(before), owners(after))) == handed_over
            assert Counter(owners(after)) == Counter(expected)
            before = after
        processes.end()
