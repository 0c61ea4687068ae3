"""The engine beyond the random laws: extremes of width and size, statistics, choices, exact search."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import laws
import numpy as np
import pytest
import scipy.sparse as sp
from support.models import large_model, large_queries, small_model, small_queries, sparse
from support.strategies import Case

import beamwood as bw
from beamwood import reference
from beamwood.engine import LAYOUTS
from beamwood.storage.activations import Activation


def wide_case(width: int, seed: int = 0) -> Case:
    """Two inner nodes above, one of them with `width` children."""
    rng = np.random.default_rng(seed)
    top = bw.Layer(sparse(30, 2, 0.5, seed), np.zeros(2, np.int64))
    parent = np.concatenate([np.zeros(width, np.int64), np.ones(3, np.int64)])
    below = bw.Layer(sparse(30, width + 3, 0.02, seed + 1), parent, label=rng.permutation(width + 3))
    return Case(f"width {width}", [[top, below]], "sigmoid", None, sparse(3, 30, 0.5, seed + 2), [(10, 1), (width, 2)])


@pytest.mark.parametrize("width", [1, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 34, 63, 64, 65, 256, 5000])
def test_same_bits_at_every_edge_of_a_chunks_width(width: int, tmp_path: Path) -> None:
    laws.same_bits_as_the_reference(wide_case(width), tmp_path)


def test_same_bits_in_the_widest_chunk(tmp_path: Path) -> None:
    case = wide_case(65_535)
    laws.same_bits_as_the_reference(case, tmp_path, [{}, {"isa": "scalar"}, {"layout": "column", "matcher": "hash"}])
    laws.layers_come_back_bit_for_bit(case, tmp_path)


def long_case(widths: tuple[int, ...], features: int, density: float) -> Case:
    """Layers of these widths with some nodes that have a weight for every feature, and queries of many words."""
    rng = np.random.default_rng(sum(widths))
    layers = []
    for above, nodes in pairwise((1, *widths)):
        parent = np.arange(nodes) * above // nodes
        full = (parent == 0) | (parent == above - 1) if nodes == widths[-1] else np.ones(nodes, bool)
        size = np.where(full & (np.arange(nodes) % 5 == 0), features, 40)
        feature = np.concatenate([np.sort(rng.choice(features, n, replace=False)) for n in size])
        weight = rng.normal(size=len(feature)).astype(np.float32)
        columns = sp.csc_array((weight, feature, np.concatenate([[0], np.cumsum(size)])), shape=(features, nodes))
        layers.append(bw.Layer(columns, parent))
    X = sp.random_array((4, features), density=density, format="csr", dtype=np.float32, rng=rng)
    return Case(f"{features} features, widths {widths}", [layers], "sigmoid", None, X, [(10, 2), (20, widths[-2])])


@pytest.mark.parametrize("widths", [(2, 62), (7, 70), (12, 60), (30, 90), (40, 80), (2, 4, 8, 16, 48)])
@pytest.mark.parametrize(("features", "density"), [(70_000, 0.01), (70_000, 0.002), (3_000, 0.3)])
def test_same_bits_with_many_rows(features: int, density: float, widths: tuple[int, ...], tmp_path: Path) -> None:
    """Narrow chunks of each form, a wide one and a bundle, above chunks of several pages or one; long lists of rows."""
    case = long_case(widths, features, density)
    sections = case.model().info()["bytes_by_section"]
    assert sum(name.endswith("thread_start") for name in sections) == 2
    variants: list[laws.Engine] = [{}, {"isa": "scalar"}, {"bound": False}, {"layout": "chunk"}, {"layout": "column"}]
    laws.same_bits_as_the_reference(case, tmp_path, variants)
    laws.layers_come_back_bit_for_bit(case, tmp_path)
    labels, scores = case.model().topk(case.X, 5, exact=True)
    laws.check_same((labels, scores), case.model().using(layout="chunk").topk(case.X, 5, exact=True), "exact")


def test_a_wider_chunk_is_refused_with_advice() -> None:
    weights = sp.csc_array((3, 65_536), dtype=np.float32)
    with pytest.raises(bw.DataError, match=r"65,536 children; expected at most 65,535. Put a layer in between"):
        bw.Model.from_layers([bw.Layer(weights, np.zeros(65_536, np.int64))])


@pytest.mark.parametrize(
    ("layout", "rows"),
    [("cascade", 70_000), ("chunk", 40_000), ("column", 40_000)],  # slices are 65,536 queries in a cascade, else 16,384
)
def test_a_batch_of_many_slices_gives_each_row_its_own_answer(layout: str, rows: int) -> None:
    model = small_model().using(layout=layout)
    X = small_queries(50)
    expected = small_model().topk(X, 5, 3)
    pick = np.random.default_rng(0).integers(0, 50, rows)
    for threads in (1, 2):
        labels, scores, stats = model.topk(X[pick], 5, 3, threads, stats=True)
        assert stats.layout == layout
        laws.check_same((labels, scores), (expected[0][pick], expected[1][pick]), threads)


@pytest.mark.parametrize("layout", ["chunk", "column"])
def test_a_slice_whose_queries_all_meet_one_wide_chunk_is_cut_smaller(layout: str) -> None:
    """300 nodes, one of them with 65,000 children: slices are sized by the average, so this one must be cut."""
    wide, thin = 65_000, 299
    parent = np.concatenate([np.zeros(wide, int), 1 + np.arange(thin)])
    top = sp.csc_array((np.array([9], np.float32), ([0], [0])), shape=(4, 1 + thin))  # feature 0 speaks for node 0
    values = np.random.default_rng(0).normal(size=len(parent)).astype(np.float32)
    leaves = sp.csc_array((values, (np.arange(len(parent)) % 3 + 1, np.arange(len(parent)))), shape=(4, len(parent)))
    layers = [bw.Layer(top, np.zeros(1 + thin, int)), bw.Layer(leaves, parent)]
    model = bw.Model.from_layers(layers, activation="sigmoid")
    queries = sp.csr_array(np.array([[9, 1, 0, 0], [9, 0, 1, 0], [9, 0, 0, 1]], np.float32))
    pick = np.arange(1_100) % 3  # 1,100 x 65,000 scores are more than a slice may hold
    expected = model.topk(queries, 5, beam=1)
    found = model.using(layout=layout, matcher="binary").topk(queries[pick], 5, beam=1)
    laws.check_same(found, (expected[0][pick], expected[1][pick]), layout)


def test_no_queries_give_no_answers() -> None:
    labels, scores = small_model().topk(sp.csr_array((0, 50), dtype=np.float32), 4)
    assert labels.shape == scores.shape == (0, 4)
    assert small_model().predict(sp.csr_array((0, 50), dtype=np.float32)).shape == (0, 40)


def test_a_scratch_that_served_a_large_call_serves_a_small_one() -> None:
    model = small_model()
    expected = model.topk(small_queries(3), 40, 40)
    for matcher in ("march", "binary", "hash", "dense", "auto"):
        one = model.using(matcher=matcher)
        one.topk(small_queries(500), 40, 40, 2)
        laws.check_same(one.topk(small_queries(500)[:0], 40, 40), (expected[0][:0], expected[1][:0]))
        laws.check_same(one.topk(small_queries(3), 40, 40), expected, matcher)


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
def test_threads_beyond_the_work_and_the_cores_are_fine(threads: int) -> None:
    model = small_model()
    laws.check_same(model.topk(small_queries(300), 5, 5, threads), model.topk(small_queries(300), 5, 5), threads)


@pytest.mark.parametrize("layout", ["chunk", "column"])  # a cascade has no blocks to sort
@pytest.mark.parametrize("matcher", ["march", "binary", "hash", "dense"])
def test_the_sort_of_blocks_changes_no_bit(layout: str, matcher: str) -> None:
    model = small_model().using(layout=layout, matcher=matcher)
    X = small_queries(300)
    assert model.topk(X, stats=True)[2].layout == layout
    for threads in (1, 2):
        labels, scores, _ = model.searcher.topk(X, 5, 5, threads, False, sort_blocks=False)
        laws.check_same((labels, scores), small_model().topk(X, 5, 5), threads)


def test_statistics_say_what_was_done_and_chosen() -> None:
    model, X = large_model(), large_queries(200)
    *_, stats = model.topk(X, stats=True)
    assert (stats.layout, stats.matcher, stats.choices) == ("cascade", "auto", ())
    assert 200 < stats.blocks <= 200 * (1 + 10)
    *_, stats = model.using(layout="chunk").topk(X, stats=True)
    assert stats.nanoseconds > 0
    assert 200 < stats.blocks <= 200 * (1 + 10)
    assert stats.rows > 0
    assert stats.bytes > 0
    assert [(choice.tree, choice.layer) for choice in stats.choices] == [(0, 0), (0, 1)]
    assert all(choice.matcher in ("march", "binary", "dense") and choice.why for choice in stats.choices)
    *_, named = model.using(matcher="binary", layout="column", isa="scalar").topk(X, stats=True)
    assert (named.matcher, named.layout, named.isa) == ("binary", "column", "scalar")
    assert named.choices == ()


def test_a_matcher_without_a_layout_means_chunks() -> None:
    model = small_model()
    layouts = {
        name: model.using(matcher=name).topk(small_queries(), stats=True)[2].layout
        for name in ("auto", "march", "binary", "hash", "dense")
    }
    assert layouts == {"auto": "cascade", **dict.fromkeys(("march", "binary", "hash", "dense"), "chunk")}


def test_engines_of_a_model_share_what_was_laid_out_anew() -> None:
    model = small_model()
    first, second = model.using(matcher="binary"), model.using(matcher="march", layout="chunk", isa="scalar")
    assert first.searcher.forest is second.searcher.forest
    assert first.using(layout="column").searcher.forest is not first.searcher.forest
    assert model.using(layout="cascade").searcher.forest is model.searcher.forest


def test_exact_search_finds_what_a_narrow_beam_misses() -> None:
    model, X = large_model(), large_queries(20)
    exact = model.topk(X, 10, exact=True)
    laws.check_same(exact, model.topk(X, 10, beam=128))
    assert not np.array_equal(exact[0], model.topk(X, 10, beam=1)[0]), "the case is too easy to show anything"


def test_exact_search_of_several_trees_finds_what_narrow_beams_miss() -> None:
    """Also with a filter; the reference with a beam that drops nothing says what is right."""
    rng = np.random.default_rng(5)
    Y = sp.csr_array(np.eye(60, dtype=np.float32)[rng.integers(0, 60, 400)])
    X = sp.csr_array(Y @ sp.random_array((60, 90), density=0.1, rng=rng, dtype=np.float32))
    model = bw.train(X, Y, trees=3, branching=4, max_leaf=3, progress=False)
    trees = [model.layers(tree) for tree in range(3)]
    activation = Activation.parse("hinge-3", None)
    allowed = np.arange(60) % 3 > 0
    for mask in (None, allowed):
        made = None if mask is None else model.filter(allow=mask)
        expected = reference.topk(trees, X[:20], activation, 7, 1000, mask, unit_rows=bool(model.info()["unit_rows"]))
        for layout in LAYOUTS:
            for threads in (1, 2):
                found = model.using(layout=layout).topk(X[:20], 7, 1, threads, exact=True, filter=made)
                laws.check_same(found, expected, layout, threads)
    narrow = model.topk(X[:20], 7, beam=1)
    assert not np.array_equal(model.topk(X[:20], 7, exact=True)[0], narrow[0]), "the case is too easy to show anything"


def test_a_query_may_be_any_real_matrix() -> None:
    model, X = small_model(), small_queries()
    expected = model.topk(X)
    same: list[Any] = [
        X.toarray(),
        X.toarray().tolist(),
        X.tocsc(),
        X.tocoo(),
        X.tolil(),
        X.astype(np.float64),
    ]
    same += [sp.csr_matrix(X), X.toarray().astype(">f4"), X.todok(), sp.csr_array(X.astype(np.longdouble))]
    for one in same:
        laws.check_same(model.topk(one), expected, type(one))
    whole = (X * 0 + (X != 0) * 3).astype(np.float32)
    for kind in (np.int8, np.uint16, np.int64, np.bool_):
        laws.check_same(model.topk(whole.astype(kind)), model.topk((whole.astype(kind)).astype(np.float32)), kind)
    half = X.toarray().astype(np.float16)
    laws.check_same(model.topk(half), model.topk(half.astype(np.float32)), "float16")


def test_one_row_may_have_one_dimension() -> None:
    model, X = small_model(), small_queries()
    expected = model.topk(X[:1])
    one = X[:1].toarray()[0]
    for row in (one, one.tolist(), sp.csr_array(one), sp.coo_array(one)):
        laws.check_same(model.topk(row), expected, type(row))


def test_arrays_with_strides_and_read_only_arrays_are_fine() -> None:
    model, X = small_model(), small_queries()
    expected = model.topk(X)
    strided = sp.csr_array((np.repeat(X.data, 2)[::2], np.repeat(X.indices, 2)[::2], X.indptr), shape=X.shape)
    laws.check_same(model.topk(strided), expected, "strides")
    frozen = X.copy()
    for array in (frozen.data, frozen.indices, frozen.indptr):
        array.flags.writeable = False
    laws.check_same(model.topk(frozen), expected, "read-only")


@pytest.mark.filterwarnings("ignore:.*array has non-integer dtype")
def test_ids_of_any_integer_type_are_fine() -> None:
    model, X = small_model(), small_queries()
    expected = model.topk(X)
    for ids in (np.int64, np.uint32, np.int16, ">i4"):
        odd = X.copy()
        odd.indices, odd.indptr = odd.indices.astype(ids), odd.indptr.astype(ids)
        laws.check_same(model.topk(odd), expected, ids)


def test_an_engine_is_checked_when_it_is_chosen() -> None:
    model = small_model()
    for wrong in ({"matcher": "hsah"}, {"layout": "rows"}, {"isa": "sse9"}):
        with pytest.raises(bw.SettingsError, match=r"is not known. Use 'auto', "):
            model.using(**wrong)


def test_every_engine_gives_a_mean_that_vanishes_the_one_zero(tmp_path: Path) -> None:
    tiny = np.finfo(np.float32).smallest_subnormal
    given = [np.array([[-tiny, 0, -tiny, tiny]], np.float32), np.zeros((1, 4), np.float32)]
    trees = [[bw.Layer(sp.csc_array(weights), np.zeros(4, int))] for weights in given]
    case = Case("a mean of -0", trees, "identity", None, sp.csr_array(np.ones((2, 1), np.float32)), [(4, 1), (2, 2)])
    laws.same_bits_as_the_reference(case, tmp_path)
    laws.one_order(case)


def certain(*columns: list[float]) -> Any:
    """Weights from one list a node."""
    return sp.csc_array(np.array(columns, np.float32).T)


def test_the_bound_is_off_where_a_discount_lets_scores_rise() -> None:
    """A node of the beam may score below the label that was found first and still lead to a better one.

    Log scores are 0 and -1 in the beam. The first node's label adds -0.8: -0.8. The second node hands down only half of
    its -1, and its label adds nothing: -0.5. A bound that took -1 for the best to come would leave it out.
    """
    top = bw.Layer(certain([1.0], [0.0]), np.zeros(2, np.int64))
    last = bw.Layer(certain([0.2], [1.0]), np.array([0, 1]))
    how: dict[str, Any] = {"activation": "log-hinge-1", "path": "log-exp"}
    X = sp.csr_array(np.ones((1, 1), np.float32))
    for layout in LAYOUTS:
        model = bw.Model.from_layers([top, last], **how, discount=0.5).using(layout=layout)
        labels, scores = model.topk(X, k=1, beam=2)
        assert labels.tolist() == [[1]], layout
        assert scores[0, 0] == pytest.approx(np.exp(-0.5))
        plain = bw.Model.from_layers([top, last], **how).using(layout=layout)
        assert plain.topk(X, k=1, beam=2)[0].tolist() == [[0]], layout
    with pytest.raises(bw.SettingsError, match="a discount"):
        model.topk(X, exact=True)


@pytest.mark.parametrize("discount", [0.0, -1.0, 1.5, float("nan")])
def test_a_discount_outside_its_range_is_refused(discount: float) -> None:
    with pytest.raises(bw.SettingsError, match="discount is"):
        small_model(activation="log-hinge-2", path="log-exp", discount=discount)


def test_a_discount_goes_with_log_scores_alone() -> None:
    with pytest.raises(bw.SettingsError, match="log-exp"):
        small_model(activation="hinge-2", discount=0.9)


def test_a_file_that_needs_a_discount_or_unit_rows_says_so(tmp_path: Path) -> None:
    for form, expected in (({}, []), ({"discount": 0.98}, ["discount-1"]), ({"unit_rows": True}, ["unit-rows-1"])):
        small_model(activation="log-hinge-2", path="log-exp", **form).save(tmp_path / "m.bw")
        header = (tmp_path / "m.bw").read_bytes()[8:4000]
        for name in ("discount-1", "unit-rows-1"):
            assert (name.encode() in header) == (name in expected)
        info = bw.load(tmp_path / "m.bw").info()
        assert info["unit_rows"] == ("unit_rows" in form)
        assert info["discount"] == pytest.approx(form.get("discount", 1.0))


WIDE_CHUNK = """
import resource, sys, numpy as np, scipy.sparse as sp
import beamwood as bw
width, groups, rows = 65_000, 512, 1_500
top = sp.csc_array(([1.0], ([0], [7])), shape=(2, groups), dtype=np.float32)  # all go to node 7, which is wide
parent = np.sort(np.concatenate([np.delete(np.arange(groups), 7), np.full(width, 7)]))
weight = (np.arange(len(parent)) % 1009 / 1009).astype(np.float32)
below = sp.csc_array((weight, (np.ones(len(parent), int), np.arange(len(parent)))), shape=(2, len(parent)))
layers = [bw.Layer(top, np.zeros(groups, int)), bw.Layer(below, parent)]
model = bw.Model.from_layers(layers, activation="identity")
X = sp.csr_array(np.column_stack([np.ones(rows), np.arange(1, rows + 1)]).astype(np.float32))
expected = model.topk(X, k=5, beam=1)
chunks = model.using(layout="chunk", matcher="march")
chunks.topk(X[:2], k=5, beam=1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = chunks.topk(X, k=5, beam=1)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
assert all(a.tobytes() == b.tobytes() for a, b in zip(expected, found)), (expected, found)
assert (found[0] >= 0).all()
assert grown < 200, grown  # scores of all queries together would take 380 MiB
"""


def test_a_chunk_much_wider_than_others_takes_its_queries_in_turns() -> None:
    """How many queries go together is guessed from the mean width; here all of them meet the one wide chunk."""
    run = subprocess.run([sys.executable, "-c", WIDE_CHUNK], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
