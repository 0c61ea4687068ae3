"""The package huggingface_hub and a hub that speaks its protocol: models go there with a card and come back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("huggingface_hub")

from support.hub_server import TOKEN, HubServer
from support.serving import LABELS, TEXTS, Running, shop

PLACE = Path(__file__).resolve().parents[1]


@pytest.fixture
def hub() -> Iterator[HubServer]:
    running = HubServer()
    yield running
    running.close()


@pytest.fixture
def place(hub: HubServer, tmp_path: Path) -> dict[str, str]:
    """The environment of a program that uses this hub: the package reads its settings once, when it is imported."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(PLACE), os.environ.get("PYTHONPATH", ""))),
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",  # the hub's newer store is a service of its own; files go as large files of git
        "HF_HOME": str(tmp_path / "hf"),
        "HF_TOKEN": TOKEN,
        "HF_HUB_ETAG_TIMEOUT": "2",
        "BEAMWOOD_CACHE": str(tmp_path / "cache"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }


def ran(place: dict[str, str], code: str, **more: str) -> Any:
    """What a program prints, as JSON; or the error that ended it, one of ours."""
    program = (
        "import json, beamwood as bw\nfrom support.serving import shop, TEXTS, LABELS\n"
        f"try:\n    print(json.dumps({code}))\n"
        "except bw.BeamwoodError as error:\n    print(json.dumps([type(error).__name__, str(error)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**place, **more}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def push(place: dict[str, str], more: str = "") -> str:
    found: str = ran(place, f"shop().push_to_hub('me/shop'{more})")
    return found


def test_a_model_goes_to_the_hub_and_comes_back_the_same(hub: HubServer, place: dict[str, str]) -> None:
    measured = "shop().evaluate(TEXTS, LABELS)"
    address = push(place, f", license='cc0-1.0', language='en', data='Ten lines.', measures={measured}")
    commit = hub.repos["me/shop"]["refs"]["main"]
    assert address == f"hf://me/shop@{commit}"
    for where in (address, "hf://me/shop", "hf://me/shop@main/model.bw"):
        assert ran(place, f"bw.load({where!r}).version") == shop().version
    files = hub.repos["me/shop"]["commits"][commit]
    assert sorted(files) == ["README.md", "model.bw"]
    card = files["README.md"].decode()
    for words in ('license: "cc0-1.0"', "Ten lines.", "| precision@1 |", 'bw.load("hf://me/shop")', "no pickle"):
        assert words in card
    from huggingface_hub import ModelCard

    known = ModelCard(card).data
    assert (known.library_name, known.license, known.language) == ("beamwood", "cc0-1.0", ["en"])
    assert {result.metric_type for result in known.eval_results or ()} >= {"precision@1", "recall@10", "ndcg@5"}


def test_the_file_is_a_safetensors_file(hub: HubServer, place: dict[str, str], tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    push(place)
    data = hub.repos["me/shop"]["commits"][hub.repos["me/shop"]["refs"]["main"]]["model.bw"]
    (tmp_path / "x.safetensors").write_bytes(data)
    with safetensors.safe_open(tmp_path / "x.safetensors", "np") as opened:
        assert any(name.startswith("tree0/") for name in list(opened.keys()))


def test_a_second_version_and_the_first_one_by_its_commit(hub: HubServer, place: dict[str, str]) -> None:
    first = push(place)
    second = ran(place, "shop('balanced').push_to_hub('me/shop', message='three trees')")
    assert first != second
    assert ran(place, "bw.load('hf://me/shop').info()['trees']") == 3
    assert ran(place, f"bw.load({first!r}).info()['trees']") == 1


def test_what_is_in_the_cache_needs_no_hub(hub: HubServer, place: dict[str, str]) -> None:
    push(place)
    assert ran(place, "bw.load('hf://me/shop').version") == shop().version
    assert ran(place, "bw.load('hf://me/shop').version", HF_HUB_OFFLINE="1") == shop().version
    hub.close()
    try:
        assert ran(place, "bw.load('hf://me/shop').version") == shop().version
        kind, said = ran(place, "bw.load('hf://me/other').version")
        assert kind == "FormatError"
        assert "cannot be reached" in said
        assert "HF_HUB_OFFLINE" in ran(place, "bw.load('hf://me/other').version", HF_HUB_OFFLINE="1")[1]
    finally:
        hub.__init__()  # the fixture closes it once more


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("hf://me/none", "not there, or private"),
        ("hf://me/shop@v9", "no revision 'v9'"),
        ("hf://me/shop/other.bw", "no file other.bw"),
        ("hf://me/two", "x.bw, y.bw"),
        ("hf://me/empty", "no model"),
        ("hf://me/shut", "whom its owner let in"),
    ],
)
def test_what_cannot_be_had_is_said(hub: HubServer, place: dict[str, str], where: str, said: str) -> None:
    push(place)
    for name, files in {"two": ["x.bw", "y.bw"], "empty": ["a.txt"], "shut": ["model.bw"]}.items():
        hub.repos[f"me/{name}"] = {
            "private": False,
            "refs": {"main": "1" * 40},
            "commits": {"1" * 40: dict.fromkeys(files, b"")},
        }
    hub.gated = {"me/shut"}
    kind, message = ran(place, f"bw.load({where!r}).version")
    assert kind == "FormatError"
    assert said in message
    assert where in message


def test_a_private_repository_needs_its_token(hub: HubServer, place: dict[str, str]) -> None:
    push(place, ", private=True")
    assert hub.repos["me/shop"]["private"]
    assert ran(place, "bw.load('hf://me/shop').version") == shop().version
    without = {**place, "BEAMWOOD_CACHE": place["BEAMWOOD_CACHE"] + "2"}
    del without["HF_TOKEN"]
    assert "HF_TOKEN" in ran(without, "bw.load('hf://me/shop').version")[1]
    kind, said = ran(without, "shop().push_to_hub('me/more')")
    assert (kind, "HF_TOKEN" in said) == ("FormatError", True)


def test_a_file_damaged_on_its_way_is_refused_and_does_not_stay(hub: HubServer, place: dict[str, str]) -> None:
    push(place)
    hub.damage = True
    kind, said = ran(place, "bw.load('hf://me/shop').version")
    assert kind == "FormatError"
    assert "SHA-256" in said
    hub.damage = False
    assert ran(place, "bw.load('hf://me/shop').version") == shop().version


def test_a_hub_that_fails_is_said(hub: HubServer, place: dict[str, str]) -> None:
    push(place)
    hub.status = 500
    kind, _ = ran(place, "bw.load('hf://me/shop@main/model.bw').version")
    assert kind == "FormatError"


@pytest.mark.parametrize(
    "call", ["'shop'", "'me/shop@v2'", "'me/shop', file='x.pkl'", "3", "'me/shop', license='a: b'"]
)
def test_what_cannot_be_pushed_is_refused_before_anything_is_asked(
    hub: HubServer, place: dict[str, str], call: str
) -> None:
    kind, said = ran(place, f"shop().push_to_hub({call})")
    assert kind == "SettingsError"
    assert "expected" in said
    assert hub.asked == [""]


def test_the_command_line_and_a_server_take_the_address(
    hub: HubServer, place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    push(place)
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "beamwood", "search", "hf://me/shop", "leather boots"]
    assert "boots" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with Running("hf://me/shop", "--log", "off") as server:
        assert "shop" in str(server.json("GET", "/v1/models"))


def test_without_the_package_the_error_names_what_to_install(place: dict[str, str]) -> None:
    code = "(__import__('sys').modules.__setitem__('huggingface_hub', None), bw.load('hf://me/shop'))"
    kind, said = ran(place, code)
    assert kind == "SettingsError"
    assert "pip install 'huggingface_hub>=0.34'" in said


def test_names_of_labels_cannot_break_the_card() -> None:
    import beamwood as bw
    from beamwood.hub import card

    names = ["<script>alert(1)</script>", "a\n---\nlicense: none", "`|x|` [link](http://x)"]
    model = shop().with_names(names=[*names, *map(str, range(shop().n_labels - 3))])
    text = card(model, "me/shop")
    assert "<script>" not in text
    assert text.count("\n---\n") == 1
    assert "](http://x)" not in text
    assert isinstance(model, bw.Model)
    assert len(TEXTS) == len(LABELS)
