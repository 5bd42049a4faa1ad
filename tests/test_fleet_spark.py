"""A fleet with Spark: the job says what the kernel says, loses nothing, and leaves whole runs or none."""

import io
import json
import shutil
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from conftest import LONG
from groups import rows_of_groups
from typer.testing import CliRunner

from kafka_assign import Group, compare, rank, read_groups
from kafka_assign.cli.app import program
from kafka_assign.cli.ranking import show_run
from kafka_assign.fleet.codec import group_from_row
from kafka_assign.fleet.kernel import compare_batches
from kafka_assign.fleet.schemas import COMPARE_TABLES, GROUP_SCHEMA, FleetError
from kafka_assign.fleet.session import set_for_job
from kafka_assign.groups.notes import instant
from kafka_assign.ranking.rules import NEEDS

pytestmark = pytest.mark.needs("spark", "java")

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from fleets import fleet  # noqa: E402

STRATEGIES = ["range", "roundrobin", "fair", "lag"]
HOSTILE = ["<script>alert(1)</script>", "[red]x[/b]", "\x1b[2J", "a\nb", "\u202eb", "n" * 249, "'; --", "\U0001F600",
           "\uff41"]
CAPTURE = """
GROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST       CLIENT-ID
billing  orders  0          3004            3012            8    web-1-5c76   /10.0.0.1  web
billing  orders  1          3004            3012            8    web-1-5c76   /10.0.0.1  web
billing  orders  x          3004            3012            8    web-1-5c76   /10.0.0.1  web
"""


def run_of(*arguments, **options):
    from kafka_assign.fleet.job import compare_fleet
    return compare_fleet(*arguments, **{"strategies": STRATEGIES} | options)


def hashes(run):
    return {name: (table["rows"], table["hash"]) for name, table in run.tables.items() if name != "changes"}


def a_fleet(count=40):
    """Groups of all sizes, some in need, some of the broker's, some with nothing in them."""
    fleet = []
    for i in range(count):
        topics = {f"t{n}": (i + n) % 9 for n in range(i % 4)}
        ids = [f"m{n}" for n in range(i % 5)]
        owned = {ids[0]: [(topic, 0) for topic in topics]} if ids else {}
        fleet.append(Group(
            topics, dict.fromkeys(ids, list(topics)), owned=owned, name=f"g{i}", cluster=f"c{i % 3}",
            type="consumer" if i % 7 == 6 else "classic", lag={topic: list(range(n)) for topic, n in topics.items()}))
    return fleet


def parquet_of(path, fleet, broken=()):
    rows = rows_of_groups(fleet).to_pylist()
    for at, row in broken:
        rows.insert(at, row)
    pq.write_table(pa.Table.from_pylist(rows, GROUP_SCHEMA), path, row_group_size=10)
    return str(path)


# --- the job says what the kernel says -----------------------------------------------------------------------------

def test_spark_changes_nothing(spark, tmp_path):
    fleet = a_fleet()
    run = run_of(parquet_of(tmp_path / "fleet.parquet", fleet), tmp_path / "runs", spark=spark)
    plain = pa.Table.from_batches(compare_batches(rows_of_groups(fleet).to_batches(), STRATEGIES)).to_pylist()
    of_run = {"run_id": run.path.name, "run_date": datetime.strptime(run.path.name[4:12], "%Y%m%d").date()}
    key = ["cluster", "group_id", "time", "moment"]
    expected = [of_run | {name: row[name] for name in key} | result | {"inferred": row["inferred"]}
                for row in plain for result in row["results"]]
    place = {name: at for at, name in enumerate(["current", *STRATEGIES])}
    in_order = {"key": lambda row: (row["cluster"], row["group_id"], place[row["strategy"]])}
    assert sorted(run.table("results").to_pylist(), **in_order) == sorted(expected, **in_order)
    members = {(row["cluster"], row["group_id"]): row["member_ids"] for row in run.table("groups").to_pylist()}
    assert members == {(group.cluster, group.name): list(group.members) for group in fleet}
    assert run.counts["groups"] == {"read": 40, "used": 40, "rejected": 0}
    assert run.counts["failures"] == 0 and run.counts["files"] == {"read": 1, "used": 1, "rejected": 0}


def test_the_ranking_of_a_plain_process(spark, tmp_path):
    """`rank` and the job say the same of 1,000 groups, all needs and remedies in one order."""
    rows = fleet(1_000, 30).to_pylist()
    pq.write_table(pa.Table.from_pylist(rows, GROUP_SCHEMA), tmp_path / "fleet.parquet", row_group_size=100)
    run = run_of(tmp_path / "fleet.parquet", tmp_path / "runs", spark=spark, everything=True)
    plain = rank(map(group_from_row, rows), STRATEGIES, everything=True)
    assert run.ranking() == plain and len(plain) > 200
    assert run.ranking(3) == plain[:3]
    assert len({row["kind"] for row in plain}) > 3


def test_all_inputs_at_once(spark, tmp_path):
    """Text with a bad line, JSON Lines, and Parquet with rows that cannot be used: everything is accounted for."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "billing.txt").write_text(CAPTURE)
    (folder / "notes.txt").write_text("call Anna\n")
    documents = [group.replace(cluster="json").to_json() for group in a_fleet(3)]
    documents.append('{"topics": {"t": -1}, "members": []}')
    (tmp_path / "groups.jsonl").write_text("\n".join(documents))
    twice = {"group_id": "twice", "members": [{"id": "m"}, {"id": "m"}]}
    broken = [(4, twice), (11, {"group_id": "shared", "type": "share"}), (12, {})]
    parquet_of(folder / "fleet.parquet", a_fleet(20), broken)
    run = run_of([folder, str(tmp_path / "groups.jsonl")], tmp_path / "runs", spark=spark, migrate=True)
    assert run.counts["rows"] == {"read": 7, "used": 5, "rejected": 2}
    assert run.counts["groups"] == {"read": 26, "used": 24, "rejected": 2} and run.rejected == 4
    assert run.counts["ignored"]["share group"] == 1 and run.counts["ignored"]["text"] == 1
    rejects = {(Path(row["source"]).name, row["position"]): row["reason"] for row in run.table("rejects").to_pylist()}
    assert rejects["fleet.parquet", 5] == "group twice: member ids must differ (got m twice)"
    assert rejects["fleet.parquet", 13] == "a row without a name: a group must have a name (got none)"
    assert {("billing.txt", 5), ("groups.jsonl", 4)} < rejects.keys() and len(rejects) == 4
    assert run.table("results").num_rows == 24 * (1 + len(STRATEGIES))
    for name, schema in COMPARE_TABLES.items():
        assert run.table(name).schema.equals(schema)


def test_a_second_run_has_the_same_content(spark, tmp_path):
    """In any order of the rows, in one file or several, with numbers of other widths, long lists and long strings."""
    from test_fleet import of_other_writers
    fleet = a_fleet(60)
    first = run_of(parquet_of(tmp_path / "fleet.parquet", fleet), tmp_path / "runs", spark=spark)
    (tmp_path / "parts").mkdir()
    parquet_of(tmp_path / "parts" / "b.parquet", fleet[:25][::-1])
    rows = rows_of_groups(fleet[25:]).to_pylist()
    for begin, bits in enumerate([pa.int32(), pa.int64()]):
        types = [column.with_type(of_other_writers(column.type, bits)) for column in GROUP_SCHEMA]
        pq.write_table(pa.Table.from_pylist(rows[begin::2], pa.schema(types)), tmp_path / "parts" / f"{bits}.parquet")
    parts = run_of(tmp_path / "parts", tmp_path / "runs", spark=spark)
    assert hashes(first) == hashes(parts)
    assert len(list((tmp_path / "runs").iterdir())) == 2 and first.path.name.startswith("run-")


def test_hostile_paths(spark, tmp_path):
    """Spark reads stars and brackets as patterns, and writes blanks as %20; a name is a name, of a group, too."""
    fleet = [Group({name: 2}, {name: [name]}, name=name, cluster=name) for name in HOSTILE]
    folder, paths = tmp_path, [parquet_of(tmp_path / "hostile.parquet", fleet)]
    for at, name in enumerate(["a b+c%41#d", "br[1]{x}", "st*r?", "back\\slash", "ü\U0001F600", "comma,x"]):
        folder = folder / name
        folder.mkdir()
        paths.append(parquet_of(folder / f"{name}.parquet", a_fleet(12)[at * 2:at * 2 + 2], [(0, {})]))
    run = run_of(paths, folder / "runs", spark=spark, strategies=["range"])
    assert run.counts["groups"] == {"read": 18 + len(HOSTILE), "used": 12 + len(HOSTILE), "rejected": 6}
    assert sorted(run.table("rejects")["source"].to_pylist()) == sorted(paths[1:])
    assert set(HOSTILE) < {*run.table("groups")["group_id"].to_pylist()}


def test_the_command_line(spark, tmp_path, monkeypatch):
    """In this process: what it prints is the run that it wrote; the tests of interrupts below run it as a program."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.txt").write_text(
        CAPTURE + "billing  orders  2          10              2910            2900 etl-3d14     /10.0.0.2  etl\n")
    members = [{"id": "a", "topics": ["t"], "owned": [["t", 0]]}, {"id": "b", "topics": ["t"]}]
    idle = {"name": "idle", "topics": {"t": 1}, "members": members}
    (tmp_path / "in" / "more.jsonl").write_text(json.dumps(idle) + "\n")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(program, "fleet compare in -o runs -s range -s fair --format json".split())
    answer = json.loads(done.stdout)
    assert done.exit_code == 3 and "in/bad.txt:5: " in done.stderr
    assert answer["counts"]["groups"] == {"read": 2, "used": 2, "rejected": 0}
    assert (tmp_path / answer["run"] / "run.json").exists()
    assert [(need["rank"], need["group_id"]) for need in answer["ranking"]] == [(1, "billing"), (2, "idle")]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [Path(answer["run"]).name]


def test_samples(spark, tmp_path, capsys, monkeypatch):
    """Real captures and generated groups: everything is used, and the ranking is that of a plain process."""
    joins = [["clicks", "impressions"]]
    run = run_of(ROOT / "samples", tmp_path / "runs", spark=spark, strategies=None, joins=joins)
    assert run.counts["rows"]["rejected"] == 0 and run.counts["groups"]["used"] == len(run.table("groups"))
    assert run.ranking() == rank(read_groups(ROOT / "samples"), joins=joins)
    found = Counter(row["need"] for row in run.ranking())
    assert {need: run.tables["attention"][need] for need in NEEDS} == dict.fromkeys(NEEDS, 0) | found
    monkeypatch.setenv("COLUMNS", "80")
    show_run(run, "table")
    first, _, _ = capsys.readouterr().out.partition(" 2  ")
    assert f"```\n{first}```" in (ROOT / "README.md").read_text()             # what `make run` ends with
    assert json.loads((run.path / "run.json").read_text())["strategies"] == run.manifest["strategies"]


def test_a_strategy_that_raises_loses_its_rows(spark, tmp_path):
    """`fussy` raises if a topic has three partitions: the other rows of those groups are what they are without it."""
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet())
    run = run_of(path, tmp_path / "runs", spark=spark, strategies=["range", "test_fleet:fussy", "test_fleet:wild"])
    assert run.manifest["strategies"] == ["range", "fussy", "test_fleet:wild"]
    unfit = sorted(group.name for group in a_fleet() if 3 in group.partitions)
    assert run.counts["groups"] == {"read": 40, "used": 40, "rejected": 0} and run.counts["failures"] == len(unfit) > 0
    rejects = run.table("rejects").to_pylist()
    assert sorted(row["group_id"] for row in rejects) == unfit
    assert {(row["scope"], row["strategy"], row["source"]) for row in rejects} == {("strategy", "fussy", path)}
    results = run.table("results").to_pylist()
    answered = [row["group_id"] for row in results if row["strategy"] == "fussy"]
    assert sorted(answered) == sorted({group.name for group in a_fleet()} - {*unfit})
    moved = {result["group_id"]: result["moved"] for result in results if result["strategy"] == "range"}
    assert moved == {group.name: compare(group, ["range"]).rows[0]["moved"] for group in a_fleet()}


def test_needs_are_new_persist_or_are_resolved(spark, tmp_path):
    """Against the last complete run in the same folder; a need is the same if its cluster, group and kind are."""
    idle = {"topics": {"t": 4}, "members": {"a": ["t"], "b": ["t"]}, "owned": {"a": [("t", n) for n in range(4)]}}
    cured = idle | {"owned": {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}}

    def run_on(**groups):
        fleet = [Group(**about, name=name, cluster="c") for name, about in groups.items()]
        run = run_of(parquet_of(tmp_path / "fleet.parquet", fleet), tmp_path / "runs", spark=spark)
        rows = run.table("changes").to_pylist()
        assert {row["change"]: run.tables["changes"][row["change"]] for row in rows} == Counter(
            row["change"] for row in rows)
        needs = {(row["cluster"], row["group_id"], row["need"]) for row in run.ranking()}
        assert needs == {(row["cluster"], row["group_id"], row["need"]) for row in rows if row["change"] != "resolved"}
        return run, {row["group_id"]: (row["change"], row["since"]) for row in rows}
    first, changes = run_on(one=idle, two=idle)
    assert changes == dict.fromkeys(("one", "two"), ("new", first.path.name))
    (tmp_path / "runs" / "run-29990101T000000Z-aaaaaa").mkdir()             # no run: it has no manifest
    second, changes = run_on(one=idle, two=cured, three=idle)
    assert changes == {"one": ("persisting", first.path.name), "two": ("resolved", first.path.name),
                       "three": ("new", second.path.name)}
    third, changes = run_on(one=idle, three=cured)
    assert changes == {"one": ("persisting", first.path.name), "three": ("resolved", second.path.name)}


def test_needs_of_groups_that_are_not_in_a_run(spark):
    """They are neither resolved nor forgotten."""
    from kafka_assign.fleet.tables import changed_needs

    def frame(names, *rows):
        return spark.createDataFrame(list(rows), ", ".join(f"{name} {'int' if name == 'kind' else 'string'}"
                                                           for name in names.split()))
    now = frame("cluster group_id need kind", ("B", "g", "idle", 2), ("B", "new", "idle", 2))
    groups = frame("cluster group_id", ("B", "g"), ("B", "new"), ("B", "cured"))
    before = frame("cluster group_id need kind change since", *((*key, "idle", 2, change, "one") for *key, change in (
        ("A", "g", "new"), ("B", "g", "unchecked"), ("B", "cured", "new"), ("B", "old", "resolved"))))
    found = {(row.cluster, row.group_id): (row.change, row.since)
             for row in changed_needs(now, groups, before, "two").collect()}
    assert found == {("A", "g"): ("unchecked", "one"), ("B", "g"): ("persisting", "one"), ("B", "new"): ("new", "two"),
                     ("B", "cured"): ("resolved", "one")}


def test_a_run_that_cannot_be_read_changes_nothing(spark, tmp_path):
    """Neither a damaged manifest, nor one that is unreadable now, nor tables that are gone; none is removed."""
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet(3))
    first = run_of(path, tmp_path / "runs", spark=spark, strategies=["range"])
    for name, manifest in {"a": b"{", "b": b"[]", "c": b"\xff", "d": None}.items():
        folder = tmp_path / "runs" / f"run-29990101T000000Z-{name * 6}"
        (folder / "run.json" if manifest is None else folder).mkdir(parents=True)      # reading a folder is an error
        if manifest is not None:
            (folder / "run.json").write_bytes(manifest)
    shutil.rmtree(first.path / "changes")
    before = set((tmp_path / "runs").iterdir())
    second = run_of(path, tmp_path / "runs", spark=spark, strategies=["range"])
    assert {row["change"] for row in second.table("changes").to_pylist()} <= {"new"}
    assert set((tmp_path / "runs").iterdir()) == before | {second.path}


# --- moments, repeated rows, joins ---------------------------------------------------------------------------------

def at_times(*times, name="g", **about):
    """The same group at several times, with more members each time."""
    return [Group({"t": 9}, {f"m{n}": ["t"] for n in range(1, at + 2)}, name=name, time=time, **about)
            for at, time in enumerate(times)]


def used_moments(run):
    rows = run.table("groups").sort_by([("group_id", "ascending"), ("time", "ascending")]).to_pylist()
    return [(row["group_id"], row["time"], [len(row[name]) for name in ("member_ids", "members")]) for row in rows]


TIMES = ["", "2026-11-20", "2026-11-19T23:30:00-02:00", "2026-11-20T02:00Z"]


def test_moments_of_tables(spark, tmp_path):
    """The latest is used, wherever it is; the others are counted."""
    at, expected = "2026-11-20T01:45", [("g", instant(TIMES[2]), [3, 3])]
    for file, several in (("b", at_times(*TIMES)[::-1]), ("a", at_times("", name="h"))):
        parquet_of(tmp_path / f"{file}.parquet", several)
    run = run_of(tmp_path, tmp_path / "runs", spark=spark, strategies=["range"], at=at)
    assert used_moments(run) == expected and run.manifest["at"] == at
    counts = run.counts["groups"], run.counts["ignored"].get("other moment", 0)
    assert counts == ({"read": len(expected), "used": len(expected), "rejected": 0}, 5 - len(expected))


def test_moments_of_text(spark, tmp_path):
    """The latest is used; a line and the counts tell of the others; options of `rank` mean the same."""
    for at, group in enumerate(at_times("2026-11-20", "2026-11-21", "2026-11-22"), 1):
        (tmp_path / f"{at}.json").write_text(group.replace(end={"t": [9] * 9}).to_json())
    said, options = [], {"cluster": "east", "reset": "none"}
    run = run_of(tmp_path, tmp_path / "runs", spark=spark, strategies=["range"], progress=said.append, **options)
    assert used_moments(run) == [("g", instant("2026-11-22"), [3, 3])]
    assert run.counts["groups"]["read"] == 1 and run.counts["ignored"] == {"other moment": 2}
    assert "several moments in the input; the latest is used; left out: 2 rows of others" in said
    assert "read 3 groups; comparing range" in said and said[-1] == f"complete: {run.path}"
    assert {name: run.manifest[name] for name in ("cluster", "reset", "time")} == options | {"time": ""}
    [group] = read_groups(tmp_path, **options).values()
    [*needs] = ({**need, "time": "2026-11-22T00:00:00Z"} for need in rank(group, ["range"]))
    assert run.ranking() == needs and needs[0]["cluster"] == "east"
    assert run.table("results")["inferred"][0].as_py() == group.inferred != ""


def test_rows_that_repeat_a_moment_are_rejects(spark, tmp_path):
    """The first by file and row is used, although Spark reads the larger file first; each other is a reject with both
    places. Rows without a name repeat nothing."""
    twice = [*at_times("2026-11-20", name="g\x07"), *at_times("2026-11-20", name="g\x07"), *at_times("", name="h")]
    parquet_of(tmp_path / "a.parquet", twice, [(0, {}), (0, {})])
    others = [group.replace(cluster="large") for group in a_fleet(30)]
    parquet_of(tmp_path / "b.parquet", [twice[0].replace(cluster="other"), twice[0], *others])
    run = run_of(tmp_path, tmp_path / "runs", spark=spark, strategies=["range"])
    assert run.counts["groups"] == {"read": 37, "used": 33, "rejected": 4}
    rejects = {(Path(row["source"]).name, row["position"]): row["reason"] for row in run.table("rejects").to_pylist()}
    assert rejects.keys() == {("a.parquet", 1), ("a.parquet", 2), ("a.parquet", 4), ("b.parquet", 2)}
    for place in (("a.parquet", 4), ("b.parquet", 2)):
        assert rejects[place] == ("group g\\x07: a group must occur only once at a moment "
                                  f"(got it in {tmp_path}/a.parquet, row 3, too)")


def test_folders_behind_an_address(spark, tmp_path):
    """Folders in folders are read as those below a path; each key of `key=value` is a column of `groups`."""
    document = Group({"t": 1}, {"m": ["t"]}, name="text").to_json()
    for at, folder in enumerate(["cluster=%FE/day=2026-01-01", "cluster=%FF/team=a%20b/State=x", "deep/er", "_hidden"]):
        (tmp_path / "in" / folder).mkdir(parents=True)
        fleet = [group.replace(cluster="") for group in a_fleet(20)[at * 5:at * 5 + 5]]
        parquet_of(tmp_path / "in" / folder / "part.parquet", fleet)
        (tmp_path / "in" / folder / "more.jsonl").write_text(document)
    path, address = (run_of(given, tmp_path / out, spark=spark, strategies=["range"])
                     for given, out in ((tmp_path / "in", "one"), (f"file://{tmp_path}/in", "two")))
    assert hashes(path) == hashes(address) and path.counts == address.counts
    assert path.counts["groups"] == {"read": 18, "used": 18, "rejected": 0}
    rows = path.table("groups").to_pylist()
    found = Counter((row["cluster"], row["time"], row["day"], row["team"], row["state"]) for row in rows)
    assert found == {("%FE", instant("2026-01-01"), "2026-01-01", None, None): 6, ("%FF", None, None, "a b", None): 6,
                     (None, None, None, None, None): 5, ("er", None, None, None, None): 1}
    assert path.table("groups", 3).schema.names == path.table("groups").schema.names


def test_spark_reads_groups_under_their_former_name(spark, tmp_path):
    """Files of earlier versions, in any case, beside those of today."""
    from kafka_assign.fleet.inputs import find_inputs, parquet_frame
    for at, name in enumerate(["group_id", "group", "Group"]):
        table = rows_of_groups([Group({"t": 1}, {"m": ["t"]}, name=f"g{at}")])
        columns = [name if column == "group_id" else column for column in table.column_names]
        pq.write_table(table.rename_columns(columns), tmp_path / f"{at}.parquet")
    found = parquet_frame(spark, find_inputs([tmp_path]).parquet).selectExpr("group_id", "members[0].id").collect()
    assert sorted(map(tuple, found)) == [("g0", "m"), ("g1", "m"), ("g2", "m")]


def test_a_file_that_is_named_is_read_whatever_its_name(spark, tmp_path):
    """Spark passes over hidden files and cannot open a colon; what was read is counted by the footers."""
    names = ["a.parquet", "_b.parquet", ".c.parquet", "d.parquet._COPYING_", "2026-11-20T06:30:00Z.parquet"]
    paths = [parquet_of(tmp_path / name, a_fleet(30)[at * 6:at * 6 + 6], [(1, {})]) for at, name in enumerate(names)]
    run = run_of(paths, tmp_path / "runs", spark=spark, strategies=["range"])
    assert run.counts["groups"] == {"read": 35, "used": 30, "rejected": 5}
    assert sorted(run.table("groups")["group_id"].to_pylist()) == sorted(group.name for group in a_fleet(30))
    assert sorted((row["source"], row["position"]) for row in run.table("rejects").to_pylist()) == sorted(
        (path, 2) for path in paths)


def test_rows_that_spark_loses_are_an_error(spark, tmp_path, monkeypatch):
    """What was read is counted by the footers: here Spark passes over a file, and nothing tells the job."""
    paths = [parquet_of(tmp_path / name, a_fleet(6)[at:at + 3]) for name, at in (("a.parquet", 0), ("_b.parquet", 3))]
    monkeypatch.setattr("kafka_assign.fleet.job.needs_driver", lambda file: False)
    with pytest.raises(FleetError, match="groups read must equal those used plus those rejected .got 6, 3 and 0"):
        run_of(paths, tmp_path / "runs", spark=spark, strategies=["range"])


def test_times_of_any_type(spark, tmp_path):
    """Timestamps, dates and text are the same moment, in any time zone of the session; a column in any case."""
    from kafka_assign.fleet.inputs import find_inputs, parquet_frame
    moment, expected = datetime(2026, 11, 20, 6, 30, tzinfo=UTC), {}
    kinds = {**{unit: pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us")}, "naive": pa.timestamp("us"),
             "zone": pa.timestamp("us", "Asia/Kathmandu"), "text": pa.large_string(), "date": pa.date32()}
    for at, (name, kind) in enumerate(kinds.items()):
        value = "2026-11-20T06:30:00" if name == "text" else moment.replace(tzinfo=getattr(kind, "tz", None) and UTC)
        rows = rows_of_groups([Group({"t": 3}, {"m": ["t"]}, name=name)]).drop_columns(["time"])
        column = pa.array([value.date() if name == "date" else value], kind)
        pq.write_table(rows.append_column("Time" if at % 2 else "time", column), tmp_path / f"{at}.parquet")
        expected[name] = "2026-11-20" if name == "date" else "2026-11-20T06:30:00"
    with set_for_job(spark, {"spark.sql.session.timeZone": "UTC"}):
        found = parquet_frame(spark, find_inputs([tmp_path]).parquet).select("group_id", "time").collect()
    assert dict(map(tuple, found)) == expected


def damage(path):
    """Damage a page of a Parquet file with several row groups; its footer is whole, and so is the first row group."""
    column = pq.read_metadata(path).row_group(1).column(2)
    with open(path, "r+b") as file:
        file.seek(column.dictionary_page_offset or column.data_page_offset)
        file.write(b"\xff" * column.total_compressed_size)


def odd_files(folder):
    """Files that a job must use or reject, in a folder; the names of those that cannot be used."""
    (folder / "in").mkdir(parents=True)
    parquet_of(folder / "in" / "good.parquet", a_fleet(40))
    table = pq.read_table(folder / "in" / "good.parquet")
    few = table.slice(0, 3)

    def write(name, changed, number):
        named = changed.set_column(changed.column_names.index("group_id"), "group_id", pa.array(
            [f"{number}-{at}" for at in range(len(changed))]))
        pq.write_table(named, folder / "in" / name)
    zoned = pa.array([datetime(2026, 11, 20, tzinfo=UTC)] * 3, pa.timestamp("us", "Asia/Kathmandu"))
    at = few.column_names.index("time")
    write("zoned.parquet", few.set_column(at, "time", zoned), 1)
    write("extra.parquet", few.append_column("loaded", zoned), 2)
    write("nulls.parquet", few.set_column(few.column_names.index("cluster"), "cluster", pa.nulls(3)), 3)
    write("br[x].parquet", few, 4)
    write("no_members.parquet", few.drop_columns("members"), 5)
    pq.write_table(pa.table({"x": [1]}), folder / "in" / "other.parquet")
    (folder / "in" / "no_footer.parquet").write_bytes(b"")
    (folder / "in" / "empty.jsonl").write_bytes(b"")
    return {"nulls.parquet", "no_members.parquet", "other.parquet", "no_footer.parquet"}


def test_an_address_has_the_account_of_a_path(spark, store, tmp_path):
    """Every file of a folder is used, rejected or ignored as the same one at a path, and for the same reason."""
    rejected = odd_files(store / "odd")
    (store / "elsewhere").mkdir()
    parquet_of(store / "elsewhere" / "linked.parquet", [Group({"t": 1}, {"m": ["t"]}, name="linked", cluster="c")])
    (store / "odd" / "in" / "link").symlink_to(store / "elsewhere")
    (store / "odd" / "in" / "circle").symlink_to(store / "odd")
    path = run_of(store / "odd" / "in", tmp_path / "path", spark=spark, strategies=["range"])
    assert path.counts["files"] == {"read": 10, "used": 6, "rejected": 4} and path.counts["ignored"] == {"empty": 1}
    assert path.counts["groups"]["used"] == 40 + 3 * 3 + 1
    (store / "odd" / "in" / "circle").unlink()                         # Hadoop would follow it for ever
    address = run_of("viewfs:/store/odd/in", tmp_path / "address", spark=spark, strategies=["range"])
    assert address.counts == path.counts and hashes(address)["results"] == hashes(path)["results"]
    reasons = [{Path(row["source"]).name: row["reason"] for row in run.table("rejects").to_pylist()}
               for run in (path, address)]
    assert reasons[0].keys() == rejected and reasons[0] == reasons[1]


def test_an_address_may_be_a_file_or_a_pattern(spark, store):
    from kafka_assign.fleet.inputs import find_inputs, with_addresses
    (store / "many").mkdir()
    for name in ("a", "b", "[a]"):
        parquet_of(store / "many" / f"{name}.parquet", [Group({"t": 1}, {"m": ["t"]}, name=name, cluster="c")])
    for pattern, names in (("[a].parquet", ["[a]"]), ("{a,b}.parquet", ["a", "b"]), ("?.parquet", ["a", "b"])):
        found = with_addresses(spark, find_inputs([f"viewfs:/store/many/{pattern}"]))
        assert [Path(file.path).stem for file in found.parquet] == names


def test_files_at_an_address_that_the_driver_reads(spark, store, tmp_path):
    """Text, and hidden Parquet that is named."""
    (store / "driver").mkdir()
    (store / "driver" / "billing.2026-11-20.txt").write_text(CAPTURE)
    parquet_of(store / "driver" / "_hidden.parquet", a_fleet(6))
    inputs = [f"viewfs:/store/driver/{name}" for name in ("", "_hidden.parquet")]
    stream = io.StringIO(a_fleet(1)[0].replace(name="streamed").to_json())
    run = run_of([*inputs, stream], tmp_path / "runs", spark=spark, strategies=["range"])
    assert run.counts["groups"]["used"] == 8 and run.counts["rows"] == {"read": 4, "used": 3, "rejected": 1}
    [reject] = run.table("rejects").to_pylist()
    assert (reject["source"], reject["position"]) == ("viewfs:/store/driver/billing.2026-11-20.txt", 5)


def test_a_damaged_page_ends_the_job_with_the_name_of_the_file(spark, tmp_path):
    """Its footer promises rows; the other files are not enough."""
    path = parquet_of(tmp_path / "bad.parquet", a_fleet(40))
    damage(path)
    with pytest.raises(FleetError, match=f"while reading file file:.*{path}.*; repair the file") as caught:
        run_of([parquet_of(tmp_path / "good.parquet", a_fleet(3)), path], tmp_path / "runs", spark=spark)
    assert "\n" not in str(caught.value) and list((tmp_path / "runs").iterdir()) == []


def test_no_group_is_an_error(spark, tmp_path):
    """Not a run with empty tables; an address that does not exist is one, too."""
    (tmp_path / "empty").mkdir()
    parquet_of(tmp_path / "shared.parquet", [], [(0, {"group_id": "s", "type": "share"})])
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "notes.txt").write_text("call Anna")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "a.parquet").write_bytes(b"PAR1 and no more")
    for given, words in ((f"file://{tmp_path}/empty", "inputs must hold a group to compare (got none)"),
                         (tmp_path / "shared.parquet", "inputs must hold a group to compare (got {'share group': 1})"),
                         (tmp_path / "text", "inputs must hold a group to compare (got {'text': 1})"),
                         (tmp_path / "damaged", f"(got {tmp_path}/damaged/a.parquet: Parquet must be readable"),
                         (f"file://{tmp_path}/missing", f"{tmp_path}/missing: No such file or directory"),
                         ("hdfs://127.0.0.1:1/missing", "Connection refused"),
                         ("s3a://bucket/groups", "S3AFileSystem not found; set spark.jars.packages to ")):
        with pytest.raises(ValueError) as caught:
            run_of(given, tmp_path / "runs", spark=spark, strategies=["range"])
        assert words in str(caught.value) and "\n" not in str(caught.value)
    assert list((tmp_path / "runs").iterdir()) == []


def test_joins_that_no_group_has_are_refused(spark, tmp_path):
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet(6))
    for joins, words in (([["t0", "t11"]], "'t11'; did you mean 't1'"), ([["t0", "clicks,views"]], "'clicks,views'")):
        with pytest.raises(ValueError, match=words):
            run_of(path, tmp_path / "runs", spark=spark, strategies=["range"], joins=joins)


# --- what a run holds ----------------------------------------------------------------------------------------------

def scalars(kind, values, name):
    """The scalar columns in a column, with their values; lists of numbers or text are none."""
    if pa.types.is_struct(kind):
        for at, field in enumerate(kind):
            yield from scalars(field.type, pa.compute.struct_field(values, at), f"{name}.{field.name}")
    elif pa.types.is_list(kind):
        if pa.types.is_struct(kind.value_type):
            yield from scalars(kind.value_type, pa.compute.list_flatten(values), name)
    else:
        yield name, values.to_pylist()


def test_unknown_is_null_and_columns_have_descriptions(spark, tmp_path):
    unknown = [Group({"t": 2}, {"a": ["t"]}, name="no lag"), Group({"t": 2}, {}, name="no members"), Group({}, {})]
    rows = [(0, {"group_id": "twice", "members": [{"id": "m"}, {"id": "m"}]})]
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet() + unknown, rows)
    run = run_of(path, tmp_path / "runs", spark=spark, migrate=True)
    for name, schema in COMPARE_TABLES.items():
        [file, *_] = (run.path / name).glob("*.parquet")
        stored = pq.read_schema(file)
        fields = json.loads(stored.metadata[b"org.apache.spark.sql.parquet.row.metadata"])["fields"]
        comments = {field["name"]: field["metadata"].get("comment") for field in fields}
        assert comments == {field.name: field.metadata[b"comment"].decode() for field in schema}
        for column in schema:
            for what, values in scalars(column.type, run.table(name)[column.name], column.name):
                assert -1 not in values and (what == "group_id" or "" not in values), (name, what)
    results = {(row["group_id"], row["strategy"]): row for row in run.table("results").to_pylist()}
    assert results["no lag", "range"]["lag_max"] is None
    assert results["no lag", "current"]["assignment"] == [{"topic": "t", "owner": [-1, -1]}]


def test_files_that_vanish_are_an_error(spark, tmp_path, monkeypatch):
    """As on workers with disks of their own: Spark has counted the rows, and the folder has none of their files."""
    from kafka_assign.fleet import tables
    count = tables.rows_written
    monkeypatch.setattr(tables, "rows_written", lambda spark, at: count(spark, at) * (not at.endswith("results")))
    words = "table results must have the 80 rows that were written .got 0 in .*disks of their own need"
    with pytest.raises(FleetError, match=words):
        run_of(parquet_of(tmp_path / "fleet.parquet", a_fleet()), tmp_path / "runs", spark=spark, strategies=["range"])
    assert list((tmp_path / "runs").iterdir()) == []


def test_how_the_work_is_divided_changes_no_result(spark, tmp_path, monkeypatch):
    """One row at a time, or a file for each group of a table."""
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet())
    run = run_of(path, tmp_path / "runs", spark=spark, strategies=["range"])
    monkeypatch.setattr("kafka_assign.fleet.job.BYTES_OF_PART", 1_000)
    monkeypatch.setattr("kafka_assign.fleet.job._ROWS_AT_ONCE", 1)
    assert hashes(run_of(path, tmp_path / "runs", spark=spark, strategies=["range"])) == hashes(run)


# --- settings ------------------------------------------------------------------------------------------------------

def test_settings_of_the_user_change_no_result(spark, tmp_path):
    other = spark.newSession()
    for name, value in {
            "spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Kathmandu",
            "spark.sql.caseSensitive": "true", "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
            "spark.sql.parquet.compression.codec": "gzip",
            "spark.sql.files.maxRecordsPerFile": "3", "spark.sql.files.ignoreCorruptFiles": "true",
            "mapreduce.fileoutputcommitter.algorithm.version": "2",
            "spark.sql.shuffle.partitions": "200" if LONG else "7",
            "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}.items():
        other.conf.set(name, value)
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet() + at_times(*TIMES))
    theirs, ours = (run_of(path, tmp_path / out, spark=session) for session, out in ((other, "one"), (spark, "two")))
    assert hashes(theirs) == hashes(ours) and theirs.counts == ours.counts
    assert theirs.ranking() == ours.ranking()
    for run, codec in ((theirs, "GZIP"), (ours, "ZSTD")):
        files = map(pq.read_metadata, (run.path / "results").glob("*.parquet"))
        filled = [file for file in files if file.num_rows]              # Spark may add a file without rows
        assert {file.row_group(0).column(0).compression for file in filled} == {codec}


# --- failure -------------------------------------------------------------------------------------------------------

DYING = """
import os, signal

def once(group):
    "Kills the worker that it works for, the first time it is asked, anywhere."
    try:
        os.close(os.open({marker!r}, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return group.previous
    always(group)

def always(group):
    "Kills every worker that it works for."
    os.kill(os.getppid(), signal.SIGKILL)
"""


def test_a_lost_worker_costs_a_retry_and_no_worker_the_run(spark, tmp_path, monkeypatch):
    marker, module, out = tmp_path / "died", tmp_path / "dying.py", tmp_path / "runs"
    module.write_text(DYING.format(marker=str(marker)))
    monkeypatch.syspath_prepend(tmp_path)
    spark.addArtifacts(str(module), pyfile=True)
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet())
    run = run_of(path, out, spark=spark, strategies=["dying:once"])
    assert marker.exists() and run.counts["groups"]["used"] == 40 and run.rejected == 0
    with pytest.raises(FleetError, match="the job must run to completion") as caught:
        run_of(path, out, spark=spark, strategies=["dying:always"])
    assert "\n" not in str(caught.value)
    assert [entry.name for entry in out.iterdir()] == [run.path.name]
