"""Hostile model files made by hand: each must end in a FormatError, when it is loaded or when it is used."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import save

from attacks.container import Parts, framed

Attack = Callable[[Parts], bytes]


def frame(header: bytes) -> Attack:
    """A header of one's own before the valid arrays."""
    return lambda parts: framed(header, parts.blob)


def length(number: int) -> Attack:
    """A lie about the header's length."""
    return lambda parts: number.to_bytes(8, "little") + parts.sealed()[8:]


def meta(*path: Any, to: Any) -> Attack:
    """A value in the description, replaced; sealed."""

    def attack(parts: Parts) -> bytes:
        at: Any = parts.meta
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to
        return parts.sealed()

    return attack


def no_meta(*path: Any) -> Attack:
    """A value of the description taken away; sealed."""

    def attack(parts: Parts) -> bytes:
        at: Any = parts.meta
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]
        return parts.sealed()

    return attack


def entry(name: str, field: str, to: Any) -> Attack:
    """A field of an array's entry, replaced (or computed from the old one); sealed."""

    def attack(parts: Parts) -> bytes:
        old = parts.entries[name][field]
        parts.entries[name][field] = to(old) if callable(to) else to
        return parts.sealed()

    return attack


def dropped(*names: str) -> Attack:
    """Arrays that are missing; sealed."""

    def attack(parts: Parts) -> bytes:
        for name in names:
            parts.drop(name)
        return parts.sealed()

    return attack


def retyped(name: str, dtype: str) -> Attack:
    """The same bytes under another dtype, with the shape that goes with it."""
    size = {"U8": 1, "U16": 2, "U32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8}[dtype]

    def attack(parts: Parts) -> bytes:
        begin, end = parts.place(name)
        parts.entries[name] |= {"dtype": dtype, "shape": [(end - begin) // size]}
        return parts.sealed()

    return attack


def written(name: str, at: int, *values: int, kind: Any = np.uint32) -> Attack:
    """Numbers inside an array, replaced; sealed."""

    def attack(parts: Parts) -> bytes:
        begin, end = parts.place(name)
        array = np.frombuffer(parts.blob, kind)[begin // np.dtype(kind).itemsize : end // np.dtype(kind).itemsize]
        array[at : at + len(values) if at + len(values) else None] = values
        return parts.sealed()

    return attack


def doubled_key(parts: Parts) -> bytes:
    """One array named twice."""
    header = parts.header()
    name = parts.sections()[0]
    copy = f', "{name}": {json.dumps(parts.entries[name])}}}'.encode()
    return framed(header.rstrip()[:-1] + copy, parts.blob)


def overlapping(parts: Parts) -> bytes:
    """Two arrays over the same bytes."""
    first, second = parts.sections()[:2]
    parts.entries[second]["data_offsets"] = parts.entries[first]["data_offsets"]
    return parts.sealed()


def hole(parts: Parts) -> bytes:
    """A hole where padding was."""
    pad = next(name for name in parts.entries if name.startswith("_pad/"))
    del parts.entries[pad]
    return parts.sealed()


def no_leaves(parts: Parts) -> bytes:
    """A last layer of four billion nodes, none of which is there."""
    parts.meta["model"]["trees"][0]["nodes"][-1] = 2**32 - 1
    parts.drop("tree0/layer1/label")
    return written("tree0/layer1/child_start", -1, 2**32 - 1)(parts)


def zipped() -> bytes:
    """A zip archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "b" * 1000)
    return file.getvalue()


def shortened(name: str, entries: int, itemsize: int) -> Attack:
    """An array that lost its last entries: the file is consistent, the model is not."""

    def attack(parts: Parts) -> bytes:
        begin, end = parts.place(name)
        cut = end - entries * itemsize
        parts.entries[name] |= {"data_offsets": [begin, cut], "shape": [(cut - begin) // itemsize]}
        rest: dict[str, Any] = {}
        for old, value in parts.entries.items():
            rest[old] = value
            if old == name:
                rest["_pad/cut"] = {"dtype": "U8", "shape": [end - cut], "data_offsets": [cut, end]}
        parts.entries = rest
        return parts.sealed()

    return attack


TREE = ("model", "trees", 0)
BIG = 2**32 - 1
ATTACKS: dict[str, Attack] = {
    "nothing but a length": lambda parts: (10).to_bytes(8, "little"),
    "header length 0": length(0),
    "header length 1": length(1),
    "header length one too long": lambda parts: length(len(parts.sealed()) - 7)(parts),
    "header length 100 MB": length(100_000_000),
    "header length 2^63": length(2**63),
    "header length 2^64 - 1": length(2**64 - 1),
    "deep list": frame(b"[" * 200_000),
    "deep object": frame(b'{"a":' * 200_000),
    "deep entry": frame(b'{"__metadata__":{"beamwood":"{}"},"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "deep description": frame(json.dumps({"__metadata__": {"beamwood": "[" * 200_000}}).encode()),
    "not UTF-8": frame(b'{"\xff\xfe": 1}'),
    "not JSON": frame(b"{'a': 1}"),
    "a list": frame(b"[1, 2, 3]"),
    "a number": frame(b"12"),
    "a number of a million digits": frame(b"9" * 1_000_000),
    "no metadata": frame(b"{}"),
    "metadata is a list": frame(b'{"__metadata__": []}'),
    "metadata without us": frame(b'{"__metadata__": {"format": "pt"}}'),
    "description is a number": frame(b'{"__metadata__": {"beamwood": 7}}'),
    "description is empty": frame(b'{"__metadata__": {"beamwood": ""}}'),
    "description is a list": frame(b'{"__metadata__": {"beamwood": "[]"}}'),
    "description is null": frame(b'{"__metadata__": {"beamwood": "null"}}'),
    "doubled key": doubled_key,
    "doubled key in the description": lambda parts: parts.sealed().replace(
        b'{\\"format', b'{\\"format\\": 1, \\"format', 1
    ),
    "pickle": lambda parts: pickle.dumps(dict.fromkeys(range(100))),
    "zip": lambda parts: zipped(),
    "text": lambda parts: b"To be, or not to be, that is the question. " * 50,
    "foreign safetensors": lambda parts: save({"a": np.ones(9)}),
    "header not sealed": lambda parts: framed(parts.header().replace(b"sigmoid", b"sigmoit"), parts.blob),
    "version 3": meta("format", to=3),
    "version 1": meta("format", to=1),
    "version 0": meta("format", to=0),
    "version -1": meta("format", to=-1),
    "version as a string": meta("format", to="1"),
    "version a float": meta("format", to=1.0),
    "version immense": meta("format", to=10**4000),
    "unknown required feature": meta("requires", to=["threads-1", "quantum"]),
    "requires a number": meta("requires", to=1),
    "requires a list of lists": meta("requires", to=[["threads-1"]]),
    "requires an object": meta("requires", to={"a": {}}),
    "requires nothing known": meta("requires", to=[None]),
    "no checksums": no_meta("xxh3"),
    "checksums are a list": meta("xxh3", to=[]),
    "a checksum too few": no_meta("xxh3", "tree0/layer0/threads"),
    "a checksum too many": meta("xxh3", "tree9/words", to="0" * 16),
    "no model": no_meta("model"),
    "model is null": meta("model", to=None),
    "no trees": meta("model", "trees", to=[]),
    "trees a number": meta("model", "trees", to=3),
    "a tree without layers": meta(*TREE, to={"nodes": [], "nonzeros": []}),
    "a layer too many": lambda parts: (parts.meta["model"]["trees"][0]["nodes"].append(3), parts.sealed())[1],
    "ten million layers": meta(*TREE, "nodes", to=[1] * 1_000_000),
    "a tree too many": lambda parts: (
        parts.meta["model"]["trees"].append(parts.meta["model"]["trees"][0]),
        parts.sealed(),
    )[1],
    "nodes below zero": meta(*TREE, "nodes", 0, to=-1),
    "nodes beyond 32 bits": meta(*TREE, "nodes", 0, to=2**32),
    "too many nodes": meta(*TREE, "nodes", 0, to=2**31),
    "nodes a float": meta(*TREE, "nodes", 0, to=6.0),
    "nodes true": meta(*TREE, "nodes", 0, to=True),
    "four billion nodes": meta(*TREE, "nodes", 1, to=BIG),
    "no leaves": no_leaves,
    "features below zero": meta("model", "features", to=-5),
    "features beyond 32 bits": meta("model", "features", to=2**32),
    "features a string": meta("model", "features", to="many"),
    "features not a number": meta("model", "features", to=float("nan")),
    "too few labels": meta("model", "labels", to=1),
    "no labels": meta("model", "labels", to=0),
    "labels below zero": meta("model", "labels", to=-1),
    "unknown activation": meta("model", "activation", to="relu"),
    "activation a number": meta("model", "activation", to=1),
    "activation of another path": meta("model", "path", to="sum"),
    "settings a list": meta("model", "settings", to=[1, 2]),
    "shape below zero": entry("tree0/layer0/threads", "shape", [-1]),
    "shape of two minuses": entry("tree0/layer0/threads", "shape", lambda old: [-1, -old[0]]),
    "shape a float": entry("tree0/layer0/threads", "shape", lambda old: [float(old[0])]),
    "shape a string": entry("tree0/layer0/threads", "shape", "64"),
    "shape a number": entry("tree0/layer0/threads", "shape", lambda old: old[0]),
    "shape that overflows": entry("tree0/layer0/threads", "shape", [2**62, 4]),
    "shape of immense numbers": entry("tree0/layer0/threads", "shape", [10**4000] * 400),
    "shape of two dimensions": entry("tree0/layer0/threads", "shape", lambda old: [old[0], 1]),
    "shape of no dimension": entry("keys/blob", "shape", []),
    "offsets beyond the end": entry("tree0/leaf_of_label", "data_offsets", lambda old: [old[0], 2**62]),
    "offsets below zero": entry("keys/blob", "data_offsets", [-64, 0]),
    "offsets reversed": entry("tree0/layer0/threads", "data_offsets", lambda old: old[::-1]),
    "three offsets": entry("tree0/layer0/threads", "data_offsets", lambda old: [*old, 5]),
    "offsets are words": entry("tree0/layer0/threads", "data_offsets", ["0", "9"]),
    "an entry is a number": lambda parts: (parts.entries.update({"tree0/layer0/threads": 5}), parts.sealed())[1],
    "overlapping arrays": overlapping,
    "a hole": hole,
    "bytes behind the end": lambda parts: parts.sealed() + b"\0",
    "one byte missing": lambda parts: parts.sealed()[:-1],
    "unknown dtype": entry("tree0/layer0/threads", "dtype", "Q8"),
    "dtype a list": entry("tree0/layer0/threads", "dtype", ["U32"]),
    **{
        f"{name} as {dtype}": retyped(name, dtype)
        for name, dtype in (
            ("tree0/layer0/child_start", "F32"),
            ("tree0/layer0/thread_start", "I64"),
            ("tree0/layer0/thread_start", "F64"),
            ("tree0/layer0/root", "F32"),
            ("tree0/layer1/label", "F32"),
            ("tree0/layer1/bias", "U32"),
            ("tree0/layer1/order", "F32"),
            ("keys/offsets", "F64"),
            ("keys/offsets", "I64"),
            ("keys/offsets", "U32"),
            ("keys/slots", "F32"),
            ("keys/slots", "U8"),
            ("keys/blob", "U16"),
            ("names/offsets", "F64"),
        )
    },
    **{
        f"{name} is missing": dropped(f"tree0/layer{name}")
        for name in ("0/child_start", "0/root", "1/thread_start", "1/label", "0/threads", "1/threads")
    },
    "keys without offsets": dropped("keys/offsets"),
    "keys without a blob": dropped("keys/blob"),
    **{
        f"{name} lost an entry": shortened(name, 1, size)
        for name, size in (
            ("tree0/layer1/child_start", 4),
            ("tree0/layer1/thread_start", 8),
            ("tree0/layer0/root", 4),
            ("tree0/layer1/label", 4),
            ("tree0/layer1/order", 4),
            ("tree0/layer1/bias", 4),
            ("keys/offsets", 8),
            ("names/offsets", 8),
        )
    },
    "words without their tail": shortened("tree0/layer1/threads", 64, 4),
    "children overlap": written("tree0/layer1/child_start", 1, BIG),
    "children leave a gap": written("tree0/layer1/child_start", -1, 0),
    "children start late": written("tree0/layer1/child_start", 0, 1),
    "chunks leave the array": written("tree0/layer1/thread_start", -1, 2**64 - 1, kind=np.uint64),
    "chunks fall": written("tree0/layer1/thread_start", 0, 2**40, kind=np.uint64),
    "chunk offsets overflow": written("tree0/layer1/thread_start", -1, 2**64 - 60, kind=np.uint64),
    "the root leads outside": written("tree0/layer0/root", 0, *([BIG - 1] * 8)),
    "the root leads to the end": written("tree0/layer0/root", 0, *([10**6] * 8)),
    "labels beyond the count": written("tree0/layer1/label", 0, *([BIG - 1] * 30)),
    "leaves without labels": written("tree0/layer1/label", 0, *([BIG] * 30)),
    "key offsets outside": written("keys/offsets", 1, *([2**63] * 20), kind=np.uint64),
    "order is no permutation": written("tree0/layer1/order", 0, *([3] * 20)),
    "order leaves the layer": written("tree0/layer1/order", 0, *([BIG] * 5)),
}

# Files of format 1 hold chunks, which are read when such a file is loaded.
OLD_ATTACKS: dict[str, Attack] = {
    **{
        f"{name} is missing": dropped(f"tree0/layer{name}")
        for name in ("0/child_start", "0/row_start", "1/word_start", "1/label", "0/words", "1/feature", "0/offset")
    },
    **{
        f"{name} lost an entry": shortened(name, 1, size)
        for name, size in (
            ("tree0/layer1/child_start", 4),
            ("tree0/layer1/row_start", 8),
            ("tree0/layer1/word_start", 8),
            ("tree0/layer1/feature", 4),
        )
    },
    "row_start as F64": retyped("tree0/layer0/row_start", "F64"),
    "feature as F32": retyped("tree0/layer0/feature", "F32"),
    "words without their tail": shortened("tree0/layer1/words", 64, 4),
    "children overlap": written("tree0/layer1/child_start", 1, BIG),
    "rows leave the array": written("tree0/layer1/row_start", -1, 2**63, kind=np.uint64),
    "rows fall": written("tree0/layer1/row_start", 0, 2**40, kind=np.uint64),
    "words leave the array": written("tree0/layer1/word_start", -1, 2**64 - 1, kind=np.uint64),
    "word offsets overflow": written("tree0/layer1/word_start", -1, 2**64 - 60, kind=np.uint64),
    "a record leaves its chunk": written("tree0/layer0/offset", 0, *([BIG] * 8)),
    "a record begins at the end": written("tree0/layer0/offset", 0, *([10**6] * 8)),
    "features beyond the count": written("tree0/layer1/feature", 0, *([BIG - 5] * 20)),
}
