"""What a process and all those below it cost, as Linux counts it: CPU seconds, and the most memory of each."""
import os
import subprocess
import sys
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def look(found):
    """Add what the system says of each process: its parent, its name, its CPU seconds and its most memory in MiB."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        except OSError:                                 # it ended
            continue
        if "VmHWM" in status:
            parent = found.get(int(folder.name), [int(fields[1])])[0]          # another one if this one ends
            found[int(folder.name)] = (parent, status["Name"].strip(), (int(fields[11]) + int(fields[12]))
                                       / TICKS, int(status["VmHWM"].split()[0]) / 1024)


def below(root, found):
    """The processes of `found` that a process started, or that those started."""
    ours = {root}
    while more := {pid for pid, (parent, *_) in found.items() if parent in ours} - ours:
        ours |= more
    return ours - {root}


def watched(code, *arguments):
    """CPU seconds and most MiB of a Python process, of its Java and of its workers; and its wall time."""
    begin, seen = time.monotonic(), {}
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        look(seen)
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"the process must end well (got {process.returncode})")
    children = [seen[pid] for pid in below(process.pid, seen)]
    kinds = {"driver": [seen[process.pid]], "java": [one for one in children if one[1] == "java"],
             "workers": [one for one in children if one[1].startswith("python")]}
    figures = {kind: (sum(one[2] for one in found), max((one[3] for one in found), default=0))
               for kind, found in kinds.items()}
    return figures, time.monotonic() - begin


def cpu_of_all():
    """CPU seconds that this process and those below it have used, with those that ended."""
    found, ticks = {}, 0
    look(found)
    for process in {os.getpid()} | below(os.getpid(), found):
        try:
            ticks += sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    return ticks / TICKS
