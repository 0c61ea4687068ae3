"""A backend `beamwood` for Annif, the toolkit of libraries for subject indexing: docs/ecosystem/annif.md.

Annif finds its backends in a table of its own and has no entry points; `register()` adds ours to it, and
`python -m beamwood.annif …` is the command `annif …` with that done.
"""

from __future__ import annotations

from typing import Any


def register() -> None:
    """Makes the backend `beamwood` known to Annif in this process."""
    import annif.backend

    vars(annif.backend)["_backend_fns"]["beamwood"] = _backend


def _backend() -> Any:
    """The class, imported when a project asks for it."""
    from beamwood.annif.backend import BeamwoodBackend

    return BeamwoodBackend
