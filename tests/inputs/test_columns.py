"""Columns of data frames, Arrow and generators in; what measures and changes a model takes them as lists, out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import beamwood as bw

TEXTS = ["red wool socks", "blue wool hat", "red cotton shirt", "green cotton socks"] * 10
LABELS = [["socks", "wool"], ["hats", "wool"], ["shirts"], ["socks"]] * 10


def objects(rows: Sequence[Any]) -> Any:
    """An array of objects, as data frames that were read from Parquet have in their cells."""
    found = np.empty(len(rows), object)
    found[:] = [np.array(row, object) if isinstance(row, list) else row for row in rows]
    return found


COLUMNS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "tuple": tuple,
    "pandas": lambda rows: pd.Series(list(rows)),
    "pandas of arrays": lambda rows: pd.Series(list(objects(rows))),
    "polars": lambda rows: pl.Series(list(rows)),
    "arrow": lambda rows: pa.array(list(rows)),
    "numpy": objects,
    "generator": lambda rows: (row for row in rows),
    "values of a mapping": lambda rows: dict(enumerate(rows)).values(),
}


@pytest.fixture(scope="module")
def model() -> bw.Model:
    return bw.train_text(TEXTS, LABELS, preset="fast", progress=False)


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_model_is_measured_on_columns_as_on_lists(model: bw.Model, kind: str) -> None:
    column = COLUMNS[kind]
    assert str(model.evaluate(column(TEXTS), column(LABELS))) == str(model.evaluate(TEXTS, LABELS))


@pytest.mark.parametrize("kind", COLUMNS)
def test_labels_are_added_from_columns_as_from_lists(model: bw.Model, kind: str) -> None:
    column, texts, labels = COLUMNS[kind], ["green wool", "blue cotton"], [["scarfs"], ["scarfs"]]
    mine, plain = model.add_labels(column(texts), column(labels)), model.add_labels(texts, labels)
    assert mine.keys == plain.keys
    assert mine.search("green wool", k=3) == plain.search("green wool", k=3)


@pytest.mark.parametrize("kind", COLUMNS)
def test_folds_take_columns_as_lists(kind: str) -> None:
    column = COLUMNS[kind]
    mine = bw.cross_validate(column(TEXTS), column(LABELS), folds=2, preset="fast", progress=False)
    assert str(mine) == str(bw.cross_validate(TEXTS, LABELS, folds=2, preset="fast", progress=False))


@pytest.mark.parametrize("kind", COLUMNS)
def test_label_ids_and_weights_of_rows_come_from_columns(model: bw.Model, kind: str) -> None:
    column, ids, weights = COLUMNS[kind], [[0, 1], [2, 1], [3], [0]] * 10, [1.0, 2.0, 1.0, 0.5] * 10
    assert model.text is not None
    X = model.text.transform(TEXTS)
    plain = bw.train(X, ids, row_weights=weights, preset="fast", progress=False)
    mine = bw.train(X, column(ids), row_weights=column(weights), preset="fast", progress=False)
    assert (mine.topk(X, k=2)[1] == plain.topk(X, k=2)[1]).all()
    assert str(bw.evaluate(model.predict(X), column(ids))) == str(bw.evaluate(model.predict(X), ids))


@pytest.mark.parametrize("kind", COLUMNS)
def test_keys_and_names_come_from_columns(model: bw.Model, kind: str) -> None:
    column, keys, names = COLUMNS[kind], list("abcd"), list("ABCD")
    mine = bw.index_text(TEXTS[:4], keys=column(keys), names=column(names))
    assert (mine.keys, mine.names) == (keys, names)
    assert model.with_names(column(names)).names == names
    added = model.add_labels(["green wool"], [["scarfs"]], keys=column(["scarfs"]), names=column(["Scarfs"]))
    assert (added.keys[-1], added.names[-1]) == ("scarfs", "Scarfs")
    assert bw.LabelTable(column(keys), column(names)).names == tuple(names)


@pytest.mark.parametrize("kind", COLUMNS)
def test_labels_are_chosen_by_columns_of_keys(model: bw.Model, kind: str) -> None:
    column, keys = COLUMNS[kind], ["hats", "socks"]
    assert model.filter(allow=column(keys)).allowed == 2
    assert len(model.remove_labels(column(keys))) == len(model) - 2
    assert model.text is not None
    X = model.text.transform(TEXTS[:2])
    assert (model.score(X, column(keys)) == model.score(X, keys)).all()


def test_arrays_of_strings_hold_texts_and_labels(model: bw.Model) -> None:
    plain = str(model.evaluate(TEXTS[2:4], LABELS[2:4]))
    for kind in ("U", "O"):
        assert str(model.evaluate(np.array(TEXTS[2:4], kind), np.array(LABELS[2:4], kind))) == plain


@pytest.mark.parametrize("unordered", [set, frozenset, dict.fromkeys])
def test_what_has_no_order_is_no_column(unordered: Callable[[Sequence[str]], Any]) -> None:
    with pytest.raises(bw.DataError, match="texts is a"):
        bw.train_text(unordered(TEXTS), LABELS, progress=False)
    with pytest.raises(bw.DataError, match="keys is a"):
        bw.index_text(TEXTS[:4], keys=unordered(["a", "b", "c", "d"]))


@pytest.mark.parametrize("scalar", [np.array("wool"), np.array(5), np.array(None, object)])
def test_an_array_without_dimensions_is_no_column(model: bw.Model, scalar: Any) -> None:
    calls: list[Callable[[Any], Any]] = [
        model.search_many,
        lambda v: bw.train_text(v, LABELS, progress=False),
        lambda v: bw.train_text(TEXTS, v, progress=False),
        lambda v: bw.index_text(TEXTS[:4], keys=v),
        model.with_names,
        lambda v: model.score(np.eye(1, model.n_features), v),
        model.remove_labels,
    ]
    for call in calls:
        with pytest.raises(bw.DataError, match=r"is a ndarray; expected"):
            call(scalar)


def test_scores_are_not_asked_for_in_no_order(model: bw.Model) -> None:
    with pytest.raises(bw.DataError, match="labels is a set; expected a list"):
        model.score(np.eye(1, model.n_features), {"hats", "socks"})


def test_a_probability_is_learnt_from_columns_as_from_lists(model: bw.Model) -> None:
    texts, labels = TEXTS * 3, LABELS * 3
    mine = model.calibrate(pd.Series(texts), pd.Series(labels))
    assert mine.search("wool hat")[0].probability == model.calibrate(texts, labels).search("wool hat")[0].probability


def test_a_column_of_numbers_is_no_text(model: bw.Model) -> None:
    with pytest.raises(bw.DataError):
        model.evaluate(pd.Series([1.0, 2.0]), LABELS[:2])


def test_texts_have_weights_by_name_and_from_columns() -> None:
    assert "row_weights" in inspect.signature(bw.train_text).parameters
    how: dict[str, Any] = {"preset": "fast", "progress": False}
    weights = [1.0, 0.1, 1.0, 1.0] * 10
    mine = bw.train_text(TEXTS, LABELS, row_weights=pd.Series(weights), **how)
    assert mine.search("blue wool hat") == bw.train_text(TEXTS, LABELS, row_weights=weights, **how).search(
        "blue wool hat"
    )
    assert mine.search("blue wool hat") != bw.train_text(TEXTS, LABELS, **how).search("blue wool hat")
