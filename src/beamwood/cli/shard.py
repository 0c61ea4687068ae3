"""shard.py — `beamwood shard`: a model file in, a folder with its upper part and its shards out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support.output import show, show_json


def shard(
    model_file: o.ModelFile,
    folder: Annotated[Path, typer.Option("--output", "-o", help="The folder to make.", metavar="FOLDER")],
    shards: Annotated[int, typer.Option("--shards", min=1, help="How many machines are to hold the labels.")] = 2,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Cut a model into parts for several machines: an upper part and shards, which together give its answers.

    Example: beamwood shard model.bw --shards 3 -o parts
    """
    import beamwood as bw

    made = bw.shard(model_file, folder, shards)
    top = (made.folder / "top.bw").stat().st_size
    if json_:
        shown = [{"file": one.file, "labels": one.labels, "bytes": one.bytes} for one in made.shards]
        show_json({"folder": str(folder), "model": made.model, "build": made.build, "top_bytes": top, "shards": shown})
        return
    show(f"{folder}: build {made.build}")
    show(f"top.bw          {top / 2**20:10,.1f} MiB   inner nodes, names, text features")
    for one in made.shards:
        show(f"{one.file}   {one.bytes / 2**20:10,.1f} MiB   {one.labels:,} labels")
