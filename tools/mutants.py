"""Plant the faults of tests/mutants.toml, one at a time, and report which ones the tests notice.

    python tools/mutants.py [--tree PATH] [WORD...]    only faults with one of these words in name or file
    python tools/mutants.py --check                    only see that each text is still found exactly once

Each fault is planted in a scratch copy of the project (`--tree`: of another checkout), where its tests run: noticed if
one fails. First the tests run without a fault and must pass. Exits with 1 if a fault survives.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from notebooks import PACKAGE, ROOT, copy_project, processors

TABLE = ROOT / "tests/mutants.toml"
LONGEST = 300           # seconds: a fault that makes a test run on and on is noticed, too


class Fault(NamedTuple):
    """A text of the package and the wrong one that takes its place."""
    name: str
    file: str           # below the package
    old: str
    new: str
    tests: list[str]    # files or tests that should notice

    def misplaced(self, root):
        """What is wrong with the place of this fault, or nothing."""
        path = root / PACKAGE / self.file
        times = path.read_text(encoding="utf-8").count(self.old) if path.exists() else 0
        missing = [test for test in self.tests if not (root / test.partition("::")[0]).exists()]
        words = [f"its text must occur once in {self.file} (got {times} times)"] if times != 1 else []
        words += [f"there is no {test}" for test in missing] + ["it changes nothing"] * (self.old == self.new)
        return f"{self.name}: {'; '.join(words)}" if words else ""


def faults():
    """All faults of the table."""
    return [Fault(**row) for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["fault"]]


def misplaced(chosen, root):
    """A line for each fault that cannot be planted."""
    return [words for fault in chosen if (words := fault.misplaced(root))]


def run_tests(folder, tests, *options, longest=None):
    """Pytest's exit code for these tests in a copy, and what it printed. A skip for lack of Spark is a failure."""
    # without bytecode: that of a file of the same size and second would count for a planted fault
    env = {**os.environ, "PYTHONPATH": str(folder), "LONG": "", "REQUIRE": "spark,java", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly",
               "--hypothesis-profile=unshrunk", *options]      # a smaller example is of no use here
    try:
        done = subprocess.run([*command, *tests], cwd=folder, env=env, timeout=longest, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return 1, "no end in sight"
    return done.returncode, done.stdout


def noticed(fault, folder):
    """Whether the tests of a fault fail once it is planted in a copy of the project."""
    path = folder / PACKAGE / fault.file
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace(fault.old, fault.new), encoding="utf-8")
    try:
        code, output = run_tests(folder, fault.tests, longest=LONGEST)
    finally:
        path.write_text(before, encoding="utf-8")
    if code not in (0, 1, 2):           # 2: a module or a test file could not even be loaded
        sys.exit(f"{output}\n{fault.name}: pytest ended with exit code {code}")
    return code != 0


def plant_all(chosen, root, scratch):
    """Each fault with whether it was noticed, as they are done; as many copies as there are processors."""
    copies = SimpleQueue()
    for number in range(processors()):
        copy = copy_project(root, scratch / f"copy{number}")
        (copy / ".cache").symlink_to(root / ".cache")       # Kafka's jars
        copies.put(copy)

    def plant(fault):
        folder = copies.get()
        try:
            return fault, noticed(fault, folder)
        finally:
            copies.put(folder)
    code, output = run_tests(scratch / "copy0", sorted({test for fault in chosen for test in fault.tests}),
                             "-n", str(processors()), "--dist", "loadfile")
    if code:
        sys.exit(f"{output}\nwithout a fault all tests must pass")
    with ThreadPoolExecutor(processors()) as pool:
        yield from pool.map(plant, chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("word", nargs="*")
    given = parser.parse_args()
    chosen = [fault for fault in faults()
              if not given.word or any(word in fault.name or word in fault.file for word in given.word)]
    if wrong := misplaced(chosen, given.tree):
        sys.exit("\n".join(wrong))
    if given.check:
        return
    survivors = 0
    with tempfile.TemporaryDirectory() as scratch:
        for fault, found in plant_all(chosen, given.tree.resolve(), Path(scratch)):
            print(f"{'noticed ' if found else 'SURVIVED'}  {fault.file}: {fault.name}", flush=True)
            survivors += not found
    print(f"{len(chosen) - survivors} of {len(chosen)} planted faults were noticed")
    sys.exit(survivors > 0)


if __name__ == "__main__":
    main()
