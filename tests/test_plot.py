"""Plots show the numbers that the model, the report and the metrics have, and open no window."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw

pytest.importorskip("matplotlib")
from beamwood import plot

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module", name="data")
def made_data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix(np.eye(40, dtype=np.float32)[rng.integers(0, 40, 400)])
    noise = sp.random(400, 200, density=0.02, random_state=1, dtype=np.float32)
    return sp.csr_matrix(Y @ sp.random(40, 200, density=0.05, random_state=2, dtype=np.float32) + noise), Y


@pytest.fixture(scope="module", name="model")
def made_model(data: tuple[Any, Any]) -> bw.Model:
    return bw.train(*data, preset="fast", branching=4, max_leaf=4, trees=2, progress=False)


def test_layer_shapes_are_those_of_the_layers(model: bw.Model) -> None:
    for number, shapes in enumerate(plot.layer_shapes(model)):
        for layer, shape in zip(model.layers(number), shapes, strict=True):
            children = np.bincount(layer.parent)
            children = children[children > 0]
            assert shape.nodes == len(layer.parent)
            assert shape.nonzeros == layer.weights.nnz
            assert (shape.fewest, shape.most) == (children.min(), children.max())
            assert shape.mean == pytest.approx(children.mean())


def test_plot_tree_has_labelled_axes_and_a_bar_for_each_layer_of_each_tree(model: bw.Model) -> None:
    figure = model.plot_tree()
    layers = sum(len(nodes) for nodes in model.info()["nodes"])
    assert len(figure.axes) == 3
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in figure.axes)
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert len(heights) == layers
    assert sorted(heights) == sorted(n for nodes in model.info()["nodes"] for n in nodes)


def test_plot_report_adds_the_stages_of_all_trees(model: bw.Model) -> None:
    (panel,) = plot.plot_report(model.report).axes
    names = [tick.get_text() for tick in panel.get_yticklabels()]
    assert names == [*dict.fromkeys(names)]
    assert {"label vectors", "tree", "weights, layer 1", "weights, layer 2", "model"} <= set(names)
    assert sum(bar.get_width() for bar in panel.patches) == pytest.approx(model.report.total_seconds)
    assert panel.get_xlabel() == "seconds"


def test_a_loaded_model_has_no_report_to_plot() -> None:
    with pytest.raises(bw.DataError, match="no report"):
        plot.plot_report(None)


def test_plot_beam_shows_what_evaluate_says(model: bw.Model, data: tuple[Any, Any]) -> None:
    X, Y = data
    curve = plot.measure_beams(model, X, Y, beams=(1, 4), at=(1, 3), queries=5, rounds=2)
    for place, beam in enumerate(curve.beams):
        found = bw.evaluate(model.topk(X, k=3, beam=beam), Y, at=(1, 3))
        assert {depth: values[place] for depth, values in curve.precision.items()} == found.precision
    assert curve.queries == 5
    assert all(0 < median <= slowest for median, slowest in zip(curve.median, curve.slowest, strict=True))
    left, right = plot.plot_beam(model, X, Y, beams=(1, 4), at=(1, 3), queries=5, rounds=1).axes
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["1", "4"]
    assert "percent" in left.get_ylabel()
    assert "microseconds" in right.get_ylabel()


def test_a_figure_shows_itself_in_a_notebook_and_is_written_as_png(model: bw.Model, tmp_path: Any) -> None:
    figure = model.plot_tree()
    assert figure._repr_png_().startswith(PNG)
    figure.savefig(tmp_path / "tree.png")
    assert (tmp_path / "tree.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"beams": ()}, bw.SettingsError, "beams is empty"),
        ({"beams": (0,)}, bw.SettingsError, "beam is 0"),
        ({"rounds": 0}, bw.SettingsError, "rounds is 0"),
    ],
)
def test_wrong_arguments_are_named(
    model: bw.Model, data: tuple[Any, Any], wrong: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        plot.measure_beams(model, *data, **wrong)


def test_queries_without_rows_are_refused(model: bw.Model) -> None:
    with pytest.raises(bw.DataError, match="no rows"):
        plot.measure_beams(model, sp.csr_matrix((0, 200), dtype=np.float32), sp.csr_matrix((0, 40), dtype=np.float32))


def test_without_matplotlib_the_message_says_what_to_install(model: bw.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "beamwood.plot")
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"Run: pip install 'matplotlib>=3\.7'"):
        model.plot_tree()


def test_plot_reliability_draws_what_is_said_against_what_is_right(model: bw.Model, data: tuple[Any, Any]) -> None:
    figure = plot.plot_reliability(model.calibrate(*data), *data)
    (panel,) = figure.axes
    assert [line.get_label().partition(":")[0] for line in panel.get_lines()[1:]] == ["score", "probability"]
    assert all(len(line.get_xdata()) == 10 for line in panel.get_lines()[1:])
    assert len(plot.plot_reliability(model, *data).axes[0].get_lines()) == 2


def test_plot_tuning_draws_every_trial_and_names_the_best(data: tuple[Any, Any]) -> None:
    tuned = bw.tune(*data, budget=3, preset="fast", train=False, progress=False)
    (panel,) = plot.plot_tuning(tuned).axes
    last = max(trial.step for trial in tuned.trials)
    drawn = [trial for trial in tuned.trials if trial.step == last and not trial.failed]
    assert len(panel.collections) == len(drawn)
    named = {trial.name for trial in tuned.frontier()} | {tuned.changed}
    assert {text.get_text() for text in panel.texts} == named & {trial.name for trial in drawn}
    with pytest.raises(bw.SettingsError, match=r"what bw\.tune gave"):
        plot.plot_tuning(None)
