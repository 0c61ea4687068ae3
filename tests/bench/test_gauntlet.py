"""The benchmark for everybody: a plan is checked, a small one really runs, and its report holds what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from beamwood.bench import gauntlet, paper, tables
from beamwood.bench.plan import Plan, plan_of, read_plan
from beamwood.bench.rivals import READY, Omikuji, Pecos, RivalError
from beamwood.bench.sets import STAND_INS, load_set
from beamwood.errors import DataError, SettingsError
from beamwood.training.progress import Silent

pytestmark = pytest.mark.filterwarnings("ignore:.* labels have no row")  # a stand-in of a few hundred rows

SMALL = {
    "sets": ["amazon-670k"],
    "scale": 0.0005,
    "branching": [4],
    "matchers": ["binary", "hash"],
    "threads": [1, 2],
    "beams": [5, 10],
    "k": 5,
    "queries": 40,
    "online": 10,
    "rounds": 2,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run."""
    out = tmp_path_factory.mktemp("report")
    gauntlet.run(plan_of(SMALL), out, data=None, progress=Silent())
    return out


def test_a_run_writes_a_report_with_every_measure(folder: Path) -> None:
    report = json.loads((folder / "report.json").read_text())
    (case,) = report["cases"]
    assert case["same_bits"] == {"engines": 5, "queries": 40, "differences": 0}
    assert {(v["matcher"], v["layout"]) for v in case["variants"]} == {
        ("auto", "auto"),
        *((m, layout) for m in ("binary", "hash") for layout in ("chunk", "column")),
    }
    for variant in case["variants"]:
        assert variant["batch"] > 0
        assert 0 < variant["online"]["p50"] <= variant["online"]["p95"] <= variant["online"]["p99"]
    assert set(case["unsorted"]) == {"binary", "hash"}
    assert [entry["beam"] for entry in case["beams"]] == [5, 10]
    assert len(case["layers"]) == len(case["model"]["nodes"][0])
    assert all(size > 0 for size in case["memory"].values())


def test_the_report_has_the_papers_table_in_its_own_shape(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    table = text[text.index("| Branching factor 4") :].split("\n\n")[0]
    names = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    half = ["Binary Search MSCM", "Binary Search", "Hash MSCM", "Hash", "beamwood's default"]
    assert names == ["**Batch**", *half, "**Online**", *half]


def test_plots_are_written_as_png_and_svg(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    names = {"speedup-batch", "speedup-online", "default", "threads", "beams", "layers", "memory"}
    found = {path.name for path in (folder / "plots").iterdir()}
    assert found == {f"{name}.{suffix}" for name in names for suffix in ("png", "svg")}
    assert (folder / "plots" / "threads.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_run_of_the_same_plan_keeps_what_was_measured(folder: Path) -> None:
    before = json.loads((folder / "report.json").read_text())["cases"]
    again = gauntlet.run(plan_of(SMALL), folder, data=None, progress=Silent())
    assert again["cases"] == before


def test_a_users_own_set_is_used_before_a_stand_in(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "eurlex-4k").mkdir()
    for part, columns in (("X.trn", 20), ("Y.trn", 6), ("X.tst", 20), ("Y.tst", 6)):
        values = (rng.random((30, columns)) < 0.3).astype(np.float32)
        sp.save_npz(tmp_path / "eurlex-4k" / f"{part}.npz", sp.csr_matrix(values))
    data = load_set("eurlex-4k", folder=tmp_path, scale=1.0, queries=10, seed=0)
    assert data.origin == "npz files"
    assert data.X.shape == (30, 20)


def test_stand_ins_have_the_shape_of_the_papers_sets() -> None:
    assert set(STAND_INS) == set(paper.SETS)
    data = load_set("wiki10-31k", folder=None, scale=0.02, queries=50, seed=1)
    about = data.describe()
    assert about["labels"] == int(30_938 * 0.02)
    assert about["nonzeros_per_row"] == pytest.approx(673, rel=0.25)
    assert about["labels_per_row"] == pytest.approx(18.6, rel=0.25)


def test_the_papers_speed_up_is_its_baseline_over_its_mscm() -> None:
    assert paper.speed_up("eurlex-4k", 32, "batch", "hash") == pytest.approx(1.32 / 0.13)
    assert paper.speed_up("another", 32, "batch", "hash") is None


def test_tables_leave_out_what_was_not_measured() -> None:
    assert tables.cell(None, "batch", "hash", "chunk") is None
    assert tables.speed_up(None, "batch", "hash") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sets": []}, "sets = ().*a list of names"),
        ({"sets": "eurlex-4k"}, "a list of names"),
        ({"branching": [1]}, "2 or more"),
        ({"matchers": ["guess"]}, "march, binary, hash, dense"),
        ({"scale": 0}, r"\(0, 1\]"),
        ({"scale": {"eurlex-4k": 7}}, r"\(0, 1\]"),
        ({"rivals": ["nobody"]}, "libpecos, napkinxc, omikuji"),
        ({"beams": [0]}, "1 or more"),
        ({"rounds": True}, "1 or more"),
        ({"speed": 3}, "has the key 'speed'"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_key_and_what_is_expected(change: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        plan_of({**SMALL, **change})


def test_a_plan_is_read_from_toml_and_json(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(SMALL))
    (tmp_path / "plan.toml").write_text('sets = ["a"]\n[scale]\na = 0.5\n')
    assert read_plan(tmp_path / "plan.json") == plan_of(SMALL)
    assert read_plan(tmp_path / "plan.toml") == Plan(sets=("a",), scale={"a": 0.5})


@pytest.mark.parametrize(("name", "text"), [("a.toml", "sets = ["), ("a.json", "{"), ("a.json", "[]")])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SettingsError):
        read_plan(tmp_path / name)
    with pytest.raises(SettingsError, match="cannot be read"):
        read_plan(tmp_path / "missing.toml")


def test_a_plan_with_rivals_is_refused_before_work_where_they_are_not_installed(tmp_path: Path) -> None:
    plan = plan_of({**SMALL, "rivals": ["libpecos"]})
    with pytest.raises(RivalError, match=r"install.py libpecos.*--rivals build/rivals"):
        gauntlet.run(plan, tmp_path / "out", data=None, progress=Silent())
    with pytest.raises(RivalError, match="holds no installed rival"):
        gauntlet.run(plan, tmp_path / "out", data=None, progress=Silent(), rivals=tmp_path)
    assert not (tmp_path / "out").exists()


WORKER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "leave":
        sys.exit(3)
    reply = {"seconds": 2.5, "microseconds": [1.0], **request}
    print(json.dumps({"error": "no"} if request["do"] == "fail" else reply), flush=True)
"""


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    """A folder of rivals as bench/rivals/install.py leaves it, with a worker that repeats what it is asked."""
    (tmp_path / "worker.py").write_text(WORKER)
    for name in ("libpecos", "omikuji"):
        (tmp_path / name).mkdir()
        command = [sys.executable, "-u", str(tmp_path / "worker.py")]
        (tmp_path / name / READY).write_text(json.dumps({"worker": command}))
    return tmp_path


def test_a_rival_is_asked_in_its_own_process(homes: Path, tmp_path: Path) -> None:
    with Pecos(homes) as rival:
        assert rival.versions()["do"] == "hello"
        assert rival.train(tmp_path / "x", tmp_path / "y", tmp_path / "m", branching=4) == 2.5
        assert rival.load("hash", tmp_path)["type"] == "HASH_CHUNKED"
        assert rival.online("hash", 10, 5, rows=1) == rival.native("hash", 10, 5, rows=1) == [1.0]
        rival.queries(tmp_path / "x")
        rival.answers("hash", 10, 5, tmp_path / "out.npz")
        rival.unload("hash")
    with Omikuji(homes) as rival:
        assert rival.load(tmp_path)["folder"] == str(tmp_path)
        assert rival.online(10, 5, rows=1) == [1.0]
        rival.answers(10, 5, tmp_path / "out.npz")


def test_a_rival_that_fails_or_ends_says_so(homes: Path) -> None:
    with Pecos(homes) as rival:
        with pytest.raises(RivalError, match="libpecos, 'fail': no"):
            rival.ask("fail")
        with pytest.raises(RivalError, match=r"ended during 'leave' \(exit code 3\)"):
            rival.ask("leave")


def test_an_unknown_set_names_the_stand_ins() -> None:
    with pytest.raises(DataError, match="eurlex-4k"):
        load_set("nothing", folder=None, scale=1.0, queries=1, seed=0)


def test_the_plans_in_the_repository_are_valid() -> None:
    for name in ("small.toml", "full.toml"):
        plan = read_plan(Path(__file__).parents[2] / "bench" / "plans" / name)
        assert set(plan.sets) >= set(paper.SETS)
