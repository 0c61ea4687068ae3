"""address.py — `hf://org/name@revision/file` or `https://…#sha256=…` in, its parts out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from beamwood.errors import SettingsError

_SCHEME = re.compile(r"(hf|https?):/{1,2}(?=[^/])", re.IGNORECASE)  # a pathlib.Path keeps only one of two slashes
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_HUB = re.compile(rf"({_NAME}/{_NAME})(?:@([^/@]+))?(?:/(.+))?")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_THIS_MACHINE = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/|$)")
_FORM = "Write hf://org/name, hf://org/name@revision or hf://org/name@revision/file.bw."


@dataclass(frozen=True)
class HubAddress:
    """A file of a repository on a hub.

    revision: a branch, tag or commit; None: the main branch. file: None: its model.bw or only model.
    """

    repo: str
    revision: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        revision = "" if self.revision is None else f"@{self.revision.replace('/', '%2F')}"
        return f"hf://{self.repo}{revision}" + ("" if self.file is None else f"/{self.file}")


@dataclass(frozen=True)
class WebAddress:
    """A file on a web server, and the SHA-256 that it must have where that is known."""

    url: str
    sha256: str | None = None

    def __str__(self) -> str:
        return self.url


Address = HubAddress | WebAddress


def is_address(path: Any) -> bool:
    """Whether a model's path names something that is not on this machine."""
    try:
        given = os.fspath(path)
    except TypeError:
        return False
    return isinstance(given, str) and _SCHEME.match(given) is not None


def parsed(path: str | os.PathLike[str]) -> Address:
    """The parts of an address, which may come as a Path."""
    given = os.fspath(path)
    found = _SCHEME.match(given)
    if found is None or not given.isprintable():
        raise SettingsError(f"{given!r:.200} is no address of a model; expected hf://… or https://…. {_FORM}")
    rest = given[found.end() :]
    return _on_hub(rest) if found[1].lower() == "hf" else _on_web(found[1].lower(), rest)


def file_name(path: str | os.PathLike[str]) -> str:
    """What to call a model by its path: the file's name, or that of the repository that an address names."""
    if not is_address(path):
        return os.path.basename(os.fspath(path))
    found = parsed(path)
    if isinstance(found, HubAddress):
        return (found.file or found.repo).rpartition("/")[2]
    return found.url.partition("?")[0].rstrip("/").rpartition("/")[2]


def _on_hub(rest: str) -> HubAddress:
    from urllib.parse import unquote

    found = _HUB.fullmatch(rest.rstrip("/"))
    if found is None or ".." in found[1] or "--" in found[1]:
        raise SettingsError(f"hf://{rest:.200} is not of an address's form; expected hf://org/name. {_FORM}")
    file = found[3]
    if file is not None and any(piece in ("", ".", "..") for piece in file.split("/")):
        raise SettingsError(f"hf://{rest:.200} names the file {file!r:.80}; expected a path inside the repository.")
    return HubAddress(found[1], None if found[2] is None else unquote(found[2]), file)


def _on_web(scheme: str, rest: str) -> WebAddress:
    where, _, fragment = rest.partition("#")
    url = f"{scheme}://{where}"
    if "@" in where.partition("/")[0]:
        raise SettingsError(f"{scheme}://…@… has a user's name or password; expected none. Download the file yourself.")
    if not fragment:
        if scheme == "http" and not _THIS_MACHINE.match(where):
            raise SettingsError(
                f"{url:.200} has no checksum, and http:// can be changed on its way; expected https://, or "
                "http://…#sha256= and the file's SHA-256 (sha256sum FILE)."
            )
        return WebAddress(url)
    name, _, value = fragment.partition("=")
    if name.lower() != "sha256" or not _SHA256.fullmatch(value):
        raise SettingsError(
            f"#{fragment:.100} is no checksum; expected #sha256= and 64 hexadecimal digits (sha256sum FILE)."
        )
    return WebAddress(url, value.lower())
