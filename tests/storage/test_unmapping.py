"""test_unmapping.py — the last hold on a large file that is gone in; other threads run while its pages are freed."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

from beamwood import _core
from beamwood.storage import store

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


def _in_memory(path: Path) -> int:
    """Bytes of a file's mapping that this process has in memory."""
    ours, found = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            ours = words[-1] == str(path)
        elif ours and words[0] == "Rss:":
            found += int(words[1]) << 10
    return found


def test_a_mapped_file_that_is_written_anew_leaves_little_of_it_in_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = {name: rng.integers(0, 1 << 32, 1 << 21, np.uint32) for name in "abcd"}  # 8 MiB each
    store.write_file(tmp_path / "first", given, {})
    arrays, _ = store.read_file(tmp_path / "first", memory="map", verify=False)
    assert [int(array.sum()) for array in arrays.values()] == [int(array.sum()) for array in given.values()]
    assert _in_memory(tmp_path / "first") > 24 << 20
    store.write_file(tmp_path / "second", arrays, {})
    assert _in_memory(tmp_path / "first") < 1 << 20
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert all(np.array_equal(array, given[name]) for name, array in arrays.items())
