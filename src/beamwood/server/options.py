"""options.py — what was asked for on the command line in, one frozen and checked description of a server out."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from beamwood.errors import SettingsError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MODELS_AT_MOST = 64
WORKERS_AT_MOST = 256
SHORTEST_TOKEN = 16


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """A server: its models, where it listens, and what it bears. Times in milliseconds where the name says so."""

    models: Mapping[str, Path]
    filters: Mapping[str, Path] = field(default_factory=dict)  # name ─▶ a file with label keys, one a line
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 1  # engine threads a worker
    token: str | None = None
    open_to_all: bool = False  # listen beyond this machine without a token
    beam: int = 10
    k: int = 10
    max_k: int = 1000
    max_beam: int = 1000
    max_texts: int = 1000
    max_keys: int = 10_000  # of allow and deny in one request
    max_body: int = 1 << 20
    queue: int = 1024  # requests that wait in one worker
    queue_ms: float = 50.0  # a request that would wait longer than this is turned away at once
    timeout_ms: float = 1000.0  # a request that has not begun by then is turned away
    read_timeout_ms: float = 10_000.0  # for a client to send what it began
    keep_alive_s: float = 75.0
    drain_s: float = 30.0
    cors: tuple[str, ...] = ()
    uri_prefix: str = ""  # before the keys of labels in the answers for Annif
    log: str = "requests"  # requests, errors or off
    log_queries: bool = False
    page: bool = True

    def __post_init__(self) -> None:
        """Refuses what cannot be meant."""
        if not 1 <= len(self.models) <= MODELS_AT_MOST:
            raise SettingsError(f"{len(self.models)} models were given; 1 to {MODELS_AT_MOST} are wanted")
        for name in (*self.models, *self.filters):
            if not _NAME.fullmatch(name):
                raise SettingsError(f"the name {name!r} cannot stand in an address; use letters, digits, '-', '_', '.'")
        self._check_range("port", self.port, 0, 65535)
        self._check_range("workers", self.workers, 1, WORKERS_AT_MOST)
        self._check_range("threads", self.threads, 1, WORKERS_AT_MOST)
        for name in ("beam", "k", "max_k", "max_beam", "max_texts", "max_keys", "max_body", "queue"):
            self._check_range(name, getattr(self, name), 1, 2**31 - 1)
        for name in ("queue_ms", "timeout_ms", "read_timeout_ms", "keep_alive_s", "drain_s"):
            self._check_range(name, getattr(self, name), 0.001, 1e9)
        if self.k > self.max_k or self.beam > self.max_beam:
            raise SettingsError("the usual k and beam may not be larger than --max-k and --max-beam")
        if self.log not in ("requests", "errors", "off"):
            raise SettingsError(f"log is {self.log!r}; choose requests, errors or off")
        if not self.is_loopback and self.token is None and not self.open_to_all:
            raise SettingsError(
                f"{self.host} can be reached from other machines and no token was given; use --token-file, or "
                "--open-to-all if everyone who can reach it may ask"
            )

    def _check_range(self, name: str, value: float, least: float, most: float) -> None:
        if not least <= value <= most:
            raise SettingsError(f"--{name.replace('_', '-')} is {value:,}; {least:,} to {most:,} is wanted")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the host."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


def read_token(path: Path) -> str:
    """The token in a file: its first line, long enough not to be guessed."""
    try:
        lines = path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path}: the token cannot be read ({error.__class__.__name__}); a text file is wanted"
        ) from None
    if len(lines) != 1 or len(lines[0]) < SHORTEST_TOKEN:
        raise SettingsError(
            f"{path}: one token of at least {SHORTEST_TOKEN} characters is wanted; make one with: "
            "python3 -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return lines[0]
