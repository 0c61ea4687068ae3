"""Plain numpy beside the native trainer: brute-force optima, tree shapes and scores to test training with."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

import beamwood as bw
from beamwood.storage.layers import Layer

# Settings of a training that takes milliseconds.
SMALL: dict[str, Any] = {"preset": "fast", "branching": 4, "max_leaf": 4, "progress": False}


def random_problem(rows: int, features: int, labels: int, seed: int, density: float = 0.3) -> tuple[Any, Any]:
    """Rows whose labels can be guessed from their features, at least one label a row and one row a label."""
    rng = np.random.default_rng(seed)
    X: Any = sp.random(rows, features, density=density, random_state=rng, dtype=np.float32, format="csr")
    scores = X @ rng.standard_normal((features, labels)) + 0.2 * rng.standard_normal((rows, labels))
    Y = scores > np.quantile(scores, 0.9)
    Y[np.arange(rows), scores.argmax(axis=1)] = True
    Y[scores.argmax(axis=0), np.arange(labels)] = True
    return X, sp.csr_matrix(Y.astype(np.float32))


def even_tree(labels: int, branching: int) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """A tree over labels in their order: nodes of each layer share out the nodes below evenly."""
    sizes = [labels]
    while sizes[-1] > branching:
        sizes.append(-(-sizes[-1] // branching))
    shape: list[tuple[np.ndarray, np.ndarray | None]] = []
    for size, above in zip(sizes, [*sizes[1:], 1], strict=True):
        shape.append((np.arange(size) * above // size, None))
    return shape[::-1]


LOSS = {
    "squared-hinge": lambda margin: np.maximum(0, 1 - margin) ** 2,
    "hinge": lambda margin: np.maximum(0, 1 - margin),
    "logistic": lambda margin: np.logaddexp(0, -margin),
}


def objective(w: np.ndarray, X: np.ndarray, y: np.ndarray, C: np.ndarray, loss: str) -> float:
    return float(0.5 * w @ w + C @ LOSS[loss](y * (X @ w)))


def best_objective(X: np.ndarray, y: np.ndarray, C: np.ndarray, loss: str) -> float:
    """The optimum by brute force; the hinge, which has corners, through its dual."""
    if loss == "hinge":
        Q = (X * y[:, None]) @ (X * y[:, None]).T
        bounds = [(0, c) for c in C]
        found = minimize(
            lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1),
            np.zeros(len(y)),
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": 20000, "maxfun": 200000, "ftol": 1e-15, "gtol": 1e-9},
        )
        return float(-found.fun)

    def value_and_slope(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = y * (X @ w)
        slope = -2 * np.maximum(0, 1 - margin) if loss == "squared-hinge" else -1 / (1 + np.exp(margin))
        return objective(w, X, y, C, loss), w + X.T @ (C * y * slope)

    start = np.zeros(X.shape[1])
    options = {"maxiter": 20000, "maxfun": 200000, "ftol": 1e-15, "gtol": 1e-9}
    return float(minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options).fun)


def scores(layers: list[Layer], X: Any, activation: str = "hinge-3") -> np.ndarray:
    """The score of every node of the last layer, by matrix products: no beam."""
    above = np.ones((X.shape[0], 1), dtype=np.float32)
    for layer in layers:
        z = (X @ layer.weights).toarray() + layer.bias
        if activation == "sigmoid":
            own = 1 / (1 + np.exp(-z))
        else:
            own = np.exp(-(np.maximum(0, 1 - z) ** int(activation.rpartition("-")[2])))
        above = above[:, layer.parent] * own
    return above


def precision_at_1(model: bw.Model, X: Any, Y: Any) -> float:
    """The share of rows whose best label is one of theirs."""
    found, _ = model.topk(X, k=1)
    return float(np.asarray(Y[np.arange(X.shape[0]), found[:, 0]]).mean())
