"""sklearn.py — a scikit-learn estimator around the trainer: fits in a Pipeline and a GridSearchCV.

Needs the extra: pip install '.[sklearn]'. `import beamwood` alone never imports scikit-learn.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError, SettingsError, install

try:
    from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped, unused-ignore]
    from sklearn.utils import check_random_state  # type: ignore[import-untyped, unused-ignore]
    from sklearn.utils.metaestimators import available_if  # type: ignore[import-untyped, unused-ignore]
    from sklearn.utils.multiclass import (  # type: ignore[import-untyped, unused-ignore]
        check_classification_targets,
        type_of_target,
        unique_labels,
    )
    from sklearn.utils.validation import (  # type: ignore[import-untyped, unused-ignore]
        _check_sample_weight,
        check_is_fitted,
        validate_data,
    )
except ImportError as error:
    raise ImportError(f"beamwood.sklearn needs scikit-learn 1.6 or newer ({error}). {install('sklearn')}") from error

from beamwood.inputs.arguments import positive
from beamwood.inputs.matrices import MatrixLike, is_sparse
from beamwood.inputs.structure import check_believable, valid_csr
from beamwood.life.fit import DEPTH_OF_CUT
from beamwood.metrics import evaluate
from beamwood.model import Model
from beamwood.storage import store
from beamwood.storage.pickling import from_bytes
from beamwood.training.settings import settings_for
from beamwood.training.train import train

_OF_SETTINGS = (
    "branching",
    "max_leaf",
    "tree",
    "trees",
    "unit_rows",
    "loss",
    "activation",
    "negatives",
    "C",
    "rare_weight",
    "eps",
    "max_iter",
    "bias",
    "prune",
    "top_weights",
    "lexical",
)
_LEAST, _MOST = float(np.finfo(np.float32).tiny), 1.0 - 2.0**-24  # probabilities keep off 0 and 1
_FEW_LABELS = 1000  # up to here predict_proba opens every node
_USUAL_K = 10
_MEASURES = ("precision", "recall", "ndcg")


def _scores_are_shares(estimator: Any) -> bool:
    """Whether scores lie between 0 and 1; an AttributeError tells scikit-learn that there is no predict_proba."""
    activation = estimator._settings().activation
    if activation == "identity" or activation.startswith("log-"):
        raise AttributeError(f"activation {activation!r} gives scores that are not between 0 and 1: use decision_top")
    return True


@dataclass(frozen=True)
class RankScorer:
    """A scorer for GridSearchCV and cross_val_score: a measure of the first k labels, from 0 to 1.

    GridSearchCV(pipeline, grid, scoring=RankScorer("recall", 10)). The estimator is an XMRClassifier fitted on an
    indicator matrix, or a Pipeline that ends with one.
    """

    measure: str = "precision"
    k: int = 1

    def __post_init__(self) -> None:
        """Refuses measures that there are not."""
        if self.measure not in _MEASURES:
            raise SettingsError(f"measure is {self.measure!r}; expected one of {', '.join(_MEASURES)}. Choose one.")
        positive(self.k, "k")

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """How well the estimator ranks the labels y (rows x labels) of X."""
        if hasattr(estimator, "steps"):
            X, estimator = estimator[:-1].transform(X), estimator[-1]
        found = evaluate(estimator.decision_top(X, self.k), sp.csr_matrix(y), at=(self.k,))
        return float(getattr(found, self.measure)[self.k])


class XMRClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Ranks labels with a tree of sparse linear models; for y of classes and for indicator matrices of many labels.

    preset:        "fast", "balanced" or "best"; every other setting that is None is the preset's (see `Settings`).
    beam:          nodes kept per layer in predict; None: as many as the preset has chosen.
    k:             labels that predict gives each row of a multi-label problem at most; None: with a stored cut as many
                   as apply, without one as many as the rows of fit have on average, rounded (`k_`).
    threshold:     what these labels must reach as well: a probability of a calibrated model, a score of another; None:
                   the stored cut, or no bound where there is none.
    calibrate:     learn probabilities and a cut in fit: True, or the share of rows to learn them on (see `train`). It
                   takes about as long as the rest of fit.
    random_state:  a seed, or None for a new one in every fit.
    n_jobs:        threads; None is one, -1 all cores. Never changes the result.

    After fit: `model_` (a `Model`), `classes_`, `n_features_in_`; for many labels `k_`.
    """

    def __init__(
        self,
        preset: str = "balanced",
        *,
        beam: int | None = None,
        k: int | None = None,
        threshold: float | None = None,
        calibrate: bool | float = False,
        branching: int | None = None,
        max_leaf: int | None = None,
        tree: Any = None,
        trees: int | None = None,
        unit_rows: bool | None = None,
        loss: str | None = None,
        activation: str | None = None,
        negatives: str | None = None,
        C: float | str | None = None,
        rare_weight: float | None = None,
        eps: float | None = None,
        max_iter: int | None = None,
        bias: float | None = None,
        prune: float | None = None,
        top_weights: int | None = None,
        lexical: bool | str | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.preset = preset
        self.beam = beam
        self.k = k
        self.threshold = threshold
        self.calibrate = calibrate
        self.branching = branching
        self.max_leaf = max_leaf
        self.tree = tree
        self.trees = trees
        self.unit_rows = unit_rows
        self.loss = loss
        self.activation = activation
        self.negatives = negatives
        self.C = C
        self.rare_weight = rare_weight
        self.eps = eps
        self.max_iter = max_iter
        self.bias = bias
        self.prune = prune
        self.top_weights = top_weights
        self.lexical = lexical
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: MatrixLike, y: Any, sample_weight: Any = None) -> XMRClassifier:
        """Trains. y: one class a row, or a rows x labels indicator (numpy or scipy sparse)."""
        X = validate_data(self, _valid(X, "X"), accept_sparse="csr", dtype=(np.float32, np.float64))
        Y = self._targets(X, y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        self.model_ = train(
            X,
            Y,
            self.preset,
            seed=self._seed(),
            threads=self._threads(),
            progress=False,
            row_weights=weights,
            calibrate=self.calibrate,
            **self._given(),
        )
        return self

    def predict(self, X: MatrixLike) -> Any:
        """The best class of each row; for many labels an indicator of the kind that fit was given.

        Of many labels it has those above the threshold, or above the cut that is stored in `model_`, or the best k.
        """
        if not self._multilabel(check=True):
            labels, _ = self._topk(X, 1)
            return self.classes_[labels[:, 0]]
        cut = self.threshold is None and self.model_.threshold is not None
        most = self.k or (DEPTH_OF_CUT if cut else self.k_)
        labels, scores = self._topk(X, min(most, self.model_.n_labels), threshold=True if cut else None)
        found = labels >= 0
        if self.threshold is not None:
            values = self.model_.probability(scores) if self.model_.is_calibrated else scores
            found &= values >= self.threshold
        offsets = np.concatenate([[0], found.sum(axis=1).cumsum()])
        answer = sp.csr_matrix(
            (np.ones(offsets[-1], self.y_dtype_), labels[found], offsets), shape=(len(labels), self.model_.n_labels)
        )
        answer.sort_indices()
        return answer if self.y_sparse_ else answer.toarray()

    def decision_top(
        self, X: MatrixLike, k: int | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Places in `classes_` of the best k labels of each row, and their scores; padded with -1 and -inf."""
        check_is_fitted(self)
        return self._topk(X, (self.k or _USUAL_K) if k is None else k)

    def score(self, X: MatrixLike, y: Any, sample_weight: Any = None) -> float:
        """Accuracy for classes; for many labels precision at 1: the share of rows whose best label is a true one."""
        if not self._multilabel(check=True):
            return float(super().score(X, y, sample_weight))
        best = self._topk(X, 1)[0][:, 0]
        truth = sp.csr_matrix(y)
        right = np.asarray(truth[np.arange(len(best)), best] != 0).ravel() & (best >= 0)
        return float(np.average(right, weights=sample_weight))

    @available_if(_scores_are_shares)  # type: ignore[untyped-decorator, unused-ignore]
    def predict_proba(self, X: MatrixLike) -> Any:
        """How probable each label is, rows x labels. Those of classes are scaled to a sum of 1 per row.

        Sparse where y of fit was: the best 100 labels of each row, in rank order. Dense otherwise; with more than 1,000
        labels those that the beam search does not reach then have the least value. A model that is not calibrated
        (see `calibrate`) gives scores: they rank labels, and how near they are to probabilities depends on the data.
        """
        check_is_fitted(self)
        every = self.model_.n_labels
        sparse = self._multilabel() and self.y_sparse_
        beam = max(self.beam or 1, every) if every <= _FEW_LABELS and not sparse else self.beam
        labels, shown = self._topk(X, min(every, DEPTH_OF_CUT if sparse else _FEW_LABELS), beam=beam)
        if self.model_.is_calibrated:
            shown = self.model_.probability(shown)
        row, place = np.nonzero(labels >= 0)
        values = np.clip(shown[row, place].astype(np.float64), _LEAST, _MOST)
        if sparse:
            offsets = np.searchsorted(row, np.arange(len(labels) + 1))
            return sp.csr_matrix((values, labels[row, place], offsets), shape=(len(labels), every))
        dense = np.full((len(labels), every), _LEAST, np.float64)
        dense[row, labels[row, place]] = values
        return dense if self._multilabel() else dense / dense.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect of it."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the model travels as the bytes of its own, checked file."""
        state = dict(super().__getstate__())
        if isinstance(state.get("model_"), Model):
            state["model_"] = store.to_bytes(*state["model_"].parts.contents())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Reads those bytes as `load` does, every checksum compared."""
        state = dict(state)
        if isinstance(state.get("model_"), bytes):
            state["model_"] = Model(from_bytes(state["model_"]))
        super().__setstate__(state)

    def _targets(self, X: Any, y: Any) -> sp.csr_matrix:
        """y as rows x labels; sets classes_ and how predict must answer."""
        if y is None:
            raise ValueError("XMRClassifier requires y to be passed, but the target y is None")
        y = _valid(y, "y")
        if not sp.issparse(y):
            y = np.asarray(y)
            if y.ndim == 2 and y.shape[1] == 1:
                y = _as_column(y)
        check_classification_targets(y)
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y {y.shape[0]}: give one row of y a row of X")
        self.y_sparse_ = bool(sp.issparse(y))
        kind = type_of_target(y, input_name="y")
        if kind == "multilabel-indicator":
            self.y_dtype_ = y.dtype
            self.k_ = self.k or max(1, round(float((y != 0).sum()) / y.shape[0]))
            self.classes_ = np.arange(y.shape[1])
            return sp.csr_matrix(y, dtype=np.float32)
        if y.ndim != 1:
            raise ValueError(f"y is {kind}: give one class a row, or an indicator matrix of rows x labels")
        self.y_dtype_ = None
        self.classes_ = unique_labels(y)
        places = np.searchsorted(self.classes_, y)
        ones = np.ones(len(y), np.float32)
        return sp.csr_matrix((ones, places, np.arange(len(y) + 1)), shape=(len(y), len(self.classes_)))

    def _topk(self, X: Any, k: int, beam: int | None = None, threshold: bool | None = None) -> tuple[Any, Any]:
        check_is_fitted(self)
        X = validate_data(self, _valid(X, "X"), accept_sparse="csr", dtype=(np.float32, np.float64), reset=False)
        beam = self.beam if beam is None else beam
        return self.model_.topk(X, k=k, beam=beam, threads=self._threads(), threshold=threshold)

    def _multilabel(self, check: bool = False) -> bool:
        if check:
            check_is_fitted(self)
        return self.y_dtype_ is not None

    def _given(self) -> dict[str, Any]:
        return {name: value for name in _OF_SETTINGS if (value := getattr(self, name)) is not None}

    def _settings(self) -> Any:
        return settings_for(self.preset, **self._given())

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _threads(self) -> int:
        every = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.n_jobs is None:
            return 1
        return self.n_jobs if self.n_jobs > 0 else max(1, every + 1 + self.n_jobs)


def _valid(matrix: Any, what: str) -> Any:
    """What is sparse with a structure that scikit-learn and scipy may walk through; anything else as it is."""
    if isinstance(matrix, range):
        raise DataError(f"{what} is a range; expected an array. Give np.array({what}).")
    if not is_sparse(matrix):
        return matrix
    narrow = getattr(getattr(matrix, "data", None), "dtype", None) == np.float32
    csr = valid_csr(matrix, what, np.dtype(np.float32 if narrow else np.float64))
    if what == "y":
        check_believable(csr.shape[1], csr.nnz, what, "column")
        csr = csr.astype(matrix.dtype)  # predict answers in it
    return sp.csr_matrix(csr)


def _as_column(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column of classes as the row that was meant, with scikit-learn's own warning."""
    from sklearn.utils.validation import column_or_1d  # type: ignore[import-untyped, unused-ignore]

    flat: npt.NDArray[Any] = column_or_1d(y, warn=True)
    return flat
