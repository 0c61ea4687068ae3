"""What people are told when Ray is missing, of another version, or not to be reached: one line each."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest

import beamwood as bw
import beamwood.ray as cluster_of
from beamwood.ray import cluster

X = np.eye(4, dtype=np.float32)


def pretend(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    monkeypatch.setitem(sys.modules, "ray", found)


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, None)
    with pytest.raises(bw.SettingsError, match=r"^Ray is not installed here; .*pip install '\.\[ray\]'\.$"):
        cluster_of.train(X, X, "fast", progress=False)


@pytest.mark.parametrize("version", ["2.9.3", "3.0.0", "odd"])
def test_a_version_that_was_not_tried_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, types.SimpleNamespace(__version__=version))
    with pytest.raises(bw.SettingsError, match="expected") as caught:
        cluster_of.train(X, X, "fast", progress=False)
    assert "\n" not in str(caught.value)


def test_importing_beamwood_or_its_room_for_ray_imports_no_ray() -> None:
    code = "import sys, beamwood, beamwood.cli, beamwood.ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("address", ["here", "10.0.0.1", ":6379", "host:port"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(bw.SettingsError, match=r"expected HOST:PORT, for example 10\.0\.0\.1:6379"):
        cluster._check_reachable(address)


def test_nobody_at_the_address_is_said_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(bw.SettingsError, match=f"no Ray cluster answers at {address} .*ray start --head"):
            cluster._check_reachable(address)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.0 400 Bad Request\r\n\r\n", b"220 mail.example ESMTP\r\n"])
def test_another_program_at_the_address_is_told_from_a_head(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(said)
                connection.recv(24)

        answering = threading.Thread(target=answer)
        answering.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(bw.SettingsError, match=f"what answers at {address} is no head of a Ray cluster; expected"):
            cluster._check_reachable(address)
        answering.join()


def test_a_cluster_that_asks_for_a_token_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: Any) -> None:
        raise ConnectionError("Failed to connect to Ray cluster") from RuntimeError("…\nAuthenticationError: RPC error")

    errors = types.SimpleNamespace(RayError=Exception)
    found = types.SimpleNamespace(__version__="2.60.0", exceptions=errors, is_initialized=lambda: False, init=init)
    pretend(monkeypatch, found)
    with pytest.raises(
        bw.SettingsError, match=r"^the Ray cluster at auto asks for a token .*RAY_AUTH_MODE=disabled\.$"
    ):
        cluster_of.train(X, X, "fast", progress=False, address="auto")


def test_a_head_is_taken_for_one(nodes: Any) -> None:
    cluster._check_reachable(nodes.address)


@pytest.mark.parametrize("address", [3, ""])
def test_an_address_of_another_kind_is_refused(address: Any) -> None:
    with pytest.raises(bw.SettingsError, match="address is"), cluster.connected(address):
        pass


def test_a_learner_is_not_given_twice() -> None:
    with pytest.raises(bw.SettingsError, match="learner is given; expected none here"):
        cluster_of.train(X, X, "fast", progress=False, learner=print)


def test_labels_beside_a_file_are_refused() -> None:
    with pytest.raises(bw.SettingsError, match="labels is given with the path of a file"):
        cluster_of.train_text("rows.jsonl", [["a"]])
