"""A real server in a process of its own, and plain sockets to talk to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import beamwood as bw

TOKEN = "a-token-that-is-long-enough"
BEARER = {"authorization": f"Bearer {TOKEN}"}
TEXTS = [
    "red wool socks", "blue wool socks", "warm wool hat", "straw hat for the sun", "red cotton shirt",
    "white cotton shirt", "leather boots", "rubber boots for rain", "green silk scarf", "long silk dress",
]  # fmt: skip
LABELS = [
    ["socks", "wool"], ["socks", "wool"], ["hats", "wool"], ["hats"], ["shirts", "cotton"],
    ["shirts", "cotton"], ["boots"], ["boots"], ["scarves", "silk"], ["dresses", "silk"],
]  # fmt: skip


def shop(preset: str = "fast") -> bw.Model:
    """A small model that knows words."""
    return bw.train_text(TEXTS, LABELS, progress=False, preset=preset, max_leaf=3, branching=2)


class Running:
    """A server that runs until it is stopped. `url` and `port` are where it listens."""

    def __init__(self, *words: str | Path, workers: int = 1, stderr: int | None = None) -> None:
        command = [sys.executable, "-m", "beamwood", "serve", *map(str, words), "--port", "0"]
        self.log = open(os.memfd_create("log"), "r+b", buffering=0)  # noqa: SIM115 (closed with the object)
        self.process = subprocess.Popen(
            [*command, "--workers", str(workers)],
            stdout=subprocess.PIPE,
            stderr=self.log if stderr is None else stderr,
            text=True,
        )
        self._said = ""  # the log, once it is closed
        line = self._first_line(60.0)
        found = re.search(r"http://([^ ]+):(\d+)/", line)
        assert found, line + self.logged()
        self.host, self.port = found[1].strip("[]"), int(found[2])
        self.url = f"http://{found[1]}:{self.port}"

    def _first_line(self, seconds: float) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else ""

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                for pid in self.worker_pids():
                    os.kill(pid, signal.SIGKILL)
                self.process.kill()
                self.process.wait()
                raise
        self.close()

    def stop(self, seconds: float = 20.0) -> int:
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        self.close_pipe()
        return code

    def close(self) -> None:
        """Gives back what the server's output came through."""
        self.close_pipe()
        if not self.log.closed:
            self._said = self.logged()
            self.log.close()

    def close_pipe(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()

    def logged(self) -> str:
        """What it wrote to standard error. Read without seeking: the server writes where that would lead."""
        if self.log.closed:
            return self._said
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), size, 0).decode()

    def lines(self) -> list[dict[str, Any]]:
        """The same, read as JSON."""
        return [json.loads(line) for line in self.logged().splitlines()]

    def worker_pids(self) -> list[int]:
        """The processes that answer."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in found]

    def connect(self) -> http.client.HTTPConnection:
        """A connection of its own."""
        return http.client.HTTPConnection(self.host, self.port, timeout=20)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own: status, headers, body."""
        connection = self.connect()
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: Any = None, *, status: int = 200, **headers: str) -> Any:
        """One request whose answer is JSON, with the status that is expected."""
        found, _, data = self.ask(method, path, body, **headers)
        assert found == status, (found, data)
        return json.loads(data)


def wait_for(truth: Any, seconds: float = 20.0) -> None:
    """Returns as soon as something holds."""
    ends = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)


def same(found: list[dict[str, Any]], hits: Sequence[bw.Hit]) -> bool:
    """Whether an answer is this one, score for score."""
    return [(h["label"], h["key"], h["name"], np.float32(h["score"])) for h in found] == [
        (h.label, h.key, h.name, np.float32(h.score)) for h in hits
    ]


def counted(server: Running, name: str, **headers: str) -> float:
    """The sum of the numbers in /metrics whose names start so."""
    text = server.ask("GET", "/metrics", **headers)[2].decode()
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))


def peak_memory(server: Running) -> int:
    """The most bytes that the server's workers have had in memory so far."""
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in server.worker_pids()]
    return sum(int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) << 10 for status in statuses)
