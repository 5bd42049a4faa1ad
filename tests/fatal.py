"""Strategies that answer as `range`, and for a group with a topic of three partitions do something else before."""

import ctypes
import faulthandler
import os
import resource
import signal
import sys
import time

from kafka_assign.assignors.baselines import range_assign
from kafka_assign.registry import Strategy

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


def interrupt_the_worker():
    os.kill(os.getppid(), signal.SIGINT)
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
    raise RuntimeError("three")


DEEDS = {
    "raises": raise_error, "leaves": lambda: sys.exit(3), "exits": exit_with(7), "exits_well": exit_with(0),
    "is_killed": lambda: os.kill(os.getpid(), signal.SIGKILL), "crashes": quietly(lambda: ctypes.string_at(0)),
    "aborts": quietly(os.abort), "leaves_a_process": fork_and_leave, "closes": close_everything,
    "writes": write_everywhere, "forks": os.fork, "sleeps": lambda: time.sleep(NEVER),
    "loops_in_c": lambda: sum(range(10**13)), "interrupts": interrupt_the_worker}


def fatal(deed, many):
    """The strategy that does it."""
    def function(given):
        columns = given if many else given.columns
        if (columns.partitions == 3).any():
            DEEDS[deed]()
        return range_assign(columns)
    return Strategy(deed, function, many=many)


exits = fatal("exits", many=True)
sleeps = fatal("sleeps", many=False)
