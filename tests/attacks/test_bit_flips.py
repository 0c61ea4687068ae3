"""One bit of a model file flipped: `verify` finds it wherever it means anything.

BEAMWOOD_FLIPS=100000 is the long form.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import beamwood as bw
from attacks.campaign import Base, bases

FLIPS = int(os.environ.get("BEAMWOOD_FLIPS", "1000"))
FIRST = int(os.environ.get("BEAMWOOD_FUZZ_FIRST", "0"))


def places(base: Base) -> list[tuple[int, int]]:
    """Where a file's header and arrays begin and end; what lies between is padding, which nobody reads."""
    begin = len(base.file) - len(base.parts.blob)
    arrays = [base.parts.place(name) for name in base.parts.sections()]
    return [(0, begin), *((begin + first, begin + end) for first, end in arrays if end > first)]


@pytest.mark.timeout(max(300, FLIPS // 20))
def test_every_single_flipped_bit_is_found(tmp_path: Path) -> None:
    valid, path, missed = bases(tmp_path / "model.bw"), tmp_path / "flipped.bw", []
    for number in range(FIRST, FIRST + FLIPS):
        rng = np.random.default_rng([number, 1])
        base = valid[int(rng.integers(len(valid)))]
        found = places(base)
        first, end = found[int(rng.integers(len(found)))]  # a small array as often as a large one
        data, at, bit = bytearray(base.file), int(rng.integers(first, end)), int(rng.integers(8))
        data[at] ^= 1 << bit
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        try:
            bw.load(path, verify=True, memory=("map", "read")[number % 2])
        except bw.FormatError:
            continue
        missed.append(f"flip {number}: bit {bit} of byte {at}")
    assert not missed, "\n".join(missed[:20])
