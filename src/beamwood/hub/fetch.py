"""fetch.py — the address of a model in, the path of its file in the cache out. Nothing else here opens a connection."""

from __future__ import annotations

import os
from pathlib import Path

from beamwood.hub.address import HubAddress, is_address, parsed


def fetch(address: str | os.PathLike[str]) -> Path:
    """The file behind an address, fetched unless the cache has it: what `beamwood.load` maps.

    hf://org/name:     from the Hugging Face hub or the server that `HF_ENDPOINT` names; needs the extra `hub`. Its main
                       branch, or a revision: hf://org/name@v2. Its model.bw or only `.bw`, or a file: hf://org/name/x.bw.
    https://…#sha256=…: from any web server; without a checksum it warns and says the one that it found.
    """
    found = parsed(address)
    if isinstance(found, HubAddress):
        from beamwood.hub.repository import fetched_from_hub

        return fetched_from_hub(found)
    from beamwood.hub.web import fetched_from_web

    return fetched_from_web(found)


def local_path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """A path as it is, or that of the file behind an address."""
    return fetch(path) if is_address(path) else path
