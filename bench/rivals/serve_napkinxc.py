"""Requests in, napkinxc's answers out (see lines.py). It searches exactly; its beam mode is not used."""

from __future__ import annotations

import importlib.metadata
import sys
import time
from typing import Any

from lines import rows_of, save_pairs, serve, timed
from napkinxc.models import PLT

HELD: dict[str, Any] = {}


def hello() -> dict[str, Any]:
    return {"napkinxc": importlib.metadata.version("napkinxc"), "python": sys.version.split()[0]}


def load(folder: str) -> dict[str, Any]:
    started = time.perf_counter()
    HELD["model"] = PLT(folder, threads=1)
    HELD["model"].load()
    return {"seconds": time.perf_counter() - started}


def queries(x: str) -> dict[str, Any]:
    X = rows_of(x)
    HELD.update(X=X, rows=[X[i] for i in range(X.shape[0])])
    return {"rows": X.shape[0]}


def answers(beam: int, k: int, out: str) -> dict[str, Any]:
    save_pairs(HELD["model"].predict_proba(HELD["X"], top_k=k), k, out)
    return {}


def batch(beam: int, k: int) -> dict[str, Any]:
    started = time.process_time()
    HELD["model"].predict_proba(HELD["X"], top_k=k)
    return {"microseconds": (time.process_time() - started) / HELD["X"].shape[0] * 1e6}


def online(beam: int, k: int, rows: int) -> dict[str, Any]:
    model = HELD["model"]
    return {"microseconds": [timed(lambda row: model.predict_proba(row, top_k=k), row) for row in HELD["rows"][:rows]]}


if __name__ == "__main__":
    serve(hello, load, queries, answers, batch, online)
