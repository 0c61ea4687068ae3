"""Hostile files: a correct answer or a FormatError, never a crash. BEAMWOOD_FUZZ_FILES=100000 is the long form."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import sparse

import beamwood as bw
from attacks import handmade
from attacks.container import Parts
from attacks.probe import Probe

FILES = int(os.environ.get("BEAMWOOD_FUZZ_FILES", "400"))
FIRST = int(os.environ.get("BEAMWOOD_FUZZ_FIRST", "0"))
STEP = max(100, min(2500, FILES // 2))
TESTS = Path(__file__).parents[1]


def run_part(first: int, count: int, folder: Path) -> list[str]:
    """Some files in processes of their own: what went wrong, with the number of the file. Goes on after a crash."""
    failures: list[str] = []
    end = first + count
    progress = folder / f"progress-{first}"
    while first < end and len(failures) < 5:
        progress.write_bytes(b"%012d" % first)
        code = "import sys; sys.path.insert(0, sys.argv[1]); from attacks.probe import main; main(*sys.argv[2:])"
        given = [str(TESTS), str(first), str(end - first), str(progress)]
        run = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", code, *given], capture_output=True, text=True, check=False
        )
        at = progress.read_bytes()
        if run.returncode == 0 and at.startswith(b"done"):
            break
        died = signal.Signals(-run.returncode).name if run.returncode < 0 else f"exit code {run.returncode}"
        failures.append(f"file {int(at)}: {died}\n{run.stderr[-1500:]}")
        first = int(at) + 1
    return failures


@pytest.mark.timeout(max(300, FILES // 20))  # the long form takes as long as it takes
def test_random_damage_never_crashes(tmp_path: Path) -> None:
    """Files 0..n-1: `attacks.campaign.check(number, …)` brings one back."""
    begin, done = time.monotonic(), 0
    failures: list[Any] = []
    parts = [(at, min(STEP, FIRST + FILES - at)) for at in range(FIRST, FIRST + FILES, STEP)]
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for part, bad in zip(parts, pool.map(lambda part: run_part(part[0], part[1], tmp_path), parts), strict=True):
            done, failures = done + part[1], failures + bad
            rate = done / (time.monotonic() - begin)
            print(f"{done:,} files, {len(failures)} failures, {rate:,.0f} files per second", flush=True)
    assert not failures, "\n".join(failures[:10])


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """A small model with every kind of array, as parts."""
    rng = np.random.default_rng(5)
    layers = [
        bw.Layer(sparse(20, 5, 0.6, 1), np.zeros(5, int), bias=rng.standard_normal(5)),
        bw.Layer(sparse(20, 30, 0.5, 2), rng.permutation(30) % 5, bias=rng.standard_normal(30)),
    ]
    model = bw.Model.from_layers(layers, keys=[f"key {i}" for i in range(30)], names=["name"] * 30)
    path = tmp_path_factory.mktemp("valid") / "model.bw"
    model.save(path)
    return Parts.of(path.read_bytes())


def test_a_valid_file_taken_apart_and_sealed_again_is_fine(valid: Parts, tmp_path: Path) -> None:
    (tmp_path / "model.bw").write_bytes(valid.copied().sealed())
    assert Probe(tmp_path / "model.bw").run().errors == {}


@pytest.mark.timeout(60)  # a hostile file must not hold us up
@pytest.mark.parametrize("name", handmade.ATTACKS)
def test_a_hostile_file_ends_in_a_format_error(name: str, valid: Parts, tmp_path: Path) -> None:
    check_hostile(handmade.ATTACKS[name](valid.copied()), name, tmp_path / "model.bw")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", handmade.OLD_ATTACKS)
def test_a_hostile_file_of_format_1_ends_in_a_format_error(name: str, tmp_path: Path) -> None:
    old = Parts.of((TESTS / "golden" / "format-1" / "model.bw").read_bytes())
    check_hostile(handmade.OLD_ATTACKS[name](old), name, tmp_path / "model.bw")


def check_hostile(file: bytes, name: str, path: Path) -> None:
    """A file that must not go through, quickly and with a short message."""
    path.write_bytes(file)
    errors = Probe(path).run().errors
    assert {step for step in errors if step != "verify"}, f"{name} went through"
    for message in errors.values():
        assert len(message) < 700, "an error shows a whole file"


def test_a_newer_file_names_the_version_to_install(valid: Parts, tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    for change in ({"format": 3, "version": "9.1"}, {"requires": ["threads-1", "warp"], "version": "9.1"}):
        parts = valid.copied()
        parts.meta |= change
        path.write_bytes(parts.sealed())
        with pytest.raises(bw.FormatError, match=r"Install .*9\.1"):
            bw.load(path)


def test_a_cut_at_every_edge_is_found(valid: Parts, tmp_path: Path) -> None:
    file = valid.copied().sealed()
    begin = len(file) - len(valid.blob)
    edges = {0, 1, 7, 8, 9, begin - 1, begin, begin + 1, len(file) - 1}
    edges |= {begin + edge + by for name in valid.entries for edge in valid.place(name) for by in (-1, 0, 1)}
    for edge in sorted(edge for edge in edges if 0 <= edge < len(file)):
        path = tmp_path / f"{edge}.bw"
        path.write_bytes(file[:edge])
        for memory in ("map", "read"):
            with pytest.raises(bw.FormatError):
                bw.load(path, memory=memory)


def test_every_bit_of_the_header_counts(valid: Parts, tmp_path: Path) -> None:
    file = valid.copied().sealed()
    begin = len(file) - len(valid.blob)
    for place in range(0, begin, 3):
        spoiled = bytearray(file)
        spoiled[place] ^= 1 << (place % 8)
        path = tmp_path / f"{place}.bw"
        path.write_bytes(spoiled)
        with pytest.raises(bw.FormatError):
            bw.load(path)
        path.unlink()
