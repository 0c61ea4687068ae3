"""errors.py — what can go wrong, for people: every error a user can cause is one of the four kinds below.

Each message says what was found, what was expected and what to do next.
"""

import errno
import inspect
import shlex
import warnings


class BeamwoodError(Exception):
    """The base of all errors that beamwood raises on purpose."""


class DataError(BeamwoodError, ValueError):
    """Your data (a matrix, a list of labels, a line of a file) is not what the call needs."""


class SettingsError(BeamwoodError, ValueError):
    """An argument or a setting is out of range or does not fit the others."""


class FormatError(BeamwoodError):
    """A model file is damaged, foreign, or made by a newer version."""


class MissingFileError(BeamwoodError, FileNotFoundError):
    """A file that was named, of a model or of data, is not there."""

    def __init__(self, message: str, path: str | None = None) -> None:
        """path: what `filename` says, as that of any FileNotFoundError does."""
        super().__init__(message)
        self.errno, self.filename = errno.ENOENT, path

    def __str__(self) -> str:
        """The message as it was written, without the system's number before it."""
        return str(self.args[0])

    def __reduce__(self) -> tuple[type, tuple[str, str | None]]:
        """For pickle: on its way from a worker it stays what it is."""
        return type(self), (str(self), self.filename)


class BeamwoodWarning(UserWarning):
    """Something that is allowed and is likely a mistake: rows without labels, a model that keeps no weights."""


def warn(message: str) -> None:
    """Warns whoever called beamwood: the line that is shown is theirs, however deep inside this is."""
    depth, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "beamwood":
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, BeamwoodWarning, stacklevel=depth)


def install(extra: str) -> str:
    """What to type for the packages of an extra: without beamwood itself, which would be compiled again."""
    from importlib import metadata  # costs milliseconds, which `import beamwood` need not pay

    try:
        given = [line.partition(";") for line in metadata.requires("beamwood") or ()]
    except metadata.PackageNotFoundError:  # its folder was put on a path
        given = []
    needed = [name.strip() for name, _, when in given if f'"{extra}"' in when.replace("'", '"')]
    return f"Run: pip install {' '.join(map(shlex.quote, needed or [f'.[{extra}]']))}"


def one_line(text: str) -> str:
    """Text without line ends and control characters, which could play tricks with a terminal."""
    return "".join(
        c if c.isprintable() else " " if c in "\n\r\t" else c.encode("unicode_escape").decode() for c in text
    )
