"""words.py — rows, their labels and texts of labels in; BM25 weights, one row per label, out: what words say of labels.

A label's document is the words of its training rows and of its own text; a word counts once for each of them. The law:
weights are worked out in double and rounded once, the same for any number of threads.

The query is the row as it is: its values (TF-IDF, as a rule) times these weights. So a rare word counts by its idf
twice, once in the query and once in the label; on held-out rows that does better than counting it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.lexical.bm25 import bm25_weights

# k1 says how soon more rows with the same word count less: at once where labels have few rows, late where they have
# many. Held-out rows tell these apart poorly, so they are asked only whether another one is clearly better than the one
# that is usual for so many rows per label (docs/lexical/label-texts.md).
K1 = (0.5, 1.5, 4.0)
ROWS_PER_K1 = 16.0
B = 0.75
WEIGHTS = "u8"  # how they are stored: a byte each, in steps of the word's largest


def usual_k1(rows_per_label: float) -> float:
    """The one of K1 that is nearest, as a ratio, to what so many rows per label suggest."""
    return min(K1, key=lambda k1: abs(np.log(max(rows_per_label, 1e-9) / ROWS_PER_K1 / k1)))


def k1_of(told: Mapping[str, Any] | None) -> float:
    """The k1 of a model's words, by what training told of them; files from before it was always told had the first."""
    return float((told or {}).get("k1", K1[0]))


def word_counts(X: Any, Y: Any, texts: Any = None) -> sp.csr_array:
    """Labels x features, of rows (CSR) and their labels (CSR); texts: labels x features of their own texts, or None."""
    rows = sp.csr_array((np.sign(np.maximum(X.data, 0)).astype(np.float32), X.indices, X.indptr), shape=X.shape)
    has = sp.csr_array((np.ones(Y.nnz, np.float32), Y.indices, Y.indptr), shape=Y.shape)
    counts = sp.csr_array(has.T @ rows)
    if texts is not None:
        own = sp.csr_array((np.sign(np.maximum(texts.data, 0)), texts.indices, texts.indptr), shape=texts.shape)
        counts = sp.csr_array(counts + own)
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts


def word_weights(counts: sp.csr_array, k1: float) -> sp.csr_array:
    """The weights of words that labels have so often."""
    return bm25_weights(counts, k1, B)
