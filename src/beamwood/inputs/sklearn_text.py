"""sklearn_text.py — a fitted scikit-learn text vectorizer in, text blocks with their arrays out.

Reads attributes and runs none of its code.
What our tokeniser cannot repeat exactly is refused rather than approximated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import SettingsError
from beamwood.inputs.text_block import TextBlock, pack_terms

# Patterns that find whole words of at least one or two letters; `\b` and `(?u)` change nothing for them.
_SINGLE_LETTERS = {
    prefix + edge + core + edge: core == r"\w+"
    for prefix in ("", "(?u)")
    for edge in ("", r"\b")
    for core in (r"\w+", r"\w\w+")
}

Pair = tuple[TextBlock, dict[str, npt.NDArray[Any]]]


def read_blocks(vectorizer: Any) -> list[Pair]:
    """The blocks of one vectorizer, of a list of them, or of a FeatureUnion, left to right."""
    if hasattr(vectorizer, "transformer_list"):
        if getattr(vectorizer, "transformer_weights", None):
            raise SettingsError("the FeatureUnion has transformer_weights, which are not supported; set them to None")
        return [_read_block(part) for _, part in vectorizer.transformer_list]
    parts = vectorizer if isinstance(vectorizer, (list, tuple)) else [vectorizer]
    if not parts:
        raise SettingsError("the list of vectorizers is empty; give at least one fitted TfidfVectorizer")
    return [_read_block(part) for part in parts]


def _read_block(vectorizer: Any) -> Pair:
    if not (hasattr(vectorizer, "ngram_range") and hasattr(vectorizer, "token_pattern")):
        raise SettingsError(
            f"cannot read a {type(vectorizer).__name__}; give a fitted TfidfVectorizer or CountVectorizer"
        )
    if not getattr(vectorizer, "vocabulary_", None):
        raise SettingsError("the vectorizer has no vocabulary_; call its fit method first")
    terms = _terms(vectorizer.vocabulary_)
    _refuse_unsupported(vectorizer, terms)
    weighs = hasattr(vectorizer, "use_idf")
    block = TextBlock(
        analyzer=vectorizer.analyzer,
        ngram_range=vectorizer.ngram_range,
        lowercase=bool(vectorizer.lowercase),
        single_letters=vectorizer.analyzer == "word" and _SINGLE_LETTERS[vectorizer.token_pattern],
        min_df=vectorizer.min_df,
        max_df=vectorizer.max_df,
        max_features=vectorizer.max_features,
        binary=bool(vectorizer.binary),
        sublinear_tf=weighs and bool(vectorizer.sublinear_tf),
        use_idf=weighs and bool(vectorizer.use_idf),
        smooth_idf=not weighs or bool(vectorizer.smooth_idf),
        norm=vectorizer.norm if weighs else None,
        segment=False,
        typos=False,
    )
    idf = np.ascontiguousarray(vectorizer.idf_, dtype=np.float64) if block.use_idf else np.empty(0)
    if idf.size and (idf.shape != (len(terms),) or not np.isfinite(idf).all()):
        raise SettingsError("idf_ must hold one finite number a term; fit the vectorizer with smooth_idf=True")
    return block, pack_terms(terms, idf)


def _terms(vocabulary: Any) -> list[str]:
    """The terms in column order."""
    terms: list[str] = [""] * len(vocabulary)
    filled = np.zeros(len(terms), dtype=bool)
    for term, column in vocabulary.items():
        if not isinstance(term, str) or not 0 <= column < len(terms) or filled[column]:
            raise SettingsError(f"vocabulary_ gives {term!r} the column {column!r}; columns must be 0..n-1, each once")
        terms[column] = term
        filled[column] = True
    return terms


def _refuse_unsupported(vectorizer: Any, terms: list[str]) -> None:
    """Says what stands in the way of exactly the same features, if anything does."""
    if vectorizer.analyzer not in ("word", "char_wb"):
        raise SettingsError(f'analyzer={vectorizer.analyzer!r} is not supported; "word" and "char_wb" are')
    for name in ("tokenizer", "preprocessor", "strip_accents"):
        if getattr(vectorizer, name, None) is not None:
            raise SettingsError(f"{name}={getattr(vectorizer, name)!r} is not supported; prepare texts beforehand")
    if vectorizer.input != "content":
        raise SettingsError(f"input={vectorizer.input!r} is not supported; read files first and pass their text")
    if vectorizer.analyzer != "word":
        return
    if vectorizer.token_pattern not in _SINGLE_LETTERS:
        raise SettingsError(
            f"token_pattern={vectorizer.token_pattern!r} is not supported; "
            r"use '(?u)\b\w\w+\b' (the default) or '(?u)\b\w+\b'"
        )
    _refuse_stop_words(vectorizer, terms)


def _refuse_stop_words(vectorizer: Any, terms: list[str]) -> None:
    """Stop words of single-word features are simply not in the vocabulary; anything else would need them."""
    words = vectorizer.get_stop_words()
    if words and (tuple(vectorizer.ngram_range)[1] > 1 or not set(words).isdisjoint(terms)):
        raise SettingsError(
            "stop_words are supported for single words only (ngram_range=(1, 1), none in the vocabulary); "
            "fit without stop_words and use max_df instead"
        )
