"""Claims about encoders: text in, names out; their names and vectors are stored, never code; another one is refused."""

from __future__ import annotations

import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoders.plug_in import install

import beamwood as bw
from beamwood.encoders import named
from beamwood.encoders.named import SHOWN

# Nouns that no two texts share; what they mean is in the vectors only.
KINDS = {"cat": 0, "dog": 0, "horse": 0, "oak": 1, "birch": 1, "pine": 1, "iron": 2, "copper": 2, "zinc": 2}
TEXTS = [f"{noun} number {i}" for i in range(30) for noun in KINDS]
LABELS = [[("animals", "trees", "metals")[kind], f"all {noun}"] for _ in range(30) for noun, kind in KINDS.items()]
BOTH = {"words": 1, "meaning": 1}


def meanings(texts: list[str]) -> Any:
    """Says which of three kinds of things a text speaks of, also of words that no row has."""
    known = {**KINDS, "mouse": 0, "willow": 1, "silver": 2}
    found = np.zeros((len(texts), 4))
    for row, text in enumerate(texts):
        for word in text.lower().split():
            found[row, known.get(word, 3)] += 1
    return found


def others(texts: list[str]) -> Any:
    return meanings(texts)[:, ::-1]


def trained(encoder: Any, preset: str = "fast", **more: Any) -> bw.Model:
    weights = more.pop("block_weights", BOTH)
    features = bw.TextFeatures(encoder=encoder)
    return bw.train_text(TEXTS, LABELS, features, preset=preset, progress=False, block_weights=weights, **more)


@pytest.fixture(scope="module")
def model() -> bw.Model:
    return trained(meanings)


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_words_that_no_row_has_are_found_by_what_they_mean(model: bw.Model) -> None:
    plain = bw.train_text(TEXTS, LABELS, preset="fast", progress=False)
    for word, kind in (("mouse", "animals"), ("willow", "trees"), ("silver", "metals")):
        assert plain.search(word, k=1) == []
        assert [hit.key for hit in model.search(word, k=1)] == [kind]


def test_every_way_to_ask_gives_the_same(model: bw.Model) -> None:
    texts = ["a mouse", "oak and iron", "nothing here", ""]
    many = model.search_many(texts, k=3)
    for text, hits in zip(texts, many, strict=True):
        assert model.search(text, k=3) == hits
        assert str(hits[0].key).encode() in model.search_json(text, k=3).fields if hits else True
    assert model.text is not None
    rows = model.text.transform(texts)
    labels, scores = model.topk(rows, 3)
    words = bw.TextFeatures().fit(TEXTS).transform(texts)
    again = model.topk({"words": words, "meaning": meanings(texts)}, 3)
    np.testing.assert_array_equal(labels, again[0])
    np.testing.assert_array_equal(scores, again[1])
    assert [hit.score for hit in many[0]] == scores[0].tolist()
    alone = model.text.transform(["oak and iron"])
    np.testing.assert_array_equal(alone.toarray()[0], rows.toarray()[1])
    assert model.text.known(rows).tolist() == [1, 3, 1, 0]
    assert [len(hits) > 0 for hits in many] == [True, True, True, False]


def test_a_file_holds_name_and_vectors_and_asks_for_the_function(model: bw.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.bw")
    loaded = bw.load(tmp_path / "m.bw", verify=True)
    assert loaded.blocks == model.blocks
    assert loaded.info()["encoder"]["name"].endswith("test_encoders:meanings")
    with pytest.raises(bw.SettingsError, match="which no file can hold; expected that encoder"):
        loaded.search("mouse")
    for bound in (bw.load(tmp_path / "m.bw", encoder=meanings), loaded.with_encoder(meanings)):
        assert bound.search("mouse") == model.search("mouse")
        assert bound.version == model.version
        bound.save(tmp_path / "again.bw")
        assert (tmp_path / "again.bw").read_bytes() == (tmp_path / "m.bw").read_bytes()
    with pytest.raises(bw.SettingsError, match="which makes other vectors than"):
        loaded.with_encoder(others)
    with pytest.raises(bw.SettingsError, match="whose vectors have 3 numbers; expected 4"):
        loaded.with_encoder(lambda texts: meanings(texts)[:, :3])
    assert pickle.loads(pickle.dumps(loaded)).with_encoder(meanings).search("mouse") == model.search("mouse")


def test_a_change_of_a_model_keeps_its_encoder(model: bw.Model) -> None:
    for changed in (model.with_beam(3), model.with_notes({"data": "a"}), model.compress("f16")):
        assert [hit.key for hit in changed.search("mouse", k=1)] == ["animals"]
    more = model.add_labels(["mouse", "a mouse runs"] * 5, [["rodents"]] * 10)
    assert "rodents" in [hit.key for hit in more.search("mouse", k=3)]
    anew = model.retrain(TEXTS, LABELS, progress=False)
    assert [hit.key for hit in anew.search("mouse", k=1)] == ["animals"]
    assert model.evaluate(TEXTS, LABELS).precision[1] == 1.0


def test_an_explanation_counts_the_vector_as_one_item(model: bw.Model) -> None:
    told = model.explain("mouse oak", "trees")
    assert repr(told).count(SHOWN) == 1
    assert SHOWN in told._repr_html_()
    score = model.score(model.text.transform(["mouse oak"]), ["trees"])[0, 0]
    assert told.score == score
    assert all(telling.word != SHOWN for tree in told.trees for step in tree.steps for telling in step.words)
    assert model.text is not None
    assert model.text.vocabulary()[-4:] == [SHOWN] * 4


def test_held_out_rows_choose_the_weight_or_leave_the_encoder_out() -> None:
    def noise(texts: list[str]) -> Any:
        return np.stack([np.random.default_rng(zlib.crc32(text.encode())).standard_normal(6) for text in texts])

    def kind(texts: list[str]) -> Any:
        return np.eye(4)[[int(text[1:].split()[0]) % 3 if text[:1] == "w" else 3 for text in texts]]

    plain = bw.train_text(TEXTS, LABELS, preset="fast", progress=False)
    with pytest.warns(bw.BeamwoodWarning, match="gains nothing on held-out rows and is left out"):
        without = trained(noise, block_weights=None)
    assert without.version == plain.version
    texts, labels = [f"w{i} thing" for i in range(400)], [[f"kind {i % 3}"] for i in range(400)]
    told = bw.train_text(texts, labels, bw.TextFeatures(encoder=kind), preset="fast", progress=False)
    assert told.blocks is not None
    assert told.blocks.each[1].weight > 0
    assert [hit.key for hit in told.search("w1000", k=1)] == ["kind 1"]


def test_words_of_labels_stay_words(tmp_path: Path) -> None:
    model = trained(meanings, "balanced", lexical=True)
    assert model.info()["lexical"]["kept"]
    assert model.postings is not None
    words = len(bw.TextFeatures().fit(TEXTS).vocabulary())
    lists, _, _ = model.postings.lists()
    assert lists[words] == lists[-1]  # no list of an encoder's number
    assert [hit.key for hit in model.search("mouse", k=1)] == ["animals"]
    more = model.add_labels(["oak chest"] * 5, [["chests"]] * 5, texts={"crates": "a birch crate"})
    assert "chests" in [hit.key for hit in more.search("oak chest", k=3)]
    texts, labels = [*TEXTS, "oak chest", "birch crate"], [*LABELS, ["chests"], ["crates"]]
    assert "trees" in [hit.key for hit in more.retrain(texts, labels, progress=False).search("oak", k=2)]
    calibrated = trained(meanings, "fast", lexical=True, calibrate=0.4)
    assert calibrated.search("oak", k=1)[0].probability is not None


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (7, "encoder is a int; expected a function"),
        ("no such", "there is none of that name; expected one of 'model2vec', 'onnx', 'svd', 'wordllama'"),
        ("svd:0", "expected a whole number from 1"),
        ("svd:x", "expected a whole number from 1"),
        ("svd:00000000199999", "expected a whole number from 1"),
    ],
)
def test_what_is_no_encoder_is_refused_at_once(given: Any, match: str) -> None:
    with pytest.raises(bw.SettingsError, match=match):
        bw.TextFeatures(encoder=given)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (lambda texts: np.full((len(texts), 2), np.nan), "not finite for text 0"),
        (lambda texts: np.zeros((len(texts) + 1, 2)), "expected an array of real numbers of shape"),
        (lambda texts: np.zeros(len(texts)), "expected an array of real numbers"),
        (lambda texts: np.zeros((len(texts), 0)), "gave 0 columns; expected 1 to"),
        (lambda texts: [["a"]] * len(texts), "expected an array of real numbers"),
        (lambda texts: np.zeros((len(texts), 2), complex), "expected an array of real numbers"),
        (lambda texts: np.full((len(texts), 2), 1e300), "not finite"),
        (lambda texts: np.ma.masked_equal(np.eye(len(texts)), 1), "gave a masked array; expected every number"),
        (lambda texts: 1 / 0, "failed with ZeroDivisionError"),
    ],
)
def test_what_an_encoder_may_not_give_is_refused(given: Any, match: str) -> None:
    with pytest.raises(bw.BeamwoodError, match=match):
        bw.TextFeatures(encoder=given).fit(["a text"])


def test_any_real_array_will_do(model: bw.Model) -> None:
    forms = [
        lambda texts: meanings(texts).tolist(),
        lambda texts: np.asfortranarray(meanings(texts)),
        lambda texts: np.repeat(meanings(texts), 2, axis=1)[:, ::2].astype(np.float16),
        lambda texts: meanings(texts).astype(np.int64),
    ]
    for form in forms:
        assert model.with_encoder(form).search("mouse") == model.search("mouse")


def test_a_weight_or_a_name_without_an_encoder_is_refused(model: bw.Model) -> None:
    with pytest.raises(bw.SettingsError, match="block_weights is given without an encoder"):
        bw.train_text(TEXTS, LABELS, preset="fast", progress=False, block_weights=BOTH)
    plain = bw.train_text(TEXTS, LABELS, preset="fast", progress=False)
    with pytest.raises(bw.SettingsError, match="encoder is given to text features that have none of their own"):
        plain.with_encoder(meanings)
    with pytest.raises(bw.SettingsError, match="encoder is given to a model that knows no words"):
        bw.train([[1.0]], [[0]], "fast", progress=False).with_encoder(meanings)
    with pytest.raises(bw.SettingsError, match="text has an encoder; expected none"):
        bw.index_text(TEXTS, text=bw.TextFeatures(encoder=meanings))


def test_a_plug_in_is_opened_by_its_name(plug_in: Path, tmp_path: Path) -> None:
    model = trained("letters")
    model.save(tmp_path / "m.bw")
    assert bw.load(tmp_path / "m.bw").search("oak", k=2) == model.search("oak", k=2)
    small = trained("letters:5")
    small.save(tmp_path / "s.bw")
    with pytest.raises(bw.SettingsError, match="encoded by letters:5, which no file can hold"):
        bw.load(tmp_path / "s.bw").search("oak")
    assert bw.load(tmp_path / "s.bw", encoder="letters:5").search("oak") == small.search("oak")
    for name, match in (
        ("broken", "could not be opened: RuntimeError: no weights"),
        ("nothing", "which gave a int; expected a function"),
        ("unfinished", "which needs a_module_that_is_not_there; install it"),
        ("model2vec", "expected 'model2vec:FOLDER'"),
        ("onnx", "expected 'onnx:FOLDER'"),
    ):
        with pytest.raises(bw.SettingsError, match=match):
            bw.TextFeatures(encoder=name).fit(["a text"])


def test_a_plug_in_that_is_gone_is_named(tmp_path: Path, plug_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained("letters").save(tmp_path / "m.bw")
    monkeypatch.setattr(named, "_plug_ins", dict)
    loaded = bw.load(tmp_path / "m.bw")
    with pytest.raises(bw.SettingsError, match="encoded by letters, which no file can hold"):
        loaded.search("oak")
    assert loaded.topk(np.zeros((1, loaded.n_features)), 1)[0].shape == (1, 1)


def test_a_checkpoint_goes_on_with_the_same_encoder(tmp_path: Path) -> None:
    first = trained(meanings, checkpoint=tmp_path / "kept")
    again = trained(meanings, checkpoint=tmp_path / "kept")
    assert first.version == again.version
    assert again.search("mouse") == first.search("mouse")
    with pytest.raises(bw.SettingsError, match=r"encoder=.*meanings'; expected .*others"):
        trained(others, checkpoint=tmp_path / "kept")
    with pytest.raises(bw.SettingsError, match="block_weights"):
        trained(meanings, checkpoint=tmp_path / "kept", block_weights={"words": 1, "meaning": 3})


def test_a_model_that_was_cut_finds_by_meaning_too(model: bw.Model, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        install(tmp_path)
        patch.syspath_prepend(tmp_path)
        whole = trained("letters")
        bw.shard(whole, tmp_path / "parts", shards=2)
        cut = bw.Sharded(tmp_path / "parts")
        assert cut.search("oak", k=3) == whole.search("oak", k=3)
        assert cut.search_json("oak", k=3).fields == whole.search_json("oak", k=3).fields


def test_a_model_that_was_cut_and_a_handle_take_an_encoder(
    model: bw.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bw.shard(model, tmp_path / "parts", shards=2)
    assert bw.Sharded(tmp_path / "parts", encoder=meanings).search("mouse") == model.search("mouse")
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    trained("letters:5").save(tmp_path / "m.bw")
    handle = pickle.loads(pickle.dumps(bw.Lazy(tmp_path / "m.bw", encoder="letters:5")))
    assert handle.search("oak") == bw.load(tmp_path / "m.bw", encoder="letters:5").search("oak") != []
    with pytest.raises(bw.SettingsError, match="letters:5, which no file can hold"):
        bw.Lazy(tmp_path / "m.bw").search("oak")
    with pytest.raises(bw.SettingsError, match="encoder is a function; expected a name"):
        bw.Lazy(tmp_path / "m.bw", encoder=meanings)


def test_weights_count_by_their_ratio_however_large_or_small() -> None:
    for size in (1e-300, 3.0, 1e308):
        blocks = trained(meanings, block_weights={"words": size, "meaning": size}).blocks
        assert blocks is not None
        assert [block.weight for block in blocks.each] == pytest.approx([0.5**0.5] * 2)


def test_a_search_with_an_encoder_says_how_long_it_took(model: bw.Model) -> None:
    assert model.search_json("mouse").nanoseconds > 0


def test_damaged_descriptions_of_encoders_are_refused(model: bw.Model) -> None:
    assert model.text is not None
    settings, arrays = model.text.settings(), model.text.arrays()
    nowhere = {**arrays, "encoder/probe": np.full_like(arrays["encoder/probe"], np.nan)}
    with pytest.raises(bw.SettingsError, match="makes other vectors"):
        type(model.text).from_arrays(settings, nowhere).with_encoder(meanings)
    own = settings["encoder"]
    for damage in (
        {"name": 7}, {"columns": 0}, {"columns": "4"}, {"columns": 5}, {"weights": [1.0]}, {"weights": [2.0, 0.0]},
        {"weights": None}, {"name": "svd"}, {"name": "svd", "columns": 10**6},
    ):  # fmt: skip
        with pytest.raises(bw.FormatError, match="Restore"):
            type(model.text).from_arrays({**settings, "encoder": {**own, **damage}}, arrays)
    with pytest.raises(bw.FormatError, match="Restore"):
        type(model.text).from_arrays({**settings, "encoder": {}}, arrays)
    with pytest.raises(bw.FormatError, match="Restore"):
        type(model.text).from_arrays(settings, {n: a for n, a in arrays.items() if n != "encoder/probe"})
