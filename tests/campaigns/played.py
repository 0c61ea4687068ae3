"""played.py — deploy/kubernetes.yaml and deploy/compose.yaml in, started by podman with our image; their claims out.

What stands in for what is not here: podman for a cluster, and for Prometheus' image one of Debian's prometheus. Grafana
is not started: no registry that we may ask has it.
"""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from pathlib import Path

from support.serving import shop

from campaigns.podman import ROOT, STORE, answer, ran, until

DEPLOY = ROOT / "deploy"
POD, CONTAINER = "beamwood-pod-0", "beamwood-pod-0-beamwood"
PROMETHEUS = """FROM localhost/run
COPY prometheus /bin/prometheus
ENTRYPOINT ["/bin/prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/tmp/store"]
"""


def kubernetes(folder: Path) -> dict[str, bool]:
    """The deployment in a pod, with the token of a secret and the model on the claimed volume."""
    ran("podman", "volume", "create", "beamwood-models")
    try:
        volume = Path(ran("podman", "volume", "inspect", "beamwood-models", "-f", "{{.Mountpoint}}"))
        shop().save(volume / "model.bw")
        (volume / "model.bw").chmod(0o644)
        (folder / "kubernetes.yaml").write_text(_for_podman(), encoding="utf-8")
        ran("podman", "kube", "play", folder / "kubernetes.yaml")
        return _claims()
    finally:
        ran("podman", "pod", "rm", "-f", "-i", POD)
        ran(
            "podman", "volume", "rm", "-f", "beamwood-models", "beamwood"
        )  # the second is the secret, as podman mounts it
        ran("podman", "secret", "rm", "beamwood")
        ran("podman", "network", "rm", "-f", "podman-default-kube-network")


def _for_podman() -> str:
    """The file with the secret that its first lines ask for. The volume is there already and has the model on it; two
    replicas would want the same port of this machine."""
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    for ours, here in (
        ("registry.example.org/beamwood:0.1.0", "localhost/beamwood:latest"),
        ("replicas: 2", "replicas: 1"),
    ):
        assert text.count(ours) == 1, ours
        text = text.replace(ours, here)
    token = b64encode(b"a-token-for-the-pod").decode()
    secret = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: beamwood}}\ndata: {{token: {token}}}"
    return "\n---\n".join(
        [secret, *(part for part in text.split("\n---\n") if "kind: PersistentVolumeClaim" not in part)]
    )


def _claims() -> dict[str, bool]:
    def inside(code: str) -> str:
        return ran("podman", "exec", CONTAINER, "python3", "-c", code)

    held = {"Kubernetes: the pod is ready": until(lambda: "ready" in answer("/readyz"))}
    token = inside("print(open('/run/secrets/token').read())")  # podman 4.3 leaves it in base 64
    found = json.loads(answer("/v1/search?q=warm+wool+socks&k=1", token))["hits"][0]["key"]
    held["Kubernetes: answers with the secret's token"] = found == shop().search("warm wool socks", 1)[0].key
    held["Kubernetes: user 10001"] = inside("import os; print(os.getuid())") == "10001"
    touch = "import pathlib\ntry: pathlib.Path('/opt/x').touch()\nexcept OSError as error: print(error.errno)"
    held["Kubernetes: the root cannot be written"] = inside(touch) == "30"
    ran("podman", "pod", "stop", "-t", "45", POD)
    held["Kubernetes: ends with 0"] = ran("podman", "inspect", "-f", "{{.State.ExitCode}}", CONTAINER) == "0"
    return held


def compose(folder: Path) -> dict[str, bool]:
    """The server and Prometheus, who finds it by its name."""
    place = folder / "deploy"
    shutil.copytree(DEPLOY, place)
    (place / "models").mkdir()
    shop().save(place / "models" / "model.bw")
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    _stand_in()
    ran("podman", "tag", "localhost/beamwood", "localhost/deploy_beamwood")  # what the file would build
    compose = ("podman-compose", "-f", "compose.yaml")
    try:
        ran(*compose, "up", "-d", "--no-build", "beamwood", "prometheus", where=place)
        held = {"compose: the server is ready": until(lambda: "ready" in answer("/readyz"))}
        held["compose: the page is there"] = "<title>beamwood search</title>" in answer("/")
        address = ran(
            "podman", "inspect", "deploy_prometheus_1", "-f", "{{.NetworkSettings.Networks.deploy_default.IPAddress}}"
        )

        def told(path: str) -> str:
            return answer(path, url=f"http://{address}:9090")

        held["compose: Prometheus reads the server's figures"] = until(
            lambda: ',"1"]' in told("/api/v1/query?query=up")
        )
        rules = json.loads(told("/api/v1/rules"))["data"]["groups"][0]["rules"]
        held["compose: the alarms are loaded"] = len(rules) == 5
    finally:
        ran(*compose, "down", where=place)
        ran("podman", "network", "rm", "-f", "deploy_default")  # which podman-compose leaves
    return held


def _stand_in() -> None:
    """An image of Debian's Prometheus under the name that the file asks for."""
    place = STORE / "prometheus"
    place.mkdir(exist_ok=True)
    shutil.copy(str(shutil.which("prometheus")), place / "prometheus")
    (place / "Dockerfile").write_text(PROMETHEUS, encoding="utf-8")
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    image = next(line.split()[-1] for line in text.splitlines() if "image: prom/prometheus" in line)
    ran("buildah", "bud", "--isolation", "chroot", "-t", f"docker.io/{image}", place)
