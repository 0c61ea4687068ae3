"""Requests in, libpecos' answers out (see lines.py): clocks run around the call that is measured and nothing else."""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import os
import sys
import time
from ctypes import byref, c_uint64
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from lines import rows_of, serve, timed
from pecos.core import ScipyCompressedSparseAllocator, ScipyCsrF32, clib
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

MODELS: dict[str, Any] = {}
QUERIES: dict[str, Any] = {}
POST_PROCESSOR = "l3-hinge"


def hello() -> dict[str, Any]:
    packages = ("libpecos", "numpy", "scipy")
    return {name: importlib.metadata.version(name) for name in packages} | {"python": sys.version.split()[0]}


def train(x: str, y: str, folder: str, branching: int, threads: int) -> dict[str, Any]:
    """Trains with the settings of the paper's models; the folder appears when it is complete."""
    X = rows_of(x)
    Y = sp.csc_matrix(sp.load_npz(y), dtype=np.float32)
    started = time.perf_counter()
    vectors = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=threads)
    chain = Indexer.gen(vectors, nr_splits=branching, max_leaf_size=branching, seed=0, threads=threads)
    model = XLinearModel.train(X, Y, C=chain, nr_splits=branching, threshold=0.1, threads=threads)
    seconds = time.perf_counter() - started
    draft = Path(folder + ".draft")
    model.save(str(draft))
    (draft / "trained.json").write_text(json.dumps({"seconds": seconds, "threads": threads}))
    draft.rename(folder)
    return {"seconds": seconds}


def load(name: str, folder: str, type: str) -> dict[str, Any]:
    """Loads for prediction only, with one of libpecos' matrix types; says how much memory that took."""
    before = _resident()
    started = time.perf_counter()
    MODELS[name] = XLinearModel.load(folder, is_predict_only=True, weight_matrix_type=type)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "resident_bytes": _resident() - before}


def unload(name: str) -> dict[str, Any]:
    del MODELS[name]
    return {}


def queries(x: str) -> dict[str, Any]:
    """Reads the query matrix and cuts it into rows, so that no measurement includes that."""
    X = rows_of(x)
    rows = [X[i] for i in range(X.shape[0])]
    QUERIES.update(X=X, rows=rows, native=[ScipyCsrF32.init_from(row) for row in rows])
    return {"rows": X.shape[0]}


def answers(name: str, beam: int, k: int, out: str) -> dict[str, Any]:
    """Saves labels and scores of all queries, in rank order, padded with -1 and -inf."""
    P = _predict(MODELS[name], QUERIES["X"], beam, k, 1)
    labels = np.full((P.shape[0], k), -1, np.int64)
    scores = np.full((P.shape[0], k), -np.inf, np.float32)
    for i, (a, b) in enumerate(zip(P.indptr[:-1], P.indptr[1:])):  # noqa: B905
        labels[i, : b - a], scores[i, : b - a] = P.indices[a:b], P.data[a:b]
    np.savez(out, labels=labels, scores=scores)
    return {}


def batch(name: str, beam: int, k: int, threads: int) -> dict[str, Any]:
    """All queries in one call of `predict`; processor time when it runs on one thread."""
    model, X = MODELS[name], QUERIES["X"]
    clock = time.process_time if threads == 1 else time.perf_counter
    started = clock()
    _predict(model, X, beam, k, threads)
    return {"microseconds": (clock() - started) / X.shape[0] * 1e6}


def online(name: str, beam: int, k: int, rows: int) -> dict[str, Any]:
    """One call of `predict` a row, as a Python user writes it."""
    model, some = MODELS[name], QUERIES["rows"][:rows]
    return {"microseconds": [timed(lambda row: _predict(model, row, beam, k, 1), row) for row in some]}


def native(name: str, beam: int, k: int, rows: int) -> dict[str, Any]:
    """One call of the C function a row, its arguments and its result's memory made beforehand."""
    c_model, some = MODELS[name].model.model_chain, QUERIES["native"][:rows]
    predict, post = clib.clib_float32.c_xlinear_predict_csr_f32, POST_PROCESSOR.encode()
    kept = np.zeros(2, np.uint64), np.zeros(k, np.uint32), np.zeros(k, np.float32)
    indptr, indices, data = (array.ctypes.data for array in kept)

    def place(*given: int) -> None:
        to_indices, to_indptr, to_data = given[4:]
        c_uint64.from_address(to_indices).value = indices
        c_uint64.from_address(to_indptr).value = indptr
        c_uint64.from_address(to_data).value = data

    allocate = ScipyCompressedSparseAllocator.CFUNCTYPE(place)
    arguments = [(c_model, byref(row), beam, post, k, 1, allocate) for row in some]
    return {"microseconds": [timed(lambda a: predict(*a), a) for a in arguments]}


def _predict(model: Any, X: Any, beam: int, k: int, threads: int) -> Any:
    return model.predict(X, beam_size=beam, only_topk=k, post_processor=POST_PROCESSOR, threads=threads)


def _resident() -> int:
    """Bytes of this process in memory, after giving back what malloc holds but nobody uses."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    serve(hello, train, load, unload, queries, answers, batch, online, native)
