"""A fleet with Spark: the job says what the kernel says, loses nothing, and leaves whole runs or none."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_assign import Group, compare
from kafka_assign.document import write_document
from kafka_assign.fleet.kernel import compare_batches
from kafka_assign.fleet.schemas import COMPARE_TABLES, NARROW_GROUP_SCHEMA, FleetError
from kafka_assign.fleet.sources import rows_of_groups

pytestmark = pytest.mark.needs("spark", "java")

ROOT = Path(__file__).resolve().parent.parent
STRATEGIES = ["range", "roundrobin", "fair", "lag"]
HOSTILE = ["<script>alert(1)</script>", "[red]x[/b]", "\x1b[2J", "a\nb", "\u202eb", "n" * 249, "'; --", "\U0001F600",
           "\uff41"]
CAPTURE = """
GROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST       CLIENT-ID
billing  orders  0          3004            3012            8    web-1-5c76   /10.0.0.1  web
billing  orders  1          3004            3012            8    web-1-5c76   /10.0.0.1  web
billing  orders  x          3004            3012            8    web-1-5c76   /10.0.0.1  web
"""


@pytest.fixture(scope="module")
def spark():
    """One small session for the whole module; its workers find this package and these tests."""
    from kafka_assign.fleet.session import open_session
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))
        session = open_session("local[2,4]", {"spark.driver.memory": "1g"})
        yield session
        session.stop()


def run_of(*arguments, **options):
    from kafka_assign.fleet.job import compare_fleet
    return compare_fleet(*arguments, **{"strategies": STRATEGIES} | options)


def hashes(run):
    return {name: (table["rows"], table["hash"]) for name, table in run.tables.items()}


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
    table, rejects = rows_of_groups(fleet, "")
    assert not rejects
    rows = table.to_pylist()
    for at, row in broken:
        rows.insert(at, row)
    pq.write_table(pa.Table.from_pylist(rows, NARROW_GROUP_SCHEMA), path, row_group_size=10)
    return str(path)


# --- the job says what the kernel says -----------------------------------------------------------------------------

def test_spark_changes_nothing(spark, tmp_path):
    fleet = a_fleet()
    run = run_of(parquet_of(tmp_path / "fleet.parquet", fleet), tmp_path / "runs", spark=spark)
    plain = pa.Table.from_batches(compare_batches(rows_of_groups(fleet)[0].to_batches(), STRATEGIES)).to_pylist()
    key = ("cluster", "group", "time")
    expected = [{name: row[name] for name in key} | result | {"inferred": row["inferred"]}
                for row in plain for result in row["results"]]
    place = {name: at for at, name in enumerate(["current", *STRATEGIES])}
    in_order = {"key": lambda row: (row["cluster"], row["group"], place[row["strategy"]])}
    assert sorted(run.table("results").to_pylist(), **in_order) == sorted(expected, **in_order)
    members = {(row["cluster"], row["group"]): row["members"] for row in run.table("groups").to_pylist()}
    assert members == {(group.cluster, group.name): list(group.members) for group in fleet}
    assert run.counts["groups"] == {"read": 40, "used": 40, "rejected": 0}
    assert run.counts["batches_answered_one_by_one"] == {}


def test_the_ranking(spark, tmp_path):
    run = run_of(parquet_of(tmp_path / "fleet.parquet", a_fleet()), tmp_path / "runs", spark=spark)
    ranking = run.ranking()
    assert [row["rank"] for row in ranking] == list(range(1, len(ranking) + 1)) and len(ranking) > 5
    assert [(row["kind"], -row["affected"], row["cluster"], row["group"]) for row in ranking] == \
        sorted((row["kind"], -row["affected"], row["cluster"], row["group"]) for row in ranking)
    assert run.ranking(3) == ranking[:3]
    types = {(row["cluster"], row["group"]): row["type"] for row in run.table("groups").to_pylist()}
    assert {row["strategy"] for row in ranking if types[row["cluster"], row["group"]] == "consumer"} == {""}


def test_all_inputs_at_once(spark, tmp_path):
    """Text with a bad line, JSON Lines, and Parquet with rows that cannot be used: everything is accounted for."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "billing.txt").write_text(CAPTURE)
    (folder / "notes.txt").write_text("call Anna\n")
    documents = [write_document(group) for group in a_fleet(3)] + ['{"topics": {"t": -1}, "members": []}']
    (tmp_path / "groups.jsonl").write_text("\n".join(documents))
    twice = {"group": "twice", "members": [{"id": "m"}, {"id": "m"}]}
    broken = [(4, twice), (11, {"group": "shared", "type": "share"}), (12, {})]
    parquet_of(folder / "fleet.parquet", a_fleet(20), broken)
    run = run_of([folder, str(tmp_path / "groups.jsonl")], tmp_path / "runs", spark=spark)
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


def test_files_of_other_writers(spark, tmp_path):
    """Numbers of 32 and of 64 bits, in one job, are the same groups; so are long lists and strings."""
    from test_fleet import of_other_writers
    fleet, folder = a_fleet(20), tmp_path / "fleet"
    folder.mkdir()
    ours = run_of(parquet_of(folder / "ours.parquet", fleet), tmp_path / "runs", spark=spark)
    rows = rows_of_groups(fleet, "")[0].to_pylist()
    for bits in (pa.int32(), pa.int64()):
        types = [column.with_type(of_other_writers(column.type, bits)) for column in NARROW_GROUP_SCHEMA]
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(types)), folder / f"{bits}.parquet")
        other = run_of(folder / f"{bits}.parquet", tmp_path / "runs", spark=spark)
        assert hashes(other) == hashes(ours)
    assert run_of(folder, tmp_path / "runs", spark=spark).counts["groups"] == {"read": 60, "used": 60, "rejected": 0}


def test_a_second_run_has_the_same_content(spark, tmp_path):
    """In any order of the rows, in one file or several."""
    fleet = a_fleet(60)
    first = run_of(parquet_of(tmp_path / "fleet.parquet", fleet), tmp_path / "runs", spark=spark)
    again = run_of(str(tmp_path / "fleet.parquet"), tmp_path / "runs", spark=spark)
    (tmp_path / "parts").mkdir()
    parquet_of(tmp_path / "parts" / "b.parquet", fleet[:25][::-1])
    parquet_of(tmp_path / "parts" / "a.parquet", fleet[25:])
    parts = run_of(tmp_path / "parts", tmp_path / "runs", spark=spark)
    other = run_of(str(tmp_path / "fleet.parquet"), tmp_path / "runs", spark=spark, strategies=STRATEGIES[:3])
    assert hashes(first) == hashes(again) == hashes(parts) != hashes(other)
    assert len(list((tmp_path / "runs").iterdir())) == 4 and first.path.name.startswith("run-")


def test_hostile_names(spark, tmp_path):
    fleet = [Group({name: 2}, {name: [name]}, name=name, cluster=name) for name in HOSTILE]
    rows = [{"group": name, "members": [{"id": name}] * 2} for name in HOSTILE]
    path = parquet_of(tmp_path / "fleet.parquet", fleet, [(0, row) for row in rows])
    run = run_of(path, tmp_path / "runs", spark=spark)
    assert sorted(row["group"] for row in run.table("groups").to_pylist()) == sorted(HOSTILE)
    assert sorted(row["members"] for row in run.table("groups").to_pylist()) == sorted([name] for name in HOSTILE)
    assert all(row["reason"].isprintable() for row in run.table("rejects").to_pylist())
    assert run.counts["groups"]["rejected"] == len(HOSTILE)


def test_hostile_paths(spark, tmp_path):
    """Spark reads stars and brackets as patterns, and writes blanks as %20; a name is a name."""
    for name in ["a b+c%41#d", "br[1]{x}", "st*r?", "back\\slash", "ü\U0001F600", "comma,x"]:
        folder = tmp_path / name
        folder.mkdir()
        path = parquet_of(folder / f"{name}.parquet", a_fleet(2), [(0, {})])
        run = run_of(path, folder / "runs", spark=spark, strategies=["range"])
        assert run.counts["groups"] == {"read": 3, "used": 2, "rejected": 1}
        assert run.table("rejects")["source"].to_pylist() == [path]


def test_samples(spark, tmp_path):
    run = run_of(ROOT / "samples", tmp_path / "runs", spark=spark, strategies=None)
    assert run.counts["rows"]["rejected"] == 0 and run.counts["groups"]["used"] == len(run.table("groups"))
    assert json.loads((run.path / "run.json").read_text())["strategies"] == run.manifest["strategies"]


def test_every_strategy_is_picked_up(spark, tmp_path):
    """A strategy of the caller is named by its module, and the others do what they do without it."""
    run = run_of(parquet_of(tmp_path / "fleet.parquet", a_fleet()), tmp_path / "runs", spark=spark,
                 strategies=["range", "test_fleet:wild"])
    results = run.table("results").to_pylist()
    moved = {result["group"]: result["moved"] for result in results if result["strategy"] == "range"}
    assert moved == {group.name: compare(group, ["range"]).rows[0]["moved"] for group in a_fleet()}
    assert run.manifest["strategies"] == ["range", "test_fleet:wild"]


def test_batches_that_a_strategy_raises_on_are_counted_in_the_run(spark, tmp_path):
    """`fussy` raises if a topic has three partitions: those groups are rejected, the others are not."""
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet())
    said = []
    run = run_of(path, tmp_path / "runs", spark=spark, strategies=["range", "test_fleet:fussy"], progress=said.append)
    fit = [group.name for group in a_fleet() if 3 not in group.partitions]
    assert sorted(row["group"] for row in run.table("groups").to_pylist()) == sorted(fit) != []
    [(label, batches)] = run.counts["batches_answered_one_by_one"].items()
    assert label == "fussy" and 1 <= batches <= 40 and any(line.startswith("strategy fussy raised") for line in said)


# --- failure -------------------------------------------------------------------------------------------------------

DYING = """
import os

def once(group):
    "Kills its worker the first time it is asked, anywhere."
    try:
        os.close(os.open({marker!r}, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return group.previous
    os._exit(1)

def always(group):
    "Kills every worker that asks it."
    os._exit(1)
"""


def test_a_lost_worker_costs_a_retry_and_no_worker_the_run(spark, tmp_path, monkeypatch):
    marker, module, out = tmp_path / "died", tmp_path / "dying.py", tmp_path / "runs"
    module.write_text(DYING.format(marker=str(marker)))
    monkeypatch.syspath_prepend(tmp_path)
    spark.addArtifacts(str(module), pyfile=True)
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet())
    run = run_of(path, out, spark=spark, strategies=["dying:once"])
    assert marker.exists() and run.counts["groups"]["used"] == 40
    with pytest.raises(FleetError, match="the job must come to its end") as caught:
        run_of(path, out, spark=spark, strategies=["dying:always"])
    assert "\n" not in str(caught.value)
    assert [entry.name for entry in out.iterdir()] == [run.path.name]


SLOW = """
import sys, time
from kafka_assign.fleet.job import compare_fleet

def slow(group):
    open({marker!r}, "w").close()
    time.sleep(600)

if __name__ == "__main__":
    compare_fleet(sys.argv[1], sys.argv[2], ["slow_strategy:slow"])
"""


def test_a_killed_job_leaves_no_run(tmp_path):
    marker, out = tmp_path / "started", tmp_path / "runs"
    (tmp_path / "slow_strategy.py").write_text(SLOW.format(marker=str(marker)))
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet(3))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    job = subprocess.Popen([sys.executable, str(tmp_path / "slow_strategy.py"), path, str(out)], env=environment,
                           start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(marker.exists, 120, job)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert list(out.iterdir()) and not list(out.glob("run-*"))


def wait_for(condition, seconds, *processes):
    """Wait until a condition holds; fail if it does not in time, or if one of the processes ends before."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{condition} must hold within {seconds} s"
        assert all(process.poll() is None for process in processes), "a process ended too early"
        time.sleep(0.1)


# --- a cluster -----------------------------------------------------------------------------------------------------

def free_port():
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def standalone_cluster(folder):
    """A master and a worker on the loopback address, as Spark's wheel can start them: its address and environment."""
    import pyspark

    from kafka_assign.fleet.session import find_java, prepare_java
    (folder / "java").mkdir(parents=True)
    prepare_java(folder / "java", find_java()[0])
    home, master, worker = Path(pyspark.__file__).parent, free_port(), free_port()
    environment = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(folder / "java"),
        "PYTHONPATH": str(ROOT), "SPARK_WORKER_DIR": str(folder / "work")}
    classes = {
        "master.Master": ["--host", "127.0.0.1", "--port", str(master), "--webui-port", "0"],
        "worker.Worker": ["--host", "127.0.0.1", "--port", str(worker), "--webui-port", "0", "--cores", "2",
                          "--memory", "1g", "--work-dir", str(folder / "work"), f"spark://127.0.0.1:{master}"]}
    running = []
    try:
        for (name, arguments), port in zip(classes.items(), (master, worker)):
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
            with open(folder / f"{name}.log", "w") as log:
                running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log,
                                                start_new_session=True))
            wait_for(lambda port=port: listens(port), 60, *running)
        yield f"spark://127.0.0.1:{master}", environment
    finally:
        for process in reversed(running):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


ON_A_CLUSTER = """
import json, sys
import kafka_assign.fleet.job
run = kafka_assign.fleet.job.compare_fleet(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), master=sys.argv[4])
print(run.path)
"""


def test_a_cluster_gives_the_same_content(spark, tmp_path):
    path = parquet_of(tmp_path / "fleet.parquet", a_fleet(60))
    here = run_of(path, tmp_path / "runs", spark=spark)
    with standalone_cluster(tmp_path / "cluster") as (master, environment):
        there = subprocess.run(
            [sys.executable, "-c", ON_A_CLUSTER, path, str(tmp_path / "runs"), json.dumps(STRATEGIES), master],
            env=environment | {"JAVA_HOME": ""}, capture_output=True, text=True, timeout=240, cwd=tmp_path)
        assert there.returncode == 0, there.stderr
    from kafka_assign.fleet.job import Run
    run = Run(there.stdout.strip())
    assert run.manifest["settings"]["master"] == master
    assert hashes(run) == hashes(here)
