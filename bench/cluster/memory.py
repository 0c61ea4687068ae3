"""memory.py — a data set in, peaks of memory out: of `bw.train` in one process, and of each of some Ray nodes.

    python bench/cluster/memory.py FOLDER [--preset balanced] [--nodes 3]

FOLDER holds X.trn.npz and Y.trn.npz. A peak is the largest sum of PSS (pages that processes share count once) over all
processes of a node: Ray's own and those that learn, looked at four times per second; what the same processes had before
is given beside it, and which processes had most of it. The program that calls `train` is a row of its own: it runs
beside the first node.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

_GLANCE = 0.25


def pss(pid: int) -> int:
    """Bytes of a process, its share of what it shares; 0 when it is gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def title(pid: int) -> str:
    """What a process calls itself, in short."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").split()
    except OSError:
        return "gone"
    named = (
        words[0]
        if words and words[0].startswith("ray::")
        else next((word for word in words if word.endswith((".py", "beamwood"))), words[0] if words else "gone")
    )
    return named.rpartition("/")[2][:24]


def parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            found[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return found


def below(roots: set[int]) -> set[int]:
    """Processes and all that they started."""
    above, found = parents(), set(roots)
    while more := {pid for pid, parent in above.items() if parent in found} - found:
        found |= more
    return found


class Peaks:
    """Looks at groups of processes until it is told to end."""

    def __init__(self, groups: dict[str, set[int]]) -> None:
        self._groups, self._stop = groups, threading.Event()
        self.parts = {name: self._now(name) for name in groups}  # at the peak: bytes of each process
        self.before = {name: sum(parts.values()) for name, parts in self.parts.items()}
        self.titles: dict[int, str] = {}
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    @property
    def most(self) -> dict[str, int]:
        """The peak of each group."""
        return {name: sum(parts.values()) for name, parts in self.parts.items()}

    def _now(self, name: str) -> dict[int, int]:
        return {pid: pss(pid) for pid in below(self._groups[name])}

    def _look(self) -> None:
        while not self._stop.wait(_GLANCE):
            for name in self._groups:
                now = self._now(name)
                if sum(now.values()) > sum(self.parts[name].values()):
                    self.parts[name] = now
                    self.titles |= {pid: title(pid) for pid in now}

    def largest(self, name: str, count: int = 5) -> str:
        """The processes that had most of a peak."""
        found = sorted(self.parts[name].items(), key=lambda one: -one[1])[:count]
        return ", ".join(f"{self.titles.get(pid, '?')} {size / 2**20:,.0f}" for pid, size in found)

    def close(self) -> None:
        """No more looking."""
        self._stop.set()
        self._thread.join()


def trained(words: list[str], groups: dict[str, set[int]]) -> Peaks:
    """The peaks while a command ran, which is a group of its own."""
    process = subprocess.Popen(words)
    looked = Peaks({**groups, "program": {process.pid}})
    try:
        if process.wait():
            sys.exit("the training failed")
    finally:
        looked.close()
    return looked


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--nodes", type=int, default=3)
    args = parser.parse_args()
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    rows = ("--x", str(args.folder / "X.trn.npz"), "--y", str(args.folder / "Y.trn.npz"), "--preset", args.preset)
    each: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 200 << 20}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [sys.executable, "-m", "beamwood", "train", *rows, "-q", "-o"]
        here = trained([*words, str(folder / "here.bw")], {}).most["program"]
        print(f"{args.folder.name}, {args.preset}: one process {here / 2**20:,.0f} MiB", flush=True)
        cluster = Cluster(initialize_head=True, head_node_args={**each, "include_dashboard": False})
        try:
            made = [cluster.head_node, *(cluster.add_node(**each) for _ in range(args.nodes - 1))]
            groups = {
                f"node {number}": {one.process.pid for some in node.all_processes.values() for one in some}
                for number, node in enumerate(made)
            }
            there = [*words, str(folder / "there.bw"), "--ray", str(cluster.address), "--shared", str(folder)]
            peaks = trained(there, groups)
        finally:
            cluster.shutdown()
        assert (folder / "here.bw").read_bytes() == (folder / "there.bw").read_bytes(), "the files differ"
    for group, most in peaks.most.items():
        own = most - peaks.before[group]
        print(f"{group:8} {most / 2**20:8,.0f} MiB, {most / here:.2f} x; without Ray's own at rest {own / here:.2f} x")
        print(f"         {peaks.largest(group)}")


if __name__ == "__main__":
    main()
