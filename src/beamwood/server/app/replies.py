"""replies.py — what a handler decided in, status, headers and body out."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

Headers = list[tuple[bytes, bytes]]

JSON_TYPE = (b"content-type", b"application/json")


class Reply(NamedTuple):
    """One answer."""

    status: int
    body: bytes
    content_type: bytes = b"application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()


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
