"""test_mcp_client.py — the reference client of the Model Context Protocol in; what it gets from `beamwood mcp` out."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import beamwood as bw

pytest.importorskip("mcp")


def test_the_reference_client_searches_and_explains(tmp_path: Path) -> None:
    model = bw.train_text(["red wool socks", "blue wool hat"], [["socks"], ["hats"]], progress=False)
    model.save(tmp_path / "shop.bw")
    tools, hits, why, wrong = asyncio.run(_asked(tmp_path / "shop.bw"))
    assert tools == ["search", "explain", "info"]
    assert hits["hits"][0]["score"] == model.search("warm hat")[0].score
    assert why["key"] == "hats"
    assert wrong.is_error


async def _asked(path: Path) -> Any:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=sys.executable, args=["-m", "beamwood", "mcp", str(path)])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        hits = (await session.call_tool("search", {"text": "warm hat", "k": 2})).structured_content
        why = (await session.call_tool("explain", {"text": "warm hat", "label": "hats"})).structured_content
        wrong = await session.call_tool("search", {"text": "hat", "k": 0})
        return tools, hits, why, wrong
