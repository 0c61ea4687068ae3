"""labels.py — the parts of a model and labels that come, go or are renamed in, the parts of the new model out.

The law: what stays keeps its weights bit for bit. Keys are stable; numbers are not: new labels are numbered on from the
old ones, and when labels go, those behind them move up. Adding labels and removing them again gives the same file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.engine import Forests
from beamwood.errors import DataError, SettingsError, warn
from beamwood.inputs.arguments import cores, holds_values, one_by_one
from beamwood.inputs.matrices import empty_rows
from beamwood.storage.build import Sections, TreeSize, build_tree
from beamwood.storage.label_strings import LabelStrings
from beamwood.storage.layers import Nodes
from beamwood.storage.parts import ModelParts
from beamwood.training.problem import Problem
from beamwood.training.report import Stopwatch
from beamwood.update import words
from beamwood.update.given import Known, Labelled, labelled
from beamwood.update.history import counted
from beamwood.update.hosts import Hosts, without
from beamwood.update.learn import new_leaves, settings_of
from beamwood.update.place import came_by, homes
from beamwood.update.stored import StoredTree
from beamwood.update.strings import renamed, with_fewer, with_more


@dataclass(frozen=True)
class LabelUpdate:
    """What an update did: labels that came and went, rows that were learned from, (stage, seconds) as they ran.

    unknown: new labels of which the model knows no word or feature: they are there, and rank last.
    """

    added: int
    removed: int
    rows: int
    unknown: int
    seconds: tuple[tuple[str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain values that JSON can hold."""
        return {**asdict(self), "seconds": [list(stage) for stage in self.seconds]}


def known_of(parts: ModelParts) -> Known:
    """What a model knows of its labels and features."""
    shape = parts.shape
    has_keys = "keys/offsets" in parts.sections
    return Known(
        shape.columns, shape.features, shape.labels, LabelStrings(parts), has_keys, parts.text(), shape.unit_rows
    )


def with_labels(
    parts: ModelParts, X: Any, Y: Any, keys: Any, names: Any, texts: Any, seed: int, threads: int, watch: Stopwatch
) -> tuple[ModelParts, LabelUpdate]:
    """The model with new labels; see Model.add_labels."""
    _check_changeable(parts, "Labels can be added")
    with watch.stage("rows of new labels", 0):
        given = labelled(known_of(parts), X, Y, keys, names, texts, threads)
        _check_some(given)
    shape = parts.shape
    problem, learning = _problem(parts, given)
    unknown = _warn_of_unknown(given, problem)
    forests = Forests(parts)
    sections: Sections = {n: a for n, a in parts.sections.items() if not n.startswith("tree")}
    sizes: list[TreeSize] = []
    settings = settings_of(shape, parts.rows_of_label, problem)
    for tree in range(len(shape.trees)):
        with watch.stage(f"tree {tree + 1}/{len(shape.trees)}", problem.rows):
            stored = StoredTree(parts, forests, tree)
            hosts = Hosts.of(stored.nodes)
            home, found = placed(problem, stored, hosts, parts, threads)
            how = replace(settings, bias=0.0) if _without_bias(stored.nodes, hosts) else settings
            weights, bias = new_leaves(problem, learning, stored, hosts, home, found, how, seed + tree, threads)
            arrays, size = stored.grown(*hosts.grafted(stored.nodes, home, weights, bias), cores())
        sections |= arrays
        sizes.append(size)
    shape = replace(counted(shape, added=given.new), trees=tuple(sizes))
    with watch.stage("words and names", problem.rows):
        sections |= with_more(parts.sections, parts.shape.labels, given.keys, given.names)
        sections |= _counts(parts, given)
        if parts.shape.head is not None:
            old = words.weights_in(parts)
            more = words.of_new(parts, old, given.X, given.Y, given.texts)
            lists, index = words.sections_of(parts, sp.vstack([old, more], format="csr"), threads)
            sections = {n: a for n, a in sections.items() if not n.startswith("index/")} | lists
            shape = replace(shape, index=index)
    report = LabelUpdate(given.new, 0, problem.rows, unknown, tuple(watch.seconds))
    return ModelParts(shape, sections), report


def placed(
    problem: Problem, stored: StoredTree, hosts: Hosts, parts: ModelParts, threads: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The host of each new label in a tree, and the hosts in the beam of each row."""
    activation = parts.shape.activation
    router = hosts.router(stored, activation)
    found, says = came_by(router, problem.X, activation.path, threads)
    return homes(found, says, problem.Y, hosts.children), found


def without_labels(parts: ModelParts, labels: Any, threads: int) -> tuple[ModelParts, LabelUpdate]:
    """The model without some labels; see Model.remove_labels."""
    _check_changeable(parts, "Labels can be removed")
    shape = parts.shape
    gone = _numbers(labels, LabelStrings(parts))
    stays = np.ones(shape.labels, bool)
    stays[gone] = False
    if not stays.any():
        raise DataError(f"labels has all {shape.labels:,} labels of the model; expected one to stay at least.")
    forests = Forests(parts)
    sections: Sections = {n: a for n, a in parts.sections.items() if not n.startswith("tree")}
    sizes: list[TreeSize] = []
    for tree in range(len(shape.trees)):
        arrays, size, _ = build_tree(without(forests.layers(tree), stays), tree, shape.features, cores(), shape.weights)
        sections |= arrays
        sizes.append(size)
    sections |= with_fewer(parts.sections, stays)
    for name in ("rows_of_label", "cut/least"):
        if name in sections:
            sections[name] = np.ascontiguousarray(sections[name][stays])
    past = shape.updates or {"added": 0}
    added = int((~stays[shape.labels - past["added"] :]).sum())
    removed = int((~stays).sum())
    fresh = replace(counted(shape, removed=removed, removed_of_added=added), trees=tuple(sizes))
    if shape.head is not None:
        lists, index = words.sections_of(parts, words.weights_in(parts)[stays], threads)
        sections = {n: a for n, a in sections.items() if not n.startswith("index/")} | lists
        fresh = replace(fresh, index=index)
    return ModelParts(fresh, sections), LabelUpdate(0, removed, 0, 0, ())


def with_new_names(parts: ModelParts, names: Any) -> ModelParts:
    """The model with other names for some labels; see Model.rename."""
    if not isinstance(names, Mapping):
        raise DataError(f"names is a {type(names).__name__}; expected a mapping from label keys to names.")
    strings = LabelStrings(parts)
    chosen: dict[int, str] = {}
    for label, name in names.items():
        if not isinstance(name, str):
            raise DataError(f"the name of label {label!r:.60} is a {type(name).__name__}; expected a str.")
        chosen[strings.number(label)] = name
    kept = {n: a for n, a in parts.sections.items() if not n.startswith("names/")}
    return ModelParts(parts.shape, kept | renamed(strings, parts.shape.labels, chosen))


def _check_changeable(parts: ModelParts, what: str) -> None:
    if not parts.shape.trees:
        raise SettingsError(f"This model is an index without trees; {what.lower()} where there are some. Index anew.")
    if parts.shape.weights != "f32":
        raise SettingsError(
            f"This model has {parts.shape.weights} weights; expected f32, which can be kept as they are. Update the "
            "model it was compressed from, and compress that one."
        )


def _check_some(given: Labelled) -> None:
    if not given.new:
        raise DataError(
            "There is no new label: the model has all that the rows have; expected at least one. For more rows of "
            "labels that it has use retrain."
        )
    without_rows = given.rows_of_new == 0
    if given.texts is not None:
        without_rows &= np.diff(given.texts.indptr) == 0
    bare = np.flatnonzero(without_rows)
    if len(bare):
        which = f"column {bare[0]}" if given.keys is None else repr(given.keys[bare[0]])[:60]
        raise DataError(
            f"{len(bare):,} new labels have no row and no text with a word of the model, {which} first; expected "
            "something to find them by. Leave them out, or give rows or texts."
        )


def _problem(parts: ModelParts, given: Labelled) -> tuple[Problem, Any]:
    """Rows with their new labels, and with their old ones; a label with only a text learns from that.

    In a model that ranks by words too, a label without rows is found by its words.
    """
    X, Y, known = given.X, given.Y, given.known
    if given.texts is not None and parts.shape.head is None:
        lonely = np.flatnonzero(given.rows_of_new == 0)
        X = sp.vstack([X, given.texts[lonely]], format="csr")
        ones = (np.ones(len(lonely), np.float32), (np.arange(len(lonely)), lonely))
        Y = sp.vstack([Y, sp.csr_matrix(ones, shape=(len(lonely), given.new))], format="csr")
        known = sp.vstack([known, empty_rows(len(lonely), known.shape[1])], format="csr")
    filled = np.flatnonzero(np.diff(X.indptr) > 0)
    rows = sp.csr_matrix(X)[filled], sp.csr_matrix(Y)[filled]
    return Problem(*rows), sp.csr_matrix(known)[filled]


def _warn_of_unknown(given: Labelled, problem: Problem) -> int:
    """Says how many new labels have rows of which the model knows nothing."""
    unknown = int(((problem.rows_of_label == 0) & (given.rows_of_new > 0)).sum())
    if unknown:
        warn(f"{unknown} of {given.new} new labels have only rows without a feature of the model: they rank last")
    return unknown


def _without_bias(layers: list[Nodes], hosts: Hosts) -> bool:
    """Whether the leaves of a tree have no bias, so that new ones should have none."""
    return all(layers[depth].bias is None for depth in np.unique(hosts.depth) + 1)


def _counts(parts: ModelParts, given: Labelled) -> Sections:
    """Numbers that each label has one of, with those of new labels; a new label has no cut of its own."""
    made: Sections = {}
    rows = parts.rows_of_label
    if rows is not None:
        made["rows_of_label"] = np.concatenate([rows, given.rows_of_new.astype(np.uint32)])
    if "cut/least" in parts.sections:
        made["cut/least"] = np.concatenate([parts.sections["cut/least"], np.full(given.new, np.nan, np.float32)])
    return made


def _numbers(labels: Any, strings: LabelStrings) -> npt.NDArray[np.int64]:
    """Keys or numbers as numbers; which of them the model does not have is said."""
    if isinstance(labels, (str, bytes)) or not holds_values(labels):
        raise DataError(f"labels is a {type(labels).__name__}; expected a list of label keys or numbers.")
    numbers = np.array([strings.number(label) for label in one_by_one(labels)], np.int64)
    if not len(numbers):
        raise DataError("labels is empty; expected the keys or numbers of the labels to remove.")
    return numbers
