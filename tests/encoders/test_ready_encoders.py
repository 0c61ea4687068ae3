"""Claims about encoders that come with beamwood: learnt vectors, and those of other packages where these are there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from encoders.plug_in import install
from encoders.test_encoders import TEXTS, trained
from typer.testing import CliRunner

import beamwood as bw
from beamwood.cli.app import app
from beamwood.encoders import OnnxEncoder
from beamwood.encoders.learnt import learnt


def rows_of_rank(rank: int, rows: int = 300, words: int = 80) -> Any:
    """Sparse rows that differ in a few directions most of all."""
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((rows, rank)) * 3.0 ** -np.arange(rank) @ rng.standard_normal((rank, words))
    mixed[rng.random(mixed.shape) < 0.5] = 0
    return sp.csr_array(mixed.astype(np.float32))


def test_learnt_vectors_are_those_of_the_largest_singular_values() -> None:
    rows = rows_of_rank(6)
    table = learnt(rows, 4, 0, 1).table
    expected = np.linalg.svd(rows.toarray().astype(np.float64))[2][:4].T
    np.testing.assert_allclose(np.abs(expected.T @ table), np.eye(4), atol=2e-3)
    assert (table[np.abs(table).argmax(axis=0), np.arange(4)] > 0).all()


def test_learnt_vectors_are_the_same_for_any_number_of_threads_and_the_same_seed() -> None:
    rows = rows_of_rank(20)
    one = learnt(rows, 16, 3, 1).table
    for threads in (2, 5):
        np.testing.assert_array_equal(one, learnt(rows, 16, 3, threads).table)
    assert (one != learnt(rows, 16, 4, 1).table).any()


def test_fewer_directions_than_asked_for_are_no_error() -> None:
    assert learnt(sp.csr_array(np.ones((5, 3), np.float32)), 8, 0, 1).columns == 1
    assert learnt(sp.csr_array(np.eye(3, dtype=np.float32)), 8, 0, 1).columns == 3
    with pytest.raises(bw.DataError, match="no words to learn vectors from"):
        learnt(sp.csr_array((4, 3), dtype=np.float32), 8, 0, 1)


def test_a_model_of_learnt_vectors_needs_nothing_beside_its_file(tmp_path: Path) -> None:
    model = trained("svd:6")
    assert model.version == trained("svd:6", threads=3).version
    model.save(tmp_path / "m.bw")
    loaded = bw.load(tmp_path / "m.bw", verify=True)
    assert loaded.search("oak 3", k=3) == model.search("oak 3", k=3) != []
    assert loaded.info()["encoder"]["name"] == "svd"
    with pytest.raises(bw.SettingsError, match="encoder is given to text features that have none of their own"):
        loaded.with_encoder("svd")


def run(*words: str | Path) -> str:
    ran = CliRunner().invoke(app, [str(word) for word in words])
    assert ran.exit_code == 0, ran.output
    return ran.output


def test_the_command_line_trains_and_asks_with_encoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rows, model = tmp_path / "rows.jsonl", tmp_path / "m.bw"
    with rows.open("w") as file:
        for i in range(300):  # words that say nothing, and letters that do
            letter = "abc"[i % 3]
            file.write(json.dumps({"text": letter * 3 + f"x{i}", "labels": [letter]}) + "\n")
    run("train", rows, "-o", model, "--preset", "fast", "--encoder", "letters:3", "--quiet")
    assert "encoder: letters:3, 3 numbers per text" in run("inspect", model)
    found = json.loads(run("search", model, "--encoder", "letters:3", "--json", "--k", "1", "bbbx999"))
    assert found["hits"][0]["key"] == "b"
    assert "(meaning)" in run("explain", model, "--encoder", "letters:3", "bbbx999")
    refused = CliRunner().invoke(app, ["search", str(model), "bbb"])
    assert refused.exit_code != 0
    assert "encoded by letters:3" in refused.output


def test_every_verb_that_reads_texts_takes_an_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    texts = ["abc"[i % 3] * 3 + f"x{i}" for i in range(120)]
    lines = [json.dumps({"text": text, "labels": [text[0]]}) for text in texts]
    Path("rows.jsonl").write_text("\n".join(lines))
    Path("new.jsonl").write_text(json.dumps({"text": "zzz", "labels": ["z"]}))
    run("train", "rows.jsonl", "-o", "m.bw", "--preset", "fast", "--encoder", "letters:3", "-q")
    run("train", "rows.jsonl", "-o", "plain.bw", "--preset", "fast", "-q")
    for words in (
        ("calibrate", "m.bw", "rows.jsonl", "-o", "c.bw"),
        ("update", "m.bw", "--add", "new.jsonl", "-o", "u.bw", "-q"),
        ("compress", "m.bw", "s.bw", "--data", "rows.jsonl"),
        ("train", "rows.jsonl", "--from", "m.bw", "-o", "f.bw", "-q"),
        ("diff", "plain.bw", "m.bw", "rows.jsonl"),
        ("bench", "m.bw", "rows.jsonl", "--rounds", "1", "-n", "10", "-q"),
    ):
        refused = CliRunner().invoke(app, list(words))
        assert refused.exit_code == 1
        assert "encoded by letters:3" in refused.output
        assert "or --encoder" in refused.output
        run(*words, "--encoder", "letters:3")
    for made in ("c.bw", "u.bw", "s.bw", "f.bw"):
        found = json.loads(run("search", made, "--encoder", "letters:3", "--json", "-k", "1", "bbbx999"))
        assert found["hits"][0]["key"] == "b"


def test_a_server_finds_by_meaning_and_refuses_to_start_without_its_encoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
        pytest.importorskip(needed)
    from support.serving import Running

    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    model = trained("letters:20")
    model.save(tmp_path / "m.bw")
    with Running(tmp_path / "m.bw", "--encoder", "letters:020") as server:  # the same, called otherwise: another folder
        for text in ("oak number 3", "zinc", "qqq"):
            told = server.json("POST", "/v1/search", {"text": text, "k": 3})
            assert [hit["key"] for hit in told["hits"]] == [hit.key for hit in model.search(text, k=3)]
            assert told["engine_us"] > 0
        many = server.json("POST", "/v1/search", {"texts": ["oak", "zinc"], "k": 2})["results"]
        assert [hit["key"] for hit in many[1]["hits"]] == [hit.key for hit in model.search("zinc", k=2)]
    command = [sys.executable, "-m", "beamwood", "serve", str(tmp_path / "m.bw"), "--port", "0"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert refused.returncode != 0
    assert "encoded by letters:20" in refused.stderr


def test_wordllama_reads_its_weights_from_its_wheel(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    model = trained("wordllama")
    model.save(tmp_path / "m.bw")
    loaded = bw.load(tmp_path / "m.bw")
    assert [hit.key for hit in loaded.search("a sheep or a cow", k=1)] == ["animals"]
    assert loaded.text is not None
    together, alone = loaded.text.transform(["oak", "a longer text with words"]), loaded.text.transform(["oak"])
    np.testing.assert_array_equal(together.toarray()[0], alone.toarray()[0])
    assert bw.TextFeatures(encoder="wordllama:64").fit(TEXTS).columns == 64 + loaded.text.words
    with pytest.raises(bw.SettingsError, match="expected 64, 128 or 256"):
        bw.TextFeatures(encoder="wordllama:7").fit(TEXTS)


def folder_of_onnx(folder: Path, per_token: bool) -> Path:
    """A model that gives each of four words a vector, or of a text the sum of them; and a tokenizer of whole words."""
    onnx = pytest.importorskip("onnx")
    tokenizers = pytest.importorskip("tokenizers")
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["tokens"])]
    if not per_token:
        nodes.append(helper.make_node("ReduceSum", ["tokens", "axis"], ["text"], keepdims=0))
    out = helper.make_tensor_value_info("tokens" if per_token else "text", kinds.FLOAT, None)
    taken = helper.make_tensor_value_info("input_ids", kinds.INT64, ["n", "m"])
    held = [onnx.numpy_helper.from_array(table, "table"), onnx.numpy_helper.from_array(np.array([1]), "axis")]
    made = helper.make_model(
        helper.make_graph(nodes, "g", [taken], [out], held), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").write_bytes(made.SerializeToString())
    words = {"[PAD]": 0, "red": 1, "wool": 2, "[UNK]": 3}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_an_onnx_model_gives_the_mean_of_its_tokens(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = folder_of_onnx(tmp_path / "tokens", True)
    encode = OnnxEncoder.from_folder(folder, batch=2)
    texts = ["red wool", "red", "wool wool red red", ""]
    expected = [[4.5, 5.5, 6.5], [3, 4, 5], [4.5, 5.5, 6.5], [0, 0, 0]]
    np.testing.assert_allclose(encode(texts), expected)
    np.testing.assert_allclose(OnnxEncoder.from_folder(folder, pooling="first")(["wool red"]), [[6, 7, 8]])
    whole = OnnxEncoder.from_folder(folder_of_onnx(tmp_path / "texts", False))
    np.testing.assert_allclose(whole(["red wool"]), [[9, 11, 13]])
    named = bw.TextFeatures(encoder=f"onnx:{folder}").fit(["red wool"])
    assert named.columns == 2 + 3
    with pytest.raises(bw.SettingsError, match="pooling is 'max'"):
        OnnxEncoder.from_folder(folder, pooling="max")
    with pytest.raises(bw.MissingFileError, match=r"There is no .*model\.onnx"):
        bw.TextFeatures(encoder=f"onnx:{tmp_path}").fit(["red"])
    with pytest.raises(bw.SettingsError, match=r"expected an onnxruntime\.InferenceSession"):
        OnnxEncoder(7, 8)


def test_static_vectors_of_model2vec_are_read_from_a_folder(tmp_path: Path) -> None:
    package = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "red": 1, "wool": 2}, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    vectors = np.array([[0, 0], [1, 0], [0, 1]], np.float32)
    package.StaticModel(vectors, tokenizer, config={"normalize": False}).save_pretrained(tmp_path / "kept")
    fitted = bw.TextFeatures(encoder=f"model2vec:{tmp_path / 'kept'}").fit(["red wool"])
    assert fitted.columns == 4
    rows = fitted.transform(["red"]).toarray()[0]
    assert rows[2] > 0 == rows[3]
