"""frontier.py — real sets, our tree shapes and kept models of rivals in; quality against µs per query out.

    python bench/frontier.py train --data ../shared/data                 # our models, each kept in build/frontier
    python bench/frontier.py time  --data ../shared/data --rivals MODELS # quality, then times in turns
    python bench/frontier.py table                                       # what was measured so far
    python bench/frontier.py plot  --plot docs/pictures/frontier         # the same as a picture

MODELS is a folder that `train_quality.py --models MODELS` made: TRAINER/SET/model. libpecos and omikuji answer from
there in their own environments, in the same turns as ours; omikuji's trees are also converted and answered by us.
What was not timed here (libmultilabel, bm25s) is shown as bench/results/train_quality.json has it, with a star.

All rank the best 10 labels with beam 10 on one thread. Batch: the first 2,000 test rows in one call. Online: one call
of Python per row, the first 300. Microseconds are processor time per query, the median of rounds taken in turns.
Trees are trained one by one, without words of labels, and put together afterwards: tree i of a forest is that of seed
i * 1,000,003, as in train.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from rivals.install import HOMES, python_of
from support.frontier_plot import draw
from support.quality_sets import SETS, matrices, prepared
from support.results import Results

import beamwood as bw
from beamwood.bench.rivals import Omikuji, Pecos
from beamwood.bench.timing import batch_time, each_time, in_turns, machine, markdown_table
from beamwood.interop.convert import read as read_foreign
from beamwood.training.settings import PRESETS, settings_for
from beamwood.training.trees import NEXT_TREE

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
KEPT = BUILD / "frontier"
RECORDED = HERE / "results" / "train_quality.json"
BATCH, ONLINE, DEPTH = 2000, 300, 10
MEASURES = ("precision@1", "precision@3", "precision@5", "recall@10")

_NARROW = {"tree": "balanced", "branching": 32, "max_leaf": 32}
_WIDE = {"tree": "balanced", "branching": 128, "max_leaf": 128}
_UNEVEN = {"tree": "unbalanced", "branching": 128, "max_leaf": 128, "max_depth": 0}
_FLAT = {"tree": "capped", "branching": 2048, "max_leaf": 128}
# What is shown: (family, settings on top of preset "balanced" or a preset's name, trees). The family gives the colour.
POINTS: dict[str, tuple[str, str | dict[str, Any], int]] = {
    "fast": ("presets", "fast", 1),
    "balanced": ("presets", "balanced", PRESETS["balanced"].get("trees", bw.Settings().trees)),
    "best": ("presets", "best", PRESETS["best"]["trees"]),
    "1 × 32/32": ("one tree", _NARROW, 1),
    "1 × 128/128": ("one tree", _WIDE, 1),
    "1 × 128/128 uneven": ("one tree", _UNEVEN, 1),
    "1 × capped at 128": ("one tree", _FLAT, 1),
    "2 × 32/32": ("several trees", _NARROW, 2),
    "3 × 32/32": ("several trees", _NARROW, 3),
    "3 × 128/128 uneven": ("several trees", _UNEVEN, 3),
    "3 × capped at 128": ("several trees", _FLAT, 3),
}
TIMED_RIVALS = ("libpecos", "omikuji", "omikuji-bonsai")
RECORDED_RIVALS = ("libmultilabel", "bm25s")
CONVERTED = "omikuji-bonsai, run by beamwood"


def trees_of(point: str, name: str, data: Path) -> Iterator[bw.Model]:
    """The trees of one of our points, trained where they are not kept yet."""
    _, chosen, trees = POINTS[point]
    preset, given = (chosen, {}) if isinstance(chosen, str) else ("balanced", chosen)
    settings = settings_for(preset, **given, trees=1, lexical=False)
    for number in range(trees):
        file = KEPT / name / _file_name(settings, number)
        if not file.exists():
            X, Y = matrices(prepared(name, data, BUILD / "sets"), "trn")
            started = time.process_time()
            plain = {k: v for k, v in settings.to_dict().items() if k != "preset"}
            model = bw.train(X, Y, preset, seed=number * NEXT_TREE, threads=1, progress=False, **plain)
            file.parent.mkdir(parents=True, exist_ok=True)
            model.save(file)
            print(f"{name}: {file.name}: {time.process_time() - started:.0f} CPU s", file=sys.stderr, flush=True)
        yield bw.load(file)


def _file_name(settings: bw.Settings, number: int) -> str:
    """A name that says all that shapes the tree, the same for presets that share their trees."""
    shape = ("tree", "branching", "max_leaf", "max_depth", "C", "rare_weight", "unit_rows", "max_iter", "activation")
    return "_".join([*(str(getattr(settings, name)) for name in shape), str(number)]) + ".bw"


def forest(point: str, name: str, data: Path) -> bw.Model:
    trees = list(trees_of(point, name, data))
    return trees[0] if len(trees) == 1 else bw.Model.from_trees(trees)


def train(args: argparse.Namespace) -> None:
    for name in args.sets:
        for point in args.points:
            for _ in trees_of(point, name, args.data):
                pass


def ours(model: bw.Model, queries: Any) -> dict[str, Callable[[], Any]]:
    """How a model of ours is timed: in a batch, and row by row."""
    rows = [queries[i] for i in range(ONLINE)]

    def answer(X: Any) -> object:
        return model.topk(X, k=DEPTH, beam=DEPTH, threads=1)

    return {
        "batch": lambda: batch_time(lambda: answer(queries), queries.shape[0]),
        "online": lambda: each_time(answer, rows),
    }


def rivals(args: argparse.Namespace, name: str, queries: Path, stack: ExitStack) -> dict[str, dict[str, Any]]:
    """How the rivals whose models are kept are timed."""
    found: dict[str, dict[str, Any]] = {}
    for trainer in TIMED_RIVALS:
        folder = args.rivals / trainer / name / "model" if args.rivals else None
        if folder is None or not folder.is_dir():
            continue
        if trainer == "libpecos":
            python_of("libpecos")
            pecos = stack.enter_context(Pecos(HOMES))
            pecos.queries(queries)
            pecos.load("binary", folder)
            found[trainer] = {
                "batch": lambda pecos=pecos: pecos.batch("binary", DEPTH, DEPTH),
                "online": lambda pecos=pecos: pecos.online("binary", DEPTH, DEPTH, ONLINE),
            }
        else:
            python_of("omikuji")
            omikuji = stack.enter_context(Omikuji(HOMES))
            omikuji.queries(queries)
            omikuji.load(folder)
            found[trainer] = {"online": lambda omikuji=omikuji: omikuji.online(DEPTH, DEPTH, ONLINE)}
    return found


def measure(args: argparse.Namespace, results: Results) -> None:
    """Quality on all test rows first, then times in turns, set after set."""
    for name in args.sets:
        folder = prepared(name, args.data, BUILD / "sets")
        X, Y = matrices(folder, "tst")
        queries = X[:BATCH]
        models = {point: forest(point, name, args.data) for point in args.points}
        bonsai = args.rivals / "omikuji-bonsai" / name / "model" if args.rivals else None
        if bonsai is not None and bonsai.is_dir():
            models[CONVERTED] = read_foreign(bonsai, "omikuji").model
        for point, model in models.items():
            key = f"{name}/{point}"
            before = results.get(key) or {}
            if "measures" not in before or args.again:
                found = bw.evaluate(model.topk(X, k=DEPTH, beam=DEPTH, threads=1), Y, at=(1, 3, 5, 10)).as_dict()
                results.put(key, {**before, "measures": found, "rows": X.shape[0], "bytes": model.info()["bytes"]})
        if not args.quality:
            times(args, results, name, models, queries)


def times(args: argparse.Namespace, results: Results, name: str, models: dict[str, bw.Model], queries: Any) -> None:
    file = KEPT / name / "queries.npz"
    sp.save_npz(file, queries)
    with ExitStack() as stack:
        runs = {point: ours(model, queries) for point, model in models.items()} | rivals(args, name, file, stack)
        for kind in ("batch", "online"):
            chosen = {point: run[kind] for point, run in runs.items() if kind in run}
            for point, found in in_turns(chosen, args.rounds, warm=kind == "batch").items():
                before = results.get(f"{name}/{point}") or {}
                results.put(f"{name}/{point}", {**before, kind: vars(found), "when": time.strftime("%F %R")})
    results.put("machine", machine())


def shown(args: argparse.Namespace, results: Results) -> dict[str, dict[str, dict[str, Any]]]:
    """For each set, each point's P@1, P@3, P@5, recall@10, batch and online µs (None where there is none)."""
    recorded = json.loads(RECORDED.read_text())
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name in args.sets:
        found[name] = {}
        for point in (*args.points, CONVERTED, *TIMED_RIVALS, *RECORDED_RIVALS):
            trainer = f"beamwood-{point}" if point in PRESETS else point
            result, other = results.get(f"{name}/{point}") or {}, recorded.get(f"{name}/{trainer}-1", {})
            measures = result.get("measures") or other.get("measures")
            if measures is None:
                continue
            batch, online = (result[kind]["median"] if kind in result else None for kind in ("batch", "online"))
            family = POINTS[point][0] if point in POINTS else "others"
            row = {"family": family, "batch": batch, "online": online, "recorded": not result}
            if row["recorded"]:
                row["batch"] = other["query_us"]
            found[name][point] = row | {m: 100 * measures[m] for m in MEASURES}
    return found


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    heads = ["set", "model", "P@1", "P@3", "P@5", "recall@10", "µs per query, batch", "µs per query, online"]
    rows = []
    for name, points in found.items():
        for point, row in points.items():
            mark = "*" if row["recorded"] else ""
            cells = ["–" if row[k] is None else f"{row[k]:,.0f}{mark}" for k in ("batch", "online")]
            rows.append([name, point, *(f"{row[m]:.1f}" for m in MEASURES), *cells])
    return markdown_table(heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "time", "table", "plot"))
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data", help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--points", nargs="+", default=list(POINTS), choices=list(POINTS), metavar="POINT")
    parser.add_argument("--rivals", type=Path, help="folder of kept models: TRAINER/SET/model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quality", action="store_true", help="only quality, no times")
    parser.add_argument("--again", action="store_true", help="find quality even where it is known")
    parser.add_argument("--results", type=Path, default=KEPT / "results", help="folder, or a kept .json file")
    parser.add_argument("--keep", type=Path, help="write all results to this .json file")
    parser.add_argument("--plot", type=Path, default=KEPT / "frontier", help="where the picture goes, .png and .svg")
    args = parser.parse_args()
    if args.what == "train":
        train(args)
        return
    results = Results(args.results)
    if args.what == "time":
        measure(args, results)
    found = shown(args, results)
    print(table(found))
    if args.what == "plot":
        draw(found, args.plot)
    if args.keep:
        results.keep(args.keep)


if __name__ == "__main__":
    main()
