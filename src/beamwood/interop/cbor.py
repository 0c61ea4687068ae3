"""cbor.py — a CBOR file in, its values out as a walk from front to back; arrays of numbers come as numpy arrays.

As much of CBOR (RFC 8949) as omikuji's trees use: maps with text keys, text, whole numbers and arrays, all of known
length. The file may be hostile: a length is compared with the bytes that follow before memory is taken for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.interop.foreign import read_file, wrong

_WHOLE, _TEXT, _ARRAY, _MAP = 0, 3, 4, 5
_LONGEST_TEXT = 64


class Reader:
    """The next value of a CBOR file, of the kind that is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = np.frombuffer(read_file(path), np.uint8)
        self._at = 0

    def wrong(self, what: str) -> Exception:
        """An error at this place."""
        return wrong(self.path, f"byte {self._at:,}: {what}")

    def _head(self, kind: int, what: str) -> int:
        """The argument of the next head, which must be of this kind."""
        data, at = self._data, self._at
        if at >= len(data) or data[at] >> 5 != kind:
            raise self.wrong(f"it holds something else; expected {what}")
        info = int(data[at] & 31)
        if info < 24:
            self._at += 1
            return info
        size = 1 << (info - 24)
        if info > 27 or at + 1 + size > len(data):
            raise self.wrong(f"its length is not known; expected {what} of known length")
        self._at += 1 + size
        return int.from_bytes(data[at + 1 : at + 1 + size].tobytes(), "big")

    def whole(self, what: str) -> int:
        """A whole number from 0 on."""
        return self._head(_WHOLE, what)

    def text(self, what: str) -> str:
        """A short text."""
        length = self._head(_TEXT, what)
        if length > min(_LONGEST_TEXT, len(self._data) - self._at):
            raise self.wrong(f"{what} has {length:,} bytes; expected at most {_LONGEST_TEXT}, all in the file")
        found = self._data[self._at : self._at + length].tobytes()
        self._at += length
        return found.decode("utf-8", "replace")

    def entries(self, what: str) -> int:
        """The number of entries of a map that begins here."""
        return self._counted(_MAP, what)

    def elements(self, what: str) -> int:
        """The number of elements of an array that begins here."""
        return self._counted(_ARRAY, what)

    def _counted(self, kind: int, what: str) -> int:
        count = self._head(kind, what)
        if count > len(self._data) - self._at:  # every element has a byte at least
            raise self.wrong(
                f"{what} has {count:,} elements; expected at most {len(self._data) - self._at:,}, the bytes that follow"
            )
        return count

    def whole_numbers(self, what: str) -> npt.NDArray[np.uint32]:
        """An array of whole numbers below 2^32."""
        out = np.empty(self.elements(what), np.uint32)
        return self._filled(_core.cbor_whole_numbers, out, what)

    def floats(self, what: str) -> npt.NDArray[np.float32]:
        """An array of floating-point numbers of any width."""
        out = np.empty(self.elements(what), np.float32)
        return self._filled(_core.cbor_floats, out, what)

    def _filled(self, fill: Any, out: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
        end = fill(self._data, self._at, out)
        if end < 0:
            raise self.wrong(f"{what} holds something that is not a number; expected only numbers of its kind")
        self._at = end
        return out

    def done(self) -> None:
        """Nothing may follow."""
        if self._at != len(self._data):
            raise self.wrong(f"{len(self._data) - self._at:,} bytes follow; expected the end of the file")


class Writer:
    """Values in, CBOR bytes out."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def _head(self, kind: int, argument: int) -> None:
        if argument < 24:
            self._stream.write(bytes([kind << 5 | argument]))
        else:
            self._stream.write(bytes([kind << 5 | 27]) + argument.to_bytes(8, "big"))

    def whole(self, value: int) -> None:
        """A whole number from 0 on."""
        self._head(_WHOLE, value)

    def text(self, value: str) -> None:
        """A text."""
        encoded = value.encode()
        self._head(_TEXT, len(encoded))
        self._stream.write(encoded)

    def entries(self, count: int) -> None:
        """The start of a map."""
        self._head(_MAP, count)

    def elements(self, count: int) -> None:
        """The start of an array."""
        self._head(_ARRAY, count)

    def whole_numbers(self, values: Any) -> None:
        """An array of whole numbers below 2^32."""
        self._numbers(np.asarray(values), ">u4", 0x1A)

    def floats(self, values: Any) -> None:
        """An array of float32."""
        self._numbers(np.asarray(values), ">f4", 0xFA)

    def _numbers(self, values: npt.NDArray[Any], form: str, head: int) -> None:
        self.elements(len(values))
        out = np.empty(len(values), np.dtype([("head", "u1"), ("value", form)]))
        out["head"], out["value"] = head, values
        self._stream.write(out.tobytes())
