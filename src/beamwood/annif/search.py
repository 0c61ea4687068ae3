"""search.py — a project that was trained and a corpus in, the lines for its section that do best there out."""

from __future__ import annotations

from typing import Any

import annif.eval
import numpy as np
from annif.backend import hyperopt

from beamwood.annif.suggest import suggestions


class Objective(hyperopt.HPObjective):  # type: ignore[misc]
    """One trial: trains with its settings on the project's documents and measures on the corpus."""

    @classmethod
    def objective(cls, trial: Any, args: Any) -> float:
        """The measure that is to be high."""
        backend = args["backend"]
        params = {
            **args["params"],
            "C": trial.suggest_float("C", 0.25, 4.0, log=True),
            "prune": trial.suggest_float("prune", 0.02, 0.2, log=True),
            "ngram": trial.suggest_int("ngram", 1, 2),
            "min_df": trial.suggest_int("min_df", 1, 3),
        }
        model = backend.trained(args["rows"], params, args["threads"])
        index = backend.project.subjects
        found = [index.by_uri(model.key(label), warnings=False) for label in range(model.n_labels)]
        subjects = np.array([-1 if subject is None else subject for subject in found], np.int64)
        batch = annif.eval.EvaluationBatch(index)
        batch.evaluate_many(suggestions(model, subjects, args["texts"], params, backend.project), args["gold"])
        return float(batch.results(metrics=[args["metric"]])[args["metric"]])


class Optimizer(hyperopt.HyperparameterOptimizer):  # type: ignore[misc]
    """What Annif's `hyperopt` command runs."""

    def _prepare(self, n_jobs: int = 1) -> dict[str, Any]:
        documents = list(self._corpus.documents)
        return {
            "backend": self._backend,
            "params": self._backend.params,
            "rows": self._backend.load_rows(),
            "texts": self._backend.words_of(doc.text for doc in documents),
            "gold": [doc.subject_set for doc in documents],
            "threads": 0 if n_jobs == 1 else 1,
            "metric": self._metric,
        }

    def _postprocess(self, study: Any) -> Any:
        best = study.best_params
        lines = [
            f"C={best['C']:.4f}",
            f"prune={best['prune']:.4f}",
            f"ngram={best['ngram']}",
            f"min_df={best['min_df']}",
        ]
        return hyperopt.HPRecommendation(lines=lines, score=study.best_value)
