"""What one group costs, by its size: `sticky` and `compare`, from names to names, beside Java's sticky assignor.

Equal subscriptions, and a member has just left. A process for each figure, warm as Java is, and no garbage collector;
CPU, medians. Java begins with names and user data, too (`java_sticky.py`).

    python benchmarks/sizes.py [partitions ...]
"""
import gc
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from clock import cpu, in_own_process, warm
from families import MEMBERS_AND_TOPICS, Arrays, arrays, events
from grid import as_dictionaries, cost_by_name, sticky
from java_sticky import NoJars, java_sticky
from record import record

from kafka_assign import Group, compare

EVENT = "LEAVE_ONE"
TIMES = 7


def compared(topics: dict, reads: dict, owned: dict) -> list[dict]:
    "The rows of a comparison of the usual strategies, from names."
    return compare(Group(topics, reads, owned)).rows


def cost_to_compare(of: Arrays) -> float:
    "CPU seconds of `compared`, for a process of its own."
    call = partial(compared, *as_dictionaries(of))
    gc.disable()
    warm(call, seconds=5)
    return cpu(call, TIMES)


def java_seconds(of: Arrays) -> float | None:
    "CPU seconds of a call of Java's assignor, None without it."
    try:
        return java_sticky(of).seconds
    except NoJars:
        return None


def main(sizes: list[int]) -> None:
    "A row for each size."
    rows = []
    for partitions in sizes:
        members, topics = MEMBERS_AND_TOPICS[partitions]
        full = arrays("HOMOGENEOUS", partitions, members, topics)._replace(lag=None)
        of = dict(events(full, sticky))[EVENT]
        rows.append({"partitions": partitions, "members": members, "topics": topics,
                     "sticky": in_own_process(cost_by_name, of, TIMES), "java": java_seconds(of),
                     "compare": in_own_process(cost_to_compare, of)})
        print(rows[-1], flush=True)
    record("sizes", rows)


if __name__ == "__main__":
    main([*map(int, sys.argv[1:])] or list(MEMBERS_AND_TOPICS))
