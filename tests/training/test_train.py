"""Training from (X, Y) to a model: same file, bad input, negatives, progress, memory, Ctrl-C."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import even_tree, random_problem, scores
from support.processes import interrupted

import beamwood as bw
from beamwood.engine import Forests
from beamwood.errors import DataError, SettingsError
from beamwood.training.problem import checked_problem
from beamwood.training.progress import Bars, Lines
from beamwood.training.settings import settings_for
from beamwood.training.train import train, train_layers
from beamwood.training.weights import Columns, ancestors, cost_of_mistakes

SMALL = {"preset": "fast", "branching": 4, "max_leaf": 4, "progress": False}


def precision_at_1(model, X, Y):
    found, _ = model.topk(X, k=1)
    return float(np.asarray(Y[np.arange(X.shape[0]), found[:, 0]]).mean())


@pytest.fixture(scope="module")
def problem():
    return random_problem(300, 40, 30, seed=0)


# --- what comes out


@pytest.mark.parametrize("tree", ["balanced", "unbalanced", "random", "huffman"])
@pytest.mark.parametrize("loss", ["squared-hinge", "hinge", "logistic"])
def test_ranks_its_own_rows_well(problem, tree, loss):
    X, Y = problem
    activation = "sigmoid" if loss == "logistic" else "hinge-3"
    model = train(X, Y, **SMALL, tree=tree, loss=loss, activation=activation, C=10.0)
    assert precision_at_1(model, X, Y) > 0.7


@pytest.mark.parametrize("tree", ["unbalanced", "huffman"])
@pytest.mark.parametrize("negatives", ["man", "tfn+man"])
def test_matcher_aware_negatives_where_leaves_lie_at_different_depths(problem, tree, negatives):
    X, Y = problem
    model = train(X, Y, **{**SMALL, "tree": tree, "branching": 3, "max_leaf": 2, "negatives": negatives, "beam": 3})
    upper = [layer for layer in model.layers()[:-1] if layer.label is not None]
    assert upper, "this tree was to have leaves above its last layer"
    assert precision_at_1(model, X, Y) > 0.5


@pytest.mark.parametrize("settings", [{}, {"trees": 3}, {"tree": "unbalanced"}, {"negatives": "tfn+man"}])
def test_same_file_for_any_thread_count(problem, settings, tmp_path):
    X, Y = problem
    for threads in (1, 2):
        train(X, Y, **SMALL, **settings, seed=3, threads=threads).save(tmp_path / f"{threads}.bw")
    assert (tmp_path / "1.bw").read_bytes() == (tmp_path / "2.bw").read_bytes()


def test_another_seed_gives_another_tree(problem):
    X, Y = problem
    a, b = (train(X, Y, **SMALL, seed=seed).layers() for seed in (0, 1))
    assert any(not np.array_equal(x.label, y.label) for x, y in zip(a, b, strict=True))


def test_an_ensemble_is_the_mean_of_its_trees(problem):
    X, Y = problem
    model = train(X, Y, **SMALL, trees=3)
    total = np.zeros((300, 30), np.float32)
    for tree in range(3):
        member = bw.Model.from_layers(model.layers(tree), activation="hinge-3")
        total += member.predict(X, k=30, beam=30).toarray()
    mean = model.predict(X, k=30, beam=30).toarray()
    assert np.array_equal(mean, total / np.float32(3))


def test_unit_rows_makes_the_length_of_rows_and_queries_count_for_nothing(problem):
    X, Y = problem
    stretched = sp.csr_matrix(sp.diags(np.random.default_rng(0).uniform(0.1, 20, X.shape[0])) @ X, dtype=np.float32)
    plain, unit = (train(A, Y, "balanced", trees=1, progress=False) for A in (X, stretched))
    assert plain.info()["unit_rows"]
    assert unit.info()["unit_rows"]
    for queries in (X, stretched):
        assert (plain.topk(queries, k=3)[0] == unit.topk(queries, k=3)[0]).mean() > 0.98  # but for rounding
    assert not train(X, Y, "fast", progress=False).info()["unit_rows"]


def test_rows_of_length_one_are_taken_as_they_are(problem):
    X, Y = problem
    unit = checked_problem(X, Y).with_unit_rows()
    assert np.allclose(np.sqrt(unit.X.multiply(unit.X).sum(axis=1)), 1, atol=1e-6)
    assert unit.with_unit_rows() is unit
    assert not train(unit.X, Y, "balanced", trees=1, progress=False).info()["unit_rows"]


def test_automatic_C_falls_with_the_rows_that_labels_have(problem):
    X, Y = problem
    few = settings_for("fast", C="auto")
    assert cost_of_mistakes(checked_problem(X[:40], sp.identity(40, format="csr")), few) == 1.0
    rows = Y.nnz / np.unique(Y.indices).size
    fallen = cost_of_mistakes(checked_problem(X, Y), few)
    assert fallen == pytest.approx((4 / rows) ** 0.25)
    assert fallen < 1
    same = [bw.train(X, Y, "fast", C=C, progress=False).topk(X[:50]) for C in ("auto", fallen)]
    assert (same[0][1] == same[1][1]).all()


def test_settings_are_saved_with_the_model(problem, tmp_path):
    X, Y = problem
    train(X, Y, **SMALL, C=0.5).save(tmp_path / "m.bw")
    assert bw.load(tmp_path / "m.bw").info()["settings"]["C"] == 0.5


@pytest.mark.parametrize("scale", [1e3, 1e-3])
def test_pruning_that_leaves_no_weights_is_told(problem, scale):
    X, Y = problem
    with pytest.warns(
        bw.BeamwoodWarning, match=r"nodes without a weight.*; expected few.*prune=0\.1.*unit_rows"
    ) as told:
        train(X * scale, Y, **SMALL)
    assert [warning.filename for warning in told] == [__file__]
    for cure in ({"unit_rows": True}, {"prune": 0}):
        train(X * scale, Y, **SMALL, **cure)


@pytest.fixture
def forests_made(monkeypatch):
    """Every set of native forests that is made during a test."""
    made = []
    make = Forests.__init__

    def noted(self, parts):
        made.append(parts)
        make(self, parts)

    monkeypatch.setattr(Forests, "__init__", noted)
    return made


def test_a_training_puts_one_model_together(problem, forests_made):
    X, Y = problem
    train(X, Y, "balanced", progress=False, names=[f"label {i}" for i in range(30)])
    assert len(forests_made) == 1
    bw.train_text(["red hat", "blue hat"] * 4, [["red"], ["blue"]] * 4, trees=2, progress=False)
    assert len(forests_made) == 2


def test_explaining_with_a_beam_makes_the_single_trees_once(problem, forests_made):
    X, Y = problem
    model = train(X, Y, **SMALL, trees=3)
    del forests_made[:]
    labels, _ = model.topk(X[:5], beam=30)
    for row in range(5):
        model.explain(X[[row]], int(labels[row, 0]), beam=30)
    assert len(forests_made) == 3


def test_names_that_do_not_fit_are_refused_before_any_work(problem):
    X, Y = problem
    with pytest.raises(DataError, match="names"):
        train(X, Y, names=["one"], progress=Forbidden())


class Forbidden:
    """Progress that must not be asked for."""

    def stage(self, name, rows):
        raise AssertionError(f"{name} was begun")


def test_the_report_says_what_happened(problem):
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


def test_label_features_shape_the_tree(problem):
    X, Y = problem
    features = sp.identity(30, format="csr")[:, np.arange(30) // 15 * 15]
    model = train(X, Y, **SMALL, label_features=features, vectors="features")
    assert precision_at_1(model, X, Y) > 0.4
    assert train(X, Y, **SMALL, label_features=features).info()["settings"]["vectors"] == "pifa+features"


# --- rows that reach a parent


def test_every_row_reaches_a_parent_that_has_one_of_its_labels():
    Y = sp.csr_matrix(np.array([[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 2]], dtype=np.float32))
    columns = Columns.below(Y, np.array([0, 0, 1, 1]), 2)
    assert columns.row.tolist() == [0, 1, 0, 1, 2]
    assert columns.start.tolist() == [0, 2, 5]
    assert columns.value.tolist() == [1, 1, 1, 1, 2]


def test_a_row_with_two_labels_below_a_node_counts_the_larger():
    Y = sp.csr_matrix(np.array([[1, 3, 0], [2, 0, 5]], dtype=np.float32))
    assert Columns.below(Y, np.array([0, 0, 1]), 2).value.tolist() == [3, 2, 5]


def test_ancestors_of_leaves_at_different_depths():
    shape = [(np.array([0, 0, 0]), np.array([2, -1, -1])), (np.array([1, 2, 2]), np.array([0, 1, 3]))]
    top, last = ancestors(shape, 4)
    assert top.tolist() == [1, 2, 0, 2]
    assert last.tolist() == [0, 1, -1, 2]


def test_union_of_columns_holds_each_row_once():
    a = Columns(np.array([0, 2, 2]), np.array([0, 2], np.int32), np.empty(0, np.float32), 3)
    b = Columns(np.array([0, 2, 3]), np.array([1, 2, 0], np.int32), np.empty(0, np.float32), 3)
    assert (a | b).row.tolist() == [0, 1, 2, 0]
    assert (a | b).start.tolist() == [0, 3, 4]


def test_matcher_aware_negatives_are_rows_whose_beam_reaches_the_parent(problem):
    """A matcher that sends every row everywhere makes every node learn from all rows."""
    X, Y = problem
    tree = even_tree(30, 6)
    everywhere = train_layers(
        X, Y, tree, settings_for("fast", negatives="man"), match=lambda t: np.tile(np.arange(5), (300, 1))
    )
    flat = train_layers(X, Y, even_tree(30, 30), settings_for("fast", eps=1e-9, max_iter=10000))
    assert np.abs(everywhere[-1].weights - flat[0].weights).max() < 0.3
    nowhere = train_layers(X, Y, tree, settings_for("fast", negatives="man"), match=lambda t: np.full((300, 5), -1))
    assert (nowhere[-1].bias >= 0).all()  # only positives were seen


def test_matcher_aware_negatives_through_the_engine(problem):
    X, Y = problem
    for negatives in ("man", "tfn+man"):
        assert precision_at_1(train(X, Y, **SMALL, negatives=negatives, C=10.0), X, Y) > 0.7


def test_user_negatives_are_learned_from(problem):
    X, Y = problem
    tree = even_tree(30, 6)
    all_labels = sp.csr_matrix(np.ones(Y.shape))
    settings = settings_for("fast", negatives="user", eps=1e-9, max_iter=10000)
    wide = train_layers(X, Y, tree, settings, negatives_matrix=all_labels)
    flat = train_layers(X, Y, even_tree(30, 30), settings_for("fast", eps=1e-9, max_iter=10000))
    assert np.abs(wide[-1].weights - flat[0].weights).max() < 1e-5


# --- bad input: trained or refused with a clear error, never a crash


def both(rows=6, features=5, labels=4):
    return random_problem(rows, features, labels, seed=1, density=0.6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X, sp.csr_matrix(Y.shape)), "Y is empty"),
        (lambda X, Y: (X[:0], Y[:0]), "X has no rows"),
        (lambda X, Y: (X[:3], Y), "X has 3 rows and Y has 6"),
        (lambda X, Y: (X, -Y), "expected 0 or more"),
        (lambda X, Y: (sp.csr_matrix((6, 0)), Y), "X has no columns"),
        (lambda X, Y: (X, sp.csr_matrix((6, 0))), "Y has no columns"),
        (lambda X, Y: (X * np.nan, Y), "finite"),
        (lambda X, Y: (X * np.inf, Y), "finite"),
        (lambda X, Y: (X.astype(np.float64) * 1e39, Y), "float32 can hold"),
        (lambda X, Y: (X, Y * np.nan), "finite"),
        (lambda X, Y: (X.astype(np.complex64), Y), "dtype complex64"),
        (lambda X, Y: (np.array([["a"]]), Y), "texts; expected"),
        (lambda X, Y: (X.toarray()[0], Y), "1 dimension; expected 2"),
    ],
)
def test_data_that_cannot_be_trained_on_is_refused(change, message):
    with pytest.raises(DataError, match=message):
        train(*change(*both()), **SMALL)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row_weights": [1.0]}, "row_weights has shape"),
        ({"row_weights": [-1.0] * 6}, "row_weights"),
        ({"row_weights": [0.0] * 6}, "0 for every row"),
        ({"row_weights": ["a"] * 6}, "dtype"),
        ({"label_features": np.ones((3, 2))}, "label_features has 3 rows"),
        ({"negatives_matrix": np.ones((6, 3)), "negatives": "user"}, "negatives_matrix has the shape"),
    ],
)
def test_extras_that_do_not_fit_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        train(*both(), **SMALL, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threads": 0}, "threads is 0"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"seed": -1}, "seed is -1; expected"),
        ({"seed": "x"}, "seed is 'x'; expected"),
        ({"negatives": "user"}, "Pass negatives_matrix"),
        ({"negatives_matrix": np.ones((6, 4))}, "set negatives='user'"),
        ({"vectors": "features"}, "label_features"),
        ({"label_features": np.ones((4, 2)), "vectors": "pifa"}, "label_features"),
        ({"tree": "given"}, "parent list"),
        ({"branchin": 3}, "did you mean 'branching'"),
        ({"max_memory": 100}, "this training would need about"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change, message):
    with pytest.raises(SettingsError, match=message):
        train(*both(), **{**SMALL, **change})


def finite_answers(model, X):
    found, score = model.topk(X, k=3)
    assert not np.isnan(score).any()
    return found


def test_one_label():
    X, Y = both(labels=1)
    assert finite_answers(train(X, Y, **SMALL), X)[:, 0].tolist() == [0] * 6


def test_fewer_labels_than_branching():
    X, Y = both(labels=3)
    assert len(train(X, Y, preset="fast", progress=False).layers()) == 1


def test_one_row():
    X, Y = both(rows=1, labels=2)
    finite_answers(train(X, Y, **SMALL), X)


def test_rows_without_labels_are_left_out_with_a_warning():
    X, Y = both()
    Y = sp.vstack([Y, sp.csr_matrix((2, 4))])
    X2 = sp.vstack([X, X[:2]])
    with pytest.warns(UserWarning, match="2 rows have no label"):
        model = train(X2, Y, **SMALL)
    same = train(X, Y[:6], **SMALL)
    for a, b in zip(model.layers(), same.layers(), strict=True):
        assert np.array_equal(a.weights.toarray(), b.weights.toarray())


def test_labels_without_rows_rank_last_with_one_warning(tmp_path):
    X, Y = random_problem(60, 20, 12, seed=2)
    Y = sp.csr_matrix(sp.hstack([Y[:, :5], sp.csr_matrix((60, 3)), Y[:, 5:]]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = train(X, Y, **SMALL)
    assert [str(w.message) for w in caught if "no row" in str(w.message)] == [
        "3 of 15 labels have no row: they stay and rank last"
    ]
    assert model.report.labels_without_rows == 3
    found, score = model.topk(X, k=15, beam=15)
    for row, row_score in zip(found, score, strict=True):
        assert sorted(row.tolist()) == list(range(15))
        assert (row_score[np.isin(row, [5, 6, 7])] == 0).all()
        assert (row_score[:-3] >= row_score[-1]).all()


def test_a_cluster_of_labels_without_rows():
    X, Y = both(labels=2)
    Y = sp.csr_matrix(sp.hstack([Y, sp.csr_matrix((6, 40))]))
    with pytest.warns(UserWarning, match="40 of 42 labels"):
        finite_answers(train(X, Y, **SMALL), X)


def test_all_zero_rows_and_duplicate_rows():
    X, Y = both()
    X2 = sp.vstack([X, sp.csr_matrix((2, 5)), X])
    finite_answers(train(X2, sp.vstack([Y, Y[:2], Y]), **SMALL), X2)


def test_all_rows_zero():
    _, Y = both()
    X = sp.csr_matrix((6, 5), dtype=np.float32)
    finite_answers(train(X, Y, **SMALL), X)


def test_negative_features_are_fine():
    X, Y = both()
    finite_answers(train(-X, Y, **SMALL), -X)


@pytest.mark.parametrize("make", [sp.coo_matrix, sp.csc_matrix, sp.csr_array, lambda m: m.toarray()])
def test_any_form_of_matrix_gives_the_same_model(make, tmp_path):
    X, Y = both()
    train(X, Y, **SMALL).save(tmp_path / "a.bw")
    train(make(X), make(Y), **SMALL).save(tmp_path / "b.bw")
    assert (tmp_path / "a.bw").read_bytes() == (tmp_path / "b.bw").read_bytes()


@pytest.mark.parametrize("dtype", [np.float64, np.int64, bool])
def test_labels_of_any_real_type(dtype):
    X, Y = both()
    finite_answers(train(X, Y.astype(dtype), **SMALL), X)


def test_duplicate_entries_and_zeros_are_merged_without_touching_the_callers():
    X = sp.csr_matrix((np.float32([1, 2, 0]), np.int32([1, 1, 0]), np.int32([0, 3])), shape=(1, 2))
    before = X.data.copy()
    checked = checked_problem(X, sp.csr_matrix([[1.0]]))
    assert checked.X.toarray().tolist() == [[0, 3]]
    assert checked.X.nnz == 1
    assert np.array_equal(X.data, before)
    assert X.nnz == 3


def test_rows_of_weight_zero_do_not_count(problem):
    X, Y = problem
    weights = np.ones(300)
    weights[200:] = 0
    tree = even_tree(30, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a = train_layers(X, Y, tree, row_weights=weights)
        b = train_layers(X[:200], Y[:200], tree)
    assert np.array_equal(scores(a, X), scores(b, X))


def test_an_own_tree(problem):
    X, Y = problem
    parents = [*(30 + label // 10 for label in range(30)), 33, 33, 33, -1]
    model = train(X, Y, **{**SMALL, "tree": parents})
    assert [len(layer.parent) for layer in model.layers()] == [3, 30]
    assert model.info()["settings"]["tree"] == "given"


# --- long work


def test_lines_say_stage_share_speed_and_time_left():
    now = iter([0.0, 1.0, 10.0, 20.0])
    out = io.StringIO()
    with Lines(out, every=5.0, clock=lambda: next(now)).stage("weights", 1000) as update:
        update(0.1)
        update(0.5)
    assert out.getvalue() == ("weights:  50%, 50 rows/s, 0:10 left\nweights: done in 20.0 s, 50 rows/s\n")


def test_bars_draw_without_a_terminal():
    out = io.StringIO()
    with Bars(out).stage("weights", 1000) as update:
        update(0.5)
    assert "weights" in out.getvalue()


def test_progress_lines_go_to_stderr_and_can_be_switched_off(problem, capsys):
    X, Y = problem
    train(X, Y, **SMALL)
    assert capsys.readouterr().err == ""
    train(X, Y, **{**SMALL, "progress": True})
    err = capsys.readouterr().err
    assert "label vectors: done in" in err
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
def test_ctrl_c_stops_within_a_second(threads):
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(threads)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "go\n"
        time.sleep(1.5)
        said, spent = interrupted(run)
        run.kill()
    assert said == "stopped\n"
    assert spent < 1.0 * threads
