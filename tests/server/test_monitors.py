"""What a server counts of its queries: the same figures as training's baselines, under the names that documents use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.serving import Running, counted, wait_for

import beamwood as bw

ROOT = Path(__file__).resolve().parents[2]
THINGS = ["socks", "hat", "shirt", "boots", "coat", "scarf"]


@pytest.fixture(name="sure", scope="module")
def made_sure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibrated model with a cut."""
    rng = np.random.default_rng(0)
    texts = [f"{rng.choice(['red', 'blue'])} {thing}" for thing in rng.choice(THINGS, 600)]
    path = tmp_path_factory.mktemp("sure") / "sure.bw"
    labels = [[text.split()[1]] for text in texts]
    bw.train_text(texts, labels, preset="fast", calibrate=True, progress=False).save(path)
    return path


def test_every_way_to_ask_is_counted_once(sure: Path) -> None:
    model = bw.load(sure)
    with Running(sure, workers=1) as server:
        name = '{model="sure"}'
        assert counted(server, f"beamwood_queries_total{name}") == 0  # warming up is not asking
        bodies = [
            {"text": "red socks"},
            {"text": "zeppelin"},
            {"text": "blue zeppelin hat", "min_score": 0.0},
            {"text": "red boots", "threshold": 0.0},
            {"text": "quux", "threshold": True},
            {"texts": ["red hat", "kazoo", "blue coat kazoo"]},
        ]
        for body in bodies:
            assert server.ask("POST", "/v1/search", json.dumps(body).encode())[0] == 200
        wait_for(lambda: counted(server, f"beamwood_queries_total{name}") == 8)
        assert counted(server, f"beamwood_empty_queries_total{name}") == 3
        assert counted(server, f"beamwood_answers_total{name}") == 5
        assert counted(server, 'beamwood_terms_total{model="sure",known="no"}') == 5
        assert counted(server, 'beamwood_terms_total{model="sure",known="yes"}') == 10
        asked = ["red socks", "blue zeppelin hat", "red boots", "red hat", "blue coat kazoo"]
        first = [model.search(text, k=1)[0].probability for text in asked]
        found = re.search(r'beamwood_top_total{model="sure",of="probability"} (\S+)', metrics(server))
        assert found is not None
        assert float(found[1]) == pytest.approx(sum(p for p in first if p is not None), rel=1e-5)
        assert counted(server, f"beamwood_labels_above_cut_total{name}") == 5


def metrics(server: Running) -> str:
    return server.ask("GET", "/metrics")[2].decode()


def test_baselines_are_those_of_the_model_and_documents_name_what_there_is(sure: Path) -> None:
    with Running(sure, workers=1) as server:
        server.ask("POST", "/v1/search", b'{"text":"red socks"}')
        text = metrics(server)
    told = bw.load(sure).info()["baselines"]
    shown = {of: float(v) for of, v in re.findall(r'beamwood_baseline{model="sure",of="(\w+)"} (\S+)', text)}
    assert shown == pytest.approx({name: value for name, value in told.items() if name != "rows"})
    there = set(re.findall(r"^(beamwood_\w+)", text, re.MULTILINE))
    for document in ("docs/life/monitors.md", "deploy/grafana-dashboard.json", "deploy/alerts.yml"):
        said = (ROOT / document).read_text(encoding="utf-8")
        assert set(re.findall(r"beamwood_\w+", said)) <= there, document
        for of in re.findall(r'beamwood_baseline{of=\\?"(\w+)\\?"}', said):
            assert of in shown, (document, of)
    board = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())
    assert all(target["expr"] for panel in board["panels"] for target in panel["targets"])


def test_a_model_without_baselines_or_with_odd_ones_is_served_all_the_same(sure: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    from beamwood.storage.parts import ModelParts

    model = bw.load(sure)
    for number, baselines in enumerate((None, {"unknown_terms": "many", "top_probability": float("1e999"), "x": 1})):
        odd = bw.Model(ModelParts(replace(model.parts.shape, baselines=baselines), model.parts.sections))
        odd.save(tmp_path / f"odd{number}.bw")
        with Running(tmp_path / f"odd{number}.bw", workers=1) as server:
            assert "beamwood_baseline{" not in metrics(server)
