"""partial.py — blocks of bytes in, a file that appears when all are there out; a run that was killed can go on.

The law: the target is absent, old or complete, never a piece. What a resumed run writes is byte for byte what an
undisturbed one writes.

Bytes go to `NAME.partial`. Beside it lies a journal: a first line that says what the file is made from, then one line
for each mark: rows and bytes that are safely there (synced before the line is written) and the XXH3 of the last bytes.
To go on is to cut the partial file at the last mark whose bytes are the right ones.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from beamwood import _core
from beamwood.errors import DataError, SettingsError
from beamwood.storage.draft import followed, sync_folder, take_permissions

_TAIL = 1 << 16  # bytes before a mark that it vouches for
_SECONDS = 1.0  # between two marks


@dataclass(frozen=True)
class Mark:
    """A place to go on from."""

    rows: int = 0
    bytes: int = 0
    tail: str = ""
    note: Any = None  # what the writer wants to know again


class Partial:
    """A growing file and its journal. Use `begun` to make one."""

    def __init__(self, target: Path, stream: BinaryIO, journal: BinaryIO, mark: Mark) -> None:
        self._target, self._stream, self._journal = target, stream, journal
        self.resumed = self._kept = self._now = mark
        self._last = b""
        self._marked = -math.inf  # the first block is made safe at once

    @property
    def kept(self) -> int:
        """Rows that a later run need not work out again."""
        return self._kept.rows

    def write(self, data: bytes, rows: int, note: Any = None) -> None:
        """Appends what some rows came to; rows: how many there are now. Now and then it is made safe."""
        with _disk(self._target):
            self._stream.write(data)
        self._last = data[-_TAIL:] if len(data) >= _TAIL else (self._last + data)[-_TAIL:]
        self._now = Mark(rows, self._now.bytes + len(data), "", note)
        if time.monotonic() - self._marked >= _SECONDS:
            self.mark()

    def mark(self) -> None:
        """Makes all that was written safe, and says so in the journal."""
        if self._now.rows == self._kept.rows:
            return
        now = Mark(self._now.rows, self._now.bytes, _hash(self._last), self._now.note)
        with _disk(self._target):
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._journal.write(json.dumps(now.__dict__).encode() + b"\n")
            self._journal.flush()
        self._kept, self._marked = now, time.monotonic()

    def finish(self, convert: Callable[[BinaryIO], None] | None = None) -> None:
        """Gives the file its name. convert: writes the target from what was gathered, which is then removed."""
        self.mark()
        name = partial_of(self._target)
        with _disk(self._target):
            if convert is None:
                take_permissions(self._stream.fileno(), self._target)
                os.fsync(self._stream.fileno())
                os.replace(name, self._target)
                sync_folder(self._target.parent)
            else:
                convert(self._stream)
                name.unlink()
            _journal_of(self._target).unlink(missing_ok=True)


@contextlib.contextmanager
def begun(target: Path, made_from: Mapping[str, Any], resume: bool, again: bool) -> Iterator[Partial]:
    """A partial file to write to, from where an earlier run of the same kind stopped if `resume` says so.

    made_from: what the file depends on; a run is only gone on with when all of it is the same.
    again: whether such a run could be made: what would be kept after a failure is removed otherwise.
    """
    target = followed(target)
    name = partial_of(target)
    with _disk(target), contextlib.ExitStack() as files:
        stream = files.enter_context(open(os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b"))
        _lock(stream, name)
        mark = _found(target, stream, made_from) if resume else Mark()
        stream.truncate(mark.bytes)
        stream.seek(mark.bytes)
        if mark.rows:
            journal = files.enter_context(open(_journal_of(target), "ab"))
        else:
            journal = files.enter_context(open(_journal_of(target), "wb"))
            journal.write(json.dumps(dict(made_from)).encode() + b"\n")
            journal.flush()
        partial = Partial(target, stream, journal, mark)
        try:
            yield partial
        except BaseException:
            with contextlib.suppress(Exception):
                partial.mark()
            if not (again and partial.kept):
                name.unlink(missing_ok=True)
                _journal_of(target).unlink(missing_ok=True)
            raise


def partial_of(target: Path) -> Path:
    """Where a target's bytes gather."""
    return target.with_name(target.name + ".partial")


def _journal_of(target: Path) -> Path:
    return target.with_name(target.name + ".partial.journal")


def _lock(stream: BinaryIO, name: Path) -> None:
    """Held until the file is closed, also by the death of the process."""
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SettingsError(
            f"{name} is being written by another process; expected to be the only one. Give another name with -o."
        ) from None
    except OSError:
        pass  # a file system without locks


def _found(target: Path, stream: BinaryIO, made_from: Mapping[str, Any]) -> Mark:
    """The last mark of an earlier run that its bytes bear out."""
    try:
        lines = _journal_of(target).read_bytes().split(b"\n")[:-1]  # a last line without an end was being written
    except FileNotFoundError:
        return Mark()
    if not lines:
        return Mark()
    _check_same(partial_of(target), json.loads(lines[0]), made_from)
    size = os.fstat(stream.fileno()).st_size
    for line in reversed(lines[1:]):
        with contextlib.suppress(ValueError, TypeError):
            mark = Mark(**json.loads(line))
            start = max(0, mark.bytes - _TAIL)
            if 0 < mark.bytes <= size:
                stream.seek(start)
                if _hash(stream.read(mark.bytes - start)) == mark.tail:
                    return mark
    return Mark()


def _check_same(name: Path, found: Any, expected: Mapping[str, Any]) -> None:
    """Refuses to go on with what was made from something else."""
    same = json.loads(json.dumps(dict(expected)))
    other = [key for key in same if not isinstance(found, dict) or found.get(key) != same[key]]
    if other:
        was = found.get(other[0]) if isinstance(found, dict) else found
        raise SettingsError(
            f"{name} was begun with {other[0]} {was!r:.80}; expected {same[other[0]]!r:.80}, as it is now. "
            "Give the same model, data and options, or leave --resume out to start from the first row."
        )


def _hash(data: bytes) -> str:
    return f"{_core.xxh3_64(np.frombuffer(data, np.uint8)):016x}"


@contextlib.contextmanager
def _disk(target: Path) -> Iterator[None]:
    """What the system says when a file cannot be written, with what to do."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            advice = "Free some space and give the same command with --resume: it goes on with what is there."
        else:
            advice = "Check the folder."
        raise DataError(f"{target} cannot be written ({error.strerror}). {advice}") from error
