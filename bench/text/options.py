"""options.py — sets of texts in; what each option of text features gains there, and what it costs, out.

    python bench/text/options.py --data ../shared/data                      # chosen on held-out training rows
    python bench/text/options.py --data ../shared/data --rows test --only plain typos
    python bench/text/options.py --table                                    # only the table, from the cache

Every option is trained for itself beside `plain` (words of scikit-learn's kind and nothing else), preset `fast`, one
thread, and asked 5,000 texts: as they are, and with one random error in one random word of each (a letter left out,
added or replaced, or two neighbours swapped; the same errors for every option). Rows are kept in build/text_options: a
broken-off run goes on where it stopped. Times are CPU time of this process per query, median of rounds, one thread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import string
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import beamwood as bw

SETS = ("library-subjects", "debian-search", "yso-en")
PLAIN = {"segment": False, "typos": False}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "segment": {"segment": True},
    "typos": {"typos": True},
    "fold_accents": {"fold_accents": True},
    "stem": {"stem": "english"},
    "stop_words": {"stop_words": "english"},
    "single_letters": {"single_letters": True},
    "signs": {"signs": True},
    "signs, single_letters": {"signs": True, "single_letters": True},
    "stem, typos": {"stem": "english", "typos": True},
    "all": {
        **{"segment": True, "typos": True, "fold_accents": True, "stem": "english"},
        **{"single_letters": True, "signs": True},
    },
}
ASKED, ROUNDS = 5_000, 5
CACHE = Path(__file__).resolve().parents[2] / "build" / "text_options"
_WORD = re.compile(r"\w\w+")

Rows = tuple[list[str], list[list[str]]]


def read_rows(folder: Path, split: str) -> Rows:
    """Texts and label keys of one split."""
    whole = folder / "raw.jsonl.gz"
    path = whole if whole.exists() else folder / {"trn": "train.jsonl.gz", "tst": "test.jsonl.gz"}[split]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row.get("split", split) == split]
    return [row["text"] for row in rows], [[str(label) for label in row["labels"]] for row in rows]


def split_rows(folder: Path, rows: str) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to ask: `held` are training rows that are then not learnt from."""
    texts, labels = read_rows(folder, "trn")
    if rows == "test":
        asked = read_rows(folder, "tst")
        return (texts, labels), (asked[0], asked[1])
    order = np.random.default_rng(0).permutation(len(texts))
    held, kept = order[:ASKED], np.sort(order[ASKED:])
    return _taken(texts, labels, kept), _taken(texts, labels, held)


def _taken(texts: list[str], labels: list[list[str]], numbers: Any) -> Rows:
    return [texts[i] for i in numbers], [labels[i] for i in numbers]


def with_error(text: str, rng: random.Random) -> str:
    """The text with one error in one of its words of two letters or more."""
    words = list(_WORD.finditer(text))
    if not words:
        return text
    word = rng.choice(words)
    return text[: word.start()] + _misspelt(word[0], rng) + text[word.end() :]


def _misspelt(word: str, rng: random.Random) -> str:
    at, letter = rng.randrange(len(word)), rng.choice(string.ascii_lowercase)
    kind = rng.choice(("left out", "added", "replaced", "swapped"))
    if kind == "left out":
        return word[:at] + word[at + 1 :]
    if kind == "added":
        at = rng.randrange(len(word) + 1)
        return word[:at] + letter + word[at:]
    if kind == "replaced":
        other = rng.choice(string.ascii_lowercase.replace(word[at].lower(), ""))
        return word[:at] + other + word[at + 1 :]
    at = rng.randrange(len(word) - 1)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def quality(model: bw.Model, texts: list[str], labels: list[list[str]]) -> list[float]:
    """P@1, P@5 and recall@10 in percent; a label that the model does not know counts as missed."""
    assert model.text is not None
    found, _ = model.topk(model.text.transform(texts, threads=1), k=10)
    sums = np.zeros(3)
    for ranked, keys in zip(found, labels, strict=True):
        true = {model.label_of(key) for key in keys} - {None}
        hit = np.isin(ranked, [label for label in true if label is not None])
        sums += hit[0], hit[:5].sum() / 5, hit.sum() / len(keys)
    return [float(x) for x in (100 * sums / len(texts)).round(2)]


def microseconds(model: bw.Model, texts: list[str]) -> float:
    """CPU time of one search of one text, median of rounds over the first 1,000."""
    asked, took = texts[:1_000], []
    for _ in range(ROUNDS + 1):
        begin = time.process_time()
        for text in asked:
            model.search(text)
        took.append((time.process_time() - begin) / len(asked))
    return round(1e6 * float(np.median(took[1:])), 1)


def measure(name: str, option: str, data: Path, rows: str, timed: bool) -> dict[str, Any]:
    """One option on one set."""
    (texts, labels), (asked, true) = split_rows(data / name, rows)
    pairs = [(text, keys) for text, keys in zip(asked, true, strict=True) if keys]
    asked, true = [text for text, _ in pairs], [keys for _, keys in pairs]
    rng = random.Random(1)
    wrong = [with_error(text, rng) for text in asked]
    features = bw.TextFeatures(**{**PLAIN, **OPTIONS[option]})
    model = bw.train_text(texts, labels, text=features, preset="fast", progress=False, threads=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.bw"
        model.save(path)
        size = path.stat().st_size
    figures: dict[str, Any] = {
        "set": name,
        "option": option,
        "rows": rows,
        "asked": len(asked),
        "clean": quality(model, asked, true),
        "errors": quality(model, wrong, true),
        "bytes": size,
        "terms": model.n_features,
    }
    if timed:
        figures |= {"clean_us": microseconds(model, asked), "errors_us": microseconds(model, wrong)}
    return figures


def cached(rows: str) -> Iterator[dict[str, Any]]:
    """What was measured, in the order of the lists above."""
    for name in SETS:
        for option in OPTIONS:
            path = _path(name, option, rows)
            if path.exists():
                yield json.loads(path.read_text())


def _path(name: str, option: str, rows: str) -> Path:
    return CACHE / f"{name}.{option.replace(', ', '+')}.{rows}.json"


def print_table(rows: str) -> None:
    """Quality of clean queries and of those with errors, and cost."""
    print(f"bw {bw.__version__}, preset fast, rows: {rows}; P@1 / P@5 / recall@10 in percent\n")
    print("| set | option | clean queries | one error per query | CPU µs per query, clean / error | MB | terms |")
    print("|---|---|---|---|---|---|---|")
    for row in cached(rows):
        clean, errors = (" / ".join(f"{x:.1f}" for x in row[kind]) for kind in ("clean", "errors"))
        times = f"{row['clean_us']:.0f} / {row['errors_us']:.0f}" if "clean_us" in row else ""
        print(
            f"| {row['set']} | {row['option']} | {clean} | {errors} | {times} | "
            f"{row['bytes'] / 1e6:.1f} | {row['terms']:,} |"
        )


def main() -> None:
    """Measures what is not in the cache yet, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--only", nargs="+", default=list(OPTIONS), choices=list(OPTIONS))
    parser.add_argument("--rows", default="held", choices=("held", "test"))
    parser.add_argument("--timed", action="store_true", help="time queries too: on a quiet machine")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in options.sets:
        for option in options.only:
            path = _path(name, option, options.rows)
            if not options.table and not path.exists():
                figures = measure(name, option, options.data, options.rows, options.timed)
                path.write_text(json.dumps(figures))
                print(figures, flush=True)
    print_table(options.rows)


if __name__ == "__main__":
    main()
