"""admission.py — questions in, answers out of engine threads, beside the event loop; or a 503 at once.

A question that is known to take less time than handing it over does (`_SHORT`) is answered where it is.

The law: a question is let in only if it is expected to begin within `queue_ms`, so that those let in are answered soon
however many come. What is expected is the work let in and not yet done, by the time such work has been taking.
One question may always wait behind one that runs: short queues keep engines busy, long ones only add delay.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from beamwood.server.metrics import Row
from beamwood.server.options import ServeOptions
from beamwood.server.replies import Refusal

Work = Callable[[list[Any]], list[Any]]

_NEW_PRICE = 1_000_000.0  # nanoseconds a query, before one of its kind was timed
_SHORT = (
    150_000.0  # nanoseconds; handing over and back costs about as much when the event loop is busy (bench/serve.py)
)
_MEMORY = 0.1  # the weight of the newest time in the running mean
_JOINED_AT_MOST = 32
_PRICES_AT_MOST = 1024


class Done(NamedTuple):
    """One question's answer and its nanoseconds: waiting for a thread, and there."""

    answer: Any
    queue: int
    engine: int


class Ticket:
    """One question on its way. Questions of one kind that may be joined have the same `joins` (None: never)."""

    __slots__ = ("admitted", "future", "joins", "kind", "price", "question", "result", "rows", "work")

    def __init__(self, work: Work, question: Any, kind: Hashable, rows: int, joins: Hashable | None) -> None:
        self.work, self.question, self.kind, self.rows, self.joins = work, question, kind, rows, joins
        self.admitted = time.perf_counter_ns()
        self.price = 0.0
        self.result: Any = None
        self.future: asyncio.Future[Done] | None = None


class Desk:
    """Lets questions in and hands them to its threads. Lives on one event loop."""

    def __init__(self, options: ServeOptions, row: Row, loop: asyncio.AbstractEventLoop) -> None:
        self._row, self._loop = row, loop
        self._threads, self._most = options.threads, options.queue
        self._patience = options.queue_ms * 1e6
        self._deadline = int(options.timeout_ms * 1e6)
        self._retry_after = max(1, round(options.queue_ms / 1000))
        self._inside, self._owed = 0, 0.0  # questions let in and not done; the nanoseconds they are expected to take
        self._prices: dict[Hashable, float] = {}
        self._todo: SimpleQueue[Ticket | None] = SimpleQueue()
        self._done: deque[Ticket] = deque()
        self._told = False
        for number in range(self._threads):
            threading.Thread(target=self._serve, name=f"engine-{number}", daemon=True).start()

    async def ask(self, ticket: Ticket) -> Done:
        """The answer, or a Refusal when there is no room or it did not begin in time."""
        price = self._prices.get(ticket.kind, _NEW_PRICE) * ticket.rows
        if price < _SHORT:
            return self._answer_here(ticket)
        if self._inside >= 2 * self._threads and (
            self._inside >= self._most + self._threads or self._owed > self._patience * self._threads
        ):
            raise Refusal(503, "busy", "The server has as much work as it can do soon. Ask again later.",
                          retry_after=self._retry_after)  # fmt: skip
        ticket.price = price
        ticket.future = self._loop.create_future()
        self._inside += 1
        self._owed += price
        self._row.set("queued", max(0, self._inside - self._threads))
        self._todo.put(ticket)
        return await ticket.future

    def _answer_here(self, ticket: Ticket) -> Done:
        answer = ticket.work([ticket.question])[0]
        took = time.perf_counter_ns() - ticket.admitted
        self._learn(ticket.kind, took / ticket.rows)
        return Done(answer, 0, took)

    def close(self) -> None:
        """Ends the threads once the questions before this have been answered."""
        for _ in range(self._threads):
            self._todo.put(None)

    def _serve(self) -> None:
        """What an engine thread does: takes a question, and those of its kind that wait with it, and answers them."""
        while (ticket := self._todo.get()) is not None:
            batch = [ticket]
            ends = False
            if ticket.joins is not None:
                share = min(_JOINED_AT_MOST, self._todo.qsize() // self._threads)
                ends = self._gather(batch, share)
            for group in _groups(batch):
                self._answer(group)
            if ends:
                return

    def _gather(self, batch: list[Ticket], share: int) -> bool:
        """Takes more of what waits, whatever its kind; true when the end was among it."""
        try:
            for _ in range(share):
                ticket = self._todo.get_nowait()
                if ticket is None:
                    return True
                batch.append(ticket)
        except Empty:
            pass
        return False

    def _answer(self, group: list[Ticket]) -> None:
        begun = time.perf_counter_ns()
        late = [t for t in group if begun - t.admitted > self._deadline]
        fresh = [t for t in group if begun - t.admitted <= self._deadline] if late else group
        for ticket in late:
            ticket.result = Refusal(503, "too-late", "The answer did not begin within the time limit.", retry_after=1)
        if fresh:
            try:
                answers: list[Any] = fresh[0].work([ticket.question for ticket in fresh])
            except BaseException as error:
                answers = [error] * len(fresh)
            took = (time.perf_counter_ns() - begun) // len(fresh)
            for ticket, answer in zip(fresh, answers, strict=True):
                failed = isinstance(answer, BaseException)
                ticket.result = answer if failed else Done(answer, begun - ticket.admitted, took)
        self._done.extend(group)
        if not self._told:
            self._told = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """On the event loop: hands the answers to those who wait, and learns the prices."""
        self._told = False
        while self._done:
            ticket = self._done.popleft()
            self._inside -= 1
            self._owed = self._owed - ticket.price if self._inside else 0.0
            result, future = ticket.result, ticket.future
            assert future is not None
            if type(result) is Done:
                self._learn(ticket.kind, result.engine / ticket.rows)
                if not future.done():
                    future.set_result(result)
            elif not future.done():
                future.set_exception(result)
        self._row.set("queued", max(0, self._inside - self._threads))

    def _learn(self, kind: Hashable, price: float) -> None:
        known = self._prices.get(kind)
        if known is None and len(self._prices) >= _PRICES_AT_MOST:
            self._prices.clear()
        self._prices[kind] = price if known is None else known + _MEMORY * (price - known)


def _groups(batch: list[Ticket]) -> list[list[Ticket]]:
    """Tickets that may be joined, side by side; all others alone."""
    if len(batch) == 1:
        return [batch]
    groups: dict[Hashable, list[Ticket]] = {}
    for ticket in batch:
        groups.setdefault(id(ticket) if ticket.joins is None else ticket.joins, []).append(ticket)
    return list(groups.values())
