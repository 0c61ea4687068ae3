"""flat.py — nothing in, what is tried on indexes and on named blocks of features out: see surface.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support import damaged
from support.damaged import plain

import beamwood as bw
from attacks.values import FEATURES, LABELS, Values, anything, matrices


def index_room(texts: list[str]) -> dict[str, list[tuple[Values, Any]]]:
    """What is tried on exact indexes."""
    X, Z = matrices(FEATURES), matrices(LABELS)
    return {
        "index": [
            (Z, bw.index),
            (anything(), lambda v: bw.index(np.eye(LABELS), v)),
            (anything(), lambda v: bw.index(np.eye(LABELS), keys=v)),
            (anything(), lambda v: bw.index(np.eye(LABELS), names=v)),
            (anything(), lambda v: bw.index(np.eye(LABELS), weights=v)),
            (anything(), lambda v: bw.index(np.eye(LABELS), matched_only=v)),
            (anything(), lambda v: bw.index(np.eye(LABELS), threads=v)),
            (X, lambda v: bw.index(plain(FEATURES)).topk(v, k=3)),
        ],
        "index_text": [
            (damaged.texts(), bw.index_text),
            (anything(), lambda v: bw.index_text(texts, keys=v)),
            (anything(), lambda v: bw.index_text(texts, text=v)),
            (anything(), lambda v: bw.index_text(texts, k1=v)),
            (anything(), lambda v: bw.index_text(texts, b=v)),
        ],
    }


def blocks_of_features(trained: Callable[..., bw.Model]) -> list[tuple[Values, Any]]:
    """What is tried on the training of a model of named blocks."""
    blocks = {"words": plain(FEATURES), "meaning": plain(FEATURES)}
    return [
        (matrices(FEATURES), lambda v: trained({**blocks, "meaning": v})),
        (anything(), lambda v: trained(blocks, block_weights=v)),
        (anything(), lambda v: trained(blocks, optional_blocks=v)),
    ]
