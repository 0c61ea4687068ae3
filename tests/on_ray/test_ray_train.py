"""Training on real Ray nodes: the file of one machine, byte for byte, on 1, 2 and 3 nodes and when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw
import beamwood.ray as cluster_of
from beamwood.ray import learner as learners
from beamwood.training.weights import learn_here

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")


def problem(rows: int = 3000, features: int = 1500, labels: int = 700) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = sp.random_array((rows, features), density=0.01, rng=rng, dtype=np.float32, format="csr")
    Y = sp.csr_array(sp.random_array((rows, labels), density=0.003, rng=rng, dtype=np.float32))
    Y = sp.csr_array(Y + sp.csr_array(np.eye(labels, dtype=np.float32)[np.arange(rows) % labels]))
    Y.data[:] = 1
    return X, Y


def file_of(model: bw.Model, path: Path) -> bytes:
    model.save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def subjects() -> tuple[list[str], list[list[str]]]:
    """Texts and labels of the data set that comes with the project: a part of its rows."""
    found = bw.datasets.load("library-subjects")
    return found.train_texts[:6000], found.train_labels[:6000]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_nodes_gives_the_file_of_one_machine(
    count: int, cluster: Any, tmp_path: Path, subjects: tuple[list[str], list[list[str]]]
) -> None:
    cluster.be(count)
    for number, given in enumerate(({"preset": "fast"}, {"preset": "balanced", "trees": 2})):
        here = bw.train(*problem(), progress=False, **given)
        there = cluster_of.train(*problem(), progress=False, shared=[None, tmp_path][number], **given)
        assert file_of(there, tmp_path / "there.bw") == file_of(here, tmp_path / "here.bw")
    texts, labels = subjects
    here = bw.train_text(texts, labels, preset="fast", progress=False)
    there = cluster_of.train_text(texts, labels, preset="fast", progress=False)
    assert file_of(there, tmp_path / "there.bw") == file_of(here, tmp_path / "here.bw")
    assert not [name for name in os.listdir(tmp_path) if not name.endswith(".bw")]


def test_a_node_that_is_killed_in_the_middle_costs_time_and_no_bit(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.be(3)
    X, Y = problem()
    sent, send = [], learners.Learner._sent

    def kill_after_some(self: Any, *args: Any) -> Any:
        sent.append(send(self, *args))
        if len(sent) == 4:
            cluster.kill()  # pieces wait, are learned or lie there as results; more are to come
        return sent[-1]

    monkeypatch.setattr(learners.Learner, "_sent", kill_after_some)
    monkeypatch.setattr(learners, "PIECES_PER_CPU", 8)
    there = cluster_of.train(X, Y, "fast", progress=False, eps=1e-5, max_iter=2000)
    here = bw.train(X, Y, "fast", progress=False, eps=1e-5, max_iter=2000)
    assert len(sent) > 4
    assert file_of(there, tmp_path / "there.bw") == file_of(here, tmp_path / "here.bw")


def test_paths_and_a_checkpoint_that_one_machine_began(cluster: Any, tmp_path: Path) -> None:
    cluster.be(2)
    X, Y = problem()
    sp.save_npz(tmp_path / "X.npz", X)
    sp.save_npz(tmp_path / "Y.npz", Y)

    class Stop(Exception):
        pass

    def stop_at_the_second_layer(layer: Any, threads: int, watch: Any) -> Any:
        if layer.reaching.count > 1:
            raise Stop
        return learn_here(layer, threads, watch)

    with pytest.raises(Stop):
        bw.train(X, Y, "fast", progress=False, checkpoint=tmp_path / "kept", learner=stop_at_the_second_layer)
    assert (tmp_path / "kept" / "layer-0-0.stage").exists()
    there = cluster_of.train(
        tmp_path / "X.npz", tmp_path / "Y.npz", "fast", progress=False, checkpoint=tmp_path / "kept"
    )
    assert there.version == bw.train(X, Y, "fast", progress=False).version


def test_a_training_on_the_command_line_ends_on_ctrl_c_and_goes_on(nodes: Any, tmp_path: Path) -> None:
    nodes.be(2)
    X, Y = problem(6000, 3000, 1500)
    sp.save_npz(tmp_path / "X.npz", X)
    sp.save_npz(tmp_path / "Y.npz", Y)
    words = [sys.executable, "-m", "beamwood", "train", "--x", "X.npz", "--y", "Y.npz", "--preset", "fast"]
    more = [*words, "-o", "ray.bw", "--ray", nodes.address, "--checkpoint", "kept"]
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    slow = [*more, "--set", "eps=1e-9", "--set", "max_iter=100000", "--checkpoint", "slow"]
    started = subprocess.Popen(slow, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        while not (tmp_path / "slow" / "shape-0.stage").exists():
            assert started.poll() is None, started.communicate()
            time.sleep(0.05)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
    finally:
        started.kill()
    assert started.returncode == 130, said
    assert "Traceback" not in said
    subprocess.run(more, cwd=tmp_path, env=environment, check=True)
    subprocess.run([*words, "-o", "here.bw"], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "ray.bw").read_bytes() == (tmp_path / "here.bw").read_bytes()


def test_a_cluster_that_is_this_machine_only_is_sent_nothing(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.be(1)
    monkeypatch.setattr(learners.Learner, "_sent", lambda *_: pytest.fail("a piece was sent"))
    assert (
        cluster_of.train(*problem(), "fast", progress=False).version
        == bw.train(*problem(), "fast", progress=False).version
    )


def test_a_folder_that_is_not_there_is_said_in_one_line(cluster: Any, tmp_path: Path) -> None:
    cluster.be(2)
    with pytest.raises(bw.SettingsError, match="expected a folder that every machine of the cluster sees"):
        cluster_of.train(*problem(), "fast", progress=False, shared=tmp_path / "nowhere")
    with pytest.raises(bw.FormatError, match=r"is not there on .*Mount it there"):
        learners._read(str(tmp_path / "gone.stage"), np.arange(3))


def test_too_little_memory_is_said_before_the_work(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.be(2)
    monkeypatch.setattr("beamwood.ray.pieces._BASE", 1 << 50)
    with pytest.raises(bw.SettingsError, match=r"needs about .* GiB on one machine; the largest of the cluster has"):
        cluster_of.train(*problem(), "fast", progress=False)


def test_another_version_on_a_node_is_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.be(2)
    monkeypatch.setattr(learners, "__version__", "0.0.0")
    with pytest.raises(bw.SettingsError, match=r"^beamwood on .* has version .*; expected 0\.0\.0") as caught:
        cluster_of.train(*problem(), "fast", progress=False)
    assert "\n" not in str(caught.value)
