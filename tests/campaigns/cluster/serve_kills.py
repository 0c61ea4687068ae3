"""serve_kills.py — a model that is cut and served on Ray nodes, and random kills under load, in; wrong answers out.

    python tests/campaigns/cluster/serve_kills.py [--kills 50] [--minutes 60] [--seed 0]

Kills a shard's replica, the ingress, or a whole node with no word to anybody, one after the other, while clients ask
without pause, half of them for partial answers. The law: an answer is that of the whole model, or an error, or declares
that it is partial; and after each kill the service is whole again within 30 seconds of the return of what was killed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import beamwood as bw
import beamwood.ray
from campaigns.cluster.clients import Clients, whole_after
from campaigns.cluster.nodes import Nodes, nodes

PORT = 18322
LONGEST = 30.0  # seconds until the service is whole again


def replicas(prefixes: tuple[str, ...]) -> list[Any]:
    """The actors of deployments whose names start so."""
    import ray

    return [
        actor
        for actor in ray.util.list_named_actors(all_namespaces=True)
        if any(f"#{prefix}" in actor["name"] for prefix in prefixes)
    ]


def kill(kind: str, cluster: Nodes, dice: random.Random) -> None:
    """Kills one of a kind; a node comes back at once."""
    import ray

    if kind == "node":
        cluster.lose_one(dice)
        return
    found = replicas(("shard-",) if kind == "shard" else ("ingress",))
    if found:
        one = dice.choice(found)
        try:
            ray.kill(ray.get_actor(one["name"], namespace=one["namespace"]))
        except ValueError:  # it died by itself meanwhile
            return


def campaign(args: argparse.Namespace, model: bw.Model, texts: list[str], folder: Path) -> int:
    """The number of broken promises."""
    import ray
    from ray import serve

    bw.shard(model, folder / "parts", 3)
    dice, slow, done = random.Random(args.seed), 0, 0
    with nodes(num_cpus=2) as cluster:
        cluster.be(3)
        beamwood.ray.serve(folder / "parts", address=cluster.address, port=PORT, cpus=0.5, shard_seconds=2.0)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        try:
            clients = Clients(model, texts, f"http://127.0.0.1:{PORT}")
            try:
                ends = time.monotonic() + 60 * args.minutes
                while done < args.kills and time.monotonic() < ends:
                    done += 1
                    kind = dice.choice(("shard", "shard", "ingress", "node"))
                    kill(kind, cluster, dice)
                    took = whole_after(clients, dice)
                    slow += took > LONGEST
                    print(f"{done:3} {kind:8} whole again after {took:5.1f} s", flush=True)
                    time.sleep(dice.uniform(0, 1))
            finally:
                clients.close()
        finally:
            serve.shutdown()
            ray.shutdown()
    print(clients.told())
    print(f"{done} kills, {len(clients.wrong)} wrong answers, {slow} times longer than {LONGEST:.0f} s")
    return len(clients.wrong) + slow


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=60.0, help="at most; fewer kills then")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    found = bw.datasets.load("library-subjects")
    texts, labels = found.train_texts[:2000], found.train_labels[:2000]
    model = bw.train_text(texts, labels, lexical=True, trees=2, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(1 if campaign(args, model, texts[:100], Path(folder)) else 0)


if __name__ == "__main__":
    main()
