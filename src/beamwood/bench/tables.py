"""tables.py — a report's cases in, Markdown tables out: the paper's three tables in its own shape, then ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beamwood.bench import paper
from beamwood.bench.timing import markdown_table

Case = dict[str, Any]
METHODS = {"binary": "Binary Search", "dense": "Dense Lookup", "hash": "Hash", "march": "Marching Pointers"}
SETTINGS = ("batch", "online")


def names_of(cases: list[Case]) -> tuple[list[str], list[int]]:
    """The sets and the branchings of a report, in the order they were run."""
    return list(dict.fromkeys(c["set"] for c in cases)), sorted({c["branching"] for c in cases})


def case_of(cases: list[Case], name: str, branching: int) -> Case | None:
    return next((c for c in cases if c["set"] == name and c["branching"] == branching), None)


def cell(case: Case | None, setting: str, matcher: str, layout: str) -> float | None:
    """Microseconds per query of one variant, None where it was not measured."""
    for variant in case["variants"] if case else ():
        if (variant["matcher"], variant["layout"]) == (matcher, layout):
            return float(variant["batch"] if setting == "batch" else variant["online"]["mean"])
    return None


def speed_up(case: Case | None, setting: str, matcher: str) -> float | None:
    """How many times as fast as its column twin the chunk variant is."""
    column, chunk = (cell(case, setting, matcher, layout) for layout in ("column", "chunk"))
    return None if column is None or chunk is None else column / chunk


def paper_table(cases: list[Case], branching: int) -> str:
    """Milliseconds per query, a column per set: the shape of the paper's tables, with our own engine below."""
    sets, _ = names_of(cases)
    found = [case_of(cases, name, branching) for name in sets]
    rows: list[list[str]] = []
    for setting in SETTINGS:
        rows.append([f"**{setting.capitalize()}**", *[""] * len(sets)])
        for matcher, method in METHODS.items():
            for layout, name in (("chunk", f"{method} MSCM"), ("column", method)):
                rows.append([name, *(_ms(cell(case, setting, matcher, layout)) for case in found)])
        rows.append(["beamwood's default", *(_ms(cell(case, setting, "auto", "auto")) for case in found)])
    kept = [row for row in rows if row[0].startswith("**") or any(row[1:])]
    return markdown_table([f"Branching factor {branching}", *sets], kept)


def speed_up_table(cases: list[Case], setting: str) -> str:
    """MSCM over its baseline; in brackets the paper's own ratio where it has that set."""
    sets, branchings = names_of(cases)
    rows = []
    for branching in branchings:
        for matcher, method in METHODS.items():
            row = [f"B={branching}, {method}"]
            for name in sets:
                ours = speed_up(case_of(cases, name, branching), setting, matcher)
                theirs = paper.speed_up(name, branching, setting, matcher)
                row.append("" if ours is None else f"{ours:.2f}x" + (f" ({theirs:.2f}x)" if theirs else ""))
            rows.append(row)
    return markdown_table([f"{setting}: MSCM over its baseline (paper)", *sets], rows)


def online_table(cases: list[Case]) -> str:
    """How the times of single queries are spread, in microseconds."""
    rows = []
    for case in cases:
        for variant in case["variants"]:
            if variant["layout"] != "column":
                spread = variant["online"]
                name = "default" if variant["matcher"] == "auto" else f"{variant['matcher']} MSCM"
                rows.append([_title(case), name, *(spread[key] for key in ("mean", "p50", "p95", "p99"))])
    return markdown_table(["online, µs per query", "engine", "mean", "p50", "p95", "p99"], rows)


def sort_table(cases: list[Case]) -> str:
    """What the block sort of Algorithm 3 brings in batch."""
    rows = [
        [
            _title(case),
            METHODS[matcher],
            times["sorted"],
            times["unsorted"],
            f"{times['unsorted'] / times['sorted']:.2f}x",
        ]
        for case in cases
        for matcher, times in case["unsorted"].items()
    ]
    return markdown_table(["batch, µs per query", "method", "blocks sorted", "not sorted", "the sort brings"], rows)


def threads_table(cases: list[Case]) -> str:
    """Batch times by threads, and the gain over one thread."""
    counts = list(next(iter(cases[0]["threads"].values())))
    rows = []
    for case in cases:
        for engine, times in case["threads"].items():
            rows.append([_title(case), engine_name(engine), *(times[c] for c in counts), _gain(times, counts)])
    heads = [f"{c} thread" + "s" * (c != "1") for c in counts]
    return markdown_table(["batch, µs per query by the clock", "engine", *heads, "gain"], rows)


def beams_table(cases: list[Case]) -> str:
    """What a wider beam costs and gives."""
    rows = []
    for case in cases:
        for entry in case["beams"]:
            precision = [f"{100 * value:.1f}" for value in entry["precision"].values()]
            times = [entry["online"][key] for key in ("mean", "p99")]
            rows.append([_title(case), str(entry["beam"]), *times, *precision])
    at = list(cases[0]["beams"][0]["precision"])
    return markdown_table(["default engine", "beam", "mean µs", "p99 µs", *(f"P@{k}" for k in at)], rows)


def layers_table(cases: list[Case]) -> str:
    """Where the time of an online query goes."""
    deepest = max(len(case["layers"]) for case in cases)
    rows = []
    for case in cases:
        total = sum(case["layers"])
        shares = [f"{t / total:.0%}" for t in case["layers"]] if total else []
        rows.append([_title(case), *shares, *[""] * (deepest - len(shares))])
    return markdown_table(["share of time, default engine", *(f"layer {i}" for i in range(deepest))], rows)


def memory_table(cases: list[Case]) -> str:
    """Resident memory of each engine."""
    engines = list(cases[0]["memory"])
    rows = [[_title(c), *(f"{c['memory'].get(e, 0) / 2**20:,.0f}" for e in engines)] for c in cases]
    return markdown_table(["resident, MiB", *map(engine_name, engines)], rows)


def rivals_table(cases: list[Case]) -> str:
    """Ours beside each rival on the same weights, both timed around the Python call."""
    rows = []
    for case in cases:
        for duel in duels_of(case):
            rows.append(
                [_title(case), duel["what"], duel["ours"], duel["theirs"], f"{duel['theirs'] / duel['ours']:.1f}x"]
            )
    return markdown_table(["µs per query, one thread", "against", "beamwood", "rival", "times as fast"], rows)


def duels_of(case: Case) -> Iterator[dict[str, Any]]:
    """Every comparison with a rival: what, ours, theirs."""
    for name, found in case["rivals"].items():
        for setting, times in found["times"].items():
            yield {"what": f"{name}, {setting}", "rival": name, "setting": setting, **times}


def engine_name(engine: str) -> str:
    """ "hash chunk" as people read it."""
    matcher, layout = engine.split()
    return "default" if matcher == "auto" else f"{matcher} {'MSCM' if layout == 'chunk' else 'baseline'}"


def _title(case: Case) -> str:
    return f"{case['set']}, B={case['branching']}"


def _ms(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds / 1e3:.3f} ms"


def _gain(times: dict[str, float], counts: list[str]) -> str:
    return f"{times[counts[0]] / times[counts[-1]]:.2f}x"
