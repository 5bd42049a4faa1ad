"""How long `import kafka_assign` takes beyond NumPy, and with every public name in use.

Each figure is a fresh process; a plain one and one with the import take turns, so that both see the same machine.
"""
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parent))

from record import record

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 15
LIMIT = 0.2  # seconds

BEFORE = "import numpy"
AFTER = {
    "import kafka_assign": "import numpy, kafka_assign",
    "every public name": "import numpy, kafka_assign; [getattr(kafka_assign, name) for name in kafka_assign.__all__]",
}


def seconds(code):
    """Wall time of a process that runs `code`."""
    begin = perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    return perf_counter() - begin


def beyond_numpy(code):
    """Median over rounds of how much longer `code` takes than NumPy alone."""
    seconds(code)  # compiled files and disk caches
    return median(seconds(code) - seconds(BEFORE) for _ in range(ROUNDS))


def main():
    """Print both figures; exit code 1 if the import alone is over the limit."""
    figures = {what: beyond_numpy(code) for what, code in AFTER.items()}
    print(f"NumPy alone: {median(seconds(BEFORE) for _ in range(ROUNDS)):.3f} s a process (median of {ROUNDS})")
    for what, took in figures.items():
        print(f"{what}: {took:+.3f} s beyond it")
    record("import", [{"what": what, "wall": took} for what, took in figures.items()])
    within = figures["import kafka_assign"] < LIMIT
    print(f"limit for the import: {LIMIT} s: {'kept' if within else 'exceeded'}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
