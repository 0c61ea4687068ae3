"""handover.py — options, paths of models and of filters in, what a worker is started with out: open files and JSON.

The law: what was checked is what is served. The supervisor opens a model's file once and hands the open file to every
worker, also to those that are started later: a file that was put in its place since, good or not, is served by none of
them until a reload has verified it. The lists of filters are copied when they are read, for the same reason.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from beamwood.errors import BeamwoodError
from beamwood.server.options import ServeOptions

_LONGEST_MESSAGE = 1 << 16


class BadModel(BeamwoodError):
    """A file that was refused: the message is for those who may read paths, `name` for everyone."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class OpenFiles:
    """Numbers of open files: one per model, and one with the keys of all filters."""

    models: dict[str, int]
    filters: int

    @classmethod
    def of(cls, options: ServeOptions) -> OpenFiles:
        """The files that are there now."""
        models: dict[str, int] = {}
        try:
            for name, path in options.models.items():
                models[name] = _opened(name, path)
            lists = {name: _keys(name, path) for name, path in options.filters.items()}
        except BaseException:
            _close(models.values())
            raise
        return cls(models, memory_file("beamwood-filters", lists))

    @property
    def numbers(self) -> list[int]:
        """All of them: models in order, then the filters."""
        return [*self.models.values(), self.filters]

    @classmethod
    def from_numbers(cls, names: list[str], numbers: list[int]) -> OpenFiles:
        """The same, from numbers that another process sent."""
        return cls(dict(zip(names, numbers[:-1], strict=True)), numbers[-1])

    def lists(self) -> dict[str, list[str]]:
        """The keys of every filter."""
        return dict(read_memory(self.filters))

    def close(self) -> None:
        """Closes all; what is mapped stays."""
        _close(self.numbers)


def _close(numbers: Any) -> None:
    for number in numbers:
        os.close(number)


def _opened(name: str, path: Path) -> int:
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not make us wait
    except OSError as error:
        raise BadModel(name, f"Cannot read {path}: {error.strerror}. Check the path.") from None
    if stat.S_ISREG(os.fstat(number).st_mode):
        return number
    os.close(number)
    raise BadModel(name, f"{path} is not a regular file; expected a beamwood model. Give the name of a file.")


def _keys(name: str, path: Path) -> list[str]:
    """The keys in a filter's file, one per line; those that a model does not have do no harm."""
    try:
        return [key for key in path.read_text(encoding="utf-8").splitlines() if key]
    except (OSError, UnicodeDecodeError) as error:
        raise BadModel(
            name, f"{path}: the filter cannot be read ({type(error).__name__}); expected a key per line"
        ) from None


def memory_file(name: str, value: Any) -> int:
    """A value as JSON in a file that is in memory only: no one else can open it, and nothing in it is run."""
    number = os.memfd_create(name)
    data = memoryview(json.dumps(value).encode())
    while data:
        data = data[os.write(number, data) :]
    return number


def read_memory(number: int) -> Any:
    """What memory_file was given. Reads without seeking: several processes share the file."""
    return json.loads(os.pread(number, os.fstat(number).st_size, 0))


def described(options: ServeOptions) -> dict[str, Any]:
    """Options as JSON has them."""
    given = asdict(options)
    return given | {name: {key: str(path) for key, path in given[name].items()} for name in ("models", "filters")}


def options_of(given: dict[str, Any]) -> ServeOptions:
    """And back."""
    paths: dict[str, Any] = {
        name: {key: Path(path) for key, path in given[name].items()} for name in ("models", "filters")
    }
    values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in (given | paths).items()}
    return ServeOptions(**values)


def channel() -> tuple[socket.socket, socket.socket]:
    """Two ends of a way for messages between the supervisor and one worker. Neither ever waits for the other."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setblocking(False)
    return ends


def send(end: socket.socket, message: dict[str, Any], files: OpenFiles | None = None) -> bool:
    """Sends a message, with open files where some are given; whether it was taken."""
    try:
        socket.send_fds(end, [json.dumps(message).encode()], [] if files is None else files.numbers)
    except OSError:  # the other process is gone, or has not looked at its messages for long
        return False
    return True


def receive(end: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and the open files that came with it; None if there is none; EOFError at the end of the way."""
    try:
        data, numbers, _, _ = socket.recv_fds(end, _LONGEST_MESSAGE, 256, socket.MSG_CMSG_CLOEXEC)
    except BlockingIOError:
        return None
    except OSError:
        raise EOFError from None
    if not data:
        raise EOFError
    return json.loads(data), list(numbers)
