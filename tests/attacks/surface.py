"""surface.py — every public function with the arguments people get wrong in, what each damaged value led to out.

`ROOMS` says which arguments of a public function take what kind of value; `tests/attacks/test_surface.py` compares it
with what is public. As a program it is the child that tries them: a line before each call, a line after it, so that
whoever reads them knows which call a crash was in. Its address space is bounded: a call that takes far more memory than
the small values here warrant ends in a MemoryError.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from support import damaged
from support.damaged import ROWS, plain

import beamwood as bw
from attacks.flat import blocks_of_features, index_room
from attacks.updates import updates_room
from attacks.values import FEATURES, LABELS, Values, anything, files, labels, matrices, odd, one_text, optional, scores
from beamwood import interop
from beamwood.inputs import data
from beamwood.sklearn import XMRClassifier

SPARE_MEMORY = 768 << 20  # beyond what the child has when it starts
LONGEST_CALL = 60  # seconds; no call here takes one
_NO_TARGETS = ("None", "an object", "a name with a zero byte", "a name of 300 letters", "a folder", "below a file")
TEXTS = ["red wool socks", "blue cotton hat", "red wool hat", "green socks", "blue wool", "cotton socks"]
KEYS = [["socks", "wool"], ["hat"], ["hat", "wool"], ["socks"], ["wool"], ["socks"]]

Call = Callable[[Any], object]
Room = dict[str, list[tuple[Values, Call]]]  # the values tried on each argument of a public function


@cache
def numbers() -> bw.Model:
    """A model of FEATURES features and LABELS labels."""
    return bw.train(plain(FEATURES), plain(LABELS), "fast", progress=False, threads=1)


@cache
def words() -> bw.Model:
    """A model that knows texts."""
    return bw.train_text(TEXTS, KEYS, preset="fast", progress=False, threads=1)


@cache
def sure() -> bw.Model:
    """A model that knows probabilities."""
    return numbers().calibrate(np.tile(np.eye(FEATURES), (20, 1)), np.tile(np.eye(LABELS), (40, 1)))


@cache
def classifier() -> Any:
    return XMRClassifier("fast", n_jobs=1).fit(plain(FEATURES), np.arange(ROWS) % 3)


def trained(X: Any = ..., Y: Any = ..., **more: Any) -> bw.Model:
    X = plain(FEATURES) if X is ... else X
    Y = plain(LABELS) if Y is ... else Y
    return bw.train(X, Y, "fast", progress=False, threads=1, **more)


def told(texts: Any = TEXTS, labels: Any = KEYS, **more: Any) -> bw.Model:
    return bw.train_text(texts, labels, preset="fast", progress=False, threads=1, **more)


def layered(weights: Any = ..., parent: Any = None, label: Any = None, bias: Any = None) -> bw.Model:
    """One layer; the damaged matrices have LABELS columns and ROWS rows, so these are its features."""
    weights = plain(LABELS) if weights is ... else weights
    return bw.Model.from_layers([bw.Layer(weights, np.zeros(LABELS, int) if parent is None else parent, bias, label)])


def ranked(P: Any = ..., Y: Any = ..., **more: Any) -> bw.Metrics:
    return bw.evaluate(plain(LABELS) if P is ... else P, plain(LABELS) if Y is ... else Y, **more)


def queries_room(folder: Path) -> Room:
    """What is tried on queries."""
    X = matrices(FEATURES)
    model = numbers
    text = words
    return {
        "Model.topk": [
            (X, lambda v: model().topk(v, k=2)),
            (anything(), lambda v: model().topk(plain(FEATURES), k=v)),
        ],
        "Model.predict": [(X, lambda v: model().predict(v, k=2))],
        "Model.found": [(X, lambda v: trained(lexical=True).found(v, k=2))],
        "Model.score": [
            (X, lambda v: trained(lexical=True).score(v, [0])),
            (anything(), lambda v: trained(lexical=True).score(plain(FEATURES), v)),
        ],
        "Model.explain": [
            (X, lambda v: model().explain(v, 0)),
            (anything(), lambda v: text().explain("red wool", v)),
        ],
        "Model.using": [
            (anything(), lambda v: model().using(matcher=v)),
            (anything(), lambda v: model().using(layout=v)),
        ],
        "Model.search": [
            (one_text(), lambda v: text().search(v)),
            (anything(), lambda v: text().search("a", min_score=v)),
        ],
        "Model.search_json": [(one_text(), lambda v: text().search_json(v))],
        "Model.search_many": [(damaged.texts(), lambda v: text().search_many(v))],
        "Model.transform": [(damaged.texts(), lambda v: text().transform(v))],
        "Model.filter": [
            (anything(), lambda v: text().filter(allow=v)),
            (anything(), lambda v: text().filter(deny=v)),
            (odd(damaged.sparse(LABELS)), lambda v: text().filter(allow=v)),
        ],
        "diff": [
            (odd(X), lambda v: bw.diff(model(), model(), v)),
            (odd(damaged.texts()), lambda v: bw.diff(text(), text(), v)),
            (odd(damaged.label_keys()), lambda v: bw.diff(text(), text(), TEXTS, v)),
            (odd(files(folder)), lambda v: bw.diff(v, text())),
            (anything(), lambda v: bw.diff(text(), text(), TEXTS, most=v)),
        ],
        "Model.key": [(anything(), lambda v: text().key(v))],
        "Model.name": [(anything(), lambda v: text().name(v))],
        "Model.label_of": [(anything(), lambda v: text().label_of(v)), (anything(), lambda v: model().label_of(v))],
        "Model.words": [
            (anything(), lambda v: model().words(v, 0, 0)),
            (anything(), lambda v: model().words(0, 0, 0, n=v)),
        ],
        "Model.layers": [(anything(), lambda v: model().layers(v))],
    }


def training_room(folder: Path) -> Room:
    """What is tried on training."""
    X = matrices(FEATURES)
    Y = labels(LABELS)
    Z = matrices(LABELS)
    text = words
    return {
        "train": [
            (X, trained),
            *blocks_of_features(trained),
            (Y, lambda v: trained(Y=v)),
            (Y, lambda v: trained(negatives="user", negatives_matrix=v)),
            (optional(Z), lambda v: trained(Y=np.eye(ROWS), label_features=v)),
            *((anything(), lambda v, n=n: trained(**{n: v})) for n in ("row_weights", "names", "keys", "lexical")),
            (anything(), lambda v: trained(calibrate=v)),
            (odd(files(folder)), lambda v: trained(checkpoint=v)),
        ],
        "train_text": [
            (damaged.texts(), told),
            (damaged.label_keys(), lambda v: told(labels=v)),
            *((anything(), lambda v, n=n: told(**{n: v})) for n in ("names", "text", "label_texts", "lexical")),
            (anything(), lambda v: told(label_texts={"hat": v})),
        ],
        "cross_validate": [
            (X, lambda v: bw.cross_validate(v, plain(LABELS), folds=2, preset="fast", progress=False, threads=1)),
            (Y, lambda v: bw.cross_validate(plain(FEATURES), v, folds=2, preset="fast", progress=False, threads=1)),
            (anything(), lambda v: bw.cross_validate(plain(FEATURES), plain(LABELS), folds=v, progress=False)),
            (odd(damaged.label_keys()), lambda v: bw.cross_validate(TEXTS, v, folds=2, preset="fast", progress=False)),
        ],
        "tune": [
            (X, lambda v: bw.tune(v, plain(LABELS), 1, progress=False)),
            (Y, lambda v: bw.tune(plain(FEATURES), v, 1, progress=False)),
            *((anything(), lambda v, n=n: bw.tune(TEXTS, KEYS, **{n: v})) for n in ("budget", "text", "target_mb")),
        ],
        "Activation": [(anything(), bw.Activation.parse), (anything(), lambda v: bw.Activation.parse("sigmoid", v))],
        "Settings": [(anything(), lambda v: bw.Settings(tree=v)), (anything(), lambda v: bw.Settings(C=v))],
        "TextBlock": [(anything(), lambda v: bw.TextBlock(ngram_range=v))],
        "TextFeatures": [
            (anything(), lambda v: bw.TextFeatures(blocks=v)),
            (anything(), lambda v: bw.TextFeatures(stop_words=v)),
            (anything(), lambda v: bw.TextFeatures(tokenizer=v)),
            (anything(), lambda v: bw.TextFeatures(encoder=v)),
            (matrices(FEATURES), lambda v: bw.TextFeatures(encoder=lambda _: v).fit(TEXTS)),
            (damaged.texts(), lambda v: bw.TextFeatures().fit(v)),
            (anything(), bw.TextFeatures.from_sklearn),
        ],
        "FittedText": [(damaged.texts(), text().text.transform)],
    }


def measures_room(folder: Path) -> Room:
    """What is tried on measures."""
    X = matrices(FEATURES)
    Y = labels(LABELS)
    Z = matrices(LABELS)
    return {
        "evaluate": [
            (scores(LABELS), ranked),
            (Y, lambda v: ranked(Y=v)),
            (optional(Y), lambda v: ranked(train_labels=v)),
            (Z, lambda v: ranked((v, np.zeros((ROWS, 1))))),
            (scores(LABELS), lambda v: ranked((np.zeros((ROWS, LABELS), int), v))),
            (anything(), lambda v: ranked(at=v)),
            (anything(), lambda v: ranked(rows_of_label=v)),
            ({"odd: a deep rank": lambda: (10**9,)}, lambda v: ranked(at=v)),
        ],
        "Model.evaluate": [
            (X, lambda v: numbers().evaluate(v, plain(LABELS))),
            (Y, lambda v: numbers().evaluate(plain(FEATURES), v)),
            (odd(damaged.label_keys()), lambda v: words().evaluate(TEXTS, v)),
            (anything(), lambda v: numbers().evaluate(plain(FEATURES), plain(LABELS), at=v)),
        ],
        "Model.compress": [
            (Y, lambda v: numbers().compress(measure=(plain(FEATURES), v))),
            (X, lambda v: numbers().compress(measure=(v, plain(LABELS)))),
            (anything(), lambda v: numbers().compress(top=v)),
            (anything(), lambda v: numbers().compress(threshold=v)),
        ],
        "XMRClassifier.fit": [
            (X, lambda v: XMRClassifier("fast", n_jobs=1).fit(v, np.arange(ROWS) % 3)),
            (
                odd(Y),
                lambda v: XMRClassifier("fast", n_jobs=1).fit(plain(FEATURES), v),
            ),
        ],
        "XMRClassifier.predict": [(X, lambda v: classifier().predict(v))],
        "XMRClassifier.predict_proba": [(X, lambda v: classifier().predict_proba(v))],
        "XMRClassifier.decision_top": [(X, lambda v: classifier().decision_top(v))],
        "XMRClassifier.score": [(X, lambda v: classifier().score(v, np.arange(ROWS) % 3))],
    }


def models_room(folder: Path) -> Room:
    """What is tried on models."""
    X, Y = matrices(FEATURES), labels(LABELS)
    return {
        "Model.from_layers": [
            (damaged.sparse(LABELS), layered),
            (odd(matrices(LABELS)), layered),
            (anything(), layered),
            (anything(), lambda v: layered(parent=v)),
            (anything(), lambda v: layered(label=v)),
            (anything(), lambda v: layered(bias=v)),
            (anything(), bw.Model.from_layers),
        ],
        "Model.from_trees": [(anything(), bw.Model.from_trees)],
        "Model.with_names": [
            (anything(), lambda v: numbers().with_names(v)),
            (anything(), lambda v: numbers().with_names(keys=v)),
        ],
        "Model.with_encoder": [(anything(), lambda v: words().with_encoder(v))],
        "Model.with_tokenizer": [(anything(), lambda v: words().with_tokenizer(v))],
        "Model.with_text": [(anything(), lambda v: numbers().with_text(v))],
        "Model.calibrate": [
            (odd(X), lambda v: numbers().calibrate(v, plain(LABELS))),
            (odd(Y), lambda v: numbers().calibrate(plain(FEATURES), v)),
        ],
        "Model.cut": [
            (odd(X), lambda v: numbers().cut(v, plain(LABELS))),
            (odd(Y), lambda v: numbers().cut(plain(FEATURES), v)),
            (anything(), lambda v: numbers().cut(plain(FEATURES), plain(LABELS), for_=v)),
            (anything(), lambda v: numbers().cut(plain(FEATURES), plain(LABELS), per=v)),
            (anything(), lambda v: sure().topk(plain(FEATURES), threshold=v)),
        ],
        "Model.probability": [(odd(scores(LABELS)), lambda v: sure().probability(v))],
        "Model.with_notes": [
            (anything(), lambda v: numbers().with_notes(v)),
            (anything(), lambda v: numbers().with_notes({"data": v})),
        ],
        "Model.with_beam": [(anything(), lambda v: numbers().with_beam(v))],
        "Model.with_rows_of_label": [(anything(), lambda v: numbers().with_rows_of_label(v))],
        "interop.from_nodes": [
            (damaged.sparse(LABELS), lambda v: interop.from_nodes([-1] * LABELS, v)),
            (anything(), lambda v: interop.from_nodes([-1] * LABELS, v)),
            (anything(), lambda v: interop.from_nodes(v, plain(LABELS, "csc"))),
            (anything(), lambda v: interop.from_nodes([-1] * LABELS, plain(LABELS, "csc"), label=v)),
            (anything(), lambda v: interop.from_nodes([-1] * LABELS, plain(LABELS, "csc"), bias=v)),
        ],
        "interop.from_libmultilabel": [(anything(), interop.from_libmultilabel)],
        "interop.tree_of": [(anything(), lambda v: interop.tree_of(numbers(), v))],
        "stream.write_model": [
            (anything(), lambda v: bw.stream.write_model(folder / "s.bw", v, lambda *_: None, features=3)),
            (
                anything(),
                lambda v: bw.stream.write_model(folder / "s.bw", [np.array([0, 2])], lambda *_: v, features=3),
            ),
        ],
    }


def files_room(folder: Path) -> Room:
    """What is tried on files."""
    X = matrices(FEATURES)
    Z = matrices(LABELS)
    read = files(folder)
    targets = {name: make for name, make in read.items() if name in _NO_TARGETS}
    odd_text = odd(damaged.texts())
    return {
        "load": [(read, bw.load)],
        "Sharded": [(read, bw.Sharded)],
        "shard": [(read, lambda v: bw.shard(v, folder / "parts", 2)), (targets, lambda v: bw.shard(numbers(), v, 2))],
        "Lazy": [
            (read, lambda v: bw.Lazy(v).n_labels),
            (anything(), lambda v: bw.Lazy("model.bw", v)),
            (anything(), lambda v: bw.Lazy("model.bw", version=v)),
            (anything(), lambda v: bw.Lazy("model.bw", layout=v)),
        ],
        "datasets.load": [(read, lambda v: bw.datasets.load("library-subjects", 7 if v is None else v))],
        "data.read_matrix": [(read, data.read_matrix)],
        "data.read_npz": [(read, lambda v: data.read_npz(v, v))],
        "data.read_xmc": [(read, data.read_xmc)],
        "data.read_svmlight": [(odd(read), data.read_svmlight)],
        "data.read_records": [(odd(read), lambda v: data.read_records(v, format="jsonl"))],
        "data.iter_records": [
            (odd(read), lambda v, f=form: list(data.iter_records(v, format=f)))
            for form in ("csv", "tsv", "parquet", "jsonl")
        ],
        "data.format_of": [(odd(read), data.format_of)],
        "data.write_xmc": [
            (X, lambda v: data.write_xmc(folder / "x.txt", v, plain(LABELS))),
            (Z, lambda v: data.write_xmc(folder / "x.txt", plain(FEATURES), v)),
        ],
        "data.LabelTable": [
            (anything(), data.LabelTable),
            (
                {n: m for n, m in damaged.label_keys().items() if n != "too few"},
                data.LabelTable.from_labels,
            ),
            (odd_text, lambda v: data.LabelTable(("a", "b")).with_names(v)),
            (odd(read), data.LabelTable.from_file),
        ],
        "Model.save": [(targets, lambda v: numbers().save(v))],
        "interop.read": [(read, interop.read)],
        "interop.read_text": [(read, interop.read_text)],
        "interop.read_tree": [(read, interop.read_tree)],
        "interop.write": [(targets, lambda v: interop.write(numbers(), v, "pecos"))],
    }


ROOMS: dict[str, Callable[[Path], Room]] = {
    "queries": queries_room,
    "training": training_room,
    "indexes": lambda _: index_room(TEXTS),
    "measures": measures_room,
    "models": models_room,
    "updates": lambda _: updates_room(numbers, words, (TEXTS, KEYS)),
    "files": files_room,
}


def calls(room: str, folder: Path) -> Iterator[tuple[str, damaged.Make, Call]]:
    """(name, value, call) of everything that is tried in a room."""
    for function, arguments in ROOMS[room](folder).items():
        for number, (values, call) in enumerate(arguments):
            for name, make in values.items():
                yield f"{function} [{number}] {name}", make, call


def outcome(name: str, make: damaged.Make, call: Call) -> str:
    """What a call led to: "taken", "refused", or what is wrong with that."""
    may_pass = "odd: " in name
    sklearn = name.startswith("XMRClassifier")  # it checks values in its own words, and takes texts of numbers
    may_pass = may_pass or (sklearn and "dense" in name)
    try:
        call(make())
    except bw.BeamwoodError as error:
        return "refused" if str(error).strip() else "refused without a word"
    except (ValueError, TypeError) as error:
        return "refused" if sklearn else f"{type(error).__name__}: {error!s:.200}"
    except (ZeroDivisionError, OverflowError) as error:  # of the value itself, before anybody can look at it
        return "refused" if sklearn else f"{type(error).__name__}: {error!s:.200}"
    except BaseException as error:
        return f"{type(error).__name__}: {error!s:.200}"
    return "taken" if may_pass else "taken without a word"


def main(room: str, first: int) -> None:
    """Tries what a room has from the first-th call on."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        numbers(), words(), classifier()
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + SPARE_MEMORY, resource.RLIM_INFINITY))
        for number, (name, make, call) in enumerate(calls(room, Path(folder))):
            if number < first:
                continue
            print(json.dumps([number, name]), flush=True)
            faulthandler.dump_traceback_later(LONGEST_CALL, exit=True)
            print(json.dumps(outcome(name, make, call)), flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
