"""Fleet jobs seen from outside: each run accounts for its input, on one machine, on a cluster and with Spark Connect.

Every case runs the command line and checks `account`: what was read was used or rejected, what was rejected has a name,
and the exit code says so. Everything but one case takes minutes in all: `make test-long`.
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import venv
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from groups import rows_of_groups
from spark_cluster import PYTHON_PATH, ROOT, ancestors, driver_environment, listens, wait_for
from test_fleet_spark import a_fleet, at_times, parquet_of
from typer.testing import CliRunner

from kafka_assign import Group, compare
from kafka_assign.cli.app import program
from kafka_assign.fleet.schemas import GROUP_SCHEMA

pytestmark = pytest.mark.needs("spark", "java")

TWO = ["-s", "range", "-s", "fair"]
TRACE = "Traceback", "Caused by:", "\tat ", "Exception in thread"
HEAD = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"


# --- running the program, and reading what it wrote ----------------------------------------------------------------

class Outcome(NamedTuple):
    """What the program said and how it ended."""

    code: int
    output: str                     # on standard error

    @property
    def said(self):
        """What the program itself said: without what Spark and Java warned about, in lines of their own."""
        return "".join(line for line in self.output.splitlines(keepends=True)
                       if not re.match(r"WARNING: |\d\d:\d\d:\d\d (WARN|ERROR) ", line))


def start(words, out, environment=None, cwd=None):
    """Start `kafka-assign fleet compare`; by default with two cores of this machine and nothing that the user set."""
    command = [sys.executable, "-m", "kafka_assign", "fleet", "compare", *map(str, words), "-o", str(out)]
    if environment is None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        environment |= {"PYTHONPATH": PYTHON_PATH, "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}
    return subprocess.Popen(command, env=environment, cwd=cwd, start_new_session=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def started(*arguments, **options):
    """As `start`; nothing of it is left at the end."""
    job = start(*arguments, **options)
    try:
        yield job
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()


def outcome_of(words, out, environment=None, cwd=None, seconds=400):
    """The outcome of the program in a process of its own."""
    with started(words, out, environment, cwd) as job:
        _, said = job.communicate(timeout=seconds)
        return Outcome(job.returncode, said)


def here(words, out):
    """The outcome of the program in this process, which has an active session."""
    done = CliRunner().invoke(program, ["fleet", "compare", *map(str, words), "-o", str(out)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.stderr
    return Outcome(done.exit_code, done.stderr)


def on(cluster, words, out, **environment):
    """The outcome of the program as a driver of the cluster."""
    return outcome_of([*words, "--master", cluster.master], out, cluster.environment | environment, cluster.folder)


def finished(out):
    """The runs in a folder."""
    return sorted(path.parent for path in Path(out).glob("[!.]*/run.json"))


def only_run(out, outcome):
    """The one run in a folder."""
    runs = finished(out)
    assert len(runs) == 1 and not any(word in outcome.said for word in TRACE), outcome
    return runs[0]


def manifest(run):
    """What a run says about itself."""
    return json.loads((run / "run.json").read_text(encoding="utf-8"))


def rows(run, table):
    """The rows of a table of a run, read as any reader of Parquet would."""
    folders = pa.dataset.partitioning(pa.schema([("cluster", pa.string())]), flavor="hive")
    return pa.dataset.dataset(run / table, format="parquet", partitioning=folders).to_table().to_pylist()


def content(run):
    """All that a run says about its input, in one order: of two runs of one input it is the same."""
    def text(row):
        return json.dumps({name: row[name] for name in sorted(row.keys() - {"run_id", "run_date"})}, default=repr)
    return {table: sorted(map(text, rows(run, table))) for table in ("groups", "results", "attention", "rejects")}


def account(out, outcome, strategies=2, allowed=0):
    """The run in `out`, whose counts, tables and exit code must agree; `allowed` as in --max-rejects."""
    run = only_run(out, outcome)
    counts, rejects = manifest(run)["counts"], rows(run, "rejects")
    for what in ("files", "rows", "groups"):
        assert counts[what]["read"] == counts[what]["used"] + counts[what]["rejected"], (what, counts)
    groups = {(row["cluster"], row["group_id"], row["time"], row["moment"]) for row in rows(run, "groups")}
    assert counts["groups"]["used"] == len(groups) == len(rows(run, "groups")), counts
    rejected = sum(counts[what]["rejected"] for what in ("files", "rows", "groups"))
    assert len(rejects) == rejected + counts["failures"], (counts, rejects)
    assert all(row["source"] and row["reason"] and row["reason"].isprintable() for row in rejects), rejects
    results = rows(run, "results")
    assert len(results) == len(groups) * (1 + strategies) - counts["failures"], counts
    assert {(row["cluster"], row["group_id"], row["time"], row["moment"]) for row in results} == groups
    assert outcome.code == (0 if len(rejects) <= allowed else 3), outcome
    for table in ("groups", "results", "attention", "rejects"):
        assert {row["run_id"] for row in rows(run, table)} <= {run.name}
    return run


def no_run(out, outcome, *words):
    """The job could not run, says why in a line at the end, and left at most unfinished folders."""
    assert outcome.code in (2, 3) and not finished(out), outcome
    assert not any(word in outcome.said for word in TRACE) and len(outcome.said.splitlines()) < 20, outcome
    assert all(word in outcome.said.splitlines()[-1] for word in words), outcome
    visible = [path for path in Path(out).glob("*") if not path.name.startswith((".", "run-"))]
    assert not visible


def rejected_sources(run):
    """The names of the files that a run rejects, each as often as it does."""
    return sorted(Path(row["source"]).name for row in rows(run, "rejects"))


def group_names(run):
    """The names of the groups that a run uses."""
    return sorted(row["group_id"] for row in rows(run, "groups"))


def text_of(groups, partitions=3):
    """What Kafka's tool shows of `groups`: names, each with one topic and one member."""
    return "\n".join([HEAD, *(
        f"{group} orders {at} {900 - at} 1000 {100 + at} {group}-m-1 /10.0.0.1 m" for group in groups
        for at in range(partitions))]) + "\n"


# --- the one short case --------------------------------------------------------------------------------------------

def test_a_cluster_loses_nothing(cluster, tmp_path):
    """A strategy that raises, a group given twice, a truncated file: all else is there, and these are named."""
    folder, fleet = tmp_path / "in", a_fleet(12)
    folder.mkdir()
    fleet[3] = fleet[3].replace(name="raises")
    parquet_of(folder / "a.parquet", fleet[:8])
    parquet_of(folder / "b.parquet", [*fleet[8:], fleet[2]])
    whole = Path(parquet_of(folder / "c.parquet", a_fleet(40))).read_bytes()
    (folder / "c.parquet").write_bytes(whole[:-100])
    outcome = on(cluster, [folder, "-s", "range", "-s", "unruly:raises"], tmp_path / "runs")
    run = account(tmp_path / "runs", outcome)
    counts = manifest(run)["counts"]
    assert counts["files"] == {"read": 3, "used": 2, "rejected": 1}
    assert counts["groups"] == {"read": 13, "used": 12, "rejected": 1} and counts["failures"] == 1
    by_file = {Path(row["source"]).name: row for row in rows(run, "rejects")}
    assert by_file.keys() == {"a.parquet", "b.parquet", "c.parquet"}
    assert by_file["a.parquet"]["group_id"] == "raises" and "out of luck" in by_file["a.parquet"]["reason"]
    assert by_file["b.parquet"]["position"] == 5 and "a.parquet, row 3" in by_file["b.parquet"]["reason"]
    moved = {row["group_id"]: row["moved"] for row in rows(run, "results") if row["strategy"] == "range"}
    assert moved == {group.name: compare(group, ["range"]).rows[0]["moved"] for group in fleet}


# --- addresses and folders -----------------------------------------------------------------------------------------

FOLDERS = "cluster=east/day=2026-11-20", "cluster=west/day=2026-11-21", "cluster=west/day=2026-11-22", "deep/er"


def laid_out(folder, form):
    """A file of three groups in each of `FOLDERS`; the names of the groups begin with its number. Some are skipped."""
    for at, inside in enumerate([*FOLDERS, "_hidden", ".staging"]):
        (folder / inside).mkdir(parents=True)
        names = [f"{at}-{n}" for n in range(3)]
        if form == "text":
            (folder / inside / "describe.txt").write_text(text_of(names))
        else:
            table = rows_of_groups([Group({"t": 3}, {"m": ["t"]}, name=name) for name in names])
            pq.write_table(table.drop_columns(["source", "position", "cluster", "time"]),
                           folder / inside / "part-0.parquet")
    return folder


def check_layout(run):
    """Clusters and days are those of the folders."""
    found = {row["group_id"]: row for row in rows(run, "groups")}
    assert sorted(found) == [f"{at}-{n}" for at in range(len(FOLDERS)) for n in range(3)]
    for name, row in found.items():
        parts = dict(part.split("=") for part in FOLDERS[int(name[0])].split("/") if "=" in part)
        if parts:
            assert row["cluster"] == parts["cluster"] and f"{row['time']:%Y-%m-%d}" == parts["day"], row


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "text"])
def test_folders_are_columns(spark, tmp_path, form):
    """Nested and hive layouts, as a path and as an address; text and Parquet."""
    folder = laid_out(tmp_path / "in", form)
    runs = [account(out, here([given, *TWO], out)) for given, out in (
        (folder, tmp_path / "path"), (f"file:{folder}", tmp_path / "address"), (f"file://{folder}", tmp_path / "url"))]
    check_layout(runs[0])
    for run in runs[1:]:
        assert content(run) == content(runs[0]) and manifest(run)["counts"] == manifest(runs[0])["counts"]


@pytest.mark.long
def test_output_to_an_address_of_this_machine(spark, tmp_path):
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet())
    runs = [account(tmp_path / name, here([path, *TWO], address)) for name, address in (
        ("a", tmp_path / "a"), ("b", f"file:{tmp_path}/b"), ("c", f"file://{tmp_path}/c"))]
    assert content(runs[0]) == content(runs[1]) == content(runs[2])


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "text"])
def test_another_file_system(tmp_path, form):
    """Hadoop's `viewfs:` names folders of this machine; Python's workers cannot open what it names."""
    folder = laid_out(tmp_path / "in", form)
    (folder / "deep" / "er" / "cut.parquet").write_bytes(b"PAR1, and then the end")
    (tmp_path / "out").mkdir()
    path = account(tmp_path / "path", outcome_of([folder, *TWO], tmp_path / "path"))
    links = [word for name in ("in", "out") for word in (
        "--conf", f"spark.hadoop.fs.viewfs.mounttable.m.link./{name}=file:{tmp_path / name}")]
    address = account(tmp_path / "out", outcome_of(["viewfs://m/in", *TWO, *links], "viewfs://m/out"))
    check_layout(address)
    assert manifest(path)["counts"] == manifest(address)["counts"]
    assert manifest(path)["counts"]["files"]["rejected"] == 1
    for table in ("groups", "results", "attention"):
        assert content(path)[table] == content(address)[table]
    assert [row["source"].startswith("viewfs://m/in/deep/er/cut") for row in rows(address, "rejects")] == [True]


# --- files that cannot be used -------------------------------------------------------------------------------------

def truncated(folder):
    whole = Path(parquet_of(folder / "bad.parquet", a_fleet(40))).read_bytes()
    (folder / "bad.parquet").write_bytes(whole[:len(whole) // 2])


def of_another_kind(folder):
    (folder / "bad.parquet").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))


def with_other_columns(folder):
    pq.write_table(pa.table({"name": ["a"], "value": [1]}), folder / "bad.parquet")


def with_other_types(folder):
    pq.write_table(pa.table({"group": [1], "members": ["m"], "topics": [2.5]}), folder / "bad.parquet")


def empty(folder):
    (folder / "bad.parquet").touch()


UNREADABLE = [truncated, of_another_kind, with_other_columns, with_other_types, empty]


@pytest.mark.long
@pytest.mark.parametrize("given", ["path", "address"])
@pytest.mark.parametrize("damaged", UNREADABLE, ids=lambda one: one.__name__)
def test_a_file_that_cannot_be_used_is_one_reject(spark, tmp_path, damaged, given):
    """It is named, none of its groups is used, and the other files are."""
    folder, out = tmp_path / "in", tmp_path / "runs"
    folder.mkdir()
    damaged(folder)
    for name, groups in (("a", a_fleet(6)), ("z", a_fleet(9)[6:])):
        parquet_of(folder / f"{name}.parquet", groups)
    run = account(out, here([folder if given == "path" else f"file:{folder}", *TWO], out))
    counts = manifest(run)["counts"]
    assert counts["files"] == {"read": 3, "used": 2, "rejected": 1} and rejected_sources(run) == ["bad.parquet"]
    assert counts["groups"] == {"read": 9, "used": 9, "rejected": 0}
    assert group_names(run) == sorted(group.name for group in a_fleet(9))


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "text"])
def test_a_file_name_that_is_not_utf8_is_one_reject(spark, tmp_path, form):
    folder, out = tmp_path / "in", tmp_path / "runs"
    folder.mkdir()
    path = Path(parquet_of(folder / "good.parquet", a_fleet(6)))
    other = path.read_bytes() if form == "parquet" else text_of(["other"]).encode()
    with open(os.fsencode(folder) + b"/caf\xe9." + form.encode(), "wb") as file:
        file.write(other)
    run = account(out, here([folder, *TWO], out))
    assert manifest(run)["counts"]["files"] == {"read": 2, "used": 1, "rejected": 1}
    assert group_names(run) == sorted(group.name for group in a_fleet(6))
    [reject] = rows(run, "rejects")
    assert "caf" in reject["source"] and reject["source"].isprintable()


@pytest.mark.long
def test_nothing_but_files_that_cannot_be_used(spark, tmp_path):
    """There is nothing to compare: no run, and the file is named."""
    (tmp_path / "in").mkdir()
    truncated(tmp_path / "in")
    outcome = here([tmp_path / "in", *TWO], tmp_path / "runs")
    no_run(tmp_path / "runs", outcome)
    assert "bad.parquet" in outcome.said


# --- values of other writers ---------------------------------------------------------------------------------------

MOMENT = datetime(2026, 11, 20, 6, 30, tzinfo=timezone.utc)
@pytest.mark.long
def test_the_latest_of_times_of_two_types(spark, tmp_path):
    """A moment as a timestamp and a later one as text are moments of one group."""
    folder, out = tmp_path / "in", tmp_path / "runs"
    folder.mkdir()
    first, second = at_times("", "", cluster="c")
    for name, group, time in (("a", first, pa.array([MOMENT], pa.timestamp("us", "UTC"))),
                              ("b", second, pa.array(["2026-11-20T06:31:00Z"]))):
        table = rows_of_groups([group])
        pq.write_table(table.drop_columns(["time", "moment"]).append_column("time", time), folder / f"{name}.parquet")
    run = account(out, here([folder, *TWO], out))
    assert [len(row["member_ids"]) for row in rows(run, "groups")] == [2]
    assert manifest(run)["counts"]["ignored"] == {"other moment": 1}


# --- rows ----------------------------------------------------------------------------------------------------------

@pytest.mark.long
@pytest.mark.parametrize("given", ["path", "address"])
def test_the_first_of_repeated_rows_is_used(spark, tmp_path, given):
    folder, out = tmp_path / "in", tmp_path / "runs"
    folder.mkdir()
    one, other = (Group({"t": 4}, dict.fromkeys(ids, ["t"]), name="twice", cluster="c") for ids in ("a", "bc"))
    parquet_of(folder / "b.parquet", [other, other, *a_fleet(5)])
    parquet_of(folder / "a.parquet", [one, other])
    run = account(out, here([folder if given == "path" else f"file:{folder}", *TWO], out))
    assert manifest(run)["counts"]["groups"] == {"read": 9, "used": 6, "rejected": 3}
    assert {row["group_id"]: row["member_ids"] for row in rows(run, "groups")}["twice"] == ["a"]
    rejects = {(Path(row["source"]).name, row["position"]): row for row in rows(run, "rejects")}
    assert rejects.keys() == {("a.parquet", 2), ("b.parquet", 1), ("b.parquet", 2)}
    assert all("a.parquet, row 1" in row["reason"] and row["group_id"] == "twice" for row in rejects.values())


@pytest.mark.long
@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_max_rejects_counts_rows_of_rejects(spark, tmp_path, most):
    """One row that is no group and one strategy that fails are two."""
    fleet, out = a_fleet(6), tmp_path / "runs"
    fleet[3] = fleet[3].replace(name="raises")
    path = parquet_of(tmp_path / "fleet.parquet", fleet, [(2, {})])
    outcome = here([path, "-s", "range", "-s", "unruly:raises", "--max-rejects", most], out)
    run = account(out, outcome, allowed=most)
    assert outcome.code == (0 if most >= 2 else 3) and len(rows(run, "rejects")) == 2
    assert f"{path}:3: " in outcome.said and "raises" in outcome.said


# --- strategies that fail ------------------------------------------------------------------------------------------

@pytest.mark.long
@pytest.mark.parametrize("name, options", [("raises", []), ("exits", []), ("hangs", ["--time-limit", "3"])])
def test_a_strategy_that_fails_loses_its_row(spark, tmp_path, name, options):
    """For two groups of sixty, in one batch: they are named, and each has the rows of the other strategies."""
    fleet, out = a_fleet(60), tmp_path / "runs"
    for at in (13, 44):
        fleet[at] = fleet[at].replace(name=f"{name} {at}")
    path = parquet_of(tmp_path / "fleet.parquet", fleet)
    run = account(out, here([path, "-s", "range", "-s", f"unruly:{name}", *options], out))
    counts, lost = manifest(run)["counts"], [f"{name} 13", f"{name} 44"]
    assert counts["groups"] == {"read": 60, "used": 60, "rejected": 0} and counts["failures"] == 2
    assert sorted((row["group_id"], row["position"]) for row in rows(run, "rejects")) == list(zip(lost, (14, 45)))
    assert all(name in row["reason"] for row in rows(run, "rejects"))
    strategies = {}
    for row in rows(run, "results"):
        strategies.setdefault(row["group_id"], set()).add(row["strategy"])
    assert all(len(found) == 3 - (group in lost) for group, found in strategies.items())
    assert all({"current", "range"} <= found for found in strategies.values())


@pytest.mark.long
def test_strategies_that_fail_on_a_cluster(cluster, tmp_path):
    """Three of them in one job, each for a group of its own."""
    fleet, out = a_fleet(60), tmp_path / "runs"
    for at, name in zip((13, 14, 44), ("raises", "exits", "hangs")):
        fleet[at] = fleet[at].replace(name=name)
    path = parquet_of(tmp_path / "fleet.parquet", fleet)
    strategies = [word for name in ("range", "unruly:raises", "unruly:exits", "unruly:hangs") for word in ("-s", name)]
    run = account(out, on(cluster, [path, *strategies, "--time-limit", 3], out), strategies=4)
    assert sorted(row["group_id"] for row in rows(run, "rejects")) == ["exits", "hangs", "raises"]


# --- shapes of the input -------------------------------------------------------------------------------------------

TRACED = """
from pathlib import Path

def traced(group):
    "Notes in which executor it runs: its working directory is named after it."
    Path({folder!r}, Path.cwd().name).touch()
    return group.previous
"""


@pytest.mark.long
def test_one_row_group_keeps_both_workers_busy(cluster, tmp_path):
    """20,000 groups in one row group, which is one split."""
    out, folder = tmp_path / "runs", tmp_path / "executors"
    folder.mkdir()
    (cluster.modules / "traced_strategy.py").write_text(TRACED.format(folder=str(folder)))
    one = rows_of_groups([Group({"t": 4}, {"m": ["t"], "n": ["t"]}, name="g", cluster="c")])
    table = one.take(np.zeros(20_000, int))
    table = table.set_column(
        table.column_names.index("group_id"), "group_id", pa.array([f"g{n}" for n in range(20_000)]))
    pq.write_table(table, tmp_path / "fleet.parquet", row_group_size=20_000)
    outcome = on(cluster, [tmp_path / "fleet.parquet", "-s", "range", "-s", "traced_strategy:traced"], out)
    run = account(out, outcome)
    assert manifest(run)["counts"]["groups"]["used"] == 20_000
    assert len(list(folder.iterdir())) == 2


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "text"])
def test_many_small_files_give_few(spark, tmp_path, form):
    """2,000 files of one group each."""
    folder, out = tmp_path / "in", tmp_path / "runs"
    folder.mkdir()
    for number in range(2_000):
        if form == "text":
            (folder / f"{number}.txt").write_text(text_of([f"g{number}"]))
        else:
            parquet_of(folder / f"{number}.parquet", [Group({"t": 3}, {"m": ["t"]}, name=f"g{number}", cluster="c")])
    run = account(out, here([folder, *TWO], out))
    counts = manifest(run)["counts"]
    assert counts["files"]["used"] == counts["groups"]["used"] == 2_000
    for table in ("groups", "results", "attention"):
        assert len(list((run / table).rglob("*.parquet"))) <= 8, table


def large_groups(count, partitions):
    """Groups with one topic of `partitions` partitions each, whose offsets differ."""
    random = np.random.default_rng(0)
    one = rows_of_groups([Group({"t": partitions}, {f"m{n}": ["t"] for n in range(5)}, owned={
        f"m{n}": [("t", at) for at in range(n, partitions, 5)] for n in range(5)}, name="g", cluster="c")])
    table = one.take(np.zeros(count, int)).combine_chunks()
    end = random.integers(0, 10**12, count * partitions)
    lists = pa.array(np.arange(count + 1) * partitions, pa.int32())
    found = table["topics"].chunk(0)
    fields = list(found.type.value_type)
    columns = {field.name: pc.struct_field(found.flatten(), field.name) for field in fields}
    columns["end"] = pa.ListArray.from_arrays(lists, pa.array(end))
    columns["committed"] = pa.ListArray.from_arrays(lists, pa.array(end - random.integers(0, 1_000, len(end))))
    topics = pa.StructArray.from_arrays(list(columns.values()), fields=fields)
    topics = pa.ListArray.from_arrays(found.offsets, topics)
    names = pa.array([f"g{n}" for n in range(count)])
    for name, column in (("group_id", names), ("topics", topics)):
        table = table.set_column(table.column_names.index(name), name, column)
    return table.cast(GROUP_SCHEMA)


@pytest.mark.long
def test_row_groups_of_large_groups_fit_into_the_usual_heap(tmp_path):
    """4,000 groups of 5,000 partitions in two row groups of about 170 MiB, with the heap that we choose."""
    out = tmp_path / "runs"
    pq.write_table(large_groups(4_000, 5_000), tmp_path / "fleet.parquet", row_group_size=2_000)
    assert pq.read_metadata(tmp_path / "fleet.parquet").row_group(0).total_byte_size > 150 << 20
    run = account(out, outcome_of([tmp_path / "fleet.parquet", "-s", "range"], out, seconds=900), strategies=1)
    assert manifest(run)["counts"]["groups"]["used"] == 4_000


@pytest.mark.long
def test_one_giant_file_of_text(spark, tmp_path):
    """200,000 rows in one file, one of which is damaged."""
    out, path = tmp_path / "runs", tmp_path / "describe.txt"
    text = text_of([f"g{n}" for n in range(2_000)], 100).splitlines()
    text[100_000] = text[100_000].replace(" orders ", " orders x ")
    path.write_text("\n".join(text) + "\n")
    run = account(out, here([path, *TWO], out))
    counts = manifest(run)["counts"]
    assert counts["rows"] == {"read": 200_000, "used": 199_999, "rejected": 1}
    assert counts["groups"] == {"read": 2_000, "used": 2_000, "rejected": 0}
    [reject] = rows(run, "rejects")
    assert (reject["source"], reject["position"]) == (str(path), 100_001)


# --- the user's Spark ----------------------------------------------------------------------------------------------

@pytest.mark.long
def test_another_master_than_that_of_the_active_session(spark, tmp_path):
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet(3))
    no_run(tmp_path / "runs", here([path, *TWO, "--master", "local[1]"], tmp_path / "runs"), "local[1]", "local[2,4]")


def in_force(run):
    """The settings that a run recorded."""
    return set(map(str, manifest(run)["settings"].values()))


@pytest.mark.long
def test_settings_of_the_command_line_beat_those_of_the_file(tmp_path):
    """And both are recorded, the file's where the command line has none."""
    path, out = parquet_of(tmp_path / "fleet.parquet", a_fleet(6)), tmp_path / "runs"
    environment = driver_environment(tmp_path / "conf", {
        "spark.driver.memory": "701m", "spark.sql.shuffle.partitions": "5", "spark.master": "local[1]",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "11"})
    words = ["--conf", "spark.driver.memory=702m", "--conf", "spark.sql.shuffle.partitions=7"]
    run = account(out, outcome_of([path, *TWO, *words], out, environment))
    assert {"702m", "7", "local[1]", "11"} <= in_force(run) and not {"701m", "5"} & in_force(run)


@pytest.mark.long
def test_the_master_of_the_command_line_beats_the_other_ways(tmp_path):
    path, out = parquet_of(tmp_path / "fleet.parquet", a_fleet(6)), tmp_path / "runs"
    environment = driver_environment(tmp_path / "conf", {"spark.master": "local[1]"})
    words = ["--master", "local[2]", "--conf", "spark.driver.memory=700m"]
    assert "local[2]" in in_force(account(out, outcome_of([path, *TWO, *words], out, environment)))


@pytest.mark.long
@pytest.mark.parametrize("setting", ["spark.sql.shuffle.partitions", "=3", "x"])
def test_a_setting_must_have_a_name_and_a_value(tmp_path, setting):
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet(3))
    outcome = outcome_of([path, *TWO, "--conf", setting], tmp_path / "runs")
    no_run(tmp_path / "runs", outcome)
    assert outcome.code == 2


MINE = "def mine(group):\n    'Moves nothing.'\n    return group.previous\n"


@pytest.mark.long
def test_strategies_in_files_of_the_user(cluster, tmp_path):
    """Neither the driver nor a worker finds the module without --py-files."""
    path, out = parquet_of(tmp_path / "fleet.parquet", a_fleet()), tmp_path / "runs"
    module = tmp_path / "shipped_one.py"
    module.write_text(MINE)
    words = [path, "-s", "range", "-s", "shipped_one:mine"]
    assert on(cluster, words, out).code == 2 and not finished(out)
    account(out, on(cluster, [*words, "--py-files", module], out))


@pytest.mark.long
def test_workers_without_the_package(cluster, tmp_path):
    """Their Python has the libraries alone; the package and the strategy come as archives."""
    path, out = parquet_of(tmp_path / "fleet.parquet", a_fleet()), tmp_path / "runs"
    venv.create(tmp_path / "bare", symlinks=True)
    [packages] = (tmp_path / "bare" / "lib").glob("python*/site-packages")
    # a .pth file in a folder that a .pth file names is not read: that of an editable installation
    (packages / "libraries.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
    python = str(tmp_path / "bare" / "bin" / "python")
    found = subprocess.run([python, "-c", "import pyspark, pyarrow, kafka_assign"], cwd=tmp_path, capture_output=True,
                           text=True, env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
    assert "No module named 'kafka_assign'" in found.stderr
    archive = Path(shutil.make_archive(str(tmp_path / "package"), "zip", ROOT, "kafka_assign"))
    with ZipFile(tmp_path / "strategies.zip", "w") as file:
        file.writestr("shipped_two.py", MINE)
    conf = [word for name, value in {"spark.executorEnv.PYTHONPATH": "", "spark.pyspark.python": python,
                                     "spark.pyspark.driver.python": sys.executable}.items()
            for word in ("--conf", f"{name}={value}")]
    words = [path, "-s", "range", "-s", "shipped_two:mine", *conf]
    no_run(out, on(cluster, [*words, "--py-files", tmp_path / "strategies.zip"], out), "kafka_assign")
    account(out, on(cluster, [*words, "--py-files", f"{tmp_path / 'strategies.zip'},{archive}"], out))


@pytest.mark.long
@pytest.mark.needs("connect")
@pytest.mark.parametrize("form", ["parquet", "text"])
def test_spark_connect(spark, connect, tmp_path, form):
    """Content and account are those of a session of this process; a strategy and a damaged file included."""
    folder, module = laid_out(tmp_path / "in", form), tmp_path / "shipped_three.py"
    fleet = [*a_fleet(30), Group({"t": 1}, {"m": ["t"]}, name="raises")]
    parquet_of(folder / "fleet.parquet", [*fleet, fleet[4]])
    truncated(folder)
    module.write_text(MINE.replace("mine", "more"))
    words = [folder, "-s", "range", "-s", "unruly:raises"]
    local = account(tmp_path / "local", here(words, tmp_path / "local"))
    environment = driver_environment(tmp_path / "conf", {})
    remote = account(tmp_path / "remote", outcome_of([*words, "--master", connect], tmp_path / "remote", environment))
    assert content(remote) == content(local) and manifest(remote)["counts"] == manifest(local)["counts"]
    assert len(rows(remote, "rejects")) == 3 and connect in in_force(remote)
    out, shipped = tmp_path / "shipped", ["-s", "shipped_three:more", "--py-files", module, "--master", connect]
    account(out, outcome_of([folder / "fleet.parquet", *shipped, "--max-rejects", 1], out, environment),
            strategies=1, allowed=1)


@pytest.mark.long
@pytest.mark.needs("connect")
def test_a_connect_server_that_does_not_answer_is_one_line(tmp_path):
    path, out = parquet_of(tmp_path / "fleet.parquet", a_fleet(3)), tmp_path / "runs"
    no_run(out, outcome_of([path, *TWO, "--master", "sc://127.0.0.1:1"], out), "sc://127.0.0.1:1")


# --- disks of workers ----------------------------------------------------------------------------------------------

@pytest.mark.long
def test_a_cluster_gives_the_same_content(spark, cluster, tmp_path):
    """In a folder that all share; with a session that compiles, and with more tasks than rows."""
    folder = laid_out(tmp_path / "in", "text")
    parquet_of(folder / "fleet.parquet", a_fleet(60))
    truncated(folder)
    words = [folder, *TWO, "-s", "lag", "-s", "roundrobin"]
    local = account(tmp_path / "local", here(words, tmp_path / "local"), strategies=4)
    compiles = "--conf", "spark.sql.codegen.wholeStage=true", "--conf", "spark.sql.codegen.factoryMode=FALLBACK"
    run = account(tmp_path / "runs", on(cluster, [*words, *compiles], tmp_path / "runs"), strategies=4)
    assert content(run) == content(local) and manifest(run)["counts"] == manifest(local)["counts"]
    assert {cluster.master, "true", "FALLBACK"} <= in_force(run)


@pytest.mark.long
@pytest.mark.parametrize("as_address", [False, True], ids=["path", "address"])
def test_a_folder_that_workers_do_not_share_is_no_place_for_a_run(cluster, tmp_path, as_address):
    """Each worker writes to a disk of its own: the driver finds no rows, and says so in a line."""
    path, out = parquet_of(tmp_path / "fleet.parquet", a_fleet()), cluster.private / tmp_path.name
    outcome = on(cluster, [path, *TWO], f"file:{out}" if as_address else out)
    no_run(cluster.folder / "private" / tmp_path.name, outcome)
    assert outcome.code == 3 and any(word in outcome.said.splitlines()[-1] for word in ("rows", "share", "workers"))


@pytest.mark.long
def test_inputs_that_workers_do_not_share_are_not_silently_empty(cluster, tmp_path):
    """Workers cannot open the Parquet that the driver listed: no run."""
    own = cluster.folder / "private" / tmp_path.name
    own.mkdir()
    parquet_of(own / "a.parquet", a_fleet(6))
    (own / "b.txt").write_text(text_of(["text"]))
    outcome, out = on(cluster, [cluster.private / tmp_path.name, *TWO], tmp_path / "runs"), tmp_path / "runs"
    assert outcome.code == 3
    no_run(out, outcome)


STARTS_ONE = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from spark_cluster import standalone_cluster
with standalone_cluster(Path(sys.argv[1])) as cluster:
    print(cluster.master.rpartition(":")[2], flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda one: one.name)
def test_the_cluster_ends_with_its_starter(tmp_path, number):
    """However that ends; nothing of it is left."""
    folder = tmp_path / "cluster"
    with subprocess.Popen([sys.executable, "-c", STARTS_ONE, folder, ROOT / "tests", ROOT / "tools"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as starter:
        port = int(starter.stdout.readline())
        assert listens(port) and len(list(folder.glob("*-work"))) == 3
        starter.send_signal(number)
        wait_for(lambda: not listens(port) and not list(folder.glob("*-work")), 60)


# --- processes that die --------------------------------------------------------------------------------------------

WAITING = """
import os
import time
from pathlib import Path

FOLDER = Path({folder!r})


def waits(group):
    "Leaves the number of its process and waits until it may go on."
    end = time.monotonic() + 240
    while not (FOLDER / "go").exists() and time.monotonic() < end:
        (FOLDER / f"at-{{os.getpid()}}").touch()
        time.sleep(0.1)
    return group.previous
"""


class Waiting(NamedTuple):
    """A strategy that waits in workers of the cluster until the file `go` is there."""

    folder: Path
    strategy: str

    def processes(self):
        """The numbers of the processes in which it has run."""
        return [int(path.name.removeprefix("at-")) for path in self.folder.glob("at-*")]

    def alive(self):
        """Those of its processes that are still there."""
        return [pid for pid in self.processes() if Path(f"/proc/{pid}").exists()]


@pytest.fixture
def waiting(cluster, tmp_path):
    """A `Waiting` strategy for this test alone."""
    folder, name = tmp_path / "waiting", f"waiting_{random.getrandbits(32):x}"
    folder.mkdir()
    (cluster.modules / f"{name}.py").write_text(WAITING.format(folder=str(folder)))
    yield Waiting(folder, f"{name}:waits")
    (cluster.modules / f"{name}.py").unlink()


@contextmanager
def at_work(cluster, waiting, words, out):
    """A job on the cluster while its strategy waits."""
    words = [*words, "-s", "range", "-s", waiting.strategy, "--master", cluster.master]
    with started(words, out, cluster.environment, cluster.folder) as job:
        wait_for(waiting.processes, 180, job)
        yield job


def executor_of(pid):
    """The number of the executor that a process belongs to."""
    for one in ancestors(pid):
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{one}/cmdline").read_bytes():
            return one
    raise AssertionError("a strategy must run below an executor")


@pytest.mark.long
@pytest.mark.parametrize("killed", ["executor", "python"])
def test_a_process_that_dies_costs_a_retry(cluster, waiting, tmp_path, killed):
    """The content is that of a job in which none died."""
    path, out = parquet_of(tmp_path / "fleet.parquet", a_fleet(60)), tmp_path / "runs"
    with at_work(cluster, waiting, [path], out) as job:
        [pid, *_] = waiting.processes()
        _, worker, *_ = ancestors(pid)                  # the strategy runs in a child of Spark's worker
        os.kill(executor_of(pid) if killed == "executor" else worker, signal.SIGKILL)
        wait_for(lambda: pid not in waiting.alive(), 60)
        (waiting.folder / "go").touch()
        _, said = job.communicate(timeout=400)
        run = account(out, Outcome(job.returncode, said))
    calm = account(tmp_path / "calm", on(cluster, [path, "-s", "range", "-s", waiting.strategy], tmp_path / "calm"))
    assert content(run) == content(calm) and manifest(run)["counts"] == manifest(calm)["counts"]


def listing(folder):
    """All below a folder, with sizes and times of change."""
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.mark.long
def test_what_a_killed_driver_leaves_is_no_run_and_stays(cluster, waiting, tmp_path):
    """The next job touches nothing but its own folder, and so does one that runs at the same time."""
    path, out = parquet_of(tmp_path / "fleet.parquet", a_fleet(60)), tmp_path / "runs"
    account(out, on(cluster, [path, *TWO], out))
    for name in ("mine", ".hidden", "run-of-last-year"):
        (out / name).mkdir()
        (out / name / "notes.txt").write_text("keep\n")
    (out / "run.txt").write_text("keep\n")
    entries = set(out.iterdir())
    with at_work(cluster, waiting, [path], out) as job:
        [left] = set(out.iterdir()) - entries
        assert outcome_of([path, *TWO], out).code == 0 and left.exists()
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    wait_for(lambda: not waiting.alive(), 60)
    before = listing(out)
    assert on(cluster, [path, *TWO], out).code == 0 and len(finished(out)) == 3
    after = listing(out)
    assert {path: after[path] for path in before} == before


@pytest.mark.long
def test_a_job_that_waits_for_resources_says_so(cluster, tmp_path):
    """No worker has 2 GB: Spark's own warning reaches the user."""
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet(3))
    words = [path, *TWO, "--master", cluster.master, "--conf", "spark.executor.memory=2g"]
    with started(words, tmp_path / "runs", cluster.environment, cluster.folder) as job:
        assert any("has not accepted any resources" in line for line in job.stderr)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_a_signal_ends_a_job_in_a_line(cluster, waiting, tmp_path, number):
    """No run, no trace of Java or Python, and nothing is at work on the cluster any more."""
    path, out = parquet_of(tmp_path / "fleet.parquet", a_fleet(12)), tmp_path / "runs"
    with at_work(cluster, waiting, [path], out) as job:
        job.send_signal(number)
        _, said = job.communicate(timeout=60)
        assert job.returncode not in (0, None) and not any(word in Outcome(0, said).said for word in TRACE), said
        assert Outcome(0, said).said.splitlines()[-1].startswith("kafka-assign: "), said
    assert not finished(out)
    wait_for(lambda: not waiting.alive(), 60)
