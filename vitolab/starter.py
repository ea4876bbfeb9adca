"""The beginning of a model of one's own: an example that runs, to be changed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

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
    if folder.exists() or folder.is_symlink():
        raise ValueError(f"{folder}: it is there already, expected a folder that is not")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"{folder.absolute().parent}: expected a folder that exists")
    temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.absolute().parent))
    try:
        for name in FILES:
            shutil.copyfile(source / name, temporary / name)
        temporary.chmod(0o755)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
