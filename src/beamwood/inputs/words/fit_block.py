"""fit_block.py — counted terms and the options of a block in, the block's arrays out: terms that are kept, weighed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import DataError, SettingsError
from beamwood.inputs.text_block import TextBlock, is_int

LETTERS = "letters"  # of a block that counts typing errors: code points that may have been meant
MOST_LETTERS = 64


def fit_block(counter: Any, number: int, block: TextBlock) -> dict[str, npt.NDArray[Any]]:
    """Chooses the terms of one block as scikit-learn does, and weighs them."""
    count = counter.texts
    fewest, most = (df if is_int(df) else df * count for df in (block.min_df, block.max_df))
    if most < fewest:
        raise SettingsError(
            f"max_df is {block.max_df} ({most:g} texts); expected at least min_df={block.min_df} ({fewest:g} texts)."
        )
    terms, offsets, texts, places = counter.finish(number, float(fewest), float(most))
    if block.max_features is not None and len(texts) > block.max_features:
        # As in scikit-learn, so that ties fall as they do there: numpy's default sort, columns in term order.
        keep = np.sort((-(texts if block.binary else places)).argsort()[: block.max_features])
        terms, offsets = _taken(terms, offsets, keep)
        texts = texts[keep]
    if len(texts) == 0:
        raise DataError(
            f"no terms are left of {count:,} texts; expected at least one. Lower min_df (now {block.min_df}), "
            f"raise max_df (now {block.max_df}), or set single_letters=True if the words have one letter."
        )
    idf = np.empty(0, dtype=np.float64)
    if block.use_idf:
        smooth = int(block.smooth_idf)
        idf = np.log((count + smooth) / (texts + smooth)) + 1.0
    arrays = {"terms": terms, "offsets": offsets, "slots": _core.make_slots(terms, offsets), "idf": idf}
    return {**arrays, LETTERS: _letters(terms)} if block.typos else arrays


def _letters(terms: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """The code points that terms have most often, letters only: what may have been meant by a wrong one."""
    codes = np.frombuffer(terms.tobytes().decode("utf-8", "surrogatepass").encode("utf-32-le", "surrogatepass"), "<u4")
    found, times = np.unique(codes, return_counts=True)
    letters = np.array([_is_letter(int(code)) for code in found], dtype=bool)
    found, times = found[letters], times[letters]
    most = np.argsort(-times, kind="stable")[:MOST_LETTERS]
    return np.sort(found[most]).astype(np.uint32)


def _is_letter(code: int) -> bool:
    """Whether a code point can be written by mistake: of a word, no digit or sign, no script without spaces."""
    if code < 128:
        return chr(code).isalpha()
    return bool(_core.character(code)[0] & 0b110001 == 1)


def _taken(
    terms: npt.NDArray[np.uint8], offsets: npt.NDArray[np.uint64], keep: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    """The terms at rising positions `keep`, packed again."""
    lengths = np.diff(offsets).astype(np.int64)
    kept = np.zeros(len(lengths), dtype=bool)
    kept[keep] = True
    new_offsets = np.zeros(len(keep) + 1, dtype=np.uint64)
    np.cumsum(lengths[keep], out=new_offsets[1:])
    return np.ascontiguousarray(terms[np.repeat(kept, lengths)]), new_offsets
