"""A request to a rival in, its answer out: a worker script runs in the rival's interpreter and nothing else.

What goes in and out are files. The environments are those of the benchmark, made on first use.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import beamwood
from bench.rivals.install import BUILD, python_of

HERE = Path(__file__).resolve().parent


def run(name: str, *words: object, timeout: float = 900, **environment: str) -> str:
    """Runs the rival's interpreter; what it printed. A failure shows what it said."""
    command = [str(python_of(name)), *map(str, words)]
    inherited = {"PATH": "/usr/bin:/bin", "HOME": str(BUILD), "OMP_NUM_THREADS": "1"}
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


def nltk_data(home: Path) -> Path:
    """What nltk needs to split sentences, which Annif asks for: parameters that know no abbreviations."""
    sentences = home / "nltk" / "tokenizers" / "punkt_tab" / "english"
    sentences.mkdir(parents=True, exist_ok=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (sentences / name).touch()
    return home / "nltk"
