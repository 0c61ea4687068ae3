"""Columns of Hugging Face's datasets in, in every form that they come in; the models of plain lists, out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

hf = pytest.importorskip("datasets")

import beamwood as bw  # noqa: E402

TEXTS = ["red wool socks", "blue wool hat", "red cotton shirt", "green cotton socks"] * 10
LABELS = [["socks", "wool"], ["hats", "wool"], ["shirts"], ["socks"]] * 10
IDS = [[0, 1], [2, 1], [3], [0]] * 10


def stored(rows: Sequence[Any]) -> Any:
    return hf.Dataset.from_dict({"c": list(rows)})


FORMS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "column": lambda rows: stored(rows)["c"],
    "slice": lambda rows: stored(rows)[:]["c"],
    "numpy": lambda rows: stored(rows).with_format("numpy")["c"],
    "pandas": lambda rows: stored(rows).with_format("pandas")["c"],
    "arrow": lambda rows: stored(rows).with_format("arrow")["c"],
    "chosen rows": lambda rows: stored([*rows, *rows]).select(range(len(rows)))["c"],
    "stream": lambda rows: (row["c"] for row in stored(rows).to_iterable_dataset()),
}


@pytest.fixture(scope="module")
def model() -> bw.Model:
    return bw.train_text(TEXTS, LABELS, preset="fast", progress=False)


@pytest.mark.parametrize("form", FORMS)
def test_a_model_of_a_data_set_answers_like_one_of_lists(model: bw.Model, form: str) -> None:
    column = FORMS[form]
    mine = bw.train_text(column(TEXTS), column(LABELS), preset="fast", progress=False)
    assert mine.search_many(column(TEXTS[:4])) == model.search_many(TEXTS[:4])
    assert str(mine.evaluate(column(TEXTS), column(LABELS))) == str(model.evaluate(TEXTS, LABELS))


@pytest.mark.parametrize("form", FORMS)
def test_label_ids_and_keys_of_a_data_set_are_taken(model: bw.Model, form: str) -> None:
    column = FORMS[form]
    X = model.text.transform(TEXTS)
    plain, mine = (bw.train(X, ids, preset="fast", progress=False) for ids in (IDS, column(IDS)))
    assert (mine.topk(X, k=2)[1] == plain.topk(X, k=2)[1]).all()
    assert model.filter(deny=column(["hats"])).allowed == 3
    assert bw.index_text(column(TEXTS[:2]), keys=column(["a", "b"])).keys == ["a", "b"]
