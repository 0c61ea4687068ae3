"""test_draft.py — saves that are killed, refused, aimed at links and odd names in; what the disk holds then out."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.models import small_model

import beamwood as bw

NOBODY = 65534
WRITER = """
import sys
from pathlib import Path
from beamwood.storage.draft import draft_beside
with draft_beside(Path(sys.argv[1])) as draft:
    draft.write(b"half")
    draft.flush()
    print("writing", flush=True)
    sys.stdin.readline()
    draft.write(b" and half")
"""


@contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process in the middle of writing a file."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        try:
            yield process
        finally:
            process.kill()


def drafts(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".draft"))


@pytest.mark.parametrize("name", ["model.bw", "x" * 250, "ä" * 120])
def test_the_draft_of_a_killed_writer_is_removed_by_the_next_one(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with writer(path) as process:
        process.kill()
        process.wait()
    assert len(drafts(tmp_path)) == 1
    small_model().save(path)
    assert os.listdir(tmp_path) == [name]
    assert bw.load(path, verify=True).n_labels == 40


def test_the_draft_of_a_living_writer_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    with writer(path) as process:
        (own,) = drafts(tmp_path)
        small_model().save(path)
        assert drafts(tmp_path) == [own]
        process.communicate("go on\n")
        assert process.returncode == 0
    assert path.read_bytes() == b"half and half"
    assert drafts(tmp_path) == []


def test_only_drafts_of_the_same_name_are_removed(tmp_path: Path) -> None:
    kept = [".other.bw.abcdefgh.draft", ".model.bw.notes.draft", ".model.bw.abcdefgh.txt", "model.bw.abcdefgh.draft"]
    for name in kept:
        (tmp_path / name).touch()
    (tmp_path / ".model.bw.abcdefgh.draft").touch()
    small_model().save(tmp_path / "model.bw")
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "model.bw"])


def test_writers_that_come_and_go_do_not_take_each_others_drafts(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    loop = (
        "import sys\nfrom pathlib import Path\nfrom beamwood.storage.draft import draft_beside\n"
        "for _ in range(100):\n    with draft_beside(Path(sys.argv[1])) as draft:\n        draft.write(b'whole')\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", loop, str(path)]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert path.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["model.bw"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_a_replaced_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    small_model().save(path)
    path.chmod(mode)
    small_model().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of two owners")
def test_owner_and_group_are_kept_where_that_is_allowed() -> None:
    with own_folder(0o755) as folder:
        path = folder / "model.bw"
        small_model().save(path)
        os.chown(path, NOBODY, NOBODY)
        small_model().save(path)
        assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)
        os.chown(path, 0, 0)
        path.chmod(0o640)
        with unprivileged():
            small_model().save(path)
        assert (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) == (NOBODY, 0o600)  # its group is another one


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "versions").mkdir()
    real, link, second = tmp_path / "versions" / "v1.bw", tmp_path / "current.bw", tmp_path / "newest.bw"
    small_model().save(real)
    link.symlink_to("versions/v1.bw")
    second.symlink_to(link)
    before = real.stat().st_ino
    small_model(activation="identity").save(second)
    assert link.is_symlink()
    assert second.is_symlink()
    assert real.stat().st_ino != before
    assert bw.load(link).version == small_model(activation="identity").version
    assert drafts(tmp_path) == drafts(tmp_path / "versions") == []


def test_a_link_to_nothing_and_a_link_to_itself_are_refused(tmp_path: Path) -> None:
    (tmp_path / "dangling.bw").symlink_to("gone.bw")
    (tmp_path / "loop.bw").symlink_to("loop.bw")
    for name, why in (("dangling.bw", "does not exist: gone.bw"), ("loop.bw", "leads back to itself")):
        with pytest.raises(bw.FormatError, match=rf"{name} is a symbolic link .*{why}. Mend or remove the link"):
            small_model().save(tmp_path / name)
        assert (tmp_path / name).is_symlink()
    assert len(os.listdir(tmp_path)) == 2


@contextmanager
def own_folder(mode: int) -> Iterator[Path]:
    """A folder of an unprivileged owner that others can reach."""
    folder = Path(tempfile.mkdtemp())
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        folder.chmod(mode)
        yield folder
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Permissions count for root, too."""
    if os.geteuid() != 0:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def test_a_folder_that_cannot_be_synced_is_reported_as_that_and_no_more() -> None:
    with own_folder(0o300) as folder:
        path = folder / "model.bw"
        with (
            unprivileged(),
            pytest.raises(bw.FormatError, match=r"is the new file, .* in place, .* not be synced") as e,
        ):
            small_model().save(path)
        assert "untouched" not in str(e.value)
        assert bw.load(path, verify=True).n_labels == 40


def test_a_folder_that_may_not_be_written_to_is_refused() -> None:
    message = r"Cannot write .*Permission denied.* before is untouched"
    with own_folder(0o500) as folder, unprivileged(), pytest.raises(bw.FormatError, match=message):
        small_model().save(folder / "model.bw")


@pytest.mark.parametrize("name", ["x" * 300, "y/" * 3000 + "m.bw", "", "a\0b", "\ud800"])
def test_names_that_no_file_can_have_are_refused(name: str, tmp_path: Path) -> None:
    for act in (small_model().save, bw.load):
        with pytest.raises(bw.FormatError):
            act(os.path.join(tmp_path, name) if name else name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", [3, None, b"model.bw"])
def test_what_is_no_path_is_refused(path: object) -> None:
    for act in (small_model().save, bw.load):
        with pytest.raises(bw.SettingsError, match="expected the name of a file"):
            act(path)


def test_pipes_devices_and_folders_are_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), Path("/dev/zero")):
        for memory in ("map", "read", "huge"):
            with pytest.raises(bw.FormatError, match="is a pipe or a device; expected a file"):
                bw.load(path, memory=memory)
    with pytest.raises(bw.FormatError, match="is a folder"):
        bw.load(tmp_path)
