"""Options that several commands share."""

from __future__ import annotations

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
