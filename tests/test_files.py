"""Files are whole or absent; keys name content; streams depend on their key only."""

from __future__ import annotations

import json
from pathlib import Path

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
