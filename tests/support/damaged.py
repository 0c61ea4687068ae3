"""damaged.py — what people hand in by mistake or on purpose, by name: matrices, arrays, texts, lists of labels, paths.

Each maker gives a fresh value. A case whose name begins with "odd" is unusual, and a function may take it; every other
matrix must be refused. None may crash a public function, or make it take memory that the value does not warrant.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

Make = Callable[[], Any]
ROWS = 6


def plain(columns: int, form: str = "csr", kind: str = "matrix") -> Any:
    """A matrix with nothing wrong with it: about a third of its cells are filled with ones and twos."""
    rng = np.random.default_rng(5)
    dense = (rng.random((ROWS, columns)) < 0.3) * rng.integers(1, 3, (ROWS, columns))
    dense[:, 0] = 1
    coo = sp.coo_array(dense.astype(np.float32))
    made = getattr(sp, f"{form}_{kind}")(coo.tobsr(blocksize=(2, 2)) if form == "bsr" else coo)
    if form in ("csr", "csc"):
        made.sort_indices()
    return made


def put(at: int, value: Any, dtype: Any = None) -> Callable[[Any], Any]:
    """Replaces one entry of an array."""

    def change(array: Any) -> Any:
        array = np.array(array, dtype=dtype)
        array[at] = value
        return array

    return change


def edited(columns: int, form: str, field: str, change: Callable[[Any], Any], kind: str = "matrix") -> Make:
    """A matrix with one of its arrays replaced behind scipy's back."""

    def make() -> Any:
        X = plain(columns, form, kind)
        setattr(X, field, change(getattr(X, field)))
        return X

    return make


_IDS: dict[str, Callable[[Any], Any]] = {
    "an id of the size": put(3, 10**4),
    "a huge id": put(3, 10**8),
    "an id that wraps in 32 bits": put(3, 2**32 + 1, np.int64),
    "an id near 2^63": put(3, 2**63 - 1, np.int64),
    "an unsigned id of 2^64": put(3, 2**64 - 1, np.uint64),
    "a negative id": put(3, -1),
    "a very negative id": put(3, -(2**62), np.int64),
    "ids that are floats": lambda a: a + 0.5,
    "ids that are objects": lambda a: a.astype(object),
    "ids that are strings": lambda a: a.astype(str),
    "ids of two dimensions": lambda a: a.reshape(1, -1),
    "ids in a list": lambda a: a.tolist(),
    "no ids": lambda a: None,
    "too few ids": lambda a: a[:-1],
    "odd: ids of 64 bits": lambda a: a.astype(np.int64),
    "odd: unsigned ids": lambda a: a.astype(np.uint64),
    "odd: ids of the other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "odd: ids with gaps between them": lambda a: np.repeat(a, 2)[::2],
}
_OFFSETS: dict[str, Callable[[Any], Any]] = {
    "offsets that fall": put(2, 10**4),
    "offsets below zero": put(1, -5),
    "offsets that wrap": put(2, 2**32, np.int64),
    "odd: a first offset that is not 0": put(0, 1),
    "a last offset beyond the values": put(-1, 10**6),
    "a last offset near 2^63": put(-1, 2**63 - 1, np.int64),
    "too few offsets": lambda a: a[:-1],
    "too many offsets": lambda a: np.append(a, a[-1]),
    "no offsets": lambda a: a[:0],
    "offsets None": lambda a: None,
    "offsets that are floats": lambda a: a.astype(float),
}
_VALUES: dict[str, Callable[[Any], Any]] = {
    "too few values": lambda a: a[:-1],
    "no values": lambda a: None,
    "values in a list": lambda a: a.tolist(),
    "values of two dimensions": lambda a: a.reshape(1, -1),
    "complex values": lambda a: a + 1j,
    "objects as values": lambda a: a.astype(object),
    "strings as values": lambda a: a.astype(str),
    "dates as values": lambda a: a.astype("datetime64[s]"),
    "NaN": put(2, np.nan),
    "infinity": put(2, np.inf),
    "minus infinity": put(2, -np.inf, np.float64),
    "a value beyond float32": put(2, 1e39, np.float64),
    "odd: float16": lambda a: a.astype(np.float16),
    "odd: long double": lambda a: a.astype(np.longdouble),
    "odd: the other byte order": lambda a: a.astype(">f4"),
    "odd: bools": lambda a: a.astype(bool),
}


def _compressed(columns: int) -> dict[str, Make]:
    cases: dict[str, Make] = {}
    for form, kind in (("csr", "matrix"), ("csr", "array"), ("csc", "matrix"), ("bsr", "array")):
        for field, changes in (("indices", _IDS), ("indptr", _OFFSETS)):
            cases |= {
                f"{name}, {form}_{kind}": edited(columns, form, field, change, kind) for name, change in changes.items()
            }
    for form, kind in (("csr", "matrix"), ("csr", "array"), ("csc", "array"), ("coo", "matrix")):
        cases |= {
            f"{name}, {form}_{kind}": edited(columns, form, "data", change, kind) for name, change in _VALUES.items()
        }
    return cases


def _coo(columns: int, change: Callable[[Any], Any], axis: int) -> Make:
    def make() -> Any:
        X = plain(columns, "coo", "array")
        coords = list(X.coords)
        coords[axis] = change(coords[axis])
        X.coords = tuple(coords)
        return X

    return make


def _one_row(columns: int, change: Callable[[Any], Any]) -> Make:
    def make() -> Any:
        row = sp.coo_array(np.ones(columns, np.float32))
        row.coords = (change(row.coords[0]),)
        return row

    return make


def _unsorted(columns: int) -> Any:
    X = plain(columns)
    X.indices, X.data = X.indices[::-1].copy(), X.data[::-1].copy()
    X.indptr = X.indptr[-1] - X.indptr[::-1]
    return X


def _lil(columns: int, rows: Any = None, data: Any = None) -> Make:
    def make() -> Any:
        X = plain(columns, "lil")
        X.rows[1] = X.rows[1] if rows is None else rows
        X.data[1] = X.data[1] if data is None else data
        return X

    return make


def _dok(columns: int, key: Any, value: Any = 1.0) -> Make:
    def make() -> Any:
        X = plain(columns, "dok")
        X._dict[key] = value
        return X

    return make


def _mapped(columns: int) -> Any:
    """CSR whose arrays are memory maps that may not be written to."""
    X = plain(columns, "csr", "array")
    with tempfile.TemporaryDirectory() as folder:
        for field in ("data", "indices", "indptr"):
            path = Path(folder) / field
            np.save(path, getattr(X, field))
            setattr(X, field, np.load(f"{path}.npy", mmap_mode="r"))
    return X


def _empty(shape: tuple[int, ...], form: str = "coo") -> Make:
    def make() -> Any:
        ids = tuple(np.zeros(1, np.int64) for _ in shape)
        made = sp.coo_array((np.ones(1, np.float32), ids), shape=shape)
        return made if form == "coo" else getattr(sp, f"{form}_array")(made)

    return make


def sparse(columns: int) -> dict[str, Make]:
    """Damaged and odd scipy matrices of ROWS rows."""
    wide = edited(columns, "bsr", "data", lambda a: a[:, :, :1])
    cases = _compressed(columns)
    cases |= {f"{name}, coo": _coo(columns, change, 1) for name, change in _IDS.items() if "list" not in name}
    cases |= {f"{name}, rows of coo": _coo(columns, change, 0) for name, change in _IDS.items() if "id" in name[:6]}
    cases |= {f"{name}, one row": _one_row(columns, change) for name, change in _IDS.items()}
    return cases | {
        "blocks that do not fit": edited(columns, "bsr", "data", lambda a: np.ones((len(a), 4, 7), np.float32)),
        "blocks of nothing": edited(columns, "bsr", "data", lambda a: a[:, :0, :]),
        "odd: blocks of half the width": wide,
        "blocks of two dimensions": edited(columns, "bsr", "data", lambda a: a[0]),
        "diagonals twice": edited(columns, "dia", "offsets", np.zeros_like),
        "too few diagonals": edited(columns, "dia", "data", lambda a: a[:-1]),
        "diagonals that are floats": edited(columns, "dia", "offsets", lambda a: a + 0.5),
        "diagonals of one dimension": edited(columns, "dia", "data", lambda a: a[0]),
        "odd: a diagonal outside": edited(columns, "dia", "offsets", put(0, -(2**62), np.int64)),
        "odd: diagonals": lambda: plain(columns, "dia"),
        "list of wild ids": _lil(columns, [0, 10**8], [1.0, 1.0]),
        "list of negative ids": _lil(columns, [-1], [1.0]),
        "list of huge ids": _lil(columns, [2**70], [1.0]),
        "list of strings": _lil(columns, ["a"], [1.0]),
        "list with too few values": _lil(columns, [0, 1], [1.0]),
        "list that is none": _lil(columns, 7),
        "list of objects": _lil(columns, [0], [object()]),
        "list of NaN": _lil(columns, [0], [float("nan")]),
        "odd: lists": lambda: plain(columns, "lil"),
        "dictionary with a wild key": _dok(columns, (0, 10**8)),
        "dictionary with a negative key": _dok(columns, (-1, 0)),
        "dictionary with a huge key": _dok(columns, (2**70, 0)),
        "dictionary with a key of one": _dok(columns, (0,)),
        "dictionary with a string": _dok(columns, ("a", 0)),
        "dictionary with an object": _dok(columns, (0, 0), object()),
        "odd: a dictionary": lambda: plain(columns, "dok", "array"),
        "odd: unsorted": lambda: _unsorted(columns),
        "odd: doubled": lambda: sp.csr_matrix((np.ones(ROWS), np.zeros(ROWS, int), np.arange(ROWS + 1))),
        "odd: memory maps": lambda: _mapped(columns),
        "odd: no rows": lambda: sp.csr_matrix((0, columns), dtype=np.float32),
        "odd: no columns": lambda: sp.csr_matrix((ROWS, 0), dtype=np.float32),
        "odd: nothing": lambda: sp.csr_matrix((0, 0), dtype=np.float32),
        "odd: one row of one dimension": lambda: sp.coo_array(np.ones(columns)),
        "three dimensions": lambda: sp.coo_array(np.ones((2, 2, 2))),
        "2^40 rows": _empty((2**40, columns)),
        "2^62 rows": _empty((2**62, columns)),
        "2^40 columns": _empty((ROWS, 2**40)),
        "2^31 columns": _empty((ROWS, 2**31), "csr"),
        "2^40 rows of columns": _empty((2**40, columns), "csc"),
        "odd: 2^30 columns": _empty((ROWS, 2**30), "csr"),
    }


def dense(columns: int) -> dict[str, Make]:
    """Arrays, lists and other things in place of a matrix."""
    ones = np.ones((ROWS, columns))
    return {
        "three dimensions": lambda: np.ones((ROWS, 2, columns)),
        "no dimension": lambda: np.float32(1),
        "complex": lambda: ones + 1j,
        "objects": lambda: ones.astype(object),
        "strings": lambda: ones.astype(str),
        "bytes": lambda: ones.astype("S3"),
        "dates": lambda: ones.astype("datetime64[s]"),
        "records": lambda: np.zeros(ROWS, [("a", int), ("b", float)]),
        "NaN": lambda: ones * np.nan,
        "infinity": lambda: ones * np.inf,
        "beyond float32": lambda: ones * 1e39,
        "masked": lambda: np.ma.masked_equal(ones, 1),
        "ragged": lambda: [[1.0] * columns, [1.0]],
        "lists of None": lambda: [[None] * columns] * ROWS,
        "lists of huge numbers": lambda: [[10**400] * columns] * ROWS,
        "lists of texts": lambda: ["a text"] * ROWS,
        "a text": lambda: "a text",
        "some bytes": lambda: b"bytes",
        "a number": lambda: 7,
        "NaN as a number": lambda: float("nan"),
        "None": lambda: None,
        "a dictionary": lambda: {"a": 1},
        "a set": lambda: {1, 2},
        "a generator": lambda: iter(()),
        "a long range": lambda: range(10**12),
        "an object": object,
        "an object with a broken __array__": type("Broken", (), {"__array__": lambda *_, **__: 1 / 0}),
        "a type": lambda: int,
        "odd: an empty list": list,
        "odd: a list of an empty list": lambda: [[]],
        "odd: one dimension": lambda: np.ones(columns),
        "odd: Fortran's order": lambda: np.asfortranarray(ones),
        "odd: float16": lambda: ones.astype(np.float16),
        "odd: a numpy matrix": lambda: np.asmatrix(ones) if columns < 0 else ones[::1],
        "odd: read only": lambda: np.broadcast_to(np.float32(1), (ROWS, columns)),
    }


def texts() -> dict[str, Make]:
    """In place of a list of ROWS texts."""
    rest = ["red wool"] * (ROWS - 1)
    return {
        "None": lambda: None,
        "a number": lambda: 7,
        "one text": lambda: "one text",
        "bytes": lambda: b"bytes",
        "a list with None": lambda: [None, *rest],
        "a list with NaN": lambda: [float("nan"), *rest],
        "a list with a number": lambda: [1, *rest],
        "a list with bytes": lambda: [b"x", *rest],
        "a list with a list": lambda: [["x"], *rest],
        "a dictionary of numbers": lambda: dict.fromkeys(range(ROWS), "a"),
        "an object": object,
        "a matrix": lambda: plain(4),
        "odd: no texts": list,
        "odd: empty texts": lambda: [""] * ROWS,
        "odd: a generator": lambda: (text for text in ["red wool", *rest]),
        "odd: an array": lambda: np.array(["red wool", *rest]),
        "odd: an array of objects": lambda: np.array(["red wool", *rest], object),
        "odd: lone surrogates": lambda: ["\ud800 wool", *rest],
        "odd: zero bytes": lambda: ["a\0b wool", *rest],
        "odd: a long word": lambda: ["w" * 100_000 + " wool", *rest],
    }


def label_keys() -> dict[str, Make]:
    """In place of a list of label keys for each of ROWS texts."""
    rest = [["wool"]] * (ROWS - 1)
    return {
        "None": lambda: None,
        "a number": lambda: 7,
        "one string": lambda: "wool",
        "strings": lambda: ["wool"] * ROWS,
        "a list with None": lambda: [None, *rest],
        "a list with a number": lambda: [7, *rest],
        "a key None": lambda: [[None], *rest],
        "a key that is a number": lambda: [[7], *rest],
        "a key that is a list": lambda: [[["a"]], *rest],
        "a key that is bytes": lambda: [[b"a"], *rest],
        "too few": lambda: rest,
        "an object": object,
        "odd: a generator of generators": lambda: ((key for key in row) for row in [["red"], *rest]),
        "odd: an empty row": lambda: [[], *rest],
        "odd: empty keys": lambda: [[""], *rest],
        "odd: a key twice": lambda: [["wool", "wool"], *rest],
        "odd: lone surrogates": lambda: [["\ud800"], *rest],
        "odd: zero bytes": lambda: [["a\0b"], *rest],
        "odd: sets": lambda: [{"wool"}, *rest],
    }


def label_ids() -> dict[str, Make]:
    """In place of a list of label ids for each of ROWS rows."""
    rest = [[0], [1], [2], [0], [1]]
    return {
        "one dimension": lambda: list(range(ROWS)),
        "a negative id": lambda: [[-1], *rest],
        "a huge id": lambda: [[2**31], *rest],
        "an id beyond 64 bits": lambda: [[2**70], *rest],
        "an id with a large gap": lambda: [[2**30], *rest],
        "an id twice": lambda: [[1, 1], *rest],
        "floats": lambda: [[0.5], *rest],
        "bools": lambda: [[True], *rest],
        "strings": lambda: [["a"], *rest],
        "None as an id": lambda: [[None], *rest],
        "a list of lists": lambda: [[[1]], *rest],
        "a row that is None": lambda: [*rest, None],
        "zeros and ones": lambda: [[0, 1, 0], [1, 0, 0], *rest[:4]],
        "odd: both of two": lambda: [[0, 1]] * ROWS,
        "odd: ragged": lambda: [[0, 2], [], *rest[:4]],
        "odd: sets": lambda: [{0, 2}, *rest],
        "odd: arrays": lambda: [np.array([0, 2], np.uint8), *rest],
        "odd: tuples": lambda: tuple((0, 2) for _ in range(ROWS)),
    }


def paths(folder: Path) -> dict[str, Make]:
    """In place of the path of a file to read: every one is refused."""
    (folder / "empty").write_bytes(b"")
    (folder / "noise").write_bytes(bytes(range(256)) * 8)
    (folder / "zeros").write_bytes(bytes(4096))
    return {
        "None": lambda: None,
        "a number": lambda: 10**6,
        "an object": object,
        "an empty name": lambda: "",
        "a name with a zero byte": lambda: "a\0b",
        "a name of 300 letters": lambda: str(folder / ("n" * 300)),
        "a name of 100,000 letters": lambda: "n" * 100_000,
        "a lone surrogate": lambda: "\ud800",
        "a folder": lambda: folder,
        "nothing there": lambda: folder / "nothing",
        "below a file": lambda: folder / "noise" / "x",
        "an empty file": lambda: folder / "empty",
        "noise": lambda: folder / "noise",
        "zeros": lambda: folder / "zeros",
        "a text stream": lambda: __import__("io").StringIO("a"),
    }
