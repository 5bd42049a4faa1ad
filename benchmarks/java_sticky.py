"""Kafka's own sticky assignor beside ours: the real class from kafka-clients; to be measured, in a process of its own.

Called as a consumer calls it: its CPU time includes that user data is decoded, and that a map of lists of
`TopicPartition`s is made; metadata and subscriptions are made before. Ten calls warm it, or five seconds of them; five
more are measured. `JavaSticky.java` says the rest. Answers alone come from one process for many groups.
"""
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

from families import Arrays
from jars import NoJars, jars
from java import find_jdk

MOST_SECONDS = 60


class JavaAnswer(NamedTuple):
    "What Java answered, and what it took."
    seconds: float
    "CPU seconds of a call after ten others; 60 if it was stopped"
    hot_seconds: float
    "the same after hundreds of calls, if ten take less than a second"
    owner: np.ndarray | None
    "the owner column, None if it was stopped"


STOPPED = JavaAnswer(MOST_SECONDS, MOST_SECONDS, None)


@cache
def java_command() -> list[str]:
    "How to start it, but for the group; `NoJars` says in a line why not."
    if find_jdk() is None:
        raise NoJars("no JDK 17 or newer")
    return [find_jdk(), "-Xmx6g", "-cp", f"{jars()}/*", str(HERE / "JavaSticky.java")]


def as_ints(of: Arrays) -> np.ndarray:
    "The group as `JavaSticky.java` reads it."
    _, topic = np.nonzero(of.subscriptions)
    count = of.subscriptions.sum(axis=1)
    subscribed = np.insert(topic, np.cumsum(count) - count, count)     # before the topics of each member, how many
    previous = np.full(int(of.partitions.sum()), -1) if of.previous is None else of.previous
    head = [len(of.topics), len(of.members), of.racks]
    return np.concatenate([head, of.partitions, subscribed, previous]).astype(">i4")


def run_java(groups: Sequence[Arrays], how: str, most: int = MOST_SECONDS) -> tuple[list[str], list[np.ndarray | None]]:
    """The lines it prints, and the owner column of each group, None where it was stopped.

    Names of topics and members are those of `families.arrays`.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/group-{i}" for i in range(len(groups))]
        for path, of in zip(paths, groups):
            as_ints(of).tofile(path)
        command = [*java_command(), str(most), how, *paths]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        answers = [f"{path}.owner" for path in paths]
        return lines, [np.fromfile(answer, ">i4").astype(np.int32) if os.path.exists(answer) else None
                       for answer in answers]


def java_sticky(of: Arrays, how: str = "warm", most: int = MOST_SECONDS) -> JavaAnswer:
    """Its answer, and what it took; a call is stopped after `most` seconds.

    `how`: `bytes` = with the bytes of subscriptions and assignments.
    """
    lines, [owner] = run_java([of], how, most)
    if owner is None:
        return JavaAnswer(most, most, None)
    seconds = [median(map(int, line.split())) / 1e9 for line in lines]
    return JavaAnswer(seconds[0], seconds[-1], owner)


def java_owners(groups: Sequence[Arrays]) -> list[np.ndarray | None]:
    "Its answers alone, after one call each; None where it was stopped."
    return run_java(groups, "once")[1]


def java_owner(of: Arrays) -> np.ndarray | None:
    "Its answer alone, after one call; None if it was stopped."
    return java_owners([of])[0]
