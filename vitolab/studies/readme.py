"""Tables of the README, made from the published runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vitolab.methods import PAPER

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the table of the circulation: their titles, and the methods that learn nothing.
_PEERS = {
    "Nelder-Mead": "nelder-mead",
    "Nelder-Mead, wide simplex": "nelder-mead-wide",
    "least squares, multi-start": "least-squares-multistart",
    "least squares from the default values": "least-squares-default",
}


def circulation(rows: pd.DataFrame) -> str:
    """Success with its interval and mean runs of all methods, one line per setup, as Markdown.

    Parameters
    ----------
    rows : DataFrame
        Personalisations of ``wbc-convergence``. Of the agent's sizes the first that solves four
        in five stands beside the largest.
    """
    from vitolab.plots.summary import order_of, summarize

    by = ["setup", "method", "n_samples"]
    table = summarize(rows, by, intervals=["success", "runs_all"])
    titles = ["setup", "Vito, samples per patient", "Vito, most samples", *_PEERS]
    lines = [titles, ["---"] * len(titles)]
    for setup in order_of(rows["setup"].tolist()):
        own = table[table["setup"] == setup]
        agent = own[own["method"] == PAPER].sort_values("n_samples").to_dict("records")
        first = next((row for row in agent if row["success"] >= 80.0), agent[0])
        cells = [f"{int(row['n_samples']):,}: {_cell(row)}" for row in (first, agent[-1])]
        peers = {str(row["method"]): row for row in own.to_dict("records")}
        lines.append([setup, *cells, *(_cell(peers[name]) for name in _PEERS.values())])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(row: dict[Any, Any]) -> str:
    """Success with its interval, and mean runs."""
    low, high = row["success_low"], row["success_high"]
    digits = 1 if 99.5 <= row["success"] < 100.0 else 0
    runs = row["runs_all"]
    share = f"{row['success']:.{digits}f} % ({low:.{digits}f} to {high:.{digits}f})"
    return f"{share}, {runs:.{1 if runs < 10 else 0}f}"
