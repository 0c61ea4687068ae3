"""words.py — the options of how texts become features in, the text features they describe out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood.errors import SettingsError

_PANEL = "How texts become features"


def _option(*names: str, help: str, **how: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **how)


Ngrams = Annotated[str, _option(help="Runs of words: 1, or 1-2 for pairs too.")]
Chars = Annotated[str | None, _option(help="Runs of letters inside words too, e.g. 3-5.")]
MinDf = Annotated[int, _option(min=1, help="Drop terms in fewer texts than this.")]
MaxDf = Annotated[str | None, _option(help="Drop terms in more texts than this: a number, or a share such as 0.5.")]
MaxFeatures = Annotated[int | None, _option(min=1, help="Keep only the most frequent terms.")]
Sublinear = Annotated[
    bool, typer.Option("--sublinear", help="Count a term 1 + log(times) times.", rich_help_panel=_PANEL)
]
SingleLetters = Annotated[
    bool, typer.Option("--single-letters", help="Words of one letter count too: R, C.", rich_help_panel=_PANEL)
]
FoldAccents = Annotated[
    bool, typer.Option("--fold-accents", help="cafe muller finds Café Müller.", rich_help_panel=_PANEL)
]
Stem = Annotated[
    str | None, _option(metavar="LANGUAGE", help="Words count by their stem: english, finnish and 27 more (Snowball).")
]
StopWords = Annotated[
    str | None,
    _option("--stop-words", metavar="LANGUAGE|FILE", help="Words that do not count: english, …, or one per line."),
]
Signs = Annotated[bool, typer.Option("--signs", help="C++, C# and .NET are words.", rich_help_panel=_PANEL)]
NoSegment = Annotated[
    bool,
    typer.Option(
        "--no-segment",
        help="Leave runs of Chinese, Japanese or Thai whole instead of taking pairs of characters.",
        rich_help_panel=_PANEL,
    ),
]
Encoder = Annotated[
    str | None,
    _option(
        metavar="NAME",
        help="Vectors of texts beside their words, where held-out rows gain: wordllama, model2vec:FOLDER, onnx:FOLDER, "
        "a plug-in's name, or svd, which is learnt from the texts.",
    ),
]
NoTypos = Annotated[
    bool,
    typer.Option(
        "--no-typos", help="An unknown word does not count as known ones one error away.", rich_help_panel=_PANEL
    ),
]


def features(options: dict[str, Any]) -> Any:
    """The text features of a verb's options: one block of words, and one of letters if asked for."""
    from beamwood.inputs.text import TextFeatures
    from beamwood.inputs.text_block import TextBlock

    both = {
        "min_df": options["min_df"],
        "max_df": 1.0 if options["max_df"] is None else _number("--max-df", options["max_df"]),
        "max_features": options["max_features"],
        "sublinear_tf": options["sublinear"],
        "fold_accents": options["fold_accents"],
    }
    words = {
        "ngram_range": _range("--ngrams", options["ngrams"]),
        "single_letters": options["single_letters"],
        "stem": options["stem"],
        "stop_words": _stop_words(options["stop_words"]),
        "signs": options["signs"],
        "segment": not options["no_segment"],
        "typos": not options["no_typos"],
    }
    if options["chars"] is None:
        return TextFeatures(**words, **both, encoder=options["encoder"])
    letters = TextBlock(analyzer="char_wb", ngram_range=_range("--chars", options["chars"]), **both)
    return TextFeatures(blocks=(TextBlock(**words, **both), letters), encoder=options["encoder"])


def _stop_words(given: str | None) -> str | list[str] | None:
    """The name of a language as it is, or the words of a file."""
    from beamwood.inputs.sources import text_lines
    from beamwood.inputs.words.stop_words import LANGUAGES

    if given is None or given in LANGUAGES:
        return given
    if not Path(given).is_file():
        raise SettingsError(
            f"--stop-words is {given}; expected one of {', '.join(LANGUAGES)}, or a file with one word per line."
        )
    return [line.strip() for _, line in text_lines(given) if line.strip()]


def _range(option: str, text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    try:
        return int(low), int(high or low)
    except ValueError:
        raise SettingsError(f"{option} is {text}; expected a number or a range, for example 1-2") from None


def _number(option: str, text: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise SettingsError(f"{option} is {text}; expected a number of texts or a share of them, for example 0.5")
