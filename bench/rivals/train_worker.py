"""train_worker.py — a library and a data folder in; seconds, peak memory and precision@1 of one training out.

Runs inside the environment of that library, started by train_speed.py:
python train_worker.py LIBRARY FOLDER THREADS BRANCHING. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

LEAF = 32


def beamwood(X: Any, Y: Any, threads: int, branching: int) -> Callable[[Any], Any]:
    import beamwood as bw

    model = bw.train(X, Y, preset="fast", branching=branching, threads=threads, progress=False)
    return lambda T: model.topk(T, k=1, beam=10)[0][:, 0]


def libpecos(X: Any, Y: Any, threads: int, branching: int) -> Callable[[Any], Any]:
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    vectors = LabelEmbeddingFactory.create(Y, X, method="pifa")
    tree = Indexer.gen(vectors, nr_splits=branching, max_leaf_size=LEAF, threads=threads, seed=0)
    model = XLinearModel.train(X, Y, C=tree, threshold=0.1, threads=threads, negative_sampling_scheme="tfn")

    def best(T: Any) -> Any:
        P = model.predict(T, beam_size=10, only_topk=1).tocsr()
        found = np.full(T.shape[0], -1)
        some = np.diff(P.indptr) > 0
        found[some] = P.indices[P.indptr[:-1][some]]
        return found

    return best


LIBRARIES = {"beamwood": beamwood, "libpecos": libpecos}


def peak_mb() -> float:
    """Of this program alone: getrusage would count the process that started it too."""
    with open("/proc/self/status") as lines:
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def main(library: str, folder: str, threads: int, branching: int) -> None:
    names = ("X.trn", "Y.trn", "X.tst", "Y.tst")
    X, Y, T, Z = (sp.csr_matrix(sp.load_npz(f"{folder}/{name}.npz"), dtype=np.float32) for name in names)
    before = peak_mb()
    wall, cpu = time.perf_counter(), time.process_time()
    ranked = LIBRARIES[library](X, Y, threads, branching)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_mb()
    best = ranked(T)
    rows = np.flatnonzero(best >= 0)
    hits = int((np.asarray(Z[rows, best[rows]]).ravel() > 0).sum())
    found = {"wall": wall, "cpu": cpu, "peak": peak, "before": before, "p1": 100 * hits / T.shape[0]}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
