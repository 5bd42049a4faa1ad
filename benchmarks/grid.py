"""The sticky assignor over the grid of Kafka's benchmark, beside Java's and kafka-python's, every answer proved.

Two topologies, eight families of subscriptions, eight events (`families.py`), 1,000 to 1,000,000 partitions. Each
answer is compared with Java's, and its certificate is checked; one that proves nothing ends the run. CPU times,
medians. Where Java was stopped after 60 s it is not tried again at the larger sizes of the same run, but counts as
stopped there. Without sizes it runs 1,000 partitions, and a million without Java, in about 20 minutes; 10,000 take
half an hour, and larger sizes hours.

    python benchmarks/grid.py [--alone] [--family NAME] [partitions ...]
"""
import argparse
import gc
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from asked import GIANT, print_asked, print_means
from clock import cpu, floor, in_own_process, warm
from families import MEMBERS_AND_TOPICS, SHAPES, Arrays, arrays, events
from java_sticky import STOPPED, JavaAnswer, NoJars, java_command, java_sticky
from python_sticky import kafka_python_sticky
from record import record

from kafka_assign import Assignment, Group, assign
from kafka_assign.groups.certificate import check
from kafka_assign.arrays.metrics import measure

DEFAULT_SIZES = [1_000]
LARGEST_FOR_KAFKA_PYTHON = 1_000
INCLUDED = """\
ours    arrays to owner column: Group.from_arrays (names sorted, all checked), assign, the answer checked
Java    StickyAssignor.assign: user data decoded, a map of lists of TopicPartition made; metadata and subscriptions
        made before; a process for each case, after ten calls; its thread only, no garbage collector
hot     the same after hundreds of calls, if they are short
named   ours from dictionaries of names and lists of tuples to a dictionary of lists of tuples; as for Java, a process
        for each case, warm (up to a hundred calls, of 15 seconds), and no garbage collector
python  kafka-python's sticky assignor, user data decoded, one call
check   of the certificate, on a group just made, beside the floor: a sorted owner column counted and copied
score   KIP-54's balance score, ours : Java's;  kept: partitions still with their owner, ours : Java's"""


class Case(NamedTuple):
    "A place in the grid."
    partitions: int
    topology: str
    family: str
    event: str

    def __str__(self):
        return f"{self.partitions:,} {self.topology} {self.family} {self.event}"

    @property
    def at_any_size(self) -> tuple[str, str, str]:
        "The case without its size."
        return self.topology, self.family, self.event


class Row(NamedTuple):
    "What was measured of a case; CPU seconds, None where nothing was measured."
    case: Case
    floor: float
    ours: float
    checking: float
    figures: tuple[int, int]
    named: float | None = None
    java: JavaAnswer | None = None
    java_figures: tuple[int, int] | None = None
    kafka_python: float | None = None

    @property
    def stopped(self) -> bool:
        "Whether Java was stopped, so that its figures are lower bounds."
        return self.java is not None and self.java.owner is None

    def as_dict(self) -> dict:
        "The row as it is kept; figures of others are lower bounds where `stopped`."
        return {**self.case._asdict(), "floor": self.floor, "ours": self.ours, "checking": self.checking,
                "named": self.named, "kafka-python": self.kafka_python, "stopped": self.stopped,
                "java": self.java and self.java.seconds, "hot": self.java and self.java.hot_seconds,
                "figures": self.figures, "java figures": self.java_figures}


# --- ours -----------------------------------------------------------------------------------------------------------

def sticky(group: Group) -> np.ndarray:
    "The owner column."
    return assign(group, "sticky").owner


def as_dictionaries(of: Arrays) -> tuple[dict, dict, dict]:
    "Topics, subscriptions and claims as a client has them: each member its own lists, the names shared."
    names, owned = np.array(of.topics, object), {member: [] for member in of.members}
    if of.previous is not None:
        topic = np.repeat(np.arange(len(of.topics)), of.partitions)
        number = np.arange(len(topic)) - (np.cumsum(of.partitions) - of.partitions)[topic]
        for owner, claim in zip(of.previous.tolist(), zip(names[topic].tolist(), number.tolist())):
            if owner >= 0:
                owned[of.members[owner]].append(claim)
    reads = {member: names[row].tolist() for member, row in zip(of.members, of.subscriptions)}
    return dict(zip(of.topics, of.partitions.tolist())), reads, owned


def from_names(topics: dict, reads: dict, owned: dict) -> dict:
    "Dictionaries in, a dictionary of lists of tuples out."
    return assign(Group(topics, reads, owned), "sticky").to_dict()


def cost_by_name(of: Arrays, times: int) -> float:
    "CPU seconds of `from_names`, for a process of its own: when it is warm, as Java is, without the garbage collector."
    call = partial(from_names, *as_dictionaries(of))
    gc.disable()
    warm(call)
    return cpu(call, times)


def checking_cost(of: Arrays, answer: Assignment, times: int) -> float:
    "CPU seconds of checking the certificate on groups of which nothing was derived before; fails if it proves nothing."
    fresh = iter([of.group() for _ in range(times)])
    return cpu(lambda: check(next(fresh), answer, answer.certificate), times)


def figures_of(group: Group, owner: np.ndarray) -> tuple[int, int]:
    "Balance score and partitions kept."
    figures = measure(group.columns, owner)
    return int(figures["balance_score"][0]), int(figures["kept"][0])


# --- the grid -------------------------------------------------------------------------------------------------------

def measured(case: Case, of: Arrays) -> Row:
    "What there is to measure of ours, and the floor of the same minute."
    answer, times = assign(of.group(), "sticky"), 5 if case.partitions >= 100_000 else 15
    _ = answer.certificate                                            # made once, outside the clock
    return Row(case, floor(case.partitions, len(of.members)), cpu(lambda: sticky(of.group()), times),
               checking_cost(of, answer, times), figures_of(answer.group, answer.owner))


def beside_others(row: Row, of: Arrays, hopeless: bool) -> Row:
    "The row with what others need, and we by name; `hopeless`: without running Java. Its answer must not be better."
    named = in_own_process(cost_by_name, of, 3 if row.case.partitions >= 100_000 else 7)
    row = row._replace(named=named, java=STOPPED if hopeless else java_sticky(of))
    if row.case.partitions <= LARGEST_FOR_KAFKA_PYTHON:
        row = row._replace(kafka_python=kafka_python_sticky(of))
    if row.stopped:
        return row
    (score, kept), java = row.figures, figures_of(of.group(), row.java.owner)
    assert (score, -kept) <= (java[0], -java[1]), f"{row.case} must not be worse than Java's {java} (got {score, kept})"
    return row._replace(java_figures=java)


def cases(partitions: int, shapes: Iterable[str]) -> Iterator[tuple[Case, Arrays]]:
    "The grid at one size, or some families of it."
    for topology in ("EQUAL", "SKEWED"):
        for family in shapes:
            full = arrays(family, partitions, *MEMBERS_AND_TOPICS[partitions], skewed=topology == "SKEWED")
            for event, of in events(full._replace(lag=None), sticky):
                yield Case(partitions, topology, family, event), of


# --- tables ---------------------------------------------------------------------------------------------------------

TABLE = "{:>9}{:>8}{:>8}{:>10}{:>10}{:>10}{:>10}{:>9}{:>9}  {}  {}".format
HEAD = "\n".join([
    " " * 41 + TABLE("ours", "ours/", "check/", "named", "python", "Java", "hot", "Java/", "Java/", "", ""),
    " " * 41 + TABLE("ms", "floor", "floor", "ms", "ms", "ms", "ms", "ours", "named", "score", "kept")])


def pair(ours: int, theirs: int | None) -> str:
    "Two figures, or one where both are the same."
    return f"{ours}" if theirs in (None, ours) else f"{ours}:{theirs}"


def milliseconds(seconds: float | None, mark: str = "") -> str:
    "A time, or nothing."
    return "" if seconds is None else f"{mark}{seconds * 1e3:.2f}" if seconds < 1 else f"{mark}{seconds * 1e3:.0f}"


def line(row: Row) -> str:
    "A row of the table."
    mark, (score, kept) = ">" if row.stopped else "", row.java_figures or (None, None)
    others = [milliseconds(row.named), milliseconds(row.kafka_python)] + [""] * 4
    if row.java is not None:
        others[2:] = [milliseconds(row.java.seconds, mark), milliseconds(row.java.hot_seconds, mark),
                      f"{mark}{row.java.seconds / row.ours:.1f}", f"{mark}{row.java.seconds / row.named:.1f}"]
    figures = [f"{row.ours / row.floor:.1f}", f"{row.checking / row.floor:.1f}", *others]
    return (f"{row.case.topology:7}{row.case.family:14}{row.case.event:20}" + TABLE(
        milliseconds(row.ours), *figures, pair(row.figures[0], score), pair(row.figures[1], kept)))


def heading(partitions: int) -> str:
    "What stands above the table of one size."
    members, topics = MEMBERS_AND_TOPICS[partitions]
    return f"\n{partitions:,} partitions, {members:,} members, {topics} topics\n{HEAD}"


def run(sizes: Iterable[int], shapes: Iterable[str], with_java: bool) -> list[Row]:
    "Measure and print the grid."
    rows, hopeless = [], set()
    for partitions in sizes:
        print(heading(partitions))
        for case, of in cases(partitions, shapes):
            print(case, file=sys.stderr)
            row = measured(case, of)
            if with_java:
                row = beside_others(row, of, case.at_any_size in hopeless)
            if row.stopped:
                hopeless.add(case.at_any_size)
            rows.append(row)
            print(line(row), flush=True)
    return rows


def java_is_here() -> bool:
    "Whether there is a Java to compare with; if not, say why."
    try:
        return bool(java_command())
    except NoJars as reason:
        print(f"Java is skipped: {reason}")
        return False


def asked_for() -> argparse.Namespace:
    "What the command line asks for."
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sizes = ", ".join(map(str, MEMBERS_AND_TOPICS))
    parser.add_argument("partitions", nargs="*", type=int, help=f"sizes, of {sizes}")
    parser.add_argument("--family", action="append", choices=SHAPES, help="one family, may be repeated; else all")
    parser.add_argument("--alone", action="store_true", help="without Java")
    return parser.parse_args()


def main() -> None:
    "Run the grid, then say what it comes to."
    wanted = asked_for()
    print(INCLUDED)
    with_java = not wanted.alone and java_is_here()
    rows = run(wanted.partitions or DEFAULT_SIZES, wanted.family or SHAPES, with_java)
    if not wanted.partitions:
        rows += run([GIANT], wanted.family or SHAPES, with_java=False)
    record("grid", [row.as_dict() for row in rows])
    print_means(rows)
    print_asked(rows)


if __name__ == "__main__":
    main()
