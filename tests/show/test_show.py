"""test_show.py — answers, models and reports in; the frames and the notebook tables that they become out."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import beamwood as bw

TEXTS = ["red wool socks", "blue wool hat", "red cotton shirt", "green cotton socks"]
LABELS = [["socks", "wool"], ["hats", "wool"], ["shirts"], ["socks"]]
HOSTILE = "<img src=x onerror=alert(1)>&\"'"


@pytest.fixture(scope="module")
def shop() -> bw.Model:
    return bw.train_text(TEXTS, LABELS, progress=False, lexical=False)


class Cells(HTMLParser):
    """The text of each cell; fails on an element that is never closed or that we do not make."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in {"table", "caption", "b", "thead", "tbody", "tr", "th", "td", "div"}
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)
        if tag in {"td", "th", "caption"}:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th", "caption"} & set(self.open):
            self.cells[-1] += data


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_frame_of_many_answers_has_a_row_per_hit(shop: bw.Model, kind: str) -> None:
    pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind))
    answers = shop.search_many(["wool socks", "zzz", "cotton shirt"], k=2)
    frame = answers.to_frame(kind)
    columns = {name: list(frame[name].to_pylist() if kind == "arrow" else frame[name]) for name in _names(frame, kind)}
    assert columns["query"] == [0, 0, 2, 2]
    assert columns["text"] == ["wool socks"] * 2 + ["cotton shirt"] * 2
    assert columns["rank"] == [1, 2, 1, 2]
    assert columns["key"] == [hit.key for hits in answers for hit in hits]
    assert columns["score"] == [hit.score for hits in answers for hit in hits]
    assert "probability" not in columns
    assert "found_by" not in columns


def _names(frame: Any, kind: str) -> list[str]:
    return list(frame.column_names if kind == "arrow" else frame.columns)


def test_one_answer_is_a_frame_too_and_an_empty_one_keeps_its_columns(shop: bw.Model) -> None:
    pytest.importorskip("pandas")
    assert list(shop.search("wool", k=1).to_frame().columns) == ["rank", "label", "key", "name", "score"]
    assert list(shop.search("zzz").to_frame().columns) == ["rank", "label", "key", "name", "score"]


def test_a_missing_library_is_named_with_the_command_that_brings_it(
    shop: bw.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(bw.SettingsError, match="pip install polars"):
        shop.search("wool").to_frame("polars")
    with pytest.raises(bw.SettingsError, match="expected one of pandas, polars, arrow"):
        shop.search("wool").to_frame("excel")


def test_columns_of_pandas_polars_and_arrow_train_the_same_model(shop: bw.Model) -> None:
    expected = [[(hit.key, hit.score) for hit in hits] for hits in shop.search_many(TEXTS)]
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    frames = [
        pandas.DataFrame({"text": TEXTS, "labels": LABELS}),
        polars.DataFrame({"text": TEXTS, "labels": LABELS}),
        arrow.table({"text": TEXTS, "labels": LABELS}),
        {"text": np.array(TEXTS), "labels": np.array([np.array(row) for row in LABELS], dtype=object)},
        {"text": iter(TEXTS), "labels": (set(row) for row in LABELS)},
    ]
    for frame in frames:
        model = bw.train_text(frame["text"], frame["labels"], progress=False, lexical=False)
        answers = model.search_many(frame["text"] if not isinstance(frame, dict) else TEXTS)
        assert [[(hit.key, hit.score) for hit in hits] for hits in answers] == expected


def test_a_missing_text_of_a_frame_is_refused_with_its_row(shop: bw.Model) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(bw.DataError, match="text 1 "):
        shop.search_many(pandas.Series(["wool", None], dtype=object))


def test_notebooks_show_tables_of_everything(shop: bw.Model) -> None:
    hits = shop.search("warm wool socks", k=2)
    assert "wool" in Cells(hits._repr_html_()).cells
    assert "no known words" in Cells(shop.search("zzz")._repr_html_()).cells
    many = shop.search_many(["wool", "socks"] * 8)
    assert "wool" in Cells(many._repr_html_()).cells
    assert "6 more" in many._repr_html_()
    assert "4" in Cells(shop._repr_html_()).cells
    measured = shop.evaluate(TEXTS, LABELS)
    assert "precision" in Cells(measured._repr_html_()).cells
    assert shop.report is not None
    assert "together" in Cells(shop.report._repr_html_()).cells
    assert any("wool" in cell for cell in Cells(shop.explain("wool socks", "wool")._repr_html_()).cells)


def test_hostile_names_and_words_stay_text() -> None:
    model = bw.train_text(TEXTS, [[key + HOSTILE for key in row] for row in LABELS], progress=False)
    pieces = [
        model.search("wool")._repr_html_(),
        model.search_many([f"wool {HOSTILE}"])._repr_html_(),
        model.explain("wool", "wool" + HOSTILE)._repr_html_(),
    ]
    for html in pieces:
        assert "<img" not in html
        assert any(HOSTILE in cell for cell in Cells(html).cells)


def test_scores_that_are_no_numbers_draw_an_empty_bar() -> None:
    odd = [float("nan"), float("-inf"), float("inf"), -1.0]
    hits = bw.Hits([bw.Hit(i, "k", "n", score) for i, score in enumerate(odd)], 1)
    assert "nan" not in Cells(hits._repr_html_()).cells[0]
    assert "width:nan" not in hits._repr_html_()
