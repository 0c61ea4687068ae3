"""openapi.py — the limits of a server in, its OpenAPI document out; tests hold the server to it.

Which operations there are, under which paths and for whom, is read off routes.py; here is what they take and give.
"""

from __future__ import annotations

from typing import Any

from beamwood.server.app.examples import ANSWERS, EXPLAIN, FORM, QUERY, SEARCH
from beamwood.server.app.replies import GONE, STATUSES
from beamwood.server.app.routes import ROUTES, Route
from beamwood.server.options import ServeOptions

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_NAME: Schema = {"type": "string", "minLength": 1}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"type": "number"}
_SCORE: Schema = {"type": ["number", "null"], "description": "Higher is better; null stands for minus infinity."}


def document(options: ServeOptions) -> Schema:
    """The document itself."""
    operations = _operations(options)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "beamwood",
            "version": "1",
            "description": "Ranks the best labels for a text or for a row of sparse features.",
        },
        "paths": {
            route.path: {
                method.lower(): _operation(route, method, operations[name], options)
                for method, name in route.operations.items()
            }
            for route in ROUTES
            if route.documented
        },
        "components": {
            "schemas": _schemas(options),
            "responses": _refusals(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _object(properties: Schema, optional: tuple[str, ...] = (), closed: bool = False) -> Schema:
    made: Schema = {
        "type": "object",
        "properties": properties,
        "required": [p for p in properties if p not in optional],
    }
    return {**made, "additionalProperties": False} if closed else made


def _list(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    bounds = {"minItems": least} if least else {}
    return {"type": "array", "items": items, **bounds, **({} if most is None else {"maxItems": most})}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _whole(most: int, usual: int | None, meaning: str) -> Schema:
    given = {} if usual is None else {"default": usual}
    return {"type": "integer", "minimum": 1, "maximum": most, **given, "description": meaning}


def _parameters(options: ServeOptions) -> Schema:
    """The fields that every way to search shares."""
    keys = _list(_STRING, most=options.max_keys)
    return {
        "model": {**_NAME, "description": "The model's name; the first one if not given."},
        "k": _whole(options.max_k, options.k, "Labels returned."),
        "beam": _whole(
            options.max_beam,
            options.beam,
            "Nodes kept per layer: more is slower and finds more; the model's own if not given.",
        ),
        "exact": {"type": "boolean", "default": False, "description": "The true best k, whatever the beam."},
        "min_score": {**_NUMBER, "description": "Leave out labels that score less."},
        "threshold": {
            "oneOf": [{**_NUMBER, "minimum": 0, "maximum": 1}, {"const": True}],
            "description": "Leave out labels that are less probable; true: those below the model's own cut.",
        },
        "allow": {**keys, "description": "Only labels with these keys."},
        "deny": {**keys, "description": "No labels with these keys."},
        "missing": {
            "enum": ["error", "ignore"],
            "default": "error",
            "description": "What is done about keys in allow and deny that no label has.",
        },
        "filter": {**_NAME, "description": "The name of a filter that the server was started with."},
    }


def _schemas(options: ServeOptions) -> dict[str, Schema]:
    return {**_asked(options), **_answered(), **_for_annif(options), **_for_those_who_run_it()}


def _asked(options: ServeOptions) -> dict[str, Schema]:
    """What requests bring."""
    text = {**_STRING, "description": "What to look for."}
    pair = {"type": "array", "prefixItems": [{**_COUNT, "maximum": 2**31 - 1}, _NUMBER], "minItems": 2, "maxItems": 2}
    features = {**_list(pair), "description": "A row of numbers: [index, value] pairs."}
    label = {"oneOf": [{**_COUNT, "maximum": 2**32 - 1}, _STRING], "description": "The label's number or its key."}
    common = _parameters(options)
    asks = {
        "text": text,
        "texts": {**_list(_STRING, 1, options.max_texts), "description": "Many texts, answered together."},
        "features": features,
    }
    return {
        "Search": {
            **_object({**asks, **common}, (*asks, *common), closed=True),
            "oneOf": [{"required": [name]} for name in asks],
            "examples": [SEARCH],
        },
        "Explain": {
            **_object(
                {"text": text, "features": features, "label": label, "model": common["model"]},
                ("text", "features", "model"),
                closed=True,
            ),
            "oneOf": [{"required": ["text"]}, {"required": ["features"]}],
            "examples": [EXPLAIN],
        },
    }


def _answered() -> dict[str, Schema]:
    """What answers hold."""
    named = {"model": _STRING, "version": {**_STRING, "description": "Names the content of the model's file."}}
    times = {"engine_us": {**_NUMBER, "minimum": 0}, "queue_us": {**_NUMBER, "minimum": 0}}
    hits = {"hits": _list(_ref("Hit")), "known_terms": _COUNT}
    found_by = {"enum": ["trees", "words", "both"], "description": "Of models that have trees and words."}
    return {
        "Hit": _object(
            {
                "label": _COUNT,
                "key": _STRING,
                "name": _STRING,
                "score": _SCORE,
                "probability": {**_NUMBER, "minimum": 0, "maximum": 1, "description": "Of a calibrated model."},
                "found_by": found_by,
            },
            ("probability", "found_by"),
        ),
        "Hits": _object(
            {**named, **hits, "results": _list(_object(hits)), **times}, ("hits", "known_terms", "results")
        ),
        "Explanation": _object(
            {
                **named,
                "label": _COUNT,
                "key": _STRING,
                "name": _STRING,
                "score": _SCORE,
                "activation": _STRING,
                "path": _STRING,
                "discount": _NUMBER,
                "trees": _list({"type": "object"}),
                "number_of_trees": _COUNT,
                "words": {"type": ["object", "null"], "description": "Of models that have words too."},
                "head": {"type": ["object", "null"], "description": "What makes one score of trees and words."},
                **times,
            }
        ),
        "Label": _object({**named, "label": _COUNT, "key": _STRING, "name": _STRING}),
        "Models": _object({"models": _list(_model())}),
    }


def _model() -> Schema:
    """What is said of one model."""
    return _object(
        {
            "name": _STRING,
            "version": _STRING,
            "labels": _COUNT,
            "features": _COUNT,
            "trees": _COUNT,
            "depth": _COUNT,
            "nodes": _list(_list(_COUNT)),
            "activation": _STRING,
            "beam": {**_COUNT, "minimum": 1},
            "text": {"type": "boolean"},
            "calibrated": {"type": "boolean"},
            "filters": _list(_STRING),
            "loaded": _NUMBER,
        }
    )


def _for_annif(options: ServeOptions) -> dict[str, Schema]:
    """What Annif sends and gets."""
    return {
        "Project": _object(
            {
                "project_id": _STRING,
                "name": _STRING,
                "language": _STRING,
                "backend": {"type": "object"},
                "vocab": {"type": "object"},
                "vocab_language": _STRING,
                "is_trained": {"type": "boolean"},
                "modification_time": _STRING,
            }
        ),
        "Projects": _object({"projects": _list(_ref("Project"))}),
        "Form": {
            **_object(
                {"text": _STRING, "limit": _whole(options.max_k, 10, "Suggestions returned."), "threshold": _NUMBER},
                ("limit", "threshold"),
            ),
            "examples": [FORM],
        },
        "Suggestions": _object(
            {
                "results": _list(
                    _object(
                        {
                            "uri": _STRING,
                            "label": _STRING,
                            "notation": {"type": ["string", "null"]},
                            "score": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                        }
                    )
                )
            }
        ),
    }


def _for_those_who_run_it() -> dict[str, Schema]:
    """What operators and all who are refused get."""
    return {
        "Reloaded": _object({"models": _list(_object({"name": _STRING, "version": _STRING}))}),
        "Status": _object({"status": _STRING}),
        "Error": _object(
            {
                "error": _object(
                    {"code": _STRING, "message": _STRING, "request_id": _STRING, "field": _STRING}, ("field",)
                )
            }
        ),
    }


def _refusals() -> dict[str, Schema]:
    content = {"application/json": {"schema": _ref("Error")}}
    refusals = {status: meaning for status, meaning in STATUSES.items() if status >= 400 and status != GONE}
    return {str(status): {"description": meaning, "content": content} for status, meaning in refusals.items()}


def _operation(route: Route, method: str, described: Schema, options: ServeOptions) -> Schema:
    """One operation with what follows from its route: who may ask, and the refusals that any request can meet."""
    refusals = {400, 403, 405, 431, 501, 505, *described["refusals"]}
    refusals |= {408, 413} if method == "POST" else set()
    refusals |= set() if route.open else {401}
    responses = {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(refusals)}
    rest = {name: value for name, value in described.items() if name not in ("answer", "refusals")}
    name = route.operations[method]
    content = {kind: {**given, "example": ANSWERS[name]} for kind, given in described["answer"]["content"].items()}
    answer = {**described["answer"], "content": content}
    made = {"operationId": name, **rest, "responses": {"200": answer, **responses}}
    if route.admin or (options.token is not None and not route.open):
        made["security"] = [{"token": []}]
    return made


def _json(schema: str, meaning: str) -> Schema:
    return {"description": meaning, "content": {"application/json": {"schema": _ref(schema)}}}


def _body(schema: str, kind: str = "application/json") -> Schema:
    return {"required": True, "content": {kind: {"schema": _ref(schema)}}}


def _at(place: str, name: str, schema: Schema, required: bool = False) -> Schema:
    return {"name": name, "in": place, "required": required, "schema": schema}


def _operations(options: ServeOptions) -> dict[str, Schema]:
    """What each documented operation of routes.py takes and gives; `refusals` are those of its own."""
    return {**_questions(options), **_projects(options), **_administration()}


def _questions(options: ServeOptions) -> dict[str, Schema]:
    in_query = [_at("query", name, schema) for name, schema in _parameters(options).items()]
    label = {**_STRING, "minLength": 1, "description": "The label's number or its key.", "examples": ["0"]}
    by = _at("query", "by", {"enum": ["number", "key"], "description": "Digits are a number if this is not given."})
    return {
        "search": {
            "summary": "Find the labels for a text, many texts or a row of features.",
            "requestBody": _body("Search"),
            "answer": _json("Hits", "The best labels."),
            "refusals": (404, 422, 503),
        },
        "search_by_query": {
            "summary": "Find the labels for a text.",
            "parameters": [_at("query", "q", {**_STRING, "examples": [QUERY]}, required=True), *in_query],
            "answer": _json("Hits", "The best labels."),
            "refusals": (404, 422, 503),
        },
        "explain": {
            "summary": "How a label came to its score: its path, and each word's share.",
            "requestBody": _body("Explain"),
            "answer": _json("Explanation", "The path."),
            "refusals": (404, 422, 503),
        },
        "models": {
            "summary": "The models and their versions.",
            "answer": _json("Models", "All models."),
            "refusals": (),
        },
        "label": {
            "summary": "One label by its number or its key.",
            "parameters": [_at("path", "label", label, required=True), _at("query", "model", _NAME), by],
            "answer": _json("Label", "The label."),
            "refusals": (404, 422),
        },
    }


def _projects(options: ServeOptions) -> dict[str, Schema]:
    first = next(iter(options.models))
    project = [_at("path", "project", {**_STRING, "minLength": 1, "examples": [first]}, required=True)]
    return {
        "projects": {
            "summary": "The models as Annif lists projects.",
            "answer": _json("Projects", "All of them."),
            "refusals": (),
        },
        "project": {
            "summary": "One model as Annif describes a project.",
            "parameters": project,
            "answer": _json("Project", "The project."),
            "refusals": (404,),
        },
        "suggest": {
            "summary": "Suggestions as Annif gives them.",
            "parameters": project,
            "requestBody": _body("Form", "application/x-www-form-urlencoded"),
            "answer": _json("Suggestions", "The best labels."),
            "refusals": (404, 415, 422, 503),
        },
    }


def _administration() -> dict[str, Schema]:
    return {
        "reload": {
            "summary": "Read the model files again, in every worker. Always needs a token.",
            "answer": _json("Reloaded", "What is served now."),
            "refusals": (409, 503),
        },
        "healthz": {
            "summary": "Whether the process lives.",
            "answer": _json("Status", "It does."),
            "refusals": (),
        },
        "readyz": {
            "summary": "Whether it should be sent requests.",
            "answer": _json("Status", "It should."),
            "refusals": (503,),
        },
        "metrics": {
            "summary": "Numbers of all workers, for Prometheus.",
            "answer": {"description": "The numbers.", "content": {"text/plain": {"schema": _STRING}}},
            "refusals": (),
        },
    }
