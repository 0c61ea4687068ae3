"""reading.py — hostile bytes for every reader in; rows or our error out, in bounded memory (promise 17)."""

from __future__ import annotations

import gzip
import os
import random
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.inputs import data, records
from promises.outcome import Outcome

ROOM = 2 << 30  # bytes of address space a child may have beyond what it starts with
SECONDS = 60
WILD = (
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"9" * 400,
    b"-1",
    b"nan",
    b"inf",
    b"1e999",
    b":",
    b",",
    b'"',
    b"\n",
    b"\r",
    b" ",
    b"{",
    b"[" * 200,
    b"\\ud800",
    b"18446744073709551616",
    b"\xef\xbb\xbf",
    b"\t",
    b";",
)


def seeds() -> dict[str, tuple[str, bytes, Callable[[Path], Any]]]:
    """A valid file of each format: its ending, its bytes, its reader."""
    rows = b"3 5 4\n0,1 0:1.5 2:0.25\n2 1:1\n0 4:3\n"
    csv = b'text,labels\nred wool,socks;wool\n"a ""b""",hats\n'
    lines = b'{"text": "red wool", "labels": ["socks"]}\n{"text": "hat", "labels": ["hats"]}\n'
    npz = _npz()
    return {
        "xmc": ("txt", rows, data.read_xmc),
        "svmlight": ("svm", b"0,1 1:1.5 3:0.25\n2 2:1\n", data.read_svmlight),
        "csv": ("csv", csv, records.read_records),
        "tsv": ("tsv", csv.replace(b",", b"\t"), records.read_records),
        "jsonl": ("jsonl", lines, records.read_records),
        "jsonl.gz": ("jsonl.gz", gzip.compress(lines), records.read_records),
        "npz": ("npz", npz, data.read_matrix),
    }


def _npz() -> bytes:
    import io

    made = io.BytesIO()
    sp.save_npz(made, sp.csr_matrix(np.eye(4, dtype=np.float32)))
    return made.getvalue()


def spoiled(valid: bytes, dice: random.Random) -> bytes:
    """A few bytes replaced, taken away, doubled, or wild ones put in."""
    found = bytearray(valid)
    for _ in range(1 + dice.randrange(4)):
        at, size = dice.randrange(len(found) + 1), dice.choice((0, 1, 1, 2, 8, 40))
        choice = dice.randrange(5)
        if choice == 0:
            found[at : at + size] = b""
        elif choice == 1:
            found[at:at] = dice.choice(WILD)
        elif choice == 2:
            found[at : at + size] = dice.choice(WILD)
        elif choice == 3 and at < len(found):
            found[at] ^= 1 << dice.randrange(8)
        else:
            found[at:at] = found[at : at + size] * dice.choice((1, 3, 50))
    return bytes(found)


def bombs(folder: Path) -> list[tuple[str, Path, Callable[[Path], Any]]]:
    """Files that are small and would be large: a line without an end, compressed; zeros, compressed."""
    made: list[tuple[str, Path, Callable[[Path], Any]]] = []
    for name, piece in (("zeros", bytes(1 << 20)), ("one line", b"a" * (1 << 20)), ("brackets", b"[" * (1 << 20))):
        path = folder / f"{name}.jsonl.gz"
        member = gzip.compress(piece * 64, compresslevel=1)
        with open(path, "wb") as file:
            for _ in range(160):  # 10 GiB in all: the parts of such a file are read as one
                file.write(member)
        made.append((name, path, records.read_records))
    return made


def hostile(folder: Path, size: float, seed: int, only: int | None = None, plant: str = "") -> Outcome:
    """Promise 17: so many inputs of each format. plant: "assert" makes a reader fail with an AssertionError."""
    told = f"seed {seed}; bombs of 10 GiB {'too' if size >= 1 else 'not in this form'}"
    outcome = Outcome(told=told, full=100_000 * len(seeds()))
    count = max(20, int(100_000 * size))
    for kind, (ending, valid, reader) in seeds().items():
        use = _asserting(reader) if plant == "assert" else reader
        numbers = range(count) if only is None else [only]
        _batch(kind, ending, valid, use, list(numbers), folder, seed, outcome)
    for name, path, reader in bombs(folder) if size >= 1 else []:
        outcome.add(_child(lambda reader=reader, path=path: reader(path), name))
    return outcome


def _asserting(reader: Callable[[Path], Any]) -> Callable[[Path], Any]:
    def call(path: Path) -> Any:
        assert b"\0" not in path.read_bytes(), "a planted bug"
        return reader(path)

    return call


def _batch(
    kind: str,
    ending: str,
    valid: bytes,
    reader: Callable[[Path], Any],
    numbers: list[int],
    folder: Path,
    seed: int,
    outcome: Outcome,
) -> None:
    """Many inputs in one child, which says which one it is at; after a death the next child goes on behind it."""
    progress, path = folder / f"{kind}.at", folder / f"hostile.{ending}"
    note = os.open(progress, os.O_WRONLY | os.O_CREAT)
    at = 0
    while at < len(numbers):
        part = numbers[at : at + 2000]

        def all_of(part: list[int] = part) -> None:
            for number in part:
                os.pwrite(note, b"%12d" % number, 0)
                path.unlink(missing_ok=True)  # one that is cut and written again waits for the disk
                path.write_bytes(spoiled(valid, random.Random(f"{seed} {kind} {number}")))
                try:
                    reader(path)
                except bw.BeamwoodError as error:
                    if len(str(error)) > 2000:
                        raise AssertionError("an error of over 2,000 characters") from error

        failure = _child(all_of, kind)
        done = part.index(int(progress.read_text())) + 1 if failure else len(part)
        outcome.cases += done
        if failure:
            outcome.failures.append(f"{failure}, input {int(progress.read_text())} (seed {seed})")
        at += done
    os.close(note)


def _child(call: Callable[[], Any], what: str) -> str | None:
    """Runs something with little memory and time; what was wrong."""
    child = os.fork()
    if child == 0:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
        signal.alarm(SECONDS * 10)
        try:
            call()
        except bw.BeamwoodError:
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{what}: {type(error).__name__}: {error}\n"[:500].encode())
            os._exit(4)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"{what}: died by {signal.Signals(os.WTERMSIG(status)).name}"
    return None if os.WEXITSTATUS(status) == 0 else f"{what}: a foreign exception"
