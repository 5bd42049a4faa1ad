"""Groups of kafka-python members with our assignors and of real Java members, on a real broker.

What Java's classes read and write is recorded in `reference/`. Here it shows whether the clients bring it to each
other: whether either side may lead, and owned partitions and generations survive a change of the leader.
"""
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from live_members import SECONDS, live_group, until

from kafka_assign import TopicPartition, lead
from kafka_assign.clients import ConsumerAssignor, assignor
from kafka_assign.protocol.wire import decode_assignment

pytestmark = [pytest.mark.needs("broker"), pytest.mark.needs("jdk")]

STICKY = {"sticky": "StickyAssignor", "cooperative-sticky": "CooperativeStickyAssignor"}
JAVA = {**STICKY, "range": "RangeAssignor", "roundrobin": "RoundRobinAssignor"}
PARTITIONS = 12         # so that two, three and four members have the same load


class JavaMembers:
    """Java members of any groups, in one JVM; `lines` are what they printed.

    `options`: of Java; `log`: the file to which they write what they log, None = none; `before`: of the class path.
    """

    def __init__(self, bootstrap, options=(), log=None, before=()):
        from broker import java_command
        self.process = subprocess.Popen(
            java_command(*options, Path(__file__).with_name("JavaMember.java"), bootstrap, before=before), text=True,
            bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log or subprocess.DEVNULL)
        self.lines = []
        self.reader = Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def join(self, group, *names):
        """Start a member of each name in a group of `started`; its client id is the name."""
        [topic] = group.topics
        for name in names:
            print("join", name, group.name, topic, JAVA[group.strategy], file=self.process.stdin)

    def leave(self, *names):
        """Close these members, and wait until they are gone."""
        for name in names:
            print("leave", name, file=self.process.stdin)
        until(lambda: {f"{name} left\n" for name in names} <= {*self.lines})

    def end(self):
        """End the JVM; no member may have failed."""
        self.process.stdin.close()
        try:
            assert self.process.wait(SECONDS) == 0
        finally:
            self.process.kill()
            self.reader.join(SECONDS)
            self.process.stdout.close()
        assert not [line for line in self.lines if " failed " in line]


@pytest.fixture(scope="module")
def java(broker):
    members = JavaMembers(broker.bootstrap)
    yield members
    members.end()


def started(stack, broker, prefix, strategies):
    """A live group of each name, which runs the strategy it is mapped to, with a topic of its own."""
    groups = []
    for name, strategy in strategies.items():
        group = stack.enter_context(live_group(
            broker, f"{prefix}-{name}", {f"{prefix}-{name}-t": PARTITIONS}, [partial(assignor, strategy)]))
        group.strategy = strategy
        groups.append(group)
    return groups


def even(state, strategy):
    """The state of a group at rest, if it runs this strategy, and all of its members have the same load."""
    assert state.protocol == strategy
    assert {len(own) for own in state.owned.values()} == {PARTITIONS // len(state.owned)}
    return state


def test_either_side_may_lead_and_members_keep_what_they_can(broker, java):
    """A lost claim, generation or assignment on the way between the clients shows as a move that need not be.

    Python leads the Java members, leaves, and joins the group again when Java leads. Then Java leaves.
    """
    with ExitStack() as stack:
        groups = started(stack, broker, "mixed", {strategy: strategy for strategy in JAVA})
        before, java_names = {}, {group: [f"{group.strategy}-{number}" for number in (1, 2)] for group in groups}

        def settled(leaders, java_left=False):
            for group in groups:
                state = even(group.settled(*([] if java_left else java_names[group])), group.strategy)
                assert state.leader in leaders
                if group.strategy in STICKY:
                    for name in state.owned.keys() & before.get(group, {}).keys():
                        old, new = before[group][name], state.owned[name]
                        assert len(old & new) == min(len(old), len(new))
                else:
                    answers = lead(group.strategy, state.joined, state.topics)
                    assert {state.names[one]: frozenset(decode_assignment(data).assigned)
                            for one, data in answers.items()} == state.owned
                before[group] = state.owned
        for group in groups:
            group.join("a")
        settled("a", java_left=True)
        for group in groups:
            java.join(group, *java_names[group])
        settled("a")
        for group in groups:
            group.leave("a")
        settled([""])
        for group in groups:
            group.join("b", "c")
        settled([""])
        java.leave(*(name for names in java_names.values() for name in names))
        settled("bc", java_left=True)


class Returning(ConsumerAssignor):
    """A member that comes back after others have led: it claims partitions in generation 1, as it did when it left."""

    def __init__(self, strategy, claims):
        self.returning = frozenset(TopicPartition(*one) for one in claims)
        super().__init__(strategy)

    def subscription(self, topics):
        if self.consumer.generation <= 1:
            self.consumer = replace(self.consumer, claims=self.returning, generation=1)
        return super().subscription(topics)


def test_conflicting_claims_go_to_the_newer_generation(broker, java):
    """A member claims in an old generation what another one owns by now: if it won, the owner would lose partitions
    and get others instead. Each side leads, and each side is the owner."""
    with ExitStack() as stack:
        groups = started(stack, broker, "claims", {
            f"{side}-{strategy}": strategy for side in ("python", "java") for strategy in STICKY})
        names = {group: f"{group.name}-java" for group in groups}
        for group in groups:
            if "-java-" in group.name:
                java.join(group, names[group])
            else:
                group.join("python")
        owned = {}
        for group in groups:
            even(group.settled(*[names[group]] * ("-java-" in group.name)), group.strategy)
        for group in groups:
            if "-java-" in group.name:
                group.join("python")
            else:
                java.join(group, names[group])

        def settled():
            for group in groups:
                state = even(group.settled(names[group]), group.strategy)
                assert state.leader == ("" if "-java-" in group.name else "python")
                yield group, state.owned
        for trial in range(6):
            owned = dict(settled())
            for group in groups:
                owner = names[group] if trial % 3 == 2 else "python"
                group.join("old", assignors=[partial(Returning, group.strategy, owned[group][owner])])
            for group, present in settled():
                for name in ("python", names[group]):
                    assert present[name] < owned[group][name]
            for group in groups:
                group.leave("old")
