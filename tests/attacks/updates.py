"""updates.py — two models in, what is tried on their labels that come and go out: see surface.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.damaged import plain

import beamwood as bw
from attacks.values import FEATURES, LABELS, Values, anything, labels, matrices, odd

Make = Callable[[], bw.Model]


def updates_room(numbers: Make, words: Make, rows: tuple[Any, Any]) -> dict[str, list[tuple[Values, Any]]]:
    """What is tried on labels that come and go; rows: texts and label keys of the model that `words` makes."""
    X, Y = matrices(FEATURES), labels(LABELS)
    return {
        "Model.add_labels": [
            (odd(X), lambda v: numbers().add_labels(v, plain(LABELS))),
            (odd(Y), lambda v: numbers().add_labels(plain(FEATURES), v)),
            (anything(), lambda v: words().add_labels(*rows, keys=v)),
            (anything(), lambda v: words().add_labels(["wool"], [["new"]], names=v)),
            (anything(), lambda v: words().add_labels(texts=v)),
            (anything(), lambda v: numbers().add_labels(plain(FEATURES), plain(LABELS), seed=v)),
        ],
        "Model.remove_labels": [(anything(), lambda v: numbers().remove_labels(v))],
        "Model.rename": [(anything(), lambda v: words().rename(v))],
        "Model.retrain": [
            (odd(X), lambda v: numbers().retrain(v, plain(LABELS), progress=False)),
            (odd(Y), lambda v: numbers().retrain(plain(FEATURES), v, progress=False)),
        ],
    }
