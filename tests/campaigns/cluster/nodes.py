"""nodes.py — real Ray nodes on this machine in, their processes and deaths out: what campaigns on a cluster share."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LEARNING = "ray::beamwood"  # what Ray calls a process that learns a piece
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60"}  # nothing leaves this machine


class Nodes:
    """A head, and nodes that come and die."""

    def __init__(self, **each: Any) -> None:
        from ray.cluster_utils import Cluster

        self._each = {"object_store_memory": 150 << 20, **each}
        self._cluster = Cluster(initialize_head=True, head_node_args={**self._each, "include_dashboard": False})
        self._others: list[Any] = []

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return str(self._cluster.address)

    def be(self, count: int) -> None:
        """Adds or ends nodes until there are so many, the head among them."""
        while len(self._others) > count - 1:
            self._cluster.remove_node(self._others.pop(), allow_graceful=False)
        while len(self._others) < count - 1:
            self._others.append(self._cluster.add_node(**self._each))
        self._cluster.wait_for_nodes()

    def lose_one(self, dice: random.Random) -> None:
        """Ends the processes of a node other than the head, with no word to anybody; a new one comes at once."""
        self._cluster.remove_node(self._others.pop(dice.randrange(len(self._others))), allow_graceful=False)
        self._others.append(self._cluster.add_node(**self._each))

    def close(self) -> None:
        """All of them end."""
        self._cluster.shutdown()


@contextlib.contextmanager
def nodes(**each: Any) -> Iterator[Nodes]:
    """A cluster of a head; each: of every node, as Ray's Cluster takes it."""
    os.environ.update(QUIET)
    made = Nodes(**each)
    try:
        yield made
    finally:
        made.close()


def below(roots: set[int]) -> set[int]:
    """Processes and all that they have started."""
    above = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            above[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
    found = set(roots)
    while more := {pid for pid, parent in above.items() if parent in found} - found:
        found |= more
    return found


def descendants(title: str) -> list[int]:
    """Processes that this one has started, or those have, whose title starts so."""
    found = []
    for pid in sorted(below({os.getpid()})):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(title.encode()):
                found.append(pid)
    return found


def awaited(title: str, going_on: Callable[[], bool]) -> list[int]:
    """Our processes of that title, as soon as there are some; none when what was going on ended first."""
    while going_on():
        if found := descendants(title):
            return found
        time.sleep(0.02)
    return []


def killed(title: str, dice: random.Random, going_on: Callable[[], bool]) -> bool:
    """Kills one of our processes of that title as soon as there is one; False when what was going on ended first."""
    while found := awaited(title, going_on):
        with contextlib.suppress(ProcessLookupError):
            os.kill(dice.choice(found), signal.SIGKILL)
            return True
    return False
