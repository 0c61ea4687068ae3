"""The claims of the design that every engine must meet, each as a function of a case. Equality is exact.

Add a variant to `engines()` (or give a law your own list) and it is held to all of them.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from support.strategies import Case, bw_labels

import beamwood as bw
from beamwood import reference
from beamwood.engine import LAYOUTS, MATCHERS, isas_here

Array = npt.NDArray[Any]
Answer = tuple[Array, Array]
Engine = dict[str, Any]

MATCHED = ("chunk", "column")  # layouts that find common features with a matcher


def isas() -> list[str]:
    """The instruction sets of this machine."""
    return [isa for isa in isas_here() if isa != "auto"]


def engines() -> list[Engine]:
    """Every variant: matchers (and auto) on layouts that use one, the other layouts, instruction sets; no bound."""
    named = itertools.product((*MATCHERS, "auto"), LAYOUTS, isas())
    every = [{"matcher": matcher, "layout": layout, "isa": isa} for matcher, layout, isa in named]
    every = [one for one in every if one["layout"] in MATCHED or one["matcher"] == "auto"]
    unbound: list[Engine] = [{"layout": layout, "bound": False} for layout in LAYOUTS]
    return [*every, *unbound, {}]


def expected_answer(case: Case, k: int, beam: int, allowed: Array | None = None) -> Answer:
    """What the plain reference says."""
    with np.errstate(all="ignore"):
        return reference.topk(case.trees, case.X, case.parsed(), k, beam, allowed, case.unit_rows)


def everything(case: Case) -> int:
    """A beam that drops nothing."""
    return max(len(layer.parent) for tree in case.trees for layer in tree) + 1


def check_same(found: Answer, expected: Answer, *what: object) -> None:
    """The same labels and the same bits of the scores; NaN is one value."""
    for one, other, part in zip(found, expected, ("labels", "scores"), strict=True):
        if one.tobytes() == other.tobytes():
            continue
        assert one.shape == other.shape, (*what, one.shape, other.shape)
        same = (one == other) & (np.signbit(one) == np.signbit(other)) | np.isnan(one) & np.isnan(other)
        places = [tuple(place) for place in np.argwhere(~same)[:3].tolist()]
        assert not places, f"{what}: {part} differ at {places}: {[(one[p], other[p]) for p in places]}"


def forms(model: bw.Model, folder: Path) -> Iterator[tuple[str, bw.Model]]:
    """The same model in memory, mapped, and read."""
    path = folder / "model.bw"
    model.save(path)
    yield "in memory", model
    yield "mapped", bw.load(path)
    yield "read", bw.load(path, memory="read", verify=True)


def same_bits_as_the_reference(
    case: Case,
    folder: Path,
    variants: Sequence[Engine] | None = None,
    model: bw.Model | None = None,
) -> int:
    """Every engine, 1 and 2 threads, rows alone and batches, in memory, mapped, read: comparisons made.

    model: the case's model, when it was made in another way than from the case's layers.
    """
    expected = [expected_answer(case, k, beam) for k, beam in case.asks]
    compared = 0
    for form, same in forms(model or case.model(), folder):
        for engine in engines() if variants is None else variants:
            one = same.using(**engine)
            for (k, beam), answer in zip(case.asks, expected, strict=True):
                compared += check_rows(one, case.X, (k, beam), answer, (case.seed, form, engine))
    return compared


def check_rows(model: bw.Model, X: Any, ask: tuple[int, int], expected: Answer, what: tuple[object, ...]) -> int:
    """A batch, a bag of its rows in disorder, and each row alone, with 1 and 2 threads."""
    (k, beam), n = ask, X.shape[0]
    what = (*what, f"k={k} beam={beam}")
    bag = np.random.default_rng(k * 1000 + beam).integers(0, n, (2 * n, 150)[(k + beam) % 13 == 0])
    for threads in (1, 2):
        check_same(model.topk(X, k, beam, threads), expected, *what, f"batch, threads={threads}")
        many = (expected[0][bag], expected[1][bag])
        check_same(model.topk(X[bag], k, beam, threads), many, *what, f"bag {bag}, threads={threads}")
    for row in range(n):
        alone = (expected[0][row : row + 1], expected[1][row : row + 1])
        check_same(model.topk(X[row : row + 1], k, beam, 1 + row % 2), alone, *what, f"row {row} alone")
    return int(4 + n)


def one_order(case: Case) -> None:
    """Score falling, then label rising, NaN last; labels once each; -1 and -inf where there are no more."""
    model = case.model()
    for k, beam in case.asks:
        labels, scores = model.topk(case.X, k, beam)
        assert labels.shape == scores.shape == (case.X.shape[0], k)
        assert labels.dtype == np.int64
        assert scores.dtype == np.float32
        for row, (ids, values) in enumerate(zip(labels, scores, strict=True)):
            there = int((ids >= 0).sum())
            what = (case.seed, k, beam, row)
            assert (ids[there:] == -1).all(), what
            assert np.isneginf(values[there:]).all(), what
            ids, values = ids[:there], values[:there]  # noqa: PLW2901
            assert len(np.unique(ids)) == there <= min(k, case.labels), what
            assert (ids < case.labels).all(), what
            key = [(np.isnan(v), np.nan_to_num(-v, nan=0.0), i) for v, i in zip(values, ids, strict=True)]
            assert key == sorted(key), what
            assert not np.signbit(values[values == 0]).any(), (*what, "-0 has no place in the order")
        fewer = max(1, k // 2)
        prefix = (labels[:, :fewer], scores[:, :fewer])
        check_same(model.topk(case.X, fewer, beam), prefix, case.seed, "a smaller k is a prefix")
        check_same_as_predict(model, case, k, beam, (labels, scores))


def compressed_weights_give_one_answer(case: Case) -> int:
    """Weights in fewer bytes are another model, on which all engines agree."""
    model, compared = case.model(), 0
    for kind in ("f16", "u8"):
        try:
            small = model.compress(kind)
        except bw.SettingsError:
            assert kind == "f16", case.seed  # halves reach 65,504
            continue
        k, beam = case.asks[0]
        expected = small.topk(case.X, k, beam)
        for engine in engines():
            check_same(small.using(**engine).topk(case.X, k, beam), expected, case.seed, kind, engine)
            compared += 1
    return compared


def check_same_as_predict(model: bw.Model, case: Case, k: int, beam: int, expected: Answer) -> None:
    """predict holds what topk says, each row in rank order."""
    P = model.predict(case.X, k, beam)
    assert P.shape == (case.X.shape[0], case.labels)
    there = expected[0] >= 0
    assert P.indptr.tolist() == [0, *np.cumsum(there.sum(axis=1)).tolist()]
    found = (P.indices.astype(np.int64), P.data)
    check_same(found, (expected[0][there], expected[1][there]), case.seed, "predict")


def exact_search_equals_the_full_ranking(case: Case, variants: Sequence[Engine] | None = None) -> None:
    """exact=True finds what a beam that drops nothing finds; where it cannot, it says so."""
    model = case.model()
    if not case.parsed().only_shrinks:
        with pytest.raises(bw.SettingsError, match=r"exact=True .* Use a wider beam"):
            model.topk(case.X, exact=True)
        return
    widest = everything(case)
    for k, _ in case.asks:
        expected = expected_answer(case, k, widest)
        for engine in engines() if variants is None else variants:
            one = model.using(**engine)
            for threads in (1, 2):
                what = (case.seed, engine, f"k={k} threads={threads}")
                check_same(one.topk(case.X, k, 1, threads, exact=True), expected, *what, "exact")
                check_same(one.topk(case.X, k, widest, threads), expected, *what, "a beam of everything")


def filters_of(case: Case) -> list[Array]:
    """Masks of allowed labels: all, none, one, most, few, and a run of neighbours."""
    rng = np.random.default_rng(case.labels)
    number = np.arange(case.labels)
    some = [rng.random(case.labels) < share for share in (0.9, 0.5, 0.1)]
    return [number >= 0, number < 0, number == case.labels // 2, *some, number < 1 + case.labels // 7]


def filters_keep_their_promises(case: Case, variants: Sequence[Engine] | None = None) -> int:
    """Every engine finds what the reference finds with a filter: k allowed labels when there are so many; each with
    the bits it has without one; and with a beam that drops nothing the full ranking, filtered. Comparisons made."""
    base = case.model()
    models = [base.using(**engine) for engine in (engines() if variants is None else variants)]
    full = expected_answer(case, case.labels, everything(case))
    compared = 0
    for allowed in filters_of(case):
        made = models[0].filter(allow=allowed)
        assert len(made) == allowed.sum(), case.seed
        for k, beam in case.asks:
            what = (case.seed, f"{allowed.sum()} of {case.labels} labels, k={k} beam={beam}")
            expected = expected_answer(case, k, beam, allowed)
            check_filtered(case, expected, full, allowed, k, what)
            wide = expected_answer(case, k, everything(case), allowed)
            check_same(wide, filtered(full, allowed, k), *what, "a beam of everything")
            for engine, model in enumerate(models):
                for threads in (1, 2):
                    found = model.topk(case.X, k, beam, threads, filter=made)
                    check_same(found, expected, *what, f"engine {engine}, threads={threads}")
                found = model.topk(case.X, k, everything(case), filter=made)
                check_same(found, wide, *what, f"engine {engine}, a beam of everything")
                if case.parsed().only_shrinks:
                    check_same(
                        model.topk(case.X, k, 1, exact=True, filter=made), wide, *what, f"engine {engine}, exact"
                    )
                compared += 4
    return compared


def filtered(full: Answer, allowed: Array, k: int) -> Answer:
    """The first k allowed labels of a full ranking, padded."""
    labels = np.full((len(full[0]), k), -1, np.int64)
    scores = np.full((len(full[0]), k), -np.inf, np.float32)
    for row, (ids, values) in enumerate(zip(*full, strict=True)):
        kept = np.flatnonzero((ids >= 0) & allowed[ids])[:k]
        labels[row, : len(kept)], scores[row, : len(kept)] = ids[kept], values[kept]
    return labels, scores


def check_filtered(case: Case, found: Answer, full: Answer, allowed: Array, k: int, what: tuple[object, ...]) -> None:
    """Only allowed labels, as many as there are or k; in one tree each with the score of the full ranking."""
    there = found[0] >= 0
    assert (there.sum(axis=1) == min(k, int(allowed.sum()))).all(), what
    assert allowed[found[0][there]].all(), what
    if len(case.trees) == 1:
        for ids, values, all_ids, all_values in zip(*found, *full, strict=True):
            of_label = np.empty(case.labels, np.float32)
            of_label[all_ids] = all_values
            kept = ids >= 0
            check_same((ids[kept], values[kept]), (ids[kept], of_label[ids[kept]]), *what, "scores")


def layers_come_back_bit_for_bit(case: Case, folder: Path) -> None:
    """model.layers() is the inverse of from_layers, from every layout and from a file."""
    for form, model in forms(case.model(), folder):
        for layout in LAYOUTS:
            for tree, given in enumerate(case.trees):
                back = model.using(layout=layout).layers(tree)
                assert len(back) == len(given), (case.seed, form)
                for depth, (old, new) in enumerate(zip(given, back, strict=True)):
                    what = (case.seed, form, layout, tree, depth)
                    check_same_layer(old, new, depth == len(given) - 1, what)


def check_same_layer(old: bw.Layer, new: bw.Layer, last: bool, what: tuple[object, ...]) -> None:
    """Two layers with the same bits; a default that was left out counts as its value."""
    weights = sp.csc_array(old.weights)
    weights.sort_indices()
    for name in ("indptr", "indices", "data"):
        one, other = getattr(weights, name), getattr(new.weights, name)
        assert one.astype(other.dtype).tobytes() == other.tobytes(), (*what, name)
    assert weights.shape == new.weights.shape, what
    assert np.array_equal(old.parent, new.parent), what
    assert np.array_equal(bw_labels(old, last), bw_labels(new, last)), what
    assert (old.bias is None) == (new.bias is None), what
    if old.bias is not None and new.bias is not None:
        assert np.asarray(old.bias, np.float32).tobytes() == new.bias.tobytes(), what


def a_saved_model_saves_the_same_bytes(case: Case, folder: Path) -> None:
    """save, load, save: the same file; and so does a model that was taken apart and built again."""
    model = case.model()
    first, again = folder / "first.bw", folder / "again.bw"
    model.save(first)
    expected = first.read_bytes()
    for memory in ("map", "read"):
        bw.load(first, memory=memory, verify=True).save(again)
        assert again.read_bytes() == expected, (case.seed, memory)
    for engine in ({"matcher": "hash"}, {"layout": "column"}):
        model.using(**engine).save(again)
        assert again.read_bytes() == expected, (case.seed, engine)
    replace(case, trees=[model.layers(tree) for tree in range(len(case.trees))]).model().save(again)
    assert again.read_bytes() == first.read_bytes(), (case.seed, "rebuilt from its layers")


def the_callers_arrays_are_untouched(case: Case) -> None:
    """Building and asking change no byte of what was given, also where rows had to be put in order first."""
    disordered = case.X.copy()
    disordered.indices = np.ascontiguousarray(disordered.indices[::-1])  # ids may fall inside rows
    disordered.has_sorted_indices = disordered.has_canonical_format = False
    lengths = np.diff(disordered.indptr)[::-1]
    disordered.indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(disordered.indptr.dtype)
    before = [content(case), content(disordered)]
    model = case.model()
    for X in (case.X, disordered):
        for engine in ({}, {"layout": "column"}, {"matcher": "hash"}):
            model.using(**engine).topk(X, *case.asks[0])
            model.predict(X, *case.asks[1], threads=2)
    assert [content(case), content(disordered)] == before, case.seed


def content(thing: Any) -> list[bytes]:
    """The bytes of everything a caller gave."""
    if isinstance(thing, Case):
        layers = [layer for tree in thing.trees for layer in tree]
        arrays = [array for layer in layers for array in (layer.parent, layer.bias, layer.label)]
        weights = [part for layer in layers for part in content(layer.weights)]
        return content(thing.X) + weights + [np.asarray(array).tobytes() for array in arrays]
    if thing.format == "coo":
        return [thing.data.tobytes(), *(a.tobytes() for a in thing.coords)]
    return [thing.data.tobytes(), thing.indices.tobytes(), thing.indptr.tobytes()]


FLUSH_TO_ZERO, DENORMALS_ARE_ZERO, ROUND_UP = 0x8000, 0x0040, 0x4000


@contextmanager
def host_float_mode(bits: int) -> Iterator[None]:
    """This thread's floating-point control word with some bits set, as a careless host would leave it."""
    libm = ctypes.CDLL("libm.so.6")
    word = slice(28, 32)  # of glibc's fenv_t on x86-64: mxcsr
    saved = ctypes.create_string_buffer(64)
    libm.fegetenv(saved)
    changed = ctypes.create_string_buffer(saved.raw, 64)
    mode = int.from_bytes(saved.raw[word], "little") | bits
    changed[word] = mode.to_bytes(4, "little")
    libm.fesetenv(changed)
    try:
        yield
        after = ctypes.create_string_buffer(64)
        libm.fegetenv(after)
    finally:
        libm.fesetenv(saved)
    status = 0x3F  # flags of what has happened, not settings
    now = int.from_bytes(after.raw[word], "little")
    assert now | status == mode | status, "the caller's mode was not put back"


def the_hosts_float_mode_changes_nothing(case: Case) -> None:
    """Flush to zero, denormals are zero, another rounding: the same bits, and the host's mode is put back."""
    model = case.model()
    for k, beam in case.asks:
        expected = expected_answer(case, k, beam)
        for engine in engines():
            one = model.using(**engine)
            for bits in (FLUSH_TO_ZERO | DENORMALS_ARE_ZERO, ROUND_UP):
                for threads in (1, 2):
                    with host_float_mode(bits):
                        found = one.topk(case.X, k, beam, threads)
                    check_same(found, expected, case.seed, engine, hex(bits), threads)
