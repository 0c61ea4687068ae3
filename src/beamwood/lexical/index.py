"""index.py — sparse vectors or documents in, a model that finds the exact best of them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import as_texts, workers
from beamwood.inputs.matrices import as_csr, as_float32, as_numbers, check_dimensions
from beamwood.inputs.text import TextFeatures
from beamwood.lexical.bm25 import bm25_weights, checked_k1_b
from beamwood.lexical.postings import kind_of, postings_sections
from beamwood.model import Model
from beamwood.storage.activations import Activation
from beamwood.storage.assemble import with_text
from beamwood.storage.build import Sections
from beamwood.storage.parts import ModelParts
from beamwood.storage.shape import ModelShape
from beamwood.storage.strings import string_sections
from beamwood.training.memory import available_bytes


def index(
    W: Any,
    bias: Any = None,
    *,
    keys: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    weights: str = "f32",
    matched_only: bool = False,
    threads: int | None = None,
) -> Model:
    """A model of the rows of W, one per label: topk(X) gives the exact best k of x · w + b over all of them.

    W:            labels x features, anything scipy can make CSR of; values may be negative.
    bias:         one number per label, added last.
    keys, names:  the unique string that names each label, and what people read for it.
    weights:      how they are stored: "f32", or "f16" and "u8", which take less memory and are rounded; answers are
                  exact for the rounded weights.
    matched_only: answer only labels that score above 0, so that there may be fewer than k.
    threads:      for building; None: all cores.

    >>> model = index([[1.0, 0.0], [0.0, 1.0], [3.0, -1.0]], keys=["a", "b", "c"])
    >>> labels, scores = model.topk([[1.0, 1.0]], k=2)
    >>> labels.tolist(), scores.tolist()
    ([[2, 0]], [[2.0, 1.0]])
    """
    check_dimensions(W, "W", "Give one row per label.")
    vectors = as_csr(W, None, "W", zeros=False)
    labels = vectors.shape[0]
    if labels == 0:
        raise DataError("W has 0 rows; expected at least one. Give one row per label.")
    if bias is not None:
        bias = as_float32(as_numbers(bias, labels, "bias", "label"), "bias")
        if not np.isfinite(bias).all():
            raise DataError(f"bias has {bias[~np.isfinite(bias)][0]}; expected finite numbers. Give one per label.")
    strings = string_sections(names, keys, labels)
    return Model(index_parts(vectors, bias, weights, matched_only, threads, {}, strings))


def index_text(
    documents: Iterable[str],
    *,
    keys: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    text: TextFeatures | None = None,
    k1: float = 1.5,
    b: float = 0.75,
    weights: str = "f32",
    threads: int | None = None,
) -> Model:
    """A model of documents, which answers `model.search("some words")` with the exact best of them by BM25.

    It needs no training. Documents that have no word of the query are no answers. What is not listed is as in `index`.

    documents: one text per label.
    text:      how texts become words; None: single words. Its weights and norms are not used: BM25 has its own.
    k1, b:     how soon more of the same word counts less, and how much long documents are held back.

    >>> model = index_text(["red wool socks", "blue boots", "wool cap"], keys=["socks", "boots", "cap"])
    >>> [hit.key for hit in model.search("warm wool")]
    ['cap', 'socks']
    """
    k1, b = checked_k1_b(k1, b)
    kind_of(weights)
    if text is not None and not isinstance(text, TextFeatures):
        raise SettingsError(f"text is a {type(text).__name__}; expected TextFeatures(…), or None.")
    if text is not None and text.encoder is not None:
        raise SettingsError("text has an encoder; expected none. An index ranks by words only: use train_text.")
    texts = as_texts(documents)
    strings = string_sections(names, keys, len(texts))  # wrong ones are found before the work
    fitted = counting(text or TextFeatures()).fit(texts, threads)
    W = bm25_weights(fitted.transform(texts, threads, learning=True), k1, b)
    parts = index_parts(W, None, weights, True, threads, {"ranking": "bm25", "k1": k1, "b": b}, strings)
    return Model(with_text(parts, fitted))


def counting(text: TextFeatures) -> TextFeatures:
    """The same terms, counted and not weighed."""
    return TextFeatures(
        blocks=tuple(replace(block, sublinear_tf=False, use_idf=False, norm=None) for block in text.each())
    )


def index_parts(
    W: Any,
    bias: Any,
    weights: str,
    matched_only: bool,
    threads: int | None,
    settings: dict[str, Any],
    strings: Sections,
) -> ModelParts:
    """The parts of a model of the rows of W, canonical float32 CSR."""
    if type(matched_only) is not bool:
        raise SettingsError(f"matched_only is {matched_only!r:.80}; expected True or False.")
    _check_memory(W, workers(threads))
    sections, shape = postings_sections(W, bias, weights=weights, matched_only=matched_only, threads=workers(threads))
    labels, features = W.shape
    whole = ModelShape(features, labels, Activation.parse("identity"), (), settings, index=shape)
    return ModelParts(whole, {**sections, **strings})


def _check_memory(W: Any, threads: int) -> None:
    """Refuses what cannot be built: every column takes some bytes, also one that is not used."""
    needed = W.shape[1] * (28 + 8 * min(threads, 8)) + W.nnz * 24
    limit = available_bytes()
    if limit is not None and needed > limit:
        raise DataError(
            f"W has {W.shape[1]:,} columns and {W.nnz:,} weights, which take {needed / 2**30:,.1f} GB; expected "
            f"at most {limit / 2**30:,.1f} GB, what is free. Number only the columns that are used."
        )
