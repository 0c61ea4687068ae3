"""truth.py — rows or texts with their true labels, as people have them, in; canonical X and Y of a model out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError
from beamwood.inputs.arguments import as_rows, as_texts, is_texts
from beamwood.inputs.label_matrix import LabelsLike, label_matrix
from beamwood.inputs.label_table import as_label_keys
from beamwood.inputs.matrices import Columns, RowsLike, as_csr
from beamwood.inputs.text import FittedText

Queries = RowsLike | Sequence[str]  # rows, or texts
Truth = LabelsLike | Sequence[Sequence[str]]  # a matrix, ids per row, or keys per row


class Known(Protocol):
    """What a model knows of its features and labels."""

    @property
    def n_features(self) -> int: ...
    @property
    def columns(self) -> int | Columns: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def has_keys(self) -> bool: ...
    @property
    def text(self) -> FittedText | None: ...
    def label_of(self, key: str) -> int | None: ...


def rows_and_truth(model: Known, X: Any, Y: Any, least: int = 1) -> tuple[Any, Any]:
    """X (rows x features) and Y (rows x labels) as CSR, one row for each; labels that the model lacks are left out.

    X: a matrix of rows, or texts for a model that knows words. Y: a matrix, lists of label ids, or, for texts or rows,
    lists of label keys. least: so many rows there must be.
    """
    rows, truth = rows_and_all_truth(model, X, Y)
    if rows.shape[0] < least:
        raise DataError(f"X has {rows.shape[0]:,} rows; expected at least {least:,}. Give more rows.")
    return rows, truth[:, : model.n_labels]


def rows_and_all_truth(model: Known, X: Any, Y: Any) -> tuple[Any, Any]:
    """The same, but labels that the model lacks have columns of their own behind those of the model, to be missed."""
    Y = as_rows(Y)
    rows = _rows(model, as_rows(X))
    truth = _truth_of_keys(model, as_label_keys(Y)) if has_keys(Y) else _truth(model, Y)
    if truth.shape[0] != rows.shape[0]:
        raise DataError(f"Y has {truth.shape[0]:,} rows and X {rows.shape[0]:,}; expected as many of each.")
    return rows, truth


def _truth_of_keys(model: Known, keys: list[list[str]]) -> Any:
    truth, unknown = truth_of_keys(model, keys)
    if unknown and not model.has_keys:
        raise DataError(
            "Y has label keys, and this model calls labels by their numbers; expected label ids or a matrix. Give the "
            "model keys first: model.with_names(keys=…)."
        )
    return truth


def truth_of_keys(model: Known, keys: Iterable[Iterable[str]]) -> tuple[Any, int]:
    """Rows x labels of label keys, and how many labels the model lacks: they have columns behind those of the model."""
    new: dict[str, int] = {}
    starts, ids = [0], []
    for row in keys:
        found = {key: model.label_of(key) for key in row}
        ids += sorted(new.setdefault(k, model.n_labels + len(new)) if i is None else i for k, i in found.items())
        starts.append(len(ids))
    shape = (len(starts) - 1, model.n_labels + len(new))
    return sp.csr_array((np.ones(len(ids), np.float32), np.array(ids, np.int64), starts), shape=shape), len(new)


def _rows(model: Known, X: Any) -> Any:
    if not is_texts(X):
        return as_csr(X, model.columns, "X")
    if model.text is None:
        raise DataError("X is a list of texts, and this model was trained from numbers; expected a matrix of rows.")
    return as_csr(model.text.transform(as_texts(X)), model.n_features, "X")


def _truth(model: Known, Y: Any) -> Any:
    truth = label_matrix(Y, "Y", labels=model.n_labels)
    if truth.shape[1] != model.n_labels:
        raise DataError(f"Y has {truth.shape[1]:,} columns; expected {model.n_labels:,}, one per label of the model.")
    return truth


def has_keys(Y: Any) -> bool:
    """Whether it is a list of label keys per row."""
    if not isinstance(Y, (list, tuple)):
        return False
    lists = (list, tuple, set, np.ndarray)
    first = next((row for row in Y if isinstance(row, str) or (isinstance(row, lists) and len(row))), None)
    return isinstance(first, str) or (first is not None and isinstance(next(iter(first)), str))


def relevant(labels: npt.NDArray[np.int64], truth: Any) -> npt.NDArray[np.bool_]:
    """For each label of an answer (rows x k, -1: none) whether it is a true one."""
    width = truth.shape[1] + 1  # -1 becomes a column of its own that nothing is in
    true = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr)) * width + truth.indices
    asked = np.arange(len(labels))[:, None] * width + np.where(labels < 0, width - 1, labels)
    return np.isin(asked, true)
