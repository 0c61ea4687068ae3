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
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw

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


def main() -> None:
    """Prints one line per weight, and what held-out rows inside training would have chosen."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="a folder with train.jsonl.gz (text, labels)")
    options.add_argument("--rows", type=int, default=15_000, help="to learn from")
    options.add_argument("--vectors", choices=("wordllama", "lsa"), default="wordllama")
    options.add_argument("--preset", default="fast")
    options.add_argument("--shares", type=float, nargs="+", default=SHARES)
    options.add_argument("--prune", type=float, default=0.1, help="weights nearer to zero are dropped")
    options.add_argument("--auto", action="store_true", help="also let training choose the weight")
    asked = options.parse_args()
    with gzip.open(asked.data / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    order = np.random.default_rng(0).permutation(len(rows))
    at = np.concatenate([order[: asked.rows], order[len(rows) - HELD_OUT :]])
    learnt, held = slice(0, asked.rows), slice(asked.rows, None)
    texts = [rows[i]["text"] for i in at]
    keys = sorted({key for i in at[learnt] for key in rows[i]["labels"]})
    number = {key: i for i, key in enumerate(keys)}
    Y: Any = sp.lil_matrix((len(at), len(keys)), dtype=np.float32)
    for row, i in enumerate(at):
        Y.rows[row] = sorted(number[key] for key in set(rows[i]["labels"]) if key in number)
        Y.data[row] = [1.0] * len(Y.rows[row])
    Y = Y.tocsr()
    X = bw.TextFeatures().fit(texts[learnt]).transform(texts)
    vectors = wordllama_vectors(texts) if asked.vectors == "wordllama" else lsa_vectors(X, learnt, Y)
    to_learn, to_ask = ({"words": X[part], "vectors": vectors[part]} for part in (learnt, held))
    for share in (*asked.shares, *((None,) if asked.auto else ())):
        weights = None if share is None else {"words": (1 - share) ** 0.5, "vectors": share**0.5}
        start = time.process_time()
        how: dict[str, Any] = {"block_weights": weights, "prune": asked.prune}
        model = bw.train(to_learn, Y[learnt], asked.preset, progress=False, threads=1, **how)
        trained = time.process_time() - start
        assert model.blocks is not None
        joined = model.blocks.joined(to_ask, "X")
        start = time.process_time()
        found = model.topk(joined, 10)
        per_query = (time.process_time() - start) / joined.shape[0]
        alone = np.mean([model.topk(joined[[i]], 10, stats=True)[2].nanoseconds for i in range(ONLINE)]) / 1e3
        told = bw.evaluate(found, Y[held], at=(1, 5, 10))
        chosen = "" if share is not None else f" chosen share {model.blocks.each[1].weight ** 2:.2f}"
        measures = " / ".join(f"{100 * m:.1f}" for m in (told.precision[1], told.precision[5], told.recall[10]))
        size = model.info()["bytes"] / 1e6
        speed = f"{trained:.0f} CPU s, {alone:.0f} µs, in batch {per_query * 1e6:.0f}"
        print(f"{share}: {measures}, {speed}, {size:.0f} MB{chosen}", flush=True)


if __name__ == "__main__":
    main()
