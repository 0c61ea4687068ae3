"""Headers of .npy and .npz files that lie: refused before anything is allocated."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from beamwood import SettingsError, TextBlock, TextFeatures
from beamwood.inputs.npz import Unreadable, read_npy, read_npz


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("latin-1")
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + data


def described(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(described("(1,)"), bytes(4), version=3), "a header of version"),
        (npy(described("(1,)", "[('a', '<f4')]"), bytes(4)), "describes no plain array"),
        (npy("[1]", bytes(4)), "describes no plain array"),
        (npy(described("(-1,)")), "has the shape"),
        (npy(described("[1]"), bytes(4)), "has the shape"),
        (npy(described("(2,)"), bytes(4)), "the array"),
        (npy(described("(1,)", "'<U1'"), bytes(4)), "has dtype"),
        (b"\x93NUMPY\x01\x00\xff\xff", "a header of version"),
        (b"PK", "not a readable .npy file"),
    ],
)
def test_a_header_that_lies_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(Unreadable, match=message):
        read_npy(data)


def test_plain_arrays_of_both_versions_are_read() -> None:
    for version in (1, 2):
        found = read_npy(npy(described("(2, 1)"), np.array([1, 2], "<f4").tobytes(), version))
        assert found.tolist() == [[1.0], [2.0]]


def archive(**members: Any) -> bytes:
    saved = io.BytesIO()
    sp.save_npz(saved, sp.csr_matrix(np.eye(2)), compressed=False)
    with zipfile.ZipFile(saved) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    for name, value in members.items():
        made = io.BytesIO()
        np.save(made, value)
        parts[f"{name}.npy"] = made.getvalue()
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as new:
        for name, data in parts.items():
            new.writestr(name, data)
    return changed.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": np.array([2])}, "expected two sizes"),
        ({"shape": np.array([2, -1])}, "expected two sizes"),
        ({"shape": np.array([[2, 2]])}, "expected 1 dimensions"),
        ({"format": np.array(b"dok")}, "its format is"),
    ],
)
def test_a_matrix_whose_parts_lie_is_refused(change: dict[str, Any], message: str) -> None:
    assert read_npz(archive()).shape == (2, 2)
    with pytest.raises(Unreadable, match=message):
        read_npz(archive(**change))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"analyzer": "space"}, "lowercase is True; expected False"),
        ({"max_tokens": 0}, "max_tokens is 0; expected a whole number from 1 on"),
        ({"max_tokens": 5}, "max_tokens is 5; expected None, except with the analyzers"),
        ({"max_features": 0.5}, "max_features is 0.5; expected a whole number"),
    ],
)
def test_text_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        TextBlock(**settings)


def test_vectorizers_that_cannot_be_taken_over_are_refused() -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import FeatureUnion

    def fitted(**settings: Any) -> Any:
        return TfidfVectorizer(**settings).fit(["red wool", "blue wool"])

    weighed = FeatureUnion([("words", fitted())], transformer_weights={"words": 2.0})
    gap, spoiled, files = fitted(), fitted(), fitted()
    gap.vocabulary_ = {"red": 0, "blue": 5}
    spoiled._tfidf.idf_ = np.array([np.inf, 1.0, 1.0])
    files.input = "filename"
    for given, message in (
        (weighed, "transformer_weights, which are not supported"),
        (gap, "columns must be 0..n-1, each once"),
        (spoiled, "idf_ must hold one finite number a term"),
        (files, "input='filename' is not supported"),
    ):
        with pytest.raises(SettingsError, match=message):
            TextFeatures.from_sklearn(given)
