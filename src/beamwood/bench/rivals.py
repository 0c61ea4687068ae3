"""A request in, a rival's answer out: each rival lives in a virtual environment and a process of its own.

Rivals pin older packages than we do, so each gets `build/rivals/NAME` where the bench is started, made from PyPI on
first use. A `Rival` starts its script in `workers/` there and talks to it one JSON line at a time; the worker holds its
own clock, so both sides can be timed in turns from one script.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from beamwood.errors import BeamwoodError

BUILD = Path("build").resolve()
WORKERS = Path(__file__).resolve().parent / "workers"
PECOS_VERSION = "libpecos==1.2.8"
TYPES = {"csc": "CSC", "hash": "HASH_CHUNKED", "binary": "BINARY_SEARCH_CHUNKED"}  # of libpecos

# What pip installs, a line a call; then the import that must work.
PACKAGES: dict[str, tuple[tuple[tuple[str, ...], ...], str]] = {
    "libpecos": ((("numpy<2", "scipy<1.14", "scikit-learn"), ("--no-deps", PECOS_VERSION)), "pecos.xmc.xlinear"),
    "napkinxc": ((("numpy<2", "scipy<1.14", "napkinxc==0.7.2"),), "napkinxc.models"),
    "omikuji": ((("numpy", "scipy", "omikuji==0.5.2"),), "omikuji"),
    "libmultilabel": ((("torch",), ("libmultilabel==0.10.0",)), "libmultilabel.linear"),
    "bm25s": ((("numpy", "scipy", "bm25s"),), "bm25s"),
    "annif": ((("annif==1.4.*",),), "annif"),
}
TIMED = ("libpecos", "napkinxc", "omikuji")  # those with a worker, which a plan may name


class RivalError(BeamwoodError):
    """The rival could not be installed, died, or refused a request."""


def python_of(name: str) -> Path:
    """The interpreter that has this rival; makes its virtual environment when it is not there yet."""
    home = BUILD / "rivals" / name
    with _alone(home.with_suffix(".lock")):
        if not (home / "ready").exists():
            _install(name, home)
    return home / "bin" / "python"


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Two benches that start at once must not build the same environment."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _install(name: str, home: Path) -> None:
    calls, module = PACKAGES[name]
    python = str(home / "bin" / "python")
    print(f"installing {name} into {home}", file=sys.stderr, flush=True)
    steps = [[sys.executable, "-m", "venv", "--clear", str(home)]]
    steps += [[python, "-m", "pip", "install", "--quiet", *call] for call in calls]
    steps += [[python, "-c", f"import {module}"]]
    for step in steps:
        if subprocess.run(step, stdout=sys.stderr, check=False).returncode:
            raise RivalError(f"This step of installing {name} failed: {' '.join(step)}")
    (home / "ready").touch()


class Rival:
    """A running rival. Use as a context manager; every method is one request."""

    name: str
    script: str

    def __init__(self, nice: int = 0) -> None:
        command = ["nice", "-n", str(nice), str(python_of(self.name)), "-u", str(WORKERS / self.script)]
        self._worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._worker.stdin is not None
        self._worker.stdin.close()
        self._worker.wait()

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

    name, script = "libpecos", "serve_pecos.py"

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
        """Microseconds a query, all queries in one call."""
        return float(self.ask("batch", name=kind, beam=beam, k=k, threads=threads)["microseconds"])

    def online(self, kind: str, beam: int, k: int, rows: int) -> list[float]:
        """Microseconds of each query, one call of its Python `predict` a row."""
        return list(self.ask("online", name=kind, beam=beam, k=k, rows=rows)["microseconds"])

    def native(self, kind: str, beam: int, k: int, rows: int) -> list[float]:
        """Microseconds of each query, one call of its C function a row, arguments prepared."""
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

    name, script = "napkinxc", "serve_napkinxc.py"


class Omikuji(Simple):
    """omikuji: Parabel and Bonsai in Rust."""

    name, script = "omikuji", "serve_omikuji.py"
