"""Claims about who may ask a real server, and which servers are refused before they start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.serving import BEARER, TOKEN, Running

from beamwood.server.app.routes import ROUTES


def test_a_token_guards_everything_but_health_and_the_page(folder: Path) -> None:
    with Running(folder / "shop.bw", "--token-file", folder / "token") as server:
        for route in ROUTES:
            if route.open or route.file is not None:  # with every file that the page and /docs load
                assert server.ask("GET", route.path)[0] == 200, route.path
        for path in ("/v1/models", "/metrics", "/v1/labels/0", "/v1/projects", "/v1/search?q=wool"):
            status, headers, _ = server.ask("GET", path)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert server.ask("GET", path, authorization="Bearer wrong-token-of-some-length")[0] == 401
            assert server.ask("GET", path, authorization=TOKEN)[0] == 401
            assert server.ask("GET", path, **BEARER)[0] == 200
        assert server.ask("POST", "/v1/admin/reload")[0] == 401


def test_without_a_token_no_one_administers(server: Running) -> None:
    assert server.json("POST", "/v1/admin/reload", status=403, **BEARER)["error"]["code"] == "no-token-configured"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("{shop}", "--host", "0.0.0.0"), "--token-file"),
        (("{shop}", "--host", "::"), "--token-file"),
        (("{shop}", "--token-file", "{folder}/feet.txt"), "one token of at least 16"),
        (("{folder}/none.bw",), "none.bw"),
        (("{folder}/feet.txt",), "not a beamwood model"),
        ((), "no model was given"),
        (("{shop}", "--name", "shop={shop}"), "two models are named 'shop'"),
        (("{shop}", "--name", "a b={shop}"), "cannot stand in an address"),
        (("{shop}", "--filter", "x={folder}/none"), "cannot be read"),
        (("{shop}", "--beam", "5000"), "--max-beam"),
    ],
)
def test_a_server_that_cannot_be_meant_is_refused_in_a_line(folder: Path, words: tuple[str, ...], says: str) -> None:
    given = [word.format(folder=folder, shop=folder / "shop.bw") for word in words]
    command = [sys.executable, "-m", "beamwood", "serve", "--port", "0", *given]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert says in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_missing_extra_is_named_with_its_pip_line(folder: Path) -> None:
    code = (
        "import sys, importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'uvloop' else find(name, *a)\n"
        f"sys.argv = ['beamwood', 'serve', {str(folder / 'shop.bw')!r}]\nfrom beamwood.cli import main\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert ran.stderr == "error: serve needs uvloop; install the extra: pip install 'beamwood[serve]'\n"
