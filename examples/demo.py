"""A generated model in, the table of the eight variants out: same bits first, then microseconds a query.

Run it with `make demo`, or `python examples/demo.py` where beamwood is installed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

import beamwood as bw

FEATURES, BRANCHING, LABELS = 20_000, 32, 4_096
QUERIES, QUERY_WORDS, NODE_WORDS = 512, 60, 220
MATCHERS = ("march", "binary", "hash", "dense")


def zipf_rows(rng: np.random.Generator, rows: int, words: int) -> sp.csr_array:
    """Sparse unit rows whose features are as common as words are: the n-th with a frequency of about 1/n."""
    ids = np.minimum(FEATURES ** rng.random((rows, words)), FEATURES - 1).astype(np.int32)
    values = rng.lognormal(0.0, 0.5, (rows, words)).astype(np.float32)
    offsets = np.arange(rows + 1) * words
    matrix = sp.csr_array((values.ravel(), ids.ravel(), offsets), shape=(rows, FEATURES))
    matrix.sum_duplicates()
    length = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    return sp.csr_array(sp.diags_array((1 / length).astype(np.float32)) @ matrix)


def generated_model(rng: np.random.Generator) -> bw.Model:
    """Three layers of 32 siblings a chunk; siblings share half of their features, as those of a trained tree do."""
    layers = []
    nodes, parents = 4, 1
    while nodes <= LABELS:
        parent = np.repeat(np.arange(parents), nodes // parents)
        shared = zipf_rows(rng, parents, NODE_WORDS)[parent]
        own = zipf_rows(rng, nodes, NODE_WORDS // 2)
        signs = sp.csr_array(shared + own)
        signs.data *= rng.choice(np.array([-1, 1, 1], np.float32), signs.nnz)
        bias = rng.normal(0.0, 0.3, nodes).astype(np.float32)
        layers.append(bw.Layer(weights=sp.csc_array(signs.T), parent=parent, bias=bias))
        nodes, parents = nodes * BRANCHING, nodes
    return bw.Model.from_layers(layers, activation="hinge-3")


def microseconds(call: Callable[[], object], queries: int) -> float:
    """The best of five runs, a query."""
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best / queries * 1e6


def main() -> None:
    """Makes the model, checks that all variants agree, times them and prints the table."""
    console = Console()
    rng = np.random.default_rng(0)
    model = generated_model(rng)
    X = zipf_rows(rng, QUERIES, QUERY_WORDS)
    info = model.info()
    console.print(
        f"A generated model: {info['labels']:,} labels, {info['features']:,} features, {info['depth']} layers, "
        f"{info['nonzeros']:,} weights, {info['bytes'] / 1e6:.0f} MB in memory."
    )

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.bw"
        model.save(path)
        begin = time.perf_counter()
        loaded = bw.load(path)
        expected = loaded.topk(X[:1])
        ready = (time.perf_counter() - begin) * 1e3
        console.print(f"Saved to one file, loaded by memory map: first answer after {ready:.1f} ms.")
        if not all(np.array_equal(a, b) for a, b in zip(expected, model.topk(X[:1]), strict=True)):
            raise SystemExit("The loaded model answers differently: this is a bug.")

    engines = {(layout, m): model.using(layout=layout, matcher=m) for layout in ("column", "chunk") for m in MATCHERS}
    labels, scores = model.topk(X)
    for (layout, matcher), engine in engines.items():
        for threads in (1, 2):
            found_labels, found_scores = engine.topk(X, threads=threads)
            same = np.array_equal(found_labels, labels) and found_scores.tobytes() == scores.tobytes()
            if not same:
                raise SystemExit(f"{layout} {matcher} with {threads} threads answers differently: this is a bug.")
    console.print(f"All eight variants give the same bits for {QUERIES} queries, with one thread and with two.")

    table = Table(title="Microseconds a query (one thread, beam 10, k 10)", title_justify="left")
    for column in ("matcher", "batch column", "batch chunk", "ratio", "online column", "online chunk", "ratio"):
        table.add_column(column, justify="left" if column == "matcher" else "right")
    single = [X[[i]] for i in range(32)]
    for matcher in MATCHERS:
        cells = [matcher]
        for calls in (1, len(single)):
            times = []
            for layout in ("column", "chunk"):
                engine = engines[layout, matcher]
                if calls == 1:
                    times.append(microseconds(lambda engine=engine: engine.topk(X), QUERIES))
                else:
                    times.append(microseconds(lambda engine=engine: [engine.topk(x) for x in single], calls))
            cells += [f"{times[0]:.1f}", f"{times[1]:.1f}", f"{times[0] / times[1]:.1f}x"]
        table.add_row(*cells)
    console.print(table)
    console.print("column: one sparse vector a node. chunk: siblings stored together (MSCM). Same weights, same bits.")


if __name__ == "__main__":
    main()
