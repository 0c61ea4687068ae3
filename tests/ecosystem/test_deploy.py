"""The files of deploy/ in: they parse, name each other's parts rightly, and ask for no more rights than they need."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

from beamwood.server.app.routes import ROUTES  # noqa: E402

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
GRAFANA = DEPLOY.parent / "build" / "grafana"  # made by make test-ecosystem: @grafana/schema and typescript


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def test_kubernetes_runs_without_rights_and_probes_what_is_there() -> None:
    found = {document["kind"]: document for document in documents("kubernetes.yaml")}
    assert set(found) == {"PersistentVolumeClaim", "Deployment", "PodDisruptionBudget", "Service"}
    template = found["Deployment"]["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]
    for selector in (found["Deployment"]["spec"]["selector"], found["PodDisruptionBudget"]["spec"]["selector"]):
        assert selector["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    rights = container["securityContext"]
    assert rights["readOnlyRootFilesystem"]
    assert not rights["allowPrivilegeEscalation"]
    paths = {route.path for route in ROUTES}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in paths
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    claim = found["PersistentVolumeClaim"]["metadata"]["name"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim


def test_compose_names_files_that_are_there_and_the_dashboard_asks_for_our_metrics() -> None:
    (compose,) = documents("compose.yaml")
    assert set(compose["services"]) == {"beamwood", "prometheus", "grafana"}
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source == "./models" or (DEPLOY / source).is_file(), volume
    assert compose["services"]["beamwood"]["read_only"]
    (prometheus,) = documents("prometheus.yml")
    assert prometheus["scrape_configs"][0]["static_configs"][0]["targets"] == ["beamwood:8000"]
    for rules in prometheus["rule_files"]:
        assert (DEPLOY / rules).exists()
        assert any(f"./{rules}:" in volume for volume in compose["services"]["prometheus"]["volumes"])
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for t in panel["targets"]
        for name in re.findall(r"beamwood_\w+", t["expr"])
    }
    assert len(asked) > 5


def grafana_says(dashboard: str, folder: Path) -> str:
    """What TypeScript says of a dashboard that is declared to be one of Grafana's own type."""
    (folder / "node_modules").symlink_to(GRAFANA / "node_modules")
    code = f'import type {{ Dashboard }} from "@grafana/schema";\nexport const made: Dashboard = {dashboard};\n'
    (folder / "made.ts").write_text(code, encoding="utf-8")
    how = ["--noEmit", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext"]
    command = ["node", "node_modules/typescript/bin/tsc", *how, "made.ts"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.skipif(
    shutil.which("node") is None or not (GRAFANA / "node_modules" / "typescript").is_dir(),
    reason="there is no node, or npm could not bring @grafana/schema",
)
def test_the_dashboard_has_the_form_that_grafana_reads(tmp_path: Path) -> None:
    text = (DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8")
    assert grafana_says(text, tmp_path) == ""
    (tmp_path / "other").mkdir()
    assert "gridPos" in text
    assert "GridPos" in grafana_says(text.replace('"h": 8', '"height": 8', 1), tmp_path / "other")
