"""reload.py — a wish for the files that are there now in; those, verified, in every worker, out.

The steps of one reload: the files are opened; a process of its own, which yields to those that answer, reads and
verifies all of them; when they are good they are the files of this server, and one worker after the other takes them.
Wishes that come meanwhile are met by the next reload. A file that is not good is refused and nothing changes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from beamwood.server.options import ServeOptions
from beamwood.server.process.handover import BadModel, OpenFiles, memory_file, read_memory
from beamwood.server.process.log import Log

_NICE = 19


class Taker(Protocol):
    """A worker, as far as a reload knows it."""

    generation: int  # of the files that it serves, or was last told to take
    taking: bool  # whether it is about to take some

    def tell(self, message: dict[str, Any], files: OpenFiles | None = None) -> bool:
        """Sends it a message; whether that was possible."""


class Reloads:
    """The files of a server, and how new ones take their place. `step` goes on with what is under way."""

    def __init__(self, options: ServeOptions, settings: int, files: OpenFiles, log: Log) -> None:
        self._options, self._settings, self._log = options, settings, log
        self.files, self.generation = files, 0
        self._asked: list[Taker | None] = []  # who wants a reload that has not begun; None: a signal
        self._waiting: list[Taker | None] = []  # who wants the one that is under way
        self._candidate: OpenFiles | None = None
        self._verifier: subprocess.Popen[bytes] | None = None
        self._verdict = -1

    def ask(self, who: Taker | None) -> None:
        """Asks for a reload."""
        self._asked.append(who)

    def step(self, workers: Sequence[Taker]) -> None:
        """Goes on as far as is possible now."""
        if self._verifier is not None:
            if self._verifier.poll() is not None:
                self._verified(workers)
        elif self._waiting:
            self._hand_out(workers)
        elif self._asked:
            self._waiting, self._asked = self._asked, []
            self._begin(workers)

    def stop(self) -> None:
        """Ends what is under way."""
        if self._verifier is not None:
            self._verifier.kill()
            self._verifier.wait()

    def _begin(self, workers: Sequence[Taker]) -> None:
        try:
            self._candidate = OpenFiles.of(self._options)
        except BadModel as error:
            self._refuse(workers, error.name, str(error))
            return
        self._verdict = memory_file("beamwood-verdict", None)
        held = (self._settings, self._verdict, *self.files.numbers)
        self._verifier = start("verify", self._candidate, *held, nice=_NICE)

    def _verified(self, workers: Sequence[Taker]) -> None:
        assert self._candidate is not None
        assert self._verifier is not None
        code, candidate = self._verifier.returncode, self._candidate
        self._verifier = self._candidate = None
        try:
            verdict = read_memory(self._verdict)
        except ValueError:
            verdict = None
        if code == 0 and verdict is None:
            self.files.close()
            self.files, self.generation = candidate, self.generation + 1
            self._hand_out(workers)
            return
        candidate.close()
        first = next(iter(self._options.models))
        verdict = verdict or {"name": first, "message": f"The process that verifies it ended with {code}."}
        self._refuse(workers, verdict["name"], verdict["message"])

    def _refuse(self, workers: Sequence[Taker], name: str, message: str) -> None:
        self._log.event("model refused", model=name, message=message)
        self._tell_all({"event": "refused", "name": name}, workers)

    def _hand_out(self, workers: Sequence[Taker]) -> None:
        """One at a time, so that all others answer as ever meanwhile."""
        if any(worker.taking for worker in workers):
            return
        for worker in workers:
            if worker.generation < self.generation:
                worker.generation = self.generation
                worker.taking = worker.tell({"event": "take", "models": list(self.files.models)}, self.files)
                if worker.taking:
                    return
        self._tell_all({"event": "reloaded"}, ())

    def _tell_all(self, outcome: dict[str, Any], workers: Sequence[Taker]) -> None:
        """Tells the outcome to those who asked; one worker, whoever it is, counts it."""
        told = [who for who in self._waiting if who is not None] or list(workers)[:1]
        for number, who in enumerate({id(who): who for who in told}.values()):
            who.tell({**outcome, "counts": number == 0})
        self._waiting = []


def start(
    module: str, files: OpenFiles, *numbers: int, before: tuple[int, ...] = (), nice: int = 0
) -> subprocess.Popen[bytes]:
    """Starts a module of this folder. The words of its command line are numbers: first others, then of open files."""
    shared = (*numbers, *files.numbers)
    name = f"beamwood.server.process.{module}"
    how = ["-c", f"import os; os.nice({nice}); from {name} import main; main()"] if nice else ["-m", name]
    command = [sys.executable, *how, *map(str, (*before, *shared))]
    stderr = subprocess.DEVNULL if sys.stderr is None else None
    return subprocess.Popen(command, pass_fds=shared, stdin=subprocess.DEVNULL, stderr=stderr)
