"""A real web server with faults, and models behind addresses: what arrives is whole and checked, or is not there."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import fails, run
from support.file_server import FileServer
from support.serving import Running, shop

import beamwood as bw
from beamwood.hub.address import HubAddress, WebAddress, file_name, is_address, parsed
from beamwood.hub.web import TRIES

SHA = "0" * 64


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BEAMWOOD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BEAMWOOD_CACHE_SIZE", raising=False)
    monkeypatch.setattr("beamwood.hub.web._PAUSE", 0.0)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("shop") / "shop.bw"
    shop().save(path)
    return path.read_bytes()


@pytest.fixture
def server(data: bytes) -> Iterator[FileServer]:
    with FileServer({"/shop.bw": data}) as running:
        yield running


def address(server: FileServer, data: bytes, path: str = "/shop.bw") -> str:
    return f"{server.url}{path}#sha256={hashlib.sha256(data).hexdigest()}"


def refused(where: str, *words: str) -> None:
    with pytest.raises(bw.FormatError) as caught:
        bw.load(where)
    for word in words:
        assert word in str(caught.value), caught.value


def test_addresses_have_parts() -> None:
    assert parsed("hf://org/name") == HubAddress("org/name")
    assert parsed("hf://org/name@v2/sub/x.bw") == HubAddress("org/name", "v2", "sub/x.bw")
    assert parsed("hf://org/na.me@refs%2Fpr%2F1") == HubAddress("org/na.me", "refs/pr/1")
    assert str(parsed("hf://org/name@refs%2Fpr%2F1/x.bw")) == "hf://org/name@refs%2Fpr%2F1/x.bw"
    assert parsed(Path("hf://org/name/x.bw")) == HubAddress("org/name", None, "x.bw")
    assert parsed(Path(f"https://a.b/c.bw#sha256={SHA}")) == WebAddress("https://a.b/c.bw", SHA)
    assert not any(map(is_address, ("model.bw", "./hf:/x", "file:///x", 3, None, b"hf://a/b")))
    assert [file_name(p) for p in ("a/b.bw", "hf://o/n", "hf://o/n/s/x.bw", "https://a/b/c.bw?d=/e")] == [
        *("b.bw", "n", "x.bw", "c.bw"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        *("hf://name", "hf://a/b/../c", "hf://a/b@", "hf://../b", "hf://a/b@v1@v2", "hf://a/b//c", "hf://a b/c"),
        *(
            "http://a.b/c.bw",
            "https://user:pass@a.b/c",
            "https://a/b#md5=00",
            f"https://a/b#sha256={SHA}0",
            "hf://a/b\n",
        ),
        "http://127.0.0.1.evil.org/c.bw",
    ],
)
def test_an_address_of_another_form_is_refused_before_anything_is_asked(wrong: str) -> None:
    with pytest.raises(bw.SettingsError, match="expected"):
        bw.load(wrong)


def test_a_model_is_fetched_once_and_then_lies_in_the_cache(server: FileServer, data: bytes) -> None:
    where = address(server, data)
    first, second = bw.load(where), bw.load(where)
    assert first.version == second.version == shop().version
    assert len(server.asked) == 1
    server.close()
    assert bw.load(where).search("leather boots", 1)[0].key == "boots"


def test_a_wrong_checksum_is_refused_and_nothing_stays(server: FileServer, cache: Path) -> None:
    refused(f"{server.url}/shop.bw#sha256={SHA}", "SHA-256", f"expected {SHA}", "ask who gave you")
    assert not list(cache.rglob("*.bw")) + list(cache.rglob("*.part"))


def test_a_file_without_a_checksum_is_warned_of_and_asked_for_again(server: FileServer, data: bytes) -> None:
    where = f"{server.url}/shop.bw"
    with pytest.warns(bw.BeamwoodWarning, match=f"{where}#sha256={hashlib.sha256(data).hexdigest()}"):
        bw.load(where)
    bw.load(where)
    assert [status for _, _, status in server.asked] == [200, 304]
    server.files["/shop.bw"] = _other()
    with pytest.warns(bw.BeamwoodWarning, match="without a checksum"):
        changed = bw.load(where)
    assert changed.n_labels == 2
    server.close()
    with pytest.warns(bw.BeamwoodWarning, match="cannot be reached"):
        assert bw.load(where).n_labels == 2


def _other() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        bw.train_text(["red socks", "blue hat"], [["x"], ["y"]], progress=False).save(f"{folder}/x.bw")
        return Path(folder, "x.bw").read_bytes()


@pytest.mark.parametrize("lengths", [True, False])
def test_what_was_cut_off_goes_on_where_it_was(server: FileServer, data: bytes, lengths: bool) -> None:
    server.cut, server.cuts = len(data) // 3, 2
    server.lengths = lengths
    if lengths:
        assert bw.load(address(server, data)).version == shop().version
        assert [asked for _, asked, _ in server.asked] == [
            None,
            f"bytes={len(data) // 3}-",
            f"bytes={len(data) // 3 * 2}-",
        ]
    else:  # nobody can tell that it was cut but the checksum
        refused(address(server, data), "SHA-256")


def test_a_server_that_always_cuts_is_given_up_and_the_next_call_goes_on(server: FileServer, data: bytes) -> None:
    server.cut, server.cuts = 0, 10**9
    refused(address(server, data), f"cut off {TRIES} times")
    server.cut, server.cuts = 100, 1
    assert bw.load(address(server, data)).version == shop().version


def test_a_file_that_changed_while_it_was_fetched_is_fetched_anew(server: FileServer, data: bytes) -> None:
    server.cut, server.cuts = 0, 10**9
    refused(f"{server.url}/shop.bw", "cut off")
    part = next(Path(os.environ["BEAMWOOD_CACHE"]).rglob("*.part"))
    part.write_bytes(b"the first bytes of another file")
    part.with_suffix(".part.json").write_text('{"etag": "\\"older\\""}')
    server.cuts = 0
    with pytest.warns(bw.BeamwoodWarning, match="without a checksum"):
        assert bw.load(f"{server.url}/shop.bw").version == shop().version


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "needs a login"), (403, "may not be read"), (404, "not there"), (410, "gone"), (503, "503")],
)
def test_what_a_server_refuses_is_said(server: FileServer, data: bytes, status: int, said: str) -> None:
    server.status = status
    refused(address(server, data), said, server.url)


def test_no_network_is_said(server: FileServer, data: bytes) -> None:
    server.close()
    refused(address(server, data), "cannot be reached", "Check the network")


def test_a_web_page_and_a_damaged_model_are_no_models(server: FileServer, data: bytes, cache: Path) -> None:
    page, damaged = b"<!doctype html><p>log in", data[:-70] + bytes(70)
    server.files |= {"/page": page, "/damaged.bw": damaged}
    refused(address(server, page, "/page"), "web page")
    refused(address(server, damaged, "/damaged.bw"), "/damaged.bw")
    assert not list(cache.rglob("*.bw"))


def test_a_redirect_from_https_to_less_is_refused() -> None:
    import urllib.request

    from beamwood.hub.web import _SameSafety

    secure = urllib.request.Request("https://a.b/c")
    for to in ("http://a.b/c", "ftp://a.b/c", "file:///etc/passwd"):
        with pytest.raises(bw.FormatError, match="expected https"):
            _SameSafety().redirect_request(secure, None, 302, "Found", {}, to)
    plain = urllib.request.Request("http://a.b/c")
    with pytest.raises(bw.FormatError, match="expected https"):
        _SameSafety().redirect_request(plain, None, 302, "Found", {}, "file:///etc/passwd")


def test_a_redirect_is_followed(server: FileServer, data: bytes) -> None:
    server.redirects["/latest.bw"] = f"{server.url}/shop.bw"
    assert bw.load(address(server, data, "/latest.bw")).version == shop().version


def test_the_cache_keeps_below_its_limit(server: FileServer, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    other = _other()
    server.files["/other.bw"] = other
    monkeypatch.setenv("BEAMWOOD_CACHE_SIZE", str(len(data) + len(other) - 1))
    kept = bw.load(address(server, data))
    bw.load(address(server, other, "/other.bw"))
    bw.load(address(server, other, "/other.bw"))
    assert len(server.asked) == 2
    assert kept.search("leather boots", 1)[0].key == "boots"  # its file went; it is still mapped
    bw.load(address(server, data))
    assert len(server.asked) == 3


def test_a_file_larger_than_the_cache_is_refused(
    server: FileServer, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEAMWOOD_CACHE_SIZE", "1k")
    for server.lengths in (True, False):
        refused(address(server, data), "BEAMWOOD_CACHE_SIZE")
    monkeypatch.setenv("BEAMWOOD_CACHE_SIZE", "much")
    with pytest.raises(bw.SettingsError, match="20G"):
        bw.load(address(server, data))


def test_a_full_disk_is_said_and_nothing_stays(
    server: FileServer, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/dev/full stands for the disk: every write to it fails as on a full one."""
    from beamwood.hub import web

    real = open

    def full(path: Path, mode: str = "r") -> Any:
        return real("/dev/full" if mode == "wb" else path, mode)

    monkeypatch.setattr(web, "open", full, raising=False)
    refused(address(server, data), "does not fit on the disk", "BEAMWOOD_CACHE")


def test_a_cache_that_cannot_be_made_is_said(server: FileServer, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAMWOOD_CACHE", "/proc/nowhere")
    refused(address(server, data), "BEAMWOOD_CACHE")


def test_a_killed_download_goes_on(server: FileServer, data: bytes, cache: Path) -> None:
    """The child is killed in the middle of a body; the next one asks for the rest only."""
    server.files["/shop.bw"] = data
    where = address(server, data)
    code = (
        "import os, signal, sys, beamwood.hub.web as web, beamwood as bw\n"
        "web._BLOCK = 512\n"
        "fsync = os.fsync\n"
        "def killed(n):\n    fsync(n)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.fsync = killed\n"
        f"bw.load({where!r})\n"
    )
    server.cut, server.cuts = len(data) // 2, 1
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert next(cache.rglob("*.part")).stat().st_size == len(data) // 2
    assert bw.load(where).version == shop().version
    assert server.asked[-1][1:] == (f"bytes={len(data) // 2}-", 206)


def test_the_command_line_takes_addresses(server: FileServer, data: bytes) -> None:
    where = address(server, data)
    assert "boots" in run("search", where, "leather boots").stdout
    assert "labels" in run("inspect", where).stdout
    assert "is not there" in fails("search", f"{server.url}/none.bw#sha256={SHA}", "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "note: " in run("search", f"{server.url}/shop.bw", "wool hat").stderr


def test_a_server_serves_a_model_from_an_address(server: FileServer, data: bytes) -> None:
    with Running(address(server, data), "--log", "off") as running:
        assert "shop" in str(running.json("GET", "/v1/models"))
        assert running.json("POST", "/v1/search", {"text": "leather boots"})["hits"][0]["key"] == "boots"
