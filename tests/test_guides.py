"""What the guides show of a terminal: a reader who types it in an empty folder sees the same.

A cell that begins with `%%bash` is run here. A fence of Markdown (```sh) is not: it is for commands that need a broker
or change a cluster. `make test` runs whole pages; here only the commands run, so they may not rely on Python cells.
"""

import re
import subprocess
import sys

import pytest
from notebooks import ROOT, TERMINAL, environment
from test_pages import MODULE_PAGES, NBS, NOTEBOOKS, cells, code, named, words

GUIDES = [path for path in NOTEBOOKS if path.parent != NBS and path not in MODULE_PAGES]
MOST_WORDS = 3000


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
                needs = r"kafka-consumer-groups|HOST:PORT|pip install|pytest|s3a:|billing.txt|rm -r"
                assert re.search(needs, fence), fence
                assert not re.search(r"(?m)(?:^|[{;|])\s*\$\w", fence), fence  # zsh does not split variables


def test_an_unknown_sample_is_one_line():
    command = [sys.executable, "-m", "kafka_assign.samples", "secret\x1b[2J"]
    done = subprocess.run(command, text=True, capture_output=True, env=environment(ROOT))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "a sample must be fleet or orders-billing (got secret\\x1b[2J)\n"
