"""label_texts.py — texts of labels in, one sparse row per label out; and what words gain in, a line for people out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.errors import DataError
from beamwood.inputs.label_table import LabelTable
from beamwood.inputs.text import FittedText


@dataclass(frozen=True)
class LabelTexts:
    """Label keys and the text of each."""

    keys: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @classmethod
    def checked(cls, given: Any) -> LabelTexts:
        """A mapping from label keys to texts, or None; an empty text says nothing and is no error."""
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise DataError(
                f"label_texts is a {type(given).__name__}; expected a mapping from label keys to texts, like "
                "{'socks': 'warm things for feet'}."
            )
        for key, text in given.items():
            if not isinstance(key, str) or not key:
                raise DataError(f"label_texts has the key {key!r:.40}; expected a label key, a str that is not empty.")
            if not isinstance(text, str):
                raise DataError(
                    f"the text of label {key!r:.40} is a {type(text).__name__}; expected a str. Leave the label out, "
                    "or give '' where there is none."
                )
        return cls(tuple(given), tuple(given.values()))

    def matrix(self, fitted: FittedText, table: LabelTable, threads: int | None) -> Any:
        """Labels x features, in the order of the table; None where no label has a text."""
        if not self.keys:
            return None
        only = fitted.with_meaning(None)
        rows = only.transform(list(self.texts), threads=threads, learning=True).tocoo()
        number = np.array([table.id_of(key) for key in self.keys], np.int64)
        shape = (len(table), fitted.columns)
        return sp.csr_array(sp.coo_array((rows.data, (number[rows.row], rows.col)), shape=shape))


def read_label_texts(path: str | os.PathLike[str]) -> dict[str, str]:
    """Texts of labels from a file: lines of `key<TAB>text`, or, if its name ends in .json, one JSON object."""
    if not str(path).endswith(".json"):
        table = LabelTable.from_file(path)
        return dict(zip(table.keys, table.names, strict=True))
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON ({error}); expected an object of label keys and texts.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); expected a file of label texts.") from None
    LabelTexts.checked(found)
    return dict(found)


def in_words(lexical: Mapping[str, Any]) -> str:
    """What training found out about words of labels, in a line."""
    if "both" not in lexical:
        asked = "as asked for" if lexical.get("asked") else "for labels that have only a text"
        said = f"kept {asked}" if lexical["kept"] else "left out"
        return f"words of labels: {said}; {lexical['why']}" if "why" in lexical else f"words of labels: {said}"
    gains = ", ".join(f"{name} {before:.1f} → {lexical['both'][name]:.1f}" for name, before in lexical["trees"].items())
    why = "kept" if lexical["kept"] else f"left out, {lexical['why']}"
    return f"words of labels: {why}. On {lexical['rows']:,} held-out rows, without → with them: {gains}"
