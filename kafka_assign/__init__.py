"""Who gets which partition in a Kafka consumer group, why, and what moves when something changes."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as in `typing`, which would take longer to load than all of this

# Public name -> module that holds it. A module is loaded when one of its names is first asked for, so
# `import kafka_assign` costs next to nothing, and nobody pays for Spark or pandas who does not use them.
_HOMES = {
    "TopicPartition": "members",
    "Member": "members",
    "GroupError": "build",
    "Group": "group",
    "Assignment": "assignment",
    "AssignmentError": "assignment",
    "assign": "registry",
    "assign_many": "registry",
    "strategies": "registry",
    "strategy": "registry",
    "StrategyError": "registry",
    "compare": "comparison",
    "Comparison": "comparison",
    "co_partitioned": "joins",
    "explain": "moves",
    "rank": "ranking",
    "plot": "pictures",
    "describe": "pictures.words",
    "proof_of": "certificate.words",
    "check_strategy": "conformance",
    "read_groups": "snapshot",
    "Event": "live",
    "LiveGroup": "live",
    "step": "live",
    "Rebalance": "rebalance",
    "lead": "rebalance",
}

if TYPE_CHECKING:  # the same table for editors, which do not run `__getattr__`
    from .assignment import Assignment, AssignmentError
    from .build import GroupError
    from .certificate.words import proof_of
    from .comparison import Comparison, compare
    from .conformance import check_strategy
    from .group import Group
    from .joins import co_partitioned
    from .live import Event, LiveGroup, step
    from .members import Member, TopicPartition
    from .moves import explain
    from .pictures import plot
    from .pictures.words import describe
    from .ranking import rank
    from .rebalance import Rebalance, lead
    from .registry import StrategyError, assign, assign_many, strategies, strategy
    from .snapshot import read_groups

__all__ = ["Assignment", "AssignmentError", "Comparison", "Event", "Group", "GroupError", "LiveGroup", "Member",
           "Rebalance", "StrategyError", "TopicPartition", "assign", "assign_many", "check_strategy",
           "co_partitioned", "compare", "describe", "explain", "lead", "plot", "proof_of", "rank", "read_groups",
           "step", "strategies", "strategy"]


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
