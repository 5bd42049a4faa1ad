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

PROGRAMS = {
    "an own strategy": '''
from kafka_assign import (
    Assignment, Comparison, Group, assign, check_strategy, compare, strategies, strategy)


@strategy("typed", kafka="TypedAssignor")
def typed(group: Group, most: int = 0) -> list[int]:
    return [most] * group.columns.size


def same(group: Group) -> bool:
    numbers: list[int] = typed(group, most=1)
    chosen: Assignment = assign(group, typed, most=2)
    comparison: Comparison = compare(group, ["range", typed])
    broken: list[str] = check_strategy(typed).broken
    return comparison["range"] == chosen and not broken and "typed" in strategies() and numbers == [1]
''',
    "figures and moves": '''
import numpy as np
from kafka_assign import Assignment, AssignmentError, Group, TopicPartition, assign, compare
from kafka_assign import describe, explain, proof_of


def figures(group: Group) -> tuple[str, int | None, bool | None]:
    row = compare(group, ["range", "sticky"]).rows[0]
    return row["strategy"], row["balance_score"], row["balanced"]


def owned(group: Group) -> list[TopicPartition]:
    assignment = assign(group, "sticky")
    by_member: dict[str, list[TopicPartition]] = dict(assignment)
    words: str = describe(assignment) + str(proof_of(assignment)) + explain(assignment)[0].reason
    try:
        by_name = Assignment(group, {"a": [("t", 0)]})
        by_number = by_name, Assignment(group, np.zeros(10, int)), Assignment(group, [0, 1])
    except AssignmentError as error:
        raise SystemExit(str(error) + words)
    counts: list[int] = [int(one.moved.sum() + one.kept.sum() + one.owner.size) for one in by_number]
    lag = 0 if group.lag is None else group.lag.sum()
    print(counts, lag, group.previous.tolist(), group.partitions.max(), group.listed[0])
    return by_member[group.dropped[0].claim.member] + assignment["a"]
''',
    "histories": '''
from kafka_assign import read_history, replay


def cost(logs: str) -> dict[str, float | None]:
    history = read_history(logs, session_timeout=45)
    for one in history["g"].generations:
        print([cause.why for cause in one.causes], one.assignment, one.pauses[0].seconds)
        print(one.group.members if one.group is not None else one.missing)
    return {row.strategy: row.paused for row in replay(history, ["sticky"], static=45).rows}
''',
    "groups of files": '''
from kafka_assign import Assignment, Group, GroupError, Member, StrategyError
from kafka_assign import Migration, assign_many, co_partitioned, diff, migration, rank, read_groups, show


def members(source: str) -> list[Member]:
    try:
        by_name: dict[str, Assignment] = assign_many(read_groups(source), "range")
        listed: list[Assignment] = assign_many(list(read_groups(source).values()), "range")
    except (GroupError, StrategyError) as error:
        raise SystemExit(str(error))
    print(by_name, listed, [co_partitioned(one, ["a+b"]) for one in listed])
    return [member for group in read_groups(source).values() for member in group.details]


def urgent(source: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rank(read_groups(source), joins="clicks+views"):
        if row["kind"] < 3:
            found.setdefault(row["group_id"], []).append(row["reason"] + (row["strategy"] or ""))
    return found


def lately(source: str) -> list[str | None]:
    groups = read_groups(source)
    lag: list[int | None] = [row["lag"] for group in groups.values() for row in show(group).rows]
    return [row["words"] for row in diff(groups.before, groups).rows if row["new"] in lag] + show(groups["g"]).odd


def moves(group: Group) -> list[str]:
    found: Migration = migration(group)
    return [found.possible, found.verdict, *found.reasons, str(found.restarts and found.restarts.moved)]


def again(group: Group) -> Group:
    return Group.from_json(group.to_json()).replace(name="again").leave("a").join("b", ["t"]).subscribe("b", ["u"])
''',
    "a life": '''
from kafka_assign import Event, LiveGroup, Member, Rebalance, lead, step

live = LiveGroup("cooperative-sticky", {"t": 4}, {"a": ["t"], "b": ["t"]}, keep=10)
joined: Rebalance = live.join([Member("c", ["t"], owned=[("t", 0)], generation=1)])
state, left = step(live.state, Event("leave", ("a",)))
stopped: int = live.leave("c").stopped + len(left.moved) + state.generation
answers: dict[str, bytes] = lead("sticky", {"a": (None, b"")}, {"t": 4}, lag={("t", 0): 5})
print(joined.rounds, [rebalance.event for rebalance in live.history], live["a"][0].topic, stopped, answers["a"].hex())
''',
    "pictures and tables": '''
from kafka_assign import Group, assign, compare, plot


def save(group: Group, path: str) -> None:
    comparison = compare(group)
    plot(comparison).savefig(path)
    plot({"before": assign(group, "range"), "after": assign(group, "sticky")}).savefig(path)
    print(comparison, comparison.table(wide=True).text(), comparison.notes, comparison.running)
''',
}
MISTAKES = '''
from kafka_assign import Group, assign, compare, explain, plot, rank, strategy
group = Group({"t": "1"}, {"a": ["t"]})
assign("range", group)
compare("range", group)
explain(group)
plot(group)
strategy(len)
strategy("typed")(len)(5, 6)
group.dropped[0].claim.owner
group.subscribers("t").nonsense
assign(group, "range").owner.nonsense
assign(group, "range").moved.nonsense
assign(group, "range").loads.nonsense
assign(group, "range")["a"][0].nonsense
assign(group, "range").summary()["load"]
compare(group).rows[0]["balance"]
rank([group])[0]["reasn"]
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
@pytest.mark.parametrize("name", ["README", *PROGRAMS])
def test_programs_pass(tmp_path, name):
    text = README if name == "README" else PROGRAMS[name]
    assert "kafka_assign import" in text
    assert checked(tmp_path, text) == "Success: no issues found in 1 source file\n"


def test_the_programs_use_every_public_name():
    used = set(re.findall(r"\w+", " ".join(PROGRAMS.values())))
    assert set(kafka_assign.__all__) <= used


@pytest.mark.needs("mypy")
def test_mistakes_are_seen(tmp_path):
    lines = [int(line) for line in re.findall(r"^program\.py:(\d+): error", checked(tmp_path, MISTAKES), re.M)]
    assert sorted(set(lines)) == list(range(3, 3 + MISTAKES.count("\n") - 2))


def test_types_and_samples_are_shipped(tmp_path):
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
            for data in ("py.typed", "samples/fleet.jsonl", "samples/orders-billing.txt",
                         "samples/broker-log.txt", "samples/consumer-logs.txt"):
                assert [name for name in names if name.endswith(f"kafka_assign/{data}")], names
