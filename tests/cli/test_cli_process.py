"""The command line as a process of its own: pipes, terminals, Ctrl-C."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import scipy.sparse as sp
from support.commands import ROWS, VERBS, command
from support.problems import random_problem

import beamwood as bw


def test_process_debug_shows_the_traceback_and_only_then(shop: Path) -> None:
    plain = subprocess.run(command("search", "nowhere.bw", "x"), capture_output=True, text=True, check=False)
    assert (plain.returncode, plain.stdout) == (1, "")
    assert plain.stderr.startswith("error: ")
    assert "Traceback" not in plain.stderr
    debug = subprocess.run(command("search", "nowhere.bw", "x", "--debug"), capture_output=True, text=True, check=False)
    assert debug.returncode == 1
    assert "Traceback" in debug.stderr


def test_process_with_a_closed_pipe_is_quiet(shop: Path) -> None:
    Path("many.txt").write_text("wool socks\n" * 20_000)
    words = command("predict", shop / "shop.bw", "many.txt", "--format", "lines")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) in (0, 141)
    assert b"Traceback" not in said


def test_process_ctrl_c_ends_in_one_line_without_a_half_file(tmp_path: Path) -> None:
    words = command("train", "-", "-o", "m.bw")
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write((json.dumps(ROWS[0]) + "\n").encode() * 10_000)  # more than a pipe holds: it has begun to read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said) == (130, b"", b"stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_process_ctrl_c_in_the_middle_of_training(tmp_path: Path) -> None:
    X, Y = random_problem(3000, 400, 2000, seed=1, density=0.2)
    sp.save_npz("X.npz", X)
    sp.save_npz("Y.npz", Y)
    words = command("train", "--x", "X.npz", "--y", "Y.npz", "-o", "m.bw", "--set", "trees=50", "--set", "C=100")
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.readline()  # the first stage is done
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 130
    assert said.endswith(b"stopped\n")
    assert b"Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["X.npz", "Y.npz"]


def test_process_runs_with_any_of_its_streams_closed(shop: Path) -> None:
    model, rows = shop / "shop.bw", shop / "rows.jsonl"
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        for words in (
            ("predict", model, rows),
            ("diff", model, model),
            ("index", rows, "-o", "i.bw", "-f"),
            ("inspect", model),
        ):
            line = shlex.join(map(str, command(*words)))
            found = subprocess.run(f"{line} {closed}", shell=True, capture_output=True, text=True, check=False)
            assert (found.returncode, "error" in found.stderr) == (0, False), (closed, words, found.stderr)
    assert bw.load("i.bw", verify=True).n_labels > 0  # nothing was written into it but itself


def test_process_with_a_full_standard_output_says_so_in_a_line(shop: Path) -> None:
    for words in (("predict", shop / "shop.bw", shop / "rows.jsonl"), ("inspect", shop / "shop.bw")):
        with open("/dev/full", "w") as full:
            found = subprocess.run(command(*words), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert found.returncode == 1
        assert found.stderr.splitlines()[-1] == "error: standard output or an open file: no space left on device"


def test_process_a_folder_in_place_of_a_file_is_called_one(shop: Path) -> None:
    Path("folder").mkdir()
    model, rows = shop / "shop.bw", shop / "rows.jsonl"
    for words in (
        ("train", "folder", "-o", "x.bw"), ("index", "folder", "-o", "x.bw"), ("predict", model, "folder"),
        ("calibrate", model, "folder", "-o", "x.bw"), ("diff", model, model, "folder"), ("evaluate", model, "folder"),
        ("calibrate", "folder", rows, "-o", "x.bw"), ("diff", model, "folder"), ("search", "folder", "wool"),
    ):  # fmt: skip
        found = subprocess.run(command(*words), capture_output=True, text=True, check=False)
        assert (found.returncode, found.stdout) == (1, ""), words
        [line] = [said for said in found.stderr.splitlines() if said.startswith("error: ")]
        assert "folder is a folder" in line, (words, line)
    assert not Path("x.bw").exists()


def test_process_predict_writes_into_a_pipe_that_is_there(shop: Path) -> None:
    os.mkfifo("pipe")
    process = subprocess.Popen(command("predict", shop / "shop.bw", shop / "rows.jsonl", "-o", "pipe", "-q"))
    lines = Path("pipe").read_text().splitlines()
    assert process.wait(60) == 0
    assert len(lines) == len(ROWS)
    assert Path("pipe").is_fifo()


def test_process_on_a_terminal_without_unicode(shop: Path) -> None:
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for words in (("inspect", shop / "shop.bw"), ("search", shop / "shop.bw", b"caf\xe9 wool")):
        line = [os.fsencode(word) for word in (*command()[:3], *map(os.fspath, words))]
        assert subprocess.run(line, capture_output=True, check=False, env=plain).returncode == 0


def test_process_search_asks_at_a_terminal(shop: Path) -> None:
    ours, theirs = os.openpty()
    words = command("search", shop / "shop.bw", "-k", "1")
    process = subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.write(ours, b"boots\nzeppelin\n\n")
    out, said = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, said) == (0, b"")
    assert b"search> " in out
    assert b"boots" in out
    assert b"no known words in 'zeppelin'" in out


def test_process_ctrl_c_at_the_prompt(shop: Path) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command("search", shop / "shop.bw"), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()  # it has said what to do, and asks
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, said) == (130, b"stopped\n")


def test_process_completion_for_the_shell() -> None:
    environment = {**os.environ, "_BEAMWOOD_COMPLETE": "complete_bash", "COMP_WORDS": "beamwood ", "COMP_CWORD": "1"}
    found = subprocess.run(command(), capture_output=True, text=True, check=False, env=environment)
    assert set(VERBS) <= set(found.stdout.split())
