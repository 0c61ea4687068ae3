"""A hundred million labels in one mapped file: built, checked and timed; and how latency grows from 10^4 labels on.

    python bench/hundred_million.py                     # 15 GB on disk and in the page cache; half an hour on two cores
    python bench/hundred_million.py --labels 100000     # the same in seconds
    python bench/hundred_million.py --folder vast       # keeps the models there, and uses those it finds

The model is generated (bench/support/vast.py), not trained, and written by beamwood.stream, which never holds it in
memory.
Before anything is timed, answers are compared bit for bit with a search of our own over weights made again from
scratch. Queries have 5 to 20 words of a label each; every round asks all of them in turn, more than the caches hold.

cold     the file's pages were dropped from memory before; one query at a time, in passing time
warm     the file's pages are in memory and mapped; one query at a time, or all in one call; processor time
lines    cache lines touched per query: for r rows of b bytes together, r + (b - 4r) / 64 (records lie at any word), and
         three for each opened node (its place, its children, its scale)
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from support.made_again import ACTIVATION, check
from support.vast import BITS, Vast

import beamwood as bw
from beamwood import stream
from beamwood.bench.timing import print_header, print_table, save_json

Array = npt.NDArray[Any]

PAPER = (  # milliseconds per query, batch, one thread, on the paper's own 100-million-label model: mean, p95, p99
    ("paper, binary search MSCM", (0.88, 1.20, 1.42), (1.63, 2.23, 2.63)),
    ("paper, hash MSCM", (0.96, None, None), (1.80, None, None)),
    ("paper, without MSCM", (7.28, None, None), (14.32, None, None)),
)
ROUNDS = 5
COLD_QUERIES = 200
BATCH = 100  # queries a call when batches are timed one by one, for their percentiles
CHECKED = 12


@dataclass(frozen=True)
class Latency:
    """Milliseconds per query."""

    mean: float
    p95: float
    p99: float

    @classmethod
    def of(cls, milliseconds: Array) -> Latency:
        return cls(float(milliseconds.mean()), *(float(np.percentile(milliseconds, p)) for p in (95, 99)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=100_000_000)
    parser.add_argument("--features", type=int, default=4_000_000)
    parser.add_argument("--weights", choices=("f32", "f16", "u8"), default="u8")
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--fit", type=int, default=1_000_000, help="labels of the model on which other variants run")
    parser.add_argument("--folder", type=Path, help="keep the models here, and use those that are there")
    parser.add_argument("--plot", type=Path, help="where to put the growth curve, .png and .svg")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    shown = {key: getattr(args, key) for key in ("labels", "features", "weights", "queries")}
    print_header("A hundred million labels", {**shown, "branching": 1 << BITS, "activation": ACTIVATION, "k": 10})
    if args.folder:
        args.folder.mkdir(parents=True, exist_ok=True)
        run(args, args.folder)
        return
    with tempfile.TemporaryDirectory(prefix="beamwood-vast-") as folder:
        run(args, Path(folder))


def run(args: argparse.Namespace, folder: Path) -> None:
    """Everything, in the order it is printed."""
    vast = Vast(args.labels, args.features)
    path = file_of(vast, folder, args.weights)
    figures: dict[str, Any] = {"build": build(vast, path, args.weights)}
    X, about = vast.queries(args.queries, seed=1)
    words = np.diff(X.indptr)
    print(f"{len(words):,} queries of {words.min()} to {words.max()} words, {words.mean():.1f} on average\n")
    figures["cold"] = cold(path, X)
    model = bw.load(path)
    warm_up(model)
    check(vast, model, X[: min(CHECKED, args.queries)], args.weights)
    hits = (model.topk(X, 10, 10)[0] == about[:, None]).any(axis=1).mean()
    print(f"{hits:.0%} of the queries have the label they are about among their first 10, beam 10\n")
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    print(f"{own_memory():.2f} GiB of memory beside the mapped file\n")
    figures["latency"] = latencies(model, X, figures["cold"])
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults
    print(f"{faults:,} pages were read from disk while warm queries were timed\n")
    figures["growth"] = growth(args, folder, model)
    del model
    figures["variants"] = variants(args, folder)
    if args.plot:
        plot(figures["growth"], args.plot)
    save_json(args.json, figures)


def build(vast: Vast, path: Path, weights: str) -> dict[str, Any]:
    """Writes the model unless it is there; what that took and what its layers hold, which is kept beside it."""
    notes = path.with_suffix(".json")
    if not (path.exists() and notes.exists()):
        begun, spent = time.perf_counter(), time.process_time()
        held: list[float] = []
        layers = [vars(layer) for layer in write(vast, path, weights, held)]
        took = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - spent, "gib": max(held)}
        notes.write_text(json.dumps({**took, "layers": layers}))
    found = json.loads(notes.read_text())
    size = path.stat().st_size
    print(f"written in {found['seconds']:,.0f} s ({found['cpu']:,.0f} s of processor time), ", end="")
    print(f"{found['gib']:.1f} GiB of memory at most: {size / 1e9:.2f} GB, {size / vast.labels:.0f} bytes a label\n")
    heads = ("layer", "nodes", "non-zeros", "a node", "rows", "rows over non-zeros", "empty rows", "MB")
    print_table(
        heads,
        [
            (
                str(depth),
                f"{one['nodes']:,}",
                f"{one['nonzeros']:,}",
                f"{one['nonzeros'] / one['nodes']:,.1f}",
                f"{one['rows']:,}",
                f"{one['rows'] / one['nonzeros']:.2f}",
                f"{one['empty_rows'] / one['rows']:.0%}",
                f"{one['bytes'] / 1e6:,.1f}",
            )
            for depth, one in enumerate(found["layers"])
        ],
    )
    return dict(found)


def file_of(vast: Vast, folder: Path, weights: str) -> Path:
    return folder / f"{vast.labels}-{vast.features}-{weights}.bw"


def small_model(vast: Vast, folder: Path, weights: str) -> bw.Model:
    """A model of the same kind with other labels, warm."""
    path = file_of(vast, folder, weights)
    if not path.exists():
        write(vast, path, weights)
    model = bw.load(path)
    warm_up(model)
    return model


def write(vast: Vast, path: Path, weights: str, held: list[float] | None = None) -> list[stream.LayerCounts]:
    """The streaming builder at work; held: what memory it has at each step."""

    def columns(layer: int, first: int, end: int) -> tuple[Array, Array, Array]:
        found = vast.columns(layer, first, end)
        if held is not None:
            held.append(own_memory())
        return found

    return stream.write_model(
        path, vast.child_starts, columns, features=vast.features, activation=ACTIVATION, weights=weights
    )


def own_memory() -> float:
    """GiB that this process holds now, pages of mapped files not counted."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 2**20 for line in lines if line.startswith("RssAnon"))


def cold(path: Path, X: Any) -> dict[int, Latency]:
    """Passing time of single queries when the file is not in memory; another set of queries for each beam."""
    count = min(COLD_QUERIES, X.shape[0] // 2)
    found = {}
    for turn, beam in enumerate((10, 20)):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        ask = partial(bw.load(path).topk, k=10, beam=beam)
        found[beam] = Latency.of(each(ask, [X[turn * count + i] for i in range(count)], time.perf_counter_ns))
    return found


def warm_up(model: bw.Model) -> None:
    """Brings every page of the file into memory and into this process."""
    for array in model.parts.sections.values():
        array.view(np.uint8)[::4096].max()


def each(call: Callable[[Any], object], rows: Sequence[Any], clock: Callable[[], int]) -> Array:
    """Milliseconds of a call for each row."""
    spent = np.empty(len(rows))
    for i, row in enumerate(rows):
        begun = clock()
        call(row)
        spent[i] = (clock() - begun) / 1e6
    return spent


def inside(model: bw.Model, rows: Sequence[Any], beam: int) -> Array:
    """Milliseconds that each row takes inside the core."""
    return np.array([model.topk(row, 10, beam, stats=True)[2].nanoseconds / 1e6 for row in rows])


def online(model: bw.Model, rows: Sequence[Any], beam: int) -> tuple[Latency, Latency]:
    """One query at a time, medians of the rounds: inside the core, and as a caller in Python sees it."""
    calls, core = [], []
    for _ in range(ROUNDS):
        calls.append(each(lambda row: model.topk(row, 10, beam), rows, time.thread_time_ns))
        core.append(inside(model, rows, beam))
    return Latency.of(np.median(core, axis=0)), Latency.of(np.median(calls, axis=0))


def batch(model: bw.Model, X: Any, beam: int) -> Latency:
    """All queries in one call for the mean; parts of them for percentiles."""
    parts = [X[i : i + BATCH] for i in range(0, X.shape[0], BATCH)]
    whole, pieces = [], []
    for _ in range(ROUNDS):
        whole.append(each(lambda rows: model.topk(rows, 10, beam), [X], time.thread_time_ns)[0] / X.shape[0])
        spent = each(lambda rows: model.topk(rows, 10, beam), parts, time.thread_time_ns)
        pieces.append(spent / np.array([part.shape[0] for part in parts]))
    spread = Latency.of(np.median(pieces, axis=0))
    return Latency(float(np.median(whole)), spread.p95, spread.p99)


def latencies(model: bw.Model, X: Any, cold_ones: dict[int, Latency]) -> dict[str, Any]:
    """The table that stands beside the paper's."""
    rows = [X[i] for i in range(X.shape[0])]
    found: dict[str, Any] = {}
    for beam in (10, 20):
        core, caller = online(model, rows, beam)
        found[f"online, inside the core, beam {beam}"] = core
        found[f"online, called from Python, beam {beam}"] = caller
        found[f"batch, beam {beam}"] = batch(model, X, beam)
        found[f"cold, online, beam {beam}"] = cold_ones[beam]
    heads = (
        "milliseconds per query, one thread",
        *(f"b={b} {what}" for b in (10, 20) for what in ("mean", "p95", "p99")),
    )
    kinds = ("online, inside the core", "online, called from Python", "batch", "cold, online")
    ours = [(f"beamwood, {kind}", *(found[f"{kind}, beam {beam}"] for beam in (10, 20))) for kind in kinds]
    table = [[name, *(shown(v) for one in both for v in (one.mean, one.p95, one.p99))] for name, *both in ours]
    table += [[name, *(shown(v) for v in (*ten, *twenty))] for name, ten, twenty in PAPER]
    print_table(heads, table)
    print(f"(batch: the mean of one call with all {X.shape[0]:,} queries; p95 and p99 over calls of {BATCH})\n")
    return found


def shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def lines_touched(model: bw.Model, X: Any, beam: int) -> float:
    """Cache lines per query, from what the engine counted."""
    stats = model.topk(X, 10, beam, stats=True)[2]
    return float(stats.rows + (stats.bytes - 4 * stats.rows) / 64 + 3 * stats.blocks) / X.shape[0]


def growth(args: argparse.Namespace, folder: Path, largest: bw.Model) -> list[dict[str, Any]]:
    """The same queries' shape on models of 10^4 labels and more."""
    sizes = [n for n in (10**4, 10**5, 10**6, 10**7, 10**8) if n < args.labels] + [args.labels]
    found = []
    for labels in sizes:
        vast, model = Vast(labels, args.features), largest
        if labels != args.labels:
            model = small_model(vast, folder, args.weights)
        X, _ = vast.queries(args.queries, seed=2)
        core, _ = online(model, [X[i] for i in range(X.shape[0])], 10)
        found.append({"labels": labels, **vars(core), "lines": lines_touched(model, X, 10)})
    first = found[0]
    print_table(
        ("labels", "mean µs", "p95 µs", "p99 µs", "lines per query", "mean, times the first", "lines, times the first"),
        [
            (
                f"{one['labels']:,}",
                *(f"{1e3 * one[key]:.1f}" for key in ("mean", "p95", "p99")),
                f"{one['lines']:.0f}",
                f"{one['mean'] / first['mean']:.2f}",
                f"{one['lines'] / first['lines']:.2f}",
            )
            for one in found
        ],
    )
    print("(online, inside the core, warm, beam 10)\n")
    return found


def variants(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The paper's variants on a model that fits in memory several times, in turns, after they agree."""
    labels = min(args.fit, args.labels)
    vast = Vast(labels, args.features)
    X, _ = vast.queries(min(args.queries, 2000), seed=3)
    base = small_model(vast, folder, args.weights)
    engines: dict[str, Any] = {
        "cascade": {},
        "chunk, binary (the paper's)": {"layout": "chunk", "matcher": "binary"},
        "chunk, hash (the paper's)": {"layout": "chunk", "matcher": "hash"},
        "column, binary (without MSCM)": {"layout": "column", "matcher": "binary"},
    }
    found: dict[str, Any] = {}
    expected = {beam: base.topk(X, 10, beam) for beam in (10, 20)}
    for name, engine in engines.items():  # one at a time: each has a copy of the weights
        model = base.using(**engine)
        warm_up(model)
        for beam in (10, 20):
            labels_found, scores = model.topk(X, 10, beam)
            if labels_found.tobytes() != expected[beam][0].tobytes() or scores.tobytes() != expected[beam][1].tobytes():
                sys.exit(f"{name} gives other answers; nothing is timed")
            core, _ = online(model, [X[i] for i in range(X.shape[0])], beam)
            found[f"{name}, beam {beam}"] = {"online": core, "batch": batch(model, X, beam)}
    heads = (f"milliseconds per query, {labels:,} labels", "b=10 online", "p99", "batch", "b=20 online", "p99", "batch")
    print_table(
        heads,
        [
            [name, *(shown(v) for beam in (10, 20) for v in of_variant(found[f"{name}, beam {beam}"]))]
            for name in engines
        ],
    )
    return found


def of_variant(times: dict[str, Latency]) -> tuple[float, float, float]:
    return times["online"].mean, times["online"].p99, times["batch"].mean


def plot(points: list[dict[str, Any]], path: Path) -> None:
    """Latency and cache lines against the number of labels."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    labels = [one["labels"] for one in points]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for key, name, style in (
        ("mean", "mean", "o-"),
        ("p95", "95th percentile", "s--"),
        ("p99", "99th percentile", "^:"),
    ):
        left.plot(labels, [1e3 * one[key] for one in points], style, label=name)
    left.set_ylabel("latency of one query (µs)")
    left.legend(frameon=False)
    right.plot(labels, [one["lines"] for one in points], "o-", color="tab:green")
    right.set_ylabel("cache lines touched by one query")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("labels in the model")
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    figure.suptitle("One thread, beam 10, 5 to 20 words per query, memory-mapped, 8-bit weights")
    for ending in (".png", ".svg"):
        figure.savefig(path.with_suffix(ending), dpi=150)
        print(f"written to {path.with_suffix(ending)}", file=sys.stderr)


if __name__ == "__main__":
    main()
