"""A model file in, what becomes of it out: opened, verified, asked in every way. A bad one may give a FormatError.

`main` goes through a range of random files of `campaign.py`, so that a crash is seen from outside.
"""

from __future__ import annotations

import mmap
import os
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.engine import LAYOUTS, MATCHERS

QUERIES = 3
ENGINES: tuple[dict[str, str], ...] = (
    {},
    *({"matcher": matcher, "layout": layout} for layout in ("chunk", "column") for matcher in MATCHERS),
    *({"layout": layout} for layout in LAYOUTS if layout not in ("chunk", "column")),
)
SECONDS, BYTES = 20, 3 << 30  # what one file may take before it counts as a hang or an explosion


def queries(features: int) -> Any:
    """A full row, a sparse one and an empty one."""
    rows = [np.arange(features), np.arange(0, features, 3), np.arange(0)]
    offsets = np.cumsum([0, *map(len, rows)])
    values = np.linspace(-1, 2, offsets[-1], dtype=np.float32)
    return sp.csr_array((values, np.concatenate(rows), offsets), shape=(3, features))


class Probe:
    """Everything that is done to one opened model; each step may end in a FormatError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: dict[str, list[bytes]] = {}
        self.errors: dict[str, str] = {}

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """One step: its result, or None after a FormatError."""
        try:
            return work()
        except bw.FormatError as error:
            self.errors[name] = str(error)
            return None

    def run(self, memory: str = "map") -> Probe:
        """All steps."""
        self.step("verify", lambda: bw.load(self.path, verify=True))
        model = self.step("load", lambda: bw.load(self.path, memory=memory))
        if model is None or model.n_features > 10_000_000:
            return self
        X = queries(model.n_features)
        trees = model.info()["trees"]
        for engine in ENGINES if trees else ({},):
            name = "/".join(engine.values()) or "auto"
            one = self.step(f"using {name}", lambda engine=engine: model.using(**engine))
            if one is not None:
                self.ask(name, one, X)
        if trees == 0:  # queries without negative values go another way through inverted lists
            self.ask("positive", model, abs(X))
        self.step("exact", lambda: self.exact(model, X))
        self.step("filter", lambda: self.filtered(model, X))
        for label in (0, model.n_labels - 1):
            self.step(f"explain {label}", lambda label=label: model.explain(X[[0]], label, words=3).to_dict())
        self.step("rows of labels", lambda: model.rows_of_label)
        for tree in range(len(model.info()["nodes"])):
            layers = self.step(f"layers {tree}", lambda tree=tree: model.layers(tree))
            for layer in layers or ():
                check_layer(layer, model.n_features)
        if model.text is not None:
            self.step("search", lambda: self.search(model))
        for label in (0, model.n_labels - 1):
            self.step(
                f"key {label}", lambda label=label: (model.key(label), model.name(label), model.label_of("key 3"))
            )
        return self

    def ask(self, name: str, model: bw.Model, X: Any) -> None:
        """A batch with one and two threads, and a row alone."""
        for threads in (1, 2) if name in ("auto", "dense/chunk") else (1,):
            found = self.step(f"topk {name} {threads}", lambda threads=threads: model.topk(X, 7, 3, threads))
            if found is not None:
                check_answer(found[0], found[1], model.n_labels)
                self.answers[f"{name} {threads}"] = [part.tobytes() for part in found]
        found = self.step(f"row {name}", lambda: model.topk(X[:1], 4, 2))
        if found is not None:
            check_answer(found[0], found[1], model.n_labels)
            self.answers[f"{name} row"] = [part.tobytes() for part in found]

    def search(self, model: bw.Model) -> None:
        """Texts in, hits out, one and many."""
        texts = ["red wool socks 3", "word1 hats", "", "none of these", "rde sokcs"]
        self.answers["search"] = [repr(model.search(text, 5)).encode() for text in texts]
        self.answers["search many"] = [repr(hits).encode() for hits in model.search_many(texts, 5)]

    def filtered(self, model: bw.Model, X: Any) -> None:
        """With a filter, and a beam so narrow that the search has to go on."""
        found = model.topk(X, 7, 1, filter=model.filter(deny=[0]))
        check_answer(found[0], found[1], model.n_labels)
        self.answers["filtered"] = [part.tobytes() for part in found]

    def exact(self, model: bw.Model, X: Any) -> bool:
        """Best-first search, where the model allows it."""
        try:
            check_answer(*model.topk(X, 5, exact=True), model.n_labels)
        except bw.SettingsError:
            return False
        return True


def check_answer(labels: Any, scores: Any, count: int) -> None:
    """Whatever the weights say, labels exist."""
    assert labels.shape == scores.shape
    assert ((labels >= -1) & (labels < count)).all(), "an answer names a label that does not exist"


def check_layer(layer: bw.Layer, features: int) -> None:
    """What comes out of a damaged file may be wrong, but scipy can walk through it without harm."""
    layer.weights.check_format(full_check=True)
    assert layer.weights.shape == (features, len(layer.parent))
    assert layer.bias is None or len(layer.bias) == len(layer.parent)
    assert layer.label is None or len(layer.label) == len(layer.parent)


def limits() -> Iterator[None]:
    """Memory is limited once, time again before every file."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    while True:
        signal.alarm(SECONDS)
        yield


def main(first_file: str, files: str, progress: str) -> None:
    """A number of files from the first one on. The number of the current one stands in the file `progress`."""
    from attacks import campaign

    first, count = int(first_file), int(files)
    begin = limits()
    note = os.open(progress, os.O_WRONLY | os.O_CREAT)
    with tempfile.TemporaryDirectory(prefix="beamwood-attacks-") as folder:
        path = Path(folder) / "model.bw"
        bases = campaign.bases(path)
        for number in range(first, first + count):
            next(begin)
            os.pwrite(note, b"%012d" % number, 0)
            campaign.check(number, bases, path)
    signal.alarm(0)
    os.pwrite(note, b"done        ", 0)
