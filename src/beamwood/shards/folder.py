"""folder.py — a model in, a folder with its parts and a manifest out; and the manifest read back, checked."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beamwood.errors import FormatError, SettingsError
from beamwood.inputs.arguments import positive
from beamwood.model import Model, load
from beamwood.shards.cut import Cutter
from beamwood.storage import store
from beamwood.storage.draft import checked_path, disk_errors
from beamwood.storage.loading import load_piece
from beamwood.storage.parts import ModelParts

MANIFEST, TOP = "manifest.json", "top.bw"
_FORMAT = 1
_ADVICE = "Get a fresh copy of the folder, or make it again with `beamwood shard`."


@dataclass(frozen=True)
class ShardFile:
    """One shard as the manifest lists it: its file, the checksum of that, and what it holds."""

    file: str
    version: str
    labels: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """What a folder holds. model: the version of the whole model; build: that and the number of shards."""

    folder: Path
    model: str
    build: str
    labels: int
    top: str  # the version of the upper part
    shards: tuple[ShardFile, ...]

    def path(self, shard: int) -> Path:
        """The file of a shard."""
        return self.folder / self.shards[shard].file


def shard(model: Model | str | os.PathLike[str], folder: str | os.PathLike[str], shards: int) -> Manifest:
    """Cuts a model into an upper part and so many shards, in a new folder: together they give the model's answers.

    The upper part holds names, text features and the weights of all inner nodes; each shard the weights of some labels.

    model:  a model, or the path of its file.
    folder: where to; it appears when it is complete, and must not be there before.
    shards: how many, at most one per label.
    """
    target = checked_path(folder)
    count = positive(shards, "shards")
    with disk_errors(target, 0):
        there = target.exists()  # a name that is too long is an error here
    if there:
        raise SettingsError(f"{target} is there already; expected a new folder. Give another, or remove it first.")
    if not target.parent.is_dir():
        raise SettingsError(f"{target.parent} is no folder; expected one. Make it first.")
    whole = model if isinstance(model, Model) else load(model)
    cutter = Cutter(whole, count)
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")
    draft.mkdir()
    try:
        top = _written(cutter.top(), draft / TOP)
        listed = [_written(parts, draft / f"shard-{number:04}.bw") for number, parts in enumerate(cutter.each_shard())]
        described = {
            "format": _FORMAT,
            "model": whole.version,
            "build": cutter.build,
            "labels": whole.n_labels,
            "top": {"file": TOP, "version": top.version, "bytes": top.bytes},
            "shards": [vars(one) for one in listed],
        }
        with disk_errors(target, 1 << 16):
            (draft / MANIFEST).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return read_manifest(target)


def _written(parts: ModelParts, path: Path) -> ShardFile:
    arrays, described = parts.contents()
    store.write_file(path, arrays, described)
    version = load_piece(path, "map", False).version
    return ShardFile(path.name, version, parts.shape.labels, path.stat().st_size)


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """What a folder says that it holds."""
    target = checked_path(folder)
    path = target / MANIFEST
    try:
        given: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FormatError(
            f"{path} cannot be read ({error.strerror}); expected a folder that `beamwood shard` wrote. Check the path."
        ) from None
    except (ValueError, RecursionError):
        raise FormatError(f"{path} is damaged: it is not JSON. {_ADVICE}") from None
    try:
        if given["format"] != _FORMAT:
            raise FormatError(
                f"{path} has format {given['format']!r:.20}; expected {_FORMAT}. Install a newer beamwood."
            )
        shards = tuple(
            ShardFile(_name(one["file"]), str(one["version"]), int(one["labels"]), int(one["bytes"]))
            for one in given["shards"]
        )
        found = Manifest(
            target.absolute(), str(given["model"]), str(given["build"]), int(given["labels"]),
            str(given["top"]["version"]), shards,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is damaged ({error!r:.80}). {_ADVICE}") from None
    if not shards or sum(one.labels for one in shards) != found.labels:
        raise FormatError(f"{path} is damaged: its shards do not hold all labels. {_ADVICE}")
    return found


def _name(given: Any) -> str:
    """A file inside of the folder."""
    if not isinstance(given, str) or not given or Path(given).name != given:
        raise ValueError(f"{given!r:.40} is no name of a file")
    return given
