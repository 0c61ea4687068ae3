"""blocks.py — named groups of features, sparse or dense, in; one sparse row per query out, as a model takes it.

The law: in each row, the values of a block are divided by their length (the l2 norm, summed in float64 by rising
column), multiplied by the block's weight and rounded to float32 once. So a row depends on no other row, and a block of
large numbers does not drown the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.errors import DataError
from beamwood.inputs.matrices import as_csr, empty_rows, row_lengths

_LONGEST_NAME = 100


@dataclass(frozen=True)
class FeatureBlock:
    """One named group of features. The weights of a model's blocks have the length one together; 0 leaves one out."""

    name: str
    columns: int
    weight: float


@dataclass(frozen=True)
class FeatureBlocks:
    """The blocks of a model, left to right in its features. Never changes.

    optional: names of those that a query need not have; they then count as zeros.
    """

    each: tuple[FeatureBlock, ...]
    optional: frozenset[str] = frozenset()

    @property
    def columns(self) -> int:
        """All features."""
        return sum(block.columns for block in self.each)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, left to right."""
        return tuple(block.name for block in self.each)

    @property
    def advice(self) -> str:
        """What a query should look like."""
        said = ", ".join(f"{block.name!r}: … of {block.columns:,} columns" for block in self.each)
        return f"Give the model's blocks: {{{said}}}."

    def feature(self, column: int) -> str:
        """What people read for one of the features: its block and its number there, from 0 on."""
        for block in self.each:
            if column < block.columns:
                return f"{block.name} {column}"
            column -= block.columns
        raise IndexError(column)

    def joined(self, given: Mapping[Any, Any], what: str) -> Any:
        """The rows of blocks side by side, scaled and weighed, as CSR float32."""
        missing = [name for name in self.names if name not in given and name not in self.optional]
        unknown = [name for name in given if name not in self.names]
        if missing or unknown:
            found = ", ".join(map(repr, given)) or "no blocks"
            raise DataError(f"{what} has {found}; expected {', '.join(map(repr, self.names))}. {self.advice}")
        rows = {
            block.name: as_csr(given[block.name], block.columns, f"{what}[{block.name!r}]", zeros=False)
            for block in self.each
            if block.name in given
        }
        count = _same_rows(rows, what)
        parts = [
            scaled(rows[block.name], block.weight)
            if block.name in rows and block.weight > 0
            else empty_rows(count, block.columns)
            for block in self.each
        ]
        return sp.csr_array(sp.hstack(parts, format="csr"))

    def weighed(self, weights: Mapping[str, float]) -> FeatureBlocks:
        """The same blocks with other weights, which are brought to length one together."""
        exponent = math.frexp(max(weights[block.name] for block in self.each))[1]  # squares must be neither 0 nor inf
        near_one = {block.name: math.ldexp(weights[block.name], -exponent) for block in self.each}
        length = math.sqrt(sum(weight**2 for weight in near_one.values()))
        each = tuple(FeatureBlock(b.name, b.columns, near_one[b.name] / length) for b in self.each)
        return FeatureBlocks(each, self.optional)

    def describe(self) -> list[dict[str, Any]]:
        """As plain JSON values."""
        return [
            {"name": b.name, "columns": b.columns, "weight": b.weight, "optional": b.name in self.optional}
            for b in self.each
        ]

    @classmethod
    def read(cls, given: Any, features: int) -> FeatureBlocks | None:
        """From the description in a file, which may be damaged (then a ValueError or the like); None: no blocks."""
        if given is None:
            return None
        each = tuple(_read_block(block) for block in given)
        blocks = cls(each, frozenset(block["name"] for block in given if block["optional"] is True))
        if blocks.columns != features or len(set(blocks.names)) != len(each):
            raise ValueError("feature blocks do not make up the features")
        return blocks


def blocks_of(given: Mapping[Any, Any], what: str) -> tuple[FeatureBlocks, dict[str, Any]]:
    """Blocks with weights of one, as found in a training's rows; and these rows as CSR, by name."""
    if not given:
        raise DataError(f"{what} is an empty dictionary; expected blocks: {{'words': X, 'meaning': vectors}}.")
    for name in given:
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise DataError(
                f"{what} has a block named {name!r:.40}; expected a str of 1 to {_LONGEST_NAME} letters. Name each "
                "block after what it holds."
            )
    rows = {name: as_csr(matrix, None, f"{what}[{name!r}]", zeros=False) for name, matrix in given.items()}
    _same_rows(rows, what)
    each = tuple(FeatureBlock(name, int(matrix.shape[1]), 1.0) for name, matrix in rows.items())
    return FeatureBlocks(each), rows


def scaled(rows: Any, weight: float) -> Any:
    """Every row divided by its length and multiplied by a weight; rows without values stay so."""
    values = (rows.data * (weight / row_lengths(rows)[1])).astype(np.float32)
    return sp.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)


def _same_rows(rows: Mapping[str, Any], what: str) -> int:
    """How many rows each block has; all must have as many."""
    counts = {name: int(matrix.shape[0]) for name, matrix in rows.items()}
    if len(set(counts.values())) != 1:
        found = ", ".join(f"{count:,} in {name!r}" for name, count in counts.items()) or "none"
        raise DataError(f"the blocks of {what} have different numbers of rows ({found}); expected one row per query.")
    return next(iter(counts.values()))


def _read_block(given: Any) -> FeatureBlock:
    name, columns, weight = given["name"], given["columns"], given["weight"]
    if not isinstance(name, str) or type(columns) is not int or columns < 0:
        raise ValueError("a feature block without a name or columns")
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= 1:
        raise ValueError("a feature block without a weight")
    return FeatureBlock(name, columns, float(weight))
