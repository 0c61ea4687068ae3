"""tune.py — real sets in, what `bw.tune` gains over the default on test rows out.

    python bench/life/tune.py --data ../shared/data --sets winapi-seealso library-subjects [--budget 10m]

The search sees training rows only. Quality is P@1, P@5 and recall@10 of the test rows in percent, of the default
(preset balanced, words weighed by TF-IDF) and of what was chosen. Sets with raw text are used as text.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import beamwood as bw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.quality_sets import matrices

SPLITS = ("trn", "tst")


def rows_of(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Texts and label keys of both splits; matrices of a set without texts."""
    if (folder / "X.trn.npz").exists() and not (folder / "raw.jsonl.gz").exists():
        return {split: matrices(folder, split) for split in SPLITS}
    found: dict[str, tuple[list[str], list[list[str]]]] = {split: ([], []) for split in SPLITS}
    own = {"trn": folder / "train.jsonl.gz", "tst": folder / "test.jsonl.gz"}
    files = own if own["trn"].exists() else dict.fromkeys(("both",), folder / "raw.jsonl.gz")
    for name, path in files.items():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                texts, labels = found[row["split"] if name == "both" else name]
                texts.append(row["text"])
                labels.append([str(label) for label in row["labels"]])
    return found


def quality(model: bw.Model, rows: tuple[Any, Any]) -> list[float]:
    """P@1, P@5 and recall@10 in percent."""
    found = model.evaluate(*rows, at=(1, 5, 10))
    return [100 * found.precision[1], 100 * found.precision[5], 100 * found.recall[10]]


def main() -> None:
    """Prints a line per set, and what was chosen."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--sets", nargs="+", default=["winapi-seealso", "library-subjects", "debian-search", "yso-en"])
    options.add_argument("--budget", default="10m")
    given = options.parse_args()
    for name in given.sets:
        rows = rows_of(given.data / name)
        print(f"{name}: {np.shape(rows['trn'][0])[0]:,} rows, load {os.getloadavg()[0]:.1f}", flush=True)
        begun = time.perf_counter()
        found = bw.tune(*rows["trn"], given.budget)
        took = time.perf_counter() - begun
        assert found.model is not None
        print(f"{found}\n{found.to_dict()['training']}, {took:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
        after = quality(found.model, rows["tst"])
        before = after
        if found.changed != "as given":
            train: Any = bw.train_text if isinstance(rows["trn"][0], list) else bw.train
            before = quality(train(*rows["trn"], progress=False), rows["tst"])
        shown = " | ".join(f"{a:.2f} → {b:.2f}" for a, b in zip(before, after, strict=True))
        print(f"| {name} | {shown} | {np.mean(after) - np.mean(before):+.2f} |", flush=True)


if __name__ == "__main__":
    main()
