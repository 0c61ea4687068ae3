"""gather.py — queries in, the answers of a model that was cut out: nodes from the upper part, labels from its shards.

The law: answers are merged by the one order, and those of different builds never. A shard that does not answer is an
error that names it; or, where partial answers were asked for, it is left out, and `Coverage` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.engine import Engine, Forests, Found, allocate
from beamwood.errors import BeamwoodError, FormatError, SettingsError
from beamwood.inputs.matrices import as_csr
from beamwood.shards.cut import nodes_name
from beamwood.shards.part import OtherBuild
from beamwood.shards.wire import Ask, Nodes, Told
from beamwood.storage.parts import ModelParts

Answers = Mapping[int, Told | BaseException]
Send = Callable[[Mapping[int, Ask]], Answers]  # what each shard told, or why it did not


class ShardsMissing(BeamwoodError):
    """Some shards did not answer, and only a whole answer was asked for."""

    def __init__(self, missing: Mapping[int, BaseException], shards: int) -> None:
        self.missing = tuple(sorted(missing))
        why = next(iter(missing.values()))
        names = ", ".join(map(str, self.missing[:20]))
        super().__init__(
            f"shard {names} of {shards} does not answer ({type(why).__name__}); expected all. Ask again, or ask for "
            "partial answers."
        )


@dataclass(frozen=True)
class Coverage:
    """What partial answers rest on. labels: of the model's, those that were searched."""

    labels: int
    full: int
    shards: int
    missing: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether nothing was left out: then the answers are those of the whole model."""
        return not self.missing

    def describe(self) -> dict[str, Any]:
        """As plain JSON values."""
        shards = {"total": self.shards, "answered": self.shards - len(self.missing), "missing": list(self.missing)}
        return {"labels": self.labels, "full": self.full, "shards": shards, "exact": self.exact}


@dataclass(frozen=True, eq=False)
class ShardFilter:
    """A filter for the upper part, and the same as bits of the labels of each shard."""

    native: _core.Filter
    bits: tuple[bytes, ...]


class Gathering:
    """The upper part of a model, which asks shards through `send`: stands where a model has its searcher."""

    def __init__(
        self, parts: ModelParts, forests: Forests, send: Send, labels: tuple[int, ...], partial: bool = False
    ) -> None:
        """labels: how many each shard has. partial: shards that `send` says nothing of are declared elsewhere."""
        part = parts.shape.part
        if part is None or part.get("number") is not None or int(part["shards"]) != len(labels):
            raise FormatError("the file is no upper part of a model; expected one that `beamwood shard` wrote.")
        self.build, self.shards, self._send = str(part["build"]), len(labels), send
        self._parts, self._shape, self._forests, self._labels = parts, parts.shape, forests, labels
        self._partial = partial
        self._engine = forests.searcher(Engine())
        self._nodes = [self._nodes_of(shard) for shard in range(self.shards)]

    def _nodes_of(self, shard: int) -> dict[tuple[int, int], npt.NDArray[np.uint32]]:
        """For each tree and layer the nodes above it that a shard has, rising: their places are its own numbers."""
        found: dict[tuple[int, int], npt.NDArray[np.uint32]] = {}
        for tree, size in enumerate(self._shape.trees):
            found[tree, 0] = np.zeros(1, np.uint32)
            for layer in range(1, len(size.nodes)):
                found[tree, layer] = self._parts.sections.get(nodes_name(shard, tree, layer), np.zeros(0, np.uint32))
        return found

    def partly(self, wrap: Callable[[Send], Send]) -> Gathering:
        """The same, asking in a way made of the one that it has, which may leave shards out."""
        return Gathering(self._parts, self._forests, wrap(self._send), self._labels, partial=True)

    def topk(
        self,
        X: Any,
        k: int,
        beam: int,
        threads: int,
        exact: bool,
        with_stats: bool = False,
        sort_blocks: bool = True,
        filter: ShardFilter | None = None,
        checked: bool = False,
        found: Found | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], Any]:
        """Labels and scores (n x k): as Searcher.topk. An exact search follows every node."""
        if with_stats:
            raise SettingsError("stats is True; expected False: the work of a model that was cut is done elsewhere.")
        X = as_csr(X, self._shape.columns, "X")
        head = self._shape.head
        width = k if head is None else min(max(k, head.candidates), self._shape.labels)
        rows = (X.indptr, X.indices, X.data)
        nodes = self._walked(rows, width, self._widest() if exact else beam, threads, filter)
        told = self._told(rows, nodes, width, threads, filter)
        if head is None:
            return *merged([(one.labels, one.scores) for one in told], X.shape[0], k), None
        return *self._ranked(told, X.shape[0], k, width, found), None

    def _widest(self) -> int:
        return max((max(tree.nodes) for tree in self._shape.trees), default=1)

    def _walked(self, rows: Any, k: int, beam: int, threads: int, filter: ShardFilter | None) -> Nodes:
        """The nodes whose labels are to be scored."""
        if not self._shape.trees:
            return Nodes.none(len(rows[0]) - 1)
        native = None if filter is None else filter.native
        given: tuple[Any, ...] = (*rows, k, beam, threads, self._engine.options, native)
        fault, *met = _core.walk_above(self._forests.cascade, *given)
        if fault:
            raise FormatError("The upper part of the model is damaged. Get a fresh copy of its folder.")
        return Nodes(*met)

    def _told(self, rows: Any, nodes: Nodes, k: int, threads: int, filter: ShardFilter | None) -> list[Told]:
        """What shards say, widened to all queries."""
        asks: dict[int, Ask] = {}
        every = self._shape.index is not None  # words may be anywhere
        for shard in range(self.shards):
            own = self._own(shard, nodes)
            if every or len(own.tree):
                bits = None if filter is None else filter.bits[shard]
                asks[shard] = Ask(self.build, rows, own, k, bits, threads)
        answers = self._send(asks)
        missing = {shard: error for shard, error in answers.items() if not isinstance(error, Told)}
        if not self._partial:
            missing |= {shard: KeyError(shard) for shard in asks.keys() - answers.keys()}
        for error in missing.values():
            if isinstance(error, OtherBuild):
                raise error
        if missing:
            raise ShardsMissing(missing, self.shards)
        told = [one for one in answers.values() if isinstance(one, Told)]
        for one in told:
            if one.build != self.build:
                raise OtherBuild(f"an answer is of build {one.build}; expected {self.build}. Serve parts of one cut.")
        return told

    def _own(self, shard: int, nodes: Nodes) -> Nodes:
        """The nodes that a shard has, as it numbers them."""
        place = np.zeros(len(nodes.node), np.uint32)
        kept = np.zeros(len(nodes.node), bool)
        for (tree, layer), own in self._nodes[shard].items():
            if not len(own):
                continue
            at = np.flatnonzero((nodes.tree == tree) & (nodes.layer == layer))
            if not len(at):
                continue
            found = np.searchsorted(own, nodes.node[at]).clip(max=len(own) - 1)
            place[at], kept[at] = found, own[found] == nodes.node[at]
        counts = np.concatenate([[0], np.cumsum(kept)])
        return Nodes(counts[nodes.start], nodes.tree[kept], nodes.layer[kept], place[kept], nodes.score[kept])

    def _ranked(self, told: list[Told], queries: int, k: int, width: int, found: Found | None) -> Any:
        """Trees and words put together by the head."""
        listed, scores = merged([(one.labels, one.scores) for one in told], queries, width)
        sums = _beside(told, listed)
        by_words, word_sums = merged([(one.by_words, one.word_sums) for one in told], queries, width)
        sums_of_rows: Any = [one.best for one in told]
        best = np.max(sums_of_rows, axis=0, initial=0.0).astype(np.float32)
        best = np.broadcast_to(best, (queries,)).copy()
        answer = allocate(queries, k)
        by = np.zeros((queries, k), np.uint8) if found is None else found
        _core.rank_members(self._forests.cascade, listed, scores, sums, by_words, word_sums, best, *answer, by)
        return answer


def _beside(told: list[Told], listed: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """The sums of words of merged labels: each is one of those that some shard listed."""
    sums = np.zeros(listed.shape, np.float32)
    if not told:  # all are missing, and that is declared
        return sums
    given = np.concatenate([one.labels for one in told], axis=1)
    beside = np.concatenate([one.sums for one in told if one.sums is not None], axis=1)
    order = np.argsort(given, axis=1, kind="stable")
    given, beside = np.take_along_axis(given, order, 1), np.take_along_axis(beside, order, 1)
    for row in range(len(listed)):
        at = np.searchsorted(given[row], listed[row]).clip(max=given.shape[1] - 1)
        sums[row] = beside[row][at]
    return sums


def merged(lists: list[tuple[Any, Any]], queries: int, k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The best k of several ranked lists, by the one order."""
    answer = allocate(queries, k)
    if not lists:
        lists = [(np.full((queries, 1), -1, np.int64), np.full((queries, 1), -np.inf, np.float32))]
    labels = np.ascontiguousarray(np.concatenate([one for one, _ in lists], axis=1))
    _core.merge_ranked(labels, np.ascontiguousarray(np.concatenate([one for _, one in lists], axis=1)), *answer)
    return answer


def bits_of(mask: npt.NDArray[np.bool_], labels: npt.NDArray[Any]) -> bytes:
    """A filter as the bits of some labels."""
    return np.packbits(mask[labels]).tobytes()
