"""Labels as Arrow columns: what they are called is what the model says, row by row, and padding is left out."""

from __future__ import annotations

import numpy as np
import pytest

import beamwood as bw
from beamwood.batch.arrow import LabelColumn, lists

pa = pytest.importorskip("pyarrow")

TEXTS = ["red wool socks", "blue hat", "straw hat", "leather boots"] * 3
LABELS = [["sokker", "ull"], ["hattar ü"], ["hattar ü", ""], ["stövlar"]] * 3


def model(kind: str) -> bw.Model:
    if kind == "keys":
        return bw.train_text(TEXTS, LABELS, preset="fast", progress=False)
    text = bw.TextFeatures().fit(TEXTS)
    Y = [[i % 4] for i in range(len(TEXTS))]
    return bw.train(text.transform(TEXTS), Y, "fast", progress=False)


@pytest.mark.parametrize("kind", ["keys", "numbers"])
@pytest.mark.parametrize("short", [True, False])
def test_labels_are_called_what_the_model_calls_them(kind: str, short: bool) -> None:
    made = model(kind)
    column = LabelColumn.keys(made.parts.sections, made.n_labels, short)
    labels = np.array([[2, 0, -1], [-1, -1, -1], [3, 1, 2]], np.int64)
    scores = np.where(labels < 0, -np.inf, np.arange(9.0).reshape(3, 3)).astype(np.float32)
    keys, numbers = lists([column], labels, scores)
    assert keys.type == pa.list_(pa.string() if short else pa.large_string())
    assert keys.to_pylist() == [[made.key(int(label)) for label in row if label >= 0] for row in labels]
    assert numbers.to_pylist() == [[0.0, 1.0], [], [6.0, 7.0, 8.0]]
    assert len(set(column.of(pa.array(range(made.n_labels))).to_pylist())) == made.n_labels


def test_names_are_there_only_where_they_differ_from_keys() -> None:
    made = model("keys")
    assert LabelColumn.names(made.parts.sections, made.n_labels) is None
    named = made.with_names([f"no. {i}" for i in range(made.n_labels)])
    column = LabelColumn.names(named.parts.sections, named.n_labels)
    assert column is not None
    assert column.of(pa.array([1, 0])).to_pylist() == ["no. 1", "no. 0"]
