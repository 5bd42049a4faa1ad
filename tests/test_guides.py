"""What the guides show of a terminal: a reader who types it in an empty folder sees the same.

A cell that begins with `%%bash` is run here. A fence of Markdown (```sh) is not: it is for commands that need a broker
or change a cluster. `make test` runs whole pages; here only the commands run, so they may not rely on Python cells.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from notebooks import ROOT, clean_page, copy_project, environment
from test_pages import MODULE_PAGES, NBS, NOTEBOOKS, cells, code, named, words

GUIDES = [path for path in NOTEBOOKS if path.parent != NBS and path not in MODULE_PAGES]
MOST_WORDS = 3000
TERMINAL = "%%bash\n"  # how a cell of commands begins


def commands(path):
    """The commands of each terminal cell of a page, with what it shows on standard output and on standard error."""
    for cell in code(path):
        if cell.source.startswith(TERMINAL):
            shown = {"stdout": "", "stderr": ""}
            for output in cell.outputs:
                shown[output["name"]] += "".join(output["text"])
            yield cell.source.removeprefix(TERMINAL), (shown["stdout"], shown["stderr"])


def needs_spark(path):
    return any("fleet compare" in typed for typed, _ in commands(path))


def case(path):
    return pytest.param(path, id=named(path), marks=[pytest.mark.needs("java", "spark")] if needs_spark(path) else [])


@pytest.mark.parametrize("path", [case(path) for path in GUIDES if any(commands(path))])
def test_commands_print_what_the_page_shows(path, tmp_path):
    """It finds commands that read files which nobody has, or need what only a Python cell of the page has made."""
    env = {**environment(ROOT), "COLUMNS": "88"}
    for typed, shown in commands(path):
        done = subprocess.run(["bash"], input=typed, cwd=tmp_path, env=env, text=True, capture_output=True)
        assert (done.stdout, done.stderr) == shown, typed
        assert done.returncode == 0, typed


def test_guides_run_in_jupyter_and_change_no_file(tmp_path, monkeypatch):
    """Not even if what starts the kernel sets neither PATH nor plain output; `make lab` saves what is committed."""
    import nbformat
    from nbclient import NotebookClient

    copy, scripts = copy_project(ROOT, tmp_path / "copy"), str(Path(sys.executable).parent)
    for words in "init -q", "add -A":
        subprocess.run(["git", *words.split()], cwd=copy, check=True)
    startup = tmp_path / "env/etc/ipython/startup/pages.py"
    (tmp_path / "env").mkdir()
    (tmp_path / "env/.python").touch()  # for make, an environment that needs no more
    subprocess.run(["make", "-s", f"VENV={tmp_path / 'env'}", str(startup)], cwd=copy, check=True)
    (tmp_path / "ipython").mkdir()
    (tmp_path / "ipython/profile_default").symlink_to(startup.parent.parent)
    others = [one for one in os.environ["PATH"].split(os.pathsep) if one != scripts]
    monkeypatch.setenv("PATH", os.pathsep.join(others))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    for page in "start/which", "guides/own_strategy":
        path = copy / f"nbs/{page}.ipynb"
        notebook, where = nbformat.read(path, as_version=4), {"metadata": {"path": path.parent}}
        NotebookClient(notebook, resources=where, coalesce_streams=True).execute()
        clean_page({"type": "notebook", "content": notebook})
        nbformat.write(notebook, path)
    changed = ["git", "ls-files", "--modified", "--others", "--exclude-standard"]
    assert subprocess.run(changed, cwd=copy, check=True, text=True, capture_output=True).stdout == ""


@pytest.mark.parametrize("path", [path for path in GUIDES if any(commands(path))], ids=named)
def test_a_reader_can_type_what_is_shown(path):
    """No path out of the folder, no variables of Python, no `!`, and nothing that only developers have."""
    for cell in code(path):
        wrong = re.search(r"\.\./|(?m:^!)|(?m:^%(?!%bash\n))|\{\w+\}|\b(?:fastcore|IPython)\b",
                          cell.source if cell.source.startswith(TERMINAL) else re.sub(r"\{\w+\}", "", cell.source))
        assert not wrong, f"{wrong[0]!r} in {cell}"


@pytest.mark.parametrize("path", GUIDES, ids=named)
def test_a_guide_is_short(path):
    assert words(path) <= MOST_WORDS


def test_every_fence_of_the_guides_that_is_not_run_needs_something():
    """A command in a fence that this package alone could run belongs into a cell, where its output is kept true."""
    for path in GUIDES:
        for cell in cells(path):
            for fence in re.findall(r"```sh\n(.*?)```", cell.source, re.S) if cell.kind == "markdown" else []:
                needs = r"kafka-consumer-groups|kafka-dump-log|HOST:PORT|pip install|pytest|s3a:|billing.txt|rm -r"
                assert re.search(needs, fence), fence
                assert not re.search(r"(?m)(?:^|[{;|])\s*\$\w", fence), fence  # zsh does not split variables


def test_an_unknown_sample_is_one_line():
    command = [sys.executable, "-m", "kafka_assign.samples", "secret\x1b[2J"]
    done = subprocess.run(command, text=True, capture_output=True, env=environment(ROOT))
    assert (done.returncode, done.stdout) == (1, "")
    names = "fleet, orders-billing, broker-log, consumer-logs"
    assert done.stderr == f"a sample must be one of {names} (got secret\\x1b[2J)\n"
