"""From text to answer: what each step costs next to what people use today; in turns, median of rounds.

    python bench/search_path.py vectorizer FILE.jsonl.gz [--rounds 3] [--texts N]
    python bench/search_path.py search FILE.jsonl.gz --model library-subjects.bw [--rounds 5] [--texts N]

Section `vectorizer`: fit, transform, and one query of eight words, against scikit-learn's TfidfVectorizer
with the same options, which must agree first: the vocabulary exactly, the values to 1e-6.

Section `search`: `model.search(text)` for queries of eight words, next to the time that the engine itself
reports for the same rows, and next to scikit-learn's transform followed by libpecos' predict with the same
weights. A model that `examples/demo.py` wrote is fit for it; the labels of both must agree first.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rivals.install import running_pecos

import beamwood as bw
from beamwood.bench.timing import each_time, print_table
from beamwood.bench.timing import in_turns as figures_in_turns
from beamwood.inputs.records import iter_records
from beamwood.inputs.text import FittedText, TextFeatures
from beamwood.interop import pecos as pecos_folder

QUERY = "a short history of jazz in new orleans"
WORDS_A_QUERY = 8
BEAM = K = 10


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
    rows, expected = ours.transform(texts), theirs.transform(texts)  # type: ignore[attr-defined]
    expected.sort_indices()
    assert ours.vocabulary() == list(theirs.get_feature_names_out())  # type: ignore[attr-defined]
    assert np.array_equal(rows.indices, expected.indices)
    assert np.array_equal(rows.indptr, expected.indptr)
    np.testing.assert_allclose(rows.data, expected.data, atol=1e-6)


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


def sklearn_vectorizer(fitted: FittedText) -> Any:
    """A TfidfVectorizer that does what the model's text features do; one block of words is expected."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    (block,) = fitted.blocks
    pattern = r"(?u)\b\w+\b" if block.single_letters else r"(?u)\b\w\w+\b"
    rival = TfidfVectorizer(
        vocabulary={term: column for column, term in enumerate(fitted.vocabulary())},
        token_pattern=pattern,
        ngram_range=block.ngram_range,
        lowercase=block.lowercase,
        sublinear_tf=block.sublinear_tf,
        binary=block.binary,
        norm=block.norm,
        dtype=np.float32,
    )
    rival.idf_ = fitted.arrays()["0/idf"]
    return rival


def search_section(model: bw.Model, texts: list[str], rounds: int) -> None:
    """Prints what one query costs: ours from text to names, our engine alone, and the rivals' two steps."""
    assert model.text is not None
    queries = [" ".join(text.split()[:WORDS_A_QUERY]) for text in texts]
    X = model.text.transform(queries)
    rows, rival = [X[i] for i in range(len(queries))], sklearn_vectorizer(model.text)
    with tempfile.TemporaryDirectory() as folder, running_pecos() as pecos:
        pecos_folder.write(model, Path(folder) / "model")
        sp.save_npz(Path(folder) / "X.npz", sp.csr_matrix(rival.transform(queries)))
        pecos.load("binary", Path(folder) / "model")
        pecos.queries(Path(folder) / "X.npz")
        pecos.answers("binary", BEAM, K, Path(folder) / "answers.npz")
        theirs = np.load(Path(folder) / "answers.npz")["labels"]
        agree = np.mean(
            [[h.label for h in model.search(q, K, BEAM)] == list(t) for q, t in zip(queries, theirs, strict=True)]
        )
        runs = {
            "model.search(text)": lambda: each_time(lambda text: model.search(text, K, BEAM), queries),
            "engine alone": lambda: [model.topk(row, K, BEAM, stats=True)[2].nanoseconds / 1e3 for row in rows],
            "scikit-learn transform": lambda: each_time(lambda text: rival.transform([text]), queries),
            "libpecos predict": lambda: pecos.online("binary", BEAM, K, len(queries)),
        }
        taken = {name: time.median for name, time in figures_in_turns(runs, rounds, warm=True).items()}
    both = taken["scikit-learn transform"] + taken["libpecos predict"]
    print(f"search: {len(queries):,} queries of {WORDS_A_QUERY} words, {model.n_labels:,} labels, beam {BEAM}, k {K}")
    print(f"{machine()}, median of {rounds} rounds in turns; {agree:.1%} of the rankings are the same\n")
    print_table(["step", "µs per query"], [*taken.items(), ("the rivals' two steps", both)])
    print(f"beyond the engine: {taken['model.search(text)'] - taken['engine alone']:.1f} µs")
    print(f"against the rivals' two steps: {both / taken['model.search(text)']:.1f} x")


def main() -> None:
    """Reads the texts and runs the section asked for."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("section", choices=["vectorizer", "search"])
    options.add_argument("file", help="JSONL with a text column")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--texts", type=int, default=None, help="use only the first N texts (search: 200)")
    options.add_argument("--model", type=Path, help="a model trained from text, for the section search")
    given = options.parse_args()
    texts = [text for text, _ in iter_records(given.file, labels=None)][: given.texts]
    if given.section == "vectorizer":
        vectorizer_section(texts, given.rounds)
    elif given.model is None:
        options.error("search needs --model, for example library-subjects.bw, which make demo writes")
    else:
        search_section(bw.load(given.model), texts[: given.texts or 200], given.rounds)


if __name__ == "__main__":
    main()
