"""The sticky assignor where racks are known, beside Java's: three racks, and replicas in two of them.

Both rankings, from arrays to the owner column, as in `grid.py`; certificates are checked. CPU times, medians. A call of
Java's is stopped after 12 s, and the time is a lower bound then. Balance score, partitions kept and partitions in their
owner's rack: of `racks` before `kept`, and Java's.

    python benchmarks/racks.py [partitions ...]
"""
import sys
from pathlib import Path
from statistics import geometric_mean

sys.path.insert(0, str(Path(__file__).resolve().parent))

from clock import cpu
from families import Arrays, arrays, events
from java_sticky import java_sticky

from kafka_assign import assign
from kafka_assign.arrays.metrics import measure
from kafka_assign.groups.certificate import check

SIZES = [(1_000, 50, 50), (10_000, 200, 100), (10_000, 1_000, 100), (100_000, 1_000, 200)]
FAMILIES = ["HOMOGENEOUS", "NESTED", "RANDOM50", "ONE_NARROW"]
EVENTS = ["FULL", "LEAVE_ONE", "RANDOM_OWNERS"]
RANKINGS = ["sticky:prefer=kept+racks", "sticky:prefer=racks+kept"]
FIGURES = ["balance_score", "kept", "in_rack"]
RACKS, MOST_SECONDS = 3, 12


def measured(of: Arrays) -> dict:
    "What both rankings and Java take, and what racks first and Java come to."
    for ranking in RANKINGS:
        answer = assign(of.group(), ranking)
        check(answer.group, answer, answer.certificate)
    kept, racks = (cpu(lambda: assign(of.group(), ranking), 7) for ranking in RANKINGS)
    java = java_sticky(of, most=MOST_SECONDS)
    figures = [None if owner is None else [int(measure(answer.group.columns, owner)[name][0]) for name in FIGURES]
               for owner in (answer.owner, java.owner)]
    return {"kept": kept, "racks": racks, "java": java.seconds, "stopped": java.owner is None,
            "figures": figures[0], "java figures": figures[1]}


def main(sizes: list[int]) -> None:
    "A row for each case, and the geometric mean of each size."
    for size in [size for size in SIZES if not sizes or size[0] in sizes]:
        rows = []
        for family in FAMILIES:
            full = arrays(family, *size)._replace(lag=None, racks=RACKS)
            for event, of in events(full, lambda group: assign(group, RANKINGS[0]).owner):
                if event in EVENTS:
                    rows.append({"family": family, "event": event, **measured(of)})
                    print(rows[-1], flush=True)
        for ranking in "kept", "racks":
            gains = [row["java"] / row[ranking] for row in rows]
            print(f"{size}: Java / {ranking} first: mean {geometric_mean(gains):.1f}, least {min(gains):.1f}")


if __name__ == "__main__":
    main([*map(int, sys.argv[1:])])
