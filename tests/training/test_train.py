"""Training from (X, Y) to a model: what comes out, the same file, the report, long work and Ctrl-C."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import SMALL, precision_at_1
from support.processes import interrupted

import beamwood as bw
from beamwood.engine import Forests
from beamwood.errors import DataError
from beamwood.training.problem import checked_problem
from beamwood.training.progress import Bars, Lines
from beamwood.training.settings import settings_for
from beamwood.training.train import train
from beamwood.training.weights import cost_of_mistakes

# --- what comes out


@pytest.mark.parametrize("tree", ["balanced", "capped", "unbalanced", "random", "huffman"])
@pytest.mark.parametrize("loss", ["squared-hinge", "hinge", "logistic"])
def test_ranks_its_own_rows_well(problem: Any, tree: str, loss: str) -> None:
    X, Y = problem
    activation = "sigmoid" if loss == "logistic" else "hinge-3"
    model = train(X, Y, **SMALL, tree=tree, loss=loss, activation=activation, C=10.0)
    assert precision_at_1(model, X, Y) > 0.7


@pytest.mark.parametrize("tree", ["unbalanced", "huffman"])
@pytest.mark.parametrize("negatives", ["man", "tfn+man"])
def test_matcher_aware_negatives_where_leaves_lie_at_different_depths(problem: Any, tree: str, negatives: Any) -> None:
    X, Y = problem
    model = train(X, Y, **{**SMALL, "tree": tree, "branching": 3, "max_leaf": 2, "negatives": negatives, "beam": 3})
    upper = [layer for layer in model.layers()[:-1] if layer.label is not None]
    assert upper, "this tree was to have leaves above its last layer"
    assert precision_at_1(model, X, Y) > 0.5


@pytest.mark.parametrize("settings", [{}, {"trees": 3}, {"tree": "unbalanced"}, {"negatives": "tfn+man"}])
def test_same_file_for_any_thread_count(problem: Any, settings: Any, tmp_path: Path) -> None:
    X, Y = problem
    for threads in (1, 2):
        train(X, Y, **SMALL, **settings, seed=3, threads=threads).save(tmp_path / f"{threads}.bw")
    assert (tmp_path / "1.bw").read_bytes() == (tmp_path / "2.bw").read_bytes()


def test_another_seed_gives_another_tree(problem: Any) -> None:
    X, Y = problem
    a, b = (train(X, Y, **SMALL, seed=seed).layers() for seed in (0, 1))
    assert any(not np.array_equal(x.label, y.label) for x, y in zip(a, b, strict=True))


def test_an_ensemble_is_the_mean_of_its_trees(problem: Any) -> None:
    X, Y = problem
    model = train(X, Y, **SMALL, trees=3)
    total = np.zeros((300, 30), np.float32)
    for tree in range(3):
        member = bw.Model.from_layers(model.layers(tree), activation="hinge-3")
        total += member.predict(X, k=30, beam=30).toarray()
    mean = model.predict(X, k=30, beam=30).toarray()
    assert np.array_equal(mean, total / np.float32(3))


def test_unit_rows_makes_the_length_of_rows_and_queries_count_for_nothing(problem: Any) -> None:
    X, Y = problem
    stretched = sp.csr_matrix(sp.diags(np.random.default_rng(0).uniform(0.1, 20, X.shape[0])) @ X, dtype=np.float32)
    plain, unit = (train(A, Y, "balanced", trees=1, progress=False) for A in (X, stretched))
    assert plain.info()["unit_rows"]
    assert unit.info()["unit_rows"]
    for queries in (X, stretched):
        assert (plain.topk(queries, k=3)[0] == unit.topk(queries, k=3)[0]).mean() > 0.98  # but for rounding
    assert not train(X, Y, "fast", progress=False).info()["unit_rows"]


def test_rows_of_length_one_are_taken_as_they_are(problem: Any) -> None:
    X, Y = problem
    unit = checked_problem(X, Y).with_unit_rows()
    assert np.allclose(np.sqrt(unit.X.multiply(unit.X).sum(axis=1)), 1, atol=1e-6)
    assert unit.with_unit_rows() is unit
    assert not train(unit.X, Y, "balanced", trees=1, progress=False).info()["unit_rows"]


def test_automatic_C_falls_with_the_rows_that_labels_have(problem: Any) -> None:
    X, Y = problem
    few = settings_for("fast", C="auto")
    assert cost_of_mistakes(checked_problem(X[:40], sp.identity(40, format="csr")), few) == 1.0
    rows = Y.nnz / np.unique(Y.indices).size
    fallen = cost_of_mistakes(checked_problem(X, Y), few)
    assert fallen == pytest.approx((4 / rows) ** 0.25)
    assert fallen < 1
    same = [bw.train(X, Y, "fast", C=C, progress=False).topk(X[:50]) for C in ("auto", fallen)]
    assert (same[0][1] == same[1][1]).all()


def test_settings_are_saved_with_the_model(problem: Any, tmp_path: Path) -> None:
    X, Y = problem
    train(X, Y, **SMALL, C=0.5).save(tmp_path / "m.bw")
    assert bw.load(tmp_path / "m.bw").info()["settings"]["C"] == 0.5


@pytest.mark.parametrize("scale", [1e3, 1e-3])
def test_pruning_that_leaves_no_weights_is_told(problem: Any, scale: Any) -> None:
    X, Y = problem
    with pytest.warns(
        bw.BeamwoodWarning, match=r"nodes without a weight.*; expected few.*prune=0\.1.*unit_rows"
    ) as told:
        train(X * scale, Y, **SMALL)
    assert [warning.filename for warning in told] == [__file__]
    for cure in ({"unit_rows": True}, {"prune": 0}):
        train(X * scale, Y, **SMALL, **cure)


@pytest.fixture
def forests_made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every set of native forests that is made during a test."""
    made = []
    make = Forests.__init__

    def noted(self: Any, parts: Any) -> None:
        made.append(parts)
        make(self, parts)

    monkeypatch.setattr(Forests, "__init__", noted)
    return made


def test_a_training_puts_one_model_together(problem: Any, forests_made: Any) -> None:
    X, Y = problem
    train(X, Y, "balanced", progress=False, names=[f"label {i}" for i in range(30)])
    assert len(forests_made) == 1
    bw.train_text(["red hat", "blue hat"] * 4, [["red"], ["blue"]] * 4, trees=2, progress=False)
    assert len(forests_made) == 2


def test_explaining_with_a_beam_makes_the_single_trees_once(problem: Any, forests_made: Any) -> None:
    X, Y = problem
    model = train(X, Y, **SMALL, trees=3)
    del forests_made[:]
    labels, _ = model.topk(X[:5], beam=30)
    for row in range(5):
        model.explain(X[[row]], int(labels[row, 0]), beam=30)
    assert len(forests_made) == 3


def test_names_that_do_not_fit_are_refused_before_any_work(problem: Any) -> None:
    X, Y = problem
    with pytest.raises(DataError, match="names"):
        train(X, Y, names=["one"], progress=Forbidden())


class Forbidden:
    """Progress that must not be asked for."""

    def stage(self, name: Any, rows: Any) -> None:
        raise AssertionError(f"{name} was begun")


def test_the_report_says_what_happened(problem: Any) -> None:
    X, Y = problem
    report = train(X, Y, **SMALL, seed=5, threads=2, trees=2).report
    assert (report.seed, report.threads, report.rows, report.features, report.labels) == (5, 2, 300, 40, 30)
    stages = [name for name, _ in report.seconds]
    assert stages[:3] == ["label vectors", "tree 1/2", "tree 2/2"]
    assert "weights 2/2, layer 1/3" in stages
    assert [len(layers) for layers in report.nonzeros] == [3, 3]
    assert report.peak_bytes > 0
    assert report.total_seconds > 0
    json.dumps(report.to_dict())


def test_label_features_shape_the_tree(problem: Any) -> None:
    X, Y = problem
    features = sp.identity(30, format="csr")[:, np.arange(30) // 15 * 15]
    model = train(X, Y, **SMALL, label_features=features, vectors="features")
    assert precision_at_1(model, X, Y) > 0.4
    assert train(X, Y, **SMALL, label_features=features).info()["settings"]["vectors"] == "pifa+features"


# --- long work


def test_lines_say_stage_share_speed_and_time_left() -> None:
    now = iter([0.0, 1.0, 10.0, 20.0])
    out = io.StringIO()
    with Lines(out, every=5.0, clock=lambda: next(now)).stage("weights", 1000) as update:
        update(0.1)
        update(0.5)
    assert out.getvalue() == ("weights:  50%, 50 rows/s, 0:10 left\nweights: done in 20.0 s, 50 rows/s\n")


def test_bars_draw_without_a_terminal() -> None:
    out = io.StringIO()
    with Bars(out).stage("weights", 1000) as update:
        update(0.5)
    assert "weights" in out.getvalue()


def test_progress_lines_go_to_stderr_and_can_be_switched_off(problem: Any, capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = problem
    train(X, Y, **SMALL)
    assert capsys.readouterr().err == ""
    train(X, Y, **{**SMALL, "progress": True})
    err = capsys.readouterr().err
    assert "label vectors: done in" in err
    ended = [line for line in err.splitlines() if line.startswith(("tree", "model"))]
    assert ended
    assert not any("rows/s" in line for line in ended), "they go through labels and weights, not through rows"
    assert "weights, layer 1/3: done in" in err


INTERRUPTED = """
import sys, numpy as np, scipy.sparse as sp
from beamwood.training.train import train_layers
from beamwood.training.settings import settings_for
rng = np.random.default_rng(0)
X = sp.random(20000, 2000, density=0.05, random_state=rng, dtype=np.float32, format="csr")
label = rng.integers(0, 64, 20000)
Y = sp.csr_matrix((np.ones(20000), (np.arange(20000), label)), shape=(20000, 64))
tree = [(np.zeros(64, dtype=np.int64), None)]
print("go", flush=True)
try:
    train_layers(X, Y, tree, settings_for("fast", eps=1e-12, max_iter=10**9, C=1e6), threads=int(sys.argv[1]))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_within_a_second(threads: int) -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(threads)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "go\n"
        time.sleep(1.5)
        said, spent = interrupted(run)
        run.kill()
    assert said == "stopped\n"
    assert spent < 1.0 * threads
