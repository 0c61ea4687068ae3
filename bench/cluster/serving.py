"""serving.py — a model and texts in, p50 and p99 of 1, 2 and 3 shards beside empty deployments of the same shape out.

    python bench/cluster/serving.py MODEL TEXTS.jsonl [--requests 1000] [--shards 1 2 3] [--port 18400]

An empty deployment has the same ingress and shards, as far as Ray Serve knows, which do nothing: the ingress asks all
shards at once and answers with a constant. All applications run at the same time and are asked in turns, one request
after the other on one connection each, so that what else the machine does hits all of them alike.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import beamwood as bw
from beamwood.ray.deploy import application

_ROUND = 25  # requests to one application before the next has its turn


class EmptyShard:
    """Does nothing."""

    def tell(self, ask: bytes) -> bytes:
        """What it was given."""
        return ask


class EmptyIngress:
    """Asks shards that do nothing."""

    def __init__(self, *shards: Any) -> None:
        self._shards = shards

    async def __call__(self, request: Any) -> bytes:
        """A constant of the length of an answer."""
        body = await request.body()
        await asyncio.gather(*(shard.tell.remote(body) for shard in self._shards))
        return b"x" * 1000


def empty(serve: Any, shards: int) -> Any:
    """An application of the same shape that does nothing."""
    told = {"max_ongoing_requests": 64, "ray_actor_options": {"num_cpus": 0}}
    below = [serve.deployment(EmptyShard).options(name=f"empty-{n}", **told).bind() for n in range(shards)]
    return serve.deployment(EmptyIngress).options(name="empty", **told).bind(*below)


def asked(port: int, path: str, bodies: list[bytes], times: list[float]) -> None:
    """Sends requests one after the other; their seconds are added to `times`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for body in bodies:
        begun = time.perf_counter()
        connection.request("POST", path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        times.append(time.perf_counter() - begun)
    connection.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--port", type=int, default=18400)
    parser.add_argument("--parts", type=Path, help="where cuts are kept from one run to the next")
    parser.add_argument("--keep", type=Path, help="a file for the seconds of one shard, for simulate.py")
    parser.add_argument("--only-cut", action="store_true", help="and serve nothing")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.parts or Path(scratch)
        for shards in args.shards:
            if not (folder / str(shards)).exists():
                bw.shard(args.model, folder / str(shards), shards)
        if not args.only_cut:
            measure(args, folder)


def taken(args: argparse.Namespace, bodies: list[bytes]) -> dict[str, list[float]]:
    """The seconds of all requests by path."""
    times: dict[str, list[float]] = {}
    paths = [path for n in args.shards for path in (f"/empty-{n}/x", f"/cut-{n}/v1/search")]
    for path in paths:
        asked(args.port, path, bodies[:_ROUND], [])
    for first in range(0, args.requests, _ROUND):
        some = [bodies[(first + i) % len(bodies)] for i in range(_ROUND)]
        for path in paths:
            asked(args.port, path, some, times.setdefault(path, []))
    return times


def measure(args: argparse.Namespace, folder: Path) -> None:
    """Serves all cuts, asks them in turns, prints what they took."""
    import ray
    from ray import serve

    bodies = [json.dumps({"text": text}).encode() for text in bw.read_records(args.texts).texts[:200]]
    told = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    ray.init(address="local", num_cpus=2, object_store_memory=200 << 20, **told)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": args.port})
        for shards in args.shards:
            made = application(folder / str(shards), cpus=0.0)
            serve.run(made, name=f"cut-{shards}", route_prefix=f"/cut-{shards}")
            serve.run(empty(serve, shards), name=f"empty-{shards}", route_prefix=f"/empty-{shards}")
        times = taken(args, bodies)
    finally:
        serve.shutdown()
        ray.shutdown()
    if args.keep is not None:
        args.keep.write_text(json.dumps(times[f"/cut-{args.shards[0]}/v1/search"]))
    for n in args.shards:
        cut, nothing = (statistics.quantiles(times[p], n=100) for p in (f"/cut-{n}/v1/search", f"/empty-{n}/x"))
        for name, found in (("cut", cut), ("empty", nothing)):
            print(f"{n} shards, {name:5}: p50 {1e3 * found[49]:6.2f} ms, p99 {1e3 * found[98]:6.2f} ms")
        print(f"{n} shards: p50 {cut[49] / nothing[49]:.2f} x, p99 {cut[98] / nothing[98]:.2f} x the empty one")


if __name__ == "__main__":
    main()
