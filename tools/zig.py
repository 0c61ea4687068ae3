"""zig.py — the name of a system in, compilers for it, what CMake has to be told, and a wheel's tags out.

A name is what ziglang calls a target: x86_64-linux-gnu.2.28, aarch64-linux-gnu.2.28, x86_64-linux-musl,
aarch64-linux-musl. The compilers are those of the package `ziglang`.
"""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

OLDEST_GLIBC, OLDEST_MUSL = "2.28", "1.2"

# -march=x86-64-v3 is x86_64_v3 there. A system of our own choice is given to the compiler, so it takes no -target.
_SCRIPT = """#!/bin/sh
for word; do
  shift
  case $word in -march=*) word=$(echo "$word" | sed "s/x86-64/x86_64/; s/64-v/64_v/");; esac
  set -- "$@" "$word"
done
exec {python} -m ziglang {tool} -target {target} "$@"
"""


@dataclass(frozen=True)
class Target:
    """A system that wheels are built for."""

    name: str

    @property
    def machine(self) -> str:
        return self.name.split("-")[0]

    @property
    def is_musl(self) -> bool:
        return "musl" in self.name

    @property
    def is_foreign(self) -> bool:
        """Whether the Python that builds cannot import what it builds."""
        return self.is_musl or self.machine != platform.machine()

    @property
    def tag(self) -> str:
        """The platform that the wheel must be for."""
        kind, version = ("musllinux", OLDEST_MUSL) if self.is_musl else ("manylinux", self.name.rpartition("gnu.")[2])
        return f"{kind}_{version.replace('.', '_')}_{self.machine}"

    def compilers(self, python: Path, folder: Path) -> dict[str, str]:
        """Environment variables of a C and a C++ compiler."""
        made = {}
        for variable, tool in (("CC", "cc"), ("CXX", "c++")):
            script = folder / f"zig-{tool}-{self.name}"
            script.write_text(_SCRIPT.format(python=shlex.quote(str(python)), tool=tool, target=self.name))
            script.chmod(0o755)
            made[variable] = str(script)
        if self.is_foreign:
            made["_PYTHON_HOST_PLATFORM"] = f"linux-{self.machine}"
        return made

    def settings(self, abi: str, stub: Path | None) -> list[str]:
        """What pip has to hand to CMake for a Python with this tag; stub: types of the module, made elsewhere."""
        if not self.is_foreign:
            return []
        libc = "musl" if self.is_musl else "gnu"
        digits = abi.removeprefix("cp")
        given = {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": self.machine}
        given |= {"NB_SUFFIX": f".cpython-{digits}-{self.machine}-linux-{libc}.so", "NB_SUFFIX_S": ".abi3.so"}
        if stub is not None:
            given["BEAMWOOD_STUB"] = str(stub)
        return [f"--config-settings=cmake.define.{name}={value}" for name, value in given.items()]

    def platforms(self) -> list[str]:
        """Platforms whose wheels such a system takes, for `pip install --platform`."""
        if self.is_musl:
            return [f"musllinux_1_{minor}_{self.machine}" for minor in (2, 1)]
        newest = int(self.name.rpartition(".")[2])
        return [f"manylinux_2_{minor}_{self.machine}" for minor in range(newest, 16, -1)] + [
            f"manylinux2014_{self.machine}"
        ]


def this_machine() -> Target:
    """This machine, with an older C library."""
    return Target(f"{platform.machine()}-linux-gnu.{OLDEST_GLIBC}")


def version_of(command: list[str]) -> tuple[int, int]:
    """Of a Python that a command runs, perhaps inside an emulator."""
    asked = [*command, "-c", "import sys; print(sys.version_info[0], sys.version_info[1])"]
    major, minor = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    return int(major), int(minor)


def target(text: str) -> Target:
    """A name, checked; a ValueError for argparse."""
    if not re.fullmatch(r"(x86_64|aarch64)-linux-(gnu\.2\.\d+|musl)", text):
        raise ValueError(text)
    return Target(text)
