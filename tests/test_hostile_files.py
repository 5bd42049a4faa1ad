"""A file that cannot be read costs only itself: it is named, and what the others say is as it is without it."""

import gzip
import io
import json
import os
import socket
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kafka_assign.cli.app import program as commands
from kafka_assign.life.rebuild import read_history
from kafka_assign.life.trace import Cause, Generation, History, Known
from kafka_assign.samples import path
from kafka_assign.snapshot.sources import NoText, Origin, origins

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and sockets are POSIX's")

LOG = path("broker-log").read_bytes()
TABLE = path("orders-billing").read_bytes()
PACKED = gzip.compress(LOG)


def damaged(data):
    """The same number of bytes; some in the middle are others."""
    middle = len(data) // 2
    return data[:middle] + bytes(byte ^ 0xFF for byte in data[middle:middle + 40]) + data[middle + 40:]


def listen(place):
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(place.parent)                      # a socket's path has at most 108 bytes
        try:
            server.bind(place.name)
        finally:
            os.chdir(here)


KINDS = {                       # how each is made, and the end of its name
    "a damaged gzip file": (lambda place: place.write_bytes(damaged(PACKED)), ".gz"),
    "a gzip file that is cut off": (lambda place: place.write_bytes(PACKED[:len(PACKED) // 2]), ".gz"),
    "a gzip file whose sum is wrong": (lambda place: place.write_bytes(PACKED[:-8] + bytes(8)), ".gz"),
    "a gzip file that is none": (lambda place: place.write_bytes(LOG), ".gz"),
    "a dangling link": (lambda place: place.symlink_to("nowhere"), ""),
    "a dangling link to a gzip file": (lambda place: place.symlink_to("nowhere.gz"), ".gz"),
    "a link to itself": (lambda place: place.symlink_to(place.name), ""),
    "a link to itself, as a gzip file": (lambda place: place.symlink_to(place.name), ".gz"),
    "a pipe": (os.mkfifo, ""),
    "a pipe of a gzip file": (os.mkfifo, ".gz"),
    "a socket": (listen, ""),
    "a socket of a gzip file": (listen, ".gz"),
    "a device": (lambda place: place.symlink_to("/dev/zero"), ""),
    "a device as a gzip file": (lambda place: place.symlink_to("/dev/zero"), ".gz")}
HARMLESS = {
    "an empty file": (lambda place: place.write_bytes(b""), ""),
    "an empty gzip file": (lambda place: place.write_bytes(gzip.compress(b"")), ".gz"),
    "no byte of a gzip file": (lambda place: place.write_bytes(b""), ".gz"),
    "a folder": (lambda place: place.mkdir(), ""),
    "a folder named like a gzip file": (lambda place: place.mkdir(), ".gz"),
    "a link to its own folder": (lambda place: place.symlink_to("."), "")}


def invoke(*words):
    done = CliRunner().invoke(commands, list(map(str, words)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "good.log").write_bytes(LOG)
    return tmp_path / "logs"


def said(text):
    """What `replay` says about groups, without the list of logs."""
    return [{key: value for key, value in row.items() if key != "logs"} for row in json.loads(text)]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", [*KINDS, *HARMLESS])
def test_a_log_of_a_folder_costs_only_itself(kind, folder):
    before = said(invoke("replay", folder, "--format", "json").stdout)
    make, ending = (KINDS | HARMLESS)[kind]
    bad = folder / f"other.log{ending}"
    make(bad)
    done = invoke("replay", folder, "--format", "json")
    assert said(done.stdout) == before and len(before) == 1
    if kind in HARMLESS:
        assert (done.exit_code, done.stderr) == (0, "")
    else:
        assert done.exit_code == 3 and done.stderr.startswith(f"{bad}: ") and done.stderr.count("\n") == 1


@pytest.mark.timeout(30)
@pytest.mark.parametrize("command", ["rank", "compare", "show"])
@pytest.mark.parametrize("kind", [kind for kind, (_, ending) in KINDS.items() if not ending])
def test_an_output_of_a_folder_costs_only_itself(kind, command, tmp_path):
    (tmp_path / "good.txt").write_bytes(TABLE)
    before = invoke(command, tmp_path, "--format", "json")
    KINDS[kind][0](tmp_path / "other.txt")
    after = invoke(command, tmp_path, "--format", "json")
    assert after.stdout == before.stdout and json.loads(after.stdout)
    assert (before.exit_code, after.exit_code) == (0, 3)
    assert f"{tmp_path / 'other.txt'}: " in after.stderr and "1 unreadable" in after.stderr


@pytest.mark.timeout(30)
def test_all_of_them_at_once(folder):
    for number, (make, ending) in enumerate([*KINDS.values(), *HARMLESS.values()]):
        make(folder / f"{number}x.log{ending}")
    done = invoke("replay", folder, "--format", "json")
    assert done.exit_code == 3 and [row["group_id"] for row in json.loads(done.stdout)] == ["orders"]
    assert done.stderr.count("\n") == len(KINDS)


@pytest.mark.timeout(30)
def test_only_files_that_cannot_be_read(folder):
    """The reason is said, not only that there is no rebalance."""
    (folder / "good.log").unlink()
    (folder / "a.log.gz").write_bytes(damaged(PACKED)[len(PACKED) // 2:])
    done = invoke("replay", folder)
    assert done.exit_code == 3 and str(folder / "a.log.gz") in done.stderr and "no rebalance" in done.stderr


@given(st.integers(0, len(PACKED) - 1), st.integers(1, 255), st.booleans())
def test_whatever_happens_to_a_gzip_file(at, change, cut):
    """Its text, a part of it, or `NoText`; no other error."""
    data = PACKED[:at] if cut else PACKED[:at] + bytes([PACKED[at] ^ change]) + PACKED[at + 1:]
    with NamedTemporaryFile(suffix=".gz") as file:
        file.write(data)
        file.flush()
        text, problem = b"", None
        try:
            for block in Origin(file.name, "", file.name, named=False, packed=True).blocks():
                text += block
        except NoText as error:
            problem = error.args
    if problem:
        assert problem[0] in ("unreadable", "binary") and problem[1] and (LOG.startswith(text) or not cut)
    else:
        assert text == LOG or cut and not data                          # what a header says does not matter


# --- lines of a trace ------------------------------------------------------------------------------------------------

ROW = Generation("g", 1, 1, 0.0, 0.1, 0.2, [Cause("join", "m", source="broker")], "m", "range",
                 {"m": Known("c", "", None, ("t",)), "n": Known("d", "", None, ("t",))},
                 {"m": (("t", 0),), "n": (("t", 1),)})
pairs = st.lists(st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 3)), max_size=5)


@given(st.dictionaries(st.sampled_from(["m", "n", "o"]), pairs))
def test_a_partition_of_a_trace_has_one_owner(assigned):
    """By counting: as many partitions as owners of them."""
    row = ROW.row() | {"assignment": assigned}
    listed = [pair for own in assigned.values() for pair in own]
    if len(set(listed)) == len(listed):
        assert Generation.from_row(row).row()["assignment"] == {id: tuple(own) for id, own in assigned.items()}
    else:
        with pytest.raises(ValueError, match="a partition of a trace must have one owner"):
            Generation.from_row(row)


WRONG = {"two owners": {"assignment": {"m": [["t", 0]], "n": [["t", 0]]}}, "no partition": {"assignment": {"m": [0]}},
         "a number that is text": {"life": "1"}, "a pause below 0": {"pauses": [["t", 0, None, -1, "measured"]]},
         "a half name": {"leader": "\ud800"}}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("number", [0, 1, 4])
def test_a_line_of_a_trace_costs_only_itself(wrong, number, tmp_path):
    rows = [ROW.row() | {"generation": generation} for generation in range(1, 6)]
    lines = [json.dumps(row) for row in rows]
    lines[number] = json.dumps(rows[number] | WRONG[wrong])
    file = tmp_path / "trace.jsonl"
    file.write_text("\n".join(lines) + "\n")
    history = read_history(file)
    assert [one.generation for one in history["g"].generations] == [
        generation for generation in range(1, 6) if generation != number + 1]
    [log] = history.logs
    assert log.problem.startswith(f"line {number + 1}: ")
    done = invoke("replay", file)
    assert done.exit_code == 3 and f"{file}: line {number + 1}: " in done.stderr


def test_lines_of_a_trace_that_are_refused_are_counted(tmp_path):
    file = tmp_path / "trace.jsonl"
    file.write_text("".join(json.dumps(ROW.row() | WRONG["two owners"]) + "\n" for _ in range(5)))
    done = invoke("replay", file)
    assert done.exit_code == 3 and f"{file}: line 1: " in done.stderr and "; so are 4 lines" in done.stderr


# --- names in a trace ------------------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.text(
    "\x00\x1b\x7f\x85\x9b\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2066\u2067\u2069\ufeff", min_size=1)


@given(names, names, names)
def test_a_trace_is_printable_and_gives_names_back(group, member, topic):
    one = Generation(group, 1, 1, 0.0, causes=[Cause("join", member, topic, group, member)], leader=member,
                     protocol=topic, members={member: Known(topic, group, member, (topic,))},
                     assigned={member: ((topic, 0),)})
    file = io.StringIO()
    History([one]).write(file)
    text = file.getvalue()
    assert text.isascii() and text[:-1].isprintable() and text.endswith("\n")
    again = read_history(text)
    assert [group.generations for group in again.values()] == [[one]]


def test_a_folder_is_read_in_order_of_names(folder):
    """Which files there are does not depend on those that cannot be read."""
    for number, (make, ending) in enumerate(KINDS.values()):
        make(folder / f"{number}.log{ending}")
    assert [Path(one.name).name for one in origins(folder)] == sorted(os.listdir(folder))
