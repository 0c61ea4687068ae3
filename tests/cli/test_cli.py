"""The command line: every verb, every error seen, exit codes, and what lies on disk afterwards."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import random_problem
from typer.testing import CliRunner

import beamwood as bw
from beamwood.cli.app import app
from beamwood.cli.support.output import bytes_in_words, one_line
from beamwood.inputs.data import write_xmc

ROWS = [
    {"text": "red wool socks for winter", "labels": ["socks", "wool"]},
    {"text": "thick grey wool socks", "labels": ["socks", "wool"]},
    {"text": "cotton shirt with short sleeves", "labels": ["shirts", "cotton"]},
    {"text": "blue cotton shirt", "labels": ["shirts", "cotton"]},
    {"text": "waterproof hiking boots", "labels": ["boots"]},
    {"text": "leather boots for winter", "labels": ["boots"]},
]
VERBS = ("train", "predict", "evaluate", "search", "explain", "inspect", "bench", "serve", "convert")


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every test in a folder of its own, with output that has no colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rows.jsonl, the text model shop.bw, and X.npz, Y.npz, rows.txt with the model numbers.bw."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    texts, labels = [r["text"] for r in ROWS], [r["labels"] for r in ROWS]
    names = {"socks": "Socks [bold]& more[/bold]"}
    bw.train_text(texts, labels, names=names, preset="fast", progress=False).save(folder / "shop.bw")
    X, Y = random_problem(60, 30, 12, seed=0)
    sp.save_npz(folder / "X.npz", X)
    sp.save_npz(folder / "Y.npz", Y)
    write_xmc(folder / "rows.txt", X, Y)
    lines = (folder / "rows.txt").read_text().splitlines()[1:]
    (folder / "rows.svm").write_text("\n".join(lines) + "\n")
    bw.train(X, Y, preset="fast", progress=False).save(folder / "numbers.bw")
    return folder


def run(*words: object, stdin: str | bytes | None = None) -> Any:
    """The verb inside this process."""
    try:
        runner = CliRunner(mix_stderr=False)  # before click 8.2
    except TypeError:
        runner = CliRunner()
    return runner.invoke(app, [str(word) for word in words], input=stdin)


def fails(*words: object, code: int = 1, stdin: str | bytes | None = None) -> str:
    """What a failing verb says: one line, no traceback."""
    result = run(*words, stdin=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if code == 1:
        assert result.stderr.count("\n") == 1, result.stderr
        assert result.stderr.startswith("error: ")
    return str(result.stderr)


def good(*words: object, stdin: str | bytes | None = None) -> str:
    """What a verb prints on standard output."""
    result = run(*words, stdin=stdin)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "beamwood", *map(str, words)]


# --- the whole ------------------------------------------------------------------------------------------------------


def test_import_of_the_library_does_not_import_the_command_line() -> None:
    code = "import sys, beamwood; print([m for m in ('typer', 'rich', 'sklearn', 'beamwood.cli') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_version() -> None:
    assert good("--version").strip() == f"beamwood {bw.__version__}"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    help = good(verb, "--help")
    assert "Example" in help
    assert "beamwood" in help


def test_the_help_lists_every_verb() -> None:
    listed = good("--help")
    assert all(verb in listed for verb in VERBS)


@pytest.mark.parametrize("words", [("grow",), ("train", "--nonsense"), ("search", "m.bw", "-k", "0", "x")])
def test_wrong_usage_is_exit_code_two(words: tuple[str, ...]) -> None:
    fails(*words, code=2)


# --- train ----------------------------------------------------------------------------------------------------------


def test_train_on_texts_then_search(shop: Path) -> None:
    good("train", shop / "rows.jsonl", "-o", "m.bw", "--preset", "fast", "-q")
    assert bw.load("m.bw").search("wool socks", k=1)[0].key in ("socks", "wool")


def test_train_writes_the_same_file_as_the_library(shop: Path) -> None:
    good("train", shop / "rows.jsonl", "-o", "m.bw", "--preset", "fast", "-q", "--seed", 3, "--ngrams", "1-2")
    texts, labels = [r["text"] for r in ROWS], [r["labels"] for r in ROWS]
    text = bw.TextFeatures(ngram_range=(1, 2))
    bw.train_text(texts, labels, text=text, preset="fast", seed=3, progress=False).save("same.bw")
    assert Path("m.bw").read_bytes() == Path("same.bw").read_bytes()


def test_train_says_what_it_made_as_json_with_a_report(shop: Path) -> None:
    said = json.loads(good("train", shop / "rows.jsonl", "-o", "m.bw", "--report", "r.json", "--json"))
    assert said["labels"] == 5
    assert said["bytes"] == Path("m.bw").stat().st_size
    assert json.loads(Path("r.json").read_text())["rows"] == 6


def test_train_takes_matrices_xmc_and_svmlight(shop: Path) -> None:
    good("train", "--x", shop / "X.npz", "--y", shop / "Y.npz", "-o", "a.bw", "-q", "--preset", "fast")
    good("train", shop / "rows.txt", "-o", "b.bw", "-q", "--preset", "fast")
    good("train", shop / "rows.svm", "-o", "c.bw", "-q", "--preset", "fast")
    assert Path("a.bw").read_bytes() == Path("b.bw").read_bytes() == (shop / "numbers.bw").read_bytes()
    assert bw.load("c.bw").n_labels == 12


def test_train_takes_csv_gz_with_columns_and_a_separator() -> None:
    with gzip.open("rows.csv.gz", "wt") as file:
        file.write("title,tags\n" + "".join(f"{r['text']},{'|'.join(r['labels'])}\n" for r in ROWS))
    columns = ("--text-column", "title", "--labels-column", "tags", "--separator", "|")
    good("train", "rows.csv.gz", "-o", "m.bw", "-q", *columns)
    assert bw.load("m.bw").label_of("wool") is not None


def test_train_takes_standard_input(shop: Path) -> None:
    good("train", "-", "-o", "m.bw", "-q", stdin=(shop / "rows.jsonl").read_text())
    assert bw.load("m.bw").n_labels == 5


def test_train_names_labels_from_a_file(shop: Path) -> None:
    Path("names.tsv").write_text("socks\tSocks and stockings\nboots\tBoots\n")
    good("train", shop / "rows.jsonl", "-o", "m.bw", "-q", "--labels-file", "names.tsv")
    model = bw.load("m.bw")
    assert model.name(model.label_of("socks")) == "Socks and stockings"
    Path("all.tsv").write_text("".join(f"k{i}\tName {i}\n" for i in range(12)))
    good("train", shop / "rows.txt", "-o", "n.bw", "-q", "--labels-file", "all.tsv")
    assert (bw.load("n.bw").key(3), bw.load("n.bw").name(3)) == ("k3", "Name 3")


def test_train_takes_any_setting_and_letters(shop: Path) -> None:
    words = ("--set", "trees=2", "--set", "prune=0.2", "--set", "loss=hinge", "--chars", "3-4", "--min-df", 1)
    good("train", shop / "rows.jsonl", "-o", "m.bw", "-q", *words)
    settings = bw.load("m.bw").settings
    assert (settings["trees"], settings["prune"], settings["loss"]) == (2, 0.2, "hinge")
    assert len(bw.load("m.bw").text.blocks) == 2


def test_train_refuses_to_replace_a_file_before_it_works(shop: Path) -> None:
    Path("m.bw").write_text("precious")
    assert "--force" in fails("train", "nowhere.jsonl", "-o", "m.bw")
    assert Path("m.bw").read_text() == "precious"
    good("train", shop / "rows.jsonl", "-o", "m.bw", "-q", "--force")
    Path("r.json").write_text("precious")
    assert "r.json" in fails("train", shop / "rows.jsonl", "-o", "new.bw", "--report", "r.json")
    assert not Path("new.bw").exists()


def test_train_never_replaces_a_pipe_or_a_device(shop: Path) -> None:
    os.mkfifo("pipe")
    for target in ("pipe", "-"):
        assert "is a stream" in fails("train", shop / "rows.jsonl", "-o", target, "-q", "--force")
    assert Path("pipe").is_fifo()


def test_train_counts_bad_rows_when_told_to_skip_them() -> None:
    rows = [json.dumps(row) for row in ROWS]
    Path("rows.jsonl").write_text("\n".join([*rows, "{broken", '{"text": 3, "labels": []}']) + "\n")
    assert "line 7" in fails("train", "rows.jsonl", "-o", "m.bw", "-q")
    assert not Path("m.bw").exists()
    assert json.loads(good("train", "rows.jsonl", "-o", "m.bw", "--skip-bad", "--json"))["skipped"] == 2


def test_train_shows_progress_and_notes_as_lines(shop: Path) -> None:
    rows = [*ROWS, {"text": "a hat", "labels": []}]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = run("train", "rows.jsonl", "-o", "m.bw").stderr
    assert "label vectors: done" in said
    assert "note: 1 rows have no label" in said


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("rows.jsonl",), 2, "-o model.bw"),
        (("-o", "m.bw"), 2, "DATA and --x: neither"),
        (("rows.jsonl", "--x", "X.npz", "-o", "m.bw"), 2, "DATA and --x: both"),
        (("rows.jsonl", "--y", "Y.npz", "-o", "m.bw"), 2, "--y has no --x"),
        (("--x", "X.npz", "-o", "m.bw"), 2, "--y Y.npz"),
        (("X.npz", "-o", "m.bw"), 1, "--x X.npz --y Y.npz"),
        (("rows.what", "-o", "m.bw"), 1, "--format"),
        (("rows.jsonl", "--format", "xls", "-o", "m.bw"), 2, "expected one of"),
        (("rows.jsonl", "--format", "lines", "-o", "m.bw"), 1, "holds only texts"),
        (("nowhere.jsonl", "-o", "m.bw"), 1, "no such file"),
        (("rows.jsonl", "-o", "nowhere/m.bw"), 1, "does not exist"),
        (("rows.jsonl", "-o", "."), 1, "is a folder"),
        (("rows.jsonl", "-o", "m.bw", "--text-column", "title"), 1, "'title'"),
        (("rows.jsonl", "-o", "m.bw", "--preset", "quick"), 1, "'fast'"),
        (("rows.jsonl", "-o", "m.bw", "--set", "branchin=4"), 1, "did you mean 'branching'"),
        (("rows.jsonl", "-o", "m.bw", "--set", "branching"), 2, "NAME=VALUE"),
        (("rows.jsonl", "-o", "m.bw", "--set", "seed=1"), 2, "--seed 1"),
        (("rows.jsonl", "-o", "m.bw", "--ngrams", "a-b"), 1, "1-2"),
        (("empty.jsonl", "-o", "m.bw"), 1, "no rows"),
        (("rows.jsonl", "-o", "m.bw", "--threads", "99999"), 1, "threads"),
        (("--x", "Y.npz", "--y", "short.npz", "-o", "m.bw"), 1, "expected the same"),
    ],
)
def test_train_errors(shop: Path, words: tuple[str, ...], code: int, expected: str, tmp_path: Path) -> None:
    for name in ("rows.jsonl", "X.npz", "Y.npz"):
        Path(name).write_bytes((shop / name).read_bytes())
    Path("empty.jsonl").write_text("")
    sp.save_npz("short.npz", sp.csr_matrix((3, 12), dtype=np.float32))
    assert expected in " ".join(fails("train", *words, code=code).replace("│", " ").split())
    assert not Path("m.bw").exists()
    assert not list(tmp_path.glob(".*.draft"))


# --- predict and evaluate -------------------------------------------------------------------------------------------


def test_predict_writes_json_lines_as_the_library_answers(shop: Path) -> None:
    lines = good("predict", shop / "shop.bw", shop / "rows.jsonl", "-k", 3).splitlines()
    model = bw.load(shop / "shop.bw")
    for number, (line, row) in enumerate(zip(lines, ROWS, strict=True)):
        answer, hits = json.loads(line), model.search(row["text"], k=3)
        assert answer["row"] == number
        assert answer["keys"] == [hit.key for hit in hits]
        assert answer["names"] == [hit.name for hit in hits]
        np.testing.assert_allclose(answer["scores"], [hit.score for hit in hits], rtol=1e-6)


def test_predict_writes_npz_and_gz(shop: Path) -> None:
    good("predict", shop / "numbers.bw", "--x", shop / "X.npz", "-o", "p.npz", "-q")
    expected = bw.load(shop / "numbers.bw").predict(sp.load_npz(shop / "X.npz"))
    assert (sp.load_npz("p.npz") != expected).nnz == 0
    said = json.loads(good("predict", shop / "numbers.bw", shop / "rows.txt", "-o", "p.jsonl.gz", "--json"))
    with gzip.open("p.jsonl.gz") as file:
        assert len(file.readlines()) == said["rows"] == 60


def test_predict_reads_lines_from_standard_input_and_knows_unknown_words(shop: Path) -> None:
    out = good("predict", shop / "shop.bw", "-", "--format", "lines", stdin="wool\nzeppelin\n\n")
    first, second, third = map(json.loads, out.splitlines())
    assert first["keys"]
    assert second["keys"] == third["keys"] == []


def test_predict_leaves_out_low_scores(shop: Path) -> None:
    out = good("predict", shop / "shop.bw", shop / "rows.jsonl", "--min-score", 0.5)
    assert all(score >= 0.5 for line in out.splitlines() for score in json.loads(line)["scores"])


def test_predict_reads_svmlight_with_the_models_features(shop: Path) -> None:
    Path("q.svm").write_text("0 1:1.0\n")
    assert len(good("predict", shop / "numbers.bw", "q.svm").splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("nowhere.bw", "rows.jsonl"), "Cannot read nowhere.bw"),
        (("rows.jsonl", "rows.jsonl"), "not a beamwood model"),
        (("numbers.bw", "rows.jsonl"), "reads no texts"),
        (("shop.bw", "--x", "X.npz"), "columns"),
        (("shop.bw", "rows.jsonl", "-o", "rows.jsonl"), "--force"),
        (("shop.bw", "bad.txt", "--format", "lines"), "UTF-8"),
        (("shop.bw", "empty.jsonl", "-o", "p.npz"), "no rows"),
    ],
)
def test_predict_errors(shop: Path, words: tuple[str, ...], expected: str) -> None:
    for name in ("rows.jsonl", "X.npz", "shop.bw", "numbers.bw"):
        Path(name).write_bytes((shop / name).read_bytes())
    Path("bad.txt").write_bytes(b"\xff\xfe\n")
    Path("empty.jsonl").write_text("")
    said = run("predict", *words, "-q")
    assert said.exit_code == 1
    assert expected in said.stderr
    assert said.stderr.count("\n") == 1
    assert not Path("p.npz").exists()


def test_evaluate_measures_as_the_library_does(shop: Path) -> None:
    said = json.loads(
        good("evaluate", shop / "numbers.bw", "--x", shop / "X.npz", "--y", shop / "Y.npz", "--at", "1,2", "--json")
    )
    model, X, Y = bw.load(shop / "numbers.bw"), sp.load_npz(shop / "X.npz"), sp.load_npz(shop / "Y.npz")
    expected = bw.evaluate(model.topk(X, k=2), Y, at=(1, 2)).as_dict()
    assert {name: said[name] for name in expected} == expected


def test_evaluate_on_texts_counts_unseen_labels_as_missed(shop: Path) -> None:
    Path("test.jsonl").write_text('{"text": "wool socks", "labels": ["socks", "wool", "new", "newer"]}\n')
    said = json.loads(good("evaluate", shop / "shop.bw", "test.jsonl", "--json"))
    assert said["labels_never_seen"] == 2
    assert said["recall@5"] == 0.5
    result = run("evaluate", shop / "shop.bw", "test.jsonl", "-q")
    assert "2 labels" in result.stderr
    assert "precision" in result.stdout


def test_evaluate_adds_propensities(shop: Path) -> None:
    words = ("--x", shop / "X.npz", "--y", shop / "Y.npz", "--train-labels", shop / "Y.npz", "--json")
    assert "psp@1" in json.loads(good("evaluate", shop / "numbers.bw", *words))


def test_evaluate_errors(shop: Path) -> None:
    sp.save_npz("Y.npz", sp.csr_matrix((60, 3), dtype=np.float32))
    said = fails("evaluate", shop / "numbers.bw", "--x", shop / "X.npz", "--y", "Y.npz", "-q")
    assert "3 labels; expected 12" in said
    fails("evaluate", shop / "shop.bw", shop / "rows.jsonl", "--at", "0", code=2)
    fails("evaluate", shop / "shop.bw", shop / "rows.jsonl", "--at", "one", code=2)
    Path("e.svm").write_text("")
    assert "no rows" in fails("evaluate", shop / "numbers.bw", "e.svm", "-q")


# --- search ---------------------------------------------------------------------------------------------------------


def test_search_one_query(shop: Path) -> None:
    out = good("search", shop / "shop.bw", "wool", "socks", "-k", "2")
    assert "Socks [bold]& more[/bold]" in out
    assert "2 of 5 labels" in out


def test_search_as_json(shop: Path) -> None:
    said = json.loads(good("search", shop / "shop.bw", "boots", "-k", "1", "--json"))
    assert said["hits"][0]["key"] == "boots"
    assert said["query"] == "boots"


def test_search_reads_queries_from_a_pipe(shop: Path) -> None:
    out = good("search", shop / "shop.bw", "--json", stdin=b"wool\nboots\n")
    assert [json.loads(line)["query"] for line in out.splitlines()] == ["wool", "boots"]


def test_search_and_predict_obey_allowed_and_denied_labels(shop: Path) -> None:
    def keys(*words: object) -> set[str]:
        found = json.loads(good("search", shop / "shop.bw", "wool socks", "--json", *words))["hits"]
        return {hit["key"] for hit in found}

    assert keys() == {"socks", "wool", "shirts", "cotton", "boots"}
    assert keys("--allow", "socks", "--allow", "boots") == {"socks", "boots"}
    assert keys("--deny", "socks") == {"wool", "shirts", "cotton", "boots"}
    Path("sold-out.txt").write_text("wool\tMade of wool\nboots\n\n")
    assert keys("--deny-file", "sold-out.txt", "--deny", "socks") == {"shirts", "cotton"}
    assert keys("--allow-file", "sold-out.txt", "--deny", "wool") == {"boots"}
    lines = good("predict", shop / "shop.bw", shop / "rows.jsonl", "-k", 9, "--allow-file", "sold-out.txt").splitlines()
    assert all(set(json.loads(line)["keys"]) == {"wool", "boots"} for line in lines)
    good("predict", shop / "numbers.bw", "--x", shop / "X.npz", "--deny", "3", "-k", 99, "-o", "answers.npz")
    found = sp.load_npz("answers.npz")
    assert found.nnz == 11 * found.shape[0]
    assert 3 not in found.indices


def test_unknown_labels_are_an_error_or_in_a_file_a_note(shop: Path) -> None:
    assert "'hats'" in fails("search", shop / "shop.bw", "wool", "--deny", "hats")
    Path("old.txt").write_text("hats\nsocks\n")
    result = run("search", shop / "shop.bw", "wool", "--deny-file", "old.txt")
    assert result.exit_code == 0
    assert result.stderr == "note: the model has no labels for 1 of the keys: hats\n"
    assert "no such file" in fails("search", shop / "shop.bw", "wool", "--allow-file", "nowhere.txt")
    Path("odd.txt").write_bytes(b"\xff\n")
    assert "line 1 has bytes that are not UTF-8" in fails("search", shop / "shop.bw", "x", "--allow-file", "odd.txt")


def test_explain_shows_what_each_word_adds(shop: Path) -> None:
    shown = good("explain", shop / "shop.bw", "warm wool socks", "--label", "socks")
    assert shown.splitlines()[0].endswith("Socks [bold]& more[/bold]  (socks)")
    assert "layer 1, node" in shown
    assert "wool  +" in " ".join(shown.split(" ")).replace("   ", "  ")
    found = json.loads(good("explain", shop / "shop.bw", "warm", "wool", "socks", "--json"))
    hit = bw.load(shop / "shop.bw").search("warm wool socks", k=1)[0]
    assert (found["key"], found["score"]) == (hit.key, hit.score)
    assert {share["word"] for share in found["trees"][0]["steps"][0]["shares"]} <= {"wool", "socks"}
    assert "'hats' is no label's key" in fails("explain", shop / "shop.bw", "wool", "--label", "hats")
    assert "none of these words" in fails("explain", shop / "shop.bw", "xyzzy")
    assert "reads no texts" in fails("explain", shop / "numbers.bw", "wool")


def test_search_says_when_no_word_is_known_or_nothing_scores_enough(shop: Path) -> None:
    assert "no known words in 'zeppelin'" in good("search", shop / "shop.bw", "zeppelin")
    assert "nothing found" in good("search", shop / "shop.bw", "wool", "--min-score", "2")


def test_search_survives_odd_input(shop: Path) -> None:
    good("search", shop / "shop.bw", stdin=b"\xff\xfe\x00 wool\n\n\x1b[31m\n" + "羊毛 مرحبا 🧦\n".encode())


def test_search_on_a_model_without_words(shop: Path) -> None:
    assert "reads no texts" in fails("search", shop / "numbers.bw", "wool")


def test_the_terminal_is_safe_from_names() -> None:
    assert one_line("a\nb\x1b[31mc") == "a b\\x1b[31mc"
    assert [bytes_in_words(n) for n in (5, 1200, 3_400_000, 5e9)] == ["5 bytes", "1.2 kB", "3.4 MB", "5.00 GB"]


# --- inspect and bench ----------------------------------------------------------------------------------------------


def test_inspect_shows_shape_sizes_and_weights(shop: Path) -> None:
    out = good("inspect", shop / "shop.bw", "--data", shop / "rows.jsonl", "--top", 2, "--verify")
    for expected in ("5 labels", "Nodes per layer", "Bytes by section", "Weights by size", "Most frequent labels"):
        assert expected in out


def test_inspect_shows_the_most_frequent_labels_of_the_training(shop: Path) -> None:
    found = json.loads(good("inspect", shop / "shop.bw", "--json", "--top", 3))["most_frequent"]
    assert found == [
        {"key": "boots", "name": "boots", "rows": 2},
        {"key": "cotton", "name": "cotton", "rows": 2},
        {"key": "shirts", "name": "shirts", "rows": 2},
    ]
    assert "Most frequent labels" in good("inspect", shop / "numbers.bw")
    bw.Model.from_layers(bw.load(shop / "shop.bw").layers(), activation="hinge-3").save("bare.bw")
    assert "Most frequent labels" not in good("inspect", "bare.bw")


def test_inspect_as_json_counts_every_weight(shop: Path) -> None:
    said = json.loads(good("inspect", shop / "numbers.bw", "--json"))
    assert sum(entry["count"] for entry in said["weights"]) == said["nonzeros"]
    assert said["text"] is None
    assert said["file_bytes"] == (shop / "numbers.bw").stat().st_size


def test_inspect_finds_damage(shop: Path) -> None:
    data = bytearray((shop / "shop.bw").read_bytes())
    data[-1] ^= 1
    data[-200] ^= 1
    Path("bad.bw").write_bytes(data)
    assert "damaged" in fails("inspect", "bad.bw", "--verify")


def test_bench_times_all_variants(shop: Path) -> None:
    words = ("bench", shop / "numbers.bw", "--x", shop / "X.npz", "-n", 20, "--rounds", 1)
    said = json.loads(good(*words, "--json"))
    assert said["same_bits"]
    assert len(said["variants"]) == 9
    assert all(time["batch"] >= 0 and time["online"] > 0 for time in said["variants"])
    out = good(*words, "-q")
    assert all(word in out for word in ("march", "binary", "hash", "dense", "cascade"))


def test_bench_on_texts_and_on_nothing(shop: Path) -> None:
    good("bench", shop / "shop.bw", shop / "rows.jsonl", "--rounds", 1, "-q")
    Path("empty.jsonl").write_text("")
    fails("bench", shop / "shop.bw", "empty.jsonl", code=2)


# --- a real process -------------------------------------------------------------------------------------------------


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
