"""The history that a real broker stored, as `capture --history` reads it, beside the callbacks of its members, who run
kafka-python, aiokafka, librdkafka and Java, in both protocols."""
import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from threading import Thread
from types import SimpleNamespace

import pytest
from live_members import SECONDS, live_group, until
from test_cli import MAIN, ROOT, one_line, run
from test_connection import LOGIN
from test_live_mixed import JavaMembers

from kafka_assign import read_groups, read_history
from kafka_assign.clients import assignor

pytestmark = [pytest.mark.needs("broker"), pytest.mark.needs("jdk")]
PARTITIONS = 4
OFFSETS_PARTITIONS, FREE = 11, 5      # and one in which no group is that has members


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    """A broker of its own, in which the group `h-first` has committed. `restart` stops it, and starts it again with the
    same data; `empty` is what a capture said before the group was there."""
    from broker import start
    from confluent_kafka import Consumer, TopicPartition
    from kafka import KafkaAdminClient
    more = f"offsets.topic.num.partitions={OFFSETS_PARTITIONS}\nlog.dirs={tmp_path_factory.mktemp('data')}\n"
    found = SimpleNamespace(broker=start(more=more))

    def restart():
        found.broker.stop()
        found.broker = start(more=more)
    found.restart, found.empty = restart, history(found)
    with closing(KafkaAdminClient(bootstrap_servers=found.broker.bootstrap)) as admin:
        admin.create_topics({"h-t": {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    with closing(Consumer({"bootstrap.servers": found.broker.bootstrap, "group.id": "h-first"})) as one:
        one.subscribe(["h-t"])
        until(lambda: one.poll(0.1) or one.assignment())
        one.commit(offsets=[TopicPartition("h-t", 0, 0)], asynchronous=False)
    yield found
    found.broker.stop()


def history(kafka, options=""):
    return run(f"capture --history --bootstrap-server {kafka.broker.bootstrap} {options}")


def test_a_topic_without_a_record_is_a_line(kafka):
    done = kafka.empty
    assert done.code == 3 and not done.out and one_line(done.err) and "holds no generation yet" in done.err


# --- members, and what they hold by their callbacks -------------------------------------------------------------------

class Members:
    """Members of one client library in a group of their own. `held`: by client id, what their callbacks said."""

    def __init__(self, bootstrap, group, topic):
        self.bootstrap, self.group, self.topic, self.held, self.running = bootstrap, group, topic, defaultdict(set), {}

    def give(self, name, pairs):
        self.held[name] |= {tuple(pair) for pair in pairs}

    def take(self, name, pairs):
        self.held[name] -= {tuple(pair) for pair in pairs}

    def look(self):
        """Read what was said meanwhile."""


class Python(Members):
    """kafka-python, each member in its own process."""

    def join(self, name):
        self.live.join(name)
        self.running[name] = 0

    def leave(self, name):
        self.live.leave(name)
        del self.held[name], self.running[name]

    def look(self):
        for name in self.running:
            events = self.live[name].events[self.running[name]:]
            self.running[name] += len(events)
            for kind, pairs in events:
                if kind in ("assigned", "revoked", "lost"):
                    (self.give if kind == "assigned" else self.take)(name, pairs)


class Aio(Members):
    """aiokafka, in an event loop in a thread."""

    def __init__(self, *given):
        super().__init__(*given)
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(SECONDS)

    def join(self, name):
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
        members = self

        class Listener(ConsumerRebalanceListener):
            def on_partitions_assigned(self, assigned):
                members.give(name, assigned)

            def on_partitions_revoked(self, revoked):
                members.take(name, revoked)

        async def start():
            one = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, group_id=self.group, client_id=name,
                                   heartbeat_interval_ms=200, session_timeout_ms=6000)
            one.subscribe([self.topic], listener=Listener())
            await one.start()
            return one
        self.running[name] = self.do(start())

    def leave(self, name):
        self.do(self.running.pop(name).stop())
        del self.held[name]

    def end(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(SECONDS)
        self.loop.close()


class Rdkafka(Members):
    """librdkafka, polled by `look`."""

    def join(self, name):
        from confluent_kafka import Consumer
        one = self.running[name] = Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": self.group, "client.id": name, "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200})
        one.subscribe([self.topic], on_assign=lambda _, some: self.give(name, [(x.topic, x.partition) for x in some]),
                      on_revoke=lambda _, some: self.take(name, [(x.topic, x.partition) for x in some]))

    def leave(self, name):
        self.running.pop(name).close()
        del self.held[name]

    def look(self):
        for one in self.running.values():
            one.poll(0.05)


class Java(Members):
    """Java members; all groups of them are in one JVM, whose lines say to whom they belong."""
    assignor, read = "RangeAssignor", 0

    def join(self, name):
        print("join", name, self.group, self.topic, self.assignor, file=self.java.process.stdin)
        self.running[name] = None

    def leave(self, name):
        self.java.leave(name)
        del self.running[name]
        self.look()
        del self.held[name]

    def look(self):
        lines = self.java.lines[self.read:]
        self.read += len(lines)
        for client, what, *some in map(str.split, lines):
            if client.startswith(self.group) and what in ("assigned", "revoked", "lost"):
                pairs = [(one.rpartition("-")[0], int(one.rpartition("-")[2])) for one in some]
                (self.give if what == "assigned" else self.take)(client, pairs)


class JavaNew(Java):
    """The same with the new protocol."""
    assignor = "consumer"


@contextmanager
def all_members(kafka):
    """Members of each kind."""
    from kafka import KafkaAdminClient
    kinds = {"h-python": Python, "h-aio": Aio, "h-rdkafka": Rdkafka, "h-java": Java, "h-new": JavaNew}
    bootstrap = kafka.broker.bootstrap
    with ExitStack() as stack:
        admin = stack.enter_context(closing(KafkaAdminClient(bootstrap_servers=bootstrap)))
        admin.create_topics({f"{name}-t": {"num_partitions": PARTITIONS, "replication_factor": 1}
                             for name in kinds if name != "h-python"}, wait_for_metadata=True)
        java = JavaMembers(bootstrap)
        stack.callback(java.end)
        found = [kind(bootstrap, name, f"{name}-t") for name, kind in kinds.items()]
        for one in found:
            one.java = java
        found[0].live = stack.enter_context(live_group(
            kafka.broker, "h-python", {"h-python-t": PARTITIONS}, [partial(assignor, "range")]))
        stack.callback(found[1].end)
        yield found
        for one in found:
            for name in [*one.running]:
                one.leave(name)


def at_rest(members, names):
    """What the members of these names hold, once all partitions have one owner and all members some."""
    def there():
        members.look()
        held = {name: frozenset(members.held[name]) for name in names}
        pairs = [pair for some in held.values() for pair in some]
        return {*members.held} == {*names} and all(held.values()) and len(pairs) == len({*pairs}) == PARTITIONS and held
    return until(there, why=lambda: f": {members.group}: {members.held}")


def by_client(one):
    """What the members of a generation were assigned, by client id."""
    return {one.members[id].client: frozenset(pairs) for id, pairs in one.assigned.items()}


def checked(found, rests):
    """Each rest is a generation, in this order, and a cause names who came or went; not in the first epoch of the new
    protocol, which is 2, so that others may have been there before."""
    for group, steps in rests.items():
        made = iter(one for one in found[group].generations if one.members)
        for client, held in steps:
            causes = []
            for one in made:
                causes += [cause.client for cause in one.causes]
                assert one.whole and "topics" not in one.missing, one
                if by_client(one) == held:
                    break
            else:
                pytest.fail(f"{group}: {held} is no generation in {found[group].generations}")
            assert client in causes or (group, client, len(held)) == ("h-new", "h-new-0", 1), one


def test_a_history_is_what_the_callbacks_of_the_members_say(kafka, tmp_path):
    """Four events in a group of each kind: three members join, and the first one leaves. Then the broker restarts."""
    rests, file = defaultdict(list), tmp_path / "history.log"
    with all_members(kafka) as kinds:
        for step in range(4):
            for members in kinds:
                names = [f"{members.group}-{number}" for number in range(3)]
                members.join(names[step]) if step < 3 else members.leave(names[0])
            for members in kinds:
                names = [f"{members.group}-{number}" for number in range(3)]
                held = at_rest(members, names[:step + 1] if step < 3 else names[1:])
                rests[members.group].append((names[step % 3], held))
        groups = " ".join(f"-g {members.group}" for members in kinds)
        done = history(kafka, f"{groups} -o {file}")
        assert (done.code, done.out, done.err) == (0, "", "")
        first = read_history(file)
        checked(first, rests)
        assert sum(map(len, rests.values())) == 20
        for members in kinds:
            last = [one for one in first[members.group].generations if one.members][-1]
            assert by_client(last) == rests[members.group][-1][1]
    one_group = history(kafka, "-g h-new")
    assert one_group.code == 0 and [*read_history(one_group.out)] == ["h-new"]
    kafka.restart()
    again = history(kafka, groups)
    assert again.code == 0 and not again.err
    assert {*file.read_text().splitlines()} <= {*again.out.splitlines()}
    checked(read_history(again.out), rests)


def test_a_history_may_begin_at_a_time(kafka):
    whole, late = history(kafka, "-g h-first --since 2026-01-01"), history(kafka, "-g h-first --since 2036-01-01")
    assert whole.code == 0 and whole.out == history(kafka, "-g h-first").out
    assert late.code == 3 and one_line(late.err) and "no generation of 'h-first' yet since 2036-01-01" in late.err


# --- rights, bytes of others, and many records ------------------------------------------------------------------------

def test_missing_rights_are_a_line(kafka, tmp_path):
    """A guest without a right, one that may only describe the topic, and one that may read it."""
    from broker import GUEST
    from kafka import KafkaAdminClient
    from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
    file = tmp_path / "guest.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in {
        **LOGIN, "sasl.username": GUEST[0], "sasl.password": GUEST[1]}.items()))

    def guest():
        return run(f"capture --history --bootstrap-server {kafka.broker.sasl} --command-config {file} -g h-first")
    words = f"{kafka.broker.sasl}: this client may not read __consumer_offsets: it must have the rights Read and "
    with closing(KafkaAdminClient(bootstrap_servers=kafka.broker.bootstrap)) as admin:
        for operation in (None, ACLOperation.DESCRIBE, ACLOperation.READ):
            if operation:
                admin.create_acls([ACL(f"User:{GUEST[0]}", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(
                    ResourceType.TOPIC, "__consumer_offsets"))])
            done = guest()
            if operation == ACLOperation.READ:
                done = until(lambda: (found := guest()).code == 0 and found)
                assert [*read_history(done.out)] == ["h-first"] and not done.err
            else:
                assert done.code == 3 and not done.out and one_line(done.err) and words in done.err


def write(kafka, records):
    """Write records into the offsets topic, as Kafka lets its own tools do by their client id; nothing loads them."""
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": kafka.broker.bootstrap, "client.id": "__admin_client"})
    for key, value in records:
        producer.produce("__consumer_offsets", key=key, value=value, partition=FREE, on_delivery=lambda error, _: (
            error and pytest.fail(str(error))))
        producer.poll(0)
    assert producer.flush(SECONDS) == 0


def test_bytes_of_others_cost_no_other_group(kafka):
    before = history(kafka)
    write(kafka, [(b"\0\2\0\1g", b"\0\3\0"), (b"\0\7", b""), (b"", b"x"), (b"\0\x63 of another version", b"x")])
    done = history(kafka)
    assert done.code == 3 and done.out == before.out
    assert [re.sub(r"offset \d+", "offset N", line.partition(": ")[2]) for line in done.err.splitlines()] == [
        f"__consumer_offsets-{FREE}, offset N: protocolType must lie within 3 bytes (got 2 from byte 2 on)",
        f"__consumer_offsets-{FREE}, offset N: groupId must lie within 2 bytes (got 2 from byte 2 on)",
        f"__consumer_offsets-{FREE}, offset N: the type must lie within 0 bytes (got 2 from byte 0 on)"]


def memory(kafka):
    """The most memory, in KiB, that the program takes to read the topic."""
    code = f"import atexit, resource, sys; atexit.register(lambda: print(resource.getrusage(0).ru_maxrss)); {MAIN}"
    done = subprocess.run([sys.executable, "-c", code, "capture", "--history", "--bootstrap-server",
                           kafka.broker.bootstrap, "-o", os.devnull], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout, done.stderr
    return int(done.stdout)


def test_records_of_others_take_no_memory(kafka):
    """100,000 commits take what 10,000 take. Kept, they would be 40 MB more."""
    taken = []
    for count in 10_000, 90_000:
        write(kafka, ((b"\0\1\0\4many\0\1t" + number.to_bytes(4, "big"), bytes(200)) for number in range(count)))
        taken.append(memory(kafka))
    assert taken[1] < taken[0] + 20_000, taken


# --- moments ----------------------------------------------------------------------------------------------------------

def test_moments_are_captured_until_ctrl_c(kafka, tmp_path):
    """Files are whole at any time; a second run goes on in the folder until its time is over."""
    folder, words = tmp_path / "moments", ["capture", "--bootstrap-server", kafka.broker.bootstrap, "--every", "2s"]
    process = subprocess.Popen([sys.executable, "-c", MAIN, *words, "-o", folder], stderr=subprocess.PIPE, text=True,
                               cwd=ROOT)
    until(lambda: len([*folder.glob("*.jsonl")]) >= 2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=SECONDS)
    files = [*folder.iterdir()]
    assert process.returncode == 0 and said.splitlines()[-1] == f"{len(files)} moments in {folder}, 0 not captured"
    assert all(f"{one}: " in said and read_groups(one) for one in files)
    done = run([*words, "-o", str(folder), "--for", "3s"])
    assert done.code == 0 and done.err.splitlines()[-1].startswith("2 moments in ")
