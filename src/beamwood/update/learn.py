"""learn.py — new labels in their hosts and rows in, the weights of the new leaves out; old ones are not touched.

A new label learns from the rows that were given: those that have it, against those that have another label of its
host or whose beam holds the host. Rows of the old training are not there any more. Where fewer others come by
than the host has labels, each old sibling's own largest weights stand in for a row of it, and a row without
features for everything else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import SettingsError
from beamwood.inputs.matrices import empty_rows
from beamwood.storage.shape import ModelShape
from beamwood.training.problem import Problem
from beamwood.training.settings import Settings, settings_for
from beamwood.training.weights import Columns, auto_cost, layer_problem, learn_here
from beamwood.update.hosts import Hosts
from beamwood.update.stored import StoredTree

Ints = npt.NDArray[np.int64]

BEAM = 2  # hosts in whose beam a row counts as one that is not of their new labels: more take longer, to no gain
PASSES = 10  # of the solver over a label's rows, at most
# Taken off the bias of new labels beside clusters, whose path is shorter by a node than that of others: DOUBT, and of a
# label of n rows FEW / sqrt(n) more, for few rows show little of what it is not. On held-out rows, 0 lets new labels
# push out others (they lose up to 1.4 points of recall@10), 0.3 for all is less than training finds.
DOUBT, FEW = 0.16, 0.3
WORDS = 32  # of a sibling's weights that stand in for a row of it


def settings_of(shape: ModelShape, rows_of_label: Any, problem: Problem) -> Settings:
    """What a model was trained with, or, of one that was made elsewhere, what is usual for its activation."""
    try:
        settings = Settings.from_dict({**shape.settings, "tree": "balanced"})
    except (SettingsError, TypeError):
        settings = settings_for("fast")
    if not shape.settings:
        settings = replace(settings, loss="logistic" if "sigmoid" in shape.activation.name else "squared-hinge")
    settings = replace(settings, max_iter=min(settings.max_iter, PASSES))
    if settings.C != "auto":
        return settings
    known = rows_of_label is not None and rows_of_label.any()
    mean = float(rows_of_label.sum() / np.count_nonzero(rows_of_label)) if known else problem.rows_per_label
    return replace(settings, C=auto_cost(mean))


def new_leaves(
    problem: Problem,
    known: Any,
    tree: StoredTree,
    hosts: Hosts,
    home: Ints,
    found: Ints,
    settings: Settings,
    seed: int,
    threads: int,
) -> tuple[Any, npt.NDArray[np.float32]]:
    """Weights (features x new labels) and biases.

    problem: rows and their new labels; known: rows x labels of the model, those that the rows have; found: the
    hosts in each row's beam.
    """
    used = np.unique(home)
    number = np.full(len(hosts) + 1, -1, np.int64)  # one more, for -1: no host
    number[used] = np.arange(len(used))
    both = sp.csr_matrix(sp.hstack([known, problem.Y], format="csr"))
    reaching = Columns.below(both, number[np.concatenate([hosts.of_label, home])], len(used))
    reaching = reaching | Columns.of_matches(number[found[:, :BEAM]], len(used))
    positives = Columns.below(problem.Y, np.arange(len(home)), len(home))
    others = np.diff(reaching.start)[number[home]] - np.diff(positives.start)
    fewest = np.full(len(used), np.iinfo(np.int64).max)
    np.minimum.at(fewest, number[home], others)
    rows, of, weight = _stand_ins(tree, hosts, number, fewest, problem.X)
    X = sp.csr_matrix(sp.vstack([problem.X, rows], format="csr"))
    X.sort_indices()
    own = np.ones(problem.rows, np.float32) if problem.row_weights is None else problem.row_weights
    whole = Problem(X, sp.csr_matrix((X.shape[0], len(home))), np.concatenate([own, weight]))
    reaching = reaching.with_rows(of)
    positives = replace(positives, rows=X.shape[0])
    layer = layer_problem(whole, reaching, positives, number[home], settings, seed)
    weights, bias = learn_here(layer, threads, None)
    if not settings.bias:
        return weights, bias
    doubt = DOUBT + FEW / np.sqrt(np.maximum(problem.rows_of_label, 1))
    return weights, bias - np.where(hosts.high[home], doubt, 0.0).astype(np.float32)


def _stand_ins(
    tree: StoredTree, hosts: Hosts, number: Ints, fewest: Ints, X: Any
) -> tuple[Any, Ints, npt.NDArray[np.float32]]:
    """Rows in place of those of old siblings, the host that each belongs to, and what each counts."""
    used = np.flatnonzero(number[:-1] >= 0)
    missing = np.clip(1.0 - fewest / np.maximum(hosts.children[used], 1), 0.0, 1.0)
    rows: list[Any] = [empty_rows(int((missing > 0).sum()), X.shape[1])]  # without features
    length = np.sqrt(np.square(X.data, dtype=np.float64).sum() / max(1, X.shape[0]))  # what rows usually have
    of: list[Ints] = [np.flatnonzero(missing > 0)]
    for depth in np.unique(hosts.depth[used]) + 1:
        parent = np.asarray(tree.nodes[depth].parent, np.int64)
        here = np.flatnonzero(hosts.depth == depth - 1)
        at = np.full(int(np.max(parent)) + 1, -1, np.int64)
        at[hosts.node[here]] = number[here]
        at = at[parent]
        needed = np.flatnonzero((at >= 0) & (missing[np.maximum(at, 0)] > 0))
        if len(needed):
            rows.append(_largest(sp.csc_array(tree.weights(depth))[:, needed]) * np.float32(length))
            of.append(at[needed])
    each = np.concatenate(of)
    return sp.csr_matrix(sp.vstack(rows, format="csr")), each, missing[each].astype(np.float32)


def _largest(weights: Any) -> Any:
    """Nodes x features: the largest weights above 0 of each node, as a row of length one."""
    lines = sp.csr_array(weights.T)
    node = np.repeat(np.arange(lines.shape[0]), np.diff(lines.indptr))
    order = np.lexsort((lines.indices, -lines.data, node))
    rank = np.arange(len(order)) - lines.indptr[:-1].astype(np.int64)[node[order]]
    keep = np.sort(order[(rank < WORDS) & (lines.data[order] > 0)])
    node, data = node[keep], lines.data[keep].astype(np.float64)
    length = np.sqrt(np.bincount(node, weights=data * data, minlength=lines.shape[0]))
    start = np.searchsorted(node, np.arange(lines.shape[0] + 1))
    return sp.csr_matrix(((data / length[node]).astype(np.float32), lines.indices[keep], start), shape=lines.shape)
