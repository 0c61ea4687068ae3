"""changing.py — a model and what is to be different in, a new model out: names, probabilities, cuts, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from beamwood.engine import Engine, Forests
from beamwood.inputs.arguments import positive, workers
from beamwood.inputs.text import FittedText
from beamwood.life import fit as life
from beamwood.life.truth import Queries, Truth
from beamwood.ranker import Ranker
from beamwood.storage import assemble
from beamwood.storage.parts import ModelParts
from beamwood.training.progress import Progress, progress_for
from beamwood.training.report import Stopwatch
from beamwood.training.settings import checked_seed
from beamwood.update import labels as update
from beamwood.update.retrain import retrained

if TYPE_CHECKING:  # in typing from Python 3.11 on
    from typing_extensions import Self


class Changing(Ranker):
    """The part of a model that makes others of it: each method gives a new model and leaves this one as it is."""

    def __init__(self, parts: ModelParts, engine: Engine, forests: Forests | None, report: Any) -> None:
        """report: how the last change went, where it was made in this process."""
        super().__init__(parts, engine, forests)
        self._report = report

    def _changed(self, parts: ModelParts, report: Any) -> Self:
        """A model with other parts but the same trees."""
        return type(self)(parts, self._engine, report=report, forests=self._forests)

    def _with_trees(self, parts: ModelParts, report: Any) -> Self:
        """A model with other trees."""
        return type(self)(parts, self._engine, report=report)  # type: ignore[call-arg]

    def with_names(self, names: Sequence[str] | None = None, keys: Sequence[str] | None = None) -> Self:
        """The same model with other names for people, or other unique keys, one for each label.

        Keys stay as they are unless others are given; a model without keys takes the names for them.
        """
        return self._changed(assemble.with_names(self._parts, names, keys), self._report)

    def with_text(self, text: FittedText) -> Self:
        """The same model, with the text features that its columns were made with: it can then search."""
        return self._changed(assemble.with_text(self._parts, text), self._report)

    def with_tokenizer(self, tokenizer: Any) -> Self:
        """The same model with the function that finds the words of its texts, which no file can hold.

        One that finds other words than the function it was trained with is refused.
        """
        return self._changed(self._parts.with_tokenizer(tokenizer), self._report)

    def with_encoder(self, encoder: Any) -> Self:
        """The same model with the encoder that makes vectors of its texts, a function or a name: no file can hold it.

        One that makes other vectors than the one it was trained with is refused.
        """
        return self._changed(self._parts.with_encoder(encoder), self._report)

    def with_rows_of_label(self, counts: npt.ArrayLike) -> Self:
        """The same model, with the number of training rows that have each label."""
        return self._changed(assemble.with_rows_of_label(self._parts, counts), self._report)

    def with_unit_rows(self) -> Self:
        """The same model, for which queries are divided by their length first."""
        return self._with_trees(assemble.with_unit_rows(self._parts), self._report)

    def with_beam(self, beam: int) -> Self:
        """The same model, which keeps so many nodes per layer in every search that does not say how many."""
        return self._changed(assemble.with_beam(self._parts, beam), self._report)

    def with_notes(self, notes: Mapping[str, str]) -> Self:
        """The same model with what you write on it: a date, which data, a comment. `notes` has it, its file too.

        A note replaces the one of the same name, and an empty text takes it away. Nothing is written by itself: the
        same training gives the same file.
        """
        return self._changed(assemble.with_notes(self._parts, notes), self._report)

    def calibrate(self, X: Queries, Y: Truth, *, threads: int | None = None) -> Self:
        """The same model, which knows how probable its answers are: fitted on these rows and their true labels.

        X, Y: matrices, or texts and lists of label keys; rows like those that will be asked, which it was not trained
        on, some thousand or more. No ranking changes. A cut that was stored goes. `report` says how far scores
        and probabilities are from the truth.
        """
        parts, report = life.calibrated(self, self._parts, X, Y, workers(threads))
        return self._changed(parts, report)

    def cut(
        self, X: Queries, Y: Truth, *, for_: str = "f1", per: str = "model", k: int = 100, threads: int | None = None
    ) -> Self:
        """The same model with a stored threshold, for answers of as many labels as apply: topk(…, threshold=True).

        for_: "f1" (micro), "precision>=0.8" (as many labels as that leaves) or "recall>=0.9" (as few). per: "model",
        or "label" for a threshold of its own where a label has shown enough. It is on probabilities where the model is
        calibrated, on scores where not; `threshold` holds it, with what it reached on these rows (see `calibrate` for
        which ones to give). k: labels per row that are looked at.
        """
        parts = life.with_cut(self, self._parts, X, Y, for_, per, positive(k, "k"), workers(threads))
        return self._changed(parts, self._report)

    def add_labels(
        self,
        X: Any = None,
        Y: Any = None,
        *,
        keys: Sequence[str] | None = None,
        names: Mapping[str, str] | Sequence[str] | None = None,
        texts: Mapping[str, str] | None = None,
        seed: int = 0,
        threads: int | None = None,
        progress: bool | Progress = False,
    ) -> Self:
        """The same model with new labels, in seconds: each is placed where searches for its rows come by.

        Only the new labels learn; all others keep their weights bit for bit. The new ones are numbered on from the
        old ones. The model notes how many were added (`info()["updates"]`): after many, train anew.

        X, Y:  rows and their labels: texts and lists of label keys, of which those that the model does not have are
               new; or matrices, Y with a column per new label, or with those of the model's labels before them (where
               labels have no keys: if it has more columns than the model has labels). Rows
               may have old labels too, and there may be rows that have only old ones: new labels learn to be told
               from them. None, None: the new labels have only texts.
        keys:  the unique strings of the new labels; needed with a matrix Y where the model's labels have keys.
        names: what people read for them, by key or in the order of keys.
        texts: for keys of new labels a text that describes them. Its words count as those of rows do in a model that
               ranks by words too; in others it stands in for the rows of a label that has none.
        seed:  what randomness starts from.
        """
        watch = Stopwatch(progress_for(progress))
        parts, report = update.with_labels(
            self._parts, X, Y, keys, names, texts, checked_seed(seed), workers(threads), watch
        )
        return self._with_trees(parts, report)

    def remove_labels(self, labels: Any, *, threads: int | None = None) -> Self:
        """The same model without some labels, given by their keys or numbers; the others keep their weights.

        Labels behind those that go move up: keys stay, numbers do not.
        """
        parts, report = update.without_labels(self._parts, labels, workers(threads))
        return self._with_trees(parts, report)

    def rename(self, names: Mapping[str, str]) -> Self:
        """The same model with other names for some labels: a mapping from keys to names. Keys stay as they are."""
        return self._changed(update.with_new_names(self._parts, names), self._report)

    def retrain(
        self,
        X: Any,
        Y: Any,
        *,
        keys: Sequence[str] | None = None,
        names: Mapping[str, str] | Sequence[str] | None = None,
        seed: int = 0,
        threads: int | None = None,
        progress: bool | Progress = True,
    ) -> Self:
        """A model trained anew on these rows that keeps the trees' shapes, the text features, settings and names.

        Give all rows, old and new: nothing is left of those that it was trained on. Labels that the model does not
        have are placed in its trees as by `add_labels`, and all weights are learned. X, Y, keys and names are as
        there, but a matrix Y has a column per label of the model first. Whether words rank beside the trees, and how,
        stays as it is; probabilities and a cut go: fit them anew.
        """
        watch = Stopwatch(progress_for(progress))
        parts, report = retrained(self._parts, X, Y, keys, names, checked_seed(seed), workers(threads), watch)
        return self._with_trees(parts, report)
