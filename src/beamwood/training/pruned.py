"""pruned.py — learned layers in, one warning out where pruning left nodes without a weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from beamwood.errors import warn
from beamwood.storage.layers import Layer

_MANY = 0.25  # nodes without a weight, as a share of a layer: data sets with well-scaled rows have 0.00
_FEWEST = 8  # nodes that a layer must have: examples of a handful of rows often teach a node nothing


@dataclass
class Emptied:
    """Looks at the layers of all trees and says once, at the end, what pruning did."""

    prune: float
    found: list[str] = field(default_factory=list)

    def look(self, tree: int, layers: Sequence[Layer]) -> None:
        """Notes layers of which many nodes had rows to learn from, siblings to be told from, and keep no weight."""
        if not self.prune:
            return
        for depth, layer in enumerate(layers):
            parent = np.asarray(layer.parent, np.int64)
            learned = (np.bincount(parent)[parent] > 1) & np.isfinite(np.asarray(layer.bias))
            without = int((np.diff(layer.weights.indptr)[learned] == 0).sum())
            if without > _MANY * learned.sum() and learned.sum() >= _FEWEST:
                self.found.append(
                    f"layer {depth} of tree {tree} has {without:,} of {learned.sum():,} nodes without a weight"
                )

    def say(self) -> None:
        """The warning, if there is reason for one."""
        if self.found:
            more = f" (and {len(self.found) - 1} more layers)" if len(self.found) > 1 else ""
            warn(
                f"{self.found[0]}{more}; expected few. All that these nodes learned is nearer to zero than "
                f"prune={self.prune:g}, so they cannot tell rows apart. Scale the rows of X with unit_rows=True, or "
                "keep small weights with prune=0."
            )
