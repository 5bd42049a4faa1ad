"""How benchmarks measure: CPU seconds of this process, and the floor that no program can go below."""
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median

import numpy as np


def cpu(function: Callable, times: int = 5) -> float:
    "Median CPU seconds of a call, until its answer is there; that the caller drops it is not counted."
    taken = []
    for _ in range(times):
        begin = time.process_time()
        answer = function()
        taken.append(time.process_time() - begin)
        del answer
    return median(taken)


def warm(function: Callable, times: int = 100, seconds: float = 15) -> None:
    "Call so often, or until the calls together took so long: until the memory of one call serves the next."
    begin = time.process_time()
    for _ in range(times):
        function()
        if time.process_time() - begin > seconds:
            break


def in_own_process(function: Callable, *arguments):
    "What the function returns in a process of its own, whose memory nothing else has cut up before."
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def floor(partitions: int, members: int) -> float:
    "CPU seconds of one count of a sorted owner column, and one copy of it; small ones are repeated for the clock."
    owner = np.sort(np.random.default_rng(0).integers(0, members, partitions)).astype(np.int32)
    times = max(1, 1_000_000 // partitions)

    def count_and_copy():
        for _ in range(times):
            np.bincount(owner, minlength=members), owner.copy()
    return cpu(count_and_copy, 15) / times


def verdict(met: bool) -> str:
    "How a figure stands against what is asked."
    return "met" if met else "MISSED"
