"""Type checkers see the types of this package: they are shipped, and programs that use the public names pass."""
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import kafka_assign

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = f'''
import numpy as np
from kafka_assign import {", ".join(kafka_assign.__all__)}


@strategy("typed", kafka="TypedAssignor")
def typed(group: Group) -> list[int]:
    return [0] * group.columns.size


def owned(group: Group) -> list[TopicPartition]:
    assignment: Assignment = assign(group, "sticky", verbose=True)
    comparison: Comparison = compare(group, ["range", typed])
    words: str = describe(assignment) + repr(comparison) + explain(assignment)[0].reason + proof_of(assignment)
    picture = plot(assignment, comparison)
    picture.save(f"{{words}}.svg")
    assert check_strategy(typed).broken == [] and "sticky" in strategies()
    by_number = Assignment(group, np.zeros(10, int)), Assignment(group, [0, 1]), Assignment(group, {{"a": [("t", 0)]}})
    counts: list[int] = [int(one.moved.sum() + one.kept.sum() + one.owner.size) for one in by_number]
    lag = 0 if group.lag is None else group.lag.sum()
    print(counts, lag, group.previous.tolist(), group.partitions.max(), group.listed[0], assignment.to_frame())
    return assignment[group.dropped[0].claim.member]


def members(source: str) -> list[Member]:
    try:
        by_name: dict[str, Assignment] = assign_many(read_groups(source), "range")
        listed: list[Assignment] = assign_many(list(read_groups(source).values()), "range")
    except (GroupError, AssignmentError, StrategyError) as error:
        raise SystemExit(str(error))
    print(by_name, listed)
    return [member for group in read_groups(source).values() for member in group.details]
'''
MISTAKES = '''
from kafka_assign import Group, assign, compare, explain, plot, strategy
group = Group({"t": "1"}, {"a": ["t"]})
assign("range", group)
compare("range", group)
explain(group)
plot(group)
strategy(len)
group.dropped[0].claim.owner
group.subscribers("t").nonsense
assign(group, "range").owner.nonsense
assign(group, "range").moved.nonsense
assign(group, "range").loads.nonsense
'''
README = "\n".join(re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.S | re.M))


def checked(path, text):
    """What a strict type checker says of a program that imports the package."""
    (path / "program.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-color-output",
               f"--cache-dir={path.parent / 'cache'}", "program.py"]
    done = subprocess.run(command, cwd=path, env={"MYPYPATH": str(ROOT)}, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.needs("mypy")
@pytest.mark.parametrize("text", [README, PROGRAM], ids=["README", "every public name"])
def test_programs_pass(tmp_path, text):
    assert "kafka_assign import" in text
    assert checked(tmp_path, text) == "Success: no issues found in 1 source file\n"


@pytest.mark.needs("mypy")
def test_mistakes_are_seen(tmp_path):
    lines = [int(line) for line in re.findall(r"^program\.py:(\d+): error", checked(tmp_path, MISTAKES), re.M)]
    assert sorted(set(lines)) == list(range(3, 3 + MISTAKES.count("\n") - 2))


def test_types_are_shipped(tmp_path):
    """In the wheel, and in the source distribution."""
    for name in ("setup.py", "settings.ini", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md",
                 "CONTRIBUTING.md", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "kafka_assign", tmp_path / "kafka_assign", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run([sys.executable, "setup.py", "-q", "sdist", "-d", "out", "bdist_wheel", "-d", "out"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [sdist], [wheel] = (tmp_path / "out").glob("*.tar.gz"), (tmp_path / "out").glob("*.whl")
    with tarfile.open(sdist) as source, zipfile.ZipFile(wheel) as built:
        for names in (source.getnames(), built.namelist()):
            assert [name for name in names if name.endswith("kafka_assign/py.typed")], names
