"""serve_kills.py — a model that is cut and served on Ray nodes, and random kills under load, in; wrong answers out.

    python tests/campaigns/serve_kills.py [--kills 50] [--seed 0]

Kills a shard's replica, the ingress, or a whole node with no word to anybody, one after the other, while clients ask
without pause, half of them for partial answers. The law: an answer is that of the whole model, or an error, or declares
that it is partial; and after each kill the service is whole again within 30 seconds of the return of what was killed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import beamwood as bw
import beamwood.ray

PORT = 18322
LONGEST = 30.0  # seconds until the service is whole again
NODE = {"num_cpus": 2, "object_store_memory": 100 << 20}


def ask(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Status and answer; 0 where nobody took the request."""
    asked = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/v1/search", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return int(answer.status), json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, {}
    except (OSError, ValueError):
        return 0, {}


class Clients:
    """Threads that ask without pause, and compare."""

    def __init__(self, expected: dict[str, Any]) -> None:
        self._expected, self._stop = expected, threading.Event()
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(3)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        dice = random.Random(number)
        texts = list(self._expected)
        while not self._stop.is_set():
            text, partial = dice.choice(texts), dice.random() < 0.5
            status, answer = ask({"text": text, "partial": True} if partial else {"text": text})
            self.judge(text, status, answer)

    def judge(self, text: str, status: int, answer: dict[str, Any]) -> bool:
        """Whether it was a whole answer."""
        if status != 200:
            self.counts[f"status {status}"] += 1
            return False
        if not answer.get("coverage", {"exact": True})["exact"]:
            self.counts["partial, declared"] += 1
            return False
        right: bool = answer["hits"] == self._expected[text]
        self.counts["whole and right" if right else "WRONG"] += 1
        if not right:
            self.wrong.append(text)
        return right

    def close(self) -> None:
        """Ends the threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


def replicas(prefixes: tuple[str, ...]) -> list[Any]:
    """The actors of deployments whose names start so."""
    import ray

    return [
        actor
        for actor in ray.util.list_named_actors(all_namespaces=True)
        if any(f"#{prefix}" in actor["name"] for prefix in prefixes)
    ]


def kill(kind: str, cluster: Any, nodes: list[Any], dice: random.Random) -> None:
    """Kills one of a kind; a node comes back at once."""
    import ray

    if kind == "node":
        cluster.remove_node(nodes.pop(dice.randrange(len(nodes))), allow_graceful=False)
        nodes.append(cluster.add_node(**NODE))
        return
    found = replicas(("shard-",) if kind == "shard" else ("ingress",))
    if found:
        one = dice.choice(found)
        try:
            ray.kill(ray.get_actor(one["name"], namespace=one["namespace"]))
        except ValueError:  # it died by itself meanwhile
            return


def campaign(kills: int, seed: int, model: bw.Model, texts: list[str], folder: Path) -> int:
    """The number of broken promises."""
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    bw.shard(model, folder / "parts", 3)
    expected = {t: json.loads(b"{" + model.search_json(t).fields + b"}")["hits"] for t in texts}
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    dice, slow = random.Random(seed), 0
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    try:
        beamwood.ray.serve(folder / "parts", port=PORT, cpus=0.5, shard_seconds=2.0)
        clients = Clients(expected)
        try:
            for number in range(kills):
                kind = dice.choice(("shard", "shard", "ingress", "node"))
                kill(kind, cluster, nodes, dice)
                since, streak = time.monotonic(), 0
                while streak < 5 and time.monotonic() - since < 120:
                    text = dice.choice(texts)
                    streak = streak + 1 if clients.judge(text, *ask({"text": text})) else 0
                took = time.monotonic() - since
                slow += took > LONGEST
                print(f"{number + 1:3} {kind:8} whole again after {took:5.1f} s", flush=True)
        finally:
            clients.close()
    finally:
        serve.shutdown()
        ray.shutdown()
        cluster.shutdown()
    print(dict(clients.counts))
    print(f"{kills} kills, {len(clients.wrong)} wrong answers, {slow} times longer than {LONGEST:.0f} s")
    return len(clients.wrong) + slow


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    found = bw.datasets.load("library-subjects")
    texts, labels = found.train_texts[:2000], found.train_labels[:2000]
    model = bw.train_text(texts, labels, lexical=True, trees=2, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(1 if campaign(args.kills, args.seed, model, texts[:100], Path(folder)) else 0)


if __name__ == "__main__":
    main()
