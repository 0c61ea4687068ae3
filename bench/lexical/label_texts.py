"""label_texts.py — sets with text in; how well labels are found that had no rows in training, only a text, out.

    python bench/lexical/label_texts.py --data ../shared/data --sets debian-search library-subjects

A tenth of the labels loses all its training rows. Each of them keeps a text: on debian-search the words of its rows
(what a new package's page says), on library-subjects its name. Measured on the test rows, apart for rows whose labels
are all among those and for the others: the model with label texts, its trees only, BM25 over the same documents
(`bw.index_text`), and, for the others, a model that was trained without those labels and texts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import beamwood as bw

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
from support.quality_sets import prepared  # noqa: E402

SHARE = 10
MEASURES = ("precision@1", "precision@5", "recall@10")


def rows_of(folder: Path) -> dict[str, list[tuple[str, list[str]]]]:
    """Texts and label keys of both splits."""
    found: dict[str, list[tuple[str, list[str]]]] = {"trn": [], "tst": []}
    with gzip.open(folder / "raw.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            found[row["split"]].append((row["text"], [str(label) for label in row["labels"]]))
    return found


def names_of(folder: Path, data: Path, name: str, labels: int) -> list[str]:
    """What labels are called, where they have names that are words."""
    if (folder / "labels.txt.gz").exists():
        with gzip.open(folder / "labels.txt.gz", "rt", encoding="utf-8") as lines:
            return [line.rstrip("\n").partition("\t")[0] for line in lines]
    seen: set[str] = set()
    with gzip.open(data / name / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            seen.update(json.loads(line)["labels"])
    assert len(seen) == labels
    return sorted(seen)


def measured(model: Any, rows: list[tuple[str, list[str]]]) -> str:
    """P@1, P@5 and recall@10 of a model on rows."""
    hits = model.search_many([text for text, _ in rows], k=10, threads=2)
    sums = np.zeros(3)
    for (_, labels), found in zip(rows, hits, strict=True):
        right = [hit.key in labels for hit in found]
        sums += [sum(right[:1]), sum(right[:5]) / 5, sum(right) / len(labels)]
    return " / ".join(f"{100 * value / len(rows):.1f}" for value in sums)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data", help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=["debian-search", "library-subjects"])
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    for name in args.sets:
        one_set(name, args)


def one_set(name: str, args: argparse.Namespace) -> None:
    folder = prepared(name, args.data, HERE.parent / "build" / "sets")
    rows = rows_of(folder)
    keys = sorted({label for _, labels in rows["trn"] for label in labels})
    dice = np.random.default_rng(0)
    new = set(dice.permutation(keys)[: len(keys) // SHARE].tolist())
    train = [(text, [k for k in labels if k not in new]) for text, labels in rows["trn"]]
    train = [(text, labels) for text, labels in train if labels]
    words: dict[str, list[str]] = {key: [] for key in keys}
    for text, labels in rows["trn"]:
        for key in labels:
            words[key].append(text)
    names = names_of(folder, args.data, name, len(keys)) if name == "library-subjects" else []
    texts = {key: names[int(key)] if names else " ".join(words[key]) for key in new}
    documents = {key: texts[key] if key in new else " ".join(words[key]) for key in keys}
    only_new = [row for row in rows["tst"] if row[1] and all(key in new for key in row[1])]
    others = [row for row in rows["tst"] if row[1] and not any(key in new for key in row[1])]
    plain, taught = [text for text, _ in train], [given for _, given in train]
    features = bw.TextFeatures(sublinear_tf=True, single_letters=True)
    common = {"text": features, "preset": args.preset, "threads": args.threads, "progress": False}
    models = {
        "with label texts": bw.train_text(plain, taught, label_texts=texts, **common),
        "without those labels": bw.train_text(plain, taught, **common),
        "without those labels, trees only": bw.train_text(plain, taught, lexical=False, **common),
        "BM25 (bw.index_text)": bw.index_text(list(documents.values()), keys=list(documents), text=features),
    }
    print(f"\n{name}: {len(new):,} of {len(keys):,} labels have no row; P@1 / P@5 / recall@10")
    print(f"| | the {len(only_new):,} test rows of these labels | the {len(others):,} others |\n|---|---:|---:|")
    for what, model in models.items():
        print(f"| {what} | {measured(model, only_new)} | {measured(model, others)} |", flush=True)
    print(models["with label texts"].info()["lexical"])


if __name__ == "__main__":
    main()
