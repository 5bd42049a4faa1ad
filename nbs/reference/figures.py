"""What `make bench` measured, as tables and as charts with a logarithmic scale."""
import json
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path
from statistics import geometric_mean

from IPython.display import Markdown
from kafka_assign.reports.draw import (
    EDGE, HUES, INK, QUIET, TRACK, WIDTH, Picture, matplotlib_defaults)

MEASURED = json.loads((Path(__file__).parents[2] / "benchmarks/measured.json").read_text())
LEFT, RIGHT, TOP, ROW = 190, 60, 66, 24
SUBSCRIPTIONS = {
    "HOMOGENEOUS": "equal", "DISJOINT": "five disjoint parts", "NESTED": "five nested steps",
    "DISJOINT_FINE": "disjoint, one per topic", "NESTED_FINE": "nested, one per topic",
    "RANDOM50": "a random half", "RANDOM5": "a random twentieth", "ONE_NARROW": "all but one equal"}
EVENTS = {
    "FULL": "no partition has an owner", "STABLE": "nothing changes", "JOIN_ONE": "a member joins",
    "JOIN_MANY": "a tenth of the members join", "LEAVE_ONE": "a member leaves",
    "LEAVE_MANY": "a tenth of the members leave", "PARTITIONS_ADDED": "partitions are added",
    "RANDOM_OWNERS": "random owners"}


def rows(name: str, **where: object) -> list[dict]:
    "What a benchmark measured, or the rows of it that have these values."
    found = MEASURED[name]["rows"]
    return [row for row in found if all(row[column] == value for column, value in where.items())]


def answer() -> Markdown:
    "What most readers look for: the time for a million partitions, and what Java takes for a thousand."
    giant = [row["ours"] for row in rows("grid", partitions=1_000_000)]
    small = [[row["java"] / row["ours"] for row in rows("grid", partitions=1_000, family=family)]
             for family in SUBSCRIPTIONS]
    means = span(map(geometric_mean, small))
    return Markdown(f"""\
`sticky` finds the best assignment of **a million partitions in {duration(min(giant))} to {duration(max(giant))}** of
CPU time, from arrays to arrays. With 1,000 partitions, **Kafka's own `StickyAssignor` takes
{means} times as long** on average, depending on who subscribes to what.""")


def conditions() -> Markdown:
    "The machines, versions and days of all measurements."
    found = list(MEASURED.values())
    machines, days = ({one[key] for one in found} for key in ("machine", "date"))
    versions = {f"{name} {number}" for one in found for name, number in one["versions"].items()}
    listed = "; ".join(", ".join(sorted(some)) for some in (machines, versions, days))
    return Markdown(f"Measured on: {listed}.")


def short(number: float) -> str:
    "A number with two significant digits."
    return f"{float(f'{number:.2g}'):,.10g}"


def span(numbers: Iterable[float]) -> str:
    "The least and the largest of some numbers."
    found = list(numbers)
    least, largest = short(min(found)), short(max(found))
    return least if least == largest else f"{least} to {largest}"


def duration(seconds: float) -> str:
    "A time in the unit that suits it."
    return f"{short(seconds)} s" if seconds >= 1 else f"{short(seconds * 1e3)} ms"


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> Markdown:
    "A table; all columns but the first hold figures."
    ruled = [head, ["---", *["--:"] * (len(head) - 1)], *lines]
    return Markdown("\n".join(f"| {' | '.join(map(str, line))} |" for line in ruled))


def chart(title: str, ratios: Mapping[str, Sequence[float]], reference: str) -> Picture:
    "A line for each label, from the least of its ratios to the largest, and a mark at their mean."
    numbers = [ratio for some in ratios.values() for ratio in some]
    low, high = floor(log10(min(1, *numbers))), ceil(log10(max(10, *numbers)))
    height = ROW * len(ratios)

    def place(ratio):
        return LEFT + (log10(ratio) - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    with matplotlib_defaults():
        picture = Picture(TOP + height + 40)
        picture.label(EDGE, 22, title, 13, bold=True)
        for power in range(low, high + 1):
            picture.boxes([(place(10**power), TOP, 1, height)], TRACK)
            picture.label(place(10**power), TOP + height + 16, f"{10**power:,g}", 12, QUIET, "center")
        picture.boxes([(place(1) - 1, TOP - 6, 2, height + 6)], INK)
        picture.label(place(1), TOP - 16, reference, 12, INK, "center")
        for row, (label, some) in enumerate(ratios.items()):
            y, begin, end = TOP + ROW * (row + 0.5), place(min(some)), place(max(some))
            picture.label(LEFT - 12, y, label, 12, at="right")
            picture.boxes([(begin, y - 2, end - begin, 4)], HUES[3])
            picture.boxes([(place(geometric_mean(some)) - 2.5, y - 7, 5, 14)], HUES[0])
            picture.label(max(end, place(geometric_mean(some)) + 5) + 6, y, short(geometric_mean(some)), 12)
    picture.words = "\n".join([f"{title}; {reference} is 1.", *(
        f"{label}: {span(some)}, {short(geometric_mean(some))} on average." for label, some in ratios.items())])
    return picture
