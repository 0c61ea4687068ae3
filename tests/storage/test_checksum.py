"""test_checksum.py — large arrays in; other threads run and signals are heard while their checksum is computed."""

from __future__ import annotations

import mmap
import os
import signal
import sys
import threading
import time

import numpy as np

from beamwood.storage import store

SIZE = 300 << 20


def test_other_threads_run_while_a_checksum_is_computed() -> None:
    data = np.zeros(SIZE, np.uint8)
    started, done, steps = threading.Event(), threading.Event(), 0

    def work() -> None:
        nonlocal steps
        started.set()
        while not done.is_set():
            steps += 1
            time.sleep(0)  # lets others have the interpreter

    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)  # nobody is made to let go of it: other steps are those that the checksum allows
    other = threading.Thread(target=work)
    try:
        other.start()
        started.wait()
        before = steps
        store.hash_of(data)
        made = steps - before
    finally:
        done.set()
        other.join()
        sys.setswitchinterval(interval)
    assert made > 10, f"{made} steps in another thread during the checksum of {SIZE:,} bytes"


def test_signals_are_heard_during_a_long_checksum() -> None:
    size = 12 << 30  # all of it the one zero page: a mapping that is only read takes no memory
    data = np.frombuffer(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ), np.uint8)
    stop, heard = threading.Event(), 0

    def hear(_number: int, _frame: object) -> None:
        nonlocal heard
        heard += 1

    def knock() -> None:
        while not stop.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    old = signal.signal(signal.SIGUSR1, hear)
    other = threading.Thread(target=knock)
    try:
        other.start()
        before = heard
        store.hash_of(data)
        during = heard - before
    finally:
        stop.set()
        other.join()
        signal.signal(signal.SIGUSR1, old)
    assert during > 2, "a call that hears nothing sees all signals as one, when it has ended"
