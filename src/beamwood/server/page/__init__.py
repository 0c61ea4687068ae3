"""page/ — the search page and the page about the API: files in, replies out. Nothing is loaded from elsewhere."""

from __future__ import annotations

from importlib.resources import files as resources

from beamwood.server.app.replies import Reply
from beamwood.server.app.routes import ROUTES

_KINDS = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
_HEADERS = (
    (b"cache-control", b"no-cache"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),  # with the next one: a clock of microseconds for the page
    (b"cross-origin-embedder-policy", b"require-corp"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
)


def files() -> dict[str, Reply]:
    """All files of the page by their address, as routes.py lists them."""
    here = resources(__name__)
    found = {}
    for route in ROUTES:
        if route.file is not None:
            kind = _KINDS[route.file.rpartition(".")[2]]
            found[route.path] = Reply(200, (here / route.file).read_bytes(), kind, _HEADERS)
    return found
