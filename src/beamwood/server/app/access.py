"""access.py — a route and the headers of a request in, whether it may pass out. Tokens compare in constant time."""

from __future__ import annotations

import hmac

from beamwood.server.app.replies import Headers, Refusal
from beamwood.server.app.routes import Route
from beamwood.server.options import ServeOptions


class Access:
    """Who may ask what. Without a token everyone who can connect may ask, and no one may administer."""

    def __init__(self, options: ServeOptions) -> None:
        self._expected = None if options.token is None else b"Bearer " + options.token.encode()
        self._origins = frozenset(origin.encode() for origin in options.cors)
        self._names = sorted(options.hosts)
        self._hosts = frozenset(name.encode() for name in self._names)

    def check_form(self, version: str, headers: Headers) -> None:
        """Raises a Refusal when the head is one that programs on the way here could read in another way than we do.

        Headers that decide something must not come twice, a request names one host, and that is one of this server.
        """
        if version not in ("1.0", "1.1"):
            raise Refusal(505, "http-version", f"The request is HTTP/{version}; expected HTTP/1.1.", close=True)
        hosts, seen = [], set()
        for name, value in headers:
            if name == b"host":
                hosts.append(value)
            elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
                message = "The body has another transfer encoding than chunked; expected that or none."
                raise Refusal(501, "transfer-encoding", message, close=True)
            elif name == b"authorization":
                if name in seen:
                    raise Refusal(400, "bad-http", "The header Authorization stands twice; expected one.", close=True)
                seen.add(name)
        if len(hosts) != 1 and (hosts or version != "1.0"):
            found = "no Host header" if not hosts else f"{len(hosts)} Host headers"
            raise Refusal(400, "bad-http", f"The request has {found}; expected one.", close=True)
        if hosts and self._hosts and host_of(hosts[0]) not in self._hosts:
            found = host_of(hosts[0]).decode("ascii", "replace")[:80]
            message = (
                f"The request is for the host {found!r}; expected {', '.join(self._names)}. Start the server with "
                f"--allow-host NAME to answer to more, or with --token-file."
            )
            raise Refusal(403, "host-not-allowed", message)

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


def host_of(header: bytes) -> bytes:
    """The host in a Host header: without its port, in lower case."""
    end = header.find(b"]") + 1 if header.startswith(b"[") else header.rfind(b":")
    return header[:end].lower() if end > 0 else header.lower()


def _normal(authorization: bytes) -> bytes:
    """The scheme's name may come in any case."""
    return b"Bearer " + authorization[7:] if authorization[:7].lower() == b"bearer " else authorization
