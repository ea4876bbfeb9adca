"""Stored cohorts from which the cost of another one is estimated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.methods import CONTINUOUS_AGENT, PAPER
from vitolab.methods.training import EPISODE
from vitolab.plots.orders import by_position, by_setup, methods_of, without_giving_up

#: A number, or whether patients were solved: a row for each order, a column for each position.
Runs = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Orders:
    """A cohort that one method personalised, in one or several orders, as stored.

    Attributes
    ----------
    method, setup : str
    n_parameters : int
    patients : tuple of tuple of str
        Names by position, for each order.
    n_runs, solved : ndarray, shape (n_orders, n_patients)
        Forward runs, and whether the patient was solved, by position.
    n_samples : int
        Transitions explored per patient beforehand; 0 if the method began with nothing.
    gives_up : bool
        Whether the method ends patients whose measurements it does not expect to reach.
    """

    method: str
    setup: str
    n_parameters: int
    patients: tuple[tuple[str, ...], ...]
    n_runs: Runs
    solved: Flags
    n_samples: int = 0
    gives_up: bool = False

    @property
    def label(self) -> str:
        """Method, with the option that it would be given."""
        if self.n_samples:
            return f"{self.method}, {self.n_samples:,} samples"
        if self.method == CONTINUOUS_AGENT and not self.gives_up:
            return f"{self.method} --give-up 0"
        return self.method

    @property
    def n_explored(self) -> int:
        """Forward runs of the exploration, per patient: each episode has a start of its own."""
        return self.n_samples + -(-self.n_samples // EPISODE)


def orders_from_nothing(
    personalizations: pd.DataFrame, n_parameters: Mapping[str, int], *, gives_up: bool = True
) -> list[Orders]:
    """Collect the stored orders of each method that began with nothing.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.from_nothing`.
    n_parameters : mapping of setup name to int
        Other setups are left out.
    gives_up : bool
        Whether personalisations with giving up are wanted, too.
    """
    plain, ends = without_giving_up(personalizations)
    found = []
    for ending, rows in ((True, ends if gives_up else ends.iloc[:0]), (False, plain)):
        for setup, own in by_setup(rows[rows["setup"].isin(set(n_parameters))]):
            for method in methods_of(own):
                table = own[own["method"] == method]
                kept = _orders(table, method, setup, n_parameters[setup])
                found += [replace(each, gives_up=ending) for each in kept]
    return found


def orders_explored(
    personalizations: pd.DataFrame, n_parameters: Mapping[str, int]
) -> list[Orders]:
    """Collect what the paper's agent did after each size of exploration, in the order of names.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.leave_one_out`.
    n_parameters : mapping of setup name to int
        Other setups are left out.
    """
    rows = personalizations[personalizations["method"] == PAPER]
    rows = rows[rows["setup"].isin(set(n_parameters))]
    rows = rows.dropna(subset=["n_samples", "n_states", "repeat"])
    found = []
    sizes = rows[["setup", "n_samples", "n_states"]].drop_duplicates()
    for setup, size, n_states in sizes.itertuples(index=False):
        own = rows[(rows["setup"] == setup) & (rows["n_samples"] == size)]
        own = own[own["n_states"] == n_states]
        position = own.groupby("repeat")["patient"].rank(method="first").astype(int)
        kept = _orders(own.assign(position=position), PAPER, setup, n_parameters[setup])
        found += [replace(each, n_samples=int(size)) for each in kept]
    return found


def _orders(rows: pd.DataFrame, method: str, setup: str, n_parameters: int) -> list[Orders]:
    """Orders of one method; an order that lacks a patient is left out."""
    runs = by_position(rows).dropna(axis="columns")
    if runs.empty:
        return []
    whole = rows[rows["repeat"].isin(runs.columns)].sort_values(["repeat", "position"])
    shape = runs.shape[::-1]
    names = whole["patient"].to_numpy().reshape(shape)
    return [
        Orders(
            method,
            setup,
            n_parameters,
            tuple(map(tuple, names.tolist())),
            whole["n_runs"].to_numpy(np.int64).reshape(shape),
            whole["solved"].to_numpy(bool).reshape(shape),
        )
    ]


def nearest(stored: Iterable[Orders], n_parameters: int) -> list[Orders]:
    """Stored orders whose number of parameters is nearest, each order once.

    Parameters
    ----------
    stored : iterable of Orders
        Newest first: of the same order of the same patients the first is taken.
    n_parameters : int
    """
    stored = list(stored)
    least = min((abs(each.n_parameters - n_parameters) for each in stored), default=0)
    seen: set[tuple[str, str, tuple[str, ...]]] = set()
    found = []
    for each in stored:
        if abs(each.n_parameters - n_parameters) > least:
            continue
        keys = [(each.label, each.setup, names) for names in each.patients]
        new = [i for i, key in enumerate(keys) if key not in seen]
        seen |= set(keys)
        if new:
            names = tuple(each.patients[i] for i in new)
            found.append(
                replace(each, patients=names, n_runs=each.n_runs[new], solved=each.solved[new])
            )
    return found
