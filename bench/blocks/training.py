"""training.py — texts with labels in; training on dense vectors beside libpecos: seconds, memory and precision@1 out.

    python bench/blocks/training.py --data ../shared/data/yso-en --rows 30000

Vectors: wordllama, 256 numbers per text (pip install wordllama). DIR has raw.jsonl.gz (split, text) and Y.trn.npz,
Y.tst.npz. One thread, the settings of the paper's models, each training in a process of its own (train_speed.py); in
turns.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from blocks.mixed import wordllama_vectors
from train_speed import run

from beamwood.bench.timing import print_header, print_table

ASKED = 5000


def write_vectors(data: Path, rows: int, folder: Path) -> None:
    """Some rows of a data set as train_worker.py reads them."""
    texts: dict[str, list[str]] = {}
    with gzip.open(data / "raw.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            texts.setdefault(row["split"], []).append(row["text"])
    for split, count in (("trn", rows), ("tst", ASKED)):
        Y = sp.csr_matrix(sp.load_npz(data / f"Y.{split}.npz"))
        at = np.sort(np.random.default_rng(0).permutation(Y.shape[0])[:count])
        vectors = sp.csr_matrix(wordllama_vectors([texts[split][i] for i in at]))
        sp.save_npz(folder / f"X.{split}.npz", vectors, compressed=False)
        sp.save_npz(folder / f"Y.{split}.npz", Y[at])


def main() -> None:
    """Prints a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--rows", type=int, default=30_000)
    options.add_argument("--rounds", type=int, default=2)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as made:
        write_vectors(asked.data, asked.rows, Path(made))
        done = [(name, run(name, Path(made), 1)) for _ in range(asked.rounds) for name in ("beamwood", "libpecos")]
    print_header("Training on dense vectors", {"rows": asked.rows, "set": asked.data.name})
    measured = ("cpu", "wall", "peak", "p1")
    print_table(
        ["", "CPU s", "s", "peak MB", "P@1"],
        [[name, *(float(found[each]) for each in measured)] for name, found in done],
    )


if __name__ == "__main__":
    main()
