"""A store of runs that is served."""

from __future__ import annotations

from pathlib import Path

import pytest
import stores


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """Complete runs, folders that are none, and hostile text."""
    root = tmp_path_factory.mktemp("store")
    for seed in range(23):
        stores.stored_run(root, "ep-scouting" if seed % 4 == 0 else "wbc-fit", seed)
    stores.bad_folders(root)
    for i, payload in enumerate(stores.PAYLOADS):
        stores.hostile_run(root, payload, f"20200101T00000{i}Z-0000000{i}")
    (root / "hostile" / "<img src=x onerror=window.hit=1>").mkdir()
    return root


@pytest.fixture(scope="module")
def url(store, serve_store) -> str:
    """Address of the store."""
    return serve_store(store).url
