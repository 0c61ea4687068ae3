"""log.py — events in, lines of JSON on standard error out, written by a thread so that no request waits for them."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from typing import Any

import orjson

_LINES_AT_MOST = 100_000  # what waits to be written when the reader of the log is slow; more is lost, and counted
_SECONDS = 0.1


class Log:
    """One process's log. `level` is requests, errors (answers from 500 on and events) or off."""

    def __init__(self, level: str, worker: int | None = None) -> None:
        self.requests, self._off = level == "requests", level == "off"
        self._worker = worker
        self._lines: deque[dict[str, Any]] = deque()
        self._lost = 0
        self._stop = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._write_often, name="log", daemon=True)
        self._thread.start()

    def event(self, what: str, **fields: Any) -> None:
        """Something about the server itself."""
        if not self._off:
            self._add({"time": time.time(), "event": what, "worker": self._worker, **fields})

    def request(self, fields: dict[str, Any]) -> None:
        """One request that was answered."""
        if self.requests or (fields["status"] >= 500 and not self._off):
            fields["worker"] = self._worker
            self._add(fields)

    def close(self) -> None:
        """Writes what waits."""
        self._stop.set()
        self._thread.join(timeout=1.0)
        self._flush()

    def _add(self, fields: dict[str, Any]) -> None:
        if len(self._lines) < _LINES_AT_MOST:
            self._lines.append(fields)
        else:
            self._lost += 1

    def _write_often(self) -> None:
        while not self._stop.wait(_SECONDS):
            self._flush()

    def _flush(self) -> None:
        with self._writing:
            count = len(self._lines)
            if not count:
                return
            taken = [_line(self._lines.popleft()) for _ in range(count)]
            if self._lost:
                taken.append(_line({"time": time.time(), "event": "log lines lost", "count": self._lost}))
                self._lost = 0
            data = memoryview(b"".join(taken))
            try:
                while data:
                    data = data[os.write(sys.stderr.fileno(), data) :]
            except (OSError, ValueError):  # no one reads: a server does not stop for that
                pass


def _line(fields: dict[str, Any]) -> bytes:
    moment = fields["time"]
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"
    kept = {n: round(v, 3) if type(v) is float else v for n, v in fields.items() if v is not None}
    kept["time"] = stamp
    try:
        return orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:  # a text with lone surrogates
        return orjson.dumps({name: ascii(value) for name, value in kept.items()}, option=orjson.OPT_APPEND_NEWLINE)
