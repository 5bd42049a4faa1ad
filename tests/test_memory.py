"""What assignors remember: whose claims count, as Kafka's own classes say that are played."""

import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pytest

from kafka_assign import Group, GroupError, LiveGroup, Member, assign, strategies
from kafka_assign.assignors.conformance import random_groups
from kafka_assign.assignors.memory import at_switch, remembers, reported_name
from kafka_assign.assignors.registry import resolve
from kafka_assign.life.rolling import restart_in_turn
from kafka_assign.protocol.wire import Claims, encode_sticky

HERE = Path(__file__).parent
OF_CLIENTS = [name for name in strategies() if resolve(name).protocol != "broker"]
JAVAS = {"range": "range", "roundrobin": "roundrobin", "sticky": "kafka-sticky",
         "cooperative-sticky": "kafka-cooperative-sticky"}
GROUPS = 200


# --- Kafka's own classes --------------------------------------------------------------------

class Script:
    """Events of a random group that changes its assignor once or twice."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.topics = {f"t{number}": rng.randint(1, 8) for number in range(rng.randint(1, 3))}
        self.events = []
        self.lists = {}                             # by member: the assignors that it lists
        self.running = rng.choice([*JAVAS])
        names = [f"m{number}" for number in range(rng.randint(2, 4))]
        static, equal = rng.choice([0, 0.5, 1]), rng.random()
        self.instances = {name: f"i-{name}" if rng.random() < static else None for name in names}
        self.wanted = {name: [*self.topics] for name in [*names, "late"]}
        if equal < 0.4:                             # a member without topics would end the others
            for name in names:
                self.wanted[name] = rng.sample([*self.topics], rng.randint(1, len(self.topics)))
        self.join(names, [self.running])
        for _ in range(rng.randint(1, 2)):
            self.switch(rng.choice([name for name in JAVAS if name != self.running]))
            self.disturb(rng.choice([*self.lists]))

    def happen(self, event, names, **more):
        self.events.append({"do": event, "ids": names, **more})

    def join(self, names, listed):
        self.lists |= dict.fromkeys(names, listed)
        instances = [self.instances.get(name) for name in names]
        topics = [self.wanted[name] for name in names]
        self.happen("join", names, instances=instances, list=listed, topics=topics)

    def bounce(self, listed):
        """Restart all members with a list, in any order."""
        for name in self.rng.sample([*self.lists], len(self.lists)):
            if self.instances[name] is None:
                self.happen("leave", [name])
                self.join([name], listed)
            else:
                self.lists[name] = listed
                self.happen("restart", [name], list=listed)

    def switch(self, new):
        """The two bounces, or only the first; perhaps one with the old assignor comes and goes."""
        self.bounce([new, self.running])
        if self.rng.random() < 0.3:
            self.join(["late"], [self.running])
            del self.lists["late"]
            self.happen("leave", ["late"])
        if self.rng.random() < 0.6:
            self.bounce([new])
        self.running = new

    def disturb(self, name):
        """A member leaves for good, or is back: the process that was evicted, or a new one."""
        last = len(self.lists) == 1
        kind = self.rng.choice(["join", "rejoin"] if last else ["leave", "join", "rejoin"])
        self.happen("crash" if kind == "rejoin" else "leave", [name])
        if kind == "rejoin":
            self.happen("rejoin", [name])
        elif kind == "join":
            self.join([name], self.lists[name])
        else:
            del self.lists[name]


def played(script):
    """What a live group says of each event: the elected name, the rounds, and who has what."""
    live = LiveGroup("range", script.topics, {})
    for event in script.events:
        kind, names = event["do"], event["ids"]
        strategies = [JAVAS[name] for name in event.get("list", ())]
        if kind == "join":
            members = [Member(name, topics, instance_id=instance) for name, topics, instance
                       in zip(names, event["topics"], event["instances"])]
            rebalance = live.join(members, strategies=strategies)
        elif kind == "restart":
            rebalance = live.restart(*names, strategies=strategies)
        else:
            rebalance = getattr(live, kind)(*names)
        owners = {}
        for member in live:
            owners[member] = [f"{topic}-{number}" for topic, number in live[member]]
        yield reported_name(live.strategy), rebalance.rounds, owners


@pytest.mark.needs("jdk", "broker")                 # no broker runs, but its jars are needed
def test_a_change_of_assignor_is_as_with_kafkas_own_classes():
    """Election, rounds and owners, event by event. (A JVM, and 3,000 rebalances: 8 s of CPU.)"""
    from jars import jars_folder
    from java import find_jdk
    scripts = [Script(seed) for seed in range(GROUPS)]
    lines = [json.dumps({"topics": script.topics, "events": script.events}) for script in scripts]
    program = HERE / "JavaSwitch.java"
    command = [find_jdk(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars_folder()}/*", program]
    written = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True,
                             check=True).stdout
    for seed, (script, line) in enumerate(zip(scripts, written.splitlines(), strict=True)):
        told = [list(state) for state in played(script)]
        for event, state, expected in zip(script.events, told, json.loads(line), strict=True):
            assert state == expected, (seed, event)


# --- the group at a switch ------------------------------------------------------------------

def test_nobody_claims_anything_at_a_switch():
    """As if they had been given without owned partitions, generations and user data."""
    for group in random_groups():
        members = [group.details[at] for at in group.listed]
        without = [Member(one.id, one.topics, rack=one.rack, instance_id=one.instance_id)
                   for one in members]
        sent = group.replace(members=[
            replace(silent, user_data=encode_sticky(Claims(one.owned, 3)))
            for one, silent in zip(members, without)])
        for owning in (group, sent, sent.decode_claims("sticky")):
            seen = at_switch(owning)
            assert seen == group.replace(members=without) and seen.sent == seen.details
            assert not seen.dropped and not seen.has_user_data
            assert seen.columns == at_switch(owning.columns)


def test_a_group_made_of_arrays_has_no_claims_at_a_switch():
    made_of = ["t", "u"], [2, 1], ["a", "b"], np.ones((2, 2), bool)
    group = Group.from_arrays(*made_of, previous=[1, 0, 1])
    seen = at_switch(group)
    assert seen == Group.from_arrays(*made_of) and group.previous.tolist() == [1, 0, 1]
    assert [member.owned for member in seen.details] == [(), ()]


def switched(old, new, static):
    """A live group after one member after the other has listed both; and its last rebalance."""
    members = [Member(name, ["t", "u"], instance_id=f"i-{name}" if static else None)
               for name in "abc"]
    live = LiveGroup(old, {"t": 5, "u": 4}, members)
    for member in members:
        if static:
            last = live.restart(member.id, strategies=[new, old])
        else:
            last = live.leave(member.id)
            if live.strategy.label == old:
                live.join([member], strategies=[new, old])
    return live, last


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("new", OF_CLIENTS)
def test_what_the_leader_sees_at_a_switch(new, static):
    """No claims, unless the new strategy `remembers`; so its answer is that for `at_switch`."""
    for old in OF_CLIENTS:
        if reported_name(resolve(old)) == reported_name(resolve(new)):
            continue                                # no member can list both
        live, last = switched(old, new, static)
        assert live.strategy.label == new and last.rounds == 1
        seen = last.assignments[0].group
        assert (seen.previous >= 0).any() == remembers(resolve(new), resolve(old)) is False, old
        without = at_switch(live.group)
        assert {name: live[name] for name in live} == assign(without, new).to_dict(), old
        live.change_leader()                        # now it knows
        if resolve(new).claims not in (None, "cooperative"):
            assert live.history[-1].assignments[0].group.previous.max() >= 0


def test_strategies_that_are_all_cooperative_know_what_members_have():
    own = replace(resolve("cooperative-sticky"), name="own")
    members = [Member(name, ["t", "u"]) for name in "abc"]
    live = LiveGroup(own, {"t": 5, "u": 4}, members)
    for member in members:
        live.leave(member.id)
        last = live.join([member], strategies=["cooperative-sticky", own])
    assert live.strategy.label == "cooperative-sticky" and remembers(live.strategy, own)
    assert len(last.moved) <= 3 and (last.assignments[0].group.previous >= 0).any()


def test_names_that_a_group_reports():
    sticky, kafkas = resolve("sticky"), resolve("kafka-sticky")
    assert remembers(sticky, kafkas) and remembers(kafkas, sticky) and not remembers(sticky, None)
    for served in ("uniform", "server-range"):
        for running in (None, sticky, resolve("uniform")):
            assert remembers(resolve(served), running)


# --- processes ------------------------------------------------------------------------------

def static_group(strategy):
    members = [Member(name, ["t"], instance_id=f"i-{name}") for name in "abc"]
    return LiveGroup(strategy, {"t": 9}, members)


def test_a_group_that_falls_back_claims_what_it_had_before():
    """A member with range alone joins and leaves: the others still remember what was before."""
    live = static_group("kafka-sticky")
    for name in "abc":
        assert live.restart(name, strategies=["kafka-sticky", "range"]).rounds == 0
    live.change_leader()
    before = live.state.members
    live.join("d", ["t"], strategies=["range"])
    assert live.strategy.label == "range"
    back = live.leave("d")
    assert live.strategy.label == "kafka-sticky"
    seen = back.assignments[0].group
    assert {name: list(member.owned) for name, member in zip(seen.members, seen.details)} == {
        member.id: sorted(member.claims) for member in before}


@pytest.mark.parametrize("strategy", ["sticky", "stream-join-sticky"])
def test_a_new_process_remembers_only_what_the_coordinator_returns(strategy):
    live = static_group(strategy)
    for name in "abc":
        assert live.restart(name, strategies=[strategy, "range"]).rounds == 0
    assert [one.memory(live.strategy).partitions for one in live.state.members] == [
        one.claims for one in live.state.members]
    assert live.change_leader().moved == ()
    assert [live.restart(name, strategies=["range", strategy]).rounds for name in "ab"] == [0, 1]
    assert live.strategy.label == "range"           # two votes of three
    a, b, c = (member.memory(resolve(strategy)) for member in live.state.members)
    assert a.partitions and c.partitions and not b.partitions       # b had just begun
    live.restart("a")                               # what returns is the assignment of range
    forgotten = live.state.members[0].memory(resolve(strategy))
    assert (forgotten.partitions, forgotten.generation, forgotten.epoch) == (frozenset(), -1, -1)
    assert live.state.members[0].memory(live.strategy).partitions == {*live["a"]}


def test_who_may_restart_with_which_list():
    live = static_group("range")
    live.join("d", ["t"])
    before = live.state
    with pytest.raises(GroupError, match="which it listed before .got sticky; Kafka raises"):
        live.restart("a", strategies=["sticky"])
    with pytest.raises(GroupError, match="names .got kafka-sticky beside sticky"):
        live.restart("a", strategies=["sticky", "kafka-sticky", "range"])
    with pytest.raises(GroupError, match="different protocol names"):
        live.join("e", ["t"], strategies=["sticky", "kafka-sticky"])
    with pytest.raises(GroupError, match="must have an instance id .got 'd'; without one"):
        live.restart("d", strategies=["range"])
    assert live.state == before
    live.leave("d")
    for name in "ab":
        assert live.restart(name, strategies=["sticky", "range"]).rounds == 0
    with pytest.raises(GroupError, match="which it listed before"):     # only the others did
        live.restart("c", strategies=["sticky"])
    assert live.restart("c", strategies=["sticky", "range"]).rounds == 1


def test_an_evicted_member_remembers_and_has_lost():
    for strategy, claimed in (("sticky", True), ("cooperative-sticky", False)):
        live = LiveGroup(strategy, {"t": 6}, dict.fromkeys("abc", ["t"]))
        held = live["c"]
        live.crash("c")
        seen = live.rejoin("c").assignments[0].group.decode_claims(resolve(strategy).claims)
        assert list(seen.details[2].owned) == (held if claimed else [])
        live.reset_generation()
        first = live.history[-1].assignments[0].group.decode_claims(resolve(strategy).claims)
        assert all(bool(member.owned) == claimed for member in first.details)


# --- rolling restarts -----------------------------------------------------------------------

PAIRS = [("range", "cooperative-sticky"), ("range", "kafka-cooperative-sticky"),
         ("roundrobin", "sticky"), ("sticky", "cooperative-sticky"),
         ("cooperative-sticky", "sticky"), ("kafka-sticky", "range")]


@pytest.mark.parametrize("pair", PAIRS, ids="-to-".join)
def test_a_rolling_restart_that_brings_another_strategy_costs_as_in_a_live_group(pair):
    """All members list both; the first that is back, with the new one alone, brings it."""
    old, new = pair
    for seed in range(12):
        rng = random.Random(seed)
        topics = {"a": rng.randint(1, 6), "b": rng.randint(1, 6)}
        names = [f"m{number}" for number in range(rng.randint(2, 4))]
        static = {name for name in names if rng.random() < 0.4}
        members = [Member(name, rng.choice([["a"], ["b"], ["a", "b"]]),
                          instance_id=name if name in static else None) for name in names]
        live = LiveGroup(old, topics, {})
        total = {"rebalances": 0, "moved": 0, "paused": 0, "down": 0}
        live.join(members, strategies=[old, new])
        restarted = rng.sample(names, rng.randint(1, len(names)))
        cost = restart_in_turn(live.group, restarted, resolve(new), before=resolve(old))
        again = 0
        for name in restarted:
            total["down"] += len(live[name])
            if name in static:
                happened = [live.restart(name, strategies=[new])]
            else:
                again += 1
                made_up = f"consumer-{again}-{uuid5(NAMESPACE_URL, f'consumer-{again}')}"
                back = replace(members[names.index(name)], id=made_up)
                happened = [live.leave(name), live.join([back], strategies=[new])]
            for rebalance in happened:
                total["rebalances"] += rebalance.rounds
                total["moved"] += len(rebalance.moved)
                total["paused"] += len(rebalance.revoked)
        kept = len(static.intersection(restarted))
        assert cost == (new, len(restarted), kept, *total.values()), seed
