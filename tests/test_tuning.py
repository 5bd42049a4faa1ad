"""Numbers that tune: each is declared here and changes no result at either end of its range."""
import ast
import sys
from functools import cache

import numpy as np
import pytest
from outputs import SAMPLES
from test_house import is_number, modules, parsed

from kafka_assign import Assignment, Group, assign, assign_many, rank, strategies
from kafka_assign.certificate import check
from kafka_assign.document import group_to_document
from kafka_assign.snapshot import read_groups

HUGE = 1 << 40
TUNING = {  # module.name, or module.class.name -> the least and the greatest value that make sense
    "assignment.NAMED_AT_ONCE": (1, HUGE),
    "assignors.lag.SMALL_ROUND": (0, HUGE),
    "assignors.sticky.classes.Tuning.pair_table": (1, HUGE),
    "assignors.sticky.classes.Tuning.small_component": (0, HUGE),
    "assignors.sticky.classes.Tuning.trial_excess": (0, HUGE),
    "assignors.sticky.classes.Tuning.trial_raises": (0, HUGE),
    "assignors.sticky.classes.Tuning.graph_pairs": (1, HUGE),
    "assignors.sticky.classes.Tuning.fill_passes": (1, 1000),
    "assignors.sticky.classes.Tuning.released_share": (0, HUGE),
    "assignors.sticky.classes.Tuning.released_factor": (0, HUGE),
    "assignors.sticky.classes.Tuning.released_reserve": (0, HUGE),
    "columns.LARGEST_CELL_TABLE": (0, HUGE),
    "inputs.CLAIMS_AT_ONCE": (1, HUGE),
    "metrics.DENSE": (0, HUGE),
    "ragged.LONG_ROW": (1, HUGE),
    "ragged.FEW_DEALT": (0, HUGE),
    "ragged.LONG_DEAL": (1, HUGE),
    "ranking.GROUPS_AT_ONCE": (1, HUGE),
    "ranking.PARTITIONS_AT_ONCE": (1, HUGE),
    "snapshot.sources.BLOCK_BYTES": (1, 1 << 28),
    "snapshot.sources.FEWEST_LINES": (1, HUGE),
    "snapshot.sources.LONGEST_NAMES": (1, 1 << 12),
    "snapshot.sources.MOST_COLUMNS": (1, 64),
}
# Numbers that are part of a result: limits of what is possible, versions, exit codes, how much of a list is shown.
FIXED = {
    "assignors.kafka_sticky.differing": {"MOST_PASSES"},
    "assignors.kafka_sticky.forecast": {"MOST_FAULTS_SHOWN", "MOST_REBALANCES"},
    "assignors.lag_search": {"MOST_EXCHANGES", "MOST_PER_MEMBER"},
    "assignors.stream_join": {"SHOWN_REASONS", "SHOWN_RUNS"},
    "attention": {"LEAST_HOT_LAG"},
    "build": {"MOST_PARTITIONS"},
    "certificate": {"LARGEST"},
    "certificate.words": {"NAMED", "LETTERS", "SHOWN_LINES", "TEXT_WIDTH"},
    "cli.app": {"DONE", "HOLDS", "UNUSABLE", "INTERRUPTED", "PIPE_CLOSED"},
    "cli.arguments": {"MOST_REMARKS"},
    "cli.changes": {"MOST_JOIN", "NAMED_CANDIDATES"},
    "cli.conditions": {"NAMED_CONDITIONS"},
    "cli.output": {"READABLE", "SHOWN_NEEDS", "GROUPS_WITHOUT_LIST"},
    "fleet.session": {"OLDEST_JAVA"},
    "group": {"SHOWN_MEMBERS"},
    "hash_order": {"LAST_32_BITS", "INITIAL_CAPACITY", "LOAD_FACTOR", "TREEIFY_THRESHOLD", "MIN_TREEIFY_CAPACITY"},
    "live": {"MOST_ROUNDS", "MOST_NAMED"},
    "moves": {"SHOWN_CLAIMANTS", "SHOWN_MOVES"},
    "ownership": {"SEVERAL", "UNDATED", "MOST_CLAIMED"},
    "pictures.draw": {
        "_PIXELS", "WIDTH", "EDGE", "_GUTTER", "_HEAD", "_GAP", "MOST_ROWS", "_MOST_LOW_ROWS", "WITHHELD"},
    "pictures.timeline": {"_HEAD", "_LINE", "_BAR"},
    "pictures.words": {"MOST_NAMED", "_MOST_MEMBERS"},
    "rebalance": {"LAST_EPOCH"},
    "snapshot.formats": {"LEAST_TOO_HIGH"},
    "snapshot.parse": {"HASH_FACTOR"},
    "tables": {"_GAP", "_LEAST"},
    "wire": {"LONGEST_TEXT", "NEWEST"},
}


def named_numbers(name):
    """The numbers to which a module gives names in capitals, and those of its classes of numbers."""
    for node in parsed(modules()[name]).body:
        if isinstance(node, ast.Assign) and is_number(node.value):
            yield from (part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name))
        if isinstance(node, ast.ClassDef) and node.name == "Tuning":
            yield from (f"Tuning.{part.targets[0].id}" for part in node.body if isinstance(part, ast.Assign))


def test_every_number_is_declared():
    found = {f"{name}.{number}" for name in modules() for number in named_numbers(name)}
    fixed = {f"{name}.{number}" for name, numbers in FIXED.items() for number in numbers}
    assert found == TUNING.keys() | fixed and not TUNING.keys() & fixed


def test_a_package_has_one_table():
    tables = {}
    for name in TUNING:
        module = (
            name.partition(".Tuning")[0].rpartition(".")[0] if ".Tuning." not in name else name.partition(".Tuning")[0]
        )
        if "." in module:
            tables.setdefault(module.rpartition(".")[0], set()).add(module)
    assert all(len(places) == 1 for places in tables.values()), tables


@cache
def fleet():
    """Groups of many shapes: equal, nested, random, disjoint subscriptions; previous owners; small and larger."""
    random, made = np.random.default_rng(1848), []
    for members, topics, most, share in (
        (4, 3, 6, 0.6),
        (12, 8, 20, 0.3),
        (40, 12, 60, 0.5),
        (60, 30, 30, 0.1),
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


def answers():
    """What every strategy answers, alone and together, and what is made of it."""
    proved = [name for name in strategies() if name in ("sticky", "cooperative-sticky")]
    exact = [name for name in strategies() if name not in (*proved, "fairness-only", "sticky-yet-fair")]
    found = {name: [assign(group, name).owner.tolist() for group in fleet()] for name in exact}
    found |= {name: [best(assign(group, name)) for group in fleet()] for name in proved}
    together = {name: [a.owner.tolist() for a in assign_many(fleet(), name)] for name in exact if name != "kip54"}
    assert all(together[name] == found[name] for name in together)
    found["dictionaries"] = [Assignment(group, group.previous).to_dict() for group in fleet()]
    found["figures"] = [Assignment(group, group.previous).summary() for group in fleet()]
    found["ranking"] = rank(fleet(), exact)
    found["columns"] = [
        Group(
            group.topic_counts,
            dict(zip(group.members, map(topics_of, group.details))),
            owned={member.id: member.owned for member in group.details},
        ).previous.tolist()
        for group in fleet()
    ]
    return found


def topics_of(member):
    return list(member.topics)


def readings():
    """What the reader makes of the samples."""
    groups = {}
    for version in sorted(SAMPLES.glob("kafka-*")):
        files = sorted(version.glob("*.txt"))
        read = read_groups(files)
        groups[version.name] = [group_to_document(group) for group in read.values()], read.rejects, read.ignored
    return groups


@cache
def usual(what):
    return {"answers": answers, "readings": readings}[what]()


def set_everywhere(monkeypatch, name, value):
    """Give a number another value in its module and wherever it was imported."""
    if ".Tuning." in name:
        module, _, number = name.partition(".Tuning.")
        monkeypatch.setattr(sys.modules[f"kafka_assign.{module}"].Tuning, number, value)
        return
    number = name.rpartition(".")[2]
    users = [module for key, module in sys.modules.items() if key.startswith("kafka_assign") and number in vars(module)]
    assert users, f"{name} is not loaded"
    for module in users:
        monkeypatch.setattr(module, number, value)


CASES = [(name, value) for name, ends in TUNING.items() for value in ends if not name.startswith("fleet.")]


@pytest.mark.parametrize("name, value", CASES, ids=lambda part: str(part))
def test_results_do_not_depend_on_it(monkeypatch, name, value):
    what = "readings" if name.startswith("snapshot.") else "answers"
    wanted = usual(what)
    set_everywhere(monkeypatch, name, value)
    assert {"answers": answers, "readings": readings}[what]() == wanted
