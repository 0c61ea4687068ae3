"""given.py — a data file and how to read it in, texts or sparse rows out, with labels where a verb needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import typer

from beamwood.cli.support.output import say
from beamwood.errors import DataError, SettingsError
from beamwood.inputs.data import LabelledRows, read_matrix, read_npz, read_svmlight, read_xmc
from beamwood.inputs.line_formats import LINE_FORMATS
from beamwood.inputs.records import Record, Records, iter_records
from beamwood.inputs.sources import format_of, name_of, text_lines

LINES = "lines"
TEXT_FORMATS = ("jsonl", "csv", "tsv", "parquet", LINES, *LINE_FORMATS)
NUMBER_FORMATS = ("xmc", "svmlight")
_MOST_TOLD = 5  # bad rows that a note names


def left_out(rows: int) -> str:
    """How many bad rows were left out."""
    return f"note: {rows:,} bad {'row was' if rows == 1 else 'rows were'} left out"


@dataclass(kw_only=True)
class Given:
    """What the command line says about the data. `skipped` grows while bad rows are left out; `bad` has the first."""

    data: str | None = None
    x: Path | None = None
    y: Path | None = None
    format: str | None = None
    text_column: str = "text"
    labels_column: str = "labels"
    separator: str | None = None
    skip_bad: bool = False
    skipped: int = 0
    bad: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Given:
        """From the options of a verb, by their names; those it does not have keep their defaults."""
        return cls(**{field.name: options[field.name] for field in fields(cls) if field.name in options})

    def __post_init__(self) -> None:
        """Refuses what cannot be meant."""
        if (self.data is None) == (self.x is None):
            found = "neither" if self.data is None else "both"
            raise typer.BadParameter(f"DATA and --x: {found} is given; expected one of them.")
        if self.y is not None and self.x is None:
            raise typer.BadParameter("--y has no --x; expected both. Give --x X.npz.")
        if self.format is not None and self.format not in TEXT_FORMATS + NUMBER_FORMATS:
            raise typer.BadParameter(
                f"--format is {self.format}; expected one of {', '.join(TEXT_FORMATS + NUMBER_FORMATS)}."
            )

    @property
    def name(self) -> str:
        """What to call the data in a message."""
        return name_of(self.data if self.data is not None else str(self.x))

    @property
    def kind(self) -> str:
        """The format: as told, or by the file's name."""
        if self.x is not None:
            return "npz"
        if self.format is not None:
            return self.format
        assert self.data is not None
        kind = "jsonl" if self.data == "-" else format_of(self.data)
        if kind == "npz":
            raise SettingsError(
                f"{self.data} is a matrix; expected texts or rows. Give matrices as --x X.npz --y Y.npz."
            )
        return kind

    @property
    def is_text(self) -> bool:
        """Whether it holds texts, not numbers."""
        return self.kind in TEXT_FORMATS

    def records(self, with_labels: bool) -> Iterator[Record]:
        """(text, label keys) one by one."""
        assert self.data is not None
        if self.kind == LINES:
            if with_labels:
                raise SettingsError(
                    "--format is lines, which holds only texts; expected jsonl, csv, tsv or parquet, which have labels."
                )
            yield from ((text, []) for _, text in text_lines(self.data))
            return
        yield from iter_records(
            self.data,
            format=self.kind,
            text=self.text_column,
            labels=self.labels_column if with_labels else None,
            separator=self.separator,
            on_bad=self.count_bad if self.skip_bad else None,
        )

    def all_records(self) -> Records:
        """Every text with its labels."""
        rows = list(self.records(with_labels=True))
        if not rows:
            raise DataError(f"{self.name} has no rows; expected at least one with a text and labels.")
        return Records([text for text, _ in rows], [keys for _, keys in rows], self.skipped)

    def rows(self, features: int | None = None, labels: int | None = None, with_labels: bool = True) -> LabelledRows:
        """X and Y of a numeric file; features and labels: how many the model has, for formats that do not say."""
        if self.kind == "npz":
            return self._npz(with_labels)
        assert self.data is not None
        if self.kind == "xmc":
            found = read_xmc(self.data, skip_bad=self.skip_bad)
        else:
            found = read_svmlight(self.data, features=features, labels=labels, skip_bad=self.skip_bad)
        self.skipped, self.bad = found.skipped, found.bad
        return found

    def _npz(self, with_labels: bool) -> LabelledRows:
        assert self.x is not None
        if self.y is not None:
            return read_npz(self.x, self.y)
        if with_labels:
            raise typer.BadParameter("--x has no --y; expected the labels too. Give --y Y.npz.")
        X = read_matrix(self.x)
        return LabelledRows(X=X, Y=X[:, :0])

    def count_bad(self, message: str) -> None:
        """Called for every bad row that is left out."""
        self.skipped += 1
        self.bad = (*self.bad, message)[:_MOST_TOLD]

    def note_skipped(self) -> None:
        """Says how many bad rows were left out, and what was wrong with the first of them."""
        if not self.skipped:
            return
        say(left_out(self.skipped))
        for message in self.bad:
            say(f"  {message}")
        if self.bad and self.skipped > len(self.bad):
            say(f"  and {self.skipped - len(self.bad):,} more")
