"""Filters: what may be given, whose they are, and that searches by text obey them. The laws hold the bits."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.models import small_model, small_queries, two_layers
from test_reference import ask, layer

import beamwood as bw
from beamwood import _core

NAMES = [f"label {i}" for i in range(40)]


@pytest.fixture(scope="module")
def model() -> bw.Model:
    return small_model(names=NAMES)


def test_the_search_goes_on_with_the_best_node_of_the_deepest_layer() -> None:
    top = layer([[3], [2], [1]], [0, 0, 0])
    middle = layer([[1], [2], [3], [4]], [0, 0, 1, 2])
    leaves = layer([[1], [2], [3], [4], [5]], [0, 0, 1, 2, 3])
    tree = [top, middle, leaves]
    every = np.ones(5, bool)
    # With beam 1: node 0 of the top, node 1 below it, label 2. Then node 0 of the middle: it waits deepest.
    assert ask([tree], [1], k=1, beam=1, allowed=every) == [(2, 3.0)]
    assert ask([tree], [1], k=2, beam=1, allowed=every) == [(2, 3.0), (1, 2.0)]
    assert ask([tree], [1], k=3, beam=1, allowed=every) == [(2, 3.0), (1, 2.0), (0, 1.0)]
    # Then the middle has none left, and the top goes on with its best: node 1, whose label is 3.
    assert ask([tree], [1], k=4, beam=1, allowed=every)[0] == (3, 4.0)
    # Nodes without an allowed label take no place in the beam.
    assert ask([tree], [1], k=1, beam=1, allowed=np.arange(5) == 4) == [(4, 5.0)]


def test_every_tree_of_an_ensemble_goes_on_until_it_has_k() -> None:
    first = [layer([[2], [1]], [0, 0]), layer([[1], [1], [1]], [0, 1, 1])]
    second = [layer([[1], [2]], [0, 0]), layer([[4], [4], [8]], [0, 0, 1])]
    allowed = np.array([True, False, True])
    assert ask([first, second], [1], k=1, beam=1, allowed=allowed) == [(2, 4.0)]  # the first tree stops at label 0
    assert ask([first, second], [1], k=2, beam=1, allowed=allowed) == [(2, 4.5), (0, 2.5)]


def same(model: bw.Model, one: bw.Filter, other: bw.Filter) -> bool:
    """Whether two filters let the same labels through."""
    X = small_queries()
    found = [model.topk(X, k=40, beam=40, filter=made)[0].tobytes() for made in (one, other)]
    return len(one) == len(other) and found[0] == found[1]


@pytest.mark.parametrize(
    "given",
    [
        ["label 3", "label 17", "label 30"],
        ("label 30", "label 3", "label 17", "label 3"),
        {"label 3", "label 17", "label 30"},
        (name for name in ("label 3", "label 17", "label 30")),
        np.array(["label 3", "label 17", "label 30"]),
        np.array(["label 3", "label 17", "label 30"], object),
        [3, 17, 30],
        {3, 17, 30},
        np.array([30, 3, 17, 17], np.uint8),
        np.isin(np.arange(40), [3, 17, 30]),
        np.isin(np.arange(40), [3, 17, 30]).tolist(),
    ],
)
def test_keys_numbers_and_truth_values_say_the_same(model: bw.Model, given: Any) -> None:
    made = model.filter(allow=given)
    assert same(model, made, model.filter(deny=[i for i in range(40) if i not in (3, 17, 30)]))
    assert repr(made) == "<beamwood.Filter: 3 of 40 labels allowed>"


def test_what_is_denied_is_not_found_even_when_it_is_allowed(model: bw.Model) -> None:
    made = model.filter(allow=["label 1", "label 2"], deny=["label 2", "label 5"])
    labels, scores = model.topk(small_queries(), k=3, filter=made)
    assert (labels == [1, -1, -1]).all()
    assert np.isneginf(scores[:, 1:]).all()
    assert len(model.filter()) == 40


def test_nothing_allowed_finds_nothing(model: bw.Model) -> None:
    made = model.filter(allow=[])
    assert (model.topk(small_queries(), filter=made)[0] == -1).all()
    assert (model.topk(small_queries(), filter=made, exact=True)[0] == -1).all()
    assert model.predict(small_queries(), filter=made).nnz == 0


def test_unknown_keys_are_named_or_listed(model: bw.Model) -> None:
    with pytest.raises(bw.DataError, match=r"2 keys are not among the model's labels: 'sock', 'h\\ud800'\. Leave"):
        model.filter(allow=["label 1", "sock"], deny=["h\ud800"])
    with pytest.raises(bw.DataError, match=r"9 keys .*'4', …"):
        model.filter(deny=[str(i) for i in range(9)])
    made = model.filter(allow=["label 1", "sock"], deny=["hat"], missing="ignore")
    assert len(made) == 1
    assert made.missing == ("sock", "hat")


def test_a_model_without_keys_knows_its_labels_by_number() -> None:
    model = small_model()
    assert same(model, model.filter(allow=["3", "17"]), model.filter(allow=[3, 17]))
    with pytest.raises(bw.DataError, match="'40'"):
        model.filter(allow=["40"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("label 3", "expected a list of label keys"),
        (b"label 3", "expected a list of label keys"),
        (3, "expected a list of label keys"),
        ([3, "label 3"], r"\[0\] is 3 among other"),
        (["label 3", 3], r"allow\[1\] is 3 among other things"),
        ([1.5], "dtype float64"),
        ([[1, 2]], r"shape \(1, 2\)"),
        ([-1], "has the label -1; expected 0 to 39"),
        ([40], "has the label 40; expected 0 to 39"),
        ([2**70], "among other things"),
        ([True, False], "2 truth values; expected 40"),
        ([None], "among other things"),
        ([[1], [2, 3]], "different lengths"),
        ([True, 3], "True among other"),
    ],
)
def test_what_is_no_set_of_labels_is_refused(model: bw.Model, given: Any, message: str) -> None:
    with pytest.raises(bw.BeamwoodError, match=message):
        model.filter(allow=given)
    with pytest.raises(bw.BeamwoodError, match=message.replace("allow", "deny")):
        model.filter(deny=given)
    with pytest.raises(bw.SettingsError, match="missing='maybe'"):
        model.filter(missing="maybe")


def test_a_filter_serves_one_model_under_every_engine(model: bw.Model, tmp_path: Path) -> None:
    made, X = model.filter(allow=range(0, 40, 3)), small_queries()
    expected = model.topk(X, filter=made)
    for engine in ({"layout": "column"}, {"layout": "cascade"}, {"matcher": "hash"}):
        assert np.array_equal(model.using(**engine).topk(X, filter=made)[0], expected[0])
    model.save(tmp_path / "model.bw")
    others = [small_model(names=NAMES), bw.load(tmp_path / "model.bw"), bw.Model.from_trees([model, model])]
    for other in others:
        with pytest.raises(bw.SettingsError, match="another model"):
            other.topk(X, filter=made)
    with pytest.raises(bw.SettingsError, match=r"model\.filter"):
        model.topk(X, filter=["label 3"])


def test_a_native_filter_of_another_shape_is_refused() -> None:
    small = bw.Model.from_layers(two_layers(labels=12))
    other = _core.Filter(small_model().searcher.forest, np.ones(40, np.uint8))
    with pytest.raises(ValueError, match="another model"):
        small.searcher.topk(small_queries(), 5, 5, 1, False, filter=other)


def test_a_filter_takes_a_bit_per_node_and_per_label() -> None:
    sizes = (50, 2500, 125_000)
    layers = [bw.Layer(sp.csc_array((3, nodes), dtype=np.float32), np.arange(nodes) // 50) for nodes in sizes]
    made = bw.Model.from_layers(layers).filter(deny=[5])
    assert made.nbytes < (sum(sizes) + sizes[-1]) / 8 + 100
    assert len(made) == sizes[-1] - 1


def test_many_threads_share_a_filter(model: bw.Model) -> None:
    made, X = model.filter(allow=range(0, 40, 3)), small_queries()
    expected = model.topk(X, filter=made)[1].tobytes()
    wrong: list[Any] = []

    def search() -> None:
        wrong.extend(i for i in range(50) if model.topk(X, filter=made)[1].tobytes() != expected)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_statistics_tell_of_filtered_searches(model: bw.Model) -> None:
    X = small_queries()
    few = model.topk(X, beam=40, filter=model.filter(allow=[3]), stats=True)[2]
    every = model.topk(X, beam=40, filter=model.filter(), stats=True)[2]
    assert 0 < few.blocks < every.blocks
    assert few.blocks == 2 * X.shape[0]  # the root and the parent of label 3


TEXTS = ["red wool socks", "blue cotton socks", "wool hat", "straw hat", "rubber boots", "leather boots"] * 3
LABELS = [["socks", "wool"], ["socks"], ["hats", "wool"], ["hats"], ["boots"], ["boots", "leather"]] * 3


def test_searches_by_text_obey_a_filter() -> None:
    model = bw.train_text(TEXTS, LABELS, preset="fast", branching=2, max_leaf=2, progress=False)
    assert model.text is not None
    made = model.filter(deny=["wool"])
    for layout in ("chunk", "column", "cascade"):
        one = model.using(layout=layout)
        for text in TEXTS[:6]:
            hits = one.search(text, k=4, beam=1, filter=made)
            labels, scores = one.topk(model.text.transform([text]), k=4, beam=1, filter=made)
            assert [hit.label for hit in hits] == labels[0].tolist()
            assert [hit.score for hit in hits] == scores[0].tolist()
            assert "wool" not in {hit.key for hit in hits}
            exact = one.search(text, k=4, exact=True, filter=made)
            assert exact == [hit for hit in one.search(text, k=5, exact=True) if hit.key != "wool"]
        many = one.search_many(TEXTS[:6], k=4, beam=1, filter=made)
        assert many == [one.search(text, k=4, beam=1, filter=made) for text in TEXTS[:6]]
    with pytest.raises(bw.SettingsError, match=r"model\.filter"):
        model.search("wool", filter="wool")
