"""What conftest.py and pyproject.toml promise: REQUIRE makes a skip for lack of something a failure, however the test
skips; signals arrive wherever the tests are started; a test that hangs ends with its stack."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

CASES = """
import pytest

def test_of_its_own_accord(): pytest.skip("no Java here")

@pytest.mark.skipif(True, reason="needs java")
def test_by_marker(): pass

@pytest.mark.long
def test_long(): pass

def test_other_reason(): pytest.skip("javascript is not what it needs")

@pytest.mark.xfail(reason="java")
def test_known_failure(): assert False
"""
WHOLE_FILE = "import pytest\npytest.importorskip('java_bindings', reason='java is not there')\n"


SIGNALS = """
import os, signal, subprocess, sys
import pytest

def test_an_interrupt_arrives():
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_arrives_in_a_child(number):
    lines = f"import os; os.kill(os.getpid(), {int(number)})"
    assert subprocess.run([sys.executable, "-c", lines], stderr=subprocess.DEVNULL).returncode == -number
"""
HANGS = """
import time

def test_that_hangs(): time.sleep(600)

def test_after_it(): pass
"""


def pytest_in(folder, *options, cases, command=(sys.executable,), **environment):
    """What pytest prints about the test files `cases` (name: text) under the settings of this project."""
    (folder / "tests").mkdir()
    for name, text in cases.items():
        (folder / "tests" / name).write_text(text)
    shutil.copy(ROOT / "tests/conftest.py", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    env = {**os.environ, "REQUIRE": "", "LONG": "", **environment}
    command = [*command, "-m", "pytest", "-p", "no:cacheprovider", *options, "tests"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True).stdout


@pytest.mark.parametrize("require, processes, outcome", [
    ("", 0, "5 skipped, 1 xfailed"),
    ("java,browser", 0, "1 failed, 2 skipped, 1 xfailed, 2 errors"),
    ("java,browser", 2, "1 failed, 2 skipped, 1 xfailed, 2 errors"),
])
def test_require(tmp_path, require, processes, outcome):
    said = pytest_in(tmp_path, "--continue-on-collection-errors", "-n", str(processes), "--dist", "loadfile",
                     cases={"test_cases.py": CASES, "test_whole.py": WHOLE_FILE}, REQUIRE=require)
    assert f" {outcome} in " in said, said


@pytest.mark.parametrize("processes", [0, 1])
def test_signals_arrive_in_the_background_of_a_script(tmp_path, processes):
    """A shell starts such a process with SIGINT ignored, which all of its children inherit."""
    ignoring = ["sh", "-c", 'trap "" INT TERM; exec "$@"', "sh", sys.executable]
    said = pytest_in(tmp_path, "-n", str(processes), cases={"test_signals.py": SIGNALS}, command=ignoring)
    assert " 3 passed in " in said, said


@pytest.mark.parametrize("processes", [0, 1])
def test_a_test_that_hangs_ends_with_its_stack(tmp_path, processes):
    said = pytest_in(tmp_path, "-n", str(processes), "-o", "timeout=1", cases={"test_hangs.py": HANGS})
    assert " 1 failed, 1 passed in " in said and "test_that_hangs(): time.sleep(600)" in said, said


def test_every_test_has_a_time_limit(request):
    assert request.config.pluginmanager.hasplugin("timeout") and 0 < float(request.config.getini("timeout")) <= 600
