"""baselines.py — rows of a training, and answers of its like, in; what later queries should be like out, for monitors.

A model knows every word of its own rows, so these say little about words that it lacks. What a row would lack if it
were new is known all the same: the features that no other row has (Good and Turing's estimate). Where words of fewer
than m rows were left out beforehand (min_df), a feature of exactly m rows would be left out without this row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from beamwood.life.fit import Judged

_SHOWN = 10  # labels of an answer that are counted against the cut: what queries ask for


def baselines_of(X: Any, Y: Any) -> dict[str, float]:
    """What new rows like these can be expected to be: shares of unknown terms and of rows without a known one, known
    terms and true labels per row."""
    rows = max(1, X.shape[0])
    rows_of_feature = np.bincount(X.indices, minlength=X.shape[1])
    least = rows_of_feature[rows_of_feature > 0].min(initial=max(1, X.shape[0]))
    shared = rows_of_feature[X.indices] > least  # enough other rows have it, too
    known = np.add.reduceat(np.append(shared, False), np.minimum(X.indptr[:-1], X.nnz)) * (np.diff(X.indptr) > 0)
    return {
        "rows": float(X.shape[0]),
        "unknown_terms": _round(1.0 - shared.sum() / max(1, X.nnz)),
        "empty_queries": _round((known == 0).sum() / rows),
        "known_terms": _round(known.sum() / rows),
        "labels_per_row": _round(Y.nnz / rows),
    }


def baselines_of_answers(found: Judged, probabilities: Any, least: float) -> dict[str, float]:
    """The mean probability of first labels of rows that were held out, and labels above the cut per row."""
    there = found.labels[:, 0] >= 0
    above = (probabilities[:, :_SHOWN] >= np.float32(least)) & (found.labels[:, :_SHOWN] >= 0)
    return {
        "top_probability": _round(probabilities[there, 0].mean() if there.any() else 0.0),
        "labels_above_cut": _round(above.sum(axis=1).mean()),
    }


def _round(value: Any) -> float:
    """Few digits, and the same on every machine."""
    return float(f"{float(value):.5g}")
