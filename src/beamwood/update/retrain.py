"""retrain.py — a model and all rows, old and new, in; a model with the same trees whose weights were learned anew out.

What is kept: the shape of each tree, the text features, the settings, and the head. So neither labels are hosted nor
is it found out once more whether words help. The solver starts from nothing: it works on a number per row (the dual
variables), and no model holds those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.engine import Forests
from beamwood.errors import DataError, SettingsError, warn
from beamwood.lexical.words import k1_of, word_counts, word_weights
from beamwood.storage.assemble import with_rows_of_label
from beamwood.storage.build import Sections
from beamwood.storage.layers import Nodes
from beamwood.storage.parts import ModelParts
from beamwood.training.checkpoint import Nowhere
from beamwood.training.memory import available_bytes, estimated_bytes, refuse_if_too_big
from beamwood.training.problem import Problem
from beamwood.training.report import Report, Stopwatch
from beamwood.training.settings import Settings
from beamwood.training.trees import How, grown_trees, report_of
from beamwood.training.weights import Skeleton
from beamwood.update import words
from beamwood.update.given import Labelled, labelled
from beamwood.update.hosts import Hosts, labels_of
from beamwood.update.labels import known_of, placed
from beamwood.update.stored import StoredTree
from beamwood.update.strings import with_more


def retrained(
    parts: ModelParts, X: Any, Y: Any, keys: Any, names: Any, seed: int, threads: int, watch: Stopwatch
) -> tuple[ModelParts, Report]:
    """The model of the same trees; see Model.retrain."""
    settings = _settings(parts)
    if X is None or Y is None:
        raise DataError(f"{'X' if X is None else 'Y'} is None; expected all rows to learn from, and their labels.")
    with watch.stage("rows", 0):
        given = labelled(known_of(parts), X, Y, keys, names, None, threads, whole=True)
        problem = replace(_problem(given), words=parts.shape.words)
    how = How(settings, seed, threads, None)
    needed = estimated_bytes(problem, settings, threads)
    refuse_if_too_big(needed, available_bytes(), settings)
    with watch.stage("places of labels", problem.rows):
        shapes = _shapes(parts, given, threads)
    strings: Sections = {n: a for n, a in parts.sections.items() if n.startswith(("keys/", "names/"))}
    strings |= with_more(parts.sections, parts.shape.labels, given.keys, given.names) if given.new else {}
    grown = grown_trees(problem, how, watch, parts.shape.unit_rows, strings, Nowhere(), shapes)
    fresh = with_rows_of_label(grown.parts(), problem.rows_of_label)
    sections = dict(fresh.sections) | {n: a for n, a in parts.sections.items() if n.startswith("text/")}
    shape = replace(
        parts.shape,
        labels=problem.labels,
        trees=fresh.shape.trees,
        settings=settings.to_dict(),
        cut=None,
        calibration=None,
        updates=None,
    )
    if shape.head is not None:
        with watch.stage("words of labels", problem.rows):
            lists, index = words.sections_of(parts, _words(parts, problem), threads)
            sections, shape = sections | lists, replace(shape, index=index)
    return ModelParts(shape, sections), report_of(problem, how, watch, replace(shape, lexical=None), needed)


def _settings(parts: ModelParts) -> Settings:
    """The settings of a model that can be trained with them once more."""
    if not parts.shape.trees:
        raise SettingsError("This model is an index without trees; expected one that was trained. Index anew.")
    if not parts.shape.settings:
        raise SettingsError(
            "This model was made elsewhere and holds no settings; expected one that beamwood trained. Use train."
        )
    plain = {**parts.shape.settings, "tree": "balanced", "vectors": "pifa", "trees": len(parts.shape.trees)}
    settings = Settings.from_dict(plain)
    if settings.negatives == "user":
        raise SettingsError("This model was trained with negatives of yours; expected another kind. Use train.")
    return replace(settings, tree=_tree_word(parts.shape.settings.get("tree")))


def _tree_word(word: Any) -> str:
    return word if isinstance(word, str) else "given"


def _problem(given: Labelled) -> Problem:
    """Rows that have labels, of the model or new."""
    Y = sp.csr_matrix(sp.hstack([given.known, given.Y], format="csr"))
    teaching = np.flatnonzero(np.diff(Y.indptr) > 0)
    if not len(teaching):
        raise DataError("Y is empty, no row has a label; expected something to learn. Check how Y was made.")
    problem = Problem(given.X[teaching], Y[teaching])
    if problem.labels_without_rows:
        warn(f"{problem.labels_without_rows} of {problem.labels} labels have no row: they stay and rank last")
    return problem


def _shapes(parts: ModelParts, given: Labelled, threads: int) -> list[Skeleton]:
    """The shape of each tree, with new labels in the hosts that searches for their rows come by."""
    forests = Forests(parts)
    shapes: list[Skeleton] = []
    has = np.flatnonzero(np.diff(given.Y.indptr) > 0)
    rows = Problem(given.X[has], given.Y[has])
    for tree in range(len(parts.shape.trees)):
        stored = StoredTree(parts, forests, tree)
        nodes = stored.nodes
        if given.new:
            hosts = Hosts.of(nodes)
            home, _ = placed(rows, stored, hosts, parts, threads)
            blank = sp.csc_array((parts.shape.features, given.new), dtype=np.float32)
            nodes, _ = hosts.grafted(nodes, home, blank, np.zeros(given.new, np.float32))
        shapes.append([_sorted(nodes, depth) for depth in range(len(nodes))])
    return shapes


def _sorted(layers: Sequence[Nodes], depth: int) -> tuple[Any, Any]:
    label = labels_of(layers, depth)
    return np.asarray(layers[depth].parent, np.int64), label if (label >= 0).any() else None


def _words(parts: ModelParts, problem: Problem) -> Any:
    """Weights of the words of all labels; those that have no row keep the words that they have."""
    counts = word_counts(problem.word_rows, problem.Y)
    made = word_weights(counts, k1_of(parts.shape.lexical))
    old = words.weights_in(parts)
    more = sp.csr_array((problem.labels - old.shape[0], old.shape[1]), dtype=np.float32)
    without = (problem.rows_of_label == 0).astype(np.float32)
    kept = sp.csr_array(sp.diags_array(without) @ sp.vstack([old, more], format="csr"))
    return sp.csr_array(made + kept)
