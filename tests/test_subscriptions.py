"""Subscriptions that text does not show: what the owners of partitions tell about them."""
import itertools
import random
from collections import Counter, defaultdict
from uuid import UUID

import pytest
from conftest import LONG
from groups import NAMES
from outputs import table

from kafka_assign import Group, LiveGroup, Member, assign, rank, read_groups
from kafka_assign.protocol.java import java_sorted
from kafka_assign.snapshot.subscriptions import _RULES, _member_orders, inferred_subscriptions

JAVA = {"range": "range", "roundrobin": "roundrobin", "sticky": "kafka-sticky",
        "cooperative-sticky": "kafka-cooperative-sticky"}         # by what a group reports: the strategy
GROUPS = 1000 if LONG else 100


def new_member(chance, topics, static):
    id = str(UUID(int=chance.getrandbits(128), version=4))
    instance = f"pod-{chance.randrange(10**6)}-{id[:8]}" if static else None
    return Member(f"{instance or 'app'}-{id}", topics, instance_id=instance)


def lived(chance, strategy, kinds, topics):
    """A group after some rebalances; members of each kind, all or some of them static, came and went."""
    static = chance.choice([[False], [True], [False, True]])

    def some(count):
        return [new_member(chance, chance.choice(kinds), chance.choice(static)) for _ in range(count)]

    kept = [new_member(chance, kind, static[0]) for kind in kinds]
    live = LiveGroup(strategy, topics, kept + some(chance.randint(0, 8)))
    for _ in range(chance.randint(0, 3)):
        event, others = chance.randrange(3), sorted({*live} - {member.id for member in kept})
        if event == 0:
            live.join(some(chance.randint(1, 2)))
        elif event == 1 and others:
            live.leave(chance.choice(others))
        else:
            live.add_partitions(chance.choice(sorted(live.topics)), chance.randint(1, 3))
    return live.group


def random_topics(chance):
    most = chance.choice([3, 8, 30])
    return {f"{chance.choice('tT')}{i}": chance.randint(1, most) for i in range(chance.randint(1, 6))}


def shown(group):
    """What text shows of a group: what its members own, and the instance ids of static members."""
    owned = {member: [] for member in group.members}
    for at, member in enumerate(group.previous.tolist()):
        if member >= 0:
            owned[group.members[member]].append(tuple(group.at(at)))
    return owned, {member.id: member.instance_id for member in group.details if member.instance_id}


def topics_in(owned):
    return {topic for partitions in owned.values() for topic, _ in partitions}


def truth(group):
    return {member.id: tuple(java_sorted(set(member.topics))) for member in group.details}


def contradicted(rule, owned, instance_ids):
    """Whether the rule cannot have given these owners if every member subscribes to every topic that has an owner."""
    if rule not in ("range", "roundrobin"):
        loads = [*map(len, owned.values())]
        return max(loads) - min(loads) > 1
    sizes = Counter()
    for topic, number in itertools.chain(*owned.values()):
        sizes[topic] = max(number + 1, sizes[topic])
    everyone = Group(sizes, [Member(id, [*sizes], instance_id=instance_ids.get(id)) for id in owned])
    answer = assign(everyone, rule)
    return any(partition not in answer[member] for member, partitions in owned.items() for partition in partitions)


def as_a_whole(found, owned):
    """Whether all members are taken to subscribe to all topics that some member owns."""
    return found.topics == dict.fromkeys(owned, tuple(java_sorted(topics_in(owned))))


def check(found, group):
    """What must hold of any answer about a group whose subscriptions are known."""
    owned, _ = shown(group)
    true = {id: tuple(topic for topic in topics if topic in topics_in(owned)) for id, topics in truth(group).items()}
    assert found.topics.keys() == owned.keys()
    assert all(topic in found.topics[member] for member, partitions in owned.items() for topic, _ in partitions)
    if found.kind == "certain":
        assert found.topics == true
    if found.kind == "unknown":
        assert {topic for id in owned for topic in {*true[id]} ^ {*found.topics[id]}} <= {*found.uncertain}


@pytest.mark.parametrize("rule", [*JAVA, "", "of-our-own"])
def test_members_that_subscribe_to_all_topics(rule):
    chance, kinds, wrong = random.Random(rule), Counter(), 0
    for _ in range(GROUPS):
        topics = random_topics(chance)
        group = lived(chance, JAVA.get(rule) or chance.choice([*JAVA.values(), "fair", "lag"]), [[*topics]], topics)
        owned, instance_ids = shown(group)
        found = inferred_subscriptions(owned, instance_ids, rule)
        check(found, group)
        kinds[found.kind] += 1
        wrong += not as_a_whole(found, owned)
    assert wrong <= GROUPS // 100 and kinds["certain"] and kinds["agree"] and not kinds["unknown"]


def two_kinds(chance, topics):
    """Two different subscriptions that together have all topics."""
    while True:
        one, other = ([name for name in topics if chance.random() < .6] for _ in range(2))
        if one and other and one != other and {*one, *other} == {*topics}:
            return [one, other]


@pytest.mark.parametrize("rule", JAVA)
def test_members_of_two_kinds(rule):
    """They are read as equal only where the rule gives equal members the same."""
    chance, kinds = random.Random(rule), Counter()
    for _ in range(GROUPS):
        topics = {"a": chance.randint(1, 9), "b": chance.randint(1, 9), **random_topics(chance)}
        group = lived(chance, JAVA[rule], two_kinds(chance, topics), topics)
        owned, instance_ids = shown(group)
        found = inferred_subscriptions(owned, instance_ids, rule)
        check(found, group)
        kinds[found.kind] += 1
        assert not as_a_whole(found, owned) or not contradicted(rule, owned, instance_ids)
    assert kinds["unknown"] and kinds["agree"] and not kinds["assumed"] and (rule != "range" or kinds["certain"])


# The whole way: the tables of the tool, and the group that is read from them

OFFSETS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
MEMBERS = "GROUP CONSUMER-ID GROUP-INSTANCE-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT".split()
STATE = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
OUTPUTS = ["describe"], ["members"], ["members", "state"], ["describe", "members"], ["describe", "members", "state"]


def printed(group, rule, outputs, lag={}):
    """What the tool prints of a group; `lag`: of its partitions, 4 of the others."""
    (owned, instance_ids), lag = shown(group), defaultdict(lambda: 4, lag)
    def assignment(partitions):
        numbers = {topic: sorted(number for name, number in partitions if name == topic) for topic, _ in partitions}
        return ", ".join(f"{topic}({','.join(map(str, of))})" for topic, of in numbers.items()) or "-"
    tables = {
        "describe": table(OFFSETS, *(["g", *partition, 5, 5 + lag[partition], lag[partition], id, "/h", "app"]
                                     for id, own in owned.items() for partition in own)),
        "members": table(MEMBERS, *(["g", id, instance_ids.get(id, ""), "/h", "app", len(own), assignment(own)]
                                    for id, own in owned.items())),
        "state": table(STATE, ["g", "k:9092 (1)", rule or "-", "Stable", len(owned)])}
    return "".join(tables[output] for output in outputs)


def read_back(chance, group, rule):
    """The group as some outputs show it, what its members own, and the kind of its note on subscriptions."""
    outputs = chance.choice(OUTPUTS)
    groups = read_groups(printed(group, rule, outputs))
    assert groups.rejects == []
    [found] = groups.values()
    [kind] = [note.kind.removeprefix("subscriptions-") for note in found.notes if note.kind.startswith("subscriptions")]
    return found, shown(found)[0], kind, "state" in outputs


@pytest.mark.parametrize("rule", [*JAVA, "", "of-our-own"])
def test_text_of_members_that_subscribe_to_all_topics(rule):
    chance, kinds, wrong = random.Random(f"text {rule}"), Counter(), 0
    for _ in range(GROUPS):
        topics = random_topics(chance)
        group = lived(chance, JAVA.get(rule) or chance.choice([*JAVA.values(), "fair", "lag"]), [[*topics]], topics)
        found, owned, kind, _ = read_back(chance, group, rule)
        kinds[kind] += 1
        wrong += truth(found) != dict.fromkeys(owned, tuple(java_sorted(topics_in(owned))))
    assert wrong <= GROUPS // 100 and kinds["certain"] and kinds["agree"] and not kinds["unknown"]


@pytest.mark.parametrize("rule", JAVA)
def test_text_of_members_of_two_kinds(rule):
    chance, kinds = random.Random(f"text {rule}"), Counter()
    for _ in range(GROUPS):
        topics = {"a": chance.randint(1, 9), "b": chance.randint(1, 9), **random_topics(chance)}
        group = lived(chance, JAVA[rule], two_kinds(chance, topics), topics)
        found, owned, kind, with_assignor = read_back(chance, group, rule)
        kinds[kind] += 1
        equal = truth(found) == dict.fromkeys(owned, tuple(java_sorted(topics_in(owned))))
        assert not with_assignor or not equal or not contradicted(rule, owned, shown(found)[1])
        if kind == "certain" and with_assignor:
            assert all({*truth(group)[id]} & topics_in(owned) == {*own} for id, own in truth(found).items())
    assert kinds["agree"] and kinds["assumed"] and (kinds["unknown"] or "sticky" in rule)


@pytest.mark.parametrize("several", [False, True], ids=["one kind", "two kinds"])
@pytest.mark.parametrize("rule", [*JAVA, ""])
def test_rank_states_nothing_on_text_that_it_would_not_state_on_the_group(rule, several):
    """What hangs on subscriptions is said with an "if", or is true."""
    chance, needs = random.Random(f"rank {rule} {several}"), Counter()
    for _ in range(GROUPS // 5):
        topics = random_topics(chance)
        kinds = two_kinds(chance, topics) if several and len(topics) > 1 else [[*topics]]
        group = lived(chance, JAVA.get(rule) or chance.choice([*JAVA.values()]), kinds, topics)
        owned, _ = shown(group)
        lag = {partition: chance.choice([0, 10, 20_000]) for partitions in owned.values() for partition in partitions}
        text = printed(group, rule, chance.choice(OUTPUTS[2:]), lag)
        [found] = read_groups(text).values()
        of_text = [row for row in rank([found], everything=True)
                   if row["need"] in ("idle", "overload", "lag", "incurable")]
        true = group.replace(lag=None if found.lag is None else lag, strategy=found.strategy, state=found.state)
        of_group = {row["need"] for row in rank([true], everything=True)}
        for row in of_text:
            needs[row["need"]] += 1
            assert "if " in row["reason"] or row["need"] in of_group, (row, text)
            assert "do without" not in row["remedy"]
    assert needs or not several


SMALL = [dict(zip("tu", sizes)) for sizes in itertools.product((1, 2, 3, 5), (1, 4))]
CHOICES = (), ("t",), ("u",), ("t", "u")


@pytest.mark.parametrize("rule", ["range", "roundrobin", "sticky"])
def test_all_subscriptions_of_three_members(rule):
    kinds = Counter()
    for sizes, *topics in itertools.product(SMALL, *[CHOICES] * 3):
        group = Group(sizes, [Member(id, own) for id, own in zip("abc", topics)])
        group = group.replace(owned=dict(assign(group, rule)))
        owned, instance_ids = shown(group)
        found = inferred_subscriptions(owned, instance_ids, rule)
        check(found, group)
        kinds[found.kind] += 1
        if topics_in(owned):
            assert as_a_whole(found, owned) == (not contradicted(rule, owned, instance_ids)), (sizes, topics)
    assert min(kinds.values()) > 5


def awkward_group(chance):
    """A group of any shape, without racks: odd names, static members, differing subscriptions."""
    topics = {name: chance.randint(1, 7) for name in chance.sample(NAMES, chance.randint(1, 5))}
    members = [Member(f"{name}{i}", [topic for topic in topics if chance.random() < .6],
                      instance_id=chance.choice([None, name])) for i, name in enumerate(chance.sample(NAMES, 5))]
    return Group(topics, chance.sample(members, chance.randint(1, 5)))


@pytest.mark.parametrize("rule", _RULES)
def test_rules(rule):
    chance = random.Random(rule)
    for _ in range(300):
        group = awkward_group(chance)
        [order] = _member_orders(*shown(group), "", ())
        subscribers = {topic: [place for place, id in enumerate(order) if topic in truth(group)[id]]
                       for topic in group.topics}
        sizes = {topic: group.topic_counts[topic] for topic in group.topics if subscribers[topic]}
        given = {(topic, number): order[place] for topic, places in _RULES[rule](sizes, subscribers).items()
                 for number, place in enumerate(places)}
        assert given == {tuple(one): member for member, owned in assign(group, rule).items() for one in owned}


@pytest.mark.parametrize("rule", ["range", "roundrobin", "sticky", ""])
def test_the_order_of_the_input_does_not_matter(rule):
    chance = random.Random(rule)
    for _ in range(GROUPS):
        group = awkward_group(chance)
        owned, instance_ids = shown(group.replace(owned=dict(assign(group, rule or "fair"))))
        mixed = {id: chance.sample(owned[id], len(owned[id])) for id in chance.sample([*owned], len(owned))}
        assert inferred_subscriptions(mixed, instance_ids, rule) == inferred_subscriptions(owned, instance_ids, rule)


# Small groups, by hand

def read(owned, assignor="", static=(), **more):
    """What is inferred about a group; `owned`: by member, partitions such as `t0 t1 u0`."""
    partitions = {id: [(name[:-1], int(name[-1])) for name in names.split()] for id, names in owned.items()}
    return inferred_subscriptions(partitions, {id: "i" + id for id in static}, assignor, **more)


def test_without_owners_nothing_is_tested():
    for rule in [*JAVA, ""]:
        found = read({"a": "", "b": ""}, rule, topics=["u", "t"])
        assert (found.kind, found.topics) == ("assumed", dict.fromkeys("ab", ("t", "u")))
    assert read({"a": ""}, "range")[:2] == ("assumed", {"a": ()}) and read({}, "range").topics == {}


@pytest.mark.parametrize("rule", [*JAVA, ""])
def test_owners_that_may_be_missing_prove_nothing(rule):
    for owned in {"a": "t0 t1", "b": "t2"}, {"a": "t0 t1", "b": "u0 u1", "c": ""}:
        found = read(owned, rule, complete=False)
        assert found.kind == "assumed" and {*found.topics.values()} == {found.topics["a"]}


@pytest.mark.parametrize("rule", [*JAVA, ""])
def test_members_that_own_a_part_of_every_topic(rule):
    """Whatever the rule: here loads differ by more than one."""
    for owned in {"a": "t0 t1 t2 u0"}, {"a": "t0 t1 t2 u0", "b": "t3 u1"}:
        found = read(owned, rule, topics=["nobody's"])
        assert (found.kind, {*found.topics.values()}, found.uncertain) == ("certain", {("t", "u")}, ())


def test_idle_members_under_range():
    assert read({"a": "t0 u0", "b": ""}, "range").kind == "agree"
    found = read({"a": "", "b": "t0 u0"}, "range")          # the first one would have both
    assert (found.kind, found.topics, found.uncertain) == ("unknown", {"a": (), "b": ("t", "u")}, ("t", "u"))
    found = read({"a": "u0", "b": "t0 t1 u1", "c": ""}, "range")           # only u has no partition to spare
    assert (found.kind, found.topics["a"], found.uncertain) == ("unknown", ("u",), ("u",))
    found = read({"a": "t0", "b": "t1 t2", "c": ""}, "range")              # as by racks: not Java's order, but even
    assert (found.kind, found.topics) == ("unknown", {"a": ("t",), "b": ("t",), "c": ()})
    assert found.uncertain == () and "(c) subscribe to none of them" in found.why
    assert read({"a": "t0", "b": "t1 t2"}, "range").kind == "certain"
    found = read({"a": "t0", "b": "t1 t2 t3", "c": ""}, "range")           # no range at all
    assert (found.kind, found.uncertain) == ("unknown", ("t",))


@pytest.mark.parametrize("rule", ["sticky", "cooperative-sticky", "uniform"])
def test_idle_members_under_sticky_assignors(rule):
    assert read({"a": "t0", "b": "u0", "c": ""}, rule).kind == "agree"
    found = read({"a": "t0", "b": "u0 u1", "c": ""}, rule)
    assert (found.kind, found.uncertain) == ("unknown", ("t", "u")) and rule in found.why


def test_without_a_known_assignor():
    """Even loads, range and round robin agree; nothing contradicts."""
    for owned in {"a": "t0 t1", "b": "u0"}, {"a": "t0 u0 v0", "b": ""}:
        assert [read(owned, rule).kind for rule in ("", "of-our-own")] == ["agree"] * 2
        assert read(owned).topics["a"] == read(owned).topics["b"]
    found = read({"a": "", "b": "t0 u0 v0"})
    assert (found.kind, found.topics) == ("assumed", dict.fromkeys("ab", ("t", "u", "v")))


def test_partitions_that_are_not_shown():
    assert read({"a": "t0 t1 u0", "b": "t3"}, "range").kind == "agree"          # t2 is not shown
    assert read({"a": "t0 u1", "b": "t2 u0", "c": "t4"}, "roundrobin").kind == "unknown"
    assert read({"a": "t0 t3 u0", "b": "t4", "c": "t2"}, "roundrobin").kind == "unknown"
    assert read({"a": "t0 t3", "b": "t4", "c": "t2 u0"}, "roundrobin").kind == "agree"


def test_parts():
    """Only if no member is idle, and within each part the rule must hold."""
    owned = {"a": "t0 t2", "b": "t1", "c": "u0 u1 u2 u3"}
    for rule in "sticky", "roundrobin":
        found = read(owned, rule)
        assert (found.kind, found.topics) == ("agree", {"a": ("t",), "b": ("t",), "c": ("u",)})
        assert "2 parts" in found.why
        assert read({**owned, "d": ""}, rule).kind == "unknown"
    assert read({"a": "t0 t1 t2", "b": "t3", "c": "u0"}, "sticky").kind == "unknown"
    assert read({"a": "t0 t1", "b": "t2 t3", "c": "u0"}, "roundrobin").kind == "unknown"
    found = read({"a": "t0 w0", "b": "w1 v0", "c": "u0 u1 u2 u3"}, "sticky")       # w connects
    assert found.topics == {"a": ("t", "v", "w"), "b": ("t", "v", "w"), "c": ("u",)}


def test_orders_of_members():
    """Static members are first; librdkafka and Python's clients may sort all by member id."""
    for static, owner in (("b", "b"), ("", "a")):
        owned = {id: "t0" if id == owner else "" for id in "ab"}
        assert read(owned, "range", static).kind == "agree"
    by_id = {"a": "t0", "b": ""}
    for client, kind in ("rdkafka", "agree"), ("kafka-python-3.0", "agree"), ("consumer-g-1", "unknown"):
        assert read(by_id, "range", "b", client_ids=[client, "mine"]).kind == kind


@pytest.mark.parametrize("other", [{"client_ids": ["sarama"]}, {"type": "consumer"}])
def test_other_rules_of_the_same_name(other):
    """Only what they have in common is tested."""
    owned = {"a": "u0", "b": "t0", "c": ""}
    assert [read(owned, rule).kind for rule in _RULES] == ["unknown"] * 2
    assert [read(owned, rule, **other).kind for rule in _RULES] == ["agree"] * 2
    assert read({"a": "t1 t0", "b": "t2 u0"}, "range", **other).kind == "agree"
    assert [read({"a": "", "b": "t0 u0"}, rule, **other).kind for rule in _RULES] == ["agree"] * 2
    assert [read({"a": "u0", "b": "t0 t1", "c": ""}, rule, **other).kind for rule in _RULES] == ["unknown"] * 2
    uneven = {"a": "t0 t1 t2", "b": "t3 u0 v0", "c": "u1 v1 w0"}           # topics, not loads
    assert [read(uneven, rule, **other).kind for rule in _RULES] == ["unknown", "agree"]


def test_two_owners_of_a_partition_both_subscribe():
    for rule in [*JAVA, ""]:
        found = read({"a": "t0 t1", "b": "t1 u0", "c": "t2"}, rule)
        assert "t" in found.topics["a"] and "t" in found.topics["b"]
    assert read({"a": "t0", "b": "t0 u0"}, "range").kind == "unknown"


def test_too_many_members_and_topics_are_not_compared():
    for count, kind in (2000, "agree"), (2001, "unknown"):
        owned = {f"m{i:04}": [(f"t{i:04}", 0), (f"t{i:04}", 1)] for i in range(count)}
        found = inferred_subscriptions(owned, {}, "sticky")
        assert (found.kind, len(found.uncertain)) == (kind, count * (kind == "unknown"))
    topics = sorted(topics_in(owned))
    for partitions in owned, dict.fromkeys(owned, ()):
        found = inferred_subscriptions(partitions, {}, "range", topics=topics, complete=False)
        assert (found.kind, found.uncertain) == ("unknown", tuple(topics))
    assert inferred_subscriptions(owned, {}, "range").kind == "certain"
