"""Write samples/generated-fleet.jsonl: 200 groups that nobody runs, most of them well, some in each kind of need.

The first 36 of them, one of each kind, come with the package (`kafka_assign.samples`), without the name of a cluster.

Each group has a life: its members join, and things happen that happen to real groups. So every assignment in the file
is one that the named assignor of Kafka's client computes. The same on every machine: `random.Random` with a seed, and
no time. A test compares the file with what this writes.
"""
import random
from dataclasses import replace
from pathlib import Path

from kafka_assign import LiveGroup, Member

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "samples" / "generated-fleet.jsonl"
SHIPPED = ROOT / "kafka_assign" / "samples" / "fleet.jsonl"
GROUPS, SHIPPED_GROUPS, SEED = 200, 36, 22
TEAMS = "orders billing search fraud mail stock audit prices media risk".split()
TASKS = "enricher indexer writer exporter scorer archiver".split()
ASSIGNORS = ("range", "range", "range", "roundrobin", "kafka-sticky", "kafka-cooperative-sticky")
CLIENTS = (*["consumer-{group}-{n}"] * 3, "{group}-{n}", "kafka-python-2.2.15-{n}")


def ids(source, name, count):
    """Member ids as a client and the coordinator make them: the client id, then a random part."""
    client = source.choice(CLIENTS)
    return [f"{client.format(group=name, n=n)}-{source.getrandbits(32):08x}" for n in range(1, count + 1)]


def live(source, name, assignor, topics, subscriptions):
    """A group whose members have joined one after the other."""
    group = LiveGroup(assignor, topics, {})
    for member, wanted in zip(ids(source, name, len(subscriptions)), subscriptions):
        group.join(member, wanted)
    return group


def healthy(source, name, topics):
    """Equal subscriptions, and as many partitions as every member can have alike."""
    members = source.choice([2, 3, 4, 6])
    topics = dict.fromkeys(topics, 12)
    return live(source, name, source.choice(ASSIGNORS), topics, [list(topics)] * members).group, {}


def grown(source, name, topics):
    """Kind 1: a topic got partitions, and the leader has not refreshed its metadata yet."""
    topics = dict.fromkeys(topics, 8)
    group = live(source, name, "kafka-cooperative-sticky", topics, [list(topics)] * 4).group
    return group.with_partitions({next(iter(topics)): 12}), {}


def idle(source, name, topics):
    """Kind 2: range gives every small topic to the same first members."""
    topics = {f"{name}.{table}": 2 for table in ("users", "carts", "visits", "returns")}
    return live(source, name, "range", topics, [list(topics)] * source.choice([4, 5])).group, {}


def uneven(source, name, topics):
    """Kind 3: range gives the remainder of every topic to the same first member."""
    topics = {f"{name}.{region}": 4 for region in ("eu", "us", "asia", "africa")}
    return live(source, name, "range", topics, [list(topics)] * 3).group, {}


def misspelled(source, name, topics):
    """Kind 7: one member subscribes to a topic that does not exist, because its name is misspelled."""
    topic = next(iter(topics))
    return live(source, name, "range", {topic: 6}, [[topic], [topic], [topic[:-1]]]).group, {}


def lagging(source, name, topics):
    """Kind 4: the busy keys are in partitions that are numbered one after the other."""
    topics = dict.fromkeys(topics, 12)
    group = live(source, name, "range", topics, [list(topics)] * 3).group
    return group, {(topic, number): source.randint(20_000, 40_000) for topic in topics for number in range(4)}


def split(source, name, topics):
    """Kind 5: two joined topics under round robin, which takes no care of partition numbers."""
    topics = dict.fromkeys(["clicks", "impressions"], source.choice([7, 8, 10]))
    return live(source, name, "roundrobin", topics, [list(topics)] * 3).group, {}


def abandoned(source, name, topics):
    """Kind 6: all members left, and records wait."""
    group = live(source, name, source.choice(ASSIGNORS), topics, [list(topics)] * 3)
    group.leave(*group.members)
    return group.group, {(topic, number): source.randint(100, 9_000)
                         for topic, count in topics.items() for number in range(count)}


def crowded(source, name, topics):
    """Kind 7: somebody scaled a group up to more members than partitions."""
    members = source.choice([4, 5])
    topic = f"{name}.control"
    return live(source, name, "kafka-sticky", {topic: members - 1}, [[topic]] * members).group, {}


def hot(source, name, topics):
    """Kind 7: nearly all records have one key."""
    topics = dict.fromkeys(topics, 6)
    group = live(source, name, "kafka-sticky", topics, [list(topics)] * 3).group
    return group, {(source.choice(list(topics)), source.randrange(6)): source.randint(50_000, 90_000)}


def rebalancing(source, name, topics):
    """Kind 8: captured while the members of an eager group rejoin, and none holds anything."""
    group = live(source, name, "range", topics, [list(topics)] * 3).group
    return group.replace(members=[replace(one, owned=()) for one in group.details], state="PreparingRebalance"), {}


def done(source, name, topics):
    """Well, although nobody is there: a batch job that has read everything."""
    group = live(source, name, "range", topics, [list(topics)] * 2)
    group.leave(*group.members)
    return group.group, {(topic, number): 0 for topic, count in topics.items() for number in range(count)}


def streams(source, name, topics):
    """Well: a Streams application, which brings its own assignor."""
    topics = {f"{name}-input": 6}
    group = live(source, name, "roundrobin", topics, [list(topics)] * 3).group
    names = [f"{name}-{source.getrandbits(32):08x}-StreamThread-1-consumer-{n}" for n in range(1, 4)]
    members = [Member(new, one.topics, owned=one.owned, generation=one.generation, client_id=new.rpartition("-")[0])
               for new, one in zip(names, group.details)]
    return group.replace(members=members, strategy="stream"), {}


STORIES = (grown, idle, uneven, misspelled, lagging, split, abandoned, crowded, hot, rebalancing, done, streams)


def sample(source, number, cluster):
    """Group `number`; two in three are well."""
    story = STORIES[number // 3 % len(STORIES)] if number % 3 == 0 else healthy
    team, task = TEAMS[number % len(TEAMS)], source.choice(TASKS)
    name = f"{team}-{task}-{number:03d}"
    topics = {f"{team}.{part}": source.choice([6, 8, 12]) for part in ["events", "changes"][:source.randint(1, 2)]}
    group, behind = story(source, name, topics)
    lag = {topic: [behind.get((topic, at), source.randint(0, 90)) for at in range(count)]
           for topic, count in group.topic_counts.items()}
    members = [one if one.client_id else replace(one, client_id=one.id.rpartition("-")[0])
               for one in (group.details[at] for at in group.listed)]
    return group.replace(name=name, cluster=cluster, type="classic", members=members, lag=lag,
                         state=group.state or ("Stable" if members else "Empty"))


def lines(count=GROUPS, cluster="generated"):
    """The file, a line for each group."""
    source = random.Random(SEED)
    return [sample(source, number, cluster).to_json() + "\n" for number in range(count)]


if __name__ == "__main__":
    FILE.write_text("".join(lines()), encoding="utf-8")
    SHIPPED.write_text("".join(lines(SHIPPED_GROUPS, "")), encoding="utf-8")
