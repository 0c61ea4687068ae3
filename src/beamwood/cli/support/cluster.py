"""cluster.py — the options of `beamwood predict --ray` in, a folder of Parquet files out."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Any

from beamwood.batch.lazy import Lazy
from beamwood.cli.support.allowed import filter_of
from beamwood.cli.support.options import threshold_of
from beamwood.cli.support.output import STANDARD, show, show_json
from beamwood.errors import SettingsError
from beamwood.model import load
from beamwood.ray.cluster import imported

_NOT_THERE = ("x", "resume", "format", "skip_bad", "force")  # options that a cluster does not know


def quiet_ray(bars: bool) -> None:
    """Ray's own log is not for people at a terminal: what went wrong is told in one line of ours."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # an error, it says, of each worker that is started
    data = imported("ray.data")
    for name in ("ray", "ray.data"):  # both are told other levels when they are imported
        logging.getLogger(name).setLevel(logging.ERROR)
    data.DataContext.get_current().enable_progress_bars = bars


def on_cluster(options: dict[str, Any]) -> None:
    """Ranks labels for the rows of a file with the workers of a cluster."""
    from beamwood.ray import predict

    for name in _NOT_THERE:
        if options[name]:
            raise SettingsError(f"--{name.replace('_', '-')} is given; expected none with --ray. Leave it out.")
    data, output = options["data"], options["output"]
    if data is None or str(data) == STANDARD or output == STANDARD:
        raise SettingsError("--ray is given with a stream; expected a file of rows and a folder: -o answers.")
    model = load(options["model_file"])
    handle = Lazy(options["model_file"], version=model.version, encoder=options["encoder"])
    quiet_ray(bars=sys.stderr.isatty() and not options["quiet"])  # into a file Ray would write lines instead
    begun = time.perf_counter()
    done = predict(
        data,
        handle,
        output,
        k=options["k"],
        beam=options["beam"],
        min_score=options["min_score"],
        threshold=threshold_of(options["threshold"]),
        filter=filter_of(model, *(options[name] for name in ("allow", "allow_file", "deny", "deny_file"))),
        text_column=options["text_column"],
        keep=[] if options["id_column"] is None else [options["id_column"]],
        address=options["ray"],
    )
    if options["json_"]:
        show_json({"output": output, "rows": done, "seconds": time.perf_counter() - begun})
    elif not options["quiet"]:
        show(f"{output}: answers of {done:,} rows")
