"""Temporary folders: gone with their process, or with the next one where it was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from vitolab.parallel import folders
from vitolab.parallel.folders import longest_name, own_folder
from vitolab.studies import notebooks

KILLED = "import os, sys; {made}; os.kill(os.getpid(), 9)"
OWN = "from vitolab.parallel.folders import own_folder; own_folder(sys.argv[1])"
KERNEL = (
    "import tempfile; tempfile.tempdir = sys.argv[1]; from vitolab.studies import notebooks; "
    "folder = notebooks._private_folder(); folder.__enter__()"
)


@pytest.fixture
def short():
    """Folder of a short path, as sockets need one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("made", [OWN, KERNEL], ids=["any", "kernel"])
def test_folders_of_processes_that_were_killed_are_removed(short, monkeypatch, made):
    folders._sweep.cache_clear()
    subprocess.run([sys.executable, "-c", KILLED.format(made=made), str(short)], check=False)
    assert len(list(short.iterdir())) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    with notebooks._private_folder() as mine:
        assert list(short.iterdir()) == [mine]
    assert list(short.iterdir()) == []


def test_folders_of_the_living_and_of_others_stay(short, monkeypatch):
    folders._sweep.cache_clear()
    code = f"import sys; {OWN}; print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(short)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as living:
        living.stdout.readline()
        (its,) = short.iterdir()
        link, strange = short / f"{folders._of_machine()}9-8-link", short / "vitolab-12345678"
        strange.mkdir()
        link.symlink_to(strange)
        mine = own_folder(short)
        assert its.is_dir()
        assert strange.is_dir()
        assert link.is_symlink()
        living.communicate(b"\n")
    assert not its.exists()
    mine.cleanup()


def test_a_folder_of_another_user_stays(short, monkeypatch):
    dead = short / f"{folders._of_machine()}999999999-8-a"
    dead.mkdir()
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    folders._sweep.cache_clear()
    own_folder(short).cleanup()
    assert dead.is_dir()
    monkeypatch.setattr(os, "getuid", lambda: user)
    folders._sweep.cache_clear()
    own_folder(short).cleanup()
    assert not dead.exists()


def test_the_longest_name_is_that_of_a_folder(short):
    with own_folder(short) as made:
        assert len(Path(made).name) == len(longest_name())
