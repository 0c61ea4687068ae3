"""cutting.py — model files cut under searching threads in; answers or the error out (promise 5)."""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path

from support.models import large_model, large_queries

import beamwood as bw
from promises.outcome import Outcome


def cut(folder: Path, size: float, seed: int, only: int | None = None, plant: str = "") -> Outcome:
    """Four threads search while the file is cut. plant: "no handler" takes ours away."""
    outcome, source = Outcome(told=f"seed {seed}", full=1000), folder / "source.bw"
    large_model().save(source)
    content = source.read_bytes()
    for number in range(max(3, int(1000 * size))) if only is None else [only]:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(_once(folder / f"{number}.bw", content, random.Random(f"{seed} {number}"), plant))
        status = os.waitpid(child, 0)[1]
        died = f"died by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else ""
        wrong = {0: "", 1: "a wrong answer", 2: "another error"}.get(os.waitstatus_to_exitcode(status), "odd")
        outcome.add(f"case {number}: {died or wrong}" if died or wrong else None)
        (folder / f"{number}.bw").unlink(missing_ok=True)
    return outcome


def _once(path: Path, content: bytes, dice: random.Random, plant: str) -> int:
    path.write_bytes(content)
    model, queries = bw.load(path), large_queries(3, dice.randrange(1000))
    expected = model.topk(queries, 5)
    if plant == "no handler":
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
    found: list[int] = []

    def search() -> None:
        try:
            while True:
                labels, scores = model.topk(queries, 5)
                if not ((labels == expected[0]).all() and (scores == expected[1]).all()):
                    found.append(1)
        except bw.FormatError as error:
            found.append(0 if "was cut" in str(error) else 2)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    os.truncate(path, dice.choice((0, 1, 4096, dice.randrange(len(content)))))
    for thread in threads:
        thread.join()
    return max(found)
