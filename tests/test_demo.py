"""`make demo`: its forecasts come true, and nothing of it outlives it."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from live_members import SECONDS, until

pytestmark = pytest.mark.needs("broker")

DEMO = Path(__file__).resolve().parent.parent / "tools" / "demo.py"


def start(mark):
    """The demo in a process group of its own, in an environment with this mark."""
    return subprocess.Popen([sys.executable, DEMO], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.PIPE, start_new_session=True, env={**os.environ, "DEMO": mark})


def running(mark):
    """The processes whose environment has this mark: the demo, its consumers, its broker."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found += [folder.name] if f"DEMO={mark}\0" in (folder / "environ").read_text(errors="replace") else []
        except OSError:                                # of others, or gone meanwhile
            pass
    return found


def test_forecasts_come_true(tmp_path):
    mark = str(tmp_path)
    out, err = start(mark).communicate(timeout=4 * SECONDS)
    assert err == "" and "\x1b" not in out and max(map(len, out.splitlines())) <= 88
    first, *changes = out.split("kafka-assign compare")
    assert "3 consumers share 12 partitions under sticky" in first
    for text, option, moved in zip(changes, ("leave anna", "join dora", "join erik"), (4, 4, 3), strict=True):
        rows = [line.split() for line in text.splitlines() if line.startswith(("clicks-", "views-"))]
        assert option in text and f"As foretold, {moved} of 12 partitions" in text and len(rows) == moved
        assert all(before != foretold == happened for _, before, foretold, happened in rows)
        assert {"anna", "dora", "erik"} & {name for row in rows for name in row} >= {option.split()[1]}
    assert not running(mark)


def test_nothing_outlives_the_demo(tmp_path):
    """Ctrl-C reaches the demo and its consumers, and is no error; when a demo is killed, the others notice."""
    marks = {number: f"{tmp_path} {number}" for number in (signal.SIGINT, signal.SIGKILL)}
    demos = {number: start(mark) for number, mark in marks.items()}
    try:
        for number, demo in demos.items():
            assert any("--leave" in line for line in demo.stdout) and len(running(marks[number])) > 4
        os.killpg(demos[signal.SIGINT].pid, signal.SIGINT)
        demos[signal.SIGKILL].kill()
        ends = [(demo.communicate(timeout=SECONDS)[1], demo.returncode) for demo in demos.values()]
        assert ends == [("", 130), ("", -signal.SIGKILL)]
        until(lambda: not any(map(running, marks.values())))
    finally:
        for demo in demos.values():
            demo.kill()
