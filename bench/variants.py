"""Layers in, the table of the paper's eight variants out: four matchers on chunks and on single columns.

All variants must give the same bits before any of them is timed. One thread, in turns, median of the rounds.
Online is the time that the engine itself reports, so that the door from Python is not in it.

    python bench/variants.py                                  # generated weights, branching 2, 8, 32
    python bench/variants.py --trained --subject generated-4k # weights that libpecos trained
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from subjects import GENERATED, generated_layers, subject

import beamwood as bw
from beamwood.bench.timing import Time, batch_time, in_turns, print_header, print_table, save_json
from beamwood.layers import Layer

MATCHERS = ("march", "binary", "hash", "dense")
LAYOUTS = ("chunk", "column")
ASKED = {"march": 4.0, "binary": 5.0, "hash": 3.0, "dense": 2.5}  # chunk over column, batch, branching 32
BEAM = K = 10

Variants = dict[str, Any]


def variants_of(layers: list[Layer]) -> Variants:
    """The eight engines over the same weights, by name."""
    model = bw.Model.from_layers(layers, activation="hinge-3")
    return {f"{m} {lay}": model.using(matcher=m, layout=lay) for m in MATCHERS for lay in LAYOUTS}


def check_same_bits(models: Variants, X: sp.csr_matrix, rows: list[sp.csr_matrix]) -> None:
    """All variants agree with the first, for the batch and for single rows, to the last bit."""
    wanted = None
    for name, model in models.items():
        labels, scores = model.topk(X, k=K, beam=BEAM, threads=1)
        wanted = wanted or (name, labels, scores)
        _same(wanted, (f"{name}, batch", labels, scores))
        for i, row in enumerate(rows):
            labels, scores = model.topk(row, k=K, beam=BEAM, threads=1)
            _same((name, wanted[1][i : i + 1], wanted[2][i : i + 1]), (f"{name}, row {i}", labels, scores))


def _same(wanted: tuple[str, Any, Any], found: tuple[str, Any, Any]) -> None:
    labels = np.array_equal(wanted[1], np.reshape(found[1], wanted[1].shape))
    if not labels or wanted[2].tobytes() != found[2].tobytes():
        raise SystemExit(f"{found[0]} differs from {wanted[0]}: no point in timing it")


def native_times(model: Any, rows: list[sp.csr_matrix]) -> list[float]:
    """Microseconds that the engine reports for each row."""
    return [model.topk(row, k=K, beam=BEAM, threads=1, stats=True)[2].nanoseconds / 1e3 for row in rows]


def measure(layers: list[Layer], X: sp.csr_matrix, online_rows: int, rounds: int) -> dict[str, dict[str, Time]]:
    """{"batch": {variant: time}, "online": {variant: time}} for one model."""
    models = variants_of(layers)
    rows = [X[i] for i in range(online_rows)]
    check_same_bits(models, X, rows[:20])
    batch = {n: partial(batch_time, partial(m.topk, X, k=K, beam=BEAM), X.shape[0]) for n, m in models.items()}
    online = {name: partial(native_times, model, rows) for name, model in models.items()}
    return {"batch": in_turns(batch, rounds), "online": in_turns(online, rounds)}


def print_results(results: dict[int, dict[str, dict[str, Time]]]) -> None:
    """A table for batch, one for online: a row a matcher; chunk, column, their ratio for each branching."""
    for setting in ("batch", "online"):
        heads = [f"{setting}, µs a query"]
        for b in results:
            heads += [f"B={b} chunk", "column", "chunk over column"]
        heads += ["asked at B=32"] if setting == "batch" and 32 in results else []
        rows = []
        for matcher in MATCHERS:
            row: list[Any] = [matcher]
            for result in results.values():
                chunk, column = (result[setting][f"{matcher} {lay}"].median for lay in LAYOUTS)
                row += [chunk, column, f"{column / chunk:.2f}x"]
            rows.append(row + [f"{ASKED[matcher]:g}x"] * (len(heads) - len(row)))
        print_table(heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--subject", default="generated-4k")
    parser.add_argument("--data", type=Path, help="folder of the real subjects")
    parser.add_argument("--trained", action="store_true", help="use weights trained by libpecos")
    parser.add_argument("--branching", type=int, nargs="+", default=[2, 8, 32])
    parser.add_argument("--rows", type=int, default=1_000, help="queries in the batch")
    parser.add_argument("--online-rows", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if not given.trained and given.subject not in GENERATED:
        parser.error(f"{given.subject} has no generated weights: add --trained")
    settings = {**vars(given), "beam": BEAM, "k": K, "threads": 1, "activation": "hinge-3"}
    print_header("The eight variants", settings)
    results = {}
    for branching in given.branching:
        one = subject(given.subject, branching, given.data)
        layers = one.layers() if given.trained else generated_layers(given.subject, branching)
        results[branching] = measure(layers, one.queries(given.rows), given.online_rows, given.rounds)
    print("all variants gave the same bits\n")
    print_results(results)
    save_json(given.json, {"settings": settings, "results": results})


if __name__ == "__main__":
    main()
