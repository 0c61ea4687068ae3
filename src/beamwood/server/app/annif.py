"""annif.py — the routes of Annif's own server that its `http` backend speaks: projects in, suggestions out.

An Annif project aimed here needs `backend=http` and `endpoint=http://host:port/v1/projects/NAME/suggest`; the subjects
of its vocabulary are our labels: a key is the subject's URI, after the prefix that --uri-prefix gives.
"""

from __future__ import annotations

import math
import time
from typing import Any
from urllib.parse import quote

import orjson

from beamwood.hits import Hits
from beamwood.server.app import monitors
from beamwood.server.app.answers import Answer
from beamwood.server.process.admission import Check
from beamwood.server.process.registry import Served


def describe(served: Served) -> dict[str, Any]:
    """One model as Annif describes a project."""
    return {
        "project_id": served.name,
        "name": served.name,
        "language": "en",
        "backend": {"backend_id": "beamwood"},
        "vocab": {"vocab_id": served.name, "languages": ["en"]},
        "vocab_language": "en",
        "is_trained": True,
        "modification_time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(served.loaded)),
    }


def suggest(served: Served, text: str, limit: int, threshold: float, beam: int, prefix: str, check: Check) -> Answer:
    """The best labels of a text with scores in (0, 1]."""
    check()
    begun = time.perf_counter_ns()
    hits = served.model.search(text, limit, max(beam, min(limit, 100))) if text.strip() else []
    took = time.perf_counter_ns() - begun
    if isinstance(hits, Hits):
        monitors.count(served.model, hits, hits.known_terms > 0)
    results = []
    for hit in hits:
        score = as_probability(hit.score, served.path) if hit.probability is None else hit.probability
        if score > 0.0 and score >= threshold:
            uri = prefix + quote(hit.key, safe="") if prefix else hit.key
            results.append({"uri": uri, "label": hit.name, "notation": None, "score": score})
    return Answer([b'{"results":' + orjson.dumps(results) + b"}"], took)


def as_probability(score: float, path: str) -> float:
    """A score between 0 and 1 in the same order: sums of logarithms by exp, plain sums by the logistic function."""
    if math.isnan(score):
        return 0.0
    if path == "sum":
        return math.exp(min(0.0, score))
    if path == "last":
        return 1.0 / (1.0 + math.exp(-score)) if score > -700.0 else 0.0
    return min(1.0, score)
