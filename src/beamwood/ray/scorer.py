"""scorer.py — a batch of rows as an Arrow table in, the same rows with ranked labels out: what a worker does."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.batch.arrow import LabelColumn, lists
from beamwood.batch.lazy import Lazy
from beamwood.batch.rows import Block
from beamwood.batch.score import Asked
from beamwood.errors import DataError
from beamwood.inputs.matrices import as_csr
from beamwood.ray.cluster import same_version

ANSWERS = ("keys", "scores")


@dataclass(frozen=True)
class Columns:
    """Which columns are read, and which are carried along."""

    text: str
    sparse: tuple[str, ...] | None
    keep: tuple[str, ...] | None

    @property
    def read(self) -> tuple[str, ...]:
        return (self.text,) if self.sparse is None else self.sparse


class Scorer:
    """Answers batches with one model, which it loads when it starts."""

    def __init__(self, version: str, handle: Lazy, how: dict[str, Any], columns: Columns) -> None:
        same_version(version)
        self._model, self._columns = handle.model, columns
        self._keys = LabelColumn.keys(self._model.parts.sections, self._model.n_labels, short=True)
        self._asked = Asked(**{**how, "k": min(how["k"], self._model.n_labels)}, threads=1)

    def __call__(self, table: Any) -> Any:
        """The rows of a table with their answers."""
        kept = self._kept(table)
        labels, scores = self._asked.answers(self._model, Block(self._rows(table), None, 1.0))
        for name, column in zip(ANSWERS, lists([self._keys], labels, scores), strict=True):
            kept = kept.append_column(name, column)
        return kept

    def _kept(self, table: Any) -> Any:
        """What is carried along; says which columns are missing or in the way."""
        names = table.column_names
        keep = self._columns.keep
        kept = [name for name in names if name not in self._columns.read] if keep is None else list(keep)
        for name in (*self._columns.read, *kept):
            if name not in names:
                raise DataError(f"the rows have no column {name!r}; expected one of {', '.join(names)}.")
        for name in ANSWERS:
            if name in kept:
                raise DataError(f"the rows have a column {name!r}; expected none, for the answers have one. Rename it.")
        return table.select(kept)

    def _rows(self, table: Any) -> Any:
        """Texts, or a matrix."""
        taken = [table.column(name).combine_chunks() for name in self._columns.read]
        for name, column in zip(self._columns.read, taken, strict=True):
            if column.null_count:
                raise DataError(
                    f"column {name!r} has {column.null_count:,} rows without a value; expected one in each."
                )
        if self._columns.sparse is None:
            return self._texts(taken[0])
        return as_csr(self._matrix(*taken), self._model.n_features, "the rows")

    def _texts(self, column: Any) -> list[str]:
        import pyarrow as pa

        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise DataError(
                f"column {self._columns.text!r} is of type {column.type}; expected text. Name another with text_column."
            )
        texts: list[str] = column.to_pylist()
        return texts

    def _matrix(self, index: Any, value: Any) -> Any:
        import pyarrow.compute as pc

        counts = [pc.list_value_length(column).to_numpy(zero_copy_only=False) for column in (index, value)]
        if not np.array_equal(*counts):
            raise DataError("a row has not as many feature ids as values; expected one value per id.")
        ids, values = (pc.list_flatten(column).to_numpy(zero_copy_only=False) for column in (index, value))
        starts = np.concatenate([[0], np.cumsum(counts[0], dtype=np.int64)])
        features = self._model.n_features
        if len(ids) and (ids.min() < 0 or ids.max() >= features):
            raise DataError(f"the rows have a feature id outside 0 to {features - 1:,}; expected those of the model.")
        return sp.csr_array((values.astype(np.float32), ids.astype(np.int64), starts), shape=(len(counts[0]), features))


def written(table: Any, folder: str) -> Any:
    """Writes a file of answers and tells its name; whoever asked keeps only the files whose names arrived."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    os.makedirs(folder, exist_ok=True)
    name = f"part-{uuid.uuid4().hex}.parquet"
    pq.write_table(table, os.path.join(folder, name))
    return pa.table({"file": [name], "rows": [table.num_rows]})
