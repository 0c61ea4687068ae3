"""text.py — strings in, sparse float32 rows out: TF-IDF of words or runs of letters, blocks side by side.

The words, weights and options are scikit-learn's (`TfidfVectorizer`), so a fitted one can be brought in with
`TextFeatures.from_sklearn`. Loops are native; what is fitted is a handful of flat arrays, fit to be mapped.

Words and lower case are those of the Unicode version in `_core.unicode_version`, the same on every Python, so
that a model answers the same everywhere. A Python that knows a newer Unicode (3.11: 14.0, 3.12: 15.0,
3.13: 15.1, 3.14: 16.0) takes characters that are new in it for letters where this module sees none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.encoders.encoder import Encoder, name_of
from beamwood.encoders.learnt import size_of
from beamwood.encoders.meaning import Meaning
from beamwood.encoders.named import SHOWN, check_name, is_learnt
from beamwood.errors import DataError, FormatError, SettingsError
from beamwood.inputs.arguments import as_texts
from beamwood.inputs.arguments import workers as workers_of
from beamwood.inputs.sklearn_text import read_blocks
from beamwood.inputs.text_block import NORMS, TextBlock
from beamwood.inputs.words.fit_block import LETTERS, MOST_LETTERS, fit_block
from beamwood.inputs.words.tokenizer import Tokenizer

ARRAY_NAMES = ("terms", "offsets", "slots", "idf")
_DTYPES = {"terms": np.uint8, "offsets": np.uint64, "slots": np.uint64, "idf": np.float64, LETTERS: np.uint32}
_TEXTS_A_CALL = 16_384


@dataclass(frozen=True, kw_only=True)
class TextFeatures(TextBlock):
    """How texts become features: one block described by the fields themselves, or several listed in `blocks`.

    TextFeatures(ngram_range=(1, 2), min_df=2)
    TextFeatures(blocks=(TextBlock(), TextBlock(analyzer="char_wb", ngram_range=(3, 5), min_df=3)))
    TextFeatures(encoder="wordllama")

    encoder: what makes a block of numbers of each text, behind its words: a function from a list of texts to an array
             with a row per text; the name of one that a package provides ("wordllama", "model2vec:FOLDER",
             "onnx:FOLDER", entry points of the group beamwood.encoders); or "svd", which is learnt from the texts
             ("svd:64" for 64 numbers). A model stores the name and what it made of fixed texts, never code. Servers and
             threads that share a model call it at once.

    >>> fitted = TextFeatures().fit(["red wool", "blue wool"])
    >>> fitted.vocabulary(), fitted.transform(["red boots"]).toarray().tolist()
    (['blue', 'red', 'wool'], [[0.0, 1.0, 0.0]])
    """

    blocks: tuple[TextBlock, ...] = ()
    encoder: str | Callable[[list[str]], Any] | None = None

    def __post_init__(self) -> None:
        """Refuses a mixture of the two ways to describe blocks."""
        super().__post_init__()
        _check_encoder(self.encoder)
        if not isinstance(self.blocks, (list, tuple)):
            raise SettingsError(
                f"blocks is a {type(self.blocks).__name__}; expected a tuple: blocks=(TextBlock(…), …)."
            )
        object.__setattr__(self, "blocks", tuple(self.blocks))
        if any(type(block) is not TextBlock for block in self.blocks):
            raise SettingsError("blocks holds something else; expected only TextBlock: blocks=(TextBlock(…), …).")
        if self.blocks and self.one_block() != TextBlock():
            raise SettingsError(
                "both blocks and fields of one block are given; expected one of them. Put the fields into a TextBlock."
            )
        if len({block.tokenizer for block in self.each()}) > 1:
            raise SettingsError(
                "blocks have different tokenizers; expected the same tokenizer in every block, or none."
            )

    def one_block(self) -> TextBlock:
        """The block that the fields themselves describe."""
        return TextBlock(**{field.name: getattr(self, field.name) for field in fields(TextBlock)})

    def each(self) -> tuple[TextBlock, ...]:
        """The blocks, left to right."""
        return self.blocks or (self.one_block(),)

    def facts(self) -> dict[str, Any]:
        """As plain values, which tell apart what would give other rows."""
        facts = {name: value for name, value in asdict(replace(self, encoder=None)).items() if name != "encoder"}
        named = self.encoder if self.encoder is None or isinstance(self.encoder, str) else name_of(self.encoder)
        return facts if named is None else {**facts, "encoder": named}

    def fit(self, texts: Iterable[str], threads: int | None = None) -> FittedText:
        """Learns vocabulary and weights from any iterable of str, read once, some thousands at a time.

        Words and what an encoder makes weigh the same; train_text has held-out rows choose.
        """
        if self.encoder is None:
            return self.fit_words(texts, threads)
        texts = list(texts) if isinstance(texts, Iterator) else as_texts(texts)
        words = self.fit_words(texts, threads)
        return words.with_meaning(Meaning.of(self.encoder, words.transform(texts, threads, learning=True), 0, threads))

    def fit_words(self, texts: Iterable[str], threads: int | None = None) -> FittedText:
        """The same without the encoder."""
        blocks = self.each()
        counter = _core.TermCounter(tuple(block.term_rules() for block in blocks))
        workers = workers_of(threads)
        for first, part in _parts(texts, _tokenizer_of(blocks)):
            _native_on_texts(counter.add, part, first, workers)
        if counter.texts == 0:
            raise DataError("there are no texts to fit on; expected at least one.")
        arrays = tuple(fit_block(counter, number, block) for number, block in enumerate(blocks))
        return FittedText(blocks, arrays)

    @staticmethod
    def from_sklearn(vectorizer: Any) -> FittedText:
        """Takes over a fitted TfidfVectorizer or CountVectorizer, or a FeatureUnion or list of them."""
        pairs = read_blocks(vectorizer)
        return FittedText(tuple(block for block, _ in pairs), tuple(arrays for _, arrays in pairs))


class FittedText:
    """Turns texts into rows; made by `TextFeatures.fit`. Never changes, and may be used from many threads."""

    def __init__(
        self,
        blocks: tuple[TextBlock, ...],
        arrays: tuple[dict[str, npt.NDArray[Any]], ...],
        norm: str | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        """Takes blocks with their arrays (terms, offsets, slots, idf, and letters for typing errors); reads no pages.

        norm: what the whole row is divided by, once its blocks stand side by side: None, "l1" or "l2".
        meaning: what adds a block of numbers behind the words.
        """
        self.meaning = meaning
        self._blocks = blocks
        self._norm = norm
        self._arrays = arrays
        self._tokenizer = _tokenizer_of(blocks)
        rows = zip(blocks, arrays, strict=True)
        names, none = (*ARRAY_NAMES, LETTERS), np.empty(0, np.uint32)
        try:
            self._vectorizer = _core.Vectorizer(
                tuple((b.term_rules(), b.weigh_rules(), *(a.get(name, none) for name in names)) for b, a in rows),
                NORMS[norm],
            )
        except ValueError as error:
            raise FormatError(f"{error}. Fit the text features again or restore the file from a copy.") from error

    @property
    def vectorizer(self) -> Any:
        """The native object, for native code that goes from text to answer in one call."""
        return self._vectorizer

    @property
    def columns(self) -> int:
        """How many features there are."""
        return self.words + (0 if self.meaning is None else self.meaning.source.columns)

    @property
    def words(self) -> int:
        """How many of them, the first ones, are words."""
        return int(self._vectorizer.columns)

    @property
    def blocks(self) -> tuple[TextBlock, ...]:
        """How the columns were made, left to right."""
        return self._blocks

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The caller's own way to find words, if there is one; without its function when it came from a file."""
        return self._tokenizer

    def with_tokenizer(self, tokenizer: Any) -> FittedText:
        """The same with the function that its words are found with, which no file can hold."""
        if self._tokenizer is None:
            raise SettingsError("tokenizer is given to text features that split words themselves; expected None.")
        bound = self._tokenizer.bound(tokenizer)
        blocks = tuple(replace(block, tokenizer=bound) for block in self._blocks)
        return FittedText(blocks, self._arrays, self._norm, self.meaning)

    @property
    def encoder(self) -> Encoder | None:
        """What makes vectors of texts, if there is one that was not learnt."""
        return None if self.meaning is None else self.meaning.encoder

    def with_meaning(self, meaning: Meaning | None) -> FittedText:
        """The same words with what adds a block of numbers to them, or (None) without."""
        return FittedText(self._blocks, self._arrays, self._norm, meaning)

    def with_encoder(self, encoder: Any) -> FittedText:
        """The same with the function of its encoder, which no file can hold; or by name."""
        if self.meaning is None or self.encoder is None:
            raise SettingsError("encoder is given to text features that have none of their own; expected None.")
        return self.with_meaning(self.meaning.bound(encoder))

    def known(self, rows: Any) -> npt.NDArray[np.int64]:
        """How much of each text is known: its terms in the vocabulary, and one for what an encoder made of it."""
        count: npt.NDArray[np.int64] = np.diff(rows.indptr).astype(np.int64)
        if self.meaning is None:
            return count
        row = np.repeat(np.arange(len(count)), count)
        words = np.bincount(row[rows.indices < self.words], minlength=len(count))
        known: npt.NDArray[np.int64] = words + (count > words)
        return known

    def given(self, text: str) -> str:
        """What native code takes for the text: itself, or the words that a tokenizer finds in it."""
        return text if self._tokenizer is None else self._tokenizer.joined(text)

    def __copy__(self) -> FittedText:
        """Itself: it never changes."""
        return self

    def __deepcopy__(self, memo: Any) -> FittedText:
        """Itself, for the same reason."""
        return self

    def __repr__(self) -> str:
        """For people at a prompt."""
        return f"FittedText(columns={self.columns:,}, blocks={len(self._blocks)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles (for worker processes) go through the plain arrays, without the function of a tokenizer."""
        return FittedText.from_arrays, (self.settings(), self.arrays())

    def transform(self, texts: Iterable[str], threads: int | None = None, *, learning: bool = False) -> sp.csr_array:
        """One row per text: csr float32 with rising ids. A text without a known term gives an empty row.

        learning: these are texts that a model is trained on, where a word that is not in the vocabulary was left out on
        purpose (min_df, max_features) and is no typing error.
        """
        if self.meaning is None:
            return self._word_rows(texts, threads, learning)
        texts = list(texts) if isinstance(texts, Iterator) else as_texts(texts)
        words = self._word_rows(texts, threads, learning)
        joined: sp.csr_array = self.meaning.joined(words, self.meaning.vectors(words, texts, threads))
        return joined

    def _word_rows(self, texts: Iterable[str], threads: int | None, learning: bool) -> sp.csr_array:
        workers = workers_of(threads)
        cut = _parts(texts, self._tokenizer)
        parts = [
            _native_on_texts(self._vectorizer.transform, part, first, workers, not learning) for first, part in cut
        ]
        lengths = _joined([part[0] for part in parts], np.int64)
        indices = _joined([part[1] for part in parts], np.uint32).view(np.int32)
        values = _joined([part[2] for part in parts], np.float32)
        index = np.int32 if len(indices) < 2**31 else np.int64
        indptr = np.zeros(len(lengths) + 1, dtype=index)
        np.cumsum(lengths, out=indptr[1:])
        rows = sp.csr_array(
            (values, indices.astype(index, copy=False), indptr),
            shape=(len(lengths), self.words),
            copy=False,
        )
        rows.has_sorted_indices = True
        rows.has_canonical_format = True
        return rows

    def vocabulary(self) -> list[str]:
        """The term of each column."""
        terms: list[str] = []
        for arrays in self._arrays:
            blob, offsets = arrays["terms"].tobytes(), arrays["offsets"].tolist()
            try:
                terms += [blob[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(offsets)]
            except UnicodeDecodeError as error:
                raise FormatError(
                    f"the stored vocabulary is damaged ({error}). Restore the file from a copy."
                ) from error
        return terms + [SHOWN] * (self.columns - self.words)

    def term(self, column: int) -> str:
        """The term of one column; all columns of an encoder are called the same."""
        if self.words <= column < self.columns:
            return SHOWN
        for arrays in self._arrays:
            offsets = arrays["offsets"]
            if column < len(offsets) - 1:
                start, end = int(offsets[column]), int(offsets[column + 1])
                return arrays["terms"][start:end].tobytes().decode("utf-8", "replace")
            column -= len(offsets) - 1
        raise FormatError(f"the model is damaged: it has no term {column}. Restore the file from a copy.")

    def settings(self) -> dict[str, Any]:
        """What `from_arrays` needs beside the arrays, fit for JSON."""
        norm = {} if self._norm is None else {"norm": self._norm}
        more = norm if self.meaning is None else {**norm, "encoder": self.meaning.described()}
        return {"unicode": _core.unicode_version, "blocks": [block.described() for block in self._blocks], **more}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All arrays by name: `<block>/terms`, `<block>/offsets`, `<block>/slots`, `<block>/idf`, `<block>/letters`."""
        more = {} if self.meaning is None else self.meaning.arrays()
        return {f"{i}/{name}": array for i, arrays in enumerate(self._arrays) for name, array in arrays.items()} | more

    @staticmethod
    def from_arrays(settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> FittedText:
        """The inverse of `settings()` and `arrays()`. Arrays are used in place; mapped ones stay on disk."""
        try:
            blocks = tuple(TextBlock.read(block) for block in settings["blocks"])
            norm = settings.get("norm")
            if norm not in NORMS:
                raise SettingsError(f"norm is {norm!r}")
        except (KeyError, TypeError, AttributeError, SettingsError) as error:
            raise FormatError(f"the text settings cannot be read: {error}. Restore the file from a copy.") from error
        taken = []
        for number, block in enumerate(blocks):
            names = (*ARRAY_NAMES, LETTERS) if block.typos else ARRAY_NAMES
            named = {name: arrays.get(f"{number}/{name}") for name in names}
            for name in {"idf", LETTERS} & named.keys():  # all are 1, or no term has a letter
                if named[name] is None:  # a file holds no empty arrays
                    named[name] = np.empty(0, _DTYPES[name])
            taken.append({name: _checked_array(f"{number}/{name}", name, array) for name, array in named.items()})
        words = FittedText(blocks, tuple(taken), norm)
        try:
            return words.with_meaning(Meaning.read(settings.get("encoder"), arrays, words.words))
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"the encoder cannot be read: {error}. Restore the file from a copy.") from error


def _check_encoder(encoder: Any) -> None:
    if isinstance(encoder, str):
        check_name(encoder)
        if is_learnt(encoder):
            size_of(encoder)
    elif encoder is not None:
        name_of(encoder)


def _tokenizer_of(blocks: tuple[TextBlock, ...]) -> Tokenizer | None:
    """The one of all blocks."""
    first = blocks[0].tokenizer if blocks else None
    return first if isinstance(first, Tokenizer) else None


def _parts(texts: Iterable[str], tokenizer: Tokenizer | None) -> Iterator[tuple[int, list[str]]]:
    """(number of the first text, lists of texts), so that an endless stream needs little memory."""
    if not isinstance(texts, Iterator):
        texts = as_texts(texts)
    rest, first = iter(texts), 0
    while part := list(islice(rest, _TEXTS_A_CALL)):
        whole = tokenizer is not None and all(isinstance(text, str) for text in part)
        yield first, [tokenizer.joined(text) for text in part] if whole and tokenizer is not None else part
        first += len(part)


def _native_on_texts(call: Any, part: list[str], first: int, workers: int, *more: Any) -> Any:
    """Calls native code on some texts; a text that is no str is reported with its number."""
    try:
        return call(part, workers, *more)
    except TypeError:
        for number, text in enumerate(part):
            if not isinstance(text, str):
                found = f"{type(text).__name__} ({text!r:.40})"
                raise DataError(
                    f"text {first + number} is a {found}; expected a str. Decode bytes, fill missing texts with ''."
                ) from None
        raise


def _joined(parts: list[npt.NDArray[Any]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)


def _checked_array(path: str, name: str, array: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    if array is None or array.dtype != _DTYPES[name] or array.ndim != 1 or not array.flags.c_contiguous:
        found = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
        raise FormatError(
            f"array {path} is {found}; expected a contiguous list of {np.dtype(_DTYPES[name]).name}. "
            "Restore the file from a copy."
        )
    if name == LETTERS and len(array) > MOST_LETTERS:
        raise FormatError(
            f"array {path} has {len(array):,} letters; expected at most {MOST_LETTERS}. Restore the file from a copy."
        )
    return array
