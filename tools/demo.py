"""Consumers of kafka-python under `sticky` on a real broker: what `kafka-assign compare` foretells, and what happens.

    python tools/demo.py

Three consumers share twelve partitions. One is killed, then two join, one after the other. Before each change the group
is captured and compared with what it would be afterwards; beside this appears who owns what when the group has settled.
The exit code is 1 if that differs. Everything stops when the demo does.
"""
import logging
import signal
import sys
import time
from contextlib import closing, suppress
from multiprocessing import get_context, parent_process

from broker import broker
from jars import NoJars
from rich.console import Console
from rich.live import Live
from rich.table import Table

from kafka_assign import compare
from kafka_assign.clients import assignor
from kafka_assign.clients.cluster import CaptureError, capture

GROUP, TOPICS, STRATEGY = "demo", {"clicks": 6, "views": 6}, "sticky"
WIDTH, SECONDS = 88, 60                                # of what is shown; for the group to settle
POLL, SESSION, HEARTBEAT = 200, 2_000, 200             # milliseconds


def consume(server, name):
    """Be a consumer with this client id for as long as the demo runs."""
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    try:
        consumer = KafkaConsumer(
            *TOPICS, bootstrap_servers=server, group_id=GROUP, client_id=name, session_timeout_ms=SESSION,
            heartbeat_interval_ms=HEARTBEAT, partition_assignment_strategy=[assignor(STRATEGY)])
        while parent_process().is_alive():
            consumer.poll(POLL)
    except KafkaError:
        if parent_process().is_alive():                # without the demo, there is no broker
            raise


def owners(group, owner):
    """The client id of the owner of each partition, by the name of the partition; `owner`: a column of the group."""
    names = [*(member.client_id or member.id for member in group.details), "-"]
    partitions = map(group.at, range(group.columns.size))
    return {f"{topic}-{number}": names[place] for (topic, number), place in zip(partitions, owner)}


def table(before, foretold, now):
    """The partitions that get another owner: who that was before, who it will be, who it is now."""
    shown = Table(box=None, pad_edge=False, padding=(0, 4, 0, 0))
    for head in ("partition", "before", "foretold", "happened"):
        shown.add_column(head, overflow="fold")
    for one in before:
        if {before[one], foretold[one], now[one]} != {before[one]}:
            style = "green" if now[one] == foretold[one] else "dim" if now[one] in (before[one], "-") else "red"
            shown.add_row(one, before[one], foretold[one], f"[{style}]{now[one]}")
    return shown


class Demo:
    """The running consumers, by client id, and what is shown of their group."""

    def __init__(self, console, server):
        self.console, self.server, self.consumers = console, server, {}

    def start(self, name):
        """Start a consumer."""
        self.consumers[name] = get_context("spawn").Process(target=consume, args=(self.server, name), daemon=True)
        as_before = signal.signal(signal.SIGINT, signal.SIG_IGN)       # inherited: the demo stops its consumers itself
        self.consumers[name].start()
        signal.signal(signal.SIGINT, as_before)

    def kill(self, name):
        """Kill a consumer; the group notices when its session ends."""
        process = self.consumers.pop(name)
        process.kill()
        process.join()

    def settled(self, watch=lambda group: None):
        """The group as soon as the running consumers own all partitions; `watch` is called with it until then."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            with suppress(CaptureError):               # there is no group yet
                group = capture(self.server, [GROUP])[GROUP]
                watch(group)
                names = [member.client_id for member in group.details]
                if group.state == "Stable" and {*names} == {*self.consumers} and (group.previous >= 0).all():
                    return group
            time.sleep(POLL / 1000)
        sys.exit(f"the group must settle within {SECONDS} s")

    def change(self, before, after, option, make):
        """Foretell what a change does to the group, make it, and show both; the group then. Exits if they differ."""
        was = owners(before, before.previous)
        foretold = owners(after, compare(after, [STRATEGY], before=before)[STRATEGY].owner)
        command = f"kafka-assign compare --bootstrap-server {self.server} -g {GROUP} -s {STRATEGY}"
        self.console.print(f"\n[bold]{command} \\\n    {option}")
        with Live(table(was, foretold, was), console=self.console, transient=True) as live:
            make()
            group = self.settled(lambda now: live.update(table(was, foretold, owners(now, now.previous))))
        happened = owners(group, group.previous)
        self.console.print(table(was, foretold, happened))
        if happened != foretold:
            sys.exit("the forecast was wrong")
        moved = sum(happened[one] != was[one] for one in was)
        self.console.print(f"As foretold, {moved} of {len(was)} partitions have another owner.")
        return group

    def run(self):
        """Three consumers, of which one is killed, then two more."""
        for name in ("anna", "ben", "carl"):
            self.start(name)
        group = self.settled()
        self.console.print(f"{len(self.consumers)} consumers share {group.columns.size} partitions under {STRATEGY}.")
        [gone] = [member.id for member in group.details if member.client_id == "anna"]
        group = self.change(group, group.leave(gone), "--leave anna", lambda: self.kill("anna"))
        for name in ("dora", "erik"):
            joined, option = group.join(name, TOPICS), f"--join {name}:{','.join(TOPICS)}"
            group = self.change(group, joined, option, lambda: self.start(name))


def main():
    """Start all that the demo needs, and stop it."""
    from kafka import KafkaAdminClient
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    console = Console(highlight=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    console.print("Starting Kafka")
    with broker() as kafka:
        with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
            admin.create_topics({topic: {"num_partitions": count} for topic, count in TOPICS.items()})
        demo = Demo(console, kafka.bootstrap)
        try:
            demo.run()
        finally:
            for name in [*demo.consumers]:
                demo.kill(name)


if __name__ == "__main__":
    try:
        main()
    except NoJars as reason:
        sys.exit(f"no Kafka: {reason}")
    except KeyboardInterrupt:
        sys.exit(130)                                  # as programs end that an interrupt kills
