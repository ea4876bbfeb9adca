"""Tables of a study of uncertainty, from the stored tables of its run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from vitolab.files import stream
from vitolab.problem import FloatArray, Problem

POSTERIOR = "posterior"
#: What `vitolab.uncertainty.forecasts` reads from a model.
FORECASTS = ("model", "model's change")
NAIVE = "no change"
#: Patients below whose number the share within a region tells nearly nothing.
ENOUGH = 20


def groups(
    personalizations: pd.DataFrame, problems: Mapping[str, Problem]
) -> Iterator[tuple[str, Problem, str, pd.DataFrame]]:
    """Setup, problem, method and rows, wherever there are rows; methods in alphabetical order."""
    methods = sorted(str(name) for name in personalizations["method"].unique())
    for (setup, problem), method in product(problems.items(), methods):
        chosen = (personalizations["setup"] == setup) & (personalizations["method"] == method)
        if chosen.any():
            yield setup, problem, method, personalizations[chosen]


def identifiability_table(
    personalizations: pd.DataFrame, problems: Mapping[str, Problem]
) -> pd.DataFrame:
    """Range of the solutions as a share of Ω: per setup, method and parameter, over patients.

    Patients with fewer than two solutions have no range; they are counted in ``patients`` and not
    in ``with a range``. A range grows with the number of solutions, which stands beside it:
    methods that found unequal numbers are not to be compared by it.

    Parameters
    ----------
    personalizations : DataFrame
        With several starts per patient.
    problems : mapping of setup name to Problem

    Returns
    -------
    DataFrame
    """
    rows = []
    found = personalizations[personalizations["method"] != POSTERIOR]
    for setup, problem, method, own in groups(found, problems):
        ranges = range_of(own, problem)
        for p in problem.parameters:
            share = ranges[p.name]
            rows.append(
                {
                    "setup": setup,
                    "method": method,
                    "parameter": p.label,
                    "patients": len(share),
                    "with a range": int(share.notna().sum()),
                    "range / domain, median": share.median(),
                    "lowest": share.min(),
                    "highest": share.max(),
                    "solutions per patient": own["solved"].sum() / len(share),
                    "starts": own["start"].nunique(),
                }
            )
    return pd.DataFrame(rows)


def stability_table(
    personalizations: pd.DataFrame,
    problems: Mapping[str, Problem],
    *,
    reference: str,
) -> pd.DataFrame:
    """Standard deviation of each parameter over perturbed measurements as a share of Ω.

    Per setup and method: success and runs over all personalisations, then per parameter the
    median over the patients of the deviation over their solved personalisations, at least two. A
    method that seldom succeeds has its spread of few patients, who are counted in ``with a
    spread``, and of the perturbations that suit it. Methods are comparable by the last columns:
    the spread over what the method and the reference both solved, and that of the reference over
    the same.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.uncertainty.stability`.
    problems : mapping of setup name to Problem
    reference : str
        A method of the study.

    Returns
    -------
    DataFrame

    Raises
    ------
    ValueError
        If the reference is none of the methods.
    """
    known = sorted(map(str, personalizations["method"].unique()))
    if reference not in known:
        raise ValueError(f"reference is {reference!r}, expected one of {', '.join(known)}")
    rows = []
    key = ["setup", "patient", "repeat"]
    by_reference = personalizations[personalizations["method"] == reference]
    by_reference = by_reference[by_reference["solved"]].set_index(key)
    for setup, problem, method, own in groups(personalizations, problems):
        spread = spread_of(own, problem)
        solved = own[own["solved"]].set_index(key)
        both = solved.index.intersection(by_reference.index)
        alike = [
            spread_of(table.loc[both].reset_index(), problem).median(axis=0).mean()
            for table in (solved, by_reference)
        ]
        row = {
            "setup": setup,
            "method": method,
            "patients": len(spread),
            "with a spread": int(spread.notna().any(axis=1).sum()),
            "success [%]": 100.0 * own["solved"].mean(),
            "always solved [%]": 100.0 * own.groupby("patient")["solved"].all().mean(),
            "runs, all": own["n_runs"].mean(),
            "spread of the solved, all parameters": spread.median(axis=0).mean(),
        }
        row |= {f"spread: {p.label}": spread[p.name].median() for p in problem.parameters}
        row |= {
            "solved by both": len(both),
            "spread there": alike[0],
            f"spread of {reference} there": alike[1],
        }
        rows.append(row)
    return pd.DataFrame(rows)


def range_of(own: pd.DataFrame, problem: Problem) -> pd.DataFrame:
    """Range of the solutions as a share of Ω, patients by parameters; NaN below two."""
    return _over_patients(own, problem, lambda solved: solved.max() - solved.min())


def spread_of(own: pd.DataFrame, problem: Problem) -> pd.DataFrame:
    """Deviation of the solutions as a share of Ω, patients by parameters; NaN below two.

    Of a sample: the sum of squares is divided by one less than the number of solutions.
    """
    return _over_patients(own, problem, lambda solved: solved.std())


def _over_patients(
    own: pd.DataFrame, problem: Problem, width: Callable[[Any], pd.DataFrame]
) -> pd.DataFrame:
    """Width of the solutions, given by patient, as a share of Ω."""
    names = [f"x:{p.name}" for p in problem.parameters]
    solved = own[own["solved"]].groupby("patient")[names]
    value = width(solved)
    value = value[solved.size() > 1].reindex(sorted(own["patient"].unique()))
    value.columns = pd.Index([p.name for p in problem.parameters])
    return value.div(problem.upper - problem.lower, axis=1)


def levels_of(
    personalizations: pd.DataFrame, setup: str, problem: Problem
) -> dict[str, pd.Series[float]]:
    """How central the true parameters of each patient lie, by region.

    Returns
    -------
    dict of str to Series
        The smallest share of a region that holds the truth: of the joint region of highest
        density, and of the central interval of each parameter. Empty where no truth is known.
    """
    own = personalizations[
        (personalizations["setup"] == setup) & (personalizations["method"] == POSTERIOR)
    ]
    own = own[own["level"].notna()]
    if own.empty:
        return {}
    levels = {"all parameters together": own["level"]}
    return levels | {p.label: (2.0 * own[f"rank:{p.name}"] - 1.0).abs() for p in problem.parameters}


def band_of(n: int, share: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Shares of n patients between which a kept promise lies with a probability of 95 % or more.

    Parameters
    ----------
    n : int
    share : array_like
        Promised.

    Returns
    -------
    low, high : ndarray
        Of the shape of ``share``.
    """
    from scipy.stats import binom

    low, high = (binom.ppf(tail, n, share) / n for tail in (0.025, 0.975))
    return np.maximum(low, 0.0), np.maximum(high, 0.0)  # the quantile of a share of 0 is -1


def coverage_table(
    personalizations: pd.DataFrame,
    problems: Mapping[str, Problem],
    shares: tuple[float, ...] = (0.5, 0.9),
) -> pd.DataFrame:
    """How many patients' true parameters lie in the regions that promise to hold them.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.uncertainty.posteriors` with the truth known.
    problems : mapping of setup name to Problem
    shares : tuple of float
        Promised shares of the regions.

    Returns
    -------
    DataFrame
        Per setup, region (the joint region of highest density, and the central interval of each
        parameter) and share: how often the truth lay within, and the range in which the share of
        so many patients lies with a probability of at least 95 % if the promise is kept. Below
        20 patients that range holds nearly everything: ``as promised`` is then "too few to tell",
        or "no". Up to one row in twenty says "no" by chance.
    """
    rows = []
    for setup, problem in problems.items():
        levels = levels_of(personalizations, setup, problem)
        for share, (region, level) in product(shares, levels.items()):
            n = len(level)
            low, high = (float(end) for end in band_of(n, share))
            within = float((level <= share).mean())
            kept = "yes" if n >= ENOUGH else "too few to tell"
            kept = kept if low <= within <= high else "no"
            rows.append(
                {
                    "setup": setup,
                    "region": region,
                    "promised [%]": 100.0 * share,
                    "found [%]": 100.0 * within,
                    "expected from [%]": 100.0 * low,
                    "expected to [%]": 100.0 * high,
                    "as promised": kept,
                    "patients": n,
                }
            )
    return pd.DataFrame(rows)


def sampling_table(personalizations: pd.DataFrame) -> pd.DataFrame:
    """How well the posteriors were sampled, over the patients of each setup."""
    rows = []
    found = personalizations[personalizations["method"] == POSTERIOR]
    for setup, own in found.groupby("setup", sort=True):
        rows.append(
            {
                "setup": setup,
                "patients": len(own),
                "acceptance, median": own["acceptance"].median(),
                "autocorrelation, median [steps]": own["autocorrelation"].median(),
                "longest [steps]": own["autocorrelation"].max(),
                "without an estimate": int(own["autocorrelation"].isna().sum()),
                "independent draws, fewest": own["n_effective"].min(),
                "R-hat, largest": own["r_hat"].max() if "r_hat" in own else float("nan"),
                "runs per patient": own["n_runs"].mean(),
                "failed runs": int(own["n_failed"].sum()),
                "best draw within tolerances [%]": 100.0 * own["solved"].mean(),
            }
        )
    return pd.DataFrame(rows)


def forecast_table(personalizations: pd.DataFrame, *, n_resamples: int = 2000) -> pd.DataFrame:
    """Errors of all forecasts beside those of "no change", over all subjects.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.uncertainty.forecasts`.
    n_resamples : int
        For the interval of the difference: subjects drawn with replacement.

    Returns
    -------
    DataFrame
        Per method, pressure and forecast: mean absolute error, bias, share of subjects whose error
        is smaller than without change, and the mean difference of the absolute errors (below
        zero: better than no change) with its 95 % interval. Subjects whose model failed, and for
        whom there is no forecast, are counted and left out, of "no change" too.
    """
    rows = []
    names = map(str, personalizations.columns)
    pressures = [name.removeprefix("after:") for name in names if name.startswith("after:")]
    for method, own in personalizations.groupby("method", sort=True):
        n_asked, fitted = len(own), 100.0 * own["solved"].mean()
        told = [f"{forecast}:{name}" for forecast in FORECASTS for name in pressures]
        own = own[np.isfinite(own[told].to_numpy(dtype=np.float64)).all(axis=1)]
        if own.empty:
            continue
        for name in pressures:
            measured = own[f"after:{name}"].to_numpy()
            naive = own[f"before:{name}"].to_numpy() - measured
            for forecast in (NAIVE, *FORECASTS):
                error = naive if forecast == NAIVE else own[f"{forecast}:{name}"] - measured
                error = np.asarray(error, dtype=np.float64)
                row = {
                    "method": method,
                    "pressure": name,
                    "forecast": forecast,
                    "mean |error| [mmHg]": np.abs(error).mean(),
                    "bias [mmHg]": error.mean(),
                    "subjects": len(own),
                    "without a forecast": n_asked - len(own),
                    "fitted before [%]": fitted,
                }
                if forecast != NAIVE:
                    gain = np.abs(error) - np.abs(naive)
                    index = stream("forecast table", len(gain)).integers(
                        len(gain), size=(n_resamples, len(gain))
                    )
                    low, high = np.quantile(gain[index].mean(axis=1), [0.025, 0.975])
                    row |= {
                        "nearer than no change [%]": 100.0 * np.mean(gain < 0),
                        "difference [mmHg]": gain.mean(),
                        "from": low,
                        "to": high,
                    }
                rows.append(row)
    return pd.DataFrame(rows)
