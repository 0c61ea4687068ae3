"""explained.py — a query and a label in, what its words add and what the head makes of both members out.

Added in the order given, in float32, the shares end in the sum of the words; the head's formula ends in the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import FormatError
from beamwood.lexical.head import LISTED, MOST_SHARE, ROWLESS, UNLISTED, Head

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class HeadShares:
    """How the members' scores became one: score = 1 / (1 + exp(-z)), z = bias + trees · evidence + words · share.

    Of a label without rows trees is 0, and bias and words are those of such labels.
    """

    tree_score: float | None  # the mean of the trees; None where they do not list the label
    evidence: float  # what that counts: its log, at least `unlisted`
    trees: float
    word_sum: float
    best_sum: float  # of the best label with rows
    share: float  # word_sum / best_sum, at most 2
    words: float
    bias: float
    z: float
    score: float


def head_shares(
    head: Head, activation: _core.Activation, tree: float | None, total: float, best: float, rowless: bool
) -> HeadShares:
    """What the head makes of a tree score (None: not listed) and a sum of words."""
    kind = ROWLESS if rowless else UNLISTED if tree is None else LISTED
    given = (np.float32(0 if tree is None else tree), np.float32(total), np.float32(best))
    trees, words, most = (np.array([value]) for value in given)
    score = float(head.scores(activation, trees, words, most, np.array([kind]))[0])
    e = float(_core.evidence(list(head.numbers), activation, given[0])) if kind == LISTED else head.unlisted
    if best > 0:
        share = min(float(np.float64(given[1]) / np.float64(given[2])), MOST_SHARE)
    else:
        share = MOST_SHARE if total > 0 else 0.0
    bias, by_trees, by_words = (
        (head.rowless, 0.0, head.rowless_words) if rowless else (head.bias, head.trees, head.words)
    )
    z = (bias + by_trees * e) + by_words * share
    return HeadShares(tree, e, by_trees, float(total), float(best), share, by_words, bias, z, score)


def best_sum(lists: Any, row: Any, rows_of_label: Array | None, all_labels: int) -> float:
    """The best sum of all labels with rows for one canonical row; 0 where none of them has a word of it."""
    width = 1
    while True:
        labels, sums = np.empty((1, width), np.int64), np.empty((1, width), np.float32)
        if lists.topk(row.indptr, row.indices, row.data, labels, sums, 1, True, None):
            raise FormatError("The model is damaged: an inverted list leads outside. Get a fresh copy of its file.")
        found = labels[0][labels[0] >= 0]
        known = np.ones(len(found), bool) if rows_of_label is None else rows_of_label[found] > 0
        if known.any() or len(found) < width or width == all_labels:
            return float(sums[0, known.argmax()]) if known.any() else 0.0
        width = min(16 * width, all_labels)


def listed_by_words(lists: Any, row: Any, width: int, label: int) -> bool:
    """Whether a label is among the candidates of the words."""
    labels, sums = np.empty((1, width), np.int64), np.empty((1, width), np.float32)
    lists.topk(row.indptr, row.indices, row.data, labels, sums, 1, True, None)
    return bool((labels == label).any())
