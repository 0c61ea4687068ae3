"""A real tracking server of MLflow: models are logged, registered, loaded, and asked as pyfunc."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

mlflow = pytest.importorskip("mlflow")

from support.serving import LABELS, TEXTS, shop  # noqa: E402

import beamwood as bw  # noqa: E402


@pytest.fixture(scope="module")
def tracking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that keeps runs and models in a folder."""
    home = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{home}/runs.db", "--artifacts-destination", str(home / "artifacts")]
    log = open(home / "log", "wb")  # noqa: SIM115 (closed below)
    server = subprocess.Popen(command, stdout=log, stderr=log, cwd=home, start_new_session=True)
    url, ends = f"http://127.0.0.1:{port}", time.monotonic() + 200
    while True:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=2).close()
            break
        except OSError:
            assert server.poll() is None, (home / "log").read_text()
            assert time.monotonic() < ends
            time.sleep(0.2)
    mlflow.set_tracking_uri(url)
    yield url
    os.killpg(server.pid, 15)
    server.wait()
    log.close()


def test_a_model_is_logged_registered_and_loaded(tracking: str, tmp_path: Path) -> None:
    import pandas as pd

    import beamwood.mlflow as flavor

    model = shop()
    mlflow.set_experiment("shop")
    with mlflow.start_run():
        mlflow.log_metrics(
            {name.replace("@", "_at_"): value for name, value in model.evaluate(TEXTS, LABELS).as_dict().items()}
        )
        logged = flavor.log_model(model, "shop", registered_model_name="shop")
    for uri in (logged.model_uri, "models:/shop/1"):
        assert flavor.load_model(uri).version == model.version
    asked = mlflow.pyfunc.load_model("models:/shop/1")
    found = asked.predict(pd.DataFrame({"text": ["leather boots", "silk scarf"]}), params={"k": 2})
    assert [hits[0]["key"] for hits in found] == ["boots", "silk"] or found[0][0]["key"] == "boots"
    assert [len(hits) for hits in found] == [2, 2]
    expected = [hit.key for hit in model.search("leather boots", 2)]
    assert [hit["key"] for hit in found[0]] == expected
    assert not list(tmp_path.glob("*.pkl"))


def test_a_saved_folder_has_no_pickle_and_takes_every_kind_of_texts(tmp_path: Path) -> None:
    import pandas as pd

    import beamwood.mlflow as flavor

    flavor.save_model(shop(), tmp_path / "m", metadata={"by": "tests"})
    names = {path.name for path in (tmp_path / "m").rglob("*")}
    assert names == {"MLmodel", "model.bw", "requirements.txt", "python_env.yaml"}
    asked = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    texts = ["leather boots"]
    keys = [hit.key for hit in shop().search(texts[0], 10)]
    for given in (pd.DataFrame({"text": texts}), [{"text": texts[0]}]):
        assert [hit["key"] for hit in asked.predict(given)[0]] == keys
    with pytest.raises(bw.SettingsError, match="not empty"):
        flavor.save_model(shop(), tmp_path / "m")
    with pytest.raises(bw.SettingsError, match=r"expected a beamwood\.Model"):
        flavor.save_model("shop", tmp_path / "n")


def test_classifiers_travel_by_pickle_joblib_and_skops(tmp_path: Path) -> None:
    import joblib
    import numpy as np

    from beamwood.sklearn import XMRClassifier

    X, y = np.eye(12, dtype=np.float32), np.arange(12) % 3
    fitted = XMRClassifier("fast", random_state=0).fit(X, y)

    def same(other: Any) -> None:
        assert (other.predict(X) == fitted.predict(X)).all()

    same(pickle.loads(pickle.dumps(fitted)))
    joblib.dump(fitted, tmp_path / "x.joblib")
    same(joblib.load(tmp_path / "x.joblib"))
    sio = pytest.importorskip("skops.io")
    sio.dump(fitted, tmp_path / "x.skops")
    unknown = sio.get_untrusted_types(file=tmp_path / "x.skops")
    assert all(name.startswith("beamwood.") for name in unknown), unknown
    same(sio.load(tmp_path / "x.skops", trusted=unknown))
