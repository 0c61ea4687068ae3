"""A folder with a data set in; a model trained and served for real out: time, memory, file size, latency, precision.

    python bench/train_and_serve.py npm-repos/            # X.trn.npz Y.trn.npz X.tst.npz Y.tst.npz
    python bench/train_and_serve.py npm-repos/ --weights u8 --file npm.bw

Made for sets with millions of labels, which memory and load time depend on. The model is trained with preset "fast"
(any setting may be given with --set), saved, loaded by a process of its own and asked one query at a time.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.bench.timing import each_time, print_header, print_table
from beamwood.storage.compress import Compression

QUERIES = 5000
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--weights", choices=("f32", "f16", "u8"), default="f32")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, as JSON")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--file", type=Path, help="keep the model here")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)  # what the second process is asked to do
    args = parser.parse_args()
    if args.serve:
        print(json.dumps(served(args.serve, args.data)))
        return
    settings = {name: json.loads(value) for name, _, value in (pair.partition("=") for pair in args.set)}
    X, Y = (sp.load_npz(args.data / f"{part}.trn.npz") for part in "XY")
    shown = {"rows": f"{X.shape[0]:,}", "features": f"{X.shape[1]:,}", "labels": f"{Y.shape[1]:,}"}
    print_header(
        f"Trained and served: {args.data.name}", {**shown, "preset": "fast", "weights": args.weights, **settings}
    )
    with tempfile.TemporaryDirectory() as folder:
        path = args.file or Path(folder) / "model.bw"
        figures = trained(X, Y, path, args, settings)
        asked = [sys.executable, __file__, str(args.data), "--serve", str(path)]
        figures |= json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    print_table(("what", "figure"), [(name, f"{value:,.6g}") for name, value in figures.items()])


def trained(X: Any, Y: Any, path: Path, args: argparse.Namespace, settings: dict[str, Any]) -> dict[str, float]:
    """Trains and saves; what that took."""
    begun, spent = time.perf_counter(), time.process_time()
    model = bw.train(X, Y, preset="fast", threads=args.threads, seed=0, progress=False, **settings)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report: dict[str, float] = {}
    if args.weights != "f32":
        model = model.compress(args.weights)
        assert isinstance(model.report, Compression)
        report = {"largest error of a weight": model.report.largest_error}
    model.save(path)
    info = model.info()
    return {
        f"seconds of training, {args.threads} threads": seconds,
        "processor seconds of training": cpu,
        "GiB of memory at most while training, data included": peak,
        "MB of the model file": path.stat().st_size / 1e6,
        "weights": info["nonzeros"],
        "bytes per weight": info["bytes_per_nonzero"],
        "layers": info["depth"],
        **report,
    }


def served(path: Path, data: Path) -> dict[str, float]:
    """Loads the file as a server would and asks it."""
    X: Any
    Y: Any
    X, Y = (sp.load_npz(data / f"{part}.tst.npz") for part in "XY")
    begun = time.perf_counter()
    model = bw.load(path)
    model.topk(X[:1])
    ready = time.perf_counter() - begun
    quality = bw.evaluate(model.topk(X, 10, 10, threads=2), Y, at=(1, 5, 10))
    rows = [X[i] for i in range(min(QUERIES, X.shape[0]))]
    spent = np.median([each_time(model.topk, rows) for _ in range(ROUNDS)], axis=0)
    core = np.median(
        [[model.topk(row, stats=True)[2].nanoseconds / 1e3 for row in rows] for _ in range(ROUNDS)], axis=0
    )
    batch = np.median([each_time(model.topk, [X[: len(rows)]])[0] / len(rows) for _ in range(ROUNDS)])
    return {
        "milliseconds from the file to the first answer": 1e3 * ready,
        "P@1 (percent)": 100 * quality.precision[1],
        "recall@10 (percent)": 100 * quality.recall[10],
        "µs per query inside the core, mean": float(core.mean()),
        "µs per query inside the core, p99": float(np.percentile(core, 99)),
        "µs per query called from Python, mean": float(spent.mean()),
        "µs per query in a batch": float(batch),
        "words per query": float(np.diff(X.indptr).mean()),
        "GiB of memory while serving, mapped pages included": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        / 2**20,
    }


if __name__ == "__main__":
    main()
