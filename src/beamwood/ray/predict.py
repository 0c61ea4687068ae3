"""predict.py — a Ray dataset or files and a model's handle in, ranked labels of all rows out: a dataset, or Parquet."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beamwood._version import __version__
from beamwood.batch.lazy import Lazy
from beamwood.errors import DataError, SettingsError
from beamwood.filters import Filter
from beamwood.inputs.arguments import positive
from beamwood.model import Model
from beamwood.ray.cluster import connected, imported, plainly
from beamwood.ray.scorer import Columns, Scorer, written
from beamwood.storage.draft import checked_path

_READERS = {".parquet": "read_parquet", ".pq": "read_parquet", ".jsonl": "read_json", ".ndjson": "read_json"}
_READERS |= {".json": "read_json", ".csv": "read_csv"}


@dataclass(frozen=True, kw_only=True)
class _Sizes:
    """How the work is cut."""

    rows_per_batch: int
    rows_per_file: int
    workers: int | None


def predict(
    data: Any,
    model: Lazy | Model | str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    k: int = 10,
    beam: int | None = None,
    min_score: float | None = None,
    threshold: bool | float | None = None,
    filter: Filter | None = None,
    text_column: str = "text",
    sparse_columns: tuple[str, str] | None = None,
    keep: Sequence[str] | None = None,
    rows_per_batch: int = 10_000,
    rows_per_file: int = 1_000_000,
    workers: int | None = None,
    address: str | None = None,
) -> Any:
    """Ranks labels for every row of a data set with the workers of a Ray cluster: the answers of one machine.

    Each worker loads the model once, mapped from a file that its machine must see, and answers batches of rows. Rows
    get the columns `keys` and `scores`, best first. They come in no order: keep a column that tells them apart.

    data:           a Ray dataset; or the path of Parquet, JSONL or CSV files that all machines see, or a list of paths.
    model:          a `bw.Lazy`, the path of a model file, or a model that was loaded from one.
    output:         a new folder that all machines see, for Parquet files; how many rows were written is returned. It
                    appears when every row is there. None: a Ray dataset is returned, worked out when it is used.
    k, beam, min_score, threshold, filter: as in `Model.search_many`.
    text_column:    the column that holds texts.
    sparse_columns: the names of two columns of lists instead: feature ids, and their values.
    keep:           columns to carry along; None: all but those that the model reads.
    rows_per_batch: rows that a worker answers at a time.
    rows_per_file:  rows of a Parquet file, about.
    workers:        how many at most; None: as many as the cluster has CPUs, less one for reading.
    address:        as in `beamwood.ray.train`.
    """
    how: dict[str, Any] = {"k": positive(k, "k"), "beam": None if beam is None else positive(beam, "beam")}
    how |= {"min_score": min_score, "threshold": threshold, "filter": filter}
    columns = Columns(text_column, None if sparse_columns is None else tuple(sparse_columns), _names(keep))
    sizes = _Sizes(
        rows_per_batch=positive(rows_per_batch, "rows_per_batch"),
        rows_per_file=positive(rows_per_file, "rows_per_file"),
        workers=None if workers is None else positive(workers, "workers"),
    )
    handle = _handle(model)
    imported("ray.data")
    if output is None:
        ray = imported()
        if not ray.is_initialized():
            raise SettingsError(
                "Ray is not connected; expected a connection, for the answers are worked out later. "
                "Call ray.init(…) first, or give output."
            )
        return _scored(ray, data, handle, how, columns, sizes)
    target = _free(output)
    with connected(address) as ray, plainly(ray):
        return _to_files(_scored(ray, data, handle, how, columns, sizes), target, sizes)


def _names(keep: Sequence[str] | None) -> tuple[str, ...] | None:
    if isinstance(keep, str):
        raise SettingsError(f"keep is {keep!r}; expected a list of columns, for example [{keep!r}].")
    return None if keep is None else tuple(keep)


def _handle(model: Any) -> Lazy:
    """What workers load the model by."""
    if isinstance(model, Lazy):
        return model
    if not isinstance(model, Model):
        return Lazy(model)
    if model.parts.file is None:
        raise SettingsError(
            "the model is in the memory of this process; expected one in a file that all machines see. "
            "Save it and give its path."
        )
    return Lazy(model.parts.file, version=model.version)


def _free(output: str | os.PathLike[str]) -> Path:
    target = Path(os.path.abspath(checked_path(output)))
    if "://" in str(output):
        raise SettingsError(
            f"output is {output}; expected a folder. Leave it out and write the dataset there yourself."
        )
    if os.path.lexists(target):
        raise SettingsError(f"{target} is there; expected a new folder. Give another name, or remove it.")
    if not target.parent.is_dir():
        raise SettingsError(f"{target.parent} is no folder; expected one for {target.name}. Make it first.")
    return target


def _dataset(ray: Any, data: Any) -> Any:
    """The rows as a Ray dataset."""
    if not isinstance(data, (str, os.PathLike, list, tuple)):
        if not hasattr(data, "map_batches"):
            raise DataError(f"data is a {type(data).__name__}; expected a Ray dataset, a path, or a list of paths.")
        return data
    paths = [os.path.abspath(checked_path(path)) for path in (data if isinstance(data, (list, tuple)) else [data])]
    missing = next((path for path in paths if not os.path.exists(path)), None)
    if missing is not None or not paths:
        raise DataError(f"{missing or 'the list of paths'} is not there; expected files of rows. Check the path.")
    kinds = {_READERS.get(Path(path.removesuffix(".gz")).suffix.lower()) for path in paths}
    if len(kinds) > 1 or None in kinds:
        kinds = {"read_parquet"} if all(os.path.isdir(path) for path in paths) else {None}
    (reader,) = kinds
    if reader is None:
        raise DataError(f"{paths[0]} has a name that tells no format; expected .parquet, .jsonl or .csv.")
    return getattr(ray.data, reader)(paths)


def _scored(ray: Any, data: Any, handle: Lazy, how: dict[str, Any], columns: Columns, sizes: _Sizes) -> Any:
    """The dataset with the answers, not worked out yet."""
    cpus = int(ray.cluster_resources().get("CPU", 1))
    most = sizes.workers or max(1, cpus - 1)
    return _dataset(ray, data).map_batches(
        Scorer,
        fn_constructor_kwargs={"version": __version__, "handle": handle, "how": how, "columns": columns},
        batch_size=sizes.rows_per_batch,
        batch_format="pyarrow",
        zero_copy_batch=True,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=most),
        num_cpus=1 if cpus > 1 else 0,  # with one CPU, reading needs it
    )


def _to_files(scored: Any, target: Path, sizes: _Sizes) -> int:
    """Writes Parquet files; a folder that is there holds the answers of all rows, each once."""
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")
    partial.mkdir()
    try:
        listed = scored.map_batches(
            written, fn_kwargs={"folder": str(partial)}, batch_size=sizes.rows_per_file, batch_format="pyarrow"
        ).take_all()
        good = {row["file"] for row in listed}
        missing = [name for name in sorted(good) if not (partial / name).is_file()]
        if missing:
            raise DataError(
                f"{len(missing):,} of {len(good):,} files of answers are not in {target.parent} here; expected a "
                "folder that all machines see, and they wrote to their own disks. Give one that is mounted everywhere."
            )
        for name in os.listdir(partial):
            if name not in good:  # of a task that was lost and done again
                (partial / name).unlink()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return int(sum(row["rows"] for row in listed))
