"""convert.py — a foreign folder in, a model and what was found out; and a model in, a foreign folder out."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from beamwood.errors import FormatError, SettingsError
from beamwood.interop import napkinxc, omikuji, parabel, pecos, pecos_text, tree_text
from beamwood.interop.foreign import Imported, ImportedText
from beamwood.model import Model
from beamwood.storage.draft import checked_path

MODELS: dict[str, ModuleType] = {
    "pecos": pecos,
    "napkinxc": napkinxc,
    "omikuji": omikuji,
    "parabel": parabel,  # and Bonsai: the file `param` tells them apart
}
TEXTS: dict[str, ModuleType] = {"pecos-text": pecos_text}
WRITERS: dict[str, Callable[..., list[str]]] = {
    "pecos": pecos.write,
    "napkinxc": napkinxc.write,
    "omikuji": omikuji.write,
    "tree": tree_text.write,
}
_FASTTEXT = (793712314).to_bytes(4, "little")  # the first bytes of its models
_ADVICE = "Give the folder that the other program saved."


def kind_of(source: Path) -> str:
    """What a folder holds, by the names of its files."""
    if os.path.isdir(source):  # False for a name that no folder can have
        for name, module in {**MODELS, **TEXTS}.items():
            if module.is_folder(source):
                return name
        raise FormatError(f"{source} looks like no known folder; expected one of {', '.join(KINDS)}. {_ADVICE}")
    if _is_fasttext(source):
        raise FormatError(
            f"{source} is a model of fastText, made of dense vectors of words; expected one of sparse trees. Train "
            "anew from the same __label__ file: beamwood train FILE --format fasttext"
        )
    found = "it is a file" if os.path.exists(source) else "nothing is there"
    raise FormatError(f"{source}: {found}; expected a folder. {_ADVICE}")


def _is_fasttext(source: Path) -> bool:
    """Whether a file begins as those of fastText do."""
    try:
        with open(source, "rb") as file:
            return file.read(4) == _FASTTEXT
    except (OSError, ValueError):
        return False


KINDS = (*MODELS, *TEXTS)


def read(source: str | os.PathLike[str], kind: str | None = None, features: int | None = None) -> Imported:
    """A model that another program made.

    kind: one of MODELS; None guesses. features: columns of X, for formats that do not say.
    """
    folder = checked_path(source)
    kind = kind or kind_of(folder)
    if kind in TEXTS:
        raise SettingsError(f"{folder} holds text features; expected a model. Read them with read_text (--text).")
    if kind not in MODELS:
        raise SettingsError(f"kind is {kind!r}; expected one of {', '.join(MODELS)}.")
    found: Imported = MODELS[kind].read(folder, features) if kind == "napkinxc" else MODELS[kind].read(folder)
    if features is not None and found.model.n_features != features:
        raise SettingsError(
            f"features is {features}; expected {found.model.n_features:,}, as {folder} says. Leave it out."
        )
    return found


def read_text(source: str | os.PathLike[str], kind: str | None = None) -> ImportedText:
    """Text features that another program made: give them to model.with_text."""
    folder = checked_path(source)
    kind = kind or kind_of(folder)
    if kind not in TEXTS:
        raise SettingsError(f"{folder} does not hold text features; expected one of {', '.join(TEXTS)}.")
    found: ImportedText = TEXTS[kind].read(folder)
    return found


def write(model: Model, target: str | os.PathLike[str], kind: str, *, force: bool = False, **how: Any) -> list[str]:
    """Writes a model as another program would have; returns what is not kept or not the same there.

    The folder appears when it is complete; one that is there already is replaced only with force=True.
    """
    if kind not in WRITERS:
        raise SettingsError(
            f"kind is {kind!r}, which models cannot be written as; expected one of {', '.join(WRITERS)}."
        )
    with _beside(checked_path(target), force) as draft:
        return WRITERS[kind](model, draft, **how)


@contextmanager
def _beside(target: Path, force: bool) -> Iterator[Path]:
    """A place to write to that takes the target's when the block ends well, and vanishes when it does not."""
    if os.path.exists(target) and not force:
        raise SettingsError(f"{target} is there already. Give another name, or force=True (--force) to replace it.")
    if not os.path.isdir(target.absolute().parent):
        raise SettingsError(f"{target}: the folder {target.absolute().parent} does not exist. Make it first.")
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".draft", dir=target.absolute().parent))
    except OSError as error:
        raise SettingsError(f"{target}: cannot be made ({error.strerror}). Give another name or folder.") from None
    try:
        yield draft / "new"
        if target.exists():
            target.rename(draft / "old")
        (draft / "new").rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
