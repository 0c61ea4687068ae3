"""protocol.py — lines of JSON-RPC in, lines of JSON-RPC out: the part of the Model Context Protocol that tools need.

The law: a line is answered by at most one line, whatever it holds; what a tool cannot do is an answer that says why
(isError), what is not the protocol is an error with JSON-RPC's code, and neither ends the service. A line over the
limit is read away without being kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from beamwood._version import __version__
from beamwood.errors import BeamwoodError, one_line

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # newest first: what a client of another one gets
LONGEST_LINE = 4 << 20
_NOT_JSON, _NOT_A_REQUEST, _NO_METHOD, _BAD_PARAMS, _OURS = -32700, -32600, -32601, -32602, -32603


@dataclass(frozen=True)
class Tool:
    """What an agent may call: a name, what it is for, the schema of its arguments, and what it does with them."""

    name: str
    description: str
    schema: Mapping[str, Any]
    call: Callable[..., dict[str, Any]]

    def described(self) -> dict[str, Any]:
        """As tools/list shows it."""
        hints = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {"type": "object", "additionalProperties": False, **self.schema},
            "annotations": hints,
        }


class Refused(Exception):
    """A request that gets an error with a code of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Session:
    """The requests of one client, one after the other."""

    def __init__(self, tools: list[Tool], instructions: str) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._instructions = instructions

    def serve(self, lines: BinaryIO, out: BinaryIO) -> None:
        """Answers until the input ends."""
        while line := lines.readline(LONGEST_LINE + 1):
            whole = len(line) <= LONGEST_LINE
            answer = self.answer(line) if whole else _too_long(lines, line)
            if answer is not None:
                out.write(json.dumps(answer, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n")
                out.flush()

    def answer(self, line: bytes) -> dict[str, Any] | None:
        """The answer to one line; None where there is none to give."""
        number = None
        try:
            request = _request_in(line)
            if request is None:
                return None
            number = request["id"]
            return {"jsonrpc": "2.0", "id": number, "result": self._result(request)}
        except Refused as refused:
            return _error(number, refused.code, str(refused))
        except Exception as error:  # a client must not be able to end the service
            return _error(number, _OURS, one_line(f"{type(error).__name__}: {error}"))

    def _result(self, request: dict[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request.get("params") or {}
        if not isinstance(params, dict):
            raise Refused(_BAD_PARAMS, f"params is a {type(params).__name__}; expected an object.")
        if method == "initialize":
            asked = params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "beamwood", "version": __version__},
                "instructions": self._instructions,
            }
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": [tool.described() for tool in self._tools.values()]}
        if method == "tools/call":
            return self._called(params)
        raise Refused(_NO_METHOD, f"method is {method!r:.60}; expected initialize, ping, tools/list or tools/call.")

    def _called(self, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments") or {}
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise Refused(_BAD_PARAMS, f"name is {name!r:.60}; expected one of {', '.join(self._tools)}.")
        try:
            found = tool.call(**_checked(arguments, tool))
        except BeamwoodError as error:
            return {"content": [{"type": "text", "text": one_line(str(error))}], "isError": True}
        text = json.dumps(found, ensure_ascii=False, allow_nan=False)
        return {"content": [{"type": "text", "text": text}], "structuredContent": found, "isError": False}


def _request_in(line: bytes) -> dict[str, Any] | None:
    """The request of a line; None for a notification, an answer (we ask nothing) and an empty line."""
    if not line.strip():
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise Refused(_NOT_JSON, "the line is no JSON; expected one JSON-RPC request per line.") from None
    if isinstance(found, dict) and "method" not in found and ("result" in found or "error" in found):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("method"), str):
        raise Refused(_NOT_A_REQUEST, "the line is no request; expected an object with a method.")
    return found if "id" in found else None


def _checked(arguments: Any, tool: Tool) -> dict[str, Any]:
    """Arguments that the tool has, none missing; what they hold is for the tool to judge."""
    known, needed = tool.schema["properties"], tool.schema.get("required", [])
    if not isinstance(arguments, dict):
        raise Refused(_BAD_PARAMS, f"arguments is a {type(arguments).__name__}; expected an object.")
    for name in arguments:
        if name not in known:
            raise Refused(_BAD_PARAMS, f"{tool.name} has no argument {name!r:.60}; expected {', '.join(known)}.")
    for name in needed:
        if name not in arguments:
            raise Refused(_BAD_PARAMS, f"{tool.name} lacks the argument {name!r}; expected it.")
    return arguments


def _error(number: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def _too_long(lines: BinaryIO, line: bytes) -> dict[str, Any]:
    """Reads the rest of a line away."""
    while line and not line.endswith(b"\n"):
        line = lines.readline(LONGEST_LINE)
    return _error(None, _NOT_A_REQUEST, f"the line has over {LONGEST_LINE:,} bytes; expected fewer.")
