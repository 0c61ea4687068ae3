"""given.py — rows or texts of new labels, with keys, names and texts of their own, in; one checked value out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError
from beamwood.inputs.arguments import as_rows, as_strings, as_texts, is_texts
from beamwood.inputs.label_matrix import label_matrix
from beamwood.inputs.label_table import as_label_keys
from beamwood.inputs.matrices import Columns, as_csr, empty_rows
from beamwood.inputs.text import FittedText
from beamwood.lexical.label_texts import LabelTexts
from beamwood.life.truth import has_keys
from beamwood.storage.label_strings import LabelStrings
from beamwood.training.problem import Problem

_MOST_NAMED = 3  # labels that a message names


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the labels and features of a model."""

    columns: int | Columns
    features: int
    labels: int
    strings: LabelStrings
    has_keys: bool
    text: FittedText | None
    unit_rows: bool


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with labels of a model and with new ones; rows are as its trees see them.

    X: rows x features; known: rows x labels of the model; Y: rows x new labels. All CSR, float32.
    keys, names: of the new labels; keys is None where the model has none, names where none were given.
    texts: new labels x features, of texts of their own; None where there are none.
    """

    X: Any
    known: Any
    Y: Any
    keys: tuple[str, ...] | None
    names: tuple[str, ...] | None
    texts: Any

    @property
    def new(self) -> int:
        return int(self.Y.shape[1])

    @property
    def rows_of_new(self) -> npt.NDArray[np.int64]:
        """How many rows each new label has."""
        return np.bincount(self.Y.indices, minlength=self.new)


def labelled(
    model: Known, X: Any, Y: Any, keys: Any, names: Any, texts: Any, threads: int | None, *, whole: bool = False
) -> Labelled:
    """Checks all that people can get wrong; see Model.add_labels for what may be given.

    whole: Y has columns of the model's labels, if it is a matrix, and may have more for new ones.
    """
    described = LabelTexts.checked(texts)
    if described.keys and model.text is None:
        raise DataError("texts is given to a model that knows no words; expected None. Give rows of the new labels.")
    new = _checked_keys(model, keys)
    if (X is None) != (Y is None):
        raise DataError(f"{'X' if X is None else 'Y'} is missing; expected both, or only texts of the new labels.")
    if Y is None and not described.keys:
        raise DataError("There are neither rows nor texts; expected some to learn from. Give X and Y, or texts.")
    if X is None:
        rows, new = empty_rows(0, model.features), _together(model, new, [], described)
        both = empty_rows(0, model.labels + len(new))
    else:
        X, Y = as_rows(X), as_rows(Y)
        rows = _rows(model, X, threads)
        if has_keys(Y):
            lists = as_label_keys(Y)
            new = _together(model, new, lists, described)
            both = _of_keys(model, new, lists)
        else:
            new = _together(model, new, [], described) if model.has_keys else None
            both = _of_matrix(model, new, Y, whole)
        if both.shape[0] != rows.shape[0]:
            raise DataError(f"Y has {both.shape[0]:,} rows and X {rows.shape[0]:,}; expected as many of each.")
    problem = Problem(rows, both)
    rows = problem.with_unit_rows().X if model.unit_rows and rows.nnz else rows
    return Labelled(
        rows,
        sp.csr_matrix(both[:, : model.labels]),
        sp.csr_matrix(both[:, model.labels :]),
        new,
        _checked_names(names, new),
        _rows_of_texts(model, new, described, threads),
    )


def _checked_keys(model: Known, keys: Any) -> tuple[str, ...] | None:
    if keys is None:
        return None
    if not model.has_keys:
        raise DataError(
            "keys is given, and this model calls labels by their numbers; expected None. Give the model keys first: "
            "model.with_names(keys=…)."
        )
    keys = as_strings(keys, "keys")
    for key in keys:
        if not isinstance(key, str) or not key:
            raise DataError(f"keys has {key!r:.40}; expected strings that are not empty.")
    plain = tuple(map(str, keys))
    if len(set(plain)) < len(plain):
        twice = next(key for at, key in enumerate(plain) if key in plain[:at])
        raise DataError(f"keys has {twice!r:.60} twice; expected each key once.")
    there = [key for key, label in zip(plain, model.strings.find_many(list(plain)), strict=True) if label >= 0]
    if there:
        raise DataError(
            f"keys has {_some(there)}, which the model has already; expected new ones. For more rows of labels that "
            "it has use retrain."
        )
    return plain


def _together(
    model: Known, keys: tuple[str, ...] | None, lists: list[list[str]], described: LabelTexts
) -> tuple[str, ...]:
    """The keys of all new labels: those given, or those in rows and texts that the model does not have, sorted."""
    if described.keys:
        here = model.strings.find_many(list(described.keys))
        there = [key for key, label in zip(described.keys, here, strict=True) if label >= 0]
        if there:
            raise DataError(f"texts has {_some(there)}, which the model has already; expected only new labels.")
    seen = sorted({key for row in lists for key in row} | set(described.keys))
    unknown = [k for k, label in zip(seen, model.strings.find_many(seen) if seen else [], strict=True) if label < 0]
    if keys is None:
        if "" in unknown:
            raise DataError("a row has the label ''; expected keys that are not empty.")
        return tuple(unknown)
    foreign = sorted(set(unknown) - set(keys))
    if foreign:
        raise DataError(
            f"{_some(foreign)} is neither a label of the model nor in keys; expected one or the other. Add it to keys, "
            "or leave keys out: then all labels that the model does not have are new."
        )
    return keys


def _of_keys(model: Known, new: tuple[str, ...], lists: list[list[str]]) -> Any:
    number = {key: model.labels + i for i, key in enumerate(new)}
    seen = sorted({key for row in lists for key in row} - number.keys())
    number |= dict(zip(seen, (model.strings.find_many(seen) if seen else np.zeros(0, np.int64)).tolist(), strict=True))
    ids = [sorted({number[key] for key in row}) for row in lists]
    start = np.cumsum([0, *map(len, ids)])
    flat = np.array([i for row in ids for i in row], np.int32)
    shape = (len(ids), model.labels + len(new))
    return sp.csr_matrix((np.ones(len(flat), np.float32), flat, start), shape=shape)


def _of_matrix(model: Known, new: tuple[str, ...] | None, Y: Any, whole: bool) -> Any:
    """Y has a column per new label, or one per label of the model and behind them those of the new ones."""
    least = model.labels if whole else 0
    matrix = sp.csr_matrix(label_matrix(Y, "Y", labels=least + (0 if new is None else len(new))))
    width = int(matrix.shape[1])
    if width < least:
        raise DataError(
            f"Y has {width:,} columns; expected {least:,} at least, one per label of the model. Columns of new labels "
            "come behind them."
        )
    count = len(new) if new is not None else width - model.labels if whole or width > model.labels else width
    if new is not None and not new and width != model.labels:
        raise DataError("keys is missing; expected a unique string for each new label, which the model's labels have.")
    if width == count and not whole:
        before = empty_rows(matrix.shape[0], model.labels)
        return sp.csr_matrix(sp.hstack([before, matrix], format="csr"), dtype=np.float32)
    if width != model.labels + count:
        raise DataError(
            f"Y has {width:,} columns and there are {count:,} new labels; expected {count:,} columns, or "
            f"{model.labels + count:,}: those of the model's labels first."
        )
    return matrix


def _rows(model: Known, X: Any, threads: int | None) -> Any:
    if not is_texts(X):
        return sp.csr_matrix(as_csr(X, model.columns, "X", zeros=False))
    if model.text is None:
        raise DataError("X is a list of texts, and this model was trained from numbers; expected a matrix of rows.")
    rows = model.text.transform(as_texts(X), threads=threads, learning=True)
    return sp.csr_matrix(as_csr(rows, model.features, "X", zeros=False))


def _rows_of_texts(model: Known, new: tuple[str, ...] | None, described: LabelTexts, threads: int | None) -> Any:
    if not described.keys or model.text is None or new is None:
        return None
    if foreign := sorted(set(described.keys) - set(new)):
        raise DataError(f"texts has {_some(foreign)}, which is not in keys; expected only new labels.")
    text = dict(zip(described.keys, described.texts, strict=True))
    told = model.text.transform([text.get(key, "") for key in new], threads=threads, learning=True)
    rows = sp.csr_matrix(as_csr(told, model.features, "texts", zeros=False))
    return Problem(rows, rows).with_unit_rows().X if model.unit_rows and rows.nnz else rows


def _checked_names(names: Any, new: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    count = 0 if new is None else len(new)
    if isinstance(names, Mapping):
        if foreign := [key for key in names if key not in set(new or ())]:
            raise DataError(f"names has {_some(foreign)}, which is no new label; expected keys of new ones.")
        names = [names.get(key, key) for key in new or ()]
    names = as_strings(names, "names", f"{count:,} ")
    if len(names) != count:
        raise DataError(
            f"There are {len(names):,} names; expected {count:,} strings, one per new label in the order of keys, or a "
            "mapping from keys to names."
        )
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"names has {name!r:.40}; expected strings.")
    return tuple(map(str, names))


def _some(keys: Sequence[Any]) -> str:
    shown = ", ".join(f"{key!r:.60}" for key in keys[:_MOST_NAMED])
    return shown if len(keys) <= _MOST_NAMED else f"{shown} and {len(keys) - _MOST_NAMED:,} more"
