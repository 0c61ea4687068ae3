"""words.py — a model's lists of words in, those of more or fewer labels out; what stays keeps its bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import FormatError
from beamwood.lexical.bm25 import bm25_weights, idf_of_counts
from beamwood.lexical.postings import native_postings, postings_sections
from beamwood.lexical.words import B, k1_of, word_counts
from beamwood.storage.build import Sections
from beamwood.storage.parts import ModelParts
from beamwood.storage.shape import IndexShape
from beamwood.training.problem import words_only


def weights_in(parts: ModelParts) -> sp.csr_array:
    """Labels x features: the weights of all words, as they are read from a model that has some."""
    shape = parts.shape
    assert shape.index is not None
    try:
        lists: Any = native_postings(parts.sections, shape.features, shape.labels, shape.index)
        start, label, weight = lists.lists()
    except (ValueError, TypeError) as error:
        raise FormatError(f"The model is damaged: {error}. Get a fresh copy of its file.") from None
    rows = sp.csr_array(sp.csc_array((weight, label, start), shape=(shape.labels, shape.features)))
    rows.sort_indices()
    return rows


def of_new(parts: ModelParts, old: sp.csr_array, X: Any, Y: Any, texts: Any) -> sp.csr_array:
    """The weights of new labels, by the words of their rows and texts: rare is what few of the old labels have."""
    number = parts.shape.words
    counts = word_counts(words_only(X, number), Y, None if texts is None else words_only(texts, number))
    told = parts.shape.lexical or {}
    idf = idf_of_counts(old.shape[0], np.bincount(old.indices, minlength=old.shape[1]))
    return bm25_weights(counts, k1_of(told), B, idf=idf, mean=float(told.get("words_per_label", 0.0)))


def sections_of(parts: ModelParts, rows: Any, threads: int) -> tuple[Sections, IndexShape]:
    """The lists of these rows, labels x features; a word that the model has keeps its scale."""
    index = parts.shape.index
    assert index is not None
    kept = _scales(parts, rows) if index.weights == "u8" else None
    rows = sp.csr_array(rows, dtype=np.float32)
    return postings_sections(rows, weights=index.weights, matched_only=index.matched_only, threads=threads, kept=kept)


def _scales(parts: ModelParts, rows: Any) -> npt.NDArray[np.float32]:
    """The scale of each word that both the model and these rows have, 0 for the others: they choose one."""
    had = np.diff(parts.sections["index/start"].astype(np.int64)) > 0
    has = np.bincount(rows.indices, minlength=rows.shape[1]) > 0
    return np.where(had & has, parts.sections["index/scale"], np.float32(0)).astype(np.float32)
