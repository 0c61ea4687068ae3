"""Scoring with real Ray workers: the answers of one machine, from texts and sparse columns, to datasets and Parquet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beamwood as bw
import beamwood.ray as cluster_of

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

TEXTS = ["red wool socks", "blue cotton socks", "wool hat", "straw hat", "rubber boots", "leather boots", "unseen"]
LABELS = [["socks", "wool"], ["socks"], ["hats", "wool"], ["hats"], ["boots"], ["boots"]]
ROWS = [{"sku": i, "text": TEXTS[i % 7] + " " + TEXTS[i % 5]} for i in range(500)]

Answers = dict[int, list[tuple[str, float]]]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scored") / "shop.bw"
    bw.train_text(TEXTS[:6] * 3, LABELS * 3, preset="fast", progress=False).save(path)
    return path


def expected(model: bw.Model, **how: Any) -> Answers:
    found = model.search_many([str(row["text"]) for row in ROWS], **how)
    return {i: [(hit.key, hit.score) for hit in hits] for i, hits in enumerate(found)}


def as_answers(rows: list[dict[str, Any]]) -> Answers:
    return {row["sku"]: list(zip(row["keys"], row["scores"], strict=True)) for row in rows}


def test_texts_of_files_become_parquet_with_the_answers_of_one_machine(
    cluster: Any, file: Path, tmp_path: Path
) -> None:
    cluster.be(2)
    with open(tmp_path / "rows.jsonl", "w") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in ROWS)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    for name in ("rows.jsonl", "rows.parquet"):
        output = tmp_path / f"{name}.answers"
        done = cluster_of.predict(tmp_path / name, file, output, k=3, rows_per_batch=64, rows_per_file=200)
        assert done == len(ROWS)
        rows = pq.read_table(output).to_pylist()
        assert (len(rows), as_answers(rows)) == (len(ROWS), expected(bw.load(file), k=3))
        assert sorted(rows[0]) == ["keys", "scores", "sku"]
    assert not list(tmp_path.glob("*.partial"))


def test_a_dataset_of_sparse_columns_filters_and_least_scores(cluster: Any, file: Path) -> None:
    import ray

    cluster.be(1)
    model = bw.load(file)
    X = model.text.transform([str(row["text"]) for row in ROWS])
    lists = [
        {"sku": i, "at": X[[i]].indices.tolist(), "by": X[[i]].data.tolist(), "text": ROWS[i]["text"]}
        for i in range(len(ROWS))
    ]
    rows = ray.data.from_arrow(pa.Table.from_pylist(lists))
    only = model.filter(deny=["socks"])
    scored = cluster_of.predict(rows, bw.Lazy(file), k=2, filter=only, min_score=0.1, text_column="text", keep=["sku"])
    assert as_answers(scored.take_all()) == expected(model, k=2, filter=only, min_score=0.1)
    scored = cluster_of.predict(rows, model, k=2, sparse_columns=("at", "by"), keep=["sku"])
    labels, scores = model.topk(X, k=2)
    found = as_answers(scored.take_all())
    for i in range(len(ROWS)):
        keys = [model.key(int(label)) for label in labels[i] if label >= 0]
        assert [key for key, _ in found[i]] == keys
        assert np.array([score for _, score in found[i]], np.float32).tobytes() == scores[i][: len(keys)].tobytes()


def test_the_command_line_scores_on_a_cluster(nodes: Any, file: Path, tmp_path: Path) -> None:
    nodes.be(1)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    words = ["predict", str(file), "rows.parquet", "-o", "answers", "-k", "3", "--id-column", "sku", "--deny", "wool"]
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    ran = subprocess.run(
        [sys.executable, "-m", "beamwood", *words, "--ray", nodes.address],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "answers: answers of 500 rows\n"
    assert len(ran.stderr.splitlines()) < 3, ran.stderr  # Ray's log has some twenty
    model = bw.load(file)
    assert as_answers(pq.read_table(tmp_path / "answers").to_pylist()) == expected(
        model, k=3, filter=model.filter(deny=["wool"])
    )


def test_what_is_wrong_is_said_in_one_line_and_leaves_nothing(cluster: Any, file: Path, tmp_path: Path) -> None:
    cluster.be(1)
    pq.write_table(pa.table({"words": ["a"], "keys": ["b"], "text": [1]}), tmp_path / "rows.parquet")

    def refused(match: str, **how: Any) -> None:
        given = {"data": tmp_path / "rows.parquet", "model": file, "output": tmp_path / "out", **how}
        with pytest.raises(bw.BeamwoodError, match=match) as caught:
            cluster_of.predict(**given)
        assert "\n" not in str(caught.value)
        assert not [name for name in os.listdir(tmp_path) if "out" in name]

    refused("no column 'title'; expected one of words, keys, text", text_column="title")
    refused("have a column 'keys'; expected none", text_column="words")
    refused("column 'text' is of type int64; expected text", keep=["words"])
    refused("nowhere.parquet is not there", data=tmp_path / "nowhere.parquet")
    refused("tells no format", data=file)
    refused("gone.bw cannot be opened on", model=tmp_path / "gone.bw", text_column="words", keep=[])
    refused("expected a new folder", output=tmp_path / "rows.parquet")
    refused("data is a int", data=3)
    refused("in the memory of this process", model=bw.train_text(TEXTS[:6], LABELS, preset="fast", progress=False))
