"""quality_sets.py — the name of a set in, a folder with X and Y of both splits and its raw text out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SETS = ("debian-search", "yso-en", "winapi-seealso", "library-subjects")
SPLITS = {"trn": "train.jsonl.gz", "tst": "test.jsonl.gz"}


def prepared(name: str, data: Path, cache: Path) -> Path:
    """Return the folder of a set; a set of raw text gets its TF-IDF matrices made once, under `cache`."""
    folder = data / name
    if not folder.is_dir():
        raise SystemExit(f"{folder} is missing; point --data at the folder that holds the sets")
    if (folder / "X.trn.npz").exists():
        return folder
    made = cache / name
    if not (made / "X.trn.npz").exists():
        _vectorize(folder, made, data / "yso-en" / "meta.json")
    return made


def matrices(folder: Path, split: str) -> tuple[Any, Any]:
    """Return X and Y of one split as float32 CSR."""
    return tuple(sp.csr_matrix(sp.load_npz(folder / f"{m}.{split}.npz"), dtype=np.float32) for m in "XY")  # type: ignore[return-value]


def _vectorize(folder: Path, made: Path, recipe: Path) -> None:
    """Make word TF-IDF as yso-en's meta.json says, and number the labels in order of their names."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    how = json.loads(recipe.read_text())["features"]
    rows = {split: list(_lines(folder / file)) for split, file in SPLITS.items()}
    names = sorted({label for row in rows["trn"] for label in row["labels"]})
    number = {name: i for i, name in enumerate(names)}
    tfidf = TfidfVectorizer(
        analyzer=how["analyzer"],
        ngram_range=tuple(how["ngram"]),
        token_pattern=how["token_pattern"],
        lowercase=how["lowercase"],
        sublinear_tf=how["sublinear_tf"],
        smooth_idf=how["smooth_idf"],
        norm=how["norm"],
        min_df=how["min_df"],
        dtype=np.float32,
    ).fit(row["text"] for row in rows["trn"])
    made.mkdir(parents=True, exist_ok=True)
    with gzip.open(made / "raw.jsonl.gz", "wt", encoding="utf-8") as raw:
        for split, lines in rows.items():
            ids = [sorted({number[x] for x in row["labels"] if x in number}) for row in lines]
            for row, labels in zip(lines, ids, strict=True):
                raw.write(json.dumps({"split": split, "text": row["text"], "labels": labels}) + "\n")
            offset = np.cumsum([0] + [len(labels) for labels in ids])
            column = np.concatenate([np.asarray(labels, dtype=np.int32) for labels in ids])
            Y = sp.csr_matrix((np.ones(len(column), dtype=np.float32), column, offset), shape=(len(ids), len(names)))
            sp.save_npz(made / f"Y.{split}.npz", Y)
            X = tfidf.transform(row["text"] for row in lines)
            X.sort_indices()
            sp.save_npz(made / f"X.{split}.npz", X)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
