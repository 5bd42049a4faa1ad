"""Time and memory: results do not depend on the size of blocks, and time grows with the length of the text only."""
import io
import subprocess
import sys
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kafka_assign.snapshot import SnapshotError, read_groups, sources
from outputs import FILES, mangled, table

COLUMNS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()


def everything(text, size):
    """All that reading returns with blocks of this many bytes."""
    with patch.object(sources, "BLOCK_BYTES", size):
        try:
            groups = read_groups(io.BytesIO(text.encode("utf-8", "surrogateescape")))
        except SnapshotError as error:
            return str(error)
    documents = [(key, group.to_json()) for key, group in groups.items()]
    return documents, groups.rejects, groups.ignored, groups.read, groups.used, groups.repeated


@given(st.lists(st.sampled_from(FILES), min_size=1, max_size=4), st.integers(0, 2**32), st.integers(0, 30))
def test_the_size_of_blocks_does_not_matter(files, seed, count):
    text = mangled([line for lines in files for line in ["\n", *lines]], seed, count) + "\n"
    assert everything(text, 1) == everything(text, 1000) == everything(text, 1 << 22)


def test_many_rows():
    """The members' names need not be in order."""
    rows = [["g", f"t{p % 7}", p, p, 2 * p, p, f"m-{p % 11}", f"/h{p % 11}", f"c {p % 11}"] for p in range(999)]
    groups = read_groups(table(COLUMNS, *rows))
    assert (len(groups), groups.rejects, groups.read, groups.used) == (1, [], 999, 999)
    assert sum(len(member.owned) for member in groups["g"].details) == 999
    assert {(member.host, member.client_id) for member in groups["g"].details} == {
        (f"/h{m}", f"c {m}") for m in range(11)}


def test_a_long_table_with_commas():
    header = "GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG, OWNER\n"
    rows = "".join(f"billing, orders, {number}, 7, 9, 2, web_/10.0.0.1\n" for number in range(300))
    [group] = read_groups(header + rows).values()
    assert group.columns.size == 300 and group.lag.sum() == 600


# Time that grows with the square of the length of a line, or of the number of lines

SLOW = """
from kafka_assign.snapshot import SnapshotError, read_groups
from kafka_assign.snapshot.moments import moments_of
from kafka_assign.snapshot.parse import ParsedTables, StateNotice
from kafka_assign.snapshot.remarks import group_in_remark
from kafka_assign.snapshot.rows import OffsetsRow
from kafka_assign.snapshot.sources import Place
group_in_remark("$ " + "Consumer group '" * 100_000)
HEADER = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\\n"
lines = ("a " + "/x b " * 100_000, "1 - " * 100_000, "GROUP  " * 100_000, "{" * 100_000, "x, " * 100_000,
         "STATE" + " " * 200_000 + "x y", "m /h c" + " 1 - -" * 100_000, "TOPIC " * 100_000 + " " * 100_000,
         ">" * 60_000 + "x TOPIC ", "a|" * 100_000, "0:" * 20_000 + HEADER, "a.txt" * 20_000 + ":", "-" * 100_000)
for text in lines:
    for before in "", HEADER:
        try:
            read_groups(before + text + "\\n")
        except SnapshotError:
            pass
row = "g     t     0         0              {:<14} {:<3} m           /h   c\\n"
days = "".join(HEADER + row.format(day, day) for day in range(5_000))
assert read_groups(days).moments == {"g": 5_000}
STATE = "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS\\ng     b:9092 (1)       {:<19} Empty 0\\n"
assert read_groups("".join(map(STATE.format, range(6_000)))).moments == {"g": 6_000}
place, tables, many = Place("watch.log", "", ""), ParsedTables(), range(30_000)
for number in many:                                 # a notice above each table, as of a group without members
    tables.begin("offsets", place, 2 * number + 1)
    tables.add(OffsetsRow("g", "t", 0, number, number, None, None, 2 * number + 1))
notices = [StateNotice("Empty", place, 2 * number) for number in many]
assert {moment.noticed for moment in moments_of(tables.outputs["g"], notices)} == {"Empty"}
notices = [StateNotice("Empty", Place(f"watch-{number}.err", "", ""), number) for number in many]
assert {moment.noticed for moment in moments_of(tables.outputs["g"], notices)} == {""}
"""


def test_hostile_lines_take_no_longer_than_their_length_allows():
    subprocess.run([sys.executable, "-c", SLOW], check=True, timeout=60)       # else hours
