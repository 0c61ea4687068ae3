"""A machine that falls silent in the middle of a training: no process of it ends, none answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scipy.sparse as sp
from campaigns.cluster.nodes import LEARNING, awaited, below
from on_ray.test_ray_train import problem

import beamwood as bw

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

SOON = {"health_check_period_ms": 1000, "health_check_timeout_ms": 1000, "health_check_failure_threshold": 3}


@pytest.fixture
def soon_given_up() -> Iterator[Any]:
    """Two nodes; Ray gives one up after a few seconds. The head has no CPU, so that all pieces go to the others."""
    from ray.cluster_utils import Cluster

    each = {"object_store_memory": 100 << 20}
    head = {**each, "num_cpus": 0, "include_dashboard": False, "_system_config": SOON}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield cluster, [cluster.add_node(num_cpus=1, **each) for _ in range(2)]
    finally:
        cluster.shutdown()


def test_pieces_of_a_machine_that_fell_silent_are_learned_elsewhere(soon_given_up: Any, tmp_path: Path) -> None:
    cluster, nodes = soon_given_up
    X, Y = problem(6000, 3000, 1500)
    sp.save_npz(tmp_path / "X.npz", X)
    sp.save_npz(tmp_path / "Y.npz", Y)
    words = [sys.executable, "-m", "beamwood", "train", "--x", "X.npz", "--y", "Y.npz", "--preset", "fast", "-q"]
    words += ["--set", "eps=1e-6", "--set", "max_iter=1000"]
    training = subprocess.Popen([*words, "-o", "there.bw", "--ray", cluster.address], cwd=tmp_path)
    stopped: list[int] = []
    try:
        learning = set(awaited(LEARNING, lambda: training.poll() is None))
        assert learning, "no piece was sent"
        for node in nodes:
            own = below({one.process.pid for some in node.all_processes.values() for one in some})
            if own & learning:
                stopped = sorted(own)
                break
        assert stopped
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        assert training.wait(timeout=120) == 0
    finally:
        training.kill()
        for pid in stopped:
            os.kill(pid, signal.SIGKILL)
    subprocess.run([*words, "-o", "here.bw"], cwd=tmp_path, check=True)
    assert (tmp_path / "there.bw").read_bytes() == (tmp_path / "here.bw").read_bytes()
    assert bw.load(tmp_path / "there.bw").n_labels == Y.shape[1]
