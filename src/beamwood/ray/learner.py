"""learner.py — the problem of a layer in, its weights out, learned in pieces by the machines of a Ray cluster.

The law: who learns a piece, how often a machine died on the way and how many there are changes no bit. A layer with one
parent, or with little to do, is learned where the whole data is: sending it would cost more than it saves. So are all
layers while the cluster is no more than the machine where this is called.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood._version import __version__
from beamwood.errors import DataError, FormatError, SettingsError
from beamwood.ray.cluster import plainly, same_version
from beamwood.ray.learned import LearnedPiece, mapped, written
from beamwood.ray.pieces import Cut, Piece, cut, joined, piece, rows_of
from beamwood.ray.under_way import UnderWay
from beamwood.storage import store
from beamwood.storage.build import Sections
from beamwood.storage.draft import checked_path
from beamwood.training.weights import LayerProblem, Learned, Watch, learn_here

PIECES_PER_CPU = 3  # so that the last pieces of a layer keep no machine waiting for long
MOST_ENTRIES = 1 << 24  # of the rows that reach the parents of a piece: 128 MiB
LEAST_WORK = 2e6  # entries visited: about a hundredth of a second of one core
_RETRIES = 10  # times that a piece is tried again after the machine that learned it was lost
_GLANCE = 0.25  # seconds between two looks at progress and Ctrl-C


@dataclass(eq=False)
class Learner:
    """Learns layers on a cluster.

    ray:    Ray, connected.
    shared: a folder that every machine sees: rows are written there once, a task reads those that it needs from it and
            leaves its weights there; trees that are done lie there too. None: rows and weights travel with the pieces.
    """

    ray: Any
    shared: str | os.PathLike[str] | None = None
    pieces_sent: int = field(default=0, init=False)
    _rows: tuple[Any, Path] | None = field(default=None, init=False)  # the X that lies in the shared folder
    _folder: Path | None = field(default=None, init=False)  # our own, in the shared one

    def __call__(self, layer: LayerProblem, threads: int, watch: Watch | None) -> Learned:
        """The weights and biases of a layer."""
        cpus = int(self.ray.cluster_resources().get("CPU", 0))
        if self._alone():
            return learn_here(layer, threads, watch)
        where = cut(layer, max(2, PIECES_PER_CPU * cpus), MOST_ENTRIES)
        if len(where) < 2 or cpus < 1 or where.work.sum() < LEAST_WORK:
            return learn_here(layer, threads, watch)
        with plainly(self.ray):
            made = joined(layer, where, self._learned(layer, where, cpus, watch))
        give_back()
        return made

    def _alone(self) -> bool:
        """Whether there is no machine with a CPU but this one."""
        here = self.ray.get_runtime_context().get_node_id()
        able = {node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1}
        return able <= {here}

    def put_aside(self, arrays: Sections) -> Sections:
        """Arrays that are not needed for a while: mapped from the shared folder, if there is one."""
        if self.shared is None or not arrays:
            return arrays
        try:
            there = written(self._own_folder(), arrays)
        except OSError:  # no room: they stay where they are
            return arrays
        give_back()
        return mapped(there, verify=False)  # to look at all of it would bring it back

    def close(self) -> None:
        """Removes what was written for the machines of the cluster, or by them."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._rows = self._folder = None

    def _learned(self, layer: LayerProblem, where: Cut, cpus: int, watch: Watch | None) -> list[LearnedPiece]:
        """What all pieces learned. Few are under way at a time, the costly ones first: the store stays small."""
        found: dict[int, LearnedPiece] = {}
        under_way = UnderWay(self.ray)
        waiting = iter(np.argsort(-where.work, kind="stable").tolist())
        done, total = 0.0, max(float(where.work.sum()), 1.0)
        try:
            while len(found) < len(where):
                for number in [*under_way.silent(), *_some(waiting, cpus + 2 - len(under_way))]:
                    under_way.add(self._sent(layer, where, number), number)
                ready, _ = self.ray.wait(under_way.results, timeout=_GLANCE)
                for result in ready:
                    there = under_way.arrived(result)
                    if there is not None:
                        found[there] = self.ray.get(result).arrived()
                        done += float(where.work[there])
                if watch is not None:
                    watch(done / total)
        finally:
            under_way.close()
        return [found[number] for number in range(len(where))]

    def _sent(self, layer: LayerProblem, where: Cut, number: int) -> Any:
        """A piece on its way: what will be its result."""
        part = piece(layer, where, number)
        self._check_room(part.bytes_needed)
        self.pieces_sent += 1
        learn = self.ray.remote(_learn_piece).options(
            num_cpus=1, memory=part.bytes_needed, max_retries=_RETRIES, name="beamwood: a piece of a layer"
        )
        if self.shared is None:
            return learn.remote(__version__, part, rows_of(layer.X, part.rows), None)
        return learn.remote(__version__, part, str(self._written(layer.X)), str(self._own_folder()))

    def _own_folder(self) -> Path:
        """A folder of this training in the shared one."""
        if self._folder is None:
            folder = checked_path(self.shared)  # type: ignore[arg-type]
            if not folder.is_dir():
                raise SettingsError(f"shared is {folder}; expected a folder that every machine of the cluster sees.")
            self._folder = folder.absolute() / f"beamwood-{uuid.uuid4().hex}"
            with _writing(folder):
                self._folder.mkdir()
        return self._folder

    def _written(self, X: Any) -> Path:
        """The file in the shared folder that holds X."""
        if self._rows is None or self._rows[0] is not X:
            if self._rows is not None:
                self._rows[1].unlink(missing_ok=True)
            arrays = {
                "start": X.indptr.astype(np.int64, copy=False),
                "index": X.indices.astype(np.int32, copy=False).view(np.uint32),
                "value": X.data,
            }
            with _writing(self._own_folder()):
                self._rows = (X, written(self._own_folder(), arrays, {"shape": list(X.shape)}))
        return self._rows[1]

    def _check_room(self, needed: int) -> None:
        """A piece that no machine has memory for would wait for ever."""
        most = max((node["Resources"].get("memory", 0) for node in self.ray.nodes() if node["Alive"]), default=0)
        if needed > most:
            raise SettingsError(
                f"a piece of a layer needs about {needed / 2**30:.2f} GiB on one machine; the largest of the cluster "
                f"has {most / 2**30:.2f} GiB; expected as much. Add a larger machine, raise prune, or set top_weights."
            )


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """What the system says when the shared folder cannot be written, with what to do."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written ({error.strerror}); expected room for the rows in the folder given as "
            "shared. Make room, or leave shared out: rows then travel with the tasks."
        ) from None


def give_back() -> None:
    """Hands memory that was freed back to the system at once, where the C library can do that: others are there too."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _some(items: Iterator[int], most: int) -> list[int]:
    return list(islice(items, max(0, most)))


def _learn_piece(version: str, part: Piece, rows: Any, folder: str | None) -> LearnedPiece:
    """On a machine of the cluster: what the nodes of a piece learned; arrays travel without a copy."""
    same_version(version)
    problem = part.with_rows(_read(rows, part.rows) if isinstance(rows, str) else rows)
    learned = LearnedPiece.of(learn_here(problem, 1, None))
    return learned if folder is None else learned.in_folder(folder)


def _read(path: str, rows: Any) -> Any:
    """Some rows of X from the file in the shared folder; no others are read from the disk."""
    if not os.path.isfile(path):
        raise FormatError(
            f"{path} is not there on {socket.gethostname()}; expected the folder that was given as shared on every "
            "machine. Mount it there, or leave shared out: rows then travel with the tasks."
        )
    arrays, meta = store.read_file(path, memory="map", verify=False)
    start, index, value = arrays["start"], arrays["index"].view(np.int32), arrays["value"]
    return rows_of(sp.csr_matrix((value, index, start), shape=tuple(meta["shape"]), copy=False), rows)
