"""schema.py — the bytes or the query string of a request in, a checked question out; or a 422 that names the field."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt
import orjson

from beamwood import _core
from beamwood.server.app.replies import Refusal
from beamwood.server.options import ServeOptions

_FLOAT32_MOST = 3.4028234663852886e38
_LARGEST_LABEL = 2**32 - 1
_MOST_FIELDS = 100  # of a body, far more than there are


class FeatureRow(NamedTuple):
    """One row of numbers: indices in any order, and their values."""

    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]


class SearchRequest(NamedTuple):
    """What one request asks. Exactly one of text, texts and features is given."""

    model: str | None
    k: int
    beam: int  # 0: the model's own
    text: str | None = None
    texts: list[str] | None = None
    features: FeatureRow | None = None
    exact: bool = False
    min_score: float | None = None
    threshold: float | bool | None = None  # the least probability, or true for the model's cut
    allow: list[str] | None = None
    deny: list[str] | None = None
    filter: str | None = None
    missing: str = "error"  # what is done about keys in allow and deny that no label has: error or ignore
    partial: bool = False  # of a model that was cut: leave out shards that do not answer
    label: int | str | None = None  # for explain only: a number or a key

    @property
    def rows(self) -> int:
        """How many queries it holds."""
        return 1 if self.texts is None else len(self.texts)


def wrong(field: str, message: str) -> NoReturn:
    """Refuses a field."""
    raise Refusal(422, "bad-input", f"{field}: {message}", field=field)


class RequestReader:
    """Reads questions within the limits of one server."""

    def __init__(self, options: ServeOptions, partial: bool = False) -> None:
        """partial: whether requests may ask for partial answers."""
        self._options = options
        self._most_values = options.max_texts + 2 * options.max_keys + _MOST_FIELDS
        search: dict[str, Callable[[str, Any], Any]] = {
            "model": _name,
            "text": _text,
            "texts": self._texts,
            "features": _features,
            "k": _whole(options.max_k),
            "beam": _whole(options.max_beam),
            "exact": _flag,
            "min_score": _number,
            "threshold": _threshold,
            "allow": self._keys,
            "deny": self._keys,
            "filter": _name,
            "missing": _missing,
        }
        self._search = search | ({"partial": _flag} if partial else {})
        self._explain = {name: search[name] for name in ("model", "text", "features")} | {"label": _label}
        self._annif = {"text": _text, "limit": _whole(options.max_k), "threshold": _number, "language": _text}

    def search(self, body: bytes) -> SearchRequest:
        """The question in the JSON body of a search."""
        return self._one_of(self._checked(self._object(body), self._search), ("text", "texts", "features"))

    def explain(self, body: bytes) -> SearchRequest:
        """The question in the JSON body of a request for an explanation."""
        given = self._checked(self._object(body), self._explain)
        if given.get("label") is None:
            wrong("label", "expected the number or the key of the label to explain, found none")
        return self._one_of(given, ("text", "features"))

    def search_query(self, query: bytes) -> SearchRequest:
        """The question in the query string of a search: q, and the other fields by their names."""
        given: dict[str, Any] = {}
        for name, value in _pairs(query):
            if name == "q":
                given["text"] = value
            elif name in ("allow", "deny"):
                given.setdefault(name, []).append(value)
            elif name in ("text", "texts", "features"):
                wrong(name, "give the text as q, or send the question as JSON with POST")
            else:
                given[name] = _from_string(name, value)
        return self._one_of(self._checked(given, self._search, also="q"), ("text",), called="q")

    def label_query(self, query: bytes) -> dict[str, str]:
        """The fields of a query string that tell which label is meant: model and by."""
        known: dict[str, Callable[[str, Any], Any]] = {"model": _name, "by": _by}
        return self._checked(dict(_pairs(query)), known)

    def suggest(self, body: bytes) -> tuple[str, int, float]:
        """Text, limit and threshold of the form that Annif sends."""
        given: dict[str, Any] = {"text": "", "limit": 10, "threshold": 0.0}
        for name, value in _pairs(body):
            if name in self._annif:
                given[name] = self._annif[name](name, _from_string(name, value))
        return given["text"], given["limit"], given["threshold"]

    def _object(self, body: bytes) -> dict[str, Any]:
        """The fields of a JSON body. Native code reads the features, and bounds what is left for Python to make."""
        ids, values, start, end, others, odd, twice = _core.read_pairs(body)
        if twice:
            wrong("features", "expected once, found twice")
        if others > self._most_values:
            if odd is not None:
                wrong(f"features[{odd}]", "expected a pair [index, value]")
            message = f"The body has more than {self._most_values:,} values besides features. Ask in parts."
            raise Refusal(422, "bad-input", message)
        given = _json_object(body[:start] + b"null" + body[end:] if end else body)
        return given | {"features": FeatureRow(ids, values)} if end else given

    def _checked(
        self, given: Mapping[str, Any], known: Mapping[str, Callable[[str, Any], Any]], also: str = ""
    ) -> dict[str, Any]:
        checked: dict[str, Any] = {}
        for name, value in given.items():
            check = known.get(name)
            if check is None:
                names = ", ".join(filter(None, (also, *known)))
                wrong(name[:80], f"this field is not known; expected one of {names}")
            if value is not None:
                checked[name] = check(name, value)
        return checked

    def _one_of(self, checked: dict[str, Any], names: tuple[str, ...], called: str | None = None) -> SearchRequest:
        present = [name for name in names if name in checked]
        if len(present) != 1:
            expected = called or " or ".join(names)
            found = " and ".join(present) if present else "none of them"
            wrong(called or names[0], f"expected exactly one of {expected}, found {found}")
        if "filter" in checked and ("allow" in checked or "deny" in checked):
            wrong("filter", "give the name of a filter, or allow and deny, not both")
        checked.setdefault("model", None)
        checked.setdefault("k", self._options.k)
        checked.setdefault("beam", self._options.beam or 0)
        question = SearchRequest(**checked)
        if question.rows * question.k > self._options.max_hits:
            asked = f"{question.rows:,} texts with {question.k:,} hits each"
            wrong("k", f"{asked} were asked for; expected at most {self._options.max_hits:,} hits in all. Ask in parts")
        return question

    def _texts(self, name: str, value: Any) -> list[str]:
        most = self._options.max_texts
        if type(value) is not list or not 1 <= len(value) <= most:
            wrong(name, f"expected a list of 1 to {most:,} strings, found {_kind(value)}")
        for number, text in enumerate(value):
            if type(text) is not str:
                wrong(f"{name}[{number}]", f"expected a string, found {_kind(text)}")
        return value

    def _keys(self, name: str, value: Any) -> list[str]:
        most = self._options.max_keys
        if type(value) is not list or len(value) > most:
            wrong(name, f"expected a list of at most {most:,} label keys, found {_kind(value)}")
        for number, key in enumerate(value):
            if type(key) is not str:
                wrong(f"{name}[{number}]", f"expected the key of a label, a string, found {_kind(key)}")
        return value


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refusal(422, "bad-json", f"The body is not JSON: {str(error)[:200]}.") from None
    if type(given) is not dict:
        raise Refusal(422, "bad-input", f'The body is {_kind(given)}; expected an object like {{"text": "red socks"}}.')
    return given


def _threshold(name: str, value: Any) -> float | bool:
    """The least probability, or true for the cut that is stored in the model."""
    if value is True:
        return True
    least = value if isinstance(value, bool) else _number(name, value)
    if least is False or not 0 <= least <= 1:
        wrong(name, f"{_kind(value)} is given; expected a probability from 0 to 1, or true for the model's cut")
    return least


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=20_000)
    except UnicodeDecodeError:
        raise Refusal(422, "bad-input", "The fields are not UTF-8, percent-encoded where needed.") from None
    except ValueError:
        raise Refusal(422, "bad-input", "There are too many fields.") from None


def _from_string(name: str, value: str) -> Any:
    """A field of a query string as the JSON value it stands for."""
    if name in ("k", "beam", "limit"):
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else value
    if name == "threshold" and value == "true":
        return True
    if name in ("min_score", "threshold"):
        try:
            return float(value)
        except ValueError:
            return value
    if name in ("exact", "partial"):
        return {"true": True, "1": True, "false": False, "0": False}.get(value, value)
    return value


def _kind(value: Any) -> str:
    """A value in a few words, for messages."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return f"the number {value!r}"[:60]
    if isinstance(value, str):
        return f"the string {value!r}" if len(value) < 40 else f"a string of {len(value):,} characters"
    return f"a list of {len(value):,}" if isinstance(value, list) else "an object"


def _text(name: str, value: Any) -> str:
    if type(value) is not str:
        wrong(name, f"expected a string, found {_kind(value)}")
    return value


def _name(name: str, value: Any) -> str:
    if type(value) is not str or not value:
        wrong(name, f"expected a name, found {_kind(value)}")
    return value


def _by(name: str, value: Any) -> str:
    if value not in ("number", "key"):
        wrong(name, f"expected number or key, found {_kind(value)}")
    return str(value)


def _missing(name: str, value: Any) -> str:
    if value not in ("error", "ignore"):
        wrong(name, f"expected error or ignore, found {_kind(value)}")
    return str(value)


def _whole(most: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        if type(value) is not int or not 1 <= value <= most:
            wrong(name, f"expected a whole number from 1 to {most:,}, found {_kind(value)}")
        return value

    return check


def _flag(name: str, value: Any) -> bool:
    if type(value) is not bool:
        wrong(name, f"expected true or false, found {_kind(value)}")
    return value


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        wrong(name, f"expected a number, found {_kind(value)}")
    return float(value)


def _label(name: str, value: Any) -> int | str:
    if type(value) is str or (type(value) is int and 0 <= value <= _LARGEST_LABEL):
        return value
    wrong(name, f"expected the number or the key of a label, found {_kind(value)}")


def _features(name: str, value: Any) -> FeatureRow:
    """A row that native code has read; or the reason why it did not."""
    if type(value) is FeatureRow:
        return value
    if type(value) is not list:
        wrong(name, f"expected a list of [index, value] pairs, found {_kind(value)}")
    ids, values = [], []
    for number, pair in enumerate(value):
        if type(pair) is not list or len(pair) != 2:
            wrong(f"{name}[{number}]", f"expected a pair [index, value], found {_kind(pair)}")
        index, weight = pair
        if type(index) is not int or not 0 <= index < 2**31:
            wrong(f"{name}[{number}]", f"expected the index of a feature, from 0 on, found {_kind(index)}")
        if type(weight) not in (int, float) or not abs(weight) <= _FLOAT32_MOST:
            wrong(f"{name}[{number}]", f"expected a finite float32, found {_kind(weight)}")
        ids.append(index)
        values.append(float(weight))
    return FeatureRow(np.array(ids, np.int64), np.array(values, np.float32))
