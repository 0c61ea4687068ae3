"""warm.py — a model that was just opened in, the same one with its pages read and its code run out.

A mapped file is read from the disk when it is first touched, so that the first questions would take a thousand times
as long as others. Here they are asked before anyone else can ask: names of labels all over the tree, as people would
type them, or rows of some features where a model knows no words.
"""

from __future__ import annotations

import time

import numpy as np

from beamwood import _core
from beamwood.server.app.answers import row_of
from beamwood.server.app.schema import FeatureRow
from beamwood.server.process.registry import Served

_QUESTIONS = 256
_TERMS = 16  # of a row, where there are no words
_SECONDS = 2.0  # for questions; a disk that is slower than that is not waited for


def warm(served: Served, how: str) -> int:
    """Asks a model some questions (how many), after reading every page if how is "file"; none if it is "off"."""
    if how == "off":
        return 0
    _core.give_way()  # to those who answer meanwhile: this runs on a thread beside the event loop
    if how == "file":
        for array in served.model.parts.sections.values():
            if array.nbytes:
                _core.touch(array.view(np.uint8))
    ends = time.monotonic() + _SECONDS
    asked = 0
    for label in np.unique(np.linspace(0, served.model.n_labels - 1, _QUESTIONS, dtype=np.int64)).tolist():
        if time.monotonic() > ends:
            break
        _ask(served, label)
        asked += 1
    return asked


def _ask(served: Served, label: int) -> None:
    if served.model.text is not None:
        served.model.search_json(served.model.name(label), 10, 10, None, None)
        return
    first = label % max(1, served.model.n_features // _TERMS)
    ids = np.linspace(first, served.model.n_features - 1, _TERMS, dtype=np.int64)
    served.model.topk(row_of(served.model, FeatureRow(ids, np.ones(_TERMS, np.float32))), 10, 10)
