"""A model file and labels that come and go in, a new model file out, from the command line; kills too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.commands import run as invoke

import beamwood as bw

ROWS = [("red wool socks", ["socks", "wool"]), ("warm wool hat", ["hats", "wool"]), ("leather boots", ["boots"])]
NEW = [("wool scarf", ["scarves", "wool"]), ("red scarf", ["scarves"])]


def run(*words: object) -> tuple[int, str]:
    ran = invoke(*words)
    return ran.exit_code, ran.stdout + ran.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in (("rows.jsonl", ROWS * 3), ("new.jsonl", NEW)):
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in rows]
        (tmp_path / name).write_text("\n".join(lines))
    (tmp_path / "gone.txt").write_text("boots\n")
    (tmp_path / "names.csv").write_text("key,name\nscarves,Scarves and shawls\n")
    (tmp_path / "texts.tsv").write_text("warm\twarm wool things\n")
    texts, labels = [text for text, _ in ROWS * 3], [keys for _, keys in ROWS * 3]
    bw.train_text(texts, labels, preset="fast", progress=False).save(tmp_path / "shop.bw")
    return tmp_path


def test_labels_come_go_and_are_renamed(folder: Path) -> None:
    before = (folder / "shop.bw").read_bytes()
    files = ("--add", folder / "new.jsonl", "--remove", folder / "gone.txt", "--rename", folder / "names.csv")
    code, said = run("update", folder / "shop.bw", *files, "-o", folder / "new.bw", "-q")
    assert code == 0, said
    model = bw.load(folder / "new.bw", verify=True)
    assert [model.key(i) for i in range(model.n_labels)] == ["hats", "socks", "wool", "scarves"]
    assert "Scarves and shawls" in [hit.name for hit in model.search("red wool scarf", k=4)]
    assert (folder / "shop.bw").read_bytes() == before
    code, said = run("inspect", folder / "new.bw")
    assert "1 labels added (25.0% of all), 1 of 4 removed" in said


def test_texts_only_and_json(folder: Path) -> None:
    words = ("--label-texts", folder / "texts.tsv", "-o", folder / "n.bw", "--json")
    ran = invoke("update", folder / "shop.bw", *words)
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["added"] == 1
    assert "warm" in [hit.key for hit in bw.load(folder / "n.bw").search("warm wool", k=4)]


def test_train_from_a_model_keeps_its_words(folder: Path) -> None:
    code, said = run("train", folder / "new.jsonl", "--from", folder / "shop.bw", "-o", folder / "r.bw", "-q")
    assert code == 0, said
    model, old = bw.load(folder / "r.bw"), bw.load(folder / "shop.bw")
    assert model.n_features == old.n_features
    assert model.n_labels == old.n_labels + 1
    assert model.search("red scarf", k=1)[0].key == "scarves"


def test_what_cannot_be_meant_is_refused(folder: Path) -> None:
    shop, new, out = folder / "shop.bw", folder / "new.jsonl", folder / "out.bw"
    (folder / "none.txt").write_text("none\n")
    (folder / "wide.csv").write_text("a,b,c\n")
    for given, said in (
        (("update", shop, "--add", new), "Give it: -o"),
        (("update", shop, "-o", out), "nothing to do"),
        (("update", shop, "--add", new, "-o", shop), "is there already"),
        (("update", shop, "--add", folder / "rows.jsonl", "-o", out), "no new label"),
        (("update", shop, "--remove", folder / "none.txt", "-o", out), "'none' is no label's key"),
        (("update", shop, "--rename", folder / "wide.csv", "-o", out), "3 cells"),
        (("update", shop, "--add", folder / "missing.jsonl", "-o", out), "missing.jsonl"),
        (("train", new, "--from", shop, "-o", out, "--set", "trees=2"), "--set is given with --from"),
    ):
        code, text = run(*given)
        assert code != 0, given
        assert said in " ".join(text.replace("│", " ").split()), (given, text)
        assert not out.exists()


def test_a_kill_leaves_the_old_file_or_the_new_one(folder: Path) -> None:
    target = folder / "live.bw"
    old = (folder / "shop.bw").read_bytes()
    command = [sys.executable, "-m", "beamwood", "update", str(folder / "shop.bw"), "--add", str(folder / "new.jsonl")]
    command += ["-o", str(target), "--force", "-q"]
    subprocess.run(command, check=True)
    new = target.read_bytes()
    started = time.monotonic()
    subprocess.run(command, check=True)
    whole = time.monotonic() - started
    for step in range(6):
        target.write_bytes(old)
        running = subprocess.Popen(command)
        try:
            running.wait(whole * (step + 1) / 6)
        except subprocess.TimeoutExpired:
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
        assert target.read_bytes() in (old, new)
