"""What the benchmarks measure with: families and events as Kafka's benchmark has them, and Java's own answers."""
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import decode
import families
import histories
import jars
import java_sticky
import leader
import lives
import record

from kafka_assign import assign, read_history, replay
from kafka_assign.arrays.metrics import in_rack
from kafka_assign.protocol.wire import decode_assignment


def readers(shape, members=20, topics=10):
    """The members that read each topic."""
    reads = families.subscriptions(np.random.default_rng(0), shape, members, topics)
    return [np.flatnonzero(column).tolist() for column in reads.T]


def test_buckets_are_those_of_kafka():
    assert readers("DISJOINT")[0] == readers("DISJOINT")[1] == [0, 5, 10, 15]
    assert readers("DISJOINT")[8] == readers("DISJOINT")[9] == [4, 9, 14, 19]
    assert readers("NESTED")[0] == list(range(20)) and readers("NESTED")[9] == [4, 9, 14, 19]
    assert readers("DISJOINT_FINE")[3] == [3, 13]
    assert len(set(map(tuple, readers("NESTED_FINE")))) == 10
    assert [len(row) for row in readers("ONE_NARROW")] == [20] + [19] * 9


def test_topics_are_as_large_as_in_kafka():
    assert families.topic_counts(23, 10, skewed=False).tolist() == [3, 3, 3] + [2] * 7
    assert families.tiers(50) == [33, 11, 4, 1, 1]
    counts = families.topic_counts(1_000, 50, skewed=True)
    assert counts.sum() == 1_000 and (counts == 1).sum() == 33
    assert counts[:7].tolist() == [249, 125, 62, 63, 62, 62, 32]
    assert families.topic_counts(51, 50, skewed=True).sum() == 51


@pytest.mark.parametrize("shape", families.SHAPES)
def test_events_are_those_of_kafka(shape):
    full = families.arrays(shape, 300, 20, 10)
    moments = dict(families.events(full, lambda group: assign(group, "sticky").owner))
    assert list(moments) == families.EVENTS
    assert moments["FULL"].previous is None
    owned = {event: np.bincount(of.previous[of.previous >= 0], minlength=20)
             for event, of in moments.items() if event != "FULL"}
    assert owned["JOIN_ONE"][19] == 0 and owned["JOIN_ONE"].sum() == owned["STABLE"].sum()
    assert owned["JOIN_MANY"][18:].sum() == 0
    assert owned["LEAVE_MANY"].sum() <= owned["LEAVE_ONE"].sum() <= owned["STABLE"].sum()
    added = moments["PARTITIONS_ADDED"]
    assert (added.partitions - full.partitions).tolist() == [1] + [0] * 9
    assert added.previous[full.partitions[0]] == -1
    for event, of in moments.items():
        group = of.group()
        given = 0 if of.previous is None else (of.previous >= 0).sum()
        assert (group.previous >= 0).sum() == given, f"{event}: an owner must subscribe"


def test_members_and_replicas_are_in_racks_in_turn():
    of = families.arrays("HOMOGENEOUS", 7, 4, 2)._replace(lag=None, racks=3)
    racks = of.group().columns.racks
    assert racks.member.tolist() == [0, 1, 2, 0]
    assert racks.replicas.reshape(-1, 2).tolist() == [[0, 1], [1, 2], [2, 0], [0, 1]] + [[0, 1], [1, 2], [2, 0]]
    assert of._replace(racks=0).group().columns.racks is None


@pytest.mark.parametrize("topics", decode.TOPICS_OF_MEMBER)
def test_members_send_all_partitions_as_user_data(topics):
    group = decode.group_of(decode.MEMBERS * 100, topics)
    assert {len(member.topics) for member in group.details} == {topics} and len(group.members) == decode.MEMBERS
    decoded = decode.anew(group)
    assert np.bincount(decoded.previous, minlength=1).tolist() == [100] * decode.MEMBERS and not decoded.dropped


@pytest.mark.parametrize("event", leader.EVENTS)
def test_a_leader_assigns_what_its_members_sent(event):
    """Our assignor, from bytes to bytes: the same owners as from arrays, also where members own something."""
    pytest.importorskip("kafka")
    full = families.arrays("RANDOM50", 300, 20, 10)._replace(lag=None)
    of = dict(families.events(full, lambda group: assign(group, "sticky").owner))[event]
    answers = leader.led(leader.assignor("sticky"), of, leader.decoded(leader.our_bytes(of)))
    assert {name: list(decode_assignment(data).assigned) for name, data in answers.items()} == assign(
        of.group(), "sticky").to_dict()


def test_members_come_and_go():
    random = np.random.default_rng(0)
    assert lives.changed([3, 5], 4, True, random, 7) == [3, 5, 7, 8]
    assert lives.changed([3, 5, 7], 1, True, random, 8) == [3]
    counts = [len(members) for members in lives.memberships(lives.up_and_down, 0)]
    assert counts[:8] == [1, 2, 4, 2] * 2


def test_jars_that_are_there_are_not_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(jars, "CACHE", tmp_path)
    monkeypatch.setattr(jars, "_fetch", lambda folder: Path(folder, "a.jar").touch())
    assert jars.jars() == jars.jars_folder() == tmp_path / "kafka-4.3.1"
    monkeypatch.setattr(jars, "_fetch", None)
    assert jars.jars() == tmp_path / "kafka-4.3.1" and [*tmp_path.iterdir()] == [jars.jars()]
    assert [file.name for file in jars.jars().iterdir()] == ["a.jar"]


def test_jars_that_cannot_be_had_leave_nothing_behind(tmp_path, monkeypatch):
    def fail(folder):
        raise jars.NoJars("no network")
    monkeypatch.setattr(jars, "CACHE", tmp_path)
    monkeypatch.setattr(jars, "_fetch", fail)
    with pytest.raises(jars.NoJars, match="no network"):
        jars.jars()
    assert not [*tmp_path.iterdir()]


@pytest.mark.needs("jdk", "broker")
@pytest.mark.parametrize("shape", ["HOMOGENEOUS", "NESTED"])
def test_java_answers(shape):
    full = families.arrays(shape, 100, 6, 7)._replace(lag=None)
    owner = java_sticky.java_owner(full)
    if shape == "HOMOGENEOUS":
        assert owner.tolist() == assign(full.group(), "sticky").owner.tolist()
    stable = full._replace(previous=owner)
    assert java_sticky.java_owner(stable).tolist() == owner.tolist()


@pytest.mark.needs("jdk", "broker")
def test_java_knows_racks():
    """More partitions are in the rack of their owner with racks than without; ours are there all."""
    of = families.arrays("HOMOGENEOUS", 40, 8, 4)._replace(lag=None, racks=3)
    columns = of.group().columns
    near = [in_rack(columns, owner)[0] for owner in (
        java_sticky.java_owner(of), java_sticky.java_owner(of._replace(racks=0)), assign(of.group(), "sticky").owner)]
    assert near[2] == 40 >= near[0] > near[1]


def test_rows_are_kept_by_name(tmp_path, monkeypatch):
    path = tmp_path / "measured.json"
    monkeypatch.delenv("MEASURED", raising=False)
    record.record("alone", [{"cpu": 1.0}])                                  # only prints
    monkeypatch.setenv("MEASURED", str(path))
    for name, rows in ("one", [{"cpu": 9.0}]), ("two", []), ("one", [{"cpu": 2 / 3, "groups": 10_001}]):
        record.record(name, rows)
    kept = json.loads(path.read_text())
    assert {name: one["rows"] for name, one in kept.items()} == {
        "one": [{"cpu": 0.6667, "groups": 10_001}], "two": []}
    assert '   { "cpu": 0.6667, "groups": 10001 }' in path.read_text().splitlines()
    assert set(kept["one"]) == {"date", "machine", "versions", "rows"}


def test_every_benchmark_is_on_the_page_of_measured_figures():
    kept = set(json.loads((ROOT / "benchmarks/measured.json").read_text()))
    written = {name for path in (ROOT / "benchmarks").glob("*.py")
               for name in re.findall(r'\brecord\("([^"]+)"', path.read_text())}
    page = (ROOT / "nbs/reference/measured.ipynb").read_text()
    assert kept == written == set(re.findall(r'rows\(\\"([^\\"]+)', page))


def test_the_page_of_measured_figures_begins_with_what_was_measured():
    rows = json.loads((ROOT / "benchmarks/measured.json").read_text())["grid"]["rows"]
    seconds = [row["ours"] for row in rows if row["partitions"] == 1_000_000]
    page = (ROOT / "nbs/reference/measured.ipynb").read_text()
    found = re.search(r"a million partitions in ([\d.]+) ms to ([\d.]+) ms", page)
    assert [*map(float, found.groups())] == [float(f"{end * 1e3:.2g}") for end in (min(seconds), max(seconds))]


def test_generated_histories_are_those_of_range(tmp_path):
    """Logs and traces of the same groups say the same, and each assignment is what `range` makes."""
    histories.write_logs(tmp_path / "logs", 9, 90)
    histories.write_traces(tmp_path / "traces", 9, 90)
    logs, traces = read_history(tmp_path / "logs"), read_history(tmp_path / "traces")
    assert len(logs) == 9 and {name: [one.assigned for one in group.generations] for name, group in logs.items()} == {
        name: [one.assigned for one in group.generations] for name, group in traces.items()}
    assert all(row.forecast == row.known == 10 for row in replay(logs, ["range"]).rows if row.strategy == "range")
