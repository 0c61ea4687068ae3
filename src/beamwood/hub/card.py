"""card.py — a model and what its maker says of it in, a model card for a hub out: Markdown with a head of YAML.

Nothing is made up: a table stands there only where its numbers are known, and what is not known is said to be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from beamwood._version import __version__
from beamwood.errors import SettingsError
from beamwood.lexical.label_texts import in_words

_LABELS = 10  # that are named as examples
_SETTINGS = ("preset", "tree", "trees", "branching", "max_leaf", "loss", "activation", "negatives", "C", "prune")


def card(
    model: Any,
    repo: str = "org/name",
    *,
    data: str | None = None,
    measures: Any = None,
    license: str | None = None,
    language: str | Sequence[str] | None = None,
    file: str = "model.bw",
) -> str:
    """The card that `push_to_hub` writes as README.md.

    data:     what it was trained on and measured on, in a sentence or a paragraph of Markdown.
    measures: what `model.evaluate` gave on rows that it was not trained on; or names and numbers.
    license:  as the hub spells it, for example apache-2.0. language: for example en, or ["en", "fi"].
    """
    numbers = _numbers(measures)
    info = model.info()
    parts = [
        _head(repo, license, language, numbers),
        f"# {_plain(repo.rpartition('/')[2])}",
        _what(model, info),
        _usage(model, repo, file),
        "## Data\n\n" + (data.strip() if data else "Not described.") + _report(model),
        "## Measures\n\n" + (_table(("measure", "percent"), _percent(numbers)) if numbers else "Not measured."),
        "## Probabilities\n\n" + _probabilities(model, info),
        "## Settings\n\n" + _settings(info),
        "## Safety\n\n"
        "The model is one file: a [safetensors](https://github.com/huggingface/safetensors) container of numbers and "
        "texts with checksums. There is no pickle in it, loading it runs no code, and no trust flag is needed.",
        f"Written by beamwood {__version__}; version of the model: `{model.version}`.",
    ]
    return "\n\n".join(parts) + "\n"


def _head(repo: str, license: str | None, language: Any, numbers: Mapping[str, float]) -> str:
    """The hub's own data; JSON is YAML, so every value is quoted as JSON."""
    for name, value in (("license", license), ("language", language)):
        listed = [value] if isinstance(value, str) else list(value or ())
        if any(not isinstance(each, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,60}", each) for each in listed):
            raise SettingsError(f"{name} is {value!r:.80}; expected a short name, for example apache-2.0 or en.")
    lines = ["library_name: beamwood", "tags: [beamwood, extreme-multi-label, text-classification, safetensors]"]
    lines.append("pipeline_tag: text-classification")
    if license:
        lines.append(f"license: {json.dumps(license)}")
    if language:
        lines.append(f"language: {json.dumps([language] if isinstance(language, str) else list(language))}")
    if numbers:
        metrics = [{"type": name, "value": round(value, 6)} for name, value in numbers.items()]
        task = {"type": "text-classification", "name": "extreme multi-label classification"}
        result = {"task": task, "dataset": {"name": "held-out rows", "type": "held-out"}, "metrics": metrics}
        index = [{"name": repo.rpartition("/")[2], "results": [result]}]
        lines.append(f"model-index: {json.dumps(index)}")
    return "---\n" + "\n".join(lines) + "\n---"


def _numbers(measures: Any) -> dict[str, float]:
    found = measures.as_dict() if hasattr(measures, "as_dict") else measures
    if found is None:
        return {}
    good = isinstance(found, Mapping) and all(
        isinstance(name, str) and isinstance(value, (int, float)) for name, value in found.items()
    )
    if not good:
        raise SettingsError(
            f"measures is a {type(measures).__name__}; expected what model.evaluate gives, or a dict of numbers."
        )
    return {name: float(value) for name, value in found.items()}


def _what(model: Any, info: Mapping[str, Any]) -> str:
    kind = "an exact index" if not info["trees"] else f"{info['trees']} trees" if info["trees"] > 1 else "one tree"
    text = (
        f"Finds the best of {info['labels']:,} labels for a {'text' if model.text is not None else 'sparse row'} "
        f"in microseconds on a CPU: {kind} of sparse linear models, {info['nonzeros']:,} weights, "
        f"{info['bytes'] / 2**20:,.1f} MB."
    )
    if info["lexical"] is not None:
        text += f"\n\n{_plain(in_words(info['lexical']))}"
    count = min(_LABELS, model.n_labels)
    names = ", ".join(f"`{_plain(model.name(label)[:60])}`" for label in range(count))
    return f"{text}\n\nSome of its labels: {names}{', …' if model.n_labels > count else '.'}"


def _usage(model: Any, repo: str, file: str) -> str:
    address = f"hf://{repo}" + ("" if file == "model.bw" else f"/{file}")
    ask = 'model.search("some words", k=10)' if model.text is not None else "model.topk(X, k=10)"
    lines = ["import beamwood as bw  # pip install 'beamwood[hub]'", "", f'model = bw.load("{address}")', ask]
    serve = f"Over HTTP, with a search page: `beamwood serve {address}`"
    return "## Use\n\n```python\n" + "\n".join(lines) + f"\n```\n\n{serve}"


def _report(model: Any) -> str:
    """What the training of this process counted, or else what the file knows."""
    report, counts = model.report, model.rows_of_label
    rows = getattr(report, "rows", None)
    known = [] if rows is None else [("training rows", f"{rows:,}")]
    if counts is not None:
        known += [
            ("labels with rows", f"{int((counts > 0).sum()):,}"),
            ("rows of all labels", f"{int(counts.sum()):,}"),
        ]
    return "\n\n" + _table(("count", ""), known) if known else ""


def _probabilities(model: Any, info: Mapping[str, Any]) -> str:
    if info["calibration"] is None:
        return "Scores rank; they are no probabilities. `model.calibrate(texts, labels)` gives a model that knows them."
    lines = ["Calibrated on held-out rows: `hit.probability` is the share of such answers that were right."]
    known = [(name.replace("_", " "), f"{value:g}") for name, value in _flat(info["calibration"])]
    cut = info["cut"]
    if cut is not None:
        known.append((f"cut for {cut['goal']}", f"{cut['on']} of {cut['least']:.3f} or more, F1 {cut['f1']:.3f}"))
    return "\n\n".join([*lines, _table(("on those rows", ""), known)])


def _flat(plain: Any, above: str = "") -> list[tuple[str, float]]:
    """Names and numbers of nested values."""
    if isinstance(plain, Mapping):
        return [pair for name, value in plain.items() for pair in _flat(value, f"{above} {name}".strip())]
    return [(above, plain)] if isinstance(plain, (int, float)) and not isinstance(plain, bool) else []


def _settings(info: Mapping[str, Any]) -> str:
    settings = info["settings"]
    known = [(name, f"`{_plain(str(settings[name])[:60])}`") for name in _SETTINGS if name in settings]
    return _table(("setting", ""), known) if known else "Not known."


def _percent(numbers: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(_plain(name), f"{100 * value:.2f}") for name, value in numbers.items()]


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A name that can do no more than be read: no line ends, no tags, no marks of Markdown."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return re.sub(r"[`|<>\[\]\\*#]", " ", line)
