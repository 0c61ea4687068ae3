"""outcome.py — what a campaign tried in, cases, failures and a replay line out; and the injected library, compiled."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.processes import without_coverage

HERE = Path(__file__).parent
FILES, MEMORY = 1, 2
KILL_BEFORE, KILL_AFTER, SHORT = -1, -2, -3


@dataclass
class Outcome:
    """What came of a campaign. A failure says what to give to see it again; full: the cases of the long form."""

    cases: int = 0
    failures: list[str] = field(default_factory=list)
    told: str = ""
    full: int = 0

    def add(self, failure: str | None) -> None:
        """One more case, and what was wrong with it."""
        self.cases += 1
        if failure:
            self.failures.append(failure)


def injected(folder: Path) -> Path:
    """The library of faults.c."""
    library = folder / "faults.so"
    if not library.exists():
        compiler = os.environ.get("CC", "gcc")
        subprocess.run(
            [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(HERE / "faults.c"), "-ldl"], check=True
        )
    return library


def inside(folder: Path, module: str, *words: object) -> str:
    """Runs main(*words) of a module of this room in a process that has the library; what it prints."""
    planted = bool(words and words[-1])  # what its many children run is no coverage, and writing it takes minutes
    given = without_coverage() if planted else dict(os.environ)
    return apart(module, *words, given={**given, "LD_PRELOAD": str(injected(folder)), "OPENBLAS_NUM_THREADS": "1"})


def apart(module: str, *words: object, given: dict[str, str]) -> str:
    """Runs main(*words) of a module of this room in a process of its own with this environment; what it prints."""
    code = f"import sys; sys.path.insert(0, sys.argv[1]); from promises.{module} import main; main(*sys.argv[2:])"
    command = [sys.executable, "-c", code, str(HERE.parent), *map(str, words)]
    found = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(f"{module} {words} ended with {found.returncode}: {found.stderr[-2000:]}")
    return found.stdout


def read(printed: str) -> Outcome:
    """The outcome of what `show` printed."""
    outcome = Outcome()
    for line in printed.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "cases":
            outcome.cases += int(rest)
        elif kind == "full":
            outcome.full = int(rest)
        elif kind == "failure":
            outcome.failures.append(rest)
        elif kind == "told":
            outcome.told = rest
    return outcome


def show(outcome: Outcome) -> None:
    """Prints an outcome for `read`."""
    print("cases", outcome.cases)
    print("full", outcome.full)
    for failure in outcome.failures:
        print("failure", failure.replace("\n", " | "))
    print("told", outcome.told, flush=True)


def library() -> Any:
    """The injected library of this process."""
    return ctypes.CDLL(None)
