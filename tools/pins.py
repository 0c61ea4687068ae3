"""pins.py — the requirements of pyproject.toml in, constraints.txt out: the versions that the checks are run with.

Every make target installs with `-c constraints.txt`, so a check does not change its mind because somebody published
something. `make pins` asks the package index for the newest versions that fit and writes the file anew; what it then
breaks is mended in the same commit. Only what developers use is pinned: users get the ranges of pyproject.toml.

    python tools/pins.py            # rewrite constraints.txt
    python tools/pins.py --check    # say which requirement has no pin; 1 when there is one
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "constraints.txt"
BUILD = ("cmake", "ninja")
CAMPAIGNS = ("playwright>=1.40", "schemathesis>=4", "psutil")
OLDEST = (3, 10)  # the oldest Python that a pin must not shut out without saying so
HEAD = """# The versions that the checks are run with, for every make target. Written by `make pins`.
"""


def requirements() -> list[str]:
    """What make targets install, as pyproject.toml and the Makefile ask for it."""
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = {*project["build-system"]["requires"], *BUILD, *CAMPAIGNS, *project["project"]["dependencies"]}
    for extra in project["project"]["optional-dependencies"].values():
        found |= set(extra)
    return sorted(found)


def name_of(requirement: str) -> str:
    """The distribution's name in its usual form."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!;~]", requirement.strip(), maxsplit=1)[0]).lower()


def resolved(asked: list[str]) -> list[dict[str, Any]]:
    """What pip would install for all of it together in an empty environment."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    ran = subprocess.run([*command, *asked], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT / "tools")
    return [entry["metadata"] for entry in json.loads(ran.stdout)["install"]]


def pin(package: dict[str, Any]) -> str:
    """One line; for a version that older Pythons cannot have, only from the Python it needs on."""
    found = re.search(r">=\s*3\.(\d+)", package.get("requires_python") or "")
    marker = f' ; python_version >= "3.{found[1]}"' if found and (3, int(found[1])) > OLDEST else ""
    return f"{name_of(package['name'])}=={package['version']}{marker}"


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        pinned = {name_of(line) for line in PINS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
        missing = [r for r in requirements() if name_of(r) not in pinned and "python_version" not in r]
        for requirement in missing:
            print(f"{requirement} has no pin; run: make pins", file=sys.stderr)
        sys.exit(1 if missing else 0)
    lines = sorted(pin(package) for package in resolved(requirements()))
    PINS.write_text(HEAD + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{PINS.name}: {len(lines)} versions")


if __name__ == "__main__":
    main()
