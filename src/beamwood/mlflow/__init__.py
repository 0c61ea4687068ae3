"""A flavor for MLflow: a model in, a logged or saved MLflow model out, and back. Needs the extra `mlflow`.

What is stored is the model's own file and a description: no pickle. As a `pyfunc` it takes a column of texts and gives
for each a list of labels, best first: `{"key", "name", "score"}`, and `probability` where the model knows it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from beamwood._version import __version__
from beamwood.errors import DataError, SettingsError
from beamwood.model import Model, load

__all__ = ["load_model", "log_model", "save_model"]

FLAVOR_NAME = "beamwood"
_FILE = "model.bw"
_K = 10


def save_model(
    model: Model,
    path: str | os.PathLike[str],
    mlflow_model: Any = None,
    *,
    signature: Any = None,
    input_example: Any = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Writes a folder that MLflow knows: the model's file, what it takes and gives, what must be installed.

    signature, input_example, metadata: as in MLflow's own flavors; a model of texts has a signature without being told.
    """
    if not isinstance(model, Model):
        raise SettingsError(f"model is a {type(model).__name__}; expected a beamwood.Model.")
    from mlflow import pyfunc
    from mlflow.models import Model as Description

    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise SettingsError(f"{folder} is there already and not empty; expected a new folder. Give another path.")
    folder.mkdir(parents=True, exist_ok=True)
    told = Description() if mlflow_model is None else mlflow_model
    told.signature = _signature() if signature is None and model.text is not None else signature
    if metadata is not None:
        told.metadata = metadata
    if input_example is not None:
        from mlflow.models.utils import _save_example as save_example

        save_example(told, input_example, str(folder))
    model.save(folder / _FILE)
    needed = [f"beamwood=={__version__}", "mlflow-skinny", "pandas"]
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in needed), encoding="utf-8")
    (folder / "python_env.yaml").write_text("dependencies:\n- -r requirements.txt\n", encoding="utf-8")
    pyfunc.add_to_model(told, loader_module="beamwood.mlflow", data=_FILE, python_env={"virtualenv": "python_env.yaml"})
    told.add_flavor(FLAVOR_NAME, beamwood_version=__version__, data=_FILE, model_version=model.version)
    told.save(str(folder / "MLmodel"))


def log_model(model: Model, name: str = "model", *, registered_model_name: str | None = None, **how: Any) -> Any:
    """Logs the model in the run that is open, and where asked registers it; what MLflow says of it is returned.

    how: what `save_model` takes, and `params`, `tags`, `step` of MLflow.
    """
    import sys

    from mlflow.models import Model as Description

    return Description.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        model=model,
        **how,
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Model:
    """The model itself, from a path, `runs:/…`, `models:/…` or any other address of MLflow."""
    from mlflow.artifacts import download_artifacts

    return load(Path(download_artifacts(artifact_uri=model_uri, dst_path=dst_path)) / _FILE)


class _Wrapped:
    """A model as MLflow's `pyfunc` calls it."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def predict(self, given: Any, params: dict[str, Any] | None = None) -> list[list[dict[str, Any]]]:
        """The best labels of each text. params: k, beam (0: the model's own)."""
        asked = params or {}
        found = self._model.search_many(texts_of(given), int(asked.get("k", _K)), int(asked.get("beam", 0)) or None)
        return [[_plain(hit) for hit in hits] for hits in found]

    def get_raw_model(self) -> Model:
        """The model inside."""
        return self._model


def texts_of(given: Any) -> list[str]:
    """The texts of a data frame (its column `text`, or its only one), a column, a list, or one text."""
    if isinstance(given, str):
        return [given]
    if hasattr(given, "columns"):
        names = [str(name) for name in given.columns]
        if "text" not in names and len(names) != 1:
            raise DataError(f"the frame has the columns {', '.join(names)[:200]}; expected `text`, or only one.")
        given = given["text"] if "text" in names else given.iloc[:, 0]
    elif isinstance(given, dict):
        if len(given) != 1 and "text" not in given:
            raise DataError(f"the input has the keys {', '.join(map(str, given))[:200]}; expected `text`.")
        given = given["text"] if "text" in given else next(iter(given.values()))
    return [each["text"] if isinstance(each, dict) and "text" in each else each for each in given]


def _plain(hit: Any) -> dict[str, Any]:
    found = {"key": hit.key, "name": hit.name, "score": float(hit.score)}
    return found if hit.probability is None else {**found, "probability": float(hit.probability)}


def _signature() -> Any:
    """A column of texts in; k and beam as parameters."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema

    long = DataType.long
    known = ParamSchema([ParamSpec("k", long, _K), ParamSpec("beam", long, 0)])
    return ModelSignature(inputs=Schema([ColSpec(DataType.string, "text")]), params=known)


def _load_pyfunc(path: str) -> _Wrapped:
    """What MLflow calls for the flavor `python_function`; path: the model's file."""
    return _Wrapped(load(path))
