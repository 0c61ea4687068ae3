"""backend.py — an Annif project in, its subjects ranked by a beamwood model out: train, suggest, learn, hyperopt.

A project's analyzer finds the words, as for Annif's other backends; the subjects of the vocabulary are our labels, with
their URIs as keys, and the words of their labels rank beside the trees where that gains. The model is one file, the
training data another, which `--cached` trainings, `learn` and `hyperopt` read again. Neither is a pickle.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import annif.util
import numpy as np
from annif.backend import hyperopt
from annif.backend.backend import AnnifLearningBackend
from annif.exception import NotInitializedException, NotSupportedException, OperationFailedException

import beamwood as bw
from beamwood.annif.search import Objective, Optimizer
from beamwood.annif.suggest import suggestions

Rows = tuple[list[str], list[list[str]]]
# Parameters of a project that are settings of ours, and what makes their values of the strings of its file.
_SETTINGS = {
    **dict.fromkeys(("preset", "tree", "loss", "activation", "negatives"), str),
    **dict.fromkeys(("trees", "branching", "max_leaf", "max_iter", "top_weights"), int),
    **dict.fromkeys(("eps", "prune", "bias", "rare_weight"), float),
}


class BeamwoodBackend(hyperopt.AnnifHyperoptBackend, AnnifLearningBackend):  # type: ignore[misc]
    """Trees of sparse linear models, with the words of labels beside them."""

    name = "beamwood"
    MODEL_FILE = "beamwood-model.bw"
    TRAIN_FILE = "beamwood-train.jsonl.gz"
    DEFAULT_PARAMETERS = {  # noqa: RUF012 (as Annif's own)
        "min_df": 1,
        "ngram": 1,
        "preset": "balanced",
        "beam": 10,
        "label_texts": True,
        "calibrate": False,
        "seed": 0,
    }
    _model: bw.Model | None = None  # of one that is not initialized
    _subjects: Any = None  # for each label its subject, -1 for one that the vocabulary does not have any more

    def initialize(self, parallel: bool = False) -> None:
        """Maps the model's file."""
        if self._model is not None:
            return
        path = Path(self.datadir, self.MODEL_FILE)
        self.debug(f"loading model from {path}")
        if not path.exists():
            raise NotInitializedException(f"model {path} not found", backend_id=self.backend_id)
        try:
            self._use(bw.load(path))
        except bw.FormatError as error:
            raise OperationFailedException(str(error)) from error

    def _use(self, model: bw.Model) -> None:
        self._model, index = model, self.project.subjects
        found = [index.by_uri(model.key(label), warnings=False) for label in range(model.n_labels)]
        self._subjects = np.array([-1 if subject is None else subject for subject in found], np.int64)

    def words_of(self, texts: Iterable[str]) -> list[str]:
        """Texts as the project's analyzer reads them: its words, a space between two."""
        return [" ".join(self.project.analyzer.tokenize_words(text)) for text in texts]

    def _names(self) -> dict[str, str]:
        """What people read for each subject of the vocabulary, in the project's language."""
        language, active = self.project.vocab_lang, self.project.subjects.active
        return {subject.uri: subject.labels.get(language) or subject.uri for _, subject in active}

    def _rows_of(self, corpus: Any) -> Rows:
        """Documents with words and subjects: texts, and for each the URIs of its subjects."""
        texts, labels = [], []
        for doc in corpus.documents:
            words = self.words_of([doc.text])[0]
            uris = [self.project.subjects[subject].uri for subject in doc.subject_set]
            if words and uris:
                texts.append(words)
                labels.append(uris)
        return texts, labels

    def _save_rows(self, rows: Rows) -> None:
        def write(_: Any, path: str) -> None:
            with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
                for text, labels in zip(*rows, strict=True):
                    file.write(json.dumps({"text": text, "labels": labels}) + "\n")

        annif.util.atomic_save(rows, self.datadir, self.TRAIN_FILE, method=write)

    def load_rows(self) -> Rows:
        """The documents of the last training."""
        path = os.path.join(self.datadir, self.TRAIN_FILE)
        if not os.path.exists(path):
            raise NotInitializedException(f"train data file {path} not found", backend_id=self.backend_id)
        found = bw.read_records(path, format="jsonl")
        return found.texts, found.labels

    def trained(self, rows: Rows, params: dict[str, Any], jobs: int) -> bw.Model:
        """A model of these documents."""
        names, texts = self._names(), None
        if annif.util.boolean(params["label_texts"]):
            words = zip(names, self.words_of(names.values()), strict=True)
            texts = {uri: text for uri, text in words if text} or None
        settings = {name: kind(params[name]) for name, kind in _SETTINGS.items() if name in params}
        if "C" in params:
            settings["C"] = params["C"] if params["C"] == "auto" else float(params["C"])
        features = bw.TextFeatures(
            ngram_range=(1, int(params["ngram"])), min_df=int(params["min_df"]), single_letters=True
        )
        try:
            return bw.train_text(
                *rows,
                features,
                names=names,
                label_texts=texts,
                seed=int(params["seed"]),
                threads=jobs or None,
                progress=False,
                calibrate=annif.util.boolean(params["calibrate"]),
                **settings,
            )
        except bw.BeamwoodError as error:
            raise OperationFailedException(f"training backend {self.backend_id}: {error}") from error

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        if corpus == "cached":
            self.info("reusing cached training data from previous run")
            rows = self.load_rows()
        else:
            if corpus.is_empty():
                raise NotSupportedException(f"training backend {self.backend_id} with no documents")
            self.info("finding the words of documents")
            rows = self._rows_of(corpus)
            if not rows[0]:
                raise NotSupportedException(f"training backend {self.backend_id} with no words or no subjects")
            self._save_rows(rows)
        self.info(f"training on {len(rows[0]):,} documents")
        self._keep(self.trained(rows, params, jobs))

    def _keep(self, model: bw.Model) -> None:
        model.save(Path(self.datadir, self.MODEL_FILE))  # complete or not there, as Annif's own saving
        self._use(model)

    def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
        """Adds documents and trains on old and new ones: new words and new subjects are known from then on."""
        old, new = self.load_rows(), self._rows_of(corpus)
        if not new[0]:
            self.info("no document has both words and subjects; nothing to learn")
            return
        rows = ([*old[0], *new[0]], [*old[1], *new[1]])
        model = self.trained(rows, params, 0)
        self._save_rows(rows)
        self._keep(model)

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        assert self._model is not None
        return suggestions(self._model, self._subjects, self.words_of(d.text for d in documents), params, self.project)

    def get_hp_optimizer(self, corpus: Any, metric: str) -> Any:
        """The search behind `annif hyperopt`."""
        return Optimizer(self, corpus, metric, Objective)
