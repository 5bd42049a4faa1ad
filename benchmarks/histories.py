"""Histories of rebalances to measure with: seeded, as logs of brokers and members, and as traces.

Groups are small: two to five members, one or two topics with six to sixteen partitions, under `range`. Most rebalances
are deploys (a member leaves, and a new one with the same client id joins seconds later), some are deaths. Each of
three brokers coordinates a third of the groups; members' logs tell who subscribed to what and the leaders' answers.
"""
import json
import random
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from uuid import UUID

from numpy import array_split

from kafka_assign.life.trace import Cause, Generation, Known, Pause

BROKERS, APPLICATIONS = 3, 12
BEGIN, DAY = 1_760_000_000.0, 86_400.0
COORDINATOR = "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
CONSUMER = "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"


class Group:
    """One group, and what its last rebalance was about."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.name, self.broker, self.application = f"group-{number}", number % BROKERS, number % APPLICATIONS
        self.topics = {f"topic-{number}-{at}": self.random.randint(6, 16) for at in range(self.random.randint(1, 2))}
        self.clients = [f"app-{number}-{at}" for at in range(self.random.randint(2, 5))]
        self.members, self.generation, self.away = {}, 0, None

    def member(self, client):
        """A new member id of a client."""
        return f"{client}-{UUID(int=self.random.getrandbits(128))}"

    def step(self):
        """Who joins, leaves or dies now: pairs of a cause and a member id."""
        self.before, causes = dict(self.members), []
        if not self.generation:
            causes = [("join", self.member(client)) for client in self.clients]
        elif self.away:
            causes = [("join", self.member(self.away))]
            self.away = None
        else:
            gone = self.random.choice([*self.members])
            self.away = self.members.pop(gone)
            causes = [("leave" if self.random.random() < 0.9 else "death", gone)]
        self.members |= {id: id.rsplit("-", 5)[0] for why, id in causes if why == "join"}
        self.generation += 1
        return causes

    def assignment(self):
        """What `range` answers."""
        ids = sorted(self.members)
        parts = {topic: array_split(range(count), len(ids)) for topic, count in self.topics.items()}
        return {id: [(topic, int(number)) for topic, part in parts.items() for number in part[at]]
                for at, id in enumerate(ids)}


def events(groups, rebalances, days, first):
    """Groups and the causes of their rebalances, by time: a time, the group, its causes."""
    chosen, every = [Group(first + number) for number in range(groups)], random.Random(0)
    each = rebalances // groups
    times = []
    for number in range(groups):
        time = BEGIN + every.random() * DAY
        for at in range(each):
            times.append((round(time, 3), number))
            time += 8 + every.random() * 20 if at % 2 else every.random() * 2 * days * DAY / max(1, each // 2 + 1)
    for time, number in sorted(times):
        yield time, chosen[number], chosen[number].step()


def text(time):
    """A time as brokers and members write it."""
    return datetime.fromtimestamp(time, timezone.utc).isoformat(" ", "milliseconds")[:-6].replace(".", ",")


def broker_lines(time, group, causes):
    """What the coordinator logs."""
    head, name, old = f"INFO [GroupCoordinator id={group.broker}]", group.name, group.generation - 1
    reasons = {"join": "Adding new member {} with group instance id null; client reason: need to re-join with the "
                       "given member-id: {}", "leave": "explicit `LeaveGroup` request for ({}) members.",
               "death": "removing member {} on heartbeat expiration"}
    said = {"join": f"Pending dynamic member with id {{}} joins group {name} in Stable state. Adding to the group now.",
            "leave": f"[Group {name}] Member {{}} has left group through explicit `LeaveGroup` request; client reason: "
                     "the consumer is being closed",
            "death": f"Member {{}} in group {name} has failed, removing it from the group."}
    for why, id in causes:
        yield f"[{text(time)}] {head} {said[why].format(id)} {COORDINATOR}\n"
    why, id = causes[0]
    yield (f"[{text(time)}] {head} Preparing to rebalance group {name} in state PreparingRebalance with old generation "
           f"{old} (reason: {reasons[why].format(id, id)}). {COORDINATOR}\n")
    yield (f"[{text(time + 0.2)}] {head} Stabilized group {name} generation {group.generation} with "
           f"{len(group.members)} members. {COORDINATOR}\n")
    yield (f"[{text(time + 0.3)}] {head} Assignment received from leader {next(iter(group.members))} for group {name} "
           f"for generation {group.generation}. The group has {len(group.members)} members, 0 of which are static. "
           f"{COORDINATOR}\n")


def member_lines(time, group, causes):
    """What the members log."""
    new = {id for why, id in causes if why == "join"}
    for at, (id, client) in enumerate(group.members.items()):
        head = f"INFO [Consumer clientId={client}, groupId={group.name}]"
        if id in new:
            yield f"[{text(time - 1)}] {head} Subscribed to topic(s): {', '.join(group.topics)} {CONSUMER}\n"
        yield (f"[{text(time + 0.21)}] {head} Successfully joined group with generation Generation{{generationId="
               f"{group.generation}, memberId='{id}', protocol='range'}} {CONSUMER}\n")
        if at == 0:
            answer = ", ".join(f"{one}=Assignment(partitions=[{', '.join(f'{t}-{n}' for t, n in own)}])"
                               for one, own in group.assignment().items())
            yield (f"[{text(time + 0.22)}] {head} Finished assignment for group at generation {group.generation}: "
                   f"{{{answer}}} {CONSUMER}\n")


def write_logs(folder, groups, rebalances, days=30, first=0):
    """Write logs of brokers and of applications; returns the number of their lines."""
    (folder := Path(folder)).mkdir(parents=True)
    lines = 0
    with ExitStack() as stack:
        def opened(name):
            return stack.enter_context((folder / name).open("w"))
        brokers = [opened(f"broker-{at}.log") for at in range(BROKERS)]
        applications = [opened(f"application-{at}.log") for at in range(APPLICATIONS)]
        for time, group, causes in events(groups, rebalances, days, first):
            for file, found in ((brokers[group.broker], broker_lines(time, group, causes)),
                                (applications[group.application], member_lines(time, group, causes))):
                found = list(found)
                file.writelines(found)
                lines += len(found)
    return lines


def write_traces(folder, groups, rebalances, days=30, first=0, files=8):
    """Write a trace in several files, each with some groups, by time; returns the number of their lines."""
    (folder := Path(folder)).mkdir(parents=True)
    lines = 0
    with ExitStack() as stack:
        opened = [stack.enter_context((folder / f"trace-{at}.jsonl").open("w")) for at in range(files)]
        for time, group, causes in events(groups, rebalances, days, first):
            assigned = {id: tuple(own) for id, own in group.assignment().items()}
            pauses = [Pause(topic, number, time + 0.2, 0.1, "at least") for id, own in assigned.items()
                      for topic, number in own if id in group.before]
            one = Generation(group.name, 1, group.generation, time, time + 0.2, time + 0.3, [
                Cause(why, id, id.rsplit("-", 5)[0], "", "broker") for why, id in causes], next(iter(group.members)),
                "range", {id: Known(client, "", None, tuple(group.topics)) for id, client in group.members.items()},
                assigned, pauses)
            opened[group.application % files].write(json.dumps(one.row()) + "\n")
            lines += 1
    return lines
