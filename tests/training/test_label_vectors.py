"""Claims about label vectors: PIFA by hand, against scipy, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from beamwood.errors import DataError, SettingsError
from beamwood.training.label_vectors import label_vectors

X = sp.csr_matrix(np.array([[3.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]], dtype=np.float32))
Y = sp.csr_matrix(np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]], dtype=np.float32))


def plain_pifa(X: sp.csr_matrix, Y: sp.csr_matrix) -> np.ndarray:
    """The definition, dense and in double."""
    y = Y.toarray().astype(np.float64)
    length = np.linalg.norm(y, axis=1, keepdims=True)
    sums = np.divide(y, length, out=np.zeros_like(y), where=length > 0).T @ X.toarray().astype(np.float64)
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    units: np.ndarray = np.divide(sums, length, out=np.zeros_like(sums), where=length > 0)
    return units


def random_rows(seed: int, rows: int, columns: int, density: float) -> Any:
    return sp.random(rows, columns, density, "csr", np.float32, random_state=seed)


def test_pifa_by_hand() -> None:
    half = 4.0 / np.sqrt(2.0)
    length = np.sqrt(9.0 + half * half)
    expected = [[3.0 / length, half / length, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    got = label_vectors(X, Y)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got.toarray(), expected, rtol=1e-6)


def test_a_label_without_rows_has_an_empty_vector() -> None:
    assert label_vectors(X, Y)[2].nnz == 0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(0, 30),
    features=st.integers(1, 200),
    labels=st.integers(1, 20),
)
def test_pifa_equals_its_definition(seed: int, rows: int, features: int, labels: int) -> None:
    x, y = random_rows(seed, rows, features, 0.2), random_rows(seed + 1, rows, labels, 0.2)
    got = label_vectors(x, y)
    assert got.has_canonical_format
    np.testing.assert_allclose(got.toarray(), plain_pifa(x, y), atol=2e-6)


def test_same_bits_for_any_number_of_threads() -> None:
    x, y = random_rows(0, 500, 5000, 0.02), random_rows(1, 500, 300, 0.02)
    one, three = label_vectors(x, y, threads=1), label_vectors(x, y, threads=3)
    assert (one.indptr == three.indptr).all()
    assert (one.indices == three.indices).all()
    assert one.data.tobytes() == three.data.tobytes()


def test_explicit_zeros_of_y_are_not_positives() -> None:
    y = Y.copy()
    y.data[0] = 0.0
    assert label_vectors(X, y).toarray()[0].tolist() == [0.0, 1.0, 0.0]


def test_given_features_are_scaled_to_length_one() -> None:
    given_features = sp.csr_matrix(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0]]))
    got = label_vectors(X, Y, kind="features", label_features=given_features).toarray()
    assert got.tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, 0.0], [0.0, 1.0]]


def test_both_kinds_side_by_side_weigh_the_same() -> None:
    given_features = sp.csr_matrix(np.array([[7.0], [0.0], [2.0]]))
    got = label_vectors(X, Y, kind="pifa+features", label_features=given_features).toarray()
    assert got.shape == (3, 4)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(got[0, 3], np.sqrt(0.5), rtol=1e-6)
    assert got[2].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_duplicate_and_unsorted_entries_are_summed() -> None:
    x = sp.csr_matrix((np.float32([1, 1, 1]), [2, 0, 2], [0, 3, 3, 3]), shape=(3, 3))
    expected = np.array([1, 0, 2]) / np.sqrt(5)
    np.testing.assert_allclose(label_vectors(x, Y).toarray()[0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X[:2], Y, "X has 2 rows and Y has 3"),
        (X.toarray()[0], Y, "X has 1 rows and Y has 3"),
        (X, -Y, "expected 0 or more"),
        (X * np.float32("nan"), Y, "has nan in row"),
        (X.astype(np.complex64), Y, "real numbers"),
    ],
)
def test_bad_data_is_refused(x: object, y: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        label_vectors(x, y)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match="not known"):
        label_vectors(X, Y, kind="pfia")
    with pytest.raises(SettingsError, match="has no label_features"):
        label_vectors(X, Y, kind="features")
    with pytest.raises(SettingsError, match="has label_features; expected none"):
        label_vectors(X, Y, label_features=X)
    with pytest.raises(DataError, match="has 2 rows for 3 labels"):
        label_vectors(X, Y, kind="features", label_features=X[:2])
