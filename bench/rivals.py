"""A request in, libpecos' answer out: the rival lives in a virtual environment and a process of its own.

libpecos wants an older numpy than we do, so it gets `build/rivals/pecos`, made on first use. `Pecos` starts
`pecos_worker.py` there and talks to it one JSON line at a time; the worker holds its own clock, so both sides
can be timed in turns from one script.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
PECOS = BUILD / "rivals" / "pecos"
BASE = ("numpy<2", "scipy<1.14", "scikit-learn")
VERSION = "libpecos==1.2.8"
TYPES = {"csc": "CSC", "hash": "HASH_CHUNKED", "binary": "BINARY_SEARCH_CHUNKED"}


class RivalError(RuntimeError):
    """The rival could not be installed, died, or refused a request."""


def pecos_python() -> Path:
    """The interpreter that has libpecos; makes the virtual environment when it is not there yet."""
    python, done = PECOS / "bin" / "python", PECOS / "ready"
    if done.exists():
        return python
    print(f"installing {VERSION} into {PECOS}", file=sys.stderr)
    steps = (
        [sys.executable, "-m", "venv", str(PECOS)],
        [str(python), "-m", "pip", "install", "--quiet", *BASE],
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", VERSION],
        [str(python), "-c", "from pecos.xmc.xlinear.model import XLinearModel"],
    )
    for step in steps:
        if subprocess.run(step, stdout=sys.stderr, check=False).returncode:
            raise RivalError(f"this step of installing libpecos failed: {' '.join(step)}")
    done.touch()
    return python


class Pecos:
    """A running libpecos. Use as a context manager; every method is one request."""

    def __init__(self, nice: int = 0) -> None:
        command = ["nice", "-n", str(nice), str(pecos_python()), "-u", str(HERE / "pecos_worker.py")]
        self._worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Pecos:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._worker.stdin is not None
        self._worker.stdin.close()
        self._worker.wait()

    def versions(self) -> dict[str, str]:
        return self._ask("hello")

    def train(self, x: Path, y: Path, folder: Path, branching: int, threads: int = 1) -> float:
        """Seconds it took; `folder` then holds the model."""
        files = {"x": str(x), "y": str(y), "folder": str(folder)}
        return float(self._ask("train", **files, branching=branching, threads=threads)["seconds"])

    def load(self, kind: str, folder: Path) -> dict[str, float]:
        """kind: a key of TYPES, and the name of the model from now on. Gives seconds and resident_bytes."""
        return self._ask("load", name=kind, folder=str(folder), type=TYPES[kind])

    def unload(self, kind: str) -> None:
        self._ask("unload", name=kind)

    def queries(self, x: Path) -> None:
        self._ask("queries", x=str(x))

    def answers(self, kind: str, beam: int, k: int, out: Path) -> None:
        """Writes labels and scores of all queries to an npz file."""
        self._ask("answers", name=kind, beam=beam, k=k, out=str(out))

    def batch(self, kind: str, beam: int, k: int, threads: int = 1) -> float:
        """Microseconds a query, all queries in one call."""
        return float(self._ask("batch", name=kind, beam=beam, k=k, threads=threads)["microseconds"])

    def online(self, kind: str, beam: int, k: int, rows: int) -> list[float]:
        """Microseconds of each query, one call of its Python `predict` a row."""
        return list(self._ask("online", name=kind, beam=beam, k=k, rows=rows)["microseconds"])

    def native(self, kind: str, beam: int, k: int, rows: int) -> list[float]:
        """Microseconds of each query, one call of its C function a row, arguments prepared."""
        return list(self._ask("native", name=kind, beam=beam, k=k, rows=rows)["microseconds"])

    def _ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(json.dumps({"do": verb, **arguments}) + "\n")
        self._worker.stdin.flush()
        line = self._worker.stdout.readline()
        if not line:
            raise RivalError(f"libpecos ended during {verb!r} (exit code {self._worker.wait()})")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise RivalError(f"libpecos, {verb!r}: {reply['error']}")
        return reply
