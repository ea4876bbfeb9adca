"""Files are whole or absent; keys name content; streams depend on their key only."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitolab.files import (
    ArrayCache,
    atomic,
    checked_name,
    checksum,
    digest,
    read_arrays,
    stream,
    write_arrays,
    write_json,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"old": 1})
    with pytest.raises(UnicodeEncodeError), atomic(path) as temporary:
        temporary.write_text("half\ud800", encoding="utf-8")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"new": float("nan")})
    assert json.loads(path.read_text()) == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


@settings(deadline=None, max_examples=50)
@given(JSON)
def test_a_digest_survives_a_round_trip_through_json(value: object) -> None:
    assert digest(value) == digest(json.loads(json.dumps(value)))


def test_a_digest_depends_on_content_and_not_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": [2, 3]}) == digest({"b": [2, 3], "a": 1})
    assert digest(np.array([1, 2])) == digest([1, 2])
    different = [(1,), (1.5,), ("1",), (True,), (None,), ([1],), ({"a": 1},), (1, 1), ("a", "b")]
    assert len({digest(*parts) for parts in different}) == len(different)


def test_a_stream_depends_on_its_key_only() -> None:
    first = stream("study", "P1", 0).random(3)
    stream("study", "P2", 0).random(5)
    assert np.array_equal(stream("study", "P1", 0).random(3), first)
    assert not np.array_equal(stream("study", "P1", 1).random(3), first)


def test_equal_arrays_are_stored_in_equal_bytes(tmp_path: Path) -> None:
    arrays = {"6p/q": np.arange(6.0).reshape(2, 3), "n": np.array([1])}
    write_arrays(tmp_path / "a.npz", arrays)
    write_arrays(tmp_path / "b.npz", arrays)
    assert checksum(tmp_path / "a.npz") == checksum(tmp_path / "b.npz")
    assert np.array_equal(read_arrays(tmp_path / "a.npz")["6p/q"], arrays["6p/q"])


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "a.npz", {"o": np.array([{}], dtype=object)})
    np.savez(tmp_path / "b.npz", o=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"b\.npz is damaged, expected arrays"):
        read_arrays(tmp_path / "b.npz")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-a", "a b", "a\n", "é", "x" * 129])
def test_a_name_that_could_leave_its_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected letters"):
        checked_name("key", name)


def test_walks_come_back_as_they_were_stored(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path)
    assert cache.load("problem", "P1") is None
    walks = {"x": np.random.default_rng(0).random((2, 3)), "action": np.array([[1, -1]])}
    cache.store("problem", "P1", walks)
    found = cache.load("problem", "P1")
    assert found is not None
    assert found.keys() == walks.keys()
    assert all(np.array_equal(found[name], walks[name]) for name in walks)
    assert (tmp_path / "problem" / "P1.npz").is_file()
    assert cache.load("problem", "P2") is None


def test_longer_walks_replace_shorter_ones_and_not_the_reverse(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path)
    for length in (2, 5, 3):
        cache.store("problem", "P1", {"x": np.zeros(length)})
    found = cache.load("problem", "P1")
    assert found is not None
    assert len(found["x"]) == 5


def test_damaged_and_foreign_walks_count_as_absent_and_are_replaced(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path)
    path = cache.path("problem", "P1")
    cache.store("problem", "P1", {"x": np.arange(1000.0)})
    whole = path.read_bytes()
    np.savez(tmp_path / "pickled.npz", keys=np.array([{}], dtype=object))
    corrupt = bytearray(whole)
    corrupt[200] ^= 0xFF
    contents = [b"", b"PK", whole[:-30], whole[: len(whole) // 2], b"not an archive"]
    contents += [bytes(corrupt), (tmp_path / "pickled.npz").read_bytes()]
    for content in contents:
        path.write_bytes(content)
        assert cache.load("problem", "P1") is None, content[:20]
        cache.store("problem", "P1", {"x": np.arange(1000.0)})
        assert cache.load("problem", "P1") is not None


def test_walks_copied_to_another_patient_count_as_absent(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path)
    cache.store("problem", "P1", {"x": np.zeros(3)})
    cache.path("problem", "P2").write_bytes(cache.path("problem", "P1").read_bytes())
    assert cache.load("problem", "P2") is None


def test_a_fifo_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = Thread(target=lambda: read.append(path.read_text()), daemon=True)
    reader.start()
    write_json(path, 1)
    reader.join(5)
    assert read == ["1\n"]
    assert path.is_fifo()


def test_a_character_device_stays(tmp_path: Path) -> None:
    path = tmp_path / "null"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        path.write_text("")
    except OSError as error:
        pytest.skip(f"no device can be made here: {error}")
    write_json(path, 1)
    assert path.is_char_device()


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.json", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_json(link, 1)
    assert link.is_symlink()
    assert target.read_text() == "1\n"


def test_a_socket_is_refused_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
        with pytest.raises(ValueError, match="s is a socket, expected a file"):
            write_json(Path("s"), 1)
    assert Path("s").is_socket()


@pytest.mark.parametrize("umask", [0o077, 0o002])
def test_new_files_and_folders_follow_the_umask_and_old_files_keep_their_mode(
    tmp_path: Path, umask: int
) -> None:
    old = tmp_path / "old"
    old.write_text("")
    old.chmod(0o640)
    code = f"""
import os
from pathlib import Path
os.umask({umask})
from vitolab.files import new_folder, write_json
write_json(Path("new"), 1)
write_json(Path("old"), 1)
with new_folder(Path("folder")):
    pass
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert modes == {"new": 0o666 & ~umask, "old": 0o640, "folder": 0o777 & ~umask}
