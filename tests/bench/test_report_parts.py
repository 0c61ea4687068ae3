"""Tables, plots, timings and made-up models of the bench: what is drawn and written is what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import beamwood as bw
from beamwood.bench import generate, plots, tables, timing
from beamwood.tuning import table as trials
from beamwood.tuning.search import Trial

CASES: list[dict[str, Any]] = [
    {"set": "eurlex", "branching": 2, "rivals": {"pecos": {"times": {"batch": {"ours": 2.0, "theirs": 9.0}}}}},
    {"set": "eurlex", "branching": 8, "rivals": {}},
    {"set": "wiki", "branching": 2, "rivals": {"pecos": {"times": {"online": {"ours": 4.0, "theirs": 2.0}}}}},
]


def test_duels_with_rivals_are_a_row_each_with_their_ratio() -> None:
    shown = tables.rivals_table(CASES)
    assert "4.5x" in shown
    assert "0.5x" in shown
    assert shown.count("pecos") == 2


def test_duels_are_drawn_where_they_were_run() -> None:
    pytest.importorskip("matplotlib")
    figure = plots.rivals(CASES)
    shown = [text.get_text() for panel in figure.axes for text in panel.get_xticklabels()]
    assert "eurlex" in shown


def test_points_that_lie_on_each_other_share_a_name() -> None:
    found = plots._named_points(["a", "b", "c"], [1.0, 1.01, 3.0], [10.0, 11.0, 10.0])
    assert found == [("a, b", (1.0, 10.0)), ("c", (3.0, 10.0))]


def test_made_up_layers_are_a_tree_that_answers() -> None:
    assert generate.layer_sizes(100, 8) == [2, 13, 100]
    assert generate.layer_sizes(5, 8) == [5]
    layers = generate.model_layers(60, 500, 8, nnz_per_label=9, seed=3)
    assert [layer.weights.shape[1] for layer in layers] == [8, 60]
    again = generate.model_layers(60, 500, 8, nnz_per_label=9, seed=3)
    assert all((a.weights != b.weights).nnz == 0 for a, b in zip(layers, again, strict=True))
    mean = layers[-1].weights.nnz / 60
    assert 6 < mean < 12
    labels, _ = bw.Model.from_layers(layers).topk(np.ones((1, 500), np.float32), k=5)
    assert (labels >= 0).all()


def test_words_are_spread_over_all_features_whatever_their_number() -> None:
    for features in (89, 144, 6, 610, 987):  # steps of the golden ratio share divisors with some of these
        topics = generate.Topics(10, features, 0)
        assert sorted(topics._shuffle(np.arange(features)).tolist()) == list(range(features))


def test_every_query_is_timed_and_figures_are_written_with_the_machine(tmp_path: Path) -> None:
    ticks = iter(range(0, 10_000, 1000))
    asked: list[int] = []
    assert timing.each_time(asked.append, [7, 8], clock=lambda: next(ticks)) == [1.0, 1.0]
    assert asked == [7, 8]
    timing.save_json(None, {})
    timing.save_json(tmp_path / "figures.json", {"trial": Trial("start", 0, 5), "path": tmp_path})
    found = json.loads((tmp_path / "figures.json").read_text())
    assert found["trial"]["name"] == "start"
    assert found["path"] == str(tmp_path)
    assert "machine" in found


def test_trials_are_a_table_on_a_terminal_and_lines_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Trial("trees 3", 1, 2000, {"P@1": 50.0, "P@5": 20.0, "R@10": 70.0}, 1.5, 0.4, 2.0, 60.0, 5_000_000)
    broken = Trial("beam 0", 1, 2000, failed="beam is 0;\nexpected more")
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        with trials.teller(True) as tell:
            tell(done)
            tell(broken)
        shown = capsys.readouterr().err
        assert "trees 3" in shown
        assert "+1.50" in shown
        assert "beam is 0; expected more" in shown or "beam is 0;" in shown
