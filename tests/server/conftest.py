"""The server that most of these tests ask: two models and a filter, read limits that are soon reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import beamwood as bw

for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
    pytest.importorskip(needed)

from support.models import small_model  # noqa: E402
from support.serving import TOKEN, Running, shop  # noqa: E402


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("serve")
    shop().save(here / "shop.bw")
    small_model().save(here / "numbers.bw")
    (here / "token").write_text(TOKEN + "\n")
    (here / "feet.txt").write_text("socks\nboots\nno such key\n")
    return here


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    words = ("--name", f"numbers={folder / 'numbers.bw'}", "--filter", f"feet={folder / 'feet.txt'}")
    with Running(folder / "shop.bw", *words, "--read-timeout-ms", "700", "--max-body", "20000") as running:
        yield running


@pytest.fixture(scope="session")
def model(folder: Path) -> bw.Model:
    return bw.load(folder / "shop.bw")
