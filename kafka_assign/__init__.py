"""Who gets which partition in a Kafka consumer group, why, and what moves when something changes."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as in `typing`, which would take longer to load than all of this

# Public name -> module that holds it. A module is loaded when one of its names is first asked for, so
# `import kafka_assign` costs next to nothing, and nobody pays for Spark or pandas who does not use them.
_HOMES = {
    "TopicPartition": "groups.fields",
    "Member": "groups.fields",
    "GroupError": "groups.build",
    "Group": "groups.group",
    "Assignment": "groups.assignment",
    "AssignmentError": "groups.assignment",
    "assign": "assignors.registry",
    "assign_many": "assignors.registry",
    "strategies": "assignors.registry",
    "strategy": "assignors.registry",
    "StrategyError": "assignors.base",
    "compare": "reports.comparison",
    "diff": "reports.changes",
    "Comparison": "reports.comparison",
    "Migration": "reports.new_protocol",
    "migration": "reports.new_protocol",
    "co_partitioned": "groups.joins",
    "explain": "reports.moves",
    "rank": "ranking.judging",
    "show": "reports.view",
    "plot": "reports.pictures",
    "describe": "reports.words",
    "proof_of": "reports.proof",
    "check_strategy": "assignors.conformance",
    "read_groups": "snapshot",
    "read_history": "life.rebuild",
    "replay": "life.what_if",
    "Event": "life.live",
    "LiveGroup": "life.live",
    "step": "life.live",
    "Rebalance": "life.rebalance",
    "lead": "life.rebalance",
}

if TYPE_CHECKING:  # the same table for editors, which do not run `__getattr__`
    from .assignors.base import StrategyError
    from .assignors.conformance import check_strategy
    from .assignors.registry import assign, assign_many, strategies, strategy
    from .groups.assignment import Assignment, AssignmentError
    from .groups.build import GroupError
    from .groups.fields import Member, TopicPartition
    from .groups.group import Group
    from .groups.joins import co_partitioned
    from .life.what_if import replay
    from .life.rebuild import read_history
    from .life.live import Event, LiveGroup, step
    from .life.rebalance import Rebalance, lead
    from .ranking.judging import rank
    from .reports.changes import diff
    from .reports.comparison import Comparison, compare
    from .reports.moves import explain
    from .reports.new_protocol import Migration, migration
    from .reports.pictures import plot
    from .reports.proof import proof_of
    from .reports.view import show
    from .reports.words import describe
    from .snapshot import read_groups

__all__ = ["Assignment", "AssignmentError", "Comparison", "Event", "Group", "GroupError", "LiveGroup", "Member",
           "Migration", "Rebalance", "StrategyError", "TopicPartition", "assign", "assign_many", "check_strategy",
           "co_partitioned", "compare", "describe", "diff", "explain", "lead", "migration", "plot", "proof_of", "rank",
           "read_groups", "read_history", "replay", "show", "step", "strategies", "strategy"]


def __getattr__(name):
    """Load the module that holds `name`, once; from then on it is an ordinary attribute."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    """The public names, whether loaded yet or not."""
    return sorted({*globals(), *__all__})
