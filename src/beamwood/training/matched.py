"""matched.py — a problem and the layers so far in, the nodes that each row's beam search keeps out: hard negatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from beamwood.engine import Engine
from beamwood.ranker import Ranker
from beamwood.storage.activations import Activation
from beamwood.storage.assemble import from_layers
from beamwood.storage.layers import Layer
from beamwood.training.problem import Problem
from beamwood.training.settings import Settings
from beamwood.training.weights import Ints, Match


def matcher_for(problem: Problem, settings: Settings, threads: int) -> Match | None:
    """Beam search with the layers so far, for matcher-aware negatives."""
    if "man" not in settings.negatives:
        return None

    def match(trained: Sequence[Layer]) -> Ints:
        last = len(trained[-1].parent)
        layers = [*_leaves_numbered_from(last, trained[:-1]), _bare(trained[-1], np.arange(last))]
        parts = from_layers(layers, Activation.parse(settings.activation), False, None, None, {})
        model = Ranker(parts, Engine(), None)
        k = min(2 * settings.beam, last)
        found, _ = model.topk(problem.X, k=k, beam=settings.beam, threads=threads)
        found = np.where(found < last, found, -1)
        return np.take_along_axis(found, np.argsort(found < 0, axis=1, kind="stable"), axis=1)[:, : settings.beam]

    return match


def _bare(layer: Layer, label: Ints) -> Layer:
    return Layer(layer.weights, layer.parent, layer.bias, label)


def _leaves_numbered_from(first: int, layers: Sequence[Layer]) -> list[Layer]:
    """Leaves above the last layer get the numbers behind its nodes, without a gap, so that answers tell them apart."""
    numbered: list[Layer] = []
    for layer in layers:
        if layer.label is None:
            numbered.append(layer)
            continue
        leaf = np.asarray(layer.label) >= 0
        numbered.append(_bare(layer, np.where(leaf, first + np.cumsum(leaf) - 1, -1)))
        first += int(leaf.sum())
    return numbered
