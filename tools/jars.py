"""Kafka's jars, the broker and its tools with all that they need, fetched once into `.cache/` by PySpark's Ivy.

    python tools/jars.py        print the folder that holds them
"""
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from java import any_java

VERSION = "4.3.1"                                      # always an exact one: releases arrive in parts
CACHE = Path(__file__).resolve().parent.parent / ".cache"
MOST_SECONDS = 300
MODULES = f"""<ivy-module version="2.0">
  <info organisation="kafka_assign" module="kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{VERSION}" conf="default->default"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{VERSION}" conf="default->default"/>
  </dependencies>
</ivy-module>
"""


class NoJars(Exception):
    """Jars that cannot be had here; the message says in a line what is missing."""


def _ivy():
    """The jar of Ivy."""
    place = find_spec("pyspark")
    found = sorted(Path(place.origin).parent.glob("jars/ivy-*.jar")) if place else []
    if not found:
        raise NoJars("no PySpark, whose Ivy would fetch them")
    return str(found[-1])


def _fetch(folder):
    """Let Ivy put the jars into `folder`."""
    java, modules = any_java(), Path(folder, "ivy.xml")
    if java is None:
        raise NoJars("no Java 17 or newer")
    modules.write_text(MODULES, encoding="utf-8")
    name = "[artifact]-[revision](-[classifier]).[ext]"
    command = [java, "-jar", _ivy(), "-cache", str(CACHE / "ivy"), "-ivy", str(modules),
               "-confs", "default", "-types", "jar", "bundle", "-retrieve", f"{folder}/{name}"]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise NoJars(f"Kafka {VERSION} did not come within {MOST_SECONDS} s") from error
    if done.returncode or not any(Path(folder).glob("*.jar")):
        raise NoJars(f"Kafka {VERSION} cannot be fetched (no network?)")


def jars_folder():
    """Where the jars of this version are once they have been fetched."""
    return CACHE / f"kafka-{VERSION}"


def jars():
    """The folder with the jars, which are fetched if they are not there; `NoJars` says why not."""
    folder = jars_folder()
    if not folder.is_dir():
        CACHE.mkdir(exist_ok=True)
        fresh = tempfile.mkdtemp(dir=CACHE)
        try:
            _fetch(fresh)
            os.chmod(fresh, 0o755)
            os.rename(fresh, folder)
        except OSError:                                # another process was faster; its jars are as good
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


if __name__ == "__main__":
    if not jars_folder().is_dir():
        print(f"Fetching Kafka {VERSION} into {CACHE.name}/ (once; this can take a minute)", file=sys.stderr)
    try:
        print(jars())
    except NoJars as reason:
        sys.exit(f"no jars: {reason}")
