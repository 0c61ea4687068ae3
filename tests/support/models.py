"""Small models that many tests start from."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw


def sparse(rows: int, columns: int, density: float, seed: int) -> Any:
    """A random float32 CSR matrix."""
    rng = np.random.default_rng(seed)
    return sp.random_array(
        (rows, columns),
        density=density,
        rng=rng,
        dtype=np.float32,
        format="csr",
        data_sampler=rng.standard_normal,
    )


def two_layers(features: int = 50, inner: int = 6, labels: int = 40, seed: int = 0) -> list[bw.Layer]:
    """A balanced tree of two layers with biases, the second in disorder."""
    rng = np.random.default_rng(seed)
    parent = rng.permutation(np.arange(labels) % inner)
    return [
        bw.Layer(sparse(features, inner, 0.4, seed + 1), np.zeros(inner, np.int64), bias=rng.standard_normal(inner)),
        bw.Layer(sparse(features, labels, 0.2, seed + 2), parent),
    ]


def small_model(**form: Any) -> bw.Model:
    """A model of 40 labels and 50 features."""
    return bw.Model.from_layers(two_layers(), **form)


def small_queries(rows: int = 7, features: int = 50) -> Any:
    """Queries for it."""
    return sparse(rows, features, 0.3, 99)


def large_model(seed: int = 0) -> bw.Model:
    """One that takes time: 16,384 labels, 20,000 features."""
    rng = np.random.default_rng(seed)
    layers = []
    above = 1
    for nodes, a_node in ((128, 2000), (16384, 100)):
        count = nodes * a_node
        cells = (rng.integers(0, 20000, count), np.repeat(np.arange(nodes), a_node))
        weights = sp.coo_array((rng.standard_normal(count).astype(np.float32), cells), shape=(20000, nodes))
        layers.append(bw.Layer(weights.tocsc(), np.arange(nodes) * above // nodes))
        above = nodes
    return bw.Model.from_layers(layers, activation="hinge-3")


def large_queries(rows: int, seed: int = 1) -> Any:
    """Queries for it, 200 features each."""
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.integers(0, 20000 - 200, (rows, 200)), axis=1) + np.arange(200)
    values = rng.standard_normal(rows * 200).astype(np.float32)
    return sp.csr_array((values, ids.ravel(), np.arange(rows + 1) * 200), shape=(rows, 20000))
