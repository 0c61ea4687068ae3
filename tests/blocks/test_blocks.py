"""test_blocks.py — named blocks of features, sparse and dense, in; answers, files and refusals out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw
from beamwood.blocks.blocks import scaled
from beamwood.blocks.weights import CANDIDATES, weighed_blocks

ROWS, WORDS, SIZE, LABELS = 600, 60, 8, 24
Blocks = dict[str, Any]


def made(seed: int = 0, useful: bool = True) -> tuple[Blocks, sp.csr_matrix]:
    """Rows whose words say something about their label and whose vectors say what is missing, or nothing."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, LABELS, ROWS)
    words: Any = sp.random(ROWS, WORDS, density=0.05, format="lil", dtype=np.float32, random_state=seed)
    words[np.arange(ROWS), label // 2] = 1  # two labels share a word
    centre = rng.standard_normal((LABELS, SIZE)).astype(np.float32)
    meaning = centre[label] if useful else np.zeros((ROWS, SIZE), np.float32)
    meaning = 50 * (meaning + 0.1 * rng.standard_normal((ROWS, SIZE)).astype(np.float32))
    Y = sp.csr_matrix((np.ones(ROWS, np.float32), (np.arange(ROWS), label)), shape=(ROWS, LABELS))
    return {"words": words.tocsr(), "meaning": meaning}, Y


def rows_of(X: Blocks, at: slice) -> Blocks:
    return {name: block[at] for name, block in X.items()}


def trained(X: Any, Y: Any, **more: Any) -> bw.Model:
    return bw.train(X, Y, "fast", progress=False, threads=1, **more)


@pytest.fixture(scope="module")
def mixed() -> bw.Model:
    X, Y = made()
    return trained(X, Y, block_weights={"words": 1, "meaning": 1})


def test_the_rows_are_the_blocks_side_by_side_each_of_length_one(mixed: bw.Model) -> None:
    """What a model of blocks is trained on is what it is asked with, and every block counts by its weight only."""
    X, Y = made()
    by_hand = sp.hstack([scaled(X["words"], np.sqrt(0.5)), scaled(sp.csr_matrix(X["meaning"]), np.sqrt(0.5))], "csr")
    plain = trained(by_hand, Y, lexical=False)
    for ours, theirs in zip(mixed.topk(X, 5), plain.topk(by_hand, 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert mixed.blocks is not None
    assert [block.weight for block in mixed.blocks.each] == pytest.approx([np.sqrt(0.5)] * 2)


def test_a_row_alone_gives_the_same_bits(mixed: bw.Model) -> None:
    """Law 3: neighbours, the order of memory and the type of the numbers change nothing."""
    X, _ = made()
    labels, scores = mixed.topk(X, 5)
    for i in (0, 17, ROWS - 1):
        alone = mixed.topk({"words": X["words"][[i]], "meaning": X["meaning"][i]}, 5)
        np.testing.assert_array_equal(alone[0][0], labels[i])
        np.testing.assert_array_equal(alone[1][0], scores[i])
    odd = {"words": X["words"].tocsc(), "meaning": np.asfortranarray(X["meaning"].astype(np.float64))}
    np.testing.assert_array_equal(mixed.topk(odd, 5)[1], scores)
    doubled = {"words": X["words"], "meaning": np.repeat(X["meaning"], 2, axis=1)[:, ::2]}
    np.testing.assert_array_equal(mixed.topk(doubled, 5)[1], scores)


def test_every_call_takes_blocks(mixed: bw.Model, tmp_path: Path) -> None:
    """Scores, measures, explanations, filters, probabilities and updates, of the model and of its file."""
    X, Y = made()
    mixed.save(tmp_path / "m.bw")
    loaded = bw.load(tmp_path / "m.bw", verify=True)
    assert loaded.blocks == mixed.blocks
    labels, scores = loaded.topk(X, 3)
    np.testing.assert_array_equal(scores, mixed.topk(X, 3)[1])
    np.testing.assert_array_equal(loaded.score(X, labels), scores)
    assert loaded.predict(X, 3).shape == (ROWS, LABELS)
    assert loaded.evaluate(X, Y).precision[1] > 0.9
    one = {"words": X["words"][[0]], "meaning": X["meaning"][0]}
    told = loaded.explain(one, int(labels[0, 0]))
    assert np.float32(told.score) == scores[0, 0]
    assert "meaning " in str(told)
    assert loaded.calibrate(X, Y).is_calibrated
    more = loaded.add_labels(rows_of(X, slice(0, 40)), np.ones((40, 1), np.float32), keys=None)
    assert more.blocks == mixed.blocks
    assert more.n_labels == LABELS + 1
    small = loaded.compress("f16", measure=(X, Y))
    assert small.blocks == mixed.blocks
    changes = bw.diff(mixed, loaded, X).answers
    assert changes is not None
    assert changes.changed[10] == 0


def test_held_out_rows_choose_the_weights() -> None:
    """Vectors that tell labels apart count; vectors of noise are left out, and so cost nothing."""
    X, Y = made(useful=True)
    found = trained(X, Y).blocks
    assert found is not None
    assert found.each[1].weight > 0
    noise, Y = made(useful=False)
    model = trained(noise, Y)
    assert model.blocks is not None
    assert [block.weight for block in model.blocks.each] == [1.0, 0.0]
    only_words = trained({"words": noise["words"]}, Y)
    np.testing.assert_array_equal(model.topk(noise, 5)[0], only_words.topk({"words": noise["words"]}, 5)[0])


@pytest.mark.parametrize(("count", "asked"), [(12, 8), (600, 480), (6_000, 4_800), (30_000, 4_000)])
def test_where_rows_are_few_several_parts_are_held_out(count: int, asked: int) -> None:
    """Each row at most once, and none is learnt from by the tree that is asked about it."""
    held: list[Any] = []

    def quality(X: Any, Y: Any, held_X: Any, held_Y: Any) -> Any:
        assert X.shape[0] == Y.shape[0]
        assert not set(Y.indices) & set(held_Y.indices)  # a row's label is its number here
        held.append(held_Y.indices)
        return np.zeros(held_X.shape[0])

    X = {"words": sp.eye_array(count, format="csr", dtype=np.float32), "meaning": np.ones((count, 2), np.float32)}
    weighed_blocks(X, sp.eye_array(count, format="csr", dtype=np.float32), None, (), 0, quality)
    parts = held[: len(held) // len(CANDIDATES)]
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts)) == asked


def test_small_weights_of_a_dense_block_are_kept() -> None:
    """`prune` is for words: weights of vectors are small because there are many, and gaps among them cost time."""
    X, Y = made()
    X["meaning"] = np.random.default_rng(0).standard_normal((ROWS, 32)).astype(np.float32)
    leaves = trained(X, Y, block_weights={"words": 1, "meaning": 1}, prune=0.3).layers()[-1].weights
    words, vectors = leaves[:WORDS], leaves[WORDS:]
    assert np.abs(words.data).min() >= 0.3
    assert vectors.nnz == 32 * LABELS
    assert np.abs(vectors.data).min() < 0.03


def test_an_optional_block_may_be_missing() -> None:
    """It then counts as zeros; one that is not optional is asked for."""
    X, Y = made()
    model = trained(X, Y, block_weights={"words": 1, "meaning": 1}, optional_blocks=["meaning"])
    zeros = {"words": X["words"], "meaning": np.zeros((ROWS, SIZE))}
    np.testing.assert_array_equal(model.topk({"words": X["words"]}, 5)[1], model.topk(zeros, 5)[1])
    with pytest.raises(bw.DataError, match=r"X has 'meaning'; expected 'words', 'meaning'"):
        model.topk({"meaning": X["meaning"]})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "X has no blocks; expected 'words', 'meaning'"),
        ({"words": np.ones((1, WORDS))}, "X has 'words'; expected 'words', 'meaning'"),
        ({"words": np.ones((1, WORDS)), "meaning": np.ones((1, 9))}, r"X\['meaning'\] has 9 columns; expected 8"),
        ({"words": np.ones((2, WORDS)), "meaning": np.ones((1, SIZE))}, "different numbers of rows"),
        ({"words": np.ones((1, WORDS)), "meaning": np.full((1, SIZE), np.nan)}, r"X\['meaning'\] has nan in row 0"),
        ({"words": np.ones((1, WORDS)), "meaning": ["a text"]}, r"X\['meaning'\] is a list of texts"),
        ({"words": np.ones((1, WORDS)), "meaning": np.ones((1, SIZE)), 3: 0}, "X has 'words', 'meaning', 3; expected"),
        (np.ones((1, 9)), "X has 9 columns; expected 68, the features of the model. Give the model's blocks"),
    ],
)
def test_a_query_of_other_blocks_is_refused(mixed: bw.Model, given: Any, said: str) -> None:
    """The message says what was found and what the model has."""
    for call in (mixed.topk, mixed.predict, lambda X: mixed.score(X, [0])):
        with pytest.raises(bw.DataError, match=said):
            call(given)


def test_blocks_for_a_model_of_one_matrix_are_refused() -> None:
    """It has no names to find them by."""
    X, Y = made()
    model = trained(X["words"], Y)
    with pytest.raises(bw.DataError, match="X is a dictionary of feature blocks; expected one matrix"):
        model.topk(X)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"block_weights": {"words": 1}}, "block_weights is"),
        ({"block_weights": {"words": 1, "meaning": -1}}, "expected a finite number of 0 or more"),
        ({"block_weights": {"words": 0, "meaning": 0}}, "only zeros"),
        ({"block_weights": {"words": 1, "meaning": "a"}}, "expected a finite number"),
        ({"optional_blocks": ["color"]}, "optional_blocks is"),
        ({"optional_blocks": ["words", "meaning"]}, "expected some, not all"),
        ({"lexical": True}, "lexical is True with blocks"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(more: dict[str, Any], said: str) -> None:
    """Before anything is trained."""
    X, Y = made()
    with pytest.raises(bw.SettingsError, match=said):
        trained(X, Y, **more)


def test_damaged_blocks_in_training_are_refused() -> None:
    """Each names its block."""
    X, Y = made()
    for given, said in (
        ({}, "empty dictionary"),
        ({"": X["words"]}, "block named ''"),
        ({"words": X["words"], "meaning": X["meaning"][:5]}, "different numbers of rows"),
        ({"words": X["words"][:5], "meaning": X["meaning"][:5]}, "X has 5 rows and Y has 600"),
    ):
        with pytest.raises(bw.DataError, match=said):
            trained(given, Y)
    with pytest.raises(bw.SettingsError, match="expected X as named blocks"):
        trained(X["words"], Y, block_weights={"words": 1})
