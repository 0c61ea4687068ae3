"""place.py — rows of new labels and a tree's hosts in, the host that each label joins out.

A label belongs where searches for its rows come by: into the host that the beams of most of its rows hold. What a
row says for a host is the fourth root of the path's score, which counts being in the beam at all more than being
first there. On held-out rows that finds more of the new labels than the score itself does, or than going down once
with the mean of a label's rows (docs/life/update.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.ranker import Ranker

Ints = npt.NDArray[np.int64]

BEAM = 20  # hosts that a row speaks for
POWER = 0.25  # of the path's score: what a row says for a host
MOST_CHILDREN = 256  # a host of so many labels takes no more while another one will do


def came_by(router: Ranker | None, X: Any, path: str, threads: int) -> tuple[Ints, Any]:
    """For each row the hosts in its beam, the best first (-1: none), and what it says for each.

    path: how the scores of a path are put together.
    """
    if router is None:
        return np.zeros((X.shape[0], 1), np.int64), np.ones((X.shape[0], 1), np.float32)
    found, score = router.topk(X, k=min(BEAM, router.n_labels), beam=BEAM, threads=threads)
    with np.errstate(over="ignore"):
        if path == "sum":  # of logarithms
            score = np.exp(np.minimum(score, np.float32(0.0)))
        elif path == "last":  # of any size
            score = np.float32(1.0) / (np.float32(1.0) + np.exp(-score))
    says = np.where((found >= 0) & (score > 0), np.minimum(score, 1.0), 0.0) ** POWER
    return found, says.astype(np.float32)


def homes(found: Ints, says: Any, Y: Any, children: Ints) -> Ints:
    """The host of each new label. Y: rows x new labels; children: labels that each host has already."""
    width = found.shape[1]
    start = np.arange(len(found) + 1) * width
    told = sp.csr_array((says.ravel(), np.maximum(found, 0).ravel(), start), shape=(len(found), len(children)))
    drawn = sp.csr_array(sp.csr_array(Y).T @ told)
    drawn.eliminate_zeros()
    room = np.maximum(MOST_CHILDREN - children, 0)
    home = np.empty(Y.shape[1], np.int64)
    for label in range(len(home)):
        at = slice(drawn.indptr[label], drawn.indptr[label + 1])
        hosts = drawn.indices[at][np.lexsort((drawn.indices[at], -drawn.data[at]))]
        open_ones = hosts[room[hosts] > 0]
        if len(open_ones):
            home[label] = open_ones[0]
        else:
            home[label] = hosts[0] if len(hosts) else int(np.argmax(room))
        room[home[label]] -= 1
    return home
