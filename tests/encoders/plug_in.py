"""A folder in, a package in it out that provides an encoder under a name, as an installed one does."""

from __future__ import annotations

from pathlib import Path

NAME = "letters"
CODE = """
import numpy as np

def factory(argument):
    size = int(argument or 26)
    def encode(texts):
        return np.array([[text.lower().count(chr(97 + i)) for i in range(size)] for text in texts], np.float32)
    return encode

def broken(argument):
    raise RuntimeError("no weights")

def nothing(argument):
    return 7

def unfinished(argument):
    import a_module_that_is_not_there
"""
OFFERED = {"letters": "factory", "broken": "broken", "nothing": "nothing", "unfinished": "unfinished"}
POINTS = "".join(f"{name} = letters_of:{function}\n" for name, function in OFFERED.items())


def install(folder: Path) -> None:
    """What pip leaves of a wheel."""
    (folder / "letters_of.py").write_text(CODE)
    info = folder / "letters_of-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: letters-of\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[beamwood.encoders]\n{POINTS}")
