"""named.py — the name of an encoder in, its function out: those that come with beamwood, and those of plug-ins.

A name is that of an entry point in the group `beamwood.encoders`, or of one of the ready ones here; behind a colon may
stand an argument: "model2vec:FOLDER". What the name stands for is a function of that argument (or None) that gives the
encoder. Only a plain name may stand in a model file and be opened from there: an argument may be a path or an address.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any

from beamwood.errors import BeamwoodError, SettingsError

GROUP = "beamwood.encoders"
LEARNT = "svd"  # the one that is learnt from the training rows: learnt.py
SHOWN = "(meaning)"  # what people read for each number of any encoder: no word is written so
_READY = {
    "wordllama": "beamwood.encoders.ready:wordllama",
    "model2vec": "beamwood.encoders.ready:model2vec",
    "onnx": "beamwood.encoders.ready:onnx",
}
_NUMBERED = ("wordllama",)  # whose argument is a number, which does no harm
_INSTALL = {"wordllama": "wordllama", "model2vec": "model2vec", "onnxruntime": "onnxruntime tokenizers"}


def is_plain(name: str) -> bool:
    """Whether it is a name that may be opened because a file says so."""
    own, colon, _ = name.partition(":")
    return own in _NUMBERED if colon else own in _READY or own in _plug_ins()


def is_learnt(name: object) -> bool:
    """Whether it is the encoder that is learnt from rows."""
    return isinstance(name, str) and name.partition(":")[0] == LEARNT


def check_name(name: str) -> None:
    """Refuses a name that nothing here stands for; opens nothing."""
    own = name.partition(":")[0]
    if own != LEARNT and own not in _READY and own not in _plug_ins():
        known = ", ".join(map(repr, sorted({LEARNT, *_READY, *_plug_ins()})))
        raise SettingsError(
            f"encoder is {name!r:.80}, and there is none of that name; expected one of {known}, or a function. "
            f"Install the package that provides it (entry points of the group {GROUP})."
        )


def opened(name: str) -> Callable[[list[str]], Any]:
    """The encoder of that name."""
    check_name(name)
    own, _, argument = name.partition(":")
    if own == LEARNT:
        raise SettingsError(f"encoder is {name!r}, which is learnt in training; expected one that is there already.")
    return _opened(own, argument or None)


@lru_cache(maxsize=8)
def _opened(own: str, argument: str | None) -> Callable[[list[str]], Any]:
    try:
        if own in _READY:
            module, _, function = _READY[own].partition(":")
            factory = getattr(import_module(module), function)
        else:
            factory = _plug_ins()[own].load()
        encoder = factory(argument)
    except (BeamwoodError, MemoryError):
        raise
    except ImportError as error:
        package = _INSTALL.get(error.name or "", own)
        raise SettingsError(
            f"encoder is {own!r}, which needs {error.name}; install it: pip install {package}"
        ) from None
    except Exception as error:  # whatever a plug-in raises
        raise SettingsError(
            f"encoder is {own!r}, which could not be opened: {type(error).__name__}: {error}. Look at what stands "
            "behind its colon, and at its installation."
        ) from error
    if not callable(encoder):
        raise SettingsError(f"encoder is {own!r}, which gave a {type(encoder).__name__}; expected a function.")
    return encoder  # type: ignore[no-any-return]


def _plug_ins() -> dict[str, metadata.EntryPoint]:
    """What installed packages provide."""
    return {point.name: point for point in metadata.entry_points(group=GROUP)}
