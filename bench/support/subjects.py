"""A name in; training data, queries and a model trained by libpecos out, each made once and kept in build/.

Generated subjects come from `generate.py`. Real ones are read from a data folder (`--data`), which holds a
folder a subject with X.trn.npz, Y.trn.npz and X.tst.npz.

    cd bench && python -m support.subjects --data DATA generated-4k winapi-seealso    # train what is missing
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rivals.install import BUILD, running_pecos

from beamwood.bench import generate
from beamwood.interop.pecos import read_layers, write_layers
from beamwood.storage.activations import Activation
from beamwood.storage.layers import Layer

TEST_ROWS = 5_000
GENERATED: dict[str, dict[str, Any]] = {
    "toy": {"labels": 500, "features": 4_000, "rows": 3_000, "nnz_per_row": 60},
    "generated-4k": {"labels": 4_000, "features": 30_000, "rows": 85_000, "nnz_per_row": 200},
    "generated-150k": {"labels": 150_000, "features": 150_000, "rows": 405_000, "nnz_per_row": 93},
}
NNZ_PER_LABEL = {"toy": 60.0, "generated-4k": 323.0, "generated-150k": 120.0}  # as trained; see shape.py
REAL = ("winapi-seealso", "debian-search", "yso-en")
NAMES = (*GENERATED, *REAL)


@dataclass(frozen=True)
class Subject:
    """One data set with one tree shape."""

    name: str
    branching: int
    data: Path  # the folder of its matrices
    weights: str = "trained"  # by libpecos, or "generated"

    @property
    def model_folder(self) -> Path:
        kind = "" if self.weights == "trained" else f"-{self.weights}"
        return BUILD / "bench-models" / f"{self.name}-b{self.branching}{kind}"

    def queries(self, rows: int) -> sp.csr_matrix:
        """The first test rows."""
        X: sp.csr_matrix = sp.csr_matrix(sp.load_npz(self.data / "X.tst.npz"), dtype=np.float32)[:rows]
        X.sort_indices()
        return X

    def layers(self) -> list[Layer]:
        """The weights of the model folder, which must be there."""
        return read_layers(self.model_folder)

    def prepare(self, nice: int = 0) -> None:
        """Makes the model folder unless it is there: generates weights, or has libpecos train on one thread."""
        if self.model_folder.exists():
            return
        self.model_folder.parent.mkdir(parents=True, exist_ok=True)
        if self.weights == "generated":
            draft = self.model_folder.with_suffix(".draft")
            write_layers(generated_layers(self.name, self.branching), draft, Activation.parse("hinge-3"))
            draft.rename(self.model_folder)
            return
        with running_pecos(nice) as pecos:
            seconds = pecos.train(self.data / "X.trn.npz", self.data / "Y.trn.npz", self.model_folder, self.branching)
        print(f"trained {self.model_folder.name} in {seconds:.0f} s", flush=True)


def subject(name: str, branching: int = 32, data: Path | None = None, weights: str = "trained") -> Subject:
    """Finds or makes the data of a subject. Real ones have trained weights only."""
    if name in GENERATED:
        return Subject(name, branching, _generated(name), weights)
    if data is None or not (data / name / "X.trn.npz").exists():
        raise FileNotFoundError(f"subject {name!r}: give its parent folder with --data (looked in {data})")
    return Subject(name, branching, data / name)


def generated_layers(name: str, branching: int) -> list[Layer]:
    """Weights of the size and shape that training on a generated subject gives, without training.

    With two children a parent, trained columns have half as many non-zeros as with eight or 32.
    """
    size, nnz = GENERATED[name], NNZ_PER_LABEL[name] * min(1.0, branching / 4)
    return generate.model_layers(size["labels"], size["features"], branching, nnz_per_label=nnz, seed=0)


def _generated(name: str) -> Path:
    folder = BUILD / "bench-data" / name
    if (folder / "ready").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    made = generate.dataset(**GENERATED[name], seed=0)
    test = min(TEST_ROWS, made.X.shape[0] // 4)
    for matrix, values in (("X", made.X), ("Y", made.Y)):
        sp.save_npz(folder / f"{matrix}.trn.npz", values[:-test], compressed=False)
        sp.save_npz(folder / f"{matrix}.tst.npz", values[-test:], compressed=False)
    (folder / "ready").touch()
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME[:BRANCHING]", help=f"of {', '.join(NAMES)}; 32 by default")
    parser.add_argument("--data", type=Path, help="folder of the real subjects")
    parser.add_argument("--nice", type=int, default=0)
    given = parser.parse_args()
    os.nice(given.nice)
    for words in given.names:
        name, _, branching = words.partition(":")
        subject(name, int(branching or 32), given.data).prepare(given.nice)


if __name__ == "__main__":
    main()
