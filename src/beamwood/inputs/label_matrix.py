"""label_matrix.py — the labels of each row as people have them in, canonical CSR of relevances (rows x labels) out.

A matrix (scipy of any format, or an array) has one column per label, and a value says how much that label matters for
that row. Lists are something else: one list of label ids per row, as omikuji and napkinXC take them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.errors import DataError
from beamwood.inputs.arguments import as_rows
from beamwood.inputs.matrices import MatrixLike, as_csr, check_dimensions, dense_array, is_sparse
from beamwood.inputs.structure import check_believable

LabelsLike = MatrixLike | Sequence[Sequence[int]]

_ADVICE = "Give a matrix of rows x labels, or a list of label ids per row, like [[3], [0, 7]]."
_MOST_LABELS = 2**31 - 1
_UNSEEN_LABELS = 1 << 22  # below the largest id of label lists, where nothing but that id speaks of them
_LABELS_PER_ID = 64


def label_matrix(Y: Any, what: str, *, labels: int = 0) -> Any:
    """Rows x labels, float32: values above 0 only, label ids rising.

    labels: how many there are at least, for lists, which do not say it; a matrix keeps the columns it has.
    """
    if not is_sparse(Y):
        Y = as_rows(Y)
        if _is_lists(Y):
            return _from_lists(Y, what, labels)
        Y = dense_array(Y, what)
    one_label = "For one label per row give [[label] for label in y]." if getattr(Y, "ndim", 2) == 1 else ""
    check_dimensions(Y, what, one_label or _ADVICE)
    csr = as_csr(Y, None, what, zeros=False)
    check_believable(csr.shape[1], csr.nnz, what, "column")
    if csr.nnz and csr.data.min() < 0:
        at = int(np.argmin(csr.data))
        row = int(np.searchsorted(csr.indptr, at, side="right")) - 1
        raise DataError(
            f"{what} has {csr.data[at]:g} in row {row}, column {csr.indices[at]}; expected 0 or more: a value says how "
            "much a label matters. Leave out labels that do not apply."
        )
    return csr


def _is_lists(Y: Any) -> bool:
    """Whether it is a list (or an array of objects) with a list or the like for each row."""
    if not isinstance(Y, (list, tuple)) and not (isinstance(Y, np.ndarray) and Y.dtype == object and Y.ndim == 1):
        return False
    return len(Y) > 0 and isinstance(Y[0], (list, tuple, set, frozenset, np.ndarray))


def _from_lists(rows: Any, what: str, labels: int) -> Any:
    for number, row in enumerate(rows):
        if not isinstance(row, (list, tuple, set, frozenset, np.ndarray)):
            raise DataError(f"{what}[{number}] is a {type(row).__name__}; expected a list of label ids. {_ADVICE}")
    ids = _ids_of(rows, what)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    count = max(labels, int(ids.max(initial=-1)) + 1)
    if count > max(labels, _UNSEEN_LABELS + _LABELS_PER_ID * len(ids)):
        raise DataError(
            f"{what} has the label {count - 1:,} among {len(ids):,} ids; expected ids from 0 on without large gaps. "
            "Number the labels again, or give a scipy sparse matrix."
        )
    made = sp.csr_array((np.ones(len(ids), np.float32), ids, starts), shape=(len(rows), count))
    _refuse_indicators(made, lengths, what)
    if not made.has_canonical_format:
        made.sort_indices()
    return made


def _ids_of(rows: Any, what: str) -> Any:
    """All ids, row after row."""
    try:
        found = list(chain.from_iterable(rows))
        ids = np.array(found) if found else np.zeros(0, np.int64)
        if bool in set(map(type, found)):  # numpy takes them for numbers
            ids = np.empty(0, object)
    except (TypeError, ValueError, OverflowError):
        ids = np.empty(0, object)
    if ids.ndim == 1 and ids.dtype.kind in "iu":
        if not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < _MOST_LABELS):
            return ids.astype(np.int64)
        bad = ids.min() if int(ids.min()) < 0 else ids.max()
        raise DataError(f"{what} has the label {bad}; expected ids from 0 to {_MOST_LABELS - 1:,}. {_ADVICE}")
    for number, row in enumerate(rows):
        for label in row:
            if isinstance(label, bool) or not isinstance(label, (int, np.integer)):
                hint = " Label keys (strings) go to train_text." if isinstance(label, str) else ""
                raise DataError(
                    f"{what}[{number}] has a {type(label).__name__} ({label!r:.40}); expected label ids, whole "
                    f"numbers. Dense values go into an array: np.array({what}).{hint}"
                )
    raise DataError(f"{what} has label ids that 64 bits cannot hold; expected ids from 0 on. {_ADVICE}")


def _refuse_indicators(made: Any, lengths: Any, what: str) -> None:
    """Lists of zeros and ones were meant as a matrix: as ids they would name a label twice, or all rows alike."""
    csr = made.copy()
    csr.sum_duplicates()
    twice = csr.nnz != made.nnz
    alike = made.shape == (len(lengths), 2) and len(lengths) > 0 and bool((lengths == 2).all())
    if twice or alike:
        found = "a row that names a label twice" if twice else "both of two labels in every row"
        raise DataError(
            f"{what} has {found}; expected one list of different label ids per row. If it is a matrix of 0 and 1, give "
            f"np.array({what})."
        )
