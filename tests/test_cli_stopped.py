"""A command that is stopped says what is true of it: only what resumes goes on from here."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vitolab import cli


def commands() -> set[str]:
    """Names of all commands."""
    return {c.name or c.callback.__name__ for c in cli.app.registered_commands}


@pytest.mark.parametrize("command", sorted(commands()))
def test_a_command_that_is_stopped_says_what_is_true_of_it(command, monkeypatch, capsys):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", stopped)
    monkeypatch.setattr(sys, "argv", ["vitolab", command])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    resumes = command in ("run", "demo", "personalize")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vitolab: stopped")
    assert ("the same command goes on from here" in line) == resumes


def test_of_commands_alone_something_is_said():
    assert set(cli.WHEN_STOPPED) <= commands()


@pytest.mark.timeout(120)
def test_a_dashboard_that_is_ended_leaves_one_sentence(tmp_path: Path):
    command = [sys.executable, "-m", "vitolab", "dashboard", "--port", "0"]
    with subprocess.Popen(
        [*command, "--results", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline().startswith(b"dashboard of ")
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode().splitlines() == ["vitolab: stopped; the results stay as they are"]
