"""What a fleet job costs as the fleet grows, and whether its memory stays what it is.

Fleets of 10,000, 100,000 and 1,000,001 groups, with 64 partitions each on average. Then 8,000 groups of 5,000
partitions, and one group of a million. Each job is a process of its own, on this machine with two workers and the
default heap. What a job of ten groups costs, the start of Spark for the most part, is subtracted.

    python benchmarks/scale.py [groups ...]
"""
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fleets import fleet
from processes import watched
from record import record

PARTITIONS = 64
AT_ONCE = 20_000                                    # groups that are generated; further clusters have the same
LARGEST, WIDE, WIDE_PARTITIONS = 1_000_001, 8_000, 5_000
MOST_OF_WORKER, MOST_OF_JAVA = 450, 1_740           # MiB
FLAT = 1.15
JOB = """
import sys
from kafka_assign.fleet.job import compare_fleet
compare_fleet(sys.argv[1], sys.argv[2], strategies=["range", "roundrobin", "sticky"], master="local[2]")
"""


def write(folder, table, groups, rows=10_000):
    """Files of `groups` groups: those of the table, under the name of one cluster after the other."""
    folder.mkdir()
    for number, begin in enumerate(range(0, groups, len(table))):
        part = table.slice(0, groups - begin)
        part = part.set_column(part.schema.get_field_index("cluster"), "cluster", pa.array([f"c{number}"] * len(part)))
        pq.write_table(part, folder / f"{number}.parquet", compression="zstd", row_group_size=rows)


def job(folder, out):
    """CPU seconds of all processes, MiB of the largest worker and of Java, wall seconds."""
    figures, seconds = watched(JOB, folder, out)
    return sum(cpu for cpu, _ in figures.values()), figures["workers"][1], figures["java"][1], seconds


def line(partitions, groups, cpu, worker, java, seconds):
    """Print one job, and return it as a row."""
    print(f"  {groups:>9,} groups: {cpu / groups * 1e3:6.2f} s CPU per 1,000; {seconds:5.0f} s; "
          f"largest worker {worker:4.0f} MiB, Java {java:5.0f} MiB", flush=True)
    return {"groups": groups, "partitions of a group": partitions, "cpu": cpu, "wall": seconds,
            "worker MiB": worker, "java MiB": java}


def verdict(what, value, most):
    """Print a result against its target."""
    print(f"  {what}: {value:.2f} (at most {most}: {'met' if value <= most else 'MISSED'})", flush=True)


def growing(work, base, sizes, start):
    """Fleets that grow, as rows; each is deleted after its job."""
    rows = []
    for groups in sizes:
        folder = work / str(groups)
        write(folder, base, groups)
        cpu, *rest = job(folder, work / str(-groups))
        rows.append(line(PARTITIONS, groups, cpu - start, *rest))
        shutil.rmtree(folder)
        shutil.rmtree(work / str(-groups))
    return rows


def verdicts(rows):
    """Print the largest fleet against its targets."""
    last = rows[-1]
    verdict("largest worker, MiB", last["worker MiB"], MOST_OF_WORKER)
    verdict("Java, MiB", last["java MiB"], MOST_OF_JAVA)
    each = [row["cpu"] / row["groups"] for row in rows]
    verdict("a group, beside one of the fleet before", each[-1] / each[-2:][0], FLAT)


def main(sizes):
    """All fleets."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        base = fleet(AT_ONCE, PARTITIONS)
        write(work / "ten", base, 10)
        start = job(work / "ten", work / "out")[0]
        print(f"a job of ten groups: {start:.1f} s CPU\nthe CPU beyond that", flush=True)
        rows = growing(work, base, sizes, start)
        verdicts(rows)
        print("large groups")
        for partitions, groups, table in ((WIDE_PARTITIONS, WIDE, fleet(WIDE // 8, WIDE_PARTITIONS)),
                                          (1_000_000, 1, fleet(1, giants=1).slice(1))):
            write(folder := work / f"{partitions}", table, groups, rows=1_000)
            cpu, *rest = job(folder, work / "out")
            rows.append(line(partitions, groups, cpu - start, *rest))
        record("scale", rows)


if __name__ == "__main__":
    main(list(map(int, sys.argv[1:])) or [10_000, 100_000, LARGEST])
