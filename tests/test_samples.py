"""Every sample on standard input: a comparison where it holds a group, else one line that says what it is."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafka_assign.cli.app import program

SAMPLES = Path(__file__).parent.parent / "samples"
GROUPS = json.loads((SAMPLES / "truth.json").read_text(encoding="utf-8"))["groups"]
FILES = sorted(path for path in SAMPLES.rglob("*") if path.is_file())
TABLES = ("describe", "offsets-verbose", "members", "members-verbose")
STATES = ("state", "state-verbose")


def table_of(path):
    """Which table of consumer groups a sample is, by its name; nothing for a sample of something else."""
    what = path.name.removesuffix(".txt").rpartition(".")[2]
    return "" if path.name.startswith("kafka-share-groups") or what not in TABLES + STATES else what


def holds_a_group(path):
    """Whether it holds groups: as JSON, or in a table, where a line below the header begins with the name of one."""
    if path.suffix == ".jsonl":
        return True
    if not table_of(path):
        return False
    lines = path.read_text(encoding="utf-8").splitlines()
    header = next((at for at, line in enumerate(lines) if line.startswith("GROUP ")), len(lines))
    return any(line.startswith(f"{name} ") for line in lines[header + 1:] for name in GROUPS)


def test_samples_are_of_both_kinds():
    kinds = [holds_a_group(path) for path in FILES]
    assert kinds.count(True) > 100 and kinds.count(False) > 100


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SAMPLES).as_posix())
def test_compare_reads_it_from_standard_input(path):
    done = CliRunner().invoke(
        program, ["compare", "-", "--strategy", "range", "--format", "json"], input=path.read_bytes()
    )
    if table_of(path) in STATES and "Stable" in path.read_text(encoding="utf-8"):
        assert done.exit_code == 3 and "members" in done.stderr  # it counts members that it does not name
    elif holds_a_group(path):
        assert done.exit_code == 0, done.stderr
        for group in json.loads(done.stdout):
            rows = [row["strategy"] for row in group["rows"]]
            counted = group["rows"][0]["kept"] is None and group["rows"][0]["partitions"] is None
            assert rows[:1] == ["current"] and (rows == ["current"] if counted else "range" in rows)
    else:
        assert (done.exit_code, done.stdout) == (3, "")
        assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("kafka-assign: ")
