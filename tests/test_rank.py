"""The ranking: held to definitions in plain Python, and free of the company in which a group is judged."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from itertools import groupby, product
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from groups import groups, sending_groups
from hypothesis import given
from hypothesis import strategies as st
from outputs import SAMPLES
from typer.testing import CliRunner

from kafka_assign import (
    Assignment, Group, GroupError, LiveGroup, Member, StrategyError, assign, rank, strategy)
from kafka_assign.ranking import judging as ranking
from kafka_assign.ranking.outcomes import current_outcome, outcome
from kafka_assign.groups.leader import REBALANCING, Leader
from kafka_assign.ranking.advice import way_of_python
from kafka_assign.ranking.rules import NEEDS, needs
from kafka_assign.cli.app import program
from kafka_assign.assignors.batch import batch_of_groups
from kafka_assign.groups.notes import Note
from kafka_assign.ranking.judging import SHIPPED, unexplained_lag, judge, strategies_for_joins
from kafka_assign.assignors.base import ForecastError, Strategy
from kafka_assign.assignors.registry import resolve, usual_strategies
from kafka_assign.snapshot import read_groups
from kafka_assign.protocol.wire import Claims, encode_sticky
from test_house import HEAVY
from test_reference import REFERENCE

STRATEGIES = ["range", "roundrobin", "fair", "lag", "sticky"]
JOINED = ["a", "B"]
KEYS = ["rank", "cluster", "group_id", "time", "moment", "need", "kind", "affected", "reason", "strategy", "switch",
        "remedy", "steps", "in_rack", "topic_spread"]


# --- definitions, one group at a time ------------------------------------------------------------------------------

class Plain:
    """A group with owners, as dictionaries and lists: the figures that decide about a need, word for word."""

    def __init__(self, group, owner):
        self.group, self.topics = group, [group.at(i).topic for i in range(group.columns.size)]
        self.owner = [group.members[at] if at >= 0 else None for at in owner]
        self.load = {name: self.owner.count(name) for name in group.members}

    def subscribers(self, topic):
        return [self.group.members[at] for at in self.group.subscribers(topic).tolist()]

    @property
    def unowned(self):
        return sum(owner is None and bool(self.subscribers(topic)) for topic, owner in zip(self.topics, self.owner))

    @property
    def consumed(self):
        """Partitions without a valid owner that somebody claims: how many several claim in the newest generation, how
        many one member that does not subscribe claims, and how many of all have a subscriber."""
        shared = strange = subscribed = 0
        for at, owner in enumerate(self.owner):
            if owner is None and self.group.columns.consumer[at] != -1:
                claims = [(one.generation, one.id) for one in self.group.details if self.group.at(at) in one.owned]
                newest = [name for generation, name in claims if generation == max(claims)[0]]
                several = self.group.columns.consumer[at] < -1
                shared += several and len(newest) > 1
                strange += not several
                subscribed += bool(self.subscribers(self.topics[at]))
        return shared, strange, subscribed

    @property
    def missing_spread(self):
        """Subscribers of the topic with half of the lag that could have a partition of it, and have none."""
        if self.group.lag is None or not self.group.members:
            return 0
        lag = dict.fromkeys(self.topics, 0)
        for topic, number in zip(self.topics, self.group.lag.tolist()):
            lag[topic] += max(number, 0)
        if not lag or max(lag.values()) <= 0 or 2 * max(lag.values()) < sum(lag.values()):
            return 0
        topic = max(lag, key=lambda name: lag[name])
        owners = {owner for name, owner in zip(self.topics, self.owner) if name == topic and owner}
        return max(min(self.topics.count(topic), len(self.subscribers(topic))) - len(owners), 0)

    @property
    def busiest(self):
        """The lag of the topic that has most."""
        lag = [] if self.group.lag is None else self.group.lag.tolist()
        return max((sum(max(n, 0) for name, n in zip(self.topics, lag) if name == topic) for topic in self.topics),
                   default=0) if lag and len(set(self.topics)) > 1 else 0

    @property
    def could_take(self):
        """Idle members that subscribe to a topic of which a member with two or more partitions has one."""
        busy = {topic for topic, owner in zip(self.topics, self.owner) if owner and self.load[owner] >= 2}
        return sum(not load and any(name in self.subscribers(topic) for topic in busy)
                   for name, load in self.load.items())

    @property
    def max_load(self):
        return max(self.load.values(), default=0)

    @property
    def idle(self):
        return list(self.load.values()).count(0)

    @property
    def misled(self):
        """Members that subscribe to a topic without partitions."""
        return [member.id for member in self.group.details
                if any(topic not in self.topics for topic in member.topics)]

    @property
    def lag_max(self):
        lag = [-1] * len(self.owner) if self.group.lag is None else self.group.lag.tolist()
        if not any(number >= 0 for number in lag):
            return -1
        return max((sum(max(number, 0) for number, owner in zip(lag, self.owner) if owner == name)
                    for name in self.load), default=0)

    @property
    def split(self):
        """Partition numbers of the joined topics that have several owners."""
        owners = {}
        for at, owner in enumerate(self.owner):
            if owner and self.topics[at] in JOINED:
                owners.setdefault(self.group.at(at).partition, set()).add(owner)
        return sum(len(found) > 1 for found in owners.values())

    @property
    def moved(self):
        before = Plain(self.group, self.group.previous).owner
        return sum(None not in pair and pair[0] != pair[1] for pair in zip(before, self.owner))


def still_needed(need, one, best):
    """Whether a group has this need, given what is possible."""
    return {"no-owner": one.unowned > 0, "idle": one.could_take > 0, "overload": one.max_load > best["max_load"],
            "skew": one.missing_spread > best["missing_spread"] and one.busiest >= 10_000,
            "lag": one.lag_max > 0 and 2 * one.lag_max >= 3 * best["lag_max"],
            "split-join": one.split > best["split"]}[need]


def needs_of(group, ways):
    """The needs of a group, and what is possible, by their definitions."""
    now, best = Plain(group, group.previous), {}
    for figure in ("max_load", "lag_max", "split", "idle", "missing_spread"):
        best[figure] = min(getattr(one, figure) for one in ways.values())
    found = {need for need in CURED if still_needed(need, now, best)}
    found -= {"no-owner"} if now.unowned == now.consumed[2] else set()
    if not group.members and group.lag is not None and (group.lag > 0).any():
        found.add("abandoned")
    best["idle"] -= sum(not now.load[name] for name in now.misled) + max(best["idle"] - now.idle, 0)
    if group.columns.size and best["idle"] > 0:
        found.add("incurable")
    return now, best, found


CURED = "no-owner", "idle", "overload", "skew", "lag", "split-join"
small = groups(max_topics=3, max_members=4, max_partitions=4)


def answer_of(group, name):
    """What a strategy answers; None if it forecasts that Kafka's assignor fails."""
    try:
        return assign(group, name)
    except ForecastError:
        return None


@given(small)
def test_needs_and_remedies_follow_their_definitions(group):
    foretold = {name: answer for name in SHIPPED if (answer := answer_of(group, name))}
    asked = [*STRATEGIES, *(name for name in foretold if name not in STRATEGIES)]
    ways = {name: Plain(group, assign(group, name).owner) for name in STRATEGIES}
    ways |= {name: Plain(group, one.target) for name, one in foretold.items()}
    now, best, expected_needs = needs_of(group, ways)
    rows = rank(group, asked, joined(group), everything=True)
    missing = [row for row in rows if "exist" in row["reason"]]
    assert [(row["need"], row["affected"]) for row in missing] == [("idle", len(now.misled))] * bool(now.misled)
    shared, strange, consumed = now.consumed
    assert [row["affected"] for row in rows if row["need"] == "two-owners"] == [shared] * bool(shared)
    others = [row for row in rows if "does not subscribe" in row["reason"] or "owns any of it" in row["reason"]]
    assert [row["affected"] for row in others if "does not" in row["reason"]] == [strange] * bool(strange)
    cold = [row for row in rows if ", holds " not in row["reason"] and row not in [*missing, *others]
            and row["need"] != "two-owners"]
    assert {row["need"] for row in cold} == expected_needs and len(cold) == len(expected_needs)
    for row in cold:
        expected = {"no-owner": now.unowned - consumed, "idle": now.could_take, "incurable": best["idle"],
                    "overload": sum(max(load - best["max_load"], 0) for load in now.load.values()),
                    "split-join": now.split - best["split"]}
        assert row["affected"] == expected.get(row["need"], row["affected"]) > 0
        able = {name: one for name, one in ways.items()
                if row["need"] in CURED and not still_needed(row["need"], one, best)}
        cost = {name: (one.could_take, one.moved) for name, one in able.items()}
        shipped = {name: cost[name] for name in SHIPPED if name in able}
        if row["need"] == "no-owner":
            assert row["strategy"] is None and row["remedy"].startswith("restart one member that subscribes to the ")
            continue
        if row["strategy"] is None:
            assert not shipped
        else:                       # it cures, and no other one that members may have does so with less
            assert shipped[row["strategy"]] == min(shipped.values())
            assert row["remedy"].startswith(f"{row['strategy']} (if its clients are Java): ")
            assert f": {able[row['strategy']].moved:,} move" in row["remedy"]
        least = min(cost.values(), default=None)
        assert ("best possible: " in row["remedy"]) == (least is not None and least != min(shipped.values(), default=0))


def joined(group):
    topics = [name for name in JOINED if name in group.topics]
    return [topics] if topics else []


@given(groups(max_topics=2, max_members=3, max_partitions=3))
def test_a_load_is_too_large_if_any_assignment_has_a_smaller_one(group):
    """Every complete assignment there is says what is possible, not only those that strategies find."""
    choices = [group.subscribers(topic).tolist() or [-1] for topic in Plain(group, group.previous).topics]
    possible = min(Plain(group, owner).max_load for owner in product(*choices))
    above = Plain(group, group.previous).max_load - possible
    for everything, least in ((True, 1), (False, 2)):
        found = [row for row in rank(group, STRATEGIES, everything=everything) if row["need"] == "overload"]
        assert bool(found) == (above >= least)
        if found:
            assert f"best possible {possible:,}" in found[0]["reason"]


@st.composite
def groups_of_one_subscription(draw):
    """A group whose members subscribe to the same topics, and whose claims all hold."""
    topics = draw(st.dictionaries(st.sampled_from("abc"), st.integers(0, 7), min_size=1))
    ids = draw(st.lists(st.integers(0, 10**6).map("c{}".format), min_size=1, max_size=6, unique=True))
    owned = {name: [] for name in ids}
    for topic, count in topics.items():
        for number in range(count):
            if owner := draw(st.sampled_from([None, ids[0], *ids])):
                owned[owner].append((topic, number))
    return Group(topics, [Member(name, [*topics, "missing"], owned=owned[name], generation=draw(st.integers(-1, 3)),
                                 rack=draw(st.sampled_from([None, "r"]))) for name in ids])


ALIKE = ("min_load", "max_load", "balance_score", "kept", "moved", "placed", "withheld", "unassigned", "paused")


@given(groups_of_one_subscription())
def test_the_optimum_has_the_figures_of_the_forecast_that_it_replaces(group):
    forecast, optimum = (assign(group, name).summary() for name in ("kafka-cooperative-sticky", "cooperative-sticky"))
    assert {name: forecast[name] for name in ALIKE} == {name: optimum[name] for name in ALIKE}
    assert ranking._as_optimum(batch_of_groups([group]), {}).all()


def test_the_optimum_replaces_a_forecast_only_where_it_has_its_figures():
    plain = Group({"t": 3, "u": 1}, {"a": ["t", "u"], "b": ["t", "u"]}, owned={"a": [("t", 0), ("t", 1)]})
    contested = plain.replace(owned={"a": [("t", 0)], "b": [("t", 0)]})
    sent = plain.replace(members=[replace(one, user_data=b"") for one in plain.details])
    racks = plain.replace(partition_racks={"t": [["r"]] * 3})
    batch = batch_of_groups([plain, plain.subscribe("b", ["t"]), contested, sent, racks, plain])
    found = ranking._as_optimum(batch, {"kafka-cooperative-sticky": [5]})
    assert found.tolist() == [True, False, False, False, False, False]


@given(st.lists(small | groups_of_one_subscription(), max_size=4), st.booleans())
def test_advice_is_that_of_the_forecast(fleet, everything):
    fleet = [group.replace(name=f"g{at}", lag=None) for at, group in enumerate(fleet)]
    assert rank(fleet, everything=everything) == ranked_by_forecasts(fleet, everything=everything)


def ranked_by_forecasts(fleet, **options):
    with patch.object(ranking, "_as_optimum", lambda batch, _: np.zeros(batch.columns.groups, bool)):
        return rank(fleet, **options)


def lagging_group(random, name):
    """Members of one subscription, any owners, and lags of thousands of records."""
    topics = {f"t{at}": random.randint(1, 8) for at in range(random.randint(1, 4))}
    members = [f"m{at}" for at in range(random.randint(2, 6))]
    lag = {(topic, at): int(random.lognormvariate(9, 2)) for topic, count in topics.items() for at in range(count)}
    owned = {member: [] for member in members}
    for pair in lag:
        owned[random.choice(members)].append(pair)
    return Group(topics, dict.fromkeys(members, list(topics)), owned=owned, lag=lag, name=name)


def test_advice_on_lag_is_that_of_the_forecast():
    """The optimum has the loads of Kafka's cooperative assignor, but other members may have the lag. A group in which
    that assignor alone would lower the lag is left alone."""
    random = Random(0)
    fleet = [lagging_group(random, f"g{at}") for at in range(400)]
    rows, by_forecasts = ([row | {"rank": 0} for row in ranked(fleet)] for ranked in (rank, ranked_by_forecasts))
    assert all(row in by_forecasts for row in rows)
    assert {row["need"] for row in by_forecasts if row not in rows} <= {"lag"}


@given(st.lists(small, max_size=5), st.randoms(use_true_random=False))
def test_neither_order_nor_company_matters(fleet, random):
    fleet = [group.replace(name=f"g{at // 2}", cluster=random.choice(["", "east"])) for at, group in enumerate(fleet)]
    rows, shuffled = rank(fleet), random.sample(fleet, len(fleet))
    assert rank(shuffled) == rows == rank(dict(enumerate(shuffled)))
    alone = [{**row, "rank": 0} for group in fleet for row in rank(group)]
    assert sorted(map(str, alone)) == sorted(str({**row, "rank": 0}) for row in rows)


def test_groups_that_differ_only_in_what_is_known_have_an_order():
    """A figure that only one of two groups without a name knows is no error."""
    group = Group({"t": 1}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", 0)]})
    near = group.replace(members=[replace(one, rack="r") for one in group.details], partition_racks={"t": [["r"]]})
    for fleet in ([near, group], [group, near]):
        assert [row["in_rack"] for row in rank(fleet)] == [None, 1]


@given(st.lists(small, max_size=5))
def test_rows_are_in_order(fleet):
    rows = rank([group.replace(name=f"g{at}") for at, group in enumerate(fleet)], everything=True)
    assert all(list(row) == KEYS and row["need"] == NEEDS[row["kind"]] for row in rows)
    for row in rows:
        summary = Assignment.current(fleet[int(row["group_id"][1:])]).summary()
        assert {key: row[key] for key in KEYS[-2:]} == {key: summary[key] for key in KEYS[-2:]}
    blocks = [list(block) for _, block in groupby(rows, key=lambda row: row["group_id"])]
    assert [{row["rank"] for row in block} for block in blocks] == [{place} for place in range(1, len(blocks) + 1)]
    urgency = [[(row["kind"], -row["affected"]) for row in block] for block in blocks]
    assert all(one == sorted(one) for one in urgency)
    first = [(*block[0], rows_of[0]["group_id"]) for block, rows_of in zip(urgency, blocks)]
    assert first == sorted(first)


@given(small)
def test_what_is_trifling_is_a_part_of_everything(group):
    usual, everything = rank(group), rank(group, everything=True)
    minor = [row for row in everything if row not in usual]
    assert [row for row in everything if row not in minor] == usual
    assert {row["need"] for row in minor} <= {"overload", "lag"}


# --- what was found on real groups ---------------------------------------------------------------------------------

def told(row):
    """A remedy without the member that is to be looked at first."""
    return re.sub("^first see whether .*? partitions; ", "", row["remedy"])


def kinds(rows):
    return [row["need"] for row in rows]


@pytest.mark.parametrize("version", sorted(SAMPLES.glob("kafka-*")), ids=lambda folder: folder.name)
def test_a_dead_group_with_waiting_records(version):
    [row] = [row for row in rank(read_groups(version)) if row["group_id"] == "nightly-batch"]
    assert row["need"] == "abandoned" and row["affected"] == 44 and row["strategy"] is None
    assert row["reason"] == "no active members while at least 568,990 records wait"
    assert row["remedy"].startswith("start its members, unless it is idle on purpose (a batch job, ")


@pytest.mark.parametrize("more, words", [(0, ""), (-1, "at least ")])
def test_lag_that_is_known_in_part_is_a_lower_bound(more, words):
    """The last partition has no lag, or one that is not known."""
    lag = {"t": [5_000, 5_000, 0, more]}
    owned = {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}
    members = dict.fromkeys("ab", ["t"])
    [row] = rank(Group({"t": 4}, {}, lag=lag))
    assert row["reason"] == f"no active members while {words}10,000 records wait"
    [row] = rank(Group({"t": 4}, members, lag=lag, owned=owned))
    end = " for the known lag" if words else ""
    assert row["need"] == "lag"
    assert row["reason"] == f"one member lags {words}10,000 records behind, 5,000{end} under the best compared strategy"
    [row] = rank(Group({"t": 4}, members, lag={"t": [5_000, 20, 0, more]}, owned=owned))
    assert row["need"] == "incurable" and row["reason"] == f"t-0, on a, holds 5,000 of {words}5,020 records of lag"


def test_a_group_without_waiting_records_needs_nothing():
    for lag in ({"t": [0, 0]}, {"t": [-1, -1]}, None):
        assert rank(Group({"t": 2}, {}, lag=lag, state="Empty")) == []


@pytest.mark.parametrize("state", ["Stable", *REBALANCING])
def test_members_that_are_not_shown_are_not_missing(state):
    """The state of the group says that it has members."""
    assert "abandoned" not in kinds(rank(Group({"t": 1}, {}, lag={"t": [5]}, state=state)))


def lagging(**about):
    """A member is idle, another one has too much, and a third one lags behind."""
    owned = {"a": [("t", n) for n in range(6)], "b": [("t", 6), ("t", 7)]}
    return Group({"t": 8}, [Member(name, ["t"], owned=owned.get(name, ())) for name in "abc"],
                 lag={"t": [0] * 6 + [65_000, 65_000]}, **about)


def test_a_lagging_member_is_not_hidden():
    rows = rank(lagging())
    assert kinds(rows) == ["idle", "overload", "lag"] and {row["rank"] for row in rows} == {1}
    assert rows[2]["reason"] == "one member lags 130,000 records behind, 65,000 under the best compared strategy"
    assert rows[2]["affected"] == 2


@pytest.mark.parametrize("state", [*REBALANCING, "preparingrebalance"])
def test_a_group_that_rebalances_is_not_judged(state):
    [row] = rank(lagging(state=state))
    assert row["need"] == "rebalancing" and row["affected"] == 8 and row["strategy"] is None
    assert "rebalancing" in row["reason"] and "capture it again" in row["remedy"]
    assert len(rank([lagging(name="g", state=state), lagging(name="h")])) == 4


def test_a_single_partition_above_the_best_is_trifling():
    owned = {"a": [("t", n) for n in range(3)], "b": [("t", 3)]}
    group = Group({"t": 4}, dict.fromkeys("ab", ["t"]), owned=owned)
    assert rank(group) == [] and kinds(rank(group, everything=True)) == ["overload"]
    worse = Group({"t": 5}, dict.fromkeys("ab", ["t"]), owned={**owned, "a": [*owned["a"], ("t", 4)]})
    assert rank(worse) == [] and kinds(rank(worse, everything=True)) == ["overload"]   # 4 and 1, where 3 and 2 do
    worst = Group({"t": 6}, dict.fromkeys("ab", ["t"]), owned={**owned, "a": [*owned["a"], ("t", 4), ("t", 5)]})
    assert kinds(rank(worst)) == ["overload"]


BY_THE_BROKER = ("the broker assigns this group: group.remote.assignor of the members, else the first of the broker's "
                 "group.consumer.assignors, chooses among the broker's own (uniform evens out loads, range assigns "
                 "topic by topic)")


def test_the_broker_assigns_groups_of_type_consumer():
    rows = rank(lagging(type="consumer"))
    assert kinds(rows) == ["idle", "overload", "lag"] and {row["strategy"] for row in rows} == {None}
    assert all(told(row).startswith(BY_THE_BROKER) for row in rows)
    [crowded] = rank(Group({"t": 1}, dict.fromkeys("abc", ["t"]), owned={"a": [("t", 0)]}, type="consumer"))
    without = "no strategy helps: the group can do without 2 members, unless the idle members are spares"
    assert crowded["remedy"].startswith(without)


THREAD = "app-6f5c9f3e-0b1d-4c63-9a8e-2f6d1d1c7b11-StreamThread-1-consumer"


@pytest.mark.parametrize("ids, strategy, words", [
    (["consumer-g-1", "consumer-g-2"], "range", "range (Java clients, by their ids): "),
    (["consumer-g-1", "my-service"], "range", "range (if its clients are Java): "),
    (["", ""], "range", "range (if its clients are Java): "),
    (["consumer-g-1", "rdkafka"], None, "its members are of several client libraries (by their ids: Java, librdkafka)"),
    (["sarama", "kgo"], None, "its members are of several client libraries (by their ids: Sarama, franz-go), and any "
     "of them may lead: choose an assignor that all of them ship (range, roundrobin, sticky)"),
    ([THREAD, THREAD], None,
     "Kafka Streams assigns this group with its own assignor: no other assignor can run in it")])
def test_a_remedy_names_only_what_the_clients_can_run(ids, strategy, words):
    members = [Member("a", ["t"], owned=[("t", n) for n in range(6)], client_id=ids[0]),
               Member("b", ["t"], client_id=ids[1])]
    for row in rank(Group({"t": 6}, members), ["sticky"]):
        assert row["strategy"] == strategy and row["remedy"].startswith(words)


@pytest.mark.parametrize("about", [{"strategy": "stream"}, {"strategy": "compatible"}, {"type": "streams"}])
def test_what_assigns_by_itself_has_no_remedy(about):
    rows = rank(lagging(**about))
    assert kinds(rows) == ["idle", "overload", "lag"]
    assert all(row["strategy"] is None and "can run in it" in row["remedy"] for row in rows)


def behind():
    """A balanced group with all of its lag on one member, which no assignor of Kafka's sees."""
    owned = {"a": [("t", 0), ("t", 1), ("t", 2)], "b": [("t", 3), ("t", 4), ("t", 5)]}
    return Group({"t": 6}, dict.fromkeys("ab", ["t"]), owned=owned, lag={"t": [9000, 0, 9000, 0, 0, 0]})


def sample_rows():
    """What every sample group needs, trifles included."""
    for source in ("generated-fleet.jsonl", "kafka-2.8.2", "kafka-3.9.2", "kafka-4.3.1"):
        groups = read_groups(SAMPLES / source)
        joined = {topic for group in groups.values() for topic in group.topics} >= {"clicks", "impressions"}
        yield from rank(groups, joins="clicks+impressions" if joined else (), everything=True)


# What a word of advice must come with: who can run a strategy and how the group gets there, what a deletion loses.
CONDITIONS = {
    r"\bdelet": "deleting the group drops its offsets; they also expire once it has had no members for",
    r"do without": "unless the idle members are spares or subscribe to topics that the input does not show",
    r"start its members": "unless it is idle on purpose",
    r"\d moves?\b(?=;)|: moves unknown":
        r"\((runs now|Java clients, by their ids|if its clients are Java|.* clients, by their ids, "
        r"(ship it|load it from .*))\): .*; "
        r"(a rebalance may be enough: (restart a dynamic member, or )?call enforceRebalance\(\) on the leader"
        r"|(set \S+: )?two rolling restarts, the first with both assignors listed( \(a single restart if .*\))?; "
        r"(each causes (about|at least) \d+|they cause one) rebalance"
        r"|a rebalance if the group runs it already, else two rolling restarts"
        r"|stop all members \(kill those that hang\)"
        r"|one rolling restart, because the assignor keeps its name)"}


def test_no_remedy_comes_without_its_condition():
    rows = list(sample_rows())
    assert {row["need"] for row in rows} == {*NEEDS} - {"two-owners", "failing", "stuck"}
    for words, condition in CONDITIONS.items():
        found = [row["remedy"] for row in rows if re.search(words, row["remedy"])]
        assert found and all(re.search(condition, remedy) for remedy in found), words
    for row in rows:
        assert not re.search("(more|add) partitions", row["remedy"])          # a key would change its partition
        assert bool(row["strategy"]) == bool(re.match(rf"{re.escape(row['strategy'] or '-')} \(", told(row)))


def test_needs_have_names():
    """Other people's programs compare with them, and with their numbers."""
    assert NEEDS == ("two-owners", "failing", "no-owner", "stuck", "idle", "overload", "skew", "lag", "split-join",
                     "abandoned", "incurable", "rebalancing")


# What a remedy says, and what an operator then does.
EACH = "restart the members one at a time, waiting for Stable in between, with "
STEPS = {
    r"^(?!.*set ).*two rolling restarts, the first with both assignors listed; ":
        [EACH + "both assignors listed, the new one first", EACH + "the new assignor alone"],
    r"set partition.assignment.strategy=roundrobin: two rolling restarts, the first with both assignors listed \(a s":
        [EACH + "both assignors listed, the new one first (leave this out if the members have librdkafka's default "
         "list range,roundrobin)", EACH + "partition.assignment.strategy=roundrobin alone"],
    r"^(?!.*set ).*two rolling restarts, the first with both assignors listed \(a single restart ":
        [EACH + "both assignors listed, the new one first (leave this out if the members have Java's default list "
         "since 3.0)", EACH + "the new assignor alone"],
    r"a rebalance may be enough: restart a dynamic":
        ["restart a dynamic member, or call enforceRebalance() on the leader"],
    r"a rebalance may be enough: call": ["call enforceRebalance() on the leader"],
    r"one rolling restart, because": [EACH + "the new assignor"],
    r"start them with the new assignor": ["stop all members (kill those that hang)", "wait until the group is Empty",
                          "start them with the new assignor"],
    r"^(the broker|Kafka Streams|Kafka Connect) assigns|"
    r"^no strategy that the members can run helps|the group can do without": [],
    r"^check the subscriptions": ["check the subscriptions (a misspelled topic?), the racks and which client leads"],
    r"whether the name is right": ["see whether the name is right", "correct the subscription, or create the topic"],
    r"whether its consumer is slow": ["see whether its consumer is slow or stuck"],
    r"^its figures are transient": ["capture it again"]}


def various():
    """Groups whose remedies differ: by clients, static members, and what they run."""
    for strategy, client, static in product(
            ["", "range", "sticky", "cooperative-sticky", "stream", "lag"],
            ["", "rdkafka", "kafka-python-3.0.12", "aiokafka-0.14.0"], [False, True]):
        for group in (lagging(), behind(), TYPING_ERROR):
            members = [replace(one, client_id=client, instance_id=one.id if static else None) for one in group.details]
            yield group.replace(members=members, strategy=strategy)


def test_steps_are_those_of_the_remedy():
    """They add only what is to be done first, or for static members; the rest of a remedy is no step."""
    rows, seen = [*sample_rows(), *rank(various())], set()
    for row in rows:
        assert all(step and step.isprintable() and ";" not in step for step in row["steps"]), row
        assert row["steps"] or not row["strategy"]
        for words, steps in STEPS.items():
            if "a rebalance if the group runs it already" not in row["remedy"] and re.search(words, told(row)):
                seen.add(words)
                last = ["call enforceRebalance() on the leader if a static member is back with another subscription"]
                first = row["remedy"].split("; ")[:row["remedy"] != told(row)]
                last *= "until enforceRebalance() is called" in row["remedy"]
                assert row["steps"] == [*first, *steps, *last], row
    assert seen == STEPS.keys()


def test_a_group_of_an_unknown_assignor_is_looked_at_first():
    [row] = [row for row in rank(lagging(), ["sticky"]) if row["need"] == "overload"]
    assert row["remedy"].startswith("kafka-cooperative-sticky (if its clients are Java): ")
    assert row["steps"] == [
        "see which assignor the group runs (--state shows it)",
        "if it is this one, only restart a dynamic member, or call enforceRebalance() on the leader",
        EACH + "both assignors listed, the new one first (leave this out if the members have Java's default list "
        "since 3.0)", EACH + "the new assignor alone"]


def test_a_misspelled_topic():
    """As tried on a broker: b subscribes to tt instead of t. It stays idle, and no rebalance changes that."""
    live = LiveGroup("range", {"t": 4}, {"a": ["t"], "b": ["tt"]})
    before = live.state.consuming
    assert live.change_leader().moved == () and live.state.consuming == before
    [row] = rank(live.group)
    assert (row["need"], row["affected"], row["strategy"]) == ("idle", 1, None)
    assert row["reason"] == "tt does not exist; did they mean t? (1 subscriber: b)"
    assert row["remedy"] == ("no strategy helps: see whether the name is right; correct the subscription, or create "
                             "the topic")


TYPING_ERROR = Group({"orders": 2}, {"a": ["orders"], "b": ["orders"], "c": ["oders"]}, strategy="range",
                     owned={"a": [("orders", 0)], "b": [("orders", 1)]})


@pytest.mark.parametrize("group", [TYPING_ERROR, Group.from_json(TYPING_ERROR.to_json())], ids=["python", "json"])
def test_a_member_that_subscribes_to_nothing_is_not_one_too_many(group):
    [row] = rank(group)
    assert row["need"] == "idle" and row["reason"].startswith("oders does not exist; did they mean orders?")
    busy = group.replace(members={**dict.fromkeys("abd", ["orders"]), "c": ["oders", "orders"]})
    [missing, crowded] = rank(busy)
    assert missing["need"] == "idle" and crowded["need"] == "incurable"
    assert crowded["reason"].startswith("1 of 4 members idle (d): ") and "without 1 member," in crowded["remedy"]


def test_what_does_not_exist_is_said_only_if_it_is_known():
    """A topic that the client may not describe may exist, and so may one of which a member claims partitions."""
    unclear = TYPING_ERROR.replace(notes=[Note("topics-not-described", 1, ("oders",))])
    [row] = rank(unclear)
    assert row["reason"] == "oders is not in the input; if it does not exist, did they mean orders? (1 subscriber: c)"
    far = unclear.replace(members={"a": ["orders"], "b": ["orders"], "c": ["x\x1b"]})
    assert rank(far)[0]["reason"] == r"x\x1b is not in the input, and may not exist (1 subscriber: c)"
    owned = {"a": [("orders", 0)], "b": [("orders", 1)], "c": [("oders", 0)]}
    [claimed] = rank(TYPING_ERROR.replace(owned=owned))
    assert (claimed["need"], claimed["reason"]) == ("idle", row["reason"])


def test_many_topics_that_do_not_exist_are_one_need():
    topics = [f"gone-{number}" for number in range(5)]
    [row] = rank(Group({"t": 2}, {"a": ["t", *topics], "b": ["t", "gone-3"]}, owned={"a": [("t", 0)], "b": [("t", 1)]}))
    assert row["affected"] == 2 and row["reason"] == (
        "gone-0 does not exist (1 subscriber: a); gone-1 does not exist (1 subscriber: a); "
        "gone-2 does not exist (1 subscriber: a) and 2 more")


def test_a_text_does_not_show_what_idle_members_subscribe_to():
    """Whether the group can do without them is not known."""
    text = """GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT
g consumer-g-1-aa /h consumer-g-1 1 orders(0)
g consumer-g-2-bb /h consumer-g-2 1 orders(1)
g consumer-g-3-cc /h consumer-g-3 0 -
"""
    [row] = rank(read_groups(text))
    assert row["need"] == "incurable" and "do without" not in row["remedy"]
    assert "check what the idle members subscribe to, which the input does not show (a misspelled" in row["remedy"]


def test_a_leader_that_never_returns():
    """It stops heartbeating while it computes, so the session timeout evicts it, and the next leader hangs, too."""
    case = json.loads(next(line for line in (REFERENCE / "kafka-sticky.jsonl").read_text().splitlines()
                           if json.loads(line)["id"] == "kafka-sticky-0250"))
    row = rank(Group.from_json(case).replace(name="g", strategy="sticky"))[0]
    assert row["need"] == "failing" and "session.timeout.ms evicts the leader, and the next one hangs" in row["reason"]
    assert "max.poll.interval.ms" not in row["reason"] and "stop all members (kill those that hang)" in row["remedy"]


def test_no_strategy_of_this_package_is_a_remedy():
    """What it reaches is shown as the best possible."""
    [row] = rank(behind())
    assert row["need"] == "lag" and row["strategy"] is None
    assert told(row) == (
        "no strategy that the members can run helps; best possible: 2 moves (lag); without a rate, lag says nothing "
        "about delay")


def test_a_small_lag_is_trifling():
    """Some records always wait: a member that is 9,000 behind where 4,500 would do is listed on request only."""
    little = behind().replace(lag={"t": [4500, 0, 4500, 0, 0, 0]})
    assert rank(little) == [] and kinds(rank(little, everything=True)) == ["lag"]


def test_the_price_of_another_assignor_is_said():
    """A restart of a dynamic member is a leave and a join; static members that are back in time cause one rebalance."""
    remedies = {}
    for static in (0, 1, 2):
        members = [Member(name, ["t"], instance_id=name if at < static else None, client_id=f"consumer-g-{at}")
                   for at, name in enumerate("ab")]
        group = Group({"t": 4}, members, owned={"a": [("t", at) for at in range(4)], "b": []}, strategy="sticky")
        for running, about in (("sticky", group), ("range", group.replace(strategy=""))):
            remedies[running, static] = next(row["remedy"] for row in rank(about) if row["need"] == "idle")
    for static, rebalances in ((0, "each causes about 4 rebalances"), (1, "each causes about 2 rebalances"),
                               (2, "they cause one rebalance if its static members come back in time")):
        assert f"the first with both assignors listed; {rebalances}" in remedies["range", static]
        assert ("restart a dynamic member" in remedies["sticky", static]) == (static < 2)
        assert "enforceRebalance() on the leader" in remedies["sticky", static]


def test_idle_members_are_named():
    """An operator asks why this member is idle; names are foreign text, and of many the first ones do."""
    idle = Group({"t": 1}, dict.fromkeys(["a", "b\x1b[2J", *"cdef"], ["t"]), owned={"a": [("t", 0)]})
    [row] = rank(idle)
    assert row["reason"].startswith(r"5 of 6 members idle (b\x1b[2J, c, d and 2 more): more members than")


@pytest.mark.parametrize("ids, remedy", [
    (["kafka-python-3.0.12", "kafka-python-3.0.12-2"],
     "lag (kafka-python clients, by their ids, load it from kafka_assign.clients): 2 moves; two rolling "),
    (["kafka-python-3.0.12", "aiokafka-0.14.0"], "lag (aiokafka and kafka-python clients, by their ids, load it from "),
    (["kafka-python-3.0.12", "consumer-g-1"], "its members are of several client libraries (by their ids: Java, ka"),
    (["kafka-python-3.0.12", "my-service"], "its members are of several client libraries (by their ids: unknown, ka")])
def test_python_clients_load_what_this_package_has(ids, remedy):
    """Only if all members can: one that cannot would be left without a protocol in common."""
    group = behind()
    members = [replace(member, client_id=client_id) for member, client_id in zip(group.details, ids)]
    [row] = rank(group.replace(members=members, strategy="range"))
    assert told(row).startswith(remedy) and row["strategy"] == ("lag" if remedy.startswith("lag") else None)
    assert "by chance" not in row["remedy"]


@pytest.mark.parametrize("client, reported, words", [
    ("kafka-python-3.0.12", "range",
     "two rolling restarts, the first with both assignors listed; each causes about 4 rebalances"),
    ("kafka-python-3.0.12", "lag", "one rolling restart, because the assignor keeps its name"),
    ("kafka-python-3.0.12", "cooperative-sticky", "stop all members (kill those that hang), wait until the group is "),
    ("kafka-python-3.0.12", "", "stop all members (kill those that hang), wait until the group is "),
    ("kafka-python-3.0.12", "a-cooperative-one", "stop all members (kill those that hang), wait until the group is "),
    ("aiokafka-0.14.0", "lag", "one rolling restart, because the assignor keeps its name"),
    ("aiokafka-0.14.0", "range", "stop all members (kill those that hang), wait until the group is ")])
def test_python_clients_change_their_assignor_as_they_can(client, reported, words):
    """kafka-python refuses a list with eager and cooperative assignors, and aiokafka joins with the first one only."""
    group = behind()
    members = [replace(member, client_id=client) for member in group.details]
    [row] = rank(group.replace(members=members, strategy=reported))
    assert row["strategy"] == "lag" and f": 2 moves; {words}" in row["remedy"]


@pytest.mark.parametrize("client, lists", [
    ("kafka-python-3.0.12", "[assignor('{0}'), assignor('{1}')]"),
    ("aiokafka-0.14.0", "aio.tied(aio.assignor('{0}'), aio.assignor('{1}'))")])
@pytest.mark.parametrize("reported", ["range", "roundrobin"])
@pytest.mark.parametrize("new", ["sticky", "cooperative-sticky"])
def test_python_clients_list_assignors_of_this_package_to_keep_what_they_have(client, lists, reported, new):
    """What `test_live_tied.py` carries out: a remedy that stops all members, or loses what they have, costs more."""
    way = way_of_python(Leader("classic", reported, [client]), resolve(new), 3)
    assert lists.format(new, reported) in way.words and "keep what they have" in way.words
    assert len(way.steps) == 2 and "stop all members" not in way.words


def test_aiokafka_is_eager():
    """A cooperative strategy is no remedy for it, and no forecast of Kafka's is one for Python clients."""
    labels = {"cooperative-sticky": ("kafka-python",), "sticky": ("kafka-python", "aiokafka"),
              "kafka-sticky": ("Java", "kafka-python", "aiokafka")}
    for client_id, able in (("kafka-python-3.0.12", ["cooperative-sticky", "sticky"]), ("aiokafka-0.14.0", ["sticky"]),
                            ("my-service", ["kafka-cooperative-sticky"])):
        group = lagging().replace(members=[replace(one, client_id=client_id) for one in lagging().details])
        for only in labels:
            found = {row["strategy"] for row in rank(group, [only])} - {"range", "roundrobin", "kafka-sticky", None}
            assert found <= {*able}, (client_id, only)


def test_a_strategy_of_others_is_for_members_that_can_load_it():
    group = behind()
    for running, way in (("range", "two rolling restarts, the first"), ("", "a rebalance if the group runs it")):
        [row] = rank(group.replace(strategy=running), [fixed("own", [0, 0, 1, 1, 0, 1])])
        assert told(row).startswith(f"own (if its clients can load it): 2 moves; {way}")


def counted(topics, counts, **about):
    """Only how many partitions members have is known, as `--members` shows it."""
    return Group(topics, [Member(name, topics, counted=count) for name, count in zip("abc", counts)], **about)


@pytest.mark.parametrize("topics, counts, expected", [
    ({"t": 6}, [4, 2], []), ({"t": 6}, [5, 1], ["overload"]), ({"t": 6}, [6, 0], ["overload"]),
    ({"t": 1}, [1, 0, 0], ["incurable"]), ({"t": 6}, [4, 0], []), ({"t": 7}, [6, 0], ["overload"]), ({}, [5, 0], []),
    ({"t": 3}, [5, 0], [])])
def test_groups_of_unknown_owners_are_judged_on_what_is_known(topics, counts, expected):
    """Loads are; owners, moves and the topics that are not shown are not."""
    rows = rank([counted(topics, counts, name="g", lag={name: [9000] * count for name, count in topics.items()}),
                 lagging(name="h")])
    mine = [row for row in rows if row["group_id"] == "g"]
    assert kinds(mine) == expected and [row for row in rows if row["group_id"] == "h"][0]["need"] == "idle"
    if expected == ["overload"]:
        assert ": moves unknown; " in mine[0]["remedy"] and mine[0]["affected"] == counts[0] - -(-topics["t"] // 2)
    assert kinds(rank(counted(topics, counts, state="Assigning"))) == ["rebalancing"]


def test_moments_are_kept_apart():
    """Two moments of one group are ranked as two, and each row says which it is."""
    rows = rank([lagging(name="g", moment=2), lagging(name="g", moment=1), lagging(name="g", time="2026-11-20")])
    assert [(row["rank"], row["time"], row["moment"]) for row in rows[::3]] == [
        (1, None, 1), (2, None, 2), (3, "2026-11-20", None)]


def fixed(name, owner):
    """A strategy that always gives this answer."""
    return Strategy(name, lambda group: np.array(owner))


def test_twice_the_least_lag_is_no_cure():
    group = Group({"t": 4, "u": 1}, dict.fromkeys("abcd", ["t", "u"]), lag={"t": [25_000] * 4, "u": [0]},
                  owned={"a": [("t", n) for n in range(4)], "d": [("u", 0)]})
    ways = [fixed("twice", [0, 0, 1, 2, 3]), fixed("best", [0, 3, 1, 2, 3])]
    lag = {row["need"]: row for row in rank(group, ways)}["lag"]
    assert lag["strategy"] == "best" and "100,000 records behind, 25,000 under the best compared" in lag["reason"]


def test_a_cure_without_idle_members_goes_before_one_with_fewer_moves():
    group = Group({"t": 4}, dict.fromkeys("ab", ["t"]), owned={"a": [("t", 0), ("t", 1), ("t", 2)]})
    idle, split = fixed("idle", [0, 0, 0, 0]), fixed("split", [0, 0, 1, 1])
    assert rank(group, [idle, split])[0]["strategy"] != "idle"
    batch, strategies = batch_of_groups([group]), {one.name: one for one in (idle, split)}
    ways = {name: outcome(batch.columns, one.function(group)) for name, one in strategies.items()}
    current = current_outcome(batch.columns)
    fails = {0: "its next rebalance fails: so another assignor is needed"}
    found = {NEEDS[need.kind]: need.remedy for need in needs(batch, current, ways, strategies, fails=fails)}
    assert found["no-owner"].strategy == found["failing"].strategy == "split"
    del ways["split"]
    found = {NEEDS[need.kind]: need.remedy for need in needs(batch, current, ways, strategies, fails=fails)}
    assert "0 moves, 1 placed, leaves 1 member idle that could take some; " in found["no-owner"].words


def test_a_strategy_of_the_broker_is_no_remedy():
    server = Strategy("server", lambda columns: assign(lagging(), "fair").owner, protocol="broker", many=True)
    rows = rank(lagging(), [server])
    assert kinds(rows) == ["idle", "overload", "lag"] and "server" not in {row["strategy"] for row in rows}


def test_members_that_another_strategy_would_employ_are_not_superfluous():
    """Range gives four topics of one partition to one member; that does not make the others superfluous."""
    topics = ["t0", "t1", "t2", "t3"]
    owned = {"a": [(topic, 0) for topic in topics]}
    group = Group(dict.fromkeys(topics, 1), dict.fromkeys("abcd", topics), owned=owned)
    assert kinds(rank(group, ["range"])) == kinds(rank(group)) == ["idle", "overload"]


def test_a_strategy_that_does_less_work_is_no_remedy():
    """Leaving partitions without an owner lowers loads and lags."""
    lazy = Strategy("lazy", lambda columns: np.full(columns.size, -1), many=True)
    assert rank(lagging(), [lazy]) == [row for row in rank(lagging(), [lazy]) if row["strategy"] is None]
    assert rank(lagging(), [lazy, *STRATEGIES]) == rank(lagging(), STRATEGIES)


def test_a_strategy_without_an_answer_elsewhere_still_does_less_work():
    """That it has none for one group must not make the little it assigns in another attainable."""
    def lazy(group):
        if not group.topics:
            raise StrategyError("a group must have a topic")
        return np.full(group.columns.size, -1)
    fleet = [lagging(), Group({}, {"a": []}, name="empty")]
    rows = rank(fleet, [Strategy("lazy", lazy), *STRATEGIES], on_failure=lambda *one: None)
    assert rows == rank(fleet, STRATEGIES)


# --- what may be given ---------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(codec="utf-16", categories=["L", "N", "P", "S", "Z", "C"]), max_size=8)


@given(NAMES, NAMES, NAMES, NAMES)
def test_foreign_names_are_intact(name, cluster, topic, member):
    group = Group({topic: 4}, {member: [topic], member + "2": [topic]}, name=name, cluster=cluster, time="2026-01-31",
                  owned={member: [(topic, n) for n in range(4)]})
    for row in rank(group):
        assert (row["group_id"], row["cluster"], row["time"]) == (name, cluster or None, "2026-01-31")
        assert f"{row['reason']}{row['remedy']}".isprintable()


def test_a_label_is_shown_safely():
    label = "\x1b[2J"
    [row] = rank(behind(), [Strategy(label, lambda columns: assign(behind(), "lag").owner, many=True)])
    assert row["strategy"] == label and told(row).startswith(r"\x1b[2J (if its clients can load it): ")


def test_joins_are_those_of_the_caller():
    both = ["clicks", "views"]
    split = Group({"clicks": 2, "views": 2}, {"a": both, "b": both}, owned={
        "a": [("clicks", 0), ("views", 1)], "b": [("clicks", 1), ("views", 0)]})
    assert rank(split) == [] and kinds(rank(split, joins=[both])) == ["split-join"]
    assert rank(split, joins="clicks+views") == rank(split, joins=[both])
    with pytest.raises(ValueError, match="did you mean 'clicks'"):
        rank(split, joins=[["click", "views"]])
    with pytest.raises(ValueError, match="must be lists of topics"):
        rank(split, joins=["clicks"])
    with pytest.raises(ValueError, match=r"a topic must be in one join \(got 'clicks' in two\)"):
        rank(split, joins=[both, ["clicks"]])


JOIN_STRATEGY = "stream-join-sticky:joins=clicks+views"


def crossed(name, *topics):
    """A group in which no member can consume the same numbers of clicks and views without the strategy for joins."""
    subscribed = {"a": ["clicks", "views"], "b": ["clicks", "views", *topics], "c": ["clicks", "views", *topics]}
    group = Group({"clicks": 4, "views": 4, **dict.fromkeys(topics, 2)}, subscribed, name=name)
    return group.replace(owned=dict(assign(group, "roundrobin")))


def test_with_joins_the_strategy_for_them_is_compared():
    joins, group = [["clicks", "views"]], crossed("shop", "visits")
    [usual] = rank(group, usual_strategies(), joins)
    [row] = rank(group, joins=joins)
    assert usual["need"] == row["need"] == "split-join" and usual["strategy"] == row["strategy"] == "range"
    moved = assign(group, JOIN_STRATEGY).summary()["switch"]
    assert row["remedy"].endswith(f"; best possible: {moved} moves ({JOIN_STRATEGY})")
    assert JOIN_STRATEGY not in usual["remedy"]
    for name in ("range", JOIN_STRATEGY):
        assert rank(group.replace(owned=dict(assign(group, name))), joins=joins) == []


def test_the_strategy_for_joins_is_asked_about_groups_with_these_topics_only():
    joins, other = [["clicks", "views"]], lagging().replace(name="other")
    fleet = [other, crossed("a"), other.replace(name="more"), Group({"views": 1}, {}, name="half")]
    strategies = [resolve("range"), *strategies_for_joins(joins)]
    judged = judge(batch_of_groups(fleet), strategies, joins)
    assert judged.answers[JOIN_STRATEGY].places == [1, 3]
    assert judged.outcomes[JOIN_STRATEGY].answered.tolist() == [False, True, False, True]
    assert judge(batch_of_groups(fleet[:1]), strategies, joins).answers[JOIN_STRATEGY].places == []
    assert judge(batch_of_groups([]), strategies, joins).needs == []
    assert judge(batch_of_groups(fleet), strategies[1:], joins).answers[JOIN_STRATEGY].places is None
    assert rank(fleet[:1], joins=[["t"]]) == rank(fleet[:1])


@pytest.mark.parametrize("topic", ["a,b", "a|b", "a+b", " a", "a,joins=c"])
def test_topics_that_no_broker_allows_are_joined_by_other_strategies(topic):
    assert strategies_for_joins([[topic, "z"]]) == []
    group = Group({topic: 1, "z": 1}, {name: [topic, "z"] for name in "mn"}, owned={"m": [(topic, 0)], "n": [("z", 0)]})
    assert kinds(rank(group, joins=[[topic, "z"]])) == ["split-join"]


def test_arguments_that_cannot_be_used_are_named():
    for wrong in ([{"topics": {"t": 1}}], ["group"], [None], {"topics": 3}, 5, "group"):
        with pytest.raises(GroupError, match=r"groups? must be an? (Group|Iterable).* \(got "):
            rank(wrong)
    with pytest.raises(StrategyError, match="must have a strategy"):
        rank(lagging(), [])
    with pytest.raises(StrategyError, match="did you mean 'range'"):
        rank(lagging(), ["rnage"])
    assert rank(lagging(), "range") == rank(lagging(), ["range"]) == rank([lagging()], ["range", "RangeAssignor"])


def test_a_group_without_a_name_has_that_of_its_key():
    rows = rank({"alpha": lagging(), "beta": lagging(), 3: lagging(), "other": lagging(name="gamma")})
    assert {row["group_id"] for row in rows} == {"alpha", "beta", "3", "gamma"}
    assert rank({"alpha": lagging()}) == rank(lagging(name="alpha"))


def test_a_wrong_answer_is_no_crash():
    """It is told once, with the number of the group if that has no name; share groups count, too."""
    def unsub(group):
        return np.zeros(group.columns.size, int)
    fleet = [lagging(type="share"), lagging(), Group({"t": 1, "u": 1}, {"a": ["t"], "b": ["u"]})]
    words = r"^group \(number 3\): strategy 'unsub': an owner must subscribe to the topic \(got "
    with pytest.raises(StrategyError, match=words):
        rank(fleet, [unsub])


@pytest.mark.parametrize("error", [KeyError("four"), ValueError("four"), UnicodeError("four")])
def test_a_crash_names_its_line(error):
    def crashes(group):
        raise error
    words = f"strategy 'crashes' must not raise (got {type(error).__name__}: {error} in {__file__}, line "
    with pytest.raises(StrategyError) as caught:
        rank(lagging(), [crashes])
    assert str(caught.value) == f"group (number 1): {words}{crashes.__code__.co_firstlineno + 1})"


def test_an_error_that_does_not_name_the_strategy_is_completed():
    def asks_another(group):
        return assign(group, "nosuch")
    with pytest.raises(StrategyError, match=r"^group \(number 1\): strategy 'asks_another': .*'nosuch'"):
        rank(lagging(), [asks_another])


def test_share_groups_are_left_out():
    assert rank([lagging(name="s", type="share"), lagging(name="g")]) == rank(lagging(name="g"))


def test_a_group_that_a_strategy_refuses(caplog):
    """It is ranked by the other strategies, and the caller hears of it."""
    def picky(group):
        if group.name == "refused":
            raise StrategyError("not this group")
        return group.previous
    picky, fine, refused = Strategy("picky", picky), lagging(name="fine"), lagging(name="refused")
    with pytest.raises(StrategyError, match="group refused: .*not this group"):
        rank([fine, refused], ["range", picky])
    failed = []
    rows = rank([refused, fine], ["range", picky], on_failure=lambda *one: failed.append(one))
    for group, strategies in ((refused, ["range"]), (fine, ["range", picky])):
        assert [row | {"rank": 0} for row in rows if row["group_id"] == group.name] == [
            row | {"rank": 0} for row in rank(group, strategies)]
    [(group, reason)] = failed
    assert group is refused and "not this group" in reason
    assert not caplog.records


READS_CLAIMS = ("sticky", "cooperative-sticky", "kip54")


@given(st.data())
def test_claims_in_user_data_count_for_each_strategy_by_its_rule(data):
    """Figures and owners are those of `assign`, which takes the groups one by one."""
    fleet = [sent for rule in data.draw(st.lists(st.sampled_from(["sticky", "cooperative"]), max_size=4))
             for sent, _, _ in [data.draw(sending_groups(rule))]]
    batch = batch_of_groups(fleet)
    strategies = [resolve(name) for name in ("range", *READS_CLAIMS)]
    judged = judge(batch, strategies)
    assert not judged.failures
    for strategy in strategies:
        alone = [assign(group, strategy) for group in fleet]
        outcome, given = judged.outcomes[strategy.label], judged.answers[strategy.label]
        for figure in ("kept", "moved", "placed", "withheld", "max_load"):
            wanted = [one.summary()[figure] for one in alone]
            assert [None if value < 0 else value for value in outcome.figures[figure].tolist()] == wanted, figure
        for column, name in ((given.owner, "owner"), (given.target, "target"), (outcome.owner, "target")):
            ends = zip(batch.columns.member_offsets, np.split(column, batch.columns.group_offsets[1:-1]))
            parts = [np.where(part >= 0, part - first, -1).tolist() for first, part in ends]
            assert parts[:len(fleet)] == [getattr(one, name).tolist() for one in alone]


def test_a_remedy_counts_the_moves_from_what_the_bytes_say():
    """The broker shows that all partitions are with `a`; by its own word `b` had half of them."""
    sends = [Member(name, ["t"], owned=owned, user_data=encode_sticky(Claims(said)))
             for name, owned, said in (("a", [("t", n) for n in range(4)], [("t", 0), ("t", 1)]),
                                       ("b", [], [("t", 2), ("t", 3)]))]
    sent = Group({"t": 4}, sends, name="g")
    idle, _ = rank(sent, ["sticky"])
    assert idle["need"] == "idle" and "(0 if the group runs it already)" in idle["remedy"]
    plain = sent.replace(members=[Member(member.id, member.topics, owned=member.owned) for member in sends])
    assert ": 2 moves" in rank(plain, ["sticky"])[0]["remedy"]


def test_user_data_that_cannot_be_decoded_costs_no_group():
    members = [Member("a", ["t"], owned=[("t", 0), ("t", 1)], user_data=b"x"), Member("b", ["t"])]
    lost = Group({"t": 2}, members, strategy="sticky")
    fine = lagging(name="fine")
    rows = rank([fine, lost], ["sticky"])
    assert {row["group_id"] for row in rows} == {"", "fine"}
    assert "0 moves, 2 placed" in next(row["remedy"] for row in rows if row["group_id"] == "")


def test_partitions_that_are_not_in_the_input_may_have_owners():
    """Of a grepped output the partitions in between are unknown; of a whole one all owners are known."""
    text = (SAMPLES / "kafka-3.9.2" / "orders-billing.describe.txt").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    cut = rank(read_groups("".join(line for line in lines if "GROUP" in line or "billing-2" in line)))
    assert "no-owner" not in kinds(cut)
    assert "no-owner" not in kinds(rank(read_groups(text)))


def test_partitions_that_the_input_shows_without_an_owner_have_none():
    text = ("GROUP  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST  CLIENT-ID\n"
            "g      t      0          1               2               1    c-1          /h    c\n"
            "g      t      1          1               2               1    -            -     -\n")
    group, = read_groups(text).values()
    assert "partitions: highest number seen + 1" in group.inferred
    [row] = rank(group)
    assert row["reason"] == "t-1 has no owner; 1 record waits" and row["affected"] == 1


@pytest.mark.parametrize("many", [True, False])
def test_what_depends_on_no_strategy_is_found_if_all_raise(many, caplog):
    """A dead group, a group in a rebalance and a hot partition need no strategy to be seen."""
    def buggy(one):
        raise RuntimeError("buggy")
    hot = Group({"t": 2}, dict.fromkeys("ab", ["t"]), lag={"t": [9_000, 0]}, name="hot",
                owned={"a": [("t", 0)], "b": [("t", 1)]})
    fleet, failed = [*read_groups(SAMPLES / "kafka-3.9.2").values(), hot, lagging(name="lagging"),
                     lagging(name="moving", state="Assigning")], []
    failing = Strategy("buggy", buggy, many=many)
    rows = rank(fleet, [failing], on_failure=lambda *one: failed.append(one))
    assert len(failed) == len(fleet)
    found = {row["group_id"]: row["need"] for row in rows}
    expected = {"nightly-batch": "abandoned", "hot": "incurable", "moving": "rebalancing"}
    assert expected.items() <= found.items()
    assert ["is probably slow" in row["reason"] for row in rows if row["group_id"] == "lagging"] == [True]
    assert set(kinds(rows)) == {"abandoned", "incurable", "lag", "rebalancing"}
    assert {row["strategy"] for row in rows} == {None}
    for chosen in ([failing, "range"], ["range", failing]):
        assert rank(fleet, chosen, on_failure=lambda *one: None) == rank(fleet, ["range"])


@pytest.mark.parametrize("form", ["json", "csv"])
def test_the_program_ranks_in_spite_of_a_strategy_that_raises(form, tmp_path, monkeypatch):
    (tmp_path / "mystrat.py").write_text("def buggy(group):\n    raise RuntimeError('buggy')\n")
    monkeypatch.syspath_prepend(tmp_path)
    line = ["rank", str(SAMPLES / "kafka-3.9.2"), "-s", "mystrat:buggy", "--format", form]
    done = CliRunner().invoke(program, line)
    assert done.exit_code == 3 and "mystrat.py, line 2" in done.stderr
    assert "nightly-batch" in done.stdout and "no active members while" in done.stdout


def test_a_strategy_that_raises_is_logged_and_costs_only_the_group(caplog):
    def fussy(columns):
        if (columns.partitions == 3).any():
            raise RuntimeError("three")
        return columns.previous
    three, fine, failed = Group({"t": 3}, {"a": ["t"]}, name="three"), lagging(name="fine"), []
    chosen = ["range", Strategy("fussy", fussy, many=True)]
    rows = rank([three, fine], chosen, on_failure=lambda *one: failed.append(one))
    assert rows == rank([fine, three], "range")
    [(group, reason)] = failed
    line = fussy.__code__.co_firstlineno + 2
    assert group is three
    assert reason == f"strategy 'fussy' must not raise (got RuntimeError: three in {__file__}, line {line})"
    assert [record.levelname for record in caplog.records] == ["ERROR"] and "Traceback" in caplog.text


def test_a_registered_strategy_that_raises_is_named_and_the_others_judge(registered):
    @strategy("broken")
    def broken(group):
        raise RuntimeError("broken")
    with pytest.warns(UserWarning, match=r"^group lagging: strategy 'broken' must not raise \(got RuntimeError"):
        rows = rank([lagging(name="lagging")])
    assert rows and rows == rank([lagging(name="lagging")], usual_strategies()[:-1])
    with pytest.raises(StrategyError, match="group lagging: strategy 'broken' must not raise"):
        rank([lagging(name="lagging")], "broken")


@given(st.lists(small, max_size=4))
def test_groups_that_are_asked_one_by_one_get_the_same_answers(fleet):
    def one_by_one(group):
        return assign(group, "range").owner
    one_by_one.__module__ = "kafka_assign.assignors.baselines"       # which clients can run it
    alone = Strategy("range", one_by_one, kafka="RangeAssignor")
    fleet = [group.replace(name=f"g{at}", lag=None) for at, group in enumerate(fleet)]
    assert rank(fleet, [alone]) == rank(fleet, ["range"])


def test_it_needs_numpy_only():
    code = ("import json, sys; from kafka_assign import rank, Group; "
            "rank(Group({'t': 2}, {'a': ['t'], 'b': ['t']}, owned={'a': [('t', 0), ('t', 1)]})); "
            "print(json.dumps(list(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {name.split(".")[0] for name in json.loads(done.stdout)} & set(HEAVY)


# --- the strategy that a group runs --------------------------------------------------------------------------------

@given(small, st.sampled_from(["range", "roundrobin"]))
def test_the_strategy_in_use_is_compared_for_its_group_only(group, name):
    """The other groups are judged as if it had not been asked; its own as if it had been named."""
    fleet = [group.replace(name="runs", strategy=name), group.replace(name="other")]
    rows = rank(fleet, ["fair", "lag"], everything=True)
    alone = {"runs": ["fair", "lag", name], "other": ["fair", "lag"]}
    for group in fleet:
        expected = rank(group, alone[group.name], everything=True)
        assert [row | {"rank": 0} for row in rows if row["group_id"] == group.name] == [
            row | {"rank": 0} for row in expected]


def test_a_rebalance_is_enough_if_a_sticky_strategy_in_use_cures():
    """It goes before a strategy that moves less, as nothing has to be configured."""
    owned = {"a": [("t", 0), ("t", 1), ("t", 2)], "b": [("t", 3), ("t", 4), ("t", 5)]}
    group = Group({"t": 6}, dict.fromkeys("abc", ["t"]), owned=owned, name="g")
    least = fixed("least", [0, 0, 2, 1, 1, 2])
    for chosen in ([least], [least, "kafka-sticky"]):
        row = rank(group.replace(strategy="sticky"), chosen)[0]
        assert row["strategy"] == "kafka-sticky" and row["remedy"] == (
            "kafka-sticky (runs now): 2 moves; a rebalance may be enough: restart a dynamic member, "
            "or call enforceRebalance() on the leader")
    [consumer] = rank(group.replace(strategy="sticky", type="consumer"), [least])
    assert consumer["remedy"] == BY_THE_BROKER


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_a_strategy_without_memory_never_drifts(name):
    """Its answer changes only with its input, and then the group rebalances: other owners were read wrongly."""
    owned = {"a": [("t", 0), ("t", 1), ("t", 2)], "b": [("t", 3), ("t", 4), ("t", 5)]}
    group = Group({"t": 6}, dict.fromkeys("abc", ["t"]), owned=owned, strategy=name)
    for row in rank(group):
        assert row["strategy"] is None and row["remedy"].startswith("check the subscriptions (a misspelled topic?)")
        assert row["reason"].endswith(f"; {name} cannot have produced this assignment: t on a, b, c")
    assert rank(group.replace(strategy="")) and rank(assign(group, name).group.replace(owned=assign(group, name))) == []


def test_a_rebalance_is_not_enough_if_it_leaves_members_idle():
    topics = ["t0", "t1", "t2", "t3"]
    group = Group(dict.fromkeys(topics, 1), dict.fromkeys("abcd", topics), strategy="range",
                  owned={"a": [(topic, 0) for topic in topics[1:]]})
    assert [(row["need"], row["strategy"]) for row in rank(group, ["fair"])] == [
        ("no-owner", None), ("idle", "kafka-cooperative-sticky"), ("overload", "kafka-cooperative-sticky")]


@pytest.mark.parametrize("name, kind", [("", ""), ("com.example.OwnAssignor", ""), ("own", "consumer"),
                                        ("fair", ""), ("", "consumer")])
def test_a_group_that_runs_what_is_not_known_is_judged_by_the_others(name, kind):
    group = lagging(strategy=name, type=kind)
    judged = judge(batch_of_groups([group, lagging()]), [resolve("lag")])
    assert judged.running == [None, None] and list(judged.outcomes) == ["current", "lag"]
    same, others = rank(group, ["lag"]), rank(lagging(type=kind), ["lag"])
    assert [row["reason"] for row in same] == [row["reason"] for row in others]
    foreign = name in ("com.example.OwnAssignor", "fair")
    assert (same == others) != foreign
    for row in same * foreign:                  # nothing of Java's, since no Java client has an assignor of this name
        assert row["strategy"] is None and told(row).startswith(f"no client known here has an assignor '{name}': ")


# --- what the input does not show ----------------------------------------------------------------------------------

IF_ALIKE = ", if all members subscribe to the same topics"


@pytest.mark.parametrize("kind", ["subscriptions-assumed", "subscriptions-unknown"])
@pytest.mark.parametrize("count, expected", [(3, ["idle"]), (1, [])])
def test_idle_members_of_unknown_subscriptions_may_be_right(kind, count, expected):
    """They are a need if a member has two partitions or more, never members too many, and the reason says "if"."""
    group = Group({"t": count, "u": 1}, {"a": ["t"], "b": ["u"], "c": []}, notes=[Note(kind, None, ("why",))],
                  owned={"a": [("t", n) for n in range(count)], "b": [("u", 0)]})
    rows = rank(group)
    assert kinds(rows) == expected and all(row["reason"].endswith(IF_ALIKE) for row in rows)
    assert all("check what the idle members subscribe to" in row["remedy"] for row in rows)
    assert kinds(rank(group.replace(notes=()))) == ["incurable"]


def test_only_lag_that_depends_on_inferred_subscriptions_says_if():
    group = Group({"t": 4, "u": 2}, dict.fromkeys("ab", ["t", "u"]), lag={"t": [9_000] * 4, "u": [0, 0]},
                  owned={"a": [("t", n) for n in range(4)], "b": [("u", 0), ("u", 1)]})
    for note, words in (("subscriptions-certain", ""), ("subscriptions-agree", IF_ALIKE)):
        found = {row["need"]: row["reason"] for row in rank(group.replace(notes=[Note(note, None, ("why",))]))}
        assert found["lag"].endswith("18,000 under the best compared strategy" + words)
        assert found["skew"].endswith("is on 1 of the 2 members that could share it" + words)
        assert "if " not in found.get("overload", "")


@pytest.mark.parametrize("lag, said", [([20_000, 21_000, 19_000], True), ([9_000, 9_000, 9_000], False),
                                       ([60_000, 1_000, 1_000], False), ([60_000], False)])
def test_a_large_lag_that_is_even_is_no_need_and_is_said(lag, said, tmp_path):
    """Below the table, and on standard error if the rows are for a program; one member has nothing to be even with."""
    group = Group({"t": len(lag)}, dict.fromkeys("abc"[:len(lag)], ["t"]), name="g", lag={"t": lag},
                  owned={name: [("t", n)] for n, name in enumerate("abc"[:len(lag)])})
    (tmp_path / "g.json").write_text(group.to_json())
    line = f"g: {sum(lag):,} records of lag, even over its members: assignment is not the cause"
    table, rows = (CliRunner().invoke(program, ["rank", str(tmp_path / "g.json"), "--format", form])
                   for form in ("table", "json"))
    assert (line in table.stdout, line in rows.stderr, line in rows.stdout) == (said, said, False)


def test_lag_is_not_even_beside_an_idle_member_that_could_take_some():
    group = Group({"t": 4}, dict.fromkeys("abcd", ["t"]), name="g", lag={"t": [7_000, 15_000, 15_000, 7_000]},
                  owned={"a": [("t", 0), ("t", 3)], "b": [("t", 1)], "c": [("t", 2)]})
    rows = rank(group)
    assert "idle" in kinds(rows) and unexplained_lag([group], rows) == []
    [words] = unexplained_lag([group], [])
    assert words == "g: 44,000 records of lag, even over its members: assignment is not the cause"


def test_lag_is_judged_by_what_the_clients_can_run():
    """`lag` could halve it, but Java clients have nothing that does; for unknown clients the best possible is said."""
    group = behind()
    for client_id, needs_of in (("consumer-g-1", []), ("rdkafka", []), ("", ["lag"]), ("sarama", ["lag"])):
        members = [replace(one, client_id=client_id) for one in group.details]
        assert kinds(rank(group.replace(members=members))) == needs_of
