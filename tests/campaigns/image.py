"""image.py — the server image, built from nothing but Debian's packages, in; what it promises, tried with podman, out.

    python tests/campaigns/image.py     (make test-image; needs root and the programs below)

No registry is asked: the two images that deploy/Dockerfile stands on are made by mmdebstrap, one with a compiler's
needs, one with Python and nothing else. Claims: the server runs as user 10001 with a root that cannot be written and
without rights, is healthy, answers, takes a new file at SIGHUP, ends with 0 at SIGTERM; the image has less than 150 MB.
Then podman plays deploy/kubernetes.yaml and deploy/compose.yaml with it (played.py).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.serving import shop

from campaigns.played import compose, kubernetes
from campaigns.podman import ROOT, STORE, answer, ran, settle, until

PROGRAMS = ("mmdebstrap", "buildah", "podman", "podman-compose", "catatonit", "prometheus")  # as Debian calls them
MOST_MB = 150
NEVER_READ = ("share/man", "share/doc", "share/locale", "lib/x86_64-linux-gnu/gconv")
NOT_RUN = ("lib/python3.11/pydoc_data",)  # where packages are set up, Python's own set-up compiles it
BASES = {  # the image: how mmdebstrap makes it, with which packages, without which folders
    "localhost/build": ("minbase", "python3,python3-pip,python3-dev,ca-certificates", NEVER_READ),
    "localhost/run": ("extract", "base-files,python3,python3-minimal,libstdc++6,zlib1g", NEVER_READ + NOT_RUN),
}
# Where pip has settings and certificates of its own, the build needs them too, and what they name: IMAGE_BORROWS=/a:/b
BORROWED = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf", str(Path.home() / ".config" / "pip")]
BORROWED += [path for path in os.environ.get("IMAGE_BORROWS", "").split(":") if path]


def base(image: str) -> None:
    """One of the two images below ours."""
    variant, packages, folders = BASES[image]
    root = STORE / f"{variant}.tar"
    left_out = [f"--dpkgopt=path-exclude=/usr/{folder}/*" for folder in folders]
    ran("mmdebstrap", f"--variant={variant}", f"--include={packages}", *left_out, "bookworm", root)
    made = ran("buildah", "from", "scratch")
    ran("buildah", "add", "-q", made, root, "/")
    ran("buildah", "commit", "-q", made, image)
    ran("buildah", "rm", made)


def build() -> None:
    """The image, as deploy/Dockerfile says."""
    volumes = [word for path in BORROWED if Path(path).exists() for word in ("-v", f"{path}:{path}:ro")]
    arguments = ["--build-arg", "BUILD=localhost/build", "--build-arg", "RUN=localhost/run"]
    where = ["-f", ROOT / "deploy" / "Dockerfile", "-t", "localhost/beamwood", ROOT]
    ran("buildah", "bud", "--isolation", "chroot", "--format", "docker", *volumes, *arguments, *where)


def campaign(folder: Path) -> dict[str, bool]:
    """Each claim, and whether it holds."""
    folder.chmod(0o755)
    shop().save(folder / "shop.bw")
    token = "a-token-for-the-image"
    (folder / "token").write_text(token + "\n")
    for path in folder.iterdir():
        path.chmod(0o644)
    size = int(ran("podman", "image", "inspect", "-f", "{{.Size}}", "localhost/beamwood")) / 1e6
    print(f"  the image has {size:.0f} MB")
    rights = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    volumes = ["-v", f"{folder}:/models:ro", "-v", f"{folder / 'token'}:/run/secrets/token:ro"]
    plain = ["--no-healthcheck", "--network", "host"]  # a timer for it would need systemd, so it is asked by hand
    image = ["localhost/beamwood", "/models/shop.bw", "--workers", "1"]
    name = ran("podman", "run", "-d", *plain, *rights, *volumes, *image)
    try:
        held = {f"less than {MOST_MB} MB": size < MOST_MB, "ready": until(lambda: "ready" in answer("/readyz"))}
        found = json.loads(answer("/v1/search?q=warm+wool+socks&k=1", token))["hits"][0]["key"]
        held["answers as the model does"] = found == shop().search("warm wool socks", 1)[0].key
        held["user 10001"] = ran("podman", "exec", name, "python3", "-c", "import os; print(os.getuid())") == "10001"
        touch = "import pathlib\ntry: pathlib.Path('/opt/x').touch()\nexcept OSError as error: print(error.errno)"
        held["the root cannot be written"] = ran("podman", "exec", name, "python3", "-c", touch) in ("30", "13")
        check = json.loads(ran("podman", "inspect", "-f", "{{json .HealthCheck}}", "localhost/beamwood"))["Test"]
        held["the health check passes"] = not ran("podman", "exec", name, *check[1:])
        shop().with_notes({"version": "2"}).save(folder / "next.bw")
        (folder / "next.bw").chmod(0o644)
        (folder / "next.bw").rename(folder / "shop.bw")
        ran("podman", "kill", "-s", "HUP", name)
        taken = "beamwood_swaps_total 1"
        held["SIGHUP takes the new file"] = until(lambda: taken in answer("/metrics", token))
        ran("podman", "stop", "-t", "40", name)
        held["ends with 0"] = ran("podman", "inspect", "-f", "{{.State.ExitCode}}", name) == "0"
    finally:
        ran("podman", "rm", "-f", name)
    return held


def main() -> int:
    """Builds, tries, says what holds."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        print(f"the image was NOT tried: {', '.join(missing)} missing (packages of Debian)")
        return 3
    settle()
    if "--keep" not in sys.argv:
        for image in BASES:
            base(image)
        build()
    with tempfile.TemporaryDirectory() as folder:
        held = {**campaign(Path(folder)), **kubernetes(Path(folder)), **compose(Path(folder))}
    for claim, holds in held.items():
        print(f"{'holds' if holds else 'FAILS'}  {claim}")
    return int(not all(held.values()))


if __name__ == "__main__":
    sys.exit(main())
