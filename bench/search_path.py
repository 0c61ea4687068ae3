"""From text to answer: what each step costs next to what people use today; in turns, median of rounds.

    python bench/search_path.py vectorizer FILE.jsonl.gz [--rounds 3] [--texts N]

Section `vectorizer`: fit, transform, and one query of eight words, against scikit-learn's TfidfVectorizer
with the same options, which must agree first: the vocabulary exactly, the values to 1e-6.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from beamwood.records import iter_records
from beamwood.text import FittedText, TextFeatures

QUERY = "a short history of jazz in new orleans"


def machine() -> str:
    """The processor's name and Python's version."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{names[0].split(': ')[1] if names else platform.machine()}, Python {platform.python_version()}"


def in_turns(rivals: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of each rival, the median of rounds in which each runs once."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(rounds):
        for name, run in rivals.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def repeated(run: Callable[[], object], times: int) -> Callable[[], object]:
    """A function that runs another many times."""

    def runs() -> None:
        for _ in range(times):
            run()

    return runs


def assert_agreement(ours: FittedText, theirs: object, texts: list[str]) -> None:
    """Exact vocabulary and columns, values to 1e-6."""
    rows, wanted = ours.transform(texts), theirs.transform(texts)  # type: ignore[attr-defined]
    wanted.sort_indices()
    assert ours.vocabulary() == list(theirs.get_feature_names_out())  # type: ignore[attr-defined]
    assert np.array_equal(rows.indices, wanted.indices)
    assert np.array_equal(rows.indptr, wanted.indptr)
    np.testing.assert_allclose(rows.data, wanted.data, atol=1e-6)


def vectorizer_section(texts: list[str], rounds: int) -> None:
    """Prints the table of the vectorizer."""
    import sklearn
    from sklearn.feature_extraction.text import TfidfVectorizer

    features = TextFeatures(single_letters=True, min_df=2, sublinear_tf=True)
    rival = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", min_df=2, sublinear_tf=True)
    fitted = features.fit(texts)
    assert_agreement(fitted, rival.fit(texts), texts)
    steps = {
        "fit": (lambda t: features.fit(texts, threads=t), lambda: rival.fit(texts), 1),
        "transform": (lambda t: fitted.transform(texts, threads=t), lambda: rival.transform(texts), 1),
        "one query": (
            lambda t: fitted.vectorizer.transform([QUERY], t),
            lambda: rival.transform([QUERY]),
            2000,
        ),
    }
    print(f"vectorizer: {len(texts):,} texts, {sum(map(len, texts)):,} characters, {fitted.columns:,} terms")
    print(f"{machine()}, scikit-learn {sklearn.__version__}, median of {rounds} rounds in turns")
    for name, (ours, theirs, times) in steps.items():
        rivals = {
            "ours": repeated(lambda ours=ours: ours(1), times),  # type: ignore[misc]
            "threads": repeated(lambda ours=ours: ours(2), times),  # type: ignore[misc]
            "theirs": repeated(theirs, times),
        }
        taken = {rival: seconds / times for rival, seconds in in_turns(rivals, rounds).items()}
        unit, scale = ("s ", 1.0) if times == 1 else ("us", 1e6)
        print(
            f"  {name:10s} beamwood {taken['ours'] * scale:8.2f} {unit} "
            f"(2 threads {taken['threads'] * scale:8.2f} {unit})"
            f"  scikit-learn {taken['theirs'] * scale:8.2f} {unit}  {taken['theirs'] / taken['ours']:6.1f} x"
        )


def main() -> None:
    """Reads the texts and runs the section asked for."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("section", choices=["vectorizer"])
    options.add_argument("file", help="JSONL with a text column")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--texts", type=int, default=None, help="use only the first N texts")
    given = options.parse_args()
    texts = [text for text, _ in iter_records(given.file, labels=None)][: given.texts]
    vectorizer_section(texts, given.rounds)


if __name__ == "__main__":
    main()
