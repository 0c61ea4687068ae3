"""podman.py — commands in, what they print out: podman and buildah with a store and settings of the campaigns' own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "build" / "image"
URL = "http://127.0.0.1:8000"
# A store that needs no overlay file system, and limits that need no right to raise them. crun 1.8, which podman would
# take, refuses machines with both kinds of cgroups.
SETTINGS = {
    "CONTAINERS_STORAGE_CONF": f'[storage]\ndriver = "vfs"\ngraphroot = "{STORE}/store"\nrunroot = "{STORE}/run"\n',
    "CONTAINERS_CONF": '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
    + ('[engine]\nruntime = "runc"\n' if shutil.which("runc") else ""),
}


def settle() -> None:
    """Writes the settings, and has every program that is started from here read them."""
    STORE.mkdir(parents=True, exist_ok=True)
    for name, text in SETTINGS.items():
        path = STORE / f"{name.lower()}.toml"
        path.write_text(text, encoding="utf-8")
        os.environ[name] = str(path)


def ran(*words: object, where: Path | None = None) -> str:
    """What a command prints; one that fails ends the campaign with what it said."""
    done = subprocess.run(list(map(str, words)), cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout.strip()


def until(claim: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether something comes true."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            if claim():
                return True
        except OSError:
            pass
        time.sleep(0.2)
    return False


def answer(path: str, token: str = "", url: str = URL) -> str:
    """What a server says."""
    with urlopen(Request(url + path, headers={"Authorization": f"Bearer {token}"}), timeout=10) as said:
        return str(said.read().decode())
