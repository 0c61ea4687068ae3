"""simulate.py — labels, queries per second and measured costs in, machines, bytes and tail latency of a cluster out.

    python bench/cluster/simulate.py [--labels 1e9] [--rate 10000] [--shards 40] [--hops hops.json]

A request waits for the slowest of its shards. The time of one hop is drawn from measured ones (--hops: a list of
seconds, as bench/cluster/serving.py --keep writes them for one shard) or, without them, from a log-normal distribution
with the given median and p99. A hedged request asks a second replica when the first takes longer than the p95 of all
hops. Nothing is said of queues: machines are counted so that they are busy for at most half of the time.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

Z99 = 2.3263


def drawn(args: argparse.Namespace, rng: Any, size: tuple[int, ...]) -> Any:
    """Seconds of hops."""
    if args.hops is not None:
        return rng.choice(np.array(json.loads(args.hops.read_text()), float), size)
    sigma = math.log(args.hop_p99 / args.hop_p50) / Z99
    return args.hop_p50 * np.exp(sigma * rng.standard_normal(size))


def latencies(args: argparse.Namespace, shards: int, hedged: bool) -> Any:
    """Seconds of requests that wait for all of so many shards."""
    rng = np.random.default_rng(0)
    hops = drawn(args, rng, (args.requests, shards))
    if hedged:
        patience = np.quantile(drawn(args, rng, (100_000,)), 0.95)
        hops = np.minimum(hops, patience + drawn(args, rng, hops.shape))
    return hops.max(axis=1) + args.ingress_us * 1e-6


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=float, default=1e9)
    parser.add_argument("--rate", type=float, default=10_000, help="queries per second")
    parser.add_argument("--shards", type=int, default=40)
    parser.add_argument("--bytes-per-label", type=float, default=144.0, help="in shards")
    parser.add_argument("--top-bytes-per-label", type=float, default=96.0, help="in the upper part, names included")
    parser.add_argument("--shard-us", type=float, default=60.0, help="CPU of a shard per query")
    parser.add_argument("--ingress-us", type=float, default=200.0, help="CPU of the ingress per query")
    parser.add_argument("--rpc-us", type=float, default=400.0, help="CPU of a message and its answer, both ends")
    parser.add_argument("--hop-p50", type=float, default=2e-3)
    parser.add_argument("--hop-p99", type=float, default=8e-3)
    parser.add_argument("--hops", type=Path)
    parser.add_argument("--requests", type=int, default=100_000)
    args = parser.parse_args()
    gib = 2.0**30
    print(f"{args.labels:,.0f} labels, {args.rate:,.0f} queries per second, {args.shards} shards")
    print(f"bytes: {args.labels * args.bytes_per_label / args.shards / gib:,.1f} GiB per shard, "
          f"{args.labels * args.top_bytes_per_label / gib:,.1f} GiB for each ingress")  # fmt: skip
    print(f"messages: {args.shards} per query at most, {args.rate * args.shards:,.0f} per second")
    busy_shards = args.rate * args.shards * (args.shard_us + args.rpc_us / 2) * 1e-6
    busy_ingress = args.rate * (args.ingress_us + args.shards * args.rpc_us / 2) * 1e-6
    print(f"cores, half busy: {2 * busy_shards:,.0f} for shards, {2 * busy_ingress:,.0f} for ingresses")
    for shards in sorted({1, 2, 3, args.shards}):
        for hedged in (False, True):
            found = np.quantile(latencies(args, shards, hedged), [0.5, 0.99]) * 1e3
            print(f"{shards:4} shards{', hedged' if hedged else '':8}: p50 {found[0]:6.2f} ms, p99 {found[1]:6.2f} ms")


if __name__ == "__main__":
    main()
