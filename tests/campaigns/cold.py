"""cold.py — a large new file that is not in memory in, what clients see while it is verified and taken out."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from support.serving import BEARER, TOKEN, Running

import beamwood as bw
from campaigns.attacks import on_a_machine_of_its_own
from campaigns.clients import Pauses, percentile, under_load

FEATURES = 50_000


def large_model(seed: int, labels: int = 131_072, per_node: int = 350) -> bw.Model:
    """Some 400 MB of weights."""
    rng = np.random.default_rng(seed)
    layers, above = [], 1
    for nodes in (64, 4096, labels):
        count = nodes * per_node
        cells = (rng.integers(0, FEATURES, count), np.repeat(np.arange(nodes), per_node))
        weights = sp.coo_array((rng.standard_normal(count).astype(np.float32), cells), shape=(FEATURES, nodes)).tocsc()
        layers.append(bw.Layer(weights, np.arange(nodes) * above // nodes))
        above = nodes
    return bw.Model.from_layers(layers, activation="sigmoid")


def cold(folder: Path) -> bool:
    """A verified reload of some 400 MB that are not in the page cache, while four clients ask."""
    path = folder / "m.bw"
    large_model(0).save(path)
    large_model(1).save(folder / "new.bw")
    (folder / "token").write_text(TOKEN)
    rng = np.random.default_rng(0)
    bodies = [
        json.dumps({"features": [[int(i), 1.0] for i in np.sort(rng.choice(FEATURES, 20, replace=False))]}).encode()
        for _ in range(200)
    ]
    times: list[tuple[float, float]] = []
    stop = threading.Event()

    def client(number: int) -> None:
        connection, at = server.connect(), number
        with on_a_machine_of_its_own():
            while not stop.is_set():
                begun = time.perf_counter()
                connection.request("POST", "/v1/search", bodies[at % len(bodies)], BEARER)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200
                times.append((begun, time.perf_counter() - begun))
                at += 7
                time.sleep(0.002)
        connection.close()

    sys.setswitchinterval(1e-4)  # the clients are threads of one program: they must not wait for each other
    with (
        Pauses() as pauses,
        Running(path, "--token-file", folder / "token", "--log", "off", workers=2) as server,
        under_load(stop, *(partial(client, number) for number in range(4))),
    ):
        time.sleep(8.0)
        os.replace(folder / "new.bw", path)
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begun = time.perf_counter()
        server.json("POST", "/v1/admin/reload", **BEARER)
        ended = time.perf_counter()
        time.sleep(2.0)
    first = times[0][0] + 3.0
    before = [took for at, took in times if first < at < begun]
    during = [took for at, took in times if begun <= at <= ended + 0.2]
    size = path.stat().st_size / 1e6
    print(f"  {size:.0f} MB, reload took {ended - begun:.1f} s")
    for name, found in (("before", before), ("during", during)):
        print(
            f"  {name}: {len(found):,} asked, p50 {percentile(found, 50):.2f} ms, p99 {percentile(found, 99):.2f} ms, "
            f"the longest {max(found) * 1e3:.1f} ms"
        )
    for name, since, until in (("before", first, begun), ("during", begun, ended + 0.2)):
        print(f"  the machine itself stood still for {pauses.longest(since, until) * 1e3:.1f} ms at most {name}")
    return percentile(during, 99) <= 2 * percentile(before, 99) and max(during) <= 0.020
