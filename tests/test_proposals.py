"""The proposals' pages: every statement is shown, quoted and tested, and a reader may change the examples."""
import json
import re
import shutil
import sys

import pytest
from conftest import ROOT
from statements import FOLDER, problems

PAGES = ["01_kip54.ipynb", "02_kip49.ipynb", "03_kafka5337.ipynb", "04_kip315.ipynb"]


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
     "running group"),
    ("01_kip54.ipynb", 'group = Group({"t0": 1, "t1": 2, "t2": 3, "t3": 1}',
     'group = Group({"t0": 4, "t1": 0, "t2": 3}', "running group"),
    ("01_kip54.ipynb", '{"C0": both, "C1": both})', '{"A": both, "B": both, "C": ["t0"]})', "example 3"),
    ("01_kip54.ipynb", "rejoined(generation_of_c3=1)", "rejoined(generation_of_c3=3)", "group of KIP-341"),
    ("01_kip54.ipynb", '"C2": ["t0"]},\n              owned={"C0": [("t1", 0), ("t1", 1)]})\nplot',
     '"C2": ["t0", "t1"]},\n              owned={"C0": [("t1", 0), ("t1", 1)]})\nplot', "smallest group"),
    ("01_kip54.ipynb", 'owned={"C0": [("t2", 0)]})\nstates', 'owned={"C2": [("t2", 0)]})\nstates',
     "group with an unnecessary move"),
    ("01_kip54.ipynb", 'pair = Group({"t": 2}, {"C0"', 'pair = Group({"t": 3}, {"C0"', "group of KAFKA-2019"),
    ("02_kip49.ipynb", '"T1": 2, "T2": 1, "T3": 2, "T4": 1, "T5": 2},\n              {"C1"',
     '"T1": 4, "T2": 1, "T3": 2, "T4": 1, "T5": 2},\n              {"C1"', "running example"),
    ("02_kip49.ipynb", '{"C1": new, "C2": old, "C3": old, "C4": new})\nplot',
     '{"C1": new, "C2": old, "C3": new, "C4": new})\nplot', "running example"),
    ("02_kip49.ipynb", '"C3": ["T2"]})\n\n\ndef by_name', '"C3": ["T1"]})\n\n\ndef by_name', "order of topics"),
    ("02_kip49.ipynb", 'restarted = ["C1", "C4", "C2", "C3"]\n', 'restarted = ["C2", "C4", "C1"]\n', "restarts"),
    ("02_kip49.ipynb", 'chain = Group({"T1": 1,', 'chain = Group({"T1": 2,', "group where fair is not optimal"),
    ("02_kip49.ipynb", '"consumer2-0"]\nof_threads', '"consumer2-0", "consumer2-1"]\nof_threads', "group of threads"),
    ("03_kafka5337.ipynb", '"C1": ["t0"]}, {"t0": [100_000,', '"C1": ["t0"]}, {"t0": [7, 100_000,', "running example"),
    ("03_kafka5337.ipynb", 'group = group_of({"C0": ["t0"], "C1": ["t0"]}, {',
     'group = group_of({"C0": ["t0"], "C2": ["t1"], "C3": []}, {"t1": [5, 6], ', "running example"),
    ("03_kafka5337.ipynb", 'ten = group_of({"c1": ["t"], "c2": ["t"], "c3": ["t"]}',
     'ten = group_of({"c1": [], "c2": []}', "group with ten partitions"),
    ("03_kafka5337.ipynb", 'idle = group_of({"c1"', 'idle = group_of({"c3"', "group without lag"),
    ("03_kafka5337.ipynb", '{"consumer-1": ["topic1", "topic2"], "consumer-2": ["topic1"]},\n               {',
     '{"consumer-1": ["topic2"], "consumer-2": ["topic1"]},\n               {', "group with two topics"),
    ("03_kafka5337.ipynb", "hot = {topic: [30, 1]", "hot = {topic: [30, 1, 9]", "group with four topics"),
    ("03_kafka5337.ipynb", 'offsets = {"committed": [5555,', 'offsets = {"committed": [9000,', "offsets"),
    ("03_kafka5337.ipynb", 'puzzle = group_of({"C0": ["t"],', 'puzzle = group_of({"C0": [],', "puzzle"),
    ("04_kip315.ipynb", 'topics = {"impressions": 10, "clicks": 10}', 'topics = {"impressions": 10, "clicks": 7}',
     "running example"),
    ("04_kip315.ipynb", 'for consumer in "ABCD"}', 'for consumer in "AB"}', "running example"),
    ("04_kip315.ipynb", "last = before.members[-1]", "last = before.members[0]", "consumer that leaves"),
    ("04_kip315.ipynb", 'owned=assign(group, "range")', 'owned=assign(group, "sticky")', "the assignment before"),
    ("04_kip315.ipynb", '"C": ([0], 7)}, 10\nprevious', '"C": ([0, 2], 8)}, 10\nprevious', "example of claims"),
    ("04_kip315.ipynb", 'owned = {"A": [0, 1, 2, 3], "B": [4], "C": []}',
     'owned = {"A": [0, 1], "B": [4, 5], "C": [], "D": []}', "example of a draft"),
    ("04_kip315.ipynb", '"X": 100}\nsubscribed', '"X": 7}\nsubscribed', "example of topic X"),
    ("04_kip315.ipynb", 'join(three, "ABC")', 'join(three, "ABCD")', "group that changes"),
    ("04_kip315.ipynb", 'higher.join("C", list(two))', 'higher.join("C", ["clicks"])', "group that changes"),
    ("04_kip315.ipynb", "grown = [higher.add_partitions(min(two))", "grown = [higher.add_partitions(max(two))",
     "order of the changes"),
    ("04_kip315.ipynb", 'two = {"clicks": 3, "impressions": 3}, {"clicks": 2, "impressions": 2}',
     'two = {"clicks": 4, "impressions": 3}, {"clicks": 2, "impressions": 1}', "group that changes"),
    ("01_kip54.ipynb", '.join("C2", both)\ntable', '.join("C2", ["t0"])\ntable', "joins in example 3"),
    ("01_kip54.ipynb", '"c3": (["t3", "t6"],', '"c3": (["t3"],', "group of KIP-341"),
    ("02_kip49.ipynb", '"C4": new})\nplot', '"C4": new}, owned={"C1": [("T1", 0)]})\nplot', "running example"),
    ("04_kip315.ipynb", '"C": ([0], 7)}, 10\nprevious', '"C": ([0], 7)}, 2\nprevious', "example of claims"),
    ("04_kip315.ipynb", '"B": ["impressions", "clicks"]}\ntried', '"B": [*trial]}\ntried', "example of topic X"),
    ("04_kip315.ipynb", 'crowd, joined = "ABCDE"', 'crowd, joined = "ABCD"', "puzzle"),
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
    ("04_kip315.ipynb", "### Step 4.3: steal a number", "### Stealing", "statement 315.12 needs a heading"),
    ("04_kip315.ipynb", "The next epoch is the maximum", "The next is the maximum", "must quote statement 315.14"),
    ("statements.toml", "test_many.py::test_", "test_many.py::test_gone_", "test of statement 49.4 does not exist")])
def test_a_statement_that_is_not_shown_is_noticed(file, pattern, text, problem, tmp_path):
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("reference", "__pycache__"))
    path = tmp_path / FOLDER / file
    whole = path.read_text(encoding="utf-8")
    assert pattern in whole
    path.write_text(whole.replace(pattern, text, 1), encoding="utf-8")
    assert any(problem in line for line in problems(tmp_path))
