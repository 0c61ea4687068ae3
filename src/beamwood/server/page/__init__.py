"""page/ — the search page and the page about the API: files in, replies out. Nothing is loaded from elsewhere."""

from __future__ import annotations

from importlib.resources import files as resources

from beamwood.server.app.replies import Reply

_FILES = {
    "/": ("index.html", b"text/html; charset=utf-8"),
    "/page.css": ("page.css", b"text/css; charset=utf-8"),
    "/page.js": ("page.js", b"text/javascript; charset=utf-8"),
    "/docs": ("docs.html", b"text/html; charset=utf-8"),
    "/docs.js": ("docs.js", b"text/javascript; charset=utf-8"),
    "/favicon.svg": ("favicon.svg", b"image/svg+xml"),
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
    """All files of the page by their address."""
    here = resources(__name__)
    return {path: Reply(200, (here / name).read_bytes(), kind, _HEADERS) for path, (name, kind) in _FILES.items()}
