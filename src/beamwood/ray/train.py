"""train.py — rows or texts with labels in, the model that `bw.train` gives out, its layers learned by a Ray cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from beamwood.errors import SettingsError
from beamwood.inputs.data import read_matrix, read_records
from beamwood.inputs.text import TextFeatures
from beamwood.model import Model
from beamwood.ray.cluster import connected
from beamwood.ray.learner import Learner
from beamwood.training import train as here


def train(
    X: Any,
    Y: Any,
    preset: str = "balanced",
    *,
    address: str | None = None,
    shared: str | os.PathLike[str] | None = None,
    **arguments: Any,
) -> Model:
    """`bw.train` on a Ray cluster: the same arguments, the same model bit for bit, on any number of machines.

    Label vectors, the shapes of trees and their top layers are made where this is called; layers below are learned by
    tasks that get only the rows and labels that they need. A machine that dies costs the pieces that it was learning.

    X, Y:      as in `bw.train`, or the paths of .npz files.
    preset:    as in `bw.train`.
    address:   "HOST:PORT" of a cluster; None: the one that Ray is connected to, or RAY_ADDRESS, or this machine only.
    shared:    a folder that every machine sees: the rows are written there once, tasks read those that they need from
               it and leave their weights there. None: rows and weights travel with the tasks.
    arguments: all others of `bw.train`; `threads` is how many to use here.
    """
    X, Y = (read_matrix(each) if isinstance(each, (str, os.PathLike)) else each for each in (X, Y))
    with cluster_learner(address, shared, arguments) as learner:
        return here.train(X, Y, preset, learner=learner, **arguments)


def train_text(
    texts: Sequence[str] | str | os.PathLike[str],
    labels: Sequence[Iterable[str]] | None = None,
    text: TextFeatures | None = None,
    *,
    address: str | None = None,
    shared: str | os.PathLike[str] | None = None,
    **arguments: Any,
) -> Model:
    """`bw.train_text` on a Ray cluster: the same arguments, the same model bit for bit, on any number of machines.

    texts:           the texts, or the path of a file that `bw.read_records` reads; its labels are then used.
    labels, text:    as in `bw.train_text`.
    address, shared: as in `beamwood.ray.train`.
    arguments:       all others of `bw.train_text`.
    """
    if isinstance(texts, (str, os.PathLike)):
        if labels is not None:
            raise SettingsError("labels is given with the path of a file, which has its own; expected None.")
        records = read_records(texts)
        texts, labels = records.texts, records.labels
    with cluster_learner(address, shared, arguments) as learner:
        return here.train_text(texts, labels or [], text, learner=learner, **arguments)


@contextlib.contextmanager
def cluster_learner(
    address: str | None, shared: str | os.PathLike[str] | None, arguments: dict[str, Any]
) -> Iterator[Learner]:
    """Who learns layers, for one training."""
    if "learner" in arguments:
        raise SettingsError("learner is given; expected none here: the cluster learns. Use bw.train for another one.")
    with connected(address) as ray:
        learner = Learner(ray, shared)
        try:
            yield learner
        finally:
            learner.close()
