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
import resource
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn
import uvloop
from uvicorn.server import ServerState

from beamwood import _core
from beamwood.errors import BeamwoodError
from beamwood.server.app import monitors
from beamwood.server.app.dispatch import App
from beamwood.server.app.handlers import Handlers
from beamwood.server.app.metrics import ServerMetrics, WorkerMetrics
from beamwood.server.app.replies import Refusal
from beamwood.server.app.warm import warm
from beamwood.server.options import ServeOptions
from beamwood.server.process import handover
from beamwood.server.process.admission import AdmissionQueue
from beamwood.server.process.connection import Connection
from beamwood.server.process.handover import BadModel, OpenFiles
from beamwood.server.process.log import Log
from beamwood.server.process.registry import Registry, Served, free_when_unused

_ACCEPT_SECONDS = 0.15  # how long a worker that stops still takes connections that are in the queue
_LINGER_SECONDS = 0.5  # how long it waits for the next request of open connections, to close them with its answer
_STEP_BACK_SECONDS = 0.002  # for another worker to take a connection
_NO_ROOM_SECONDS = 0.1
_SWAP_SECONDS = 600.0
_SWITCH_SECONDS = 5e-4  # how long a thread that runs Python may keep the event loop waiting


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
        self, number: int, supervisor: int, options: ServeOptions, files: OpenFiles, metrics: ServerMetrics
    ) -> None:
        self.supervisor, self._metrics, self._options = supervisor, metrics, options
        self._row: WorkerMetrics = metrics.row(number)
        self._registry = Registry(options, files)
        files.close()
        self._log = Log(options.log, number)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._wishes: list[asyncio.Future[dict[str, Any]]] = []  # of those who wait for a reload

    async def run(self, listener: socket.socket, channel: socket.socket) -> None:
        """Serves until told to stop."""
        loop = asyncio.get_running_loop()
        self._channel = channel
        self._admission = AdmissionQueue(self._options, self._row, loop)
        self._handlers = Handlers(self._options, self._registry, self._admission, self._row, self.reload)
        self._app = App(self._options, self._handlers, self._row, self._log)
        server = Server(config_of(self._app, self._options), self, listener)
        loop.add_reader(channel, self._listen_to_supervisor)
        loop.add_signal_handler(signal.SIGTERM, setattr, server, "should_exit", True)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the supervisor decides what it means
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD})
        self._show_versions()
        await self._warm(self._registry.all(), self._options.warm)
        self._row.set("ready", 1.0)
        self._log.event("worker ready", pid=os.getpid(), models={s.name: s.version for s in self._registry.all()})
        await server.serve()
        self._row.set("ready", 0.0)
        loop.remove_reader(channel)
        self._admission.close()
        self._log.event("worker stopped", pid=os.getpid())
        self._log.close()

    @property
    def has_running_threads(self) -> bool:
        """Whether native code still runs that could not be stopped in time."""
        return not self._admission.is_closed

    def each_second(self, state: ServerState) -> None:
        """Ends connections whose request or answer takes too long, or on which nothing comes; gives a sign of life."""
        self._row.add("beat")
        self._handlers.gather()
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
        """Asks the supervisor for the files that are there now; the answer comes when all workers serve them."""
        outcome: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        if not handover.send(self._channel, {"event": "reload"}):
            raise Refusal(503, "swap-unfinished", "The server cannot reload now.", retry_after=5)
        self._wishes.append(outcome)
        try:
            told = await asyncio.wait_for(outcome, _SWAP_SECONDS)
        except asyncio.TimeoutError:
            raise Refusal(503, "swap-unfinished", "Not every worker serves the new files yet.", retry_after=5) from None
        if told["event"] == "refused":
            raise Refusal(
                409, "model-refused", f"The new file of {told['name']} is not good; the old model goes on. "
                "The log says what is wrong with it."
            )  # fmt: skip
        return {"models": [{"name": served.name, "version": served.version} for served in self._registry.all()]}

    def _listen_to_supervisor(self) -> None:
        try:
            while (message := handover.receive(self._channel)) is not None:
                told, numbers = message
                if told["event"] == "take":
                    task = asyncio.get_running_loop().create_task(
                        self._take(OpenFiles.from_numbers(told["models"], numbers))
                    )
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                else:
                    self._outcome(told)
        except EOFError:  # the supervisor is gone: the next tick ends this process
            asyncio.get_running_loop().remove_reader(self._channel)

    def _outcome(self, told: dict[str, Any]) -> None:
        """What became of a reload."""
        if told["event"] == "refused" and told["counts"]:
            self._row.add("refused_models")
        wishes, self._wishes = self._wishes, []
        for wish in wishes:
            if not wish.done():
                wish.set_result(told)

    async def _take(self, files: OpenFiles) -> None:
        """Puts models of verified files in place of those that are served."""
        try:
            fresh: dict[str, Served] = await asyncio.to_thread(self._registry.load, files)
        except (BadModel, OSError, MemoryError) as error:
            handover.send(self._channel, {"event": "failed", "why": {"message": str(error)}})
            return
        finally:
            files.close()
        new = [served for served in fresh.values() if served not in self._registry.all()]
        await self._warm(new, "off" if self._options.warm == "off" else "file")
        self._handlers.gather()
        replaced = self._registry.put(fresh)
        self._app.direct.show(fresh.values())
        self._row.add("swaps", len(replaced))
        self._show_versions()
        self._log.event("models taken", swapped=len(replaced), models={s.name: s.version for s in fresh.values()})
        handover.send(self._channel, {"event": "took"})
        threading.Thread(target=free_when_unused, args=(replaced,), name="free", daemon=True).start()

    async def _warm(self, models: list[Served], how: str) -> None:
        """Asks models some questions before anyone else does; a damaged one says so when it is asked."""
        for served in models:
            with contextlib.suppress(BeamwoodError, OSError):
                asked = await asyncio.to_thread(warm, served, how)
                self._log.event("model warm", model=served.name, questions=asked)
            monitors.taken(served.model)  # these were no queries

    def _show_versions(self) -> None:
        for number, served in enumerate(self._registry.all()):
            self._row.serves(number, served.version)


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
    """The words of the command line are numbers: which worker, its supervisor, and the open files it is given."""
    number, supervisor, listener_file, metrics_file, options_file, channel_file, *files = map(int, sys.argv[1:])
    options = handover.options_of(handover.read_memory(options_file))
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("uvicorn").propagate = False
    _more_files()
    sys.setswitchinterval(_SWITCH_SECONDS)
    _core.go_first()  # the event loop: threads that it starts make way for it by themselves
    metrics = ServerMetrics(list(options.models), options.workers, metrics_file)
    try:
        worker = Worker(number, supervisor, options, OpenFiles.from_numbers(list(options.models), files), metrics)
    except BadModel as error:
        log = Log(options.log, number)
        log.event("model refused", model=error.name, message=str(error))
        log.close()
        sys.exit(1)
    uvloop.run(worker.run(socket.socket(fileno=listener_file), socket.socket(fileno=channel_file)))
    if worker.has_running_threads:  # Python's own end would meet them in the middle of native code
        os._exit(0)


if __name__ == "__main__":
    main()
