"""sets.py — the name of a data set in, its matrices out: the user's own, or a generated stand-in of the paper's set.

The public sets may not be passed on, so each has a stand-in of the same shape: features, labels and rows as in the
paper's table of sizes; non-zeros and labels per row about as their public versions have. `scale` multiplies rows and
labels, its square root the features, so that a small machine can hold them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from beamwood.bench import generate
from beamwood.errors import DataError
from beamwood.inputs.data import read_matrix, read_xmc


@dataclass(frozen=True)
class Size:
    """The shape of a set: features, labels, rows to train and to test, non-zeros and labels per row."""

    features: int
    labels: int
    train: int
    test: int
    nonzeros: float
    labels_per_row: float

    def scaled(self, scale: float) -> Size:
        features = max(int(self.features * scale**0.5), int(8 * self.nonzeros))
        train, test = (max(200, int(rows * scale)) for rows in (self.train, self.test))
        return Size(features, max(64, int(self.labels * scale)), train, test, self.nonzeros, self.labels_per_row)


STAND_INS = {
    "eurlex-4k": Size(5_000, 3_956, 15_449, 3_865, 237, 5.3),
    "amazoncat-13k": Size(203_882, 13_330, 1_186_239, 306_782, 71, 5.0),
    "wiki10-31k": Size(101_938, 30_938, 14_146, 6_616, 673, 18.6),
    "wiki-500k": Size(2_381_304, 501_070, 1_779_881, 783_743, 385, 4.8),
    "amazon-670k": Size(135_909, 670_091, 490_449, 153_025, 76, 5.5),
    "amazon-3m": Size(337_067, 2_812_281, 1_717_899, 742_507, 50, 36.0),
}


@dataclass(frozen=True)
class Data:
    """One set: X and Y for training, X and Y for testing, and where it comes from."""

    name: str
    origin: str
    X: sp.csr_matrix
    Y: sp.csr_matrix
    X_test: sp.csr_matrix
    Y_test: sp.csr_matrix

    def describe(self) -> dict[str, Any]:
        return {
            "origin": self.origin,
            "features": self.X.shape[1],
            "labels": self.Y.shape[1],
            "train_rows": self.X.shape[0],
            "test_rows": self.X_test.shape[0],
            "nonzeros_per_row": round(self.X_test.nnz / max(1, self.X_test.shape[0]), 1),
            "labels_per_row": round(self.Y.nnz / max(1, self.Y.shape[0]), 2),
        }


def load_set(name: str, *, folder: Path | None, scale: float, queries: int, seed: int) -> Data:
    """The user's own set if `folder` holds one of this name, else a stand-in."""
    own = None if folder is None else folder / name
    if own is not None and (own / "X.trn.npz").exists():
        matrices = [read_matrix(own / f"{part}.npz") for part in ("X.trn", "Y.trn", "X.tst", "Y.tst")]
        return Data(name, "npz files", *map(sp.csr_matrix, matrices))
    if own is not None and (own / "train.txt").exists():
        train, test = read_xmc(own / "train.txt"), read_xmc(own / "test.txt")
        return Data(name, "XMC text", *map(sp.csr_matrix, (train.X, train.Y, test.X, test.Y)))
    if name not in STAND_INS:
        looked = "no --data folder was given" if folder is None else f"{folder / name} has no X.trn.npz or train.txt"
        raise DataError(f"Set {name!r} is unknown: {looked}, and the stand-ins are {', '.join(STAND_INS)}.")
    return _stand_in(name, scale, queries, seed)


def _stand_in(name: str, scale: float, queries: int, seed: int) -> Data:
    size = STAND_INS[name].scaled(scale)
    test = min(size.test, max(queries, 200))
    made = generate.dataset(
        size.labels, size.features, size.train + test, size.nonzeros, seed, labels_per_row=size.labels_per_row
    )
    X, Y = made.X, made.Y
    return Data(name, f"stand-in, scale {scale:g}", X[:-test], Y[:-test], X[-test:], Y[-test:])
