"""Real data sets in; precision, bytes and latency of models with 32-, 16- and 8-bit weights out.

    python bench/compact.py [--data ../shared/data] [SET …]

Trains each set (folders with X.trn.npz, Y.trn.npz, X.tst.npz, Y.tst.npz) with preset "fast", compresses the model and
measures all three on the test rows. Also printed: what a scale for each column or each row would do to u8, for the one
scale a chunk was chosen because the others bring nothing.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import beamwood as bw
from beamwood.bench.timing import in_turns, print_header, print_table, save_json
from beamwood.inputs.data import read_matrix

SETS = ("winapi-seealso", "debian-search", "yso-en")
QUERIES = 1000
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--models", type=Path, help="a folder to keep the trained models in, and to find them in")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    print_header("Compact weights", {"preset": "fast", "beam": 10, "k": 10, "queries timed": QUERIES})
    found = {name: measured(args.data / name, args.models) for name in args.sets}
    heads = (
        "set, weights",
        "P@1",
        "P@3",
        "P@5",
        "P@1 lost",
        "MB of weights",
        "bytes a weight",
        "µs per query",
        "in a batch",
    )
    print_table(heads, [row for name, rows in found.items() for row in table(name, rows)])
    print("P@1 with u8 weights and another scale:\n")
    others = ("column", "row")
    print_table(
        ("set", "chunk", *others),
        [(name, *(f"{rows[f'u8, {one}']:.2f}" for one in ("chunk", *others))) for name, rows in found.items()],
    )
    save_json(args.json, found)


def measured(folder: Path, models: Path | None) -> dict[str, Any]:
    """Everything about one set."""
    X: Any
    X, Y = (sp.load_npz(folder / f"{part}.tst.npz") for part in "XY")
    model = trained(folder, models)
    kinds = {"f32": model, "f16": model.compress("f16"), "u8": model.compress("u8")}
    with tempfile.TemporaryDirectory() as scratch:
        for kind, one in kinds.items():  # timed as they are served: mapped from a file
            one.save(Path(scratch) / f"{kind}.bw")
            kinds[kind] = bw.load(Path(scratch) / f"{kind}.bw")
        times = timed(kinds, X[: min(QUERIES, X.shape[0])])
        rows = {kind: {**described(one, X, Y), **times[kind]} for kind, one in kinds.items()}
    for scale in ("chunk", "column", "row"):
        rows[f"u8, {scale}"] = described(rescaled(model, scale), X, Y)["precision"][1]
    return rows


def trained(folder: Path, models: Path | None) -> bw.Model:
    """The model of a set, from its file if there is one."""
    path = None if models is None else models / f"{folder.name}.bw"
    if path is not None and path.exists():
        return bw.load(path)
    X, Y = (read_matrix(folder / f"{part}.trn.npz") for part in "XY")
    model = bw.train(X, Y, preset="fast", seed=0, progress=False)
    if path is not None:
        model.save(path)
    return model


def described(model: bw.Model, X: Any, Y: Any) -> dict[str, Any]:
    found = bw.evaluate(model.topk(X, 10, 10, threads=2), Y, at=(1, 3, 5))
    info = model.info()
    return {
        "precision": {rank: 100 * value for rank, value in found.precision.items()},
        "bytes": info["bytes_of_weights"],
        "bytes_a_weight": info["bytes_per_nonzero"],
    }


def timed(kinds: dict[str, bw.Model], X: Any) -> dict[str, dict[str, float]]:
    """Microseconds per query inside the core, in turns: one by one, and all in one call."""
    rows = [X[i] for i in range(X.shape[0])]
    runs = {}
    for kind, model in kinds.items():
        runs[kind, "online"] = lambda m=model: [m.topk(row, stats=True)[2].nanoseconds / 1e3 for row in rows]
        runs[kind, "batch"] = lambda m=model: m.topk(X, stats=True)[2].nanoseconds / 1e3 / len(rows)
    times = in_turns(runs, ROUNDS)  # type: ignore[arg-type]
    return {kind: {what: times[kind, what].median for what in ("online", "batch")} for kind in kinds}  # type: ignore[index]


def rescaled(model: bw.Model, scale: str) -> bw.Model:
    """The model with the weights that u8 would have with a scale for each chunk, column or row of a chunk."""
    layers = []
    for layer in model.layers():
        columns = sp.csc_array(layer.weights)
        node = np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))
        chunk = np.asarray(layer.parent)[node].astype(np.int64)
        group = {"chunk": chunk, "column": node, "row": chunk * columns.shape[0] + columns.indices}[scale]
        columns.data = in_steps(columns.data, np.unique(group, return_inverse=True)[1])
        layers.append(bw.Layer(columns, layer.parent, layer.bias, layer.label))
    info = model.info()
    return bw.Model.from_layers(layers, activation=info["activation"], path=info["path"])


def in_steps(weight: npt.NDArray[np.float32], group: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Weights rounded to multiples of a 127th of the largest of their group."""
    largest = np.zeros(group.max() + 1, np.float32)
    np.maximum.at(largest, group, np.abs(weight))
    step = np.maximum(largest / np.float32(127), np.float32(1e-45))[group]
    return np.clip(np.rint(weight / step), -127, 127).astype(np.float32) * step


def table(name: str, rows: dict[str, Any]) -> list[list[str]]:
    return [
        [
            f"{name}, {kind}",
            *(f"{rows[kind]['precision'][rank]:.2f}" for rank in (1, 3, 5)),
            f"{rows['f32']['precision'][1] - rows[kind]['precision'][1]:+.2f}",
            f"{rows[kind]['bytes'] / 1e6:.1f}",
            f"{rows[kind]['bytes_a_weight']:.2f}",
            f"{rows[kind]['online']:.1f}",
            f"{rows[kind]['batch']:.1f}",
        ]
        for kind in ("f32", "f16", "u8")
    ]


if __name__ == "__main__":
    main()
