"""The beginning of a model of one's own: an example that runs, to be changed."""

from __future__ import annotations

import shutil
from pathlib import Path

from vitolab.files import new_folder

FILES = ("problem.toml", "model.py", "patients.csv")


def begin(source: Path, folder: Path) -> None:
    """Make a folder with the example in it, whole or not at all.

    Parameters
    ----------
    source : Path
        Where the example is.
    folder : Path
        Must not exist.

    Raises
    ------
    ValueError
        If it exists, or its parent does not.
    """
    with new_folder(folder) as temporary:
        for name in FILES:
            shutil.copyfile(source / name, temporary / name)
