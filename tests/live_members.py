"""Groups of kafka-python consumers on a real broker, each in a process of its own, that tests watch and disturb.

    with live_group(broker, "g", {"t": 6}, [partial(assignor, "sticky")]) as group:
        group.join("a", "b")
        before = group.settled()        # what the members sent, and what they got
        group.kill("a")
        after = group.settled()

A server that has loaded kafka-python forks the processes, so that a member costs some milliseconds. A member polls all
the time, and reports what happens to it; it ends with the process that started it. Our assignors see to it that no join
of a leader is lost: kafka-python's own ones lose members if a poll ends before a join.
"""
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from contextlib import contextmanager
from operator import attrgetter
from typing import NamedTuple

SECONDS = 60
POLL = 100          # milliseconds
CONFIG = {"auto_offset_reset": "earliest", "auto_commit_interval_ms": 200, "heartbeat_interval_ms": 200,
          "session_timeout_ms": 3000, "metadata_max_age_ms": 500}
_forked = multiprocessing.get_context("forkserver")
_forked.set_forkserver_preload(["kafka", "kafka_assign", "pytest"])


class Membership(NamedTuple):
    """What a member knows about itself after a rebalance."""
    generation: int
    member_id: str
    partitions: frozenset       # of (topic, partition)
    leads: bool


class Records(NamedTuple):
    """What one poll delivered."""
    generation: int             # -1 if the consumer lost its membership meanwhile
    topic: str
    partition: int
    offsets: list
    keys: list


class Settled(NamedTuple):
    """A group at rest, as its coordinator describes it."""
    protocol: str
    generation: int
    leader: str                 # a name, or "" if it is a member of another client
    names: dict                 # member id -> name
    joined: dict                # member id -> (instance id or None, subscription as sent), as `lead` takes them
    answers: dict               # member id -> assignment as sent, as `lead` returns them
    topics: dict                # name -> number of partitions
    owned: dict                 # name -> frozenset of (topic, partition)


# ---- in the process of a member

class _Reports(logging.Handler):
    """Log records as events."""

    def __init__(self, events):
        super().__init__()
        self.events = events

    def emit(self, record):
        self.events.append(("logged", (record.levelname, record.getMessage())))


def _listener(events):
    """A rebalance listener whose callbacks are events."""
    from kafka import ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            events.append(("revoked", frozenset(map(tuple, revoked))))

        def on_partitions_assigned(self, assigned):
            events.append(("assigned", frozenset(map(tuple, assigned))))

        def on_partitions_lost(self, lost):
            events.append(("lost", frozenset(map(tuple, lost))))
    return Listener()


def _polled(consumer, previous, events):
    """Poll once; the membership afterwards, None while the consumer rejoins. An event if not the `previous` one."""
    from kafka.coordinator.base import MemberState
    records = consumer.poll(POLL)
    known = consumer.group_metadata()
    membership, generation = None, -1
    if known.state is MemberState.STABLE:       # its assignment is that of its generation: only polls join the next one
        generation, leads = known.generation_id, consumer._coordinator._is_leader
        membership = Membership(generation, known.member_id, frozenset(map(tuple, consumer.assignment())), leads)
    if membership != previous:
        events.append(("membership", membership) if membership else ("rejoining", None))
    for (topic, partition), batch in records.items():
        offsets, keys = zip(*((record.offset, record.key) for record in batch))
        events.append(("records", Records(generation, topic, partition, list(offsets), list(keys))))
    return membership


def _consume(pipe, topics, assignors, config):
    """Be a member until told to close, and send events; then ("ended", None or an error)."""
    from kafka import KafkaConsumer
    events, membership, error = deque(), None, None
    listener = _listener(events)
    log = logging.getLogger("kafka_assign")
    log.setLevel(logging.INFO)
    log.addHandler(_Reports(events))

    def send():
        while events:
            pipe.send(events.popleft())
    try:
        consumer = KafkaConsumer(partition_assignment_strategy=[make() for make in assignors], **config)
        consumer.subscribe(topics, listener=listener)
        while not consumer._closed:
            membership = _polled(consumer, membership, events)
            send()
            while not consumer._closed and pipe.poll():
                name, arguments = pipe.recv()
                answer = attrgetter(name)(consumer)(*arguments, **{"listener": listener} if name == "subscribe" else {})
                if name == "subscribe":         # a member that does not lead must wait: see `kafka_assign.clients`
                    consumer._coordinator.poll(1000 * SECONDS)
                send()
                pipe.send(("answer", answer))
    except EOFError:                # the test is gone
        os._exit(1)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    send()
    pipe.send(("ended", error))


# ---- in the process of the test

class LiveMember:
    """A member in its own process, and the `events` that it has reported, pairs of kind and value, in their order."""

    def __init__(self, name, topics, assignors, config):
        self.name, self.topics, self.events, self._answers = name, list(topics), [], deque()
        self.pipe, theirs = _forked.Pipe()
        self.process = _forked.Process(target=_consume, args=(theirs, self.topics, assignors, config), daemon=True)
        self.process.start()
        theirs.close()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        try:
            while True:
                event = self.pipe.recv()
                if event[0] != "answer":
                    self.events.append(event)
                if event[0] in ("answer", "ended"):
                    self._answers.append(event)
        except (EOFError, OSError):
            pass

    def of(self, kind):
        """The values of all events of a kind: membership rejoining assigned revoked lost records logged ended."""
        return [value for one, value in list(self.events) if one == kind]

    @property
    def membership(self):
        """The present one, as far as it is known; None while the member joins."""
        return next((value for kind, value in self.events[::-1] if kind in ("membership", "rejoining")), None)

    def call(self, name, *arguments):
        """What this method of its consumer returns: `position`, `subscribe`, `_coordinator.request_rejoin`, ..."""
        if name == "subscribe":
            self.topics = list(arguments[0])
        self.ask(name, *arguments)
        return self.answer()

    def ask(self, name, *arguments):
        """The first half of `call`."""
        self.pipe.send((name, arguments))

    def answer(self):
        """The second half of `call`."""
        kind, value = until(self._answers.popleft, IndexError)
        assert kind == "answer", f"{self.name} ended: {value}"
        return value

    def end(self, how=signal.SIGKILL):
        """Stop the process and read what it still had to say."""
        if self.process.is_alive():
            os.kill(self.process.pid, how)
        self.process.join(SECONDS)
        self.reader.join(SECONDS)
        self.pipe.close()


def until(ask, *errors, why=lambda: ""):
    """The first true answer of `ask()` within a minute; these errors mean not yet. `why` says more if there is none."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            if answer := ask():
                return answer
        except errors:
            pass
        assert time.monotonic() < deadline, f"{ask} must come true within {SECONDS} s{why()}"
        time.sleep(0.05)


class LiveGroup:
    """A group of a test: its members by name, what happens to them, and what the coordinator says about them."""

    def __init__(self, admin, bootstrap, name, topics, assignors):
        self.admin, self.bootstrap, self.name, self.topics = admin, bootstrap, name, list(topics)
        self.assignors, self.members, self.gone, self.frozen = assignors, {}, [], set()

    def __getitem__(self, name):
        return self.members[name]

    def join(self, *names, topics=None, assignors=None, **config):
        """Start a member of each name, which is its client id; other `topics`, `assignors`, settings as given."""
        for name in names:
            self.members[name] = LiveMember(name, topics or self.topics, assignors or self.assignors, {
                **CONFIG, "bootstrap_servers": self.bootstrap, "group_id": self.name, "client_id": name, **config})

    def leave(self, *names):
        """Close these consumers; static members stay in the group until their session ends."""
        for name in names:
            self.members[name].ask("close")
        for name in names:
            member = self._gone(name)
            member.process.join(SECONDS)
            member.end()
            assert member.of("ended") == [None], f"{name}: {member.of('ended')}"

    def kill(self, *names):
        """Let the processes of these members die."""
        for name in names:
            self._gone(name).end()

    def _gone(self, name):
        self.gone.append(self.members.pop(name))
        return self.gone[-1]

    def freeze(self, *names):
        """Stop these processes, which neither poll nor send heartbeats until `thaw`."""
        self.frozen.update(names)
        for name in names:
            os.kill(self.members[name].process.pid, signal.SIGSTOP)

    def thaw(self, *names):
        """Let frozen members go on."""
        self.frozen.difference_update(names)
        for name in names:
            os.kill(self.members[name].process.pid, signal.SIGCONT)

    def describe(self):
        """The group as the coordinator describes it, with bytes as the members and the leader sent them."""
        from kafka.protocol.admin import DescribeGroupsRequest

        async def ask():
            [group] = (await self.admin._manager.send(DescribeGroupsRequest(groups=[self.name]), node_id=1)).groups
            return group
        return self.admin._manager.run(ask)

    def settled(self, *others, unassigned=0):
        """The group once it is at rest: all members that run, and others with these client ids, know their assignment.

        At rest, the group is stable, the partitions of topics with subscribers have one owner each, but for as many as
        `unassigned` says, and the members know what the coordinator says.
        """
        names = {*self.members, *others} - self.frozen
        return until(lambda: self._settled(names, unassigned), why=lambda: (
            f": {self.describe()}, {[(name, member.events[-20:]) for name, member in self.members.items()]}"))

    def _settled(self, names, unassigned):
        from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
        for member in self.members.values():
            assert not member.of("ended"), f"{member.name} ended: {member.of('ended')}"
        group = self.describe()
        described = {member.client_id: member for member in group.members}
        if group.group_state != "Stable" or len(group.members) != len(names) or described.keys() != names:
            return None
        topics = {name: set(ConsumerProtocolSubscription.decode(member.member_metadata).topics)
                  for name, member in described.items()}
        counts = {row["name"]: len(row["partitions"])
                  for row in self.admin.describe_topics(sorted(set().union(*topics.values())))}
        owned = {name: frozenset(map(tuple, ConsumerProtocolAssignment.decode(member.member_assignment).partitions()))
                 for name, member in described.items()}
        given = [one for some in owned.values() for one in some]
        if len(given) != len(set(given)) or len(given) != sum(counts.values()) - unassigned:
            return None
        known = self._known(names & self.members.keys())
        if len({mine and mine.generation for mine in known.values()}) > 1 or any(
                mine is None or (mine.member_id, mine.partitions) != (described[name].member_id, owned[name])
                or topics[name] != set(self.members[name].topics) for name, mine in known.items()):
            return None
        return Settled(
            protocol=group.protocol_data, generation=max((mine.generation for mine in known.values()), default=-1),
            leader="".join(name for name, mine in known.items() if mine.leads),
            names={member.member_id: name for name, member in described.items()},
            joined={one.member_id: (one.group_instance_id, one.member_metadata) for one in described.values()},
            answers={one.member_id: one.member_assignment for one in described.values()}, topics=counts, owned=owned)

    def _known(self, names):
        """What these members know now: once they have answered, they have said whether they join again."""
        for name in names:
            self.members[name].ask("subscription")
        for name in names:
            self.members[name].answer()
        return {name: self.members[name].membership for name in names}


@contextmanager
def live_group(broker, name, topics, assignors):
    """A group of which nothing runs yet; its topics, names with numbers of partitions, are created.

    `assignors` are called in the process of each member: partials of functions that can be imported.
    """
    from kafka import KafkaAdminClient
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    group = LiveGroup(admin, broker.bootstrap, name, topics, assignors)
    try:
        if topics:
            admin.create_topics({topic: {"num_partitions": count} for topic, count in topics.items()},
                                wait_for_metadata=True)
        yield group
    finally:
        for member in group.members.values():
            member.end()
        admin.close()
