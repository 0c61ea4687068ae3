"""predict.py — `beamwood predict`: a model and queries in, ranked labels out, as JSON lines or a scipy .npz."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO

import numpy as np
import scipy.sparse as sp
import typer

from beamwood.cli.support import options as o
from beamwood.cli.support.allowed import filter_of
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import STANDARD, check_free, say, show_json, written
from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import cores
from beamwood.training.progress import Update, progress_for

_ROWS_A_BLOCK = 8192
Answers = tuple[Any, Any]  # n x k labels and scores, padded with -1 and -inf


def predict(
    model_file: o.ModelFile,
    data: o.Data = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="JSON lines (.jsonl, .jsonl.gz), a scipy .npz, or '-'.")
    ] = STANDARD,
    x: o.X = None,
    k: o.K = 10,
    beam: o.Beam = 10,
    min_score: o.MinScore = None,
    allow: o.Allow = None,
    allow_file: o.AllowFile = None,
    deny: o.Deny = None,
    deny_file: o.DenyFile = None,
    threads: o.Threads = None,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    skip_bad: o.SkipBad = False,
    force: o.Force = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Rank labels for every row of a file.

    Example: beamwood predict model.bw queries.jsonl -o answers.jsonl -k 5

    A line of the answer is {"row": 0, "keys": ["a", …], "names": ["A", …], "scores": [0.93, …]}.
    """
    import beamwood as bw

    given = Given.of(locals())
    check_free(output, force)
    model = bw.load(model_file)
    allowed = filter_of(model, allow, allow_file, deny, deny_file)
    begun = time.perf_counter()
    rows = 0
    with progress_for(not (quiet or json_ or output == STANDARD)).stage("predict", 0) as update:
        how = {"k": min(k, model.n_labels), "beam": beam, "threads": threads or cores(), "filter": allowed}
        blocks = answers(model, given, how, update)
        kept = (_at_least(labels, scores, min_score) for labels, scores in blocks)
        with written(output) as stream:
            rows = _write_npz(stream, model, kept) if output.endswith(".npz") else _write_lines(stream, model, kept)
    if json_ and output != STANDARD:
        seconds = time.perf_counter() - begun
        show_json({"output": output, "rows": rows, "skipped": given.skipped, "k": k, "beam": beam, "seconds": seconds})
    elif given.skipped:
        say(f"note: {given.skipped:,} bad rows were left out")


def answers(model: Any, given: Given, how: dict[str, Any], update: Update) -> Iterator[Answers]:
    """Labels and scores of the given rows, some thousands at a time; how: arguments of topk."""
    if given.is_text:
        for texts in given.text_blocks():
            yield ask_texts(model, texts, **how)
        return
    if given.kind == "svmlight":
        X = given.rows(features=model.n_features, with_labels=False).X
    else:
        X = given.rows(with_labels=False).X
    for first in range(0, X.shape[0], _ROWS_A_BLOCK):
        yield model.topk(X[first : first + _ROWS_A_BLOCK], **how)
        update(min(1.0, (first + _ROWS_A_BLOCK) / X.shape[0]))


def ask_texts(model: Any, texts: list[str], *, k: int, beam: int, threads: int, filter: Any = None) -> Answers:
    """Labels and scores of some texts; none for a text without a known word, as in `Model.search`."""
    X = text_of(model).transform(texts, threads=threads)
    labels, scores = model.topk(X, k=k, beam=beam, threads=threads, filter=filter)
    unknown = np.diff(X.indptr) == 0
    labels[unknown], scores[unknown] = -1, -np.inf
    return labels, scores


def text_of(model: Any) -> Any:
    """The fitted text features of a model, which must have some."""
    if model.text is None:
        raise DataError(
            "the model was trained on matrices and reads no texts. Give --x X.npz, or train it from texts "
            "(beamwood train rows.jsonl)."
        )
    return model.text


def _at_least(labels: Any, scores: Any, least: float | None) -> Answers:
    """The same answers with those below a score turned into padding."""
    if least is None:
        return labels, scores
    low = ~(scores >= least)
    return np.where(low, -1, labels), np.where(low, -np.inf, scores)


def _write_lines(stream: BinaryIO, model: Any, blocks: Iterator[Answers]) -> int:
    """One JSON object per row; returns how many."""
    row = 0
    for labels, scores in blocks:
        lines = []
        for ids, values in zip(labels.tolist(), scores.tolist(), strict=True):
            found = [label for label in ids if label >= 0]
            answer = {
                "row": row,
                "keys": [model.key(label) for label in found],
                "names": [model.name(label) for label in found],
                "scores": [float(f"{score:.7g}") for score in values[: len(found)]],
            }
            lines.append(json.dumps(answer, ensure_ascii=False) + "\n")
            row += 1
        stream.write("".join(lines).encode())
    return row


def _write_npz(stream: BinaryIO, model: Any, blocks: Iterator[Answers]) -> int:
    """A scipy matrix, rows x labels, each row in rank order; returns the number of rows."""
    parts = []
    for labels, scores in blocks:
        found = labels >= 0
        offsets = np.zeros(len(labels) + 1, np.int64)
        np.cumsum(found.sum(axis=1), out=offsets[1:])
        parts.append(sp.csr_matrix((scores[found], labels[found], offsets), shape=(len(labels), model.n_labels)))
    if not parts:
        raise SettingsError("there are no rows to write as a matrix; expected at least one.")
    whole = sp.vstack(parts, format="csr") if len(parts) > 1 else parts[0]
    sp.save_npz(stream, whole)
    return int(whole.shape[0])
