"""Write samples/generated-fleet.jsonl: 200 groups that nobody runs, most of them well, some in each kind of need.

The same on every machine: `random.Random` with a seed, and no time. A test compares the file with what this writes.
"""
import json
import random
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "samples" / "generated-fleet.jsonl"
GROUPS, SEED = 200, 22
TEAMS = "orders billing search fraud mail stock audit prices media risk".split()
TASKS = "enricher indexer writer exporter scorer archiver".split()


def in_turn(topics, members):
    "Owners of all partitions: topic by topic, member by member."
    places = [(topic, number) for topic, count in topics.items() for number in range(count)]
    return {place: at % members for at, place in enumerate(places)}


def healthy(random, topics, members):
    "Everything has its owner, in turn."
    return in_turn(topics, members), {}


def unowned(random, topics, members):
    "Kind 1: some partitions have no owner."
    owners = in_turn(topics, members)
    for place in random.sample(sorted(owners), 2):
        owners[place] = None
    return owners, {}


def idle(random, topics, members):
    "Kind 2: the last member has nothing, although the others have two or more."
    return in_turn(topics, members - 1), {}


def uneven(random, topics, members):
    "Kind 3: the first member has several partitions too many."
    owners = in_turn(topics, members)
    for place in random.sample([place for place in owners if owners[place]], 3):
        owners[place] = 0
    return owners, {}


def lagging(random, topics, members):
    "Kind 4: the partitions that lag far behind belong to one member."
    owners = in_turn(topics, members)
    return owners, {place: random.randint(20_000, 40_000) for place in owners if owners[place] == 0}


def split(random, topics, members):
    "Kind 5: two joined topics, whose partitions of equal numbers have different owners."
    joined = dict.fromkeys(["clicks", "impressions"], 2 * members)
    topics.clear()
    topics.update(joined)
    return {(topic, number): (number + (topic == "clicks")) % members
            for topic in joined for number in range(2 * members)}, {}


def abandoned(random, topics, members):
    "Kind 6: records wait, and nobody is there."
    return None, {place: random.randint(100, 9_000) for place in in_turn(topics, members)}


def crowded(random, topics, members):
    "Kind 7: more members than partitions."
    topics.clear()
    topics["control"] = members - 1
    return in_turn(topics, members), {}


def hot(random, topics, members):
    "Kind 7: one partition has nearly all of the lag."
    owners = in_turn(topics, members)
    return owners, {random.choice(sorted(owners)): random.randint(50_000, 90_000)}


def rebalancing(random, topics, members):
    "Kind 8: captured in a rebalance, nothing has an owner."
    return dict.fromkeys(in_turn(topics, members)), {}


NEEDS = (unowned, idle, uneven, lagging, split, abandoned, crowded, hot, rebalancing)
STATES = {rebalancing: "PreparingRebalance", abandoned: "Empty"}


def document(random, number):
    "Group `number` as a JSON document; two in three are well."
    need = NEEDS[number // 3 % len(NEEDS)] if number % 3 == 0 else healthy
    team, task = TEAMS[number % len(TEAMS)], random.choice(TASKS)
    members = random.randint(3, 6)
    topics = {f"{team}.{part}": random.choice([6, 8, 12]) for part in ["events", "changes"][:random.randint(1, 2)]}
    owners, lag = need(random, topics, members)
    ids = [f"{team}-{task}-{at}-{random.getrandbits(32):08x}" for at in range(1, members + 1)]
    rows = [{"id": name, "client_id": name.rpartition("-")[0], "topics": list(topics), "generation": number + 1,
             "owned": [list(place) for place, owner in (owners or {}).items() if owner == at]}
            for at, name in enumerate(ids if owners is not None else [])]
    behind = {topic: [lag.get((topic, at), random.randint(0, 90)) for at in range(count)]
              for topic, count in topics.items()}
    return {"format": 1, "name": f"{team}-{task}-{number:03d}", "cluster": "generated", "type": "classic",
            "state": STATES.get(need, "Stable"), "strategy": "range", "generation": number + 1, "topics": topics,
            "members": rows, "lag": behind}


def lines():
    "The file, a line for each group."
    source = random.Random(SEED)
    return [json.dumps(document(source, number), separators=(",", ":")) + "\n" for number in range(GROUPS)]


if __name__ == "__main__":
    FILE.write_text("".join(lines()), encoding="utf-8")
