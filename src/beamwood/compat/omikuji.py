"""omikuji.py — the calls of omikuji's module that Annif makes in, beamwood's answers out: train, load, save, predict.

    import sys
    import beamwood.compat.omikuji
    sys.modules["omikuji"] = beamwood.compat.omikuji

Models that omikuji itself saved load too. Training is beamwood's own: the same kind of trees and the same losses from
the same numbers, not the same weights. A model is saved as a folder, as omikuji does, with one model file in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.errors import BeamwoodError
from beamwood.inputs.data import read_xmc
from beamwood.interop import omikuji

__version__ = "0.5.2"  # the release of omikuji whose calls these are
__all__ = ["LossType", "Model"]

_FILE = "model.bw"


class LossType(Enum):
    """What classifiers minimise."""

    HINGE = 0
    LOG = 1


@dataclass
class HyperParam:
    """How a model is trained; names and defaults are omikuji's."""

    n_trees: int = 3
    min_branch_size: int = 100
    max_depth: int = 20
    centroid_threshold: float = 0.0
    collapse_every_n_layers: int = 0
    linear_eps: float = 0.1
    linear_c: float = 1.0
    linear_weight_threshold: float = 0.1
    linear_max_iter: int = 20
    linear_loss_type: int = LossType.HINGE.value
    cluster_k: int = 2
    cluster_balanced: bool = True
    cluster_eps: float = 0.0001
    cluster_min_size: int = 2
    tree_structure_only: bool = False
    train_trees_1_by_1: bool = False

    def settings(self) -> dict[str, Any]:
        """The same as settings of ours. Layers that are collapsed into one have so many more children."""
        loss = self.linear_loss_type.value if isinstance(self.linear_loss_type, LossType) else self.linear_loss_type
        balanced = {"tree": "balanced"}
        uneven = {"tree": "unbalanced", "max_depth": int(self.max_depth)}
        return {
            "preset": "fast",
            "trees": int(self.n_trees),
            "branching": max(2, int(self.cluster_k) ** (int(self.collapse_every_n_layers) + 1)),
            "max_leaf": int(self.min_branch_size),
            "loss": "logistic" if loss == LossType.LOG.value else "squared-hinge",
            "activation": "sigmoid" if loss == LossType.LOG.value else "hinge-2",
            "C": float(self.linear_c),
            "eps": float(self.linear_eps),
            "max_iter": int(self.linear_max_iter),
            "prune": float(self.linear_weight_threshold),
            **(balanced if self.cluster_balanced else uneven),
        }


class Model:
    """A model; made by load or train_on_data."""

    def __init__(self, model: bw.Model) -> None:
        self._model = model

    @classmethod
    def default_hyper_param(cls) -> HyperParam:
        """How a model is trained unless told otherwise."""
        return HyperParam()

    @classmethod
    def train_on_data(
        cls, data_path: str, hyper_param: HyperParam | None = None, n_threads: int | None = None
    ) -> Model:
        """Trains on a file in the format of the extreme classification repository."""
        how = hyper_param or HyperParam()
        settings = how.settings()
        told = ", ".join(f"{field.name}: {getattr(how, field.name)}" for field in fields(how))
        print(f"Training model with hyper-parameters HyperParam {{ {told} }}", flush=True)  # a line of omikuji's log
        try:
            rows = read_xmc(data_path)
            X = _of_length_one(rows.X)
            model = bw.train(X, rows.Y, progress=False, threads=n_threads or None, **settings)
            return cls(model.with_unit_rows())
        except BeamwoodError as error:
            raise RuntimeError(f"Failed to train on {data_path}: {error}") from error

    @classmethod
    def load(cls, path: str) -> Model:
        """Loads what save wrote, or what omikuji itself saved."""
        folder = Path(path)
        try:
            return cls(bw.load(folder / _FILE) if (folder / _FILE).exists() else omikuji.read(folder).model)
        except BeamwoodError as error:
            raise RuntimeError(f"Failed to load model from {path}: {error}") from error

    def save(self, path: str) -> None:
        """Saves to a folder, which is made unless it is there."""
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
            self._model.save(Path(path) / _FILE)
        except (BeamwoodError, OSError) as error:
            raise RuntimeError(f"Failed to save model to {path}: {error}") from error

    def predict(
        self, feature_value_pairs: Iterable[tuple[int, float]], beam_size: int = 10, top_k: int = 10
    ) -> list[tuple[int, float]]:
        """The best labels with their scores. Labels that no training row had are never among them."""
        pairs = sorted(feature_value_pairs)
        ids = np.array([feature for feature, _ in pairs], np.int64)
        values = np.array([value for _, value in pairs], np.float32)
        row = sp.csr_array((values, ids, [0, len(ids)]), shape=(1, self._model.n_features))
        labels, scores = self._model.topk(row, top_k, beam_size)
        both = zip(labels[0].tolist(), scores[0].tolist(), strict=True)
        return [(label, score) for label, score in both if label >= 0 and score > 0]

    @property
    def n_features(self) -> int:
        """How many features a query may have."""
        return self._model.n_features

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return int(self._model.info()["trees"])

    def init_prediction_thread_pool(self, n_threads: int) -> None:
        """Nothing to do: a query is answered by the thread that asks."""

    def densify_weights(self, max_sparse_density: float = 0.1, n_threads: int | None = None) -> None:
        """Nothing to do: weights are laid out for speed already."""


def _of_length_one(X: Any) -> Any:
    """Rows divided by their length, as queries will be."""
    norms = np.sqrt(np.add.reduceat(np.append(X.data.astype(np.float64) ** 2, 0), X.indptr[:-1]))
    norms[np.diff(X.indptr) == 0] = 1
    scale = np.repeat(np.where(norms > 0, norms, 1), np.diff(X.indptr))
    return sp.csr_array(((X.data / scale).astype(np.float32), X.indices, X.indptr), shape=X.shape)
