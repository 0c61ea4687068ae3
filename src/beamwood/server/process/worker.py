"""worker.py — a listening socket in, requests read, answered and drained out: one process with one event loop.

Started by supervisor.py as `python -m beamwood.server.process.worker`. The server is uvicorn with uvloop and httptools;
what is ours is how it takes connections (and what it does with them: connection.py), the way it stops, and the swap of
models.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

import orjson
import uvicorn
import uvloop
from uvicorn.server import ServerState

from beamwood.errors import BeamwoodError
from beamwood.server.app.dispatch import App
from beamwood.server.app.handlers import Handlers
from beamwood.server.app.metrics import ServerMetrics, WorkerMetrics
from beamwood.server.app.replies import Refusal
from beamwood.server.app.warm import warm
from beamwood.server.options import ServeOptions
from beamwood.server.process.admission import AdmissionQueue
from beamwood.server.process.connection import Connection
from beamwood.server.process.log import Log
from beamwood.server.process.registry import BadModel, Registry, Served

_ACCEPT_SECONDS = 0.15  # how long a worker that stops still takes connections that are in the queue
_LINGER_SECONDS = 0.5  # how long it waits for the next request of open connections, to close them with its answer
_STEP_BACK_SECONDS = 0.002  # for another worker to take a connection
_NO_ROOM_SECONDS = 0.1
_SWAP_SECONDS = 60.0


class Server(uvicorn.Server):
    """uvicorn's loop with our way to take connections and to stop, and a sweep over slow ones.

    All workers listen at one socket. uvicorn takes all connections that wait, so that one worker can end up with most
    of them; ours takes one at a time, and lets a worker that has fewer go first.
    """

    def __init__(self, config: uvicorn.Config, worker: Worker, listener: socket.socket) -> None:
        super().__init__(config)
        self._worker, self._listener, self._stepped_back = worker, listener, False
        self._joining: set[asyncio.Task[Any]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to take connections."""
        await self.lifespan.startup()
        self.servers, self.started = [], True
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._listener, self._take)

    def _take(self) -> None:
        """Takes one connection, unless another worker should."""
        if not self._stepped_back and self._worker.has_more_connections(len(self.server_state.connections)):
            self._step_back(_STEP_BACK_SECONDS)
            return
        self._stepped_back = False
        try:
            self._accept()
        except (BlockingIOError, ConnectionAbortedError):  # another worker has it, or it is gone
            return
        except OSError:  # no more open files: those that end make room
            self._step_back(_NO_ROOM_SECONDS)

    def _accept(self) -> None:
        taken, _ = self._listener.accept()
        taken.setblocking(False)
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, taken))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)

    def _step_back(self, seconds: float) -> None:
        self._stepped_back = True
        self._loop.remove_reader(self._listener)
        self._loop.call_later(seconds, self._step_forward)

    def _step_forward(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener, self._take)

    def _protocol(self) -> Connection:
        return Connection(self.config, self.server_state, self.lifespan.state, self._loop)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The worker has handlers of its own: uvicorn's would end it with 143."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        done = await super().on_tick(counter)
        if counter % 10 == 0:
            self._worker.each_second(self.server_state)
        return done or os.getppid() != self._worker.supervisor

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Takes what is in the queue, answers all of it, closes connections with an answer, then stops."""
        self._worker.drain()
        await asyncio.sleep(_ACCEPT_SECONDS)
        self._loop.remove_reader(self._listener)
        self._accept_the_rest()
        self._listener.close()
        await asyncio.gather(*self._joining, return_exceptions=True)
        ends = asyncio.get_running_loop().time() + _LINGER_SECONDS
        while self.server_state.connections and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(0.01)
        sweeping = asyncio.create_task(self._sweep_on())
        await super().shutdown(sockets)
        sweeping.cancel()

    async def _sweep_on(self) -> None:
        """Those who send slowly are not waited for longer than usual."""
        while True:
            await asyncio.sleep(1)
            self._worker.each_second(self.server_state)

    def _accept_the_rest(self) -> None:
        """Takes all that is left in the queue: time alone does not empty it where processors are busy."""
        while True:
            try:
                self._accept()
            except ConnectionAbortedError:
                continue
            except OSError:  # there is no more, or no room for more
                return


class Worker:
    """One process of the server."""

    def __init__(
        self, number: int, options: ServeOptions, metrics: ServerMetrics, listener: socket.socket, supervisor: int
    ) -> None:
        self.supervisor, self._listener, self._metrics, self._options = supervisor, listener, metrics, options
        self._log = Log(options.log, number)
        self._row: WorkerMetrics = metrics.row(number)
        self._registry = Registry(options)
        self._swapping = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self) -> None:
        """Serves until told to stop."""
        loop = asyncio.get_running_loop()
        self._admission = AdmissionQueue(self._options, self._row, loop)
        self._handlers = Handlers(self._options, self._registry, self._admission, self._row, self.reload)
        self._app = App(self._options, self._handlers, self._row, self._log)
        server = Server(config_of(self._app, self._options), self, self._listener)
        loop.add_signal_handler(signal.SIGTERM, setattr, server, "should_exit", True)
        loop.add_signal_handler(signal.SIGHUP, self._reload_by_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the supervisor decides what it means
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD})
        self._show_versions()
        await self._warm(self._registry.all())
        self._row.set("ready", 1.0)
        self._log.event("worker ready", pid=os.getpid(), models={s.name: s.version for s in self._registry.all()})
        await server.serve()
        self._row.set("ready", 0.0)
        self._admission.close()
        self._log.event("worker stopped", pid=os.getpid())
        self._log.close()

    def each_second(self, state: ServerState) -> None:
        """Ends connections whose request or answer takes too long, or on which nothing comes; tells the time."""
        self._app.direct.set_headers(state.default_headers)
        now = asyncio.get_running_loop().time()
        for connection in list(state.connections):
            connection.sweep(now, self._options.read_timeout_ms / 1e3, self._options.keep_alive_s)  # type: ignore[union-attr]  # all are ours

    def has_more_connections(self, mine: int) -> bool:
        """Whether another worker has clearly fewer."""
        return self._metrics.workers > 1 and mine > self._metrics.fewest_connections() + 1

    def drain(self) -> None:
        """From now on every answer closes its connection."""
        self._app.drain()
        self._handlers.ready = False

    async def reload(self) -> dict[str, Any]:
        """Swaps here, then in the other workers; the answer comes when all of them serve the new files."""
        await self._swap()
        if self._metrics.workers > 1:
            os.kill(self.supervisor, signal.SIGHUP)
            ends = asyncio.get_running_loop().time() + _SWAP_SECONDS
            while not self._all_serve_the_same():
                if asyncio.get_running_loop().time() > ends:
                    raise Refusal(503, "swap-unfinished", "Not every worker serves the new files yet.", retry_after=5)
                await asyncio.sleep(0.01)
        return {"models": [{"name": served.name, "version": served.version} for served in self._registry.all()]}

    def _all_serve_the_same(self) -> bool:
        """Whether every worker serves what this one does now: a still newer file may have come meanwhile."""
        mine = enumerate(self._registry.all())
        return all(self._metrics.serves(number, served.version, served.lists) for number, served in mine)

    def _reload_by_signal(self) -> None:
        async def reload() -> None:
            with contextlib.suppress(Refusal):  # it is in the log
                await self._swap()

        task = asyncio.get_running_loop().create_task(reload())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _swap(self) -> None:
        async with self._swapping:
            try:
                fresh: dict[str, Served] = await asyncio.to_thread(self._registry.load_again)
            except BadModel as error:
                self._row.add("refused_models")
                self._log.event("model refused", model=error.name, message=str(error))
                raise Refusal(
                    409, "model-refused", f"The new file of {error.name} is not good; the old model goes on. "
                    "The log says what is wrong with it."
                ) from None  # fmt: skip
            await self._warm([served for served in fresh.values() if served not in self._registry.all()])
            swapped = self._registry.put(fresh)
            self._app.direct.show(fresh.values())
            self._row.add("swaps", swapped)
            self._show_versions()
            self._log.event("models read again", swapped=swapped, models={s.name: s.version for s in fresh.values()})

    async def _warm(self, models: list[Served]) -> None:
        """Asks models some questions before anyone else does; a damaged one says so when it is asked."""
        for served in models:
            with contextlib.suppress(BeamwoodError, OSError):
                asked = await asyncio.to_thread(warm, served, self._options.models[served.name], self._options.warm)
                self._log.event("model warm", model=served.name, questions=asked)

    def _show_versions(self) -> None:
        for number, served in enumerate(self._registry.all()):
            self._row.serves(number, served.version, served.lists)


def config_of(app: App, options: ServeOptions) -> uvicorn.Config:
    """How uvicorn is to behave."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="none",
        lifespan="off",
        interface="asgi3",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_keep_alive=int(max(1, options.keep_alive_s)),
        timeout_graceful_shutdown=int(max(1, options.drain_s)),
    )


def _more_files() -> None:
    """As many open connections as this user may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """The words of the command line are numbers: which worker, and the open files it shares with the supervisor."""
    number, listener_file, metrics_file, options_file, supervisor = map(int, sys.argv[1:])
    with os.fdopen(options_file, "rb") as stream:
        stream.seek(0)
        options: ServeOptions = pickle.load(stream)  # written by our own parent, into memory that no one else has
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("uvicorn").propagate = False
    _more_files()
    metrics = ServerMetrics(list(options.models), options.workers, metrics_file)
    listener = socket.socket(fileno=listener_file)
    try:
        worker = Worker(number, options, metrics, listener, supervisor)
    except BadModel as error:
        line = {"event": "model refused", "worker": number, "model": error.name, "message": str(error)}
        sys.stderr.buffer.write(orjson.dumps(line) + b"\n")
        sys.exit(1)
    uvloop.run(worker.run())


if __name__ == "__main__":
    main()
