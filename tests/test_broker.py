"""The broker of the tests serves topics, groups, passwords and tools, and nothing of it outlives its starter.

On it, groups of consumers get into trouble between two captures, and the command line says which.
"""
import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from live_members import SECONDS, live_group, until
from test_cli import run, unwrapped

from kafka_assign.clients import assignor
from kafka_assign.clients.cluster import CaptureError, capture

pytestmark = pytest.mark.needs("broker")

TOOLS = Path(__file__).resolve().parent.parent / "tools"


def is_gone(group):
    """Whether no process of this process group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(scope="module")
def admin(broker):
    from kafka import KafkaAdminClient
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
        yield client


def test_records_groups_and_offsets(broker, admin):
    """Two consumers of kafka-python share a topic; what they commit is read by the client and by Kafka's own tool."""
    from broker import java_command
    from kafka import KafkaProducer, TopicPartition
    from kafka.admin import OffsetSpec
    with live_group(broker, "b-readers", {"b-words": 4}, [partial(assignor, "range")]) as group:
        group.join("a", "b")
        partitions = {TopicPartition("b-words", number) for number in range(4)}
        with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
            sent = [producer.send("b-words", b"word", partition=number % 4) for number in range(40)]
            assert sorted(future.get(SECONDS).offset for future in sent) == sorted(list(range(10)) * 4)
        ends = admin.list_partition_offsets({partition: OffsetSpec.LATEST for partition in partitions})
        assert {end.offset for end in ends.values()} == {10}
        assert [sorted(owned) for _, owned in sorted(group.settled().owned.items())] == [
            [("b-words", 0), ("b-words", 1)], [("b-words", 2), ("b-words", 3)]]

        def received():
            return {(batch.partition, offset) for name in "ab" for batch in group[name].of("records")
                    for offset in batch.offsets}
        until(lambda: received() == {(number, offset) for number in range(4) for offset in range(10)})
        group.leave("a", "b")
    committed = admin.list_group_offsets("b-readers")["b-readers"]
    assert {partition: offset.offset for partition, offset in committed.items()} == dict.fromkeys(partitions, 10)
    command = java_command("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--describe", "--offsets",
                           "--bootstrap-server", broker.bootstrap, "--group", "b-readers")
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in printed.splitlines() if line.startswith("b-readers")]
    assert sorted(row[1:6] for row in rows) == [["b-words", str(number), "10", "10", "0"] for number in range(4)]


def test_passwords(broker, admin):
    """One user may do everything and one nothing; a wrong password is refused."""
    from broker import ADMIN, GUEST
    from kafka import KafkaAdminClient
    from kafka.errors import GroupAuthorizationFailedError, KafkaTimeoutError

    def offsets_as(user, password, seconds=SECONDS):
        with closing(KafkaAdminClient(bootstrap_servers=broker.sasl, security_protocol="SASL_PLAINTEXT",
                                      sasl_mechanism="PLAIN", sasl_plain_username=user,
                                      sasl_plain_password=password, bootstrap_timeout_ms=1000 * seconds)) as client:
            return client.list_group_offsets("b-readers")
    assert offsets_as(*ADMIN) == admin.list_group_offsets("b-readers")
    with pytest.raises(GroupAuthorizationFailedError):
        offsets_as(*GUEST)
    with pytest.raises(KafkaTimeoutError):      # kafka-python tries again and again, whatever the broker answers
        offsets_as(ADMIN[0], "wrong", seconds=1)


def five_minutes_before(group):
    """A captured group as if it were captured earlier."""
    return group.replace(time=(datetime.fromisoformat(group.time) - timedelta(minutes=5)).isoformat())


def test_trouble_between_two_captures(broker, admin, tmp_path):
    """A handler that fails on every record, a misspelled topic, and partitions that are added."""
    from kafka import KafkaProducer, TopicPartition
    topic, file = "b-changes", tmp_path / "old.jsonl"

    def produce():
        with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
            for sent in [producer.send(topic, b"", partition=number % 4) for number in range(40)]:
                sent.get(SECONDS)

    def captured(members, **committed):
        """The group once it has so many members, is stable, and partitions have these committed offsets."""
        found = capture(broker.bootstrap, [topic])[topic]
        stable = (len(found.members), found.state) == (members, "Stable") and found.offsets is not None
        if not stable or (found.previous < 0).any():
            return None
        offsets = {f"p{number}": int(found.offsets.committed[found.position(topic, number)]) for number in range(4)}
        return found if committed.items() <= offsets.items() else None
    with live_group(broker, topic, {topic: 4}, [partial(assignor, "range")]) as group:
        group.join("a")
        produce()
        until(lambda: captured(1, p0=10, p1=10, p2=10, p3=10), CaptureError)
        group.join("b", enable_auto_commit=False)                # it commits nothing, as if its handler failed
        group.join("c", topics=["b-chnges"])
        until(lambda: captured(3), CaptureError)
        produce()
        old = until(lambda: captured(3, p0=20, p1=20), CaptureError)
        names = {member.client_id: member.id for member in old.details}
        file.write_text(five_minutes_before(old).to_json() + "\n")
        admin.create_partitions({topic: 6})
        produce()
        new = until(lambda: captured(3, p0=30, p1=30, p2=30, p3=10), CaptureError)
        done = run(["diff", str(file), "--bootstrap-server", broker.bootstrap, "-g", topic, "--format", "json"])
        shown = run(["show", "--bootstrap-server", broker.bootstrap, "-g", topic])
    rows = {(row["what"], row["subject"]): row for row in json.loads(done.out)}
    assert {subject for what, subject in rows if what == "stuck"} == {f"{topic}-3"}
    assert (rows["partitions", topic]["old"], rows["partitions", topic]["new"]) == (4, 6)
    assert (rows["owner", f"{topic}-2"]["old"], rows["owner", f"{topic}-2"]["new"]) == (names["b"], names["a"])
    assert "nothing was committed" in rows["lag", names["b"]]["words"]
    assert "b-chnges does not exist; did they mean b-changes?" in unwrapped(shown.out) and names["b"] in shown.out
    file.write_text(file.read_text() + new.to_json())
    [row] = [row for row in json.loads(run(["rank", str(file), "--format", "json"]).out) if row["need"] == "stuck"]
    assert row["affected"] == 1 and f"{topic}-3 on {names['b']}" in row["reason"] and "moved on" in row["reason"]


def test_pods_that_are_replaced(broker, tmp_path):
    """Each rollout of a Deployment brings new instance ids: static members, but other ones."""
    name, pods = "b-pods", [f"app-7d9f6c8b4-{end}" for end in ("4kd7x", "9wz2q", "x2v8b", "tq5lm")]

    def captured(*there):
        found = capture(broker.bootstrap, [name])[name]
        ids = {member.instance_id for member in found.details}
        return found if ids == {*there} and found.state == "Stable" else None
    with live_group(broker, name, {name: 2}, [partial(assignor, "range")]) as group:
        for pod in pods[:2]:
            group.join(pod, group_instance_id=pod)
        old = five_minutes_before(until(lambda: captured(*pods[:2]), CaptureError))
        group.kill(*pods[:2])
        for pod in pods[2:]:
            group.join(pod, group_instance_id=pod)
        until(lambda: captured(*pods[2:]), CaptureError)             # once the sessions of the old ones have ended
        (tmp_path / "old.jsonl").write_text(old.to_json())
        done = run(["diff", str(tmp_path / "old.jsonl"), "--bootstrap-server", broker.bootstrap, "-g", name,
                    "--format", "json"])
        shown = run(["show", "--bootstrap-server", broker.bootstrap, "-g", name])
    for what, names in (("member-joined", pods[2:]), ("member-left", pods[:2])):
        ids = sorted(row["subject"] for row in json.loads(done.out) if row["what"] == what)
        assert [id.rpartition("-")[0][:len(pod)] for id, pod in zip(ids, sorted(names))] == sorted(names)
    assert "instance ids look like the names of a Deployment's pods" in unwrapped(shown.out)


@pytest.mark.needs("jdk")
def test_java_runs_source_files_with_kafka_on_the_class_path(broker, tmp_path):
    from broker import java_command
    source = tmp_path / "Version.java"
    source.write_text("class Version { public static void main(String[] arguments) { System.out.print("
                      "org.apache.kafka.common.utils.AppInfoParser.getVersion()); } }")
    assert subprocess.run(java_command(source), capture_output=True, check=True, text=True).stdout == "4.3.1"


def test_a_second_broker_ends_with_its_starter(broker):
    """It takes other ports; it and its data are gone after its starter was killed, and the first one still serves."""
    from broker import _is_ready
    program = "import broker; one = broker.start(); print(one.process.pid, one.bootstrap, flush=True); input()"
    starter = subprocess.Popen([sys.executable, "-c", program], cwd=TOOLS, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        group, address = starter.stdout.readline().split()
        assert address != broker.bootstrap and _is_ready(int(address.split(":")[1]))
        [folder] = {Path(word).parent for word in Path(f"/proc/{group}/cmdline").read_text().split("\0")
                    if word.endswith("server.properties")}
        assert folder.is_dir() and not is_gone(int(group))
        starter.send_signal(signal.SIGKILL)
        until(lambda: is_gone(int(group)))
        assert not folder.exists() and _is_ready(int(broker.bootstrap.split(":")[1]))
    finally:
        starter.kill()
        starter.communicate()


def test_stop_leaves_nothing_behind():
    from broker import _is_ready, broker
    with broker() as started:
        group, port = started.process.pid, int(started.bootstrap.split(":")[1])
        assert not is_gone(group)
    assert is_gone(group) and not _is_ready(port)
    started.stop()


def test_a_broker_that_cannot_start_says_so_and_leaves_nothing_behind(monkeypatch, tmp_path):
    import broker
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(broker, "JVM", ["-Xmx4m"])
    with pytest.raises(subprocess.CalledProcessError):
        broker.start()
    assert not [*tmp_path.iterdir()]
