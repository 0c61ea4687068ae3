"""Columns of data frames, Arrow and generators in; what measures and changes a model takes them as lists, out."""

from __future__ import annotations

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


def test_a_probability_is_learnt_from_columns_as_from_lists(model: bw.Model) -> None:
    texts, labels = TEXTS * 3, LABELS * 3
    mine = model.calibrate(pd.Series(texts), pd.Series(labels))
    assert mine.search("wool hat")[0].probability == model.calibrate(texts, labels).search("wool hat")[0].probability


def test_a_column_of_numbers_is_no_text(model: bw.Model) -> None:
    with pytest.raises(bw.DataError):
        model.evaluate(pd.Series([1.0, 2.0]), LABELS[:2])
