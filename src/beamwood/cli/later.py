"""later.py — `beamwood convert`: a name that is kept for a verb to come."""

from __future__ import annotations

from typing import Annotated

import typer

from beamwood import __version__
from beamwood.errors import SettingsError

Words = Annotated[list[str] | None, typer.Argument(hidden=True)]


def convert(words: Words = None) -> None:
    """Bring in models of other programs. Not yet in this version.

    Example, until then: beamwood inspect model.bw
    """
    raise SettingsError(
        f"convert is not yet in this version ({__version__}); use Model.from_layers in Python until then"
    )
