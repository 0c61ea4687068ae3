"""bm25.py — counts of terms, one row per document, in; BM25 weights out, so that counts of a query times them score it.

The law: weight = idf · tf / (tf + k1 · (1 - b + b · length / mean length)) with idf = log(1 + (n - df + ½) / (df + ½)),
as Lucene has it; worked out in double and rounded to float32 once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import SettingsError

_AT_ONCE = 1 << 20  # values, about, that are worked on in double at a time


def bm25_weights(
    counts: Any, k1: float = 1.5, b: float = 0.75, *, idf: npt.NDArray[np.float64] | None = None, mean: float = 0.0
) -> sp.csr_array:
    """BM25 weights of counts (CSR, documents x terms, values above 0): documents without a term have none.

    idf, mean: the idf of each term and the mean length, where these documents are only some of all.
    """
    documents, terms = counts.shape
    length, given = np.zeros(documents), (idf_of(counts) if idf is None else idf)
    for first, end, row, tf in _some(counts):
        length[first:end] = np.bincount(row, weights=tf, minlength=end - first)
    mean = mean or (float(length.mean()) if counts.nnz else 1.0)
    norm = k1 * (1.0 - b + b * length / mean)
    weights = np.empty(counts.nnz, np.float32)
    for first, end, row, tf in _some(counts):
        own = slice(counts.indptr[first], counts.indptr[end])
        weights[own] = given[counts.indices[own]] * tf / (tf + norm[first:end][row])
    return sp.csr_array((weights, counts.indices, counts.indptr), shape=(documents, terms))


def _some(counts: Any) -> Iterator[tuple[int, int, npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Some documents after the other, so that numbers as wide as these are few: first, end, row and value of each."""
    first, documents = 0, counts.shape[0]
    while first < documents:
        most = int(counts.indptr[first]) + _AT_ONCE
        end = max(first + 1, int(np.searchsorted(counts.indptr, most, side="right")) - 1)
        own = np.diff(counts.indptr[first : end + 1])
        values = counts.data[counts.indptr[first] : counts.indptr[end]].astype(np.float64)
        yield first, end, np.repeat(np.arange(end - first), own), values
        first = end


def idf_of(counts: Any) -> npt.NDArray[np.float64]:
    """The idf of each term: log(1 + (n - df + ½) / (df + ½)), always above 0."""
    documents, terms = counts.shape
    return idf_of_counts(documents, np.bincount(counts.indices, minlength=terms))


def idf_of_counts(documents: int, having: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The idf of terms that so many of the documents have."""
    df = having.astype(np.float64)
    idf: npt.NDArray[np.float64] = np.log1p((documents - df + 0.5) / (df + 0.5))
    return idf


def checked_k1_b(k1: Any, b: Any) -> tuple[float, float]:
    """The two numbers of BM25, if they can be meant."""
    for name, value, most, what in (("k1", k1, np.inf, "a number from 0 on"), ("b", b, 1.0, "a number from 0 to 1")):
        real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not real or not 0 <= value <= most or not np.isfinite(value):
            raise SettingsError(f"{name} is {value!r:.80}; expected {what}. Usual are k1=1.5 and b=0.75.")
    return float(k1), float(b)
