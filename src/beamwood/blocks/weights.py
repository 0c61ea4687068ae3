"""weights.py — named blocks of a training's rows and their labels in; blocks with weights, and joined rows, out.

Held-out rows choose. One narrow tree per candidate is trained on most of the rows and asked about the others; where
rows are few, that is done for several parts of them in turn, since some hundred held-out rows could not tell. The first
block keeps the weight 1, and each other one goes through the candidates in turn. A block that does not clearly gain
gets 0: it then costs nothing in a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.blocks.blocks import FeatureBlocks, blocks_of
from beamwood.errors import DataError, SettingsError
from beamwood.inputs.label_matrix import label_matrix
from beamwood.inputs.matrices import is_blocks

CANDIDATES = (0.0, 0.25, 0.5, 1.0, 2.0)
_MOST_ROWS = 40_000  # to learn from
_HELD_OUT = 4_000  # tell enough, in one part or in all together
_MOST_PARTS = 4
_ERRORS = 2.0  # a block must gain so many standard errors of what it gains

Each = npt.NDArray[np.float64]  # a number for each held-out row
Ids = npt.NDArray[np.int64]
Quality = Callable[[Any, Any, Any, Any], Each]  # of rows and labels to learn from, rows and labels to ask about


def weighed_blocks(
    X: Any, Y: Any, weights: Any, optional: Any, seed: int, quality: Quality
) -> tuple[FeatureBlocks | None, Any]:
    """The blocks of a training with given weights, or (None) with chosen ones; and the rows that they make.

    X: named blocks, or one matrix, which has none and stays as it is.
    """
    if not is_blocks(X):
        if weights is not None or not isinstance(optional, tuple) or optional:
            raise SettingsError("block_weights or optional_blocks is given with a matrix; expected X as named blocks.")
        return None, X
    blocks, rows = blocks_of(X, "X")
    blocks = replace(blocks, optional=_checked_optional(optional, blocks))
    if weights is not None:
        blocks = _given(blocks, weights)
    elif len(rows) == 1:
        blocks = blocks.weighed({blocks.names[0]: 1.0})
    else:
        truth, count = label_matrix(Y, "Y"), next(iter(rows.values())).shape[0]
        if truth.shape[0] != count:
            raise DataError(f"X has {count:,} rows and Y has {truth.shape[0]:,}; expected one row of Y per row of X.")
        blocks = _chosen(blocks, rows, truth, seed, quality)
    return blocks, blocks.joined(rows, "X")


def without_words(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a model of blocks, which ranks by trees only."""
    if settings.get("lexical") is True:
        raise SettingsError("lexical is True with blocks of features; expected False. Words of labels need one matrix.")
    return {**settings, "lexical": False}


def _chosen(blocks: FeatureBlocks, rows: Mapping[str, Any], Y: Any, seed: int, quality: Quality) -> FeatureBlocks:
    """The blocks with weights chosen on held-out rows."""
    labelled = np.flatnonzero(np.diff(Y.indptr) > 0)
    parts = _parts(np.random.default_rng(seed).permutation(labelled))
    if not parts:  # nothing to choose by
        return blocks.weighed(dict.fromkeys(blocks.names, 1.0))
    known: dict[tuple[float, ...], Each] = {}

    def reached(weights: Mapping[str, float]) -> Each:
        key = tuple(weights[name] for name in blocks.names)
        if key not in known:
            weighed = blocks.weighed(weights)

            def joined(at: Ids) -> Any:
                return weighed.joined({name: matrix[at] for name, matrix in rows.items()}, "X")

            each = [quality(joined(learnt), Y[learnt], joined(held), Y[held]) for learnt, held in parts]
            known[key] = np.concatenate(each)
        return known[key]

    chosen = {name: float(name == blocks.names[0]) for name in blocks.names}
    for name in blocks.names[1:]:
        with_each = [{**chosen, name: weight} for weight in CANDIDATES]
        best = max(with_each, key=lambda weights: reached(weights).mean())
        gained = reached(best) - reached(chosen)
        if gained.mean() > _ERRORS * gained.std() / np.sqrt(len(gained)):
            chosen = best
    return blocks.weighed(chosen)


def _parts(order: Ids) -> list[tuple[Ids, Ids]]:
    """Rows to learn from, and rows held out of them; no row is held out twice."""
    count = min(_HELD_OUT, len(order) // 5)
    times = min(_MOST_PARTS, -(-_HELD_OUT // count)) if count else 0
    held = [order[part * count : (part + 1) * count] for part in range(times)]
    return [(np.sort(np.setdiff1d(order, each, True)[:_MOST_ROWS]), np.sort(each)) for each in held]


def _given(blocks: FeatureBlocks, weights: Any) -> FeatureBlocks:
    """The blocks with weights that somebody gave, one for each."""
    check_weights(weights, blocks.names)
    return blocks.weighed({name: float(weight) for name, weight in weights.items()})


def check_weights(weights: Any, names: tuple[str, ...]) -> None:
    """Refuses what is no weight for each of these blocks; None is none."""
    if weights is None:
        return
    if not isinstance(weights, Mapping) or set(weights) != set(names):
        raise SettingsError(
            f"block_weights is {weights!r:.60}; expected a number for each of {', '.join(map(repr, names))}, "
            "or None: held-out rows then choose."
        )
    for name, weight in weights.items():
        real = isinstance(weight, (int, float, np.integer, np.floating)) and not isinstance(weight, bool)
        if not real or not 0 <= float(weight) < np.inf:
            raise SettingsError(f"block_weights has {weight!r} for {name!r}; expected a finite number of 0 or more.")
    if not any(float(weight) > 0 for weight in weights.values()):
        raise SettingsError("block_weights has only zeros; expected one above 0. Leave out blocks you do not want.")


def _checked_optional(optional: Any, blocks: FeatureBlocks) -> frozenset[str]:
    names = tuple(optional) if isinstance(optional, (list, tuple, set, frozenset)) else (optional,)
    if any(not isinstance(name, str) or name not in blocks.names for name in names) or len(names) == len(blocks.each):
        raise SettingsError(
            f"optional_blocks is {optional!r:.60}; expected some, not all, of {', '.join(map(repr, blocks.names))}."
        )
    return frozenset(names)
