"""A strategy of somebody's package, announced as an entry point: by its short name everywhere, workers included."""

import json
import os
import subprocess
import sys

import pytest

STRATEGY = '''
from kafka_assign import strategy

@strategy("theirs")
def deal(group):
    "Each topic to its last subscriber."
    last = [max(group.subscribers(topic).tolist(), default=-1) for topic in group.topics]
    return [last[topic] for topic in group.columns.topic_of]
'''


@pytest.fixture
def installed(tmp_path):
    """The environment of a process in which the package `theirs` is installed."""
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (tmp_path / "theirs_strategies.py").write_text(STRATEGY)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[kafka_assign.strategies]\ntheirs = theirs_strategies:deal\n")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def run(environment, code):
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_one_of_the_strategies(installed):
    code = "from kafka_assign import strategies; print(strategies()['theirs'])"
    assert run(installed, code) == "Each topic to its last subscriber.\n"


def test_it_is_compared_on_the_command_line(installed):
    code = ("import sys; sys.argv = 'kafka-assign compare --demo -s theirs -s range --format json'.split();"
            "from kafka_assign.cli.app import main; main()")
    [group] = json.loads(run(installed, code))
    assert [row["strategy"] for row in group["rows"]] == ["current", "theirs", "range"]


def test_the_package_runs_as_the_program():
    done = subprocess.run([sys.executable, "-m", "kafka_assign", "compare", "--demo", "--format", "json"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)[0]["rows"]


def test_a_module_in_the_current_folder_is_found(tmp_path):
    crash = "def crash(group):\n    return [][group.columns.size]\n"
    (tmp_path / "mine.py").write_text(f"def deal(group):\n    return [0] * group.columns.size\n\n\n{crash}")
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the user hides one of Python')\n")
    command = [sys.executable, "-P", "-c", "from kafka_assign.cli.app import main; main()", "compare", "--demo", "-s"]

    def asked(name):
        return subprocess.run([*command, name, "--format", "csv"], capture_output=True, text=True, cwd=tmp_path)

    done = asked("mine:deal")
    assert done.returncode == 0 and "mine:deal,4,12" in done.stdout, done.stderr
    done = asked("mine:crash")
    assert done.returncode == 3 and done.stderr.endswith("mine.py, line 6)\n") and "IndexError" in done.stderr
    head = 'from kafka_assign import strategy\n\n\n@strategy("all", many=True)\n'
    (tmp_path / "mine.py").write_text(f"{head}def crash(columns):\n    return columns.nonsense\n")
    command[-3:] = ["rank", os.path.join(os.path.dirname(__file__), "..", "samples", "kafka-4.3.1"), "-s"]
    done = asked("mine:crash")
    assert done.returncode == 3 and "Traceback" not in done.stderr and "strategy 'all' must not raise" in done.stderr
    command[-3:] = ["compare", "--demo", "-s"]
    (tmp_path / "mine.py").write_text("import os\n\nos.nonsense\n")
    done = asked("mine:deal")
    assert done.returncode == 2 and "mine.py, line 3) - try" in done.stderr and done.stderr.count("\n") == 1


UNTRUSTED = ["org", "lz4", "snappy", "crc32c", "xxhash", "sspi", "json", "colorsys", "numpy", "evil"]
STARTS = {"-m": ["-m", "kafka_assign"], "script": ["-P", "-c", "from kafka_assign.__main__ import main; main()"]}


@pytest.fixture
def folder(tmp_path):
    """A folder with modules that say so when they are run, a package that announces one, and the user's strategy."""
    for name in UNTRUSTED:
        (tmp_path / f"{name}.py").write_text("open('ran', 'a').write(__name__)\nraise ImportError('of the folder')\n")
    about = tmp_path / "evil-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[kafka_assign.strategies]\nevil = evil:deal\n")
    (tmp_path / "sibling.py").write_text("FIRST = 0\n")
    (tmp_path / "late.py").write_text("FIRST = 0\n")
    (tmp_path / "mine.py").write_text("import colorsys, json\nfrom sibling import FIRST\n\n\n"
                                      "def deal(group):\n    import late\n"
                                      "    return [json.loads(str(FIRST + late.FIRST))] * group.columns.size\n")
    return tmp_path


def started(folder, start, *words):
    done = subprocess.run([sys.executable, *STARTS[start], *words], cwd=folder, capture_output=True, text=True)
    assert not (folder / "ran").exists(), (folder / "ran").read_text()
    return done


@pytest.mark.parametrize("start", STARTS)
def test_what_lies_in_the_current_folder_is_not_run(folder, start):
    assert started(folder, start, "compare", "--demo").returncode == 0
    listed = started(folder, start, "strategies", "--format", "json")
    assert listed.returncode == 0 and "evil" not in listed.stdout
    captured = started(folder, start, "capture", "--bootstrap-server", "127.0.0.1:1", "--timeout", "0.1")
    assert captured.returncode == 3 and captured.stderr.startswith("kafka-assign: 127.0.0.1:1: ")


@pytest.mark.parametrize("start", STARTS)
def test_a_strategy_of_the_current_folder_and_its_neighbors_are_found_last(folder, start):
    done = started(folder, start, "compare", "--demo", "-s", "mine:deal", "--format", "csv")
    assert done.returncode == 0 and "mine:deal,4,12" in done.stdout
    for names in ["evil"], ["mine:deal", "-s", "evil"]:         # an entry point is not a module that was named
        done = started(folder, start, "compare", "--demo", "-s", *names)
        assert done.returncode == 2 and "unknown strategy 'evil'" in done.stderr


@pytest.mark.needs("spark", "java")
def test_workers_do_not_run_what_lies_in_the_current_folder(folder):
    (folder / "group.jsonl").write_text(json.dumps({"name": "g", "topics": {"t": 3}, "members": [
        {"id": "a", "topics": ["t"], "owned": [["t", 0]]}, {"id": "b", "topics": ["t"]}]}))
    done = started(folder, "-m", "fleet", "compare", "group.jsonl", "-o", "runs", "-s", "mine:deal", "-s", "fair")
    assert done.returncode == 0, done.stderr


def test_other_processes_find_it_when_it_is_checked(installed):
    code = "from kafka_assign import check_strategy; print(check_strategy('theirs', ['any-hash-seed', 'no-memory']))"
    report = run(installed, code)
    assert [line.split() for line in report.splitlines()] == [
        ["theirs:", "conforms"], ["any-hash-seed", "kept"], ["no-memory", "kept"]]


@pytest.mark.needs("java")
def test_it_is_found_by_the_workers_of_a_fleet(installed, tmp_path):
    group = {"name": "g", "topics": {"t": 3}, "members": [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}]}
    (tmp_path / "group.json").write_text(json.dumps(group))
    source, out = str(tmp_path / "group.json"), str(tmp_path / "runs")
    code = ("from kafka_assign.fleet.job import compare_fleet;"
            f"run = compare_fleet([{source!r}], {out!r}, strategies=['theirs']);"
            "print([row['assignment'][0]['owner'] for row in run.table('results').to_pylist()])")
    assert run(installed, code) == "[[-1, -1, -1], [1, 1, 1]]\n"
