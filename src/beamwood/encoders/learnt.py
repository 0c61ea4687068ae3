"""learnt.py — rows of words in, a vector per word out: directions in which the rows differ most, by a truncated SVD.

The law: a pure function of rows, size and seed, the same bits for any number of threads and whatever library numpy
multiplies matrices with. A randomised method (Halko, Martinsson, Tropp 2011): random directions are multiplied by the
rows and back some times, and made orthogonal in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.encoders.named import LEARNT
from beamwood.errors import DataError, FormatError, SettingsError
from beamwood.inputs.arguments import workers

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

USUAL_SIZE, MOST = 128, 1024
_MORE = 10  # directions beyond those that are kept
_ROUNDS = 4
_TINY = 1e-12  # of the largest eigenvalue: nothing is left in such a direction


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A vector per column of words; a text's vector is the sum of those of its words, by their values."""

    table: Floats  # words x columns

    name = LEARNT

    @property
    def columns(self) -> int:
        """The length of the vectors."""
        return int(self.table.shape[1])

    def of_rows(self, words: Any, threads: int | None) -> Floats:
        """One row per row of words (canonical CSR)."""
        return _times(words, self.table, workers(threads))

    @classmethod
    def read(cls, described: Any, table: Any, words: int) -> WordVectors:
        """From a file that may be damaged."""
        columns = described["columns"]
        if type(columns) is not int or not 1 <= columns <= MOST:
            raise FormatError("the vectors of words in the file have no columns. Restore the file from a copy.")
        if not isinstance(table, np.ndarray) or table.dtype != np.float32 or table.shape != (words * columns,):
            raise FormatError("the vectors of words in the file have another size. Restore the file from a copy.")
        return cls(table.reshape(words, columns))


def size_of(name: str) -> int:
    """The number behind "svd:"."""
    argument = name.partition(":")[2]
    if not argument:
        return USUAL_SIZE
    if not argument.isascii() or not argument.isdigit() or len(argument) > 9 or not 1 <= int(argument) <= MOST:
        raise SettingsError(f"encoder is {name!r:.60}; expected a whole number from 1 to {MOST:,} behind the colon.")
    return int(argument)


def learnt(rows: Any, size: int, seed: int, threads: int | None) -> WordVectors:
    """The vectors that these rows of words (canonical CSR) teach; fewer columns where the rows have no more."""
    workers_ = workers(threads)
    most = min(size + _MORE, *rows.shape)
    if not rows.nnz:
        raise DataError("the texts have no words to learn vectors from; expected some. Leave encoder out.")
    turned = rows.T.tocsr()
    turned.sort_indices()
    words = np.random.default_rng(seed).standard_normal((rows.shape[1], most), dtype=np.float32)
    for _ in range(_ROUNDS):
        words = _orthogonal(_times(turned, _times(rows, words, workers_), workers_), workers_)
    found = _times(rows, words, workers_)
    values, vectors = _eigen(_gram(found, workers_))
    kept = int((values[:size] > _TINY * values[0]).sum())
    table = _turned(words, vectors[:, :kept], workers_)
    largest = table[np.abs(table).argmax(axis=0), np.arange(kept)]
    return WordVectors(np.ascontiguousarray(table * np.where(largest < 0, -1, 1).astype(np.float32)))


def _orthogonal(table: Floats, threads: int) -> Floats:
    """The same directions, orthogonal and of length one; those with nothing left in them go."""
    values, vectors = _eigen(_gram(table, threads))
    kept = values > _TINY * values[0]
    return _turned(table, vectors[:, kept] / np.sqrt(values[kept]), threads)


def _times(rows: Any, table: Floats, threads: int) -> Floats:
    out = np.empty((rows.shape[0], table.shape[1]), np.float32)
    arrays = (np.asarray(rows.indptr, np.int64), np.asarray(rows.indices, np.int32), rows.data)
    _core.row_vectors(*arrays, table.reshape(-1), table.shape[1], threads, out.reshape(-1))
    return out


def _gram(table: Floats, threads: int) -> Doubles:
    width = table.shape[1]
    out = np.empty(width * width)
    _core.gram(table.reshape(-1), width, threads, out)
    return out.reshape(width, width)


def _turned(table: Floats, matrix: Doubles, threads: int) -> Floats:
    out = np.empty((len(table), matrix.shape[1]), np.float32)
    _core.turned(
        table.reshape(-1),
        table.shape[1],
        np.ascontiguousarray(matrix).reshape(-1),
        matrix.shape[1],
        threads,
        out.reshape(-1),
    )
    return out


def _eigen(matrix: Doubles) -> tuple[Doubles, Doubles]:
    width = len(matrix)
    values, vectors = np.empty(width), np.empty(width * width)
    _core.eigen(matrix.reshape(-1), width, values, vectors)
    return values, vectors.reshape(width, width)
