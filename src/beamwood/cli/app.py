"""app.py — the words of a command line in, a verb run and an exit code out: 0 done, 1 an error, 2 wrong usage.

An error is one line on standard error; `--debug` shows where it came from. Ctrl-C ends with 130.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from beamwood._version import __version__
from beamwood.cli.ask.diff import diff
from beamwood.cli.ask.evaluate import evaluate
from beamwood.cli.ask.explain import explain
from beamwood.cli.ask.inspect import inspect
from beamwood.cli.ask.predict import predict
from beamwood.cli.ask.search import search
from beamwood.cli.bench import bench
from beamwood.cli.calibrate import calibrate
from beamwood.cli.compress import compress
from beamwood.cli.convert import convert
from beamwood.cli.estimate import estimate
from beamwood.cli.index import index
from beamwood.cli.mcp import mcp
from beamwood.cli.serve import serve
from beamwood.cli.shard import shard
from beamwood.cli.support.options import DEBUG
from beamwood.cli.support.output import say
from beamwood.cli.train import train
from beamwood.cli.tune import tune
from beamwood.cli.update import update
from beamwood.errors import BeamwoodError, one_line

INTERRUPTED, PIPE_CLOSED = 130, 141
# What the parser raises knows what to print. Its base class lives in click or, in newer releases, inside typer.
_OF_TYPER: tuple[type[Exception], ...] = (typer.Exit, typer.Abort, typer.BadParameter.__mro__[2])


class _PlainHelp:
    """Options without a value are shown as such: typer 0.29 puts <bool> behind them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All options and arguments, those of typer's own included."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for option in params:
            if getattr(option, "is_flag", False):
                option.metavar = " "
        return params


class Verb(_PlainHelp, TyperCommand):
    """One verb."""


class Verbs(_PlainHelp, TyperGroup):
    """All verbs. Whatever one raises ends here."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the verb; an error becomes one line and an exit code."""
        try:
            with _warnings_as_notes():
                found = super().invoke(ctx)
                sys.stdout.flush()  # what cannot be written is an error here, not a riddle at the end
                return found
        except _OF_TYPER:
            raise
        except KeyboardInterrupt:
            say("stopped")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # `beamwood predict … | head` has seen enough
            _drop_output()
            raise typer.Exit(PIPE_CLOSED) from None
        except Exception as error:
            if ctx.meta.get(DEBUG):
                traceback.print_exc()
            if isinstance(error, OSError) and error.filename is None:
                _drop_output()
            say(f"error: {_in_a_line(error)}")
            raise typer.Exit(1) from None


def _drop_output() -> None:
    """What is still to be written to standard output goes nowhere: it would fail once more when the program ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_a_line(error: Exception) -> str:
    """What went wrong, for people. What is not one of our own errors names its kind and how to learn more."""
    if isinstance(error, BeamwoodError):
        return one_line(str(error))
    if isinstance(error, MemoryError):
        return "there is not enough memory; use fewer rows, or a preset with one tree"
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename or 'standard output or an open file'}: {error.strerror.lower()}")
    return one_line(f"{type(error).__name__}: {error}; this is not meant to happen, --debug shows where it did")


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Warnings of the library as lines that begin with `note:`."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)  # also where the interpreter was told to make them errors
        warnings.showwarning = lambda message, *_, **__: say(f"note: {one_line(str(message))}")
        yield


def _version(given: bool) -> None:
    if given:
        print(f"beamwood {__version__}")
        raise typer.Exit()


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


@app.callback()
def _beamwood(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Rank the best of many labels: train a tree of sparse linear models, ask it, measure it.

    Start with: beamwood train rows.jsonl -o model.bw, then: beamwood search model.bw "your words"
    """


_VERBS = (
    train,
    tune,
    estimate,
    index,
    predict,
    evaluate,
    search,
    explain,
    serve,
    inspect,
    calibrate,
    update,
    diff,
    compress,
    shard,
    convert,
    mcp,
    bench,
)
for _verb in _VERBS:
    app.command(cls=Verb, no_args_is_help=True)(_verb)
