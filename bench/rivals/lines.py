"""Requests in on stdin, answers out on stdout, one JSON object a line; clocks and shapes that all workers share.

Runs in a rival's own interpreter, so it needs nothing but numpy and scipy. A request has `do` and the arguments of the
function of that name; the answer holds what it returned, or `error`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp


def serve(*verbs: Callable[..., dict[str, Any]]) -> None:
    """Answers until stdin ends. What libraries print goes to stderr, so that it cannot break a line."""
    known = {verb.__name__: verb for verb in verbs}
    answer_to = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = known[request.pop("do")](**request)
        except Exception as error:  # the other side raises it again
            reply = {"error": f"{type(error).__name__}: {error}"}
        answer_to.write(json.dumps(reply) + "\n")


def rows_of(x: str) -> Any:
    """The queries of an npz file as float32 CSR with sorted rows."""
    X = sp.csr_matrix(sp.load_npz(x), dtype=np.float32)
    X.sort_indices()
    return X


def timed(call: Callable[[Any], object], argument: Any) -> float:
    """Microseconds of one call, in processor time of the process: some rivals do their work in a thread of theirs."""
    started = time.process_time_ns()
    call(argument)
    return (time.process_time_ns() - started) / 1e3


def save_pairs(pairs: list[Any], k: int, out: str) -> None:
    """Lists of (label, score) in rank order, as padded arrays of labels and scores."""
    labels = np.full((len(pairs), k), -1, np.int64)
    scores = np.full((len(pairs), k), -np.inf, np.float32)
    for i, row in enumerate(pairs):
        for j, (label, score) in enumerate(list(row)[:k]):
            labels[i, j], scores[i, j] = label, score
    np.savez(out, labels=labels, scores=scores)
