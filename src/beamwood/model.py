"""model.py — trees in, the public object that answers queries out: how models are made, changed, saved, explained."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.engine import Engine, Forests, Searcher, isas_here
from beamwood.errors import DataError, SettingsError
from beamwood.explain import Explainer, Explanation, Telling, trees_that_reach, unit_row
from beamwood.hub.fetch import local_path
from beamwood.inputs.arguments import checked_text, cores, positive, whole_below, workers
from beamwood.inputs.label_matrix import LabelsLike, label_matrix
from beamwood.inputs.matrices import RowsLike, as_csr
from beamwood.lexical.explained import listed_by_words
from beamwood.life.calibration import Calibration
from beamwood.life.changing import Changing
from beamwood.life.truth import Queries, Truth, rows_and_all_truth
from beamwood.metrics import Metrics, checked_ranks, evaluate
from beamwood.storage import assemble, pickling, store
from beamwood.storage.activations import Activation
from beamwood.storage.compress import Compression, compressed
from beamwood.storage.layers import Layer
from beamwood.storage.loading import load_parts
from beamwood.storage.parts import ModelParts
from beamwood.training.report import Report
from beamwood.update.labels import LabelUpdate

MEASURED = (1, 3, 5, 10)  # ranks at which compress measures precision


class Model(Changing):
    """One or several trees with their weights, and names for the labels. Made by train, load or from_layers."""

    def __init__(
        self,
        parts: ModelParts,
        engine: Engine | None = None,
        report: Report | Compression | Calibration | LabelUpdate | None = None,
        forests: Forests | None = None,
    ) -> None:
        """For the makers of models; use train, load, from_layers or from_trees instead.

        forests: those of a model with the same trees, where there is one.
        """
        super().__init__(parts, engine or Engine(), forests, report)

    @classmethod
    def from_layers(
        cls,
        layers: Sequence[Layer],
        *,
        activation: str = "sigmoid",
        path: str | None = None,
        discount: float = 1.0,
        unit_rows: bool = False,
        names: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        settings: dict[str, Any] | None = None,
    ) -> Model:
        """A model of one tree from its layers, top to bottom (see Layer).

        path: how scores are put together; "log-exp" adds log scores and shows exp at the leaf.
        discount: with "log-exp", what a node's score is multiplied by before its children add theirs.
        unit_rows: queries are divided by their length (the l2 norm) first.
        names are shown to people; keys are unique strings that name a label (default: the names).
        """
        parsed = Activation.parse(activation, path, discount)
        return cls(assemble.from_layers(layers, parsed, unit_rows, names, keys, settings or {}))

    @classmethod
    def from_trees(cls, models: Sequence[Model], *, settings: dict[str, Any] | None = None) -> Model:
        """An ensemble: scores are the mean over the trees of all models given. Names and keys are the first one's."""
        if not isinstance(models, (list, tuple)) or not all(isinstance(model, Model) for model in models):
            raise DataError(f"models is a {type(models).__name__}; expected a list of beamwood.Model.")
        return cls(assemble.ensemble([model.parts for model in models], settings))

    def layers(self, tree: int = 0) -> list[Layer]:
        """The layers that from_layers would make this tree from, bit for bit."""
        trees = len(self._parts.shape.trees)
        if trees == 0:
            raise SettingsError("This model is an index and has no layers; expected one that was trained. Use info().")
        return self._forests.layers(whole_below(tree, trees, "tree"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to one file. The file there before is replaced when the new one is complete, or stays.

        The file keeps its permissions; a symbolic link stays and the file that it leads to is replaced.
        Every engine of a model writes the same file: its arrays are mapped and used in place when it is loaded.
        """
        store.write_file(path, *self._parts.contents())

    def push_to_hub(
        self,
        repo: str,
        *,
        data: str | None = None,
        measures: Any = None,
        license: str | None = None,
        language: str | Sequence[str] | None = None,
        card: str | None = None,
        **how: Any,
    ) -> str:
        """Writes the model and its card to a repository (org/name) on a hub; the address that `load` takes is returned.

        data, measures, license, language: what the card says beside what the model knows (see `beamwood.hub.card`).
        card: a text of your own in its place. how: file ("model.bw"), revision (a branch), private, token, message.
        The repository is made where it is not there. Needs the extra `hub`; log in with `hf auth login` or `HF_TOKEN`.
        """
        from beamwood.hub.repository import pushed_with_card

        says = {"data": data, "measures": measures, "license": license, "language": language}
        return pushed_with_card(self, repo, card, says, **how)

    def compress(
        self,
        weights: str = "u8",
        *,
        top: int | None = None,
        threshold: float | None = None,
        measure: tuple[RowsLike, LabelsLike] | None = None,
    ) -> Model:
        """A smaller model whose `report` says what that cost: bytes, errors of weights and, measured, precision.

        weights: "f16" (half the bits), "u8" (a quarter, in steps of a scale for each chunk) or "f32" (as they are).
        top: keep so many of the largest weights of each node. threshold: drop weights smaller than this.
        measure: a pair (X, Y) of queries and their true labels to measure precision on, before and after.
        The new weights are definite numbers: every engine gives the same bits on them.
        """
        if measure is not None and (not isinstance(measure, tuple | list) or len(measure) != 2):
            raise SettingsError(
                f"measure is a {type(measure).__name__}; expected a pair of matrices. Give queries and their true "
                "labels: measure=(X, Y)."
            )
        with store.reading(self._parts.sections):
            parts, lost = compressed(self._parts, weights, top, threshold)
        small = Model(parts, self._engine, lost)
        if measure is None:
            return small
        before, after = (_precision(model, *measure) for model in (self, small))
        return Model(parts, self._engine, replace(lost, precision_before=before, precision_after=after))

    def using(
        self,
        *,
        matcher: str | None = None,
        layout: str | None = None,
        isa: str | None = None,
        bound: bool | None = None,
    ) -> Model:
        """The same model behind another engine; what is not given stays as it is. Every engine gives the same bits.

        matcher: march, binary, hash, dense; layout: cascade, chunk, column; isa: scalar, avx2, avx512, neon;
        each also auto.
        auto is the cascade layout, which needs no matcher and uses the model as it is. Chunks and columns are built
        beside it, and a matcher without a layout means chunks. bound=False opens every node of the beam, also those
        that can contribute nothing, for comparison.
        """
        asked = (("matcher", matcher), ("layout", layout), ("isa", isa), ("bound", bound))
        given: dict[str, Any] = {name: value for name, value in asked if value is not None}
        return Model(self._parts, replace(self._engine, **given), self._report, self._forests)

    def evaluate(
        self,
        X: Queries,
        Y: Truth,
        at: Sequence[int] = (1, 3, 5, 10),
        *,
        beam: int | None = None,
        threads: int | None = None,
    ) -> Metrics:
        """How well it ranks: precision, recall, nDCG with standard errors, recall of frequent and of rare labels.

        X, Y: matrices, or texts and lists of label keys, of rows that it was not trained on. Labels that the model does
        not have count as missed. What is measured is said in `Metrics`.
        """
        rows, truth = rows_and_all_truth(self, X, Y)
        k = min(checked_ranks(at)[-1], self.n_labels)
        answers = self.topk(rows, k=k, beam=beam, threads=workers(threads))
        answers[0][np.diff(rows.indptr) == 0] = -1
        return evaluate(answers, truth, at, rows_of_label=self.rows_of_label)

    def explain(
        self, query: str | RowsLike, label: str | int, *, beam: int | None = None, words: int = 10
    ) -> Explanation:
        """Why a label (its key or number) scores as it does for a text or a row: every product on its path.

        Added in order, the numbers give the score bit for bit: the one of a beam that drops nothing, or, for several
        trees, the one that topk gives with this `beam`. words: so many of each node's largest weights are named.
        """
        row, number = self._row(query), self._strings.number(label)
        if words:
            positive(words, "words")
        trees = list(range(len(self._parts.shape.trees)))
        listed = True
        if beam is not None and trees:
            trees = trees_that_reach(self._parts, self._each_tree, row, number, positive(beam, "beam"))
            listed = bool(trees) and self._is_listed(row, number, beam)
            if not listed and not self._has_words_of(row, number):
                raise DataError(
                    f"Label {label!r} is not reached with beam={beam}; expected a label that topk finds. Use a wider "
                    "beam, or beam=None for the score of one that drops nothing."
                )
        named = (number, self.key(number), self.name(number))
        with store.reading(self._parts.sections):
            return self._explainer.explanation(named, row, trees, words, listed)

    def _is_listed(self, row: Any, label: int, beam: int) -> bool:
        """Whether the trees list a label among their candidates; without words every label that they reach is one."""
        head = self._parts.shape.head
        if head is None:
            return True
        only = Forests(assemble.trees_only(self._parts)).searcher(Engine())
        found = only.topk(row, min(head.candidates, self.n_labels), beam, 1, False)[0]
        return bool((found == label).any())

    def _has_words_of(self, row: Any, label: int) -> bool:
        """Whether a label is among the candidates of the words."""
        head = self._parts.shape.head
        if head is None:
            return False
        row = unit_row(row) if self._parts.shape.unit_rows else row
        return listed_by_words(self._forests.postings, row, min(head.candidates, self.n_labels), label)

    @cached_property
    def _each_tree(self) -> list[Searcher]:
        """Searchers of each tree for itself."""
        trees = range(len(self._parts.shape.trees))
        if len(trees) == 1:
            return [self._searcher]
        return [Forests(assemble.one_tree(self._parts, tree)).searcher(Engine()) for tree in trees]

    def words(self, tree: int, layer: int, node: int, n: int = 10) -> tuple[Telling, ...]:
        """The n largest weights of a node, numbered as in layers(tree)[layer]: the words that lead to it."""
        return self._explainer.words(tree, layer, node, positive(n, "n"))

    @cached_property
    def _explainer(self) -> Explainer:
        text = self._text
        numbered = (lambda j: f"feature {j}") if self.blocks is None else self.blocks.feature
        word = numbered if text is None else text.term
        return Explainer(self._forests.cascade, self._parts, word, self._forests.postings)

    def _row(self, query: str | RowsLike) -> Any:
        """One text or one row as canonical CSR of one row."""
        if isinstance(query, str):
            return as_csr(self._fitted_text().transform([checked_text(query)]), self.n_features, "The text")
        row = as_csr(query, self.columns, "The query")
        if row.shape[0] != 1:
            raise DataError(f"The query has {row.shape[0]:,} rows; expected one. Give a text, or X[[i]].")
        return row

    @property
    def parts(self) -> ModelParts:
        """The arrays and numbers inside, for modules of beamwood: may change from one version to the next."""
        return self._parts

    @property
    def postings(self) -> _core.Postings | None:
        """The inverted lists inside, for modules of beamwood: may change from one version to the next."""
        return self._forests.postings

    @property
    def searcher(self) -> Searcher:
        """The engine inside, for modules of beamwood: may change from one version to the next."""
        return self._searcher

    @property
    def report(self) -> Report | Compression | Calibration | LabelUpdate | None:
        """How the training, compression, calibration or update in this process went; None for one that was loaded."""
        found: Report | Compression | Calibration | LabelUpdate | None = self._report
        return found

    @property
    def version(self) -> str:
        """The checksum of the model's file: of the one it was loaded from, or of the one that save would write.

        Models that hold the same have the same version, whichever engine they use. A model with other names, text
        features or weights has another one. Of a model that was not loaded it is worked out when first asked for.
        """
        return self._parts.version

    @property
    def rows_of_label(self) -> npt.NDArray[np.uint32] | None:
        """How many training rows had each label, where the model knows."""
        return self._parts.rows_of_label

    @property
    def settings(self) -> dict[str, Any]:
        """The settings the model was trained with."""
        return dict(self._parts.shape.settings)

    @property
    def notes(self) -> dict[str, str]:
        """What was written on the model: see `with_notes`."""
        return dict(self._parts.shape.notes)

    def info(self) -> dict[str, Any]:
        """Labels, features, depth, non-zeros, bytes by section, engine and settings."""
        return {**self._parts.info(), "engine": asdict(self._engine)}

    def plot_tree(self) -> Any:
        """A matplotlib figure of the nodes, widths and non-zeros of each layer. Needs the extra `plot`."""
        if not self._parts.shape.trees:
            raise SettingsError("This model is an index without trees; expected one that was trained. Use info().")
        from beamwood.plot import plot_tree

        return plot_tree(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """For pickle: the path and version of the file that it is mapped from, or else the bytes of its file.

        From protocol 5 on the bytes are a buffer, which pickle can hand over without a copy.
        """
        state: dict[str, Any] = {"engine": asdict(self._engine), "report": self._report}
        mapped = pickling.reference(self._parts)
        if mapped is not None:
            return _unpickled, (mapped, state)
        data = store.to_bytes(*self._parts.contents())
        return _unpickled, (pickle.PickleBuffer(data) if protocol >= 5 else data, state)

    def __copy__(self) -> Model:
        """Itself: a model never changes."""
        return self

    def __deepcopy__(self, memo: Any) -> Model:
        """Itself, for the same reason."""
        return self

    def __repr__(self) -> str:
        shape = self._parts.shape
        trees = f"{len(shape.trees)} tree" + "s" * (len(shape.trees) > 1) if shape.trees else "exact index"
        size = f"{shape.labels:,} labels, {shape.features:,} features"
        return f"<beamwood.Model: {size}, {trees}, {shape.activation.name}>"


def load(
    path: str | os.PathLike[str],
    memory: str = "map",
    verify: bool = False,
    *,
    tokenizer: Any = None,
    encoder: Any = None,
) -> Model:
    """A model from its file, ready at once: the file is mapped and read where queries lead.

    path: a file, or an address, which is fetched into a cache first: hf://org/name (needs the extra `hub`) or
    https://…#sha256=… (see `beamwood.hub.fetch`).
    memory: "map" shares the file's pages with other processes; "read" copies it; "huge" copies it into huge pages.
    verify: read everything once and compare checksums.
    tokenizer: the function that finds words, of a model that was trained with one of your own.
    encoder: the one that makes vectors of texts, a function or a name, where the model cannot open it by itself.

    >>> import beamwood as bw
    >>> bw.index_text(["wool socks", "boots"], keys=["socks", "boots"]).save("shop.bw")
    >>> bw.load("shop.bw").search("socks", k=1)[0].key
    'socks'
    """
    parts = load_parts(local_path(path), memory, verify)
    parts = parts if tokenizer is None else parts.with_tokenizer(tokenizer)
    return Model(parts if encoder is None else parts.with_encoder(encoder))


def _unpickled(carried: Any, state: dict[str, Any]) -> Model:
    """The inverse of Model.__reduce_ex__: the same answers, with the same engine where this machine has it."""
    mapped = isinstance(carried, tuple)
    parts = pickling.from_reference(*carried) if mapped else pickling.from_bytes(carried)
    engine = state["engine"]
    if engine["isa"] not in isas_here():
        engine = {**engine, "isa": "auto"}
    return Model(parts, Engine(**engine), state["report"])


def _precision(model: Model, X: RowsLike, Y: LabelsLike) -> dict[int, float]:
    """Precision at each rank, in percent, with the model's own beam."""
    truth = label_matrix(Y, "Y", labels=model.n_labels)
    if truth.shape[1] != model.n_labels:
        raise DataError(
            f"Labels to measure on have shape {truth.shape}; expected a row for each query and "
            f"{model.n_labels:,} columns, one per label. Give measure=(X, Y) with the labels that the model has."
        )
    found = evaluate(model.topk(X, k=max(MEASURED), threads=cores()), truth, at=MEASURED)
    return {rank: 100 * float(found.precision[rank]) for rank in MEASURED}
