"""gauntlet.py — a plan in; report.json, report.md and plots out. Cases already measured are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from beamwood.bench import tables
from beamwood.bench.plan import Plan
from beamwood.bench.timing import machine, markdown_table
from beamwood.training.progress import Progress

REPORT = "report.json"


def run(plan: Plan, out: Path, *, data: Path | None, progress: Progress, rivals: Path | None = None) -> dict[str, Any]:
    """Measures every case of the plan into `out`; a run that was stopped continues where it was.

    rivals: the folder of installed rivals, which a plan that names rivals needs.
    """
    from beamwood.bench.case import run_case
    from beamwood.bench.duel import Place
    from beamwood.bench.rivals import check_ready
    from beamwood.bench.sets import load_set

    check_ready(rivals, plan.rivals)
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"machine": machine(), "plan": plan.describe(), "cases": _kept(out, plan)}
    for name in plan.sets:
        missing = [b for b in plan.branching if tables.case_of(report["cases"], name, b) is None]
        if not missing:
            continue
        with progress.stage(f"{name}: data", 0):
            found = load_set(name, folder=data, scale=plan.scale_of(name), queries=plan.queries, seed=plan.seed)
        for branching in missing:
            report["cases"].append(run_case(found, branching, plan, Place(work, rivals), progress))
            _write(out / REPORT, json.dumps(report, indent=1) + "\n")
    write_report(report, out)
    return report


def write_report(report: dict[str, Any], out: Path) -> list[Path]:
    """report.md and, where matplotlib is installed, the plots; gives what was written."""
    try:
        from beamwood.bench.plots import draw_all
    except ImportError:
        pictures = []
    else:
        pictures = draw_all(report["cases"], out / "plots")
    path = out / "report.md"
    _write(path, markdown(report, [f"plots/{p.name}" for p in pictures]))
    return [path, *pictures]


def markdown(report: dict[str, Any], pictures: list[str]) -> str:
    """The whole report: how it was measured, the paper's tables, then ours, each with its picture."""
    cases, plan = report["cases"], report["plan"]
    _, branchings = tables.names_of(cases)
    shown = {Path(name).stem: name for name in pictures}

    def picture(name: str, text: str) -> str:
        return f"![{text}]({shown[name]})\n" if name in shown else ""

    parts = ["# Benchmark report\n", _how(report), "## Same bits\n", _same_bits(cases)]
    parts += ["## The paper's tables\n", _PAPER]
    parts += [tables.paper_table(cases, branching) for branching in branchings]
    parts += ["## What MSCM brings\n", _RATIO]
    for setting in tables.SETTINGS:
        parts += [tables.speed_up_table(cases, setting), picture(f"speedup-{setting}", f"Speed-up, {setting}")]
    parts += ["## Online latency\n", tables.online_table(cases), picture("default", "The default engine online")]
    if plan["rivals"]:
        parts += ["## Rivals on the same weights\n", _RIVALS, tables.rivals_table(cases), picture("rivals", "Rivals")]
    parts += ["## The block sort of Algorithm 3\n", tables.sort_table(cases)]
    parts += ["## Threads\n", tables.threads_table(cases), picture("threads", "Threads")]
    parts += ["## Beam\n", tables.beams_table(cases), picture("beams", "Precision against latency")]
    parts += ["## Where the time goes\n", tables.layers_table(cases), picture("layers", "Share of time per layer")]
    parts += ["## Memory\n", tables.memory_table(cases), picture("memory", "Bytes a non-zero weight")]
    return "\n".join(part for part in parts if part)


_PAPER = """Time per query on one thread. MSCM: siblings' weights stored together; without: one sparse vector per label.
The weights are the same everywhere, and so are the answers. The stand-ins are generated, so compare ratios with the
paper, not times.
"""
_RATIO = "Times as fast as the same method without MSCM; in brackets the paper's figure for the set of that name.\n"
_RIVALS = """Our model written in the rival's format, both timed around the Python call on one thread, in turns, each
turn after one that does not count. For libpecos the quicker of its hash and binary-search chunks counts. napkinxc
searches exactly and meets our exact search.
"""


def _how(report: dict[str, Any]) -> str:
    found, plan = report["machine"], report["plan"]
    versions = {**found["versions"]}
    for case in report["cases"]:
        for rival in case["rivals"].values():
            versions |= {k: v for k, v in rival["versions"].items() if k not in versions}
    lines = {
        "processor": f"{found['processor']}, {found['cores']} cores, {found['memory']}",
        "system": found["system"],
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "settings": f"beam {plan['beams'][0]}, k {plan['k']}, {plan['queries']} queries in a batch, "
        f"{plan['online']} one by one, median of {plan['rounds']} rounds in turns, seed {plan['seed']}",
    }
    text = "".join(f"- {name}: {value}\n" for name, value in lines.items())
    return text + "\n" + _sets(report["cases"])


def _sets(cases: list[dict[str, Any]]) -> str:
    keys = ("features", "labels", "train_rows", "test_rows", "nonzeros_per_row", "labels_per_row")
    names, _ = tables.names_of(cases)
    found = {case["set"]: case["data"] for case in cases}
    rows = [[name, found[name]["origin"], *(f"{found[name][key]:,}" for key in keys)] for name in names]
    return markdown_table(["set", "origin", *(key.replace("_", " ") for key in keys)], rows)


def _same_bits(cases: list[dict[str, Any]]) -> str:
    queries = sum(case["same_bits"]["queries"] for case in cases)
    engines = max(case["same_bits"]["engines"] for case in cases)
    return (
        f"{engines} engines, on one and on two threads, answered {queries:,} queries on {len(cases)} models with the "
        "same bits. Nothing is timed before that.\n"
    )


def _kept(out: Path, plan: Plan) -> list[dict[str, Any]]:
    """Cases of an earlier run of the same plan."""
    try:
        earlier = json.loads((out / REPORT).read_text())
    except (OSError, ValueError):
        return []
    same = earlier.get("plan") == json.loads(json.dumps(plan.describe()))
    return list(earlier["cases"]) if same else []


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(path.suffix + ".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
