"""access.py — a route and the headers of a request in, whether it may pass out. Tokens compare in constant time."""

from __future__ import annotations

import hmac

from beamwood.server.app.replies import Refusal
from beamwood.server.app.routes import Route


class Access:
    """Who may ask what. Without a token everyone who can connect may ask, and no one may administer."""

    def __init__(self, token: str | None, origins: tuple[str, ...]) -> None:
        self._expected = None if token is None else b"Bearer " + token.encode()
        self._origins = frozenset(origin.encode() for origin in origins)

    def check(self, route: Route, authorization: bytes | None) -> None:
        """Raises a Refusal when the request may not pass."""
        if self._expected is None:
            if route.admin:
                raise Refusal(403, "no-token-configured", "Start the server with --token-file to administer it.")
            return
        if route.open:
            return
        if authorization is None:
            raise Refusal(401, "token-missing", "Send the header: Authorization: Bearer <token>.")
        if not hmac.compare_digest(_normal(authorization), self._expected):
            raise Refusal(401, "token-wrong", "The token is not the one this server was started with.")

    def cors(self, origin: bytes | None) -> list[tuple[bytes, bytes]]:
        """The headers that let a page of another origin read the answer; none unless that was asked for."""
        if origin is None or not self._origins or (origin not in self._origins and b"*" not in self._origins):
            return []
        allowed = b"*" if b"*" in self._origins else origin
        return [(b"access-control-allow-origin", allowed), (b"vary", b"origin")]


def _normal(authorization: bytes) -> bytes:
    """The scheme's name may come in any case."""
    return b"Bearer " + authorization[7:] if authorization[:7].lower() == b"bearer " else authorization
