"""A model file in, its parts out; and back into a file sealed with good checksums, whatever the parts say now."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import xxhash

Json = dict[str, Any]


@dataclass
class Parts:
    """The three parts of a model file: the description, the table of arrays, and their bytes."""

    meta: Json
    entries: Json
    blob: bytearray

    @classmethod
    def of(cls, file: bytes) -> Parts:
        """The parts of a valid file."""
        length = int.from_bytes(file[:8], "little")
        entries = json.loads(file[8 : 8 + length])
        meta = json.loads(entries.pop("__metadata__")["beamwood"])
        return cls(meta, entries, bytearray(file[8 + length :]))

    def copied(self) -> Parts:
        """A copy to spoil."""
        return Parts(copy.deepcopy(self.meta), copy.deepcopy(self.entries), bytearray(self.blob))

    def sections(self) -> list[str]:
        """The names of the arrays, without padding."""
        return [name for name in self.entries if not name.startswith("_pad/")]

    def place(self, name: str) -> tuple[int, int]:
        """Where an array begins and ends in the blob."""
        begin, end = self.entries[name]["data_offsets"]
        return begin, end

    def sealed(self) -> bytes:
        """A file of these parts whose header has the right checksum."""
        self.meta["header"] = "0" * 16
        zeroed = self.header()
        self.meta["header"] = xxhash.xxh3_64_hexdigest(zeroed)
        header = self.header()
        assert len(header) == len(zeroed)
        return framed(header, self.blob)

    def header(self) -> bytes:
        """The JSON header, filled up to a multiple of 64 bytes."""
        text = json.dumps({"__metadata__": {"beamwood": json.dumps(self.meta)}, **self.entries}).encode()
        return text + b" " * (-(len(text) + 8) % 64)

    def drop(self, name: str) -> None:
        """Takes an array out, as if it had never been there."""
        begin, end = self.place(name)
        removed = [(begin, end)]
        del self.entries[name], self.meta["xxh3"][name]
        for pad, entry in list(self.entries.items()):
            if pad.startswith("_pad/") and entry["data_offsets"][0] == end:
                removed.append(tuple(entry["data_offsets"]))
                del self.entries[pad]
        size = removed[-1][1] - begin
        del self.blob[begin : begin + size]
        for entry in self.entries.values():
            if entry["data_offsets"][0] >= begin:
                entry["data_offsets"] = [offset - size for offset in entry["data_offsets"]]


def framed(header: bytes, blob: bytes | bytearray) -> bytes:
    """Length, header, arrays."""
    return len(header).to_bytes(8, "little") + header + bytes(blob)
