"""memory.py — one allocation of a call is refused in; its answer, MemoryError or our error out (promise 4)."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.models import small_model, small_queries
from support.serving import LABELS, TEXTS, shop

import beamwood as bw
from promises.outcome import MEMORY, Outcome, inside, library, read, show

REFUSE = 12  # ENOMEM
SECONDS = 60
NANOBIND = "inside nanobind, which ends the process when its own few bytes are refused: "


def refused(folder: Path, size: float, seed: int, plant: str = "") -> Outcome:
    """Every allocation in turn. plant: "swallow" makes of a MemoryError an empty answer."""
    return read(inside(folder, "memory", folder, size, seed, plant))


def main(folder: str, size: str, seed: str, plant: str) -> None:
    """Inside the process that has the library."""
    most, dice = max(20, int(3000 * float(size))), random.Random(int(seed))
    outcome, per_use = Outcome(), []
    for name, use in uses(Path(folder)).items():
        call = swallowed(use) if plant == "swallow" else use
        expected = call()
        count = allocations(call)
        chosen = range(count) if count <= most else sorted(dice.sample(range(count), most))
        for number in chosen:
            failure = once(call, number, expected)
            outcome.add(f"{name}, allocation {number} of {count}: {failure}" if failure else None)
        per_use.append(f"{name} {len(chosen)} of {count}")
    outcome.told = "allocations refused: " + ", ".join(per_use) + f"; seed {seed}"
    show(outcome)


def uses(folder: Path) -> dict[str, Callable[[], Any]]:
    """What is done while memory is refused; each gives something that can be compared."""
    model, words, X = small_model(), shop(), small_queries()
    path = folder / "memory.bw"
    words.save(path)
    chunks = model.using(layout="chunk")
    return {
        "topk": lambda: [part.tobytes() for part in model.topk(X, 5, threads=2)],
        "chunk": lambda: [part.tobytes() for part in chunks.topk(X, 5)],
        "load": lambda: bw.load(path).search("red wool")[0].key,
        "search": lambda: [hit.key for hit in words.search("red wool")],
        "explain": lambda: words.explain("red wool", 0).score,
        "filter": lambda: [hit.key for hit in words.search("red wool", filter=words.filter(allow=["wool"]))],
        "train": lambda: bw.train_text(TEXTS, LABELS, progress=False, preset="fast").info()["nonzeros"],
        "compress": lambda: model.compress("u8").info()["bytes"],
        "save": lambda: model.save(folder / "saved.bw"),
    }


def swallowed(use: Callable[[], Any]) -> Callable[[], Any]:
    """A bug: no memory is an empty answer."""

    def call() -> Any:
        try:
            return use()
        except MemoryError:
            return []

    return call


def allocations(call: Callable[[], Any]) -> int:
    """How many a call makes."""
    faults = library()
    low, high = 0, 1
    while fires(faults, call, high):
        low, high = high, high * 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fires(faults, call, middle) else (low, middle)
    return high


def fires(faults: Any, call: Callable[[], Any], number: int) -> bool:
    """Whether the allocation of this number happens at all: in a child, for what comes of it."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        faults.bw_arm(number, REFUSE, MEMORY)
        try:
            call()
        except BaseException:
            os._exit(1)
        os._exit(1 if faults.bw_disarm() else 0)
    return os.waitpid(child, 0)[1] != 0


def once(call: Callable[[], Any], number: int, expected: Any) -> str | None:
    """One allocation is refused in a child; what was wrong."""
    faults, said = library(), os.memfd_create("said")
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.dup2(said, 2)
        faults.bw_arm(number, REFUSE, MEMORY)
        try:
            found = call()
            faults.bw_disarm()
            os._exit(0 if found == expected else 3)
        except (MemoryError, bw.BeamwoodError):
            os._exit(0)
        except BaseException as error:
            faults.bw_disarm()
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(4)
    status = os.waitpid(child, 0)[1]
    last = os.pread(said, 300, 0).decode(errors="replace").strip()
    os.close(said)
    if os.WIFSIGNALED(status):
        return f"{NANOBIND if 'nanobind' in last else ''}died by {signal.Signals(os.WTERMSIG(status)).name}: {last}"
    wrong = {0: None, 3: "another answer", 4: f"a foreign exception: {last}"}
    return wrong.get(os.WEXITSTATUS(status), "ended oddly")
