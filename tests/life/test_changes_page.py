"""The page of a difference, and small claims about explanations, filters and tables that nothing else makes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from support.models import small_model, small_queries
from support.serving import shop

import beamwood as bw
from beamwood.inputs.arguments import plain_array
from beamwood.interop.tree_text import TreeText
from beamwood.server.app.access import Access
from beamwood.server.options import ServeOptions


def test_a_page_shows_settings_and_answers_where_there_are_some() -> None:
    texts, labels = ["red wool", "blue boots"] * 4, [["wool"], ["boots"]] * 4
    old, new = (
        bw.train_text(texts, labels, preset="fast", progress=False, **settings) for settings in ({}, {"C": 0.001})
    )
    bare = bw.diff(old, new).html()
    assert "<h2>Settings</h2>" in bare
    assert "Queries that changed most" not in bare
    same = bw.diff(old, old, texts, labels).html()
    assert "<h2>Settings</h2>" not in same
    assert "Queries that changed most" not in same
    turned = old.with_names(keys=["wool", "boots"])
    assert "Queries that changed most" in bw.diff(old, turned, texts, labels).html()


def test_an_explanation_may_name_no_words() -> None:
    found = shop().explain("warm wool socks", shop().search("warm wool socks", k=1)[0].key, words=0)
    assert found.score > 0
    X = small_queries()[[0]]
    worst = int(small_model().topk(X, k=small_model().n_labels, beam=99)[0][0, -1])
    with pytest.raises(bw.DataError, match="is not reached with beam=1"):
        small_model().explain(X, worst, beam=1)


def test_a_tokenizer_is_not_given_to_numbers(tmp_path: object) -> None:
    path = f"{tmp_path}/model.bw"
    small_model().save(path)
    with pytest.raises(bw.SettingsError, match="knows no words"):
        bw.load(path, tokenizer=str.split)


def test_trees_in_text_have_labels_at_leaves_in_order() -> None:
    with pytest.raises(bw.SettingsError, match="an inner node has a label"):
        TreeText(np.array([-1, 0]), np.array([0, 1])).parent_list()
    with pytest.raises(bw.SettingsError, match="labels are not numbered in order"):
        TreeText(np.array([-1, 0, 0]), np.array([-1, 0, 2])).parent_list()


def test_label_tables_know_two_ways_with_unknown_labels() -> None:
    with pytest.raises(bw.SettingsError, match="unknown is 'perhaps'; expected"):
        bw.LabelTable.from_labels([["a"]]).matrix([["b"]], unknown="perhaps")


def test_a_range_is_an_array() -> None:
    assert plain_array(range(3)).tolist() == [0, 1, 2]
    model = small_model()
    allowed = model.filter(allow=range(2))
    assert set(model.topk(small_queries(), filter=allowed)[0].ravel().tolist()) <= {-1, 0, 1}


def test_other_origins_read_answers_only_where_that_was_asked_for() -> None:
    def cors(origin: bytes | None, *allowed: str) -> list[tuple[bytes, bytes]]:
        from pathlib import Path

        return Access(ServeOptions(models={"m": Path("m.bw")}, cors=allowed)).cors(origin)

    page = b"https://shop.example"
    assert cors(None, "*") == cors(page) == cors(page, "https://other.example") == []
    assert cors(page, "https://shop.example")
    assert cors(page, "*")


def test_an_index_explains_and_has_no_layers() -> None:
    model = bw.index(sp.csr_array(np.eye(3, dtype=np.float32)))
    with pytest.raises(bw.SettingsError, match="is an index"):
        model.layers()
    with pytest.raises(bw.SettingsError, match="is an index"):
        model.plot_tree()
