"""score.py — a model and blocks of rows in, a file of answers out, in constant memory, block after block."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from beamwood.batch.meter import Meter
from beamwood.batch.partial import Partial, begun
from beamwood.batch.rows import Block
from beamwood.batch.writers import Writer
from beamwood.errors import DataError

MOST_AT_ONCE = 4  # blocks: they are in memory then
Ranked = tuple[Any, Any]  # n x k labels and scores, padded with -1 and -inf


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How every row is asked."""

    k: int
    beam: int
    threads: int
    filter: Any = None
    min_score: float | None = None
    threshold: float | bool | None = None

    def answers(self, model: Any, block: Block) -> Ranked:
        """Labels and scores of a block; what scores less than the least is padding."""
        how: dict[str, Any] = {"k": self.k, "beam": self.beam, "threads": self.threads}
        how |= {"filter": self.filter, "threshold": self.threshold}
        if isinstance(block.asked, list):
            labels, scores = ask_texts(model, block.asked, **how)
        else:
            labels, scores = model.topk(block.asked, **how)
        if self.min_score is None:
            return labels, scores
        low = ~(scores >= self.min_score)
        return np.where(low, -1, labels), np.where(low, np.float32(-np.inf), scores)


def ask_texts(model: Any, texts: list[str], *, threads: int, **how: Any) -> Ranked:
    """Labels and scores of some texts; none for a text without a known word, as in `Model.search`."""
    X = text_of(model).transform(texts, threads=threads)
    labels, scores = model.topk(X, threads=threads, **how)
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


def to_stream(model: Any, rows: Iterator[Block], asked: Asked, writer: Writer, out: BinaryIO, meter: Meter) -> int:
    """Writes answers to a pipe, a device or standard output; returns how many rows there were."""
    done = 0
    out.write(writer.start())
    for block in rows:
        out.write(writer.block(done, *asked.answers(model, block), block.ids))
        out.flush()
        done += len(block)
        meter.update(done, block.share)
    meter.done(done)
    return done


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where answers go, and what they are made from."""

    target: Path
    made_from: dict[str, Any]
    resume: bool
    again: bool  # whether the data could be read a second time
    gathers: bool  # whether the file is made of what was gathered, at the end


def to_file(model: Any, rows: Iterator[Block], asked: Asked, writer: Writer, place: Place, meter: Meter) -> int:
    """Writes answers to a file that appears when all are there; returns how many rows there were."""
    with begun(place.target, place.made_from, place.resume, place.again) as partial:
        answered = _at_once(model, _after(rows, partial, meter), asked, MOST_AT_ONCE if place.again else 1)
        done = _written(answered, writer, partial, meter)
        partial.finish((lambda gathered: writer.convert(gathered, place.target)) if place.gathers else None)
    meter.done(done)
    return done


def _at_once(model: Any, rows: Iterator[Block], asked: Asked, most: int) -> Iterator[tuple[Block, Ranked]]:
    """The blocks in order, each with its answers. Some are asked at once, so that no thread waits for others.

    most: how many; 1 where the next block may be long in coming.
    """
    many = min(asked.threads, most)
    if many == 1:
        yield from ((block, asked.answers(model, block)) for block in rows)
        return
    each = replace(asked, threads=asked.threads // many)
    coming: deque[tuple[Block, Future[Ranked]]] = deque()
    with ThreadPoolExecutor(many, "answers") as pool:
        try:
            for block in rows:
                coming.append((block, pool.submit(each.answers, model, block)))
                if len(coming) > many:
                    first, answers = coming.popleft()
                    yield first, answers.result()
            while coming:
                first, answers = coming.popleft()
                yield first, answers.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _written(answered: Iterator[tuple[Block, Ranked]], writer: Writer, partial: Partial, meter: Meter) -> int:
    done = partial.resumed.rows
    if done:
        writer.note = partial.resumed.note
    else:
        partial.write(writer.start(), 0)
    for block, answers in answered:
        data = writer.block(done, *answers, block.ids)
        done += len(block)
        partial.write(data, done, writer.note)
        meter.update(done, block.share)
    return done


def _after(rows: Iterator[Block], partial: Partial, meter: Meter) -> Iterator[Block]:
    """The blocks that an earlier run has not done; those that it has are read over."""
    done, before = partial.resumed.rows, 0
    for block in rows:
        if before >= done:
            yield block
            continue
        before += len(block)
        if before >= done:
            meter.resumed(done, block.share)
    if before < done:
        raise DataError("the data has fewer rows than an earlier run has answered. Leave --resume out.")
