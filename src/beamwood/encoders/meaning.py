"""meaning.py — rows of words and their texts in; rows of words and vectors side by side, scaled and weighed, out.

What an encoder makes of a text is one more block of features behind its words, called "meaning". The blocks are joined
as blocks/blocks.py says: each divided by its own length, times its weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.blocks.blocks import FeatureBlock, FeatureBlocks, scaled
from beamwood.encoders.encoder import Encoder
from beamwood.encoders.learnt import WordVectors, learnt, size_of
from beamwood.encoders.named import is_learnt
from beamwood.errors import FormatError

Floats = npt.NDArray[np.float32]

WORDS, MEANING = "words", "meaning"
_PROBE, _TABLE = "encoder/probe", "encoder/vectors"
ARRAYS = (_PROBE, _TABLE)


@dataclass(frozen=True, eq=False)
class Meaning:
    """An encoder, and the two blocks that its vectors and the words make together."""

    source: Encoder | WordVectors
    blocks: FeatureBlocks

    @classmethod
    def of(cls, encoder: Any, words: Any, seed: int, threads: int | None) -> Meaning:
        """Opens an encoder, or learns one from rows of words; both blocks weigh the same."""
        if is_learnt(encoder):
            source: Encoder | WordVectors = learnt(words, size_of(encoder), seed, threads)
        else:
            source = Encoder.of(encoder)
        return cls(source, _blocks(words.shape[1], source.columns, 1.0, 1.0))

    @property
    def encoder(self) -> Encoder | None:
        """The encoder, if it is one that was not learnt."""
        return self.source if isinstance(self.source, Encoder) else None

    def vectors(self, words: Any, texts: Sequence[str], threads: int | None) -> Floats:
        """One row per text."""
        if isinstance(self.source, WordVectors):
            return self.source.of_rows(words, threads)
        return self.source.vectors(texts)

    def joined(self, words: Any, vectors: Floats) -> Any:
        """Both blocks side by side: the rows of `blocks.joined`, made of parts that need no check."""
        if not all(block.weight for block in self.blocks.each):
            return self.blocks.joined({WORDS: words, MEANING: vectors}, "the texts")
        there = vectors != 0
        start = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        dense = sp.csr_array((vectors[there], there.nonzero()[1], start), shape=vectors.shape)
        before = (words.indptr, start)
        indptr = before[0].astype(np.int64) + before[1]
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
        for block, part, own, other in zip(self.blocks.each, (words, dense), before, before[::-1], strict=True):
            rows = scaled(part, block.weight)
            left = block is self.blocks.each[0]
            at = np.arange(len(rows.data)) + np.repeat(other[:-1] if left else other[1:], np.diff(own))
            indices[at], values[at] = rows.indices + (0 if left else words.shape[1]), rows.data
        joined = sp.csr_array((values, indices, indptr), shape=(len(vectors), self.blocks.columns))
        joined.has_sorted_indices = joined.has_canonical_format = True
        return joined

    def weighed(self, blocks: FeatureBlocks) -> Meaning:
        """The same with other weights."""
        return replace(self, blocks=blocks)

    def bound(self, encoder: Any) -> Meaning:
        """The same with the function of its encoder."""
        assert isinstance(self.source, Encoder)
        return replace(self, source=self.source.bound(encoder))

    def described(self) -> dict[str, Any]:
        """As plain JSON values."""
        own = {"name": self.source.name, "columns": self.source.columns}
        return {**own, "weights": [block.weight for block in self.blocks.each]}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What its file holds beside that."""
        if isinstance(self.source, WordVectors):
            return {_TABLE: self.source.table.reshape(-1)}
        return {_PROBE: self.source.probe.reshape(-1)}

    @classmethod
    def read(cls, described: Any, arrays: Mapping[str, Any], words: int) -> Meaning | None:
        """The inverse, from a file that may be damaged: a FormatError, KeyError, TypeError or ValueError then."""
        if described is None:
            return None
        if is_learnt(described["name"]):
            source: Encoder | WordVectors = WordVectors.read(described, arrays.get(_TABLE), words)
        else:
            source = Encoder.read(described, arrays.get(_PROBE))
        weights = [float(weight) for weight in described["weights"]]
        if len(weights) != 2 or not all(0 <= weight <= 1 for weight in weights):
            raise FormatError("the weights of words and meaning are damaged. Restore the file from a copy.")
        return cls(source, _blocks(words, source.columns, *weights))


def _blocks(words: int, columns: int, of_words: float, of_meaning: float) -> FeatureBlocks:
    return FeatureBlocks((FeatureBlock(WORDS, words, of_words), FeatureBlock(MEANING, columns, of_meaning)))
