"""An eye on forward runs while they are made: the first that fails is said, and hope may end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vitolab.display import say
from vitolab.failures import HOPELESS, Failure, all_failed, located
from vitolab.running import Runs


@dataclass
class Watch:
    """What is known of the runs of one patient so far.

    Attributes
    ----------
    names : sequence of str
        Of the parameters.
    tells : bool
        Whether the first run that fails is still to be said.
    ends : str
        Whose runs these are, if the work ends where none of the first `HOPELESS` answers; empty if
        it goes on.
    """

    names: Sequence[str]
    tells: bool
    ends: str = ""
    _failures: list[Failure] = field(default_factory=list)

    def __call__(self, runs: Runs) -> None:
        """Take note of runs.

        Raises
        ------
        NothingAnswers
            If the work ends.
        """
        if self.tells and runs.failures:
            self.tells = False
            first = runs.failures[0]
            at = located(self.names, first.x)
            say(f"vitolab: {first.patient}: a forward run failed ({at}): {first.sentence}")
        if not self.ends:
            return
        self._failures += runs.failures
        if not runs.failed.all():
            self.ends = ""
        elif len(self._failures) >= HOPELESS:
            error = all_failed(self.ends, self._failures, self.names)
            error.args = (f"{error}; if that is so of this patient alone, put another one first",)
            raise error
