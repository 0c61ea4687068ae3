"""checkpoint.py — finished stages of a training in, files in a folder out; and back in the run that goes on.

The law: a stage that comes from the folder is bit for bit the one that was worked out, or it is worked out again; so
the model of a training that was killed and went on is the same file as that of an undisturbed one.

    checkpoint.json   what the training is of: version, settings, seed, XXH3 of the data. Another training is refused
    text.stage        text features and the rows that they make of the texts
    shape-T.stage     the shape of tree T
    layer-T-D.stage   the weights of layer D of tree T, until the tree is complete
    tree-T.stage      the arrays of tree T as a model has them
    NAME-H-….stage    the same of a smaller training inside this one, whose data has the XXH3 H: `words` finds out what
                      words of labels are worth, `second` ranks the rows that probabilities are learnt on

A stage is a file in the format of a model (storage/store.py), written beside its name and renamed; its checksums are
compared when it is read. One that is damaged counts as not there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from beamwood.errors import DataError, FormatError, MissingFileError, SettingsError
from beamwood.storage import store
from beamwood.storage.draft import checked_path, draft_beside

Array = npt.NDArray[Any]
Stage = tuple[dict[str, Array], Any]  # arrays by name, and a note that JSON can hold

_RECORD, _LOCK = "checkpoint.json", "lock"
_STAGE = r"((words|second)-[0-9a-f]{16}-)?(text|shape-\d+|layer-\d+-\d+|tree-\d+)\.stage"
_OURS = re.compile(rf"checkpoint\.json|lock|{_STAGE}|\..*\.draft")


class Checkpoint(Protocol):
    """Where stages are kept; `Nowhere` for a training that keeps none."""

    def same(self, **facts: Any) -> None:
        """Notes what the training is of; refuses when the folder was begun with something else."""

    def get(self, stage: str) -> Stage | None:
        """A stage that an earlier run finished, or None."""

    def put(self, stage: str, arrays: Mapping[str, Array], note: Any = None) -> None:
        """Keeps a stage."""

    def drop(self, stage: str) -> None:
        """Forgets a stage that others stand in for."""


class Nowhere:
    """Keeps nothing."""

    def same(self, **facts: Any) -> None:
        """Nothing to compare with."""

    def get(self, stage: str) -> Stage | None:
        """Nothing is there."""
        return None

    def put(self, stage: str, arrays: Mapping[str, Array], note: Any = None) -> None:
        """Is lost."""

    def drop(self, stage: str) -> None:
        """Nothing is there."""


class Inner:
    """The stages of a smaller training inside another: in the same place, named after the training and its data."""

    def __init__(self, outer: Checkpoint, name: str, data: str) -> None:
        """data: the XXH3 of all that the result depends on and the outer training's facts do not tell."""
        self._outer, self._name = outer, f"{name}-{data}"

    def same(self, **facts: Any) -> None:
        """Other data has another name."""

    def get(self, stage: str) -> Stage | None:
        """A stage that an earlier run finished, or None."""
        return self._outer.get(f"{self._name}-{stage}")

    def put(self, stage: str, arrays: Mapping[str, Array], note: Any = None) -> None:
        """Keeps a stage."""
        self._outer.put(f"{self._name}-{stage}", arrays, note)

    def drop(self, stage: str) -> None:
        """Forgets a stage that others stand in for."""
        self._outer.drop(f"{self._name}-{stage}")


class Folder:
    """Stages as files. One training at a time: the folder is locked while its process lives."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = checked_path(path)
        with _disk(self._path):
            self._record = self._opened()
            self._lock = _locked(self._path)

    def _opened(self) -> dict[str, Any]:
        """What the folder says of its training, if it is one of ours; it is made where there is none."""
        if self._path.exists() and not self._path.is_dir():
            raise SettingsError(f"checkpoint is {self._path}, which is a file; expected a folder. Give another name.")
        self._path.mkdir(exist_ok=True)
        strange = [name for name in sorted(os.listdir(self._path)) if not _OURS.fullmatch(name)]
        if strange:
            raise SettingsError(
                f"checkpoint is {self._path}, which holds {strange[0]!r}; expected a folder of its own. "
                "Give a new name."
            )
        try:
            found = json.loads((self._path / _RECORD).read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise SettingsError(f"{self._path / _RECORD} is damaged; expected JSON. Remove the folder to start over.")
        return found

    def same(self, **facts: Any) -> None:
        """Notes what the training is of; refuses when the folder was begun with something else."""
        facts = json.loads(json.dumps(facts))
        for name, now in facts.items():
            was = self._record.get(name, now)
            if was != now:
                raise SettingsError(
                    f"{self._path} holds a training with {_difference(name, was, now)}. Give the same data and "
                    "settings to go on with it, or another folder, or remove it to start over."
                )
        if facts.keys() <= self._record.keys():
            return
        self._record |= facts
        with _disk(self._path), draft_beside(self._path / _RECORD) as draft:
            draft.write(json.dumps(self._record, indent=1).encode() + b"\n")

    def get(self, stage: str) -> Stage | None:
        """A stage that an earlier run finished, or None."""
        name = self._file(stage)
        if not name.exists():
            return None
        try:
            arrays, meta = store.read_file(name, memory="read", verify=True)
        except (FormatError, MissingFileError):
            return None  # worked out again, and written over
        return arrays, meta.get("note")

    def put(self, stage: str, arrays: Mapping[str, Array], note: Any = None) -> None:
        """Keeps a stage: it is there whole when this returns, also after a power failure."""
        with _disk(self._path), draft_beside(self._file(stage)) as draft:
            kept = dict(arrays)
            for piece in store.pieces(kept, *store.header_of(kept, {"note": note})):
                draft.write(piece)

    def drop(self, stage: str) -> None:
        """Forgets a stage that others stand in for."""
        self._file(stage).unlink(missing_ok=True)

    def close(self) -> None:
        """Lets other trainings use the folder."""
        os.close(self._lock)

    def _file(self, stage: str) -> Path:
        return self._path / f"{stage}.stage"


@contextlib.contextmanager
def checkpoint_in(path: str | os.PathLike[str] | None) -> Iterator[Checkpoint]:
    """The folder's checkpoint, for one training; one that keeps nothing for None."""
    if path is None:
        yield Nowhere()
        return
    folder = Folder(path)
    try:
        yield folder
    finally:
        folder.close()


def remove(path: str | os.PathLike[str]) -> None:
    """Removes a checkpoint folder whose model is safe elsewhere; files that are not ours stay, and the folder then."""
    folder = Path(path)
    for name in sorted(os.listdir(folder)):
        if _OURS.fullmatch(name):
            (folder / name).unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


def hash_of(*parts: Any) -> str:
    """One XXH3 over arrays (None is none), lists of strings and JSON values, in order."""
    marks = [0 if part is None else _hash(part) for part in parts]
    return f"{store.hash_of(np.array(marks, np.uint64)):016x}"


def hash_of_matrix(matrix: Any) -> str:
    """The same for CSR, whichever integers its indices are."""
    if matrix is None:
        return hash_of(None)
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
    return hash_of(np.array(matrix.shape, np.int64), indptr, indices, matrix.data)


def hash_of_texts(texts: Any, per_part: int = 1 << 14) -> str:
    """The same for many strings, without a copy of all of them."""
    parts = []
    for first in range(0, len(texts), per_part):
        some = [text.encode("utf-8", "surrogatepass") for text in texts[first : first + per_part]]
        parts.append(hash_of(np.array([len(text) for text in some], np.int64), np.frombuffer(b"".join(some), np.uint8)))
    return hash_of(np.frombuffer("".join(parts).encode(), np.uint8))


def _hash(part: Any) -> int:
    array = part if isinstance(part, np.ndarray) else np.frombuffer(json.dumps(part).encode(), np.uint8)
    return store.hash_of(array)


def _difference(name: str, was: Any, now: Any) -> str:
    """In words, down to the one setting that differs."""
    if isinstance(was, dict) and isinstance(now, dict):
        field = next(key for key in sorted({*was, *now}) if was.get(key) != now.get(key))
        return f"{field}={was.get(field)!r:.60}; expected {now.get(field)!r:.60}, as it is now"
    return f"other {name} ({was!s:.40}); expected {now!s:.40}, as it is now"


def _locked(path: Path) -> int:
    """A file that is locked as long as it is open: until the training is over, or its process is gone."""
    number = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise SettingsError(
            f"checkpoint is {path}, which another training is using; expected a folder of its own. Give another name."
        ) from None
    except OSError:
        pass  # a file system without locks
    return number


@contextlib.contextmanager
def _disk(path: Path) -> Iterator[None]:
    """What the system says when the folder cannot be written, with what to do."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "Free some space and give the same command: it goes on." if full else "Check the folder."
        raise DataError(f"checkpoint {path} cannot be written ({error.strerror}). {advice}") from error
