"""threading_runs.py — 64 threads that search, forks and signals at random moments in; no dead-lock out (promise 8)."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from support.models import large_model, large_queries
from support.processes import without_coverage

from promises.outcome import Outcome, apart, read, show

SECONDS = 60
SECONDS_OF_A_PLANTED_LOCK = 5


def runs(folder: Path, size: float, seed: int, only: int | None = None, plant: str = "") -> Outcome:
    """So many runs, each in a process of its own. plant: "lock" takes a lock that a fork copies while it is held."""
    del folder
    case = "" if only is None else only
    return read(apart("threading_runs", size, seed, case, plant, given=without_coverage()))


def main(size: str, seed: str, case: str, plant: str) -> None:
    """The runs, in a process whose forks copy no lock of a tool."""
    show(_runs(float(size), int(seed), int(case) if case else None, plant))


def _runs(size: float, seed: int, only: int | None, plant: str) -> Outcome:
    told = f"seed {seed}; 64 threads, forks, SIGALRM; TSan: make sanitize"
    outcome, model = Outcome(told=told, full=1000), large_model()
    seconds = SECONDS_OF_A_PLANTED_LOCK if plant else SECONDS
    for number in range(max(3, int(1000 * size))) if only is None else [only]:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, lambda *_: None)
            os._exit(_once(model, random.Random(f"{seed} {number}"), plant, 2 * seconds))
        outcome.add(_ended(child, number, seconds))
    return outcome


def _ended(child: int, number: int, seconds: int) -> str | None:
    """Waits for a run; what was wrong with it."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return None if status == 0 else f"run {number}: ended with {os.waitstatus_to_exitcode(status)}"
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"run {number}: it did not end in {seconds} s"


def _once(model: object, dice: random.Random, plant: str, seconds: int) -> int:
    queries, lock = large_queries(4), threading.Lock()
    sys.setswitchinterval(dice.choice((1e-6, 1e-4, 5e-3)))
    expected = model.topk(queries, 5)[0]  # type: ignore[attr-defined]
    started = threading.Barrier(65)
    wrong: list[int] = []

    def search(pause: float) -> None:
        started.wait()
        time.sleep(pause)
        if not (model.topk(queries, 5, threads=1 + int(pause * 1e6) % 3)[0] == expected).all():  # type: ignore[attr-defined]
            wrong.append(1)

    threads = [threading.Thread(target=search, args=(dice.random() * 0.005,)) for _ in range(64)]
    for thread in threads:
        thread.start()
    signal.setitimer(signal.ITIMER_REAL, dice.random() * 0.01 + 1e-4, 0.003)
    started.wait()
    if plant == "lock":
        lock.acquire()
    time.sleep(dice.random() * 0.005)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)  # one that waits for ever is seen from outside, and stays with nobody
        with lock:  # held by nobody, but for the planted bug
            same = (model.topk(queries, 5, threads=2)[0] == expected).all()  # type: ignore[attr-defined]
        os._exit(0 if same else 1)
    failed = os.waitpid(child, 0)[1]
    for thread in threads:
        thread.join()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return 1 if failed or wrong else 0
