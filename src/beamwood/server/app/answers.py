"""answers.py — a model and checked questions in, pieces of JSON out. Runs on engine threads, beside the event loop."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson
import scipy.sparse as sp

from beamwood.errors import DataError
from beamwood.filters import Filter
from beamwood.hits import Hit, JsonAnswer
from beamwood.model import Model
from beamwood.server.app.replies import Refusal
from beamwood.server.app.schema import SearchRequest, wrong
from beamwood.server.process.registry import Served


def kind_of(served: Served, question: SearchRequest) -> tuple[Any, ...]:
    """What questions have in common that take about the same time."""
    filtered = question.filter is not None or question.allow is not None or question.deny is not None
    return (served.name, question.beam.bit_length(), question.exact, filtered, question.features is None)


def content(served: Served, answer: JsonAnswer, queue: int) -> bytes:
    """The whole of an answer that waited some nanoseconds, as JSON."""
    tail = b',"engine_us":%.1f,"queue_us":%.1f}' % (answer.nanoseconds / 1e3, queue / 1e3)
    return served.head + answer.fields + tail


def search(served: Served, question: SearchRequest) -> JsonAnswer:
    """The best labels for what is asked."""
    if question.features is not None:
        return _features(served, question)
    _check_words(served)
    return _text(served, question) if question.texts is None else _texts(served, question)


def _text(served: Served, question: SearchRequest) -> JsonAnswer:
    assert question.text is not None
    chosen = _filter(served, question)
    if question.exact:
        begun = time.perf_counter_ns()
        hits = served.model.search(
            question.text, question.k, question.beam, question.min_score, exact=True, filter=chosen
        )
        return JsonAnswer(_fields(hits, hits.known_terms), time.perf_counter_ns() - begun)
    return served.model.search_json(question.text, question.k, question.beam, question.min_score, chosen)


def _texts(served: Served, question: SearchRequest) -> JsonAnswer:
    assert question.texts is not None
    chosen = _filter(served, question)
    begun = time.perf_counter_ns()
    many = served.model.search_many(
        question.texts, question.k, question.beam, 1, question.min_score, exact=question.exact, filter=chosen
    )
    took = time.perf_counter_ns() - begun
    results = [{"hits": rows_of(hits), "known_terms": hits.known_terms} for hits in many]
    return JsonAnswer(b'"results":' + orjson.dumps(results), took)


def _features(served: Served, question: SearchRequest) -> JsonAnswer:
    """The best labels of one row of numbers."""
    row = row_of(served.model, question.features or [])
    chosen = _filter(served, question)
    begun = time.perf_counter_ns()
    labels, scores = served.model.topk(row, question.k, question.beam, exact=question.exact, filter=chosen)
    took = time.perf_counter_ns() - begun
    least = -math.inf if question.min_score is None else question.min_score
    hits = [
        Hit(label, served.model.key(label), served.model.name(label), score)
        for label, score in zip(labels[0].tolist(), scores[0].tolist(), strict=True)
        if label >= 0 and score >= least
    ]
    return JsonAnswer(_fields(hits, row.nnz), took)


def row_of(model: Model, pairs: list[tuple[int, float]]) -> Any:
    """Pairs of index and value as one row; values of an index that stands twice are added."""
    ids = np.fromiter((index for index, _ in pairs), np.int64, len(pairs))
    if len(ids) and ids.max() >= model.n_features:
        wrong("features", f"index {ids.max()} does not exist: the model has {model.n_features:,} features, from 0 on")
    values = np.fromiter((value for _, value in pairs), np.float32, len(pairs))
    return sp.coo_array((values, (np.zeros(len(ids), np.int64), ids)), shape=(1, model.n_features)).tocsr()


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


def explain(served: Served, question: SearchRequest) -> JsonAnswer:
    """How a label came to its score for a text or a row."""
    assert question.label is not None
    query: Any = question.text
    if question.text is not None:
        _check_words(served)
    else:
        query = row_of(served.model, question.features or [])
    begun = time.perf_counter_ns()
    try:
        found = served.model.explain(query, question.label)
    except DataError as error:
        raise Refusal(422, "bad-input", str(error), field="label") from None
    took = time.perf_counter_ns() - begun
    return JsonAnswer(orjson.dumps(found.to_dict())[1:-1], took)


def _fields(hits: Iterable[Hit], known_terms: int) -> bytes:
    return b'"hits":' + orjson.dumps(rows_of(hits)) + b',"known_terms":%d' % known_terms


def rows_of(hits: Iterable[Hit]) -> list[dict[str, Any]]:
    """Hits as JSON shows them; a score that is not finite is null."""
    return [{"label": label, "key": key, "name": name, "score": score} for label, key, name, score in hits]
