"""log.py — events in, lines of JSON on standard error out, written by a thread so that no request waits for them.

A line is put together where it happens, in less time than the thread would need to take Python's lock for it. `lines`
is where native code (direct.py) puts its own.

The law: whoever reads the log, or does not, cannot stop a process of the server: a full disk, a reader that is gone and
one that is stuck cost lines, which are counted, and nothing else.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import orjson

from beamwood import _core

_BYTES_AT_MOST = 8 << 20  # what waits to be written when the reader of the log is slow; more is lost, and counted
_SECONDS = 0.1
_SECONDS_TO_CLOSE = 1.0


class Log:
    """One process's log. `level` is requests, errors (answers from 500 on and events) or off."""

    def __init__(self, level: str, worker: int | None = None) -> None:
        self._requests, self._off = level == "requests", level == "off"
        self._worker = worker
        self._lines = bytearray()  # one piece: each line by itself would keep the 4 KB it was made in
        self._lock = threading.Lock()
        self.lines = _core.LogLines(self._requests, worker or 0)
        self._second, self._stamp = 0, ""
        self._lost = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write_often, name="log", daemon=True)
        self._thread.start()

    def event(self, what: str, **fields: Any) -> None:
        """Something about the server itself."""
        if not self._off:
            self._add(what, fields)

    def request(self, status: int, fields: dict[str, Any]) -> None:
        """One request that was answered with this status."""
        if self._requests or (status >= 500 and not self._off):
            self._add("request", fields)

    def close(self) -> None:
        """Writes what waits, unless no one reads it."""
        self._stop.set()
        self._thread.join(timeout=_SECONDS_TO_CLOSE)

    def _add(self, what: str, fields: dict[str, Any]) -> None:
        line = self._made(what, fields)
        with self._lock:
            if len(self._lines) + len(line) <= _BYTES_AT_MOST:
                self._lines += line
            else:
                self._lost += 1

    def _made(self, what: str, fields: dict[str, Any]) -> bytes:
        return _line({"time": self._now(), "event": what, "worker": self._worker, **fields})

    def _now(self) -> str:
        """The time in UTC, to the millisecond."""
        moment = time.time()
        second = int(moment)
        if second != self._second:
            self._second, self._stamp = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._stamp}.{int((moment - second) * 1000):03d}Z"

    def _write_often(self) -> None:
        """Until it is stopped; the only one who writes, and who may have to wait for a reader."""
        while not self._stop.wait(_SECONDS):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        searches, lost = self.lines.take()
        with self._lock:
            lines, self._lines = self._lines, bytearray()
            lost, self._lost = lost + self._lost, 0
        self._write(searches + (self._made("log lines lost", {"count": lost}) if lost else b""))
        self._write(lines)

    def _write(self, lines: bytes | bytearray) -> None:
        data = memoryview(lines)
        try:
            while data and sys.stderr is not None:
                data = data[os.write(sys.stderr.fileno(), data) :]
        except (OSError, ValueError):  # no one reads, or there is no room: a server does not stop for that
            with self._lock:
                self._lost += bytes(data).count(b"\n")


def _line(fields: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:  # a text with lone surrogates
        return orjson.dumps({name: ascii(value) for name, value in fields.items()}, option=orjson.OPT_APPEND_NEWLINE)
