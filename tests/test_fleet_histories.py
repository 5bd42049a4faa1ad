"""Histories on Spark: the answers of `read_history` and `replay`, however the work is divided, and nothing lost."""
import gzip
import json
import pickle
import shutil
import sys
from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_assign import Group, Member, read_history, replay
from kafka_assign.fleet.schemas import REPLAY_TABLES, FleetError
from kafka_assign.life import clocks
from kafka_assign.life.costs import history_row, recorded_row
from kafka_assign.samples import path
from test_hostile_files import HARMLESS, KINDS

pytestmark = pytest.mark.needs("spark", "java")

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "tests" / "logs"
STRATEGIES = ["range", "cooperative-sticky"]
sys.path.insert(0, str(ROOT / "benchmarks"))

import histories  # noqa: E402


def behind(path, hours):
    """Write the times of a log as a host of another time zone does, and the log in three parts."""
    lines = []
    for line in path.read_text().splitlines(keepends=True):
        time = datetime.fromisoformat(line[1:24].replace(",", ".")) - timedelta(hours=hours)
        lines.append(f"[{time.isoformat(' ', 'milliseconds').replace('.', ',')}{line[24:]}")
    third = len(lines) // 3
    path.write_text("".join(lines[2 * third:]))
    path.with_name(f"{path.name}.1").write_text("".join(lines[third:2 * third]))
    with gzip.open(path.with_name(f"{path.name}.2.gz"), "wt") as file:
        file.writelines(lines[:third])


@pytest.fixture
def inputs(tmp_path):
    """Logs of brokers and members, one of them hours behind and rotated; two real captures; traces of other groups, and
    of one that has logs, too."""
    folder = tmp_path / "in"
    histories.write_logs(folder / "logs", 15, 120)
    behind(folder / "logs" / "application-5.log", 9)
    for capture in ("cooperative-3.9.2", "consumer-4.3.1"):
        shutil.copytree(LOGS / capture, folder / capture, ignore=shutil.ignore_patterns("truth.jsonl.gz"))
    histories.write_traces(folder / "traces", 8, 60, first=14)
    return folder


def told(run, name):
    """The rows of a table, without the columns of the run."""
    return [{key: value for key, value in row.items() if key not in ("run_id", "run_date", "cluster")}
            for row in run.table(name).to_pylist()]


def replayed(inputs, out, spark, **options):
    from kafka_assign.fleet.histories import replay_fleet
    return replay_fleet(inputs, out, STRATEGIES, spark=spark, static=45.0, **options)


def test_the_answers_of_a_plain_process(spark, tmp_path, inputs, monkeypatch):
    """From text and traces, in four tasks, one and two, a few lines at once and many: what one process says."""
    history = read_history(inputs)
    plain = replay(history, STRATEGIES, 45.0)
    monkeypatch.setattr("kafka_assign.fleet.histories.cores", lambda spark: 4)
    monkeypatch.setattr("kafka_assign.fleet.histories._LINES_AT_ONCE", 7)
    run = replayed(inputs, tmp_path / "runs", spark)
    order = itemgetter("group_id")
    assert sorted(told(run, "replay"), key=order) == sorted((row._asdict() for row in plain.rows), key=order)
    notes = [note for row in told(run, "history") for note in row.pop("notes")]
    assert sorted(notes) == sorted(plain.notes[1:]) and len(notes) > 5
    rows = [history_row(group, recorded_row(group)) for group in history.values()]
    assert [{key: row[key] for key in rows[0]} for row in told(run, "history")] == sorted(
        rows, key=lambda row: (-row["rebalances"], row["group_id"]))
    logs = {row["source"]: (row["lines"], row["shift"]) for row in told(run, "logs")}
    assert logs == {log.name: (log.lines, log.shift) for log in history.logs}
    assert logs[str(inputs / "logs" / "application-5.log")][1] == pytest.approx(9 * 3600, abs=1)
    found = {(row["group_id"], row["life"], row["generation"], row["answered"] and row["answered"].timestamp())
             for row in told(run, "generations")}
    assert found == {(one.group_id, one.life, one.generation, one.answered and round(one.answered, 3))
                     for group in history.values() for one in group.generations}
    assert {name: run.table(name).schema for name in run.tables} == REPLAY_TABLES and not run.rejected
    said = sum(len(log.traces) + sum(bool(one.group) for one in log.said) for log in history.logs)
    assert run.counts["facts"] == {"read": said, "used": said, "rejected": 0}
    assert run.counts["lines"] == sum(log.lines for log in history.logs)

    monkeypatch.undo()
    with (inputs / "traces" / "trace-0.jsonl").open() as file:
        one = json.loads(next(file)) | {"group_id": "odd"}
    hostile = one | {"group_id": "half of \ud800"}
    odd = one | {"generation": 2**70}
    broken = dict.fromkeys(["group_id", "life", "generation", "causes", "missing"], "x")
    lines = "\n".join(map(json.dumps, [broken, hostile, odd]))
    (inputs / "traces" / "broken.jsonl").write_text(f"\n{lines}\n")
    (inputs / "cut.log.gz").write_bytes(gzip.compress(b"line\n" * 100)[:20])
    (inputs / "groups.parquet").write_bytes(b"PAR1")
    for tasks in (1, 2):
        monkeypatch.setattr("kafka_assign.fleet.histories.cores", lambda spark: tasks)
        again = replayed(inputs, tmp_path / "runs", spark)
        for name in ("history", "replay", "generations"):
            assert again.tables[name] == run.tables[name], name
    why = {(Path(row["source"] or "").name, row["position"], row["scope"]): row["reason"]
           for row in told(again, "rejects")}
    assert why.keys() == {("broken.jsonl", 2, "row"), ("broken.jsonl", 3, "row"), ("broken.jsonl", 4, "row"),
                          ("cut.log.gz", 0, "file"), ("groups.parquet", 0, "file")}
    assert "must have all keys" in why["broken.jsonl", 2, "row"] and "UTF-8" in why["broken.jsonl", 3, "row"]
    assert "a generation of a trace must be a whole number" in why["broken.jsonl", 4, "row"]
    files = again.counts["files"]
    assert (files["rejected"], files["read"] - files["used"]) == (2, 2)
    assert again.counts["facts"] == {"read": said + 3, "used": said, "rejected": 3}


def test_clusters_are_kept_apart(spark, tmp_path):
    """Groups of the same name in two clusters are two groups, by the folder's name."""
    for name in ("a", "b"):
        histories.write_traces(tmp_path / "in" / f"cluster={name}", 1, 4)
    run = replayed(tmp_path / "in", tmp_path / "runs", spark)
    assert [(row["cluster"], row["group_id"], row["rebalances"]) for row in run.table("history").to_pylist()] == [
        ("a", "group-0", 4), ("b", "group-0", 4)]
    with pytest.raises(FleetError, match=r"inputs must hold a rebalance \(got none\)"):
        (tmp_path / "empty.log").write_text("nothing\n")
        replayed(tmp_path / "empty.log", tmp_path / "runs", spark)
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_what_goes_wrong_in_one_group_leaves_the_others_as_they_are(tmp_path, monkeypatch):
    """A strategy has no answer for one of many groups that it answers at once, and no row can be made of another."""
    from kafka_assign.fleet import facts as module
    from kafka_assign.life import what_if
    histories.write_traces(tmp_path / "in", 4, 12, files=1)
    parts = [{"name": "trace-0.jsonl", "path": str(tmp_path / "in" / "trace-0.jsonl")}]
    batch = pa.RecordBatch.from_pylist([{"log": 0, "cluster": "c", "parts": parts}], module.PARTS_SCHEMA)
    facts = pa.Table.from_batches(module.read_facts([batch], most=100)).filter(pc.is_valid(pc.field("group_id")))
    facts = facts.sort_by([("group_id", "ascending"), ("place", "ascending")]).to_batches()

    def rows():
        found = module.replay_facts(facts, [("trace-0.jsonl", 0.0)], {}, ["range", "sticky"])
        return {row["group_id"]: row for row in pa.Table.from_batches(found).to_pylist() if row["facts"] is not None}
    whole = rows()

    def no_answer(planned, strategy):
        if strategy.label == "range" and any(plan.group.name == "group-1" for own in planned for plan in own):
            raise ValueError("no answer")
        return rows_of(planned, strategy)

    def no_row(group, recorded):
        return history_row(group, recorded) if group.name != "group-2" else {}["rebalances"]
    rows_of = what_if._rows_of
    monkeypatch.setattr(what_if, "_rows_of", no_answer)
    monkeypatch.setattr(module, "history_row", no_row)
    found = rows()
    assert [(row["scope"], row["strategy"], row["reason"]) for row in found["group-1"].pop("rejects")] == [
        ("strategy", "range", "group group-1: ValueError: no answer")]
    assert [one["strategy"] for one in found["group-1"]["replay"]] == ["recorded", "sticky"]
    assert [(row["scope"], row["reason"]) for row in found["group-2"]["rejects"]] == [
        ("group", "group group-2: KeyError: 'rebalances'")] and found["group-2"]["replay"] is None
    assert [found[name] for name in ("group-0", "group-3")] == [whole[name] for name in ("group-0", "group-3")]


@pytest.mark.parametrize("form", ["snapshots", "trace"])
def test_snapshots_and_their_trace(spark, tmp_path, form):
    """How many rebalances lie between snapshots is unknown, and the group is not left out for that."""
    (tmp_path / "in").mkdir()
    for number in (0, 1, 1, 0):
        members = [Member("m", ["t"], owned=[("t", number)]), Member("n", ["t"], owned=[("t", 1 - number)])]
        time = f"2026-11-26T11:08:0{len([*(tmp_path / 'in').iterdir()])}Z"
        group = Group({"t": 2}, members, name="g", time=time, type="classic", strategy="range")
        (tmp_path / "in" / f"{time.replace(':', '-')}.jsonl").write_text(group.to_json() + "\n")
    history = read_history(tmp_path / "in")
    with (tmp_path / "trace.jsonl").open("w") as file:
        history.write(file)
    run = replayed(tmp_path / {"snapshots": "in", "trace": "trace.jsonl"}[form], tmp_path / "runs", spark)
    [row] = told(run, "history")
    assert row == history_row(history["g"], recorded_row(history["g"])) | {"notes": row["notes"]} and (
        row["rebalances"], row["moves"], len(row["notes"])) == (None, 4, 1)
    assert told(run, "replay") == [one._asdict() for one in replay(history, STRATEGIES, 45.0).rows]
    assert [(one["generation"], one["answered"], one["seen"].timestamp()) for one in told(run, "generations")] == [
        (None, None, one.seen) for one in history["g"].generations] and len(history["g"].generations) == 3
    assert run.counts["lines"] == {"snapshots": 4, "trace": 3}[form] and not run.rejected


def test_files_that_cannot_be_read_are_rejects_and_the_others_are_counted(spark, tmp_path):
    """Each kind of such a file is a row, none ends the job or makes it wait; hidden files and runs are counted."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.log").write_bytes(path("broker-log").read_bytes())
    bad = [made for kind, made in KINDS.items() if kind != "a device as a gzip file"]      # the same device again
    for number, (make, ending) in enumerate(bad):
        make(folder / f"{number}x.log{ending}")
    for number, (make, ending) in enumerate(HARMLESS.values()):
        make(folder / f"{number}y.log{ending}")
    (folder / "notes.txt").write_text("call Anna\n")
    for name in "_SUCCESS", "b.log._COPYING_":
        (folder / name).write_bytes(b"")
    run = replayed(folder, tmp_path / "runs", spark)
    assert sorted(Path(row["source"]).name for row in told(run, "rejects")) == sorted(
        f"{number}x.log{ending}" for number, (_, ending) in enumerate(bad))
    silent = 1 + sum(not (folder / f"{number}y.log{ending}").is_dir()
                     for number, (_, ending) in enumerate(HARMLESS.values()))
    assert run.counts["files"] == {"read": 1 + len(bad) + silent, "used": 1, "rejected": len(bad),
                                   "silent": silent, "skipped": 2}
    assert [row["group_id"] for row in told(run, "history")] == ["orders"]


def test_a_log_whose_reading_fails_is_a_reject(tmp_path, monkeypatch):
    """Whatever the reason: the reader of one line fails for an error that nobody thought of."""
    from kafka_assign.fleet import facts as module
    for name in "good", "bad":
        (tmp_path / f"{name}.log").write_bytes(path("broker-log").read_bytes())
    batches = [pa.RecordBatch.from_pylist(
        [{"log": at, "cluster": "", "parts": [{"name": f"{name}.log", "path": str(tmp_path / f"{name}.log")}]}
         for at, name in enumerate(["bad", "good"])], module.PARTS_SCHEMA)]

    def read_log(parts, most):
        if parts[0].name == "bad.log":
            raise RuntimeError("out of luck")
        return clocks.read_log(parts, most)
    monkeypatch.setattr(module, "read_log", read_log)
    rows = [row for batch in module.read_facts(batches, 10) for row in batch.to_pylist() if row["group_id"] is None]
    bad, good = (pickle.loads(row["facts"])[0] for row in rows)
    assert bad.problem == "must be readable (got RuntimeError: out of luck)" and (good.problem, good.lines) == ("", 71)
