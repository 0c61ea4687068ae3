"""duel.py — our model and queries in; each rival's times on the same weights beside ours out, once the answers agree.

Our model is exported to the rival's own format, so both sides hold the same numbers. Both are timed around the call
that a Python user writes, on one thread, warm: each turn begins with a run that does not count. napkinxc searches
exactly, so it meets our exact search; our beam is printed beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.bench.plan import Plan
from beamwood.bench.rivals import NapkinXC, Omikuji, Pecos, RivalError
from beamwood.bench.timing import Figures, batch_time, each_time, in_turns
from beamwood.interop import napkinxc, omikuji, pecos
from beamwood.model import Model
from beamwood.training.progress import Progress

TOLERANCE = 1e-5
TIED_ROWS = 0.01  # share of rows that may differ because an equal score stood at the edge of the beam
KINDS = ("binary", "hash")  # of libpecos' chunked matrices


@dataclass(frozen=True)
class Place:
    """Where a run keeps its files, and where the installed rivals are."""

    work: Path
    homes: Path | None = None


Runs = dict[str, Callable[[], Figures]]


def duels(model: Model, X: sp.csr_matrix, plan: Plan, place: Place, progress: Progress, title: str) -> dict[str, Any]:
    """Every rival of the plan, one after the other."""
    rows = [X[[i]] for i in range(min(plan.online, X.shape[0]))]
    sp.save_npz(place.work / "X.npz", X)
    found = {}
    for name in plan.rivals:
        folder = place.work / f"as-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        with progress.stage(f"{title}: {name}", X.shape[0]):
            found[name] = _DUELS[name](model, X, rows, plan, place)
        shutil.rmtree(folder)
    return found


def _against_pecos(model: Model, X: sp.csr_matrix, rows: list[Any], plan: Plan, place: Place) -> dict[str, Any]:
    folder = place.work / "as-libpecos"
    pecos.write(model, folder)
    with Pecos(place.homes) as rival:
        rival.queries(folder.parent / "X.npz")
        for kind in KINDS:
            rival.load(kind, folder)
        agreement = {
            kind: _agreement(
                partial(rival.answers, kind, plan.beam, plan.k), model.topk(X, k=plan.k, beam=plan.beam), folder.parent
            )
            for kind in KINDS
        }
        batch, online = _ours(model, X, rows, plan)
        for kind in KINDS:
            batch[kind] = partial(rival.batch, kind, plan.beam, plan.k)
            online[kind] = partial(rival.online, kind, plan.beam, plan.k, len(rows))
        times = {"batch": _best_of(batch, plan), "online": _best_of(online, plan)}
        return {"versions": rival.versions(), "apart": agreement, "times": times}


def _against_napkinxc(model: Model, X: sp.csr_matrix, rows: list[Any], plan: Plan, place: Place) -> dict[str, Any]:
    folder = place.work / "as-napkinxc"
    model = _with_hinge_2(model)
    napkinxc.write(model, folder)
    with NapkinXC(place.homes) as rival:
        rival.queries(folder.parent / "X.npz")
        rival.load(folder)
        ours = model.topk(X, k=plan.k, exact=True)
        agreement = _agreement(partial(rival.answers, 0, plan.k), ours, folder.parent)
        batch, online = _ours(model, X, rows, plan, exact=True)
        beam, _ = _ours(model, X, rows, plan)
        batch["exact"] = beam["exact"] = partial(rival.batch, 0, plan.k)
        online["exact"] = partial(rival.online, 0, plan.k, len(rows))
        times = {
            "exact, batch": _best_of(batch, plan),
            "exact, online": _best_of(online, plan),
            f"our beam {plan.beam}, batch": _best_of(beam, plan),
        }
        return {"versions": rival.versions(), "apart": {"exact": agreement}, "times": times}


def _against_omikuji(model: Model, X: sp.csr_matrix, rows: list[Any], plan: Plan, place: Place) -> dict[str, Any]:
    """omikuji keeps only the best `beam` labels of each leaf, so both sides get a beam as wide as the widest leaf."""
    folder = place.work / "as-omikuji"
    widest = int(np.bincount(model.layers()[-1].parent).max())
    plan = replace(plan, beams=(max(plan.beam, widest),))
    omikuji.write(_with_hinge_2(model), folder)
    twin = omikuji.read(folder).model
    with Omikuji(place.homes) as rival:
        rival.queries(folder.parent / "X.npz")
        rival.load(folder)
        ours = twin.topk(X, k=plan.k, beam=plan.beam)
        agreement = _agreement(partial(rival.answers, plan.beam, plan.k), ours, folder.parent)
        _, online = _ours(twin, X, rows, plan)
        online["beam"] = partial(rival.online, plan.beam, plan.k, len(rows))
        times = {"online, beam as wide as a leaf": _best_of(online, plan)}
        return {"versions": rival.versions(), "apart": {"beam": agreement}, "times": times}


def _with_hinge_2(model: Model) -> Model:
    """The same weights with the only hinge that napkinxc and omikuji know."""
    return Model.from_layers(model.layers(), activation="hinge-2")


def _ours(model: Model, X: sp.csr_matrix, rows: list[Any], plan: Plan, exact: bool = False) -> tuple[Runs, Runs]:
    ask = partial(model.topk, k=plan.k, beam=plan.beam, threads=1, exact=exact)
    batch: Runs = {"ours": partial(batch_time, partial(ask, X), X.shape[0])}
    return batch, {"ours": partial(each_time, ask, rows)}


def _best_of(runs: Runs, plan: Plan) -> dict[str, Any]:
    """Our time and the rival's quickest variant, in turns."""
    times = {name: time.median for name, time in in_turns(runs, plan.rounds, warm=True).items()}
    ours = times.pop("ours")
    best = min(times, key=lambda name: times[name])
    return {"ours": ours, "theirs": times[best], "variant": best, "all": times}


def _agreement(ask: Callable[[Path], None], ours: tuple[Any, Any], work: Path) -> float:
    """The share of rows whose scores are further apart than the tolerance; an error when it is more than ties explain.

    Labels may differ where scores tie. A tie at the edge of the beam can change a whole row, since rivals keep the
    first candidate they met and we the smallest id.
    """
    out = work / "answers.npz"
    ask(out)
    theirs = np.load(out)["scores"]
    padding = np.isneginf(ours[1]) & np.isneginf(theirs)
    with np.errstate(invalid="ignore"):
        apart = np.where(padding, 0, np.abs(ours[1] - theirs)).max(axis=1)
    share = float(np.mean(~(apart <= TOLERANCE)))
    if share > TIED_ROWS:
        worst = int(np.argmax(apart))
        raise RivalError(f"{share:.1%} of the rows differ from the rival's; row {worst} by {apart[worst]:g}.")
    return share


_DUELS: dict[str, Callable[[Model, sp.csr_matrix, list[Any], Plan, Place], dict[str, Any]]] = {
    "libpecos": _against_pecos,
    "napkinxc": _against_napkinxc,
    "omikuji": _against_omikuji,
}
