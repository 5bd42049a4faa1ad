"""Logs, dumps and traces that nobody should have written: time grows with their length, memory is that of a record,
and a number that Kafka cannot have costs its line, which is counted and named."""
import gzip
import io
import json
import random
import re
import time
import tracemalloc
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign import read_history, replay
from kafka_assign.life import clocks, lines
from kafka_assign.life.clocks import differences
from kafka_assign.life.costs import history_row, period, recorded_row
from kafka_assign.life.lines import Log, Said
from kafka_assign.life.trace import Cause, Generation, GroupHistory, Known
from kafka_assign.snapshot import SnapshotError, read_groups, sources

LOGS = Path(__file__).parent / "logs"
BROKER = "[2026-01-01 00:00:00,000] INFO [GroupCoordinator 1]: "
MEMBER = "[2026-01-01 00:00:00,000] INFO [Consumer clientId=c, groupId=g] "


def stamped(seconds, message):
    return f"[2026-01-{1 + seconds // 86400:02} {time.strftime('%H:%M:%S', time.gmtime(seconds))},000] INFO {message}\n"


# --- time ------------------------------------------------------------------------------------------------------------

def line(text):
    return lambda: Log().read([text])


def in_json(messages, numbers):
    return line(json.dumps({"sizes": [1641554346977] * numbers, "messages": [f"{MEMBER}Request joining group due to: x"
                                                                               ] * messages}))


def generations(count):
    """As many rebalances, one after another, each by the same client."""
    return lambda: read_history("".join(
        stamped(7 * at, f"{source}{message}") for at in range(1, count) for source, message in (
            ("[GroupCoordinator 1]: ", f"Preparing to rebalance group g in state PreparingRebalance with old "
             f"generation {at - 1} (__consumer_offsets-0) (reason: Leader m re-joining group during Stable)"),
            ("[GroupCoordinator 1]: ", f"Stabilized group g generation {at} (__consumer_offsets-0) with 1 members"),
            ("[Consumer clientId=c, groupId=g] ", "Successfully joined group with generation Generation{generationId="
             f"{at}, memberId='m', protocol='range'}}"))))


def lives(count):
    """The group is deleted after each rebalance, and begins again with generation 1."""
    return lambda: read_history("".join(
        stamped(20 * at, "[GroupCoordinator 1]: Stabilized group g generation "
                f"{number} (__consumer_offsets-0) with 1 members") for at in range(count) for number in (2, 1)))


def members(count):
    """A new member for each generation; each has left at the next."""
    return lambda: read_history("".join(
        stamped(7 * at, f"[Consumer clientId=c{at}, groupId=g] Successfully joined group with generation "
                f"Generation{{generationId={at}, memberId='m{at}', protocol='range'}}") for at in range(1, count)))


def pairs(count):
    """Two logs that tell as many times of one generation."""
    said = {log: [Said("joined", 0.01 * at + log, "g", 1) for at in range(count)] for log in (0, 1)}
    return lambda: list(differences(said))


def loop(count):
    causes = [Cause("rejoin", "m")]
    group = GroupHistory("g", [Generation("g", 1, at, 7.0 * at, causes=causes) for at in range(count)])
    return lambda: period(group)


GROWS = {  # what grows, by its size, and the size at which it takes some 20 ms
    "blanks in what a client sends": (lambda n: line(
        f"{BROKER}[GroupId g] Member m updated its subscribed topics to: [{' ' * n}x]"), 50_000),
    "digits in what a client sends": (lambda n: line(
        f"{MEMBER}Adding newly assigned partitions: a-{'1' * n}"), 200_000),
    "digits of a generation": (lambda n: line(f"{BROKER}Stabilized group g generation {'1' * n} "), 200_000),
    "messages and numbers in JSON": (lambda n: in_json(n, n), 100),
    "messages in JSON behind a long text": (lambda n: line("a" * 30 * n + json.dumps(
        [{"log": f"{BROKER}Stabilized group g generation 1 "}] * n)[1:-1]), 300),
    "generations": (generations, 100), "lives": (lives, 100), "members": (members, 200),
    "times of a generation": (pairs, 2_000), "rebalances of a loop": (loop, 1_000)}


def seconds(run):
    """The least CPU time of three runs."""
    found = []
    for _ in range(3):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


@pytest.mark.parametrize("name", GROWS)
def test_time_grows_with_the_length(name):
    """Of four times as much, not 16 times as long."""
    make, size = GROWS[name]
    once, twice, four = (seconds(make(times * size)) for times in (1, 2, 4))
    assert four < 8 * once + 0.01 or four < 3 * twice, (once, twice, four)


FILLS = [" ", "1", "a-1, ", "'", '"', "{\"", "=[a], ", " (a.", "(reason: ", " generation 1", " for group ",
         " left group ", "; client reason: ", "2026-11-26 11:11:11 ", "topic='a', partition=1",
         "|GRP|c#consumer-1| ", "in Stable state. "]


def test_no_pattern_tries_every_way_to_match():
    """Behind the first words of every message, all of what others may contain, again and again."""
    def run(size):
        for words in lines._MESSAGES:
            Log().read(f"{before}{words}{fill * (size // len(fill))}" for before in ("", MEMBER) for fill in FILLS)
    once, four = (seconds(lambda size=size: run(size)) for size in (500, 2_000))
    assert four < 8 * once, (once, four)


# --- memory ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


MEGABYTE = 1 << 20
BEFORE, BEHIND = (f"{BROKER}Stabilized group g generation {number} (__consumer_offsets-0) with 1 members\n".encode()
                  for number in (1, 2))


def test_a_line_without_an_end_is_never_in_memory(tmp_path, traced):
    """Nor does it hide the lines around it."""
    with gzip.open(tmp_path / "a.log.gz", "wb", 1) as file:
        file.write(BEFORE)
        for _ in range(32):
            file.write(b"x" * MEGABYTE)
        file.write(b"\n" + BEHIND)
    tracemalloc.reset_peak()
    with patch.object(clocks, "_MOST_BYTES_OF_LINE", MEGABYTE), patch.object(sources, "BLOCK_BYTES", MEGABYTE // 4):
        found = read_history(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 8 * MEGABYTE
    assert [one.generation for one in found["g"].generations] == [1, 2]
    [log] = found.logs
    assert (log.lines, log.rejected) == (3, 1)
    assert log.problem == "line 2: a line must have at most 1,048,576 bytes (got more)"


def test_a_snapshot_of_one_endless_line_is_no_text(tmp_path, traced):
    (tmp_path / "a.txt").write_bytes(b"x" * 8 * MEGABYTE)
    tracemalloc.reset_peak()
    with patch.object(sources, "MOST_BYTES_OF_LINE", MEGABYTE), patch.object(sources, "BLOCK_BYTES", MEGABYTE // 4), \
            pytest.raises(SnapshotError, match="a line with more than 1,048,576 bytes"):
        read_groups(tmp_path / "a.txt")
    assert tracemalloc.get_traced_memory()[1] < 4 * MEGABYTE


@given(st.lists(st.integers(0, 30), max_size=6), st.integers(1, 20), st.integers(1, 9), st.booleans())
def test_lines_are_whole_unless_they_are_too_long(lengths, most, block, ends):
    """Whatever the blocks; each line that is too long has more bytes than it may have, and few more than a block."""
    text = "\n".join("x" * length for length in lengths) + "\n" * ends
    with patch.object(sources, "BLOCK_BYTES", block):
        found = b"".join(sources.Origin("", "", io.BytesIO(text.encode())).blocks(most)).decode()
    for given_line, line_found in zip(text.split("\n"), found.split("\n"), strict=True):
        assert line_found == given_line or most < len(line_found) < len(given_line)


def record(generation, *numbers):
    """A line of a dump: the record of a generation whose only member has these partitions."""
    member = {"memberId": "m", "groupInstanceId": None, "clientId": "c", "clientHost": "/h", "rebalanceTimeout": 1,
              "sessionTimeout": 45000, "subscription": {"topics": ["a"]},
              "assignment": {"assignedPartitions": [{"topic": "a", "partitions": numbers}]}}
    value = {"protocolType": "consumer", "generation": generation, "protocol": "range", "leader": "m",
             "currentStateTimestamp": 1664531116000, "members": [member]}
    return (f"| offset: {generation} CreateTime: 1664531116553 keySize: 10 sequence: 0 headerKeys: [] key: "
            f'{{"type":"2","data":{{"group":"g"}}}} payload: {json.dumps({"version": "3", "data": value})}\n')


def test_memory_follows_the_partitions_that_are_there(traced):
    found = read_history(record(1, 0, 1) + record(2, 0, 999_999) + record(3, 0, 1))
    replay(found, ["range"])
    assert tracemalloc.get_traced_memory()[1] < 8 * MEGABYTE
    assert ["assignment" in one.missing for one in found["g"].generations] == [False, True, False]
    several = read_history(record(1, *range(200), 11_000))              # others have what is between
    assert several["g"].generations[0].whole


# --- numbers ---------------------------------------------------------------------------------------------------------

@cache
def true_lines():
    """Lines of real brokers, members and dumps, of traces, and of all kinds that say something."""
    found = []
    for path in sorted(path for path in LOGS.rglob("*.gz") if path.name != "truth.jsonl.gz"):
        texts = gzip.decompress(path.read_bytes()).decode().splitlines()
        found.append([text for text in texts if text][:300])
    history = read_history([LOGS / "range-4.3.1/broker", LOGS / "range-4.3.1/members"])
    file = io.StringIO()
    history.write(file)
    return [*found, file.getvalue().splitlines()]


HUGE = ["9" * 5000, "99999999999", "2147483648", "18446744073709551616"]
ODD = ["-1", "1e400", "1e308", "NaN", "Infinity", "null", '""', "[]", "{}", "0.5", "\u0661", "-9223372036854775809"]
DATES = [f"{date}{zone}" for zone in ("", "Z", "+23:59", "-23:59", "+99:99") for date in (
    "0001-01-01T00:00:00", "9999-12-31T23:59:59", "0000-01-01 00:00:00", "2026-13-01 00:00:00", "2026-02-30 24:61:61")]
JUNK = ["\ud800", "\0", "\u2028", "{", '{"', '"', "]", "}", " " * 50, "\x1b[31m", *DATES]
DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")


def mutated(text, rng):
    """The same line, with another number, another time, or something in between."""
    numbers, kind = [*re.finditer(r"\d+", text)], rng.randrange(5)
    if numbers and kind < 3:
        begin, end = rng.choice(numbers).span()
        return text[:begin] + rng.choice(HUGE + ODD) + text[end:]
    if kind == 3:
        return DATE.sub(rng.choice(DATES), text, count=1)
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(JUNK) + text[at:]


@given(st.integers(0, 2**32))
def test_no_line_ends_the_run(seed):
    """Every line counts, what cannot be used is named, and what is left is replayed and written."""
    rng, texts = random.Random(seed), []
    for part in rng.sample(true_lines(), 3):
        begin = rng.randrange(len(part))
        texts.append([mutated(text, rng) if rng.random() < 0.3 else text for text in part[begin:begin + 50]])
    found = read_history(["\n".join(text) + "\n" for text in texts])
    assert [log.lines for log in found.logs] == [len(text) for text in texts]
    for log in found.logs:
        assert bool(log.problem) == bool(log.rejected) and log.rejected <= log.lines
    found.write(io.StringIO())
    replay(found, ["range"], static=45)
    for group in found.values():
        history_row(group, recorded_row(group))
        assert len(group.rebalances) == len(group.generations)


MESSAGES = {  # of each kind that names a number, with `%` in its place
    "generation": f"{BROKER}Stabilized group g generation % (__consumer_offsets-0) with 1 members",
    "members": f"{BROKER}Stabilized group g generation 1 (__consumer_offsets-0) with % members",
    "old generation": f"{BROKER}Preparing to rebalance group g in state Stable with old generation % "
                      "(__consumer_offsets-0) (reason: x)",
    "epoch": f"{BROKER}[GroupId g] Bumped group epoch to % with metadata hash -3.",
    "session": f"{BROKER}Member MemberMetadata(memberId=m, groupInstanceId=None, clientId=c, clientHost=/10.0.0.1, "
               "sessionTimeoutMs=%, rebalanceTimeoutMs=1, supportedProtocols=List(range)) has left group g through "
               "explicit `LeaveGroup`",
    "join": f"{MEMBER}Successfully joined group with generation Generation{{generationId=%, memberId='m', "
            "protocol='range'}",
    "partition": f"{MEMBER}Adding newly assigned partitions: a-0, a-%",
    "Python": "Setting newly assigned partitions {TopicPartition(topic='a', partition=%)} for group g",
    "answer": f"{MEMBER}Finished assignment for group at generation 1: {{m=Assignment(partitions=[a-%])}}",
    "librdkafka": "%7|1701266711.428|JOINGROUP|c#consumer-1| [thrd:main]: JoinGroup response: GenerationId @, Protocol "
                  "range, LeaderId l, my MemberId m, member metadata count 0"}


@pytest.mark.parametrize("number", HUGE, ids=lambda number: f"{len(number)} digits")
@pytest.mark.parametrize("kind", MESSAGES)
def test_a_message_with_a_number_that_kafka_cannot_have_is_counted(kind, number):
    """It says nothing, and neither hides nor changes what others say."""
    place = "@" if "@" in MESSAGES[kind] else "%"
    good, bad = (MESSAGES[kind].replace(place, one) for one in ("1", number))
    other = f"{BROKER}Stabilized group h generation 7 (__consumer_offsets-0) with 1 members"
    log = Log().read([other, bad, other])
    assert [(one.group, one.generation) for one in log.said] == [("h", 7)] * 2
    assert log.rejected == 1 and "must be a whole number of 32 bits" in log.problem and len(log.problem) < 200
    assert len(Log().read([other, good, other]).said) > 2 and Log().read([good]).rejected == 0


@pytest.mark.parametrize("date", DATES)
def test_a_time_that_does_not_exist_is_counted(date):
    log = Log().read([f"[{date}] INFO Stabilized group g generation 7 (__consumer_offsets-0) with 1 members"])
    assert log.said == [] and log.rejected == 1 and "a time must be a moment from 1970 to 2109" in log.problem


@pytest.mark.parametrize("key, number", [
    ("generation", 2**31), ("generation", -2**31), ("currentStateTimestamp", 10**400), ("sessionTimeout", 10**400),
    ("currentStateTimestamp", float("inf")), ("partitions", [2**31]), ("partitions", [-1]), ("partitions", [0.5])])
def test_a_record_with_a_number_that_kafka_cannot_have_is_counted(key, number):
    """The records around it are read."""
    bad = re.sub(rf'"{key}": (\[.*?\]|[^,}}]+)', f'"{key}": {json.dumps(number)}', record(2, 0))
    found = read_history(record(1, 0) + bad + record(3, 0))
    assert [one.generation for one in found["g"].generations] == [1, 3]
    assert [(log.lines, log.rejected) for log in found.logs] == [(3, 1)] and "line 2: " in found.logs[0].problem


def test_an_offset_of_many_digits_is_no_message_of_a_log():
    """The name of a group in a record may look like a message."""
    text = record(1, 0).replace('"group":"g"', '"group":"Stabilized group h generation 7 "')
    for digits in ("9" * 5000, "9" * 20):
        found = read_history(text.replace("offset: 1 ", f"offset: {digits} "))
        assert not found and [log.rejected for log in found.logs] == [1]


# --- a run of equal gaps ---------------------------------------------------------------------------------------------

@given(st.lists(st.sampled_from([0.0, 10.0, 11.0, 12.0, 12.5, 30.0]), max_size=30))
def test_the_period_is_that_of_the_longest_run(gaps):
    """Beside all runs of gaps, of which the first of the longest counts."""
    starts = [sum(gaps[:at]) for at in range(len(gaps) + 1)]
    group = GroupHistory("g", [Generation("g", 1, at, start, causes=[Cause("rejoin", "m")], members={"m": Known("c")})
                               for at, start in enumerate(starts)])
    runs = [gaps[begin:end] for begin in range(len(gaps)) for end in range(begin + 1, len(gaps) + 1)]
    fit = [run for run in runs if max(run) <= 1.2 * min(run)]
    longest = max(fit, key=len, default=[])
    found = period(group)
    assert (found is not None) == (len(longest) >= 6)
    assert found is None or min(longest) <= found <= max(longest)
