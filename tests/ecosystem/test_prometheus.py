"""A real Prometheus beside a real server in: the dashboard's panels have figures, alarms load and are raised out.

Needs `prometheus` and `promtool`, Debian's package prometheus. Its configuration is deploy/prometheus.yml, with another
address of the server and a shorter interval.
"""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest
from support.serving import Running

import beamwood as bw

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parents[1] / "deploy"
SECONDS = 60.0

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="there is no Prometheus: apt-get install prometheus",
)


def promtool(*words: object) -> str:
    done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def model() -> bw.Model:
    """A model with all that a dashboard can show: probabilities, a cut, baselines."""
    rng = np.random.default_rng(0)
    things = rng.choice(["socks", "hat", "shirt", "boots", "coat", "scarf"], 900)
    texts = [f"{rng.choice(['red', 'blue'])} {thing} number{rng.integers(3000)}" for thing in things]
    return bw.train_text(texts, [[str(thing)] for thing in things], preset="fast", calibrate=True, progress=False)


class Prometheus:
    """A Prometheus that runs: what it answers."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str, **query: str) -> Any:
        with urlopen(f"{self.url}{path}?{urlencode(query)}", timeout=10) as answer:
            return json.load(answer).get("data")

    def values(self, expression: str) -> list[float]:
        """What an expression comes to; nothing divided by nothing is left out."""
        found = [float(one["value"][1]) for one in self.get("/api/v1/query", query=expression)["result"]]
        return [value for value in found if not math.isnan(value)]


@contextmanager
def watched(folder: Path, port: int) -> Iterator[Prometheus]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = free.getsockname()[1]
    text = (DEPLOY / "prometheus.yml").read_text(encoding="utf-8")
    for ours, here in (
        ("beamwood:8000", f"127.0.0.1:{port}"),
        ("scrape_interval: 15s", "scrape_interval: 1s, evaluation_interval: 1s"),
    ):
        assert text.count(ours) == 1
        text = text.replace(ours, here)
    (folder / "prometheus.yml").write_text(text, encoding="utf-8")
    shutil.copy(DEPLOY / "alerts.yml", folder)
    words = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'store'}"]
    words += [f"--web.listen-address=127.0.0.1:{own}", "--log.level=warn"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(["prometheus", *words], stdout=log, stderr=log)
    try:
        yield Prometheus(own)
    finally:
        process.terminate()
        process.wait(20)


def until(claim: Callable[[], Any], what: str) -> Any:
    """What a claim comes to, once it is true."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        try:
            if found := claim():
                return found
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"never came true: {what}")


def test_configuration_and_rules_are_what_prometheus_reads() -> None:
    assert "5 rules found" in promtool("check", "rules", DEPLOY / "alerts.yml")
    promtool("check", "config", DEPLOY / "prometheus.yml")


def test_each_alarm_is_raised_by_its_figures_and_by_no_others() -> None:
    promtool("test", "rules", HERE / "alarms.yml")


def test_no_panel_of_the_dashboard_is_empty_and_a_server_that_is_gone_raises_an_alarm(tmp_path: Path) -> None:
    model().save(tmp_path / "shop.bw")
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = {
        (panel["title"], target["refId"]): target["expr"]
        for panel in dashboard["panels"]
        for target in panel["targets"]
    }
    with Running(tmp_path / "shop.bw") as server, watched(tmp_path, server.port) as prometheus:

        def work() -> None:
            for text in ("red socks", "blue hat nobodysaid", "qqqq"):
                assert server.ask("POST", "/v1/search", {"text": text})[0] == 200
            assert server.ask("GET", "/nowhere")[0] == 404

        def empty() -> list[tuple[str, str]]:
            work()
            return [where for where, expression in asked.items() if not prometheus.values(expression)]

        until(lambda: prometheus.values("up") == [1.0], "the server is scraped")
        until(lambda: not empty(), "every panel has figures")
        shown = {where: prometheus.values(expression) for where, expression in asked.items()}
        assert shown["Share of unknown terms", "A"][0] == pytest.approx(2 / 6, abs=0.1)  # of 2 + 3 + 1 terms
        assert shown["Share of queries without a known term", "A"][0] == pytest.approx(1 / 3, abs=0.1)
        assert sum(shown["Errors per second by status", "A"]) > 0
        assert shown["Workers by version of the model", "A"] == [1.0]
        rules = prometheus.get("/api/v1/rules")["groups"][0]["rules"]
        assert len(rules) == 5
        until(
            lambda: {rule["health"] for rule in prometheus.get("/api/v1/rules")["groups"][0]["rules"]} == {"ok"},
            "rules",
        )
        assert prometheus.get("/api/v1/alerts")["alerts"] == [], "a server that is well"
        assert server.stop() == 0
        until(
            lambda: (
                [alert["labels"]["alertname"] for alert in prometheus.get("/api/v1/alerts")["alerts"]]
                == ["BeamwoodDown"]
            ),
            "the alarm of a server that is gone",
        )
