"""tools.py — a model in, the tools that an agent may call out: search, explain, info."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from beamwood.errors import SettingsError
from beamwood.explain import Step, finite
from beamwood.mcp.protocol import Tool
from beamwood.model import Model
from beamwood.show.answers import summed_shares

MOST_HITS = 100
_SHARES = 12  # words of an explanation that an agent gets per layer: it pays for every one


def _largest(step: Step) -> list[dict[str, Any]]:
    """The words that add most; the numbers of an encoder are one of them."""
    largest = summed_shares(step)[:_SHARES]
    return [finite({"word": word, "product": product} if of is None else asdict(of)) for word, product, of in largest]


def tools_of(model: Model, name: str) -> list[Tool]:
    """The three tools over one model; name: what the file is called."""
    text = {"type": "string", "description": "What to look for, in plain words."}
    k = {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": 10, "description": "How many labels."}
    label = {"type": "string", "description": "The key of a label, as search gives it."}

    def search(text: Any, k: Any = 10) -> dict[str, Any]:
        if not isinstance(k, int) or not 1 <= k <= MOST_HITS:
            raise SettingsError(f"k is {k!r:.40}; expected a whole number from 1 to {MOST_HITS}.")
        hits = model.search(text, k=k)
        found = [{field: value for field, value in hit._asdict().items() if value is not None} for hit in hits]
        return {"hits": [finite(hit) for hit in found], "known_terms": hits.known_terms}

    def explain(text: Any, label: Any) -> dict[str, Any]:
        if not isinstance(label, str):
            raise SettingsError(f"label is a {type(label).__name__}; expected the key of a label.")
        explanation = model.explain(text, label)
        told = explanation.to_dict()
        for tree, plain in zip(explanation.trees, told["trees"], strict=True):
            for step, shown in zip(tree.steps, plain["steps"], strict=True):
                shown["shares"] = _largest(step)
        if explanation.words is not None:
            told["words"]["shares"] = _largest(explanation.words)
        return told

    def info() -> dict[str, Any]:
        described = model.info()
        kept = ("labels", "features", "trees", "depth", "nodes", "bytes", "activation", "settings")
        return {"file": name, **{key: finite(described[key]) for key in kept if key in described}}

    return [
        Tool(
            "search",
            f"The best labels of {name} ({model.n_labels:,} labels) for a text, best first, with scores.",
            {"properties": {"text": text, "k": k}, "required": ["text"]},
            search,
        ),
        Tool(
            "explain",
            "Why a label scores as it does for a text: what each word adds, layer by layer.",
            {"properties": {"text": text, "label": label}, "required": ["text", "label"]},
            explain,
        ),
        Tool("info", "What the model is: labels, features, settings.", {"properties": {}}, info),
    ]
