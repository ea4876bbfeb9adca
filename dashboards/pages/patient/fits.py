"""Stored personalisations as the page Patient shows them; called in a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vitolab import studies
from vitolab.methods import PAPER
from vitolab.store.problems import as_stored
from vitolab.store.tables import largest
from vitolab.uncertainty.summary import range_of

from ...kit.source import Source
from ...kit.stored import Stored
from .film import OWN, Film, Key, film, traces, worst_misfit

#: Studies whose runs keep forward runs of their personalisations, and `vitolab personalize`.
STUDIES = (*(study.name for study in studies.STUDIES if study.traces), "personalize")
#: Those whose fits of one patient differ in the measurements.
PERTURBED = {study.name for study in studies.STUDIES if study.perturbed}
WORDS = {"n_samples": "samples", "n_states": "states", "repeat": "repeat", "start": "start"}


def load(source: Source, run: str) -> Stored:
    """A run whose personalisations can be looked at, its tables read.

    Raises
    ------
    ValueError
        If it holds no personalisation that can be read.
    """
    from vitolab.plots import style  # noqa: F401 - heavy, and needed for what follows

    stored = Stored(source, run)
    for name in ("setup", "patient", "method", "solved", "n_runs"):
        if name not in stored.personalizations:
            raise ValueError(f"the run {run} has no column {name!r} of personalisations")
    _ = stored.patients, traces(stored)  # read with the rest
    return stored


def setups(stored: Stored) -> list[str]:
    """Setups with personalisations and a problem, in the order of the run."""
    found = set(stored.personalizations["setup"].astype(str))
    return [name for name in stored.problems if name in found]


def summary(stored: Stored, setup: str, method: str) -> pd.DataFrame:
    """All patients of a setup and method, one row each.

    Returns
    -------
    DataFrame
        ``patient``, ``fits``, ``solved`` [%], ``runs`` and ``worst`` misfit in tolerances as
        means over the fits with the largest training size (not solved counts as the whole
        budget), and the numbers known of the
        patient, ``z:`` and ``data:``.
    """
    from vitolab.plots.summary import charged_runs

    table = stored.personalizations
    own = table[(table["setup"] == setup) & (table["method"] == method)]
    own = largest(own)
    own = own.assign(
        worst=worst_misfit(own, as_stored(stored.problems[setup])), charged=charged_runs(own)
    )
    grouped = own.groupby("patient", sort=True)
    found = pd.DataFrame(
        {
            "fits": grouped.size(),
            "solved": 100.0 * grouped["solved"].mean().astype(float),
            "runs": grouped["charged"].mean().astype(float),
            "worst": grouped["worst"].mean().astype(float),
        }
    ).reset_index()
    known = stored.patients[stored.patients["setup"] == setup]
    numeric = [
        name
        for name in known.columns
        if name.startswith(("z:", "data:")) and pd.api.types.is_numeric_dtype(known[name])
    ]
    numeric = [name for name in numeric if known[name].nunique() > 1]
    return found.merge(known[["patient", *numeric]], on="patient", how="left")


def solutions(stored: Stored, setup: str, patient: str, method: str) -> pd.DataFrame:
    """Range of each parameter over all solved fits of a patient by a method.

    Returns
    -------
    DataFrame
        Empty where fewer than two fits, of the largest training size, were solved, and where
        fits differ in the measurements.
    """
    table, problem = stored.personalizations, as_stored(stored.problems[setup])
    own = table[
        (table["setup"] == setup) & (table["patient"] == patient) & (table["method"] == method)
    ]
    own = largest(own)
    own = own[own["solved"].astype(bool)]
    if len(own) < 2 or stored.study in PERTURBED:
        return pd.DataFrame()
    share = range_of(own, problem).iloc[0]
    return pd.DataFrame(
        {
            "parameter": [p.label for p in problem.parameters],
            "solved fits": len(own),
            "from": [f"{own[f'x:{p.name}'].min():.5g}" for p in problem.parameters],
            "to": [f"{own[f'x:{p.name}'].max():.5g} {p.unit}" for p in problem.parameters],
            "range / domain [%]": [f"{100.0 * share[p.name]:.1f}" for p in problem.parameters],
        }
    )


def methods(stored: Stored, setup: str) -> list[str]:
    """Methods of a setup that personalised, Vito first."""
    from vitolab.plots.style import METHOD_COLORS

    table = stored.personalizations
    found = set(table.loc[table["setup"] == setup, "method"].astype(str))
    order = [PAPER, *METHOD_COLORS]
    return sorted(found, key=lambda m: (order.index(m) if m in order else len(order), m))


def keys(stored: Stored, setup: str, patient: str, method: str) -> list[tuple[Key, bool]]:
    """Personalisations of a patient by a method, and whether each has a trace; traced first."""
    chosen = [
        table[
            (table["setup"] == setup) & (table["patient"] == patient) & (table["method"] == method)
        ]
        for table in (stored.personalizations, traces(stored))
    ]
    all_keys, traced = ([_key(row) for row in _distinct(table)] for table in chosen)
    known = set(traced)
    unique = list(dict.fromkeys(all_keys))
    return sorted(((key, key in known) for key in unique), key=lambda pair: not pair[1])


def _distinct(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Distinct values of the own columns, the largest training first."""
    own = table[list(OWN)].drop_duplicates()
    own = own.sort_values(list(OWN), ascending=[False, False, True, True], kind="stable")
    return list(own.itertuples(index=False, name=None))


def _key(values: Sequence[Any]) -> Key:
    """Plain values; None where there is none."""
    return tuple(None if pd.isna(value) else int(value) for value in values)


def key_words(key: Key, traced: bool) -> str:
    """A personalisation among those of a patient, in words."""
    told = [
        f"{WORDS[name]} {value}" for name, value in zip(OWN, key, strict=True) if value is not None
    ]
    return (", ".join(told) or "the only one") + ("" if traced else " (without its runs)")


@dataclass(frozen=True)
class Chosen:
    """What the page shows, and what else there is to choose.

    Attributes
    ----------
    run, setup, patient, method : str
    key : tuple
        See `OWN`.
    setups, patients, methods : list of str
    keys : list
        See `keys`.
    film : Film or None
        None where it cannot be shown.
    why_not : str
        Why it cannot; else empty.
    solutions : DataFrame
        See `solutions`.
    summary : DataFrame or None
        None where it is shown already.
    """

    run: str
    setup: str
    patient: str
    method: str
    key: Key
    setups: list[str]
    patients: list[str]
    methods: list[str]
    keys: list[tuple[Key, bool]]
    film: Film | None
    why_not: str
    solutions: pd.DataFrame
    summary: pd.DataFrame | None


def choose(
    stored: Stored, wanted: tuple[str, str, str], key: Key, shown: tuple[str, str, str] | None
) -> Chosen:
    """The personalisation that is wanted, or the nearest that there is.

    Parameters
    ----------
    stored : Stored
    wanted : (str, str, str)
        Setup, patient and method; empty for any.
    key : tuple
        See `OWN`; None for any.
    shown : (str, str, str), optional
        Run, setup and method whose summary is shown.

    Raises
    ------
    ValueError
        If the run holds no personalisation.
    """
    found = setups(stored)
    if not found:
        raise ValueError("this run holds no personalisation")
    setup = wanted[0] if wanted[0] in found else found[-1]
    known = methods(stored, setup)
    method = wanted[2] if wanted[2] in known else known[0]
    table = stored.personalizations
    own = table[(table["setup"] == setup) & (table["method"] == method)]
    patients = sorted(own["patient"].astype(str).unique())
    patient = wanted[1] if wanted[1] in patients else patients[0]
    fits = keys(stored, setup, patient, method)
    near = sorted(
        fits,
        key=lambda pair: sum(w is not None and w != k for w, k in zip(key, pair[0], strict=True)),
    )
    shot, why_not = None, ""
    try:
        shot = film(stored, setup, patient, method, near[0][0])
    except ValueError as error:
        why_not = str(error)
    return Chosen(
        run=stored.id,
        setup=setup,
        patient=patient,
        method=method,
        key=near[0][0],
        setups=found,
        patients=patients,
        methods=known,
        keys=fits,
        film=shot,
        why_not=why_not,
        solutions=solutions(stored, setup, patient, method),
        summary=None if shown == (stored.id, setup, method) else summary(stored, setup, method),
    )
