"""The table of planted faults: each can be planted, and one that no test notices is reported."""
import mutants
from mutants import Fault, faults, misplaced, plant_all
from notebooks import ROOT


def test_every_fault_can_be_planted():
    assert not misplaced(faults(), ROOT)
    assert len(faults()) >= 40 and len({fault.name for fault in faults()}) == len(faults())


def test_a_fault_that_cannot_be_planted_is_named():
    fault = Fault("a fault", "ragged.py", "no such text", "", ["tests/test_nothing.py"])
    [words] = misplaced([fault], ROOT)
    assert words.startswith("a fault: ") and "(got 0 times)" in words and "there is no tests/test_nothing.py" in words


PROJECT = {
    "kafka_assign/__init__.py": "",
    "tests/conftest.py": (ROOT / "tests/conftest.py").read_text(encoding="utf-8"),
    "kafka_assign/one.py": "def add(a, b):\n    return a + b  # sum\n",
    "tests/test_one.py": "from kafka_assign.one import add\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}


def test_a_survivor_is_told_from_what_is_noticed(tmp_path, monkeypatch):
    """In a project of one module and one test: a fault in what the test runs, and one in a comment."""
    for name, text in PROJECT.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text)
    monkeypatch.setattr(mutants, "processors", lambda: 1)
    chosen = [Fault("wrong", "one.py", "a + b", "a - b", ["tests/test_one.py"]),
              Fault("harmless", "one.py", "# sum", "# total", ["tests/test_one.py"])]
    assert [found for _, found in plant_all(chosen, tmp_path / "project", tmp_path)] == [True, False]
