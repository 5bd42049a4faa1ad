"""What `replay` forecasts, beside what a broker did: a script runs in groups of Java members, and the histories of
those with dynamic members must forecast those with static members, or with another assignor."""
import subprocess
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from live_members import live_group, until
from test_cli import run
from test_live_history import Java
from test_live_mixed import JAVA, JavaMembers

from kafka_assign import read_history, replay
from kafka_assign.life.costs import recorded_row
from kafka_assign.life.trace import History

pytestmark = [pytest.mark.needs("broker"), pytest.mark.needs("jdk")]
AWAY = 45               # seconds until the session of a static member of `JavaMember` ends


class Scripted(Java):
    """Java members of one group. `live`: as its coordinator describes it; `there`: whom it counts as members."""

    def __init__(self, java, live, topics, strategy, static):
        super().__init__(live.bootstrap, live.name, None)
        self.java, self.live, self.topics, self.strategy, self.static = java, live, topics, strategy, static
        self.there = set()

    def do(self, what, number):
        from kafka.admin import MemberToRemove
        name = f"{self.group}-{number}"
        if what in ("join", "less"):
            self.topic = ",".join(self.topics[:1] if what == "less" else self.topics)
            self.assignor = JAVA[self.strategy] + f" {name}" * self.static
            self.join(name)
            self.there.add(name)
        elif what in ("leave", "away"):
            self.leave(name)
            if what == "leave" or not self.static:
                self.there.remove(name)
            if what == "leave" and self.static:
                self.live.admin.remove_group_members(self.group, [MemberToRemove(group_instance_id=name)])

    def rest(self, partitions):
        """Wait until all partitions have an owner, and the members that run hold what the coordinator says."""
        def rests():
            owned = self.live.settled(*self.there).owned
            self.look()
            return sum(map(len, owned.values())) == partitions and all(
                self.held[name] == owned[name] for name in self.running)
        until(rests, why=lambda: f": {self.group}: {self.held}")


def histories(broker, prefix, kinds, script):
    """The history of a group of each kind, a pair of assignor and whether its members are static, by kind.

    All groups read the same two topics, of which the first one grows. Between two events of the script they rest, so
    that each event is a rebalance of its own. Members come with `join`, or with `less` to read only the first topic;
    they go with `leave`, or with `away` if they come again.
    """
    from kafka.admin import NewPartitions
    counts = {f"{prefix}-orders": 8, f"{prefix}-payments": 4}
    with ExitStack() as stack:
        java = JavaMembers(broker.bootstrap)
        stack.callback(java.end)
        groups = {(strategy, static): Scripted(java, stack.enter_context(live_group(
            broker, f"{prefix}-{strategy}-{'static' if static else 'dynamic'}", {}, [])), [*counts], strategy, static)
            for strategy, static in kinds}
        admin = stack.enter_context(live_group(broker, prefix, counts, [])).admin
        for what, number in map(str.split, script):
            if what == "grow":
                counts[f"{prefix}-orders"] = int(number)
                admin.create_partitions({f"{prefix}-orders": NewPartitions(int(number))})
            for group in groups.values():
                group.do(what, number)
            for group in groups.values():
                group.rest(sum(counts.values()))
        done = run(f"capture --history --bootstrap-server {broker.bootstrap} "
                   + " ".join(f"-g {group.group}" for group in groups.values()))
        assert done.code == 0 and not done.err
        found = read_history(done.out)
        return {kind: found[group.group] for kind, group in groups.items()}


def happened_in(history):
    """Rebalances and moves. A cooperative second round that still withholds partitions is not counted: a member joins
    it early, before it has heard what to give up, and then there is a third one."""
    row, withheld = recorded_row(history), [len(one.owners) < sum(one.counts.values()) for one in history.generations]
    return row.rebalances - sum(map(all, pairwise(withheld))), row.moves


def forecast(history, strategies):
    """What a history forecasts: by strategy and whether members are static, rebalances and moves."""
    return {(row.strategy.removeprefix("kafka-"), row.static is not None): (row.rebalances, row.moves)
            for row in replay(History(history.generations), strategies, static=AWAY).rows[1:]}


def test_a_history_forecasts_another_assignor_and_static_members(broker):
    """Members join and leave, a topic grows, and two members are back within seconds. They share 12 or 24 partitions
    evenly, so that their random ids do not matter."""
    found = histories(broker, "again", [(strategy, static) for strategy in ("range", "cooperative-sticky")
                                        for static in (False, True)], [
        "join 1", "join 2", "join 3", "join 4", "leave 3", "grow 20", "away 2", "join 2", "away 1", "join 1",
        "leave 4"])
    happened = {kind: happened_in(history) for kind, history in found.items()}
    assert [rebalances for rebalances, _ in happened.values()] == [11, 7, 16, 10]
    for strategy in "range", "cooperative-sticky":
        for cooperative in "cooperative-sticky", "kafka-cooperative-sticky":
            assert forecast(found[strategy, False], ["range", cooperative]) == happened


def test_a_static_member_that_is_back_with_other_topics(broker):
    """It joins again if it owns partitions of a topic that it dropped; else the group keeps its assignment."""
    found = histories(broker, "topics", [("range", False), ("range", True)], [
        "join 1", "join 2", "less 3", "away 2", "less 2", "away 3", "join 3", "join 4"])
    happened = {kind: happened_in(history) for kind, history in found.items()}
    assert [rebalances for rebalances, _ in happened.values()] == [8, 5]
    assert forecast(found["range", False], ["range"]) == happened
    [_, row] = replay(History(found["range", True].generations), ["range"]).rows
    assert (row.rebalances, row.moves) == happened["range", True] and row.forecast == row.known == 5


# --- pauses, as logs of a broker and of its members tell -----------------------------------------------------------

HEARTBEAT = 1.0         # seconds


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A broker and Java members that log to files in `folder`."""
    from broker import start
    from jars import jars
    classes, folder = tmp_path_factory.mktemp("classes"), tmp_path_factory.mktemp("logs")
    binder = Path(__file__).with_name("StaticLoggerBinder.java")
    subprocess.run(["javac", "-cp", f"{jars()}/*", "-d", classes, binder], check=True)
    with ExitStack() as stack:
        broker = start(log=folder / "server.log", before=[classes])
        stack.callback(broker.stop)
        java = JavaMembers(broker.bootstrap, [f"-Dmember.heartbeat.interval.ms={HEARTBEAT * 1000:.0f}"],
                           stack.enter_context((folder / "members.log").open("wb")), [classes])
        stack.callback(java.end)
        yield SimpleNamespace(broker=broker, java=java, folder=folder)


def test_rolled_groups_foretell_what_the_other_one_cost(logged):
    """Three Java members each under range and under cooperative-sticky are rolled at the same moments. The row of what
    ran is what was measured; that of what ran in the other group is near its measure, or says how far it may be."""
    topics = {"roll-orders": 8, "roll-payments": 4}
    with ExitStack() as stack:
        groups = [Scripted(logged.java, stack.enter_context(live_group(
            logged.broker, f"roll-{strategy}", topics if strategy == "range" else {}, [])), [*topics], strategy, False)
            for strategy in ("range", "cooperative-sticky")]
        for number in "123":
            roll(groups, "join", number)
        for number in "123":
            time.sleep(HEARTBEAT / 8)                # soon after a heartbeat: what it left waits for the next one
            roll(groups, "leave", number)
            roll(groups, "join", number)
        found = read_history(logged.folder)
    eager, cooperative = (found[group.group] for group in groups)
    rows = {(row.group_id, row.strategy): row for row in replay(found, ["range", "kafka-cooperative-sticky"]).rows}
    for history, strategy, other in (eager, "range", cooperative), (cooperative, "kafka-cooperative-sticky", eager):
        measured, ran = recorded_row(history).paused, rows[history.name, strategy]
        assert ran.forecast >= ran.known - 1 and ran.paused == pytest.approx(measured, rel=0.05)
        foretold = rows[other.name, strategy]
        slack = 0.25 * measured + 12 * 0.05 * len(other.generations)      # seconds of a machine that is busy
        assert foretold.paused_least - slack <= measured <= foretold.paused_most + slack


def roll(groups, what, number):
    """Do it in all groups, and wait until they rest."""
    for group in groups:
        group.do(what, number)
    for group in groups:
        group.rest(12)
