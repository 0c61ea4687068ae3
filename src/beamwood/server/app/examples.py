"""examples.py — an operation's name in, what a server answers to the request that its description shows, out.

They are answers of a small shop's model, with long lists cut short; a test asks a real server and compares.
"""

from __future__ import annotations

from typing import Any

SEARCH = {"text": "red wool socks", "k": 2}
EXPLAIN = {"text": "rubber boots for rain", "label": 0}
FORM = {"text": "red wool socks", "limit": 2}
QUERY = "red wool socks"

_SERVED = {"model": "shop", "version": "833d9a623a8a0496"}
_HITS = [
    {"label": 8, "key": "wool", "name": "wool", "score": 0.97548634},
    {"label": 7, "key": "socks", "name": "socks", "score": 0.9071583},
]
_PROJECT = {
    "project_id": "shop",
    "name": "shop",
    "language": "en",
    "backend": {"backend_id": "beamwood"},
    "vocab": {"vocab_id": "shop", "languages": ["en"]},
    "vocab_language": "en",
    "is_trained": True,
    "modification_time": "2026-11-18T23:40:09Z",
}
_STEP = {
    "layer": 0,
    "node": 1,
    "shares": [{"feature": 1, "word": "boots", "value": 0.45798516, "weight": 0.50199717, "product": 0.22990726}],
    "bias": 0.20003745,
    "z": 0.72504807,
    "activation": 0.97942859,
    "above": 1.0,
    "score": 0.97942859,
    "words": [{"feature": 2, "word": "cotton", "weight": 0.47646961}],
}
_EXPLANATION = {
    "label": 0,
    "key": "boots",
    "name": "boots",
    "score": 0.95459461,
    "activation": "hinge-3",
    "path": "product",
    "discount": 1.0,
    "trees": [{"tree": 0, "steps": [_STEP], "score": 0.95459461}],
    "number_of_trees": 1,
    "words": None,
    "head": None,
}
ANSWERS: dict[str, Any] = {
    "search": {**_SERVED, "hits": _HITS, "known_terms": 3, "engine_us": 15.6, "queue_us": 126.6},
    "search_by_query": {**_SERVED, "hits": _HITS, "known_terms": 3, "engine_us": 6.5, "queue_us": 0.0},
    "explain": {**_SERVED, **_EXPLANATION, "engine_us": 1930.9, "queue_us": 94.8},
    "models": {
        "models": [
            {
                "name": "shop",
                "version": _SERVED["version"],
                "labels": 9,
                "features": 22,
                "trees": 1,
                "depth": 3,
                "nodes": [[2, 4, 9]],
                "activation": "hinge-3",
                "beam": 10,
                "text": True,
                "calibrated": False,
                "filters": [],
                "loaded": 1795045209.367,
            }
        ]
    },
    "label": {**_SERVED, "label": 0, "key": "boots", "name": "boots"},
    "projects": {"projects": [_PROJECT]},
    "project": _PROJECT,
    "suggest": {
        "results": [
            {"uri": "wool", "label": "wool", "notation": None, "score": 0.9754863381385803},
            {"uri": "socks", "label": "socks", "notation": None, "score": 0.9071583151817322},
        ]
    },
    "reload": {"models": [{"name": "shop", "version": _SERVED["version"]}]},
    "healthz": {"status": "ok"},
    "readyz": {"status": "ready"},
    "metrics": "# HELP beamwood_requests_total Requests answered, by route and status.\n"
    "# TYPE beamwood_requests_total counter\n"
    'beamwood_requests_total{route="/v1/search",status="200"} 2\n',
}
