"""A real Ray cluster of several nodes on this machine, for the tests that need one; they are skipped without Ray.

The folder is not called ray: it would be found under that name where Ray itself is not installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


class Nodes:
    """Nodes that come and go."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        told = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=told)
        self.others: list[Any] = []

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def be(self, count: int) -> None:
        """Adds or kills nodes until there are `count`."""
        while len(self.others) > count - 1:
            self.kill()
        while len(self.others) < count - 1:
            self.others.append(self.cluster.add_node(num_cpus=1, object_store_memory=100 << 20))
        self.cluster.wait_for_nodes()

    def kill(self) -> None:
        """Ends the processes of the node that came last, with no word to anybody."""
        self.cluster.remove_node(self.others.pop(), allow_graceful=False)


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    ray = pytest.importorskip("ray", reason="Ray is not installed: make test-ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing leaves this machine
    os.environ["RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S"] = "60"  # machines that are busy start slowly
    made = Nodes()
    try:
        yield made
    finally:
        ray.shutdown()
        made.cluster.shutdown()


@pytest.fixture
def cluster(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    """The nodes, connected to; every layer with several parents is sent, however small."""
    import ray

    import beamwood.ray.learner

    monkeypatch.setattr(beamwood.ray.learner, "LEAST_WORK", 0.0)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
    try:
        yield nodes
    finally:
        ray.shutdown()
