"""Reading a large output of `--describe --all-groups`: rows per CPU second beside `csv.reader`, and peak memory.

Two files of 2,000,000 rows, as the tool prints them (a header per group, columns as wide as the group needs, rows
shuffled): 200 large groups, and 40,000 small ones. Each reader runs in a process of its own. Argument: another
number of rows.
"""
import csv
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from record import record

from kafka_assign.snapshot import Groups, read_groups

COLUMNS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
LEAST = [0, 0, 10, 15, 15, 15, 0, 0, 0]               # the tool pads numbers to these widths, names to the longest


def table(random: np.random.Generator, number: int, topics: int, partitions: int, members: int) -> str:
    "One group as the tool prints it."
    group = f"billing-{number}"
    ids = [(f"web-{m}-{random.bytes(8).hex()}", f"/10.0.{m // 250}.{m % 250}", f"web-{m}") for m in range(members)]
    owner, rows = np.sort(random.integers(0, members, partitions)), []
    for topic in range(topics):
        end = random.integers(0, 10**8, partitions)
        committed = np.maximum(end - random.integers(0, 10**4, partitions), 0)
        for p, (e, c) in enumerate(zip(end.tolist(), committed.tolist())):
            mark, lag = (("-", "-") if e % 50 == 0 else (str(c), str(e - c)))
            rows.append((group, f"orders.{topic}", str(p), mark, str(e), lag, *ids[owner[p]]))
    random.shuffle(rows)
    widths = [max(map(len, column), default=0) for column in zip(COLUMNS, *rows)]
    line = " ".join(f"%-{max(pair)}s" for pair in zip(widths[:-1], LEAST)) + " %s"
    return "\n" + "".join(line % row + "\n" for row in [tuple(COLUMNS), *rows])


def write(path: Path, groups: int, topics: int, partitions: int, members: int) -> None:
    "A file of `groups` groups, each with `topics` topics of `partitions` partitions."
    random = np.random.default_rng(7)
    with path.open("w", encoding="utf-8") as file:
        for number in range(groups):
            file.write(table(random, number, topics, partitions, members))


def with_csv(path: Path) -> int:
    "Read every row with the fastest parser that Python has, and keep nothing."
    with path.open(encoding="utf-8", newline="") as file:
        return sum(1 for row in csv.reader(file, delimiter=" ", skipinitialspace=True) if len(row) == 9)


def held(groups: Groups) -> int:
    "Bytes of the arrays that stay: columns and offsets of each group."
    arrays = (array for group in groups.values() for array in [*vars(group.columns).values(), *group.offsets])
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def measured(read, path: Path, answers) -> None:
    "CPU seconds of one reader, and its peak of memory beyond what it holds at the end and before the start, in MB."
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.process_time()
    result = read(path)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    kept = held(result) if hasattr(result, "rejects") else 0
    answers.put((seconds, (peak - kept) / 1e6, kept / 1e6))


def alone(read, path: Path) -> tuple[float, float, float]:
    "`measured` in a process of its own."
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=measured, args=(read, path, answers))
    process.start()
    found = answers.get()
    process.join()
    return found


def main(rows: int = 2_000_000) -> None:
    "Write the files, read them, print a line for each reader."
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for groups, shape in (rows // 10_000, (20, 500, 50)), (rows // 50, (5, 10, 4)):
            path = Path(folder) / f"{groups}.txt"
            write(path, groups, *shape)
            print(f"{groups:,} groups x {shape[0] * shape[1]:,} rows, {path.stat().st_size / 1e6:,.0f} MB")
            seconds, columns = {}, ("groups", "reader", "rows", "cpu", "peak MB", "result MB")
            for name, read in ("csv.reader", with_csv), ("read_groups", read_groups):
                seconds[name], beyond, kept = alone(read, path)
                print(f"  {name:12} {seconds[name]:6.2f} CPU s  {rows / seconds[name] / 1e6:5.2f} M rows per CPU s  "
                      f"{beyond:6.0f} MB at the peak beyond the {kept:.0f} MB of the result")
                found.append(dict(zip(columns, (groups, name, rows, seconds[name], beyond, kept))))
            print(f"  speed of read_groups: {seconds['csv.reader'] / seconds['read_groups']:.2f} x csv.reader")
    record("reading", found)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
