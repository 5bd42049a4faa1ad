"""Line by line or many rows at once: one meaning. Groups, rejects and what is ignored are the same at either speed."""
import io
from functools import partial
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

import kafka_assign.snapshot as snapshot
from kafka_assign.document import write_document
from kafka_assign.snapshot import SnapshotError, blocks, read_groups
from kafka_assign.snapshot.blocks import distinct
from kafka_assign.snapshot.groups import groups_at_once, parts_of
from outputs import FILES, mangled, table

COLUMNS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()


def told(text, fewest, size):
    """All that reading gives; `fewest`: from how many lines on rows are read at once; `size` of blocks."""
    with patch.object(blocks, "FEWEST_LINES", fewest), \
            patch.object(snapshot, "blocks_of", partial(snapshot.blocks_of, size=size)):
        try:
            groups = read_groups(io.BytesIO(text.encode("utf-8", "surrogateescape")))
        except SnapshotError as error:
            return str(error)
    documents = [(key, write_document(group)) for key, group in groups.items()]
    return documents, groups.rejects, groups.ignored, groups.read, groups.used, groups.repeated


def same_at_any_speed(text):
    by_line = told(text, 10**9, 1 << 22)
    assert told(text, 0, 1 << 22) == by_line
    assert told(text, 0, 1000) == by_line
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
    """A table as large as this is read at once unless told otherwise; the members' names need not be in order."""
    rows = [["g", f"t{p % 7}", p, p, 2 * p, p, f"m-{p % 11}", f"/h{p % 11}", f"c {p % 11}"] for p in range(999)]
    documents, rejects, _, read, used, _ = same_at_any_speed(table(COLUMNS, *rows))
    assert (len(documents), rejects, read, used) == (1, [], 999, 999)
    group = read_groups(table(COLUMNS, *rows))["g"]
    assert sum(len(member.owned) for member in group.details) == 999
    assert {(member.host, member.client_id) for member in group.details} == {(f"/h{m}", f"c {m}") for m in range(11)}


def test_names_with_equal_hashes():
    """If all names had the same hash, each row would be looked up by itself, and say the same."""
    rows = [["g", f"t{p % 7}", p, 1, 2, 1, f"m-{p % 11}", "/h", "c"] for p in range(60)]
    text = table(COLUMNS, *rows)
    with patch.object(blocks, "distinct", lambda *arguments: distinct(*arguments, factor=0)):
        other = told(text, 0, 1 << 22)
    assert other == told(text, 0, 1 << 22)


def test_ledgers_in_parts():
    """However many parts a ledger is dealt with in, the groups are the same."""
    text = "".join(line for lines in FILES for line in ["\n", *lines])
    with patch.object(snapshot, "groups_of", partial(of_parts, 10)):
        parts = told(text, 0, 1 << 22)
    assert parts == told(text, 0, 1 << 22)


def of_parts(most, ledger, *arguments):
    """`groups_of` with small parts."""
    return [group for part in parts_of(ledger, most) for group in groups_at_once(part, *arguments)]
