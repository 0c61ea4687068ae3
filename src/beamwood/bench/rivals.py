"""rivals.py — a request in, a rival's answer out: each rival runs in an environment and a process of its own.

The environments are made outside this package (`bench/rivals/install.py` of the repository): a folder per rival whose
`ready.json` holds the command that starts its worker. A `Rival` talks to the worker one JSON line at a time; the worker
holds its own clock, so both sides can be timed in turns from one script.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from beamwood.errors import BeamwoodError

READY = "ready.json"  # in a rival's folder, once it is installed
TYPES = {"csc": "CSC", "hash": "HASH_CHUNKED", "binary": "BINARY_SEARCH_CHUNKED"}  # of libpecos
TIMED = ("libpecos", "napkinxc", "omikuji")  # those with a worker, which a plan may name


class RivalError(BeamwoodError):
    """The rival is not installed, died, or refused a request."""


def check_ready(homes: Path | None, names: tuple[str, ...]) -> None:
    """Refuses before hours of work what would fail after them: a rival of the plan that nobody installed."""
    for name in names:
        _command(homes, name)


def _command(homes: Path | None, name: str) -> list[str]:
    """What starts the worker of a rival."""
    install = f"Make it from a clone with `python bench/rivals/install.py {name}`"
    if homes is None:
        raise RivalError(
            f"The plan names the rival {name}, but no folder of rivals is given. {install}, add --rivals build/rivals."
        )
    try:
        found = json.loads((homes / name / READY).read_text(encoding="utf-8"))["worker"]
    except (OSError, ValueError, KeyError, TypeError):
        raise RivalError(f"{homes / name} holds no installed rival. {install}.") from None
    return list(found)


class Rival:
    """A running rival. Use as a context manager; every method is one request."""

    name: str

    def __init__(self, homes: Path | None, nice: int = 0) -> None:
        command = ["nice", "-n", str(nice), *_command(homes, self.name)]
        self._worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.close()
        self._worker.wait()
        self._worker.stdout.close()

    def versions(self) -> dict[str, str]:
        return self.ask("hello")

    def queries(self, x: Path) -> None:
        """The rows that everything below is about, as scipy's npz."""
        self.ask("queries", x=str(x))

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(json.dumps({"do": verb, **arguments}) + "\n")
        self._worker.stdin.flush()
        line = self._worker.stdout.readline()
        if not line:
            raise RivalError(f"{self.name} ended during {verb!r} (exit code {self._worker.wait()}).")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise RivalError(f"{self.name}, {verb!r}: {reply['error']}")
        return reply


class Pecos(Rival):
    """libpecos: the code of the paper's authors."""

    name = "libpecos"

    def train(self, x: Path, y: Path, folder: Path, branching: int, threads: int = 1) -> float:
        """Seconds it took; `folder` then holds the model."""
        files = {"x": str(x), "y": str(y), "folder": str(folder)}
        return float(self.ask("train", **files, branching=branching, threads=threads)["seconds"])

    def load(self, kind: str, folder: Path) -> dict[str, float]:
        """kind: a key of TYPES, and the name of the model from now on. Gives seconds and resident_bytes."""
        return self.ask("load", name=kind, folder=str(folder), type=TYPES[kind])

    def unload(self, kind: str) -> None:
        self.ask("unload", name=kind)

    def answers(self, kind: str, beam: int, k: int, out: Path) -> None:
        """Writes labels and scores of all queries to an npz file."""
        self.ask("answers", name=kind, beam=beam, k=k, out=str(out))

    def batch(self, kind: str, beam: int, k: int, threads: int = 1) -> float:
        """Microseconds per query, all queries in one call."""
        return float(self.ask("batch", name=kind, beam=beam, k=k, threads=threads)["microseconds"])

    def online(self, kind: str, beam: int, k: int, rows: int) -> list[float]:
        """Microseconds of each query, one call of its Python `predict` per row."""
        return list(self.ask("online", name=kind, beam=beam, k=k, rows=rows)["microseconds"])

    def native(self, kind: str, beam: int, k: int, rows: int) -> list[float]:
        """Microseconds of each query, one call of its C function per row, arguments prepared."""
        return list(self.ask("native", name=kind, beam=beam, k=k, rows=rows)["microseconds"])


class Simple(Rival):
    """A rival with one way to predict: load, answers, batch, online. A beam of 0 asks for its exact search."""

    def load(self, folder: Path) -> dict[str, float]:
        return self.ask("load", folder=str(folder))

    def answers(self, beam: int, k: int, out: Path) -> None:
        self.ask("answers", beam=beam, k=k, out=str(out))

    def batch(self, beam: int, k: int) -> float:
        return float(self.ask("batch", beam=beam, k=k)["microseconds"])

    def online(self, beam: int, k: int, rows: int) -> list[float]:
        return list(self.ask("online", beam=beam, k=k, rows=rows)["microseconds"])


class NapkinXC(Simple):
    """napkinxc: searches its trees exactly."""

    name = "napkinxc"


class Omikuji(Simple):
    """omikuji: Parabel and Bonsai in Rust."""

    name = "omikuji"
