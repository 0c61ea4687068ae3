"""Claims about the options of `beamwood serve`: they are the fields of ServeOptions, and each of them arrives."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from beamwood.cli.app import app
from beamwood.server.options import ServeOptions

OWN = {"model_file", "name", "debug", "help"}  # of the command only
OTHER = {  # a value that is not the default, as written on the command line and as it arrives
    "filters": ("feet=feet.txt", {"feet": Path("feet.txt")}),
    "token": (None, "a-token-that-is-long-enough"),
    "allow_hosts": ("shop.example", ("shop.example",)),
    "cors": ("*", ("*",)),
    "warm": ("off", "off"),
    "beam": ("7", 7),
    "host": ("localhost", "localhost"),
    "log": ("errors", "errors"),
    "uri_prefix": ("x:", "x:"),
    "encoder": ("svd:8", "svd:8"),
    "reload_guard": ("0.25", 0.25),
    "reload_guard_queries": ("q.txt", "q.txt"),
}


def parameters() -> dict[str, Any]:
    command = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    return {parameter.name: parameter for parameter in command.params}


def test_every_field_is_an_option_with_its_help_and_default_and_no_other_is() -> None:
    found = parameters()
    fields = {made.name: made for made in dataclasses.fields(ServeOptions) if made.name != "models"}
    assert set(found) - OWN == set(fields)
    for name, made in fields.items():
        assert found[name].help.startswith(made.metadata["help"])
        if "read" not in made.metadata:
            assert found[name].default == made.default, name
        else:
            assert made.metadata["read"](found[name].default) == ServeOptions(models={"m": Path("m")}).__dict__[name]


@pytest.mark.parametrize("name", [made.name for made in dataclasses.fields(ServeOptions) if made.name != "models"])
def test_every_option_arrives(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("uvicorn")
    from beamwood.server.process import supervisor

    arrived: list[ServeOptions] = []

    def keep(options: ServeOptions) -> None:
        arrived.append(options)
        raise SystemExit(0)

    monkeypatch.setattr(supervisor, "Supervisor", keep)
    (tmp_path / "token").write_text("a-token-that-is-long-enough")
    option = parameters()[name]
    default = next(made for made in dataclasses.fields(ServeOptions) if made.name == name).default
    word: str | None
    expected: Any
    word, expected = OTHER.get(name, (None, None))
    if name == "token":
        word = str(tmp_path / "token")
    elif name == "page":
        expected = False
    elif isinstance(default, bool):
        expected = True
    elif word is None:
        expected = 7 if default is dataclasses.MISSING else type(default)(default + 1)
        word = str(expected)
    words = [option.secondary_opts[0] if option.secondary_opts else option.opts[0], *([word] if word else [])]
    ran = CliRunner().invoke(app, ["serve", "m.bw", *words])
    assert ran.exit_code == 0, ran.output
    assert getattr(arrived[0], name) == expected
