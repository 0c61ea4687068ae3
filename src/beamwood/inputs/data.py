"""data.py — files in, sparse rows of features and labels out: `.npz` and `.npy`, XMC-repository text and svmlight.

Text formats are parsed natively from blocks of bytes; the peak memory is the result. Texts with labels
(JSONL, CSV, Parquet) are read by records.py, whose functions can be reached from here too.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import as_path
from beamwood.inputs.label_table import LabelTable
from beamwood.inputs.matrices import MatrixLike, as_csr
from beamwood.inputs.npz import NPY_MAGIC, Unreadable, read_npy
from beamwood.inputs.npz import read_npz as read_npz_parts
from beamwood.inputs.records import Records, iter_records, read_records
from beamwood.inputs.sources import SKIP_BAD, Source, blocks, format_of, name_of, opened

__all__ = [
    "LabelTable",
    "LabelledRows",
    "Records",
    "format_of",
    "iter_records",
    "read_matrix",
    "read_npz",
    "read_records",
    "read_svmlight",
    "read_xmc",
    "write_xmc",
]

_MOST_IDS = 2**31 - 1
_MOST_ROWS = 2**63 - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledRows:
    """What a numeric file holds: rows of features, each with its labels.

    X: csr float32, one row of features per line, ids rising.
    Y: csr float32 of ones, the labels of each row. Empty (0 labels) when the file has targets instead.
    targets: float64, one number per row, when a svmlight file was read with multilabel=False.
    skipped, bad: how many bad lines were left out (skip_bad=True), and what was wrong with the first few.
    """

    X: sp.csr_array
    Y: sp.csr_array
    targets: npt.NDArray[np.float64] | None = None
    skipped: int = 0
    bad: tuple[str, ...] = ()


def read_xmc(source: Source, *, skip_bad: bool = False) -> LabelledRows:
    """Reads XMC-repository text: a line `rows features labels`, then `l,l f:v f:v` a row, ids from 0.

    A row may lack labels or features. Its labels are a set; features may come in any order, but not twice.
    """
    with opened(source) as stream:
        rows, features, labels = xmc_header(stream.readline(1 << 16), source)
        parser = _core.RowParser(
            svmlight=False,
            targets=False,
            rows=rows,
            features=features,
            labels=labels,
            skip_bad=skip_bad,
            first_line=2,
        )
        _feed(parser, stream, source)
    if parser.seen != rows:
        raise DataError(
            f"{name_of(source)} has {parser.seen:,} rows; expected {rows:,}, as its header says. "
            "The file was cut off or its first line is wrong."
        )
    return _rows_of(parser, features, labels, source)


def read_svmlight(
    source: Source,
    *,
    multilabel: bool = True,
    zero_based: bool | Literal["auto"] = "auto",
    features: int | None = None,
    labels: int | None = None,
    skip_bad: bool = False,
) -> LabelledRows:
    """Reads svmlight / libsvm lines `l,l f:v f:v # comment`.

    multilabel: the first word is a list of label ids from 0; False: it is one number, kept in `targets`.
    zero_based: whether feature ids start at 0; "auto": they start at 1 when there is no 0 in the file.
    features, labels: how many there are (one more than the largest id otherwise).
    """
    if zero_based not in (True, False, "auto"):
        raise SettingsError(f'zero_based is {zero_based!r}; expected True, False or "auto".')
    one_more = 0 if zero_based is True else 1
    parser = _core.RowParser(
        svmlight=True,
        targets=not multilabel,
        rows=_MOST_ROWS,
        features=_MOST_IDS if features is None else _checked_count("features", features) + one_more,
        labels=_MOST_IDS if labels is None else _checked_count("labels", labels),
        skip_bad=skip_bad,
        first_line=1,
    )
    with opened(source) as stream:
        _feed(parser, stream, source)
    return _rows_of(parser, features, labels, source, _Base(zero_based, name_of(source)))


def read_matrix(path: str | os.PathLike[str]) -> sp.csr_array:
    """Reads one scipy `.npz` file, or an array in a `.npy` file, as csr float32 with rising ids."""
    return sp.csr_array(as_csr(_load_matrix(path), None, name_of(path)))


def read_npz(features: str | os.PathLike[str], labels: str | os.PathLike[str]) -> LabelledRows:
    """Reads a pair of matrices from `.npz` or `.npy` files: rows x features and rows x labels."""
    X, Y = read_matrix(features), read_matrix(labels)
    if X.shape[0] != Y.shape[0]:
        raise DataError(
            f"{name_of(features)} has {X.shape[0]:,} rows and {name_of(labels)} {Y.shape[0]:,}; expected the same."
        )
    return LabelledRows(X=X, Y=Y)


def write_xmc(target: str | os.PathLike[str] | BinaryIO, X: MatrixLike, Y: MatrixLike) -> None:
    """Writes rows in the XMC repository's format; what `read_xmc` reads back is the same bit for bit."""
    rows, truth = as_csr(X, None, "X"), as_csr(Y, None, "Y")
    if rows.shape[0] != truth.shape[0]:
        raise DataError(f"X has {rows.shape[0]:,} rows and Y {truth.shape[0]:,}; expected the same.")
    if isinstance(target, (str, os.PathLike)):
        try:
            with open(target, "wb") as stream:
                _write_rows(stream, rows, truth)
        except OSError as error:
            raise DataError(f"{name_of(target)} cannot be written ({error.strerror}). Check the path.") from error
    else:
        _write_rows(target, rows, truth)


def xmc_header(line: bytes, source: Source) -> tuple[int, int, int]:
    """Rows, features and labels of an XMC file, from its first line."""
    words = line.split()
    if len(words) == 3 and all(word.isdigit() for word in words):
        rows, features, labels = (int(word) for word in words)
        if features <= _MOST_IDS and labels <= _MOST_IDS and rows <= _MOST_ROWS:
            return rows, features, labels
    if line.lstrip().startswith(b"__label__"):
        raise DataError(
            f"{name_of(source)}, line 1 has __label__, as fastText writes it; expected numbers. Read it as texts: "
            'read_records(…, format="fasttext") (--format fasttext).'
        )
    raise DataError(
        f"{name_of(source)}, line 1 is {line[:60].decode('utf-8', 'replace').strip()!r}; expected a header "
        "`rows features labels` of three whole numbers. Read a file without one with read_svmlight (--format svmlight)."
    )


def _feed(parser: Any, stream: BinaryIO, source: Source) -> None:
    good = all(parser.feed(block) for block in blocks(stream)) and parser.finish()
    if not good:
        raise DataError(f"{_bad_lines(parser, source)[0]}. {SKIP_BAD}")


def _bad_lines(parser: Any, source: Source) -> tuple[str, ...]:
    """What is wrong with the first few bad lines."""
    name = name_of(source)
    return tuple(f"{name}, line {line} has {found!r}; expected {expected}" for line, found, expected in parser.bad)


@dataclass(frozen=True)
class _Base:
    """How feature ids of a svmlight file are numbered."""

    zero_based: bool | Literal["auto"]
    name: str

    def shift(self, ids: npt.NDArray[np.int32]) -> None:
        """Makes ids start at 0, in place."""
        lowest = int(ids.min()) if len(ids) else 0
        if self.zero_based is False and len(ids) and lowest == 0:
            raise DataError(f"{self.name} has feature 0; expected ids from 1 on. Set zero_based=True.")
        if self.zero_based is False or (self.zero_based == "auto" and lowest > 0):
            ids -= 1


def _rows_of(
    parser: Any, features: int | None, labels: int | None, source: Source, base: _Base | None = None
) -> LabelledRows:
    """The parser's arrays as matrices, without a copy of the large ones."""
    skipped = parser.bad_lines
    x_starts, x_ids, x_values, y_starts, y_ids, targets = parser.take()
    if base is not None:
        base.shift(x_ids)
        if features is not None and len(x_ids) and x_ids.max() >= features:
            raise DataError(f"{base.name} has feature {x_ids.max()}; expected ids below features={features}.")
    shape = len(x_starts) - 1
    return LabelledRows(
        X=_csr(x_starts, x_ids, x_values, (shape, _count(features, x_ids))),
        Y=_csr(y_starts, y_ids, np.ones(len(y_ids), dtype=np.float32), (shape, _count(labels, y_ids))),
        targets=targets if len(targets) else None,
        skipped=int(skipped),
        bad=_bad_lines(parser, source),
    )


def _count(given: int | None, ids: npt.NDArray[np.int32]) -> int:
    if given is not None:
        return given
    return int(ids.max()) + 1 if len(ids) else 0


def _csr(starts: Any, ids: Any, values: Any, shape: tuple[int, int]) -> sp.csr_array:
    # scipy needs both index arrays in one type; int32 is enough for all but the largest files.
    wide = np.int64 if len(ids) >= 2**31 else np.int32
    made: sp.csr_array = sp.csr_array(sp.coo_array(shape, dtype=np.float32))
    made.data, made.indices, made.indptr = values, ids.astype(wide, copy=False), starts.astype(wide)
    made.has_sorted_indices = True
    made.has_canonical_format = True
    return made


def _checked_count(name: str, count: Any) -> int:
    if isinstance(count, (int, np.integer)) and not isinstance(count, bool) and 0 <= count < _MOST_IDS:
        return int(count)
    raise SettingsError(f"{name} is {count!r}; expected a whole number from 0 to {_MOST_IDS - 1:,}, or None.")


def _load_matrix(path: str | os.PathLike[str]) -> Any:
    name = name_of(as_path(path, "the file to read"))
    with opened(path) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise DataError(f"{name} is not a regular file; expected a matrix in a .npz or .npy file.")
        data = stream.read()
    try:
        return read_npy(data) if data[:6] == NPY_MAGIC else read_npz_parts(data)
    except Unreadable as error:
        raise DataError(
            f"{name} holds no matrix: {error}. Write it with scipy.sparse.save_npz, or numpy.save for an array."
        ) from None


def _write_rows(stream: BinaryIO, X: Any, Y: Any, rows_per_block: int = 4096) -> None:
    stream.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
    for first in range(0, X.shape[0], rows_per_block):
        x, y = X[first : first + rows_per_block], Y[first : first + rows_per_block]
        starts = (x.indptr.astype(np.int64), y.indptr.astype(np.int64))
        ids = (x.indices.astype(np.int32), y.indices.astype(np.int32))
        stream.write(_core.print_rows(starts[0], ids[0], x.data, starts[1], ids[1]))
