"""A training that keeps its stages: killed at random moments it gives the same file; another training is refused."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from campaigns.resume import campaign
from support.problems import random_problem

import beamwood as bw
from beamwood.training import checkpoint as checkpoints
from beamwood.training.checkpoint import Folder, hash_of_matrix, hash_of_texts

TEXTS = [f"word{i % 7} word{i % 11} word{i % 3} common" for i in range(60)]
LABELS = [[f"l{i % 7}", f"m{i % 11}"] for i in range(60)]
HOW: dict[str, Any] = {"preset": "fast", "branching": 2, "max_leaf": 2, "trees": 2, "progress": False}


def problem() -> tuple[Any, Any]:
    return random_problem(200, 50, 40, seed=3)


def saved(model: bw.Model) -> bytes:
    model.save("model.bw")
    return Path("model.bw").read_bytes()


class Stop(Exception):
    """Ends a training from outside."""


def stopped_before(number: int, monkeypatch: pytest.MonkeyPatch, train: Callable[[], bw.Model]) -> bool:
    """Ends a training as it is about to keep its number-th stage; whether it came so far."""
    real, count = Folder.put, [0]

    def put(self: Folder, stage: str, arrays: Any, note: Any = None) -> None:
        if count[0] == number:
            raise Stop
        count[0] += 1
        real(self, stage, arrays, note)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "put", put)
        try:
            train()
        except Stop:
            return True
    return False


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("negatives", ["tfn", "tfn+man", "user"])
def test_stopped_before_any_stage_a_training_goes_on_to_the_same_file(
    monkeypatch: pytest.MonkeyPatch, negatives: str
) -> None:
    X, Y = problem()
    more: dict[str, Any] = {"negatives": negatives}
    if negatives == "user":
        more["negatives_matrix"] = sp.csr_matrix(np.roll(Y.toarray(), 1, axis=1))
    whole = saved(bw.train(X, Y, **HOW, **more))
    for stage in range(100):
        folder = f"stage{stage}"
        if not stopped_before(stage, monkeypatch, lambda f=folder: bw.train(X, Y, checkpoint=f, **HOW, **more)):
            break
        assert saved(bw.train(X, Y, checkpoint=folder, threads=2, **HOW, **more)) == whole
    assert stage > 8  # shapes, layers and trees


def test_a_training_of_texts_stopped_before_every_stage_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(**more: Any) -> bw.Model:
        return bw.train_text(TEXTS, LABELS, names={"l1": "One"}, **HOW, **more)

    whole = saved(train())
    runs = 0
    while runs < 50 and stopped_before(1, monkeypatch, lambda: train(checkpoint="kept")):
        runs += 1  # each keeps one stage more
    assert 5 < runs < 50
    assert saved(train(checkpoint="kept")) == whole
    assert sorted(os.listdir("kept")) == [
        "checkpoint.json", "lock", "shape-0.stage", "shape-1.stage", "text.stage", "tree-0.stage", "tree-1.stage"
    ]  # fmt: skip


@pytest.mark.parametrize("more", [{"calibrate": 0.4}, {"lexical": True, "calibrate": 0.4, "trees": 1}])
def test_trainings_inside_a_training_go_on_too(monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    texts = [f"word{i % 37} word{i % 41} common" for i in range(2400)]
    labels = [[f"l{i % 37}", f"m{i % 41}"] for i in range(2400)]

    def train(**kept: Any) -> bw.Model:
        return bw.train_text(texts, labels, **{**HOW, "branching": 8, **more}, **kept)

    whole = saved(train())
    runs = 0
    while runs < 80 and stopped_before(1, monkeypatch, lambda: train(checkpoint="kept")):
        runs += 1  # each keeps one stage more: what an inner training finished is not worked out again
    assert saved(train(checkpoint="kept")) == whole
    inner = {name.split("-")[0] for name in os.listdir("kept") if name.count("-") > 1}
    assert inner == ({"second", "words"} if "lexical" in more else {"second"})
    assert not list(Path("kept").glob("*layer*"))
    other = bw.train_text(texts, labels, **{**HOW, "branching": 8, **more, "calibrate": 0.3}, checkpoint="kept")
    assert saved(other) == saved(bw.train_text(texts, labels, **{**HOW, "branching": 8, **more, "calibrate": 0.3}))
    checkpoints.remove("kept")
    assert not Path("kept").exists()


def test_warnings_come_also_from_trees_that_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = problem()
    how = {**HOW, "prune": 100.0}
    with pytest.warns(bw.BeamwoodWarning, match="without a weight"):
        bw.train(X, Y, checkpoint="kept", **how)
    with pytest.warns(bw.BeamwoodWarning, match="without a weight"):
        bw.train(X, Y, checkpoint="kept", **how)


def test_another_training_is_refused() -> None:
    X, Y = problem()
    bw.train(X, Y, checkpoint="kept", **HOW)
    other = X.copy()
    other.data[0] *= 2
    fewer = Y.copy()
    fewer.data[0] = 2
    names = [f"n{i}" for i in range(Y.shape[1])]
    for X_, Y_, more, said in (
        (other, Y, {}, "other data"),
        (X, fewer, {}, "other labels"),
        (X, Y, {"names": names}, "other labels"),
        (X, Y, {"row_weights": np.full(X.shape[0], 2.0)}, "other labels"),
        (X, Y, {"C": 3.0}, r"C=1\.0; expected 3\.0"),
        (X, Y, {"seed": 1}, "other seed"),
    ):
        with pytest.raises(bw.SettingsError, match=said):
            bw.train(X_, Y_, checkpoint="kept", **{**HOW, **more})
    record = json.loads(Path("kept/checkpoint.json").read_text())
    Path("kept/checkpoint.json").write_text(json.dumps({**record, "beamwood": "0.0.1"}))
    with pytest.raises(bw.SettingsError, match=r"other beamwood \(0\.0\.1\)"):
        bw.train(X, Y, checkpoint="kept", **HOW)
    bw.train_text(TEXTS, LABELS, checkpoint="texts", **HOW)
    with pytest.raises(bw.SettingsError, match="ngram_range"):
        bw.train_text(TEXTS, LABELS, bw.TextFeatures(ngram_range=(1, 2)), checkpoint="texts", **HOW)


def test_what_is_no_checkpoint_folder_is_refused() -> None:
    X, Y = problem()
    Path("file").touch()
    Path("mine").mkdir()
    Path("mine/letters.txt").touch()
    Path("spoiled").mkdir()
    Path("spoiled/checkpoint.json").write_text("[]")
    for folder, said in (
        ("file", "is a file"),
        ("mine", "letters.txt"),
        ("spoiled", "damaged"),
        ("no/where", "cannot"),
    ):
        with pytest.raises(bw.BeamwoodError, match=said):
            bw.train(X, Y, checkpoint=folder, **HOW)
    assert os.listdir("mine") == ["letters.txt"]


def test_a_damaged_stage_is_worked_out_again() -> None:
    X, Y = problem()
    whole = saved(bw.train(X, Y, checkpoint="kept", **HOW))
    for name in Path("kept").glob("*.stage"):
        spoiled = bytearray(name.read_bytes())
        spoiled[len(spoiled) // 2] ^= 0x40
        name.write_bytes(spoiled)
    assert saved(bw.train(X, Y, checkpoint="kept", **HOW)) == whole


def test_two_trainings_do_not_share_a_folder() -> None:
    X, Y = problem()
    folder = Folder("kept")
    with pytest.raises(bw.SettingsError, match="another training is using"):
        bw.train(X, Y, checkpoint="kept", **HOW)
    folder.close()
    bw.train(X, Y, checkpoint="kept", **HOW)


def test_a_full_disk_is_said() -> None:
    X, Y = problem()
    sp.save_npz("X.npz", X)
    sp.save_npz("Y.npz", Y)
    words = [sys.executable, "-m", "beamwood", "train", "--x", "X.npz", "--y", "Y.npz", "-q"]
    words += ["-o", "m.bw", "--checkpoint", "kept"]

    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    ran = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=small_files_only)
    assert ran.returncode == 1
    assert "checkpoint kept cannot be written" in ran.stderr
    assert "give the same command: it goes on" in ran.stderr
    subprocess.run(words, check=True)
    assert Path("m.bw").read_bytes() == saved(bw.train(X, Y, progress=False))
    assert not Path("kept").exists()  # the command line removes it when the model is written


def test_remove_takes_only_what_is_ours() -> None:
    X, Y = problem()
    bw.train(X, Y, checkpoint="kept", **HOW)
    Path("kept/letters.txt").touch()
    checkpoints.remove("kept")
    assert os.listdir("kept") == ["letters.txt"]


def test_hashes_tell_data_apart_and_not_types_of_indices() -> None:
    X, _ = problem()
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert hash_of_matrix(X) == hash_of_matrix(wide) != hash_of_matrix(X[::-1])
    assert hash_of_texts(["ab", "c"]) != hash_of_texts(["a", "bc"])
    assert hash_of_texts(["a"] * 40) == hash_of_texts(["a"] * 40)
    assert hash_of_texts(["\ud800"]) != hash_of_texts([""])


def test_killed_at_random_moments_it_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """The short form of tests/campaigns/resume.py."""
    X, Y = random_problem(3000, 400, 300, seed=1)
    sp.save_npz("X.npz", X)
    sp.save_npz("Y.npz", Y)
    train = ("--x", "X.npz", "--y", "Y.npz", "--set", "trees=3")
    found = campaign(train, tmp_path, 3, random.Random(5))
    assert found.different == 0
