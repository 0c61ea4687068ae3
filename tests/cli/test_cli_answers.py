"""`beamwood predict`, `evaluate`, `search` and `explain`: the answers of the library, and every error seen."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from support.commands import ROWS, fails, good, run

import beamwood as bw
from beamwood.cli.support.output import bytes_in_words
from beamwood.errors import one_line


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
        (("nowhere.bw", "rows.jsonl"), "nowhere.bw: there is no such file. Check the path."),
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


def test_evaluate_asks_for_no_more_labels_than_there_are(shop: Path) -> None:
    found = json.loads(good("evaluate", shop / "shop.bw", shop / "rows.jsonl", "--at", "1,1000000000", "--json"))
    assert found["recall@1000000000"] == 1.0


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


def test_explain_shows_how_trees_and_words_became_one_score(shop: Path) -> None:
    model = bw.train_text(["red wool socks", "blue hat"] * 5, [["socks"], ["hats"]] * 5, lexical=True, progress=False)
    model.save("both.bw")
    shown = good("explain", "both.bw", "blue hat").splitlines()
    assert any(line.startswith("the label's own words: ") for line in shown)
    told = model.explain("blue hat", "hats")
    assert told.head is not None
    assert shown[-1].startswith("head: ")
    assert shown[-1].endswith(f"score {told.score:.6g}")


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


def test_small_scores_have_digits_that_say_something() -> None:
    from beamwood.cli.ask.search import _in_digits

    assert [_in_digits(score) for score in (0.5293, 0.01, 0.000000108, 0.0, -3.25)] == [
        *("0.529", "0.010", "1.1e-07", "0.000", "-3.250"),
    ]


def test_the_help_of_training_names_every_setting() -> None:
    from dataclasses import fields

    said = good("train", "--help")
    missing = [field.name for field in fields(bw.Settings) if field.name not in said]
    assert missing == []


def test_search_reads_a_query_per_line_from_standard_input(shop: Path) -> None:
    said = [good("search", shop / "shop.bw", *words, "--json", stdin="wool\nhats\n") for words in ((), ("-",))]
    for lines in said:
        assert [json.loads(line)["query"] for line in lines.splitlines()] == ["wool", "hats"]


def test_search_names_the_words_that_a_model_does_not_know(shop: Path) -> None:
    assert "not known" not in good("search", shop / "shop.bw", "wool")
    assert good("search", shop / "shop.bw", "wool zeppelin - quasar").endswith(
        "; not known to the model: zeppelin, quasar\n"
    )
    assert "not known" not in good("search", shop / "shop.bw", "wool", *(f"zeppelin{number}" for number in range(60)))
