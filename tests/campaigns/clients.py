"""clients.py — a port in, answers and what they took out: what the campaigns share."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from support.serving import Running

import beamwood as bw
from beamwood import datasets

Answer = tuple[int, bytes]


@contextlib.contextmanager
def under_load(stop: threading.Event, *loads: Callable[[], Any]) -> Iterator[None]:
    """Runs these in threads until the block is over, also when it fails: they would go on for ever and hide why."""
    threads = [threading.Thread(target=load) for load in loads]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


class Wire:
    """One keep-alive connection of an asyncio client, as thin as can be."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, body: bytes, path: str = "/v1/search", token: str = "") -> Answer:
        """Status and body; connects when there is no connection."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n{token}\r\n"
        writer.write(head.encode() + body)
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(lines.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            data = await reader.readexactly(length)
        except BaseException:
            self.close()
            raise
        if b"connection: close" in lines:
            self.close()
        return int(lines[9:12]), data

    def close(self) -> None:
        """Lets go of the connection."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def percentile(values: list[float], share: float) -> float:
    """Of seconds, in milliseconds."""
    return float(np.percentile(values, share)) * 1e3 if values else float("nan")


def memory(server: Running) -> float:
    """Megabytes that belong to the workers alone."""
    total = 0
    for pid in server.worker_pids():
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Private_Dirty"):
                total += int(line.split()[1])
    return total / 1024


def demo(path: Path) -> tuple[bw.Model, list[str]]:
    """The model of `make demo`, saved, and texts of library records that it was not trained on."""
    data = datasets.load("library-subjects")
    features = bw.TextFeatures(min_df=2, sublinear_tf=True)
    bw.train_text(data.train_texts, data.train_labels, text=features, preset="fast", progress=False).save(path)
    return bw.load(path), data.test_texts[:2000]


class Pauses:
    """How long this machine let a program wait that asks for next to nothing and goes before all others.

    One such program on each processor, with real-time turns where that is allowed, sleeps for half a millisecond again
    and again. What it sees is no fault of a server: the system, or the machine below a virtual one.
    """

    def __enter__(self) -> Pauses:
        self._stop, self._told = multiprocessing.Event(), multiprocessing.Queue()  # type: ignore[var-annotated]
        processors = sorted(os.sched_getaffinity(0))
        self._watchers = [
            multiprocessing.Process(target=_watch, args=(number, self._stop, self._told)) for number in processors
        ]
        for watcher in self._watchers:
            watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._late = [late for _ in self._watchers for late in self._told.get(timeout=30)]
        for watcher in self._watchers:
            watcher.join()

    def longest(self, since: float, until: float) -> float:
        """Seconds, between two moments of time.perf_counter. After the end."""
        return max((late for moment, late in self._late if since <= moment <= until), default=0.0)


def _watch(processor: int, stop: Any, told: Any) -> None:
    os.sched_setaffinity(0, {processor})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    late, wish = [], 5e-4
    while not stop.is_set():
        begun = time.perf_counter()
        time.sleep(wish)
        waited = time.perf_counter() - begun - wish
        if waited > 1e-3:
            late.append((begun, waited))
    told.put(late)
