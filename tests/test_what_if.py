"""What-ifs and conditions: in Python, on the command line, and that both say the same."""
import json
import operator
import re
from dataclasses import replace
from itertools import chain, permutations, product
from random import Random
from types import SimpleNamespace
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pytest
import typer
from groups import NAMES, groups, sending_groups
from hypothesis import assume, given, settings, strategies as st
from outputs import table as printed
from test_cli import TWO, one_line, program, run, unwrapped

from kafka_assign import Member, assign
from kafka_assign.groups.build import GroupError
from kafka_assign.groups.assignment import SUMMARY_KEYS, Assignment
from kafka_assign.reports.comparison import compare
from kafka_assign.samples import demo_group
from kafka_assign.cli.changes import FORMS, Change, find_members, parse_change
from kafka_assign.life.rolling import looks_replaced, restart_in_turn
from kafka_assign.cli.conditions import FIGURES
from kafka_assign.groups.group import Group
from kafka_assign.life.live import LiveGroup
from kafka_assign.groups.notes import Note
from kafka_assign.protocol.ownership import CLAIM_RULES
from kafka_assign.assignors.base import ForecastError
from kafka_assign.assignors.registry import resolve
from kafka_assign.snapshot import read_groups

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
CHOSEN = ["range", "roundrobin", "fair"]
STRATEGIES = [word for name in CHOSEN for word in ("-s", name)]


def apply(group, changes):
    """The group after `changes`, in their order."""
    for change in changes:
        group = change.applied(group)
    return group


def owners_by_name(group):
    """Partition -> id of who validly owns it, for those that somebody owns."""
    return {tuple(group.at(at)): group.members[owner] for at, owner in enumerate(group.previous.tolist()) if owner >= 0}


def owned_by_leavers(group, changes):
    """How many partitions the members that leave own when they do."""
    total = 0
    for change in changes:
        if change.kind == "leave":
            total += list(owners_by_name(group).values()).count(change.name)
        group = change.applied(group)
    return total


def lag_by_name(group):
    """Partition -> its lag, or nothing."""
    return {} if group.lag is None else {tuple(group.at(at)): lag for at, lag in enumerate(group.lag.tolist())}


def known_of(member):
    """All that is known of a member but its topics and claims."""
    return {key: value for key, value in vars(member).items() if key not in ("topics", "owned")}


@st.composite
def changes_of(draw, group, most=5):
    """Changes that can be made to a group, one after the other."""
    found = []
    for _ in range(draw(st.integers(0, most))):
        topics = st.lists(st.sampled_from(group.topics), unique=True).map(tuple) if group.topics else st.just(())
        new = [name for name in NAMES if name not in group.members]
        topic = draw(st.sampled_from([name for name in NAMES if name.isascii() or name in group.topics]))
        count = st.integers(0, 9).map(lambda more, now=group.topic_counts.get(topic, 0): now + more)
        kinds = {"partitions": st.builds(Change, st.just("partitions"), st.just(topic), count=count)}
        if new:
            kinds["join"] = st.builds(Change, st.just("join"), st.sampled_from(new), topics)
        if group.members:
            present = st.sampled_from(group.members)
            kinds |= {"leave": st.builds(Change, st.just("leave"), present),
                      "subscribe": st.builds(Change, st.just("subscribe"), present, topics)}
        found.append(draw(kinds[draw(st.sampled_from(sorted(kinds)))]))
        group = found[-1].applied(group)
    return found


def as_read(group, changes):
    """The changes, with one after them if nobody else reads a topic that got partitions."""
    after = apply(group, changes)
    alone = [c.name for c in changes if c.kind == "partitions" and not len(after.subscribers(c.name))]
    if alone and after.members:
        return [*changes, Change("subscribe", after.members[0], tuple(after.topics))]
    assume(set(alone) <= {*group.topics})
    return changes


groups_and_changes = groups().flatmap(lambda group: st.tuples(st.just(group), changes_of(group)))


def as_typed(change):
    """A change in the words of the command line."""
    text = {"leave": change.name, "partitions": f"{change.name}={change.count}"}.get(
        change.kind, f"{change.name}:{','.join(change.topics)}")
    return f"--{change.kind}={text}"


# --- in Python ---------------------------------------------------------------------------------------------------

@given(groups(), st.data())
def test_who_leaves_takes_only_the_own_partitions_along(group, data):
    gone = data.draw(st.lists(st.sampled_from(group.members), unique=True)) if group.members else []
    after = group.leave(*gone)
    assert after.members == tuple(name for name in group.members if name not in gone)
    assert owners_by_name(after) == {at: who for at, who in owners_by_name(group).items() if who not in gone}
    assert lag_by_name(after) == lag_by_name(group)
    assert [known_of(member) for member in after.details] == [
        known_of(member) for member in group.details if member.id not in gone]


@given(groups(), st.data())
def test_who_joins_disturbs_nobody(group, data):
    topics = data.draw(st.lists(st.sampled_from(group.topics), unique=True)) if group.topics else []
    after = group.join("newcomer", topics)
    assert set(after.members) == {*group.members, "newcomer"}
    assert owners_by_name(after) == owners_by_name(group) and lag_by_name(after) == lag_by_name(group)
    assert set(after.details[after.members.index("newcomer")].topics) == set(topics)


def consumers_by_name(group):
    """Partition -> who may still consume it: a member's id, or a number for several."""
    names = dict(enumerate(group.members))
    return {tuple(group.at(at)): names.get(who, who) for at, who in enumerate(group.columns.consumer.tolist())}


@given(groups(), st.data())
def test_others_may_still_consume_what_they_claim(group, data):
    before = consumers_by_name(group)
    assert consumers_by_name(group.join("newcomer", group.topics)) == before
    gone = data.draw(st.lists(st.sampled_from(group.members), unique=True)) if group.members else []
    claimed = {pair for member in group.details if member.id in gone for pair in member.owned}
    after = consumers_by_name(group.leave(*gone))
    assert all(after[pair] == before[pair] for pair in before if pair not in claimed)
    grown = consumers_by_name(group.with_partitions({name: count + 1 for name, count in group.topic_counts.items()}))
    assert all(grown[pair] == before[pair] for pair in before)


@pytest.mark.parametrize("rule", CLAIM_RULES)
@given(data=st.data())
def test_who_joins_disturbs_nobody_that_sends_user_data(rule, data):
    group, _, _ = data.draw(sending_groups(rule))
    decoded, after = group.decode_claims(rule), group.join("newcomer", []).decode_claims(rule)
    assert owners_by_name(after) == owners_by_name(decoded) == owners_by_name(decoded.join("newcomer", []))
    assert consumers_by_name(after) == consumers_by_name(decoded) == consumers_by_name(decoded.join("newcomer", []))


@given(groups(), st.data())
def test_who_reads_something_else_gives_up_what_it_reads_no_more(group, data):
    assume(group.members)
    who = data.draw(st.sampled_from(group.members))
    topics = data.draw(st.lists(st.sampled_from(group.topics), unique=True)) if group.topics else []
    after = group.subscribe(who, topics)
    assert owners_by_name(after) == {
        (topic, number): owner for (topic, number), owner in owners_by_name(group).items()
        if owner != who or topic in topics}
    assert [known_of(member) for member in after.details] == [known_of(member) for member in group.details]
    again = after.subscribe(who, after.topics)                   # what was given up does not come back
    assert owners_by_name(again) == owners_by_name(after)


@given(groups(), st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9)))
def test_other_numbers_of_partitions(group, numbers):
    after = group.with_partitions(numbers)
    count = dict(zip(after.topics, after.partitions.tolist()))
    assert count == dict(zip(group.topics, group.partitions.tolist())) | numbers
    there = lambda found: {(topic, number): what for (topic, number), what in found.items() if number < count[topic]}
    assert owners_by_name(after) == there(owners_by_name(group))
    if group.lag is not None:
        before = lag_by_name(group)
        assert lag_by_name(after) == {at: before.get(at, -1) for at in lag_by_name(after)}


@given(groups_and_changes)
def test_changes_in_their_order(both):
    group, changes = both
    one_by_one = group
    for change in changes:
        one_by_one = {
            "leave": lambda g, c: g.leave(c.name), "join": lambda g, c: g.join(c.name, c.topics),
            "subscribe": lambda g, c: g.subscribe(c.name, c.topics),
            "partitions": lambda g, c: g.with_partitions({c.name: c.count})}[change.kind](one_by_one, change)
    after = apply(group, changes)
    assert (after.details, after.topics, after.previous.tolist()) == (
        one_by_one.details, one_by_one.topics, one_by_one.previous.tolist())
    assert apply(group, []) is group


@given(st.text(min_size=1).filter(lambda name: name.isprintable() and not name.isdigit()),
       st.lists(st.text("abcXYZ019._-", min_size=1), max_size=4), st.integers(0, 10**17))
def test_changes_as_text(name, topics, count):
    assert parse_change("leave", name) == Change("leave", name)
    assert parse_change("partitions", f"{name}={count}") == Change("partitions", name, count=count)
    for kind in ("join", "subscribe"):
        assert parse_change(kind, f"{name}:{','.join(topics)}") == Change(kind, name, tuple(topics))


@pytest.mark.parametrize("kind, text", [
    ("leave", ""), ("join", "C3"), ("join", "0"), ("join", "-1"), ("join", "12345"), ("join", "²"), ("join", "1.5"),
    ("join", ":t"), ("join", "C3:,t"), ("join", "C3:t,"), ("subscribe", ""),
    ("partitions", "t"), ("partitions", "t="), ("partitions", "=4"), ("partitions", "t=4.5"), ("partitions", "t=٤"),
    ("partitions", "t=1e3")])
def test_text_that_is_no_change(kind, text):
    with pytest.raises(typer.BadParameter, match="must"):
        parse_change(kind, text)


def test_a_static_member_that_leaves_is_missed_only_later(tmp_path):
    members = [Member("m1", ["t"], owned=[("t", 0)], instance_id="i1"), Member("m2", ["t"], owned=[("t", 1)])]
    path = tmp_path / "group.json"
    path.write_text(Group({"t": 2}, members, name="g").to_json())
    words = ("m1: a static member that stops (unless a Java consumer is closed with LEAVE_GROUP) keeps its partitions, "
             "unconsumed, until session.timeout.ms")
    for command in ("compare", "assign -s fair"):
        assert words in unwrapped(run(f"{command} {path} --leave m1").out)
        assert "static member that stops" not in unwrapped(run(f"{command} {path} --leave m2").out)
    [notes] = [one["notes"] for one in json.loads(run(f"compare {path} --leave m1 --format json").out)]
    assert any(note.startswith(words) and "even with another subscription" in note for note in notes)
    path.write_text(Group({"t": 2}, members, name="g", type="consumer").to_json())
    done = unwrapped(run(f"compare {path} --leave m1").out)
    assert "unless it subscribes to other topics (after a crash, the broker rejects it" in done


def test_a_gate_on_a_group_with_missing_members_stops():
    """--state counts one more member than --describe shows: it is idle, and takes partitions if another one leaves."""
    members = [Member(name, ["t"], owned=[("t", at)]) for at, name in enumerate("abc")]
    group = Group({"t": 3}, members, name="g", notes=[Note("members-missing", 1)])
    done = run("compare - -s range --leave a --fail-if moved>0", group.to_json())
    assert done.code == 3
    assert "g: moved>0 cannot be judged: members: 1 not shown in the input; add the output of --members" in done.err
    known = group.replace(lag={"t": [0, 0, 0]}).to_json()
    assert run("compare - -s range --leave a --fail-if lag_total>0", known).code == 0


def test_a_static_member_leaves_and_stays_known_elsewhere():
    members = [Member(f"m{i}", ["t"], owned=[("t", i)], generation=3, instance_id=f"i{i}", host="/10.0.0.1", rack="r")
               for i in range(3)]
    after = Group({"t": 3}, members, partition_racks={"t": [["r"]] * 3}).leave("m1")
    assert after.details == (members[0], members[2]) and after.columns.racks is not None
    assert after.previous.tolist() == [0, -1, 1]


def test_offsets_go_along():
    offsets = {"committed": {"t": [5, -1]}, "begin": {"t": [0, 2]}, "end": {"t": [9, 9]}}
    group = Group({"t": 2}, {"a": ["t"]}, **offsets, reset="earliest")
    assert group.leave("a").lag.tolist() == [4, 7]
    assert group.with_partitions(t=3).lag.tolist() == [4, 7, -1]


# --- on the command line -----------------------------------------------------------------------------------------

def shown_by(words, text=None):
    """The one group of a comparison as JSON."""
    done = run(["compare", *words, *STRATEGIES, "--format", "json"], text)
    assert done.code == 0, done.err
    [group] = json.loads(done.out)
    return group


def same(group, shown, changes):
    """Whether what was shown is what Python says."""
    after = compare(apply(group, changes), CHOSEN)
    assert shown["rows"] == [compare(group, []).current.summary(), *after.rows]
    assert shown["changes"] == [change.document() for change in changes]
    assert (shown["members"], shown["partitions"]) == (len(group.members), group.columns.size)


@given(groups_and_changes)
def test_the_command_line_says_what_python_says(both):
    group, changes = both[0], as_read(*both)
    same(group, shown_by(["-", *map(as_typed, changes)], group.to_json()), changes)


@given(changes_of(demo_group()))
def test_the_same_for_the_demo(changes):
    changes = as_read(demo_group(), changes)
    same(demo_group(), shown_by(["--demo", *map(as_typed, changes)]), changes)


def test_order_matters_within_and_across_options():
    again = "--leave anna --join anna:clicks"
    assert run(f"compare --demo {again}").code == 0
    assert run("compare --demo --join anna:clicks --leave anna").code == 2
    last = shown_by("--demo --partitions clicks=8 --partitions clicks=10".split())
    assert [change["partitions"] for change in last["changes"]] == [8, 10]
    assert {row["partitions"] for row in last["rows"][1:]} == {16}
    new = "--partitions orders=2 --join web-1:orders -s fair --leave anna --subscribe web-1:orders,clicks"
    assert [change["change"] for change in shown_by(f"--demo {new}".split())["changes"]] == [
        "partitions", "join", "leave", "subscribe"]
    assert run("compare --demo --join web-1:orders --partitions orders=2").code == 2


def test_tables_say_what_was_changed(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    head, _, table = run("compare --demo -s fair --leave anna --partitions clicks=8").out.partition("\n\n")
    assert head.splitlines()[-2:] == ["change 1     anna leaves", "change 2     clicks has 8 partitions"]
    table, _, notes = table.partition("\n\n")
    assert "adding partitions cannot be undone" in unwrapped(notes)
    rows = [line.replace(" (runs now)", "").split()[:2] for line in table.splitlines()[-3:]]
    assert rows == [["current", "4"], ["range", "3"], ["fair", "3"]]
    assert "change       anna leaves" in run("compare --demo -s fair --leave anna").out
    assert "change" not in run("compare --demo -s fair").out


@given(groups_and_changes, st.sampled_from(["range", "sticky", "x", ""]))
def test_a_sentence_says_what_changes_do(both, runs):
    """Under the strategy that the group runs; if that is not known, only whether members are too many for any."""
    group, changes = both[0].replace(strategy=runs), as_read(*both)
    typed = ["compare", "-", "-s", "fair", *map(as_typed, changes)]
    [answer] = json.loads(run([*typed, "--format", "json"], group.to_json()).out)
    words = unwrapped(run(typed, group.to_json()).out).partition("in short, ")[2]
    rows = [row for row in answer["rows"][1:] if row["strategy"] == answer["running"]]
    if words.startswith("under any assignor"):
        after = apply(group, changes)
        idle = len(after.members) - sum(after.topic_counts.values())
        assert not rows and idle > 0 and f"at least {idle} of {len(after.members)} members would be idle" in words
        return
    assert bool(words) == bool(changes and rows and rows[0]["members"])
    if words:
        numbers = re.match(r"under (\S+): (.+?) partitions? would move to another member"
                           r"(?:, (.+?) partitions? without an owner would get one)?"
                           r", (.+?) partitions? of remaining members would pause"
                           r"(?: .besides the (.+?) of leaving members.)?"
                           r"(?:, (.+?) of [0-9,]+ members? would be idle)?"
                           r"(?:; the largest lag of a member would go from (\S+) to (\S+))?", words).groups()
        now, [row] = answer["rows"][0], rows
        name, moved, placed, paused, left, idle, *lags = [text and text.replace(",", "") for text in numbers]
        assert (name, int(moved), int(placed or 0), int(paused)) == tuple(
            row[key] for key in ("strategy", "moved", "placed", "paused"))
        assert int(left or 0) == owned_by_leavers(group, changes)
        after = apply(group, changes)
        assert int(idle or 0) == [*map(len, assign(after, name).values())].count(0)
        known = None not in (now["lag_max"], row["lag_max"]) and not now["lag_unknown"]
        known = known and now["lag_max"] != row["lag_max"]
        assert lags == ([str(now["lag_max"]), str(row["lag_max"])] if known else [None, None])


def test_a_table_lists_the_moves_that_were_asked_for():
    def strategies(line):
        return {words.split()[0] for words in run(line).out.split("\n\n")[-1].splitlines()[1:]}
    assert strategies("compare --demo --leave anna --moves") == {"range"}
    assert strategies("compare --demo --leave anna --moves -s fair -s lag") == {"fair", "lag"}
    assert {"range", "fair"} < {row["strategy"] for row in json.loads(
        run("compare --demo --leave anna --moves --format json").out)[0]["rows"] if row.get("moves")}


def test_moves_count_from_who_is_still_there():
    [first, *_] = shown_by(["--demo", "--moves", "--leave", "anna"])["rows"][1:]
    assert first["placed"] == sum(move["from"] is None for move in first["moves"]) == 4


UNEQUAL = Group({"orders": 4, "payments": 4}, {
    "billing-1": ["orders", "payments"], "billing-2": ["orders", "payments"], "billing-3": ["orders", "payments"],
    "newsletter": ["orders"]}, name="shop")


@pytest.mark.parametrize("line, hint", {
    "--leave billing-4": "--leave: a member that leaves must belong to the group (got 'billing-4'); did you mean",
    "--leave x": "must belong to the group (got 'x'); its members are billing-1, billing-2, billing-3, newsletter",
    "--leave bill": "must be named unambiguously (got 'bill', which may be billing-1, billing-2, billing-3)",
    "--leave ''": "must have the form MEMBER (got '')",
    "--join billing-1:orders": "must not be in the group already (got 'billing-1')",
    "--join billing-4:order": "--join: a topic must be known to the group (got 'order'); did you mean 'orders'?",
    "--join billing-4": "MEMBER:TOPIC,TOPIC or NUMBER (got 'billing-4')",
    "--join 2": "--join: members that join must be given topics, by --like MEMBER or",
    "--join 2 --like x": "--join: the member that new members are like must belong to the group (got 'x')",
    "--like billing-1": "--like: it must come with --join N",
    "--join 1 --like bill": "which may be billing-1, billing-2, billing-3)", "--leave 'x*'": "(got 'x*')",
    "--subscribe 'ews*:orders'": "a member that subscribes must belong to the group (got 'ews*')",
    "--subscribe '*:order'": "--subscribe: a topic must be known to the group (got 'order'); did you mean 'orders'?",
    "--partitions orders=3": "topic 'orders' must not lose partitions, because Kafka cannot remove them (got 3, ",
    "--partitions orders=8 --partitions orders=6": "(got 6, it has 8)",
    "--subscribe newslettre:orders": "did you mean 'newsletter'?",
    "--subscribe newsletter:payment": "did you mean 'payments'?",
    "--partitions orders": "TOPIC=NUMBER (got 'orders')", "--partitions orders=-1": "from 0 on (got -1)",
    "--partitions orders=99999999": "at most 16,777,216 partitions",
    "--leave newsletter --leave newsletter": "(got 'newsletter')", "--group shpo --leave newsletter": "mean 'shop'?",
    "--leave newsletter -s rnage": "did you mean 'range'?", "--leave '\x1b[2J'": "(got '\\x1b[2J')",
    "--fail-if mvoed>10": "did you mean 'moved'?", "--fail-if moved": "one of >= <= == != > <",
    "--fail-if moved=10": "moved>10 (got 'moved=10')", "--fail-if moved>many": "with a number (got 'many')",
    "--fail-if balanced==1": "with yes or no", "--fail-if strategy==fair": "(got 'strategy')",
    "--fail-if moved>nan": "(got 'nan')"}.items())
def test_wrong_use(line, hint):
    done = run(f"compare - {line.replace('>', chr(92) + '>')}", UNEQUAL.to_json())
    assert (done.code, done.out) == (2, "") and one_line(done.err) and hint in done.err


def test_the_shell_completes_strategies_among_changes():
    words = "kafka-assign compare --demo --leave anna --join a:clicks --strategy ro"
    done = program("", _KAFKA_ASSIGN_COMPLETE="complete_bash", COMP_CWORD=str(len(words.split()) - 1), COMP_WORDS=words)
    assert done.out.split() == ["roundrobin"]


def test_changes_need_one_group():
    done = run("compare - --leave etl-3d14", TWO)
    assert (done.code, done.out) == (2, "") and one_line(done.err) and "(got billing, search)" in done.err
    done = run("compare - --leave etl-3d14 -g billing -s fair --format json", TWO)
    assert [row["members"] for row in json.loads(done.out)[0]["rows"]] == [2, 1]


def test_a_new_topic_that_somebody_reads():
    done = run("compare --demo -s range --partitions orders=24 --join web:orders")
    assert (done.code, done.err) == (0, "")


# --- conditions --------------------------------------------------------------------------------------------------

SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne}


@st.composite
def conditions(draw):
    """A figure, an operator, a value, and how they may be written."""
    key = draw(st.sampled_from(FIGURES))
    if key == "balanced":
        sign, value = draw(st.sampled_from(["==", "!="])), draw(st.booleans())
        text = draw(st.sampled_from(["yes", "true", "Yes"] if value else ["no", "false", "No"]))
    else:
        sign = draw(st.sampled_from(sorted(SIGNS)))
        value = draw(st.integers(-1, 16) | st.sampled_from([2.5, 6553, 10**20]))
        text = str(value)
    gap = draw(st.sampled_from(["", " "]))
    return SimpleNamespace(key=key, sign=sign, value=value, text=f"{key}{gap}{sign}{gap}{text}")


def holds(condition, row):
    return row[condition.key] is not None and SIGNS[condition.sign](row[condition.key], condition.value)


def undecided(condition, row):
    """Whether the lag of members could be larger than shown, so that the condition could be the other way round."""
    return condition.key in ("lag_min", "lag_max", "lag_total") and len({
        holds(condition, row | {condition.key: row[condition.key] + more}) for more in (0, 1, 7, 10**21)}
        | {holds(condition, row | {condition.key: max(row[condition.key], condition.value)})}) > 1


@given(st.lists(conditions(), min_size=1, max_size=3), changes_of(demo_group(), most=2))
def test_fails_exactly_when_a_condition_holds(rules, changes):
    changes = as_read(demo_group(), changes)
    words = ["--demo", *map(as_typed, changes)]
    rows = compare(apply(demo_group(), changes), CHOSEN).rows
    done = run(["compare", *words, *STRATEGIES, "--format", "json", *(f"--fail-if={rule.text}" for rule in rules)])
    found = [(rule, row) for row in rows for rule in rules if holds(rule, row)]
    unknown = [rule for rule in rules if any(row[rule.key] is None or row["lag_unknown"] and undecided(rule, row)
                                             for row in rows)]
    found = [(rule, row) for rule, row in found if not (row["lag_unknown"] and undecided(rule, row))]
    assert done.code == (3 if unknown else bool(found))
    assert json.loads(done.out)[0]["rows"][1:] == rows
    told = [line for line in done.err.splitlines() if "--fail-if holds" in line]
    assert len(told) == bool(found)
    for rule, row in found[:1]:
        value = {True: "yes", False: "no"}.get(row[rule.key]) if rule.key == "balanced" else f"{row[rule.key]:,}"
        assert f"demo under {row['strategy']}: {rule.key} is {value} ({rule.text})" in told[0]


def test_current_is_not_judged():
    assert run("compare --demo -s fair --fail-if 'balance_score>0'").code == 0
    done = run("compare --demo -s fair -s range --fail-if 'balance_score>0'")
    assert done.code == 1 and one_line(done.err)
    assert done.err == "kafka-assign: --fail-if holds: demo under range: balance_score is 8 (balance_score>0)\n"


def test_every_figure_can_be_judged_and_nothing_else():
    assert set(SUMMARY_KEYS) - set(FIGURES) == {"strategy", "inferred"}


def test_conditions_on_several_groups():
    done = run("compare - -s fair -s range --fail-if 'lag_max>=2900' --fail-if 'partitions<2' --format csv", TWO)
    last = done.err.splitlines()[-1]
    assert done.code == 1 and last.count("billing under ") == last.count("search under ") == 2
    assert "billing under range: lag_max is 2,900 (lag_max>=2900)" in last
    assert run("compare - -g billing -s fair --fail-if 'members==3'", TWO).code == 0


QUIET = {"name": "quiet", "topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"]}]}
EMPTY = {"name": "empty", "topics": {"t": 1}, "members": [], "lag": {"t": [568_990]}}


def test_a_figure_that_is_not_known_does_not_pass():
    done = run("compare - -s fair -s range --fail-if 'lag_max!=0'", json.dumps(QUIET))
    assert (done.code, done.err) == (3, "quiet: lag_max!=0 cannot be judged: lag_max is not known\n")
    done = run("compare - -s fair --fail-if 'lag_max!=0' --fail-if 'placed==2'", json.dumps(QUIET))
    assert done.code == 3 and "quiet under fair: placed is 2 (placed==2)" in done.err           # 3 wins over 1
    both = json.dumps(QUIET) + "\n" + json.dumps(QUIET | {"name": "known", "lag": {"t": [1, 2]}})
    done = run("compare - -s fair --fail-if 'lag_max>9'", both)
    assert (done.code, done.err) == (3, "quiet: lag_max>9 cannot be judged: lag_max is not known\n")


@pytest.mark.parametrize("rule", ["max_load<1", "min_load==0", "balanced==no", "moved<9", "lag_max>=0", "kept==0"])
def test_a_figure_that_does_not_apply_does_not_hold(rule):
    for options in ([], ["-s", "fair"]):
        done = run(["compare", "-", "--fail-if", rule, *options], json.dumps(EMPTY))
        assert (done.code, done.err) == (0, ""), rule


def test_what_is_known_of_a_group_without_members_is_judged():
    done = run("compare - --fail-if 'lag_total>0' --fail-if 'unassigned>0'", json.dumps(EMPTY))
    assert done.code == 1 and "lag_total is 568,990" in done.err and "unassigned is 1" in done.err


def test_conditions_without_a_strategy_concern_the_one_that_the_group_runs():
    done = run("compare --demo --leave carl --fail-if 'moved>1'")
    assert done.code == 0                                   # round robin and others move more, range moves none
    done = run("compare --demo --leave anna --fail-if 'moved>1'")
    assert done.code == 1 and done.err.count(" under ") == 1 and "demo under range: moved is 6" in done.err
    assert run("compare --demo --leave anna -s sticky --fail-if 'moved>1'").code == 0


@pytest.mark.parametrize("runs", ["", "lag", "com.acme.TheirAssignor"])
def test_conditions_on_a_strategy_that_cannot_be_computed(runs):
    one = QUIET | {"strategy": runs}
    done = run("compare - --fail-if 'moved>1'", json.dumps(one))
    assert (done.code, done.out) == (2, "") and one_line(done.err) and "--fail-if without --strategy: " in done.err
    assert run("compare - -s fair --fail-if 'moved>1'", json.dumps(one)).code == 0
    two = "\n".join(map(json.dumps, [one, QUIET | {"name": "known", "strategy": "range"}, EMPTY]))
    done = run("compare - --fail-if 'placed>1'", two)
    assert done.code == 3 and "quiet: --fail-if cannot be judged: " in done.err and "known under range" in done.err
    assert "empty" not in done.err


def test_headings_as_shown_are_figures():
    assert run("compare --demo -s fair --fail-if 'lag max>1'").code == 1
    assert run("compare --demo -s fair --fail-if 'balance  score > 0'").code == 0
    assert run("compare --demo -s fair --fail-if 'lag mix>1'").code == 2


# --- members as people name them ---------------------------------------------------------------------------------

THREE = [Member("web-1-5c76aa", ["t"], client_id="web-1"), Member("web-1-77aa00", ["t"], client_id="web-1"),
         Member("etl-a-3d1400", ["t"], client_id="java", instance_id="etl-a"), Member("web", ["t"], client_id="x")]
NAMED = Group({"t": 4}, THREE, name="orders")


@pytest.mark.parametrize("text, found", {
    "web-1-5c76aa": 0, "web-1-5": 0, "etl-a": 2, "java": 2, "e": 2, "web": 3, "x": 3}.items())
def test_a_member_by_any_of_its_names(text, found):
    assert find_members(NAMED, text, "a member") == [THREE[found].id]
    group = shown_by(["-", "--leave", text, "--subscribe", f"{THREE[1].id}:"], NAMED.to_json())
    assert [change["member"] for change in group["changes"]] == [THREE[found].id, THREE[1].id]


def test_ambiguous_names_name_the_candidates():
    for text in ("web-1", "w"):
        done = run(["compare", "-", "--leave", text], NAMED.to_json())
        assert done.code == 2 and "web-1-5c76aa, web-1-77aa00" in done.err and one_line(done.err)
    many = Group({"t": 1}, {f"m{number:02}": ["t"] for number in range(40)})
    assert "m00, m01, m02, m03, m04 and 35 more)" in run("compare - --leave m", many.to_json()).err


@given(st.lists(st.sampled_from(["a", "b", "ab", "*", "ba*", "[a]"]), unique=True, min_size=1, max_size=5),
       st.text("ab*", min_size=1, max_size=3).filter(lambda text: "*" in text))
def test_patterns(names, text):
    group = Group({"t": 1}, dict.fromkeys(names, ["t"]))
    fits = [name for name in group.members if fits_pattern(name, text)]
    if text in names:
        fits = [text]                                                   # a member may have such a name
    done = run(["compare", "-", "--leave", text, "-s", "range", "--format", "json"], group.to_json())
    assert done.code == (0 if fits else 2), done.err
    if fits:
        [shown] = json.loads(done.out)
        assert [change["member"] for change in shown["changes"]] == fits
        assert shown["rows"][1]["members"] == len(names) - len(fits)


def fits_pattern(name, pattern):
    """Whether a name fits a pattern, letter by letter."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(fits_pattern(name[cut:], pattern[1:]) for cut in range(len(name) + 1))
    return name[:1] == pattern[0] and fits_pattern(name[1:], pattern[1:])


def test_members_that_are_counted():
    two = shown_by(["-", "--join", "2"], NAMED.to_json())
    ids = [change["member"] for change in two["changes"]]
    assert all(re.fullmatch(rf"web-1-{UUID}", name) for name in ids) and len({*ids}) == 2
    assert {tuple(change["topics"]) for change in two["changes"]} == {("t",)}
    assert {row["members"] for row in two["rows"]} == {4, 6}
    again = shown_by(["-", "--join", "1", "--join", "1"], NAMED.to_json())
    assert again["rows"] == two["rows"] and again["changes"] == two["changes"]
    of_range, of_fair = [line for line in two["notes"] if "made up" in line]
    assert "range, roundrobin: " in of_range and "all 10 places" in of_range      # the static one comes first
    assert "fair: " in of_fair and "all 15 places" in of_fair


def test_like_another_member():
    mixed = NAMED.with_partitions(u=2).subscribe("web", ["u"])
    done = run("compare - --join 1", mixed.to_json())
    assert done.code == 2 and "(got members with different topics)" in done.err
    [change] = shown_by(["-", "--join", "1", "--like", "x"], mixed.to_json())["changes"]
    assert change["topics"] == ["u"]


def test_partitions_of_a_member_that_leaves_stop_too(monkeypatch):
    """They are placed, not paused, so a note counts them; a column of zeros says that nothing else stops."""
    members = {"a": ["t"], "b": ["t"], "c": ["t"]}
    group = Group({"t": 6}, members, owned={name: [("t", 2 * at), ("t", 2 * at + 1)] for at, name in enumerate("abc")},
                  strategy="cooperative-sticky")
    monkeypatch.setenv("COLUMNS", "80")
    table = run("compare - -s cooperative-sticky --leave c", group.to_json()).out
    said = " ".join(table.split())
    assert "paused does not count the 2 partitions of leaving members" in said
    assert "cooperative-sticky: paused assumes that the members list only cooperative assignors" in said
    assert re.search(r"(?m)^cooperative-sticky +2 +0$", table)               # placed, paused
    assert "paused" not in run("compare - -s range", Group({"t": 6}, members).to_json()).out


def test_what_ifs_on_assign():
    line = "assign - -s range --leave web-1* --join 1 --partitions t=6 --format json"
    done = run(line, NAMED.to_json())
    answer = json.loads(done.out)
    made = [change["member"] for change in answer["changes"] if change["change"] == "join"]
    after = NAMED.leave("web-1-5c76aa", "web-1-77aa00").join(made[0], ["t"]).with_partitions(t=6)
    expected = {name: [list(one) for one in owned] for name, owned in assign(after, "range").items()}
    assert answer["assignment"] == expected and len(answer["changes"]) == 4 and "made up" in answer["notes"][0]
    table = run(line.replace("json", "table"), NAMED.to_json()).out
    assert "made up" in table and "change 4     t has 6 partitions\n" in table
    assert run("assign - -s range --partitions t=3", NAMED.to_json()).code == 2


def test_what_is_said_of_changes():
    assert str(Change("partitions", "t", count=1)) == "t has 1 partition"
    assert str(Change("subscribe", "a")) == "a subscribes to nothing"
    assert FORMS.keys() == {"leave", "join", "subscribe", "partitions"}


# --- what the input does not say is not judged -------------------------------------------------------------------

REBALANCING = "Warning: Consumer group 'billing' is rebalancing.\n"


STATE = """
GROUP    COORDINATOR (ID)  ASSIGNMENT-STRATEGY  STATE   #MEMBERS
billing  k:9092 (1)        range                Stable  3
"""


def rows_of_billing(*rows):
    """A table of these rows, each topic, partition, lag and member."""
    return printed(TWO.splitlines()[0].split(), *(
        ["billing", topic, partition, 0 if lag != "-" else "-", lag, lag, member, "/h", "c"]
        for topic, partition, lag, member in rows))


@pytest.mark.parametrize("condition, code", [("moved>1000", 3), ("unassigned>0", 3), ("lag_total>9999999", 0)])
def test_a_group_that_was_rebalancing_is_not_judged(condition, code):
    table = rows_of_billing(("orders", 0, 5, "a"), ("orders", 1, 7, "b"))
    assert run(["compare", "-", "-s", "range", "--fail-if", condition], table).code == 0
    done = run(["compare", "-", "-s", "range", "--fail-if", condition], REBALANCING + table)
    assert done.code == code
    assert ("was rebalancing when it was captured (rebalancing)" in done.err) is (code == 3)


@pytest.mark.parametrize("condition, code", [
    ("lag_max>6", 1), ("lag_max>=7", 1), ("lag_max>7", 3), ("lag_max<8", 3), ("lag_max<=6", 0), ("lag_total==7", 3),
    ("lag_total!=6", 1), ("lag_min<9", 3), ("lag_unknown>1", 0), ("moved>9", 0)])
def test_a_partly_unknown_lag_is_a_lower_bound(condition, code):
    table = rows_of_billing(("orders", 0, 7, "a"), ("orders", 1, "-", "a"))
    done = run(["compare", "-", "-s", "range", "--fail-if", condition], table)
    assert done.code == code, done.err
    assert ("billing: " in done.err and "the lag of 1 partition is not known" in done.err) is (code == 3)


def test_a_topic_without_a_known_subscriber():
    table = rows_of_billing(("orders", 0, 1, "a"), ("clicks", 0, 1, "c"), ("clicks", 1, 1, "b")) + STATE
    done = run(["compare", "-", "-s", "fair", "--leave", "a", "--fail-if", "moved>9"], table)
    assert done.code == 3 and "some topics have no known subscriber after the changes" in done.err
    assert "no other member is known to subscribe to orders (subscriptions are inferred): give " \
           "--subscribe MEMBER:TOPIC,... with all topics of a member, orders included" in done.err
    done = run(["compare", "-", "-s", "fair", "--leave", "a", "--subscribe", "b:orders,clicks"], table)
    assert done.code == 0 and "known to subscribe" not in done.err


@pytest.mark.parametrize("condition, code", {
    "moved>9": 3, "moved>=0": 3, "unassigned>0": 3, "balanced==no": 3, "lag_max>1": 3, "lag_total>9": 0,
    "members>2": 1, "partitions>9": 0}.items())
def test_conditions_that_depend_on_unknown_subscriptions(condition, code):
    """They are not judged, and not said to hold either, unless the user says what the members subscribe to."""
    table = rows_of_billing(("orders", 0, 1, "a"), ("clicks", 0, 1, "c"), ("clicks", 1, 1, "b")) + STATE
    gate = ["compare", "-", "-s", "range", "--fail-if", condition]
    done = run(gate, table)
    assert done.code == code and one_line(done.err) is (code > 0), done.err
    assert ("kafka-assign capture" in done.err and "--subscribe '*:" in done.err) is (code == 3)
    assert ("holds" in done.err) is (code == 1)
    done = run([*gate, "--subscribe", "*:orders,clicks"], table)
    assert done.code in (0, 1) and "cannot be judged" not in done.err
    assert "every member subscribes to orders, clicks" in done.out and "cannot have given" not in done.out


@pytest.mark.parametrize("condition, code", {"moved>9": 3, "paused>9": 3, "down>9": 3, "rebalances>9": 0}.items())
def test_restarts_that_depend_on_unknown_subscriptions(condition, code):
    table = rows_of_billing(("orders", 0, 1, "a"), ("clicks", 0, 1, "c"), ("clicks", 1, 1, "b")) + STATE
    assert run(["compare", "-", "-s", "range", "--rolling", "--fail-if", condition], table).code == code


def test_all_members_subscribe_at_once():
    """It is one change of a group whose subscriptions are known; else, the group as it is has them, too."""
    group = Group({"t": 2, "u": 2}, {"app-1": ["t"], "app-2": ["u"], "b": ["t"]}, name="g", strategy="range",
                  owned={"app-1": [("t", 0)], "app-2": [("u", 0), ("u", 1)], "b": [("t", 1)]})
    [found] = json.loads(run(["compare", "-", "--subscribe", "*:t,u", "--format", "json"], group.to_json()).out)
    assert found["changes"] == [{"change": "subscribe", "member": "*", "topics": ["t", "u"]}]
    assert (found["rows"][1]["max_load"], found["rows"][0]["topic_gap"]) == (2, 0)
    told = json.loads(run(["assign", "-", "-s", "range", "--subscribe", "*:t,u", "--format", "json"],
                          group.to_json()).out)
    assert told["assignment"] == {id: [list(one) for one in own]
                                  for id, own in assign(group.subscribe(group.members, ["t", "u"]), "range").items()}
    [found] = json.loads(run(["compare", "-", "--subscribe", "app-*:t,u", "--format", "json"], group.to_json()).out)
    assert [change["member"] for change in found["changes"]] == ["app-1", "app-2"]
    text = rows_of_billing(("orders", 0, 1, "a"), ("clicks", 0, 1, "c"), ("clicks", 1, 1, "b")) + STATE
    [found] = json.loads(run(["compare", "-", "--subscribe", "*:orders,clicks", "--format", "json"], text).out)
    assert [note["kind"] for note in found["inferred_notes"] if "subscriptions" in note["kind"]] == [
        "subscriptions-certain"]
    assert found["rows"][0]["topic_gap"] == 1 and read_groups(text)["billing"].topics == ("clicks", "orders")


@pytest.mark.parametrize("options, words", [
    (["--partitions", "click=24"], "did you mean 'clicks'?"), (["--partitions", "a b=24"], "letters, digits, dots"),
    (["--partitions", "click=24", "--leave", "anna"], "a topic must have a subscriber"),
    (["--join", "2:orders"], "give --join 2 --like MEMBER"), (["--join", "100000"], "at most 9,999 (got"),
    (["--fail-if", "max_lag>7000"], "did you mean 'lag_max'?")])
def test_what_is_meant_otherwise_is_refused(options, words):
    done = run(["compare", "--demo", *options])
    assert done.code == 2 and one_line(done.err) and words in done.err


CHAIN = Group({"t0": 2, "t1": 1}, name="chain", state="Stable", type="classic", members=[
    Member("c0", ["t0", "t1"], owned=[("t1", 0)], generation=1), Member("c1", ["t1"], generation=1),
    Member("c2", ["t0", "t1"], owned=[("t0", 0), ("t0", 1)], generation=1)])      # c1 takes t1-0 if c0 takes from c2


@pytest.mark.parametrize("runs", ["sticky", "cooperative-sticky"])
def test_a_group_that_runs_kafka_s_sticky_is_judged_by_its_answer(runs):
    """Not by the optimum, unless that is named: under a group whose answers differ, each has its own verdict."""
    group = CHAIN.replace(strategy=runs).to_json() + "\n"
    done = run(["compare", "-", "--fail-if", "max_load>1"], group)
    assert done.code == 1 and f"under kafka-{runs}: max_load is 2" in done.err
    assert run(["compare", "-", "-s", "sticky", "--fail-if", "max_load>1"], group).code == 0


def test_a_table_shows_how_much_lag_is_unknown():
    table = rows_of_billing(("orders", 0, 7, "a"), ("orders", 1, "-", "a"))
    head = run("compare - -s range", table).out.split("\n\n")[1].splitlines()[:2]
    assert "unknown" in " ".join(head)
    assert "unknown" not in run("compare --demo -s range").out


# --- ids that members get when they join ---------------------------------------------------------------------------

TEAM = Group({"t": 7, "u": 2}, [Member(name, ["t", "u"], generation=4, owned=[("t", n), ("t", n + 1)])
                                for n, name in ((0, "a"), (2, "b"), (4, "c"))])


@pytest.mark.parametrize("name", ["kafka-sticky", "kafka-cooperative-sticky"])
def test_what_a_forecast_leaves_open_is_said(name):
    """Loads and kept are certain if subscriptions are equal; nothing is, if they differ; all is, if no member joins."""
    certain = assign(TEAM.leave("a"), name).summary()
    assert certain["inferred"] == ""
    equal, differing = (assign(TEAM.join("x", topics), name) for topics in (["t", "u"], ["t"]))
    assert "which new member gets which partitions depends on ids" in equal.summary()["inferred"]
    assert "the loads and the number of kept partitions do not" in equal.summary()["inferred"]
    assert "an estimate: the whole assignment" in differing.summary()["inferred"]
    assert "loads" not in differing.summary()["inferred"]
    assert equal.notes[-1].text in " ".join(repr(equal).split()) and not assign(TEAM.leave("a"), name).notes
    plain = assign(TEAM.join("x", ["t"]), "sticky").summary()["inferred"]
    assert plain == "member ids: a member that joins gets its id from the coordinator"


@given(st.lists(st.text("abcxyz0123456789-", min_size=4, max_size=12), min_size=4, max_size=4, unique=True))
def test_loads_and_kept_do_not_depend_on_the_ids_of_those_who_join(ids):
    """What is said to be certain is: whatever ids two members get, these figures are the same."""
    def figures(one, two):
        row = assign(TEAM.join(f"x{one}", ["t", "u"]).join(f"y{two}", ["t", "u"]), "kafka-sticky").summary()
        return [row[key] for key in ("min_load", "max_load", "balance_score", "kept", "moved", "placed")]
    assert figures(*ids[:2]) == figures(*ids[2:])


def test_joining_is_said_once():
    joined = TEAM.replace(inferred="subscriptions: all topics").join("x", ["t"]).join("y", ["t"])
    assert joined.inferred == ("subscriptions: all topics; "
                               "member ids: a member that joins gets its id from the coordinator")


def test_the_program_says_what_a_forecast_leaves_open():
    group = TEAM.replace(strategy="sticky", name="team").to_json() + "\n"
    for line in ("compare - --join 1", "compare - --join 1 --format json", "assign - -s kafka-sticky --join 1"):
        assert "which new member gets which partitions depends on ids" in " ".join(run(line, group).out.split())
    assert "depends on ids" not in run("compare - --leave a", group).out


# --- places of made-up ids -----------------------------------------------------------------------------------------

def random_group(random):
    """A group of dynamic and static members b, d, f and h, and the topics of one or two new members."""
    topics = {f"t{number}": random.randint(1, 6) for number in range(random.randint(1, 3))}

    def wanted():
        return sorted(random.sample(sorted(topics), random.choice([1, len(topics), len(topics)])))
    names = "bdfh"[:random.randint(1, 4)]
    members = {name: wanted() for name in names}
    owned = {name: [] for name in names}
    for pair in ((topic, number) for topic, count in topics.items() for number in range(count)):
        able = [name for name in names if pair[0] in members[name]]
        if able and random.random() < .9:
            owned[random.choice(able)].append(pair)
    instances = dict(zip(names, random.sample("pqrs", 4)))
    details = [Member(name, members[name], owned=owned[name], generation=3,
                      instance_id=instances[name] if random.random() < .3 else None) for name in names]
    lag = {topic: [random.randint(0, 9) for _ in range(count)] for topic, count in topics.items()}
    return Group(topics, details, lag=lag, name="g"), [wanted() for _ in range(random.randint(1, 2))]


def rows_of_all_places(group, new, strategy):
    """The rows of a strategy, one by one, for members whose ids fall into every gap, in every order."""
    for gaps in product("acegi"[:len(group.members) + 1], repeat=len(new)):
        for turns in permutations(range(len(new))):
            joined = group
            for gap, turn, topics in zip(gaps, turns, new):
                joined = joined.join(f"{gap}{turn}", topics)
            yield assign(joined, strategy).summary()


SORTED = ["range", "roundrobin", "kafka-sticky", "kafka-cooperative-sticky", "fair", "lag", "sticky", "kip54"]


def test_the_least_and_the_most_are_those_of_all_places():
    """Of 200 random groups, 25 for each strategy (it takes some seconds, because each place is asked about alone)."""
    depend = 0
    for seed in range(200):
        strategy, (group, new) = SORTED[seed % len(SORTED)], random_group(Random(seed))
        joined, made_up = group, [f"zz{number}" for number in range(len(new))]
        for name, topics in zip(made_up, new):
            joined = joined.join(name, topics)
        found, rows = compare(joined, strategy, before=group, made_up=made_up), list(
            rows_of_all_places(group, new, strategy))
        tried = found.placements[strategy]
        for key in ("moved", "paused", "kept", "min_load", "max_load", "lag_max"):
            assert {row[key] for row in tried} == {row[key] for row in rows}, (seed, strategy, key)
        assert found.rows == tried[:1]
        moved = [row["moved"] for row in rows]
        assert (tried[0]["moved"], tried[-1]["moved"]) == (max(moved), min(moved))
        depend += tried[0]["moved"] > tried[-1]["moved"]
    assert depend > 50


PODS = Group({"t": 12}, [Member(f"web-{n}-{uuid5(NAMESPACE_URL, str(n))}", ["t"], client_id=f"web-{n}",
                                owned=[("t", 4 * n + i) for i in range(4)]) for n in range(3)],
             name="pods", type="classic", state="Stable", strategy="range")


def test_one_of_several_answers_is_not_said_to_be_the_only_one():
    """A new member that sorts between the others moves 4 partitions under range, at the ends 6."""
    assert {name: assign(PODS.join(name, ["t"]), "range").summary()["moved"] for name in (
        "consumer-pods-1", "web-0-x", "web-1-x", "web-3")} == {
            "consumer-pods-1": 6, "web-0-x": 4, "web-1-x": 4, "web-3": 6}
    [shown] = json.loads(run("compare - -s sticky --join 1 --format json", PODS.to_json()).out)
    now, of_range, of_sticky = shown["rows"]
    assert [(row["moved_least"], row["moved"]) for row in (of_range, of_sticky)] == [(4, 6), (3, 3)]
    assert "moved_least" not in now
    [note] = [note for note in shown["notes"] if "made up" in note]
    assert "all 4 places" in note and "the one with the most moves (the fewest: range 4)" in note
    table = unwrapped(run("compare - -s sticky --join 1", PODS.to_json()).out)
    assert "in short, under range: 4 to 6 partitions would move, depending on the new members' ids, 12 part" in table
    rows = run("compare - -s sticky --join 1 --format csv", PODS.to_json()).out.splitlines()
    assert [row.split(",")[-1] for row in rows] == ["moved_least", "", "4", "3"]


def test_a_gate_takes_the_worst_place():
    done = run("compare - --join 1 --fail-if 'moved>5'", PODS.to_json())
    assert done.code == 1 and done.err.endswith(
        "pods under range: moved is 6 (moved>5), for some of the new members' ids\n")
    assert run("compare - --join 1 --fail-if 'moved>6'", PODS.to_json()).code == 0
    assert run("compare - --join 1 --fail-if 'moved<5'", PODS.to_json()).code == 1         # the least is 4
    done = run("compare - --join 1 --fail-if 'max_load>2'", PODS.to_json())
    assert done.code == 1 and done.err.endswith("max_load is 3 (max_load>2)\n")


def test_moves_are_those_of_the_row():
    [shown] = json.loads(run("compare - --join 2 --moves --format json", PODS.to_json()).out)
    new = {change["member"] for change in shown["changes"]}
    for row in shown["rows"][1:]:
        assert sum(move["from"] is not None for move in row["moves"]) == row["moved"]
        assert {move["to"] for move in row["moves"]} <= new | {*PODS.members}
    proven = json.loads(run("compare - -s sticky --join 2 --prove --format json", PODS.to_json()).out)[0]["rows"]
    assert [row["proof"]["holds"] for row in proven if row["strategy"] == "sticky"] == [True]


def test_a_thousand_places_are_spread_evenly():
    group = Group({"t": 3}, {f"m{n:02}": ["t"] for n in range(12)}, name="many", strategy="range")
    calls = []
    joined, new = group, ["x", "y", "z", "zz"]
    for name in new:
        joined = joined.join(name, ["t"])
    found = compare(joined, [], before=group, made_up=new, track=lambda batches: calls.append(len(batches)) or batches)
    assert len(found.placements["range"]) == 1000 and calls[0] > 9
    assert any("1,000 of 1,820 places, spread evenly, that they" in note for note in found.notes)
    assert "1,000 of 1,820 places, spread evenly" in unwrapped(run("compare - --join 4", group.to_json()).out)
    loads = {tuple(row[key] for key in ("moved", "placed")) for row in found.placements["range"]}
    assert loads == {(0, 3)}


def test_a_made_up_id_is_one_of_the_group():
    with pytest.raises(GroupError, match="a made-up id must belong to the group .got 'x'."):
        compare(PODS, ["range"], made_up=["x"])
    left = json.loads(run("compare - --join 1 --leave web-3 --format json", PODS.to_json()).out)[0]
    assert "moved_least" not in left["rows"][1] and not [note for note in left["notes"] if "made up" in note]


def new_first(group):
    """A strategy that fails if a new member is the first one."""
    if not group.details[0].owned:
        raise ForecastError("NullPointerException", "the first one owns nothing")
    return assign(group, "range").owner


def test_a_strategy_that_fails_for_one_place_has_no_row():
    done = run("compare - -s range -s test_what_if:new_first --join 1 --fail-if 'moved>100'", PODS.to_json())
    assert done.code == 3 and re.search(r"(?m)^range \(runs now\) +4 ", done.out) and "new_first" not in done.out
    assert "under some of the ids that new members may get" in done.err


# --- the form of made-up ids ---------------------------------------------------------------------------------------

def clients(*names, instance_ids=False):
    """A group whose members have these client ids and UUIDs."""
    ids = [f"{name}-{uuid5(NAMESPACE_URL, f'{name}{number}')}" for number, name in enumerate(names)]
    return Group({"t": 9}, [Member(one, ["t"], client_id=name, instance_id=one if instance_ids else None)
                            for one, name in zip(ids, names)], name="g")


@pytest.mark.parametrize("known, new", [
    (["web-0", "web-1", "web-9"], ["web-10", "web-11"]), (["rdkafka"] * 3, ["rdkafka", "rdkafka"]),
    (["consumer-g-1"] * 2, ["consumer-g-1", "consumer-g-2"]), (["kafka-python-3.0.2"], ["kafka-python-3.0.2"] * 2),
    (["web-1", "web-1"], ["web-1"] * 2), (["etl", "web-0", "web-1"], ["web-2", "web-3"]), (["app"], ["app", "app"]),
    (["web-7"], ["web-8", "web-9"])])
def test_made_up_ids_have_the_form_of_the_others(known, new):
    for group in (clients(*known), clients(*known).replace(members=[
            replace(one, client_id="") for one in clients(*known).details])):            # their ids show it
        ids = [change["member"] for change in shown_by(["-", "--join", "2"], group.to_json())["changes"]]
        assert [re.fullmatch(f"(.*)-{UUID}", name)[1] for name in ids] == new
        assert len({*ids, *group.members}) == 2 + len(known)


def test_a_new_id_is_like_that_of_the_member_that_is_named():
    group = clients("web-0", "web-1", "web-2", "etl-4", "etl-5")
    [change] = shown_by(["-", "--join", "1", "--like", "etl-4"], group.to_json())["changes"]
    assert re.fullmatch(f"etl-6-{UUID}", change["member"])
    static = clients("i", instance_ids=True).replace(members=[
        replace(one, client_id="") for one in clients("i", instance_ids=True).details])
    for unknown in (static, Group({"t": 1}, {"b-1": ["t"]}, name="g")):
        for words in (["--join", "2"], ["--join", "1", "--join", "1"]):
            ids = [change["member"] for change in shown_by(["-", *words], unknown.to_json())["changes"]]
            assert all(re.fullmatch(f"consumer-g-{number}-{UUID}", name) for number, name in enumerate(ids, 1))


def test_a_pod_that_restarts_keeps_its_place():
    """Only the UUID of its id is new, so a restart moves what it moves in a group in which the pod takes its old id."""
    for number, name in enumerate(PODS.members):
        live = LiveGroup("range", {"t": 12}, dict.fromkeys(PODS.members, ["t"]))
        moved = len(live.leave(name).moved) + len(live.join(f"web-{number}-again", ["t"]).moved)
        assert restart_in_turn(PODS, [name], resolve("range")).moved == moved
    assert "one possible run" in unwrapped(run("compare - --rolling", PODS.to_json()).out)


# --- restarts ----------------------------------------------------------------------------------------------------

@given(st.data(), st.sampled_from(["range", "roundrobin", "fair", "sticky", "cooperative-sticky"]))
def test_restarts_cost_what_a_live_group_shows(data, strategy):
    """The same events on consumers that send bytes: rounds, partitions that change hands, and those that stop."""
    topics = {"a": data.draw(st.integers(1, 6)), "b": data.draw(st.integers(1, 6))}
    wanted = st.sampled_from([["a"], ["b"], ["a", "b"]])
    names = [f"m{number}" for number in range(data.draw(st.integers(1, 4)))]
    static = data.draw(st.sets(st.sampled_from(names)))
    members = [Member(name, data.draw(wanted), instance_id=name if name in static else None) for name in names]
    live, total = LiveGroup(strategy, topics, members), {"rebalances": 0, "moved": 0, "paused": 0, "down": 0}
    found = restart_in_turn(live.group, names, resolve(strategy))
    for number, member in enumerate(members):
        total["down"] += len(live[member.id])
        if member.id in static:
            assert live.restart(member.id).rounds == 0
            continue
        again = number + 1 - len(static.intersection(names[:number]))
        new = f"consumer-{again}-{uuid5(NAMESPACE_URL, f'consumer-{again}')}"
        for event in (lambda: live.leave(member.id)), (lambda: live.join(new, member.topics)):
            rebalance = event()
            total["rebalances"] += rebalance.rounds
            total["moved"] += len(rebalance.moved)
            total["paused"] += len(rebalance.revoked)
    assert found == (strategy, len(names), len(static), *total.values())


@given(st.data(), st.sampled_from(["range", "fair", "sticky", "cooperative-sticky"]))
def test_paused_means_the_same_for_a_restart_as_in_a_comparison(data, strategy):
    """A restart adds up what one comparison shows after the member has left, and another one after it is back."""
    topics = {"a": data.draw(st.integers(1, 6)), "b": data.draw(st.integers(1, 6))}
    wanted = st.sampled_from([["a"], ["b"], ["a", "b"]])
    members = {f"m{number}": data.draw(wanted) for number in range(data.draw(st.integers(2, 4)))}
    live = LiveGroup(strategy, topics, members)
    found, down = restart_in_turn(live.group, ["m0"], resolve(strategy)), len(live["m0"])
    left = compare(live.group.leave("m0"), strategy, before=live.group)[strategy].summary()
    live.leave("m0")
    new = f"consumer-1-{uuid5(NAMESPACE_URL, 'consumer-1')}"
    back = compare(live.group.join(new, members["m0"]), strategy)[strategy].summary()
    assert (found.paused, found.down) == (left["paused"] + back["paused"], down)


LETTERS = "bcdfghjklmnpqrstvwxz2456789"                 # as rand.SafeEncodeString of Kubernetes has them


def pod_of_deployment(chance, name):
    """A pod's name: the hash of the template, a number below 2**32, encoded digit by digit, then five letters."""
    code = "".join(LETTERS[ord(digit) % len(LETTERS)] for digit in str(chance.getrandbits(32)).zfill(8))
    return f"{name}-{code}-{''.join(chance.choices(LETTERS, k=5))}"


def test_names_of_pods_are_told_apart():
    chance, stems = Random(0), ["app", "kafka-app-v2", "orders-2026-blue", "db-7", "etl-consumer-abcdef", "x9"]
    pods = [pod_of_deployment(chance, chance.choice(stems)) for _ in range(200)]
    assert [name for name in pods if not (looks_replaced(name) and looks_replaced(f"{name}-1"))] == []
    lasting = [f"{chance.choice(stems)}-{chance.randrange(200)}" for _ in range(200)]
    lasting += [*stems, "i-0abcdef1234567890", "10.0.0.1-9092", "app-7d9f6c8b4", str(uuid5(NAMESPACE_URL, "x")), "",
                "etl-20261126-night", "etl-24264526-night", "etl-20261126-nghtb",
                "worker-decade12-shard", "app-7d9f6c8-4kd7x"]
    assert [name for name in lasting if looks_replaced(name)] == []


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_rollout_of_pods_costs_what_a_live_group_shows(strategy, count):
    """Each old pod is evicted, and its successor joins under a name that nobody knew."""
    chance = Random(count)
    members = [Member(f"m{at}", ["t"], instance_id=pod_of_deployment(chance, "app")) for at in range(count)]
    live, rounds = LiveGroup(strategy, {"t": 16}, members), 0
    found = restart_in_turn(live.group, live.members, resolve(strategy))
    for at, member in enumerate(members):
        new = Member(f"n{at}", ["t"], instance_id=pod_of_deployment(chance, "app"))
        rounds += live.crash(member.id).rounds + live.join([new]).rounds
    assert (found.restarts, found.static, found.rebalances) == (count, 0, rounds)
    assert restart_in_turn(live.group, live.members, resolve(strategy), static=True)[1:4] == (count, count, 0)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 12), st.integers(1, 12),
       st.sampled_from(["range", "roundrobin", "sticky", "cooperative-sticky"]))
@settings(max_examples=15)
def test_counts_of_members_that_matter(sizes, now, then, strategy):
    """Every count from 1 to 40 is tried: those between `least` and `most` have the same largest load, and no others."""
    def with_members(count):
        topics = {f"t{at}": size for at, size in enumerate(sizes)}
        return Group(topics, {f"m{at:02}": topics for at in range(count)}, strategy=strategy)
    before = with_members(now)
    before = before.replace(owned=dict(Assignment(before, assign(before, strategy).target)))
    changes = [["--leave", f"m{at:02}"] for at in range(then, now)] + [
        ["--join", f"m{at:02}:{','.join(before.topics)}"] for at in range(now, then)]
    answer = shown_by(["-", "-s", strategy, *chain.from_iterable(changes)], before.to_json())
    largest = {n: int(np.bincount(assign(with_members(n), strategy).target).max()) for n in range(1, 41)}
    found = answer["member_counts"]
    assert (found is not None) == (now != then and largest[now] == largest[then])
    if found:
        same = {n for n, load in largest.items() if load == largest[now]}
        assert (found["least"], found["most"] or 40) == (min(same), max(same))
        if found["most"]:
            following = found["most"] + 1
            assert found["next_max_load"] == largest[following] < largest[now]
            stays, _, change = found["text"].partition(" the largest load stays ")
            assert change == f"{largest[now]}; with {following} it would be {largest[following]}"
            named = {int(text) for text in re.findall("[0-9]+", stays)}
            assert named and named <= same - {now}
        else:
            assert found["next_max_load"] is None
            assert found["text"] == f"no number of members above {min(same)} changes the largest load"


@pytest.mark.parametrize("changes, text", {
    "--join 1": "with 19 or 20 members the largest load stays 7; with 21 it would be 6",
    "--leave m17": None, "--join a:t --join b:t --join c:t": None, "--join a:t --join b:t --leave m17": (
        "with 19 or 20 members the largest load stays 7; with 21 it would be 6"),
    "--join a:t,u": None, "--join 1 --subscribe m00:": None, "--join 1 --partitions t=200": None}.items())
def test_counts_of_members_in_words(changes, text):
    """Said if the largest load stays as it is, all members subscribe to the same topics, and it is known what runs."""
    group = Group({"t": 126, "u": 0}, {f"m{at:02}": ["t"] for at in range(18)}, strategy="roundrobin", name="g")
    group = group.replace(owned=assign(group, "roundrobin"))
    done = run(f"compare - -s roundrobin {changes}", group.to_json())
    assert done.code == 0 and (f"\n{text}\n" in done.out if text else "the largest load" not in done.out)
    assert "the largest load" not in run(f"compare - -s roundrobin {changes}", group.replace(strategy="").to_json()).out
    uneven = group.replace(owned={"m00": []} | dict(assign(group.leave("m00").replace(owned={}), "roundrobin")))
    assert "the largest load" not in run(f"compare - -s roundrobin {changes}", uneven.to_json()).out


def test_restarts_on_the_command_line():
    [rolling] = json.loads(run("compare --demo -s sticky --rolling --format json").out)
    group = demo_group()
    assert rolling["restarts"] == [
        restart_in_turn(group, group.members, resolve(name))._asdict() for name in ("range", "sticky")]
    [one] = json.loads(run(
        "compare --demo -s sticky --restart ann* --restart ben --restart anna --format json").out)
    assert [list(row.items())[:4] for row in one["restarts"]] == [
        [("strategy", name), ("restarts", 2), ("static", 0), ("rebalances", 4)] for name in ("range", "sticky")]
    assert "with the same instance id" in run("compare --demo --rolling").out
    wrong = run("compare --demo --restart nobody")
    assert wrong.code == 2 and "--restart" in wrong.err and one_line(wrong.err)
    assert "restarts" not in json.loads(run("compare --demo --format json").out)[0]


def test_restarts_of_a_group_that_the_broker_assigns_are_not_computed():
    done = run("compare - -s range --rolling", NAMED.replace(type="consumer", name="new").to_json())
    assert done.code == 0 and "restarts" not in done.out
    assert "new: the broker assigns this group: group.remote.assignor" in unwrapped(done.err)
    assert "so restarts are not computed" in unwrapped(done.err)


def lines_of(*found):
    """Groups as lines of JSON."""
    return "".join(f"{group.to_json()}\n" for group in found)


def test_with_restarts_a_condition_judges_their_rows():
    """Range moves nothing at rest, but 40 partitions in a rolling restart; sticky moves fewer."""
    assert run("compare --demo --fail-if 'moved>20'").code == 0
    done = run("compare --demo --rolling --fail-if 'moved>20'")
    assert done.code == 1 and one_line(done.err) and "demo under range: moved is 40 (moved>20)" in done.err
    done = run("compare --demo --rolling -s sticky --fail-if 'moved>25' --format json")
    assert done.code == 0 and json.loads(done.out)[0]["restarts"][1]["moved"] == 25
    done = run("compare --demo --rolling -s sticky -s fair --fail-if 'moved>24'")
    assert done.code == 1 and "under sticky: moved is 25" in done.err and "under fair: moved is" in done.err
    for key in ("restarts", "rebalances", "moved", "paused", "down"):
        assert run(f"compare --demo --restart anna --fail-if '{key}>0'").code == 1, key


def test_a_static_restart_that_pauses_nothing_passes():
    static = TEAM.replace(members=[replace(one, instance_id=one.id) for one in TEAM.details], strategy="range")
    assert run("compare - --fail-if 'paused>0'", static.to_json()).code == 1
    for restarts in ("--rolling", "--restart a"):
        assert run(f"compare - {restarts} --fail-if 'paused>0' --fail-if 'moved>0'", static.to_json()).code == 0
        assert run(f"compare - {restarts} --fail-if 'down>0'", static.to_json()).code == 1


@pytest.mark.parametrize("line, words", {
    "--rolling --fail-if max_load>1": "restarts, static, rebalances, moved, paused, down (got 'max_load')",
    "--restart anna --fail-if 'lag max>1'": "a condition must be on a figure of the restarts: restarts, ",
    "--fail-if down>1": "a condition must be on a figure (got 'down')",
    "--leave anna --fail-if rebalances>1": "a condition must be on a figure (got 'rebalances')"}.items())
def test_a_figure_that_the_table_does_not_have_is_wrong_use(line, words):
    done = run(f"compare --demo {line.replace('>', chr(92) + '>')}")
    assert (done.code, done.out) == (2, "") and one_line(done.err) and words in done.err


def test_a_group_whose_restarts_cannot_be_foretold_fails_the_gate():
    new = NAMED.replace(type="consumer", name="new")
    counted = Group({"t": 3}, [Member(name, ["t"], counted=1) for name in "abc"], name="counted", strategy="range")
    for group, reason in [(new, "the broker assigns this group: group.remote.assignor"),
                          (counted, "it is not known which partitions the members own, so restarts are not computed")]:
        line = f"compare - -s range --rolling --fail-if 'moved>1000' -g {group.name}"
        known = TEAM.replace(name="known", strategy="range")
        done = run(line, lines_of(group, known))
        assert done.code == 3 and f"{group.name}: --fail-if cannot be judged: {reason}" in done.err
        assert run(line.replace(f"-g {group.name}", "-g known"), lines_of(group, known)).code == 0
    done = run("compare - --rolling --fail-if 'moved>0'", lines_of(new, TEAM.replace(name="team", strategy="range"), (
        TEAM.replace(name="unknown")), Group({"t": 2}, {}, name="empty", strategy="range")))
    assert done.code == 3 and "under range: moved is" in done.err and "empty: " not in done.err
    assert "unknown: --fail-if cannot be judged: the strategy that the group runs is unknown (--state" in done.err


def test_restarts_of_a_group_that_was_not_seen_whole_are_not_judged():
    for group, reason in [(TEAM.replace(state="PreparingRebalance"), "was rebalancing when it was captured"),
                          (TEAM.replace(notes=[Note("members-missing", 1)]), "members: 1 not shown in the input")]:
        done = run("compare - -s range --rolling --fail-if 'moved>1000'", group.replace(name="g").to_json())
        assert done.code == 3 and "moved>1000 cannot be judged" in done.err and reason in done.err


def never_alone(group):
    """A strategy that fails for a single member."""
    if len(group.members) < 2:
        raise ValueError("two members must be there")
    return assign(group, "fair").owner


def test_a_strategy_that_fails_in_a_restart_is_named():
    """The other rows are shown and judged; the exit code says that one is missing."""
    group = Group({"t": 4}, {"a": ["t"], "b": ["t"]}, name="pair", strategy="range")
    done = run("compare - -s test_what_if:never_alone -s range --rolling --fail-if 'moved>1000'", group.to_json())
    assert done.code == 3 and "pair: restarts under test_what_if:never_alone: " in done.err
    assert "two members must be there" in done.err
    assert re.search(r"(?m)^range +2 ", done.out)
