"""What a command writes: it replaces no input, no other output, and nothing of another process."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from kafka_assign.cli.app import program as commands
from kafka_assign.cli.arguments import InOrder
from kafka_assign.cli.capturing import _write_moment
from kafka_assign.cli.writing import _INPUTS, _OUTPUTS, written_to
from kafka_assign.samples import demo_group, path
from kafka_assign.snapshot import read_groups

ROOT = Path(__file__).resolve().parent.parent
LOG = path("broker-log").read_text(encoding="utf-8")


def all_commands(command, name=()):
    """The commands of the program: the words that call each, and what Typer made of it."""
    for word, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands"):
            yield from all_commands(inner, (*name, word))
        else:
            yield (*name, word), inner


COMMANDS = dict(all_commands(typer.main.get_command(commands)))
WRITING = [(words, parameter.name) for words, command in COMMANDS.items() for parameter in command.params
           if parameter.name in _OUTPUTS]


def invoke(*words):
    done = CliRunner().invoke(commands, list(map(str, words)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def state_of(folder):
    """The names and contents of all files in a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def in_words(value):
    return " ".join(value) if isinstance(value, tuple) else value


# --- every option that writes ----------------------------------------------------------------------------------------

NAMES_A_FILE = re.compile(r"\b(FILES?|DIR|LOG|INPUT|OLD|NEW|PATH|FOLDER)\b")


def test_every_option_that_names_a_file_reads_it_or_writes_it():
    """The guard knows parameters by their names, so a new one must be listed: it is read, or it is written."""
    named = {parameter.name for command in COMMANDS.values() for parameter in command.params
             if NAMES_A_FILE.search(parameter.metavar or "")}
    assert named - {"zone"} == {*_INPUTS, *_OUTPUTS}                  # FILE=ZONE is a pattern
    assert all(isinstance(command, InOrder) for command in COMMANDS.values()), "only InOrder checks outputs"


WRITES = re.compile(r"""\bopen\([^)\n]*["'][wxa]b?["']|write_text|write_bytes|\.mkdir\(|makedirs|savefig|copyfile""")


def test_no_other_module_opens_a_file_to_write():
    """The rest: temporary folders, devices, tables of a new run, and pictures in memory."""
    found = {str(file.relative_to(ROOT / "kafka_assign")) for file in ROOT.glob("kafka_assign/**/*.py")
             if WRITES.search(file.read_text(encoding="utf-8"))}
    assert found == {"cli/writing.py", "cli/capturing.py", "cli/errors.py", "clients/connection.py", "fleet/apart.py",
                     "fleet/runs.py", "fleet/session.py", "reports/draw.py"}


# --- an input stays --------------------------------------------------------------------------------------------------

ENDING = {"output": ".json", "plot": ".svg", "timeline": ".svg", "trace": ".jsonl"}
LINES = {                    # words of a command, and how it is told what it reads
    ("assign",): ["-s", "range"], ("show",): [], ("replay",): ["-g", "orders"],
    ("capture",): ["--bootstrap-server", "127.0.0.1:1"], ("fleet", "compare"): [], ("fleet", "replay"): []}


READ_BY = {"files": "files", "folder": "files", "racks": "racks", "command_config": "command_config",
           "key": "command_config", "py_files": "py_files"}                   # how an input is named: its parameter
CASES = [(words, option, read) for words, option in WRITING for read, parameter in READ_BY.items()
         if parameter in {one.name for one in COMMANDS[words].params}]


def test_every_option_that_writes_is_tried():
    assert {words for words, _ in WRITING} == {*LINES} and {option for _, option in WRITING} == {*_OUTPUTS}


def content_for(words):
    return LOG if "replay" in words else demo_group().to_json()


def same_file(file, way):
    """Another name of a file, in the folder beside that of the file."""
    beside = file.parent.parent
    other = beside / f"other{file.suffix}"
    if way == "relative":
        return Path(os.path.relpath(file))
    if way == "dots":
        return file.parent / ".." / file.parent.name / file.name
    if way == "symlink":
        other.symlink_to(file)
    elif way == "hard link":
        os.link(file, other)
    elif way == "linked folder":
        (beside / "linked").symlink_to(file.parent)
        return beside / "linked" / file.name
    else:
        return file
    return other


@pytest.mark.skipif(sys.platform == "win32", reason="links are POSIX's")
@pytest.mark.parametrize("way", ["itself", "relative", "dots", "symlink", "hard link", "linked folder"])
@pytest.mark.parametrize("words, option, read", CASES, ids=in_words)
def test_an_output_that_is_an_input_is_refused(words, option, read, way, tmp_path):
    """By each option that writes, for each that reads: a usage error before anything is done."""
    (tmp_path / "inputs").mkdir()
    victim = tmp_path / "inputs" / f"victim{ENDING[option]}"
    victim.write_text(content_for(words), encoding="utf-8")
    file = tmp_path / "file"
    file.write_text(content_for(words), encoding="utf-8")
    line = [*words, *LINES[words]]
    if read in ("files", "folder"):
        line.append(victim if read == "files" else victim.parent)
    elif any(parameter.name == "files" for parameter in COMMANDS[words].params):
        line.append(file)
    if read == "racks":
        line += ["--racks", victim]
    elif read == "py_files":
        line += ["--py-files", f"{file},{victim}"]
    elif read == "command_config":
        line += ["--command-config", victim]
    elif read == "key":
        config = tmp_path / "client.properties"
        config.write_text(f"security.protocol=SSL\nssl.key.location={victim}\n", encoding="utf-8")
        line += ["--command-config", config]
    output = same_file(victim, way)
    before = state_of(tmp_path)
    done = invoke(*line, f"--{option}", output)
    assert done.exit_code == 2 and "must not be an input (got" in done.stderr and f"--{option}" in done.stderr
    assert done.stderr.count("\n") == 1 and output.name in done.stderr
    assert f"{' '.join(words)} --help" in done.stderr
    assert state_of(tmp_path) == before


@pytest.mark.parametrize("name", ["", "-"])
@pytest.mark.parametrize("words, option", WRITING, ids=in_words)
def test_an_output_has_a_name(words, option, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file"
    file.write_text(content_for(words), encoding="utf-8")
    files = [file] if any(parameter.name == "files" for parameter in COMMANDS[words].params) else []
    done = invoke(*words, *LINES[words], *files, f"--{option}", name)
    assert done.exit_code == 2 and re.search(r"must have a name|must be an \.svg file", done.stderr), done.stderr
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("every", [(), ("--every", "30s")])
def test_what_capture_writes_has_a_name_and_a_folder(every, tmp_path):
    for name, words in ("", "must have a name"), ("-", "must have a name"), (tmp_path / "no" / "moments", "must exist"):
        done = invoke("capture", "--bootstrap-server", "127.0.0.1:1", *every, "-o", name)
        assert done.exit_code == 2 and words in done.stderr and not os.listdir(tmp_path)


def test_standard_input_is_an_input(tmp_path):
    """`<` of the shell opens the file, so it is known to the system."""
    victim = tmp_path / "victim.json"
    victim.write_text(demo_group().to_json(), encoding="utf-8")
    before = victim.read_bytes()
    with open(victim, encoding="utf-8") as file:
        done = subprocess.run([sys.executable, "-m", "kafka_assign", "assign", "-", "-s", "range", "-o", victim],
                              stdin=file, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and "standard input" in done.stderr and victim.read_bytes() == before


def test_two_outputs_are_two_files(tmp_path):
    log, picture = tmp_path / "server.log", tmp_path / "a.svg"
    log.write_text(LOG, encoding="utf-8")
    done = invoke("replay", log, "-g", "orders", "--trace", picture, "--timeline", tmp_path / "." / "a.svg")
    assert done.exit_code == 2 and "must not be the file of --timeline" in done.stderr and not picture.exists()


def test_a_trace_beside_logs_is_written_once(tmp_path):
    """A new file in an input folder replaces nothing; the next time it is an input itself."""
    (tmp_path / "server.log").write_text(LOG, encoding="utf-8")
    trace = tmp_path / "trace.jsonl"
    assert invoke("replay", tmp_path, "--trace", trace).exit_code == 0
    written = trace.read_bytes()
    again = invoke("replay", tmp_path, "--trace", trace)
    assert again.exit_code == 2 and str(trace) in again.stderr and trace.read_bytes() == written


# --- a neighbor stays ------------------------------------------------------------------------------------------------

def test_a_new_file_replaces_none_that_appears_meanwhile(tmp_path):
    file = tmp_path / "a.jsonl"
    with pytest.raises(FileExistsError), written_to(str(file), new=True):
        print("late")
        file.write_text("early")
    assert file.read_text() == "early" and os.listdir(tmp_path) == ["a.jsonl"]


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "no hard links"])
def test_moments_of_one_second_are_files_of_their_own(links, tmp_path, monkeypatch):
    if not links:
        def refuse(*_):
            raise PermissionError(1, "Operation not permitted")
        monkeypatch.setattr(os, "link", refuse)
    time = "2026-11-27T06:01:00Z"
    for number in range(12):
        group = demo_group().replace(name=f"g{number}", time=time, cluster="c")
        file = _write_moment({group.name: group}, str(tmp_path))
        assert json.loads(file.read_text())["group_id"] == group.name
    groups = read_groups(tmp_path)
    assert len(os.listdir(tmp_path)) == 12 and {group.name for group in groups.values()} == {
        f"g{number}" for number in range(12)} and {group.time for group in groups.values()} == {time}


RACE = """
import sys
from kafka_assign.cli.capturing import _write_moment
from kafka_assign.samples import demo_group
group = demo_group().replace(name=sys.argv[2], time="2026-11-27T06:01:00Z")
for _ in range(30):
    _write_moment({"": group}, sys.argv[1])
"""


def test_two_processes_write_into_one_folder(tmp_path):
    racing = [subprocess.Popen([sys.executable, "-c", RACE, tmp_path, name], cwd=ROOT) for name in ("a", "b")]
    assert [process.wait() for process in racing] == [0, 0]
    found = [json.loads(file.read_text())["group_id"] for file in tmp_path.iterdir()]
    assert sorted(found) == ["a"] * 30 + ["b"] * 30
