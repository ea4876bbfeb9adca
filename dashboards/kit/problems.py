"""Actions of problems, in words."""

from __future__ import annotations

import re

from vitolab.problem import Problem


def action_names(problem: Problem) -> list[str]:
    """What each action does."""
    return [signed(problem.describe_action(a)) for a in range(problem.n_actions)]


def signed(words: str) -> str:
    """Words whose negative numbers have a sign as wide as the plus; hyphens stay."""
    return re.sub(r"(?<![\w-])-(?=\d)", "−", words)
