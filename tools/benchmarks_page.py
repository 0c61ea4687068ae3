"""A folder that `beamwood bench PLAN` wrote in; docs/benchmarks.md, its figures and its pictures out.

python tools/benchmarks_page.py build/bench-report   # take over a new run
python tools/benchmarks_page.py                      # write the page again from the figures that are there
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from beamwood.bench.gauntlet import markdown, write_report

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIGURES = DOCS / "benchmarks" / "report.json"
INTRO = """# Benchmarks

Made by `tools/benchmarks_page.py` from `docs/benchmarks/report.json`, the figures of a real run. To measure your own
machine, from a clone:

    make bench                                                     # what is shown here: ten minutes on two cores
    python bench/rivals/install.py libpecos napkinxc omikuji       # the programs to compare with, once
    beamwood bench bench/plans/full.toml --data DATA --rivals build/rivals --out report   # larger sets, an hour
    beamwood bench plan.toml --data folder --out report            # your own plan and your own data

A plan is a few lines of TOML; `beamwood bench --help` says what it may hold. Real sets are used where the folder given
with `--data` has them: as `X.trn.npz`, `Y.trn.npz`, `X.tst.npz`, `Y.tst.npz`, or as `train.txt` and `test.txt` of the
Extreme Classification Repository. Stand-ins are generated: rows and labels of the paper's sets times a scale, features
times its square root.
"""


def page(report: dict[str, object]) -> str:
    """The page for these figures."""
    pictures = sorted(f"benchmarks/{path.name}" for path in FIGURES.parent.glob("*.svg"))
    _, _, body = markdown(report, pictures).partition("\n\n")
    return f"{INTRO}\n## How it was measured\n\n{body}"


def main() -> None:
    FIGURES.parent.mkdir(exist_ok=True)
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        shutil.copy(folder / "report.json", FIGURES)
        write_report(json.loads(FIGURES.read_text()), folder)
        for picture in (folder / "plots").glob("*.svg"):
            shutil.copy(picture, FIGURES.parent / picture.name)
    (DOCS / "benchmarks.md").write_text(page(json.loads(FIGURES.read_text())))


if __name__ == "__main__":
    main()
