"""serve.py — `beamwood serve`: models in, an HTTP server out, until a signal stops it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support.output import show
from beamwood.errors import SettingsError
from beamwood.inputs.arguments import cores

_NEEDED = ("uvicorn", "uvloop", "httptools", "orjson")
_MODELS, _WHERE, _WHO, _LIMITS, _LOG = "Models", "Where", "Who may ask", "Limits", "Log"


def serve(
    model_file: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A model file; its name is the file's.", show_default=False)
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="NAME=MODEL", help="A model and its name; may be given often.", rich_help_panel=_MODELS
        ),
    ] = None,
    filter_: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="NAME=FILE",
            help="Label keys, one a line, that a request may limit itself to by name.",
            rich_help_panel=_MODELS,
        ),
    ] = None,
    uri_prefix: Annotated[
        str, typer.Option(help="What comes before a key in the answers for Annif.", rich_help_panel=_MODELS)
    ] = "",
    host: Annotated[str, typer.Option(help="The address to listen at.", rich_help_panel=_WHERE)] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", rich_help_panel=_WHERE)] = 8000,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; one a core if not given. They share the model's memory.", rich_help_panel=_WHERE),
    ] = None,
    threads: Annotated[int, typer.Option(help="Engine threads a worker.", rich_help_panel=_WHERE)] = 1,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token that requests must bring.", rich_help_panel=_WHO)
    ] = None,
    open_to_all: Annotated[
        bool, typer.Option("--open-to-all", help="Listen beyond this machine without a token.", rich_help_panel=_WHO)
    ] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let pages of this origin ask; '*' lets all.", rich_help_panel=_WHO),
    ] = None,
    page: Annotated[bool, typer.Option(help="Show the search page at /.", rich_help_panel=_WHO)] = True,
    k: o.K = 10,
    beam: o.Beam = 10,
    max_k: Annotated[int, typer.Option(help="The largest k of a request.", rich_help_panel=_LIMITS)] = 1000,
    max_beam: Annotated[int, typer.Option(help="The widest beam of a request.", rich_help_panel=_LIMITS)] = 1000,
    max_texts: Annotated[int, typer.Option(help="The most texts of a request.", rich_help_panel=_LIMITS)] = 1000,
    max_body: Annotated[int, typer.Option(help="The most bytes of a request.", rich_help_panel=_LIMITS)] = 1 << 20,
    queue: Annotated[int, typer.Option(help="Requests that may wait, a worker.", rich_help_panel=_LIMITS)] = 1024,
    queue_ms: Annotated[
        float, typer.Option(help="Turn away (503) what would wait longer.", rich_help_panel=_LIMITS)
    ] = 50.0,
    timeout_ms: Annotated[
        float, typer.Option(help="Turn away (503) what has not begun by then.", rich_help_panel=_LIMITS)
    ] = 1000.0,
    read_timeout_ms: Annotated[
        float, typer.Option(help="Time for a client to send a request.", rich_help_panel=_LIMITS)
    ] = 10_000.0,
    drain_s: Annotated[
        float, typer.Option(help="Time for running requests when told to stop.", rich_help_panel=_LIMITS)
    ] = 30.0,
    log: Annotated[str, typer.Option(help="requests, errors or off.", rich_help_panel=_LOG)] = "requests",
    log_queries: Annotated[
        bool, typer.Option("--log-queries", help="Write the texts of queries into the log.", rich_help_panel=_LOG)
    ] = False,
    debug: o.Debug = False,
) -> None:
    """Answer over HTTP, with a search page.

    Example: beamwood serve model.bw

    SIGHUP reads the model files again, SIGTERM answers what is running and stops. docs/serving.md has the rest.
    """
    missing = [module for module in _NEEDED if importlib.util.find_spec(module) is None]
    if missing:
        raise SettingsError(f"serve needs {', '.join(missing)}; install the extra: pip install 'beamwood[serve]'")
    from beamwood.server.options import ServeOptions, read_token
    from beamwood.server.process.supervisor import Supervisor

    chosen = ServeOptions(
        models=_models(model_file, name or []),
        filters=dict(_pair("--filter", words) for words in filter_ or []),
        uri_prefix=uri_prefix,
        host=host,
        port=port,
        workers=workers or cores(),
        threads=threads,
        token=None if token_file is None else read_token(token_file),
        open_to_all=open_to_all,
        cors=tuple(cors or ()),
        page=page,
        k=k,
        beam=beam,
        max_k=max_k,
        max_beam=max_beam,
        max_texts=max_texts,
        max_body=max_body,
        queue=queue,
        queue_ms=queue_ms,
        timeout_ms=timeout_ms,
        read_timeout_ms=read_timeout_ms,
        drain_s=drain_s,
        log=log,
        log_queries=log_queries,
    )
    supervisor = Supervisor(chosen)
    where, at = supervisor.address
    address = f"http://[{where}]:{at}/" if ":" in where else f"http://{where}:{at}/"
    names = ", ".join(chosen.models)
    raise typer.Exit(supervisor.run(lambda: show(f"{names}: {address} ({_workers(chosen.workers)}; Ctrl-C stops)")))


def _models(model_file: Path | None, named: list[str]) -> dict[str, Path]:
    """All models by name, the one without a name of its own first."""
    models = {} if model_file is None else {_name_of(model_file): model_file}
    for words in named:
        name, path = _pair("--name", words)
        if name in models:
            raise SettingsError(f"two models are named {name!r}; give each a name of its own")
        models[name] = path
    if not models:
        raise SettingsError("no model was given; name a file: beamwood serve model.bw")
    return models


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _name_of(path: Path) -> str:
    """A file's name without its ending, as far as it can stand in an address."""
    return (
        "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in path.stem).lstrip("._-")[:64]
        or "model"
    )


def _pair(option: str, words: str) -> tuple[str, Path]:
    name, equals, path = words.partition("=")
    if not (name and equals and path):
        raise SettingsError(f"{option} {words!r}: NAME=FILE is wanted, for example shop=shop.bw")
    return name, Path(path)
