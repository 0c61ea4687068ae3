"""client.py — the address of a `beamwood serve` in, answers as from a model out. Needs nothing but the base install."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from beamwood.errors import BeamwoodError, DataError
from beamwood.hits import Answers, Hit, Hits
from beamwood.inputs.arguments import as_texts

if TYPE_CHECKING:
    from beamwood.server.transport import Answer

_LONGEST_WAIT = 30.0
_ENVELOPE = frozenset({"model", "version", "engine_us", "queue_us"})  # what every answer has beside its own


class ServerError(BeamwoodError):
    """The server refused or could not be reached. `status` is 0 when there was no answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Asks a server. May be shared by threads; close it, or use it in a `with` block.

    retries: how often a request is sent again when the server is busy (503) or cannot be reached. It waits as long as
    the server says in Retry-After, a little more so that clients do not come back all at once.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        model: str | None = None,
        timeout: float = 10.0,
        retries: int = 3,
    ) -> None:
        from beamwood.server.transport import Connections  # not before: http.client would double the time of import

        self._connections = Connections(url, timeout)
        self._headers = {"accept": "application/json", "content-type": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self._model, self._retries = model, retries

    def search(
        self, text: str, k: int = 10, beam: int | None = None, min_score: float | None = None, **more: Any
    ) -> Hits:
        """The best k labels for a text, as Model.search gives them. more: exact, allow, deny, missing, filter."""
        answer = self._ask(text=text, k=k, beam=beam, min_score=min_score, **more)
        return _hits(answer, round(answer["engine_us"] * 1000))

    def search_many(
        self, texts: Sequence[str], k: int = 10, beam: int | None = None, min_score: float | None = None, **more: Any
    ) -> Answers:
        """The same for many texts at once."""
        texts = as_texts(texts)
        answer = self._ask(texts=texts, k=k, beam=beam, min_score=min_score, **more)
        return Answers((_hits(result) for result in answer["results"]), texts)

    def topk(self, features: Sequence[tuple[int, float]], k: int = 10, beam: int | None = None, **more: Any) -> Hits:
        """The best k labels for a row of numbers: (index, value) pairs."""
        return _hits(self._ask(features=[list(pair) for pair in features], k=k, beam=beam, **more))

    def explain(self, text: str, label: int | str) -> dict[str, Any]:
        """How a label came to its score, as Model.explain(…).to_dict() gives it."""
        answer = self._json("POST", "/v1/explain", self._named(text=text, label=label))
        return {name: value for name, value in answer.items() if name not in _ENVELOPE}

    def models(self) -> list[dict[str, Any]]:
        """The models that the server has, with their versions."""
        return list(self._json("GET", "/v1/models")["models"])

    def reload(self) -> list[dict[str, Any]]:
        """Has the server read its model files again; needs a token."""
        return list(self._json("POST", "/v1/admin/reload")["models"])

    def close(self) -> None:
        """Closes the connections."""
        self._connections.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, **question: Any) -> dict[str, Any]:
        return self._json("POST", "/v1/search", self._named(**question))

    def _named(self, **question: Any) -> dict[str, Any]:
        question.setdefault("model", self._model)
        return {name: value for name, value in question.items() if value is not None}

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        for left in range(self._retries, -1, -1):
            try:
                answer = self._connections.ask(method, path, data, self._headers)
            except OSError as error:
                if not left:
                    reason = str(error) or type(error).__name__
                    message = f"No answer from {self._connections.url}: {reason}. Is the server running?"
                    raise ServerError(0, message) from None
                time.sleep(_a_little_more(0.1))
                continue
            if answer.status == 503 and left:
                time.sleep(_a_little_more(_seconds(answer.retry_after)))
                continue
            return _checked(answer)
        raise AssertionError("the last try returns or raises")


def _checked(answer: Answer) -> dict[str, Any]:
    """The answer's JSON, or the error that it tells of."""
    try:
        value = json.loads(answer.body)
    except ValueError:
        value = None
    if answer.status == 200 and isinstance(value, dict):
        return value
    error = value.get("error") if isinstance(value, dict) else None
    message = error["message"] if isinstance(error, dict) else f"HTTP {answer.status}"
    if answer.status == 422:
        raise DataError(message)
    raise ServerError(answer.status, message)


def _hits(answer: dict[str, Any], nanoseconds: int = 0) -> Hits:
    found = (
        Hit(hit["label"], hit["key"], hit["name"], _score(hit["score"]), hit.get("probability"), hit.get("found_by"))
        for hit in answer["hits"]
    )
    return Hits(found, answer["known_terms"], nanoseconds)


def _score(score: float | None) -> float:
    """The float32 that the digits stand for, bit for bit."""
    return float("-inf") if score is None else float(np.float32(score))


def _seconds(retry_after: str | None) -> float:
    """What Retry-After asks for, within reason."""
    return min(_LONGEST_WAIT, float(retry_after)) if retry_after and retry_after.isdigit() else 1.0


def _a_little_more(seconds: float) -> float:
    return seconds * random.uniform(1.0, 1.25)
