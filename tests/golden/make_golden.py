"""Writes the golden model of a format version and its answers. Run it only while that version is unreleased:

python tests/golden/make_golden.py tests/golden/format-2
python tests/golden/make_golden.py tests/golden/words      # with words, a head, a label without rows
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import beamwood as bw

ASKS = ((1, 1), (5, 2), (10, 10), (60, 40))


def layer(features: int, parent: list[int], seed: int, **more: object) -> bw.Layer:
    """A layer of round numbers that any program writes the same way."""
    rng = np.random.Generator(np.random.PCG64(seed))
    nodes = len(parent)
    dense = np.where(rng.random((features, nodes)) < 0.4, rng.integers(-64, 65, (features, nodes)) / 32, 0)
    return bw.Layer(sp.csc_array(dense.astype(np.float32)), np.array(parent), **more)


def golden_model() -> bw.Model:
    """Three trees: with early leaves, with one wide chunk, with bundled layers; biases, moved nodes, keys and names."""
    labels = 45
    narrow = [
        layer(16, [0] * 4, 1, label=np.array([-1, 44, -1, -1]), bias=np.array([0.5, -1, 0, 0.25], np.float32)),
        layer(16, [(0, 2, 3)[7 * i % 3] for i in range(44)], 2, label=np.arange(44)[::-1].copy()),
    ]
    wide = [layer(16, [0] * labels, 3, bias=np.linspace(-2, 2, labels, dtype=np.float32))]
    widths = (1, 2, 4, 8, 16, labels)
    deep = [layer(16, [i * a // b for i in range(b)], 3 + b) for a, b in pairwise(widths)]
    form = {
        "activation": "hinge-2",
        "keys": [f"key-{i}" for i in range(labels)],
        "names": [f"naïve 靴下 {i % 7}" for i in range(labels)],
        "settings": {"note": "golden"},
    }
    trees = [bw.Model.from_layers(tree, **form) for tree in (narrow, wide, deep)]
    return bw.Model.from_trees(trees)


def golden_queries() -> sp.csr_array:
    """A full row, sparse rows and an empty one."""
    rng = np.random.Generator(np.random.PCG64(9))
    dense = np.where(rng.random((6, 16)) < 0.5, rng.integers(-32, 33, (6, 16)) / 16, 0).astype(np.float32)
    dense[0] = 1
    dense[5] = 0
    return sp.csr_array(dense)


def answers(model: bw.Model) -> list[dict[str, object]]:
    """Labels and the bits of the scores for every question."""
    found = []
    for k, beam in ASKS:
        labels, scores = model.topk(golden_queries(), k, beam)
        bits = [[f"{bit:08x}" for bit in row] for row in scores.view(np.uint32).tolist()]
        found.append({"k": k, "beam": beam, "labels": labels.tolist(), "score_bits": bits})
    return found


WORDS = ("red", "wool", "socks", "blue", "cotton", "hat", "green", "kayak", "paddle", "café", "cable", "lamp")
WORD_QUERIES = [
    "red wool",
    "narrow boat",
    "paddle",
    "kayak paddle lamp",
    "cafe cable",
    "blue hat socks socks",
    "lmap",
    "nothing known",
    "",
]


def words_model() -> bw.Model:
    """Trees and words of 24 labels, one of which has only a text."""
    texts = [" ".join(WORDS[(i * j + i // 7) % len(WORDS)] for j in (1, 2, 5)) for i in range(96)]
    labels = [[f"label {i % 23}", f"label {(5 * i + 1) % 23}"] for i in range(96)]
    described = {"new": "a narrow boat that needs a paddle", "label 3": "lamp cable"}
    text = bw.TextFeatures(fold_accents=True)
    return bw.train_text(texts, labels, text=text, label_texts=described, lexical=True, trees=2, progress=False)


def word_answers(model: bw.Model) -> list[list[list[object]]]:
    """Key, who found it and the bits of the score of each hit."""
    found = model.search_many(WORD_QUERIES, k=12)
    return [[[hit.key, hit.found_by, f"{np.float32(hit.score).view(np.uint32):08x}"] for hit in hits] for hits in found]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    model, found = (words_model(), word_answers) if folder.name == "words" else (golden_model(), answers)
    model.save(folder / "model.bw")
    (folder / "answers.json").write_text(json.dumps(found(model)) + "\n")
