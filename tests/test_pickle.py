"""Models and filters through pickle, copy, joblib and real processes: the same answers; only our loader runs."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import small_model, small_queries

import beamwood as bw

TEXTS = ["red wool socks", "blue cotton socks", "wool hat", "straw hat", "rubber boots", "leather boots"] * 3
LABELS = [["socks", "wool"], ["socks"], ["hats", "wool"], ["hats"], ["boots"], ["boots"]] * 3


@pytest.fixture(scope="module")
def trained() -> bw.Model:
    return bw.train_text(TEXTS, LABELS, preset="fast", progress=False)


@pytest.fixture(scope="module")
def file(trained: bw.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pickle") / "shop.bw"
    trained.save(path)
    return path


HELD: dict[str, Callable[[Path], bw.Model]] = {
    "mapped": bw.load,
    "read": lambda path: bw.load(path, memory="read"),
    "huge": lambda path: bw.load(path, memory="huge"),
    "compressed": lambda path: bw.load(path).compress("u8"),
    "renamed": lambda path: bw.load(path).with_names([f"n{i}" for i in range(4)]),
    "another engine": lambda path: bw.load(path).using(matcher="hash", layout="column", isa="scalar"),
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("held", HELD)
def test_a_pickled_model_gives_the_same_answers(held: str, protocol: int, file: Path) -> None:
    model = HELD[held](file)
    back = pickle.loads(pickle.dumps(model, protocol))
    assert back.search_many(TEXTS) == model.search_many(TEXTS)
    assert back.version == model.version
    assert back.info() == model.info()
    assert back.report == model.report
    assert pickle.loads(pickle.dumps(back, protocol)).version == model.version


def test_a_trained_model_takes_its_report_along(trained: bw.Model) -> None:
    assert isinstance(trained.report, bw.Report)
    assert pickle.loads(pickle.dumps(trained)).report == trained.report


def test_a_mapped_model_is_a_reference_and_any_other_its_bytes(file: Path) -> None:
    assert len(pickle.dumps(bw.load(file))) < 1000
    held = len(pickle.dumps(bw.load(file, memory="read")))
    assert file.stat().st_size < held < file.stat().st_size + 1000


def test_buffers_of_protocol_5_are_not_copied(file: Path) -> None:
    model = bw.load(file, memory="read")
    buffers: list[pickle.PickleBuffer] = []
    small = pickle.dumps(model, 5, buffer_callback=buffers.append)
    assert len(small) < 1000
    odd = bytearray(b"x") + bytearray(buffers[0].raw())  # a buffer that starts at an odd place
    for given in (buffers[0].raw(), memoryview(odd)[1:]):
        assert pickle.loads(small, buffers=[given]).search_many(TEXTS) == model.search_many(TEXTS)


def test_a_reference_to_another_or_a_missing_file_is_refused(trained: bw.Model, tmp_path: Path) -> None:
    path = tmp_path / "shop.bw"
    trained.save(path)
    pickled = pickle.dumps(bw.load(path))
    trained.compress("f16").save(path)
    with pytest.raises(bw.FormatError, match=r"has version .*; expected .*memory='read'"):
        pickle.loads(pickled)
    path.unlink()
    with pytest.raises(bw.MissingFileError, match=r"no such file here.*memory='read'"):
        pickle.loads(pickled)


def test_a_model_whose_file_was_replaced_travels_as_its_bytes(trained: bw.Model, tmp_path: Path) -> None:
    path = tmp_path / "shop.bw"
    trained.save(path)
    old = bw.load(path)
    trained.compress("f16").save(path)
    back = pickle.loads(pickle.dumps(old))
    assert back.version == old.version != bw.load(path).version
    assert back.search_many(TEXTS) == old.search_many(TEXTS)


def test_damaged_bytes_are_refused(file: Path) -> None:
    model = bw.load(file, memory="read")
    pickled = bytearray(pickle.dumps(model))
    weights = next(array for name, array in model.parts.sections.items() if name.endswith("/threads"))
    pickled[pickled.find(weights.tobytes())] ^= 1
    with pytest.raises(bw.FormatError):
        pickle.loads(bytes(pickled))


class Listed(pickle.Unpickler):
    """Notes what a pickle asks for by name."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.asked: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.asked.add(f"{module}.{name}")
        return super().find_class(module, name)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_runs_no_function_but_our_own(protocol: int, trained: bw.Model, file: Path) -> None:
    for given in (trained, bw.load(file), bw.load(file).compress("u8"), trained.filter(allow=["socks"])):
        reader = Listed(pickle.dumps(given, protocol))
        reader.load()
        own = {name for name in reader.asked if name.startswith("beamwood.")}
        assert own
        # pickles of protocol 2 cannot say bytes; Python makes them of a string
        assert reader.asked - own <= ({"_codecs.encode"} if protocol == 2 else set())


def test_copies_are_the_model_itself(trained: bw.Model) -> None:
    made = trained.filter(allow=["socks"])
    for thing in (trained, made):
        assert copy.copy(thing) is thing
        assert copy.deepcopy([thing])[0] is thing


def test_a_pickled_filter_meets_its_model_again(trained: bw.Model, file: Path) -> None:
    made = trained.filter(allow=["socks", "wool", "gone"], missing="ignore")
    model, back = pickle.loads(pickle.dumps((trained, made)))
    assert (len(back), back.labels, back.missing) == (2, 4, ("gone",))
    expected = trained.search_many(TEXTS, filter=made)
    assert model.search_many(TEXTS, filter=back) == expected
    assert bw.load(file).search_many(TEXTS, filter=back) == expected
    assert pickle.loads(pickle.dumps(back)).missing == ("gone",)
    with pytest.raises(bw.SettingsError, match="another model"):
        small_model().topk(small_queries(), filter=back)
    assert len(pickle.dumps(made)) < 400


@pytest.mark.parametrize("start", ["spawn", "forkserver", "fork"])
@pytest.mark.parametrize("memory", ["map", "read"])
def test_other_processes_answer_the_same(start: str, memory: str, file: Path) -> None:
    model = bw.load(file, memory=memory)
    made = model.filter(deny=["socks"])
    with multiprocessing.get_context(start).Pool(2) as pool:
        assert pool.map(model.search, TEXTS) == [model.search(text) for text in TEXTS]
        asked: Any = partial(model.search, filter=made)
        assert pool.map(asked, TEXTS) == [model.search(text, filter=made) for text in TEXTS]


def test_joblib_dumps_and_runs_models(trained: bw.Model, file: Path) -> None:
    joblib = pytest.importorskip("joblib")
    stream = io.BytesIO()
    joblib.dump(trained, stream)
    stream.seek(0)
    assert joblib.load(stream).search_many(TEXTS) == trained.search_many(TEXTS)
    for model in (trained, bw.load(file)):
        found = joblib.Parallel(2)(joblib.delayed(model.search)(text) for text in TEXTS)
        assert found == [model.search(text) for text in TEXTS]


def test_a_matrix_model_travels_too() -> None:
    model, X = small_model(), small_queries()
    found = pickle.loads(pickle.dumps(model)).topk(X)
    assert all(np.array_equal(one, other) for one, other in zip(found, model.topk(X), strict=True))
