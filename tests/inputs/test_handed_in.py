"""What people hand in: lists of label ids, generators, dense and damaged files; as meant, or refused in our words."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.damaged import plain

import beamwood as bw
from beamwood.inputs.data import iter_records, read_matrix, read_records
from beamwood.inputs.label_matrix import label_matrix


@pytest.mark.parametrize(
    "Y", [[[0, 2], [], [1]], ((0, 2), (), (1,)), [{0, 2}, set(), {1}], [np.array([2, 0]), [], [1]]]
)
def test_lists_of_label_ids_are_label_ids(Y: Any) -> None:
    assert label_matrix(Y, "Y").toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("Y", [[[0, 1]] * 6, [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, 1], [1, 0, 1]]])
def test_lists_of_zeros_and_ones_are_not_taken_for_ids(Y: Any) -> None:
    with pytest.raises(bw.DataError, match=r"give np.array\(Y\)"):
        bw.train(plain(8), Y, "fast", progress=False)


def test_one_label_per_row_gets_advice() -> None:
    with pytest.raises(bw.DataError, match=r"1 dimension; expected 2. .*\[\[label\] for label in y\]"):
        bw.train(plain(8), np.arange(6), "fast", progress=False)


def test_texts_and_labels_may_be_generators() -> None:
    texts, labels = ["red wool", "blue hat", "red hat"], [["wool"], ["hat"], ["hat"]]
    how: dict[str, Any] = {"preset": "fast", "progress": False}
    model = bw.train_text((text for text in texts), ((key for key in row) for row in labels), **how)
    assert model.search("red wool") == bw.train_text(texts, labels, **how).search("red wool")


def test_measures_mark_what_lies_beyond_the_ranking() -> None:
    found = bw.evaluate((np.zeros((6, 1), int), np.ones((6, 1))), plain(4), at=(1, 3))
    assert found.depth == 1
    assert str(found).splitlines()[0].split() == ["at", "1", "3*"]
    assert "rows have 1 ranked labels at most" in str(found)


def test_a_dense_array_file_is_a_matrix(tmp_path: Path) -> None:
    dense = plain(5).toarray()
    for order in "CF":
        np.save(tmp_path / "x.npy", np.array(dense, order=order))
        assert (read_matrix(tmp_path / "x.npy").toarray() == dense).all()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_every_format_that_scipy_saves_is_read(form: str, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "x.npz", plain(8, form))
    assert (read_matrix(tmp_path / "x.npz").toarray() == plain(8).toarray()).all()


def test_no_byte_of_a_npz_can_do_more_than_be_refused(tmp_path: Path) -> None:
    path, rng = tmp_path / "x.npz", np.random.default_rng(3)
    sp.save_npz(path, plain(8))
    good = path.read_bytes()
    for _ in range(300):
        data = bytearray(good)
        data[rng.integers(len(data))] = rng.integers(256)
        path.write_bytes(data[: rng.integers(len(data)) if rng.random() < 0.2 else None])
        with contextlib.suppress(bw.DataError):
            read_matrix(path)


def test_a_bare_carriage_return_in_a_header_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"text,la\rbels\nred,wool\n")
    with pytest.raises(bw.DataError, match=r"x.csv"):
        read_records(tmp_path / "x.csv")


def test_lines_and_rows_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sources", "records"):
        monkeypatch.setattr(f"beamwood.inputs.{module}.LONGEST_LINE", 100)
    good = b'{"text": "a", "labels": ["b"]}\n'
    (tmp_path / "x.jsonl").write_bytes(good + b'{"text": "' + b"w" * 500 + b'"}\n' + good)
    bad: list[str] = []
    assert len(list(iter_records(tmp_path / "x.jsonl", on_bad=bad.append))) == 2
    assert len(bad) == 1
    assert "line 2: it has more than 100 bytes" in bad[0]
    (tmp_path / "x.csv").write_bytes(b'text,labels\n"open' + b"\nmore" * 100)
    with pytest.raises(bw.DataError, match="quote that is not closed"):
        read_records(tmp_path / "x.csv")


@pytest.mark.filterwarnings("ignore")
def test_values_too_large_to_add_up_are_blamed_on_X() -> None:
    with pytest.raises(bw.DataError, match=r"X has values up to 3.4e\+38"):
        bw.train(plain(8) * np.float32(1.7e38), plain(4), "fast", progress=False)


def test_the_command_line_notes_what_looks_wrong_with_labels(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,labels\nred wool,socks;wool\nblue hat,hat;wool\n")
    (tmp_path / "names.txt").write_text("trousers\tTrousers\n")
    options = [tmp_path / "x.csv", "-o", tmp_path / "m.bw", "--labels-file", tmp_path / "names.txt", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "beamwood", "train", *map(str, options)], capture_output=True, text=True, check=True
    )
    assert "100% of the labels contain ';'. If it stands between labels, give --separator ';'" in done.stderr
    assert "has names for 0 of 2 labels" in done.stderr
