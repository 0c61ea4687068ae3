"""material.py — rows or texts with their labels, as people have them, in; parts of them to train on and measure out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import as_rows, as_texts
from beamwood.inputs.label_matrix import label_matrix
from beamwood.inputs.label_table import as_label_keys
from beamwood.inputs.matrices import as_csr
from beamwood.life.truth import relevant, rows_and_all_truth
from beamwood.model import Model
from beamwood.training.train import train, train_text

Numbers = npt.NDArray[np.int64]
MEASURES = ("precision@1", "precision@5", "recall@10")
_DEPTH = 10
_OF_ALL_ROWS = ("row_weights", "negatives_matrix", "checkpoint", "max_memory")  # what parts of the rows cannot share


@dataclass(frozen=True, eq=False)
class Material:
    """Rows and their labels: texts with label keys, or matrices."""

    X: Any
    Y: Any
    is_text: bool

    @classmethod
    def of(cls, X: Any, Y: Any) -> Material:
        """Checked as `train` and `train_text` check theirs."""
        X, Y = as_rows(X), as_rows(Y)
        if isinstance(X, (list, tuple)) and X and isinstance(X[0], str):
            texts, keys = as_texts(X), as_label_keys(Y)
            if len(texts) != len(keys):
                raise DataError(f"there are {len(texts):,} texts and {len(keys):,} lists of labels; expected as many.")
            return cls(texts, keys, True)
        rows, truth = as_csr(X, None, "X"), label_matrix(Y, "Y")
        if rows.shape[0] != truth.shape[0]:
            raise DataError(f"Y has {truth.shape[0]:,} rows and X {rows.shape[0]:,}; expected as many of each.")
        return cls(rows, truth, False)

    @property
    def rows(self) -> int:
        return len(self.X) if self.is_text else int(self.X.shape[0])

    def at(self, numbers: Numbers) -> Material:
        """Some of the rows."""
        if not self.is_text:
            return Material(self.X[numbers], self.Y[numbers], False)
        return Material([self.X[i] for i in numbers.tolist()], [self.Y[i] for i in numbers.tolist()], True)

    def trained(self, *, progress: Any = False, **how: Any) -> Model:
        """The model of all these rows."""
        if self.is_text:
            return train_text(self.X, self.Y, progress=progress, **how)
        return train(self.X, self.Y, progress=progress, **how)


def check_training(how: dict[str, Any], is_text: bool) -> None:
    """Refuses arguments of a training that do not go with parts of its rows."""
    for name in _OF_ALL_ROWS:
        if how.get(name) is not None:
            raise SettingsError(f"{name} is given; expected none where parts of the rows are trained on. Leave it out.")
    if not is_text and how.get("text") is not None:
        raise SettingsError("text is given with matrices; expected rows of text. Leave it out.")


def quality(model: Model, rows: Material, beam: int | None, threads: int) -> npt.NDArray[np.float64]:
    """rows x 3: P@1, P@5 and recall@10 of each row in percent, as `evaluate` measures them."""
    X, truth = rows_and_all_truth(model, rows.X, rows.Y)
    labels, _ = model.topk(X, k=min(_DEPTH, model.n_labels), beam=beam, threads=threads)
    labels[np.diff(X.indptr) == 0] = -1
    right = relevant(labels, truth)
    true = np.maximum(1, np.diff(truth.indptr))
    return 100.0 * np.stack([right[:, 0], right[:, :5].sum(axis=1) / 5, right.sum(axis=1) / true], axis=1)
