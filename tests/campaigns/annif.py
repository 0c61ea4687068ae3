"""annif.py — a real Annif with a project of backend http in, its suggestions from our server out."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.serving import LABELS, TEXTS, Running, shop

from bench.rivals.install import python_of


def annif(folder: Path) -> bool:
    """A real Annif with a project of backend http aimed at the server: suggestions and `annif eval`."""
    python = python_of("annif")  # in build/rivals, where it is installed when it is not there yet
    shop().save(folder / "shop.bw")
    prefix = "http://example.org/shop/"
    keys = sorted({key for keys in LABELS for key in keys})
    (folder / "vocab.tsv").write_text("".join(f"<{prefix}{key}>\t{key}\n" for key in keys))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, (text, labels) in enumerate(zip(TEXTS, LABELS, strict=True)):
        (corpus / f"{number}.txt").write_text(text)
        (corpus / f"{number}.tsv").write_text("".join(f"<{prefix}{key}>\t{key}\n" for key in labels))
    with Running(folder / "shop.bw", "--uri-prefix", prefix, "--log", "off") as server:
        (folder / "projects.cfg").write_text(
            f"[shop]\nname=Shop\nlanguage=en\nbackend=http\nendpoint={server.url}/v1/projects/shop/suggest\n"
            "vocab=shop\nlimit=10\n"
        )

        def run(*words: str, given: str | None = None) -> str:
            command = [python, python.with_name("annif"), *words]
            ran = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stderr[-2000:]
            return ran.stdout

        run("load-vocab", "shop", "--language", "en", "vocab.tsv")
        suggested = run("suggest", "shop", given="warm wool socks")
        measured = run("eval", "shop", str(corpus))
    print("  annif suggest: " + " | ".join(line.replace("\t", " ") for line in suggested.splitlines()[:3]))
    figures = [line for line in measured.splitlines() if line.startswith(("F1@5", "NDCG", "Precision@1", "Documents"))]
    print("  annif eval: " + " | ".join(" ".join(line.split()) for line in figures))
    best = suggested.splitlines()[0].split("\t")
    expected = shop().search("warm wool socks", 1)[0]
    return best[1] == expected.key and f"<{prefix}{expected.key}>" == best[0]
