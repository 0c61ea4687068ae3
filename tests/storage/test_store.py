"""The model file: what other programs see in it, what saving promises, what loading checks."""

from __future__ import annotations

import json
import mmap
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import laws
import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file
from support.models import large_model, small_model, small_queries
from support.strategies import random_case

import beamwood as bw
from beamwood.storage import store

TESTS = Path(__file__).parents[1]


def named_model() -> bw.Model:
    """A model with every kind of section."""
    keys = [f"key {i}" for i in range(40)]
    return small_model(keys=keys, names=["name"] * 40, settings={"C": 1.0})


def test_safetensors_opens_the_file_and_sees_the_same_arrays(tmp_path: Path) -> None:
    for number, model in enumerate((named_model(), random_case(12).model(), random_case(13).model())):
        path = tmp_path / f"{number}.bw"
        model.save(path)
        ours, _ = store.read_file(path)
        theirs = load_file(path)
        assert {name for name in theirs if not name.startswith("_pad/")} == set(ours)
        for name, array in ours.items():
            assert theirs[name].dtype == array.dtype
            assert theirs[name].tobytes() == array.tobytes()
        with safe_open(path, "numpy") as opened:
            assert set(opened.metadata()) == {"beamwood"}


def test_arrays_start_at_multiples_of_64_bytes(tmp_path: Path) -> None:
    named_model().save(tmp_path / "model.bw")
    raw = (tmp_path / "model.bw").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name != "__metadata__" and not name.startswith("_pad/"):
            assert (8 + length + entry["data_offsets"][0]) % 64 == 0, name


def test_checksums_are_those_of_the_xxhash_package(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    named_model().save(path)
    arrays, meta = store.read_file(path)
    assert {name: xxhash.xxh3_64_hexdigest(array.tobytes()) for name, array in arrays.items()} == meta["xxh3"]
    raw = path.read_bytes()
    header = raw[8 : 8 + int.from_bytes(raw[:8], "little")]
    assert xxhash.xxh3_64_hexdigest(header.replace(meta["header"].encode(), b"0" * 16)) == meta["header"]


@settings(max_examples=300, deadline=None)
@given(length=st.integers(0, 3000) | st.integers(0, 300), seed=st.integers(0, 100))
def test_our_xxh3_is_the_xxhash_packages(length: int, seed: int) -> None:
    data = np.random.default_rng(seed).integers(0, 256, length, dtype=np.uint8)
    assert store.hash_of(data) == xxhash.xxh3_64_intdigest(data.tobytes())


@pytest.mark.parametrize("memory", ["map", "read", "huge"])
def test_every_way_of_loading_gives_the_same_answers(memory: str, tmp_path: Path) -> None:
    model = named_model()
    model.save(tmp_path / "model.bw")
    loaded = bw.load(tmp_path / "model.bw", memory=memory, verify=True)
    laws.check_same(loaded.topk(small_queries()), model.topk(small_queries()), memory)
    assert loaded.settings == {"C": 1.0}
    assert (loaded.key(7), loaded.name(7), loaded.label_of("key 7")) == ("key 7", "name", 7)


def test_an_unknown_way_of_loading_is_refused(tmp_path: Path) -> None:
    with pytest.raises(bw.SettingsError, match=r"memory='swap' is not known. Use 'map'"):
        bw.load(tmp_path / "model.bw", memory="swap")


def test_a_mapped_model_outlives_the_replacement_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    named_model().save(path)
    old = bw.load(path)
    expected = named_model().topk(small_queries())
    small_model(activation="identity").save(path)
    laws.check_same(old.topk(small_queries()), expected)
    old.save(path)  # onto its own name
    laws.check_same(bw.load(path, verify=True).topk(small_queries()), expected)


def test_a_model_may_be_saved_under_odd_names(tmp_path: Path) -> None:
    for name in ("wörter 靴下.bw", "with space", "x" * 200):
        named_model().save(str(tmp_path / name))
        assert bw.load(str(tmp_path / name)).n_labels == 40


def test_a_saved_file_has_the_usual_permissions(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        named_model().save(tmp_path / "model.bw")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "model.bw").stat().st_mode) == 0o640


def test_loading_reads_little_more_than_the_header(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    large_model().save(path)
    size = path.stat().st_size
    assert size > 10_000_000
    probe = (
        "import sys, time, numpy, beamwood as bw, resource\n"
        "def resident(): return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()\n"
        "before = resident(); model = bw.load(sys.argv[1])\n"
        "model.topk(numpy.zeros((1, 20000), 'f4')[:, :]); print(resident() - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", probe, path], capture_output=True, text=True, check=True)
    assert int(run.stdout) < size / 3


@pytest.mark.parametrize("target", [".", "no/such/folder/model.bw"])
def test_a_folder_or_a_missing_folder_is_no_place_to_save(target: str, tmp_path: Path) -> None:
    with pytest.raises(bw.FormatError, match=r"is a folder. Give the name of a file|does not exist. Make it first"):
        named_model().save(tmp_path / target)


def test_a_full_disk_keeps_the_old_file_and_leaves_no_draft(tmp_path: Path) -> None:
    """The limit on file size makes the kernel refuse the write half-way, as a full disk does."""
    path = tmp_path / "model.bw"
    named_model().save(path)
    old = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    model = large_model()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        with pytest.raises(
            bw.FormatError, match=r"Cannot write .*model.bw: .* save again; what was there .* untouched"
        ):
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["model.bw"]


def test_a_disk_that_fails_at_the_last_moment_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.bw"
    named_model().save(path)
    old = path.read_bytes()

    def refuse(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(bw.FormatError, match=r"No space left on device. Free [\d,]+ bytes there and save again"):
        small_model().save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["model.bw"]


def test_a_kill_while_saving_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    saver = (
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
        "from support.models import large_model\n"
        "models = [large_model(0), large_model(1)]\n"
        "models[0].save(sys.argv[1]); print('ready', flush=True)\n"
        "while True:\n    models[1].save(sys.argv[1]); models[0].save(sys.argv[1])\n"
    )
    seen = set()
    for attempt in range(4):
        process = subprocess.Popen([sys.executable, "-c", saver, path], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + 0.07 * attempt)
        process.kill()
        process.communicate()
        model = bw.load(path, verify=True)
        seen.add(model.layers()[0].weights.data[:100].tobytes())
    assert seen <= {large_model(seed).layers()[0].weights.data[:100].tobytes() for seed in (0, 1)}


def test_two_models_of_one_file_share_its_pages(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    named_model().save(path)
    arrays, _ = store.read_file(path)
    owner: object = next(iter(arrays.values()))
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert isinstance(owner, (mmap.mmap, memoryview))
    assert not any(array.flags.writeable for array in arrays.values())


def test_a_pipe_or_a_device_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(bw.FormatError, match="not a regular file"):
        small_model().save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_huge_memory_begins_a_page_and_may_be_given_huge_ones() -> None:
    room = store.huge_memory(5 << 20)
    address = np.frombuffer(room, np.uint8).ctypes.data
    assert len(room) == 5 << 20
    assert address % store.HUGE_PAGE == 0
    switch = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not switch.exists() or "[never]" in switch.read_text():
        pytest.skip("this system gives no huge pages")
    here = eligible = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if span := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            here = int(span[1], 16) <= address < int(span[2], 16)
        elif here and line.startswith("THPeligible:"):
            eligible = line.split()[1] == "1"
    assert eligible
