"""One run of the store, its tables read when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from vitolab.store import Run
from vitolab.store.columns import ARRAYS
from vitolab.store.records import ProblemRecord

from .source import Source


class Stored:
    """One run; its tables are read when they are first used, in a worker.

    Parameters
    ----------
    source : Source
    run_id : str

    Raises
    ------
    ValueError
        If the store holds no such run.
    """

    def __init__(self, source: Source, run_id: str) -> None:
        entry = source.entry(run_id)
        if entry is None:
            raise ValueError(f"there is no run {run_id!r} in {source.results}")
        self.source, self.id, self.entry = source, run_id, entry
        self.study = entry.info.study

    @cached_property
    def personalizations(self) -> pd.DataFrame:
        """One row per personalisation, so far."""
        return self.source.table(self.id, "personalizations")

    @cached_property
    def run(self) -> Run:
        """The run, once its tables are assembled."""
        if self.entry.info.status in ("running", "interrupted"):
            try:
                return self.source.run(self.id)
            except ValueError:
                raise ValueError(
                    f"the run {self.id} is not finished: this can be shown once it is"
                ) from None
        return self.source.run(self.id)

    @property
    def patients(self) -> pd.DataFrame:
        """One row per setup and patient."""
        return self.run.patients

    @property
    def traces(self) -> pd.DataFrame:
        """One row per forward run of what was traced."""
        return self.run.traces

    def why_not(self, what: str) -> str:
        """Why stored ``traces`` or ``arrays`` cannot be read; empty if they can, or none are."""
        try:
            file = ARRAYS if what == "arrays" else f"{what}.parquet"
            if file in self.run.manifest.files:
                getattr(self, what)
        except ValueError as error:
            return str(error)
        return ""

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Arrays by name."""
        return self.run.arrays

    @property
    def failures(self) -> pd.DataFrame:
        """Failed forward runs by patient and cause."""
        return self.run.failures

    @property
    def problems(self) -> Mapping[str, ProblemRecord]:
        """Problems by setup."""
        return self.run.problems

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of the study."""
        return self.entry.info.parameters

    @property
    def finished(self) -> bool:
        """Whether all tables are there."""
        return self.entry.info.status == "complete"
