"""draft.py — a file's name in, a draft to write to out, which takes the file's place once it is complete.

The law: whoever opens the name sees the old file or the new one, never a piece, also after a crash.

A draft lies beside its target and is locked while its writer lives. A writer that was killed leaves it behind without a
lock; the next one to the same name removes it. The target keeps its permissions, and a symbolic link is followed: the
file that it leads to is replaced, not the link.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from beamwood.errors import FormatError, SettingsError

_LONGEST_STEM = 200  # bytes of the target's name in a draft's: file systems allow 255 in all
_SUFFIX = ".draft"
_ADVICE = {
    errno.ENAMETOOLONG: "Give a shorter name.",
    errno.EACCES: "Check the permissions of the folder.",
    errno.ENOENT: "Make the folder first.",
}


CUT = (
    "The file of this model was cut, overwritten or could not be read while the model was in use. Load a fresh copy, "
    "and replace model files by renaming another into their place, as save does."
)


class NotSyncedError(OSError):
    """The new file is in place, but the system could not say that its name will outlive a power failure."""


def checked_path(path: str | os.PathLike[str]) -> Path:
    """A path that can name a file."""
    try:
        name = os.fspath(path)
    except TypeError:
        name = None
    if not isinstance(name, str):
        raise SettingsError(f"The path is {path!r}; expected the name of a file. Give a str or a pathlib.Path.")
    try:
        good = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        good = False
    if not good or not name:
        raise FormatError(f"{path!r} cannot name a file: it is empty or holds a zero byte or a lone surrogate.")
    return Path(name)


def checked_target(path: str | os.PathLike[str]) -> Path:
    """A path that a model file can be written to; links are followed."""
    target = checked_path(path)
    try:
        target = followed(target)
        if target.is_dir():
            raise FormatError(f"{target} is a folder. Give the name of a file, for example {target / 'model.bw'}.")
        if target.exists() and not target.is_file():  # a device or a pipe must not be replaced by a file
            raise FormatError(f"{target} is not a regular file, and a model cannot be streamed. Give another name.")
        if not target.parent.is_dir():
            raise FormatError(f"The folder {target.parent} does not exist. Make it first.")
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "Give another name.")
        raise FormatError(f"Cannot write {target}: {error.strerror}. {advice}") from error
    return target


def followed(target: Path) -> Path:
    """The file that a symbolic link leads to; any other path as it is."""
    if not target.is_symlink():
        return target
    try:
        return Path(os.path.realpath(target, strict=True))
    except FileNotFoundError:
        where = f"which does not exist: {os.readlink(target)}"
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        where = "which leads back to itself"
    raise FormatError(f"{target} is a symbolic link to a file {where}. Mend or remove the link, and save again.")


@contextlib.contextmanager
def disk_errors(target: Path, size: int) -> Iterator[None]:
    """What the system says when a file cannot be written, with what to do."""
    try:
        yield
    except NotSyncedError as error:
        raise FormatError(
            f"{target} is the new file, complete and in place, but its folder could not be synced ({error.strerror}). "
            "Only a power failure now could bring the old file back. Check the folder's permissions and the disk."
        ) from error
    except OSError as error:
        if error.errno == errno.EFAULT:  # what was to be written is mapped from a file that was cut
            raise FormatError(CUT) from error
        hint = f"Free {size:,} bytes there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "Check the folder"
        raise FormatError(
            f"Cannot write {target}: {error.strerror}. {hint} and save again; what was there before is untouched."
        ) from error


@contextlib.contextmanager
def draft_beside(target: Path) -> Iterator[BinaryIO]:
    """A file to write to that takes the target's place when the block ends well, and vanishes when it does not."""
    target = followed(target)
    remove_abandoned(target)
    number, name = _new_draft(target)
    lock = os.dup(number)  # held until the draft has its final name
    try:
        with open(number, "wb") as draft:
            yield draft
            draft.flush()
            take_permissions(number, target)
            os.fsync(number)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    finally:
        with contextlib.suppress(OSError):
            os.close(lock)
    sync_folder(target.parent)


def sync_folder(path: Path) -> None:
    """Makes the names in a folder outlive a power failure."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise NotSyncedError(error.errno, error.strerror) from error


def remove_abandoned(target: Path) -> None:
    """Removes drafts of this target whose writers are gone. Those of living writers are locked and stay."""
    ours = re.compile(re.escape(_prefix(target)) + r"[a-z0-9_]{8}" + re.escape(_SUFFIX))  # as mkstemp names them
    with contextlib.suppress(OSError):  # a folder that may be written to and not be listed
        for name in os.listdir(target.parent):
            if ours.fullmatch(name):
                with contextlib.suppress(OSError):  # it is in use, or is gone, or the file system has no locks
                    _remove_if_abandoned(target.parent / name)


def _remove_if_abandoned(path: Path) -> None:
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        if stat.S_ISREG(os.fstat(number).st_mode):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(number)


def _prefix(target: Path) -> str:
    """How the names of a target's drafts start."""
    return os.fsdecode(b"." + os.fsencode(target.name)[:_LONGEST_STEM] + b".")


def _new_draft(target: Path) -> tuple[int, str]:
    """A new file beside the target, locked until it is closed, also by the death of its process."""
    while True:
        number, name = tempfile.mkstemp(prefix=_prefix(target), suffix=_SUFFIX, dir=target.parent)
        with contextlib.suppress(OSError):  # a file system without locks: there nobody removes what others left
            fcntl.flock(number, fcntl.LOCK_EX)
        if os.fstat(number).st_nlink:
            return number, name
        os.close(number)  # somebody who removes abandoned drafts came before the lock


def take_permissions(number: int, target: Path) -> None:
    """Gives a new file the permissions, and where the system allows it the owner, of the one that it replaces."""
    try:
        old = os.stat(target)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(number, 0o666 & ~umask)
        return
    mode = stat.S_IMODE(old.st_mode) & 0o777
    try:
        os.fchown(number, old.st_uid, old.st_gid)
    except OSError:
        try:
            os.fchown(number, -1, old.st_gid)
        except OSError:
            mode = mode & 0o707 | (mode & 0o007) << 3  # another group may do no more than anybody
    os.fchmod(number, mode)
