"""How every figure looks: colours, sizes, and the same options for files and for the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import holoviews as hv

# importing a plotting package registers its backend, without output in a notebook
import holoviews.plotting.bokeh
import holoviews.plotting.mpl
import numpy as np
import pandas as pd

from vitolab.methods import METHODS

Backend = Literal["bokeh", "matplotlib"]

#: One colour per method, everywhere, and the order of methods in tables.
METHOD_COLORS = {name: method.color for name, method in METHODS.items()}
# Tol's bright scheme, for what is not a method: setups, walks, objectives
SERIES_COLORS = ("#4477AA", "#228833", "#B89C00", "#AA3377", "#EE6677", "#4FA8C4", "#777777")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SUCCESS_COLOR = "#009E73"
MEASURED_COLOR = "#222222"
MAP = "cividis"
TIMES = "viridis_r"  # activation: early is light, late is dark
PIXELS_PER_INCH = 80
TITLE_INCHES = 0.6

# the same option in the words of each backend
_WORDS = {"line_width": "linewidth", "line_dash": "linestyle", "line_color": "edgecolor"}
# triangles too: HoloViews would turn one by an angle, which a legend leaves out
_BOKEH_MARKERS = {"D": "diamond", "P": "cross", "X": "x", "*": "star"}
_BOKEH_MARKERS |= {"^": "triangle", "v": "inverted_triangle"}


def series_color(position: int) -> str:
    """Colour of the n-th series."""
    return SERIES_COLORS[position % len(SERIES_COLORS)]


def lighter(color: str, share: float) -> str:
    """Mix a colour ``#RRGGBB`` with a share of white."""
    parts = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * share):02X}" for part in parts)


def style(
    element: Any,
    *,
    bokeh: Mapping[str, Any] | None = None,
    matplotlib: Mapping[str, Any] | None = None,
    **both: Any,
) -> Any:
    """Set options of one element for both backends.

    Parameters
    ----------
    element : HoloViews element
    bokeh, matplotlib : mapping, optional
        Options that only one backend knows.
    **both
        Options in Bokeh's words; ``size`` is the diameter of a marker in pixels.
    """
    for_matplotlib = {_WORDS.get(name, name): value for name, value in both.items()}
    for_bokeh = dict(both)
    if "size" in both:
        # Matplotlib's markers are given by their area in square points
        for_matplotlib["s"] = for_matplotlib.pop("size") ** 2 * 0.55
    if "marker" in both:
        for_bokeh["marker"] = _BOKEH_MARKERS.get(both["marker"], both["marker"])
    for_bokeh |= bokeh or {}
    for_matplotlib |= matplotlib or {}
    return element.opts(**for_bokeh, backend="bokeh").opts(**for_matplotlib, backend="matplotlib")


def fill(element: Any, color: str, alpha: float) -> Any:
    """Fill an area, a rectangle or a span without an outline."""
    return style(
        element,
        alpha=alpha,
        bokeh={"color": color, "line_width": 0},
        # without "color" too, Matplotlib's cycle of colours paints over the face
        matplotlib={"color": color, "facecolor": color, "linewidth": 0},
    )


def panel(
    element: Any,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    size: tuple[float, float] = (4.4, 3.2),
    legend: str | None = None,
    **options: Any,
) -> Any:
    """Set title, axes and size of a panel.

    Parameters
    ----------
    element : HoloViews element or overlay
    title, xlabel, ylabel : str
        Axis labels carry units.
    size : (float, float)
        Width and height of the plotting area in inches.
    legend : {"right", "bottom", "top_right", ...}, optional
        Where the legend stands; None shows none.
    **options
        Further options that both backends know (``logx``, ``ylim``, ``xticks`` ...).
    """
    width, height = size
    fonts = {"title": 11, "labels": 10, "ticks": 9, "legend": 9}
    for_bokeh: dict[str, Any] = {
        "frame_width": round(width * PIXELS_PER_INCH),
        "frame_height": round(height * PIXELS_PER_INCH),
        "fontsize": {name: f"{points}pt" for name, points in fonts.items()},
        "toolbar": "above",
    }
    for_matplotlib: dict[str, Any] = {"fig_inches": size, "aspect": "auto", "fontsize": fonts}
    if isinstance(element, hv.Overlay):
        # beyond the limit HoloViews hides the legend, and unlabelled items count too
        options |= {"show_legend": legend is not None, "legend_limit": 1000}
        if legend is not None:
            for_bokeh["legend_position"] = legend
            for_matplotlib["legend_position"] = legend
        if legend == "bottom":  # HoloViews' own place for it is upon the axis label
            where = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.55 / height)}
            for_matplotlib |= {"legend_position": "inner", "legend_opts": where | {"ncol": 2}}
    named = [axis for axis in "xy" if options.get(f"log{axis}") and f"{axis}ticks" in options]
    if named:
        for_matplotlib["hooks"] = [partial(_named_ticks_alone, named)]
    options |= {"title": _literal(title), "xlabel": xlabel, "ylabel": ylabel}
    return style(element, bokeh=for_bokeh, matplotlib=for_matplotlib, **options)


def _literal(title: str) -> str:
    """A title as it is: HoloViews formats it."""
    return title.replace("{", "{{").replace("}", "}}")


def _named_ticks_alone(axes: Sequence[str], plot: Any, _element: Any) -> None:
    """Label no ticks of logarithmic axes but those that have names (Matplotlib)."""
    for axis in axes:
        getattr(plot.handles["axis"], f"{axis}axis").set_minor_formatter("")


def logarithmic(values: list[float]) -> dict[str, Any]:
    """Options of a logarithmic axis for these values, with ticks that can be read."""
    known = np.array([value for value in values if np.isfinite(value)])
    if not known.size:
        return {"ylim": (0.0, 1.0)}
    every = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]
    low = max((tick for tick in every if tick <= known.min()), default=known.min() / 1.2)
    high = min((tick for tick in every if tick >= known.max() and tick > low), default=known.max())
    ticks = [tick for tick in every if low <= tick <= high]
    low, high = low / 1.1, high * 1.1
    return {
        "logy": True,
        "ylim": (float(low), float(high)),
        "yticks": [(tick, f"{tick:g}") for tick in ticks],
    }


def layout(
    panels: Sequence[Any],
    *,
    columns: int,
    title: str = "",
    size: tuple[float, float] = (4.4, 3.2),
    gap: tuple[float, float] = (0.3, 0.35),
) -> Any:
    """Put panels side by side.

    Parameters
    ----------
    panels : sequence of HoloViews elements
    columns : int
    title : str
        Stands above all panels.
    size : (float, float)
        Width and height of one plotting area in inches.
    gap : (float, float)
        Space between columns and rows in shares of a plotting area.
    """
    if len(panels) == 1:
        options = hv.Store.lookup_options("matplotlib", panels[0], "plot").kwargs
        own = options.get("title", "")
        title = _literal(title)
        return style(panels[0], title=f"{own}, {title}" if own and title else own or title)
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    width = size[0] * (columns + gap[0] * (columns - 1))
    height = size[1] * (rows + gap[1] * (rows - 1))
    # Matplotlib writes the title into the figure: half an inch for it, the rest for the panels;
    # what stands outside the axes lies outside the figure, and is saved with it.
    return style(
        hv.Layout(list(panels)).cols(columns),
        title=_literal(title),
        bokeh={"shared_axes": False, "merge_tools": True},
        matplotlib={
            "fig_inches": (width, height + TITLE_INCHES),
            "fig_bounds": (0.0, 0.0, 1.0, height / (height + TITLE_INCHES)),
            "hspace": gap[0],
            "vspace": gap[1],
            "sublabel_format": "",
            "fontsize": {"title": 13},
            "shared_axes": False,
        },
    )


def series(
    own: pd.DataFrame,
    x: str,
    *,
    label: str,
    color: str,
    dash: str,
    marker: str,
    band: bool = True,
) -> list[Any]:
    """Curve of a mean, with its bands.

    These are 0.5 and 1 standard deviation over the repeats; where some point has one repeat only,
    the interval over the patients, if there is one. Nothing is drawn of width zero.

    Parameters
    ----------
    own : DataFrame
        Columns `x`, ``mean``, ``deviation``, ``low``, ``high``; see `vitolab.plots.summary.curve`.
    x : str
    label, color, dash, marker : str
    band : bool

    Returns
    -------
    list of HoloViews elements
        To be overlaid.
    """
    where, mean = own[x].to_numpy(float), own["mean"].to_numpy(float)
    items = []
    for low, high in _bands(own) if band else ():
        items.append(fill(hv.Area((where, low, high), x, ["low", "high"]), color, 0.15))
    items.append(
        style(
            hv.Curve((where, mean), x, "value", label=label),
            color=color,
            line_width=2.0,
            line_dash=dash,
        )
    )
    points = hv.Scatter((where, mean), x, "value", label=label)
    items.append(style(points, color=color, size=7, marker=marker, bokeh={"tools": ["hover"]}))
    return items


def _bands(own: pd.DataFrame) -> list[tuple[Any, Any]]:
    """Lower and upper ends of the bands of a curve."""
    names = ("mean", "deviation", "low", "high")
    mean, deviation, low, high = (own[name].to_numpy(float) for name in names)
    if len(own) and (own["repeats"] > 1).all():
        return [(mean - share * deviation, mean + share * deviation) for share in (1.0, 0.5)]
    known = np.isfinite(low) & np.isfinite(high)
    # a point without an interval pinches the band instead of breaking it
    return [(np.where(known, low, mean), np.where(known, high, mean))] if known.any() else []


def use(backend: Backend = "matplotlib") -> None:
    """Show figures with this backend, and whole tables, in a notebook."""
    hv.extension(backend, logo=False)
    hv.output(backend=backend, dpi=100)
    for name, value in (("max_rows", 500), ("max_columns", 40), ("max_colwidth", 80)):
        pd.set_option(f"display.{name}", value)


def save(figure: Any, path: str | Path, *, dpi: int = 144) -> Path:
    """Draw a figure with Matplotlib into a file.

    Parameters
    ----------
    figure : HoloViews object
    path : path
        Ends in ``.png`` or ``.svg``.
    dpi : int
        Resolution of a PNG.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If the file is to be of another kind.
    """
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter

    path = Path(path)
    if path.suffix not in (".png", ".svg"):
        raise ValueError(f"{path}: expected a name that ends in .png or .svg")
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = hv.render(figure, backend="matplotlib", dpi=dpi)
    for text in drawn.findobj(Text):
        text.set_parse_math(False)  # names are free text, and "$" has no meaning in them
    for axis in (axis for axes in drawn.axes for axis in (axes.xaxis, axes.yaxis)):
        for which in ("major", "minor"):
            if not isinstance(getattr(axis, f"get_{which}_formatter")(), FixedFormatter):
                for text in getattr(axis, f"get_{which}ticklabels")():
                    text.set_parse_math(True)  # powers of ten
    drawn.savefig(path, dpi=dpi, bbox_inches="tight")
    return path
