"""What deciding costs, for a fleet of 20,000 groups with 50 partitions each on average, four strategies.

First a plain process: CPU of decoding, assigning, measuring and encoding, beside the CPU that pyarrow needs to read
the same groups from Parquet. Then the Spark job in a warm session, beside the same job with a kernel that decides
nothing: it hands out the true results of an earlier run. Every figure is the median of three.

    python benchmarks/fleet.py [groups]
"""
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fleets import fleet
from processes import cpu_of_all
from record import record

from kafka_assign.assignors.registry import resolve
from kafka_assign.ranking.outcomes import outcome
from kafka_assign import rank
from kafka_assign.ranking.rules import needs
from kafka_assign.fleet.codec import (
    decode_rows, group_from_row, member_lists, output_rows, result_lists)
from kafka_assign.fleet.job import compare_fleet
from kafka_assign.fleet.kernel import compare_batches, need_lists
from kafka_assign.fleet.schemas import GROUP_SCHEMA
from kafka_assign.fleet.session import settings_in_force, spark_session
from kafka_assign.groups.assignment import CURRENT
from kafka_assign.assignors.batch import answer

STRATEGIES = ["range", "roundrobin", "fair", "lag"]
TIMES = 3
MOST_OF_READING, MOST_OF_IDLE = 15, 1.5


# --- a plain process -----------------------------------------------------------------------------------------------

def leaves(columns, above=""):
    """The columns of a Parquet file that hold these fields, as pyarrow names them."""
    for column in columns:
        kind, path = column.type, above + column.name
        while pa.types.is_list(kind):
            kind, path = kind.value_type, f"{path}.list.element"
        if pa.types.is_struct(kind):
            yield from leaves([kind.field(i) for i in range(kind.num_fields)], f"{path}.")
        else:
            yield path


def read(path):
    """All groups, only the fields used, with one thread."""
    return pq.ParquetFile(path).read(columns=list(leaves(GROUP_SCHEMA)), use_threads=False)


class Clock:
    """CPU seconds of this process, by step."""

    def __init__(self):
        self.steps, self.at = {}, time.process_time()

    def step(self, name):
        now = time.process_time()
        self.steps[name] = self.steps.get(name, 0) + now - self.at
        self.at = now


def decide(batches, strategies):
    """What the kernel does with each batch, step by step."""
    clock = Clock()
    for rows in batches:
        batch, _ = decode_rows(rows)
        clock.step("decode")
        answers = {CURRENT: batch.columns.previous}
        for strategy in strategies:
            answers[strategy.label] = answer(batch, strategy, batch.read(strategy.claims)).owner
            clock.step(strategy.label)
        outcomes = {name: outcome(batch.columns, owner) for name, owner in answers.items()}
        clock.step("measure")
        table = result_lists(batch, outcomes, [None] * batch.columns.groups)
        done = output_rows(batch.rows, member_ids=member_lists(batch), results=table)
        clock.step("encode")
        current = outcomes.pop(CURRENT)
        found = needs(batch, current, outcomes, {one.label: one for one in strategies})
        need_lists(found, done.num_rows)
        clock.step("attention")
    return clock.steps


def cpu(function, *arguments):
    """CPU seconds of a call, and what it returns."""
    begun = time.process_time()
    answer = function(*arguments)
    return time.process_time() - begun, answer


def in_a_plain_process(path, groups):
    """Print the CPU of reading and of deciding."""
    reading = median(cpu(read, path)[0] for _ in range(TIMES))
    batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in read(path).to_struct_array().chunks]
    batches = pa.Table.from_batches(batches).combine_chunks().to_batches(max_chunksize=1_000)
    runs = [decide(batches, [resolve(name) for name in STRATEGIES]) for _ in range(TIMES)]
    steps = {name: median(run[name] for run in runs) for name in runs[0]}
    print(f"\nplain process, CPU ms per 1,000 groups (of {groups:,})")
    rows = {"read Parquet": reading, **steps}
    for name, seconds in rows.items():
        print(f"  {name:14}{seconds / groups * 1e6:8.2f}")
    record("fleet, plain process", [{"step": name, "cpu": seconds, "groups": groups} for name, seconds in rows.items()])
    deciding = sum(seconds for name, seconds in steps.items() if name != "attention")
    line(f"all but attention: {deciding / groups * 1e6:.1f} ms", deciding / reading, "x reading", MOST_OF_READING)


# --- Spark ---------------------------------------------------------------------------------------------------------

def kept(batches, folder, **arguments):
    """The kernel, keeping what it answers."""
    for rows in batches:
        done = list(compare_batches([rows], **arguments))
        with pa.ipc.new_file(f"{folder}/{rows['position'][0]}.kept", done[0].schema) as writer:
            for batch in done:
                writer.write(batch)
        yield from done


def all_kept(folder):
    """What was kept, as a table in memory-mapped files, and the place of each row by its position."""
    files = [pa.ipc.open_file(pa.memory_map(str(path))) for path in sorted(Path(folder).glob("*.kept"))]
    table = pa.concat_tables([file.read_all() for file in files])
    return table, np.argsort(table["position"].to_numpy())


def idle(batches, folder, **arguments):
    """The kernel that decides nothing: it hands out what was kept, whatever batches it is given."""
    table, place = all_kept(folder)
    for rows in batches:
        found = table.take(place[rows["position"].to_numpy() - 1]).combine_chunks()
        yield from found.to_batches()


def job(path, out, spark, kernel):
    """CPU and wall seconds of the job with this kernel, and the content it wrote."""
    with patch("kafka_assign.fleet.job.compare_batches", kernel):
        before, begun = cpu_of_all(), time.perf_counter()
        run = compare_fleet(path, out, STRATEGIES, spark=spark)
        content = {name: table for name, table in run.tables.items() if name != "changes"}    # since the last run
        return cpu_of_all() - before, time.perf_counter() - begun, content


def rank_alone(path):
    """Print the CPU of `rank` in this process, from Parquet to the ranking; the JVM's part of the job is none here."""
    read_cpu, groups = cpu(lambda: [group_from_row(row) for row in read(path).to_pylist()])
    seconds = median(cpu(rank, groups, STRATEGIES)[0] for _ in range(TIMES))
    print(f"  {'rank':14}{read_cpu + seconds:8.2f} s CPU (of which {read_cpu:.2f} make Python groups of rows)")


def in_spark(path, folder):
    """Print the CPU of the job and of the same job with an idle kernel, alternating."""
    kernels = {"job": compare_batches, "idle kernel": partial(idle, folder=folder)}
    seconds = {name: [] for name in kernels}
    with spark_session() as spark:
        print("\nSpark:", ", ".join(f"{words} {value}" for words, value in settings_in_force(spark).items()))
        _, _, content = job(path, f"{folder}/runs", spark, partial(kept, folder=folder))
        for round_ in range(TIMES + 1):                      # the first round only warms up
            for name, kernel in kernels.items():
                *taken, tables = job(path, f"{folder}/runs", spark, kernel)
                assert tables == content, f"{name} must write the same content"
                if round_:
                    seconds[name].append(taken)
    costs = {name: median(cpu for cpu, _ in taken) for name, taken in seconds.items()}
    for name, taken in seconds.items():
        wall = median(wall for _, wall in taken)
        print(f"  {name:14}{costs[name]:8.2f} s CPU (JVM, workers and driver) {wall:8.2f} s wall")
    rank_alone(path)
    record("fleet, Spark", [{"kernel": name, "cpu": seconds} for name, seconds in costs.items()])
    line("the job", costs["job"] / costs["idle kernel"], "x the idle one", MOST_OF_IDLE)


def line(what, ratio, unit, most):
    """One result against its target."""
    print(f"  {what} = {ratio:.2f} {unit} (at most {most}: {'met' if ratio <= most else 'MISSED'})")


def main(groups=20_000):
    """Generate the fleet, then measure."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/groups.parquet"
        table = fleet(groups)
        pq.write_table(table, path, compression="zstd", row_group_size=10_000)
        counts = pc.sum(pc.list_flatten(table["topics"]).combine_chunks().field("partitions"))
        print(f"{groups:,} groups, {counts.as_py():,} partitions, {os.path.getsize(path) / 2**20:.1f} MiB of Parquet")
        in_a_plain_process(path, groups)
        in_spark(path, folder)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
