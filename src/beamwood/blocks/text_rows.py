"""text_rows.py — texts and their labels in; fitted text features, and the rows that they make of the texts, out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beamwood.blocks.weights import Quality, weighed_blocks
from beamwood.encoders.meaning import MEANING, WORDS, Meaning
from beamwood.errors import warn
from beamwood.inputs.text import FittedText, TextFeatures
from beamwood.training.checkpoint import Checkpoint
from beamwood.training.progress import Update
from beamwood.training.report import Stopwatch
from beamwood.training.stages import keep_text, kept_text

_TOLD = 4096  # texts between two words of progress


@dataclass(frozen=True, eq=False)
class Weighing:
    """How words and what an encoder makes are weighed: as given, or (None) as held-out rows choose."""

    weights: Mapping[str, float] | None
    seed: int
    threads: int | None
    quality: Quality


def text_rows(
    texts: Sequence[str],
    described: Sequence[str],
    text: TextFeatures,
    Y: Any,
    weighing: Weighing,
    watch: Stopwatch,
    checkpoint: Checkpoint,
) -> tuple[FittedText, Any]:
    """Text features of texts and of what describes labels, and the rows that they make of the texts.

    An encoder that gains nothing on held-out rows is left out: the model is then the one without it.
    """
    with watch.stage("text features", len(texts)) as update:
        found = kept_text(checkpoint)
        if found is not None:
            return _bound(found[0], text), found[1]
        fitted = text.fit_words(_told([*texts, *described], update, 0.0), threads=weighing.threads)
        X: Any = fitted.transform(_told(texts, update, 0.5), threads=weighing.threads, learning=True)
    if text.encoder is not None:
        fitted, X = _with_meaning(fitted, X, texts, text.encoder, Y, weighing, watch)
    keep_text(checkpoint, fitted, X)
    return fitted, X


def _with_meaning(
    fitted: FittedText, words: Any, texts: Sequence[str], encoder: Any, Y: Any, weighing: Weighing, watch: Stopwatch
) -> tuple[FittedText, Any]:
    with watch.stage("vectors of texts", len(texts)) as update:
        meaning = Meaning.of(encoder, words, weighing.seed, weighing.threads)
        update(0.1)
        vectors = meaning.vectors(words, texts, weighing.threads)
    with watch.stage("weights of words and meaning", len(texts)):
        both = {WORDS: words, MEANING: vectors}
        blocks, X = weighed_blocks(both, Y, weighing.weights, (), weighing.seed, weighing.quality)
    assert blocks is not None
    if blocks.each[1].weight == 0:
        if weighing.weights is None:
            warn(
                f"the encoder {meaning.source.name} gains nothing on held-out rows and is left out: the model has "
                'words only. To have it all the same give block_weights={"words": 1, "meaning": 1}'
            )
        return fitted, words
    return fitted.with_meaning(meaning.weighed(blocks)), X


def _bound(fitted: FittedText, text: TextFeatures) -> FittedText:
    """Text features from a checkpoint with the encoder that was given, which no file can hold."""
    return fitted if fitted.encoder is None else fitted.with_encoder(text.encoder)


def _told(texts: Sequence[str], update: Update, begin: float) -> Iterator[str]:
    """The texts one by one, telling how far it is: each of two passes is half of the way."""
    for number, text in enumerate(texts):
        if number % _TOLD == 0:
            update(begin + 0.5 * number / len(texts))
        yield text
