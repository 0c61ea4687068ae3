"""output.py — results in, standard output or a whole file out. A file appears complete or not at all."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console

from beamwood.errors import SettingsError
from beamwood.storage.draft import draft_beside

STANDARD = "-"
_COLUMNS_IN_A_FILE = 100  # how wide tables are where no terminal says


def say(line: str) -> None:
    """One line to people, beside the results."""
    print(line, file=sys.stderr, flush=True)


def show(*what: Any) -> None:
    """Lines as they are, and tables as wide as the terminal, on standard output."""
    console = Console(width=None if sys.stdout.isatty() else _COLUMNS_IN_A_FILE, highlight=False, markup=False)
    for part in what:
        if isinstance(part, str):
            print(part, flush=True)
        else:
            console.print(part)


def show_json(value: Any) -> None:
    """One JSON object on standard output."""
    print(json.dumps(value), flush=True)


def check_free(path: str | Path | None, force: bool, stream: bool = True) -> None:
    """Refuses to replace a file unless told to; asked before the work, not after it.

    stream: whether what will be written can go to standard output, a pipe or a device.
    """
    if path is None or (str(path) == STANDARD and stream):
        return
    target = Path(path)
    if not stream and (str(path) == STANDARD or is_device(target)):
        raise SettingsError(f"{target} is a stream; expected the name of a file. Give one, for example model.bw.")
    if target.is_dir():
        raise SettingsError(f"{target} is a folder; expected the name of a file.")
    if not target.parent.is_dir():
        raise SettingsError(f"{target}: the folder {target.parent} does not exist. Make it first.")
    if target.exists() and not force and not is_device(target):
        raise SettingsError(f"{target} is there already. Give another name, or --force to replace it.")


@contextmanager
def written(path: str | Path) -> Iterator[BinaryIO]:
    """A stream to a file that appears when all is written (gzipped if its name says so), or to standard output."""
    if str(path) == STANDARD:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if is_device(Path(path)):
        with open(path, "wb") as stream:
            yield stream
        return
    with draft_beside(Path(path)) as draft:
        if Path(path).suffix != ".gz":
            yield draft
            return
        with gzip.GzipFile(fileobj=draft, mode="wb", filename="", mtime=0) as packed:
            yield packed  # type: ignore[misc]


def is_device(path: Path) -> bool:
    """A pipe or a device such as /dev/null, which is written to and never replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def bytes_in_words(count: float) -> str:
    """12,345,678 as 12.3 MB."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"
