"""The readers against their rivals: XMC text read by beamwood, by scikit-learn and by plain Python; in turns.

    python bench/readers.py [X.npz Y.npz] [--rounds 5] [--rows N]

Checks first that all three give the same matrix, then prints the median of the rounds and the peak memory of
a fresh process that reads the file, next to the size of what it read.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.inputs.data import read_npz, read_svmlight, read_xmc, write_xmc

PEAK = """
import json, resource, sys, time
from beamwood.inputs.data import read_xmc
def resident():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * resource.getpagesize()
before = resident()
rows = read_xmc(sys.argv[1])
peak = int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) * 1024
size = sum(a.nbytes for m in (rows.X, rows.Y) for a in (m.data, m.indices, m.indptr))
print(json.dumps({"result": size, "peak": peak - before}))
"""


def plain_python(path: Path) -> sp.csr_matrix:
    """What one writes without a library: split, int, float."""
    with open(path) as file:
        _, features, _ = map(int, file.readline().split())
        ids: list[int] = []
        values: list[float] = []
        starts = [0]
        labels: list[list[int]] = []
        for line in file:
            first, *rest = line.rstrip("\n").split(" ")
            labels.append([int(label) for label in first.split(",")] if first else [])
            for pair in rest:
                feature, value = pair.split(":")
                ids.append(int(feature))
                values.append(float(value))
            starts.append(len(ids))
    return sp.csr_matrix((np.asarray(values, np.float32), ids, starts), shape=(len(starts) - 1, features))


def made_up(rows: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Rows like those of a text data set, for machines without one."""
    rng = np.random.default_rng(0)
    X: Any = sp.random(rows, 50_000, 40 / 50_000, format="csr", dtype=np.float32, random_state=rng)
    Y: Any = sp.random(rows, 10_000, 3 / 10_000, format="csr", dtype=np.float32, random_state=rng)
    return X, Y


def in_turns(rivals: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of each rival, the median of rounds in which each runs once."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(rounds):
        for name, run in rivals.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def main() -> None:
    """Writes the files, checks agreement, times, prints."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("files", nargs="*", metavar="X.npz Y.npz")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--rows", type=int, default=50_000)
    given = options.parse_args()
    from sklearn.datasets import load_svmlight_file

    if given.files:
        rows = read_npz(*given.files)
        X, Y = rows.X[: given.rows], rows.Y[: given.rows]
    else:
        X, Y = made_up(given.rows)
    with tempfile.TemporaryDirectory() as folder:
        xmc, svm = Path(folder) / "rows.txt", Path(folder) / "rows.svm"
        write_xmc(xmc, X, Y)
        svm.write_bytes(xmc.read_bytes().split(b"\n", 1)[1])
        rivals: dict[str, Callable[[], object]] = {
            "beamwood read_xmc": lambda: read_xmc(xmc),
            "beamwood read_svmlight": lambda: read_svmlight(svm, zero_based=True, features=X.shape[1]),
            "sklearn load_svmlight_file": lambda: load_svmlight_file(
                os.fspath(svm), n_features=X.shape[1], multilabel=True, zero_based=True, dtype=np.float32
            ),
            "plain Python": lambda: plain_python(xmc),
        }
        assert (read_xmc(xmc).X != X).nnz == 0
        assert (rivals["sklearn load_svmlight_file"]()[0] != X).nnz == 0  # type: ignore[index]
        assert (plain_python(xmc) != X).nnz == 0
        medians = in_turns(rivals, given.rounds)
        megabytes = xmc.stat().st_size / 1e6
        print(f"readers: {X.shape[0]:,} rows, {X.nnz:,} values, {megabytes:.0f} MB of text")
        print(f"{platform.machine()}, Python {platform.python_version()}, median of {given.rounds} rounds in turns")
        for name, seconds in medians.items():
            ratio = seconds / medians["beamwood read_xmc"]
            print(f"  {name:28s} {seconds:8.3f} s  {megabytes / seconds:7.1f} MB/s  {ratio:6.1f} x")
        done = subprocess.run([sys.executable, "-c", PEAK, xmc], capture_output=True, check=True)
        memory = json.loads(done.stdout)
        print(
            f"  peak memory above start {memory['peak'] / 1e6:.1f} MB for a result of "
            f"{memory['result'] / 1e6:.1f} MB: {memory['peak'] / memory['result']:.2f} x"
        )


if __name__ == "__main__":
    main()
