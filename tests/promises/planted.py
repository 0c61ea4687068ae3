"""planted.py — the name of a server's campaign in, a folder for PYTHONPATH with a bug that it must find out."""

from __future__ import annotations

from pathlib import Path

# What Python runs first in every process of such a server: a part of it that does less than it promises.
BUGS = {
    "swap": """
import beamwood.server.process.verify as verify
from beamwood.server.process.registry import opened
verify.opened = lambda options, files, verify: opened(options, files, False)  # checksums are not compared
""",
    "term": """
import os, time
from beamwood.server.app.dispatch import App
App.drain = lambda self: (time.sleep(1), os._exit(0))  # what comes meanwhile is lost
""",
}


def folder_of(folder: Path, campaign: str) -> Path:
    """The folder, with the bug for this campaign in it."""
    (folder / "sitecustomize.py").write_text(BUGS[campaign], encoding="utf-8")
    return folder
