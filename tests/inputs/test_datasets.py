"""Claims about the embedded data."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from beamwood import DataError, MissingFileError, SettingsError, datasets

EMBEDDED = Path(__file__).resolve().parents[2] / "data"


def write_part(folder: Path, part: str, text: str, labels: list[str]) -> None:
    line = json.dumps({"text": text, "labels": labels}) + "\n"
    (folder / f"{part}.jsonl.gz").write_bytes(gzip.compress(line.encode()))


def test_the_embedded_data_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    if not EMBEDDED.is_dir():
        pytest.skip("the data is in the source only")
    monkeypatch.setenv(datasets.ENVIRONMENT, str(EMBEDDED))
    loaded = datasets.load("library-subjects")
    assert (len(loaded.train_texts), len(loaded.test_texts)) == (199_560, 10_000)
    assert (len(loaded.train_labels), len(loaded.test_labels)) == (199_560, 10_000)
    assert len({key for row in loaded.train_labels for key in row}) == 19_913
    assert (EMBEDDED / "library-subjects" / "README.md").is_file()


def test_a_folder_can_be_named_and_missing_data_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_part(tmp_path, "train", "jazz in New Orleans", ["jazz"])
    with pytest.raises(MissingFileError, match=r"test\.jsonl\.gz: there is no such file"):
        datasets.load("library-subjects", path=tmp_path)
    write_part(tmp_path, "test", "sourdough", ["bread", "yeast"])
    loaded = datasets.load("library-subjects", path=tmp_path)
    assert loaded == datasets.Dataset(
        "library-subjects", ["jazz in New Orleans"], [["jazz"]], ["sourdough"], [["bread", "yeast"]]
    )
    monkeypatch.setenv(datasets.ENVIRONMENT, str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=f"set {datasets.ENVIRONMENT}"):
        datasets.load("library-subjects")
    with pytest.raises(SettingsError, match="name is 'mnist'; expected one of"):
        datasets.load("mnist")


def test_the_data_is_found_from_a_folder_inside_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, inside = tmp_path / "data" / "library-subjects", tmp_path / "examples" / "deep"
    data.mkdir(parents=True)
    inside.mkdir(parents=True)
    write_part(data, "train", "jazz in New Orleans", ["jazz"])
    write_part(data, "test", "sourdough", ["bread"])
    monkeypatch.delenv(datasets.ENVIRONMENT, raising=False)
    monkeypatch.setattr(
        datasets, "__file__", str(tmp_path / "env/lib/python/site-packages/beamwood/inputs/datasets.py")
    )
    monkeypatch.chdir(inside)
    assert datasets.load("library-subjects").train_texts == ["jazz in New Orleans"]
