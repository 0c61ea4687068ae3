"""dense.py — trees over dense vectors in; our engine beside libpecos on the same weights, and beside memory, out.

    python bench/blocks/dense.py MODEL.bw QUERIES.npy --rows 1000

MODEL: trained from dense rows only (`bw.train({"meaning": vectors}, Y, "fast")`). QUERIES: an array, one row per query,
of rows that it was not trained on. Both sides must agree to 1e-5 first. In turns, beam 10, k 10, one thread,
median of the rounds, microseconds per query. "memory" is what reading as many bytes as the opened chunks have takes:
the median of passes over an array that no cache holds. A batch reads a chunk once for several queries.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rivals.install import running_pecos

import beamwood as bw
from beamwood.bench.timing import batch_time, in_turns, print_header, print_table
from beamwood.interop import pecos as pecos_format

BEAM = K = 10
THEIRS = ("csc", "binary", "hash")
TOLERANCE = 1e-5


def microseconds_per_byte() -> float:
    """Of one thread that reads a gigabyte from the beginning to the end."""
    words = np.ones(1 << 27, np.int64)
    took = []
    for _ in range(5):
        begun = time.perf_counter_ns()
        words.max()
        took.append((time.perf_counter_ns() - begun) / 1e3 / words.nbytes)
    return float(np.median(took))


def check(model: bw.Model, pecos: Any, X: Any) -> None:
    """The same scores on both sides, in every rank."""
    mine = model.topk(X, K, BEAM)[1]
    with tempfile.TemporaryDirectory() as folder:
        for kind in THEIRS:
            pecos.answers(kind, BEAM, K, Path(folder) / "answers.npz")
            theirs = np.load(Path(folder) / "answers.npz")["scores"]
            apart = np.abs(np.where(np.isneginf(mine), 0, mine) - np.where(np.isneginf(theirs), 0, theirs)).max(axis=1)
            assert np.mean(apart > TOLERANCE) < 0.01, (kind, float(apart.max()))


def engine_times(model: bw.Model, rows: list[Any]) -> list[float]:
    """Microseconds that the engine reports, row by row."""
    return [model.topk(row, K, BEAM, stats=True)[2].nanoseconds / 1e3 for row in rows]


def bytes_opened(model: bw.Model, rows: list[Any]) -> tuple[float, float]:
    """Bytes and chunks that a query opens, asked alone."""
    each = [model.topk(row, K, BEAM, stats=True)[2] for row in rows]
    return float(np.mean([stats.bytes for stats in each])), float(np.mean([stats.blocks for stats in each]))


def main() -> None:
    """Prints a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("queries", type=Path)
    options.add_argument("--rows", type=int, default=1000)
    options.add_argument("--online", type=int, default=200)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--folder", type=Path, help="of the model as libpecos has it; made where it is not there")
    asked = options.parse_args()
    model = bw.load(asked.model, memory="huge")
    vectors = np.load(asked.queries)[: asked.rows]
    X = sp.csr_array(vectors if model.blocks is None else model.blocks.joined({model.blocks.names[0]: vectors}, "X"))
    with tempfile.TemporaryDirectory() as made, running_pecos() as pecos:
        folder = asked.folder or Path(made) / "pecos"
        if not folder.exists():
            pecos_format.write(model, folder)
        sp.save_npz(Path(made) / "X.npz", sp.csr_matrix(X))
        pecos.queries(Path(made) / "X.npz")
        for kind in THEIRS:
            pecos.load(kind, folder)
        check(model, pecos, X)
        rows = [X[[i]] for i in range(asked.online)]
        models = {"ours": model, "ours, every node of the beam": model.using(bound=False)}
        online = {name: partial(engine_times, one, rows) for name, one in models.items()}
        batch = {name: partial(batch_time, partial(one.topk, X, K, BEAM), X.shape[0]) for name, one in models.items()}
        online |= {kind: partial(pecos.native, kind, BEAM, K, len(rows)) for kind in THEIRS}
        batch |= {kind: partial(pecos.batch, kind, BEAM, K) for kind in THEIRS}
        times = [in_turns(each, asked.rounds, warm=True) for each in (online, batch)]
    per_byte = microseconds_per_byte()
    info = model.info()
    shown = {
        "labels": info["labels"],
        "features": info["features"],
        "non-zeros": info["nonzeros"],
        "GB/s": 1e-3 / per_byte,
    }
    print_header("Dense trees", {**shown, "nodes": info["nodes"]})
    table: list[list[Any]] = [[name, *(part[name].median for part in times)] for name in online]
    for name, one in models.items():
        each, chunks = bytes_opened(one, rows)
        table.append([f"memory, {name}: {each:,.0f} bytes, {chunks:.1f} chunks", each * per_byte, each * per_byte])
    print_table(["µs per query", "online", "batch"], table)


if __name__ == "__main__":
    main()
