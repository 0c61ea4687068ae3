"""mcp.py — `beamwood mcp`: a model in, its tools for agents over standard input and output, until the input ends."""

from __future__ import annotations

import sys

from beamwood.batch.score import text_of
from beamwood.cli.support import options as o
from beamwood.cli.support.output import say
from beamwood.hub.address import file_name


def mcp(model_file: o.ModelFile, encoder: o.Encoder = None, debug: o.Debug = False) -> None:
    """Let an agent search a model: the Model Context Protocol over standard input and output.

    Example, in the configuration of a client: {"command": "beamwood", "args": ["mcp", "/path/to/model.bw"]}

    Tools: search (text, k), explain (text, label), info. Nothing is written, nothing is sent anywhere else.
    """
    import beamwood as bw
    from beamwood.mcp.protocol import Session
    from beamwood.mcp.tools import tools_of

    model, called = bw.load(model_file, encoder=encoder), file_name(model_file)
    text_of(model)
    session = Session(
        tools_of(model, called),
        "Finds labels (tags, products, subjects) for a text. Call search first; explain says why a label was found.",
    )
    say(f"{called}: {model.n_labels:,} labels; waiting for a client on standard input")
    session.serve(sys.stdin.buffer, sys.stdout.buffer)
