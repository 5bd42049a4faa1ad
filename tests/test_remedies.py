"""What an operator is advised, by the client library of the members and the assignor that the group reports.

`CLIENTS` says what each library ships. Against it stand librdkafka's two assignors, written after its C, a table of
remedies, and what must hold for all groups.
"""
import re
from functools import cmp_to_key

import pytest
from groups import groups
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_assign import Group, Member, assign, rank
from kafka_assign.assignors.base import StrategyError
from kafka_assign.assignors.running import running_strategy
from kafka_assign.groups.leader import CLIENTS, Leader

IDS = {"Java": "consumer-g-1", "Kafka Streams": "app-6f5c9f3e-0b1d-4c63-9a8e-2f6d1d1c7b11-StreamThread-1-consumer",
       "librdkafka": "rdkafka", "Sarama": "sarama", "franz-go": "kgo", "kafkajs": "kafkajs", "ruby-kafka": "ruby-kafka",
       "kafka-go": "worker@host (github.com/segmentio/kafka-go)", "kafka-python": "kafka-python-2.2.3",
       "aiokafka": "aiokafka-0.14.0"}


def test_every_library_is_known_by_its_default_id():
    assert IDS.keys() == CLIENTS.keys()
    for name, client_id in IDS.items():
        assert Leader("classic", "", [client_id, client_id]).client is CLIENTS[name]
        assert {*CLIENTS[name].listed} <= {*CLIENTS[name].ships}
        assert {*CLIENTS[name].like_java} | {CLIENTS[name].even} - {""} <= {*CLIENTS[name].ships}


# --- librdkafka, after rdkafka_range_assignor.c and rdkafka_roundrobin_assignor.c ------------------------------------

def compared(one, other):
    """`rd_kafka_group_member_cmp`: by instance id if both have one, else by member id."""
    a, b = ((one.instance_id, other.instance_id) if one.instance_id and other.instance_id else (one.id, other.id))
    return (a > b) - (a < b)


def range_of_librdkafka(group):
    owners = {}
    for topic, count in zip(group.topics, group.partitions.tolist()):
        members = sorted((one for one in group.details if topic in one.topics), key=cmp_to_key(compared))
        for i, member in enumerate(members):
            each, more = divmod(count, len(members))
            start = each * i + min(i, more)
            owners |= {(topic, start + n): member.id for n in range(each + (i < more))}
    return owners


def roundrobin_of_librdkafka(group):
    owners, members, place = {}, sorted(group.details, key=cmp_to_key(compared)), -1
    for topic, count in zip(group.topics, group.partitions.tolist()):
        for number in range(count):
            place = (place + 1) % len(members)
            while topic not in members[place].topics:
                place = (place + 1) % len(members)
            owners[topic, number] = members[place].id
    return owners


@st.composite
def groups_of_librdkafka(draw):
    topics = draw(st.dictionaries(st.text("abzZ.-", min_size=1, max_size=3), st.integers(1, 7), min_size=1, max_size=4))
    ids = draw(st.lists(st.text("abzZ-09", min_size=1, max_size=4), min_size=1, max_size=5, unique=True))
    instances = draw(st.none() | st.permutations(ids))
    return Group(topics, [Member(name, list(topics), client_id="rdkafka", instance_id=instances and instances[at])
                          for at, name in enumerate(ids)])


@given(groups_of_librdkafka())
def test_librdkafka_is_forecast_as_its_c_computes(group):
    for name, oracle in (("range", range_of_librdkafka), ("roundrobin", roundrobin_of_librdkafka)):
        found = assign(group, running_strategy(group.replace(strategy=name)).name)
        assert {pair: member for member, pairs in found.items() for pair in pairs} == oracle(group)


@pytest.mark.parametrize("change", [
    lambda group: group.subscribe("a", ["t"]),
    lambda group: group.replace(members=[Member("a", ["t", "u"], client_id="rdkafka", instance_id="x"),
                                         Member("b", ["t", "u"], client_id="rdkafka")]),
    lambda group: group.replace(strategy="cooperative-sticky")])
def test_librdkafka_is_forecast_only_where_it_follows_the_same_rule(change):
    group = Group({"t": 3, "u": 3}, [Member(name, ["t", "u"], client_id="rdkafka") for name in "ab"], strategy="range")
    assert running_strategy(group).name == "range"
    with pytest.raises(StrategyError, match="librdkafka clients .* have their own assignors"):
        running_strategy(change(group))


# --- a table -------------------------------------------------------------------------------------------------------

TOPICS = [f"t{n}" for n in range(9)]


def group_of(shape, ids, reported):
    """Three members: `uneven`: nine topics on one of them; `new`: two new partitions; `lag`: on one member."""
    names = ["c", "a", "b"]
    if shape == "uneven":
        topics, owned, lag = dict.fromkeys(TOPICS, 1), {"c": [(topic, 0) for topic in TOPICS]}, None
    elif shape == "new":
        topics, owned, lag = {"t": 5}, {name: [("t", n)] for n, name in enumerate(names)}, None
    else:
        topics, lag = {"t": 6}, {"t": [9_000, 9_000, 9_000, 0, 0, 0]}
        owned = {"c": [("t", 0), ("t", 1)], "a": [("t", 2), ("t", 3)], "b": [("t", 4), ("t", 5)]}
    members = [Member(name, list(topics), owned=owned.get(name, ()), client_id=ids[at % len(ids)])
               for at, name in enumerate(names)]
    return Group(topics, members, lag=lag, strategy=reported)


OF = {name: [client_id] for name, client_id in IDS.items()}
TABLE = [
    ("uneven", OF["Java"], "range", "kafka-cooperative-sticky (Java clients, by their ids): 6 moves", "if its clients"),
    ("uneven", OF["Java"], "", "roundrobin (Java clients, by their ids): 6 moves; two rolling restarts", "librdkafka"),
    ("uneven", OF["Java"], "TeamAssignor", "no client known here has an assignor 'TeamAssignor'", "Java"),
    ("uneven", [""], "", "if its clients are Java", "partition.assignment.strategy"),
    ("uneven", [""], "sticky", "kafka-sticky (runs now)", "already"),
    ("uneven", [""], "TeamAssignor", "see what else the client library of its members ships", "rolling"),
    ("uneven", [""], "RoundRobinAssigner", "upgrade kafkajs to 1.13 or later", "Java"),
    ("uneven", [""], "BalanceStrategySticky", "set Consumer.Group.Rebalance.GroupStrategies=sticky", "Java"),
    ("uneven", [""], "rack-affinity", "set GroupBalancers: one of your own", "Java"),
    ("uneven", OF["librdkafka"], "range", "set partition.assignment.strategy=roundrobin: two rolling", "already"),
    ("uneven", OF["librdkafka"], "cooperative-sticky", "start them with partition.assignment.strategy=", "two rolling"),
    ("uneven", OF["librdkafka"], "", "if they list cooperative-sticky now, stop all of them instead", "already"),
    ("uneven", OF["librdkafka"], "roundrobin", "check the subscriptions", "restart"),
    ("uneven", OF["Sarama"], "range", "set Consumer.Group.Rebalance.GroupStrategies=sticky", "Java"),
    ("uneven", OF["Sarama"], "roundrobin", "upgrade Sarama to 1.28 or later", "Java"),
    ("uneven", OF["Sarama"], "sticky", "Sarama's sticky should not give this: check", "upgrade"),
    ("uneven", OF["franz-go"], "range", "set kgo.Balancers(cooperative-sticky): two rolling restarts", "Java"),
    ("uneven", OF["franz-go"], "cooperative-sticky", "franz-go's cooperative-sticky should not give this: ch", "set "),
    ("uneven", OF["kafkajs"], "RoundRobinAssigner", "or set partitionAssigners: [one of your own]", "Java"),
    ("uneven", OF["kafka-go"], "range", "each assignor of kafka-go assigns topic by topic", "upgrade"),
    ("uneven", OF["ruby-kafka"], "roundrobin", "upgrade ruby-kafka to 0.7.5 or later", "Java"),
    ("uneven", OF["kafka-python"], "range", "set partition_assignment_strategy=[roundrobin]", "Java"),
    ("uneven", OF["Kafka Streams"], "stream", "Kafka Streams assigns this group with its own assignor", "set "),
    ("uneven", ["rdkafka", "sarama"], "range", "all of them ship (roundrobin)", "Java"),
    ("uneven", ["rdkafka", "my-service"], "range", "by their ids: unknown, librdkafka", "moves"),
    ("new", OF["Java"], "range", "restart one member that subscribes to the topic (a)", "listed"),
    ("new", OF["ruby-kafka"], "roundrobin", "restart one member that subscribes to the topic (a)", "metadata"),
    ("new", [""], "RoundRobinAssigner", "metadata.max.age.ms", "assignor"),
    ("lag", OF["Sarama"], "range", "its clients are Sarama: no assignor that it ships looks at lag", "set "),
    ("lag", OF["aiokafka"], "range", "lag (aiokafka clients, by their ids, load it", "Java"),
]


@pytest.mark.parametrize("shape, ids, reported, words, never", TABLE)
def test_the_advice_of_a_library_is_its_own(shape, ids, reported, words, never):
    need = {"uneven": "overload", "new": "no-owner", "lag": "lag"}[shape]
    [remedy] = [row["remedy"] for row in rank(group_of(shape, ids, reported), everything=True) if row["need"] == need]
    assert words in remedy and never not in remedy


@pytest.mark.parametrize("ids, old", [("consumer-{}", True), ("consumer-g-{}", False), ("worker-{}", False)])
def test_clients_of_an_old_default_id_may_lack_the_cooperative_assignor(ids, old):
    """Before 2.4 a Java consumer was named without its group, and shipped no `CooperativeStickyAssignor`."""
    topics = dict.fromkeys("tuvw", 4)
    members = [Member(f"{ids.format(at)}-x", list(topics), client_id=ids.format(at)) for at in range(3)]
    group = Group(topics, members, strategy="range", name="g", state="Stable")
    group = group.replace(owned=assign(group, "range").to_dict())
    [row] = [row for row in rank(group) if row["strategy"] == "kafka-cooperative-sticky"]
    assert ("before 2.4" in row["remedy"]) == old


def test_an_upgrade_is_advised_only_where_each_topic_begins_at_the_same_member():
    """With four partitions on one member, and with owners in another circle, the assignor must be another one."""
    for owned, upgrade in (({"a": [("t", 0), ("u", 0)], "b": [("t", 1), ("u", 1)]}, True),
                           ({"a": [("t", 0), ("t", 1), ("u", 0), ("u", 1)]}, False),
                           ({"a": [("t", 0), ("u", 1), ("v", 0)], "b": [("t", 1), ("u", 0)]}, False)):
        members = [Member(name, ["t", "u", "v"], owned=owned.get(name, ()), client_id="sarama") for name in "abc"]
        group = Group({"t": 2, "u": 2, "v": 1}, members, strategy="roundrobin")
        remedies = [row["remedy"] for row in rank(group, everything=True) if row["need"] in ("idle", "overload")]
        assert remedies and all(("upgrade Sarama" in remedy) == upgrade for remedy in remedies)


# --- what holds for all groups ---------------------------------------------------------------------------------------

REPORTED = ("", "range", "roundrobin", "sticky", "cooperative-sticky", "RoundRobinAssigner", "rack-affinity",
            "TeamAssignor")


@given(groups(max_topics=3, max_members=4, max_partitions=5), st.sampled_from(REPORTED),
       st.lists(st.sampled_from(["", *IDS.values()]), min_size=1, max_size=2))
@settings(max_examples=150)
def test_no_remedy_names_what_the_clients_lack(group, reported, ids):
    members = [Member(one.id, one.topics, owned=one.owned, generation=one.generation, instance_id=one.instance_id,
                      client_id=ids[at % len(ids)]) for at, one in enumerate(group.details)]
    group = group.replace(members=members, strategy=reported)
    leader = Leader(group.type, reported, [one.client_id for one in members])
    settings_of = {client.setting for client in CLIENTS.values() if client.setting} - {CLIENTS["Java"].setting}
    for row in rank(group, everything=True):
        if row["need"] in ("failing", "no-owner"):
            assert row["strategy"] is None or row["need"] == "failing" or "hang" in row["remedy"]
        if row["strategy"] and not leader.python:
            name = row["strategy"].removeprefix("kafka-")
            assert leader.client and name in leader.client.ships, row
        if reported:
            assert "runs it already" not in row["remedy"]
        if reported not in ("", *CLIENTS["Java"].ships):
            assert "Java" not in row["remedy"] and not (row["strategy"] or "").startswith("kafka-")
        for setting in settings_of:
            before, after = map(re.escape, setting.split("{}"))
            for name in re.findall(rf"{before}([\w-]+){after}", row["remedy"]):
                assert name == "one" or name in leader.client.ships and leader.client.setting == setting


@settings(max_examples=60)
@given(groups(max_members=4))
def test_a_remedy_says_what_it_does_to_racks(group):
    """How many partitions it leaves in rack, if racks are known; how many are now is a column of its row."""
    for row in rank(group.replace(name="g"), on_failure=lambda *_: None):
        told = re.search(r"then ([\d,]+) of ([\d,]+) partitions? in rack", row["remedy"])
        if row["strategy"]:
            after = assign(group, row["strategy"]).summary()
            assert (told is None) == (after["in_rack"] is None) == (row["in_rack"] is None)
            assert not told or [int(one.replace(",", "")) for one in told.groups()] == [
                after["in_rack"], after["partitions"]]


# --- a slow member -----------------------------------------------------------------------------------------------

def served(lags, **about):
    """A group whose members own two partitions of `t` each, with these lags."""
    names = [f"m{number}" for number in range(len(lags) // 2)]
    return Group({"t": len(lags)}, dict.fromkeys(names, ["t"]), name="g", state="Stable", strategy="range",
                 owned={name: {"t": [2 * at, 2 * at + 1]} for at, name in enumerate(names)}, **about)


@pytest.mark.parametrize("lags, slow", [
    ([9_000, 3_000, 5, 0, 7, 2], "m0"), ([0, 0, 60_000, 8_000], "m1"), ([5, 900, 20_000, 19_000], None),
    ([9_000, 20, 0, 0], None),                       # its other partition does not lag
    ([9_000, 3_000, 2_000, 0], None),                # its neighbor lags, too
    ([700, 200, 0, 0], None)])                       # such a lag is no need
def test_a_member_that_alone_lags_on_all_it_owns_is_slow_and_not_incurable(lags, slow):
    rows = rank(served(lags, committed={"t": [0] * len(lags)}, end={"t": lags}))
    found = [row for row in rows if "is probably slow" in row["reason"]]
    assert [row["reason"].partition(" ")[0] for row in found] == [slow] * bool(slow)
    for row in found:
        assert (row["need"], row["strategy"]) == ("lag", None) and "look at its process" in row["steps"][0]
        assert "is not known" in row["remedy"] and "no strategy helps" not in row["remedy"]
        assert not [other for other in rows if other["need"] == "incurable"]


def test_two_moments_say_whether_the_partitions_of_a_slow_member_receive_more():
    old = served([19_000, 3_000, 0, 0], committed={"t": [0] * 4}, end={"t": [19_000, 3_000, 0, 0]},
                 time="2026-03-01T02:00Z")
    new = old.replace(committed={"t": [600, 600, 6_000, 6_000]}, end={"t": [25_000, 9_000, 6_000, 6_000]},
                      time="2026-03-01T02:10Z")
    [row] = [row for row in rank([old, new]) if row["time"] == new.time]
    assert "its partitions receive 10 records per second each, those of others 10" in row["remedy"]
    assert row["remedy"].endswith("that member: 2 consumed and 20 produced per second: falls behind")
