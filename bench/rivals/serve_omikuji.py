"""Requests in, omikuji's answers out (see lines.py)."""

from __future__ import annotations

import importlib.metadata
import sys
import time
from typing import Any

from lines import rows_of, save_pairs, serve, timed
from omikuji import Model

HELD: dict[str, Any] = {}


def hello() -> dict[str, Any]:
    return {"omikuji": importlib.metadata.version("omikuji"), "python": sys.version.split()[0]}


def load(folder: str) -> dict[str, Any]:
    started = time.perf_counter()
    HELD["model"] = Model.load(folder)
    return {"seconds": time.perf_counter() - started}


def queries(x: str) -> dict[str, Any]:
    """omikuji takes a list of (feature, value) pairs a row and has no call for many rows."""
    X = rows_of(x)
    cut = list(zip(X.indptr[:-1], X.indptr[1:]))  # noqa: B905
    HELD["rows"] = [list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist())) for a, b in cut]  # noqa: B905
    return {"rows": X.shape[0]}


def answers(beam: int, k: int, out: str) -> dict[str, Any]:
    save_pairs([HELD["model"].predict(row, beam_size=beam, top_k=k) for row in HELD["rows"]], k, out)
    return {}


def online(beam: int, k: int, rows: int) -> dict[str, Any]:
    model = HELD["model"]
    ask = [timed(lambda row: model.predict(row, beam_size=beam, top_k=k), row) for row in HELD["rows"][:rows]]
    return {"microseconds": ask}


if __name__ == "__main__":
    serve(hello, load, queries, answers, online)
