"""Claims about what a server counts."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from support.serving import Running, counted, wait_for

from beamwood.server import app
from beamwood.server.app.metrics import ServerMetrics
from beamwood.server.app.replies import STATUSES
from beamwood.server.app.routes import ROUTES


def requests(server: Running) -> list[dict[str, Any]]:
    """The lines of the log about requests."""
    return [line for line in server.lines() if line["event"] == "request"]


def statuses(server: Running) -> dict[str, float]:
    """beamwood_errors_total by status, without those that are 0."""
    text = server.ask("GET", "/metrics")[2].decode()
    found = re.findall(r'beamwood_errors_total{status="(\w+)"} (\d+)', text)
    return {status: float(count) for status, count in found if count != "0"}


def test_every_route_is_counted_by_its_name_and_none_as_an_error(folder: Path) -> None:
    with Running(folder / "shop.bw") as server:
        for route in ROUTES:
            path = route.path.replace("{label}", "0").replace("{project}", "shop")
            for method, operation in route.operations.items():
                status = server.ask(method, path, b"" if method == "POST" else None)[0]
                name = f'beamwood_requests_total{{route="{route.path}",status="{status}"}}'
                assert counted(server, name) >= 1, (method, path, status)
                assert status == 200 or method == "POST" or operation == "search_by_query", path
        assert set(statuses(server)) == {"403", "422"}  # of those that ask nothing
        assert counted(server, 'beamwood_requests_total{route="other"') == 0


def test_a_view_of_the_page_is_no_error(server: Running) -> None:
    before = statuses(server)
    for route in ROUTES:
        if route.file is not None:
            assert server.ask("GET", route.path)[0] == 200
    assert statuses(server) == before


def test_every_status_that_is_answered_has_a_count_of_its_own() -> None:
    metrics = ServerMetrics(["shop"], 1)
    row = metrics.row(0)
    source = "".join(path.read_text() for path in Path(app.__file__).parents[1].rglob("*.py"))
    answered = {int(status) for status in re.findall(r"(?:Refusal|Reply)\(\s*(\d{3}),", source)}
    assert answered
    assert answered <= set(STATUSES)
    for status in STATUSES:
        row.answered("/v1/models", status)
        row.refused(status)
    text = metrics.text().decode()
    for status in STATUSES:
        for route in ("/v1/models", "unread"):
            assert f'beamwood_requests_total{{route="{route}",status="{status}"}} 1\n' in text
        assert status < 400 or f'beamwood_errors_total{{status="{status}"}} 2\n' in text
    row.answered("/v1/models", 599)
    text = metrics.text().decode()
    assert 'beamwood_errors_total{status="unlisted"} 1\n' in text
    assert 'beamwood_errors_total{status="500"} 2\n' in text


def test_workers_share_one_memory_and_know_what_each_serves() -> None:
    first = ServerMetrics(["a", "b"], 2)
    second = ServerMetrics(["a", "b"], 2, os.dup(first.file))
    one, two = first.row(0), second.row(1)
    assert not first.all_ready()
    for row in (one, two):
        row.set("ready", 1.0)
        row.serves(1, "fedcba9876543210")
        row.add("swaps", 3.0)
    assert first.all_ready()
    one.add("beat")
    assert second.sign_of_life(0) == (True, 1.0)
    assert 'beamwood_workers{model="b",version="fedcba9876543210"} 2\n' in first.text().decode()
    assert "beamwood_swaps_total 6\n" in first.text().decode()
    two.set("connections", 5.0)
    assert second.fewest_connections() == 0.0
    first.ended(0)
    assert second.fewest_connections() == 5.0


def test_metrics_cover_all_workers(folder: Path) -> None:
    with Running(folder / "shop.bw", workers=2) as server:
        open_ones = [server.connect() for _ in range(8)]  # side by side, so that both workers get some
        for number in range(60):
            body = json.dumps({"text": "wool", "beam": 1 + number % 30})
            connection = open_ones[number % len(open_ones)]
            connection.request("POST", "/v1/search", body)
            assert connection.getresponse().read()
        wait_for(lambda: len(requests(server)) == 60)
        assert {line["worker"] for line in requests(server)} == {0, 1}
        for connection in open_ones:
            connection.close()
        assert counted(server, 'beamwood_requests_total{route="/v1/search",status="200"}') == 60
        assert counted(server, 'beamwood_seconds_count{stage="engine"}') == 60
        assert counted(server, "beamwood_beam_count") == 60
        assert counted(server, "beamwood_workers{") == 2
        for stage in ("queue", "engine", "total"):
            text = server.ask("GET", "/metrics")[2].decode()
            buckets = re.findall(rf'beamwood_seconds_bucket{{stage="{stage}",le="[^"]+"}} (\d+)', text)
            assert [int(count) for count in buckets] == sorted(int(count) for count in buckets)
            assert buckets[-1] == "60"
