"""`beamwood train`: every kind of data, every error seen, and what lies on disk afterwards."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from support.commands import ROWS, fails, good, run

import beamwood as bw


def test_train_on_texts_then_search(shop: Path) -> None:
    good("train", shop / "rows.jsonl", "-o", "m.bw", "--preset", "fast", "-q")
    assert bw.load("m.bw").search("wool socks", k=1)[0].key in ("socks", "wool")


def test_train_writes_the_same_file_as_the_library(shop: Path) -> None:
    good("train", shop / "rows.jsonl", "-o", "m.bw", "--preset", "fast", "-q", "--seed", 3, "--ngrams", "1-2")
    texts, labels = [r["text"] for r in ROWS], [r["labels"] for r in ROWS]
    text = bw.TextFeatures(ngram_range=(1, 2))
    bw.train_text(texts, labels, text=text, preset="fast", seed=3, progress=False).save("same.bw")
    assert Path("m.bw").read_bytes() == Path("same.bw").read_bytes()


def test_a_training_beyond_its_memory_is_refused_before_it_starts(shop: Path) -> None:
    said = fails("train", shop / "rows.jsonl", "-o", "m.bw", "-q", "--max-memory", "0.000001")
    assert "--max-memory is in GiB" in said
    assert not Path("m.bw").exists()
    good("train", shop / "rows.jsonl", "-o", "m.bw", "--preset", "fast", "-q", "--max-memory", 1, "--folds", 2)


def test_train_says_what_it_made_as_json_with_a_report(shop: Path) -> None:
    said = json.loads(good("train", shop / "rows.jsonl", "-o", "m.bw", "--report", "r.json", "--json"))
    assert said["labels"] == 5
    assert said["bytes"] == Path("m.bw").stat().st_size
    assert json.loads(Path("r.json").read_text())["rows"] == 6


def test_train_takes_matrices_xmc_and_svmlight(shop: Path) -> None:
    good("train", "--x", shop / "X.npz", "--y", shop / "Y.npz", "-o", "a.bw", "-q", "--preset", "fast")
    good("train", shop / "rows.txt", "-o", "b.bw", "-q", "--preset", "fast")
    good("train", shop / "rows.svm", "-o", "c.bw", "-q", "--preset", "fast")
    assert Path("a.bw").read_bytes() == Path("b.bw").read_bytes() == (shop / "numbers.bw").read_bytes()
    assert bw.load("c.bw").n_labels == 12


def test_train_takes_csv_gz_with_columns_and_a_separator() -> None:
    with gzip.open("rows.csv.gz", "wt") as file:
        file.write("title,tags\n" + "".join(f"{r['text']},{'|'.join(r['labels'])}\n" for r in ROWS))
    columns = ("--text-column", "title", "--labels-column", "tags", "--separator", "|")
    good("train", "rows.csv.gz", "-o", "m.bw", "-q", *columns)
    assert bw.load("m.bw").label_of("wool") is not None


def test_train_takes_standard_input(shop: Path) -> None:
    good("train", "-", "-o", "m.bw", "-q", stdin=(shop / "rows.jsonl").read_text())
    assert bw.load("m.bw").n_labels == 5


def test_tables_without_a_header_are_read_by_number(shop: Path) -> None:
    table = "".join(f"{n}\t{row['text']}\t{'|'.join(row['labels'])}\n" for n, row in enumerate(ROWS))
    Path("rows.tsv").write_text(table)
    how = ("--text-column", 2, "--labels-column", 3, "--separator", "|")
    good("train", "rows.tsv", "-o", "m.bw", "-q", *how)
    good("train", shop / "rows.jsonl", "-o", "same.bw", "-q")
    assert bw.load("m.bw").version == bw.load("same.bw").version
    good("evaluate", "m.bw", "rows.tsv", *how)
    good("predict", "m.bw", "rows.tsv", "--text-column", 2, "--id-column", 1, "-o", "answers.jsonl")
    assert [json.loads(line)["id"] for line in Path("answers.jsonl").read_text().splitlines()] == [
        str(n) for n in range(len(ROWS))
    ]
    said = fails("train", "rows.tsv", "-o", "n.bw", "-q", "--text-column", 2)
    assert "column '2' is nowhere among '0', " in said
    assert "by number, from 1 on" in said


def test_train_names_labels_from_a_file(shop: Path) -> None:
    Path("names.tsv").write_text("socks\tSocks and stockings\nboots\tBoots\n")
    good("train", shop / "rows.jsonl", "-o", "m.bw", "-q", "--labels-file", "names.tsv")
    model = bw.load("m.bw")
    assert model.name(model.label_of("socks")) == "Socks and stockings"
    Path("all.tsv").write_text("".join(f"k{i}\tName {i}\n" for i in range(12)))
    good("train", shop / "rows.txt", "-o", "n.bw", "-q", "--labels-file", "all.tsv")
    assert (bw.load("n.bw").key(3), bw.load("n.bw").name(3)) == ("k3", "Name 3")


def test_a_labels_file_with_a_column_too_many_is_noted(shop: Path) -> None:
    keys = ("socks", "wool", "shirts", "cotton", "boots")
    Path("broader.tsv").write_text("".join(f"{key}\t{key.title()}\tclothes\n" for key in keys))
    said = run("train", shop / "rows.jsonl", "-o", "m.bw", "-q", "--labels-file", "broader.tsv").stderr
    assert "note: broader.tsv has more than two columns; all behind the key is taken as the name" in said
    Path("names.tsv").write_text("".join(f"{key}\t{key.title()}\n" for key in keys) + "hats\tHats\tof felt\n")
    said = run("train", shop / "rows.jsonl", "-o", "n.bw", "-q", "--labels-file", "names.tsv").stderr
    assert "columns" not in said


def test_train_takes_any_setting_and_letters(shop: Path) -> None:
    words = ("--set", "trees=2", "--set", "prune=0.2", "--set", "loss=hinge", "--chars", "3-4", "--min-df", 1)
    good("train", shop / "rows.jsonl", "-o", "m.bw", "-q", *words)
    settings = bw.load("m.bw").settings
    assert (settings["trees"], settings["prune"], settings["loss"]) == (2, 0.2, "hinge")
    assert len(bw.load("m.bw").text.blocks) == 2


def test_train_refuses_to_replace_a_file_before_it_works(shop: Path) -> None:
    Path("m.bw").write_text("precious")
    assert "--force" in fails("train", "nowhere.jsonl", "-o", "m.bw")
    assert Path("m.bw").read_text() == "precious"
    good("train", shop / "rows.jsonl", "-o", "m.bw", "-q", "--force")
    Path("r.json").write_text("precious")
    assert "r.json" in fails("train", shop / "rows.jsonl", "-o", "new.bw", "--report", "r.json")
    assert not Path("new.bw").exists()


def test_train_never_replaces_a_pipe_or_a_device(shop: Path) -> None:
    os.mkfifo("pipe")
    for target in ("pipe", "-"):
        assert "is a stream" in fails("train", shop / "rows.jsonl", "-o", target, "-q", "--force")
    assert Path("pipe").is_fifo()


def test_train_counts_bad_rows_when_told_to_skip_them() -> None:
    rows = [json.dumps(row) for row in ROWS]
    Path("rows.jsonl").write_text("\n".join([*rows, "{broken", '{"text": 3, "labels": []}']) + "\n")
    assert "line 7" in fails("train", "rows.jsonl", "-o", "m.bw", "-q")
    assert not Path("m.bw").exists()
    assert json.loads(good("train", "rows.jsonl", "-o", "m.bw", "--skip-bad", "--json"))["skipped"] == 2


def test_bad_rows_that_are_left_out_are_named(shop: Path) -> None:
    rows = [json.dumps(row) for row in ROWS]
    Path("rows.jsonl").write_text("\n".join([*rows, "{broken", '{"text": 3, "labels": []}']) + "\n")
    said = run("train", "rows.jsonl", "-o", "m.bw", "--skip-bad", "-q").stderr
    assert "note: 2 bad rows were left out" in said
    assert "rows.jsonl, line 7: " in said
    assert "rows.jsonl, line 8: 'text' is 3; expected a string" in said
    lines = (shop / "rows.txt").read_text().splitlines()
    Path("rows.txt").write_text("\n".join([lines[0], *["x 0:1"] * 7, *lines[8:]]) + "\n")
    said = run("evaluate", shop / "numbers.bw", "rows.txt", "--skip-bad", "-q").stderr
    assert "note: 7 bad rows were left out" in said
    assert "rows.txt, line 2 has 'x'; expected " in said
    assert "rows.txt, line 6 has 'x'; expected " in said
    assert "line 7" not in said
    assert "and 2 more" in said


def test_train_shows_progress_and_notes_as_lines(shop: Path) -> None:
    rows = [*ROWS, {"text": "a hat", "labels": []}]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = run("train", "rows.jsonl", "-o", "m.bw").stderr
    assert "label vectors: done" in said
    assert "note: 1 rows have no label" in said


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("rows.jsonl",), 2, "-o model.bw"),
        (("-o", "m.bw"), 2, "DATA and --x: neither"),
        (("rows.jsonl", "--x", "X.npz", "-o", "m.bw"), 2, "DATA and --x: both"),
        (("rows.jsonl", "--y", "Y.npz", "-o", "m.bw"), 2, "--y has no --x"),
        (("--x", "X.npz", "-o", "m.bw"), 2, "--y Y.npz"),
        (("X.npz", "-o", "m.bw"), 1, "--x X.npz --y Y.npz"),
        (("rows.what", "-o", "m.bw"), 1, "--format"),
        (("rows.jsonl", "--format", "xls", "-o", "m.bw"), 2, "expected one of"),
        (("rows.jsonl", "--format", "lines", "-o", "m.bw"), 1, "holds only texts"),
        (("nowhere.jsonl", "-o", "m.bw"), 1, "no such file"),
        (("rows.jsonl", "-o", "nowhere/m.bw"), 1, "does not exist"),
        (("rows.jsonl", "-o", "."), 1, "is a folder"),
        (("rows.jsonl", "-o", "m.bw", "--text-column", "title"), 1, "'title'"),
        (("rows.jsonl", "-o", "m.bw", "--preset", "quick"), 1, "'fast'"),
        (("rows.jsonl", "-o", "m.bw", "--set", "branchin=4"), 1, "did you mean 'branching'"),
        (("rows.jsonl", "-o", "m.bw", "--set", "branching"), 2, "NAME=VALUE"),
        (("rows.jsonl", "-o", "m.bw", "--set", "seed=1"), 2, "--seed 1"),
        (("rows.jsonl", "-o", "m.bw", "--ngrams", "a-b"), 1, "1-2"),
        (("empty.jsonl", "-o", "m.bw"), 1, "no rows"),
        (("rows.jsonl", "-o", "m.bw", "--threads", "99999"), 1, "threads"),
        (("--x", "Y.npz", "--y", "short.npz", "-o", "m.bw"), 1, "expected the same"),
    ],
)
def test_train_errors(shop: Path, words: tuple[str, ...], code: int, expected: str, tmp_path: Path) -> None:
    for name in ("rows.jsonl", "X.npz", "Y.npz"):
        Path(name).write_bytes((shop / name).read_bytes())
    Path("empty.jsonl").write_text("")
    sp.save_npz("short.npz", sp.csr_matrix((3, 12), dtype=np.float32))
    assert expected in " ".join(fails("train", *words, code=code).replace("│", " ").split())
    assert not Path("m.bw").exists()
    assert not list(tmp_path.glob(".*.draft"))


def test_truth_values_may_be_written_in_small_letters(shop: Path) -> None:
    good("train", shop / "rows.jsonl", "-o", "m.bw", "--preset", "fast", "--set", "unit_rows=true", "-q")
    fails("train", shop / "rows.jsonl", "-o", "n.bw", "--set", "unit_rows=maybe", "-q")


def test_lines_of_fasttext_without_a_format_say_which_one_to_give(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("__label__socks red socks\n")
    assert "--format fasttext" in fails("train", tmp_path / "rows.txt", "-o", tmp_path / "m.bw")
