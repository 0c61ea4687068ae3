"""admission.py — questions in, answers out of engine threads, beside the event loop; or a 503 at once.

The law: a question is let in only if it is expected to begin within `queue_ms`, so that those let in are answered soon
however many come. What is expected is the work let in and not yet done, by the time such work has been taking.
One question may always wait behind one that runs: short queues keep engines busy, long ones only add delay.

A question that is known to take less time than handing it over does (`Prices.short`) is answered where it is.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from queue import SimpleQueue
from typing import Any, NamedTuple

from beamwood import _core
from beamwood.server.app.metrics import WorkerMetrics
from beamwood.server.app.replies import Refusal
from beamwood.server.options import ServeOptions


class Done(NamedTuple):
    """One question's answer and its nanoseconds: waiting for a thread, and there."""

    answer: Any
    queue: int
    engine: int


class Job:
    """One question on its way: what to call for its answer, and its price when it was let in."""

    __slots__ = ("admitted", "future", "kind", "price", "result", "rows", "work")

    def __init__(
        self, work: Callable[[], Any], kind: int, rows: int, price: float, future: asyncio.Future[Done]
    ) -> None:
        self.work, self.kind, self.rows, self.price, self.future = work, kind, rows, price, future
        self.admitted = time.perf_counter_ns()
        self.result: Done | BaseException | None = None


class AdmissionQueue:
    """Lets questions in and hands them to its threads. Lives on one event loop."""

    def __init__(self, options: ServeOptions, row: WorkerMetrics, loop: asyncio.AbstractEventLoop) -> None:
        self._row, self._loop = row, loop
        self._threads, self._most = options.threads, options.queue
        self._patience = options.queue_ms * 1e6
        self._deadline = int(options.timeout_ms * 1e6)
        self._retry_after = max(1, round(options.queue_ms / 1000))
        self._inside, self._owed = 0, 0.0  # questions let in and not done; the nanoseconds they are expected to take
        self.prices = _core.Prices()  # of one query of each kind of question
        self._numbers: dict[Hashable, int] = {}  # of the kinds
        self._todo: SimpleQueue[Job | None] = SimpleQueue()
        self._done: deque[Job] = deque()
        self._told = False
        for number in range(self._threads):
            threading.Thread(target=self._serve, name=f"engine-{number}", daemon=True).start()

    async def ask(self, work: Callable[[], Any], kind: Hashable, rows: int = 1) -> Done:
        """The answer that work gives, or a Refusal when there is no room or it did not begin in time.

        kind: questions that take about the same time for each of their rows.
        """
        answered = self.ask_here(work, kind, rows)
        if answered is not None:
            return answered
        self.check_room()
        number = self.number_of(kind)
        price = self.prices.of(number) * rows
        job = Job(work, number, rows, price, self._loop.create_future())
        self._inside += 1
        self._owed += price
        self._row.set("queued", max(0, self._inside - self._threads))
        self._todo.put(job)
        return await job.future

    def check_room(self) -> None:
        """Raises a Refusal when there is no room for any question: also before one is read, which may take long."""
        if self._inside >= 2 * self._threads and (
            self._inside >= self._most + self._threads or self._owed > self._patience * self._threads
        ):
            message = "The server has as much work as it can do soon. Ask again later."
            raise Refusal(503, "busy", message, retry_after=self._retry_after)

    def ask_here(self, work: Callable[[], Any], kind: Hashable, rows: int = 1) -> Done | None:
        """The answer of a question that is known to be short; None if it is not."""
        number = self.number_of(kind)
        if self.prices.of(number) * rows >= _core.Prices.short:
            return None
        begun = time.perf_counter_ns()
        answer = work()
        took = time.perf_counter_ns() - begun
        self.prices.learn(number, took / rows)
        return Done(answer, 0, took)

    def number_of(self, kind: Hashable) -> int:
        """What prices call a kind of question."""
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = self.prices.add()
        return number

    def close(self) -> None:
        """Ends the threads once the questions before this have been answered."""
        for _ in range(self._threads):
            self._todo.put(None)

    def _serve(self) -> None:
        """What an engine thread does: takes a question and answers it, on and on."""
        while (job := self._todo.get()) is not None:
            begun = time.perf_counter_ns()
            waited = begun - job.admitted
            if waited > self._deadline:
                message = "The answer did not begin within the time limit."
                job.result = Refusal(503, "too-late", message, retry_after=self._retry_after)
            else:
                try:
                    job.result = Done(job.work(), waited, time.perf_counter_ns() - begun)
                except BaseException as error:
                    job.result = error
            self._done.append(job)
            if not self._told:
                self._told = True
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """On the event loop: hands the answers to those who wait, and learns the prices."""
        self._told = False
        while self._done:
            job = self._done.popleft()
            self._inside -= 1
            self._owed = self._owed - job.price if self._inside else 0.0
            if isinstance(job.result, Done):
                self.prices.learn(job.kind, job.result.engine / job.rows)
            if job.future.done():  # no one waits for it any more
                continue
            if isinstance(job.result, Done):
                job.future.set_result(job.result)
            elif job.result is not None:
                job.future.set_exception(job.result)
        self._row.set("queued", max(0, self._inside - self._threads))
