"""encoder.py — a function from texts to vectors in; the same, known by name and by its vectors of fixed texts, out.

A model cannot hold a function, and a file that names one must not have it run. So what is stored is a name and what the
function made of some fixed texts. An encoder that a plug-in provides under a plain name is opened when it is first
needed; any other one is given again by whoever loads the model. One that makes other vectors is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.encoders import named
from beamwood.errors import BeamwoodError, DataError, FormatError, SettingsError

Floats = npt.NDArray[np.float32]
Encode = Callable[[list[str]], Any]  # texts in, an array with one row of numbers per text out

MOST_COLUMNS = 1 << 16
_TRIED = (
    "red wool socks",
    "Red-wool SOCKS, 2 pairs; don't (re)wash!",
    "a history of jazz in New Orleans",
    "Äiti osti sukkia, Straße und Müller: café",
    "日本文学史 入門編",
    "x",
)
_NEAR = 1e-2  # of a vector's length: what other machines and versions of a library may round differently
_ADVICE = "Give it: beamwood.load(path, encoder=…), model.with_encoder(…) or --encoder."


@dataclass(frozen=True, eq=False)
class Encoder:
    """A function from texts to vectors, known by name and by its vectors of fixed texts (fixed texts x columns)."""

    name: str
    probe: Floats
    function: Encode | None = field(default=None)

    @classmethod
    def of(cls, given: Any) -> Encoder:
        """Opens the encoder of a name, or takes a function; and looks at what it makes of fixed texts."""
        name, function = (given, named.opened(given)) if isinstance(given, str) else (name_of(given), given)
        try:
            probe = checked_vectors(function(list(_TRIED)), len(_TRIED), None, name)
        except (BeamwoodError, MemoryError):
            raise
        except Exception as error:  # whatever a foreign function raises
            raise SettingsError(
                f"encoder is {name}, which failed with {type(error).__name__}: {error}; expected a function from a "
                "list of texts to an array with one row of numbers per text."
            ) from error
        return cls(name, probe, function)

    @property
    def columns(self) -> int:
        """The length of its vectors."""
        return int(self.probe.shape[1])

    def vectors(self, texts: Sequence[str]) -> Floats:
        """One row per text."""
        function = self.opened().function
        assert function is not None
        if not len(texts):
            return np.zeros((0, self.columns), np.float32)
        return checked_vectors(function(list(texts)), len(texts), self.columns, self.name)

    @property
    def opens_itself(self) -> bool:
        """Whether nobody needs to give its function."""
        return self.function is not None or named.is_plain(self.name)

    def opened(self) -> Encoder:
        """Itself with its function; that of a plug-in is opened, and looked at, when it is first needed."""
        if self.function is None:
            if not self.opens_itself:
                raise SettingsError(
                    f"this model's texts are encoded by {self.name}, which no file can hold; expected that encoder. "
                    f"{_ADVICE}"
                )
            object.__setattr__(self, "function", self.bound(self.name).function)
        return self

    def bound(self, given: Any) -> Encoder:
        """The same with its function; one that makes other vectors is refused."""
        other = given if isinstance(given, Encoder) else Encoder.of(given)
        if other.columns != self.columns:
            raise SettingsError(
                f"encoder is {other.name}, whose vectors have {other.columns:,} numbers; expected {self.columns:,}, "
                f"as those of {self.name}. Give the encoder that the model was trained with."
            )
        apart = np.linalg.norm(other.probe - self.probe, axis=1)
        if not (apart <= _NEAR * np.maximum(np.linalg.norm(self.probe, axis=1), 1e-6)).all():  # also NaN
            raise SettingsError(
                f"encoder is {other.name}, which makes other vectors than {self.name} did when the model was trained. "
                "Give the encoder, and the version of it, that the model was trained with; or train anew."
            )
        return Encoder(self.name, self.probe, other.function)

    def described(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"name": self.name, "columns": self.columns}

    @classmethod
    def read(cls, described: Any, probe: Any) -> Encoder:
        """The inverse, from a file that may be damaged."""
        name, columns = described["name"], described["columns"]
        if not isinstance(name, str) or type(columns) is not int or not 1 <= columns <= MOST_COLUMNS:
            raise FormatError("the encoder in the file has no name or no columns. Restore the file from a copy.")
        if not isinstance(probe, np.ndarray) or probe.dtype != np.float32 or probe.shape != (len(_TRIED) * columns,):
            raise FormatError("the encoder's vectors of fixed texts are not in the file. Restore it from a copy.")
        return cls(name, probe.reshape(len(_TRIED), columns))


def name_of(function: Any) -> str:
    """What people know a function by."""
    if not callable(function):
        raise SettingsError(
            f"encoder is a {type(function).__name__}; expected a function from a list of texts to an array with one "
            'row of numbers per text, or a name such as "wordllama" or "svd".'
        )
    own = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(own, '__module__', '?')}:{own.__qualname__}"


def checked_vectors(given: Any, rows: int, columns: int | None, name: str) -> Floats:
    """What an encoder gave, as rows of finite float32; refuses anything else."""
    try:
        found = np.asarray(given)
    except Exception:  # whatever a foreign object raises
        found = np.empty(0, object)
    width = "some" if columns is None else f"{columns:,}"
    if isinstance(given, np.ma.MaskedArray):
        raise DataError(f"the encoder {name} gave a masked array; expected every number. Fill its gaps.")
    if found.dtype.kind not in "fiu" or found.ndim != 2 or len(found) != rows or columns not in (None, found.shape[1]):
        raise DataError(
            f"the encoder {name} gave {type(given).__name__} of shape {found.shape} and dtype {found.dtype} for "
            f"{rows:,} texts; expected an array of real numbers of shape ({rows}, {width})."
        )
    if not 1 <= found.shape[1] <= MOST_COLUMNS:
        raise DataError(f"the encoder {name} gave {found.shape[1]:,} columns; expected 1 to {MOST_COLUMNS:,}.")
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(found, np.float32)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise DataError(f"the encoder {name} gave a number that is not finite for text {bad[0]}; expected finite ones.")
    return vectors
