"""part.py — the file of a shard and questions in, the best of its own labels out."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any

import numpy as np

from beamwood import _core
from beamwood.engine import Engine, Forests, allocate
from beamwood.errors import BeamwoodError, DataError, FormatError
from beamwood.shards.cut import LABELS
from beamwood.shards.wire import Ask, Told
from beamwood.storage.loading import load_piece
from beamwood.storage.parts import ModelParts

_FILTERS = 16  # kept, the last ones used


class OtherBuild(BeamwoodError):
    """Parts of different cuts or versions of a model met: their answers are never put together."""


class Part:
    """One shard, opened. Any number of threads may ask it."""

    def __init__(self, parts: ModelParts) -> None:
        part = parts.shape.part
        labels = parts.sections.get(LABELS)
        if part is None or part.get("number") is None or labels is None or len(labels) != parts.shape.labels:
            raise FormatError("the file is no shard; expected one that `beamwood shard` wrote. Get a fresh copy.")
        self.number, self.build, self.of = int(part["number"]), str(part["build"]), str(part["of"])
        self.version = parts.version
        self._labels = np.append(labels.astype(np.int64), -1)  # -1 stays -1
        self._shape, self._forests = parts.shape, Forests(parts)
        self._searcher = self._forests.searcher(Engine())
        self._filters: OrderedDict[bytes, _core.Filter] = OrderedDict()

    @classmethod
    def open(cls, path: str | os.PathLike[str], memory: str = "map", verify: bool = False) -> Part:
        """From its file."""
        return cls(load_piece(path, memory, verify))

    @property
    def n_labels(self) -> int:
        """How many labels it has."""
        return self._shape.labels

    def tell(self, ask: Ask) -> Told:
        """Answers some queries."""
        if ask.build != self.build:
            raise OtherBuild(
                f"shard {self.number} is of build {self.build}; expected {ask.build}, that of the upper part. Serve "
                "parts of one cut of one model."
            )
        k = min(ask.k, self._shape.labels)
        filter = None if ask.allowed is None else self._filter(ask.allowed)
        if not self._shape.trees:
            return self._of_index(ask, k, filter)
        queries = len(ask.rows[0]) - 1
        labels, scores = allocate(queries, k)
        nodes = ask.nodes
        _check(
            _core.score_below(
                self._forests.cascade, *ask.rows, nodes.start, nodes.tree, nodes.layer, nodes.node, nodes.score, labels,
                scores, ask.threads, self._searcher.options, filter,
            )
        )  # fmt: skip
        if self._shape.head is None:
            return Told(self.build, self._labels[labels], scores)
        by_words, word_sums = allocate(queries, k)
        sums, best = np.zeros((queries, k), np.float32), np.empty(queries, np.float32)
        given: tuple[Any, ...] = (*ask.rows, labels, sums, by_words, word_sums, best, ask.threads, filter)
        _check(_core.words_of_part(self._forests.cascade, *given))
        return Told(self.build, self._labels[labels], scores, sums, self._labels[by_words], word_sums, best)

    def _of_index(self, ask: Ask, k: int, filter: Any) -> Told:
        """The exact best of a part of an index."""
        queries = len(ask.rows[0]) - 1
        labels, scores = allocate(queries, k)
        _check(
            self._forests.cascade.topk(
                *ask.rows, labels, scores, 1, ask.threads, self._searcher.options, False, False, filter, None
            )
        )
        return Told(self.build, self._labels[labels], scores)

    def _filter(self, bits: bytes) -> _core.Filter:
        found = self._filters.get(bits)
        if found is None:
            if len(bits) != -(-self._shape.labels // 8):
                raise DataError(f"a filter has {len(bits):,} bytes for {self._shape.labels:,} labels of a shard.")
            allowed = np.unpackbits(np.frombuffer(bits, np.uint8), count=self._shape.labels)
            found = self._filters[bits] = _core.Filter(self._forests.cascade, allowed)
            while len(self._filters) > _FILTERS:
                self._filters.popitem(last=False)
        return found


def _check(fault: Any) -> None:
    if fault:
        raise FormatError(
            "a shard is damaged, or was asked for rows that do not fit it. Get a fresh copy of its file; `beamwood "
            "shard` makes one."
        )
