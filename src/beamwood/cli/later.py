"""later.py — `beamwood serve`: a name that is kept for a verb to come."""

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
