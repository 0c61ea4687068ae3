"""wires.py — how many machines in, as many network namespaces out, with an address, a folder of Ray and processes each.

    with wired(3) as net:                     # as root, inside a namespace of its own: see `alone`
        net.start(0, ["sleep", "60"])         # a machine comes up, with this as what it runs
        net.told(delay=0.01, loss=0.02)       # every frame, both ways
        net.told(cut=(2,))                    # no frame from or to machine 2 any more

Frames between machines go through TAP devices and a switch that is a program of ours: it delays, loses and drops them.
Linux has netem for that, which many kernels of virtual machines lack; this needs TUN only. All namespaces end with the
processes in them, and nothing outside of them is changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import multiprocessing
import os
import random
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_TUNSETIFF, _TAP_WITHOUT_HEADER = 0x400454CA, 0x1002
_MTU = 9000
_INSIDE = "BEAMWOOD_ALONE"

_COME_UP = """
set -e
hostname "machine-$1"
mount -t tmpfs tmpfs /dev/shm
mkdir -p /tmp/ray
mount --bind "$2" /tmp/ray
ip link set lo up
until ip link show "wire$1" >/dev/null 2>&1; do sleep 0.05; done
ip link set "wire$1" name eth0
ip address add "$3/24" dev eth0
ip link set eth0 mtu 9000 up
shift 3
"$@"
"""


def alone() -> None:
    """Goes on inside network, mount and process namespaces of its own, all of which end with this program."""
    if os.environ.get(_INSIDE):
        return
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        sys.exit("machines in network namespaces need root and /dev/net/tun. Run this as root, on Linux with TUN.")
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    words += ["sh", "-c", '"$@"; exit $?', "sh"]  # the first process there takes care of orphans
    sys.stdout.flush()
    ended = subprocess.run([*words, sys.executable, *sys.argv], env={**os.environ, _INSIDE: "1"}, check=False)
    sys.exit(ended.returncode)


def address(machine: int) -> str:
    """Of a machine; -1 is whoever looks on from outside."""
    return f"10.77.0.{machine + 1 if machine >= 0 else 254}"


def tap(name: str) -> int:
    """A new network device; what is read from the descriptor is what was sent to it."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP_WITHOUT_HEADER))
    return device


class Switch:
    """Hands frames on: after a while, or never. Runs in a process of its own."""

    def __init__(self, ports: Sequence[int], orders: Any, seed: int) -> None:
        self._ports, self._orders, self._dice = list(ports), orders, random.Random(seed)
        self._known: dict[bytes, int] = {}  # which address is behind which port
        self._late: list[tuple[float, int, int, bytes]] = []
        self._delay, self._loss, self._cut, self._count = 0.0, 0.0, set[int](), 0

    def run(self) -> None:
        """Until there are no more orders."""
        watched = [*self._ports, self._orders]
        while True:
            patience = max(0.0, self._late[0][0] - time.monotonic()) if self._late else None
            ready, _, _ = select.select(watched, [], [], patience)
            if self._orders in ready:
                try:
                    self._delay, self._loss, self._cut = self._orders.recv()
                except EOFError:
                    return
            for number, port in enumerate(self._ports):
                if port in ready:
                    self._take(number, port)
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, to, frame = heapq.heappop(self._late)
                if to not in self._cut:
                    self._hand(to, frame)

    def _take(self, number: int, port: int) -> None:
        for _ in range(64):
            try:
                frame = os.read(port, _MTU + 64)
            except OSError:
                return
            self._known[frame[6:12]] = number
            known = None if frame[0] & 1 else self._known.get(frame[:6])
            for to in range(len(self._ports)) if known is None else (known,):
                if to == number or number in self._cut or self._dice.random() < self._loss:
                    continue
                self._count += 1
                due = time.monotonic() + self._delay * self._dice.uniform(0.5, 1.5)
                heapq.heappush(self._late, (due, self._count, to, frame))

    def _hand(self, to: int, frame: bytes) -> None:
        with contextlib.suppress(OSError):  # the machine is not up, or its queue is full: the frame is lost
            os.write(self._ports[to], frame)


class Net:
    """Machines and what is between them."""

    def __init__(self, machines: int, folder: Path, seed: int) -> None:
        self._folder, self._running = folder, dict[int, Any]()
        names = [*range(machines), -1]
        ports = [tap(f"wire{number}" if number >= 0 else "outside") for number in names]
        context = multiprocessing.get_context("fork")
        theirs, self._orders = context.Pipe(duplex=False)
        self._switch = context.Process(target=self._switched, args=(ports, theirs, seed), daemon=True)
        self._switch.start()
        for words in (
            "link set lo up",
            f"address add {address(-1)}/24 dev outside",
            f"link set outside mtu {_MTU} up",
        ):
            subprocess.run(["ip", *words.split()], check=True)

    def _switched(self, ports: Sequence[int], theirs: Any, seed: int) -> None:
        self._orders.close()
        Switch(ports, theirs, seed).run()

    def told(self, delay: float = 0.0, loss: float = 0.0, cut: Sequence[int] = ()) -> None:
        """From now on frames take so many seconds (half to one and a half of it), get lost, or machines are cut off."""
        self._orders.send((delay, loss, set(cut)))

    def start(self, machine: int, words: Sequence[str]) -> None:
        """A machine comes up and runs this; it goes down when that ends."""
        own = self._folder / f"machine-{machine}"
        own.mkdir(exist_ok=True)
        unshared = ["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]
        with open(own / "log", "a") as log:
            process = subprocess.Popen(
                [*unshared, "sh", "-c", _COME_UP, "sh", str(machine), str(own), address(machine), *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self._running[machine] = process
        while os.readlink(f"/proc/{process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        subprocess.run(["ip", "link", "set", f"wire{machine}", "netns", str(process.pid)], check=True)

    def inside(self, machine: int, words: Sequence[str]) -> list[str]:
        """The command that runs this on a machine."""
        above = self._running[machine].pid
        (first, *_) = Path(f"/proc/{above}/task/{above}/children").read_text().split()
        return ["nsenter", "--target", first, "--net", "--mount", "--pid", "--uts", "--", *words]

    def close(self) -> None:
        """All machines go down at once."""
        for process in self._running.values():
            process.kill()
            process.wait()
        self._orders.close()
        self._switch.join()


@contextlib.contextmanager
def wired(machines: int, seed: int = 0) -> Iterator[Net]:
    """Machines that are not up yet, and the switch between them."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        net = Net(machines, Path(folder), seed)
        try:
            yield net
        finally:
            net.close()
