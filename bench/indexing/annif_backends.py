"""annif_backends.py — a folder of library records and names of Annif's backends in, a table of what each reaches out.

Every backend is a project of a real Annif with the same vocabulary, analyzer and corpora, trained and evaluated by
Annif's own command line: F1@5 and nDCG, seconds of `annif train` and `annif eval`, and the most memory that each held.

    python bench/indexing/annif_backends.py DATA --python ENV/bin/python --rows 100000 --out build/annif.json

DATA has raw.jsonl.gz (split, text, labels) and labels.txt.gz (name TAB URI). ENV has Annif, and beamwood for ours.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROJECTS = {
    "omikuji-bonsai": "backend=omikuji\ncluster_balanced=False\ncluster_k=100\nmax_depth=3\nmin_df=2\n",
    "fasttext": "backend=fasttext\nepoch=30\nchunksize=24\n",  # the rest as Annif sets it: dim=100, lr=0.25, loss=hs
    "mllm": "backend=mllm\n",
    "beamwood": "backend=beamwood\n",
    "beamwood-fast": "backend=beamwood\npreset=fast\n",
}
MEASURES = ("F1@5", "NDCG")
MLLM_ROWS = 5000  # its makers advise hundreds to a few thousand documents


def write_corpora(data: Path, home: Path, rows: int, asked: int) -> None:
    """Vocabulary and corpora as Annif reads them; the same random rows for everybody."""
    with gzip.open(data / "labels.txt.gz", "rt", encoding="utf-8") as lines:
        labels = [(line.split("\t")[0], line.split()[-1]) for line in lines]
    (home / "vocab.tsv").write_text("".join(f"<{uri}>\t{name}\n" for name, uri in labels), encoding="utf-8")
    split: dict[str, list[str]] = {"trn": [], "tst": []}
    with gzip.open(data / "raw.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            uris = " ".join(f"<{labels[label][1]}>" for label in row["labels"])
            split[row["split"]].append(f"{' '.join(row['text'].split())}\t{uris}\n")
    chance = random.Random(0)
    train = split["trn"] if rows <= 0 else chance.sample(split["trn"], min(rows, len(split["trn"])))
    (home / "train.tsv").write_text("".join(train), encoding="utf-8")
    (home / "train-small.tsv").write_text("".join(train[:MLLM_ROWS]), encoding="utf-8")
    (home / "test.tsv").write_text(
        "".join(chance.sample(split["tst"], min(asked, len(split["tst"])))), encoding="utf-8"
    )


def write_projects(home: Path, analyzer: str) -> None:
    text = "".join(
        f"[{name}]\nname={name}\nlanguage=en\nanalyzer={analyzer}\nvocab=subjects\nlimit=100\n{lines}\n"
        for name, lines in PROJECTS.items()
    )
    (home / "projects.cfg").write_text(text, encoding="utf-8")
    sentences = home / "nltk" / "tokenizers" / "punkt_tab" / "english"  # parameters that know no abbreviations
    sentences.mkdir(parents=True, exist_ok=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (sentences / name).touch()


def timed(python: Path, home: Path, *words: object) -> tuple[float, float, float]:
    """Runs a command of Annif: seconds by the clock, seconds of processor time, MB at its largest."""
    place = {"ANNIF_DATADIR": str(home / "data"), "ANNIF_PROJECTS": str(home / "projects.cfg")}
    command = [str(python), "-m", "beamwood.annif", *map(str, words)]
    begun = time.perf_counter()
    child = subprocess.Popen(
        command, cwd=home, env={**os.environ, **place, "NLTK_DATA": str(home / "nltk")}, stdout=sys.stderr
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measured(python: Path, home: Path, name: str, jobs: int) -> dict[str, Any]:
    """One line of the table."""
    corpus = home / ("train-small.tsv" if name == "mllm" else "train.tsv")
    trained = timed(python, home, "train", name, corpus, "--jobs", jobs)
    figures = home / f"{name}.json"
    metrics = [word for measure in MEASURES for word in ("--metric", measure)]
    asked = timed(python, home, "eval", name, home / "test.tsv", *metrics, "--metrics-file", figures, "--jobs", 1)
    found = json.loads(figures.read_text(encoding="utf-8"))
    folder = home / "data" / "projects" / name
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and "-train" not in path.name)
    return {
        "backend": name,
        **{measure: found[measure] for measure in MEASURES},
        **dict(zip(("train_seconds", "train_cpu_seconds", "train_mb"), trained, strict=True)),
        **dict(zip(("eval_seconds", "eval_cpu_seconds", "eval_mb"), asked, strict=True)),
        "model_mb": size / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--python", type=Path, required=True, help="the interpreter that has Annif")
    parser.add_argument("--rows", type=int, default=100_000, help="training rows; 0: all")
    parser.add_argument("--asked", type=int, default=5_000, help="test rows")
    parser.add_argument("--backends", nargs="+", default=list(PROJECTS), choices=list(PROJECTS))
    parser.add_argument("--analyzer", default="snowball(english)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--home", type=Path, default=Path("build/annif-backends"))
    parser.add_argument("--out", type=Path, default=Path("build/annif-backends.json"))
    options = parser.parse_args()
    options.python = options.python.absolute()  # it is called from another folder
    home = options.home.absolute()
    home.mkdir(parents=True, exist_ok=True)
    write_projects(home, options.analyzer)
    if not (home / "test.tsv").exists():
        write_corpora(options.data, home, options.rows, options.asked)
    if not (home / "data" / "vocabs" / "subjects").exists():
        timed(options.python, home, "load-vocab", "subjects", "--language", "en", home / "vocab.tsv")
    lines = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else []
    for name in options.backends:
        line = {**measured(options.python, home, name, options.jobs), "rows": options.rows, "asked": options.asked}
        lines = [other for other in lines if other["backend"] != name] + [line]
        options.out.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
