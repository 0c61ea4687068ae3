"""suggest.py — texts as an analyzer reads them in, Annif's batch of suggestions out: one native call."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from annif.suggestion import SuggestionBatch

import beamwood as bw


def suggestions(model: bw.Model, subjects: Any, texts: list[str], params: dict[str, Any], project: Any) -> Any:
    """The best subjects of texts, in one call: a sparse row per text."""
    rows = model.transform(texts)
    k = min(int(params["limit"]), model.n_labels)
    labels, scores = model.topk(rows, k=k, beam=max(int(params["beam"]), min(k, 100)), threads=1)
    if model.is_calibrated:
        scores = model.probability(scores)
    found = np.where(labels >= 0, subjects[labels], -1)
    found[np.diff(rows.indptr) == 0] = -1  # no known word: nothing is suggested
    good = (found >= 0) & (scores > 0)
    values = np.minimum(scores[good], 1.0).astype(np.float32)
    shape = (len(texts), len(project.subjects))
    entries: Any = (values, (np.nonzero(good)[0], found[good]))
    return SuggestionBatch(sp.csr_array(entries, shape=shape))
