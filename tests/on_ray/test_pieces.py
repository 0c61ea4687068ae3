"""Layers cut into pieces: wherever the cuts lie, the joined weights have the bits of the whole layer."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw
from beamwood.ray import learner as learners
from beamwood.ray.learned import LearnedPiece, mapped, written
from beamwood.ray.pieces import cut, joined, piece, rows_of
from beamwood.training.weights import LayerProblem, Learned, Watch, learn_here

LAW = [
    {"preset": "fast"},
    {"preset": "fast", "negatives": "man"},
    {"preset": "fast", "negatives": "tfn+man", "loss": "logistic", "eps": 1e-4},
    {"preset": "balanced", "trees": 2, "max_leaf": 4},
    {"preset": "fast", "loss": "hinge", "top_weights": 5, "prune": 0.0},
    {"preset": "fast", "tree": "huffman"},
    {"preset": "fast", "tree": "unbalanced", "branching": 3, "max_leaf": 2},
]


def problem(seed: int = 0, graded: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = sp.random_array((700, 300), density=0.03, rng=rng, dtype=np.float32, format="csr")
    Y = sp.csr_array(sp.random_array((700, 150), density=0.015, rng=rng, dtype=np.float32))
    Y = sp.csr_array(Y + sp.csr_array(np.eye(150, dtype=np.float32)[np.arange(700) % 150]))
    Y.data[:] = rng.integers(1, 4, Y.nnz) if graded else 1
    return X, Y


class InPieces:
    """Learns a layer piece by piece in this process, each through a pickle."""

    def __init__(self, pieces: int, most_entries: int = 1 << 30) -> None:
        self.pieces, self.most_entries, self.cuts = pieces, most_entries, 0

    def sent(self, learned: LearnedPiece) -> LearnedPiece:
        return learned

    def __call__(self, layer: LayerProblem, threads: int, watch: Watch | None) -> Learned:
        where = cut(layer, self.pieces, self.most_entries)
        self.cuts += len(where) - 1
        learned = []
        for number in reversed(range(len(where))):
            part = pickle.loads(pickle.dumps(piece(layer, where, number)))
            whole = learn_here(part.with_rows(rows_of(layer.X, part.rows)), threads, None)
            learned.append(self.sent(LearnedPiece.of(whole)))
        return joined(layer, where, learned[::-1])


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
@pytest.mark.parametrize("settings", LAW, ids=str)
@pytest.mark.parametrize("pieces", [2, 7, 1000])
def test_pieces_have_the_bits_of_the_whole(settings: dict[str, Any], pieces: int) -> None:
    X, Y = problem()
    learner = InPieces(pieces)
    whole = bw.train(X, Y, progress=False, **settings)
    assert bw.train(X, Y, progress=False, learner=learner, **settings).version == whole.version
    assert learner.cuts


class InFiles(InPieces):
    """The same, with weights and finished trees in files of a folder; or without one, where it cannot be written to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(7)
        self.folder, self.trees = folder, 0

    def sent(self, learned: LearnedPiece) -> LearnedPiece:
        kept: LearnedPiece = pickle.loads(pickle.dumps(learned.in_folder(str(self.folder)))).arrived()
        assert isinstance(kept.weights, str) == self.folder.is_dir()
        return kept

    def put_aside(self, arrays: dict[str, Any]) -> dict[str, Any]:
        self.trees += 1
        return mapped(written(self.folder, arrays), verify=False) if self.folder.is_dir() else arrays


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("settings", LAW, ids=str)
def test_weights_and_trees_in_files_are_the_same_bits_and_leave_nothing(
    settings: dict[str, Any], there: bool, tmp_path: Path
) -> None:
    X, Y = problem()
    learner = InFiles(tmp_path / ("" if there else "nowhere"))
    given = {"lexical": True, "progress": False, **settings}
    made = bw.train(X, Y, learner=learner, **given)
    made.save(tmp_path / "made.bw")
    bw.train(X, Y, **given).save(tmp_path / "whole.bw")
    assert (tmp_path / "made.bw").read_bytes() == (tmp_path / "whole.bw").read_bytes()
    assert learner.trees
    assert [each.tobytes() for each in made.topk(X)] == [
        each.tobytes() for each in bw.load(tmp_path / "whole.bw").topk(X)
    ]
    assert sorted(os.listdir(tmp_path)) == ["made.bw", "whole.bw"]


def test_a_file_of_weights_that_is_not_seen_here_is_said_in_one_line(tmp_path: Path) -> None:
    gone = LearnedPiece(np.ones(1, np.int64), np.ones(1, np.float32), str(tmp_path / "piece-0.stage"))
    with pytest.raises(bw.FormatError, match=r"piece-0\.stage is not there on .*; expected the same folder on every"):
        gone.take()


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
def test_what_rows_and_labels_count_is_cut_with_them() -> None:
    X, Y = problem(1, graded=True)
    given = {"preset": "fast", "progress": False, "row_weights": np.linspace(0.5, 2, 700), "rare_weight": 1.0}
    given |= {"negatives": "user", "negatives_matrix": problem(2)[1]}
    assert bw.train(X, Y, learner=InPieces(9), **given).version == bw.train(X, Y, **given).version


def test_a_given_tree_whose_nodes_lie_in_no_order_is_cut_too() -> None:
    X, Y = problem()
    rng = np.random.default_rng(3)
    layer = None

    def keep(found: LayerProblem, threads: int, watch: Watch | None) -> Learned:
        nonlocal layer
        layer = found
        return learn_here(found, threads, watch)

    bw.train(X, Y, "fast", progress=False, learner=keep)
    assert layer is not None
    mixed = LayerProblem(
        layer.X, layer.reaching, layer.positives, rng.permutation(layer.parent), layer.row_weights, layer.solver
    )
    whole, apart = learn_here(mixed, 1, None), InPieces(5)(mixed, 1, None)
    assert (whole[0] != apart[0]).nnz == 0
    assert whole[1].tobytes() == apart[1].tobytes()


def test_a_shared_folder_without_room_is_said_and_finished_trees_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(learners, "written", full)
    learner, tree = learners.Learner(None, tmp_path), {"tree0/layer0/threads": np.arange(4, dtype=np.uint32)}
    assert learner.put_aside(tree) is tree
    with pytest.raises(
        bw.DataError, match=r"cannot be written \(No space left on device\); expected room for the rows"
    ):
        learner._written(problem()[0])
    learner.close()
    assert not os.listdir(tmp_path)


def test_a_piece_has_only_the_rows_that_it_needs_and_says_what_it_takes() -> None:
    X, Y = problem()
    seen: list[tuple[int, int]] = []

    def look(layer: LayerProblem, threads: int, watch: Watch | None) -> Learned:
        where = cut(layer, 4, 1 << 30)
        seen.extend((len(piece(layer, where, n).rows), piece(layer, where, n).bytes_needed) for n in range(len(where)))
        return learn_here(layer, threads, watch)

    bw.train(X, Y, "fast", progress=False, learner=look)
    rows = [count for count, _ in seen]
    assert rows[0] == 700  # the root's only piece
    assert len(rows) > 3
    assert max(rows[1:]) < 600
    assert min(needed for _, needed in seen) > 100 << 20


def test_a_learner_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(bw.SettingsError, match="learner is a str; expected a function"):
        bw.train(*problem(), learner="cluster", progress=False)
