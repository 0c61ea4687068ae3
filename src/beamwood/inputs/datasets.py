"""datasets.py — the name of an embedded data set in, its texts and labels out.

The data is in the repository and the source distribution, not in the wheel: it is found beside the source, in
the folder named by the environment variable BEAMWOOD_DATA, or where the caller says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from beamwood.errors import DataError, MissingFileError, SettingsError
from beamwood.inputs.arguments import as_path
from beamwood.inputs.records import read_records

NAMES = ("library-subjects",)
ENVIRONMENT = "BEAMWOOD_DATA"


@dataclass(frozen=True)
class Dataset:
    """Texts with their label keys, to train on and to test with."""

    name: str
    train_texts: list[str]
    train_labels: list[list[str]]
    test_texts: list[str]
    test_labels: list[list[str]]


def load(name: str, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Loads an embedded data set: "library-subjects", 209,560 library records with 19,913 subjects.

    path: the folder that holds train.jsonl.gz and test.jsonl.gz; None: it is looked for.
    """
    if name not in NAMES:
        raise SettingsError(f"name is {name!r}; expected one of {', '.join(NAMES)}.")
    folder = Path(as_path(path)) if path is not None else _found(name)
    train, test = (read_records(_file(folder, part)) for part in ("train", "test"))
    return Dataset(name, train.texts, train.labels, test.texts, test.labels)


def _found(name: str) -> Path:
    tried = list(_candidates(name))
    for folder in tried:
        if folder.is_dir():
            return folder
    raise DataError(
        f"the data set {name!r} is not here (looked in {', '.join(map(str, tried[:2]))} and above): it comes with the "
        f"source, not with the wheel; set {ENVIRONMENT} to the source's data folder, or pass path="
    )


def _candidates(name: str) -> Iterator[Path]:
    """Where the folder may be: as told, beside the source of this file, or in `data` of the working directory or of one
    above it: a notebook runs where it lies."""
    if told := os.environ.get(ENVIRONMENT):
        yield Path(told) / name
        return
    yield Path(__file__).resolve().parents[3] / "data" / name
    here = Path.cwd()
    yield from (folder / "data" / name for folder in (here, *here.parents))


def _file(folder: Path, part: str) -> Path:
    file = folder / f"{part}.jsonl.gz"
    if not os.path.isfile(file):  # a name that no file can have is no file
        raise MissingFileError(
            f"{file}: there is no such file; expected path to be a folder with train.jsonl.gz and test.jsonl.gz.",
            str(file),
        )
    return file
