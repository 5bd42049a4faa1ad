"""What a run of the grid comes to: geometric means by family and size, and each figure beside what is asked of it."""
from collections.abc import Callable, Iterable
from statistics import geometric_mean

from clock import verdict

LARGE = 10_000
GIANT = 1_000_000
MOST_OF_FLOOR = {"HOMOGENEOUS": 20, "DISJOINT": 90, "DISJOINT_FINE": 90, "RANDOM50": 90, "RANDOM5": 90,
                 "ONE_NARROW": 90, "NESTED": 250, "NESTED_FINE": 250}
MOST_OF_FLOOR_TO_CHECK = 50
LEAST_GAIN = 20
MOST_OF_JAVA_BY_NAME = 1.3


def gain(row) -> float:
    "How many times as long Java takes, arrays to owner column."
    return row.java.seconds / row.ours


def gain_by_name(row) -> float:
    "How many times as long Java takes, dictionaries in and out."
    return row.java.seconds / row.named


def families(rows: Iterable) -> list[tuple[tuple[int, str], list]]:
    "Rows by size and family."
    grouped = {}
    for row in rows:
        grouped.setdefault((row.case.partitions, row.case.family), []).append(row)
    return list(grouped.items())


def print_means(rows: list) -> None:
    "A line for each size and family: geometric means, and the worst case."
    rows = [row for row in rows if row.java]
    if rows:
        print(f"\n{'geometric means':24} {'Java/ours':>9} {'hot/ours':>9} {'Java/named':>10} {'python/ours':>11} "
              f"{'stopped':>8}  worst of Java/ours")
    for (partitions, family), some in families(rows):
        worst, python = min(some, key=gain), [row.kafka_python / row.ours for row in some if row.kafka_python]
        means = [geometric_mean(map(gain, some)), geometric_mean(row.java.hot_seconds / row.ours for row in some),
                 geometric_mean(map(gain_by_name, some))]
        print(f"{partitions:9,} {family:14} {means[0]:9.2f} {means[1]:9.2f} {means[2]:10.2f} "
              f"{f'{geometric_mean(python):.1f}' if python else '':>11} {sum(row.stopped for row in some):8}  "
              f"{gain(worst):.2f} {worst.case.topology} {worst.case.event}")


def print_worst(what: str, rows: Iterable, figure: Callable, holds: Callable) -> None:
    "Whether a figure is what it should be in all rows, and the row where it is least."
    rows = list(rows)
    if rows:
        worst, missed = min(rows, key=figure), sum(not holds(row) for row in rows)
        many = f" in {missed} of {len(rows)}" if missed else f" in all {len(rows)}"
        print(f"{what}: {verdict(not missed)}{many}, worst {abs(figure(worst)):.2f} ({worst.case})")


def print_asked(rows: list) -> None:
    "Every figure that is asked for, as far as it was measured."
    print("\nasked")
    print_beside_java([row for row in rows if row.java])
    for family, most in MOST_OF_FLOOR.items():
        giants = [row for row in rows if row.case.partitions == GIANT and row.case.family == family]
        print_worst(f"{family} at {GIANT:,} within {most} x the floor", giants, lambda row: -row.ours / row.floor,
                    lambda row: row.ours <= most * row.floor)
    giants = [row for row in rows if row.case.partitions == GIANT]
    print_worst(f"checking at {GIANT:,} within {MOST_OF_FLOOR_TO_CHECK} x the floor", giants,
                lambda row: -row.checking / row.floor,
                lambda row: row.checking <= MOST_OF_FLOOR_TO_CHECK * row.floor)


def print_beside_java(rows: list) -> None:
    "What is asked beside Java."
    large = [row for row in rows if row.case.partitions >= LARGE]
    print_worst(f"faster than Java from {LARGE:,} partitions up", large, gain, lambda row: gain(row) > 1)
    differing = [row for row in large if row.case.family != "HOMOGENEOUS"]
    if differing:
        mean = geometric_mean(map(gain, differing))
        met = verdict(mean >= LEAST_GAIN)
        print(f"{LEAST_GAIN} x as fast in the mean where subscriptions differ: {met}, {mean:.1f} x")
    for (partitions, family), some in families(row for row in rows if row.case.partitions < LARGE):
        mean = geometric_mean(map(gain, some))
        print(f"faster at {partitions:,} in the mean of {family}: {verdict(mean > 1)}, {mean:.2f} x")
    whole = [row for row in large if (row.case.family, row.case.event) == ("HOMOGENEOUS", "FULL")]
    print_worst(f"by name at most {MOST_OF_JAVA_BY_NAME} x Java at HOMOGENEOUS FULL", whole, gain_by_name,
                lambda row: gain_by_name(row) * MOST_OF_JAVA_BY_NAME >= 1)
    print_worst("by name faster elsewhere", [row for row in large if row not in whole], gain_by_name,
                lambda row: gain_by_name(row) > 1)
