"""ready.py — an argument, or None, in; an encoder that another package works out, without torch, out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from beamwood.encoders.onnx import OnnxEncoder
from beamwood.errors import SettingsError

_WORDLLAMA = (64, 128, 256)  # numbers per text: its vectors may be cut there


def wordllama(argument: str | None) -> Any:
    """256 numbers per text (or "64", "128"): the mean of vectors of word pieces. Its weights come in its wheel."""
    import wordllama as package

    if argument is not None and argument not in map(str, _WORDLLAMA):
        raise SettingsError(f"encoder is 'wordllama:{argument:.40}'; expected 64, 128 or 256 behind the colon.")
    inside = Path(package.__file__).parent  # where its own loader does not look for the tokenizer
    model = package.WordLlama.load(cache_dir=inside, disable_download=True)
    size = int(argument or _WORDLLAMA[-1])

    def encode(texts: list[str]) -> Any:
        return model.embed(texts)[:, :size]

    return encode


def model2vec(argument: str | None) -> Any:
    """The static vectors of a folder, or of a name on the Hugging Face Hub, which that package then fetches."""
    if argument is None:
        raise SettingsError("encoder is 'model2vec'; expected 'model2vec:FOLDER', or a name on the Hugging Face Hub.")
    from model2vec import StaticModel

    return StaticModel.from_pretrained(argument).encode


def onnx(argument: str | None) -> OnnxEncoder:
    """The model of a folder that holds model.onnx and tokenizer.json."""
    if argument is None:
        raise SettingsError("encoder is 'onnx'; expected 'onnx:FOLDER', a folder with model.onnx and tokenizer.json.")
    return OnnxEncoder.from_folder(argument)
