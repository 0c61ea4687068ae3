"""admission.py — questions in, answers out of engine threads, beside the event loop; or a 503 at once.

The law: a question is let in only if it is expected to begin within `queue_ms`, so that those let in are answered soon
however many come. What is expected is the work let in and not yet done, by the time such work has been taking.
One question may always wait behind one that runs: short queues keep engines busy, long ones only add delay.

A question that is known to take less time than handing it over does (`Costs.short`) is answered where it is. What it is
expected to take is its units of work (`Costs.units`: queries, bytes of text, hits) by what such units have been taking.
A question that runs ends at its time limit, or when its client goes away: whoever waits is told at once, and native
code looks between its steps whether to go on (`_core.Stop`).
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
from beamwood.server.app.replies import Gone, Refusal
from beamwood.server.options import ServeOptions

JOB = "beamwood.job"  # where a request's scope holds its job
_DEADLINE = "beamwood.deadline"  # and when its time is up: all work that a request asks for has one limit
_MOST_UNREAD = 64 << 20  # bytes of answers that wait for their readers: beyond that no one is let in
_SECONDS_TO_CLOSE = 5.0


class Done(NamedTuple):
    """One question's answer and its nanoseconds: waiting for a thread, and there."""

    answer: Any
    queue: int
    engine: int


Check = Callable[[], None]
Work = Callable[[Check], Any]


def _too_late() -> Refusal:
    message = "The answer was not found within the time limit. Ask for less at once, or later."
    return Refusal(503, "too-late", message, retry_after=1)


def _go_on() -> None:
    """What short work is told when it asks whether to go on."""


class Job:
    """One question on its way: what to call for its answer, and its estimated cost when it was let in."""

    __slots__ = ("admitted", "cost", "future", "gone", "kind", "result", "stop", "units", "work")

    def __init__(self, work: Work, kind: int, units: float, cost: float, future: asyncio.Future[Done]) -> None:
        self.work, self.kind, self.units, self.cost, self.future = work, kind, units, cost, future
        self.admitted = time.perf_counter_ns()
        self.gone, self.stop = False, _core.Stop()
        self.result: Done | BaseException | None = None

    def check(self) -> None:
        """Ends work that no one waits for any more. Long work in Python asks this again and again."""
        if self.gone:
            raise Gone

    def let_go(self) -> None:
        """Ends the work, in Python and in native code: its answer is not needed."""
        self.gone = True
        self.stop.set()

    def abandon(self, why: Exception) -> None:
        """Tells whoever waits that there will be no answer. On the event loop."""
        self.let_go()
        if not self.future.done():
            self.future.set_exception(why)


class AdmissionQueue:
    """Lets questions in and hands them to its threads. Lives on one event loop."""

    _gives_way = True  # threads whose work is long leave the processor to event loops, of this worker and of others

    def __init__(self, options: ServeOptions, row: WorkerMetrics, loop: asyncio.AbstractEventLoop) -> None:
        self._row, self._loop = row, loop
        self._most = options.queue
        self._patience = options.queue_ms * 1e6
        self._seconds = options.timeout_ms / 1e3
        self._retry_after = max(1, round(options.queue_ms / 1000))
        self._inside: set[Job] = set()  # let in and not done
        self._owed = 0.0  # the nanoseconds they are expected to take
        self.costs = _core.Costs()  # of one unit of work of each kind of question
        self._numbers: dict[Hashable, int] = {}  # of the kinds
        self._todo: SimpleQueue[Job | None] = SimpleQueue()
        self._done: deque[Job] = deque()
        self._told = False
        self.unread: Callable[[], int] = int  # how many bytes of answers wait for their readers
        self._threads = [
            threading.Thread(target=self._serve, name=f"engine-{number}", daemon=True)
            for number in range(options.threads)
        ]
        for thread in self._threads:
            thread.start()

    async def ask(self, work: Work, kind: Hashable, units: float = 1.0, scope: dict[str, Any] | None = None) -> Done:
        """The answer that work gives, or a Refusal when there is no room or it did not end in time.

        work: is given a function to call between pieces of long work, which ends it when it is not needed any more.
        kind: questions that take about the same time for each unit of their work. scope: of the request; its
        connection abandons the job that it finds there when the client goes away.
        """
        answered = self.ask_here(work, kind, units)
        if answered is not None:
            return answered
        self.check_room()
        number = self.number_of(kind)
        cost = self.costs.of(number, units)
        scope = {} if scope is None else scope
        deadline = scope.setdefault(_DEADLINE, self._loop.time() + self._seconds)
        job = scope[JOB] = Job(work, number, units, cost, self._loop.create_future())
        self._inside.add(job)
        self._owed += cost
        self._count()
        self._todo.put(job)
        alarm = self._loop.call_at(deadline, job.abandon, _too_late())
        try:
            return await job.future
        finally:
            alarm.cancel()
            job.let_go()  # also when the request was cancelled

    def check_room(self) -> None:
        """Raises a Refusal when there is no room for any question: also before one is read, which may take long."""
        threads, inside = len(self._threads), len(self._inside)
        full = inside >= self._most + threads or self._owed > self._patience * threads
        if (inside >= 2 * threads and full) or self.unread() > _MOST_UNREAD:
            message = "The server has as much work as it can do soon. Ask again later."
            raise Refusal(503, "busy", message, retry_after=self._retry_after)

    def ask_here(self, work: Work, kind: Hashable, units: float = 1.0) -> Done | None:
        """The answer of a question that is known to be short; None if it is not."""
        number = self.number_of(kind)
        if self.costs.of(number, units) >= _core.Costs.short:
            return None
        begun = time.perf_counter_ns()
        answer = work(_go_on)
        took = time.perf_counter_ns() - begun
        self.costs.learn(number, took / units)
        return Done(answer, 0, took)

    def number_of(self, kind: Hashable) -> int:
        """What costs call a kind of question."""
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = self.costs.add()
        return number

    def close(self) -> None:
        """Ends the threads: what runs is told to stop, and they let go of all models, before Python itself ends."""
        for job in self._inside:
            job.let_go()
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join(_SECONDS_TO_CLOSE)

    @property
    def is_closed(self) -> bool:
        """Whether all threads have ended."""
        return not any(thread.is_alive() for thread in self._threads)

    def _serve(self) -> None:
        """What an engine thread does: takes a question and answers it, on and on."""
        if self._gives_way:
            _core.give_way()
        while (job := self._todo.get()) is not None:
            begun = time.perf_counter_ns()
            waited = begun - job.admitted
            try:
                job.check()
                with job.stop:
                    job.result = Done(job.work(job.check), waited, time.perf_counter_ns() - begun)
            except _core.Stopped:
                job.result = Gone()
            except BaseException as error:
                job.result = error.with_traceback(None)
            self._done.append(job)
            del job  # or the thread would keep the last question's model for as long as no other comes
            if not self._told:
                self._told = True
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """On the event loop: hands the answers to those who wait, and learns the costs."""
        self._told = False
        while self._done:
            job = self._done.popleft()
            self._inside.discard(job)
            self._owed = self._owed - job.cost if self._inside else 0.0
            if isinstance(job.result, Done):
                self.costs.learn(job.kind, job.result.engine / job.units)
            if job.future.done():  # no one waits for it any more
                continue
            if isinstance(job.result, Done):
                job.future.set_result(job.result)
            elif job.result is not None:
                job.future.set_exception(job.result)
        self._count()

    def _count(self) -> None:
        self._row.set("queued", max(0, len(self._inside) - len(self._threads)))
