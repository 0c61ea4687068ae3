"""train.py — (X, Y) in, a ranking model out: check the data, describe labels, grow trees, learn weights."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.blocks.blocks import FeatureBlocks
from beamwood.blocks.text_rows import Weighing, text_rows
from beamwood.blocks.weights import Each, Quality, check_weights, weighed_blocks, without_words
from beamwood.encoders.meaning import MEANING, WORDS
from beamwood.errors import DataError, SettingsError, warn
from beamwood.inputs.arguments import as_texts, workers
from beamwood.inputs.label_matrix import LabelsLike
from beamwood.inputs.label_table import LabelTable, as_label_keys
from beamwood.inputs.matrices import MatrixLike, RowsLike
from beamwood.inputs.text import FittedText, TextFeatures
from beamwood.lexical.label_texts import LabelTexts
from beamwood.lexical.member import Member, lexical_member
from beamwood.life.baselines import baselines_of
from beamwood.life.truth import relevant
from beamwood.model import Model
from beamwood.storage.assemble import with_baselines, with_rows_of_label, with_text, with_words
from beamwood.storage.build import Sections
from beamwood.storage.layers import Layer
from beamwood.storage.parts import ModelParts
from beamwood.storage.strings import string_sections
from beamwood.training.calibrated import checked_share, with_probabilities
from beamwood.training.checkpoint import (
    Checkpoint,
    Inner,
    Nowhere,
    checkpoint_in,
    hash_of,
    hash_of_matrix,
    hash_of_texts,
)
from beamwood.training.matched import matcher_for
from beamwood.training.memory import available_bytes, estimated_bytes, refuse_if_too_big
from beamwood.training.problem import Problem, checked_problem
from beamwood.training.progress import Progress, progress_for
from beamwood.training.report import Stopwatch
from beamwood.training.settings import Settings, checked_seed, settings_for
from beamwood.training.trees import How, grown_trees, report_of
from beamwood.training.weights import Learner, Match, Skeleton, layer_weights

_ROWS_AND_LABELS = ("label_features", "negatives_matrix")  # what train takes beside X, Y and settings
_RANKS = 10  # of answers that weights of blocks are judged by


def train(
    X: RowsLike,
    Y: LabelsLike,
    preset: str = "balanced",
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | Progress = True,
    row_weights: npt.ArrayLike | None = None,
    label_features: MatrixLike | None = None,
    negatives_matrix: LabelsLike | None = None,
    names: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    max_memory: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    calibrate: bool | float = False,
    learner: Learner | None = None,
    block_weights: Mapping[str, float] | None = None,
    optional_blocks: Sequence[str] = (),
    **settings: Any,
) -> Model:
    """Trains a model that ranks labels for sparse rows.

    Any field of `Settings` can be given as a keyword and wins over the preset. The result depends on the data, the
    settings and the seed, not on the number of threads.

    X:                rows x features, anything scipy can make CSR of. Or named blocks of features, sparse or dense:
                      {"words": X, "meaning": vectors}. Each is scaled to length one by itself; queries then come as
                      the same blocks. Words of labels (lexical) are left out of such a model.
    Y:                rows x labels; a value says how much that label matters for that row, 1 is usual. Or a list of
                      label ids per row.
    preset:           "fast", "balanced" or "best".
    seed:             what randomness starts from.
    threads:          how many to use; None: all cores.
    progress:         show a progress bar.
    row_weights:      how much whole rows matter, one number per row.
    label_features:   rows that describe the labels themselves; they are then clustered by these too.
    negatives_matrix: rows x labels that a row must learn to tell from its own, for negatives="user".
    names, keys:      what people read for each label, and the unique string that names it (default: the name).
    max_memory:       bytes that training may take; None: what the machine has free.
    checkpoint:       a folder where finished stages are kept. The same call goes on with them after a crash or a kill
                      and gives the same model; with other data or settings it is refused. The folder stays: remove it
                      when the model is saved.
    calibrate:        the model also knows probabilities, and a cut for f1: curves are fitted on a share of the rows
                      (True: a fifth, at most 50,000), ranked by a second model that has not seen them. Weights
                      and rankings stay the same; it takes about as long as the trees again.
    learner:          who works out the weights of a layer; None: this process. `beamwood.ray` hands in a cluster.
    block_weights:    how much each block of X counts; None: held-out rows choose, and may leave a block out (0). That
                      takes a few small trainings.
    optional_blocks:  blocks of X that a query may leave out; they then count as zeros.

    >>> model = train([[1.0, 0.0], [0.0, 1.0]] * 3, [[0], [1]] * 3, preset="fast", progress=False)
    >>> labels, scores = model.topk([[0.0, 2.0]], k=1)
    >>> labels.tolist()
    [[1]]
    """
    if label_features is not None:
        settings.setdefault("vectors", "pifa+features")
    blocks, rows = weighed_blocks(
        X, Y, block_weights, optional_blocks, checked_seed(seed), _block_quality(threads, max_memory)
    )
    if blocks is not None:
        settings = without_words(settings)
    how = How(settings_for(preset, **settings), checked_seed(seed), workers(threads), max_memory)
    how = replace(how, learn=_checked_learner(learner))
    problem = checked_problem(
        rows, Y, row_weights=row_weights, negatives_matrix=negatives_matrix, label_features=label_features
    )
    how = replace(how, calibrate=checked_share(calibrate, problem.rows))
    strings, watch = string_sections(names, keys, problem.labels), Stopwatch(progress_for(progress))
    with checkpoint_in(checkpoint) as kept:
        if checkpoint is not None:
            kept.same(data=hash_of_matrix(problem.X), **how.facts())
        return _trained(problem, how, watch, strings, kept, blocks=blocks)


def train_text(
    texts: Sequence[str],
    labels: Sequence[Iterable[str]],
    text: TextFeatures | None = None,
    *,
    preset: str = "balanced",
    names: Mapping[str, str] | None = None,
    label_texts: Mapping[str, str] | None = None,
    row_weights: npt.ArrayLike | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | Progress = True,
    checkpoint: str | os.PathLike[str] | None = None,
    calibrate: bool | float = False,
    learner: Learner | None = None,
    block_weights: Mapping[str, float] | None = None,
    **settings: Any,
) -> Model:
    """Trains a model that ranks labels for texts. It then answers `model.search("some text")`.

    The text features become part of the model. What is not listed here is as in `train`.

    texts:  the texts to learn from.
    labels: for each text a list of label keys.
    text:   how texts become features; None: single words, weighed by TF-IDF.
    names:  what people read for a key, where that is not the key itself.
    label_texts: for label keys a text that describes them: its words count as those of the label's rows do. A label
                 that has a text and no row can be found too, by its words.
    block_weights: with an encoder (see `TextFeatures`), how much "words" and "meaning" count; None: held-out rows
                 choose, and leave the encoder out where it gains nothing.
    row_weights: how much whole texts matter, one number per text.

    >>> texts, labels = ["red wool socks", "blue boots"] * 3, [["socks"], ["boots"]] * 3
    >>> model = train_text(texts, labels, preset="fast", progress=False)
    >>> [hit.key for hit in model.search("wool socks", k=1)]
    ['socks']
    """
    texts, labels = as_texts(texts), as_label_keys(labels)
    if text is not None and not isinstance(text, TextFeatures):
        raise SettingsError(f"text is a {type(text).__name__}; expected TextFeatures(…), or None.")
    if block_weights is not None and (text is None or text.encoder is None):
        raise SettingsError("block_weights is given without an encoder; expected text=TextFeatures(encoder=…).")
    check_weights(block_weights, (WORDS, MEANING))
    if len(texts) != len(labels):
        raise DataError(
            f"there are {len(texts):,} texts and {len(labels):,} lists of labels; expected one list per text."
        )
    more = {name: settings.pop(name) for name in _ROWS_AND_LABELS if name in settings} | {"row_weights": row_weights}
    limit = settings.pop("max_memory", None)
    if more.get("label_features") is not None:
        settings.setdefault("vectors", "pifa+features")
    if label_texts is not None:
        settings.setdefault("lexical", "auto")  # in every preset: texts of labels are nothing to trees
    how = How(settings_for(preset, **settings), checked_seed(seed), workers(threads), limit)
    how = replace(how, learn=_checked_learner(learner))
    described = LabelTexts.checked(label_texts)
    table = LabelTable.from_labels([*labels, list(described.keys)])
    if names is not None:
        table = table.with_names(names)
    checked_share(calibrate, len(texts))
    watch, text = Stopwatch(progress_for(progress)), text or TextFeatures()
    with checkpoint_in(checkpoint) as kept:
        if checkpoint is not None:
            weights = (
                {} if block_weights is None else {"block_weights": {n: float(w) for n, w in block_weights.items()}}
            )
            kept.same(data=hash_of_texts([*texts, *described.texts]), text={**text.facts(), **weights}, **how.facts())
        Y = table.matrix(labels)
        weigh = Weighing(block_weights, how.seed, threads, _block_quality(threads, how.max_memory))
        fitted, X = text_rows(texts, described.texts, text, Y, weigh, watch, kept)
        meaning = fitted.meaning
        problem = checked_problem(X, Y, words=None if meaning is None else fitted.words, **more)
        how = replace(how, calibrate=checked_share(calibrate, problem.rows))
        strings = string_sections(None if names is None else table.names, table.keys, problem.labels)
        described_rows = described.matrix(fitted, table, threads)
        blocks = None if meaning is None else meaning.blocks
        return _trained(problem, how, watch, strings, kept, fitted, described_rows, blocks)


def train_layers(
    X: MatrixLike,
    Y: LabelsLike,
    tree: Skeleton,
    settings: Settings | None = None,
    *,
    seed: int = 0,
    threads: int = 1,
    row_weights: npt.ArrayLike | None = None,
    negatives_matrix: LabelsLike | None = None,
    match: Match | None = None,
) -> list[Layer]:
    """Only the weights, for a tree that you have: a list of (parent, label or None), top to bottom."""
    problem = checked_problem(X, Y, row_weights=row_weights, negatives_matrix=negatives_matrix)
    chosen = settings if settings is not None else settings_for("fast")
    _check_fit(problem, chosen)
    matcher = match if match is not None else matcher_for(problem, chosen, threads)
    return list(layer_weights(problem, tree, chosen, seed=seed, threads=threads, match=matcher))


def _trained(
    problem: Problem,
    how: How,
    watch: Stopwatch,
    strings: Sections,
    checkpoint: Checkpoint,
    text: FittedText | None = None,
    label_texts: Any = None,
    blocks: FeatureBlocks | None = None,
) -> Model:
    """The model that a checked problem teaches: trees are built one after the other and put together once.

    label_texts: labels x features, what describes the labels themselves, or None.
    """
    settings = how.settings
    _check_fit(problem, settings)
    if not isinstance(checkpoint, Nowhere):
        checkpoint.same(labels=_hash_of_labels(problem, strings))
    needed = _bytes_needed(problem, how)
    _warn_of_labels_without_rows(problem, None if settings.lexical is False else label_texts)
    scaled = problem.with_unit_rows() if settings.unit_rows else problem
    parts = with_rows_of_label(
        grown_trees(scaled, how, watch, scaled is not problem, strings, checkpoint).parts(), problem.rows_of_label
    )
    member = _words(scaled, how, watch, label_texts, checkpoint)
    if member is not None:
        parts = with_words(parts, member.sections, member.index, member.head, member.told)
    if how.calibrate:
        with watch.stage("probabilities", how.calibrate):
            trees_of = partial(_trees_of, replace(how, settings=replace(settings, lexical=False)), checkpoint, "second")
            parts = with_probabilities(parts, scaled, label_texts, trees_of, how)
    if text is not None:
        parts = with_text(parts, text)
    parts = with_baselines(parts, baselines_of(problem.X, problem.Y))
    parts = replace(parts, shape=replace(parts.shape, blocks=blocks))
    return Model(parts, report=report_of(problem, how, watch, parts.shape, needed))


def _bytes_needed(problem: Problem, how: How) -> int:
    """What a training will take; one that takes more than there is is refused."""
    needed = estimated_bytes(problem, how.settings, how.threads)
    refuse_if_too_big(needed, available_bytes() if how.max_memory is None else how.max_memory, how.settings)
    return needed


def _trees_of(how: How, checkpoint: Checkpoint, name: str, smaller: Problem) -> ModelParts:
    """The trees of a smaller problem, whose rows are as trees see them; nothing is shown."""
    kept: Checkpoint = (
        checkpoint if isinstance(checkpoint, Nowhere) else Inner(checkpoint, name, _hash_of_rows(smaller))
    )
    return grown_trees(smaller, how, Stopwatch(progress_for(False)), False, {}, kept).parts()


def _words(problem: Problem, how: How, watch: Stopwatch, label_texts: Any, checkpoint: Checkpoint) -> Member | None:
    """The lexical member, if not ruled out; the trees that its head is fitted with are made like the model's."""
    settings = how.settings
    if settings.lexical is False:
        return None
    small = replace(
        settings,
        lexical=False,
        vectors="pifa",
        negatives="tfn" if settings.negatives == "user" else settings.negatives,
        tree=settings.tree if isinstance(settings.tree, str) else "balanced",
    )

    def trees_of(smaller: Problem) -> Model:
        return Model(_trees_of(replace(how, settings=small), checkpoint, "words", smaller))

    with watch.stage("words of labels", problem.rows):
        return lexical_member(problem, settings.lexical, label_texts, trees_of, how.seed, how.threads)


def _block_quality(threads: int | None, max_memory: int | None) -> Quality:
    """How well one narrow tree ranks with some weights of blocks: for each held-out row, 1 / rank of its labels."""
    how = How(settings_for("fast", unit_rows=True), 0, workers(threads), max_memory)

    def quality(X: Any, Y: Any, held_X: Any, held_Y: Any) -> Each:
        problem = checked_problem(X, Y).with_unit_rows()
        _bytes_needed(problem, how)
        model = Model(_trees_of(how, Nowhere(), "", problem))
        found, _ = model.topk(held_X, _RANKS, threads=how.threads)
        each: Each = (relevant(found, held_Y) / np.arange(1.0, _RANKS + 1)).sum(axis=1)
        return each

    return quality


def _hash_of_labels(problem: Problem, strings: Sections) -> str:
    """What a checkpoint knows labels, weights and negatives by, and what labels are called."""
    matrices = (problem.Y, problem.negatives, problem.label_features)
    return hash_of([hash_of_matrix(each) for each in matrices], problem.row_weights, *strings.values())


def _hash_of_rows(smaller: Problem) -> str:
    """What a checkpoint knows a smaller problem by."""
    return hash_of([hash_of_matrix(smaller.X), _hash_of_labels(smaller, {})])


def _checked_learner(learner: Learner | None) -> Learner | None:
    if learner is not None and not callable(learner):
        raise SettingsError(f"learner is a {type(learner).__name__}; expected a function, or None for this process.")
    return learner


def _check_fit(problem: Problem, settings: Settings) -> None:
    if settings.negatives == "user" and problem.negatives is None:
        raise SettingsError(
            "negatives is 'user' without a matrix; expected one. Pass negatives_matrix (rows x labels), or use 'tfn'."
        )
    if settings.negatives != "user" and problem.negatives is not None:
        raise SettingsError(
            f"negatives_matrix is given; expected none with negatives={settings.negatives!r}. "
            "Leave it out or set negatives='user'."
        )
    if (settings.vectors == "pifa") != (problem.label_features is None):
        found = "without" if problem.label_features is None else "with"
        raise SettingsError(
            f"vectors is {settings.vectors!r} {found} label_features; expected them with 'features' and "
            "'pifa+features', none with 'pifa'."
        )
    if settings.tree == "given":
        raise SettingsError(
            "tree is 'given', which only names a tree in a saved model; expected its parent list. Pass it as tree."
        )


def _warn_of_labels_without_rows(problem: Problem, label_texts: Any) -> None:
    without = problem.rows_of_label == 0
    if label_texts is not None:
        without = without & (np.diff(label_texts.indptr) == 0)
    if without.any():
        what = "row" if label_texts is None else "row and no word of a text"
        warn(f"{int(without.sum())} of {problem.labels} labels have no {what}: they stay and rank last")
