"""`beamwood predict` on files: every format holds what the library answers, ids and empty rows come through, and a run
that is killed at any moment goes on to the same bytes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import random_problem

import beamwood as bw
from beamwood.batch.meter import Meter
from beamwood.batch.row_blocks import iter_rows
from beamwood.inputs.data import read_svmlight, read_xmc, write_xmc

ROWS = [
    ("red wool socks for winter", ["socks", "wool"]),
    ("thick grey wool socks", ["socks", "wool"]),
    ("cotton shirt with short sleeves", ["shirts", "cotton, raw"]),
    ("blue cotton shirt", ["shirts", "cotton, raw"]),
    ("leather boots for winter", ["boots"]),
]
WORDS = ["wool", "socks", "cotton", "shirt", "boots", "winter", "zeppelin", "blue"]


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """shop.bw (with names), plain.bw (keys only) and many.jsonl: 60,000 rows with ids of two kinds."""
    folder = tmp_path_factory.mktemp("shop")
    texts, labels = [text for text, _ in ROWS], [keys for _, keys in ROWS]
    names = {"socks": 'Socks "&" more'}
    bw.train_text(texts, labels, names=names, preset="fast", progress=False).save(folder / "shop.bw")
    bw.train_text(texts, labels, preset="fast", progress=False).save(folder / "plain.bw")
    dice = random.Random(0)
    with open(folder / "many.jsonl", "w") as out:
        for row in range(60_000):
            text = " ".join(dice.choices(WORDS, k=3)) if row % 100 else "zeppelin"
            out.write(json.dumps({"text": text, "sku": f"é-{row}", "number": row * 3}) + "\n")
    return folder


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "beamwood", "predict", *map(str, words)]


def predict(*words: object, stdin: bytes | None = None, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    ran = subprocess.run(command(*words), input=stdin, capture_output=True, check=False)
    assert ran.returncode == code, ran.stderr.decode()
    return ran


def few(path: Path, count: int = 300) -> Path:
    """The first rows of a file, in the folder of the test."""
    Path("few.jsonl").write_text("".join(path.read_text().splitlines(keepends=True)[:count]))
    return Path("few.jsonl")


def unpacked(name: str) -> str:
    return gzip.decompress(Path(name).read_bytes()).decode()


def expected(model: bw.Model, path: Path, k: int) -> list[Any]:
    return [model.search(json.loads(line)["text"], k=k) for line in path.read_text().splitlines()]


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["shop.bw", "plain.bw"])
@pytest.mark.parametrize("ids", [None, "sku", "number"])
def test_every_format_holds_what_the_library_answers(shop: Path, name: str, ids: str | None) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    data, model = few(shop / "many.jsonl"), bw.load(shop / name)
    hits, given = expected(model, data, 3), [json.loads(line) for line in data.read_text().splitlines()]
    how = ("-k", 3, "-q", *(("--id-column", ids) if ids else ()))
    for output in ("a.jsonl", "a.jsonl.gz", "a.csv", "a.tsv.gz", "a.parquet"):
        predict(shop / name, data, "-o", output, *how)
    lines = Path("a.jsonl").read_text()
    assert unpacked("a.jsonl.gz") == lines
    table = pq.read_table("a.parquet").to_pylist()
    for row, (found, stored) in enumerate(zip(map(json.loads, lines.splitlines()), table, strict=True)):
        assert found["row"] == stored["row"] == row
        assert found["keys"] == stored["keys"] == [hit.key for hit in hits[row]]
        assert found["scores"] == pytest.approx([hit.score for hit in hits[row]], rel=1e-7)
        assert np.array_equal(np.float32(stored["scores"]), np.float32(found["scores"]))
        assert ("names" in found) == ("names" in stored) == (name == "shop.bw")
        if "names" in found:
            assert found["names"] == stored["names"] == [hit.name for hit in hits[row]]
        if ids is not None:
            assert found["id"] == stored["id"] == given[row][ids]
    for text, between in ((Path("a.csv").read_text(), ","), (unpacked("a.tsv.gz"), "\t")):
        cells = list(csv.DictReader(io.StringIO(text), delimiter=between))
        assert {int(cell["row"]) for cell in cells} == set(range(len(hits)))  # those without an answer too
        answered = [cell for cell in cells if cell["rank"]]
        assert [cell["key"] for cell in answered] == [hit.key for row in hits for hit in row]
        if ids is not None:
            assert all(cell["id"] == str(given[int(cell["row"])][ids]) for cell in cells)


def test_npz_is_the_matrix_that_predict_gives(shop: Path) -> None:
    X, Y = random_problem(9000, 30, 12, seed=0)
    sp.save_npz("X.npz", X)
    bw.train(X, Y, preset="fast", progress=False).save("n.bw")
    predict("n.bw", "--x", "X.npz", "-o", "p.npz", "-q", "-k", 4)
    whole = bw.load("n.bw").predict(X, k=4)
    found = sp.load_npz("p.npz")
    assert found.shape == whole.shape
    assert np.array_equal(found.indptr, whole.indptr)
    assert np.array_equal(found.indices, whole.indices)
    assert np.array_equal(found.data, whole.data)


@pytest.mark.parametrize("first", [0, 1])
def test_rows_of_numbers_come_in_blocks_as_they_come_at_once(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beamwood.batch.row_blocks._BYTES", 5000)
    X, Y = random_problem(500, 40, 12, seed=1)
    write_xmc("rows.txt", X, Y)
    joined: Any = sp.vstack([block for block, _ in iter_rows("rows.txt", "xmc", 40)])
    assert (joined != read_xmc("rows.txt").X).nnz == 0
    lines = Path("rows.txt").read_text().splitlines()[1:]
    shifted = [" ".join(_shifted(word, first) for word in line.split(" ")) for line in lines]
    Path("rows.svm").write_text("\n".join([*shifted[:250], "bad line", *shifted[250:]]))
    read = [*iter_rows("rows.svm", "svmlight", 40, skip_bad=True)]
    whole = read_svmlight("rows.svm", features=40, skip_bad=True)
    again: Any = sp.vstack([block for block, _ in read])
    assert (again != whole.X).nnz == 0
    assert read[-1][1] == whole.skipped == 1
    with pytest.raises(bw.DataError, match="line 251 has"):
        list(iter_rows("rows.svm", "svmlight", 40))


def _shifted(word: str, by: int) -> str:
    feature, colon, value = word.partition(":")
    return f"{int(feature) + by}:{value}" if colon else word


def test_xmc_rows_that_do_not_fit_or_are_cut_off_are_refused() -> None:
    X, Y = random_problem(50, 40, 12, seed=1)
    write_xmc("rows.txt", X, Y)
    with pytest.raises(bw.DataError, match="has 40 features; expected 41"):
        list(iter_rows("rows.txt", "xmc", 41))
    Path("cut.txt").write_text("\n".join(Path("rows.txt").read_text().splitlines()[:30]) + "\n")
    with pytest.raises(bw.DataError, match="has 29 rows; expected 50"):
        list(iter_rows("cut.txt", "xmc", 40))


def test_standard_input_goes_to_standard_output_with_ids(shop: Path) -> None:
    lines = b'{"text": "wool", "sku": "a"}\n{"text": "", "sku": null}\n{"text": "boots", "sku": 1.5}\n'
    out = predict(shop / "plain.bw", "-", "--id-column", "sku", "-k", 1, stdin=lines).stdout
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["a", None, 1.5]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("shop.bw", "few.jsonl", "-o", "a.txt"), "tells no format"),
        (("shop.bw", "few.jsonl", "-o", "a.npz.gz"), "tells no format"),
        (("shop.bw", "few.jsonl", "-o", "a.npz", "--id-column", "sku"), "holds only numbers"),
        (("shop.bw", "few.jsonl", "-o", "a.jsonl", "--id-column", "nope"), "no 'nope' among"),
        (("shop.bw", "few.jsonl", "--format", "lines", "--id-column", "sku"), "has no columns"),
        (("shop.bw", "few.jsonl", "--resume"), "is a stream"),
        (("shop.bw", "-", "-o", "a.jsonl", "--resume"), "the data is a stream"),
        (("shop.bw", "few.jsonl", "-o", "/dev/null", "--resume"), "is a stream"),
        (("shop.bw", "lists.jsonl", "-o", "a.csv", "--id-column", "sku"), "expected a string or a number"),
        (("shop.bw", "lone.jsonl", "-o", "a.csv", "--id-column", "sku"), "lone surrogate"),
        (("shop.bw", "lone.jsonl", "-o", "a.parquet", "--id-column", "sku"), "lone surrogate"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(shop: Path, words: tuple[str, ...], said: str) -> None:
    few(shop / "many.jsonl", 20)
    Path("lists.jsonl").write_text('{"text": "wool", "sku": [1]}\n')
    Path("lone.jsonl").write_text('{"text": "wool", "sku": "\\ud800"}\n')
    before = set(os.listdir())
    ran = predict(shop / words[0], *words[1:], stdin=b"", code=1)
    assert said in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1
    assert set(os.listdir()) == before


# --- a run that is killed ---------------------------------------------------------------------------------------------


def killed_when(words: list[str], ready: Callable[[], bool]) -> bool:
    """Starts a process and kills it once something is so; whether it was still running."""
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    while process.poll() is None and not ready():
        time.sleep(0.001)
    process.kill()
    return process.wait() != 0


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv.gz", "a.npz", "a.parquet"])
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(shop: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    ids = () if name.endswith("npz") else ("--id-column", "sku")
    words = (shop / "plain.bw", shop / "many.jsonl", *ids, "-q")
    predict(*words, "-o", f"whole-{name}")
    size = Path(f"whole-{name}").stat().st_size
    dice = random.Random(name)
    partial = Path(f"{name}.partial")
    kills = 0
    for share in sorted(dice.random() for _ in range(5)):
        until = share * size

        def grown(until: float = until) -> bool:
            try:
                return partial.stat().st_size >= until
            except FileNotFoundError:
                return False

        kills += killed_when(command(*words, "-o", name, "--resume", "--force"), grown)
    assert kills
    if not Path(name).exists():
        assert partial.exists()
        refused = predict(*words, "-o", name, code=1)
        assert b"--resume to go on" in refused.stderr
    if partial.exists():  # also where one of the runs had ended before it was killed, and the next began anew
        predict(*words, "-o", name, "--resume", "--force")
    assert Path(name).read_bytes() == Path(f"whole-{name}").read_bytes()
    assert sorted(os.listdir()) == sorted([name, f"whole-{name}"])


def interrupted_run(shop: Path) -> tuple[Any, ...]:
    """A partial file of the first block, as a kill leaves it."""
    words = (shop / "plain.bw", "rows.jsonl", "-q", "-o", "a.jsonl")
    Path("rows.jsonl").write_bytes((shop / "many.jsonl").read_bytes())
    journal = Path("a.jsonl.partial.journal")

    def marked() -> bool:
        return journal.exists() and journal.read_bytes().count(b"\n") >= 2

    while not killed_when(command(*words, "--resume", "--force"), marked):
        Path("a.jsonl").unlink()  # the machine was too fast
    return words


def test_a_run_is_not_gone_on_with_when_anything_differs(shop: Path) -> None:
    words = interrupted_run(shop)
    for more, said in (
        (("-k", 4), "was begun with k 10; expected 4"),
        (("--min-score", 0.5), "was begun with min_score"),
        (("--skip-bad",), "was begun with skip_bad"),
    ):
        assert said in predict(*words, "--resume", *more, code=1).stderr.decode()
    other = predict(shop / "shop.bw", *words[1:], "--resume", code=1).stderr.decode()
    assert "was begun with model" in other
    with open("rows.jsonl", "a") as rows:
        rows.write('{"text": "one more"}\n')
    assert "was begun with data" in predict(*words, "--resume", code=1).stderr.decode()


def test_a_damaged_partial_file_is_made_anew(shop: Path) -> None:
    words = interrupted_run(shop)
    with open("a.jsonl.partial", "r+b") as partial:
        partial.write(b"\0" * os.path.getsize("a.jsonl.partial"))
    predict(*words, "--resume")
    predict(shop / "plain.bw", "rows.jsonl", "-q", "-o", "b.jsonl")
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()


def test_a_full_disk_is_said_and_what_was_done_is_kept(shop: Path) -> None:
    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))

    words = (shop / "plain.bw", shop / "many.jsonl", "-q", "-o", "a.jsonl")
    ran = subprocess.run(command(*words), capture_output=True, check=False, preexec_fn=small_files_only)
    assert ran.returncode == 1
    assert b"cannot be written" in ran.stderr
    assert b"--resume" in ran.stderr
    assert not Path("a.jsonl").exists()
    predict(*words, "--resume")
    predict(*words[:-1], "b.jsonl")
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()


def test_two_runs_do_not_write_the_same_file(shop: Path) -> None:
    fifo = Path("rows.jsonl")
    os.mkfifo(fifo)
    words = (shop / "plain.bw", fifo, "-q", "-o", "a.jsonl")
    first = subprocess.Popen(command(*words))
    with open(fifo, "wb") as pipe:  # once it is open, the first run reads: it has its lock
        pipe.write(b'{"text": "wool"}\n')
        second = predict(shop / "plain.bw", "-", "-o", "a.jsonl", "--force", stdin=b"", code=1)
        assert b"another process" in second.stderr
    assert first.wait(60) == 0
    assert Path("a.jsonl").read_bytes().count(b"\n") == 1


# --- memory and progress ----------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_rows(shop: Path) -> None:
    def peak(rows: int) -> int:
        """Peak bytes of a process that answers so many rows."""
        lines = (shop / "many.jsonl").read_text().splitlines(keepends=True)
        Path("rows.jsonl").write_text("".join(lines[i % len(lines)] for i in range(rows)))
        process = subprocess.Popen(command(shop / "plain.bw", "rows.jsonl", "-q", "--force", "-o", "a.jsonl"))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        assert status == 0
        return usage.ru_maxrss * 1024

    assert peak(240_000) - peak(30_000) < 30e6


def test_the_meter_says_rows_speed_and_time_left() -> None:
    out, now = io.StringIO(), [0.0]
    meter = Meter(out, clock=lambda: now[0])
    meter.resumed(1000, 0.5)
    now[0] = 10.0
    meter.update(2000, 0.75)
    meter.update(2001, 0.75)  # too soon for another line
    now[0] = 20.0
    meter.done(3000)
    assert out.getvalue().splitlines() == [
        "resume: 1,000 rows are there already",
        "predict: 2,000 rows, 100 rows/s, 75%, 0:10 left",
        "predict: 3,000 rows in 20.0 s, 100 rows/s",
    ]
