"""Figures and tables of cohorts whose patients teach each other, one after the other."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd

from vitolab.methods import is_agent
from vitolab.methods import title as method_title
from vitolab.plots.paired import bootstrap, mcnemar, wilson
from vitolab.plots.style import (
    MARKERS,
    METHOD_COLORS,
    fill,
    layout,
    logarithmic,
    panel,
    series,
    style,
)
from vitolab.plots.summary import setups_of

CONTINUOUS = "vito-continuous"
#: What the name of a setup ends in, in the stored tables, whose patients a method may give up.
GIVES_UP = ", gives up"
#: Positions in the order up to which each group of patients reaches; whoever is left is the last.
GROUPS = (1, 5, 10, 20)
#: Patients at the beginning and at the end of an order that the table sums up.
N_ENDS = 10
_SIZE = (3.2, 2.7)
_COLUMNS = 3


def without_giving_up(personalizations: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Personalisations in which nobody was given up, and the others, with their setups' own names.

    Parameters
    ----------
    personalizations : DataFrame
        Setups of the others end in `GIVES_UP`.
    """
    ends = personalizations["setup"].str.endswith(GIVES_UP)
    others = personalizations[ends]
    own = others["setup"].str.removesuffix(GIVES_UP)
    return personalizations[~ends], others.assign(setup=own)


def cumulative_curves(
    personalizations: pd.DataFrame, *, patients: str = "synthetic patients"
) -> Any:
    """All forward runs so far against the number of patients, one panel per setup.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.from_nothing`.
    patients : str
        Who was personalised, for the title.

    Returns
    -------
    HoloViews layout
        Means over the orders; bands reach from the lowest to the highest of them.
    """
    panels = []
    for setup, own in _by_setup(personalizations):
        items: list[Any] = []
        for name in _methods(own):
            runs = _by_position(own[own["method"] == name]).cumsum()
            n, color = runs.index.to_numpy(float), METHOD_COLORS[name]
            if runs.shape[1] > 1:
                ends = (n, runs.min(axis=1), runs.max(axis=1))
                items.append(fill(hv.Area(ends, "n", ["low", "high"]), color, 0.18))
            line = hv.Curve((n, runs.mean(axis=1)), "n", "value", label=method_title(name))
            items.append(style(line, color=color, line_width=2.0, line_dash=_dash(name)))
            # few marks, which tell the curves apart without their colours
            shown = np.unique(np.linspace(0, len(n) - 1, 5).round().astype(int))
            marks = hv.Scatter(
                (n[shown], runs.mean(axis=1).to_numpy()[shown]),
                "n",
                "value",
                label=method_title(name),
            )
            items.append(
                style(marks, color=color, size=7, marker=_marker(name), bokeh={"tools": ["hover"]})
            )
        last = float(own["position"].max())
        axes = {"xlabel": "patients", "xlim": (0.0, 1.03 * last), "ylim": (0.0, None)}
        panels.append((items, setup, own, axes))
    return _figure(panels, "forward runs so far", personalizations, patients, "band: all orders")


def position_curves(personalizations: pd.DataFrame, *, patients: str = "synthetic patients") -> Any:
    """Mean forward runs of a patient against its position in the order, one panel per setup.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.from_nothing`.
    patients : str
        Who was personalised, for the title.

    Returns
    -------
    HoloViews layout
        Positions are grouped, see `GROUPS`; means over patients and orders.
    """
    panels = []
    for setup, own in _by_setup(personalizations):
        group = np.searchsorted(GROUPS, own["position"].to_numpy(float))
        means = own.assign(group=group).groupby(["method", "group"])["n_runs"].mean()
        items: list[Any] = []
        for name in _methods(own):
            values = means[name].rename("mean").reset_index().assign(deviation=0.0, repeats=1)
            items += series(
                values,
                "group",
                label=method_title(name),
                color=METHOD_COLORS[name],
                dash=_dash(name),
                marker=_marker(name),
            )
        last = int(own["position"].max())
        ticks = [(k, _group_name(k, last)) for k in range(int(group.max()) + 1)]
        axes = {
            "xlabel": "position in the order",
            "xticks": ticks,
            "xlim": (-0.4, len(ticks) - 0.6),
            **logarithmic(means.tolist()),
        }
        panels.append((items, setup, own, axes))
    return _figure(panels, "forward runs per patient", personalizations, patients, "means")


def continuing_table(personalizations: pd.DataFrame, whose: str = "synthetic") -> pd.DataFrame:
    """Success and cost of each method of each setup, over the whole cohort and at its ends.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.from_nothing`.
    whose : str
        What the patients are, as the table says.

    Returns
    -------
    DataFrame
        The interval of the share is Wilson's, of as many trials as there are patients: orders
        repeat the same ones.
    """
    table = []
    for setup, rows in _by_setup(personalizations):
        for name in _methods(rows):
            own = rows[rows["method"] == name]
            runs, n = _by_position(own), own["patient"].nunique()
            share = float(own["solved"].astype(bool).mean())
            low, high = wilson(share, n)
            table.append(
                {
                    "setup": setup,
                    "method": name,
                    "orders": runs.shape[1],
                    "solved [%]": round(100.0 * share, 1),
                    "95 % from": round(100.0 * low, 1),
                    "to": round(100.0 * high, 1),
                    "runs, whole cohort": round(float(runs.sum().mean()), 1),
                    "lowest order": int(runs.sum().min()),
                    "highest order": int(runs.sum().max()),
                    f"per patient, first {N_ENDS}": round(
                        float(runs.iloc[:N_ENDS].mean().mean()), 2
                    ),
                    f"per patient, last {N_ENDS}": round(
                        float(runs.iloc[-N_ENDS:].mean().mean()), 2
                    ),
                    "patients": f"{n}, {whose}",
                }
            )
    return pd.DataFrame(table)


def paired_table(personalizations: pd.DataFrame, method: str = CONTINUOUS) -> pd.DataFrame:
    """A method against the best of the others, patient by patient.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.from_nothing`.
    method : str

    Returns
    -------
    DataFrame
        One row per setup in which the method and another one personalised. The best of the others
        solved most, and of equals made the fewest runs. See `vitolab.plots.paired` for the tests.
    """
    table = []
    for setup, rows in _by_setup(personalizations):
        known = rows.assign(solved=rows["solved"].astype(float))
        means = known.groupby(["method", "patient"])[["solved", "n_runs"]].mean()
        totals = means.groupby("method").sum()
        others = [name for name in _methods(rows) if name != method]
        if method not in set(rows["method"]) or not others:
            continue
        best = str(
            totals.loc[others].sort_values(["solved", "n_runs"], ascending=[False, True]).index[0]
        )
        # an unfinished run holds fewer orders of one of them: shares are compared, not counts
        pair = means.loc[method].merge(
            means.loc[best], left_index=True, right_index=True, suffixes=("", " other")
        )
        better, worse, p = mcnemar(pair["solved"], pair["solved other"])
        difference, low, high = bootstrap(pair["n_runs"], pair["n_runs other"])
        table.append(
            {
                "setup": setup,
                "best other method": best,
                "patients": len(pair),
                f"solved more often by {method}": better,
                "less often": worse,
                "p (McNemar)": float(f"{p:.2g}"),
                f"runs, {method}": round(float(pair["n_runs"].mean()), 2),
                "runs, other": round(float(pair["n_runs other"].mean()), 2),
                "difference": round(difference, 2),
                "95 % from": round(low, 2),
                "to": round(high, 2),
            }
        )
    return pd.DataFrame(table)


def giving_up_table(without: pd.DataFrame, giving_up: pd.DataFrame) -> pd.DataFrame:
    """A method that gives patients up beside itself without that rule, in the same orders.

    Parameters
    ----------
    without, giving_up : DataFrame
        Personalisations of one method in both ways, under the same names of setups.
    """
    keys = ["setup", "patient", "repeat"]
    table = []
    joined = without.merge(giving_up, on=keys, suffixes=("", " ends"))
    for setup, own in _by_setup(joined):
        ended = own["stop_reason ends"] == "unreachable"
        runs, fewer = own["n_runs"].sum(), own["n_runs ends"].sum()
        table.append(
            {
                "setup": setup,
                "personalisations": len(own),
                "given up": int(ended.sum()),
                "of these solved without the rule": int((ended & own["solved"]).sum()),
                "solved [%]": round(100.0 * own["solved ends"].mean(), 1),
                "without the rule [%]": round(100.0 * own["solved"].mean(), 1),
                "runs per patient": round(fewer / len(own), 2),
                "without the rule": round(runs / len(own), 2),
                "fewer runs [%]": round(100.0 * (1.0 - fewer / runs), 1),
            }
        )
    return pd.DataFrame(table)


def _by_setup(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Rows of each setup, in the order of all tables."""
    if "position" not in rows:
        raise ValueError("the run stored no positions of patients, which this section shows")
    return [(setup, rows[rows["setup"] == setup]) for setup in setups_of(rows["setup"])]


def _methods(rows: pd.DataFrame) -> list[str]:
    """Methods of some rows, in the order of all tables."""
    known = set(rows["method"])
    return [name for name in METHOD_COLORS if name in known]


def _by_position(rows: pd.DataFrame) -> pd.DataFrame:
    """Forward runs of one method: a row for each position, a column for each order."""
    return rows.pivot_table("n_runs", "position", "repeat").astype(float)


def _dash(method: str) -> str:
    """Dashed lines belong to methods that learn nothing."""
    return "solid" if is_agent(method) else "dashed"


def _marker(method: str) -> str:
    """Marker of a method, the same in every panel."""
    return MARKERS[list(METHOD_COLORS).index(method) % len(MARKERS)]


def _group_name(group: int, last: int) -> str:
    """Positions of a group, such as 2–5."""
    first = GROUPS[group - 1] + 1 if group else 1
    end = min(last, GROUPS[group]) if group < len(GROUPS) else last
    return f"{first}" if first == end else f"{first}–{end}"


def _figure(
    panels: list[tuple[list[Any], str, pd.DataFrame, dict[str, Any]]],
    ylabel: str,
    personalizations: pd.DataFrame,
    patients: str,
    what: str,
) -> Any:
    """Panels of all setups, and one legend."""
    columns = min(_COLUMNS, len(panels))
    drawn = [
        panel(
            hv.Overlay(items),
            title=f"{setup} (n = {own['patient'].nunique()})",
            ylabel=ylabel if not position % columns else "",
            size=_SIZE,
            legend="right" if position == columns - 1 else None,
            **axes,
        )
        for position, (items, setup, own, axes) in enumerate(panels)
    ]
    n = personalizations["repeat"].nunique()
    orders = f"{n} random order{'' if n == 1 else 's'}"
    title = f"{patients}, no exploration, {orders}; {what}; dashed: learns nothing"
    return layout(drawn, columns=columns, title=title, size=_SIZE, gap=(0.3, 0.4))
