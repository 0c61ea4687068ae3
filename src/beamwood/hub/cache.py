"""cache.py — fetched files in, a folder that stays below its limit out: what was not used for longest goes first.

`BEAMWOOD_CACHE` names the folder (default: beamwood in `XDG_CACHE_HOME` or ~/.cache), `BEAMWOOD_CACHE_SIZE` how much it
may hold (default 20G). A file that goes while a process has it mapped stays readable there until the process lets go.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from beamwood.errors import FormatError, SettingsError

DEFAULT_SIZE = "20G"
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def folder(part: str) -> Path:
    """A part of the cache, made where it is not there yet: `web` or `hub`."""
    given = os.environ.get("BEAMWOOD_CACHE")
    home = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beamwood"
    try:
        (home / part).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(
            f"The folder {home} for fetched models cannot be made: {error.strerror}. Name another with BEAMWOOD_CACHE."
        ) from None
    return (home / part).absolute()


def limit() -> int:
    """How many bytes the cache may hold."""
    given = os.environ.get("BEAMWOOD_CACHE_SIZE") or DEFAULT_SIZE
    found = _SIZE.fullmatch(given.strip())
    if found is None:
        raise SettingsError(f"BEAMWOOD_CACHE_SIZE is {given!r:.60}; expected a size, for example 500M or 20G.")
    return int(float(found[1]) * 1024 ** _UNITS[found[2].lower()])


@contextlib.contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Two processes that fetch the same file: the second waits and finds it there."""
    with open(path, "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def used(path: Path) -> Path:
    """Notes that a file was used now."""
    with contextlib.suppress(OSError):  # a cache that this user may only read
        os.utime(path.resolve())
    return path


def trim(keep: Path) -> None:
    """Removes what was not used for longest until the cache is below its limit. keep: the file that is needed now."""
    most, kept = limit(), keep.resolve()
    files = []
    for path in _files():
        with contextlib.suppress(OSError):
            about = path.stat()
            files.append((about.st_mtime_ns, about.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files, key=lambda file: file[0]):
        if total <= most:
            break
        if path != kept:
            with contextlib.suppress(OSError):
                path.unlink()
                path.with_suffix(".json").unlink(missing_ok=True)
                total -= size
    _remove_dangling()


def _files() -> Iterator[Path]:
    """Every fetched file, once."""
    yield from (path.resolve() for path in folder("web").glob("*.bw"))
    yield from (path.resolve() for path in folder("hub").glob("models--*/blobs/*"))
    yield from (path.resolve() for path in folder("hub").glob("models--*/snapshots/**/*.bw") if not path.is_symlink())


def _remove_dangling() -> None:
    """Links of the hub's part that lead to files which went."""
    for path in folder("hub").glob("models--*/snapshots/**/*"):
        if path.is_symlink() and not path.exists():
            with contextlib.suppress(OSError):
                path.unlink()


def full_disk(error: OSError, what: str, size: int | None) -> FormatError:
    """The error of a file that could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        needed = "room" if size is None else f"{size:,} bytes"
        return FormatError(
            f"{what} does not fit on the disk. Free {needed} or name another folder with BEAMWOOD_CACHE."
        )
    return FormatError(f"{what} cannot be written to the cache: {error.strerror or error}. Check BEAMWOOD_CACHE.")
