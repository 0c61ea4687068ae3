"""routes.py — a method and a path in, the route, its operation and the names in its path out.

The law: `ROUTES` is the only list of what this server answers to. The router below, the counts (metrics.py), who may
ask (access.py), the handlers (handlers.py: a method per operation) and the API's description (openapi.py: an entry per
documented operation) are all read off it, so that none of them can know a route that another does not.

By hand and not Starlette with msgspec, though no one would wait longer for them: in turns, processor time inside the
application without sockets, a label by its number took 15 µs here and 21 µs there, an exact search 113 and 117, longer
ones the same within the noise (bench/rivals/server_libraries.py). They would add 75 ms and 4 MB to each worker's start
and four packages, and our messages would be by hand all the same. A plain search goes neither way (process/direct.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from beamwood.server.app.replies import Refusal

UNKNOWN = "other"  # how requests are counted whose address is none of ours
UNREAD = "unread"  # and those that were refused before they could be read: see connection.py


@dataclass(frozen=True)
class Route:
    """One address. `operations` are names of handlers by method; HEAD is answered where GET is."""

    path: str  # a part in braces stands for any text without a slash, percent-encoded
    operations: Mapping[str, str]
    open: bool = False  # answered without a token
    admin: bool = False  # never answered by a server that has no token
    documented: bool = True
    file: str | None = None  # of the page; answered only where the page is shown
    segments: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Cuts the path in pieces."""
        object.__setattr__(self, "segments", tuple(self.path.split("/")[1:]))

    @property
    def allowed(self) -> str:
        """Its methods, as the header Allow lists them."""
        return ", ".join((*self.operations, "HEAD") if "GET" in self.operations else self.operations)


def _page(path: str, file: str) -> Route:
    return Route(path, {"GET": "page"}, open=True, documented=False, file=file)


ROUTES = (
    Route("/v1/search", {"POST": "search", "GET": "search_by_query"}),
    Route("/v1/explain", {"POST": "explain"}),
    Route("/v1/models", {"GET": "models"}),
    Route("/v1/labels/{label}", {"GET": "label"}),
    Route("/v1/projects", {"GET": "projects"}),
    Route("/v1/projects/{project}", {"GET": "project"}),
    Route("/v1/projects/{project}/suggest", {"POST": "suggest"}),
    Route("/v1/admin/reload", {"POST": "reload"}, admin=True),
    Route("/healthz", {"GET": "healthz"}, open=True),
    Route("/readyz", {"GET": "readyz"}, open=True),
    Route("/metrics", {"GET": "metrics"}),
    Route("/openapi.json", {"GET": "openapi"}, open=True, documented=False),
    _page("/", "index.html"),
    _page("/page.css", "page.css"),
    _page("/page.js", "page.js"),
    _page("/why.js", "why.js"),
    _page("/command.js", "command.js"),
    _page("/filter.js", "filter.js"),
    _page("/docs", "docs.html"),
    _page("/docs.js", "docs.js"),
    _page("/favicon.svg", "favicon.svg"),
)


class Router:
    """Finds the route of a request; without the routes of the page where that is not shown."""

    def __init__(self, page: bool) -> None:
        routes = [route for route in ROUTES if page or route.file is None]
        self._routes = routes
        self._fixed = {route.path: route for route in routes if "{" not in route.path}

    def find(self, path: str) -> tuple[Route, dict[str, str]]:
        """The route at a path as it was sent, and what stands for the names in it; a Refusal if there is none."""
        route = self._fixed.get(path)
        if route is not None:
            return route, {}
        segments = [unquote(segment) for segment in path.split("/")[1:]]
        for candidate in self._routes:
            names = _match(candidate.segments, segments)
            if names is not None:
                return candidate, names
        raise Refusal(404, "not-found", "There is nothing at this address; /openapi.json lists what there is.")


def operation_of(route: Route, method: str) -> str:
    """The operation that a method asks for, or a Refusal that names those there are."""
    operation = route.operations.get("GET" if method == "HEAD" else method)
    if operation is None:
        raise Refusal(405, "method-not-allowed", f"This address answers to {route.allowed}.", allow=route.allowed)
    return operation


def _match(pattern: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    names = {}
    for expected, found in zip(pattern, segments, strict=True):
        if expected.startswith("{"):
            names[expected[1:-1]] = found
        elif expected != found:
            return None
    return names
