"""case.py — one data set and one branching in, everything measured about it out: a plain dictionary, ready for JSON.

Nothing is timed before all engines gave the same bits. Then in turns, on one thread unless said otherwise, the median
of the rounds, in microseconds per query. Online times are those the engine reports, so the way in from Python is not in
them; against rivals, which report none, both sides are timed around the Python call.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.bench.duel import Place, duels
from beamwood.bench.plan import Plan
from beamwood.bench.resident import resident_of
from beamwood.bench.sets import Data
from beamwood.bench.timing import batch_time, in_turns, medians_in_turns
from beamwood.bench.variants import DEFAULT, check_same_bits
from beamwood.metrics import evaluate
from beamwood.model import Model
from beamwood.storage.layers import Layer
from beamwood.training.progress import Progress
from beamwood.training.train import train

Engines = dict[tuple[str, str], Any]  # (matcher, layout): the same weights behind that engine
LAYOUTS = ("chunk", "column")
STORED_APART = (("binary", "chunk"), ("hash", "chunk"), ("binary", "column"), ("hash", "column"))
MOST_TEST_ROWS = 5_000  # for precision


def run_case(data: Data, branching: int, plan: Plan, place: Place, progress: Progress) -> dict[str, Any]:
    """Trains the paper's model on the set and measures it."""
    title = f"{data.name}, branching {branching}"
    with progress.stage(f"{title}: train", data.X.shape[0]):
        model, training = _trained(data, branching, plan)
    X = _queries(data, plan.queries)
    rows = [X[[i]] for i in range(min(plan.online, X.shape[0]))]
    engines = _engines(model, plan)
    with progress.stage(f"{title}: same bits", X.shape[0]):
        check_same_bits(engines, X, k=plan.k, beam=plan.beam)
    with progress.stage(f"{title}: variants", X.shape[0]):
        found: dict[str, Any] = {"variants": _variants(engines, X, rows, plan), "unsorted": _unsorted(engines, X, plan)}
    with progress.stage(f"{title}: threads, beams, layers", X.shape[0]):
        found |= {
            "threads": _threads(engines, X, plan),
            "beams": _beams(model, data, rows, plan),
            "layers": _layers(model, rows, plan),
        }
    with progress.stage(f"{title}: memory", X.shape[0]):
        found["memory"] = _memory(model, engines, place.work)
    found["rivals"] = duels(model, X, plan, place, progress, title) if plan.rivals else {}
    info = model.info()
    about = {key: info[key] for key in ("labels", "features", "nodes", "nonzeros", "bytes_of_weights")}
    return {
        "set": data.name,
        "branching": branching,
        "data": data.describe(),
        "training": training,
        "model": about,
        "same_bits": {"engines": len(engines), "queries": X.shape[0], "differences": 0},
        **found,
    }


def _trained(data: Data, branching: int, plan: Plan) -> tuple[Model, dict[str, Any]]:
    threads = max(plan.threads)
    begun = time.perf_counter()
    model = train(
        data.X,
        data.Y,
        preset="fast",
        branching=branching,
        max_leaf=branching,
        seed=plan.seed,
        threads=threads,
        progress=False,
    )
    return model, {"preset": "fast", "seconds": time.perf_counter() - begun, "threads": threads}


def _queries(data: Data, count: int) -> sp.csr_matrix:
    X = sp.csr_matrix(data.X_test[:count], dtype=np.float32)
    X.sort_indices()
    return X


def _engines(model: Model, plan: Plan) -> Engines:
    engines: Engines = {(DEFAULT, "auto"): model}
    for matcher in plan.matchers:
        for layout in LAYOUTS:
            engines[matcher, layout] = model.using(matcher=matcher, layout=layout)
    return engines


def _variants(engines: Engines, X: sp.csr_matrix, rows: list[Any], plan: Plan) -> list[dict[str, Any]]:
    """Batch and online times of every engine."""
    ask = {"k": plan.k, "beam": plan.beam}
    batch = in_turns(
        {f"{m} {lay}": partial(batch_time, partial(e.topk, X, **ask), X.shape[0]) for (m, lay), e in engines.items()},
        plan.rounds,
        warm=True,
    )
    online = medians_in_turns(
        {f"{m} {lay}": partial(native_times, e, rows, plan.k, plan.beam) for (m, lay), e in engines.items()},
        plan.rounds,
        warm=True,
    )
    return [
        {
            "matcher": matcher,
            "layout": layout,
            "batch": batch[f"{matcher} {layout}"].median,
            "online": spread(online[f"{matcher} {layout}"]),
        }
        for matcher, layout in engines
    ]


def native_times(engine: Any, rows: list[Any], k: int, beam: int) -> list[float]:
    """Microseconds that the engine reports for each row."""
    return [engine.topk(row, k=k, beam=beam, threads=1, stats=True)[2].nanoseconds / 1e3 for row in rows]


def spread(times: Any) -> dict[str, float]:
    """Mean, median, 95th and 99th percentile."""
    p50, p95, p99 = np.percentile(times, (50, 95, 99))
    return {"mean": float(np.mean(times)), "p50": float(p50), "p95": float(p95), "p99": float(p99)}


def _unsorted(engines: Engines, X: sp.csr_matrix, plan: Plan) -> dict[str, dict[str, float]]:
    """What the block sort of Algorithm 3 brings in batch: times with it and without it."""
    found = {}
    for matcher in plan.matchers:
        searcher = engines[matcher, "chunk"].searcher
        runs = {
            name: partial(
                batch_time,
                partial(searcher.topk, X, plan.k, plan.beam, 1, False, sort_blocks=name == "sorted"),
                X.shape[0],
            )
            for name in ("sorted", "unsorted")
        }
        found[matcher] = {name: time.median for name, time in in_turns(runs, plan.rounds, warm=True).items()}
    return found


def _threads(engines: Engines, X: sp.csr_matrix, plan: Plan) -> dict[str, dict[str, float]]:
    """Batch times that pass on the clock, by number of threads."""
    chosen = _stored_apart(engines)
    runs = {
        (f"{matcher} {layout}", threads): partial(
            _wall_time,
            partial(engines[matcher, layout].topk, X, k=plan.k, beam=plan.beam, threads=threads),
            X.shape[0],
        )
        for matcher, layout in chosen
        for threads in plan.threads
    }
    times = in_turns({f"{name}/{threads}": run for (name, threads), run in runs.items()}, plan.rounds, warm=True)
    return {
        f"{matcher} {layout}": {str(t): times[f"{matcher} {layout}/{t}"].median for t in plan.threads}
        for matcher, layout in chosen
    }


def _stored_apart(engines: Engines) -> list[tuple[str, str]]:
    """The engines that store weights in their own way; march and dense use what binary does."""
    return [(DEFAULT, "auto"), *(name for name in STORED_APART if name in engines)]


def _wall_time(call: Any, queries: int) -> float:
    begun = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - begun) / 1e3 / queries


def _beams(model: Model, data: Data, rows: list[Any], plan: Plan) -> list[dict[str, Any]]:
    """What a wider beam costs and gives, with the default engine."""
    X, Y = data.X_test[:MOST_TEST_ROWS], data.Y_test[:MOST_TEST_ROWS]
    found = []
    for beam in plan.beams:
        times = [native_times(model, rows, plan.k, beam) for _ in range(plan.rounds)]
        at = tuple(k for k in (1, 3, 5) if k <= plan.k)
        measured = evaluate(model.predict(X, k=plan.k, beam=beam, threads=max(plan.threads)), Y, at=at)
        precision = {str(k): float(measured.precision[k]) for k in at}
        found.append({"beam": beam, "online": spread(np.median(times, axis=0)), "precision": precision})
    return found


def _layers(model: Model, rows: list[Any], plan: Plan) -> list[float]:
    """Microseconds that each layer takes online: what a tree cut off below it takes beyond one cut off above it."""
    layers = model.layers()
    tops = [_top_of_tree(layers[:depth]) for depth in range(1, len(layers) + 1)]
    times = in_turns(
        {str(i): partial(native_times, top, rows, plan.k, plan.beam) for i, top in enumerate(tops)}, plan.rounds
    )
    share: list[float] = np.diff([0.0, *(times[str(i)].median for i in range(len(tops)))]).clip(0).tolist()
    return share


def _top_of_tree(layers: list[Layer]) -> Model:
    """A tree that ends with these layers: the nodes of the last one are its labels, beside leaves further up."""
    cut, labels = [], 0
    for layer in layers:
        leaf = np.full(len(layer.parent), layer is layers[-1])
        if layer.label is not None:
            leaf |= np.asarray(layer.label) >= 0
        cut.append(Layer(layer.weights, layer.parent, layer.bias, np.where(leaf, labels + np.cumsum(leaf) - 1, -1)))
        labels += int(leaf.sum())
    return Model.from_layers(cut, activation="hinge-3")


def _memory(model: Model, engines: Engines, work: Path) -> dict[str, int]:
    """Bytes that a fresh process needs in memory for each engine, its file read whole."""
    path = work / "memory.bw"
    model.save(path)
    try:
        return {f"{m} {layout}": resident_of(path, m, layout) for m, layout in _stored_apart(engines)}
    finally:
        path.unlink()
