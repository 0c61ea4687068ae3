"""options.py — what was asked for on the command line in, one frozen and checked description of a server out."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beamwood.errors import SettingsError
from beamwood.inputs.arguments import cores

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MODELS_AT_MOST = 64
WORKERS_AT_MOST = 256
SHORTEST_TOKEN = 16


MODELS, WHERE, WHO, ANSWERS, LIMITS, LOG = "Models", "Where", "Who may ask", "Answers", "Limits", "Log"


def _option(help_: str, panel: str, default: Any = None, **more: Any) -> Any:
    """A field with what the command line shows of it: a sentence, the panel of the help that it stands in.

    more: `flag` and `metavar` where they are not the field's name and type; `type` where the command line takes another
    one than the field has, `read` what makes the field's value of that; `factory` the default where it is made.
    """
    made = {"default_factory": more.pop("factory")} if "factory" in more else {"default": default}
    return field(**made, metadata={"help": help_, "panel": panel, **more})


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """A server: its models, where it listens, and what it bears. Times in milliseconds where the name says so.

    Every field but `models` is an option of `beamwood serve`, made of what stands here (cli/serve.py).
    """

    models: Mapping[str, Path]
    filters: Mapping[str, Path] = _option(
        "Label keys, one per line, that a request may limit itself to by name.", MODELS, factory=dict, flag="--filter",
        metavar="NAME=FILE", type=list[str], read=lambda words: dict(name_and_file("--filter", word) for word in words),
    )  # fmt: skip
    uri_prefix: str = _option("What comes before a key in the answers for Annif.", MODELS, "")
    encoder: str | None = _option(
        "What makes vectors of texts, of a model that cannot open it by itself: onnx:FOLDER, model2vec:FOLDER.", MODELS,
        metavar="NAME",
    )  # fmt: skip
    warm: str = _option(
        "Before it says that it is ready: questions, file (also reads the whole file) or off.", MODELS, "questions",
    )  # fmt: skip
    reload_guard: float | None = _option(
        "Refuse to reload a model whose first answer differs for more than this share of queries, e.g. 0.2.", MODELS,
    )  # fmt: skip
    reload_guard_queries: str | None = _option(
        "The queries of --reload-guard: a text per line (.txt), or JSONL, CSV or Parquet with a column `text`; the "
        "names of labels if not given.", MODELS, metavar="FILE",
    )  # fmt: skip
    host: str = _option("The address to listen at.", WHERE, "127.0.0.1")
    port: int = _option("The port; 0 takes a free one.", WHERE, 8000)
    workers: int = _option(
        "Processes; one per core if not given. They share the model's memory.", WHERE, factory=cores, type=int | None,
        read=lambda count: cores() if count is None else count,
    )  # fmt: skip
    threads: int = _option("Engine threads per worker.", WHERE, 1)
    token: str | None = _option(
        "A file with the token that requests must bring.", WHO, flag="--token-file", type=Path | None,
        read=lambda path: None if path is None else read_token(path),
    )  # fmt: skip
    open_to_all: bool = _option("Listen beyond this machine without a token.", WHO, False)
    allow_hosts: tuple[str, ...] = _option(
        "Answer to this host name too; '*' allows all. Without a token, only names of this machine are answered to.",
        WHO, (), flag="--allow-host",
        metavar="HOST", type=list[str], read=tuple,
    )  # fmt: skip
    cors: tuple[str, ...] = _option(
        "Let pages of this origin ask; '*' lets all.", WHO, (), metavar="ORIGIN", type=list[str], read=tuple
    )
    page: bool = _option("Show the search page at /.", WHO, True, flag="--page/--no-page")
    k: int = _option("Labels returned for each query.", ANSWERS, 10, flag="--k/-k")
    beam: int | None = _option(
        "Nodes kept per layer: more is slower and finds more. Each model's own if not given.", ANSWERS, flag="--beam/-b"
    )
    max_k: int = _option("The largest k of a request.", LIMITS, 1000)
    max_beam: int = _option("The widest beam of a request.", LIMITS, 1000)
    max_texts: int = _option("The most texts of a request.", LIMITS, 1000)
    max_hits: int = _option("The most hits of an answer: texts times k.", LIMITS, 100_000)
    max_keys: int = _option("The most label keys of allow, and of deny, in a request.", LIMITS, 10_000)
    max_body: int = _option("The most bytes of a request.", LIMITS, 1 << 20)
    queue: int = _option("Requests that may wait, per worker.", LIMITS, 1024)
    queue_ms: float = _option("Turn away (503) at once what would wait longer.", LIMITS, 50.0)
    timeout_ms: float = _option("End (503) what has not been answered by then, also when it runs.", LIMITS, 1000.0)
    read_timeout_ms: float = _option("Time for a client to send a request.", LIMITS, 10_000.0)
    keep_alive_s: float = _option("Close a connection on which nothing comes for so long.", LIMITS, 75.0)
    drain_s: float = _option("Time for running requests when told to stop.", LIMITS, 30.0)
    log: str = _option("requests, errors or off.", LOG, "requests")
    log_queries: bool = _option("Write the texts of queries into the log.", LOG, False)

    def __post_init__(self) -> None:
        """Refuses what cannot be meant."""
        if not 1 <= len(self.models) <= MODELS_AT_MOST:
            raise SettingsError(
                f"the server has {len(self.models)} models; expected 1 to {MODELS_AT_MOST}. Start another server."
            )
        for name in (*self.models, *self.filters):
            if not _NAME.fullmatch(name):
                raise SettingsError(
                    f"the name {name!r} cannot stand in an address; expected letters, digits, '-', '_' and '.', 64 at "
                    "most. Give another with --name NAME=MODEL."
                )
        self._check_range("port", self.port, 0, 65535)
        self._check_range("workers", self.workers, 1, WORKERS_AT_MOST)
        self._check_range("threads", self.threads, 1, WORKERS_AT_MOST)
        for name in ("k", "max_k", "max_beam", "max_texts", "max_hits", "max_keys", "max_body", "queue"):
            self._check_range(name, getattr(self, name), 1, 2**31 - 1)
        if self.beam is not None:
            self._check_range("beam", self.beam, 1, 2**31 - 1)
        for name in ("queue_ms", "timeout_ms", "read_timeout_ms", "keep_alive_s", "drain_s"):
            self._check_range(name, getattr(self, name), 0.001, 1e9)
        if self.k > self.max_k or (self.beam or 1) > self.max_beam:
            raise SettingsError(
                f"--k is {self.k} and --beam is {self.beam or 1}; expected at most --max-k ({self.max_k}) and "
                f"--max-beam ({self.max_beam}). Raise the limits or lower the usual values."
            )
        if self.reload_guard is not None:
            self._check_range("reload_guard", self.reload_guard, 0.0, 1.0)
        self._check_choice("log", self.log, ("requests", "errors", "off"))
        self._check_choice("warm", self.warm, ("questions", "file", "off"))
        if not self.is_loopback and self.token is None and not self.open_to_all:
            raise SettingsError(
                f"--host is {self.host}, which other machines can reach; expected a token then. Give --token-file, or "
                "--open-to-all if everyone who can reach it may ask."
            )

    def _check_choice(self, name: str, value: str, choices: tuple[str, ...]) -> None:
        if value not in choices:
            raise SettingsError(f"--{name} is {value!r}; expected one of {', '.join(choices)}. Give one of them.")

    def _check_range(self, name: str, value: float, least: float, most: float) -> None:
        if not least <= value <= most:
            raise SettingsError(f"--{name.replace('_', '-')} is {value:,}; expected {least:,} to {most:,}.")

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that requests may name, in lower case and without a port; empty where they may name any.

        Pages of any site can send requests to a server of this machine, under a name that they made lead here (DNS
        rebinding). Where no token keeps them out, the name does.
        """
        if "*" in self.allow_hosts:
            return frozenset()
        named = {host.lower() for host in self.allow_hosts}
        if named or (self.is_loopback and self.token is None):
            named |= {
                "localhost",
                "127.0.0.1",
                "[::1]",
                f"[{host}]" if ":" in (host := self.host.strip("[]")) else host,
            }
        return frozenset(named)

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
            f"{path} cannot be read ({error.__class__.__name__}); expected a text file with one token."
        ) from None
    if len(lines) != 1 or len(lines[0]) < SHORTEST_TOKEN:
        raise SettingsError(
            f"{path} has no such token; expected one token of at least {SHORTEST_TOKEN} characters. Make one with: "
            "python3 -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return lines[0]


def name_and_file(option: str, words: str) -> tuple[str, Path]:
    """A name and a path, as an option of the command line gives them."""
    name, equals, path = words.partition("=")
    if not (name and equals and path):
        raise SettingsError(f"{option} is {words!r}; expected NAME=FILE. For example: {option} shop=shop.bw")
    return name, Path(path)
