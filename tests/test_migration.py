"""Whether a group can move to the new consumer protocol, and what would change: in Python, as command, in a fleet."""
import json
from dataclasses import replace

import pytest
from groups import groups
from hypothesis import given
from hypothesis import strategies as st
from test_cli import run
from test_fleet import compared, table_of

from kafka_assign import Assignment, Group, GroupError, Member, assign, migration
from kafka_assign.assignors.batch import batch_of_groups
from kafka_assign.assignors.registry import resolve
from kafka_assign.groups.leader import Leader
from kafka_assign.life.rolling import restart_in_turn
from kafka_assign.ranking import migrating
from kafka_assign.ranking.migrating import possible_move, without_member

TOPICS = {"clicks": 6, "views": 6}
BROKERS = "uniform", "server-range"


def group_of(subscriptions, strategy="range", topics=TOPICS, client="consumer-site-1", owned=None, **about):
    """A classic group with a member for each name, whose owners are those of its strategy; further facts as given."""
    members = [Member(f"{client}-{name}", asked, client_id=client) for name, asked in subscriptions.items()]
    group = Group(topics, members, name="site", state="Stable", **{"type": "classic", "strategy": strategy} | about)
    return group.replace(owned=owned or assign(group, strategy))


EQUAL = dict.fromkeys("abcd", TOPICS)
DIFFERING = {"a": ["clicks"], "b": TOPICS, "c": TOPICS}


def with_racks(group):
    """The group with members in three racks, by turns, and a replica of each partition in two of them."""
    racks = {topic: [[f"r{n % 3}", f"r{(n + 1) % 3}"] for n in range(count)] for topic, count in TOPICS.items()}
    members = [replace(member, rack=f"r{at % 3}") for at, member in enumerate(group.details)]
    return group.replace(members=members, partition_racks=racks)


def says(found, *texts):
    """Whether each of these texts is in one of the reasons."""
    return all(any(text in reason for reason in found.reasons) for text in texts)


def row_of(found, strategy, event="move"):
    [row] = [row for row in found.rows if (row["strategy"], row["event"]) == (strategy, event)]
    return row


# --- six groups -----------------------------------------------------------------------------------------------------

def test_equal_subscriptions():
    found = migration(group_of(EQUAL))
    assert found.possible == "online"
    assert found.verdict == ("it can move online: under uniform, loads 2 to 4 become 3, 2 of 12 partitions move")
    assert says(found, "carry no user data", "the number of kept partitions do not; how many", "maps RangeAssignor",
                "Java speaks the new protocol since 4.0", "Java refuses to start while session.timeout.ms",
                "racks are not known", "server-range is not sticky", "callbacks get only the partitions that change",
                "the way back", "what holds for every group")
    assert not any(says(found, words) for words in ("same instance id", "some client ids", "not the flattest"))


def test_differing_subscriptions():
    found = migration(group_of(DIFFERING))
    assert found.possible == "online" and says(found, "the number of kept partitions rarely do")


def test_racks():
    found = migration(with_racks(group_of(EQUAL)))
    now, then, ranged = found.rows[0], row_of(found, "uniform"), row_of(found, "server-range")
    best = found.rows[-1]
    assert best["strategy"] == "sticky:prefer=racks+kept" and best["in_rack"] > then["in_rack"]
    assert f"in rack: {now['in_rack']} now, {then['in_rack']} then" in found.verdict
    assert says(found, f"of 12 partitions, {now['in_rack']} are in the rack of a replica now, {then['in_rack']} under "
                f"uniform, {ranged['in_rack']} under server-range; {best['in_rack']} are possible")


def test_a_stream_join_is_refused_online():
    """After the stop, no member owns anything: what the broker does then cannot be a move."""
    group = group_of(EQUAL, "stream-join-sticky", client="joiner")
    found = migration(group)
    assert found.possible == "after a stop" and found.restarts is None
    assert says(found, "carry user data, so the broker refuses", "stop all members, then start them")
    assert (row_of(found, "uniform")["kept"], row_of(found, "uniform")["placed"]) == (0, 12)
    assert found.rows[0]["kept"] == 12 and (found.start.previous < 0).all()


def test_librdkafka():
    found = migration(group_of(EQUAL, client="rdkafka"))
    assert found.possible == "online"
    assert says(found, "librdkafka speaks the new protocol since 2.12", "before 2.15",
                "librdkafka refuses to start while session.timeout.ms, heartbeat.interval.ms or partition.assignment")


def test_on_the_new_protocol_already():
    """Its target is compared with the optimum; nothing is said about how to move."""
    owned = {"consumer-site-1-a": {"clicks": range(6)}, "consumer-site-1-b": {"views": range(6)}}
    group = with_racks(group_of(EQUAL, "uniform", owned=owned, type="consumer"))
    found = migration(group)
    best = found.rows[-1]
    assert found.possible == "done" and found.restarts is None
    assert found.verdict == (f"the broker assigns it already: loads 0 to 6 could be 3, the optimum is "
                             f"{best['moved']} moves away, in rack: {found.rows[0]['in_rack']} now, "
                             f"{best['in_rack']} possible")
    assert says(found, "the way back") and not says(found, "refuses to start") and not says(found, "hash tables")
    settled = migration(group_of(EQUAL, "uniform", owned=assign(group_of(EQUAL), "sticky"), type="consumer"))
    assert "loads 3 are the flattest possible, the optimum is 0 moves away" in settled.verdict


# --- what is possible -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("strategy, clients, possible", [
    *[(name, "consumer-g-1", "online") for name in ("range", "roundrobin", "sticky", "cooperative-sticky")],
    *[(name, "service", "online") for name in ("fair", "lag", "kip54", "sticky")],
    *[(name, "service", "after a stop") for name in ("stream-join-sticky", "sticky-join", "stream")],
    ("stream", "a-0dfd4e3a-1b2c-4c63-9a8e-2f6d1d1c7b11-StreamThread-1-consumer", "after a stop"),
    ("sticky", "sarama consumer-g-1", "after a stop"), ("sticky", "sarama", "no"), ("range", "sarama kgo", "online"),
    ("RoundRobinAssigner", "kafkajs", "no"),
    ("range", "kafka-python-3.0.12 aiokafka-0.14.0", "no"), ("stream-join-sticky", "kafka-python-3.0.12", "no"),
    ("range", "kafka-python-3.0.12 rdkafka", "online"), ("cooperative-sticky", "kgo", "online"),
    ("range", "kafka-python-3.0.12 service", "online"), ("company", "service", "unknown"), ("", "service", "unknown"),
    ("range", "", "after a stop"), ("sessioned", "service", "no")])
def test_what_is_possible_by_strategy_and_clients(strategy, clients, possible):
    ids = clients.split()
    assert possible_move(Leader("classic", strategy, ids), len(ids))[0] == possible


@pytest.mark.parametrize("kind, possible", [("consumer", "done"), ("share", "no"), ("streams", "no"), ("", "online")])
def test_what_is_possible_by_type(kind, possible):
    found = migration(group_of(EQUAL, type=kind))
    assert found.possible == possible and (len(found.rows) > 1) == (possible != "no")


def test_members_that_stay_classic_and_static_ones_are_named():
    members = [Member("x", TOPICS, client_id="rdkafka", instance_id="x"),
               Member("y", TOPICS, client_id="kafka-python-3.0.12")]
    found = migration(group_of(EQUAL).replace(members=members))
    assert found.restarts is None                  # whose `range` it is depends on the leader
    assert says(found, "supported yet by kafka-python", "nor does a plug-in of this package", "the same instance id")


def test_what_is_inferred_is_said():
    from kafka_assign.groups.notes import Note
    found = migration(group_of(EQUAL).replace(notes=[Note("subscriptions-agree", None, ("all",))]))
    assert found.verdict.endswith(" (subscriptions are inferred)")


def test_a_group_is_asked_for():
    with pytest.raises(GroupError, match="must be a Group"):
        migration({"topics": TOPICS})


# --- rows -----------------------------------------------------------------------------------------------------------

kinds = st.sampled_from([("classic", "range"), ("classic", "stream-join-sticky"), ("classic", ""),
                         ("consumer", "uniform"), ("share", ""), ("classic", "stream")])


def with_owners(group, assignment):
    """The group in which each member owns what an assignment gives it, and nothing else."""
    members = [replace(group.details[at], owned=assignment[group.members[at]], generation=-1) for at in group.listed]
    return group.replace(members=members)


def leaves(group, label):
    """The rows of the leave of one member, each member tried alone."""
    rows = [assign(group.leave(name), label).summary() | {"leaving": name} for name in group.members]
    rows.sort(key=lambda row: (row["moved"], row["balance_score"]))
    return [rows[(len(rows) - 1) // 2] | {"event": "leave median"}, rows[-1] | {"event": "leave worst"}]


@given(groups(), kinds)
def test_rows_are_the_summaries_of_assign(group, kind):
    group = group.replace(type=kind[0], strategy=kind[1])
    found, of_move = migration(group), {"event": "move", "leaving": None}
    current = Assignment.current(group).summary()
    expected, racks = [current | {"event": "now", "leaving": None}], current["in_rack"] is not None
    if len(found.rows) > 1:
        for label in BROKERS:
            moved = assign(found.start, label)
            expected.append(moved.summary() | of_move)
            if len(group.members) > 1:
                expected += leaves(with_owners(found.start, moved), label)
        best = assign(found.start, "sticky:prefer=racks+kept" if racks else "sticky")
        expected.append(best.summary() | of_move | {"paused": None})
    said = {"inferred": "", "switch": None, "switch_paused": None}         # the move is the price
    assert [row | {"inferred": ""} for row in found.rows] == [row | said for row in expected]


@given(groups(), st.randoms(use_true_random=False))
def test_a_group_without_a_member(group, random):
    """As `leave` makes it, except that a topic without metadata remains when its last subscriber leaves."""
    group = with_owners(group, Assignment.current(group))
    if group.members:
        name = random.choice(group.members)
        found, expected = without_member(group.columns, group.members.index(name)), group.leave(name).columns
        for column in ("subscribers", "turn", "previous", "listed"):
            assert getattr(found, column).tolist() == getattr(expected, column).tolist(), column


def test_of_members_whose_partitions_are_only_counted_one_leaves_too():
    """After the move, owners are those of the broker's assignor, so no count remains."""
    group = Group({"t": 4}, [Member(name, ["t"], counted=count) for name, count in zip("abc", (2, 1, 1))],
                  type="classic", strategy="range")
    worst = row_of(migration(group), "uniform", "leave worst")
    assert (worst["members"], worst["max_load"], worst["moved"]) == (2, 2, 0)


def test_of_many_members_some_are_tried():
    topics = {"t": 240}
    found = migration(group_of({f"{number:03}": topics for number in range(120)}, topics=topics))
    assert row_of(found, "uniform")["max_load"] == 2 and row_of(found, "uniform", "leave worst")["moved"] is not None
    assert found.restarts is None


def test_restarts_begin_in_the_classic_group_and_go_on_in_that_of_the_broker():
    group = group_of(EQUAL)
    found = migration(group).restarts
    assert found == restart_in_turn(group, group.members, resolve("uniform"), before=resolve("range"))
    assert found.rebalances == 8 and found.moved > restart_in_turn(
        migration(group).group.replace(owned=assign(group, "uniform")), group.members, resolve("uniform")).moved
    static = group.replace(members=[replace(one, instance_id=one.id) for one in group.details])
    assert migration(static).restarts[1:5] == (4, 4, 1, 2)        # only the first one that is back changes anything


# --- the command line and the fleet ---------------------------------------------------------------------------------

@pytest.fixture
def file(tmp_path):
    path = tmp_path / "groups.jsonl"
    fleet = [group_of(EQUAL), group_of(EQUAL, "stream-join-sticky", client="joiner").replace(name="join")]
    path.write_text("\n".join(group.to_json() for group in fleet))
    return str(path)


def test_compare_migrate(file):
    done = run(f"compare {file} -g site --migrate")
    found = migration(group_of(EQUAL))
    assert done.code == 0 and done.out.startswith(f"site: {found.verdict}\n") and found.reasons[0] in done.out
    assert "members one by one" in done.out and "leave median" in done.out
    [site, join] = json.loads(run(f"compare {file} --migrate --format json").out)
    assert (site["verdict"], site["reasons"], site["rows"]) == (found.verdict, found.reasons, found.rows)
    assert site["restarts"]["rebalances"] == 8 and (join["possible"], join["restarts"]) == ("after a stop", None)
    lines = run(f"compare {file} --migrate --format csv").out.splitlines()
    assert lines[0].startswith("cluster,group_id,time,moment,possible,strategy,event,leaving,members")
    assert len(lines) == 1 + len(site["rows"]) + len(join["rows"])


def test_compare_migrate_with_conditions_and_changes(file):
    assert run(f"compare {file} -g site --migrate --fail-if moved>1").code == 1
    assert run(f"compare {file} -g site --migrate --fail-if moved>2").code == 0
    assert run(f"compare {file} -g join --migrate --fail-if placed<12 --fail-if moved>0").code == 0
    left = run(f"compare {file} -g site --leave consumer-site-1-d --migrate --format json")
    assert json.loads(left.out)[0]["rows"][0]["members"] == 3
    wrong = run(f"compare {file} --migrate --moves")
    assert wrong.code == 2 and "must come without --moves" in wrong.err


def test_rank_migrate(file):
    rows = json.loads(run(f"rank {file} --migrate --format json").out)
    assert [(row["group_id"], row["possible"]) for row in rows] == [("site", "online"), ("join", "after a stop")]
    assert rows[0]["verdict"] == migration(group_of(EQUAL)).verdict
    assert rows[1]["verdict"] in run(f"rank {file} -g join --migrate").out
    wrong = run(f"rank {file} --migrate -s range")
    assert wrong.code == 2 and "must come without --strategy" in wrong.err


def test_rows_of_the_fleet_are_those_of_migration():
    fleet = [group_of(EQUAL), group_of(DIFFERING), with_racks(group_of(EQUAL)), group_of(EQUAL, "stream-join-sticky"),
             group_of(EQUAL, "stream-join-sticky", client="joiner"), group_of(EQUAL, client="rdkafka"),
             group_of(EQUAL, type="consumer"), Group({"t": 1}, {}, type="classic", state="Empty"),
             group_of({"a": TOPICS})]
    fleet = [group.replace(name=f"{at}") for at, group in enumerate(fleet)]
    for group, row in zip(fleet, compared(table_of(fleet), ["range"], migrate=True)):
        found = migration(group)
        about = {"possible": found.possible, "verdict": found.verdict, "reasons": found.reasons}
        assert row["migration"] == [about | {key: value for key, value in one.items() if key != "inferred"}
                                    for one in found.rows]
    assert not any(row["migration"] for row in compared(table_of(fleet), ["range"]))


def test_a_group_beyond_a_limit_has_no_row_of_the_optimum():
    """The others of its batch do."""
    racks = [f"r{number}" for number in range(63)]
    members = [Member(rack, ["t"], rack=rack) for rack in racks]
    wide = Group({"t": 63}, members, partition_racks={"t": [[rack] for rack in racks]}, type="classic",
                 strategy="range")
    one, two = migrating.outlooks(batch_of_groups([wide, with_racks(group_of(DIFFERING))]))
    assert one.rows[-1]["strategy"] == "server-range" and two.rows[-1]["strategy"] == "sticky:prefer=racks+kept"
    assert one.verdict.startswith("it can move online: under uniform, loads 0 become 1") and one.reasons
