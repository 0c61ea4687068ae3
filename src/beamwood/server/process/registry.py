"""registry.py — model files in, models ready to answer out; a new file takes the old one's place between two requests.

A request holds the `Served` it began with, so it is answered by one version of the model whatever happens meanwhile;
the last request that lets go of an old version frees it. A file that is not good is refused and nothing changes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from beamwood.errors import BeamwoodError, SettingsError
from beamwood.filters import Filter
from beamwood.model import Model, load
from beamwood.server.app.replies import Refusal
from beamwood.server.options import ServeOptions


@dataclass(frozen=True, eq=False)
class Served:
    """One version of one model, with the filters that were named at start."""

    name: str
    model: Model
    version: str
    filters: Mapping[str, Filter]
    lists: int  # a digest of the filters' files
    loaded: float = field(default_factory=time.time)

    @cached_property
    def head(self) -> bytes:
        """How every answer of this model begins."""
        return b'{"model":"%b","version":"%b",' % (self.name.encode(), self.version.encode())

    @cached_property
    def path(self) -> str:
        """How scores are put together along a path of the tree."""
        return str(self.model.info()["path"])

    @cached_property
    def description(self) -> dict[str, Any]:
        """What /v1/models says of it."""
        info = self.model.info()
        return {
            "name": self.name,
            "version": self.version,
            "labels": self.model.n_labels,
            "features": self.model.n_features,
            "trees": info["trees"],
            "depth": info["depth"],
            "nodes": info["nodes"],
            "activation": info["activation"],
            "text": self.model.text is not None,
            "filters": sorted(self.filters),
            "loaded": round(self.loaded, 3),
        }


class BadModel(BeamwoodError):
    """A file that was refused: the message is for those who may read paths, `name` for everyone."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Registry:
    """The models of one worker by name. The first one answers when none is named."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._served = {name: _open(name, path, options, verify=False) for name, path in options.models.items()}
        self._first = next(iter(self._served))

    def get(self, name: str | None) -> Served:
        """The model of that name, as it is now."""
        served = self._served.get(self._first if name is None else name)
        if served is None:
            known = ", ".join(self._served)
            raise Refusal(404, "unknown-model", f"There is no model of that name; there are: {known}.")
        return served

    def all(self) -> list[Served]:
        """All models, as they are now."""
        return list(self._served.values())

    def load_again(self) -> dict[str, Served]:
        """Every file read anew and checked throughout; models that did not change, nor their filters, stay. Slow."""
        fresh = {}
        for name, path in self._options.models.items():
            served = _open(name, path, self._options, verify=True)
            before = self._served[name]
            same = served.version == before.version and served.lists == before.lists
            fresh[name] = before if same else served
        return fresh

    def put(self, fresh: dict[str, Served]) -> int:
        """Puts models in place, all at once; how many are new."""
        count = sum(served is not self._served[name] for name, served in fresh.items())
        self._served = fresh
        return count


def _open(name: str, path: Path, options: ServeOptions, verify: bool) -> Served:
    try:
        model = load(path, verify=verify)
        keys = {label: _keys(file) for label, file in options.filters.items()}
        filters = {label: model.filter(allow=some, missing="ignore") for label, some in keys.items()}
    except BeamwoodError as error:
        raise BadModel(name, str(error)) from None
    assert model.version is not None
    digest = sha256(repr(keys).encode()).digest()
    return Served(name, model, model.version, filters, int.from_bytes(digest[:8], "big"))


def _keys(path: Path) -> list[str]:
    """The keys in a filter's file, one a line; those that a model does not have do no harm."""
    try:
        return [key for key in path.read_text(encoding="utf-8").splitlines() if key]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path}: the filter cannot be read ({type(error).__name__}); a key a line is wanted"
        ) from None
