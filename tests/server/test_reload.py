"""Claims about new files for a running server: all workers take them, verified, or none does."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import beamwood as bw

for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
    pytest.importorskip(needed)

from support.serving import BEARER, Running, counted, same, shop, wait_for  # noqa: E402


def test_a_new_file_takes_over_in_every_worker_and_a_bad_one_is_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.bw"
    first, second = shop(), shop(preset="best")
    first.save(path)
    with Running(path, "--token-file", folder / "token", workers=2) as server:
        second.save(path)
        version = bw.load(path).version
        told = server.json("POST", "/v1/admin/reload", **BEARER)
        assert told == {"models": [{"name": "m", "version": version}]}
        for _ in range(20):
            found = server.json("POST", "/v1/search", {"text": "wool"}, **BEARER)
            assert found["version"] == version
            assert same(found["hits"], second.search("wool"))
        damaged = bytearray(path.read_bytes())
        arrays = 8 + int.from_bytes(damaged[:8], "little")
        weights = json.loads(damaged[8:arrays])["tree0/layer0/threads"]
        damaged[arrays + weights["data_offsets"][0]] ^= 1
        (tmp_path / "draft").write_bytes(damaged)
        os.replace(tmp_path / "draft", path)
        error = server.json("POST", "/v1/admin/reload", status=409, **BEARER)["error"]
        assert str(tmp_path) not in error["message"]
        for _ in range(10):
            assert server.json("POST", "/v1/search", {"text": "wool"}, **BEARER)["version"] == version
        first.save(path)
        version = bw.load(path).version
        os.kill(server.process.pid, signal.SIGHUP)
        text = f'beamwood_workers{{model="m",version="{version}"}} 2'
        wait_for(lambda: text in server.ask("GET", "/metrics", **BEARER)[2].decode())


def test_a_new_list_of_a_filter_takes_over_in_every_worker_without_a_new_model(folder: Path, tmp_path: Path) -> None:
    listed = tmp_path / "feet.txt"
    listed.write_text("socks\nboots\n")
    words = ("--filter", f"feet={listed}", "--token-file", folder / "token")
    with Running(folder / "shop.bw", *words, workers=2) as server:

        def found() -> set[str]:
            hits = server.json("POST", "/v1/search", {"text": "wool", "filter": "feet"}, **BEARER)["hits"]
            return {hit["key"] for hit in hits}

        assert found() == {"socks", "boots"}
        listed.write_text("boots\n")
        server.json("POST", "/v1/admin/reload", **BEARER)
        assert all(found() == {"boots"} for _ in range(20))


def replaced_worker(server: Running) -> None:
    """Kills one worker and waits until another one answers in its place."""
    victim = server.worker_pids()[0]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: victim not in server.worker_pids() and len(server.worker_pids()) == 2)
    wait_for(lambda: counted(server, "beamwood_workers{", **BEARER) == 2)


def flip(path: Path) -> None:
    """Puts a file in place of a model's that differs in one bit of a weight."""
    damaged = bytearray(path.read_bytes())
    arrays = 8 + int.from_bytes(damaged[:8], "little")
    damaged[arrays + json.loads(damaged[8:arrays])["tree0/layer0/threads"]["data_offsets"][0]] ^= 1
    path.with_suffix(".draft").write_bytes(damaged)
    os.replace(path.with_suffix(".draft"), path)


def test_a_worker_that_is_started_again_serves_what_the_others_serve(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.bw"
    shop().save(path)
    good = bw.load(path).version
    words = ("--token-file", folder / "token")
    with Running(path, *words, workers=2) as server:

        def versions() -> set[str]:
            return {server.json("POST", "/v1/search", {"text": "wool"}, **BEARER)["version"] for _ in range(20)}

        flip(path)
        server.json("POST", "/v1/admin/reload", status=409, **BEARER)
        assert counted(server, "beamwood_refused_models_total", **BEARER) == 1
        replaced_worker(server)
        assert versions() == {good}
        assert counted(server, f'beamwood_workers{{model="m",version="{good}"}}', **BEARER) == 2
        shop(preset="best").save(path)  # good, but no one has asked for it
        replaced_worker(server)
        assert versions() == {good}
        path.unlink()
        replaced_worker(server)
        assert versions() == {good}
        assert server.stop() == 0


def test_many_who_ask_at_once_share_a_reload(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.bw"
    shop().save(path)
    with Running(path, "--token-file", folder / "token", workers=2) as server:
        second = shop(preset="best")
        second.save(path)
        open_ones = [server.connect() for _ in range(20)]
        for connection in open_ones:
            connection.request("POST", "/v1/admin/reload", b"", BEARER)
        found = [json.loads(connection.getresponse().read())["models"] for connection in open_ones]
        for connection in open_ones:
            connection.close()
        assert found == [[{"name": "m", "version": second.version}]] * 20
        assert counted(server, "beamwood_swaps_total", **BEARER) == 2
