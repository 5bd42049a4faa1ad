"""Strategies that do harm: `unruly` makes one for groups with a topic of three partitions.

Those that have names do it for groups named after them; other processes find them as `unruly:name`.
"""

import ctypes
import faulthandler
import os
import resource
import signal
import sys
import time
from pathlib import Path

from kafka_assign.assignors.baselines import range_assign
from kafka_assign.assignors.base import Strategy

NEVER = 1000  # seconds
inherited = []  # sockets of the process that asks


def fork_and_leave():
    """A process of its own outlives the strategy and holds all that it has open."""
    if os.fork():
        os._exit(3)
    time.sleep(NEVER)


def close_everything():
    os.closerange(3, 1024)


def write_everywhere():
    print("printed")
    os.write(1, b"written\n")
    if os.read(0, 1):
        raise RuntimeError("it reads what is meant for the worker")
    for socket in inherited:
        os.write(socket.fileno(), b"noise")


def interrupt_the_worker(number=signal.SIGINT):
    """While it waits for an answer: Python loses an interrupt in the middle of a fork, and then never frees a lock."""
    idle = 0
    while idle < 10:                    # a short sleep may be one in the fork, for another thread to let it go on
        idle = idle + 1 if " S " in Path(f"/proc/{os.getppid()}/stat").read_text() else 0
        time.sleep(0.003)
    os.kill(os.getppid(), number)
    time.sleep(NEVER)


def exit_with(code):
    return lambda: os._exit(code)


def quietly(crash):
    """What a crash does, without a report of pytest and without a file."""
    def crashes():
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        crash()
    return crashes


def raise_error():
    raise RuntimeError("out of luck\nand out of words")


DEEDS = {
    "raises": raise_error, "leaves": lambda: sys.exit(3), "exits": exit_with(7), "exits_well": exit_with(0),
    "is_killed": lambda: os.kill(os.getpid(), signal.SIGKILL), "crashes": quietly(lambda: ctypes.string_at(0)),
    "aborts": quietly(os.abort), "leaves_a_process": fork_and_leave, "closes": close_everything,
    "writes": write_everywhere, "forks": os.fork, "hangs": lambda: time.sleep(NEVER),
    "loops_in_c": lambda: sum(range(10**13)), "interrupts": interrupt_the_worker}


def unruly(deed, many):
    """The strategy that answers as `range`, and does it before for a group with a topic of three partitions."""
    def function(given):
        columns = given if many else given.columns
        if (columns.partitions == 3).any():
            DEEDS[deed]()
        return range_assign(columns)
    return Strategy(deed, function, many=many)


def by_name(deed):
    """The function of that name that keeps all owners, and does it before for a group whose name begins so."""
    def function(group):
        if group.name.startswith(deed):
            DEEDS[deed]()
        return group.previous
    function.__name__ = function.__qualname__ = deed
    return function


raises, exits, hangs = map(by_name, ["raises", "exits", "hangs"])
