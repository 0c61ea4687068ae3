"""wire.py — questions of the upper part in, what a shard told of them out: arrays that travel without a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of some queries whose labels are to be scored, query by query and tree by tree."""

    start: Ints  # where those of each query start; one entry more than there are queries
    tree: Numbers
    layer: Numbers  # of their children
    node: Numbers
    score: Floats  # of the path to the node

    @classmethod
    def none(cls, queries: int) -> Nodes:
        """No nodes."""
        empty = np.zeros(0, np.uint32)
        return cls(np.zeros(queries + 1, np.int64), empty, empty, empty, np.zeros(0, np.float32))


@dataclass(frozen=True, eq=False)
class Ask:
    """Some queries for one shard.

    build:   of the upper part; a shard of another one refuses.
    rows:    indptr, indices and data of the queries, canonical CSR.
    k:       how many labels to list for each.
    allowed: a bit for each label of the shard, where a filter is asked for.
    """

    build: str
    rows: tuple[Any, Any, Any]
    nodes: Nodes
    k: int
    allowed: bytes | None = None
    threads: int = 1


@dataclass(frozen=True, eq=False)
class Told:
    """What a shard found: the best labels of each query by its trees and, where there are words, by those.

    labels, scores:       queries x k, padded with -1 and -inf; labels as the whole model numbers them.
    sums:                 of the words of these labels.
    by_words, word_sums:  the best labels by words.
    best:                 for each query the best sum of words of labels that had rows in training.
    """

    build: str
    labels: Ints
    scores: Floats
    sums: Floats | None = None
    by_words: Ints | None = None
    word_sums: Floats | None = None
    best: Floats | None = None
