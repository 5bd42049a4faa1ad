"""Spark as a cluster on loopback, stopped whatever happens: a master, two workers with disks of their own, Connect.

    with standalone_cluster(folder) as cluster:
        subprocess.run([..., "--master", cluster.master], env=cluster.environment, cwd=cluster.folder)

Every path is shared by all, except those below `cluster.private`: there, each worker and the driver have a folder of
their own under one name. Where the machine allows it, a worker has a file system of its own there (a mount namespace);
elsewhere the name leads to the working directory of the process.
"""
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from broker import GUARD
from java import any_java

ROOT = Path(__file__).resolve().parent.parent
PYTHON_PATH = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
WORKERS, SECONDS_TO_START, SECONDS_TO_STOP = 2, 90, 30
JAVA = """#!/bin/bash
arguments=()
for argument in "$@"; do
    [ "$argument" = --add-modules=jdk.incubator.vector ] || arguments+=("$argument")
done
exec {java} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "${{arguments[@]}}"
"""
ISOLATED = 'mount --make-rprivate / && mount -t tmpfs tmpfs "$0" && exec "$@"'


class Cluster(NamedTuple):
    """A running cluster: the address of its master, and what a driver needs."""

    master: str
    environment: dict[str, str]  # of a driver; its workers find this package and the modules in tests/
    folder: Path                 # where a driver is started
    private: Path                # of each worker and the driver, another folder
    modules: Path                # what is in it, driver and workers can import
    workers: list[subprocess.Popen]


def wait_for(condition, seconds, *processes):
    """Wait until a condition holds; fail if it does not in time, or if one of the processes ends before."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{condition} must hold within {seconds} s"
        assert all(process.poll() is None for process in processes), "a process ended too early"
        time.sleep(0.1)


def free_port():
    """A port of 127.0.0.1 on which nothing listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return probe.getsockname()[1]


def listens(port):
    """Whether a process listens on a port of 127.0.0.1."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@cache
def own_mounts():
    """The command before a command that gives it a file system of its own, or None where that is not allowed."""
    for command in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        with suppress(OSError):
            if subprocess.run([*command, "sh", "-c", ISOLATED, "/mnt", "true"], capture_output=True).returncode == 0:
                return command
    return None


def driver_environment(folder, settings, path=PYTHON_PATH):
    """The variables of a driver with a Python path whose defaults, in a file in a new `folder`, are `settings`."""
    folder.mkdir(parents=True)
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))} | {
        "SPARK_CONF_DIR": str(folder), "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "127.0.0.1"}


def _daemon_environment(folder):
    import pyspark
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA.format(java=quote(os.path.realpath(any_java()))))
    java.chmod(0o700)
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" and "SPARK" not in name}
    return bare | {
        "SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_HOSTNAME": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(folder / "java")}


@contextmanager
def _running(name, command, environment, folder, ready):
    """A process that ends with this one, however that ends; its working directory goes with it."""
    work = folder / f"{name}-work"
    work.mkdir()
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(["sh", "-c", GUARD, "sh", str(work), *map(str, command)], env=environment, cwd=work,
                                   stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
    try:
        try:
            wait_for(ready, SECONDS_TO_START, process)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}; its log:\n{(folder / f'{name}.log').read_text()[-3000:]}") from None
        yield process
    finally:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_STOP)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def standalone_cluster(folder):
    """A master and two workers with a core and 1 GB each: a `Cluster`."""
    environment, private, mounts = _daemon_environment(folder), folder / "private", own_mounts()
    private.mkdir()
    spark_class = [Path(environment["SPARK_HOME"], "bin", "spark-class")]
    master, ports = free_port(), [free_port() for _ in range(WORKERS)]
    host = ["--host", "127.0.0.1", "--webui-port", "0"]
    isolated = [*mounts, "sh", "-c", ISOLATED, private] if mounts else []
    with ExitStack() as stack:
        command = [*spark_class, "org.apache.spark.deploy.master.Master", *host, "--port", master]
        stack.enter_context(_running("master", command, environment, folder, lambda: listens(master)))
        workers = []
        for number, port in enumerate(ports, 1):
            command = [*isolated, *spark_class, "org.apache.spark.deploy.worker.Worker", *host, "--port", port,
                       "--cores", 1, "--memory", "1g", "--work-dir", folder / f"worker-{number}-work" / "applications",
                       f"spark://127.0.0.1:{master}"]
            workers.append(stack.enter_context(
                _running(f"worker-{number}", command, environment, folder, lambda port=port: listens(port))))
        modules = folder / "modules"
        modules.mkdir()
        path = os.pathsep.join([PYTHON_PATH, str(modules)])
        drivers = driver_environment(folder / "conf", {
            "spark.executorEnv.PYTHONPATH": path,
            # no task before both workers are there
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s"}, path)
        own = private if mounts else Path("/proc/self/cwd") / private.name
        yield Cluster(f"spark://127.0.0.1:{master}", drivers, folder, own, modules, workers)


@contextmanager
def connect_server(folder):
    """A Spark Connect server on this machine: its address."""
    environment, port = _daemon_environment(folder), free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": port,
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "3"}
    command = [Path(environment["SPARK_HOME"], "bin", "spark-submit"), "--master", "local[2,4]",
               "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
               *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}"))]
    environment |= {"PYTHONPATH": PYTHON_PATH, "SPARK_DAEMON_MEMORY": "1g"}
    with _running("connect", command, environment, folder, lambda: listens(port)):
        yield f"sc://127.0.0.1:{port}"


def ancestors(pid):
    """The numbers of a process and of those that started it, the nearest first (Linux)."""
    while pid > 1:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
