"""What a benchmark measured, kept as rows for the page of measured figures.

`make bench` names the file in the variable `MEASURED`; a benchmark that is run by itself only prints.
"""
import json
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from kafka_assign.fleet.session import find_java

PACKAGES = "kafka_assign", "numpy", "pyarrow", "pyspark", "kafka-python"


def machine() -> str:
    "Processor, cores and memory of this machine."
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB"


def versions() -> dict[str, str]:
    "Versions of what was measured and of what it ran on."
    java = subprocess.run([find_java(), "-version"], capture_output=True, text=True).stderr
    found = {"Python": platform.python_version(), "Java": java.partition('"')[2].partition('"')[0]}
    return found | {package: version(package) for package in PACKAGES}


def rounded(value: object) -> object:
    "A float with four significant digits; anything else as it is."
    return float(f"{value:.4g}") if isinstance(value, float) else value


def record(name: str, rows: Sequence[dict]) -> None:
    "Replace the rows that are kept under a name; figures are in seconds and MiB unless their column says otherwise."
    if not (path := os.environ.get("MEASURED")):
        return
    file = Path(path)
    kept = json.loads(file.read_text()) if file.exists() else {}
    kept[name] = {"date": date.today().isoformat(), "machine": machine(), "versions": versions(),
                  "rows": [{key: rounded(value) for key, value in row.items()} for row in rows]}
    text = json.dumps(dict(sorted(kept.items())), indent=1)
    flat = re.sub(r"\{[^{}]*\}", lambda found: " ".join(found[0].split()), text)      # a row on a line of its own
    file.write_text(flat + "\n")
