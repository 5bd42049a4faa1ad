"""Checks of `--fail-if` on what is known only in part: whatever part of a true history, or of a group, is lost, no
figure that is stated is wrong, and no check passes that the whole would fail."""
import json
import random
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some
from test_history import captures, damaged, history, paths, unpacked
from typer.testing import CliRunner

from kafka_assign import Group, Member, assign, read_history, replay
from kafka_assign.cli.app import program
from kafka_assign.cli.conditions import (
    FIGURES, FIGURES_OF_DIFFERENCE, FIGURES_OF_GROUP, FIGURES_OF_RANKING, Condition)
from kafka_assign.cli.histories import HISTORY_FIGURES, judge_history
from kafka_assign.life.costs import estimates, forecastable, history_row, lower_bounds, needless_moves, recorded_row
from kafka_assign.life.trace import Cause, Generation, GroupHistory, History, Known, Pause

SIGNS = {">": 1, ">=": 0}


def command(*words, text=None):
    """The command line in this process: its exit code, standard output and standard error."""
    done = CliRunner().invoke(program, [*map(str, words)], input=text)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def true_history(seed, count):
    """Every generation of a group from its first: members come and go, and all that happened is known."""
    rng = random.Random(seed)
    names, found, last = ["a", "b", "c"], [], {}
    for number in range(1, count + 1):
        there = rng.sample(names, rng.randint(1, 3))
        members = {name: Known(name, "", None, ("t",)) for name in there}
        owners = {("t", at): rng.choice(there) for at in range(4)}
        start = 100.0 * number
        answered = start + rng.choice([1.0, 2.0, 9.0])
        pauses = [Pause(*pair, start, answered - start, "measured") for pair in owners if pair in last]
        assigned = {name: tuple(sorted(pair for pair, own in owners.items() if own == name)) for name in there}
        found.append(Generation("g", 1, number, start, start + 0.5, answered, [Cause("join", there[0])], there[0],
                                "range", members, assigned, pauses))
        last = owners
    return found


def figures(generations):
    """The figures of known generations by their plain definitions, the state before the first one included."""
    moves = 0
    for before, one in pairwise([Generation("g", 1, 0), *generations]):
        moves += sum(before.owners.get(pair, name) != name for pair, name in one.owners.items())
    pauses = [pause.seconds for one in generations for pause in one.pauses]
    return {"rebalances": len(generations), "moves": moves, "paused": sum(pauses),
            "longest": max(one.answered - one.start for one in generations)}


def kept_part(generations, dropped, forgotten):
    """What is left after some generations were lost, and of others a part of what is known, as lost lines do it."""
    found = []
    for one in generations:
        lost = forgotten.get(one.generation)
        if lost == "answer":
            one = replace(one, answered=None, assigned={}, pauses=[], missing=["assignment", "pauses"])
        elif lost == "start":
            one = replace(one, start=one.joined, asked=True)
        elif lost == "assignment":
            one = replace(one, assigned={}, missing=["assignment", "answered"], answered=None)
        elif lost == "pauses":
            one = replace(one, pauses=one.pauses[1:], missing=["pauses"])
        if one.generation not in dropped:
            found.append(one)
    return found


def check_part(whole, group):
    """That no figure of a damaged history says what is not true of the whole one, as far as the damaged one goes."""
    first, last = group.generations[0].generation, group.generations[-1].generation
    span = GroupHistory("g", [replace(one) for one in whole]).generations
    inside = [one for one in span if first <= one.generation <= last]
    true = figures(span[:last]) | {"rebalances": len(inside)}
    true["moves"] -= figures(span[:first - 1])["moves"] if first > 1 else 0
    true["paused"] = sum(pause.seconds for one in inside for pause in one.pauses)
    true["longest"] = max(one.answered - one.start for one in inside)
    row, bounds, about = history_row(group, recorded_row(group)), lower_bounds(group), estimates(group)
    for key in HISTORY_FIGURES:
        assert key in about or row[key] is None or row[key] <= true[key] + 1e-6, (key, row, true)
        assert key in about or key in bounds or row[key] in (None, pytest.approx(true[key])), (key, row, true)
        for sign, less in SIGNS.items():
            limit = true[key] - less                           # the whole history fails this check
            rule = Condition(f"{key}{sign}{limit}", key, sign, Decimal(str(limit)))
            holds, judged = judge_history({"g": group}, [rule])
            assert holds or not judged, (key, row, true)
    return row, true


losses = some.dictionaries(some.integers(1, 9), some.sampled_from(["answer", "start", "assignment", "pauses"]))


def check_losses(seed, dropped, forgotten):
    whole = true_history(seed, 9)
    part = kept_part(whole, dropped, forgotten)
    group = GroupHistory("g", part)
    row, true = check_part(whole, group)
    assert row["rebalances"] == true["rebalances"]                   # numbers are consecutive
    numbers = [one.generation for one in part]
    assert group.unseen == sum(later - one - 1 for one, later in pairwise(numbers))
    for one in forecastable(group):
        assert one.generation == 1 or one.generation - 1 in numbers
    needless = needless_moves(group)
    assert needless is None or not group.holes
    if group.holes:
        [_, strategy] = replay({"g": group}, ["sticky"]).rows
        assert strategy[3:6] == (None, None, None)
    if not forgotten:
        inner = [number for number in numbers if number == 1 or number - 1 in numbers]
        before = {number: one.owners for number, one in enumerate(GroupHistory("g", whole).generations, 1)}
        assert row["moves"] == sum(before.get(number - 1, {}).get(pair, name) != name
                                   for number in inner for pair, name in before[number].items())


@given(some.integers(0, 1000), some.sets(some.integers(1, 9), max_size=8), losses)
def test_no_part_of_a_history_passes_a_check_that_the_whole_one_fails(seed, dropped, forgotten):
    check_losses(seed, dropped, forgotten)


@pytest.mark.parametrize("lost", ["answer", "start", "assignment", "pauses", "all"])
def test_no_check_passes_that_the_whole_history_fails_if_little_is_lost(lost):
    for number in range(1, 10):
        if lost == "all":
            check_losses(number, {number}, {})
        else:
            check_losses(number, set(), {number: lost})


@given(some.integers(0, 1000), some.sets(some.integers(1, 9), max_size=3), some.integers(0, 10), some.integers(0, 10),
       some.sets(some.integers(1, 9), max_size=4))
def test_of_a_span_of_time_no_figure_is_wrong(seed, dropped, since, until, undated):
    check_span(seed, dropped, since, until, undated)


def test_a_limit_of_time_keeps_the_state_before_it():
    for since in range(1, 10):
        check_span(since, set(), since, 9, set())
        check_span(since, set(), 0, since, set())
        check_span(since, set(), 3, 7, {since})
        check_span(since, {since}, 3, 7, set())


def check_span(seed, dropped, since, until, undated):
    """What is between two times is as in the whole history; what may be is counted as such, or known to be."""
    whole = true_history(seed, 9)
    part = [replace(one, start=None, joined=None, answered=None, missing=["start", "joined", "answered"])
            if one.generation in undated else replace(one) for one in whole if one.generation not in dropped]
    group = GroupHistory("g", part).between(100.0 * since - 50, 100.0 * until + 50)
    real = [number for number in range(1, 10) if since <= number <= until]
    bounds, row = lower_bounds(group), recorded_row(group)
    assert row.rebalances <= len(real)
    numbers = [one.generation for one in part]
    outside = set(real) - set(range(min(numbers, default=10), max(numbers, default=0) + 1))
    assert "rebalances" in bounds or row.rebalances == len(set(real) - outside)
    before = {number: one.owners for number, one in enumerate(GroupHistory("g", whole).generations, 1)}
    moves = sum(before.get(number - 1, {}).get(pair, name) != name
                for number in real if number not in outside for pair, name in before[number].items())
    assert row.moves <= moves and ("moves" in bounds or row.moves == moves)
    if not dropped and not undated:
        assert row[3:5] == (len(real), moves) and not bounds.keys() & {"rebalances", "moves"}


def test_the_strategies_of_a_limited_history_begin_with_its_state():
    """`range` on a history of range costs what was recorded, also from the middle of it on."""
    group = history("range-4.3.1", "both")["orders"]
    middle = group.generations[8].begin
    for limited in (group.between(middle), group.between(None, middle), group.between(middle, middle + 30)):
        recorded, row = replay({"orders": limited}, ["range"]).rows
        assert (row.rebalances, row.moves) == (recorded.rebalances, recorded.moves) and recorded.moves


@captures
def test_lines_that_are_lost_let_no_check_pass(capture, tmp_path):
    """Of real logs, whatever lines of them are lost: compared with the whole history from the first generation that
    the damaged one knows to the last."""
    whole = history(capture, "both")
    for seed in range(4):
        rng = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        for path in unpacked(capture, folder):
            path.write_text("\n".join(damaged(path.read_text().split("\n"), rng)))
        for name, group in read_history(folder).items():
            true = whole[name].generations
            if not group.generations or {one.life for one in group.generations} != {1}:
                continue
            first, last = group.generations[0].generation, group.generations[-1].generation
            span = GroupHistory(name, [replace(one) for one in true if first <= one.generation <= last])
            full, row = (history_row(one, recorded_row(one)) for one in (span, group))
            bounds, about = lower_bounds(group), estimates(group)
            for key in ("rebalances", "moves", "longest"):
                if key in about or None in (row[key], full[key]):
                    continue
                slack = 0.35 if key == "longest" else 0                # a member's clock, and the way to it
                assert row[key] <= full[key] + slack, (seed, name, key, row[key], full[key])
                assert key in bounds or row[key] >= full[key] - slack, (seed, name, key, row[key], full[key])


@pytest.mark.parametrize("kept", [0, 93, 237, 400])
def test_a_static_member_of_which_the_log_was_lost_lets_no_check_of_moves_pass(kept, tmp_path):
    """It comes back with another id, which only its log connects with its instance id."""
    true = recorded_row(history("sticky-static-4.3.1", "both")["stock"]).moves
    for path in unpacked("sticky-static-4.3.1", tmp_path):
        if path.name.startswith("app-3"):
            path.write_text("\n".join(path.read_text().split("\n")[:kept]))
    group = read_history(tmp_path)["stock"]
    row, doubt = recorded_row(group), {**estimates(group), **lower_bounds(group)}
    assert row.moves == true or row.moves is None or "moves" in doubt
    if row.moves is not None and row.moves != true:
        assert needless_moves(group) is None
        code, _, said = command("replay", tmp_path, "-g", "stock", "--fail-if", f"moves<{true + 1}")
        assert code == 3 and "whether it is static" in said


LINES = ["Preparing to rebalance group g in state PreparingRebalance with old generation {before} (reason: Adding new "
         "member m-{number} with group instance id None)", "Stabilized group g generation {number} with 1 members",
         "Assignment received from leader m for group g for generation {number}. It has 1 members"]


def broker_log(numbers, without_end=()):
    """What a broker logs about some generations, each of 3 s."""
    return "".join(
        f"[2026-01-01 00:{number:02}:0{second},000] INFO [GroupCoordinator 1]: "
        f"{line.format(before=number - 1, number=number)} (a.b.C)\n"
        for number in numbers for second, line in zip((1, 3, 4), LINES[:1 if number in without_end else None]))


@pytest.mark.parametrize("rule, code, reason", [
    ("rebalances>9", 1, "g: rebalances is 10 (rebalances>9)"),
    ("rebalances>10", 3, "rebalances is at least 10, because no source tells of 7 generations (3 to 9)"),
    ("longest>5", 3, "longest is at least 3.0"), ("longest>2", 1, "longest is 3.0")])
def test_generations_that_no_line_shows_are_counted(rule, code, reason):
    done = command("replay", "-", "--fail-if", rule, text=broker_log([1, 2, 10]))
    assert done[0] == code and reason in done[2]
    [row] = json.loads(command("replay", "-", "--format", "json", text=broker_log([1, 2, 10]))[1])
    assert row["missing"]["generations"] == 7 and row["holes"] == [
        {"life": 1, "first": 3, "last": 9, "after": "2026-01-01T00:02:04.000Z", "until": "2026-01-01T00:10:01.000Z",
         "sure": True}]
    assert all(one["rebalances"] is None for one in row["rows"][1:]) and {*row["at_least"]} >= {"rebalances", "moves"}
    assert "at least 10 rebalances" in command("replay", "-", "-g", "g", text=broker_log([1, 2, 10]))[1]


def test_a_rebalance_that_is_open_at_the_end_may_last_longer():
    whole, cut = broker_log([1, 2, 3]), broker_log([1, 2, 3], [3])
    assert command("replay", "-", "--fail-if", "longest>3", text=whole)[0] == 0
    code, _, err = command("replay", "-", "--fail-if", "longest>3", text=cut)
    assert code == 3 and "longest is at least 3.0, because no source tells of the end of generation 3" in err
    assert command("replay", "-", "--fail-if", "longest>3", "--until", "2026-01-01T00:02:30Z", text=cut)[0] == 0


def test_generations_without_a_time_at_the_edge_of_a_span_are_said(tmp_path):
    rows = [one.row() for one in true_history(1, 5)]
    for at in (1, 2):
        rows[at] |= dict.fromkeys(("start", "joined", "answered")) | {"missing": ["start", "joined", "answered"]}
    (tmp_path / "trace.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = command("replay", tmp_path, "--since", "1970-01-01T00:05:00Z", "--fail-if", "rebalances>2")
    assert done[0] == 3 and "g: 2 generations at the edges of the time left out: no source tells when they" in done[2]
    assert command("replay", tmp_path, "--since", "1970-01-01T00:00:00Z", "--fail-if", "rebalances>5")[0] == 0


def ran_by(strategies, seed=0):
    """A history in which each generation is what a strategy makes of the one before; members name its protocol."""
    rng = random.Random(seed)
    found, owned, number = [], {}, 0
    for strategy, protocol in strategies:
        number += 1
        names = [f"m{at}" for at in range(2 + number % 3)]
        read = {name: tuple(sorted(rng.sample(["a", "b"], 2 if name == "m0" else rng.randint(1, 2)))) for name in names}
        group = Group({"a": 7, "b": 4}, read,
                      owned={name: [pair for pair in own if pair[0] in read[name]]
                             for name, own in owned.items() if name in names})
        owned = dict(assign(group, strategy))
        found.append(Generation("g", 1, number, 10.0 * number, 10.0 * number + 1, 10.0 * number + 2, protocol=protocol,
                                members={name: Known(name, "", None, read[name]) for name in names},
                                assigned={name: tuple(map(tuple, own)) for name, own in owned.items()}))
    return History(found)


OURS, KAFKAS, RANGE = ("sticky", "sticky"), ("kafka-sticky", "sticky"), ("range", "range")


@pytest.mark.parametrize("steps, ran, words", [
    ([RANGE] * 6, "range", "range makes 6 of the 6 recorded assignments"),
    ([KAFKAS] * 6, "kafka-sticky", "kafka-sticky makes 6 of the 6 recorded assignments"),
    ([RANGE] * 3 + [KAFKAS] * 4, None, "range makes 3 of the 3 recorded assignments"),
    ([("fair", "sticky")] * 7, None, "another strategy of this name ran")])
def test_which_strategy_ran_is_decided_generation_by_generation(steps, ran, words, tmp_path):
    with (tmp_path / "trace.jsonl").open("w") as file:
        ran_by(steps).write(file)
    out = " ".join(command("replay", tmp_path, "-g", "g", "-s", "range", "-s", "kafka-sticky")[1].split())
    assert [name for name in ("range", "kafka-sticky") if f"{name} (ran)" in out] == ([ran] if ran else [])
    assert words in out and ("(ran in 3 of 7)" in out) == (len({*steps}) > 1)


def test_our_sticky_is_not_kafkas():
    """Both are named `sticky` by the members: only the one that makes what was recorded ran."""
    from kafka_assign.cli.histories import _fits, _ran
    seen = set()
    for seed in range(6):
        for name, group in ran_by([OURS] * 7, seed).items():
            rows = replay({name: group}, ["kafka-sticky", "sticky"]).rows
            known = rows[0].known
            found = _ran(_fits(group, rows))
            assert rows[2].forecast == known
            assert found is not None and (found.strategy == "sticky" or found.forecast == known)
            seen.add(rows[1].forecast < known)
    assert True in seen


def test_a_group_that_cannot_move_is_not_judged():
    text = Group({"t": 3}, [Member("m", ["t"], client_id="sarama", owned=[("t", 0)])], name="app", type="classic",
                 strategy="range", state="Stable").to_json()
    code, out, err = command("compare", "-", "--migrate", "--fail-if", "moved>100", text=text)
    assert "cannot move" in out and code == 3 and "app: --fail-if cannot be judged: it cannot move" in err
    assert command("compare", "-", "--migrate", text=text)[0] == 0


def test_a_streams_application_is_not_judged_by_what_uniform_does():
    """It moves to `group.protocol=streams`, where the broker assigns tasks: no assignor of consumers is forecast."""
    text = Group({"t": 3}, [Member("m", ["t"], owned=[("t", 0)])], name="app", type="classic", strategy="stream",
                 state="Stable").to_json()
    code, out, err = command("compare", "-", "--migrate", "--fail-if", "moved>0", text=text)
    assert "Kafka Streams moves" in out and code == 3 and "app: --fail-if cannot be judged: it can move, after" in err


LAGGING = Group({"t": 3}, {"m": ["t"], "n": ["t"]}, owned={"m": [("t", 0)], "n": [("t", 1)]}, name="app",
                committed={"t": [5, 5, 5]}, end={"t": [5, 9, 7]}, state="Stable", strategy="range")


@pytest.mark.parametrize("rule, code", [
    ("unassigned>0", 1), ("unassigned>1", 0), ("lag_total>5", 1), ("lag total>6", 0), ("balanced==yes", 1)])
def test_show_judges_a_group_as_it_is(rule, code):
    assert command("show", "-", "--fail-if", rule, text=LAGGING.to_json())[0] == code


def test_what_a_group_does_not_show_lets_no_check_of_it_pass():
    """Whatever lag is unknown, the check of it does not pass if the whole group fails it."""
    for unknown in range(1, 8):
        committed = [-1 if unknown & 1 << at else 0 for at in range(3)]
        text = LAGGING.replace(committed={"t": committed}, end={"t": [4, 9, 7]}, reset="none").to_json()
        for figure, true in ("lag_total", 20), ("lag_max", 9):
            code = command("show", "-", "--fail-if", f"{figure}>{true - 1}", text=text)[0]
            assert code in (1, 3)
    hidden = LAGGING.replace(state="PreparingRebalance").to_json()
    code, _, err = command("show", "-", "--fail-if", "unassigned>5", text=hidden)
    assert code == 3 and "so its figures are transient" in err


def test_rank_judges_the_number_of_needs():
    text = LAGGING.to_json()
    ranking = command("rank", "-", "--format", "json", text=text)[1]
    needs = [row["need"] for row in json.loads(ranking)]
    assert "no-owner" in needs
    for figure, count in {"needs": len(needs), "no-owner": 1, "idle": 0}.items():
        assert command("rank", "-", "--fail-if", f"{figure}>={count}", "--limit", "1", text=text)[0] == 1
        assert command("rank", "-", "--fail-if", f"{figure}>{count}", "--need", "lag", text=text)[0] == 0
    code, _, err = command("rank", "-", "--fail-if", "stuck>0", text=text)
    assert code == 3 and "offsets are not known at two moments" in err


def test_diff_judges_what_changed():
    old = LAGGING.replace(time="2026-01-01T00:00:00Z").to_json()
    new = LAGGING.replace(time="2026-01-01T01:00:00Z", end={"t": [5, 19, 7]}, committed={"t": [5, 5, 5]},
                          owned={"m": [("t", 0)], "n": [("t", 2)]}).to_json()
    for rule, code in (("owner>1", 1), ("owner>2", 0), ("lag>9", 1), ("lag>10", 0), ("member-left>0", 0),
                       ("changes>0", 1), ("stuck==1", 0)):
        assert command("diff", "-", "--fail-if", rule, text=f"{old}\n{new}\n")[0] == code, rule
    blind = [Group({"t": 3}, {"m": ["t"]}, name="app", time=f"2026-01-01T0{at}:00:00Z").to_json() for at in (0, 1)]
    for rule in ("lag>10", "stuck>0"):
        assert command("diff", "-", "--fail-if", rule, text="\n".join(blind))[0] == 3, rule


def test_lag_that_one_group_lost_does_not_hide_what_another_gained():
    def moment(hour, ends):
        times = {"time": f"2026-01-01T0{hour}:00:00Z", "state": "Stable"}
        return "".join(Group({"t": 1}, {"m": ["t"]}, owned={"m": [("t", 0)]}, name=name, committed={"t": [5]},
                             end={"t": [end]}, **times).to_json() + "\n" for name, end in ends.items())
    text = moment(0, {"a": 10, "b": 900}) + moment(1, {"a": 40, "b": 5})
    for rule, code in (("lag>29", 1), ("lag>30", 0)):
        assert command("diff", "-", "--fail-if", rule, text=text)[0] == code, rule


def test_committed_offsets_that_are_gone_are_a_change():
    old = LAGGING.replace(time="2026-01-01T00:00:00Z")
    new = old.replace(time="2026-01-01T01:00:00Z", committed={"t": [-1] * len(old.offsets.committed)})
    same = old.replace(time=new.time)
    for later, expected in ((new, 1), (same, 0)):
        text = f"{old.to_json()}\n{later.to_json()}\n"
        code, out, _ = command("diff", "-", "--fail-if", "changes>0", text=text)
        assert code == expected and ("that is gone" in out) == bool(expected)


@pytest.mark.parametrize("words, figures", [
    (["compare", "--demo"], FIGURES), (["show", "-"], FIGURES_OF_GROUP), (["rank", "-"], FIGURES_OF_RANKING),
    (["diff", "-"], FIGURES_OF_DIFFERENCE), (["replay", "-"], HISTORY_FIGURES)])
def test_the_name_of_no_figure_lists_those_that_there_are(words, figures):
    code, out, err = command(*words, "--fail-if", "mvoes>1", text="")
    assert code == 2 and out == "" and f"the figures are {', '.join(figures)}" in err
    assert err.count("\n") == 1
