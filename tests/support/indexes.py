"""indexes.py — a seed in, an index's vectors and queries out: negative values, ties, empty rows, long lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood import reference
from beamwood.inputs.matrices import as_csr

LABELS = (1, 3, 60, 1_000, 5_000, 66_500, 140_000)
SHARES = (0.06, 0.1, 0.34, 0.3, 0.16, 0.02, 0.02)


@dataclass(frozen=True)
class IndexCase:
    """Vectors, queries and what is asked of them."""

    W: Any
    bias: Any
    X: Any
    k: int
    allowed: Any
    matched_only: bool

    def model(self, weights: str = "f32") -> bw.Model:
        return bw.index(self.W, self.bias, weights=weights, matched_only=self.matched_only)

    def expected(self, W: Any = None) -> tuple[Any, Any]:
        with np.errstate(all="ignore"):
            W = self.W if W is None else W
            return reference.index_topk(W, self.bias, self.X, self.k, self.allowed, self.matched_only)


def index_case(seed: int) -> IndexCase:
    """The same case for the same seed."""
    rng = np.random.default_rng(seed)
    labels, features = int(rng.choice(LABELS, p=SHARES)), int(rng.choice((1, 5, 40, 300)))
    W = _matrix(rng, labels, features, float(rng.choice((0.001, 0.02, 0.2, 0.7))))
    X = _matrix(rng, 3, features, float(rng.choice((0.05, 0.3, 1.0))))
    bias = rng.standard_normal(labels).astype(np.float32) if rng.random() < 0.2 else None
    allowed = rng.random(labels) < rng.choice((0.01, 0.5, 0.95)) if rng.random() < 0.3 else None
    k = int(rng.choice((1, 3, 10, 49, 100, 2_000)))
    return IndexCase(W, bias, X, k, allowed, bool(rng.random() < 0.3))


def _matrix(rng: np.random.Generator, rows: int, columns: int, density: float) -> Any:
    """Some with a few values, so that sums tie; some with negative ones; some whose columns differ much in density."""
    made: Any = sp.random_array((rows, columns), density=density, format="csr", rng=rng, dtype=np.float32)
    kind = rng.random()
    if kind < 0.3:
        made.data = np.ceil(made.data * 3).astype(np.float32)
    elif kind < 0.5:
        made.data -= np.float32(0.5)
    elif kind < 0.6:
        made.data *= np.float32(10.0) ** rng.integers(-44, 38, len(made.data)).astype(np.float32)
    if rng.random() < 0.5:
        keep = rng.random(columns)[made.indices] ** 3 > rng.random(len(made.indices))
        made.data[~keep] = 0
    return as_csr(made, None, "made", zeros=False)
