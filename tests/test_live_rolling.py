"""A running group of kafka-python members changes its strategy in two rolling restarts, on a real broker, and the ways
that do not work fail as the guide says (nbs/guides/live_consumers.ipynb)."""
from contextlib import ExitStack
from functools import partial

import pytest
from live_members import live_group, until

from kafka_assign.clients import assignor

pytestmark = pytest.mark.needs("broker")

RANGE = partial(assignor, "range")


def test_two_rolling_restarts_change_the_strategy_of_a_running_group(broker):
    """The group changes when its last member lists both, and then refuses a member that was forgotten.

    It finds a protocol name that others do not know, and a vote that is not for the first one in the list.
    """
    new = ["sticky", "lag"]
    with ExitStack() as stack:
        groups = {name: stack.enter_context(live_group(broker, f"rolling-{name}", {f"rolling-{name}": 6}, [RANGE]))
                  for name in new}

        def settled(expected):
            for name, group in groups.items():
                state = group.settled()
                assert state.protocol == (name if expected == "new" else expected)
                assert [len(own) for own in state.owned.values()] == [3, 3]

        def restarted(lists, last):
            for member in "ab":
                for group in groups.values():
                    group.leave(member)
                for name, group in groups.items():
                    group.join(member, assignors=lists(name))
                settled(last if member == "b" else before)
        for group in groups.values():
            group.join(*"ab")
        before, settings = "range", {"bootstrap_servers": broker.bootstrap, "group_id": "rolling-lag"}
        made = {"sticky": partial(assignor, "sticky"), "lag": partial(assignor, "lag", offsets_from=settings)}
        settled(before)
        restarted(lambda name: [made[name], RANGE], "new")
        before = "new"
        restarted(lambda name: [made[name]], "new")
        for group in groups.values():
            group.join("stray")
        for group in groups.values():
            until(lambda: group["stray"].of("ended"))
            assert group["stray"].of("ended")[0].startswith("InconsistentGroupProtocolError")
            group.kill("stray")
        settled("new")


def test_a_member_with_the_new_strategy_alone_is_refused_and_the_others_do_its_work(broker):
    with live_group(broker, "rolling-wrong", {"rolling-wrong": 6}, [RANGE]) as group:
        group.join(*"abc")
        group.settled()
        group.leave("a")
        group.join("a", assignors=[partial(assignor, "sticky")])
        until(lambda: group["a"].of("ended"))
        assert group["a"].of("ended")[0].startswith("InconsistentGroupProtocolError")
        group.kill("a")
        after = group.settled()
        assert after.protocol == "range" and {name: len(own) for name, own in after.owned.items()} == {"b": 3, "c": 3}


def test_kafka_python_takes_no_list_of_a_cooperative_strategy_and_an_eager_one_of_its_own(broker):
    """Only with an eager one of this package does a rolling restart lead to `cooperative-sticky`: `test_live_tied`."""
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaConfigurationError
    with pytest.raises(KafkaConfigurationError, match="do not support a common RebalanceProtocol"):
        KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="rolling-both",
                      partition_assignment_strategy=[assignor("cooperative-sticky"), RangePartitionAssignor])
