"""Numbers that tune: each is declared here and changes no result at either end of its range."""
import ast
import sys
from functools import cache, partial

import numpy as np
import pytest
from outputs import SAMPLES
from test_capture import TWO, read
from test_house import is_number, modules, parsed

from kafka_assign import Assignment, Group, assign, assign_many, compare, rank, strategies
from kafka_assign.groups.certificate import check
from kafka_assign.groups.documents import group_row
from kafka_assign.snapshot import read_groups

HUGE = 1 << 40
TUNING = {  # module.name, or module.class.name -> the least and the greatest value that make sense
    "assignors.lag.SMALL_ROUND": (0, HUGE),
    "assignors.sticky.classes.Tuning.pair_table": (1, HUGE),
    "assignors.sticky.classes.Tuning.small_component": (0, HUGE),
    "assignors.sticky.classes.Tuning.trial_excess": (0, HUGE),
    "assignors.sticky.classes.Tuning.trial_raises": (0, HUGE),
    "assignors.sticky.classes.Tuning.graph_pairs": (1, HUGE),
    "assignors.sticky.classes.Tuning.fill_passes": (1, 1000),
    "clients.cluster.GROUPS_PER_REQUEST": (1, HUGE),
    "arrays.columns._LARGEST_CELL_TABLE": (0, HUGE),
    "arrays.metrics.DENSE": (0, HUGE),
    "arrays.ragged.FEW_DEALT": (0, HUGE),
    "arrays.ragged.LONG_DEAL": (1, HUGE),
    "assignors.batch.GROUPS_AT_ONCE": (1, HUGE),
    "reports.places._PLACES_AT_ONCE": (1, HUGE),
    "assignors.batch._PARTITIONS_AT_ONCE": (1, HUGE),
    "snapshot.sources.BLOCK_BYTES": (1, 1 << 28),
}
# Numbers that are part of a result: limits of what is possible, versions, exit codes, how much of a list is shown.
FIXED = {
    "__main__": {"_ROOM"},
    "arrays.goals": {"LARGEST_PRICE", "MOST_RACKS"},
    "assignors.broker": {"_MOST_ROUNDS"},
    "assignors.kafka_sticky.differing": {"MOST_PASSES", "MOST_STEPS"},
    "assignors.kafka_sticky.forecast": {"MOST_FAULTS_SHOWN", "MOST_REBALANCES"},
    "assignors.lag_search": {"MOST_CELLS", "MOST_EXCHANGES", "MOST_PER_MEMBER"},
    "assignors.running": {"_MOST_NAMED"},
    "assignors.stream_join": {"SHOWN_REASONS", "SHOWN_RUNS"},
    "assignors.sticky.classes": {"MOST_PAIRS"},
    "assignors.sticky.cycles": {"_MOST_CELLS"},
    "assignors.sticky.flow": {"_FAR", "_GIVE_UP", "_ONE_MORE", "_TAKE_BACK", "_UNDO"},
    "assignors.sticky.proving": {"CLOSED", "_TURNS"},
    "cli.capturing": {"_LEAST"},
    "cli.arguments": {"_LONGEST"},
    "cli.changes": {"NAMED_CANDIDATES", "_LISTED_MEMBERS", "_MOST_JOIN"},
    "cli.conditions": {"_NAMED_CONDITIONS"},
    "cli.histories": {"_DOUBT", "_MOST_MEMBERS", "_ONE_WRONG_IN", "_SHOWN_GROUPS"},
    "cli.errors": {"DONE", "HOLDS", "MOST_REMARKS", "UNUSABLE", "_INTERRUPTED", "_PIPE_CLOSED"},
    "cli.output": {"_GROUPS_WITHOUT_LIST"},
    "cli.ranking": {"_SCREEN", "_SHOWN_GROUPS", "_SHOWN_NEEDS"},
    "cli.writing": {"_READABLE"},
    "clients.cluster": {"_EARLIEST", "_LATEST", "_NOT_AUTHORIZED", "_PAUSE", "_UNKNOWN"},
    "clients.connection": {"_SECONDS_FOR_TOKEN"},
    "clients.member": {"_MOST_NAMED"},
    "clients.records": {"_MOST", "_POLL"},
    "fleet.apart": {"_LOOK", "_PARENT_DEATH_SIGNAL"},
    "fleet.facts": {"_GENERATIONS_AT_ONCE", "_GENERATIONS_TOGETHER", "_ROWS_AT_ONCE"},
    "fleet.histories": {"_BYTES_OF_BATCH", "_LINES_AT_ONCE"},
    "fleet.inputs": {"_READERS"},
    "fleet.job": {"BYTES_OF_PART", "LARGE", "_FORMAT", "_ROWS_AT_ONCE"},
    "fleet.session": {"OLDEST_JAVA"},
    "fleet.tables": {"_SECONDS_TO_END"},
    "fleet.text": {"_BYTES_OF_FILE"},
    "groups.build": {"MOST_PARTITIONS"},
    "groups.certificate": {"LARGEST"},
    "groups.group": {"SHOWN_MEMBERS"},
    "groups.notes": {"_MOST_NAMED"},
    "groups.progress": {"_COMMIT", "_LATE", "_LEAST", "_MOST_NAMED", "_RECENTLY", "_SPREAD"},
    "life.clocks": {"_AGREED", "_HEARTBEATS", "_LEAST_SHIFT", "_MOST_BYTES_OF_LINE", "_MOST_TIMES"},
    "life.costs": {"_DOUBT", "_LEAST_GAPS", "_MOST_CLIENTS", "_MOST_VARIATION", "_SLACK", "_UNHEARD"},
    "life.lines": {"MOST_TIME", "_DAY", "_LIST_SECONDS", "_MOST_BEFORE", "_MOST_DIGITS", "_MOST_STARTS", "_MOST_TIMES",
                   "_ZONE_STEP"},
    "life.offsets_topic": {"_MOST_BEFORE_KEY"},
    "life.trace": {"_MOST_MORE", "_MOST_NAMED", "_SHARE"},
    "life.rebuild": {"_AT_ONCE", "_BACK", "_COARSE", "_HEARTBEAT", "_LATE", "_LEAVING", "_SLACK"},
    "life.consequences": {"_MOST_NAMED"},
    "life.live": {"_MOST_NAMED"},
    "life.rebalance": {"_LAST_EPOCH", "_MOST_ROUNDS"},
    "protocol.java": {"LAST_32_BITS", "_INITIAL_CAPACITY", "_LOAD_FACTOR", "_MIN_TREEIFY_CAPACITY",
                      "_TREEIFY_THRESHOLD"},
    "protocol.ownership": {"MOST_CLAIMED", "NO_GENERATION", "_SEVERAL", "UNDATED"},
    "protocol.wire": {"LONGEST_TEXT", "NEWEST"},
    "ranking.migrating": {"MOST_LEAVES"},
    "ranking.outcomes": {"LEAST_LAG"},
    "ranking.rules": {"_LEAST_HOT", "_MOST_NAMED", "_MUCH"},
    "reports.view": {"_MOST_NAMED"},
    "reports.draw": {"EDGE", "MOST_ROWS", "TEXT", "WIDTH", "_WITHHELD", "_DENSITY", "_GAP", "_GUTTER", "_LETTER",
                     "_LINE", "_MOST_BINS", "_NARROW", "_NARROWEST"},
    "reports.moves": {"_SHOWN_CLAIMANTS", "_SHOWN_MOVES"},
    "reports.places": {"_MOST_PLACES", "_MOST_MEMBERS"},
    "reports.proof": {"_SHOWN_LINES", "_LETTERS", "_NAMED", "_TEXT_WIDTH"},
    "reports.timeline": {"_BAR", "_HEAD", "_LINE", "_MOST_COLUMNS", "_MOST_TIMELINES"},
    "reports.words": {"MOST_NAMED", "_MOST_MEMBERS"},
    "snapshot.assemble": {"MOST_MORE_IN_ALL", "_MOST_MORE", "_SHARE"},
    "snapshot.parse": {"_MOST_LINES", "_MOST_PARTS"},
    "snapshot.rows": {"LEAST_TOO_HIGH", "MOST_COUNT"},
    "snapshot.sources": {"MOST_BYTES_OF_LINE", "_MOST_READ"},
    "snapshot.subscriptions": {"_MOST_PAIRS"},
    "text.tables": {"_GAP", "_LEAST"},
}


def named_numbers(name):
    """The numbers to which a module gives names in capitals, and those of its classes of numbers."""
    for node in parsed(name).body:
        if isinstance(node, ast.Assign) and is_number(node.value):
            yield from (part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name))
        if isinstance(node, ast.ClassDef) and node.name == "Tuning":
            yield from (f"Tuning.{part.targets[0].id}" for part in node.body if isinstance(part, ast.Assign))


def test_every_number_is_declared():
    found = {f"{name}.{number}" for name in modules() for number in named_numbers(name)}
    fixed = {f"{name}.{number}" for name, numbers in FIXED.items() for number in numbers}
    assert found == TUNING.keys() | fixed and not TUNING.keys() & fixed


@cache
def fleet():
    """Groups of many shapes: equal, nested, random, disjoint subscriptions; previous owners; small and larger."""
    random, made = np.random.default_rng(1848), []
    for members, topics, most, share in (
        (4, 3, 6, 0.6),
        (12, 8, 20, 0.3),
        (40, 12, 60, 0.5),
        (90, 30, 30, 0.2),
        (6, 4, 900, 0.7),
    ):
        for shape in ("random", "equal", "nested", "disjoint"):
            place, rank = np.arange(members)[:, None], np.arange(topics)
            matrix = {
                "random": random.random((members, topics)) < share,
                "equal": np.ones((members, topics), bool),
                "nested": place * topics >= rank * members,
                "disjoint": place % 3 == rank % 3,
            }[shape]
            counts = random.integers(0, most, topics)
            previous = random.integers(-1, members, counts.sum())
            lag = random.integers(-1, 1000, counts.sum())
            made.append(
                Group.from_arrays(
                    [f"t{i:02}" for i in range(topics)],
                    counts,
                    [f"m{i:02}" for i in range(members)],
                    matrix,
                    previous=previous,
                    lag=lag,
                )
            )
    return made


def best(assignment):
    """What is unique about an optimum, once its certificate is checked."""
    check(assignment.group, assignment, assignment.certificate)
    return sorted(assignment.loads.tolist()), int(assignment.kept.sum())


def answers_of(name):
    """What a strategy answers, alone and together; of an optimum, what is unique about it."""
    alone = [assign(group, name) for group in fleet()]
    if name in ("sticky", "cooperative-sticky"):
        return list(map(best, alone))
    found = [one.owner.tolist() for one in alone]
    assert found == [one.owner.tolist() for one in assign_many(fleet(), name)]
    return found


def dictionaries():
    return [Assignment(group, group.previous).to_dict() for group in fleet()]


def figures():
    return [Assignment(group, group.previous).summary() for group in fleet()]


def ranking():
    return rank(fleet(), EXACT)


def columns():
    """The previous owners of groups made of names."""
    return [
        Group(
            group.topic_counts,
            dict(zip(group.members, map(topics_of, group.details))),
            owned={member.id: member.owned for member in group.details},
        ).previous.tolist()
        for group in fleet()
    ]


def topics_of(member):
    return list(member.topics)


def readings():
    """What the reader makes of the samples."""
    groups = {}
    for version in sorted(SAMPLES.glob("kafka-*")):
        files = sorted(version.glob("*.txt"))
        read = read_groups(files)
        groups[version.name] = [group_row(group) for group in read.values()], read.rejects, read.ignored
    return groups


def captures():
    """What a cluster with many groups is read as."""
    found = read({f"g{i:03}": ({}, TWO, {("t", 0): i}) for i in range(250)})
    return [group_row(group) for group in found.values()]



def new_members():
    """The rows of all places of a new member's id, and the answers."""
    owned = {name: [("t", number), ("t", number + 3)] for number, name in enumerate("abc")}
    joined = Group({"t": 7, "u": 2}, {name: ["t", "u"] for name in "abcd"}, owned)
    found = compare(joined, ["range", "fair"], made_up=["d"])
    return found.placements, [answer.owner.tolist() for answer in found.assignments.values()]


EXACT = [name for name in strategies() if name not in (
    "sticky", "cooperative-sticky", "fairness-only", "sticky-yet-fair")]
PARTS = {name: partial(answers_of, name) for name in (*EXACT, "sticky", "cooperative-sticky")} | {
    part.__name__: part for part in (dictionaries, figures, ranking, columns, readings, captures, new_members)}


class Noted:
    """A number that notes its name when it is used."""

    def __init__(self, name, value, used):
        self.name, self.value, self.used = name, value, used

    def __array__(self, dtype=None, copy=None):
        return np.array(self.__index__(), dtype)

    def __index__(self):
        self.used.add(self.name)
        return self.value


def forward(method):
    """Let a `Noted` number do what an int does."""
    def operator(self, *others):
        return getattr(self.__index__(), method)(*others)
    setattr(Noted, method, operator)


for method in "lt le gt ge eq ne add radd sub rsub mul rmul floordiv rfloordiv mod lshift rlshift bool".split():
    forward(f"__{method}__")


def places(name):
    """The module or class that holds a number, and all modules that imported it."""
    if ".Tuning." in name:
        module, _, number = name.partition(".Tuning.")
        return [sys.modules[f"kafka_assign.{module}"].Tuning], number
    number = name.rpartition(".")[2]
    users = [module for key, module in sys.modules.items() if key.startswith("kafka_assign") and number in vars(module)]
    assert users, f"{name} is not loaded"
    return users, number


@cache
def usual(part):
    """What a part gives, and the numbers that it uses."""
    wanted, used = PARTS[part](), set()
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIED:
            users, number = places(name)
            for user in users:
                patch.setattr(user, number, Noted(name, getattr(user, number), used))
        assert PARTS[part]() == wanted
    return wanted, used


VARIED = [name for name in TUNING if not name.startswith("fleet.")]
CASES = [(name, value) for name in VARIED for value in TUNING[name]]


@pytest.mark.parametrize("name, value", CASES, ids=str)
def test_results_do_not_depend_on_it(monkeypatch, name, value):
    parts = [part for part in PARTS if name in usual(part)[1]]
    assert parts, "nothing that this test does uses the number"
    users, number = places(name)
    for user in users:
        monkeypatch.setattr(user, number, value)
    for part in parts:
        assert PARTS[part]() == usual(part)[0], part
