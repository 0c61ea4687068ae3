"""openapi.py — the limits of a server in, its OpenAPI document out. Kept by hand; tests hold the server to it."""

from __future__ import annotations

from typing import Any

from beamwood.server.options import ServeOptions

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"type": "number"}
_SCORE: Schema = {"type": ["number", "null"], "description": "Higher is better; null stands for minus infinity."}


def document(options: ServeOptions) -> Schema:
    """The document itself."""
    secured: list[Schema] = [{"token": []}] if options.token is not None else []
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "beamwood",
            "version": "1",
            "description": "Ranks the best labels for a text or for a row of sparse features.",
        },
        "paths": _paths(options, secured),
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


def _whole(most: int, usual: int, meaning: str) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": most, "default": usual, "description": meaning}


def _parameters(options: ServeOptions) -> Schema:
    """The fields that every way to search shares."""
    keys = _list(_STRING, most=options.max_keys)
    return {
        "model": {**_STRING, "minLength": 1, "description": "The model's name; the first one if not given."},
        "k": _whole(options.max_k, options.k, "Labels returned."),
        "beam": _whole(options.max_beam, options.beam, "Nodes kept a layer: more is slower and finds more."),
        "exact": {"type": "boolean", "default": False, "description": "The true best k, whatever the beam."},
        "min_score": {**_NUMBER, "description": "Leave out labels that score less."},
        "allow": {**keys, "description": "Only labels with these keys."},
        "deny": {**keys, "description": "No labels with these keys."},
        "filter": {**_STRING, "minLength": 1, "description": "The name of a filter that the server was started with."},
    }


def _schemas(options: ServeOptions) -> dict[str, Schema]:
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
    named = {"model": _STRING, "version": {**_STRING, "description": "Names the content of the model's file."}}
    times = {"engine_us": {**_NUMBER, "minimum": 0}, "queue_us": {**_NUMBER, "minimum": 0}}
    hits = {"hits": _list(_ref("Hit")), "known_terms": _COUNT}
    return {
        "Search": {
            **_object({**asks, **common}, (*asks, *common), closed=True),
            "oneOf": [{"required": [name]} for name in asks],
            "examples": [{"text": "history of jazz in new orleans", "k": 5}],
        },
        "Explain": {
            **_object(
                {"text": text, "features": features, "label": label, "model": common["model"]},
                ("text", "features", "model"),
                closed=True,
            ),
            "oneOf": [{"required": ["text"]}, {"required": ["features"]}],
            "examples": [{"text": "history of jazz in new orleans", "label": 0}],
        },
        "Hit": _object({"label": _COUNT, "key": _STRING, "name": _STRING, "score": _SCORE}),
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
                "trees": _list({"type": "object"}),
                **times,
            }
        ),
        "Label": _object({**named, "label": _COUNT, "key": _STRING, "name": _STRING}),
        "Models": _object(
            {
                "models": _list(
                    _object(
                        {
                            "name": _STRING,
                            "version": _STRING,
                            "labels": _COUNT,
                            "features": _COUNT,
                            "trees": _COUNT,
                            "depth": _COUNT,
                            "nodes": _list(_list(_COUNT)),
                            "activation": _STRING,
                            "text": {"type": "boolean"},
                            "filters": _list(_STRING),
                            "loaded": _NUMBER,
                        }
                    )
                )
            }
        ),
        "Project": _object(
            {
                "project_id": _STRING,
                "name": _STRING,
                "language": _STRING,
                "backend": {"type": "object"},
                "is_trained": {"type": "boolean"},
            }
        ),
        "Projects": _object({"projects": _list(_ref("Project"))}),
        "Form": _object(
            {"text": _STRING, "limit": _whole(options.max_k, 10, "Suggestions returned."), "threshold": _NUMBER},
            ("limit", "threshold"),
        ),
        "Suggestions": _object(
            {
                "results": _list(
                    _object(
                        {
                            "uri": _STRING,
                            "label": _STRING,
                            "score": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                        }
                    )
                )
            }
        ),
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
    meanings = {
        "400": "Not HTTP as it should be.",
        "401": "The token is missing or wrong.",
        "403": "The server was started without a token, so no one may administer it.",
        "404": "There is no such thing.",
        "405": "Another method is wanted.",
        "408": "The request did not arrive in time.",
        "409": "The new file is not good; the old model goes on.",
        "413": "The body is too large.",
        "415": "Another content type is wanted.",
        "422": "Something in the request is not what it should be; `field` and `message` say what.",
        "431": "The head is too large.",
        "500": "The server is at fault.",
        "503": "As much work as can be done soon; ask again after the seconds in Retry-After.",
    }
    content = {"application/json": {"schema": _ref("Error")}}
    return {status: {"description": meaning, "content": content} for status, meaning in meanings.items()}


def _operation(name: str, summary: str, answer: Schema, refusals: str, **more: Any) -> Schema:
    responses = {status: {"$ref": f"#/components/responses/{status}"} for status in f"{refusals} 431".split()}
    return {"operationId": name, "summary": summary, "responses": {"200": answer, **responses}, **more}


def _json(schema: str, meaning: str) -> Schema:
    return {"description": meaning, "content": {"application/json": {"schema": _ref(schema)}}}


def _body(schema: str, kind: str = "application/json") -> Schema:
    return {"requestBody": {"required": True, "content": {kind: {"schema": _ref(schema)}}}}


def _at(place: str, name: str, schema: Schema, required: bool = False) -> Schema:
    return {"name": name, "in": place, "required": required, "schema": schema}


def _paths(options: ServeOptions, secured: list[Schema]) -> dict[str, Schema]:
    in_query = [_at("query", name, schema) for name, schema in _parameters(options).items()]
    project = [_at("path", "id", {**_STRING, "minLength": 1}, required=True)]
    label = [_at("path", "id", _COUNT, required=True), _at("query", "model", {**_STRING, "minLength": 1})]
    plain = {"description": "The numbers.", "content": {"text/plain": {"schema": _STRING}}}
    asked = {"security": secured}
    return {
        "/v1/search": {
            "post": _operation(
                "search",
                "Find the labels for a text, many texts or a row of features.",
                _json("Hits", "The best labels."),
                "400 401 404 405 408 413 422 503",
                **_body("Search"),
                **asked,
            ),
            "get": _operation(
                "searchByQuery",
                "Find the labels for a text.",
                _json("Hits", "The best labels."),
                "400 401 404 405 422 503",
                parameters=[_at("query", "q", _STRING, required=True), *in_query],
                **asked,
            ),
        },
        "/v1/explain": {
            "post": _operation(
                "explain",
                "How a label came to its score: its path, and each word's share.",
                _json("Explanation", "The path."),
                "400 401 404 405 408 413 422 503",
                **_body("Explain"),
                **asked,
            ),
        },
        "/v1/models": {
            "get": _operation(
                "models", "The models and their versions.", _json("Models", "All models."), "400 401 405", **asked
            )
        },
        "/v1/labels/{id}": {
            "get": _operation(
                "label",
                "One label by its number.",
                _json("Label", "The label."),
                "400 401 404 405",
                parameters=label,
                **asked,
            ),
        },
        "/v1/projects": {
            "get": _operation(
                "projects",
                "The models as Annif lists projects.",
                _json("Projects", "All of them."),
                "400 401 405",
                **asked,
            )
        },
        "/v1/projects/{id}": {
            "get": _operation(
                "project",
                "One model as Annif describes a project.",
                _json("Project", "The project."),
                "400 401 404 405",
                parameters=project,
                **asked,
            ),
        },
        "/v1/projects/{id}/suggest": {
            "post": _operation(
                "suggest",
                "Suggestions as Annif gives them.",
                _json("Suggestions", "The best labels."),
                "400 401 404 405 408 413 415 422 503",
                parameters=project,
                **_body("Form", "application/x-www-form-urlencoded"),
                **asked,
            ),
        },
        "/v1/admin/reload": {
            "post": _operation(
                "reload",
                "Read the model files again, in every worker. Always needs a token.",
                _json("Reloaded", "What is served now."),
                "400 401 403 405 409 413 503",
                security=[{"token": []}],
            ),
        },
        "/healthz": {
            "get": _operation("healthz", "Whether the process lives.", _json("Status", "It does."), "400 405")
        },
        "/readyz": {
            "get": _operation(
                "readyz", "Whether it should be sent requests.", _json("Status", "It should."), "400 405 503"
            )
        },
        "/metrics": {
            "get": _operation("metrics", "Numbers of all workers, for Prometheus.", plain, "400 401 405", **asked)
        },
    }
