"""Claims about the readers of numeric formats, their writer, and label tables."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from beamwood import DataError, MissingFileError, SettingsError, _core
from beamwood.inputs.data import LabelTable, format_of, read_npz, read_svmlight, read_xmc, write_xmc

XMC = b"""3 5 4
0,3 0:0.5 4:-1.25e-1
 2:1
1
"""


def parse_by_hand(text: bytes) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """The plain reader: float() and numpy's rounding."""
    lines = text.decode().splitlines()
    n, d, labels = map(int, lines[0].split())
    X, Y = sp.lil_matrix((n, d), dtype=np.float32), sp.lil_matrix((n, labels), dtype=np.float32)
    for row, line in enumerate(lines[1 : n + 1]):
        first, *rest = line.split(" ")
        for label in first.split(",") if first else []:
            Y[row, int(label)] = 1
        for pair in rest:
            feature, value = pair.split(":")
            X[row, int(feature)] = np.float32(float(value))
    return X.tocsr(), Y.tocsr()


def same(a: sp.csr_matrix, b: sp.csr_matrix) -> bool:
    """Equal in every array, bit for bit."""
    return (
        a.shape == b.shape
        and a.indptr.tolist() == b.indptr.tolist()
        and a.indices.tolist() == b.indices.tolist()
        and a.data.tobytes() == b.data.tobytes()
    )


def test_xmc_text_is_read_as_by_hand() -> None:
    rows = read_xmc(io.BytesIO(XMC))
    X, Y = parse_by_hand(XMC)
    assert same(rows.X, X)
    assert same(rows.Y, Y)
    assert [rows.X.dtype, rows.Y.dtype] == [np.dtype(np.float32)] * 2
    assert rows.skipped == 0
    for variant in (XMC[:-1], XMC.replace(b"\n", b"\r\n"), XMC + b"\n\n", XMC.replace(b" 4:", b"\t 4:")):
        assert same(read_xmc(io.BytesIO(variant)).X, X)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    n, d, labels = draw(st.integers(0, 8)), draw(st.integers(1, 20)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X: Any = sp.random(n, d, 0.4, format="csr", dtype=np.float32, random_state=rng)
    width = draw(st.sampled_from([32, 23, 8]))
    bits = rng.integers(0, 2**width, X.nnz, dtype=np.uint64).astype(np.uint32)
    X.data = np.where(np.isfinite(bits.view(np.float32)), bits.view(np.float32), np.float32(1))
    Y: Any = sp.random(n, labels, 0.4, format="csr", dtype=np.float32, random_state=rng)
    Y.data[:] = 1
    X.sort_indices()
    Y.sort_indices()
    return X, Y


@settings(max_examples=200, deadline=None)
@given(matrices())
def test_what_is_written_is_read_back_bit_for_bit(pair: tuple[sp.csr_matrix, sp.csr_matrix]) -> None:
    file = io.BytesIO()
    write_xmc(file, *pair)
    rows = read_xmc(io.BytesIO(file.getvalue()))
    assert same(rows.X, pair[0])
    assert same(rows.Y, pair[1])


@settings(max_examples=100, deadline=None)
@given(matrices(), st.data())
def test_rows_do_not_depend_on_where_blocks_are_cut(pair: tuple[Any, Any], data: st.DataObject) -> None:
    file = io.BytesIO()
    write_xmc(file, *pair)
    text = file.getvalue().split(b"\n", 1)[1]
    parser = _core.RowParser(
        svmlight=False, targets=False, rows=99, features=99, labels=99, skip_bad=False, first_line=1
    )
    while text:
        size = data.draw(st.integers(1, 30))
        assert parser.feed(text[:size])
        text = text[size:]
    assert parser.finish()
    _, ids, values, _, labels, _ = parser.take()
    assert ids.tolist() == pair[0].indices.tolist()
    assert values.tobytes() == pair[0].data.tobytes()
    assert labels.tolist() == pair[1].indices.tolist()


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=12).map(lambda d: format(d, "f")),
    st.from_regex(r"[+-]?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"[+-]?\.[0-9]{1,30}", fullmatch=True),
)


@settings(max_examples=500, deadline=None)
@given(NUMBERS)
def test_numbers_are_rounded_as_python_and_numpy_do(word: str) -> None:
    with np.errstate(over="ignore"):
        expected = np.float32(float(word))
    text = f"1 1 1\n 0:{word}\n".encode("ascii", "replace")
    if np.isfinite(expected):
        assert read_xmc(io.BytesIO(text)).X.data.tobytes() == expected.tobytes()
    else:
        with pytest.raises(DataError, match="range of float32"):
            read_xmc(io.BytesIO(text))


@pytest.mark.parametrize(
    ("line", "found", "expected"),
    [
        (b"0 5:1", "5:1", "feature id below 5"),
        (b"4 0:1", "4", "label ids below 4"),
        (b"0 0:nan", "0:nan", "decimal number"),
        (b"0 0:inf", "0:inf", "decimal number"),
        (b"0 0:1e39", "0:1e39", "float32"),
        (b"0 0:", "0:", "decimal number"),
        (b"0 0:1x", "0:1x", "decimal number"),
        (b"0 0:1e", "0:1e", "decimal number"),
        (b"0 0", "0", "feature:value"),
        (b"0 :1", ":1", "feature:value"),
        (b"0 -1:1", "-1:1", "feature:value"),
        (b"0, 0:1", "0,", "label ids"),
        (b"0,,1 0:1", "0,,1", "label ids"),
        (b"x 0:1", "x", "label ids"),
        (b"-1 0:1", "-1", "label ids"),
        (b"0 1:1 1:2", "feature 1 twice", "at most once"),
        (b"0 3:1 1:2 3:1", "feature 3 twice", "at most once"),
        (b"\xff\xfe 0:1", "??", "label ids"),
        (b"0 0:1\x00", "0:1?", "decimal number"),
        (b"0 99999999999999999999:1", "99999999999999999999:1", "feature id below 5"),
        (b"0 0:0x1p3", "0:0x1p3", "decimal number"),
    ],
)
def test_a_bad_line_is_described_or_skipped(line: bytes, found: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(b"3 5 4\n1 0:1\n" + line + b"\n2 1:1\n")
    with pytest.raises(DataError) as caught:
        read_xmc(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 3 has {found!r}; expected ")
    assert expected in message
    rows = read_xmc(path, skip_bad=True)
    assert rows.skipped == 1
    assert rows.X.toarray()[:, :2].tolist() == [[1, 0], [0, 1]]
    assert rows.Y.indices.tolist() == [1, 2]


def test_unsorted_features_are_sorted_and_labels_are_a_set() -> None:
    rows = read_xmc(io.BytesIO(b"1 5 4\n3,1,3 4:1 0:2 2:3\n"))
    assert rows.X.indices.tolist() == [0, 2, 4]
    assert rows.X.data.tolist() == [2, 3, 1]
    assert rows.Y.indices.tolist() == [1, 3]


@pytest.mark.parametrize("header", [b"", b"3 5\n", b"0,1 2:3\n", b"3 5 x\n", b"3 5 99999999999\n", b"-1 5 4\n"])
def test_a_missing_header_is_described(header: bytes) -> None:
    with pytest.raises(DataError, match=r"line 1 is .*; expected a header"):
        read_xmc(io.BytesIO(header + b"0 0:1\n"[: 6 * bool(header)]))


def test_too_few_and_too_many_rows_are_errors() -> None:
    with pytest.raises(DataError, match="has 2 rows; expected 3, as its header says"):
        read_xmc(io.BytesIO(b"3 5 4\n0 0:1\n1 1:1"))
    with pytest.raises(DataError, match="line 4 has '2'; expected no more rows"):
        read_xmc(io.BytesIO(b"2 5 4\n0 0:1\n1 1:1\n2 2:1\n"))
    assert read_xmc(io.BytesIO(b"2 5 4\n0 0:1\n1 1:1\n2 2:1\n"), skip_bad=True).skipped == 1
    assert read_xmc(io.BytesIO(b"0 5 4\n")).X.shape == (0, 5)


def test_svmlight_equals_scikit_learn() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    text = b"# head\n1.5 1:0.5 3:2 # comment\n\n-2 2:1\n+3e1 1:1 4:7.25\n0\n"
    for zero_based in (True, False, "auto"):
        X, y = datasets.load_svmlight_file(io.BytesIO(text), zero_based=zero_based, dtype=np.float32)
        ours = read_svmlight(io.BytesIO(text), multilabel=False, zero_based=zero_based)
        assert same(ours.X, X.astype(np.float32))
        np.testing.assert_array_equal(ours.targets, y)
    text = b"1,2 1:0.5 3:2\n0 2:1\n 1:1 # none\n"
    X, y = datasets.load_svmlight_file(io.BytesIO(text), multilabel=True, dtype=np.float32)
    ours = read_svmlight(io.BytesIO(text))
    assert same(ours.X, X)
    assert [tuple(row.indices) for row in ours.Y] == y
    assert read_svmlight(io.BytesIO(text), features=9, labels=7).X.shape == (3, 9)


def test_svmlight_ids_that_do_not_fit_are_errors() -> None:
    with pytest.raises(DataError, match="has feature 0; expected ids from 1 on"):
        read_svmlight(io.BytesIO(b"1 0:1\n"), zero_based=False)
    for zero_based, text in ((True, b"1 3:1\n"), (False, b"1 4:1\n"), ("auto", b"1 0:1 3:1\n")):
        with pytest.raises(DataError, match="feature"):
            read_svmlight(io.BytesIO(text), features=3, zero_based=zero_based)
    with pytest.raises(DataError, match="line 2 has 'one'; expected a number"):
        read_svmlight(io.BytesIO(b"1 1:1\none 1:1\n"), multilabel=False)
    with pytest.raises(SettingsError):
        read_svmlight(io.BytesIO(b""), zero_based="maybe")
    with pytest.raises(SettingsError):
        read_svmlight(io.BytesIO(b""), features=-1)


def test_compressed_files_and_standard_input_are_read(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "a.txt").write_bytes(XMC)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(XMC))
    half = len(XMC) // 2
    frames = zstandard.compress(XMC[:half]) + zstandard.compress(XMC[half:])
    (tmp_path / "a.txt.zst").write_bytes(frames)
    expected = read_xmc(tmp_path / "a.txt")
    for name in ("a.txt.gz", "a.txt.zst"):
        assert same(read_xmc(tmp_path / name).X, expected.X)
        broken = tmp_path / f"cut-{name}"
        broken.write_bytes((tmp_path / name).read_bytes()[:-9])
        with pytest.raises(DataError, match="damaged or cut off"):
            read_xmc(broken)
        broken.write_bytes(b"this is not compressed")
        with pytest.raises(DataError, match="damaged or cut off"):
            read_xmc(broken)
    code = "from beamwood.inputs.data import read_xmc; print(read_xmc('-').X.sum())"
    done = subprocess.run([sys.executable, "-c", code], input=XMC, capture_output=True, check=True)
    assert float(done.stdout) == expected.X.sum()


def test_files_that_cannot_be_read_are_data_errors(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="no such file"):
        read_xmc(tmp_path / "none.txt")
    with pytest.raises(DataError, match="cannot be read"):
        read_xmc(tmp_path)
    with pytest.raises(SettingsError, match="mode 'rb'"):
        read_xmc(io.StringIO("1 1 1"))


def test_npz_pairs_are_checked(tmp_path: Path) -> None:
    X = sp.random(6, 4, 0.5, format="csc", random_state=0)
    Y = sp.random(6, 3, 0.5, format="csr", random_state=1)
    sp.save_npz(tmp_path / "X.npz", X)
    sp.save_npz(tmp_path / "Y.npz", Y)
    rows = read_npz(tmp_path / "X.npz", tmp_path / "Y.npz")
    assert same(rows.X, X.tocsr().astype(np.float32))
    sp.save_npz(tmp_path / "short.npz", Y[:5])
    with pytest.raises(DataError, match="expected the same"):
        read_npz(tmp_path / "X.npz", tmp_path / "short.npz")
    np.savez(tmp_path / "dense.npz", a=np.ones(3))
    (tmp_path / "text.npz").write_text("hello")
    for wrong in ("dense.npz", "text.npz"):
        with pytest.raises(DataError, match="holds no matrix"):
            read_npz(tmp_path / "X.npz", tmp_path / wrong)
    with pytest.raises(MissingFileError, match="no such file"):
        read_npz(tmp_path / "none.npz", tmp_path / "Y.npz")
    for bad in (X * 1j, X * 1e300, X * np.nan):
        sp.save_npz(tmp_path / "bad.npz", bad)
        with pytest.raises(DataError):
            read_npz(tmp_path / "bad.npz", tmp_path / "Y.npz")


def test_formats_are_told_by_name() -> None:
    names = {
        "a.txt.gz": "xmc",
        "a.svm": "svmlight",
        "A.JSONL.zst": "jsonl",
        "x/y.tsv": "tsv",
        "a.parquet": "parquet",
    }
    assert {name: format_of(name) for name in names} == names
    for unknown in ("-", "no-such-rows", "a.gz", "a.xlsx"):
        with pytest.raises(SettingsError, match="tells no format"):
            format_of(unknown)


def test_label_tables_map_keys_to_ids_and_back(tmp_path: Path) -> None:
    rows = [["wool socks", "🧦"], [], ["b\tc", "b\nd", "wool socks"], ["Ä"]]
    table = LabelTable.from_labels(rows)
    assert table.keys == ("b\tc", "b\nd", "wool socks", "Ä", "🧦")
    assert table == LabelTable.from_labels(reversed(rows))
    Y = table.matrix(rows)
    assert Y.toarray().tolist() == [[0, 0, 1, 0, 1], [0] * 5, [1, 1, 1, 0, 0], [0, 0, 0, 1, 0]]
    assert table.id_of("Ä") == 3
    with pytest.raises(DataError, match="row 1 has the label 'never seen'"):
        table.matrix([["Ä"], ["never seen"]])
    assert table.matrix([["Ä"], ["never seen"]], unknown="skip").nnz == 1
    with pytest.raises(DataError, match="expected one of"):
        table.id_of("x")
    with pytest.raises(DataError, match="cannot be written"):
        table.save(tmp_path / "labels.tsv")
    named = LabelTable(("a", "b")).with_names({"b": "name\twith tab 🧦"})
    named.save(tmp_path / "labels.tsv")
    assert LabelTable.from_file(tmp_path / "labels.tsv") == named


def test_bad_label_tables_are_refused() -> None:
    for text, message in (
        (b"a\tA\nb\na\n", "'a' is there twice"),
        (b"a\n\tname\n", "line 2 is"),
        (b"a\n\xff\n", "line 2 has .* not UTF-8"),
    ):
        with pytest.raises(DataError, match=message):
            LabelTable.from_file(io.BytesIO(text))
    with pytest.raises(DataError, match="one name per key"):
        LabelTable(("a", "b"), ("A",))
    for wrong in ([["a"], "b"], [["a", 3]]):
        with pytest.raises(DataError):
            LabelTable.from_labels(wrong)
