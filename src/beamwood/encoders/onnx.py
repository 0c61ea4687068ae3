"""onnx.py — an ONNX session and a tokenizer in, an encoder out: texts to means of a model's vectors of tokens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from beamwood.errors import MissingFileError, SettingsError
from beamwood.inputs.arguments import positive

_PLACES = ("model.onnx", "onnx/model.onnx")
_FED = ("input_ids", "attention_mask", "token_type_ids")
POOLING = ("mean", "first")


class OnnxEncoder:
    """Texts in, an array with a row per text out, by a model that gives a vector per token, or one per text.

    OnnxEncoder.from_folder("all-MiniLM-L6-v2")
    OnnxEncoder(onnxruntime.InferenceSession("model.onnx"), tokenizers.Tokenizer.from_file("tokenizer.json"))
    """

    def __init__(
        self, session: Any, tokenizer: Any, *, pooling: str = "mean", most_tokens: int = 256, batch: int = 32
    ) -> None:
        """Takes a session of onnxruntime and a tokenizer of the package tokenizers.

        pooling:     what one vector is made of where the model gives one per token: their "mean", or the "first".
        most_tokens: of a text; the rest is not looked at.
        batch:       texts in one run.
        """
        if pooling not in POOLING:
            raise SettingsError(f"pooling is {pooling!r:.40}; expected 'mean' or 'first'.")
        self._pooling, self._batch = pooling, positive(batch, "batch")
        try:
            self._fed = [each.name for each in session.get_inputs()]
            tokenizer.enable_truncation(positive(most_tokens, "most_tokens"))
            tokenizer.enable_padding()
        except AttributeError as error:
            raise SettingsError(
                f"session is a {type(session).__name__} and tokenizer a {type(tokenizer).__name__}; expected an "
                f"onnxruntime.InferenceSession and a tokenizers.Tokenizer ({error})."
            ) from None
        foreign = [name for name in self._fed if name not in _FED]
        if foreign:
            raise SettingsError(f"the ONNX model takes {', '.join(foreign)}; expected only {', '.join(_FED)}.")
        self._session, self._tokenizer = session, tokenizer

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str], **how: Any) -> OnnxEncoder:
        """The model of a folder that holds model.onnx (or onnx/model.onnx) and tokenizer.json."""
        from onnxruntime import InferenceSession
        from tokenizers import Tokenizer

        found = [Path(folder) / place for place in _PLACES if (Path(folder) / place).is_file()]
        words = Path(folder) / "tokenizer.json"
        if not found or not words.is_file():
            missing = words if found else Path(folder) / _PLACES[0]
            raise MissingFileError(f"There is no {missing}; expected model.onnx and tokenizer.json.", str(missing))
        session = InferenceSession(str(found[0]), providers=["CPUExecutionProvider"])
        return cls(session, Tokenizer.from_file(str(words)), **how)

    def __call__(self, texts: list[str]) -> Any:
        """One row of float32 per text."""
        parts = [self._encoded(texts[at : at + self._batch]) for at in range(0, len(texts), self._batch)]
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def _encoded(self, texts: list[str]) -> Any:
        found = self._tokenizer.encode_batch(texts)
        there = np.array([each.attention_mask for each in found], np.int64)
        fed = {
            "input_ids": np.array([each.ids for each in found], np.int64),
            "attention_mask": there,
            "token_type_ids": np.array([each.type_ids for each in found], np.int64),
        }
        vectors = np.asarray(self._session.run(None, {name: fed[name] for name in self._fed})[0], np.float32)
        if vectors.ndim != 3:  # one per text
            return vectors
        if self._pooling == "first":
            return vectors[:, 0]
        mask = there[:, :, None].astype(np.float32)
        return (vectors * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)
