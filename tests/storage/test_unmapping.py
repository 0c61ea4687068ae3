"""test_unmapping.py — the last hold on a large file that is gone in; other threads run while its pages are freed."""

from __future__ import annotations

import os
import sys
import threading
import time

from beamwood import _core

SIZE = 256 << 20
TRIES = 20  # a busy machine may not give the other thread a turn within the milliseconds that one takes


def _deleted_file() -> int:
    number = os.memfd_create("gone")
    piece = bytes(16 << 20)
    for _ in range(SIZE // len(piece)):
        os.write(number, piece)
    return number


def test_other_threads_run_while_a_deleted_file_is_let_go() -> None:
    started, done, steps = threading.Event(), threading.Event(), 0

    def work() -> None:
        nonlocal steps
        started.set()
        while not done.is_set():
            steps += 1
            time.sleep(0)  # lets others have the interpreter

    made = 0
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)  # nobody is made to let go of it: other steps are those that the unmapping allows
    other = threading.Thread(target=work)
    try:
        other.start()
        started.wait()
        for _ in range(TRIES):
            number = _deleted_file()
            held = _core.MappedFile(number)
            os.close(number)
            before = steps
            del held
            made = steps - before
            if made:
                break
    finally:
        done.set()
        other.join()
        sys.setswitchinterval(interval)
    assert made, f"no step in another thread while {SIZE:,} bytes were let go, {TRIES} times"
