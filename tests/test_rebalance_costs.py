"""What rebalances cost, and would have cost: beside what was measured, in recorded histories and by hand."""
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_history import FORECAST, LOGS, history

from kafka_assign import compare, read_history, replay
from kafka_assign.cli.histories import _savings
from kafka_assign.life.costs import RECORDED, ReplayRow, recorded_row
from kafka_assign.life.lines import Log
from kafka_assign.life.trace import Cause, Generation, History, Known, Pause

ROLLED = LOGS / "rolled-4.3.1"
QUARTER = 0.25


def rows_of(found, strategies, **options):
    """The rows of a history without static members, by group and strategy."""
    return {(row.group_id, row.strategy): row for row in replay(found, strategies, **options).rows
            if row.static is None}


# --- what really happened ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("capture", FORECAST)
def test_the_strategy_that_ran_costs_what_was_measured(capture):
    """An eager one to the millisecond: no rebalance is charged from the moment at which its coordinator heard of it."""
    strategy = FORECAST[capture][0]
    rows = {row.strategy: row for row in replay(history(capture, "both"), [strategy]).rows}
    exact = "cooperative" not in strategy
    assert rows[strategy].paused == pytest.approx(rows[RECORDED].paused, rel=0.001 if exact else 0.05)


def foretold(found, mine, other, strategy):
    """The row of a group for the strategy that another one ran, and what was measured there."""
    return rows_of(found, [strategy])[mine, strategy], recorded_row(found[other]).paused


@pytest.mark.parametrize("mine, ran, other, strategy", [
    ("ranged", "range", "sticked", "kafka-cooperative-sticky"),
    ("sticked", "kafka-cooperative-sticky", "ranged", "range")])
def test_groups_that_were_rolled_alike_foretell_each_other(mine, ran, other, strategy):
    """What-if of each from the logs of the other: within a quarter of what was measured, or without a percentage."""
    found = read_history(ROLLED)
    row, measured = foretold(found, mine, other, strategy)
    own = rows_of(found, [ran, strategy])
    [words, *_] = _savings([own[mine, RECORDED], own[mine, ran], own[mine, strategy]], own[mine, ran])
    assert own[mine, ran].paused == pytest.approx(own[mine, RECORDED].paused, rel=0.01)
    assert "%" not in words or abs(row.paused - measured) <= QUARTER * measured
    assert "%" in words or row.paused_least <= measured <= row.paused_most


def test_a_range_history_does_not_promise_that_cooperative_members_pause_less():
    """They stop for a second round of a whole heartbeat interval where eager ones stop for some milliseconds."""
    found = read_history(ROLLED)
    assert recorded_row(found["ranged"]).paused < recorded_row(found["sticked"]).paused
    row = rows_of(found, ["kafka-cooperative-sticky"])["ranged", "kafka-cooperative-sticky"]
    assert row.paused_least < recorded_row(found["ranged"]).paused < row.paused_most


@pytest.mark.parametrize("capture", ["range-4.3.1", "sticky-static-4.3.1", "cooperative-3.9.2"])
def test_without_logs_of_members_only_rebalances_and_moves_are_compared(capture):
    """The coordinator does not know when members stop: figures of pauses, and percentages, need their logs."""
    found = read_history([LOGS / capture / "broker", LOGS / capture / "truth/offsets-topic.dump.gz"])
    rows = replay(found, ["range", "kafka-sticky"]).rows
    assert {row.paused for row in rows[1:]} == {None} and all(row.moves for row in rows[1:])
    assert not any("%" in words for words in _savings(rows, rows[1]))


# --- by hand -----------------------------------------------------------------------------------------------------

def known(*topics, instance="", client=None, **more):
    return Known(client, instance, None, topics, **more)


def generation(number, begin, members, assigned, **more):
    """A rebalance of the group `g` that began then and took a second."""
    return Generation("g", 1, number, begin, begin + 0.9, begin + 1, members=members, protocol="range",
                      assigned={id: tuple(own) for id, own in assigned.items()}, **more)


def pairs(*numbers, topic="t"):
    return [(topic, number) for number in numbers]


def gone(why, pauses):
    """A history in which `b` is gone after 100 s, with these pauses, and `a` stopped 0.1 s before the end."""
    both, alone = {"a": known("t"), "b": known("t")}, {"a": known("t")}
    return History([generation(1, 0, both, {"a": pairs(0, 1), "b": pairs(2, 3)}),
                    generation(2, 100, alone, {"a": pairs(0, 1, 2, 3)}, causes=[Cause(why, "b")], pauses=pauses,
                               rejoined={"a": 100.9})])


@pytest.mark.parametrize("why, pauses, least, most", [
    ("leave", [Pause("t", at, 99.5, 1.5, "measured") for at in (2, 3)], 2 * 1.5, 2 * 1.5),
    ("leave", [], 2 * 1, 2 * 1),                                         # it closed, and told the coordinator
    ("death", [Pause("t", at, 58, 43, "at least") for at in (2, 3)], 2 * 43, 2 * 46),    # up to a heartbeat more
    ("death", [Pause("t", at, 100, 1, "at least") for at in (2, 3)], 2 * 1, None),       # for how long is unknown
    ("poll timeout", [Pause("t", at, 60, 41, "at least") for at in (2, 3)], 2 * 41, 2 * 41),
    ("poll timeout", [], 2 * 1, None)])
def test_a_member_that_is_gone_had_stopped_before(why, pauses, least, most):
    """A death contains its session, a poll timeout its interval; without them, the pause has no upper bound."""
    row = rows_of(gone(why, pauses), ["range"])["g", "range"]
    stay = 2 * 0.1
    assert row.paused_least == pytest.approx(stay + least)
    assert row.paused_most == (most and pytest.approx(stay + most))


SETTINGS = "INFO ConsumerConfig values: ", {
    "client.id": "c-1", "group.id": "g", "heartbeat.interval.ms": "500", "session.timeout.ms": "6000",
    "max.poll.interval.ms": "8000", "isolation.level": "read_uncommitted", "group.instance.id": "null"}


def envelopes(first, values):
    """The settings of a consumer as one record of several lines, and with an envelope around each line."""
    listed = [f"\t{name} = {value}" for name, value in values.items()]
    yield ["[2026-11-26 11:07:55,302] " + first, *listed, "", ]
    yield [f"pod-1 2026-11-26T11:07:55.302Z {line}" for line in ("2026-11-26 11:07:55,302 " + first, *listed)]
    for name in "log", "message":
        yield [f'{{"{name}":"{line}\\n","time":"2026-11-26T11:07:55Z"}}'.replace("\t", "\\t")
               for line in (first, *listed)]
    text = "\\n".join((first, *listed)).replace("\t", "\\t")
    yield [f'{{"@timestamp":"2026-11-26T11:07:55Z","message":"{text}"}}']


def test_the_settings_of_a_consumer_are_read_in_any_envelope():
    for lines in envelopes(*SETTINGS):
        for more in [], ["[2026-11-26 11:07:56,302] INFO Kafka version: 4.3.1"]:
            [one] = Log().read([*lines, *more]).said
            assert (one.kind, one.group, one.client, one.detail) == ("settings", "g", "c-1", (0.5, 6.0, 8.0)), lines


def test_settings_that_say_nothing_are_not_kept():
    first, values = SETTINGS
    for wrong in {"group.id": "null"}, {"heartbeat.interval.ms": "9" * 400, "session.timeout.ms": "x"}:
        for lines in envelopes(first, values | wrong):
            details = [one.detail for one in Log().read(lines).said]
            assert details == [(None, None, 8.0)] * ("session.timeout.ms" in wrong), lines


def test_a_poll_timeout_costs_its_interval_and_a_death_its_session_as_settings_tell():
    """In a real history, which names both: 8 s, and 6 s without a heartbeat interval of 0.5 s."""
    [group] = history("range-4.3.1", "both").values()
    found = {cause.why: one for one in group.generations for cause in one.causes}
    late = [pause for pause in found["poll timeout"].pauses if pause.kind == "at least"]
    assert len(late) == 6 and all(8 <= pause.seconds <= 9 for pause in late)
    dead = [pause for pause in found["death"].pauses if pause.kind == "at least"]
    assert len(dead) == 3 and all(5.5 <= pause.seconds <= 6.5 for pause in dead)


def test_a_partition_without_a_member_stands_still_until_it_has_one():
    """KIP-315 assigns no partition of `u` above those of `t`; they are charged until they grow, or until the end."""
    members = {"a": known("t", "u"), "b": known("t", "u")}
    small, large = pairs(0, 1), pairs(0, 1, 2, 3, topic="u")
    assigned = {"a": small[:1] + large[:2], "b": small[1:] + large[2:]}
    more = {"a": small + large[:2], "b": pairs(2, 3) + large[2:]}
    quick = {"a": 100.9, "b": 100.9}
    grown = [generation(1, 0, members, assigned), generation(2, 100, members, more, rejoined=quick)]
    late = [generation(1, 0, members, assigned), generation(2, 100, members, assigned, rejoined=quick)]
    for found, stopped in (grown, 4), (late, 4):
        row = rows_of(History(found), ["stream-join-sticky"])["g", "stream-join-sticky"]
        assert row.paused == pytest.approx(stopped * 0.1 + 2 * 100), found
        assert rows_of(History(found), ["range"])["g", "range"].paused == pytest.approx(6 * 0.1)


def test_what_compare_remarks_on_a_strategy_is_a_note():
    found = read_history(ROLLED)
    notes = replay(found, ["stream-join-sticky", "range"]).notes
    for group in found.values():
        remarks = [note.text for note in compare(group.generations[-1].group, "stream-join-sticky")[
            "stream-join-sticky"].notes if note.kind == "remark"]
        assert remarks and all(f"{group.name}: stream-join-sticky: {text}" in notes for text in remarks)


def test_a_strategy_that_needs_lag_has_a_note_and_no_row():
    found = replay(read_history(ROLLED), ["lag", "lag:max_skew=2", "range"])
    assert {row.strategy for row in found.rows} == {RECORDED, "range"}
    assert sum("no source tells the lag" in note for note in found.notes) == 2 * 2


# --- in words ----------------------------------------------------------------------------------------------------

def figures(name):
    """A row with bounds around its pauses, or without any."""
    sure = st.tuples(st.floats(1, 100), st.floats(0, 1), st.none() | st.floats(1, 3)).map(lambda some: (
        some[0], some[0] * some[1], some[2] and some[0] * some[2]))
    return (sure | st.just((None, None, None))).map(lambda some: ReplayRow(
        "g", name, None, 3, 3, some[0], 1, 1, some[1], some[2]))


@given(st.none() | st.floats(1, 100), figures("range"), st.tuples(figures("sticky"), figures("fair")))
def test_a_percentage_needs_figures_that_are_known(measured, ran, others):
    """The row of what ran agrees with what was measured, and no other truth within the bounds says the opposite."""
    recorded = ReplayRow("g", RECORDED, None, 3, 3, measured, None, 1, measured)
    words = " ".join(_savings([recorded, ran, *others], ran))
    if "%" in words or "would have cost less" not in words and "would have cost" in words and "clearly" not in words:
        assert abs(ran.paused - measured) <= QUARTER * measured
        named = next(row for row in others if words.startswith(row.strategy))
        assert named.paused_most < ran.paused_least
    if "%" in words:
        for row in ran, named:
            assert row.paused_most <= (1 + QUARTER) * row.paused + 1e-9
            assert row.paused_least >= (1 - QUARTER) * row.paused - 1e-9
        assert int(words.split(": ")[1].split(" %")[0]) >= 100 * QUARTER


def test_savings_are_stated_where_figures_are_known():
    def row(name, *paused):
        return ReplayRow("g", name, None, 3, 3, paused[0], 1, 1, *paused[1:])
    recorded, ran = row(RECORDED, 100.0, 100.0), row("range", 100.0, 100.0, 100.0)
    for other, words in [
            (row("fair", 40.0, 40.0, 40.0),
             "fair would have cost 40.0 partition-seconds instead of the 100.0 of range: 60 % less"),
            (row("fair", 40.0, 10.0, 70.0),
             "fair would have cost 10.0 to 70.0 partition-seconds instead of the 100.0 of range"),
            (row("fair", 40.0, 10.0, 170.0),
             "whether fair would have cost less is open: 10.0 to 170.0 partition-seconds"),
            (row("fair", 95.0, 95.0, 95.0), "no other strategy would have cost clearly less")]:
        [found] = _savings([recorded, ran, other], ran)
        assert found.startswith(words)
    wrong = ran._replace(paused=300.0, paused_least=300.0, paused_most=300.0)
    [found] = _savings([recorded, wrong, row("fair", 1.0, 1.0, 1.0)], wrong)
    assert found.startswith("no saving is stated: 300.0 partition-seconds are computed for range, which ran, but 100.0")
