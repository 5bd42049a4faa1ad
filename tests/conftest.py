"""What all tests share: long forms, things a machine may lack, and how much Hypothesis tries."""
import importlib.util
import os
import re
import resource
import shutil
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

LONG = os.environ.get("LONG", "") not in ("", "0")
LONGEST = 3600  # seconds that a test may take with LONG=1; pyproject.toml has the usual limit
REQUIRED = {name.strip() for name in os.environ.get("REQUIRE", "").split(",") if name.strip()}

# What a shell starts in the background ignores SIGINT, and so do all processes that it starts. Here the signals that
# tests send must arrive.
for number, handler in (signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)

os.environ.pop("COLUMNS", None)     # pytest-xdist sets it; without it, output is for a pipe

settings.register_profile("short", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("unshrunk", settings.get_profile("short"), phases=[Phase.explicit, Phase.generate])
settings.register_profile("long", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile("long" if LONG else "short")


def has_java():
    """A Java that Spark runs on, on the machine or in the `[java]` extra."""
    from java import any_java
    return any_java() is not None


def has_jdk():
    """A Java that runs source files."""
    from java import find_jdk
    return find_jdk() is not None


def has_broker():
    """What it takes to start Kafka and to talk to it; its jars are fetched before pytest starts, by `make`."""
    from jars import jars_folder
    return has_java() and jars_folder().is_dir() and importlib.util.find_spec("kafka") is not None


def has_browser():
    """Chromium, or a browser of its family."""
    from browser import find_chromium
    return find_chromium() is not None


PROBES = {
    "broker": has_broker,
    "browser": has_browser,
    "connect": lambda: all(map(importlib.util.find_spec, ("pyspark", "grpc_status", "zstandard"))),
    "java": has_java,
    "jdk": has_jdk,
    "mypy": lambda: importlib.util.find_spec("mypy") is not None,
    "openssl": lambda: shutil.which("openssl") is not None,
    "spark": lambda: importlib.util.find_spec("pyspark") is not None,
}


def pytest_collection_modifyitems(items):
    """Leave out the long tests, and those that need what is not here, unless told otherwise."""
    there = {}
    for item in items:
        if item.get_closest_marker("long") and not LONG:
            item.add_marker(pytest.mark.skip(reason="takes minutes: LONG=1 runs it"))
        if LONG:
            item.add_marker(pytest.mark.timeout(LONGEST))
        for marker in item.iter_markers("needs"):
            for name in marker.args:
                if name not in there:
                    there[name] = PROBES[name]()
                if not there[name]:
                    item.add_marker(pytest.mark.skip(reason=f"needs {name}"))


def insist(report):
    """Turn a skip into a failure if its reason names something that REQUIRE says is here."""
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return
    reason = report.longrepr[2]
    missed = sorted(name for name in REQUIRED if re.search(rf"\b{re.escape(name)}\b", reason, re.IGNORECASE))
    if missed:
        report.outcome = "failed"
        report.longrepr = f"skipped ({reason}), but REQUIRE={','.join(sorted(REQUIRED))} says it can run"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Apply `insist` to tests that skip themselves or are skipped by a marker."""
    report = yield
    if not hasattr(report, "wasxfail"):
        insist(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Apply `insist` to whole files that skip themselves, as `pytest.importorskip` does."""
    report = yield
    insist(report)
    return report


def pytest_terminal_summary(terminalreporter):
    """The processor time of the run, which says more than its duration if the machine does other things, too."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    terminalreporter.write_line(f"{seconds:,.0f} s of CPU, child processes included")


@pytest.fixture(scope="session")
def broker():
    """A running Kafka broker (tools/broker.py), one in each process of pytest that asks for it."""
    from broker import start
    started = start()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """A folder that `spark` also sees at the address `viewfs:/store`."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="session")
def spark(store):
    """One small Spark session in each process of pytest; its workers find this package and the tests."""
    from spark_cluster import PYTHON_PATH

    from kafka_assign.fleet.session import open_session
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PYTHON_PATH)
        # small data: 200 partitions after each shuffle would take longer. The session does not compile queries, either;
        # `test_a_cluster_gives_the_same_content` compares its results with those of one that does
        session = open_session("local[2,4]", {
            "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "3",
            "spark.hadoop.fs.viewfs.mounttable.default.link./store": f"file:{store}"}, small=True)
        yield session
        java = session.sparkContext._gateway.proc
        session.stop()
        java.stdin.close()                      # it ends; awaited, so that its CPU time counts
        java.wait(60)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A Spark cluster of two workers (spark_cluster.py), one in each process of pytest that asks for it."""
    from spark_cluster import standalone_cluster
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def connect(tmp_path_factory):
    """The address of a Spark Connect server (spark_cluster.py)."""
    from spark_cluster import connect_server
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture
def registered(monkeypatch):
    """The table of registered strategies, which is as before after the test."""
    table = {}
    monkeypatch.setattr("kafka_assign.assignors.registry._registered", table)
    return table
