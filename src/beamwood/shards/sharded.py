"""sharded.py — the folder of a model that was cut in, an object that answers as the whole model does out."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from beamwood.engine import Engine, Forests
from beamwood.errors import FormatError, SettingsError
from beamwood.filters import Filter
from beamwood.ranker import Ranker
from beamwood.shards.cut import OWNERS
from beamwood.shards.folder import TOP, Manifest, read_manifest
from beamwood.shards.gather import Coverage, Gathering, Send, ShardFilter, bits_of
from beamwood.shards.part import Part
from beamwood.shards.wire import Ask, Told
from beamwood.storage.loading import load_piece
from beamwood.storage.parts import ModelParts

_NOT_HERE = "a model that was cut {what}; expected the whole one. Use the model that it was cut from."


class Sharded(Ranker):
    """A model that was cut by `bw.shard`: all of its parts, opened in this process, or asked over a network.

    It answers as the model does, bit for bit: topk, predict, search, search_many, filters, thresholds, probabilities.
    """

    _finds_texts = False

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        memory: str = "map",
        verify: bool = False,
        send: Send | None = None,
        encoder: Any = None,
    ) -> None:
        """Opens the folder that `bw.shard` wrote.

        memory, verify, encoder: as in `bw.load`.
        send:           who asks the shards, where they are elsewhere: takes what each is asked, gives what each told,
                        or the error that kept it from telling. None: shards are opened here.
        """
        manifest = read_manifest(folder)
        parts = load_piece(manifest.folder / TOP, memory, verify)
        part = parts.shape.part
        if parts.version != manifest.top or part is None or part.get("build") != manifest.build:
            raise FormatError(
                f"{manifest.folder / TOP} is not the one that the manifest lists; expected version {manifest.top}. Get "
                "a fresh copy of the folder."
            )
        parts = parts if encoder is None else parts.with_encoder(encoder)
        super().__init__(parts, Engine(), Forests(parts))
        self._manifest = manifest
        chosen = send if send is not None else _Here(manifest, memory, verify)
        self._gathering = Gathering(parts, self._forests, chosen, tuple(one.labels for one in manifest.shards))
        self._searcher: Any = self._gathering
        owner = parts.sections[OWNERS]
        self._labels_of = [np.flatnonzero(owner == shard) for shard in range(self.n_shards)]
        self._shard_filters: weakref.WeakKeyDictionary[Filter, ShardFilter] = weakref.WeakKeyDictionary()

    @property
    def n_shards(self) -> int:
        """How many shards there are."""
        return len(self._manifest.shards)

    @property
    def version(self) -> str:
        """The version of the model that was cut."""
        return self._manifest.model

    @property
    def build(self) -> str:
        """What all of its parts have in common: the model's version and the number of shards."""
        return self._manifest.build

    @property
    def parts(self) -> ModelParts:
        """The arrays of the upper part, for modules of beamwood: may change from one version to the next."""
        return self._parts

    def info(self) -> dict[str, Any]:
        """Labels, features, depth and settings of the model; bytes of its upper part and of each shard."""
        sizes = [one.bytes for one in self._manifest.shards]
        return {**self._parts.info(), "shards": self.n_shards, "bytes_of_shards": sizes}

    def score(self, X: Any, labels: Any, *, threads: int = 1) -> Any:
        """Not of a model that was cut."""
        raise SettingsError(_NOT_HERE.format(what="scores no given labels"))

    def explain(self, query: Any, label: Any, **asked: Any) -> Any:
        """Not of a model that was cut."""
        raise SettingsError(_NOT_HERE.format(what="explains nothing"))

    def _native_filter(self, filter: Filter) -> Any:
        native = super()._native_filter(filter)
        made = self._shard_filters.get(filter)
        if made is None:
            mask = filter.mask()
            made = ShardFilter(native, tuple(bits_of(mask, labels) for labels in self._labels_of))
            self._shard_filters[filter] = made
        return made

    def partial(self) -> Partial:
        """The same model, which leaves out shards that do not answer, and says so in `coverage`."""
        return Partial(self)

    def __repr__(self) -> str:
        return f"<beamwood.Sharded: {self.n_labels:,} labels in {self.n_shards} shards, build {self.build}>"


class Partial:
    """Answers of a model that was cut, of which shards may be missing; for one question, then look at `coverage`."""

    def __init__(self, whole: Sharded) -> None:
        self._whole, self._missing = whole, set[int]()
        self._view = object.__new__(Sharded)
        self._view.__dict__.update(whole.__dict__)
        self._view._searcher = whole._gathering.partly(self._tolerant)

    def _tolerant(self, send: Send) -> Send:
        def ask(asks: Mapping[int, Ask]) -> Mapping[int, Told | BaseException]:
            answers = send(asks)
            found = {shard: told for shard, told in answers.items() if isinstance(told, Told)}
            self._missing |= asks.keys() - found.keys()
            return found

        return ask

    @property
    def model(self) -> Sharded:
        """What to ask."""
        return self._view

    @property
    def coverage(self) -> Coverage:
        """What the answers so far rest on."""
        sizes = [one.labels for one in self._whole._manifest.shards]
        missing = tuple(sorted(self._missing))
        left = sum(sizes) - sum(sizes[shard] for shard in missing)
        return Coverage(left, sum(sizes), len(sizes), missing)


class _Here:
    """Shards that are opened in this process, asked one after the other."""

    def __init__(self, manifest: Manifest, memory: str, verify: bool) -> None:
        self._parts = [opened(manifest, shard, memory, verify) for shard in range(len(manifest.shards))]

    def __call__(self, asks: Mapping[int, Ask]) -> Mapping[int, Told | BaseException]:
        return {shard: self._parts[shard].tell(ask) for shard, ask in asks.items()}


def opened(manifest: Manifest, shard: int, memory: str = "map", verify: bool = False) -> Part:
    """A shard of a folder, which must be the one that its manifest lists."""
    part = Part.open(manifest.path(shard), memory, verify)
    listed = manifest.shards[shard]
    if (part.number, part.build, part.version) != (shard, manifest.build, listed.version):
        raise FormatError(
            f"{manifest.path(shard)} is shard {part.number} of build {part.build}, version {part.version}; expected "
            f"shard {shard} of {manifest.build}, version {listed.version}. Get a fresh copy of the folder."
        )
    return part
