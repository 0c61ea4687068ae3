"""guard.py — models that are served and those to take their place in; a refusal out where answers differ too much."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from beamwood.errors import BeamwoodError
from beamwood.inputs.records import iter_texts
from beamwood.inputs.sources import text_lines
from beamwood.life.diff import diff
from beamwood.model import Model
from beamwood.server.options import ServeOptions
from beamwood.server.process.handover import BadModel, OpenFiles
from beamwood.server.process.registry import Served, opened

_MOST = 10_000  # queries


def guard(options: ServeOptions, current: OpenFiles, fresh: dict[str, Served]) -> None:
    """Raises BadModel for a model whose first answers differ from those of the one it replaces for too many queries."""
    if options.reload_guard is None:
        return
    for name, before in opened(options, current, verify=False).items():
        after = fresh[name]
        if after.version == before.version or before.model.text is None:
            continue
        try:
            queries = _queries(options, before.model)
            answers = diff(before.model, after.model, queries, threads=1, most=1).answers
        except BeamwoodError as error:
            raise BadModel(name, f"--reload-guard could not compare it: {error}") from None
        assert answers is not None
        if answers.changed[1] > options.reload_guard:
            raise BadModel(
                name,
                f"its first answer differs for {answers.changed[1]:.1%} of {answers.queries:,} queries; expected at "
                f"most {options.reload_guard:.1%} (--reload-guard). See what changed with beamwood diff; restart the "
                "server to take it all the same.",
            )


def _queries(options: ServeOptions, model: Model) -> list[str]:
    """Those of the file; or the names of labels, taken evenly."""
    if options.reload_guard_queries is None:
        step = max(1, model.n_labels // _MOST)
        return [model.name(label) for label in range(0, model.n_labels, step)][:_MOST]
    path = Path(options.reload_guard_queries)
    plain = path.suffix in (".txt", "")
    read = (text for _, text in text_lines(path)) if plain else (text for text, _ in iter_texts(path))
    return list(islice(read, _MOST))
