"""answers.py — a model and checked questions in, pieces of JSON out. Runs on engine threads, beside the event loop."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import orjson
import scipy.sparse as sp

from beamwood import _core
from beamwood.errors import DataError, FormatError
from beamwood.filters import Filter
from beamwood.hits import Hit, json_of_rows
from beamwood.lexical.head import FOUND_BY
from beamwood.model import Model
from beamwood.server.app import monitors
from beamwood.server.app.replies import Refusal
from beamwood.server.app.schema import FeatureRow, SearchRequest, wrong
from beamwood.server.process.admission import Check
from beamwood.server.process.registry import Served

_BETWEEN_CHECKS = 20e6  # nanoseconds of work after which it is asked whether to go on
_LONGEST_ANSWER = 64 << 20  # bytes
_MAYBE = ("probability", "found_by")  # of a hit: left out where the model has none


class Answer(NamedTuple):
    """The fields of a JSON object without its braces, in pieces, and the nanoseconds that the engine took for them."""

    fields: list[bytes]
    nanoseconds: int


def kind_of(served: Served, question: SearchRequest) -> tuple[Any, ...]:
    """What questions have in common that take about the same time."""
    filtered = question.filter is not None or question.allow is not None or question.deny is not None
    return (served.name, question.beam.bit_length(), question.exact, filtered, question.features is None)


def settled(served: Served, question: SearchRequest) -> SearchRequest:
    """The same question with the model's own beam where it brings none."""
    return question if question.beam else question._replace(beam=served.model.beam)


def content(served: Served, answer: Answer, queue: int) -> deque[bytes]:
    """The whole of an answer that waited some nanoseconds, as JSON, in pieces."""
    tail = b',"engine_us":%.1f,"queue_us":%.1f}' % (answer.nanoseconds / 1e3, queue / 1e3)
    if len(answer.fields) == 1:
        return deque((served.head + answer.fields[0] + tail,))
    return deque((served.head, *answer.fields, tail))


def units_of(question: SearchRequest) -> float:
    """How much work it is, in units that take about the same time for all questions of a kind."""
    texts = question.texts if question.texts is not None else [question.text or ""]
    size = sum(map(len, texts)) + (0 if question.features is None else 4 * len(question.features.ids))
    return float(_core.Costs.units(question.rows, size, question.k))


def search(served: Served, question: SearchRequest, check: Check) -> Answer:
    """The best labels for what is asked. check: called between pieces of long work; it may end it by an error."""
    check()
    _check_threshold(served, question)
    if question.features is not None:
        return _features(served, question)
    _check_words(served)
    return _text(served, question) if question.texts is None else _texts(served, question, check)


def _how(question: SearchRequest) -> dict[str, Any]:
    """Arguments of topk and search."""
    return {"exact": question.exact, "threshold": question.threshold}


def _check_threshold(served: Served, question: SearchRequest) -> None:
    """Refuses a threshold that the model cannot apply."""
    if question.threshold is True and served.model.threshold is None:
        wrong("threshold", "this model has no cut; expected a model that `beamwood calibrate` has given one")
    if question.threshold not in (None, True) and not served.model.is_calibrated:
        wrong("threshold", "this model knows no probabilities; expected one that `beamwood calibrate` has made")


def _text(served: Served, question: SearchRequest) -> Answer:
    assert question.text is not None
    chosen = _filter(served, question)
    if question.exact or question.threshold is not None:
        begun = time.perf_counter_ns()
        hits = served.model.search(
            question.text, question.k, question.beam, question.min_score, filter=chosen, **_how(question)
        )
        took = time.perf_counter_ns() - begun
        monitors.count(served.model, hits, hits.known_terms > 0)
        return Answer([_fields(hits, hits.known_terms)], took)
    found = served.model.search_json(question.text, question.k, question.beam, question.min_score, chosen)
    return Answer([found.fields], found.nanoseconds)


def _texts(served: Served, question: SearchRequest, check: Check) -> Answer:
    """Pieces of the texts one after the other, as large as can be done in the time between two checks."""
    assert question.texts is not None
    chosen, done, size, length = _filter(served, question), 0, 1, 0
    pieces = [b'"results":[']
    begun = time.perf_counter_ns()
    while done < len(question.texts):
        check()
        since = time.perf_counter_ns()
        pieces += [b","] if done else []
        pieces.append(_rows(served, question, question.texts[done : done + size], chosen))
        length += len(pieces[-1])
        if length > _LONGEST_ANSWER:
            wrong("texts", f"the answer is longer than {_LONGEST_ANSWER:,} bytes; ask in parts")
        done += size
        size = 2 * size if time.perf_counter_ns() - since < _BETWEEN_CHECKS / 2 else max(1, size // 2)
    return Answer([*pieces, b"]"], time.perf_counter_ns() - begun)


def _rows(served: Served, question: SearchRequest, texts: list[str], chosen: Filter | None) -> bytes:
    """Answers to some texts, as JSON objects."""
    fitted = served.model.text
    assert fitted is not None
    X = fitted.transform(texts, threads=1)
    answer = served.model.found(X, question.k, question.beam, filter=chosen, **_how(question))
    least = -math.inf if question.min_score is None else question.min_score
    try:
        return json_of_rows(answer, fitted.known(X), served.model.native_parts()[2], least)
    except IndexError:
        raise FormatError("The model is damaged: a key lies outside its table. Get a fresh copy of its file.") from None


def _features(served: Served, question: SearchRequest) -> Answer:
    """The best labels of one row of numbers."""
    assert question.features is not None
    row = row_of(served.model, question.features)
    chosen = _filter(served, question)
    begun = time.perf_counter_ns()
    labels, scores, found = served.model.found(row, question.k, question.beam, filter=chosen, **_how(question))
    took = time.perf_counter_ns() - begun
    least = -math.inf if question.min_score is None else question.min_score
    model, nothing = served.model, [None] * labels.shape[1]
    probable = model.probability(scores)[0].tolist() if model.is_calibrated else nothing
    listed_by = nothing if found is None else [FOUND_BY[by] for by in found[0].tolist()]
    hits = [
        Hit(label, model.key(label), model.name(label), score, *more)
        for label, score, *more in zip(labels[0].tolist(), scores[0].tolist(), probable, listed_by, strict=True)
        if label >= 0 and score >= least
    ]
    return Answer([_fields(hits, row.nnz)], took)


def row_of(model: Model, row: FeatureRow) -> Any:
    """The same as a matrix of one row; values of an index that stands twice are added."""
    ids = row.ids
    if len(ids) and ids.max() >= model.n_features:
        wrong("features", f"index {ids.max()} does not exist: the model has {model.n_features:,} features, from 0 on")
    return sp.coo_array((row.values, (np.zeros(len(ids), np.int64), ids)), shape=(1, model.n_features)).tocsr()


def _check_words(served: Served) -> None:
    if served.model.text is None:
        wrong("text", "this model was trained from numbers and knows no words; send features instead")


def _filter(served: Served, question: SearchRequest) -> Filter | None:
    """The filter that a question asks for; none when it asks for none."""
    if question.filter is not None:
        chosen = served.filters.get(question.filter)
        if chosen is None:
            known = ", ".join(sorted(served.filters)) or "none"
            wrong("filter", f"there is no filter of that name; there are: {known}")
        return chosen
    if question.allow is None and question.deny is None:
        return None
    try:
        return served.model.filter(allow=question.allow, deny=question.deny, missing=question.missing)
    except DataError as error:
        message = str(error).replace("pass missing='ignore'", 'send "missing": "ignore"')
        raise Refusal(422, "bad-input", message, field="deny" if question.allow is None else "allow") from None


def explain(served: Served, question: SearchRequest, check: Check) -> Answer:
    """How a label came to its score for a text or a row."""
    assert question.label is not None
    check()
    query: Any = question.text
    if question.text is not None:
        _check_words(served)
    else:
        assert question.features is not None
        query = row_of(served.model, question.features)
    begun = time.perf_counter_ns()
    try:
        found = served.model.explain(query, question.label)
    except DataError as error:
        raise Refusal(422, "bad-input", str(error), field="label") from None
    took = time.perf_counter_ns() - begun
    return Answer([orjson.dumps(found.to_dict())[1:-1]], took)


def _fields(hits: Iterable[Hit], known_terms: int) -> bytes:
    return b'"hits":' + orjson.dumps(rows_of(hits)) + b',"known_terms":%d' % known_terms


def rows_of(hits: Iterable[Hit]) -> list[dict[str, Any]]:
    """Hits as JSON shows them; a score that is not finite is null."""
    return [
        {name: value for name, value in hit._asdict().items() if name not in _MAYBE or value is not None}
        for hit in hits
    ]
