"""metrics.py — what happened to requests in, Prometheus text out, for all workers together.

The numbers live in one block of memory that the workers share, a row of doubles each: a worker writes to its own row
only, and whichever is asked adds the rows up. A worker that comes back goes on in the row it had.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Sequence

import numpy as np

from beamwood import _core

ROUTES = (
    "/v1/search", "/v1/explain", "/v1/models", "/v1/labels/{id}", "/v1/projects", "/v1/projects/{id}",
    "/v1/projects/{id}/suggest", "/v1/admin/reload", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/",
    "other",
)  # fmt: skip
STATUSES = (200, 204, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 499, 500, 503)
STAGES = ("queue", "engine", "total")
BOUNDS = tuple(unit * scale for scale in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0) for unit in (1.0, 2.0, 5.0))
BEAMS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_HELP = {
    "beamwood_requests_total": ("counter", "Requests answered, by route and status."),
    "beamwood_errors_total": ("counter", "Requests answered with a status from 400 on, by status."),
    "beamwood_in_flight": ("gauge", "Requests being answered now."),
    "beamwood_connections": ("gauge", "Connections that are open now."),
    "beamwood_queued": ("gauge", "Questions that wait for an engine thread now."),
    "beamwood_seconds": ("histogram", "Seconds of searches: waiting, in the engine, and in all."),
    "beamwood_beam": ("histogram", "Beams asked for."),
    "beamwood_rows_total": ("counter", "Queries answered; a request may hold many."),
    "beamwood_swaps_total": ("counter", "Models put in place of another one."),
    "beamwood_refused_models_total": ("counter", "Model files that were refused at a swap."),
    "beamwood_workers": ("gauge", "Workers by the version of the model they serve."),
}
_SINGLES = ("in_flight", "queued", "connections", "rows", "swaps", "refused", "ready")


def _layout(models: int) -> dict[str, int]:
    """Where each number stands in a row."""
    at: dict[str, int] = {}
    count = 0
    for name, size in (
        ("requests", len(ROUTES) * len(STATUSES)),
        *((f"seconds/{stage}", len(BOUNDS) + 2) for stage in STAGES),
        ("beam", len(BEAMS) + 2),
        *((single, 1) for single in _SINGLES),
        ("version", 2 * models),
        ("lists", models),
    ):
        at[name] = count
        count += size
    at["end"] = count
    return at


class Metrics:
    """The rows of all workers, in memory behind an open file that the supervisor makes and hands to them."""

    def __init__(self, models: Sequence[str], workers: int, file: int | None = None) -> None:
        self.models, self.workers = tuple(models), workers
        self.at = _layout(len(self.models))
        width = self.at["end"]
        if file is None:
            file = os.memfd_create("beamwood-metrics")
            os.ftruncate(file, workers * width * 8)
        self.file = file
        self._memory = mmap.mmap(file, workers * width * 8)
        cells = memoryview(self._memory).cast("d")
        self.rows = [cells[worker * width : (worker + 1) * width] for worker in range(workers)]

    def row(self, worker: int) -> Row:
        """The row that one worker writes to."""
        return Row(self, worker)

    def serves(self, model: int, version: str, lists: int) -> bool:
        """Whether every worker that is ready serves this version of a model, with filters of these lists."""
        wanted = (*_halves(version), float(lists))
        at, also = self.at["version"] + 2 * model, self.at["lists"] + model
        return all((row[at], row[at + 1], row[also]) == wanted for row in self.rows if row[self.at["ready"]])

    def fewest_connections(self) -> float:
        """The connections of the worker that has the fewest."""
        return min((row[self.at["connections"]] for row in self.rows if row[self.at["ready"]]), default=0.0)

    def total(self, name: str, offset: int = 0) -> float:
        """One number, over all workers."""
        return sum(row[self.at[name] + offset] for row in self.rows)

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        return ("\n".join(self._lines()) + "\n").encode()

    def _lines(self) -> Iterable[str]:
        yield from self._requests()
        yield from _single("beamwood_in_flight", self.total("in_flight"))
        yield from _single("beamwood_connections", self.total("connections"))
        yield from _single("beamwood_queued", self.total("queued"))
        yield from _head("beamwood_seconds")
        for stage in STAGES:
            yield from self._histogram("beamwood_seconds", f"seconds/{stage}", BOUNDS, f'stage="{stage}"')
        yield from _head("beamwood_beam")
        yield from self._histogram("beamwood_beam", "beam", BEAMS, "")
        for name, cell in (("rows", "rows"), ("swaps", "swaps"), ("refused_models", "refused")):
            yield from _single(f"beamwood_{name}_total", self.total(cell))
        yield from self._versions()

    def _requests(self) -> Iterable[str]:
        yield from _head("beamwood_requests_total")
        errors = dict.fromkeys((status for status in STATUSES if status >= 400), 0.0)
        for number, route in enumerate(ROUTES):
            for place, status in enumerate(STATUSES):
                count = self.total("requests", number * len(STATUSES) + place)
                if count:
                    yield f'beamwood_requests_total{{route="{route}",status="{status}"}} {count:.0f}'
                if status >= 400:
                    errors[status] += count
        yield from _head("beamwood_errors_total")
        for status, count in errors.items():
            yield f'beamwood_errors_total{{status="{status}"}} {count:.0f}'

    def _histogram(self, name: str, cells: str, bounds: Sequence[float], label: str) -> Iterable[str]:
        comma = "," if label else ""
        running = 0.0
        for number, bound in enumerate(bounds):
            running += self.total(cells, number)
            yield f'{name}_bucket{{{label}{comma}le="{bound:g}"}} {running:.0f}'
        running += self.total(cells, len(bounds))
        yield f'{name}_bucket{{{label}{comma}le="+Inf"}} {running:.0f}'
        braces = f"{{{label}}}" if label else ""
        yield f"{name}_sum{braces} {self.total(cells, len(bounds) + 1):.9g}"
        yield f"{name}_count{braces} {running:.0f}"

    def _versions(self) -> Iterable[str]:
        yield from _head("beamwood_workers")
        for number, model in enumerate(self.models):
            serving: dict[str, int] = {}
            for row in self.rows:
                high, low = (int(row[self.at["version"] + 2 * number + half]) for half in (0, 1))
                if row[self.at["ready"]]:
                    version = f"{high:08x}{low:08x}"
                    serving[version] = serving.get(version, 0) + 1
            for version, count in sorted(serving.items()):
                yield f'beamwood_workers{{model="{model}",version="{version}"}} {count}'


class Row:
    """One worker's numbers. Written by its event loop alone."""

    def __init__(self, metrics: Metrics, worker: int) -> None:
        self.metrics, self.cells, self._at = metrics, metrics.rows[worker], metrics.at
        self._requests = {
            (route, status): self._at["requests"] + i * len(STATUSES) + j
            for i, route in enumerate(ROUTES)
            for j, status in enumerate(STATUSES)
        }
        self.searches = _core.SearchCounts(np.asarray(self.cells), self._places(), BOUNDS, BEAMS)
        self.searched = self.searches.add  # counts a search: nanoseconds in queue, engine and all; beam; queries
        for name in ("in_flight", "connections", "queued", "ready"):  # left over from a worker that was killed
            self.set(name, 0.0)

    def set(self, name: str, value: float) -> None:
        """Sets a single number."""
        self.cells[self._at[name]] = value

    def add(self, name: str, value: float = 1.0) -> None:
        """Adds to a single number."""
        self.cells[self._at[name]] += value

    def serves(self, model: int, version: str, lists: int) -> None:
        """Says which version of a model this worker serves, and with filters of which lists."""
        at = self._at["version"] + 2 * model
        self.cells[at], self.cells[at + 1] = _halves(version)
        self.cells[self._at["lists"] + model] = float(lists)

    def answered(self, route: str, status: int) -> None:
        """Counts one answer."""
        at = self._requests.get((route, status))
        self.cells[at if at is not None else self._requests["other", 500]] += 1.0

    def _places(self) -> list[int]:
        """Where native code counts a search and its answer."""
        cells = [*(f"seconds/{stage}" for stage in STAGES), "beam", "rows"]
        return [*(self._at[cell] for cell in cells), self._requests["/v1/search", 200]]


def _halves(version: str) -> tuple[float, float]:
    """64 bits in hex as two numbers that doubles can hold."""
    number = int(version, 16)
    return float(number >> 32), float(number & 0xFFFFFFFF)


def _head(name: str) -> Iterable[str]:
    kind, meaning = _HELP[name]
    return (f"# HELP {name} {meaning}", f"# TYPE {name} {kind}")


def _single(name: str, value: float) -> Iterable[str]:
    return (*_head(name), f"{name} {value:.0f}")
