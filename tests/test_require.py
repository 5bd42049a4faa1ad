"""REQUIRE makes a skip for lack of something a failure, however the test skips."""
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


@pytest.mark.parametrize("require, processes, outcome", [
    ("", 0, "5 skipped, 1 xfailed"),
    ("java,browser", 0, "1 failed, 2 skipped, 1 xfailed, 2 errors"),
    ("java,browser", 2, "1 failed, 2 skipped, 1 xfailed, 2 errors"),
])
def test_require(tmp_path, require, processes, outcome):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_cases.py").write_text(CASES)
    (tmp_path / "tests/test_whole.py").write_text(WHOLE_FILE)
    shutil.copy(ROOT / "tests/conftest.py", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    env = {**os.environ, "REQUIRE": require, "LONG": ""}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors",
               "-n", str(processes), "--dist", "loadfile", "tests"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert f" {outcome} in " in done.stdout, done.stdout
