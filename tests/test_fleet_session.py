"""The Spark session: whose settings win, files for the workers, signals; each in real processes."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from kafka_assign import Group
from kafka_assign.fleet.session import masked

pytestmark = pytest.mark.needs("spark", "java")

ROOT = Path(__file__).resolve().parent.parent
CLI = "from kafka_assign.cli.app import main; main()"


def python(code, *arguments, **environment):
    """What a program prints as JSON in its last line."""
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                          timeout=240, env=os.environ | {"PYTHONPATH": str(ROOT)} | environment)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


SHOW_SETTINGS = """
import json
from kafka_assign.fleet.schemas import FleetError
from kafka_assign.fleet.session import cores, settings_in_force, spark_session
given = {"spark.sql.files.maxPartitionBytes": "7m", "spark.driver.memory": "650m",
         "spark.hadoop.fs.s3a.secret.key": "x"}
names = ["spark.master", "spark.driver.memory", "spark.ui.enabled", "spark.app.name", "spark.sql.session.timeZone",
         "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.driver.host", "spark.sql.files.maxPartitionBytes"]
answer = {}
with spark_session(conf=given) as spark:
    answer["settings"] = {name: spark.conf.get(name, None) for name in names}
    answer["java"] = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments().toString()
    answer["shown"], answer["cores"] = settings_in_force(spark, given), cores(spark)
    with spark_session("local[1]", {"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "7"}) as again:
        answer["inside"] = [again is spark, spark.conf.get("spark.sql.ansi.enabled"),
                            spark.conf.get("spark.sql.shuffle.partitions")]
    answer["after"] = [spark.conf.get("spark.sql.ansi.enabled"), spark.conf.get("spark.sql.shuffle.partitions", None)]
    answer["errors"] = []
    for master, conf in [("local[2]", {}), (None, {"spark.driver.memory": "1g"}), (None, {"spark.master": "local[2]"}),
                         (None, {"spark.sql.shuffle.partitions": "x"}), (None, {"spark.sql.warehouse.dir": "x"})]:
        try:
            with spark_session(master, conf):
                pass
        except FleetError as error:
            answer["errors"].append(str(error))
    answer["alive"] = spark.range(3).count()
print(json.dumps(answer))
"""


def test_whose_settings_win(tmp_path):
    """The caller's, then Spark's command line, then its files, then ours; an active session keeps its own.

    (Memory that `PYSPARK_SUBMIT_ARGS` asks for is Spark's affair: it goes before the caller's.)
    """
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.driver.memory 700m\nspark.ui.enabled=false\nspark.sql.session.timeZone Asia/Kathmandu\n"
        "spark.driver.extraJavaOptions -XX:+UseParallelGC -Dx=y\nspark.master local[3]\n"
        "spark.sql.files.maxPartitionBytes 9m\n")
    got = python(SHOW_SETTINGS, SPARK_CONF_DIR=str(tmp_path), PYSPARK_SUBMIT_ARGS=(
        "--master local[1] --conf spark.sql.execution.arrow.maxRecordsPerBatch=5 pyspark-shell"))
    assert got["settings"] == {
        "spark.master": "local[1]", "spark.driver.memory": "650m", "spark.ui.enabled": "false",
        "spark.app.name": "kafka-assign", "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "5", "spark.driver.host": "127.0.0.1",
        "spark.sql.files.maxPartitionBytes": "7m"}
    assert "-Xmx650m" in got["java"] and "-XX:+UseParallelGC" in got["java"]
    assert got["shown"]["master"] == "local[1]" and got["shown"]["rows per batch"] == "5"
    assert got["shown"]["spark.hadoop.fs.s3a.secret.key"] == "***" and got["cores"] == 1
    assert got["inside"] == [True, "false", "7"] and got["after"] == ["true", None] and got["alive"] == 3
    words = ["must be the one of the active session, local[1] (got local[2])", "CANNOT_MODIFY_CONFIG",
             "must be the one of the active session", "is invalid", "CANNOT_MODIFY_STATIC_CONFIG"]
    assert all(word in error and "\n" not in error for word, error in zip(words, got["errors"], strict=True))


ON_WORKERS = """
import json, sys
from kafka_assign.fleet.schemas import FleetError
from kafka_assign.fleet.session import error_line, importable, spark_errors, spark_session
module, package = sys.argv[1:]
errors = []

def where(batches):
    import kafka_assign, shipped_strategy
    for batch in batches:
        yield batch.from_pylist([{"module": kafka_assign.__file__, "answer": shipped_strategy.answer}])

def dies(batches):
    import os
    os._exit(1)
    yield

def run(spark, function):
    try:
        return spark.range(1).mapInArrow(function, "module string, answer long").first()
    except spark_errors() as error:
        errors.append(error_line(error))

with spark_session("local[1,2]") as spark:
    run(spark, where)
    with importable([module, package]), spark_session(py_files=[module, package]):
        found = run(spark, where)
    run(spark, dies)
    open(module, "w").write("answer = 43")
    try:
        with spark_session(py_files=[module]):
            pass
    except FleetError as error:
        errors.append(str(error))
print(json.dumps({"found": found.asDict(), "errors": errors}))
"""


def test_files_for_workers_that_do_not_have_the_package(tmp_path):
    """They get a module and the package itself; errors say what to do, and Spark warns in lines of its own."""
    import numpy
    venv.create(tmp_path / "bare")                  # has the libraries, but not the package
    [libraries] = (tmp_path / "bare" / "lib").glob("python*/site-packages")
    (libraries / "libraries.pth").write_text(str(Path(numpy.__file__).parent.parent))
    bare = tmp_path / "bare" / "bin" / "python"
    missing = subprocess.run([bare, "-c", "import numpy, pyarrow, kafka_assign"], cwd=tmp_path,
                             env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
                             capture_output=True, text=True)
    if "No module named 'kafka_assign'" not in missing.stderr:
        pytest.skip("the package is installed beside the libraries")
    package = shutil.make_archive(str(tmp_path / "package"), "zip", ROOT, "kafka_assign")
    module = tmp_path / "shipped_strategy.py"
    module.write_text("answer = 42")
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + ON_WORKERS
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run([sys.executable, "-c", program, str(module), package], cwd=tmp_path / "elsewhere",
                          capture_output=True, text=True, timeout=240, env={
                              name: value for name, value in os.environ.items() if name != "PYTHONPATH"
                          } | {"PYSPARK_PYTHON": str(bare)})
    assert done.returncode == 0 and "WARN TaskSetManager: Lost task" in done.stderr, done.stderr
    assert not any(line.startswith(("Traceback", "\t", "Caused")) for line in done.stderr.splitlines()), done.stderr
    got = json.loads(done.stdout.splitlines()[-1])
    assert got["found"]["answer"] == 42 and "package.zip" in got["found"]["module"]
    absent, killed, changed = got["errors"]
    assert "No module named 'kafka_assign'" in absent and "--py-files" in absent
    assert "Python worker exited" in killed and "spark.executor.memoryOverhead" in killed
    assert "DUPLICATED_ARTIFACT" in changed and "\n" not in absent + killed + changed


SLOW = """
import time

def slow(group):
    open({marker!r}, "w").close()
    time.sleep(600)
"""


def wait_for(condition, job):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end and job.poll() is None
        time.sleep(0.1)


@pytest.mark.parametrize("number, code, at_work", [(signal.SIGTERM, 143, True), (signal.SIGINT, None, False)],
                         ids=["term-job", "int-java"])
def test_a_signal_ends_the_job_in_a_line(tmp_path, number, code, at_work):
    """While a strategy works and while Java starts. `communicate` returns when no process has the pipe any more."""
    marker, out, path = tmp_path / "started", tmp_path / "runs", tmp_path / "group.json"
    (tmp_path / "slow_strategy.py").write_text(SLOW.format(marker=str(marker)))
    path.write_text(Group({"t": 1}, {"m": ["t"]}, name="g").to_json())
    command = [sys.executable, "-c", CLI, "fleet", "compare", str(path), "-o", str(out), "-s", "slow_strategy:slow"]
    job = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])},
                           start_new_session=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
        wait_for(marker.exists if at_work else lambda: children.exists() and "java" in "".join(
            Path(f"/proc/{child}/cmdline").read_text() for child in children.read_text().split()), job)
        job.send_signal(number)
        said, _ = job.communicate(timeout=60)
        assert job.returncode == (code or job.returncode) != 0
        assert not any(line.startswith(("Traceback", "\t", "Caused")) for line in said.splitlines()), said
        assert f"kafka-assign: {'terminated' if code else 'interrupted'}" in said.splitlines(), said
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert not out.exists() or list(out.iterdir()) == []


@pytest.mark.parametrize("name, value, shown", [
    ("spark.hadoop.fs.azure.sas.box.account.dfs.core.windows.net", "?sv=1", "***"), ("spark.private.key", "x", "***"),
    ("spark.hadoop.fs.s3a.encryption.key", "x", "***"), ("spark.ssl.keyPassword", "x", "***"),
    ("spark.driver.extraJavaOptions", "-Xss4m -Djavax.net.ssl.trustStorePassword=x", None),
    ("spark.proxy", "https://user:pw@proxy:1", "https://***@proxy:1"), ("spark.app.name", "x", "x")])
def test_secrets_are_masked(name, value, shown):
    """In what a run records and reports, in errors, and in the names of inputs."""
    shown = shown or "-Xss4m -Djavax.net.ssl.trustStorePassword=***"
    assert masked(value, name) == shown
    assert masked("must start (got https://user:pw@host/x)") == "must start (got https://***@host/x)"


@pytest.mark.parametrize("master, words", [
    ("spark://127.0.0.1:1", "Connection refused"), ("localhost", "(got localhost); use local[4]"),
    ("sc://127.0.0.1:1/;token=x", "no Spark Connect server at sc://127.0.0.1:1/)")])
def test_a_wrong_master_is_one_line(tmp_path, master, words):
    path = tmp_path / "group.json"
    path.write_text(Group({"t": 1}, {"m": ["t"]}, name="g").to_json())
    done = subprocess.run([sys.executable, "-c", CLI, "fleet", "compare", str(path), "-o", str(tmp_path / "runs"),
                           "--master", master], capture_output=True, text=True, timeout=120, env={
                               name: value for name, value in os.environ.items() if "_CONF_DIR" not in name
                           } | {"PYTHONPATH": str(ROOT)})
    assert done.returncode and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
