"""later.py — `beamwood serve` and `beamwood convert`: names that are kept for verbs to come."""

from __future__ import annotations

from typing import Annotated

import typer

from beamwood import __version__
from beamwood.errors import SettingsError

Words = Annotated[list[str] | None, typer.Argument(hidden=True)]


def serve(words: Words = None) -> None:
    """Answer over HTTP. Not yet in this version.

    Example, until then: beamwood search model.bw history of jazz
    """
    raise SettingsError(
        f"serve is not yet in this version ({__version__}); use `beamwood search` or `beamwood predict` until then"
    )


def convert(words: Words = None) -> None:
    """Bring in models of other programs. Not yet in this version.

    Example, until then: beamwood inspect model.bw
    """
    raise SettingsError(
        f"convert is not yet in this version ({__version__}); use Model.from_layers in Python until then"
    )
