"""metrics.py — ranked labels and true labels in; precision, recall, nDCG and their kin out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import positive
from beamwood.inputs.label_matrix import LabelsLike, label_matrix
from beamwood.inputs.matrices import SparseMatrix, check_dimensions, dense_array, is_sparse
from beamwood.inputs.structure import valid_csr
from beamwood.show.answers import metrics_html

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Recall at each k of some labels: of all their true places, those among the first k."""

    labels: int
    recall: dict[int, float]


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
    errors:    the standard errors of precision, recall and ndcg: the rows are a sample.
    by_rows:   recall of labels that are frequent, of middling frequency and rare in training (head, middle, tail), each
               a third of all that rows and labels have in common there; and how many labels each group has. Empty
               without rows_of_label.
    depth:     the most labels that P ranks for a row. At a greater k the labels that P does not rank count as missed;
               the table marks these columns.
    """

    rows: int
    depth: int
    at: tuple[int, ...]
    precision: dict[int, float]
    recall: dict[int, float]
    ndcg: dict[int, float]
    psp: dict[int, float]
    coverage: dict[int, float]
    errors: dict[str, dict[int, float]] = field(default_factory=dict)
    by_rows: dict[str, Group] = field(default_factory=dict)

    def as_dict(self) -> dict[str, float]:
        """Return one flat mapping, e.g. {"precision@1": 0.5, …}: for a log or a JSON file."""
        return {f"{name}@{k}": value for name in _MEASURES for k, value in getattr(self, name).items()}

    def __str__(self) -> str:
        beyond = [k for k in self.at if k > self.depth]
        lines = [f"{'at':<10}" + "".join(f"{f'{k}*' if k in beyond else k:>8}" for k in self.at)]
        for name in _MEASURES:
            values = getattr(self, name)
            if values:
                lines.append(f"{name:<10}" + "".join(f"{100 * values[k]:8.2f}" for k in self.at))
        for name, group in self.by_rows.items():
            lines.append(f"{f'  {name}':<10}" + "".join(f"{100 * group.recall[k]:8.2f}" for k in self.at))
        if self.by_rows:
            groups = ", ".join(f"{name} {group.labels:,}" for name, group in self.by_rows.items())
            lines.append(f"recall of labels by their rows in training: {groups} labels")
        first = self.at[0]
        off = {name: f"{name} {100 * found[first]:.2f}" for name, found in self.errors.items()}
        lines.append(f"percent, over {self.rows:,} rows; standard errors at {first}: {', '.join(off.values())}")
        if beyond:
            lines.append(
                f"* not measured: rows have {self.depth} ranked labels at most, and what follows counts as missed"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return metrics_html(self)


_MEASURES = tuple(f.name for f in fields(Metrics) if f.name not in {"rows", "depth", "at", "errors", "by_rows"})
_GROUPS = ("head", "middle", "tail")


def evaluate(
    P: SparseMatrix | tuple[npt.ArrayLike, npt.ArrayLike],
    Y: LabelsLike,
    at: Sequence[int] = (1, 3, 5, 10),
    *,
    propensity_a: float = 0.55,
    propensity_b: float = 1.5,
    train_labels: LabelsLike | None = None,
    rows_of_label: npt.ArrayLike | None = None,
) -> Metrics:
    """Compare a ranking with the truth.

    P:            rows x labels, sparse scores: each row is ranked by score falling, then label id rising,
                  NaN last; stored zeros are ranked like any score. Or a pair (labels, scores) of rows x k
                  arrays as `Model.topk` returns them, ranked the same way; label -1 is padding.
    Y:            rows x labels; a value > 0 marks a relevant label. Or a list of label ids per row.
    train_labels: the Y of training, from which the propensities of `psp` are counted.
    rows_of_label: how many training rows had each label (as `Model.rows_of_label`): recall of frequent and rare labels
                  is then told apart. Labels beyond its end count as rare.

    >>> found = evaluate(([[2, 0], [1, 0]], [[0.9, 0.1], [0.8, 0.3]]), [[2], [0]], at=(1, 2))
    >>> found.precision[1], found.recall[2]
    (0.5, 1.0)
    """
    depths = checked_ranks(at)
    labels, candidates = _candidates(P)
    truth = label_matrix(Y, "Y", labels=labels)
    _check_candidates(P, candidates, truth.shape)
    relevant = np.diff(truth.indptr)
    kept = max(1, min(depths[-1], max(candidates.width, int(relevant.max(initial=0)))))  # nothing lies behind
    ranked = _ranked(candidates, truth.shape, kept)
    gain = _gain(ranked, truth)
    hit = gain > 0
    psp: dict[int, float] = {}
    if train_labels is not None:
        inverse = _inverse_propensity(train_labels, truth.shape[1], propensity_a, propensity_b)
        psp = _psp(ranked, hit, truth, inverse, depths)
    discount = 1.0 / np.log2(np.arange(2, kept + 2))
    best = np.cumsum(_best(truth.indptr, truth.data.astype(np.float64), kept) * discount, axis=1)
    found = np.cumsum(gain * discount, axis=1)
    seen = max(1, len(np.unique(truth.indices)))
    everything = candidates.width >= truth.shape[1] or not candidates.rows
    rowwise = {
        "precision": {k: hit[:, :k].sum(axis=1) / k for k in depths},
        "recall": {k: hit[:, :k].sum(axis=1) / np.maximum(relevant, 1) for k in depths},
        "ndcg": {k: _ratio(found[:, min(k, kept) - 1], best[:, min(k, kept) - 1]) for k in depths},
    }
    means = {name: {k: _mean(values) for k, values in at_k.items()} for name, at_k in rowwise.items()}
    return Metrics(
        rows=int(truth.shape[0]),
        depth=depths[-1] if everything else min(candidates.width, depths[-1]),
        at=depths,
        precision=means["precision"],
        recall=means["recall"],
        ndcg=means["ndcg"],
        psp=psp,
        coverage={k: len(np.unique(ranked[:, :k][hit[:, :k]])) / seen for k in depths},
        errors={name: {k: _error(values) for k, values in at_k.items()} for name, at_k in rowwise.items()},
        by_rows={} if rows_of_label is None else _by_rows(rows_of_label, ranked, hit, truth, depths),
    )


def _by_rows(counts: Any, ranked: Ints, hit: Any, truth: Any, at: tuple[int, ...]) -> dict[str, Group]:
    """Recall of frequent, middling and rare labels."""
    rows = np.zeros(truth.shape[1], np.int64)
    given = dense_array(counts, "rows_of_label")
    if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) > len(rows) or given.min(initial=0) < 0:
        raise DataError(
            f"rows_of_label has shape {given.shape} and dtype {given.dtype}; expected at most {len(rows):,} whole "
            "numbers from 0 on, one per label. Give model.rows_of_label."
        )
    rows[: len(given)] = given
    order = np.argsort(-rows, kind="stable")
    before = np.cumsum(rows[order]) - rows[order]  # rows of all labels that are more frequent
    group = np.empty(len(rows), np.int64)
    group[order] = np.minimum(2, 3 * before // max(1, int(rows.sum())))
    group[rows == 0] = 2
    true = np.bincount(group[truth.indices], minlength=3)
    found = {k: np.bincount(group[ranked[:, :k][hit[:, :k]]], minlength=3) for k in at}
    sizes = np.bincount(group, minlength=3)
    return {
        name: Group(int(sizes[i]), {k: float(found[k][i] / max(1, true[i])) for k in at})
        for i, name in enumerate(_GROUPS)
    }


class _Candidates(NamedTuple):
    """Row, label and score of everything that is ranked; rows: how many there are; width: the most in a row."""

    row: Ints
    label: Ints
    score: Floats
    rows: int
    width: int


def _ranked(candidates: _Candidates, shape: tuple[int, int], depth: int) -> Ints:
    """Return the labels of each row in rank order, rows x depth, filled up with -1."""
    row, label, score = candidates[:3]
    order = np.lexsort((label, -score, np.isnan(score), row))
    row, label = row[order], label[order]
    _refuse_duplicates(row, label, shape[1])
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = rank < depth
    ranked = np.full((shape[0], depth), -1, dtype=np.int64)
    ranked[row[kept], rank[kept]] = label[kept]
    return ranked


def _candidates(P: Any) -> tuple[int, _Candidates]:
    """How many labels there are at least, and every candidate."""
    if is_sparse(P):
        check_dimensions(P, "P", "Give scores as rows x labels.")
        scores = valid_csr(P, "P", np.dtype(np.float64))
        lengths = np.diff(scores.indptr)
        row = np.repeat(np.arange(scores.shape[0], dtype=np.int64), lengths)
        cells = (row, scores.indices.astype(np.int64), scores.data)
        return scores.shape[1], _Candidates(*cells, scores.shape[0], int(lengths.max(initial=0)))
    if not isinstance(P, (tuple, list)) or len(P) != 2:
        raise DataError(
            f"P is of type {type(P).__name__}; expected a scipy sparse matrix of scores or a pair (labels, scores). "
            "Give what model.predict or model.topk returned, or measure texts by model.evaluate(texts, labels)."
        )
    labels, values = (dense_array(part, f"P[{number}]") for number, part in enumerate(P))
    if labels.ndim != 2 or labels.shape != values.shape:
        raise DataError(
            f"P is a pair of arrays of shapes {labels.shape} and {values.shape}; expected two of rows x k. "
            "Give labels and scores as model.topk returned them."
        )
    if labels.dtype.kind not in "iu":
        raise DataError(f"P has labels of dtype {labels.dtype}; expected whole numbers, -1 for padding.")
    if labels.size and (int(labels.min()) < -1 or int(labels.max()) >= 2**31 - 1):
        bad = labels.min() if int(labels.min()) < -1 else labels.max()
        raise DataError(f"P has the label {bad}; expected label ids from 0 on, -1 for padding.")
    row, place = np.nonzero(labels != -1)
    cells = (row.astype(np.int64), labels[row, place].astype(np.int64), values[row, place].astype(np.float64))
    return int(labels.max(initial=-1)) + 1, _Candidates(*cells, *labels.shape)


def _check_candidates(P: Any, candidates: _Candidates, shape: tuple[int, int]) -> None:
    """Whether P and Y are about the same rows and labels."""
    if candidates.rows != shape[0] or (is_sparse(P) and P.shape != shape):
        found = P.shape if is_sparse(P) else f"{candidates.rows:,} rows"
        raise DataError(f"P has {found} and Y is {shape[0]:,} x {shape[1]:,}; expected the same rows and labels.")
    label = candidates.label
    if len(label) and label.max() >= shape[1]:
        raise DataError(
            f"P has the label {label.max()}; expected 0 to {shape[1] - 1}, the labels of Y. Use the same label ids."
        )


def _refuse_duplicates(row: Ints, label: Ints, labels: int) -> None:
    key = np.sort(row * labels + label)
    twice = np.flatnonzero(key[1:] == key[:-1])
    if len(twice):
        where = divmod(int(key[twice[0]]), labels)
        raise DataError(f"P has label {where[1]} twice in row {where[0]}; expected it once. Keep its best score only.")


def _gain(ranked: Ints, truth: Any) -> Floats:
    """Return the value of Y at each ranked label, 0 where it is not relevant."""
    labels = truth.shape[1]
    keys = np.repeat(np.arange(truth.shape[0], dtype=np.int64), np.diff(truth.indptr)) * labels + truth.indices
    expected = np.arange(len(ranked), dtype=np.int64)[:, None] * labels + ranked
    place = np.searchsorted(keys, expected)
    found = np.zeros(ranked.shape, dtype=bool)
    if len(keys):
        found = (keys[np.minimum(place, len(keys) - 1)] == expected) & (ranked >= 0)
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
    best = _best(truth.indptr, inverse[truth.indices], ranked.shape[1])
    return {k: float(_ratio(gained[:, :k].sum(), best[:, :k].sum())) for k in at}


def _inverse_propensity(train_labels: Any, labels: int, a: float, b: float) -> Floats:
    """Return 1 / p_l = 1 + C·(N_l + B)^-A with C = (log N - 1)·(B + 1)^A, N training rows, N_l of label l."""
    for name, value in (("propensity_a", a), ("propensity_b", b)):
        if not isinstance(value, (int, float, np.integer, np.floating)) or not 0 <= value < np.inf:
            raise SettingsError(f"{name} is {value!r:.40}; expected a finite number that is not negative.")
    trained = label_matrix(train_labels, "train_labels", labels=labels)
    if trained.shape[1] != labels:
        raise DataError(
            f"train_labels has {trained.shape[1]:,} labels; expected {labels:,} as in Y. Give the Y of training."
        )
    rows = max(1, trained.shape[0])
    count = np.bincount(trained.indices, minlength=labels)
    scale = (np.log(rows) - 1.0) * (b + 1.0) ** a
    inverse: Floats = 1.0 + scale * (count + b) ** -a
    return inverse


def checked_ranks(at: Sequence[int]) -> tuple[int, ...]:
    """Ranks to measure at, rising, each once."""
    found = list(at) if isinstance(at, (list, tuple, set, frozenset, range, np.ndarray)) and len(at) < 2**16 else []
    return tuple(sorted({positive(k, "at") for k in found} or {positive(at, "at")}))


def _ratio(part: Any, whole: Any) -> Any:
    return np.divide(part, whole, out=np.zeros_like(np.asarray(part, dtype=np.float64)), where=np.asarray(whole) > 0)


def _error(values: Floats) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
