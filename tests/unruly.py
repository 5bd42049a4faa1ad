"""Strategies that answer nothing for groups named after them; other processes find them as `unruly:name`."""
import os
import time


def raises(group):
    """Raises, with a message of two lines, for groups whose names begin with `raises`."""
    if group.name.startswith("raises"):
        raise RuntimeError("out of luck\nand out of words")
    return group.previous


def exits(group):
    """Ends its process for groups whose names begin with `exits`."""
    if group.name.startswith("exits"):
        os._exit(1)
    return group.previous


def hangs(group):
    """Does not return for groups whose names begin with `hangs`."""
    while group.name.startswith("hangs"):
        time.sleep(1)
    return group.previous
