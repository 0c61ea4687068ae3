"""A kind of foreign folder and a number in, a spoiled copy out, always the same one; and the check of what comes of it.

Only a FormatError or a model that answers may come, and no more than twice the memory of a valid load.
"""

from __future__ import annotations

import json
import shutil
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from support.foreign import GOLDEN
from support.models import small_model
from support.parabel import saved

import beamwood as bw
from attacks.campaign import WILD, spoil
from beamwood.interop import read, read_text, read_tree, write

KINDS = ("pecos", "napkinxc", "omikuji", "parabel", "bonsai", "pecos-text", "tree")
WORDS = ["", "-1", "0", "1", "7", "9" * 20, "1e308", "nan", "inf", "x", "1:1", "0:0 0:1", "\t", "\0", "[", '"']
SLACK = 300_000  # bytes: what an error's own traceback and message may take


class Folder:
    """A valid folder of one kind, spoiled and mended again and again in place."""

    def __init__(self, kind: str, place: Path) -> None:
        self.kind, self.place = kind, place / kind
        source = {"pecos": "pecos", "napkinxc": "napkin_l2", "omikuji": "omikuji_HINGE", "pecos-text": "vec"}.get(kind)
        if source:
            shutil.copytree(GOLDEN / "small" / source, self.place)
        elif kind == "tree":
            self.place.mkdir(parents=True)
            write(small_model(), self.place / "tree.txt", "tree")
        else:
            place.mkdir(parents=True, exist_ok=True)
            saved(self.place, 3, kind == "bonsai")
        self.files = sorted(path for path in self.place.rglob("*") if path.is_file() and path.name != "tree.txt")
        if kind == "tree":
            self.files = [self.place / "tree.txt"]
        self.valid = {path: path.read_bytes() for path in self.files}
        self.open()  # what is loaded once, such as modules, is not counted
        self.most = max(self.memory() for _ in range(3))

    def open(self) -> None:
        """Loads the folder as it is and uses what it gave."""
        if self.kind == "tree":
            read_tree(self.place / "tree.txt")
        elif self.kind == "pecos-text":
            read_text(self.place).text.transform(["Red apple", "réd", ""])
        else:
            model = read(self.place).model
            row = sp.csr_array(np.ones((1, min(model.n_features, 1000)), np.float32))
            row.resize((1, model.n_features))
            model.topk(row, 3, 2)

    def memory(self) -> int:
        """The most bytes that loading takes at once."""
        tracemalloc.start()
        try:
            self.open()
        finally:
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return most

    def check(self, number: int) -> str:
        """Spoils the folder, loads it, mends it: "loaded" or "refused"."""
        rng = np.random.default_rng([number, KINDS.index(self.kind)])
        touched = [self.files[int(rng.integers(len(self.files)))] for _ in range(1 + (rng.random() < 0.1))]
        try:
            for path in touched:
                self.spoil(rng, path)
            return self.outcome(number)
        finally:
            for path in touched:
                fresh(path, self.valid[path])

    def outcome(self, number: int) -> str:
        """What loading comes to; anything but these two is an error of ours.

        Too much memory is measured once more: Python's table of interned strings, to which parts of paths go, is made
        anew (2 MB) in the middle of one load of thousands. A reader that takes too much does so every time.
        """
        most, result = self.measured()
        if most > (limit := 2 * self.most + SLACK):
            most, result = self.measured()
        assert most <= limit, (self.kind, number, f"{most:,} bytes, a valid load takes {self.most:,}")
        return result

    def measured(self) -> tuple[int, str]:
        """The most bytes that loading took at once, and what it came to."""
        tracemalloc.start()
        try:
            self.open()
            result = "loaded"
        except bw.FormatError as error:
            result = "refused" if len(str(error)) < 2000 else "refused at length"
        finally:
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return most, result

    def spoil(self, rng: Any, path: Path) -> None:
        """One of several ways to damage a file."""
        data = bytearray(path.read_bytes())
        choice = rng.random()
        if choice < 0.03:
            fresh(path, self.valid[self.files[int(rng.integers(len(self.files)))]])
            return
        if choice < 0.12:
            del data[int(rng.integers(len(data) + 1)) :]
        elif choice < 0.16:
            data += bytes(rng.integers(0, 256, 1 + rng.integers(40), dtype=np.uint8))
        elif path.suffix == ".json" and choice < 0.7:
            value = json.loads(self.valid[path])
            spoil(rng, value)
            data = bytearray(json.dumps(value).encode())
        elif path.suffix in (".txt", ".tree") or path.name == "param":
            data = bytearray(spoiled_text(rng, bytes(data)))
        else:
            spoiled_numbers(rng, data)
        fresh(path, data)


def fresh(path: Path, data: bytes | bytearray) -> None:
    """Writes a new file of that name: one that is cut and written again waits for the disk (2 ms on ext4)."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def spoiled_text(rng: Any, data: bytes) -> bytes:
    """Words replaced, doubled or taken away; lines too."""
    between = b"\n" if rng.random() < 0.3 else b" "
    parts = data.split(between)
    for _ in range(1 + rng.integers(2)):
        at = int(rng.integers(len(parts)))
        how = rng.integers(4)
        if how == 0:
            parts[at] = WORDS[int(rng.integers(len(WORDS)))].encode()
        elif how == 1:
            parts.insert(at, parts[int(rng.integers(len(parts)))])
        elif how == 2 and len(parts) > 1:
            del parts[at]
        else:
            changed = bytearray(parts[at] or b"0")
            changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
            parts[at] = bytes(changed)
    return between.join(parts)


def spoiled_numbers(rng: Any, data: bytearray) -> None:
    """Bits flipped, or whole numbers replaced by wild ones."""
    for _ in range(1 + rng.integers(3)):
        if not data:
            return
        at = int(rng.integers(len(data)))
        if rng.random() < 0.4:
            data[at] ^= 1 << int(rng.integers(8))
            continue
        size = int(rng.choice([1, 2, 4, 8]))
        wild = WILD[int(rng.integers(len(WILD)))] % 2 ** (8 * size)
        form = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
        if at + size <= len(data):
            struct.pack_into(("<" if rng.random() < 0.7 else ">") + form, data, at, wild)


def main(kind: str, first: str, count: str, progress: str) -> None:
    """Some copies of one kind in a process of its own; writes how far it got, so that a crash can be named."""
    folder = Folder(kind, Path(progress).with_suffix(".folder"))
    outcomes = {"loaded": 0, "refused": 0}
    with open(progress, "r+b", buffering=0) as at:
        for number in range(int(first), int(first) + int(count)):
            at.seek(0)
            at.write(b"%012d" % number)
            outcomes[folder.check(number)] += 1
        at.seek(0)
        at.write(b"done %7d" % outcomes["loaded"])
    shutil.rmtree(Path(progress).with_suffix(".folder"))
