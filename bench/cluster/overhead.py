"""overhead.py — a data set in, what Ray adds out: CPU seconds of training, rows per second of scoring, equal files.

    python bench/cluster/overhead.py FOLDER [--preset fast] [--rounds 3] [--cpus 1] [--queries 20000]

FOLDER holds X.trn.npz, Y.trn.npz and X.tst.npz. Training is measured in CPU seconds of this process and all that Ray
started, from before `train` to after it; scoring in rows per second, of the rows that a run with three times as many
has more, so that the start of workers is left out; and beside both the same work in one process with one thread.
"""

from __future__ import annotations

import argparse
import logging
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

BATCH = 10_000


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
    """Scores in turns: topk, and the cluster from a dataset in memory, some rows and three times as many."""
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    sizes = (args.queries, 3 * args.queries)
    X = sp.csr_matrix(sp.vstack([X] * -(-sizes[1] // X.shape[0])))[: sizes[1]]
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.bw")
        handle = bw.Lazy(Path(folder) / "model.bw")
        ratios, speeds, spent_ratios = [], [], []
        for turn in range(args.rounds):
            taken = [
                (here(handle, X[:size]), there(handle, X[:size], Path(folder) / f"{turn}-{size}")) for size in sizes
            ]
            more = sizes[1] - sizes[0]
            alone, ours = (more / (taken[1][way][0] - taken[0][way][0]) for way in (0, 1))
            ratios.append(ours / alone)
            speeds.append((alone, ours, sizes[0] / taken[0][1][0]))
            alone, ours = (taken[1][way][1] - taken[0][way][1] for way in (0, 1))
            spent_ratios.append(ours / alone)
    names = ("topk", "beamwood.ray.predict", "with the start of workers")
    for name, values in zip(names, zip(*speeds, strict=True), strict=True):
        print(f"{name:28} {statistics.median(values):10,.0f} rows per second")
    print(f"{'ratio of the rounds':28} {statistics.median(ratios):8.3f}   of rows that come with more rows")
    print(f"{'their CPU, ratio':28} {statistics.median(spent_ratios):8.3f}")


def here(handle: Any, X: Any) -> tuple[float, float]:
    """Seconds and CPU seconds of topk in batches."""
    _, cpu, seconds = spent(
        lambda: [handle.topk(X[at : at + BATCH], k=10, beam=10) for at in range(0, X.shape[0], BATCH)]
    )
    return seconds, cpu


def there(handle: Any, X: Any, output: Path) -> tuple[float, float]:
    """The same of the cluster."""
    import pyarrow as pa
    import ray

    starts = pa.array(X.indptr.astype(np.int32))
    lists = [pa.ListArray.from_arrays(starts, pa.array(values)) for values in (X.indices.astype(np.int32), X.data)]
    rows = pa.table({"row": np.arange(X.shape[0]), "ids": lists[0], "values": lists[1]})
    tables = [rows.slice(at, BATCH) for at in range(0, X.shape[0], BATCH)]
    asked: dict[str, Any] = {"sparse_columns": ("ids", "values"), "k": 10, "beam": 10, "rows_per_batch": BATCH}
    done, cpu, seconds = spent(lambda: beamwood.ray.predict(ray.data.from_arrow(tables), handle, output, **asked))
    assert done == X.shape[0], done
    return seconds, cpu


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=1, help="of the one Ray node, and threads of bw.train")
    parser.add_argument(
        "--queries", type=int, default=100_000, help="rows scored, and three times as many; test rows are repeated"
    )
    args = parser.parse_args()
    import ray

    train = bw.read_npz(args.folder / "X.trn.npz", args.folder / "Y.trn.npz")
    test = bw.read_npz(args.folder / "X.tst.npz", args.folder / "Y.tst.npz")
    ray.init(address="local", num_cpus=args.cpus, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        print(f"{args.folder.name}, preset {args.preset}, one Ray node of {args.cpus} CPU")
        scored(trained(train.X, train.Y, args), test.X, args)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
