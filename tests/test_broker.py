"""The broker of the tests serves topics, groups, passwords and tools, and nothing of it outlives its starter."""
import os
import signal
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from live_members import SECONDS, live_group, until

from kafka_assign.clients import assignor

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
