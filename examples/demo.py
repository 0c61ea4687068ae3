"""Library records in, a trained model out, with what it is worth: quality beside two baselines, speed, five searches.

Run it with `make demo`, or `python examples/demo.py` where beamwood is installed and data/ is below.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import beamwood as bw
from beamwood import LabelTable, Metrics, datasets, evaluate
from beamwood.bench.variants import LEGEND, time_variants, variants_table

SEARCHES = (
    "history of jazz in new orleans",
    "how to bake sourdough bread",
    "effects of climate change on the baltic sea",
    "learning to program in python",
    "children and grief",
)
BM25_RECORDED = {"P@1": 26.3, "P@5": 12.5, "recall@10": 39.4}  # from data/library-subjects/README.md
QUERIES_TIMED = 500
console = Console(highlight=False)


def timed(what: str, call: Callable[[], Any]) -> Any:
    """Runs a step and says how long it took."""
    begun = time.perf_counter()
    result = call()
    console.print(f"{what}: {time.perf_counter() - begun:.1f} s", markup=False)
    return result


def percent(metrics: Metrics) -> dict[str, float]:
    """The three figures of the table."""
    figures = {"P@1": metrics.precision[1], "P@5": metrics.precision[5], "recall@10": metrics.recall[10]}
    return {name: 100 * value for name, value in figures.items()}


def most_frequent(data: datasets.Dataset, table: LabelTable, truth: Any) -> dict[str, float]:
    """The baseline that gives every text the ten most frequent labels."""
    counts = np.asarray(table.matrix(data.train_labels).sum(axis=0)).ravel()
    best = np.argsort(-counts, kind="stable")[:10]
    answer = np.tile(best, (truth.shape[0], 1)), np.tile(counts[best], (truth.shape[0], 1))
    return percent(evaluate(answer, truth))


def bm25(data: datasets.Dataset, table: LabelTable, truth: Any) -> tuple[str, dict[str, float]]:
    """BM25 over the joined texts of each label: computed where bm25s is installed, else as recorded."""
    try:
        import bm25s
    except ImportError:
        return "BM25 (recorded, not run here: pip install bm25s)", BM25_RECORDED
    joined: list[list[str]] = [[] for _ in table.keys]
    for text, keys in zip(data.train_texts, data.train_labels, strict=True):
        for key in keys:
            joined[table.id_of(key)].append(text)
    ranker = bm25s.BM25()
    ranker.index(bm25s.tokenize([" ".join(texts) for texts in joined], show_progress=False), show_progress=False)
    queries = bm25s.tokenize(data.test_texts, show_progress=False)
    labels, scores = ranker.retrieve(queries, k=10, show_progress=False)
    return "BM25 (bm25s)", percent(evaluate((labels.astype(np.int64), scores), truth))


def quality(model: bw.Model, data: datasets.Dataset) -> Table:
    """Precision and recall on the test rows, beside the baselines."""
    table = LabelTable(tuple(model.key(label) for label in range(model.n_labels)))
    truth = table.matrix(data.test_labels, unknown="skip")
    answer = model.topk(model.transform(data.test_texts), k=10, beam=10, threads=2)
    rows = [
        ("beamwood", percent(evaluate(answer, truth))),
        bm25(data, table, truth),
        ("the ten most frequent labels", most_frequent(data, table, truth)),
    ]
    shown = Table(title=f"Percent, over {truth.shape[0]:,} records not trained on", title_justify="left")
    shown.add_column("")
    for name in BM25_RECORDED:
        shown.add_column(name, justify="right")
    for name, figures in rows:
        shown.add_row(name, *(f"{figures[column]:.1f}" for column in BM25_RECORDED))
    return shown


def speed(model: bw.Model, data: datasets.Dataset) -> None:
    """Prints the table of variants, once all of them agree."""
    X = model.transform(data.test_texts[:QUERIES_TIMED])
    times = time_variants(model, X, rounds=3)
    console.print(f"All variants of the engine give the same bits for {X.shape[0]:,} queries.")
    console.print("\nMicroseconds per query (one thread, beam 10, k 10)", variants_table(times), sep="\n")
    print(LEGEND)


def searches(model: bw.Model) -> None:
    """Five questions and their answers."""
    for text in SEARCHES:
        took = []
        for _ in range(20):
            begun = time.perf_counter()
            hits = model.search(text, k=5)
            took.append(time.perf_counter() - begun)
        console.print(f"\n[bold]{text}[/bold]  ({min(took) * 1e6:,.0f} µs)")
        for hit in hits:
            console.print(f"  {hit.score:.3f}  {hit.name}", markup=False)


def subset(data: datasets.Dataset, rows: int) -> datasets.Dataset:
    """The first rows of a data set, for a quick look."""
    cut = slice(rows)
    return datasets.Dataset(
        data.name, data.train_texts[cut], data.train_labels[cut], data.test_texts[cut], data.test_labels[cut]
    )


def main() -> None:
    """Loads, trains, measures, searches, saves."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--output", type=Path, default=Path("library-subjects.bw"))
    options.add_argument("--rows", type=int, help="train on the first ROWS records alone")
    given = options.parse_args()
    data = timed("read the records", lambda: datasets.load("library-subjects"))
    if given.rows:
        data = subset(data, given.rows)
    console.print(f"{len(data.train_texts):,} library records, each with its subjects. Training with nothing set:")
    features = bw.TextFeatures(min_df=2, sublinear_tf=True)
    model = timed("trained", lambda: bw.train_text(data.train_texts, data.train_labels, text=features))
    console.print(model, "\n")
    console.print(quality(model, data), "\n")
    speed(model, data)
    searches(model)
    model.save(given.output)
    console.print(f"\nThe model is in {given.output} ({given.output.stat().st_size / 1e6:.0f} MB). Type next:\n")
    beamwood = "beamwood" if _on_path("beamwood") else ".venv/bin/beamwood"
    print(f'  {beamwood} search {given.output} "history of jazz in new orleans"')
    print(f"  {beamwood} search {given.output}          (asks for words)")
    print(f"  {beamwood} inspect {given.output}")
    print(f"  {beamwood} evaluate {given.output} data/library-subjects/test.jsonl.gz")


def _on_path(program: str) -> bool:
    """Whether the shell finds a program without its folder; the folder that make puts first does not count."""
    import os
    import sys

    here = Path(sys.executable).parent
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    return any((folder / program).exists() for folder in folders if folder != here) or "VIRTUAL_ENV" in os.environ


if __name__ == "__main__":
    main()
