"""Options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

Results = Annotated[Path, typer.Option("--results", help="Folder of all results.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="Same seed, same results.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, max=4096, help="Work at the same time [default: one per processor]."
    ),
]

#: Arguments that sentences of the package name, and the options that stand for them.
_OPTIONS = {
    r"^(setup|prefix|address) is\b": r"--\1 is",
    r"^origins hold\b": "--origin is",
    r"^give_up is\b": "--give-up is",
    r"^agent is given\b": "--agent is given",
    r"^method is\b": "--method is",
    r"\bwith an agent$": "with --agent",
    r"^total_runs is\b": "--total-runs is",
    r"^at_a_time is\b": "--at-a-time is",
    r"\blearn_as_you_go(=True)?\b": "--learn-as-you-go",
    r"\ballow_missing=True\b": "--allow-missing",
    r"\bagain=True\b": "--again",
}


def in_options(sentence: str) -> str:
    """A sentence of the package, which names arguments, in the words of the command line."""
    for argument, option in _OPTIONS.items():
        sentence = re.sub(argument, option, sentence)
    return sentence
