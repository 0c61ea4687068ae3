"""Descriptions inside a file that were damaged or written by another hand: each part says no by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.models import small_model, small_queries
from support.serving import shop

import beamwood as bw
from beamwood.blocks.blocks import FeatureBlocks
from beamwood.errors import FormatError
from beamwood.lexical.head import Head
from beamwood.life.calibration import calibration_error, fit_curves
from beamwood.storage.shape import ModelShape
from beamwood.storage.store import FORMAT_VERSION, header_of, read_header, read_meta

HEAD: dict[str, Any] = {
    "bias": 0.5, "trees": 1.0, "words": 0.25, "unlisted": -1.0, "rowless": 2.0, "rowless_words": 0.5, "candidates": 100,
    "fitted": {},
}  # fmt: skip


def test_a_head_of_the_first_kind_counts_labels_without_rows_as_ones_of_some_evidence() -> None:
    old = {name: value for name, value in HEAD.items() if name != "rowless_words"}
    found = Head.read(old)
    assert found is not None
    assert (found.rowless, found.rowless_words) == (0.5 + 1.0 * 2.0, 0.25)
    assert Head.read(None) is None
    assert Head.read(Head.read(HEAD).describe()) == Head.read(HEAD)


@pytest.mark.parametrize(
    "change", [{"bias": "0"}, {"bias": float("nan")}, {"trees": -1.0}, {"candidates": 0}, {"candidates": 1.5}]
)
def test_a_head_with_numbers_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the head"):
        Head.read({**HEAD, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 5}, "without a name or columns"),
        ({"columns": -1}, "without a name or columns"),
        ({"weight": True}, "without a weight"),
        ({"weight": 2.0}, "without a weight"),
        ({"columns": 4}, "do not make up the features"),
    ],
)
def test_feature_blocks_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    good = {"name": "words", "columns": 3, "weight": 1.0, "optional": False}
    assert FeatureBlocks.read(None, 3) is None
    found = FeatureBlocks.read([good], 3)
    assert found is not None
    assert found.feature(2) == "words 2"
    with pytest.raises(ValueError, match=message):
        FeatureBlocks.read([{**good, **change}], 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beam": 0}, "a beam of no nodes"),
        ({"labels": True}, "is not a count"),
        ({"discount": True}, "is not a number"),
        ({"updates": {"trained": 3, "added": 99, "removed": 0}}, "more labels added or removed than there are"),
        ({"head": HEAD, "index": None}, "a head without trees and lists"),
        ({"notes": {"date": 5}}, "expected a str"),
        ({"trees": [{"nodes": [], "nonzeros": []}]}, "a tree without layers"),
    ],
)
def test_a_description_that_cannot_be_is_a_format_error(change: dict[str, Any], message: str) -> None:
    described = small_model().parts.shape.describe()
    with pytest.raises(FormatError, match=message):
        ModelShape.read({"model": {**described, **change}})


def test_arrays_that_do_not_fit_their_description_are_a_format_error() -> None:
    parts = shop().parts
    short = {**parts.sections, "rows_of_label": np.zeros(1, np.uint32)}
    with pytest.raises(FormatError, match="its counts of rows do not fit its labels"):
        _ = replace(parts, sections=short).rows_of_label
    wide = replace(parts, shape=replace(parts.shape, features=parts.shape.features + 1))
    with pytest.raises(FormatError, match=r"terms; expected .*, one per feature"):
        wide.text()
    with pytest.raises(bw.SettingsError, match="tokenizer is given to a model that knows no words"):
        small_model().with_tokenizer(str.split)


def test_a_newer_format_is_named_and_an_older_than_the_first_is_damage(tmp_path: Any) -> None:
    for version, message in ((FORMAT_VERSION + 1, "Install a newer beamwood"), (0, "its header does not match")):
        raw, _ = header_of({}, {"format": version})
        whole = np.frombuffer(len(raw).to_bytes(8, "little") + raw, np.uint8)
        header, start = read_header(whole, tmp_path)
        with pytest.raises(FormatError, match=message):
            read_meta(header, whole[8:start], tmp_path)


def test_curves_need_answers_and_ranks_without_any_share_those_before() -> None:
    nothing = np.full((4, 3), -np.inf, np.float32)
    with pytest.raises(bw.DataError, match="No row has an answer to calibrate on"):
        fit_curves(nothing, np.zeros((4, 3), bool))
    some = np.full((200, 20), -np.inf, np.float32)
    some[:, 0] = np.linspace(0, 1, 200)
    curves = fit_curves(some, some > 0.5)
    shown = curves(some)
    assert (np.diff(shown[:, 0]) >= 0).all()
    assert calibration_error(np.zeros(0), np.zeros(0, bool)) == 0.0


def test_the_old_name_of_a_layout_works_with_a_note() -> None:
    with pytest.warns(FutureWarning, match="'cascade' now"):
        old = small_model().using(layout="threaded")
    assert old.info()["engine"]["layout"] == "cascade"
    assert old.topk(small_queries())[0].tolist() == small_model().topk(small_queries())[0].tolist()
    with pytest.raises(bw.SettingsError, match=r"This machine has no .*Use isa='auto'|is not known"):
        small_model().using(isa="neon" if "neon" not in bw.engine.isas_here() else "avx2")
