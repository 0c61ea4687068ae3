"""supervisor.py — options in, a listening socket and its workers out, kept alive until told to stop.

It handles no request. Signals: TERM and INT drain and stop (exit code 0), HUP has every worker read the model files
again. It opens the socket, so connections wait in its queue, and are not lost, while a worker that died is replaced.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from beamwood.errors import SettingsError
from beamwood.server.app.metrics import ServerMetrics
from beamwood.server.options import ServeOptions
from beamwood.server.process.registry import BadModel, Registry

_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
_BACKLOG = 2048
_TOO_SOON = 1.0  # a worker that lived less than this is started again only after as much time
_KILL_AFTER = 5.0  # seconds beyond the drain
_SO_ATTACH_FILTER = 26
_DROP_SYN = (  # a BPF program: code, steps to skip if true and if not, argument
    (0x30, 0, 0, 13),  # load byte 13 of the TCP header: its flags
    (0x45, 0, 1, 0x02),  # is SYN among them?
    (0x06, 0, 0, 0),  # yes: keep nothing of the packet
    (0x06, 0, 0, 0xFFFFFFFF),  # no: keep all of it
)
_LINE_OF_LOG = '{{"event":"{event}","worker":{number},"pid":{pid},"code":{code}}}\n'


class _Signals:
    """Signals that came, whichever thread of the process the kernel gave them to."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def wait(self, seconds: float) -> set[int]:
        """Those that have come since the last time, or come within some seconds."""
        ready, _, _ = select.select([self._read], [], [], seconds)
        return set(os.read(self._read, 4096)) if ready else set()


class Supervisor:
    """The process that people start."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        _check_models(options)
        self._listener = _listen(options)
        self._metrics = ServerMetrics(list(options.models), options.workers)
        self._settings = os.memfd_create("beamwood-options")
        os.write(self._settings, pickle.dumps(options))
        self._workers: list[subprocess.Popen[bytes]] = []
        self._started: list[float] = []

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self._listener.getsockname()[:2]
        return str(host), int(port)

    def run(self, ready: Callable[[], Any]) -> int:
        """Serves until a signal ends it; calls ready once all workers answer. The exit code."""
        came = _Signals()
        for number in range(self._options.workers):
            self._workers.append(self._start(number))
            self._started.append(time.monotonic())
        told = False
        while True:
            caught = came.wait(0.05 if not told else 0.5)
            if caught & {signal.SIGTERM, signal.SIGINT}:
                return self._stop(came)
            if signal.SIGHUP in caught:
                self._tell(signal.SIGHUP)
            if not self._raise_the_dead(first=not told):
                return self._stop(came, failed=True)
            if not told and self._metrics.all_ready():
                told = True
                _notify(b"READY=1")
                ready()

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        shared = (self._listener.fileno(), self._metrics.file, self._settings)
        words = [str(word) for word in (number, *shared, os.getpid())]
        command = [sys.executable, "-m", "beamwood.server.process.worker", *words]
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # a worker is deaf until it has handlers
        try:
            return subprocess.Popen(command, pass_fds=shared, stdin=subprocess.DEVNULL)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _tell(self, number: int) -> None:
        for worker in self._workers:
            if worker.poll() is None:
                worker.send_signal(number)

    def _raise_the_dead(self, first: bool) -> bool:
        """Starts workers again that have ended; false when one could not even start the first time."""
        for number, worker in enumerate(self._workers):
            code = worker.poll()
            if code is None:
                continue
            if first:
                return False
            if time.monotonic() - self._started[number] < _TOO_SOON:
                continue
            self._metrics.ended(number)
            if self._options.log != "off":
                sys.stderr.write(_LINE_OF_LOG.format(event="worker died", number=number, pid=worker.pid, code=code))
                sys.stderr.flush()
            self._workers[number] = self._start(number)
            self._started[number] = time.monotonic()
        return True

    def _stop(self, came: _Signals, failed: bool = False) -> int:
        """Shuts the door, lets the workers finish, and leaves."""
        _notify(b"STOPPING=1")
        shut(self._listener)
        self._tell(signal.SIGTERM)
        ends = time.monotonic() + self._options.drain_s + _KILL_AFTER
        while any(worker.poll() is None for worker in self._workers) and time.monotonic() < ends:
            came.wait(0.05)
        self._tell(signal.SIGKILL)
        codes = [worker.wait() for worker in self._workers]
        return 1 if failed or any(codes) else 0


def _check_models(options: ServeOptions) -> None:
    """Every model opens; told before anything listens."""
    try:
        Registry(options)
    except BadModel as error:
        raise SettingsError(f"{error.name}: {error}") from None


def _listen(options: ServeOptions) -> socket.socket:
    host = options.host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, options.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SettingsError(
            f"cannot listen at {options.host}:{options.port}: {reason}; choose another --port or --host"
        ) from None
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


def shut(listener: socket.socket) -> None:
    """No new connection from here on, while those in the queue are still taken.

    Closing the socket would reset the ones in the queue, whose clients may have sent a request. So the kernel is given
    a filter that drops first packets (SYN) at the listening socket: a client that comes now is refused when its first
    packet, sent again, finds no socket. All others pass: they belong to clients who take themselves for connected.
    """
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _DROP_SYN))
    filter_ = struct.pack("HxxxxxxP", len(_DROP_SYN), ctypes.addressof(program))
    try:
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)
    except OSError:  # a kernel without it: the queue is short, and taken anyway
        listener.listen(0)


def _notify(message: bytes) -> None:
    """Tells systemd, when it has asked to be told."""
    path = os.environ.get("NOTIFY_SOCKET")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel, contextlib.suppress(OSError):
            channel.sendto(message, "\0" + path[1:] if path[0] == "@" else path)
