"""The proposals' pages: every statement is shown, quoted and tested, and a reader may change the examples."""
import json
import re
import shutil
import sys

import pytest
from conftest import ROOT
from statements import FOLDER, problems

PAGES = ["01_kip54.ipynb", "02_kip49.ipynb"]


def failures(page, monkeypatch, *changes):
    """Run the code of a page, with some of its texts replaced: how each failing cell under Checks fails, and others."""
    monkeypatch.syspath_prepend(ROOT / FOLDER)
    cells = json.loads((ROOT / FOLDER / page).read_text(encoding="utf-8"))["cells"]
    sources = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    for old, new in changes:
        assert sum(source.count(old) for _, source in sources) == 1, old
    checks, others, under_checks, known = [], [], False, {"__name__": "__main__"}
    for kind, source in sources:
        if kind == "markdown":
            under_checks = under_checks or bool(re.search("(?m)^## Checks$", source))
            continue
        for old, new in changes:
            source = source.replace(old, new)
        try:
            exec(compile(source, page, "exec"), known)
        except Exception as error:
            (checks if under_checks else others).append(f"{type(error).__name__}: {error}")
    sys.modules.pop("proposals", None)
    return checks, others


@pytest.mark.parametrize("page", PAGES)
def test_a_page_checks_itself(page, monkeypatch):
    assert failures(page, monkeypatch) == ([], [])


@pytest.mark.parametrize("page, old, new, name", [
    ("01_kip54.ipynb", 'example2 = Group({"t0": 1, "t1": 2, "t2": 3}', 'example2 = Group({"t0": 1, "t1": 2, "t2": 4}',
     "example 2"),
    ("01_kip54.ipynb", 'example2 = Group({"t0": 1, "t1": 2, "t2": 3},\n                 {"C0": ["t0"], ',
     'example2 = Group({"t0": 1, "t1": 2, "t2": 3},\n                 {', "example 2"),
    ("01_kip54.ipynb", 'dict.fromkeys(["C0", "C1", "C2"], four))', 'dict.fromkeys(["C0", "C2"], four))', "example 1"),
    ("01_kip54.ipynb", '"C3": [("t3", 0)], "C9": [("t2", 1)]})\nsteps', '"C2": [], "C3": [("t3", 0)]})\nsteps',
     "the running group"),
    ("01_kip54.ipynb", 'group = Group({"t0": 1, "t1": 2, "t2": 3, "t3": 1}',
     'group = Group({"t0": 4, "t1": 0, "t2": 3}', "the running group"),
    ("01_kip54.ipynb", '{"C0": both, "C1": both})', '{"A": both, "B": both, "C": ["t0"]})', "example 3"),
    ("01_kip54.ipynb", "rejoined(generation_of_c3=1)", "rejoined(generation_of_c3=3)", "the group of KIP-341"),
    ("01_kip54.ipynb", '"C2": ["t0"]},\n              owned={"C0": [("t1", 0), ("t1", 1)]})\nplot',
     '"C2": ["t0", "t1"]},\n              owned={"C0": [("t1", 0), ("t1", 1)]})\nplot', "the smallest group"),
    ("01_kip54.ipynb", 'owned={"C0": [("t2", 0)]})\nstates', 'owned={"C2": [("t2", 0)]})\nstates',
     "the group with an unnecessary move"),
    ("01_kip54.ipynb", 'pair = Group({"t": 2}, {"C0"', 'pair = Group({"t": 3}, {"C0"', "the group of KAFKA-2019"),
    ("02_kip49.ipynb", '"T1": 2, "T2": 1, "T3": 2, "T4": 1, "T5": 2},\n              {"C1"',
     '"T1": 4, "T2": 1, "T3": 2, "T4": 1, "T5": 2},\n              {"C1"', "running example"),
    ("02_kip49.ipynb", '{"C1": new, "C2": old, "C3": old, "C4": new})\nplot',
     '{"C1": new, "C2": old, "C3": new, "C4": new})\nplot', "running example"),
    ("02_kip49.ipynb", '"C3": ["T2"]})\n\n\ndef by_name', '"C3": ["T1"]})\n\n\ndef by_name', "order of topics"),
])
def test_a_reader_changes_an_example(page, old, new, name, monkeypatch):
    """The page runs to its end; one check fails, and names what was changed."""
    checks, others = failures(page, monkeypatch, (old, new))
    assert not others and len(checks) == 1 and name in checks[0], (checks, others)


# --- statements --------------------------------------------------------------------------------------------------

def test_every_statement_is_shown_quoted_and_tested():
    assert problems(ROOT) == []


@pytest.mark.parametrize("file, pattern, text, problem", [
    ("statements.toml", r'id = "49.4"', 'id = "49.10"', "statement 49.4 has no row"),
    ("statements.toml", "substantial improvement", "great improvement", "must quote statement 49.1"),
    ("02_kip49.ipynb", "heavily skewed", "rather skewed", "must be words of the proposal"),
    ("02_kip49.ipynb", "## The order of topics", "## Topics", "statement 49.5 needs a heading"),
    ("statements.toml", "test_many.py::test_", "test_many.py::test_gone_", "test of statement 49.4 does not exist")])
def test_a_statement_that_is_not_shown_is_noticed(file, pattern, text, problem, tmp_path):
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("reference", "__pycache__"))
    path = tmp_path / FOLDER / file
    whole = path.read_text(encoding="utf-8")
    assert pattern in whole
    path.write_text(whole.replace(pattern, text, 1), encoding="utf-8")
    assert any(problem in line for line in problems(tmp_path))
