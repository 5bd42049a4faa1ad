"""Histories of rebalances from logs: what six real ones say is compared with what the members' callbacks saw, and with
what the coordinator stored. No assignment and no pause may be wrong, whatever happens to the files."""
import gzip
import json
import random
import re
import shutil
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from kafka_assign import read_history, replay
from kafka_assign.cli.app import program
from kafka_assign.life.clocks import read_log
from kafka_assign.life.lines import Log
from kafka_assign.life.offsets_topic import OffsetsReader
from kafka_assign.life.costs import RECORDED, needless_moves, period, recorded_row, slowest
from kafka_assign.life.trace import Cause, Generation, GroupHistory, History, Known
from kafka_assign.snapshot.sources import Origin

LOGS = Path(__file__).parent / "logs"
TOPIC_IDS = {"BFNrHrQMR3qpE67sY8nwnQ": "audit", "Jv0zEOsZRJei_rHkDOy11w": "ledger"}      # of consumer-4.3.1
SOURCES = {"broker": ["broker"], "members": ["members"], "both": ["broker", "members"],
           "topic": ["truth/offsets-topic.dump.gz"], "broker and topic": ["broker", "truth/offsets-topic.dump.gz"]}
FOUND = {  # by capture: generations; whole assignments from members, from both and from the topic; measured pauses
    "range-4.3.1": (16, 15, 15, 15, 158), "cooperative-3.9.2": (31, 30, 30, 30, 60),
    "sticky-slow-static-4.3.1": (15, 15, 15, 15, 167), "sticky-static-4.3.1": (12, 12, 12, 12, 128),
    "python-4.3.1": (27, 11, 24, 24, 35), "consumer-4.3.1": (15, 0, 0, 14, 44)}
FORECAST = {"range-4.3.1": ("range", 15, 15), "cooperative-3.9.2": ("kafka-cooperative-sticky", 29, 30),
            "sticky-slow-static-4.3.1": ("kafka-sticky", 15, 15), "sticky-static-4.3.1": ("kafka-sticky", 12, 12)}
captures = pytest.mark.parametrize("capture", FOUND)


@cache
def events(capture):
    """The events of a capture, by time."""
    with gzip.open(LOGS / capture / "truth.jsonl.gz", "rt") as file:
        return sorted(map(json.loads, file), key=lambda event: event["t"])


@cache
def stored(capture):
    """By group and generation: the assignment that the coordinator stored first."""
    reader, found = OffsetsReader(), {}
    with gzip.open(LOGS / capture / "truth/offsets-topic.dump.gz", "rt") as file:
        for said in chain.from_iterable(map(reader.line, file)):
            if said.kind == "stored":
                own = {id: by_name(pairs) for id, pairs in said.detail[0].items()}
                found.setdefault((said.group, said.generation), own)
    return found


def by_name(partitions):
    return tuple(sorted((TOPIC_IDS.get(topic, topic), number) for topic, number in partitions))


@cache
def pauses(capture):
    """By partition: when it stood still according to callbacks, and whether because a member was killed."""
    groups = {event["client"]: event["group"] for event in events(capture) if event["event"] == "start"}
    owned, stopped, found = defaultdict(set), {}, defaultdict(list)
    for event in events(capture):
        if event["event"] == "kill":
            stopped |= {(groups[event["client"]], name): event["t"] for name in owned.pop(event["client"], ())}
        elif event["event"] in ("revoked", "lost") and event["who"] != "script":
            stopped |= {(groups[event["who"]], name): event["t"] for name in event["partitions"]}
            owned[event["who"]] -= {*event["partitions"]}
        elif event["event"] == "assigned":
            owned[event["who"]] |= {*event["partitions"]}
            for key in {(groups[event["who"]], name) for name in event["partitions"]} & stopped.keys():
                found[key].append((stopped.pop(key) / 1000, event["t"] / 1000))
    return found


def paths(capture, source):
    return [LOGS / capture / path for path in SOURCES[source]]


@cache
def history(capture, source):
    return read_history(paths(capture, source))


def generations(found):
    return [one for group in found.values() for one in group.generations]


def checked(capture, found):
    """How many generations, whole assignments and measured pauses a history has; it fails if one of them is wrong."""
    whole = measured = 0
    for one in generations(found):
        truth = stored(capture).get((one.group_id, one.generation), {})
        if one.whole and one.members:
            own = {re.sub("(-[0-9a-f]+){5}$", "", id): by_name(pairs) for id, pairs in one.assigned.items()}
            assert own == {re.sub("(-[0-9a-f]+){5}$", "", id): pairs for id, pairs in truth.items()}, one
            whole += 1
        else:                                       # static members may have got another id since the first record
            assert all(by_name(own) == truth[id] for id, own in one.assigned.items() if id in truth), one
        for topic, number, begin, seconds, kind in one.pauses:
            real = pauses(capture)[one.group_id, f"{topic}-{number}"]
            if kind == "measured":
                assert any(abs(start - begin) < 0.5 and abs(end - start - seconds) < 0.35 for start, end in real), one
                measured += 1
            else:
                near = [end - start for start, end in real if start < begin + seconds and end > begin]
                assert not near or max(near) > seconds - 0.05, one
    return len(generations(found)), whole, measured


def trace(found):
    return [json.loads(json.dumps(one.row())) for one in generations(found)]


@captures
@pytest.mark.parametrize("source", SOURCES)
def test_nothing_is_wrong_from_any_source(capture, source):
    count, of_members, of_both, of_topic, measured = FOUND[capture]
    found = checked(capture, history(capture, source))
    if source != "members":                                # members do not see that the last of them has left
        assert found[0] == count
    assert found[1:] == {"broker": (0, 0), "members": (of_members, measured if capture != "consumer-4.3.1" else 0),
                         "both": (of_both, measured), "topic": (of_topic, 0), "broker and topic": (of_topic, 0)}[source]


def test_members_that_left_own_nothing_under_the_new_protocol():
    """Records without a value delete what was stored; after each rest, members own what their callbacks say."""
    found = history("consumer-4.3.1", "broker and topic")["ledger"].generations
    for one in found:
        assert sum(map(len, one.assigned.values())) == len(one.owners)
        assert "topics" not in one.missing or not one.assigned
    owned, checks = {}, 0
    for event in events("consumer-4.3.1"):
        if "member_id" in event and event["member_id"]:
            owned[event["member_id"]] = sorted(event["after"])
        elif event["event"] == "settled" and event["ok"]:
            last = max((one for one in found if one.answered and one.answered < event["t"] / 1000),
                       key=lambda one: one.generation)
            told = {id: sorted(f"{topic}-{number}" for topic, number in own) for id, own in last.assigned.items()}
            checks += all(owned.get(id) == own for id, own in told.items())
    assert checks >= 9
    alone = history("consumer-4.3.1", "topic")["ledger"].generations
    assert all("topics" in one.missing for one in alone if one.members)


@captures
def test_what_is_missing_is_named(capture):
    """Each source lacks what it cannot tell, and a figure that is unknown is None."""
    for one in generations(history(capture, "broker")):
        assert "assignment" in one.missing or not one.members and one.whole
    for one in generations(history(capture, "topic")):
        assert one.start is None or capture == "consumer-4.3.1"
        assert {"start", "pauses"} & {*one.missing} or capture == "consumer-4.3.1"
    for one in generations(history(capture, "members")):
        assert ("start" in one.missing) == (one.start is None) and ("causes" in one.missing) == (not one.causes)


WHY = {"start": "join", "leave": "leave", "kill": "death", "topic grown": "topics", "slow": "poll timeout",
       "subscribe": "subscription", "rejoin": "asked"}


@pytest.mark.parametrize("source", ["broker", "members", "both"])
@pytest.mark.parametrize("capture", ["range-4.3.1", "cooperative-3.9.2"])
def test_every_scripted_event_is_a_cause(capture, source):
    """Before the group was next seen at rest, some generation names the event and its client."""
    script, told = [event for event in events(capture) if event["who"] == "script"], 0
    for at, event in enumerate(script):
        why = WHY.get(event["event"]) or WHY.get(event.get("command", "").split(" ")[0])
        if why is None:
            continue
        rest = next((one["t"] for one in script[at:] if one["event"] == "settled"), script[-1]["t"])
        near = [cause for one in generations(history(capture, source))
                if event["t"] - 1000 < 1000 * (one.start or one.joined or 0) < rest + 1000 for cause in one.causes]
        others = {"death": {"gone"} if source == "members" else set(), "subscription": {"topics"}}
        whoever = why in ("topics", "subscription")             # the leader sees what changed
        assert any(cause.why in {why, *others.get(why, ())} and (whoever or cause.client in ("", event["client"]))
                   for cause in near), (event, near)
        told += 1
    assert told == {"range-4.3.1": 16, "cooperative-3.9.2": 23}[capture]


@captures
def test_a_trace_is_read_again(capture, tmp_path):
    """Also after a while: its lines, in any order of groups, are the same history."""
    found = history(capture, "both")
    with open(tmp_path / "trace.jsonl", "w") as file:
        found.write(file)
    again = read_history(tmp_path)
    assert trace(again) == trace(found)
    assert [one.group and one.group.to_json() for one in generations(again)] == \
        [one.group and one.group.to_json() for one in generations(found)]


def unpacked(capture, folder):
    """A copy of the logs of a capture as plain text; the paths of the files."""
    made = []
    for path in sorted(path for name in ("broker", "members") for path in (LOGS / capture / name).iterdir()):
        to = folder / path.parent.name / path.stem
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(gzip.decompress(path.read_bytes()))
        made.append(to)
    return made


@captures
def test_files_that_are_given_twice_change_nothing(capture, tmp_path):
    for copy in "ab":
        unpacked(capture, tmp_path / copy)
    assert trace(read_history(tmp_path)) == trace(history(capture, "both"))


SECOND = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\|\d{10}(?=\.)")


def shuffled(text):
    """The records of a log, those of the same second in another order."""
    records = []
    for line in text.split("\n"):
        second = SECOND.search(line)
        if records and (line[:1] in "\t " or not second):
            records[-1][1] += "\n" + line
        else:
            records.append([second[0] if second else "", line])
    order, rng = {}, random.Random(1)
    for second, _ in records:
        order.setdefault(second, len(order))
    return "\n".join(text for *_, text in sorted((order[second], rng.random(), text) for second, text in records))


@captures
def test_lines_of_the_same_second_may_come_in_any_order(capture, tmp_path):
    """Lists of librdkafka, which take many lines, are lost; all else is the same."""
    for path in unpacked(capture, tmp_path):
        path.write_text(shuffled(path.read_text()))
    found = read_history(tmp_path)
    if capture == "python-4.3.1":
        assert checked(capture, found)[0] == FOUND[capture][0]
    else:
        assert trace(found) == trace(history(capture, "both"))


@captures
def test_rotated_and_packed_parts_are_one_log(capture, tmp_path):
    for path in unpacked(capture, tmp_path):
        lines = path.read_text().splitlines(keepends=True)
        third = len(lines) // 3
        path.write_text("".join(lines[2 * third:]))
        for name, part in (".2.gz", lines[:third]), (".1.gz", lines[third:2 * third]):
            Path(f"{path}{name}").write_bytes(gzip.compress("".join(part).encode()))
    found = read_history(tmp_path)
    assert trace(found) == trace(history(capture, "both"))
    assert len(found.logs) == len(history(capture, "both").logs)


def later(text, by):
    """A log whose clock is `by` ahead."""
    return re.sub(r"(\d{4}-\d\d-\d\d)([T ])(\d\d:\d\d:\d\d)", lambda found: (
        datetime.fromisoformat(f"{found[1]}T{found[3]}") + by).isoformat(found[2]), text)


@pytest.mark.parametrize("source, capture", [
    *[("both", capture) for capture in FOUND], *[("members", capture) for capture in FORECAST]])
def test_a_clock_that_is_wrong_is_set(capture, source, tmp_path):
    """A member's clock is 9 hours and 17 s ahead; without the coordinator, most others contradict it."""
    changed = [path for path in unpacked(capture, tmp_path) if path.parent.name == "members"][1]
    changed.write_text(later(changed.read_text(), timedelta(hours=9, seconds=17)))
    found = read_history(tmp_path if source == "both" else tmp_path / "members")
    shifts = {log.name: log.shift for log in found.logs}
    assert shifts[str(changed)] == pytest.approx(-32417, abs=0.3)
    assert checked(capture, found) == checked(capture, history(capture, source))


def in_one_file(paths, change):
    """The lines of logs by time, as several processes write them into one file; `change`: of a path and a line."""
    lines, last = [], ""
    for path in paths:
        for line in path.read_text().split("\n"):
            found = TIME.search(line)
            last = found[1].replace(",", ".") if found else last
            lines.append((last, change(path, line)))
    return "\n".join(line for _, line in sorted(lines, key=lambda pair: pair[0])) + "\n"


TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]([\d:]+[.,]\d+)")


@pytest.mark.parametrize("undated", ["broker", "members"])
@pytest.mark.parametrize("capture", FORECAST)
def test_times_with_dates_and_without_are_not_compared(capture, undated, tmp_path):
    """A broker and its clients write into one file. Generations and assignments are known, and no pause is wrong."""
    text = in_one_file(unpacked(capture, tmp_path), lambda path, line: (
        TIME.sub(r"\1", line) if path.parent.name == undated else line))
    first = "00:00:01.000 INFO [Consumer clientId=c, groupId=h] Subscribed to topic(s): a\n"
    for found in read_history(text), read_history(first + text):
        assert checked(capture, found)[:2] == (FOUND[capture][0], FOUND[capture][2])
        if undated == "members":
            assert [one.start for one in generations(found)] == [
                one.start for one in generations(history(capture, "broker"))]


@pytest.mark.parametrize("coarse", ["broker", "members", "broker members"])
@captures
def test_times_in_whole_seconds_make_no_other_generation(capture, coarse, tmp_path):
    """Messages of the same second may seem to come in another order. Pauses are right within the resolution."""
    for path in unpacked(capture, tmp_path):
        if path.parent.name in coarse.split():
            path.write_text(re.sub(r"(\d{4}-\d\d-\d\d[T ][\d:]{8})[.,]\d+", r"\1", path.read_text()))
    found = generations(read_history(tmp_path))
    for one, told in zip(found, generations(history(capture, "both")), strict=True):
        assert (one.group_id, one.life, one.generation, one.assigned) == (
            told.group_id, told.life, told.generation, told.assigned)
        seconds = {pause[:2]: pause.seconds for pause in told.pauses}
        assert all(abs(pause.seconds - seconds[pause[:2]]) < 1.1 for pause in one.pauses)


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("source", ["members", "both"])
@pytest.mark.parametrize("capture", ["range-4.3.1", "cooperative-3.9.2"])
def test_members_that_share_a_client_id_and_a_log_are_not_mixed_up(capture, source, answers, tmp_path):
    """As pods with Java's default client ids do: only the leader's answer says which member got what."""
    def change(path, line):
        line = re.sub(r"clientId=[\w-]+,", "clientId=consumer-orders-1,", line)
        return line if answers or "Finished assignment" not in line else ""
    paths = [path for path in unpacked(capture, tmp_path) if source == "both" or path.parent.name == "members"]
    found = read_history(in_one_file(paths, change))
    leaders = {one.generation: one.leader for one in generations(history(capture, "broker"))}
    assert checked(capture, found)[1:] == (FOUND[capture][1] if answers else 0, 0)
    assert all(one.leader in ("", leaders[one.generation]) for one in generations(found))


@captures
def test_a_log_that_begins_late_loses_only_what_came_before(capture, tmp_path):
    """Logs begin with generation 5; the first assignment that is seen claims no moves and no pauses."""
    first = next(one for one in generations(history(capture, "both")) if one.generation == 5)
    for path in unpacked(capture, tmp_path):
        kept, on = [], False
        for line in path.read_text().split("\n"):
            if found := SECOND.search(line):
                text = found[0]
                time = float(text[1:]) if text[0] == "|" else datetime.fromisoformat(text + "+00:00").timestamp()
                on = time >= int(first.start)
            kept += [line] * on
        path.write_text("\n".join(kept))
    found = read_history(tmp_path)
    checked(capture, found)
    rows = {(one.group_id, one.generation): one for one in generations(found)}
    for one in generations(history(capture, "both")):
        if one.group_id == first.group_id and one.generation > 5:
            got = rows[one.group_id, one.generation]
            assert (got.start, got.joined, got.assigned) == (one.start, one.joined, one.assigned)
    assert capture == "consumer-4.3.1" or not found[first.group_id].generations[0].pauses


@pytest.mark.parametrize("source", ["members", "both"])
@pytest.mark.parametrize("capture", ["range-4.3.1", "cooperative-3.9.2", "sticky-static-4.3.1"])
def test_a_member_whose_log_is_missing_is_not_guessed(capture, source, tmp_path):
    """Without the log of the member that led most, some assignments are known in part, and none is wrong."""
    leaders = Counter(one.leader for one in generations(history(capture, source)))
    leader = max(leaders, key=leaders.get)
    for path in unpacked(capture, tmp_path):
        if f"memberId='{leader}'" in path.read_text():
            path.unlink()
    found = checked(capture, read_history(tmp_path if source == "both" else tmp_path / "members"))
    assert found[1] < FOUND[capture][1] and found[2] < FOUND[capture][4]


def damaged(lines, rng):
    """The lines of a log of which some are missing, one by one or many at once, cut off, or there twice."""
    lost, cut, twice = (rng.random() < 0.5 for _ in range(3))
    lines = [line for line in lines if not lost or rng.random() > 0.05]
    if rng.random() < 0.3:                                 # a hole, or an end that is missing
        begin = rng.randrange(-len(lines) // 4, len(lines))
        lines = lines[:max(0, begin)] + lines[begin + len(lines) // 4:]
    return [line[:rng.randrange(len(line) + 1)] if cut and rng.random() < 0.02 else line
            for line in lines for _ in range(1 + (twice and rng.random() < 0.1))]


def check_damaged(capture, seed, folder):
    rng = random.Random(seed)
    files = unpacked(capture, folder)
    (folder / "topic").mkdir()
    with gzip.open(LOGS / capture / "truth/offsets-topic.dump.gz", "rt") as file:
        (folder / "topic" / "dump").write_text(file.read())
    for path in [*files, folder / "topic" / "dump"]:
        path.write_text("\n".join(damaged(path.read_text().split("\n"), rng)))
        if path.parent.name == "members" and rng.random() < 0.1:
            path.unlink()
    for names in (["broker", "members"], ["members"], ["members", "topic"], ["broker", "topic"]):
        found = read_history([folder / name for name in names])
        checked(capture, found)
        replay(found, ["cooperative-sticky"], static=45)
        for one in generations(found):
            told = {(one.life, one.generation): one for one in history(capture, "both")[one.group_id].generations}
            for id, time in one.rejoined.items():
                assert abs(time - told[one.life, one.generation].rejoined.get(id, time)) < 2


@captures
@pytest.mark.parametrize("seed", range(5))
def test_lines_that_are_lost_or_cut_off_make_nothing_wrong(capture, seed, tmp_path):
    """Less is known, and all that is known is right."""
    check_damaged(capture, seed, tmp_path)


@captures
@pytest.mark.long
def test_lines_that_are_lost_make_nothing_wrong_however_often_it_is_tried(capture, tmp_path):
    for seed in range(100, 160):
        check_damaged(capture, seed, tmp_path / str(seed))


LEFT = {"leave", "death", "poll timeout", "late", "gone"}          # some of these say more than others


def named(generation):
    """Who came and who left, as causes of a generation; a static member by its instance, any other by its id."""
    found = set()
    for cause in generation.causes:
        if cause.why in LEFT or cause.why == "join":
            known = generation.members.get(cause.member) or generation.before and generation.before.members.get(
                cause.member) or Known()
            found.add((known.name(cause.member), "left" if cause.why in LEFT else "join"))
    return found


def thinned(lines, rng):
    """The lines of a log without many of them, one by one and in a row."""
    kept = rng.choice([0.02, 0.1, 0.3])
    lines = [line for line in lines if rng.random() > kept]
    begin, size = rng.randrange(len(lines)), len(lines) // rng.choice([4, 8, 16])
    return lines if rng.random() < 0.6 else lines[:begin] + lines[begin + size:]


@cache
def texts_of(capture, source):
    return [gzip.decompress(file.read_bytes()).decode().split("\n") for path in paths(capture, source)
            for file in (sorted(path.iterdir()) if path.is_dir() else [path])]


@cache
def true_causes(capture):
    """By group and generation: who came and left according to any whole log, and in which generation each did."""
    found = defaultdict(set)
    for source in SOURCES:
        for one in generations(history(capture, source)):
            found[one.group_id, one.generation] |= named(one)
    return found


def check_thinned(capture, source, seed):
    rng = random.Random(seed)
    texts = ["\n".join(thinned(lines, rng)) + "\n" for lines in texts_of(capture, source)]
    found = read_history(texts)
    checked(capture, found)
    ids = {known.instance for one in generations(history(capture, "both")) for known in one.members.values()} - {""}
    whole = {(one.group_id, one.generation): one for one in generations(history(capture, "both"))}
    for one in generations(found):
        truth = whole[one.group_id, one.generation]
        if not ids:                                            # else ids of static members change
            assert named(one) <= true_causes(capture)[one.group_id, one.generation], (one, truth)
        if "members" not in one.missing and "members" not in truth.missing:
            assert len(one.members) == len(truth.members)
        for name in "start", "joined", "answered":
            if None not in (time := getattr(one, name), getattr(truth, name)):
                apart = time - getattr(truth, name)            # the first line that is left may be a later one
                assert apart > -2 and (apart < 2 or name == "start" and time <= one.joined + 0.3), (name, one, truth)


LOSSES = [*[(capture, source, seed) for capture in ("range-4.3.1", "cooperative-3.9.2") for source in (
    "broker", "members", "both") for seed in range(4, 8)], *[(capture, "both", 0) for capture in FOUND]]


@pytest.mark.parametrize("capture, source, seed", LOSSES)
def test_what_is_certain_after_lost_lines_is_true(capture, source, seed):
    """Who came and left is said of the generation where it happened, or not at all, and no pause is longer."""
    check_thinned(capture, source, seed)


@captures
def test_the_order_of_files_changes_nothing(capture):
    """Nor if many of their lines are lost."""
    rng = random.Random(3)
    texts = ["\n".join(thinned(lines, rng)) + "\n" for lines in texts_of(capture, "broker and topic")] + [
        "\n".join(lines) + "\n" for lines in texts_of(capture, "members")]
    assert trace(read_history(texts[::-1])) == trace(read_history(texts))


@captures
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.long
def test_what_is_certain_after_lost_lines_is_true_however_often_it_is_tried(capture, source):
    for seed in range(1000, 1060):
        check_thinned(capture, source, seed)


LOST_JOINS = {  # what a member logs after its join in generation 1: when, what; the lines of the next join are lost
    "it asks again": [(2, "(Re-)joining group"), (3, "Notifying assignor about the new Assignment(partitions=[a-1])")],
    "said twice": [(1, "Notifying assignor about the new Assignment(partitions=[a-0])"),
                   (3, "Notifying assignor about the new Assignment(partitions=[a-1])")],
    "late": [(30, "Notifying assignor about the new Assignment(partitions=[a-1])")]}


@pytest.mark.parametrize("name", LOST_JOINS)
def test_what_follows_a_lost_join_is_of_an_unknown_generation(name):
    join = "Successfully joined group with generation Generation{generationId=1, memberId='m', protocol='range'}"
    text = "".join(f"[2026-01-01 00:00:{at:02},000] INFO [Consumer clientId=c, groupId=g] {line} (a.b.C)\n"
                   for at, line in [(0, join), *LOST_JOINS[name]])
    [one] = read_history(text)["g"].generations
    assert one.assigned == ({"m": (("a", 0),)} if name == "said twice" else {})


def test_a_static_member_that_is_back_does_not_stand_still_all_the_while(tmp_path):
    """Of its restart within generation 3, only the end of the old process and the start of the new one are left."""
    capture = "sticky-static-4.3.1"
    [path] = [path for path in unpacked(capture, tmp_path) if path.name == "app-1.log"]
    lines = path.read_text().split("\n")
    joins = [at for at, line in enumerate(lines) if "Successfully joined" in line and "generationId=3" in line]
    closed = next(at for at, line in enumerate(lines) if at > joins[0] and "Revoke previously" in line)
    again = next(at for at, line in enumerate(lines) if "generationId=4" in line)
    assert joins[0] < closed < joins[1] < again
    path.write_text("\n".join(line for at, line in enumerate(lines)
                              if not closed < at < again or "Subscribed to topic(s)" in line))
    assert checked(capture, read_history(tmp_path))[2] < FOUND[capture][4]


def with_a_partition(number, folder):
    """The logs of members, in which the leader's answer of generation 3 has a partition of this number."""
    for log in (LOGS / "range-4.3.1/members").iterdir():
        with gzip.open(log, "rt") as file:
            text = file.read()
        (folder / log.stem).write_text(re.sub("(at generation 3: .*)payments-3", rf"\1payments-{number}", text))
    return read_history(folder)


@pytest.mark.parametrize("number", [10**6, 2**24])
def test_a_partition_that_no_topic_can_have_makes_an_assignment_unknown(number, tmp_path):
    group = with_a_partition(number, tmp_path)["orders"]
    assert [one.generation for one in group.generations if not one.assigned] == [3, 16]
    assert group.generations[2].missing == ["assignment", "pauses"] and not group.generations[2].pauses


def test_a_line_with_a_number_that_kafka_cannot_have_is_as_if_lost(tmp_path):
    """What the members got is known from their own lines."""
    found = with_a_partition(4294967299, tmp_path)
    assert [one.generation for one in found["orders"].generations if not one.assigned] == [16]
    assert [log.rejected for log in found.logs if log.problem] == [1]


def test_a_coordinator_moves_to_another_broker(tmp_path):
    """The generations of both brokers' logs are one life; the brokers share no generation."""
    [broker, *_] = unpacked("range-4.3.1", tmp_path)
    lines = broker.read_text().splitlines(keepends=True)
    half = next(at for at, line in enumerate(lines) if "Stabilized group orders generation 8 " in line) + 2
    broker.write_text("".join(lines[:half]))
    moved = lines[half].replace(lines[half].split("] ", 2)[2], "Loaded classic group orders with 2 members.\n")
    (tmp_path / "broker" / "other.log").write_text("".join([moved, *lines[half:]]))
    assert trace(read_history(tmp_path)) == trace(history("range-4.3.1", "both"))


def test_a_group_that_is_deleted_begins_another_life():
    def line(second, message):
        return f"[2026-01-01 00:00:{second:02},000] INFO [GroupCoordinator 1]: {message} (kafka.coordinator.group)\n"

    text = "".join([
        line(1, "Preparing to rebalance group g in state PreparingRebalance with old generation 6 "
                "(__consumer_offsets-0) (reason: removing member m on heartbeat expiration)"),
        line(2, "Stabilized group g generation 7 (__consumer_offsets-0) with 1 members"),
        line(3, "Preparing to rebalance group g in state PreparingRebalance with old generation 0 "
                "(__consumer_offsets-0) (reason: Adding new member m2 with group instance id None)"),
        line(4, "Stabilized group g generation 1 (__consumer_offsets-0) with 1 members")])
    found = read_history(text)["g"].generations
    assert [(one.life, one.generation) for one in found] == [(1, 7), (2, 1)]
    assert [cause.why for one in found for cause in one.causes] == ["death", "join"]


def test_an_interrupted_rebalance_has_no_assignment():
    """The coordinator stabilized generation 2, but never got its assignment: what the leader computed was not sent."""
    lines = ["[GroupCoordinator 1]: Stabilized group g generation 1 (__consumer_offsets-0) with 1 members",
             "[GroupCoordinator 1]: Assignment received from leader m for group g for generation 1.",
             "[GroupCoordinator 1]: Preparing to rebalance group g in state PreparingRebalance with old generation 1 "
             "(__consumer_offsets-0) (reason: Adding new member n with group instance id None)",
             "[GroupCoordinator 1]: Stabilized group g generation 2 (__consumer_offsets-0) with 2 members",
             "[Consumer clientId=m, groupId=g] Successfully joined group with generation Generation{generationId=2, "
             "memberId='m', protocol='range'}",
             "[Consumer clientId=m, groupId=g] Finished assignment for group at generation 2: "
             "{m=Assignment(partitions=[a-0]), n=Assignment(partitions=[a-1])}",
             "[GroupCoordinator 1]: Preparing to rebalance group g in state PreparingRebalance with old generation 2 "
             "(__consumer_offsets-0) (reason: removing member n on heartbeat expiration)"]
    text = "".join(f"[2026-01-01 00:00:0{at},000] INFO {line} (a.b.C)\n" for at, line in enumerate(lines))
    one, two, three = read_history(text)["g"].generations
    assert (two.joined, two.answered, two.assigned) == (one.joined + 3, None, {})
    assert "assignment" in two.missing and "answered" not in two.missing
    assert [cause.why for cause in three.causes] == ["death"]


VERSIONS = {  # messages as versions of Kafka wrote them, and what they say
    "2.0": ("Preparing to rebalance group a b with old generation 6 (__consumer_offsets-0)", None),
    "2.2": ("Preparing to rebalance group a b in state PreparingRebalance with old generation 6 (__consumer_offsets-0) "
            "(reason: Adding new member m)", ("preparing", 6, "", "")),
    "2.2 joined": ("Stabilized group a b generation 7 (__consumer_offsets-0)", ("stabilized", 7, "", None)),
    "2.8 joined": ("Stabilized group a b generation 7 (__consumer_offsets-0) with 3 members", ("stabilized", 7, "", 3)),
    "2.8 answered": ("Assignment received from leader for group a b for generation 7. The group has 3 members, 0 of "
                     "which are static.", ("answered", 7, "", None)),
    "2.8 leave": ("Member[group.instance.id None, member.id m 1] in group a b has left, removing it from the group",
                  ("leaves", -1, "m 1", None)),
    "3.0 leave": ("Member MemberMetadata(memberId=m 1, groupInstanceId=Some(i), clientId=c, clientHost=/10.0.0.1, "
                  "sessionTimeoutMs=45000, rebalanceTimeoutMs=1, supportedProtocols=List(range)) has left group a b "
                  "through explicit `LeaveGroup`", ("leaves", -1, "m 1", ("10.0.0.1", 45.0, 0.001))),
    "4.0 leave": ("[Group a b] Member m 1 has left group through explicit `LeaveGroup` request; client reason: x",
                  ("leaves", -1, "m 1", None)),
    "late": ("Group a b removed dynamic members who haven't joined: Set(m 1, n)", ("late", -1, "", None)),
    "empty": ("Group a b with generation 7 is now empty (__consumer_offsets-0)", ("emptied", 7, "", None)),
    "new protocol": ("[GroupId a b] Static member m with instance id i left the consumer group.",
                     ("leaves", -1, "m", None)),
    "temporarily": ("[GroupId a b] Static member m with instance id i temporarily left the consumer group.", None),
    "fenced": ("[GroupId a b] Member m fenced from the group because the member session expired.",
               ("fails", -1, "m", None)),
    "epoch": ("[GroupId a b] Bumped group epoch to 7 with metadata hash -3.", ("bumped", 7, "", None))}


@pytest.mark.parametrize("version", VERSIONS)
def test_messages_of_all_versions(version):
    message, expected = VERSIONS[version]
    said = Log().read([f"[2026-01-01 00:00:00,000] INFO [GroupCoordinator 1]: {message} (a.b.C)"]).said
    if expected is None:
        assert said == []
    else:
        kind, generation, member, detail = expected
        [one] = said
        assert (one.kind, one.group, one.generation, one.member) == (kind, "a b", generation, member)
        assert detail == "" or one.detail == detail


BROKER = ("[GroupCoordinator 1]: Stabilized group my group generation 7 (__consumer_offsets-0) with 2 members",
          ("my group", "stabilized", 7))
JAVA = ("[Consumer clientId=c 1, groupId=my group] Successfully joined group with generation "
        "Generation{generationId=7, memberId='c 1-334b7f49-1d03-4ea8-ab57-a338fa788a69', protocol='range'}",
        ("my group", "joined", 7))
AIOKAFKA = ("Joined group 'my group' (generation 7) with member_id c-334b7f49-1d03-4ea8-ab57-a338fa788a69",
            ("my group", "joined", 7))
RDKAFKA = ('JoinGroup response: GenerationId 7, Protocol range, LeaderId l, my MemberId m, member metadata count 0',
           ("my group", "joined", 7))
NAMES = '[thrd:main]: Group "my group": join with 1 subscribed topic(s)'
KAFKA = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
ENVELOPES = {  # name: the text around a message, the message, and its time, in UTC where the text says so
    "default": (f"[2022-01-07 11:19:06,977] INFO %s ({KAFKA})", BROKER, "2022-01-07T11:19:06.977"),
    "compose": (f"kafka_1  | [2022-01-07 11:19:06,977] INFO %s ({KAFKA})", BROKER, "2022-01-07T11:19:06.977"),
    "strimzi": (f"2021-05-04T16:41:31.006683114Z 2021-05-04 18:41:31,006 INFO %s ({KAFKA}) [thread-0]", BROKER,
                "2021-05-04T16:41:31.006"),
    "kibana": (f"Jan 17, 2020 @ 15:54:24.877\n[2020-01-17 10:24:24,877] INFO %s ({KAFKA})", BROKER,
               "2020-01-17T10:24:24.877"),
    "confluent": (f"[INFO] 2026-07-23 19:36:22,834 [thread] {KAFKA} info - app=kafka, clusterId=x, server=0 - %s",
                  BROKER, "2026-07-23T19:36:22.834"),
    "connect": (f"[2025-11-14 18:29:58,764] INFO [my-sink|task-0] %s ({KAFKA}:943)", JAVA, "2025-11-14T18:29:58.764"),
    "spring 2": ("2022-10-05 18:35:04.693  INFO 3618015 --- [ntainer#0-0-C-1] o.a.k.c.c.i.ConsumerCoordinator  : %s",
                 JAVA, "2022-10-05T18:35:04.693"),
    "spring 3": ("2024-03-01T10:00:00.000+01:00  INFO 1 --- [app] [main] o.a.k.c.c.i.ConsumerCoordinator : %s", JAVA,
                 "2024-03-01T09:00:00.000"),
    "jenkins": ("[2023-05-09T11:26:23.545Z] 2023-05-09 13:26:23.501  INFO 1 --- [main] o.a.k.ConsumerCoordinator : %s",
                JAVA, "2023-05-09T11:26:23.501"),
    "logstash": ('{"@timestamp":"2024-02-26T13:58:12.345Z","logger_name":"k","message":"%s","@version":"1"}',
                 JAVA, "2024-02-26T13:58:12.345"),
    "csv": ('"2025-08-31T21:03:27.539Z","host","app","%s"', BROKER, "2025-08-31T21:03:27.539"),
    "no date": (f"22:33:44.055 [INFO] [{KAFKA}:1072] [main] - %s", JAVA, "1970-01-01T22:33:44.055"),
    "one container": ("2024-12-14 04:44:53,824  INFO s.consumer.internals.ConsumerCoordinator: 659 - %s", JAVA,
                      "2024-12-14T04:44:53.824"),
    "librdkafka": (f"%%7|1701266711.428|JOIN|c#consumer-1| {NAMES}\n"
                   "%%7|1701266711.428|JOINGROUP|c#consumer-1| [thrd:main]: %s", RDKAFKA, "2023-11-29T14:05:11.428"),
    "late": ("2019 Apr 10 06:22:03  | 2019-04-10 06:22:02,491 - kafka.coordinator - INFO - %s", AIOKAFKA,
             "2019-04-10T06:22:02.491"),
    "syslog": ("Oct 23 15:24:57 host app[1175]: 2020-10-23T12:24:57.626142 DEBUG kafka.coordinator %s", AIOKAFKA,
               "2020-10-23T12:24:57.626"),
    "celery": ("[2018-02-27 23:19:01,112: WARNING]: %s", AIOKAFKA, "2018-02-27T23:19:01.112"),
    "glog": (f"I0517 16:16:21.057873   371 ] topic=t, lvl=7, facility=JOIN, msg={NAMES}\n"
             "I0517 16:16:21.057874   371 ] topic=t, lvl=7, facility=JOINGROUP, msg=[thrd:main]: %s", RDKAFKA,
             "1970-01-01T16:16:21.057"),
    "docker": ('{"log":"[2022-01-07 12:19:06,977] INFO %s (k)\\n","stream":"stdout","time":"2022-01-07T11:19:06.978Z"}',
               BROKER, "2022-01-07T11:19:06.977"),
    "docker of logstash": ('{"log":"{\\"@timestamp\\":\\"2022-01-07T11:19:06.977Z\\",\\"message\\":\\"%s\\"}\\n",'
                           '"time":"2022-01-07T11:19:07.978Z"}', BROKER, "2022-01-07T11:19:06.977"),
    "undated in docker": ('{"log":"13:19:06.977 [main] INFO k - %s\\n","time":"2022-01-07T11:19:06.978Z"}', JAVA,
                          "2022-01-07T11:19:06.977"),
    "logback": ('{"sequenceNumber":0,"timestamp":1641554346977,"level":"INFO","message":"%s"}', JAVA,
                "2022-01-07T11:19:06.977"),
    "librdkafka in Python": (f"DEBUG:root:JOIN [c#consumer-1] {NAMES}\n"
                             "DEBUG:root:JOINGROUP [c#consumer-1] [thrd:main]: %s", RDKAFKA, None),
    "cri": ("2022-01-07T11:19:06.978912345Z stdout F [2022-01-07 11:19:06,977] INFO %s (k)", BROKER,
            "2022-01-07T11:19:06.977"),
    "no time": ("INFO:aiokafka.consumer.group_coordinator:%s", AIOKAFKA, None)}


@pytest.mark.parametrize("name", ENVELOPES)
def test_a_message_is_known_in_every_envelope(name):
    around, (message, expected), time = ENVELOPES[name]
    [said] = Log().read((around % message).split("\n")).said
    assert (said.group, said.kind, said.generation) == expected
    assert said.time == (time and pytest.approx(datetime.fromisoformat(time + "+00:00").timestamp(), abs=0.001))


def test_the_json_of_a_managed_service_says_nothing():
    """Its rows are no messages of Kafka: they are left out, not guessed."""
    line = '{"leaderId":"m","generationId":7,"reason":"join","groupId":"g","type":"PREPARE_REBALANCE","group":{}}'
    assert Log().read([line]).said == [] and not read_history(line + "\n")


TENS = 10_000_000
HOSTILE = {
    "a long line": "a" * TENS, "beginnings": "Stabilized group " * (TENS // 17), "brackets": "{" * TENS + "}",
    "names": "[Consumer clientId=, clientId=, groupId=" * (TENS // 40), "nested": '{"a":' * (TENS // 5) + "}",
    "members": "Member " * (TENS // 7), "times": "2026-11-26 11:11:11 " * (TENS // 20) + "Stabilized group",
    "blanks": " " * TENS, "reasons": "Preparing to rebalance group g" + "(reason: " * (TENS // 9),
    "answers": "[Consumer clientId=a, groupId=b] Finished assignment for group at generation 1: {"
               + "=Assignment(partitions=[" * (TENS // 24) + "}",
    "threads": "[thrd:" * (TENS // 6), "digits": "[Consumer clientId=a, groupId=b] Adding newly assigned partitions: "
               + "1" * TENS}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_says_nothing(name):
    """It would take hours if a pattern tried every way to match."""
    assert Log().read([HOSTILE[name]]).said == []


@pytest.mark.parametrize("group", ["a b", "a=b, c", "[x] y", "Stabilized group h generation 3 with 9 members",
                                   "h in state PreparingRebalance with old generation 4", "\x1b[31mred",
                                   "g (reason: x"])
def test_a_group_may_be_named_like_a_message(group):
    """No row says another group or generation."""
    messages = [f"Stabilized group {group} generation 7 (__consumer_offsets-0) with 2 members",
                f"Preparing to rebalance group {group} in state PreparingRebalance with old generation 6 "
                "(__consumer_offsets-0) (reason: Adding new member m with group instance id None)",
                f"[Consumer clientId=c, groupId={group}] Successfully synced group in generation "
                "Generation{generationId=7, "]
    said = Log().read(f"[2026-01-01 00:00:00,000] INFO {message} (a.b.C)" for message in messages).said
    assert {one.group for one in said} == {group} and {one.generation for one in said} <= {6, 7}
    assert len(said) == (2 if "(reason: " in group else 3)


@pytest.mark.parametrize("topic", ["sessions", "fraud", "set", "frozenset", "a-1"])
def test_a_topic_may_have_any_name(topic):
    """Python's sets begin with some of these words."""
    partitions, start = ((topic, 0), (topic, 1)), "[Consumer clientId=c, groupId=g] "
    for message in (f"Notifying assignor about the new Assignment(partitions=[{topic}-0, {topic}-1])",
                    f"Adding newly assigned partitions: {topic}-0, {topic}-1 (a.b.C)",
                    f"Revoke previously assigned partitions [{topic}-0, {topic}-1] (a.b.C)",
                    f"Setting newly assigned partitions {{TopicPartition(topic='{topic}', partition=0), "
                    f"TopicPartition(topic='{topic}', partition=1)}} for group g"):
        said = Log().read([message if message.startswith("Setting") else start + message]).said
        assert {one.detail for one in said} == {partitions}
    [said] = Log().read([f"{start}Finished assignment for group at generation 7: {{m=Assignment(partitions=[{topic}-0])"
                         f", n=Assignment(partitions=[{topic}-1])}}"]).said
    assert said.detail[0] == {"m": partitions[:1], "n": partitions[1:]}


def test_a_message_that_is_cut_off_says_nothing():
    """Half a list would be a wrong assignment."""
    start = "[Consumer clientId=c, groupId=g] "
    for message in ("Finished assignment for group at generation 7: {m=Assignment(partitions=[a-0, a-1",
                    "Finished assignment for group at generation 7: {m=Assignment(partitions=[a-0]), n=Assignment(part",
                    "Notifying assignor about the new Assignment(partitions=[a-0, a-1",
                    "Adding newly assigned partitions: [a-0, a-1"):
        assert Log().read([start + message]).said == []
    dump = '| offset: 0 CreateTime: 1664531116553 key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","da'
    assert OffsetsReader().line(dump) == []


@pytest.mark.parametrize("capture", FORECAST)
@pytest.mark.parametrize("source", ["both", "topic"])
def test_the_strategy_that_ran_forecasts_the_recorded_answers(capture, source):
    strategy, *expected = FORECAST[capture]
    [recorded, row] = replay(history(capture, source), [strategy]).rows
    assert [row.forecast, row.known] == expected and recorded.strategy == RECORDED


def test_a_history_under_another_strategy():
    """The eager strategy that ran costs what was recorded; the cooperative one needs more rebalances."""
    rows = {(row.strategy, row.static): row for row in replay(
        history("range-4.3.1", "both"), ["range", "cooperative-sticky"], static=45).rows}
    recorded, same, other = rows[RECORDED, None], rows["range", None], rows["cooperative-sticky", None]
    assert (recorded.rebalances, recorded.moves) == (same.rebalances, same.moves) == (16, 64)
    assert other.rebalances > same.rebalances and same.paused == pytest.approx(recorded.paused, rel=0.001)
    assert rows["range", 45].rebalances < same.rebalances and rows["range", 45].moves < same.moves


def test_a_cooperative_history_needs_its_own_second_rounds():
    """Kafka's strategy on its own history makes the second rounds that were recorded, an eager one none."""
    rows = {row.strategy: row for row in replay(
        history("cooperative-3.9.2", "both"), ["kafka-cooperative-sticky", "range"]).rows}
    assert abs(rows["kafka-cooperative-sticky"].rebalances - rows[RECORDED].rebalances) <= 1
    assert rows["range"].rebalances == 19


def command(*words, text=None):
    """`kafka-assign replay` in this process: its exit code, standard output and standard error."""
    done = CliRunner().invoke(program, ["replay", *map(str, words)], input=text)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_the_command_says_what_python_says(tmp_path):
    logs = paths("range-4.3.1", "both")
    code, out, err = command(*logs, "--format", "json")
    [row] = json.loads(out)
    assert (code, err, row["group_id"], row["rebalances"], row["moves"]) == (0, "", "orders", 16, 64)
    assert row["causes"].startswith("join 6, leave 5") and len(row["logs"]) == 5 and row["missing"] == {"pauses": 3}
    [row] = json.loads(command(*logs, "--format", "json", "-s", "range", "--static", "45s")[1])
    assert [(one["strategy"], one["static"], one["rebalances"]) for one in row["rows"]] == [
        ("recorded", None, 16), ("range", None, 16), ("range", 45, 10)]                  # without a group, too
    code, out, _ = command(*logs, "-g", "orders", "-s", "range", "--static", "45s", "--trace", tmp_path / "t.jsonl")
    assert code == 0 and "static members would have spared 6" in out and "15 of 15" in out
    assert trace(read_history(tmp_path)) == trace(history("range-4.3.1", "both"))
    assert "no other strategy would have cost clearly less" in command(*logs, "-g", "orders")[1]
    assert command(tmp_path / "t.jsonl", "--format", "csv")[1].splitlines()[1].startswith("orders,recorded,,16,64,")


def test_the_reference_lists_the_keys_of_the_json():
    [row] = json.loads(command(*paths("range-4.3.1", "both"), "--format", "json")[1])
    page = json.loads((LOGS.parents[1] / "nbs/reference/history.ipynb").read_text(encoding="utf-8"))
    [table] = ["".join(cell["source"]) for cell in page["cells"] if "".join(cell["source"]).startswith("## JSON")]
    listed = {key: set(re.findall(r"`(\w+)`", meaning)) for key, meaning in re.findall(r"\| `(\w+)` \| (.*) \|", table)}
    assert [*row] == [*listed]
    for key in ("logs", "by_cause", "by_member", "slowest"):
        assert {*row[key][0]} == listed[key]


def test_what_no_log_tells_is_not_said():
    """A cause whose pauses are unknown has none, not 0; without a strategy that explains what was, none is said to
    have been better."""
    code, out, _ = command(*paths("cooperative-3.9.2", "broker"), "--format", "json")
    [row] = json.loads(out)
    told = {why: all("pauses" not in one.missing for one in found) or any(one.pauses for one in found)
            for why in (one["cause"] for one in row["by_cause"])
            for found in [[one for one in history("cooperative-3.9.2", "broker")["billing"].generations
                           if why in {cause.why for cause in one.causes}]]}
    assert code == 0 and not all(told.values())
    assert all((one["paused"] is not None) == told[one["cause"]] for one in row["by_cause"])
    assert "would have cost" not in command(*paths("cooperative-3.9.2", "broker"), "-g", row["group_id"])[1]


def test_the_command_fails_as_others_do(tmp_path):
    logs = paths("range-4.3.1", "both")
    assert command(*logs, "--fail-if", "rebalances>20")[0] == 0
    code, _, err = command(*logs, "--fail-if", "rebalances>10")
    assert code == 1 and "--fail-if holds: orders: rebalances is 16 (rebalances>10)" in err
    assert command(*logs, "--strict")[0] == 0
    code, _, err = command(logs[0], "--strict")
    assert code == 3 and err == "orders: members or assignments are unknown in 15 of 16 rebalances (--strict)\n"
    assert command(logs[0], "--fail-if", "moves>1")[0] == 3                  # the broker does not know them
    for words, problem in ((["-g", "order"], "no group 'order' in the input; did you mean 'orders'?"),
                           (["--static", "45"], "a duration must be a number with ms, s, m or h"),
                           (["--fail-if", "lag>1"], "a condition must be on a figure"), (["-s", "uniform"], "broker")):
        code, out, err = command(*logs, *words)
        assert code in (2, 3) and problem in err and out == "" and err.count("\n") == 1
    code, _, err = command("-", text="nothing here\n")
    assert code == 3 and "no rebalance of a group here" in err


@captures
@pytest.mark.parametrize("source", ["both", "topic"])
def test_a_recorded_history_is_drawn_as_the_callbacks_saw_it(capture, source):
    """Between two rebalances, each bar names the member that had the partition; a dashed box lasted as long as it says,
    and no bar goes on where the partition stood still."""
    named = bars = 0
    for group in history(capture, source).values():
        for one, drawn in zip(group.generations, group.rebalances, strict=True):
            after, during = drawn.phases[-1].consumers, drawn.phases[1].consumers
            called = {id: known.instance or known.client for id, known in one.members.items()}
            assert {pair: name for pair, name in after.items() if name} == {
                pair: called[id] for id, own in one.assigned.items() for pair in own}
            named += bool(one.assigned)
            assert {pair for pair, _ in drawn.phases[1].stopped.items()} == {pause[:2] for pause in one.pauses}
            for (topic, number), name in during.items():
                stood = [min(end, one.answered) - max(begin, one.start) for begin, end in
                         pauses(capture)[group.name, f"{topic}-{number}"] if None not in (one.start, one.answered)]
                assert not name or max(stood, default=0.0) < 0.1, one
                bars += bool(name)
    assert named or (capture, source) == ("consumer-4.3.1", "both")
    assert bars or "cooperative" not in capture


def test_a_process_that_restarts_keeps_its_name_in_a_picture():
    """Two members with one client id go by their member ids; a restarted one keeps the name of its process."""
    def one(number, *ids, **assigned):
        return Generation("g", 1, number, 100.0 * number, members={id: Known(id[:2], "") for id in ids},
                          assigned={id: (("t", at),) for at, id in enumerate(ids)})

    assert [{*drawn.phases[-1].consuming} for drawn in History([one(1, "m1-a"), one(2, "m1-b")])["g"].rebalances] == \
        [{"m1"}, {"m1"}]
    assert {*History([one(1, "m1-a", "m1-b")])["g"].rebalances[0].phases[-1].consuming} == {"m1-a", "m1-b"}


def test_what_is_not_known_is_not_drawn_as_a_pause():
    """A topic that grew later, a generation without an assignment, and another life."""
    def one(life, number, *owned, missing=(), protocol="range"):
        return Generation("g", life, number, 0.0, protocol=protocol, members={"m": Known("m", "")},
                          assigned={"m": tuple(("t", at) for at in owned)}, missing=list(missing))

    def consumers(*generations):
        return [[dict(sorted(phase.consumers.items())) for phase in drawn.phases]
                for drawn in History(generations)["g"].rebalances]

    first, second = ("t", 0), ("t", 1)
    assert consumers(one(1, 1, 0), one(1, 2, 0, 1, missing=["pauses"])) == [
        [{first: "", second: ""}, {first: "", second: ""}, {first: "m", second: ""}],
        [{first: "m", second: ""}, {first: "", second: ""}, {first: "m", second: "m"}]]
    assert consumers(one(1, 1, 0), one(1, 2, missing=["assignment"]))[1][-1] == {first: ""}
    assert consumers(one(1, 5, 0), one(2, 1, 0))[1][0] == {first: ""}
    assert consumers(one(1, 1, 0), one(1, 2))[1][-1] == {}                            # known to have no consumer
    cooperative = one(1, 2, 0, missing=["pauses"], protocol="cooperative-sticky")
    assert consumers(one(1, 1, 0), cooperative)[1][1] == {first: "m"}
    cooperative.causes = [Cause("poll timeout", "m")]
    assert consumers(one(1, 1, 0), cooperative)[1][1] == {first: ""}


def test_the_command_draws_a_history(tmp_path):
    logs, file = paths("range-4.3.1", "both"), tmp_path / "a.svg"
    code, out, err = command(*logs, "-g", "orders", "--timeline", file)
    text = file.read_text()
    assert (code, err) == (0, "") and "orders: 16 rebalances" in out and [*tmp_path.iterdir()] == [file]
    assert all(f">{words}<" in text for words in ("order-4 died", "topics grew", "11:08:43, 0.6 s", "no consumer"))
    assert "@media (prefers-color-scheme: dark)" in text and "Moved: orders-2 from order-1 to order-2" in text
    file.unlink()
    code, out, err = command(*logs, "-g", "orders", "--since", "2026-11-26T11:09:20Z", "--timeline", file)
    assert "order-4" not in file.read_text() and "subscriptions changed" in file.read_text()
    file.unlink()
    for words, problem in ((["--timeline", file], "it must come with --group"),
                           (["-g", "orders", "--timeline", tmp_path / "a.png"], "must be an .svg file"),
                           (["-g", "orders", "--since", "2030-01-01", "--timeline", file], "nothing to draw")):
        code, out, err = command(*logs, *words)
        assert code in (2, 3) and problem in err and out == "" and err.count("\n") == 1
    assert "no source tells which member" in command(logs[0], "-g", "orders", "--timeline", file)[2]
    assert not [*tmp_path.iterdir()]


def test_names_from_logs_are_drawn_safely(tmp_path):
    """A picture stays one that a browser can read, whatever a group, a member or a cause is called."""
    name = "\x1b[31m<b>$x^2$&'\"" + "long" * 100
    one = Generation(name, 1, 1, 0.0, protocol=name, members={name: Known(name, "")}, assigned={name: (("t", 0),)},
                     causes=[Cause(name, name), Cause("join", name), Cause("leave", "")])
    with open(tmp_path / "trace.jsonl", "w") as file:
        History([one]).write(file)
    code, _, err = command(tmp_path / "trace.jsonl", "-g", name, "--timeline", tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert (code, err) == (0, "") and "\x1b" not in text and "<b>" not in text
    assert ElementTree.fromstring(text).tag.endswith("svg")


def flat(text):
    """A text without the folds of a screen."""
    return " ".join(text.split())


def test_the_first_lines_say_what_rebalances_cost_and_what_would_help(monkeypatch):
    """What static members cost is said with what they spare."""
    monkeypatch.setenv("COLUMNS", "80")
    out = command(*paths("range-4.3.1", "both"), "-g", "orders", "--static", "45s")[1]
    first, logs, *_ = out.split("\n\n")
    assert logs.startswith("log ") and "broker/server.log.gz" in logs and max(map(len, out.split("\n"))) <= 80
    assert flat(first).startswith(
        "orders: 16 rebalances in 90.2 s, by cause: join 6, leave 5, asked 1, death 1, poll timeout 1, subscription 1, "
        "topics 1; at least 96.3 partition-seconds without a consumer, 50.9 of them by poll timeout")
    assert "static members would have spared 6 of 16 rebalances, but partitions would have waited" in flat(first)
    assert "no other strategy would have cost clearly less than the 96.3 of range" in flat(first)
    out = command(*paths("sticky-static-4.3.1", "both"), "-g", "stock", "--static", "45s")[1]
    assert "spared no rebalance" in flat(out) and "45 s  " not in out             # rows that are no different
    assert "recorded is as measured: compare the other rows with kafka-sticky" in flat(out)


def test_the_strategy_that_ran_is_the_one_that_members_name():
    """Two make as many of the recorded assignments; the group ran only one of them."""
    out = flat(command(*paths("python-4.3.1", "both"), *paths("python-4.3.1", "topic"), "-g", "kp")[1])
    assert "kafka-cooperative-sticky makes 7 of the 8 recorded assignments" in out
    assert "kafka-cooperative-sticky (ran)" in out and "of kafka-sticky" not in out
    assert "(ran)" not in command(*paths("range-4.3.1", "both"), "-g", "orders", "-s", "kafka-sticky")[1]


def test_rebalances_are_counted_once_for_each_cause_and_each_member_that_caused_them():
    for capture in FORECAST:
        [row] = json.loads(command(*paths(capture, "both"), "--format", "json")[1])
        found = generations(history(capture, "both"))
        assert {one["cause"]: one["rebalances"] for one in row["by_cause"]} == Counter(
            why for one in found for why in {cause.why for cause in one.causes})
        assert {one["member"]: one["rebalances"] for one in row["by_member"]} == Counter(
            name for one in found for name in {cause.client for cause in one.causes
                                               if cause.why not in ("topics", "second round")})
        assert row["causes"] == ", ".join(f"{one['cause']} {one['rebalances']}" for one in row["by_cause"])
        group = history(capture, "both")[row["group_id"]]
        assert (row["needless"], row["period"]) == (needless_moves(group), None)
        assert [one["client"] for one in row["slowest"]] == [one.client for one in slowest(group)]


def test_a_loop_is_said():
    lines = [f"[2026-01-01 00:{minute:02}:00,000] INFO [GroupCoordinator 1]: Preparing to rebalance group g in state "
             f"PreparingRebalance with old generation {minute} (__consumer_offsets-0) (reason: Adding new member m)\n"
             f"[2026-01-01 00:{minute:02}:01,000] INFO [GroupCoordinator 1]: Stabilized group g generation "
             f"{minute + 1} (__consumer_offsets-0) with 1 members\n" for minute in range(1, 12)]
    out = command("-", "--format", "json", text="".join(lines))[1]
    assert json.loads(out)[0]["period"] == 60
    assert "in a loop, one every 60.0 s" in flat(command("-", "-g", "g", text="".join(lines))[1])


def test_the_zone_of_logs_that_have_none(tmp_path):
    """Local times of Rome become those of UTC; a log with a zone needs none."""
    capture = "range-4.3.1"
    for path in unpacked(capture, tmp_path):
        path.write_text(later(path.read_text(), timedelta(hours=1)))
    expected = [one["start"] for one in trace(history(capture, "both"))]
    assert [one["start"] for one in trace(read_history(tmp_path, zones={"": "Europe/Rome"}))] == expected
    for zone in ("Europe/Rome", "*.log=Europe/Rome"):
        code, _, err = command(tmp_path, "--zone", zone, "--trace", tmp_path / "trace", "-g", "orders")
        assert (code, err) == (0, "")
        rows = [json.loads(line) for line in (tmp_path / "trace").read_text().splitlines()]
        (tmp_path / "trace").unlink()
        assert [row["start"] for row in rows] == expected
    assert "no zone: taken as UTC" in command(tmp_path, "-g", "orders")[1]
    assert "no zone" not in command(tmp_path, "-g", "orders", "--zone", "Europe/Rome")[1]
    for zone, problem, code in (("Rome", "a zone must have an IANA name such as Europe/Rome (got 'Rome')", 2),
                                ("x.log=Europe/Rome", "a zone must be that of a log that has none (got 'x.log')", 3)):
        found = command(tmp_path, "--zone", zone)
        assert (found[0], found[1], found[2].count("\n")) == (code, "", 1) and problem in found[2]


def test_a_session_timeout_says_since_when_a_dead_member_was_silent(tmp_path):
    """If no source tells it: without the option, a partition stood still for less, never for more."""
    logs = [tmp_path / path.name for folder in paths("range-4.3.1", "both") for path in folder.iterdir()]
    for folder in paths("range-4.3.1", "both"):
        for path in folder.iterdir():
            text = gzip.decompress(path.read_bytes()).replace(b"ConsumerConfig values", b"Its values")
            (tmp_path / path.name).write_bytes(gzip.compress(text))
    paused = [json.loads(command(*logs, "--format", "json", *words)[1])[0]["paused"]
              for words in ([], ["--session-timeout", "6s"])]
    assert paused[1] == pytest.approx(paused[0] + 3 * 3, abs=0.1)


def test_times_limit_what_is_counted():
    out = command(*paths("range-4.3.1", "both"), "--since", "2026-11-26T11:09:00Z", "--format", "json")[1]
    assert json.loads(out)[0]["rebalances"] == sum(
        (one.start or one.joined) >= 1795691340 for one in generations(history("range-4.3.1", "both")))
    for option, day, count in ("--since", 26, 16), ("--since", 27, 0), ("--until", 26, 16), ("--until", 25, 0):
        out = command(*paths("range-4.3.1", "both"), option, f"2026-11-{day}", "--format", "json")[1]
        assert json.loads(out)[0]["rebalances"] == count                    # a date is a whole day


def test_a_trace_beside_its_logs_changes_nothing(tmp_path):
    """A generation counts once; what a trace knows and the logs have lost is kept."""
    whole = history("range-4.3.1", "both")
    with (tmp_path / "trace.jsonl").open("w") as file:
        whole.write(file)
    shutil.copy(tmp_path / "trace.jsonl", tmp_path / "again.jsonl")
    assert trace(read_history([*paths("range-4.3.1", "both"), tmp_path])) == trace(whole)
    assert trace(read_history([*paths("range-4.3.1", "broker"), tmp_path])) == trace(whole)


def test_a_line_of_a_trace_that_is_not_valid_is_named(tmp_path):
    (tmp_path / "a.jsonl").write_text('\n{"group_id": "g", "life": 1, "generation": 1, "causes": [], "missing": []}\n')
    [log] = read_history(tmp_path).logs
    assert log.problem.startswith("line 2: a line of a trace must have all keys") and log.rejected == 1
    code, _, err = command(tmp_path / "a.jsonl")
    assert code == 3 and "a.jsonl: line 2: a line of a trace must have all keys" in err
    assert [log.lines for log in read_log([Origin("a.jsonl", "", str(tmp_path / "a.jsonl"))])] == [2]


@pytest.mark.parametrize("key, value", [
    ("group_id", None), ("life", "1"), ("generation", []), ("protocol", 5), ("leader", None), ("missing", [1]),
    ("causes", [{"why": []}]), ("members", {"m": {"client": 1, "topics": None}}), ("assignment", {"m": [[None, 0]]}),
    ("assignment", {"m": [["t", -1]]}), ("pauses", [["t", 0, "now", 1.0, "measured"]]), ("rejoined", {"m": 5}),
    ("pauses", [["t", 0, None, -1.0, "measured"]]), ("pauses", [["t", 0, None, float("nan"), "at least"]]),
    ("pauses", [["t", 0, None, 1.0, "guessed"]]), ("pauses", [["t", 0, None, 10**400, "measured"]]),
    ("generation", -7), ("generation", 2**31), ("life", 0), ("life", 10**400), ("start", "0001-01-01T00:00:00+23:59"),
    ("assignment", {"m": [["t", 2**31]]}), ("assignment", {"m": [["t", 0], ["t", 1]], "n": [["t", 1]]}),
    ("group_id", "\ud800")])
def test_a_value_of_a_trace_that_is_not_valid_is_an_error(key, value):
    row = made(1).row()
    assert Generation.from_row(row) == made(1)
    with pytest.raises(ValueError, match="of a trace must|a time must be|a partition must be"):
        Generation.from_row(row | {key: value})


def test_a_log_in_portions_says_the_same():
    parts = [Origin(path, "", path) for path in map(str, sorted((LOGS / "python-4.3.1" / "members").iterdir()))]
    for part in parts:
        [whole], said = read_log([part]), []
        for log in read_log([part], 3):
            said += log.said
            log.said = []
        assert (said, log.lines, log.zoned) == (whole.said, whole.lines, whole.zoned) and said


def test_names_from_logs_are_shown_safely():
    line = "[2026-01-01 00:00:00,000] INFO Stabilized group \x1b[31mred generation 7 with 2 members. (a.b.C)\n"
    out = command("-", text=line)[1]
    assert "\x1b" not in out and "\\x1b[31mred" in out


def test_static_members_come_first_in_the_order_of_their_instance_ids():
    """So the member n, whose id is the later one, gets two of three partitions."""
    known = {"m": Known("m", "", None, ("a",)), "n": Known("n", "n", None, ("a",))}
    [recorded, row] = replay(History([
        made(1, members={"m": known["m"]}, assigned={"m": (("a", 0), ("a", 1), ("a", 2))}, protocol="range"),
        made(2, members=known, assigned={"m": (("a", 2),), "n": (("a", 0), ("a", 1))}, protocol="range")]),
        ["range"]).rows
    assert (recorded.moves, row.moves, row.forecast) == (2, 2, 2)


@pytest.mark.parametrize("before, after, grown, rebalances", [
    ("a", "a", False, 2), ("a", "ab", False, 2), ("ab", "a", False, 3), ("a", "a", True, 3), ("a", "ab", True, 3)])
def test_a_static_member_that_is_back_joins_again_only_if_it_dropped_a_topic(before, after, grown, rebalances):
    """As Kafka does it: see `test_live_replay.py`. With another partition there is a rebalance, too."""
    def known(topics):
        return Known("m", "", None, (*topics,))
    stays = {"n": Known("n", "", None, ("a", "b"))}
    history = History([
        made(1, members=stays, assigned={"n": (("a", 0), ("a", 1), ("b", 0))}),
        made(2, members={"m": known(before)} | stays, assigned={"m": (("a", 0),), "n": (("a", 1), ("b", 0))}),
        made(3, members=stays, assigned={"n": (("a", 0), ("a", 1), ("b", 0))}),
        made(4, members={"m2": known(after)} | stays, assigned={
            "m2": (("a", 0),), "n": (("a", 1), ("b", 0), *[("a", 2)] * grown)})])
    assert [row.rebalances for row in replay(history, ["range"], static=45).rows] == [4, 4, rebalances]


def test_a_member_that_is_back_does_not_change_the_generation_in_which_it_is():
    """The coordinator stores it again, with the new id of the member, and the topics that it reads then."""
    def record(time, generation, id, topics, numbers):
        value = {"protocolType": "consumer", "generation": generation, "protocol": "range", "leader": id, "members": [{
            "memberId": id, "clientId": "c", "clientHost": "h", "groupInstanceId": "i", "sessionTimeout": 45000,
            "subscription": {"topics": topics}, "assignment": {"assignedPartitions": [
                {"topic": topic, "partitions": [0]} for topic in numbers]}}]}
        return (f"| offset: {time} CreateTime: {time}000 keySize: 1 sequence: 0 headerKeys: [] key: "
                '{"type":"2","data":{"group":"g"}} payload: ' + json.dumps({"version": "3", "data": value}) + "\n")
    found = read_history(record(1, 1, "i-1", ["a"], ["a"]) + record(2, 1, "i-2", ["a", "b"], ["a"])
                         + record(3, 2, "i-2", ["a", "b"], ["a", "b"]))["g"].generations
    assert [(one.members.keys(), [known.topics for known in one.members.values()]) for one in found] == [
        ({"i-1"}, [("a",)]), ({"i-2"}, [("a", "b")])]
    assert [[cause.why for cause in one.causes] for one in found] == [["join"], ["subscription"]]


def test_what_is_not_known_is_not_replayed():
    found = replay(history("python-4.3.1", "both"), ["range"], static=10)
    rows = {(row.group_id, row.strategy): row for row in found.rows}
    assert rows["kp", "range"][3:6] == (None, None, None) and any("topics are unknown" in note for note in found.notes)
    assert rows["rdk", "range"].rebalances
    assert replay(history("python-4.3.1", "topic"), ["range"]).rows[1].paused is None       # no source tells a start


def made(count=0, **parts):
    """Generation `count` of a group whose members m and n read topic a; n got another id by then."""
    known = {"m": Known("m", "", None, ("a",)), "n": Known("n", "n", None, ("a",))}
    return Generation("g", 1, count, **{"members": known, "joined": 10.0 * count, "answered": 10.0 * count + 1} | parts)


@pytest.mark.parametrize("capture", FORECAST)
def test_who_is_waited_for_is_who_asked_last(capture):
    """Members that stay, and only they, are compared; without the log of one, a generation says nothing."""
    group, = history(capture, "both").values()
    texts = [gzip.decompress(path.read_bytes()).decode() for path in (LOGS / capture / "members").iterdir()]
    for one in group.generations:
        for id, time in one.rejoined.items():
            [text] = [text for text in texts if f"generationId={one.generation}, memberId='{id}'" in text]
            text = text[:text.rindex(f"Successfully joined group with generation Generation{{generationId="
                                     f"{one.generation}, memberId='{id}'")]
            line = text[:text.rindex("(Re-)joining group")].rsplit("\n", 1)[1]
            told = datetime.fromisoformat(re.search(r"\d{4}-\S+[ T][\d:]+[.,]\d+", line)[0] + "+00:00").timestamp()
            assert abs(told - time) < 0.3
    assert sum(one.rebalances for one in slowest(group)) == {
        "range-4.3.1": 4, "cooperative-3.9.2": 7, "sticky-slow-static-4.3.1": 1, "sticky-static-4.3.1": 1}[capture]
    assert slowest(history(capture, "broker")[group.name]) == []


def test_a_member_is_slow_only_if_all_others_tell_when_they_asked():
    three = {"m": Known("c"), "n": Known("d"), "o": Known("e")}
    told = [made(1, members=three), made(2, members=three, rejoined={"m": 5.0, "n": 5.5, "o": 8.5}),
            made(3, members=three, rejoined={"m": 15.0, "o": 19.0}),                     # n has no log
            made(4, members=three, rejoined={"m": 25.0, "n": 25.1, "o": 25.3}),          # as far as clocks agree
            made(5, members=three | {"p": Known("f")},                                   # p is new
                 rejoined={"m": 36.0, "n": 35.0, "o": 35.5, "p": 39.0}),
            made(6, members=three, missing=["members"], rejoined={"m": 45.0, "n": 45.5, "o": 48.5})]
    assert slowest(GroupHistory("g", told)) == [("e", 1, 3.0), ("c", 1, 0.5)]


def looping(times, client="m", why="poll timeout", **parts):
    return [made(at, start=time, causes=[Cause(why, client, client)], **parts) for at, time in enumerate(times, 1)]


def numbered(generations):
    return GroupHistory("g", [replace(one, generation=at) for at, one in enumerate(generations, 1)])


def test_a_loop_has_a_period():
    """At least seven rebalances with one cause of one client, at nearly equal distances, whatever else happens."""
    loop = looping([0, 300, 610, 900, 1205, 1500, 1790])
    others = looping([20, 333, 340, 1300, 1302, 1490, 1700], "n", "join")
    assert period(numbered(sorted(loop + others, key=lambda one: one.start))) == pytest.approx(300, abs=5)
    assert period(GroupHistory("g", loop[1:])) is None and period(GroupHistory("g", others)) is None
    assert period(GroupHistory("g", [])) is None
    moved = [one for pair in zip(loop[:3], looping([1, 301, 611], "n")) for one in pair]
    assert period(numbered(moved)) is None                               # three rebalances each


def test_members_that_share_a_client_id_are_no_loop():
    """A deploy restarts one pod after another, every 30 s: each has its own id."""
    pods = {f"app-{at}": Known("app", "") for at in range(8)}
    deploy = [made(at, start=30.0 * at, members=pods, causes=[Cause("join", f"app-{at}", "app")]) for at in range(8)]
    assert period(GroupHistory("g", deploy)) is None
    assert period(GroupHistory("g", looping(range(0, 240, 30), "app-0", members=pods))) == 30


def test_chance_is_no_loop():
    """Of 300 histories with 40 rebalances at random times, none is said to be in a loop."""
    rng = random.Random(2)
    assert not any(period(GroupHistory("g", looping(sorted(rng.random() * 86400 for _ in range(40)))))
                   for _ in range(300))


def test_moves_that_the_optimum_does_not_need():
    """Static members that are back under another id, and second rounds, move nothing by themselves."""
    def given(count, m, n, id="n", **parts):
        members = {"m": Known("m", "", None, ("a",)), id: Known("n", "n", None, ("a",))}
        own = {"m": m, id: n}
        return made(count, members=members, **parts, assigned={
            id: tuple(("a", number) for number in own[id]) for id in members})

    def needless(*generations):
        return needless_moves(GroupHistory("g", list(generations)))

    first = given(1, [0, 1], [2, 3])
    assert needless(first, given(2, [0, 1], [2, 3], "n2")) == 0
    assert needless(first, given(2, [0, 2], [1, 3])) == 2
    assert needless(first, given(2, [2, 3], [0, 1], "n2"), given(3, [2, 3], [0, 1])) == 4
    uneven = given(1, [0, 1, 2, 3], [])
    assert needless(uneven, given(2, [0, 1], [2, 3])) == 0
    assert needless(uneven, given(2, [0, 1], []), given(3, [0, 1], [2, 3])) == 0           # withheld for a round
    assert needless(uneven, given(2, [3], []), given(3, [3, 0], [1, 2])) == 0
    assert needless(uneven, given(2, [], []), given(3, [2], [0, 1, 3])) == 1
    interrupted = given(2, [], [], missing=["assignment"], answered=None)
    assert needless(first, interrupted, given(3, [0, 2], [1, 3])) == 2
    unknown = given(2, [], [], missing=["assignment"])
    assert needless(first, unknown, given(3, [0, 2], [1, 3])) is None
    assert [needless_moves(group) for name in FOUND for group in history(name, "topic").values()] == [
        7, 4, 0, 1, 4, 0, 0, None]


def test_members_of_the_new_protocol_alone_tell_no_moves_and_no_pauses():
    """With the broker's log they do, but a member that was killed gave nothing up, and a slow one too late."""
    recorded = recorded_row(history("consumer-4.3.1", "members")["ledger"])
    assert (recorded.moves, recorded.paused) == (None, None)
    found = history("consumer-4.3.1", "both")["ledger"].generations
    assert [one.generation for one in found if "pauses" in one.missing] == [7, 11]
