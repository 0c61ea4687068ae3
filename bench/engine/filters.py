"""A model and queries in, what label filters cost out: making one for a million labels, and searching with one.

Before anything is timed, an exact search with each filter must equal the full ranking, filtered, to the last bit.

    python bench/engine/filters.py                      # trains on the library records first (half a minute)
    python bench/engine/filters.py --model library.bw   # any model trained from text on them
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood import datasets
from beamwood.bench.timing import each_time, in_turns, print_header, print_table

BEAM = K = 10
SHARES = (1.0, 0.5, 0.1, 0.01, 0.001)
WIDTHS = (32, 32**2, 32**3, 32**4)


def check(model: bw.Model, X: Any, filters: dict[str, Any], masks: dict[str, Any]) -> None:
    """The full ranking of some rows, filtered, is what an exact search with the filter finds."""
    labels, scores = model.topk(X, k=model.n_labels, exact=True)
    for name, mask in masks.items():
        found = model.topk(X, k=K, exact=True, filter=filters[name])
        for row in range(X.shape[0]):
            kept = np.flatnonzero(mask[labels[row]])[:K]
            same = np.array_equal(found[0][row, : len(kept)], labels[row, kept])
            if not same or found[1][row, : len(kept)].tobytes() != scores[row, kept].tobytes():
                raise SystemExit(f"{name}, row {row}: not the full ranking, filtered. No point in timing it.")


def searching(model: bw.Model, X: Any, queries: int, rounds: int) -> None:
    """One query at a time on one thread, without a filter and with filters that let fewer and fewer labels through."""
    rng = np.random.default_rng(0)
    masks = {f"{share:.1%} of the labels": rng.random(model.n_labels) < share for share in SHARES}
    filters: dict[str, Any] = {name: model.filter(allow=mask) for name, mask in masks.items()}
    check(model, X[:5], filters, masks)
    rows = [X[i : i + 1] for i in range(queries)]
    found = {}
    for layout in ("cascade", "chunk"):
        engine = model.using(layout=layout)
        runs = {
            name: partial(each_time, partial(engine.topk, k=K, beam=BEAM, filter=made), rows)
            for name, made in {"no filter": None, **filters}.items()
        }
        found[layout] = in_turns(runs, rounds)
    plain = {layout: times["no filter"].median for layout, times in found.items()}
    table = [
        (name, *(f"{found[layout][name].median / (plain[layout] if i else 1):.2f}" for layout in found for i in (0, 1)))
        for name in found["cascade"]
    ]
    print_table(("allowed", "cascade µs", "to no filter", "chunk µs", "to no filter"), table)


def building(rounds: int) -> None:
    """Filters of a tree of a million labels, from truth values, numbers and keys."""
    labels = WIDTHS[-1]
    layers = [bw.Layer(sp.csc_array((1, nodes), dtype=np.float32), np.arange(nodes) // 32) for nodes in WIDTHS]
    model = bw.Model.from_layers(layers, names=[f"label {i}" for i in range(labels)])
    chosen = np.random.default_rng(0).permutation(labels)[: labels // 2]
    given = {
        "a truth value a label": np.isin(np.arange(labels), chosen),
        "half of them as numbers": chosen,
        "half of them as keys": [f"label {i}" for i in chosen],
        "ten keys": [f"label {i}" for i in chosen[:10]],
    }

    def timed(allow: Any) -> float:
        begun = time.process_time()
        model.filter(allow=allow)
        return (time.process_time() - begun) * 1e3

    times = in_turns({name: partial(timed, allow) for name, allow in given.items()}, rounds)
    print(f"Making a filter of {labels:,} labels; it takes {model.filter().nbytes:,} bytes\n")
    print_table(("given as", "ms"), [(name, f"{found.median:.1f}") for name, found in times.items()])


def main() -> None:
    """Prints both tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model")
    options.add_argument("--queries", type=int, default=300)
    options.add_argument("--rounds", type=int, default=9)
    asked = options.parse_args()
    data = datasets.load("library-subjects")
    if asked.model:
        model = bw.load(asked.model)
    else:
        model = bw.train_text(data.train_texts, data.train_labels, preset="fast", text=bw.TextFeatures(min_df=2))
    assert model.text is not None
    print_header("Label filters", {"labels": model.n_labels, "beam": BEAM, "k": K, "queries": asked.queries})
    building(asked.rounds)
    searching(model, model.text.transform(data.test_texts[: asked.queries]), asked.queries, asked.rounds)


if __name__ == "__main__":
    main()
