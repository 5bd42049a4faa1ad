"""Two moments of a group, and the group as it is: what changed, what stands still, how fast lag shrinks, who lags."""
import csv
import io
import json
import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from unittest.mock import patch
from uuid import UUID

import numpy as np
import pytest
from groups import groups
from hypothesis import given, settings
from hypothesis import strategies as st
from outputs import SAMPLES, table
from test_cli import run, unwrapped

from kafka_assign import Assignment, Group, GroupError, Member, assign, compare, diff, rank, read_groups, show
from kafka_assign.groups.notes import Note
from kafka_assign.groups.progress import progress_between, progress_of, rates

START = datetime(2026, 3, 1, 2, 14, tzinfo=timezone.utc)


def rows_of(found, *kinds):
    """The differences of some kinds as tuples: what, subject, then, now."""
    return [(row["what"], row["subject"], row["old"], row["new"]) for row in found.rows if row["what"] in kinds]


def simulated(seed):
    """Two moments of a group whose members consume at steady rates, but one of them nothing; and what happened."""
    chance = random.Random(seed)
    topics = {f"t{n}": chance.randrange(1, 7) for n in range(chance.randrange(1, 4))}
    group = Group(topics, {f"m{n}": [*topics] for n in range(chance.randrange(2, 5))}, name="g")
    owned = {member: list(own) for member, own in assign(group, "roundrobin").items()}
    stopped, seconds = chance.choice(sorted(owned)), 60 * chance.randrange(1, 9)
    consumes, produces, then, now = {}, {}, {}, {}
    for member, own in owned.items():
        for one in own:
            produces[one] = chance.choice([0, 1, 5, 20])
            lag = chance.choice([0, 100_000])
            most = produces[one] if not lag else 30
            consumes[one] = 0 if member == stopped else chance.randrange(most + 1)
            then[one] = chance.randrange(1000), lag
    for column, moment in ((then, 0), (now, seconds)):
        for one in produces:
            committed, lag = then[one]
            column[one] = committed + moment * consumes[one], lag + moment * (produces[one] - consumes[one])
    moments = [group.replace(
        owned=owned, time=(START + timedelta(seconds=moment)).isoformat(),
        committed={one: committed for one, (committed, _) in column.items()},
        end={one: committed + lag for one, (committed, lag) in column.items()})
        for column, moment in ((then, 0), (now, seconds))]
    return *moments, owned, consumes, produces


def normal_lag(rate, commit=5):
    """By how much a lag may differ without a reason: what arrives in two commits, and three times its spread."""
    return 2 * rate * commit + 3 * (2 * rate * commit + 1) ** 0.5


@pytest.mark.parametrize("seed", range(40))
def test_rates_and_what_stands_still_are_those_of_a_simulated_run(seed):
    old, new, owned, consumes, produces = simulated(seed)
    found = diff(old, new)
    still = {f"{topic}-{number}" for (topic, number), rate in consumes.items() if not rate and produces[topic, number]}
    assert {subject for _, subject, *_ in rows_of(found, "stuck")} == still
    lag = {member: sum(int(new.lag[new.position(*one)]) for one in own) for member, own in owned.items()}
    parts = {None: [*consumes], **owned}
    rows = {row["subject"]: row for row in found.rows if row["what"] == "lag"}
    assert rows.keys() == {member for member, own in parts.items() if any(consumes[one] + produces[one] for one in own)}
    for member, row in rows.items():
        fast, arrives = (sum(rates[one] for one in parts[member]) for rates in (consumes, produces))
        left = sum(lag.values()) if member is None else lag[member]
        assert (row["consumed"], row["produced"], row["new"]) == (pytest.approx(fast), pytest.approx(arrives), left)
        seconds = (datetime.fromisoformat(new.time) - datetime.fromisoformat(old.time)).total_seconds()
        shrunk, noise = (fast - arrives) * seconds, normal_lag(max(fast, arrives))
        caught_up = left / (fast - arrives) if left > noise and shrunk > noise else None
        assert row["catch_up"] == (pytest.approx(caught_up) if caught_up else None if left else 0)
        assert ("caught up in about" in row["words"]) == bool(caught_up)
        assert ("falls behind" in row["words"]) == bool(left and fast and -shrunk > noise)
        stopped = not fast and left > noise + len(parts[member])
        assert ("nothing was committed while" in row["words"]) == stopped
    needs = [row for row in rank([new, old]) if row["need"] == "stuck"]
    assert [row["affected"] for row in needs] == [len(still)] * bool(still)
    assert {row["time"] for row in needs} <= {new.time} and not [row for row in rank([new]) if row["need"] == "stuck"]


MOMENTS = groups().flatmap(lambda one: st.tuples(st.just(one), groups() | st.just(one)))


@settings(max_examples=60)
@given(MOMENTS)
def test_nothing_changes_by_itself_and_the_way_back_mirrors_the_way(pair):
    one, other = pair
    assert diff(one, one).rows == diff({"g": other}, {"g": other}).rows == []
    there, back = diff(one, other), diff(other, one)
    assert Counter(rows_of(there, "member-joined")) == Counter(
        ("member-joined", member, new, old) for _, member, old, new in rows_of(back, "member-left"))
    for kind in ("owner", "partitions"):
        assert sorted(rows_of(there, kind), key=str) == sorted(
            ((kind, subject, new, old) for _, subject, old, new in rows_of(back, kind)), key=str)


def test_topics_that_grow_or_go_and_owners_that_change():
    old = Group({"grows": 2, "goes": 1, "stays": 2}, {"a": ["grows", "goes", "stays"], "b": ["stays"]},
                {"a": {"grows": [0, 1], "goes": [0]}, "b": {"stays": [0, 1]}}, name="g", state="Stable")
    new = Group({"grows": 3, "stays": 2}, {"a": ["grows", "stays"], "b": ["stays"]},
                {"a": {"grows": [0, 1], "stays": [1]}, "b": {"stays": [0]}}, name="g", state="Stable")
    found = diff(old, new)
    assert rows_of(found, "partitions") == [("partitions", "goes", 1, None), ("partitions", "grows", 2, 3)]
    assert rows_of(found, "owner") == [("owner", "stays-1", "b", "a")]
    assert rows_of(found, "need-new") == [("need-new", "no-owner", None, None)]
    assert rows_of(diff(new, old), "need-resolved") == [("need-resolved", "no-owner", None, None)]
    assert [row["what"] for row in found.rows] == sorted(
        (row["what"] for row in found.rows), key=["need-new", "subscription", "partitions", "owner"].index)


def behind(time, committed, end, **about):
    """A member that owns one partition."""
    return Group({"t": 1}, {"a": ["t"]}, {"a": {"t": [0]}}, name="g", time=time, committed={"t": [committed]},
                 end={"t": [end]}, **about)


@pytest.mark.parametrize("then, now, known", [
    ("2026-03-01T02:00Z", "2026-03-01T04:10+02:00", True), ("2026-03-01T0200", "2026-03-01T01:10-01:00", True),
    ("2026-03-01", "2026-03-02", False), ("", "2026-03-02T00:00Z", False), ("", "", False)])
def test_times_are_instants_and_without_two_of_them_there_is_no_rate(then, now, known):
    [row, _] = diff(behind(then, 100, 700), behind(now, 400, 1600)).rows
    assert (row["consumed"], row["produced"]) == ((0.5, 1.5) if known else (None, None))
    assert (row["catch_up"], "falls behind" in str(row["words"])) == (None, known)


@pytest.mark.parametrize("then, now, still", [
    ((5, 9), (5, 10), True), ((9, 9), (9, 11), True),
    ((9, 9), (9, 10), False),            # that record may have arrived a moment ago
    ((5, 9), (5, 9), False), ((5, 9), (6, 99), False), ((5, 9), (3, 99), False), ((5, 90), (5, 10), False),
    ((-1, 9), (-1, 99), False)])
def test_a_partition_stands_still_if_records_arrive_and_none_is_consumed(then, now, still):
    old, new = behind("2026-03-01T02:00Z", *then), behind("2026-03-01T02:01Z", *now)
    assert [row["need"] for row in rank([old, new]) if row["need"] == "stuck"] == ["stuck"] * still
    assert bool(rows_of(diff(old, new), "stuck")) == still
    assert any("nothing committed" in words for words in show(new, old).odd) == still
    for other in (new.replace(time="2026-03-01T02:00:59Z"), new.replace(state="PreparingRebalance"),
                  new.replace(members={}), new.replace(name="other")):
        assert "stuck" not in {row["need"] for row in rank([old, other])}


def test_moments_without_times_are_told_apart_by_number_and_unnamed_groups_are_not_paired():
    old, new = behind("", 5, 9, moment=1), behind("", 5, 99, moment=2)
    [row] = [row for row in rank([new, old]) if row["need"] == "stuck"]
    assert "between moment 1 and moment 2, while 90 records arrived" in row["reason"]
    assert row["reason"].endswith("commits rarely")
    for pair in ([old.replace(name=""), new.replace(name="")], [old.replace(moment=2), new],
                 [old.replace(cluster="east"), new]):
        assert "stuck" not in {row["need"] for row in rank(pair)}


def captured(chance, seconds, share=1.0, commit=5, client="web", spread=False, moments=2):
    """Moments of a group whose members consume a share of what arrives, at steady rates or, with `spread`, by chance.

    Members commit by themselves, each from a moment of its own on; a capture asks for the ends up to 1 s later.
    """
    names, each = [f"m{number}" for number in range(chance.randrange(1, 6))], chance.randrange(1, 5)
    owned = {name: {"t": [*range(number * each, (number + 1) * each)]} for number, name in enumerate(names)}
    rates = [chance.choice([0.05, 0.3, 1, 7, 50, 300]) for _ in range(len(names) * each)]
    ticks = int(10 * (seconds * (moments - 1) + 2 * commit + 2))               # of 0.1 s
    arrived = []
    for rate in rates:
        steps = np.full(ticks, rate / 10)
        if spread:
            steps = np.random.default_rng(chance.randrange(2**32)).poisson(rate / 10, ticks)
        arrived.append(np.concatenate([[0], np.cumsum(steps)]))
    phases = [chance.uniform(0, commit) for _ in names]
    group = Group({"t": len(rates)}, [Member(name, ["t"], client_id=client) for name in names], owned, name="g")
    found = []
    for number in range(moments):
        now = commit + number * seconds
        last = [phase + commit * ((now - phase) // commit) for phase in phases]
        committed = [int(share * arrived[one][int(10 * last[one // each])]) for one in range(len(rates))]
        end = [int(arrived[one][int(10 * (now + chance.random()))]) for one in range(len(rates))]
        found.append(group.replace(time=(START + timedelta(seconds=number * seconds)).isoformat(),
                                   committed={"t": committed}, end={"t": end}))
    return found


def trends(found):
    """What is said of the group and of each member, in words, with the rates."""
    members = [np.ones(len(found.place), bool), *(found.new.previous == at for at in range(len(found.new.members)))]
    fast = [rates(found, mask) for mask in members]
    return [(one["words"], one) for one in fast if one]


TRENDS = "falls behind", "caught up", "does not catch up", "nothing was committed"


@pytest.mark.parametrize("commit, client", [(5, "web"), (30, f"app-{UUID(int=1)}-StreamThread-1-consumer"),
                                            (60, "connector-consumer-sink-0")])
@pytest.mark.parametrize("spread", [False, True], ids=["steady", "by chance"])
def test_a_group_that_keeps_up_has_no_trend_whenever_it_is_seen(spread, commit, client):
    chance = random.Random(commit + spread)
    for _ in range(40):
        old, new = captured(chance, chance.choice([15, 60, 61, 120, 300, 480]), 1, commit, client, spread)
        found = progress_between(old, new)
        words = [words for words, _ in trends(found)]
        assert words and not [one for one in words if any(trend in one for trend in TRENDS)]
        assert not found.stuck.any()


@pytest.mark.parametrize("seconds, share", [(60, 0.6), (120, 0.75), (300, 0.9), (480, 0.93)])
def test_a_group_that_misses_records_falls_behind_where_rates_are_high_enough_to_see_it(seconds, share):
    chance = random.Random(seconds)
    for _ in range(40):
        old, new = captured(chance, seconds, share, spread=True)
        for words, fast in trends(progress_between(old, new)):
            if fast["produced"] > 20:
                assert words.endswith("falls behind") and fast["catch_up"] is None


def test_a_process_that_is_stopped_has_words_of_its_own():
    chance = random.Random(5)
    for _ in range(10):
        old, new = captured(chance, 120, 0)
        rows = [row for row in diff(old, new).rows if row["what"] == "lag" and row["new"] > 100]
        assert all("nothing was committed while" in row["words"] and row["catch_up"] is None for row in rows)
        assert not [row for row in rows if "falls behind" in row["words"]]


def test_the_time_to_catch_up_is_an_estimate_and_is_near_the_truth():
    for rate, speed, lag in ((100, 150, 60_000), (7, 40, 20_000), (1, 3, 5_000)):
        old = behind("2026-03-01T02:00Z", 0, lag)
        new = behind("2026-03-01T02:05Z", 300 * speed, lag + 300 * rate)
        [row] = [row for row in diff(old, new).rows if row["what"] == "lag" and row["subject"]]
        assert row["catch_up"] == pytest.approx((lag - 300 * (speed - rate)) / (speed - rate))
        assert "caught up in about" in row["words"] and row["words"].endswith("an estimate")
    done = diff(behind("2026-03-01T02:00Z", 0, 60_000), behind("2026-03-01T02:05Z", 89_800, 90_000))
    [row] = [row for row in done.rows if row["subject"] == "a"]
    assert row["catch_up"] is None and row["words"].endswith("has caught up, or nearly")


# --- more moments ------------------------------------------------------------------------------------------------

@st.composite
def histories(draw):
    """Moments of a group: offsets that only grow, at any times, with or without members, some without offsets."""
    count, partitions = draw(st.integers(2, 7)), draw(st.integers(1, 4))
    times = sorted(draw(st.lists(st.integers(0, 300), min_size=count, max_size=count, unique=True)))
    dated, alone = draw(st.booleans()), draw(st.booleans())
    steps = st.lists(st.lists(st.sampled_from([0, 0, 0, 1, 2, 2000]), min_size=count, max_size=count),
                     min_size=partitions, max_size=partitions)
    ends, commits = draw(steps), draw(steps)
    group = Group({"t": partitions}, {} if alone else {"a": ["t"], "b": ["t"]}, {} if alone else {
        "a": {"t": [*range(partitions)]}}, name="g", state="Empty" if alone else "Stable")
    found = []
    for at in range(count):
        end = [sum(row[:at + 1]) for row in ends]
        committed = [min(sum(row[:at + 1]), most) for row, most in zip(commits, end)]
        known = at in (0, count - 1) or draw(st.integers(0, 4))
        about = {"committed": {"t": committed}, "end": {"t": end}} if known else {}
        time = (START + timedelta(seconds=times[at])).isoformat() if dated else ""
        found.append(group.replace(time=time, moment=0 if dated else at + 1, **about))
    return found


def needs_of(moments):
    """The needs of the last moment, given these; a partition that stands still is counted."""
    return {row["need"]: row["affected"] if row["need"] == "stuck" else None
            for row in rank(moments, "range") if (row["time"], row["moment"]) == (
                moments[-1].time or None, moments[-1].moment or None)}


@settings(max_examples=60)
@given(histories(), st.data())
def test_moments_in_between_never_hide_a_need(moments, data):
    between = moments[1:-1]
    kept = data.draw(st.lists(st.sampled_from(between), unique_by=id) if between else st.just([]))
    fewer = needs_of([one for one in moments if one in (moments[0], moments[-1]) or any(one is some for some in kept)])
    more = needs_of(moments)
    assert fewer.keys() <= more.keys() and fewer.get("stuck", 0) <= more.get("stuck", 0)


def test_captures_every_15_seconds_show_what_stands_still(tmp_path):
    """The last record arrived four minutes ago; the outputs of --members in between have no offsets."""
    for number in range(21):
        time = START + timedelta(seconds=15 * number)
        end = 9 + 300 * min(number, 4)
        text = behind(time.isoformat(), 5, end).to_json()
        (tmp_path / f"{time:%Y%m%dT%H%M%SZ}.json").write_text(text + "\n")
    groups = read_groups(tmp_path, cluster="east")
    assert groups.before["g"].time == (START + timedelta(seconds=240)).isoformat()
    [row] = [row for row in rank(groups) if row["need"] == "stuck"]
    assert "nothing committed between 2026-03-01T02:14:00+00:00 and 2026-03-01T02:19:00" in row["reason"]
    assert "1,200 records arrived" in row["reason"]
    rows = [row for row in rank(read_groups(tmp_path, cluster="east", at="all")) if row["need"] == "stuck"]
    assert len(rows) == 17                                              # from the first minute on
    for command in ("rank", "show"):
        assert "nothing committed between" in unwrapped(run([command, str(tmp_path)]).out)
    assert "02:18:00+00:00 to 2026-03-01T02:19:00" in unwrapped(run(["diff", str(tmp_path)]).out)


@pytest.mark.parametrize("gaps", [[300], [10], [300, 10], [300, 10, 60], [59, 1], [20, 20, 15], [100, 30, 29]])
def test_the_moment_compared_is_the_last_one_at_least_a_minute_earlier(gaps):
    """The gaps are seconds from one moment to the next."""
    times = [sum(gaps[:count]) for count in range(len(gaps) + 1)]
    moments = [behind((START + timedelta(seconds=time)).isoformat(), 1000 * number, 5000 + 1000 * number)
               for number, time in enumerate(times)]
    found = progress_of(moments)[len(gaps)]
    later = [time for time in times[:-1] if times[-1] - time >= 60]
    assert found.seconds == times[-1] - (max(later) if later else times[0])


def test_an_empty_group_whose_offsets_go_on_is_not_abandoned():
    empty = Group({"t": 2}, {}, name="g", state="Empty", committed={"t": [5, 5]}, end={"t": [9, 9]},
                  time="2026-03-01T02:00:00Z")
    later = empty.replace(committed={"t": [105, 5]}, end={"t": [109, 9]}, time="2026-03-01T02:10:00Z")
    soon, still = (later.replace(time=f"2026-03-01T{time}Z") for time in ("02:12:00", "04:00:00"))
    def needs(*moments):
        return [row["need"] for row in rank(moments) if row["time"] == moments[-1].time]
    assert needs(empty) == needs(later) == ["abandoned"]
    assert needs(empty, later) == needs(empty, later, soon) == []
    assert needs(empty, later, still) == ["abandoned"]                  # none has committed for two hours
    full = empty.replace(members={"a": ["t"]}, owned={"a": {"t": [0, 1]}}, state="Stable")
    assert needs(full, later) == ["abandoned"]                          # its member has left since
    assert not any("no active members" in words for words in show(later, empty).odd)


def test_a_history_is_walked_once():
    """What is done for all moments of a long capture grows like their number."""
    def work(count):
        moments = [behind((START + timedelta(seconds=15 * number)).isoformat(), 5, 9 + number)
                   for number in range(count)]
        done = []
        with patch("kafka_assign.groups.progress._without_owner", lambda group: done.append(1) or np.zeros(1, bool)):
            progress_of(moments)
        return len(done)
    assert work(400) <= 2.1 * work(200) and work(200) <= 2.1 * work(100)


def test_lag_gets_the_rate_of_the_member_that_lags_most():
    group = Group({"t": 4}, {"a": ["t"], "b": ["t"]}, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}, name="g")
    old = group.replace(committed={"t": [0, 0, 0, 0]}, end={"t": [90_000, 90_000, 0, 0]}, time="2026-03-01T02:00Z")
    new = group.replace(committed={"t": [30_000, 30_000, 0, 0]}, end={"t": [90_000, 90_000, 0, 0]},
                        time="2026-03-01T02:10Z")
    [row] = [row for row in rank({"g": new}) if row["need"] == "lag"]
    assert row["remedy"].endswith("without a rate, lag says nothing about delay")
    [row] = [row for row in rank([old, new]) if row["need"] == "lag" and row["time"] == new.time]
    assert row["remedy"].endswith(
        "that member: 100 consumed and 0 produced per second: caught up in about 20 min, an estimate")


def test_a_static_member_that_restarts_stays_and_any_other_one_leaves_and_joins():
    def made(*members):
        return Group({"t": 2}, [Member(id, ["t"], owned=[("t", number)], **about)
                                for number, (id, about) in enumerate(members)], name="g")
    old = made(("s-1", {"instance_id": "s"}), ("d-1", {"client_id": "d", "host": "/h"}))
    new = made(("s-2", {"instance_id": "s"}), ("d-2", {"client_id": "d", "host": "/h"}))
    assert rows_of(diff(old, new), "member-joined", "member-left", "owner") == [
        ("member-joined", "d-2", None, 1), ("member-left", "d-1", 1, None), ("owner", "t-1", "d-1", "d-2")]


def test_another_type_state_assignor_or_subscription_is_a_row_where_both_moments_show_it():
    old = Group({"t": 1, "u": 1}, {"a": ["t"], "b": ["t", "u"]}, {"a": {"t": [0]}, "b": {"u": [0]}}, name="g",
                type="classic", state="Stable", strategy="range")
    new = old.replace(members={"a": ["t", "u"], "b": ["t", "u"]}, type="consumer", state="Reconciling",
                      strategy="uniform")
    kinds = "type", "state", "assignor", "subscription"
    assert rows_of(diff(old, new), *kinds) == [
        ("type", None, "classic", "consumer"), ("state", None, "Stable", "Reconciling"),
        ("assignor", None, "range", "uniform"), ("subscription", "a", "t", "t, u")]
    for unknown in (old.replace(type="", state="", strategy="", notes=[Note("subscriptions-agree", None, ("",))]),
                    old.replace(type="Classic", state="stable")):
        assert not rows_of(diff(unknown, old), *kinds) and not rows_of(diff(old, unknown), *kinds)
    assert not rows_of(diff(new, old.replace(notes=[Note("subscriptions-assumed", None, ("",))])), "subscription")


def test_groups_are_paired_by_cluster_and_name_and_what_one_side_lacks_is_said():
    west, east = behind("", 1, 2, cluster="west"), behind("", 1, 2, cluster="east")
    assert diff({"": west}, {"": east}).rows == [] == diff({1: west, 2: east}, {1: east, 2: west}).rows
    found = diff({1: west, 2: east}, {1: west, 2: west.replace(name="other")})
    assert [(row["what"], row["cluster"], row["group_id"]) for row in found.rows] == [
        ("group-new", "west", "other"), ("group-gone", "east", "g")]
    for wrong in ([west], "g", {1: "g"}):
        with pytest.raises(GroupError, match="must be"):
            diff(west, wrong)


def test_foreign_names_are_shown_safely():
    name = "[red]\x1b[31m<b>&"
    old = Group({name: 2}, [Member(f"{name}1", [name], owned=[(name, 0)], host=name)], name=name,
                committed={name: [5, 5]}, end={name: [9, 9]}, cluster=name, state="Stable")
    new = old.replace(end={name: [99, 99]}, members=[Member(f"{name}2", [name], owned=[(name, 0)], host=name)])
    for found in (diff(old, new), show(new, old)):
        assert repr(found).replace("\n", "").isprintable() and "[red]\\x1b" in repr(found)
        assert "<b>" not in found._repr_html_() and "&lt;b&gt;&amp;" in found._repr_html_()
    both = "\n".join(one.to_json() for one in (old.replace(moment=1), new.replace(moment=2)))
    for command in ("show -", "diff -"):
        done = run(command, both)
        assert done.code == 0 and done.out.replace("\n", "").isprintable() and "[red]\\x1b" in done.out


# --- show --------------------------------------------------------------------------------------------------------

@settings(max_examples=150)
@given(groups())
def test_show_has_the_numbers_of_loops_over_the_group(group):
    found = show(group)
    owner = {group.at(at): int(one) for at, one in enumerate(group.previous)}
    lag = {one: -1 if group.lag is None else int(group.lag[group.position(*one)]) for one in owner}
    for at, one in enumerate(owner) if group.offsets else ():
        if group.offsets.committed[at] > group.offsets.end[at] >= 0:
            lag[one] = -1
    total = sum(max(one, 0) for one in lag.values())
    order = [(-1 if row["lag"] is None else row["lag"], -group.members.index(row["member"])) for row in found.rows]
    assert order == sorted(order, reverse=True)
    assert {row["member"] for row in found.rows} == set(group.members)
    claims = {}
    for member in group.details:
        for one in {*member.owned} & {*owner}:
            claims.setdefault(one, []).append((member.generation, member.id))
    newest = {one: [id for made, id in made_by if made == max(made_by)[0]] for one, made_by in claims.items()}
    shared = {one for one, ids in newest.items() if len(ids) > 1 and owner[one] < 0
              and group.columns.consumer[group.position(*one)] < -1}
    for row in found.rows:
        own = [one for one, member in owner.items() if member == group.members.index(row["member"])
               or one in shared and row["member"] in newest[one]]
        known = [lag[one] for one in own if lag[one] >= 0]
        assert row["partitions"] == len(own)
        if group.lag is not None and (sum(known) or len(known) == len(own)):
            assert row["lag"] == sum(known) and row["share"] == (sum(known) / total if total else None)
        else:
            assert row["lag"] is row["share"] is None
        assert row["largest_lag"] == (max(known) if max(known, default=0) > 0 else None)
        worst = [f"{topic}-{number}" for topic, number in own if lag[topic, number] == row["largest_lag"]]
        assert row["largest"] in (worst if row["largest_lag"] else [None])
        assert (row["assignment"] or "").count(",") + len((row["assignment"] or "").split(";")) == max(len(own), 1)
    assert {row["topic"] for row in found.topics} == {topic for topic, count in group.topic_counts.items() if count}
    for row in found.topics:
        own = [one for one in owner if one[0] == row["topic"]]
        known = [lag[one] for one in own if lag[one] >= 0]
        assert row["owners"] == len({owner[one] for one in own} - {-1})
        assert row["possible_owners"] == min(len(own), len(group.subscribers(row["topic"])))
        assert row["no_owner"] == sum(int(group.columns.consumer[group.position(*one)]) == -1 for one in own)
        certain = sum(known) or group.lag is not None and len(known) == len(own)
        assert (row["partitions"], row["lag"]) == (len(own), sum(known) if certain else None)
    assert [(row["topic"], row["partition"]) for row in found.partitions] == [*owner]
    for row, one in zip(found.partitions, owner):
        known = lag[one] if lag[one] >= 0 else None
        assert (row["member"], row["lag"]) == ([*group.members, None][owner[one]], known)


def test_a_member_that_names_a_partition_twice_is_one_owner():
    members = [Member("a", [], owned=[("t", 0), ("t", 0)], generation=3), Member("b", [], owned=[("t", 0)])]
    assert show(Group({"t": 1}, members)).odd == []


@given(groups())
def test_racks_are_shown_where_they_are_known(group):
    found, racks = show(group), {member.id: member.rack for member in group.details}
    for row in found.partitions:
        replicas = dict(enumerate(group.partition_racks.get(row["topic"], ()))).get(row["partition"], ())
        known = any(racks.values()) and any(replicas) and row["member"] is not None
        assert row["in_rack"] is (racks[row["member"]] in replicas if known else None)
    if any(racks.values()) and group.counted is None:
        near = Assignment.current(group).summary()["in_rack"] or 0
        assert [sum(row["in_rack"] or 0 for row in rows) for rows in (found.rows, found.topics)] == [near, near]
    assert {row["member"]: row["rack"] for row in found.rows} == racks


def test_odd_things_come_first():
    members = [Member("a", ["t", "tt"], owned=[("t", 0), ("t", 1)]), Member("b", ["t"], owned=[("t", 1)])]
    group = Group({"t": 3}, members, name="g", state="Stable", committed={"t": [1] * 3}, end={"t": [9] * 3})
    odd = show(group).odd
    assert "t-1 is owned by 2 members: a and b" in odd[0] and any("tt does not exist" in one for one in odd)
    assert "t-2 has no owner; 8 records wait" in odd
    unlike = group.replace(members={"a": ["t"], "b": ["t"]}, owned={"a": {"t": [0, 1, 2]}, "b": []}, strategy="range")
    assert any("range cannot have produced this assignment" in one for one in show(unlike).odd)
    fits = unlike.replace(owned={"a": [("t", 0), ("t", 1)], "b": [("t", 2)]})
    assert show(fits).odd == []
    text = run("show -", group.to_json()).out
    assert text.index("owned by 2 members") < text.index("member  ")
    for wrong, more in (([group], ()), ({}, ()), (group, ("g",))):
        with pytest.raises(GroupError, match="must be a Group"):
            show(wrong, *more)


LONG = [f"consumer-payment-events-{number}-64e50cad-6623-4a04-a5e7-e4236472f1a3" for number in range(30)]
DESCRIBED = table(
    ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"],
    *[("payments", "payment-events", number, 10, 10 + 7 ** (number % 9), 7 ** (number % 9), id, f"/10.0.1.{number}",
       id[:25]) for number, id in enumerate(LONG)])


def test_who_lags_is_on_the_first_screen_at_80_columns_and_whole_in_a_pipe(monkeypatch):
    first = "5,764,801"
    lines = run("show -", DESCRIBED).out.splitlines()                    # a pipe
    rows = [line for line in lines[:24] if first in line and "consumer-payment-events-" in line]
    assert len(rows) == 3 and all(any(id in line for id in LONG) for line in rows)
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("show -", DESCRIBED).out.splitlines()
    assert max(map(len, lines)) <= 80 and any(first in line for line in lines[:12])
    words = unwrapped("\n".join(lines))
    assert words.index(first) < words.index("inferred:")


def test_show_on_the_command_line(tmp_path):
    [found] = json.loads(run(f"show {SAMPLES}/kafka-4.3.1 -g search-indexer --format json --wide").out)
    group = read_groups(SAMPLES / "kafka-4.3.1")["search-indexer"]
    shown = show(group)
    assert (found["rows"], found["topic_rows"], found["odd"]) == (shown.rows, shown.topics, shown.odd)
    assert found["partition_rows"] == shown.partitions and (found["members"], found["state"]) == (3, "Stable")
    rows = list(csv.DictReader(io.StringIO(run(f"show {SAMPLES}/kafka-4.3.1 -g search-indexer --format csv").out)))
    assert [row["member"] for row in rows] == [row["member"] for row in shown.rows]
    text = run(f"show {SAMPLES}/kafka-4.3.1 -g search-indexer --wide").out
    assert all(f"{row['topic']}  " in text for row in shown.partitions) and "committed" in text
    done = run(f"show {SAMPLES}/kafka-4.3.1")
    assert done.code == 0 and "search-indexer" in done.out and "--group G shows who lags" in done.out
    assert "largest" not in done.out
    done = run(f"show {SAMPLES}/kafka-4.3.1 -g serch-indexer")
    assert done.code == 2 and "did you mean 'search-indexer'?" in done.err
    assert "must be an .svg file (got 'a.png')" in run(f"show {SAMPLES}/kafka-4.3.1 --plot a.png").err
    assert "--group must name one" in run(f"show {SAMPLES}/kafka-4.3.1 --plot a.svg").err


def test_show_draws_the_group_as_it_is(tmp_path):
    done = run(["show", str(SAMPLES / "kafka-4.3.1"), "-g", "search-indexer", "--plot", str(tmp_path / "a.svg")])
    assert done.code == 0 and "search-indexer" in done.out
    assert "<svg" in (tmp_path / "a.svg").read_text() and [one.name for one in tmp_path.iterdir()] == ["a.svg"]


# --- diff on the command line ------------------------------------------------------------------------------------

def printed(time, end, member="a-1"):
    """A group as JSON."""
    return Group({"t": 2}, {member: ["t"]}, {member: {"t": [0, 1]}}, name="g", time=time, committed={"t": [5, 5]},
                 end={"t": [9, end]}).to_json()


def test_diff_reads_files_folders_and_moments(tmp_path):
    for name, text in (("old", printed("2026-03-01T02:00Z", 9)), ("new", printed("2026-03-01T02:10Z", 609, "b-1"))):
        (tmp_path / f"{name}.json").write_text(text + "\n")
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    expected = diff(*(read_groups(path) for path in (old, new)))
    for sides in ((old, new), (tmp_path,), (old, tmp_path)):
        done = run(["diff", *map(str, sides), "--format", "json"])
        assert done.code == 0 and json.loads(done.out) == [
            row | {"cluster": row["cluster"] and tmp_path.name} if len(sides) == 1 else row for row in [
                one | {"cluster": json.loads(done.out)[0]["cluster"]} for one in expected.rows]]
    text = run(["diff", str(old), str(new)]).out
    order = [text.index(word) for word in ("from 2026-03-01T02:00Z to", "stuck", "member-joined", "member-left", "lag")]
    assert order == sorted(order) and "nothing was committed while 600 records arrived" in text
    assert "member-left" in run(["diff", str(old), str(new), "--format", "csv"]).out
    assert unwrapped(run(["diff", str(old), str(old)]).out).endswith("no difference")
    assert run(["diff", str(old), str(new), "-g", "g"]).out == text


@pytest.mark.parametrize("words, code, error", [
    ("old.json", 3, "old.json: it must hold two moments of a group"), ("old.json new.json more.json", 2, "no more"),
    ("old.json new.json --bootstrap-server h:1", 2, "no more"), ("old.json gone.json", 3, "gone.json"),
    ("old.json new.json -g h", 2, "no group 'h' in the input"), ("", 2, "OLD")])
def test_wrong_use_of_diff(words, code, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, end in (("old", 9), ("new", 90), ("more", 900)):
        (tmp_path / f"{name}.json").write_text(printed("2026-03-01T02:00Z", end) + "\n")
    done = run(f"diff {words}")
    assert (done.code, done.out) == (code, "") and error in done.err and done.err.count("\n") == 1


def test_a_part_of_a_file_that_cannot_be_used_is_said_and_the_rest_is_compared(tmp_path):
    for name, end in (("old", 9), ("new", 90)):
        (tmp_path / f"{name}.json").write_text(printed(f"2026-03-01T02:0{end // 30}Z", end) + '\n{"topics": 1}\n')
    done = run(["diff", str(tmp_path / "old.json"), str(tmp_path / "new.json")])
    assert done.code in (0, 3) and "stuck" in done.out


# --- which assignor is assumed -----------------------------------------------------------------------------------

def in_short(group, *options):
    """The sentence on a change, and the JSON of the same."""
    lines = ["compare", "-", "--leave", group.members[0], *options]
    [found] = json.loads(run([*lines, "--format", "json"], group.to_json()).out)
    return unwrapped(run(lines, group.to_json()).out).partition("in short, ")[2], found


def members_of(client, runs, topics):
    """A group of four members of a client library, with the owners that a strategy gives."""
    group = Group(topics, [Member(f"{client}-{number}", [*topics], client_id=client) for number in range(4)], name="g")
    return group.replace(owned=dict(assign(group, runs)))


TWO_TOPICS, ONE = {"t": 5, "u": 5}, {"t": 8}


@pytest.mark.parametrize("client, runs, topics, label, why", [
    ("app", "range", TWO_TOPICS, "range", "only range gives these owners"),
    ("app", "roundrobin", TWO_TOPICS, "roundrobin", "only roundrobin gives these owners"),
    ("app", "range", {"t": 4}, "range", "the default of most clients; the output of --state"),
    ("consumer-g-1", "range", {"t": 4}, "range", "the default of Java, by client id; the output of --state"),
    ("rdkafka", "range", {"t": 4}, "range", "the default of librdkafka, by client id; the output of --state"),
    ("rdkafka", "roundrobin", TWO_TOPICS, "roundrobin", "only roundrobin gives these owners"),
    ("kgo", "range", TWO_TOPICS, None, ""), ("sarama", "range", TWO_TOPICS, None, "")])
def test_without_a_reported_assignor_one_is_assumed_and_the_sentence_says_so(client, runs, topics, label, why):
    group = members_of(client, runs, topics)
    words, found = in_short(group)
    assert (found["running"], found["assumed"]) == (None, label)
    assert words.startswith(f"if the group runs {label} (assumed: ") and why in words if label else words == ""
    reported, known = in_short(group.replace(strategy="range"))
    assert known["assumed"] is None and "assumed" not in reported.partition("\n")[0][:40]


def test_an_assumption_that_the_owners_contradict_says_so_and_no_condition_is_judged_on_it():
    group = members_of("app", "range", ONE)
    group = group.replace(owned={one: [("t", 2 * number), ("t", 2 * number + 1)] for number, one in enumerate(
        reversed(group.members))})
    assert "most clients, but it does not give these owners" in in_short(group)[0]
    assert compare(group, ["fair"]).assumed is None
    done = run(["compare", "-", "--leave", "app-0", "--fail-if", "moved>0"], group.to_json())
    assert done.code == 2 and "the strategy that the group runs is unknown" in done.err
