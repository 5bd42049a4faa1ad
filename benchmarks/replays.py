"""What replaying histories costs on Spark: 10,000 groups and 200,000 rebalances in 30 days, as logs and as traces.

Logs are those of three brokers and of twelve applications. Spark runs on this machine with two workers and replays one
strategy. First a quarter of the groups, then all: the most memory of the driver and of a worker should not grow. CPU
seconds and memory are those that the system counts, of the driver, of Java and of the workers.

    python benchmarks/replays.py [groups] [rebalances]
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from histories import write_logs, write_traces
from processes import watched

STRATEGIES = ["sticky"]
GOALS = {"traces": 20_000, "logs": 5_000}           # rebalances per CPU second
REPLAY = """
import sys
from kafka_assign.fleet.histories import replay_fleet
run = replay_fleet(sys.argv[1], sys.argv[2], {}, master="local[2]")
assert run.tables["generations"]["rows"] == int(sys.argv[3]), run.counts
"""


def report(what, write, work, groups, rebalances):
    """Write the input, replay it, and print the figures of each process."""
    source = work / f"{what}-{groups}"
    lines = write(source, groups, rebalances)
    size = sum(path.stat().st_size for path in source.iterdir()) / 2**20
    found, seconds = watched(REPLAY.format(STRATEGIES), source, work / "runs", rebalances)
    cpu = sum(cpu for cpu, _ in found.values())
    print(f"{what}: {groups:,} groups, {rebalances:,} rebalances, {lines:,} lines, {size:,.0f} MiB")
    print(f"  {seconds:5.0f} s, CPU {cpu:5.1f} s, {rebalances / cpu:,.0f} rebalances and {lines / cpu:,.0f} lines per "
          f"CPU second (at least {GOALS[what]:,} rebalances: {'met' if rebalances / cpu >= GOALS[what] else 'MISSED'})")
    for kind, (cpu, memory) in found.items():
        print(f"    {kind:8} CPU {cpu:6.1f} s, {memory:5.0f} MiB" + " at most in one" * (kind == "workers"), flush=True)


def main():
    """Traces and logs, of a quarter of the groups and of all."""
    groups, rebalances = map(int, (sys.argv[1:] + ["10000", "200000"][len(sys.argv) - 1:]))
    with tempfile.TemporaryDirectory() as folder:
        for what, write in (("traces", write_traces), ("logs", write_logs)):
            for part in (4, 1):
                report(what, write, Path(folder), groups // part, rebalances // part)


if __name__ == "__main__":
    main()
