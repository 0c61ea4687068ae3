"""Golden folders of other programs, and the comparison of two programs' answers."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

import beamwood as bw

GOLDEN = Path(__file__).parents[1] / "golden" / "foreign"
SETS = ("small", "medium")
TOLERANCE = 1e-5

Array = npt.NDArray[Any]
Answer = tuple[Array, Array]


def golden_rows(name: str) -> Any:
    """The queries of a golden set."""
    return sp.csr_matrix(sp.load_npz(GOLDEN / name / "X.npz"), dtype=np.float32)


def from_csr(P: Any, k: int) -> Answer:
    """Labels and scores (n x k) of a prediction matrix, in the order of its rows."""
    labels = np.full((P.shape[0], k), -1, np.int64)
    scores = np.full((P.shape[0], k), -np.inf, np.float32)
    for i, (a, b) in enumerate(zip(P.indptr[:-1], P.indptr[1:], strict=True)):
        labels[i, : b - a], scores[i, : b - a] = P.indices[a:b], P.data[a:b]
    return labels, scores


def from_pairs(rows: list[list[list[float]]], k: int) -> Answer:
    """Labels and scores (n x k) of lists of (label, score)."""
    labels = np.full((len(rows), k), -1, np.int64)
    scores = np.full((len(rows), k), -np.inf, np.float32)
    for i, row in enumerate(rows):
        for j, (label, score) in enumerate(row[:k]):
            labels[i, j], scores[i, j] = int(label), score
    return labels, scores


def golden_pairs(path: Path, k: int) -> Answer:
    """Answers saved as JSON."""
    return from_pairs(json.loads(path.read_text()), k)


def check_refused(read: Callable[[Path], object], folder: Path, message: str) -> None:
    """Reading gives a FormatError with this message, and takes memory by the bytes that are there, not by numbers."""
    there = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    tracemalloc.start()
    try:
        with pytest.raises(bw.FormatError, match=message):
            read(folder)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most <= 1_000_000 + 20 * there, f"{most:,} bytes for a folder of {there:,}"


def check_same_answers(ours: Answer, theirs: Answer, tolerance: float = TOLERANCE) -> int:
    """Scores agree rank by rank, and so do the labels, except among labels whose scores are equal (to the tolerance).

    Returns how many rows hold the same labels in the same order.
    """
    (labels, scores), (their_labels, their_scores) = ours, theirs
    assert labels.shape == their_labels.shape
    assert np.array_equal(labels >= 0, their_labels >= 0), "different numbers of labels"
    there = labels >= 0
    assert np.abs(scores[there] - their_scores[there]).max(initial=0) <= tolerance
    for row in np.flatnonzero((labels != their_labels).any(axis=1)):
        for label in set(labels[row].tolist()) ^ set(their_labels[row].tolist()):
            mine = scores[row] if label in labels[row] else their_scores[row]
            place = np.flatnonzero((labels[row] if label in labels[row] else their_labels[row]) == label)[0]
            last = scores[row][there[row]][-1]
            assert abs(mine[place] - last) <= tolerance, (row, label, "is in one answer alone and no tie")
    return int((labels == their_labels).all(axis=1).sum())
