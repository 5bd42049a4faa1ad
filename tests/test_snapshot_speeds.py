"""Line by line or many rows at once: groups, rejects and ignored lines are the same at either speed."""
import io
from contextlib import ExitStack
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kafka_assign.document import write_document
from kafka_assign.snapshot import SnapshotError, parse, read_groups, sources
from kafka_assign.snapshot.parse import first_equal
from outputs import FILES, mangled, table

COLUMNS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()


def everything(text, **sizes):
    """All that reading returns; `sizes`: other values for the numbers that affect speed."""
    with ExitStack() as stack:
        for name, value in sizes.items():
            module = sources if name == "BLOCK_BYTES" else parse
            stack.enter_context(patch.object(module, name, value))
        try:
            groups = read_groups(io.BytesIO(text.encode("utf-8", "surrogateescape")))
        except SnapshotError as error:
            return str(error)
    documents = [(key, write_document(group)) for key, group in groups.items()]
    return documents, groups.rejects, groups.ignored, groups.read, groups.used, groups.repeated


def same_at_any_speed(text):
    by_line = everything(text, FEWEST_LINES=10**9)
    assert everything(text, FEWEST_LINES=0) == by_line
    assert everything(text, FEWEST_LINES=0, BLOCK_BYTES=1000) == by_line
    assert everything(text, FEWEST_LINES=0, LONGEST_NAMES=24) == by_line
    assert everything(text, FEWEST_LINES=0, MOST_COLUMNS=8) == by_line
    return by_line


@given(st.lists(st.sampled_from(FILES), min_size=1, max_size=4), st.integers(0, 2**32), st.integers(0, 30))
def test_mangled_captures(files, seed, count):
    same_at_any_speed(mangled([line for lines in files for line in ["\n", *lines]], seed, count) + "\n")


NUMBERS = ["0", "-", "7", "12345678", "123456789", "999999", "1000000", "123456789012345", "1234567890123456", "9" * 18,
           "-7", "--", "1 2", "x", "00", "0x1", "1-", "9" * 19]
NAMES = ["a", "b", "-", "--", "- a", "web 1", "n" * 120, "caf\u00e9", "\U0001F600", "GROUP", "x\ty", "/10.0.0.1",
         "a" * 7, "a" * 8, "a" * 9, "12"]
name, count = st.sampled_from(NAMES), st.sampled_from(NUMBERS)


@given(st.lists(st.tuples(name, name, count, count, count, count, name, name, name), min_size=1, max_size=30),
       st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_odd_cells(rows, named, end):
    """Cells of every kind in tables that line up, with a group's name and without."""
    first = 0 if named else 1
    text = table(COLUMNS[first:], *(row[first:] for row in rows)).replace("\n", end)
    same_at_any_speed("$ kafka-consumer-groups.sh --group night\n" + text)
    same_at_any_speed(text + "\n" + table(COLUMNS, *rows))


def test_many_rows():
    """A table as large as this is parsed as a block; the members' names need not be in order."""
    rows = [["g", f"t{p % 7}", p, p, 2 * p, p, f"m-{p % 11}", f"/h{p % 11}", f"c {p % 11}"] for p in range(999)]
    documents, rejects, _, read, used, _ = same_at_any_speed(table(COLUMNS, *rows))
    assert (len(documents), rejects, read, used) == (1, [], 999, 999)
    group = read_groups(table(COLUMNS, *rows))["g"]
    assert sum(len(member.owned) for member in group.details) == 999
    assert {(member.host, member.client_id) for member in group.details} == {(f"/h{m}", f"c {m}") for m in range(11)}


def test_names_with_equal_hashes():
    """If all names had the same hash, each row would be parsed by itself, with the same result."""
    rows = [["g", f"t{p % 7}", p, 1, 2, 1, f"m-{p % 11}", "/h", "c"] for p in range(60)]
    text = table(COLUMNS, *rows)
    with patch.object(parse, "first_equal", lambda *texts: first_equal(*texts, factor=0)):
        other = everything(text, FEWEST_LINES=0)
    assert other == everything(text, FEWEST_LINES=0)


def test_a_long_table_with_commas():
    header = "GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG, OWNER\n"
    rows = "".join(f"billing, orders, {number}, 7, 9, 2, web_/10.0.0.1\n" for number in range(300))
    [group] = read_groups(header + rows).values()
    assert group.columns.size == 300 and group.lag.sum() == 600
