"""replies.py — what a handler decided in, status, headers and body out; and the one list of statuses."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import orjson

Headers = list[tuple[bytes, bytes]]

GONE = 499  # for the log and the counts only: the client went away before the answer
STATUSES = {  # all that this server answers with, and what each means: read by metrics.py and openapi.py
    200: "The answer.",
    204: "What pages of another origin may ask.",
    400: "Not HTTP/1.1 as it should be.",
    401: "The token is missing or wrong.",
    403: "The server was started without a token, so no one may administer it; or it does not answer to that host.",
    404: "There is no such thing.",
    405: "Another method is expected.",
    408: "The request did not arrive in time.",
    409: "The new file is not good; the old model stays.",
    413: "The body is too large.",
    415: "Another content type is expected.",
    422: "Something in the request is not what it should be; `field` and `message` say what.",
    431: "The head is too large.",
    GONE: "The client went away.",
    500: "The server is at fault.",
    501: "The body is encoded in a way that this server does not read.",
    503: "As much work as can be done soon; ask again after the seconds in Retry-After.",
    505: "Another version of HTTP is expected.",
}


class Reply(NamedTuple):
    """One answer. rest: what follows the body, where it is long: sent piece by piece, and let go of as it is."""

    status: int
    body: bytes
    content_type: bytes = b"application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    rest: deque[bytes] | None = None


class Gone(Exception):
    """The client went away before it had its answer."""


class Refusal(Exception):
    """An answer that says no, and why: a code for programs, a message for people."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: int | None = None, close: bool = False, **more: Any
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.more = status, code, message, more
        self.retry_after, self.close = retry_after, close

    def reply(self, request_id: str) -> Reply:
        """The answer itself."""
        headers: Headers = []
        if self.retry_after is not None:
            headers.append((b"retry-after", str(self.retry_after).encode()))
        if self.close:
            headers.append((b"connection", b"close"))
        if self.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if "allow" in self.more:
            headers.append((b"allow", self.more["allow"].encode()))
        error = {"code": self.code, "message": self.message, "request_id": request_id}
        if "field" in self.more:
            error["field"] = self.more["field"]
        return Reply(self.status, orjson.dumps({"error": error}), headers=tuple(headers))


def as_json(value: Any, status: int = 200) -> Reply:
    """A value as JSON; numbers that JSON does not have become null."""
    return Reply(status, orjson.dumps(value))
