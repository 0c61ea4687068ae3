"""A rival's name in, an interpreter that has it out; and a request to it in, its answer out.

Each rival lives in `build/rivals/<name>`, made on first use: their requirements contradict each other and ours. A
worker script runs there and nothing else; what goes in and out are files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import beamwood

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HOMES = ROOT / "build" / "rivals"
STEPS: dict[str, list[list[str]]] = {
    "pecos": [["numpy<2", "scipy<1.14", "scikit-learn"], ["--no-deps", "libpecos==1.2.8"]],
    "napkinxc": [["napkinxc==0.7.2", "numpy", "scipy", "scikit-learn"]],
    "omikuji": [["omikuji==0.5.2", "numpy", "scipy"]],
    "libmultilabel": [["torch==2.13.0"], ["libmultilabel==0.10.0"]],
    "annif": [["annif==1.4.*"]],
}


def python_of(name: str) -> Path:
    """The interpreter of a rival; its environment is made when it is not there yet."""
    home = HOMES / name
    python, done = home / "bin" / "python", home / "ready"
    if not done.exists():
        print(f"installing {name} into {home}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        for packages in STEPS[name]:
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        done.touch()
    return python


def run(name: str, *words: object, timeout: float = 900, **environment: str) -> str:
    """Runs the rival's interpreter; what it printed. A failure shows what it said."""
    command = [str(python_of(name)), *map(str, words)]
    inherited = {"PATH": "/usr/bin:/bin", "HOME": str(HOMES), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False, env={**inherited, **environment}
    )
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"
    return ran.stdout


def ask(name: str, place: Path, verb: str, /, **given: Any) -> None:
    """One request to worker_<name>.py: JSON in, files out."""
    request = place / "request.json"
    request.write_text(json.dumps({"verb": verb, **given}, default=str))
    run(name, HERE / f"worker_{name}.py", request, PYTHONPATH=str(ours(place)))


def ours(folder: Path) -> Path:
    """A folder that holds nothing but our package: for rivals that import it into their process."""
    place = folder / "ours"
    place.mkdir(exist_ok=True)
    link = place / "beamwood"
    if not link.exists():
        link.symlink_to(Path(beamwood.__file__).parent)
    return place
