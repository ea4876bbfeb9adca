"""The application: ``panel serve dashboards/app.py --args RESULTS``, or `vitolab dashboard`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from vitolab.dashboard import load_dashboards


def create_app(results: Path | str = Path("results")) -> Any:
    """Page of one session on a folder of results.

    Parameters
    ----------
    results : Path or str

    Returns
    -------
    panel.Template
    """
    return load_dashboards("kit.frame").create_app(Path(results))


if __name__.startswith("bokeh_app_"):  # as Bokeh names the script that it serves
    create_app(*sys.argv[1:2]).servable()
