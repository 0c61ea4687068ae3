"""serve.py — `beamwood serve`: models in, an HTTP server out, until a signal stops it.

Its options are made of the fields of ServeOptions (server/options.py): name, type, default and help stand there once.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support.output import show
from beamwood.errors import SettingsError, install
from beamwood.hub.address import file_name
from beamwood.hub.fetch import local_path
from beamwood.server.options import MODELS, ServeOptions, name_and_file

_NEEDED = ("uvicorn", "uvloop", "httptools", "orjson")
_FIELDS = [made for made in dataclasses.fields(ServeOptions) if made.metadata]  # all but the models


def serve(
    model_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A model file or its address (hf://…, https://…); its name is the file's.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="NAME=MODEL", help="A model and its name; may be given often.", rich_help_panel=MODELS
        ),
    ] = None,
    debug: o.Debug = False,
    **given: Any,
) -> None:
    """Answer over HTTP, with a search page.

    Example: beamwood serve model.bw

    SIGHUP reads the model files again, SIGTERM answers what is running and stops. docs/serving.md has the rest.
    """
    missing = [module for module in _NEEDED if importlib.util.find_spec(module) is None]
    if missing:
        raise SettingsError(f"serve needs packages that are not installed: {', '.join(missing)}. {install('serve')}")
    from beamwood.server.process.supervisor import Supervisor

    values = {made.name: made.metadata.get("read", lambda value: value)(given[made.name]) for made in _FIELDS}
    chosen = ServeOptions(models=_models(model_file, name or []), **values)
    supervisor = Supervisor(chosen)
    where, at = supervisor.address
    address = f"http://[{where}]:{at}/" if ":" in where else f"http://{where}:{at}/"
    names = ", ".join(chosen.models)
    raise typer.Exit(supervisor.run(lambda: show(f"{names}: {address} ({_workers(chosen.workers)}; Ctrl-C stops)")))


def _parameter(made: dataclasses.Field[Any], kind: Any) -> inspect.Parameter:
    """A field as typer reads it."""
    about = made.metadata
    flag = "--" + made.name.replace("_", "-")
    words = about.get("flag", flag)
    named = [words] if "no-" in words else words.split("/")
    option = typer.Option(*named, help=about["help"], rich_help_panel=about["panel"], metavar=about.get("metavar"))
    default = made.default if "type" not in about else [] if about["type"] == list[str] else None
    annotation: Any = Annotated[about.get("type", kind), option]
    return inspect.Parameter(made.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _signature() -> inspect.Signature:
    """That of `serve` with a parameter per field in the place of `given`."""
    signature, hints = inspect.signature(serve, eval_str=True), get_type_hints(ServeOptions)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    return signature.replace(parameters=[*own, *(_parameter(made, hints[made.name]) for made in _FIELDS)])


def _models(model_file: Path | None, named: list[str]) -> dict[str, Path]:
    """All models by name, the one without a name of its own first."""
    models = {} if model_file is None else {_name_of(model_file): model_file}
    for words in named:
        name, path = name_and_file("--name", words)
        if name in models:
            raise SettingsError(
                f"two models are named {name!r}; expected a name for each. Give another with --name NAME=MODEL."
            )
        models[name] = path
    if not models:
        raise SettingsError("no model was given; expected at least one. Name a file: beamwood serve model.bw")
    return {name: Path(local_path(path)) for name, path in models.items()}


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _name_of(path: Path) -> str:
    """A file's name without its ending, as far as it can stand in an address."""
    return (
        "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in Path(file_name(path)).stem).lstrip(
            "._-"
        )[:64]
        or "model"
    )


serve.__signature__ = _signature()  # type: ignore[attr-defined]
