"""Apache Kafka itself on loopback: one broker in KRaft mode that is stopped whatever happens.

    with broker() as kafka:
        KafkaConsumer(bootstrap_servers=kafka.bootstrap)

`python tools/broker.py` prints its address and runs it until its input ends.
"""
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from jars import jars
from java import any_java

SECONDS_TO_START, SECONDS_TO_STOP = 60, 30
JVM = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
ADMIN, GUEST = ("admin", "admin-secret"), ("guest", "guest-secret")    # the users; a guest may do nothing
PROPERTIES = """
process.roles=broker,controller
node.id=1
broker.rack=a
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{plain},LOGIN://127.0.0.1:{login},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},LOGIN://127.0.0.1:{login}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,LOGIN:{protocol},CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,OAUTHBEARER
listener.name.login.plain.sasl.jaas.config={modules}.plain.PlainLoginModule required user_{admin}="{password}" \\
  user_{guest}="{guess}";
listener.name.login.scram-sha-256.sasl.jaas.config={modules}.scram.ScramLoginModule required;
listener.name.login.oauthbearer.sasl.jaas.config={modules}.oauthbearer.OAuthBearerLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{admin}
log.dirs={folder}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.heartbeat.interval.ms=200
group.consumer.heartbeat.interval.ms=200
auto.create.topics.enable=false
log.cleaner.enable=false
num.network.threads=2
num.io.threads=2
"""
# The command ends, and its folder goes, when the input of this shell ends: when `stop` closes it, or its starter dies.
GUARD = """
exec 3<&0
folder=$1; shift
"$@" </dev/null 3<&- & command=$!
{ read -r line <&3; kill $command; } & guard=$!
wait $command; code=$?
kill $guard
rm -rf "$folder"
exit $code
"""


def java_command(*arguments, before=()):
    """The command that runs a class of Kafka, or a source file beside it, in a small JVM with Kafka's class path.

    `before`: folders that come first in it.
    """
    path = os.pathsep.join([*map(str, before), f"{jars()}/*"])
    return [any_java(), *JVM, "-cp", path, *map(str, arguments)]


class Broker:
    """A running broker: where it listens without (`bootstrap`) and with a login (`sasl`), and how to stop it."""

    def __init__(self, process, bootstrap, sasl):
        self.process, self.bootstrap, self.sasl = process, bootstrap, sasl

    def stop(self):
        """Stop it and wait until all of its processes are gone; a second time does nothing."""
        self.process.stdin.close()
        try:
            self.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def _free_ports(count):
    """Ports of 127.0.0.1 on which nothing listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def _answer(address, key, version, body):
    """The body of the broker's answer to a request in a version whose header is the old one."""
    head = struct.pack(">hhih", key, version, 0, -1)
    with closing(socket.create_connection(address, timeout=5)) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(head + body)) + head + body)
        size, _ = struct.unpack(">ii", answers.read(8))
        return answers.read(size - 4)


def _is_ready(port):
    """Whether the group coordinator answers, which it does some time after the port is open."""
    group = struct.pack(">h4s", 4, b"warm")
    try:
        found = _answer(("127.0.0.1", port), 10, 0, group)                             # FindCoordinator
        offsets = _answer(("127.0.0.1", port), 9, 2, group + struct.pack(">i", -1))    # OffsetFetch, all of a group
    except (OSError, struct.error):
        return False
    return found[:2] == offsets[-2:] == b"\0\0"                                        # no error


def start(protocol="SASL_PLAINTEXT", more="", log=None, before=()):
    """Start a broker on free ports and wait until it serves groups; RuntimeError if it does not within a minute.

    `protocol`: of the listener with a login; `more`: lines of its properties, of which the last one of a name counts;
    `log`: the file to which its output goes (None = one that goes with it); `before`: as in `java_command`.
    """
    folder = tempfile.mkdtemp(prefix="kafka-")
    plain, login, controller = _free_ports(3)
    properties, output = Path(folder, "server.properties"), Path(folder, "output")
    properties.write_text(PROPERTIES.format(
        plain=plain, login=login, controller=controller, protocol=protocol, folder=folder, admin=ADMIN[0],
        password=ADMIN[1], guest=GUEST[0], guess=GUEST[1],
        modules="org.apache.kafka.common.security") + more)
    identity = "MkU3OEVBNTcwNTJENDM2Qg"
    try:
        subprocess.run(
            java_command("kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", identity, "-c", properties),
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with Path(log or output).open("wb") as file:
            process = subprocess.Popen(
                ["sh", "-c", GUARD, "sh", folder, *java_command("kafka.Kafka", properties, before=before)],
                stdin=subprocess.PIPE, stdout=file, stderr=file, start_new_session=True)
    except BaseException:
        shutil.rmtree(folder)
        raise
    started = Broker(process, f"127.0.0.1:{plain}", f"127.0.0.1:{login}")
    deadline = time.monotonic() + SECONDS_TO_START
    try:
        while not _is_ready(plain):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Kafka must serve within {SECONDS_TO_START} s (got exit code {process.poll()})")
            time.sleep(0.05)
    except BaseException:
        started.stop()
        raise
    return started


@contextmanager
def broker():
    """A running broker, stopped at the end."""
    started = start()
    try:
        yield started
    finally:
        started.stop()


if __name__ == "__main__":
    with broker() as kafka:
        print(kafka.bootstrap, flush=True)
        sys.stdin.read()
