"""The most memory that a process needs to assign a large group that comes as arrays, and to prove the answer.

Each case runs in a process of its own, which reads the arrays, assigns, and says what the system counted as its peak:
the interpreter, NumPy and the arrays are in it. A million partitions, 2,000 members; the last case has 10,000 topics of
which no two have the same subscribers.

    python benchmarks/peak.py
"""
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from clock import verdict
from families import SHAPES, Arrays, any_owner, arrays
from record import record

from kafka_assign import assign

MOST = 256
MOST_WITH_MANY_CLASSES = 512


def peak() -> float:
    "Most memory that this process had so far, in MB (10**6 bytes)."
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError("/proc/self/status must have a line VmHWM (got none)")


def alone(of: Arrays) -> list[float]:
    "Peaks of a process that reads the arrays, then assigns, then proves."
    with tempfile.NamedTemporaryFile() as file:
        pickle.dump(of, file)
        file.flush()
        done = subprocess.run([sys.executable, __file__, file.name], capture_output=True, text=True, check=True)
    return [float(figure) for figure in done.stdout.split()]


def child(path: str) -> None:
    "What the process of a case does."
    with open(path, "rb") as file:
        of = pickle.load(file)
    before = peak()
    answer = assign(of.group(), "sticky")
    assigned = peak()
    _ = answer.certificate
    print(before, assigned, peak())


def cases(topics: int, shapes: list[str], topologies: tuple[str, ...]) -> Iterator[tuple[str, Arrays]]:
    "Groups of a million partitions and 2,000 members, fresh and with random owners."
    for topology in topologies:
        for shape in shapes:
            full = arrays(shape, 1_000_000, 2_000, topics, topology == "SKEWED")._replace(lag=None)
            yield f"{topology} {shape} FULL", full
            yield f"{topology} {shape} RANDOM_OWNERS", full._replace(previous=any_owner(full))


def report(named: Iterator[tuple[str, Arrays]], most: int, topics: int) -> list[dict]:
    "Print a line for each case, and whether all stay below; return them as rows."
    worst, rows = 0.0, []
    for name, of in named:
        before, assigned, proved = alone(of)
        worst = max(worst, assigned)
        figures = f"{before:4.0f} MB with the arrays, {assigned:4.0f} assigned, {proved:4.0f} proved"
        print(f"  {name:34} {figures}", flush=True)
        rows.append({"case": name, "topics": topics, "arrays MB": before, "assigned MB": assigned, "proved MB": proved})
    print(f"  most: {worst:.0f} MB (below {most}: {verdict(worst < most)})")
    return rows


def main() -> None:
    "Both sizes."
    print("1,000,000 partitions, 2,000 members, 500 topics")
    rows = report(cases(500, SHAPES, ("EQUAL", "SKEWED")), MOST, 500)
    print("1,000,000 partitions, 2,000 members, 10,000 topics")
    rows += report(cases(10_000, ["RANDOM50"], ("EQUAL",)), MOST_WITH_MANY_CLASSES, 10_000)
    record("peak", rows)


if __name__ == "__main__":
    child(sys.argv[1]) if len(sys.argv) > 1 else main()
