"""What output of Kafka's tool costs in a fleet job, beside `read_groups` in one process.

Twice: 20,000 small files, of 3 rows and a group each, in the folders of 4 clusters; and one file of 3,000,000 rows
of 30,000 groups. Spark runs on this machine with two workers and compares one strategy. CPU seconds and the most
memory at once are those that the system counts, of the driver, of Java and of the workers; `read_groups` has no more
to do than to read.

    python benchmarks/text.py [files] [rows]
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from processes import watched
from record import record

STRATEGIES = ["range"]
CLUSTERS = 4
ROWS_OF_FILE, ROWS_OF_GROUP = 3, 100
MOST_OF_WORKER = 900           # MiB
HEADER = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
READ = """
import sys
from kafka_assign.snapshot import read_groups
print(read_groups(sys.argv[1]))
"""
COMPARE = """
import sys
from kafka_assign.fleet.job import compare_fleet
print(compare_fleet(sys.argv[1], sys.argv[2], strategies={}, master="local[2]"))
"""


def table(groups, rows):
    """What the tool prints about groups of so many rows, with one member for each two rows."""
    columns = [f"{name:<20}" for name in HEADER]
    yield "".join(columns) + "\n"
    for group in groups:
        for row in range(rows):
            member = f"c{row // 2}"
            cells = (f"group-{group}", "topic", row, row * 7, row * 9, row * 2, f"{member}-id", "/10.0.0.1", member)
            yield "".join(f"{cell!s:<20}" for cell in cells) + "\n"


def small_files(folder, files):
    """Small files in the folders of clusters."""
    for cluster in range(CLUSTERS):
        (folder / f"cluster-{cluster}").mkdir(parents=True)
    for number in range(files):
        path = folder / f"cluster-{number % CLUSTERS}" / f"{number}.txt"
        path.write_text("".join(table([number], ROWS_OF_FILE)))


def one_file(folder, rows):
    """One large file."""
    folder.mkdir()
    with (folder / "fleet.txt").open("w") as file:
        file.writelines(table(range(rows // ROWS_OF_GROUP), ROWS_OF_GROUP))


def report(what, source, out):
    """Print both ways, and return the figures of each process as rows."""
    print(what)
    alone, seconds = watched(READ, source)
    cpu, size = alone["driver"][:2]
    print(f"  read_groups    {seconds:5.0f} s, CPU {cpu:5.1f} s, {size:5.0f} MiB", flush=True)
    spark, seconds = watched(COMPARE.format(STRATEGIES), source, out)
    print(f"  compare_fleet  {seconds:5.0f} s, CPU {sum(cpu for cpu, _ in spark.values()):5.1f} s")
    for kind, (cpu, memory) in spark.items():
        print(f"    {kind:12}          CPU {cpu:5.1f} s, {memory:5.0f} MiB" + " at most in one" * (kind == "workers"))
    most = spark["workers"][1]
    met = "met" if most < MOST_OF_WORKER else "MISSED"
    print(f"  largest worker: {most:.0f} MiB (below {MOST_OF_WORKER}: {met})", flush=True)
    processes = {"read_groups": alone["driver"], **spark}
    return [{"input": what, "process": kind, "cpu": cpu, "MiB": size} for kind, (cpu, size) in processes.items()]


def main():
    """Both inputs."""
    files, rows = map(int, (sys.argv[1:] + ["20000", "3000000"][len(sys.argv) - 1:]))
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        small_files(work / "files", files)
        found = report(f"{files:,} files of {ROWS_OF_FILE} rows, {CLUSTERS} clusters", work / "files", work / "out")
        one_file(work / "file", rows)
        record("text", found + report(f"one file of {rows:,} rows", work / "file", work / "out"))


if __name__ == "__main__":
    main()
