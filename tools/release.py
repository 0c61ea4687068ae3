"""release.py — a clean source tree whose version and changelog agree in; checks, wheels, sdist and a tag out.

Dry by default: it says what it would do and stops before it changes anything. `make release GO=1` does it. Nothing is
uploaded: that is one command, which it prints at the end.

    python tools/release.py [--go]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--go", action="store_true", help="do it; without this only say what is missing")
    go = parser.parse_args().go
    version = version_of((ROOT / "src/beamwood/_version.py").read_text(encoding="utf-8"))
    problems = list(problems_of(version))
    for problem in problems:
        print(f"not yet: {problem}")
    steps = [[".ci/run"], ["make", "wheels"], ["git", "tag", "-a", f"v{version}", "-m", version]]
    if not go:
        print(f"\nA release of {version} would run:")
        for step in steps:
            print("  " + " ".join(step))
        print("Nothing was changed. make release GO=1 does it once nothing is missing.")
        sys.exit(1 if problems else 0)
    if problems:
        fail("mend what is missing first")
    for step in steps:
        print("== " + " ".join(step), flush=True)
        if subprocess.run(step, cwd=ROOT, check=False).returncode:
            fail(f"{' '.join(step)} failed; nothing is tagged")
    print(f"v{version} is tagged, dist/ holds what to upload: git push --tags && twine upload dist/*")


def problems_of(version: str) -> list[str]:
    """What stands in the way of a release."""
    found = []
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        found.append(f"CHANGELOG.md has no section `## {version} (YYYY-MM-DD)`; rename `## Unreleased`")
    if f"version: {version}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        found.append(f"CITATION.cff does not say `version: {version}`")
    if git("status", "--porcelain"):
        found.append("the tree has changes that are not committed")
    if git("tag", "--list", f"v{version}"):
        found.append(f"the tag v{version} is there already; raise the version in src/beamwood/_version.py")
    return found


def version_of(text: str) -> str:
    """The version that the package says it has."""
    found = re.search(r'^__version__ = "(\d+\.\d+\.\d+[a-z0-9.]*)"$', text, re.MULTILINE)
    return found[1] if found else fail("src/beamwood/_version.py holds no version")


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def fail(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
