"""The options of `lag`: tiny groups against every assignment there is; caps, gains and counts against plain loops."""

import json
import re
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from outputs import texts
from test_reference import answered, cases

from kafka_assign import Group, GroupError, Member, StrategyError, assign, assign_many
from kafka_assign.assignors import lag_search
from kafka_assign.assignors.lag import assign_by_rounds, lag_bound
from kafka_assign.assignors.lag_rule import lag_by_rule
from kafka_assign.arrays.columns import side_by_side
from kafka_assign.assignors.conformance import check_strategy, random_groups
from kafka_assign.text.words import count_of
from kafka_assign.protocol.wire import Claims, encode_sticky

PAGE = Path(__file__).resolve().parent.parent / "nbs/06_assignors/08_lag.ipynb"
SEARCHED = {  # options -> what they say of counts: the scope, and the skew allowed
    "scope=group": ("group", 1),
    "scope=group,max_skew=2": ("group", 2),
    "max_skew=2": ("topic", 2),
}


def tiny_group(random):
    """At most seven partitions in one to three topics, at most three members, and lags of several kinds."""
    sizes = random.integers(1, 5, random.integers(1, 4))
    while sizes.sum() > 7:
        sizes = random.integers(1, 5, random.integers(1, 4))
    topics = {f"t{i}": int(size) for i, size in enumerate(sizes)}
    members = {f"m{i}": [t for t in topics if random.random() < 0.75] for i in range(random.integers(1, 4))}
    most, skewed = random.choice([10, 1000]), random.random() < 0.2
    lag = {
        topic: (random.pareto(1, size) * most).astype(np.int64) if skewed else random.integers(-1, most, size)
        for topic, size in topics.items()
    }
    partitions = [(topic, number) for topic, size in topics.items() for number in range(size)]
    owned = {member: [] for member in members}
    for partition in partitions:
        if random.random() < 0.7:
            owned[random.choice(list(members))].append(partition)
    return Group(topics, members, lag=lag, owned=owned)


@cache
def tiny_groups(count=2000):
    """The first ones are the same, however many are asked for."""
    random = np.random.default_rng(5337)
    return [tiny_group(random) for _ in range(count)]


def known(group):
    return np.maximum(group.lag, 0)


def largest(group, owner):
    """The largest lag of a member, with Python's integers."""
    total = [0] * max(1, len(group.members))
    for member, lag in zip(owner.tolist(), known(group).tolist()):
        if member >= 0:
            total[member] += lag
    return max(total)


def beyond(group, owner, scope, max_skew):
    """The partitions whose owner has too many more than another subscriber of the topic, by plain loops."""
    columns, found = group.columns, []
    for topic in range(columns.topic_count):
        unit = range(columns.topic_count) if scope == "group" else [topic]
        members = [owner[place] for one in unit for place in columns.places(one)]
        for place in columns.places(topic):
            fewest = min((members.count(other) for other in columns.subscribers_of(topic)), default=0)
            if columns.subscribers_of(topic) and members.count(owner[place]) > fewest + max_skew:
                found.append(place)
    return found


def every_assignment(group):
    """All owner columns in which each partition with subscribers has one, as rows of a table."""
    choices = [group.columns.subscribers_of(topic) or [-1] for topic in group.columns.topic_of]
    return np.array(list(product(*choices)), int).reshape(-1, len(choices))


def optimum(group, scope, max_skew):
    """The least possible largest lag of a member among all assignments whose counts are allowed."""
    owners, columns = every_assignment(group), group.columns
    owned = owners[:, :, None] == np.arange(columns.member_count)
    allowed = np.ones(len(owners), bool)
    for topic in range(columns.topic_count):
        of_topic, members = columns.topic_of == topic, columns.subscribers_of(topic)
        count = owned.sum(1) if scope == "group" else owned[:, of_topic].sum(1)
        for member in members:
            owns_some = owned[:, of_topic, member].any(1)
            for other in members:
                allowed &= ~owns_some | (count[:, member] - count[:, other] <= max_skew)
    assert allowed.any()
    return int((owned * known(group)[None, :, None]).sum(1)[allowed].max(1, initial=0).min())


@cache
def measured(options):
    """(bound, optimum, result) of each tiny group."""
    scope, max_skew = SEARCHED[options]
    return [
        (lag_bound(group), optimum(group, scope, max_skew), largest(group, assign(group, f"lag:{options}").owner))
        for group in tiny_groups()
    ]


@pytest.mark.parametrize("options", SEARCHED)
def test_no_more_than_bound_optimum_result(options):
    assert len(measured(options)) == 2000
    assert all(bound <= best <= result for bound, best, result in measured(options))


@pytest.mark.parametrize("options", SEARCHED)
def test_the_page_says_how_good_it_is(options):
    ratios = [result / best if best else 1.0 for _, best, result in measured(options) if best or not result]
    text = "".join("".join(cell["source"]) for cell in json.loads(PAGE.read_text(encoding="utf-8"))["cells"])
    said = re.search(rf"^\| `{re.escape(options)}` \| ([\d.]+) \| ([\d.]+) \|$", text, re.M)
    assert [f"{median(ratios):.2f}", f"{max(ratios):.2f}"] == [said[1], said[2]]
    assert len(ratios) == 2000


def test_the_bound_is_often_reached():
    """A bound of 0 would pass the other tests."""
    tight = [bound == best for bound, best, _ in measured("scope=group,max_skew=2")]
    assert sum(tight) > 0.7 * len(tight)


def test_the_bound_is_rounded_up():
    """Of five partitions with a lag of 1, one of two members gets three."""
    assert lag_bound(Group({"t": 5}, {"a": ["t"], "b": ["t"]}, lag={"t": [1] * 5})) == 3


@pytest.mark.parametrize("options", SEARCHED)
def test_counts_are_within_the_skew(options):
    scope, max_skew = SEARCHED[options]
    for group in tiny_groups(300):
        for more in ("", ",min_gain=5"):
            owner = assign(group, f"lag:{options}{more}").owner
            assert not beyond(group, owner.tolist(), scope, max_skew)


def at_most(monkeypatch, exchanges):
    """Let a search make at most this many exchanges in a unit."""
    monkeypatch.setattr(lag_search, "MOST_EXCHANGES", exchanges)
    monkeypatch.setattr(lag_search, "MOST_PER_MEMBER", 0)


@pytest.mark.parametrize("options", ["scope=group", "scope=group,max_skew=3", "scope=group,min_gain=3"])
def test_the_search_makes_nothing_worse(monkeypatch, options):
    found = [largest(group, assign(group, f"lag:{options}").owner) for group in tiny_groups(200)]
    at_most(monkeypatch, 0)
    start = [largest(group, assign(group, f"lag:{options}").owner) for group in tiny_groups(200)]
    assert all(map(int.__le__, found, start)) and found != start


def test_within_a_topic_it_is_never_worse_than_the_rule():
    alone = [group for group in tiny_groups() if len(group.topic_counts) == 1]
    for group in alone:
        by_rule = largest(group, lag_by_rule(group.columns))
        assert largest(group, assign(group, "lag:max_skew=2").owner) <= by_rule
    assert len(alone) > 300


def test_every_member_keeps_one():
    for group in tiny_groups(300):
        rule = lag_search.assign_and_search(group.columns, known(group))
        for max_skew in (2, 9):
            owner = assign(group, "lag", max_skew=max_skew).owner
            for topic in range(group.columns.topic_count):
                places = group.columns.places(topic)
                assert set(rule[places]) == set(owner[places])


# --- options off -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", ["", ":scope=topic", ":max_skew=1,min_gain=0", ":max_moves=none", ":weight=none"], ids=lambda o: o or "-"
)
def test_options_off_change_nothing(options):
    groups = {case["id"]: Group.from_json(case) for case in cases("lag").values()}
    together = assign_many(groups, f"lag{options}")
    assert {name: answered(assignment) for name, assignment in together.items()} == {
        name: case["expected"] for name, case in cases("lag").items()
    }


def test_the_general_rule_is_the_rule_topic_by_topic():
    """Without a search, `Unit` and `assign_waiting` are KAFKA-5337."""
    for group in [*tiny_groups(300), *random_groups(8)]:
        columns, weight = group.columns, np.zeros(group.columns.size, np.int64)
        weight = weight if group.lag is None else known(group)
        owner = np.full(columns.size, -1)
        for unit in lag_search.units_of(columns, "topic", weight, owner):
            lag_search.assign_waiting(unit)
            owner[unit.places] = unit.members[unit.owner]
        assert owner.tolist() == assign_by_rounds(columns).tolist()


# --- stickiness --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["topic", "group"])
@pytest.mark.parametrize("max_moves", [0, 1, 2, 3])
def test_moves_are_capped(scope, max_moves):
    for group in tiny_groups(200):
        found = assign(group, "lag", scope=scope, max_moves=max_moves)
        assert found.moved.sum() <= max_moves
        assert ((found.owner >= 0) == (group.columns.subscriber_counts > 0)[group.columns.topic_of]).all()


def test_with_enough_moves_the_cap_changes_nothing():
    for group in tiny_groups(200):
        free = assign(group, "lag", max_moves=7)
        assert (free.owner == assign(group, "lag", max_moves=100).owner).all()
        assert not beyond(group, free.owner.tolist(), "topic", 1)


def effect(unit, giver, exchange):
    """By how much an exchange lowers the larger total of its two members, and the moves that it adds."""
    if not exchange:
        return 0, 0
    members, owner = [giver, exchange[0][1]], unit.owner.copy()
    for place, member in exchange:
        owner[place] = member
    after = [int(unit.weight[owner == member].sum()) for member in members]
    added = int(((unit.previous >= 0) & (owner != unit.previous)).sum()) - unit.moves
    return int(unit.total[members].max()) - max(after), added


@pytest.mark.parametrize("scope, min_gain", [*product(["topic", "group"], [1, 3, 50])])
def test_no_exchange_gains_less(monkeypatch, scope, min_gain):
    """Each exchange is looked at from outside: the larger total before and after, and the moves that it adds."""
    search, seen = lag_search.best_exchange, []

    def watched(unit, giver, *arguments):
        exchange = search(unit, giver, *arguments)
        if exchange:
            seen.append(effect(unit, giver, exchange))
        return exchange

    monkeypatch.setattr(lag_search, "best_exchange", watched)
    for group in tiny_groups(200):
        assign(group, "lag", scope=scope, min_gain=min_gain)
    assert seen and all(gain >= max(1, min_gain * added) for gain, added in seen)
    assert any(added > 0 for _, added in seen) and {added for _, added in seen} <= {-2, -1, 0, 1, 2}


def test_a_high_gain_moves_only_what_counts_ask_for():
    """Within a topic, no assignment with counts that are allowed moves fewer: every one is tried."""
    for group in tiny_groups(600):
        if len(group.topic_counts) > 1:
            continue
        previous = group.previous
        moves = [
            int(((previous >= 0) & (owner != previous)).sum())
            for owner in every_assignment(group)
            if not beyond(group, owner.tolist(), "topic", 1)
        ]
        assert assign(group, "lag", min_gain=10**9).moved.sum() == min(moves)


def medium_group(random):
    """Three to five members, two to four topics, six to fourteen partitions: too many to try everything."""
    sizes = random.multinomial(random.integers(6, 15), [1 / 4] * 4)[: random.integers(2, 5)]
    topics = {f"t{i}": int(size) for i, size in enumerate(sizes)}
    members = {f"m{i}": [t for t in topics if random.random() < 0.7] for i in range(random.integers(3, 6))}
    lag = {topic: random.integers(0, 40, size) for topic, size in topics.items()}
    owned = {member: [] for member in members}
    for topic, size in topics.items():
        for number in range(size):
            owned[random.choice(list(members))].append((topic, number))
    return Group(topics, members, lag=lag, owned=owned)


def gains_left(group, owner, scope, max_skew, previous):
    """(gain, moves added) of all moves and swaps of two members of a unit that the limits allow, one by one."""
    columns, lag = group.columns, known(group).tolist()
    unit_of = columns.topic_of.tolist() if scope == "topic" else [0] * columns.size

    def total(of, unit, member):
        return sum(lag[place] for place in range(columns.size) if unit_of[place] == unit and of[place] == member)

    def moves(of):
        return sum(one >= 0 and one != now for one, now in zip(previous, of))

    for place in range(columns.size):
        unit, giver, subscribers = unit_of[place], owner[place], columns.subscribers_of(columns.topic_of[place])
        others = [other for other in range(columns.size) if unit_of[other] == unit and owner[other] in subscribers]
        others = [other for other in others if giver in columns.subscribers_of(columns.topic_of[other])]
        for taker, back in [(one, None) for one in subscribers] + [(owner[other], other) for other in others]:
            if giver < 0 or taker == giver:
                continue
            changed = [*owner]
            changed[place] = taker
            if back is not None:
                changed[back] = giver
            before, after = (max(total(of, unit, giver), total(of, unit, taker)) for of in (owner, changed))
            if after < before and not beyond(group, changed, scope, max_skew):
                yield before - after, moves(changed) - moves(owner)


@pytest.mark.parametrize("scope, max_skew", [*product(["topic", "group"], [1, 2, 3])])
def test_no_exchange_is_better(scope, max_skew):
    """All exchanges that the limits allow are tried one by one. Of equal gains, the fewest moves win."""
    for group in tiny_groups(200):
        owner, previous = np.full(group.columns.size, -1), group.previous
        units = list(lag_search.units_of(group.columns, scope, known(group), previous))
        for unit in units:
            lag_search.assign_waiting(unit)
            lag_search.restore_counts(unit, max_skew, most_moves=7)
            owner[unit.places] = unit.members[unit.owner]
        allowed = [*gains_left(group, owner.tolist(), scope, max_skew, previous.tolist())]
        for min_gain, left in (0, 7), (20, 7), (3, 1), (0, 0):
            best = [(gain, -added) for gain, added in allowed if added <= left and gain >= added * min_gain]
            found = [effect(unit, giver, lag_search.best_exchange(unit, giver, max_skew, min_gain, left))
                     for unit in units for giver in range(len(unit.members))]
            assert max(((gain, -added) for gain, added in found), default=(0, 0)) == max(best, default=(0, 0))


@pytest.mark.parametrize("scope, max_skew", [*product(["topic", "group"], [1, 2, 3])])
def test_nothing_worthwhile_is_left(scope, max_skew):
    """Every answer obeys the limit on counts, and no exchange that it allows would gain anything, or enough."""
    random, searched = np.random.default_rng(19), scope == "group" or max_skew > 1
    for group in [medium_group(random) for _ in range(60)]:
        owner = assign(group, "lag", scope=scope, max_skew=max_skew).owner.tolist()
        assert not beyond(group, owner, scope, max_skew)
        assert not searched or not [*gains_left(group, owner, scope, max_skew, [-1] * len(owner))]
        previous = group.previous.tolist()
        owner = assign(group, "lag", scope=scope, max_skew=max_skew, min_gain=4).owner.tolist()
        assert not beyond(group, owner, scope, max_skew)
        left = gains_left(group, owner, scope, max_skew, previous)
        assert not [gain for gain, added in left if gain >= 4 * added]


def test_partitions_without_previous_owner_move_first():
    """Of the two partitions that b could take, u-0 would even out the lag better, but it would be a move."""
    group = Group({"t": 2, "u": 2, "v": 2}, {"a": ["t", "u"], "b": ["u", "v"]},
                  owned={"a": [("u", 0)], "b": [("v", 0), ("v", 1)]},
                  lag={"t": [1, 1], "u": [60, 100], "v": [10, 10]})
    found = assign(group, "lag", scope="group", min_gain=10**6)
    assert found["a"] == [("t", 0), ("t", 1), ("u", 0)] and found.moved.sum() == 0


def test_balanced_owners_stay():
    owned = {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}
    group = Group({"t": 4}, {"a": ["t"], "b": ["t"]}, owned=owned, lag={"t": [9, 8, 2, 1]})
    swaps = {gain: assign(group, "lag", min_gain=gain).moved.sum() for gain in (1, 3, 4)}
    assert swaps == {1: 2, 3: 2, 4: 0}            # 17 becomes 11, by a swap of 8 for 2: two moves, a gain of 6
    assert assign(group, "lag", max_moves=1).moved.sum() == 0


def test_previous_owners_come_from_user_data():
    data = encode_sticky(Claims([("t", 0), ("t", 1)], generation=3))
    group = Group({"t": 2}, [Member("a", ["t"]), Member("b", ["t"], user_data=data)], lag={"t": [5, 5]})
    assert assign(group, "lag").owner.tolist() == [0, 1]
    kept = assign(group, "lag", max_skew=2, min_gain=6)
    assert kept.owner.tolist() == [1, 1] and kept.kept.sum() == 2
    assert assign_many([group, group], "lag:max_skew=2,min_gain=6")[1].owner.tolist() == [1, 1]


# --- exact numbers, unknown ones, odd ones -------------------------------------------------------------------------


def test_beyond_floats():
    """Totals that differ by one beyond 2**53, where floats would call them equal."""
    huge = 2**60
    group = Group({"t": 4}, {"a": ["t"], "b": ["t"]}, lag={"t": [huge + 3, huge + 2, huge + 1, huge]})
    for options in ("scope=group", "max_skew=2", "min_gain=1"):
        owner = assign(group, f"lag:{options}").owner
        assert largest(group, owner) == lag_bound(group) == 2 * huge + 3
    assert lag_bound(group.columns).dtype == np.int64
    odd = Group({"t": 3}, {"a": ["t"], "b": ["t"]}, lag={"t": [2**61 + 1, 1, 0]})
    assert lag_bound(odd) == 2**61 + 1


def test_unknown_lag_is_reported():
    group = Group({"t": 3, "u": 1}, {"a": ["t"], "b": ["t"]}, lag={("t", 1): 7})
    found = assign(group, "lag:scope=group")
    assert found.group.lag.tolist() == [-1, 7, -1, -1] and found.summary()["lag_unknown"] == 3
    assert texts(found) == [
        "the largest lag of a member is 7 records; no assignment has less",
        "the lag of 3 of 4 partitions is unknown and counts as 0",
    ]
    assert texts(assign(group, "lag")) == ["the lag of 3 of 4 partitions is unknown and counts as 0"]
    for strategy in ("lag", "lag:max_skew=2"):
        found = assign(group.replace(lag=None), strategy)
        assert texts(found) == ["no lag is known, so the partitions are only counted"]


def test_a_search_that_size_cuts_short_says_so(monkeypatch):
    lag = np.random.default_rng(5).integers(0, 10**6, 60)
    group = Group({"t": 60}, {f"m{i}": ["t"] for i in range(6)}, lag={"t": lag})
    results = []
    for tries in (1, 3, 20, 10**6):
        monkeypatch.setattr(lag_search, "MOST_CELLS", tries * (60 + 6))
        found = assign(group, "lag:max_skew=2")
        assert not beyond(group, found.owner.tolist(), "topic", 2)
        said = [text for text in texts(found) if "would take long" in text]
        assert said == ([f"the search ends after {count_of(tries, 'attempt')} at most, because more would take long in "
                         "a group of this size"] if tries < lag_search.MOST_EXCHANGES else [])
        results.append(largest(group, found.owner))
    assert results == sorted(results, reverse=True) and results[0] > results[-1]


def test_a_weight_replaces_lag():
    group = Group({"t": 3}, {"a": ["t"], "b": ["t"]}, lag={"t": [9, 9, 9]})
    found = assign(group, "lag", weight={"t": [1, 2, 30]}, scope="group", max_skew=2)
    assert found.owner.tolist() == [1, 1, 0] and found.lag_per_member.tolist() == [9, 18]
    assert texts(found) == ["the largest weight of a member is 30; no assignment has less"]
    [note, unknown] = texts(assign(group, "lag", weight={("t", 0): 1_000}))
    assert note == "the largest weight of a member is 1,000; no assignment has less"
    assert unknown == "the weight of 2 of 3 partitions is unknown and counts as 0"
    both = assign_many({"x": group, "y": group}, "lag", weight={"t": [1, 2, 30]})
    assert both["y"].owner.tolist() == assign(group, "lag", weight={"t": [1, 2, 30]}).owner.tolist()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"scope": "cluster"}, "option scope of strategy 'lag' must be topic or group (got 'cluster')"),
        ({"scope": ["topic"]}, "option scope of strategy 'lag' must be topic or group (got ['topic'])"),
        ({"max_skew": 0}, "option max_skew of strategy 'lag' must be a whole number, 1 or more (got 0)"),
        ({"max_skew": 1.5}, "option max_skew of strategy 'lag' must be a whole number"),
        ({"min_gain": -1}, "option min_gain of strategy 'lag' must be a whole number, 0 or more (got -1)"),
        ({"max_moves": -1}, "option max_moves of strategy 'lag' must be a whole number, 0 or more (got -1)"),
        ({"max_moves": True}, "option max_moves of strategy 'lag' must be a whole number, 0 or more (got True)"),
        ({"scope": np.array(["topic", "group"])}, "option scope of strategy 'lag' must be topic or group (got array("),
        ({"weight": "bytes"}, "option weight of strategy 'lag' must be a mapping of topics or partitions to numbers"),
        ({"weight": {"t": [0.5]}}, "weight of t must be whole numbers of 64 bits"),
        ({"weight": {"u": [1]}}, "weight must name partitions of the group (got u"),
        ({"weight": [1]}, "option weight of strategy 'lag' must be a mapping"),
    ],
    ids=str,
)
def test_bad_options(options, message):
    group = Group({"t": 1}, {"a": ["t"]})
    with pytest.raises(StrategyError) as error:
        assign(group, "lag", **options)
    assert str(error.value).startswith(message)
    if all(isinstance(value, (str, int, float)) for value in options.values()):
        text = ",".join(f"{name}={value}" for name, value in options.items())
        with pytest.raises(StrategyError) as typed:
            assign(group, f"lag:{text}")
        assert str(typed.value).startswith(message)


def test_extreme_options():
    for group in tiny_groups(50):
        for options in ("max_skew=" + "9" * 40, "min_gain=" + "9" * 40, "max_moves=" + "9" * 40):
            assert not assign(group, f"lag:{options}").unassigned[
                (group.columns.subscriber_counts > 0)[group.columns.topic_of]
            ].any()


def test_numbers_of_numpy():
    """A number of eight bits is as good as one of Python's, also where an exchange brings partitions back."""
    for group in tiny_groups(100):
        for options in ({"min_gain": 200}, {"max_moves": 2}, {"max_skew": 127, "scope": "group"}):
            small = {name: np.uint8(value) if name != "scope" else value for name, value in options.items()}
            found, expected = assign(group, "lag", **small), assign(group, "lag", **options)
            assert (found.owner.tolist(), found.strategy) == (expected.owner.tolist(), expected.strategy)


def test_nothing_is_said_about_nothing():
    """Without owners or known lag, a largest lag of 0 would be no news, or untrue."""
    for group in (Group({}, {}), Group({"t": 2}, {}, lag={"t": [1, 2]}), Group({"t": 0}, {"a": []}, lag={"t": []})):
        assert texts(assign(group, "lag:scope=group")) == texts(assign(group, "lag", weight={})) == []
    unknown = Group({"t": 2}, {"a": ["t"]}, lag={"t": [-1, -1]})
    assert texts(assign(unknown, "lag:max_moves=1")) == ["no lag is known, so the partitions are only counted"]
    assert texts(assign(unknown, "lag", weight={})) == ["no weight is known, so the partitions are only counted"]
    one = Group({"t": 1}, {"a": ["t"]}, lag={"t": [1]})
    assert texts(assign(one, "lag:scope=group")) == ["the largest lag of a member is 1 record; no assignment has less"]


def test_a_weight_needs_names():
    group = Group({"t": 2}, {"a": ["t"]})
    with pytest.raises(StrategyError, match="^weight must come with a Group"):
        lag_bound(group.columns, weight={"t": [1, 2]})
    for wrong in (None, "t", [group]):
        with pytest.raises(GroupError, match=r"lag_bound\(group\)"):
            lag_bound(wrong)


# --- order, and many at once ---------------------------------------------------------------------------------------


ALL = ["scope=group", "max_skew=3", "scope=group,max_skew=2", "min_gain=2", "scope=group,min_gain=5,max_skew=2"]


def shuffled(group, random):
    """The same group; members, topics, claims and lags are listed in another order."""

    def shuffle(values):
        values = list(values)
        return [values[i] for i in random.permutation(len(values))]

    members = [
        Member(member.id, shuffle(member.topics), owned=shuffle(map(tuple, member.owned)), generation=member.generation)
        for member in shuffle(group.details)
    ]
    lag = {
        (topic, number): int(group.lag[group.columns.places(index)[number]])
        for index, topic in shuffle(enumerate(group.topics))
        for number in shuffle(range(group.columns.partitions[index]))
    }
    return Group(dict(shuffle(group.topic_counts.items())), members, lag=lag)


@pytest.mark.parametrize("options", [*ALL, "max_moves=2,scope=group"])
def test_order_does_not_matter(options):
    random = np.random.default_rng(3)
    for group in tiny_groups(200):
        other = shuffled(group, random)
        assert assign(group, f"lag:{options}").to_dict() == assign(other, f"lag:{options}").to_dict()


@pytest.mark.parametrize("options", ALL)
def test_side_by_side(options):
    groups = tiny_groups(200)
    together = assign_many(groups, f"lag:{options}")
    assert [one.owner.tolist() for one in together] == [assign(g, f"lag:{options}").owner.tolist() for g in groups]


@pytest.mark.parametrize("options", ["scope=group,max_skew=2", "scope=group,min_gain=5,max_skew=2", "max_moves=1"])
def test_conformance(options):
    report = check_strategy(f"lag:{options}")
    assert report.broken == [] and report.found["no-idle-members"] == "not promised"
    assert not any(words.startswith("not checked") for words in report.found.values())


def test_bound_of_many_groups():
    groups = tiny_groups(300)
    together = lag_bound(side_by_side([group.columns for group in groups]))
    assert together.tolist() == [lag_bound(group) for group in groups]


def test_exchanges_are_bounded(monkeypatch):
    """The search may stop after any exchange: what it has is an assignment within the limits."""
    random = np.random.default_rng(11)
    lag = random.integers(0, 10**6, 60)
    group = Group({"t": 60}, {f"m{i}": ["t"] for i in range(6)}, lag={"t": lag})
    results = []
    for exchanges in (0, 1, 3, 500):
        at_most(monkeypatch, exchanges)
        owner = assign(group, "lag:max_skew=2").owner
        assert not beyond(group, owner.tolist(), "topic", 2)
        results.append(largest(group, owner))
    assert results == sorted(results, reverse=True) and results[0] > results[-1]
    assert results[0] == largest(group, lag_by_rule(group.columns))
