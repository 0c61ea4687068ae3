"""mixed.py — texts with labels in; quality, time and bytes of words only, vectors only and both, by weight, out.

    python bench/blocks/mixed.py --data DIR/library-subjects --rows 15000 --vectors wordllama

Vectors: `wordllama` (pip install wordllama; its weights come in the wheel, nothing is downloaded) or `lsa`, learnt from
the training rows themselves. Rows are training rows: 5,000 of them are held out and asked. One thread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.bench.timing import batch_time, in_turns

HELD_OUT = 5000
ONLINE = 1000  # rows that are also asked one by one
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # of a row's squared length that the vectors get


def wordllama_vectors(texts: list[str]) -> Any:
    """256 numbers per text: the mean of vectors of its word pieces."""
    import wordllama

    inside = Path(wordllama.__file__).parent  # where its own loader does not look for the tokenizer
    return wordllama.WordLlama.load(cache_dir=inside, disable_download=True).embed(texts, norm=True)


def lsa_vectors(X: Any, learnt: Any, Y: Any, size: int = 128) -> Any:
    """Directions in which the labels' mean rows differ most: a truncated SVD."""
    means = (Y[learnt].T @ X[learnt]).tocsr().astype(np.float32)
    means = sp.diags(1 / np.maximum(sp.linalg.norm(means, axis=1), 1e-9)) @ means
    directions = sp.linalg.svds(means.astype(np.float32), k=size, random_state=0)[2]
    return X @ directions.T.astype(np.float32)


def rows_of(data: Path, count: int) -> tuple[list[str], Any]:
    """Texts and labels of rows to learn from, then of those that are held out."""
    with gzip.open(data / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    order = np.random.default_rng(0).permutation(len(rows))
    at = np.concatenate([order[:count], order[len(rows) - HELD_OUT :]])
    keys = sorted({key for i in at[:count] for key in rows[i]["labels"]})
    number = {key: i for i, key in enumerate(keys)}
    Y: Any = sp.lil_matrix((len(at), len(keys)), dtype=np.float32)
    for row, i in enumerate(at):
        Y.rows[row] = sorted(number[key] for key in set(rows[i]["labels"]) if key in number)
        Y.data[row] = [1.0] * len(Y.rows[row])
    return [rows[i]["text"] for i in at], Y.tocsr()


def timed(asked: Mapping[str, tuple[bw.Model, Any]], rounds: int) -> None:
    """Prints what each model takes per query, in turns."""
    singles = {name: [X[[i]] for i in range(ONLINE)] for name, (_, X) in asked.items()}

    def online(name: str) -> float:
        model = asked[name][0]
        return float(np.mean([model.topk(row, 10, stats=True)[2].nanoseconds for row in singles[name]])) / 1e3

    def batch(name: str) -> float:
        model, X = asked[name]
        return batch_time(lambda: model.topk(X, 10), X.shape[0])

    for told, measure in (("one by one", online), ("in batch", batch)):
        found = in_turns({name: partial(measure, name) for name in asked}, rounds, warm=True)
        print(f"µs per query, {told}: " + ", ".join(f"{name} {time.median:.1f}" for name, time in found.items()))


def main() -> None:
    """Prints one line per weight, what held-out rows inside training would have chosen, and times in turns."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="a folder with train.jsonl.gz (text, labels)")
    options.add_argument("--rows", type=int, default=15_000, help="to learn from")
    options.add_argument("--vectors", choices=("wordllama", "lsa"), default="wordllama")
    options.add_argument("--preset", default="fast")
    options.add_argument("--shares", type=float, nargs="+", default=SHARES)
    options.add_argument("--prune", type=float, default=0.1, help="weights nearer to zero are dropped")
    options.add_argument("--auto", action="store_true", help="also let training choose the weight")
    options.add_argument("--rounds", type=int, default=3, help="of timing, in turns; 0: none")
    asked = options.parse_args()
    texts, Y = rows_of(asked.data, asked.rows)
    learnt, held = slice(0, asked.rows), slice(asked.rows, None)
    X = bw.TextFeatures().fit(texts[learnt]).transform(texts)
    vectors = wordllama_vectors(texts) if asked.vectors == "wordllama" else lsa_vectors(X, learnt, Y)
    to_learn, to_ask = ({"words": X[part], "vectors": vectors[part]} for part in (learnt, held))
    made: dict[str, tuple[bw.Model, Any]] = {}
    for share in (*asked.shares, *((None,) if asked.auto else ())):
        weights = None if share is None else {"words": (1 - share) ** 0.5, "vectors": share**0.5}
        start = time.process_time()
        how: dict[str, Any] = {"block_weights": weights, "prune": asked.prune}
        model = bw.train(to_learn, Y[learnt], asked.preset, progress=False, threads=1, **how)
        trained = time.process_time() - start
        assert model.blocks is not None
        joined = model.blocks.joined(to_ask, "X")
        told = bw.evaluate(model.topk(joined, 10), Y[held], at=(1, 5, 10))
        chosen = "" if share is not None else f", chosen share {model.blocks.each[1].weight ** 2:.2f}"
        measures = " / ".join(f"{100 * m:.1f}" for m in (told.precision[1], told.precision[5], told.recall[10]))
        print(f"{share}: {measures}, {trained:.0f} CPU s, {model.info()['bytes'] / 1e6:.0f} MB{chosen}", flush=True)
        made[str(share)] = (model, joined)
    if asked.rounds:
        timed(made, asked.rounds)


if __name__ == "__main__":
    main()
