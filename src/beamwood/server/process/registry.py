"""registry.py — model files in, models ready to answer out; a new file takes the old one's place between two requests.

A request holds the `Served` it began with, so it is answered by one version of the model whatever happens meanwhile;
the last request that lets go of an old version frees it. A file that is not good is refused and nothing changes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from beamwood.errors import BeamwoodError
from beamwood.filters import Filter
from beamwood.model import Model, load
from beamwood.server.app import monitors
from beamwood.server.app.replies import Refusal
from beamwood.server.options import ServeOptions
from beamwood.server.process.handover import BadModel, OpenFiles

_OWN_REFERENCES = 2  # a variable, and the argument of the call that counts


@dataclass(frozen=True, eq=False)
class Served:
    """One version of one model, with the filters that were named at start."""

    name: str
    model: Model
    version: str
    filters: Mapping[str, Filter]
    lists: str  # a digest of the filters' files
    loaded: float = field(default_factory=time.time)

    @cached_property
    def head(self) -> bytes:
        """How every answer of this model begins."""
        return b'{"model":"%b","version":"%b",' % (self.name.encode(), self.version.encode())

    @cached_property
    def baselines(self) -> dict[str, float]:
        """What queries and answers were like in training."""
        return monitors.baselines_of(self.model)

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
            "beam": info["beam"],
            "text": self.model.has_text,
            "calibrated": self.model.is_calibrated,
            "filters": sorted(self.filters),
            "loaded": round(self.loaded, 3),
        }


class Registry:
    """The models of one worker by name. The first one answers when none is named."""

    def __init__(self, options: ServeOptions, files: OpenFiles) -> None:
        self._options = options
        self._served = opened(options, files, verify=False)
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

    def load(self, files: OpenFiles) -> dict[str, Served]:
        """Models of files that were verified; those that did not change, nor their filters, stay. Slow."""
        fresh = {}
        for name, served in opened(self._options, files, verify=False).items():
            before = self._served[name]
            same = served.version == before.version and served.lists == before.lists
            same = same and before.model.searcher.forest.intact()  # one whose file was cut is replaced by its like
            fresh[name] = before if same else served
        return fresh

    def put(self, fresh: dict[str, Served]) -> list[Served]:
        """Puts models in place, all at once; those that were there and are not any more."""
        replaced = [served for name, served in self._served.items() if served is not fresh[name]]
        self._served = fresh
        return replaced


def opened(options: ServeOptions, files: OpenFiles, verify: bool) -> dict[str, Served]:
    """All models of a server, from files that are open; BadModel says what is wrong with one."""
    lists = files.lists()
    return {
        name: _open(name, path, files.models[name], lists, verify, options.encoder)
        for name, path in options.models.items()
    }


def _open(name: str, path: Path, number: int, lists: dict[str, list[str]], verify: bool, encoder: str | None) -> Served:
    where = f"/proc/self/fd/{number}"  # the file that was opened, whatever its path leads to by now
    try:
        model = load(where, verify=verify)
        model = _with_encoder(model, encoder)
        filters = {label: model.filter(allow=keys, missing="ignore") for label, keys in lists.items()}
    except BeamwoodError as error:
        raise BadModel(name, str(error).replace(where, str(path))) from None
    return Served(name, model, model.version, filters, sha256(repr(lists).encode()).hexdigest())


def _with_encoder(model: Model, encoder: str | None) -> Model:
    """A model whose encoder is open: one that cannot be opened is found now, not by the first question.

    encoder: for a model that cannot open its own. Where that lies may have another name than where it was trained.
    """
    own = None if model.text is None else model.text.encoder
    if own is None:
        return model
    return model.with_encoder(own.opened() if encoder is None or own.opens_itself else encoder)


def free_when_unused(replaced: list[Served], seconds: float = 60.0) -> None:
    """Lets go of models once no request holds them: to unmap a large file takes long. Runs on a thread of its own."""
    ends = time.monotonic() + seconds
    while replaced:
        served = replaced.pop()
        while sys.getrefcount(served) > _OWN_REFERENCES and time.monotonic() < ends:
            time.sleep(0.05)
        del served
