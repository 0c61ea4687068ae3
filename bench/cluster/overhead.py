"""overhead.py — a data set in, what Ray adds out: CPU seconds of training, rows per second of scoring, equal files.

    python bench/cluster/overhead.py FOLDER [--preset fast] [--rounds 3] [--cpus 1] [--queries 20000]

FOLDER holds X.trn.npz, Y.trn.npz and X.tst.npz. Training is measured in CPU seconds of this process and all that Ray
started, from before `train` to after it; scoring in seconds from the first batch to the last file, workers started
before; and beside both the same work in one process with one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
import beamwood.ray


def cpu_seconds() -> float:
    """Of this process and all its descendants that live."""
    parent, used = {}, {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parent[int(name)], used[int(name)] = int(fields[1]), sum(map(int, fields[11:15]))
    mine = {os.getpid()}
    while more := {pid for pid, above in parent.items() if above in mine} - mine:
        mine |= more
    return float(sum(used.get(pid, 0) for pid in mine)) / os.sysconf("SC_CLK_TCK")


def spent(work: Any) -> tuple[Any, float, float]:
    """What came out, CPU seconds, seconds."""
    cpu, clock = cpu_seconds(), time.perf_counter()
    made = work()
    return made, cpu_seconds() - cpu, time.perf_counter() - clock


def trained(X: Any, Y: Any, args: argparse.Namespace) -> bw.Model:
    """Trains in turns, here and on the cluster; prints medians and the ratio of the rounds."""
    how = {"preset": args.preset, "progress": False, "threads": args.cpus}
    ratios, rows = [], []
    for _ in range(args.rounds):
        here, cpu_here, seconds_here = spent(lambda: bw.train(X, Y, **how))
        there, cpu_there, seconds_there = spent(lambda: beamwood.ray.train(X, Y, **how))
        assert here.version == there.version, "the files differ"
        ratios.append(cpu_there / cpu_here)
        rows.append((cpu_here, cpu_there, seconds_here, seconds_there))
    names = ("bw.train, CPU s", "beamwood.ray.train, CPU s", "bw.train, s", "beamwood.ray.train, s")
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        print(f"{name:28} {statistics.median(values):8.2f}")
    print(f"{'CPU, ratio of the rounds':28} {statistics.median(ratios):8.3f}   equal files in all rounds")
    return here


def scored(model: bw.Model, X: Any, args: argparse.Namespace) -> None:
    """Scores the same rows in turns: topk in batches, and the cluster from a dataset in memory."""
    import pyarrow as pa
    import ray

    X = sp.csr_matrix(sp.vstack([X] * -(-args.queries // X.shape[0])))[: args.queries]
    starts = pa.array(X.indptr.astype(np.int32))
    lists = [pa.ListArray.from_arrays(starts, pa.array(values)) for values in (X.indices.astype(np.int32), X.data)]
    rows = pa.table({"row": np.arange(X.shape[0]), "ids": lists[0], "values": lists[1]})
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.bw")
        handle = bw.Lazy(Path(folder) / "model.bw")
        ratios, speeds = [], []
        for turn in range(args.rounds):
            clock = time.perf_counter()
            for first in range(0, X.shape[0], 10_000):
                handle.topk(X[first : first + 10_000], k=10, beam=10)
            here = X.shape[0] / (time.perf_counter() - clock)
            clock = time.perf_counter()
            done = beamwood.ray.predict(
                ray.data.from_arrow(rows), handle, Path(folder) / f"out{turn}", sparse_columns=("ids", "values")
            )
            there = done / (time.perf_counter() - clock)
            ratios.append(there / here)
            speeds.append((here, there))
    for name, values in zip(("topk", "beamwood.ray.predict"), zip(*speeds, strict=True), strict=True):
        print(f"{name:28} {statistics.median(values):10,.0f} rows per second")
    print(f"{'ratio of the rounds':28} {statistics.median(ratios):8.3f}   starting the workers included")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=1, help="of the one Ray node, and threads of bw.train")
    parser.add_argument("--queries", type=int, default=20_000, help="rows scored; test rows are repeated")
    args = parser.parse_args()
    import ray

    train = bw.read_npz(args.folder / "X.trn.npz", args.folder / "Y.trn.npz")
    test = bw.read_npz(args.folder / "X.tst.npz", args.folder / "Y.tst.npz")
    ray.init(num_cpus=args.cpus, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        print(f"{args.folder.name}, preset {args.preset}, one Ray node of {args.cpus} CPU")
        scored(trained(train.X, train.Y, args), test.X, args)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
