"""The example of a problem from a file, to be spoiled."""

import pytest

from vitolab.problemfile.starter import begin
from vitolab.studies.notebooks import find_notebook


@pytest.fixture
def own(tmp_path):
    """The example, to be spoiled."""
    folder = tmp_path / "own"
    begin(find_notebook("starter/problem.toml").parent, folder)
    return folder


def spoil(folder, *changes):
    """Replace text of the problem file."""
    path = folder / "problem.toml"
    text = path.read_text()
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    path.write_text(text)
    return path
