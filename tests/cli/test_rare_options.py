"""Options of the command line that are rarely given, alone and with what does not go with them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from support.commands import ROWS, fails, good, run

import beamwood as bw


def test_compress_says_what_it_cost_with_and_without_rows_to_measure_on(shop: Path) -> None:
    plain = good("compress", shop / "shop.bw", "small.bw")
    assert "precision" not in plain.lower()
    assert "is there already" in fails("compress", shop / "shop.bw", "small.bw")
    found = json.loads(good("compress", shop / "shop.bw", "small.bw", "--force", "--json", "--weights", "f16"))
    assert found["file_bytes"] == Path("small.bw").stat().st_size
    rows = ("--x", shop / "X.npz", "--y", shop / "Y.npz")
    measured = json.loads(good("compress", shop / "numbers.bw", "n.bw", *rows, "--json"))
    assert measured["precision_before"].keys() == measured["precision_after"].keys() == {"1", "3", "5", "10"}
    said = fails("compress", shop / "numbers.bw", "o.bw", "--data", shop / "rows.jsonl")
    assert "trained from numbers and knows no words. Give --x and --y." in said


def test_diff_takes_rows_of_numbers_without_truth(shop: Path) -> None:
    rows = ("--x", shop / "X.npz")
    assert good("diff", shop / "numbers.bw", shop / "numbers.bw", *rows)
    Path("texts.jsonl").write_text('{"text": "wool"}\n{"no": 1}\n')
    ran = run("diff", shop / "shop.bw", shop / "shop.bw", "texts.jsonl", "--skip-bad")
    assert (ran.exit_code, "note: 1 bad row was left out" in ran.stderr) == (0, True), ran.output
    said = fails("diff", shop / "shop.bw", shop / "shop.bw", "--truth", code=2)
    assert "--truth is given without DATA" in said
    numbers = (shop / "numbers.bw", shop / "numbers.bw", shop / "rows.txt", "--format", "xmc")
    assert "--truth is given with rows of numbers" in fails("diff", *numbers, "--truth", code=2)


def test_index_leaves_out_bad_rows_and_takes_names_of_rows(shop: Path) -> None:
    Path("documents.jsonl").write_text('{"id": "a", "text": "red wool"}\n{"id": "b"}\n{"id": "c", "text": "boots"}\n')
    ran = run("index", "documents.jsonl", "-o", "d.bw", "--key-column", "id", "--skip-bad")
    assert (ran.exit_code, "note: 1 bad row was left out" in ran.stderr) == (0, True), ran.output
    Path("two.jsonl").write_text('{"id": ["a", "b"], "text": "red wool"}\n')
    assert "has 2 keys in column 'id'; expected one" in fails("index", "two.jsonl", "-o", "t.bw", "--key-column", "id")
    sp.save_npz("W.npz", sp.csr_array(np.eye(2, dtype=np.float32)))
    Path("labels.tsv").write_text("a\tFirst\nb\tSecond\n")
    good("index", "--x", "W.npz", "-o", "w.bw", "--labels-file", "labels.tsv")
    assert bw.load("w.bw").names == ["First", "Second"]


def test_update_takes_matrices_with_keys(shop: Path) -> None:
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((6, 30)).astype(np.float32))
    sp.save_npz("X.npz", X)
    sp.save_npz("Y.npz", sp.csr_array(np.repeat(np.eye(2, dtype=np.float32), 3, axis=0)))
    Path("new.tsv").write_text("p\tPeas\nq\tQuince\n")
    keyed = bw.load(shop / "numbers.bw").with_names(keys=[f"k{n}" for n in range(12)])
    keyed.save("keyed.bw")
    rows = ("--x", "X.npz", "--y", "Y.npz")
    ran = run("update", "keyed.bw", *rows, "--keys", "new.tsv", "-o", "more.bw", "-q")
    assert ran.exit_code == 0, ran.output
    assert bw.load("more.bw").names[-2:] == ["Peas", "Quince"]
    ran = run("update", shop / "numbers.bw", *rows, "-o", "numbers.bw", "-q")
    assert (ran.exit_code, bw.load("numbers.bw").n_labels) == (0, 14), ran.output
    said = fails("update", shop / "shop.bw", "--add", shop / "rows.jsonl", "--keys", "new.tsv", "-o", "o.bw", code=2)
    assert "--keys is given without --x and --y" in said.replace("\n", " ")


def test_update_removes_and_renames_by_files(shop: Path) -> None:
    Path("nothing.txt").write_text("")
    assert "nothing.txt is empty; expected a label key per line" in fails(
        "update", shop / "shop.bw", "--remove", "nothing.txt", "-o", "o.bw"
    )
    Path("names.tsv").write_text("boots\tBoots and shoes\n")
    assert "0 added, 0 removed" in good("update", shop / "shop.bw", "--rename", "names.tsv", "-o", "r.bw", "-q")
    assert "Boots and shoes" in bw.load("r.bw").names
    Path("many.jsonl").write_text("".join(f'{{"text": "thing {n} wool", "labels": ["n{n}"]}}\n' for n in range(9)))
    ran = run("update", shop / "shop.bw", "--add", "many.jsonl", "-o", "m.bw", "-q")
    assert "of the labels were added since its training; train anew" in ran.stderr


def test_train_chooses_words_by_a_word_and_retrains_on_rows(shop: Path) -> None:
    good("train", shop / "rows.jsonl", "-o", "m.bw", "-q", "--lexical", "no")
    assert bw.load("m.bw").info()["lexical"] is None
    assert "--lexical is maybe; expected auto, yes or no" in fails(
        "train", shop / "rows.jsonl", "-o", "o.bw", "--lexical", "maybe", code=2
    ).replace("\n", " ")
    rows = ("--x", shop / "X.npz", "--y", shop / "Y.npz")
    good("train", *rows, "--from", shop / "numbers.bw", "-o", "again.bw", "-q")
    assert bw.load("again.bw").n_labels == 12


def test_small_verbs_as_json(shop: Path) -> None:
    cut = json.loads(good("shard", shop / "numbers.bw", "-o", "parts", "--shards", "2", "--json"))
    assert [one["labels"] for one in cut["shards"]] == [5, 7]
    counts = good("estimate", "--x", shop / "X.npz", "--y", shop / "Y.npz")
    assert "60" in counts
    large = good("estimate", "--rows", "5e7", "--labels", "3e6", "--words", "80", "--labels-per-row", "5")
    assert " h" in large


def test_calibrate_without_a_cut(shop: Path) -> None:
    Path("many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS * 20))
    good("calibrate", shop / "shop.bw", "many.jsonl", "-o", "c.bw", "--cut", "none")
    assert bw.load("c.bw").is_calibrated
    assert bw.load("c.bw").threshold is None


def test_predict_refuses_a_matrix_to_a_stream(shop: Path) -> None:
    os.mkfifo("pipe.npz")
    said = fails("predict", shop / "shop.bw", shop / "rows.jsonl", "-o", "pipe.npz", "--force")
    assert "pipe.npz is a stream; expected a file for .npz" in said


def test_convert_refuses_options_of_the_way_in_on_the_way_out(shop: Path) -> None:
    said = fails("convert", shop / "numbers.bw", "out", "--to", "pecos", "--features", "5", code=2)
    assert "features" in said


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("odd")])
def test_errors_that_are_not_ours_are_a_line_too(shop: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(bw, "load", fail)
    said = fails("search", shop / "shop.bw", "wool")
    expected = "there is not enough memory" if isinstance(error, MemoryError) else "this is not meant to happen"
    assert expected in said
