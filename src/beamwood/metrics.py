"""metrics.py — ranked labels and true labels in; precision, recall, nDCG and their kin out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError, SettingsError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Metrics:
    """Each measure at each k, from 0 to 1. `str()` gives a table in percent.

    precision: relevant labels among the first k, divided by k, averaged over all rows.
    recall:    relevant labels among the first k, divided by the row's relevant labels (none: 0).
    ndcg:      discounted cumulative gain of the first k (gain: the value in Y, discount 1 / log2(rank + 1)),
               divided by that of the best ranking (none: 0).
    psp:       propensity-scored precision (Jain et al. 2016): hits count 1 / propensity, and the mean is
               divided by the mean of the best ranking, as the Extreme Classification Repository does.
               Empty without train_labels.
    coverage:  the share of the labels in Y that some row has rightly among its first k.
    """

    rows: int
    at: tuple[int, ...]
    precision: dict[int, float]
    recall: dict[int, float]
    ndcg: dict[int, float]
    psp: dict[int, float]
    coverage: dict[int, float]

    def as_dict(self) -> dict[str, float]:
        """Return one flat mapping, e.g. {"precision@1": 0.5, …}: what a log or a JSON file wants."""
        return {f"{name}@{k}": value for name in _MEASURES for k, value in getattr(self, name).items()}

    def __str__(self) -> str:
        lines = [f"{'at':<10}" + "".join(f"{k:>8}" for k in self.at)]
        for name in _MEASURES:
            values = getattr(self, name)
            if values:
                lines.append(f"{name:<10}" + "".join(f"{100 * values[k]:8.2f}" for k in self.at))
        return "\n".join([*lines, f"percent, over {self.rows:,} rows"])


_MEASURES = tuple(f.name for f in fields(Metrics) if f.name not in {"rows", "at"})


def evaluate(
    P: Any,
    Y: Any,
    at: Sequence[int] = (1, 3, 5, 10),
    *,
    propensity_a: float = 0.55,
    propensity_b: float = 1.5,
    train_labels: Any = None,
) -> Metrics:
    """Compare a ranking with the truth.

    P:            rows x labels, sparse scores: each row is ranked by score falling, then label id rising,
                  NaN last; stored zeros are ranked like any score. Or a pair (labels, scores) of rows x k
                  arrays as `Model.topk` returns them, ranked the same way; label -1 is padding.
    Y:            rows x labels, sparse; a value > 0 marks a relevant label.
    train_labels: the Y of training, from which the propensities of `psp` are counted.
    """
    depths = _checked_at(at)
    truth = _checked_truth(Y, "Y")
    ranked = _ranked(P, truth.shape, depths[-1])
    gain = _gain(ranked, truth)
    hit = gain > 0
    relevant = np.diff(truth.indptr)
    psp: dict[int, float] = {}
    if train_labels is not None:
        inverse = _inverse_propensity(train_labels, truth.shape[1], propensity_a, propensity_b)
        psp = _psp(ranked, hit, truth, inverse, depths)
    discount = 1.0 / np.log2(np.arange(2, depths[-1] + 2))
    best = _best(truth.indptr, truth.data, depths[-1]) @ _triangle(discount)
    found = gain @ _triangle(discount)
    seen = max(1, len(np.unique(truth.indices)))
    return Metrics(
        rows=int(truth.shape[0]),
        at=depths,
        precision={k: _mean(hit[:, :k].sum(axis=1) / k) for k in depths},
        recall={k: _mean(hit[:, :k].sum(axis=1) / np.maximum(relevant, 1)) for k in depths},
        ndcg={k: _mean(_ratio(found[:, k - 1], best[:, k - 1])) for k in depths},
        psp=psp,
        coverage={k: len(np.unique(ranked[:, :k][hit[:, :k]])) / seen for k in depths},
    )


def _ranked(P: Any, shape: tuple[int, int], depth: int) -> Ints:
    """Return the labels of each row in rank order, rows x depth, filled up with -1."""
    row, label, score = _candidates(P, shape)
    if len(label) and (label.max() >= shape[1] or label.min() < 0):
        wrong = label.max() if label.max() >= shape[1] else label.min()
        raise DataError(f"P ranks label {wrong}, Y has the labels 0 to {shape[1] - 1}; use the same label ids")
    order = np.lexsort((label, -score, np.isnan(score), row))
    row, label = row[order], label[order]
    _refuse_duplicates(row, label, shape[1])
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = rank < depth
    ranked = np.full((shape[0], depth), -1, dtype=np.int64)
    ranked[row[kept], rank[kept]] = label[kept]
    return ranked


def _candidates(P: Any, shape: tuple[int, int]) -> tuple[Ints, Ints, Floats]:
    """Return (row, label, score) of every candidate."""
    if sp.issparse(P):
        scores: Any = P
        scores = scores.tocsr()
        if scores.shape != shape:
            raise DataError(f"P is {scores.shape} and Y is {shape}; both must be rows x labels of the same rows")
        row = np.repeat(np.arange(shape[0], dtype=np.int64), np.diff(scores.indptr))
        return row, scores.indices.astype(np.int64), scores.data.astype(np.float64)
    if not isinstance(P, tuple) or len(P) != 2:
        raise DataError(f"P is a {type(P).__name__}; give a sparse matrix of scores or a pair (labels, scores)")
    labels, values = np.asarray(P[0]), np.asarray(P[1])
    if labels.ndim != 2 or labels.shape != values.shape or len(labels) != shape[0]:
        raise DataError(
            f"P is a pair of shapes {labels.shape} and {values.shape} for the {shape[0]} rows of Y;"
            " give labels and scores as two arrays of rows x k"
        )
    if labels.dtype.kind not in "iu":
        raise DataError(f"P's labels have type {labels.dtype}; give whole numbers, -1 for padding")
    row, place = np.nonzero(labels != -1)
    return row.astype(np.int64), labels[row, place].astype(np.int64), values[row, place].astype(np.float64)


def _refuse_duplicates(row: Ints, label: Ints, labels: int) -> None:
    key = np.sort(row * labels + label)
    twice = np.flatnonzero(key[1:] == key[:-1])
    if len(twice):
        where = divmod(int(key[twice[0]]), labels)
        raise DataError(f"P ranks label {where[1]} twice in row {where[0]}; keep its best score alone")


def _gain(ranked: Ints, truth: Any) -> Floats:
    """Return the value of Y at each ranked label, 0 where it is not relevant."""
    labels = truth.shape[1]
    keys = np.repeat(np.arange(truth.shape[0], dtype=np.int64), np.diff(truth.indptr)) * labels + truth.indices
    wanted = np.arange(len(ranked), dtype=np.int64)[:, None] * labels + ranked
    place = np.searchsorted(keys, wanted)
    found = np.zeros(ranked.shape, dtype=bool)
    if len(keys):
        found = (keys[np.minimum(place, len(keys) - 1)] == wanted) & (ranked >= 0)
    gain = np.zeros(ranked.shape, dtype=np.float64)
    gain[found] = truth.data[place[found]]
    return gain


def _best(indptr: Ints, values: npt.NDArray[Any], depth: int) -> Floats:
    """Return the `depth` greatest values of each row, falling, then 0: what the best ranking gains."""
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((-values, row))
    rank = np.arange(len(row)) - np.asarray(indptr)[row]
    kept = rank < depth
    best = np.zeros((len(indptr) - 1, depth), dtype=np.float64)
    best[row[kept], rank[kept]] = values[order][kept]
    return best


def _psp(ranked: Ints, hit: Any, truth: Any, inverse: Floats, at: tuple[int, ...]) -> dict[int, float]:
    gained = np.where(hit, inverse[np.maximum(ranked, 0)], 0.0)
    best = _best(truth.indptr, inverse[truth.indices], at[-1])
    return {k: float(_ratio(gained[:, :k].sum(), best[:, :k].sum())) for k in at}


def _inverse_propensity(train_labels: Any, labels: int, a: float, b: float) -> Floats:
    """Return 1 / p_l = 1 + C·(N_l + B)^-A with C = (log N - 1)·(B + 1)^A, N training rows, N_l of label l."""
    if not (np.isfinite(a) and np.isfinite(b) and a >= 0 and b >= 0):
        raise SettingsError(f"propensity_a is {a}, propensity_b is {b}; give finite numbers that are not negative")
    trained = _checked_truth(train_labels, "train_labels")
    if trained.shape[1] != labels:
        raise DataError(f"train_labels has {trained.shape[1]} labels and Y has {labels}; give the Y of training")
    rows = max(1, trained.shape[0])
    count = np.bincount(trained.indices, minlength=labels)
    scale = (np.log(rows) - 1.0) * (b + 1.0) ** a
    inverse: Floats = 1.0 + scale * (count + b) ** -a
    return inverse


def _checked_at(at: Sequence[int]) -> tuple[int, ...]:
    if not len(at) or any(not isinstance(k, (int, np.integer)) or k < 1 for k in at):
        raise SettingsError(f"at is {at!r}; give whole numbers of at least 1, e.g. (1, 3, 5)")
    return tuple(sorted({int(k) for k in at}))


def _checked_truth(Y: Any, what: str) -> Any:
    """CSR with the positive entries of Y alone, sorted."""
    if not sp.issparse(Y):
        raise DataError(f"{what} is a {type(Y).__name__}; give a scipy sparse matrix, rows x labels")
    truth: Any = Y
    truth = truth.tocsr()
    if truth.dtype.kind not in "fiub" or not np.isfinite(truth.data).all() or (truth.data < 0).any():
        raise DataError(f"{what} must hold finite numbers that are not negative: the relevance of each label")
    truth = truth.astype(np.float64)  # a copy: bool has no minus, small unsigned numbers wrap
    if not truth.has_canonical_format or not truth.data.all():
        truth.sum_duplicates()
        truth.eliminate_zeros()
    return truth


def _triangle(weight: Floats) -> Floats:
    """Return a matrix whose column k holds the first k + 1 weights: a product gives every prefix at once."""
    return np.triu(np.repeat(weight[:, None], len(weight), axis=1))


def _ratio(part: Any, whole: Any) -> Any:
    return np.divide(part, whole, out=np.zeros_like(np.asarray(part, dtype=np.float64)), where=np.asarray(whole) > 0)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
