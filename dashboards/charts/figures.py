"""Figures of `vitolab.plots` as the browser shows them: drawn in a worker, fitted to the page."""

from __future__ import annotations

import json
import textwrap
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import holoviews as hv
import holoviews.plotting.bokeh
import numpy as np
import pandas as pd
from bokeh.document import Document
from bokeh.embed import json_item
from bokeh.models import Axis, FixedTicker, Grid, HoverTool, LogAxis, Scatter
from bokeh.models.annotations import ColorBar, Legend, LegendItem

from ..kit.gallery import Picture

#: HoloViews keeps its options in one place for all threads.
DRAWING = threading.RLock()
# While HoloViews fills a source, it turns the validation of Bokeh off, and with it all conversions:
# for the event loop, too, whose pages would get a text where a browser expects a list or a model.
holoviews.plotting.bokeh.plot.validate = nullcontext
#: Points that a figure shows at most, all its panels together.
MOST_POINTS = 20_000
_INK = {False: ("#1f2328", "#57606a", "#ffffff", "#d5dae0"), True: ("#e8eaed", "#a5adb5")}
_INK[True] += ("#15181c", "#3a4148")
_BLACK = {"#000000", "#222222", "#333333", "black"}
#: Colours too dark to be seen on the dark page, and what stands for them there.
_LIGHTER = {"#00523c": "#8fd6c0", "#6b5b00": "#c9b458", "#8c510a": "#c98a4b", "#882255": "#c96f9b"}
_LIGHTER |= {"#332288": "#9d90e8", "#661100": "#d9896b"}
_COLORS = ("line_color", "fill_color", "text_color", "hatch_color")
#: Sizes that a logarithmic axis names by themselves.
MOST_TICKS = 8
_AXIS_CHARACTERS, _SHORT_LABEL = 44, 26


def draw(
    figure: Any,
    dark: bool = False,
    hover: Sequence[pd.DataFrame] = (),
    change: Callable[[Any], None] | None = None,
) -> tuple[Picture, ...]:
    """Draw a figure for the browser; slow, so it belongs into a worker.

    Parameters
    ----------
    figure : HoloViews object
    dark : bool
    hover : sequence of DataFrame, optional
        For each panel a table whose first two columns are places; the pointer there shows its
        columns.
    change : callable, optional
        Called with each finished panel, a Bokeh figure, to add to it.

    Returns
    -------
    tuple of Picture
        One per panel, in their order.
    """
    panels = list(figure) if isinstance(figure, hv.Layout) else [figure]
    with DRAWING:
        # in another mode it ignores the document that it is given, takes the one that the event
        # loop serves at this moment, and sends the theme of the figure to that page
        renderer = hv.renderer("bokeh").instance(mode="server")
        plots = [renderer.get_plot(panel, doc=Document()) for panel in panels]
        models = [plot.state for plot in plots]
        for plot in plots:
            plot.cleanup()
    points = sum(_points(model) for model in models)
    step = -(-points // MOST_POINTS)
    shared = _shared(models)
    if dark:
        shared = tuple((label, _seen_in_the_dark(color)) for label, color in shared)
    # a title stands above a column of panels; on a page that is narrower it stands above each
    titles = [model.title.text for model in models]
    columns = figure._max_cols if isinstance(figure, hv.Layout) else 1
    pictures = []
    for position, model in enumerate(models):
        note = _thinned(model, step) if step > 1 else ""
        if position < len(hover):
            _hover(model, hover[position])
        title, model.title.text = titles[position] or titles[position % columns], ""
        width = int(model.frame_width or 400) + 130
        _fit(model)
        _color(model, dark)
        if change is not None:
            change(model)
        text = json.dumps(_item(model))
        pictures.append(Picture(title, text, model.height, width, note, shared, columns))
    return tuple(pictures)


def _item(model: Any) -> Any:
    """JSON of a panel, which a browser embeds."""
    document = Document()
    # else each change makes this the current document of all threads for a moment, and may take
    # away that of the event loop
    document.hold("collect")
    document.add_root(model)
    item = json_item(model)
    item["doc"].pop("defs", None)  # of the dashboard's own components, which it knows
    return item


#: Points of a line or a cloud below which none is left out.
FEW = 50
_OF_POINTS = ("Line", "MultiLine", "Scatter", "Circle", "Segment")


def _parts(model: Any, kind: type) -> list[Any]:
    """Axes, legends, grids or bars of a panel; Bokeh's own search goes through everything."""
    sides = (model.left, model.right, model.above, model.below, model.center)
    return [part for side in sides for part in side if isinstance(part, kind)]


def _legends(model: Any) -> list[Legend]:
    """Legends of a panel."""
    return [part for part in _parts(model, Legend) if part.items]


def _shared(models: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Labels and colours of the legend that several panels share, and give up."""
    owners = [model for model in models if _legends(model)]
    keys = {
        tuple((_label(item), _main_color(item)) for item in _named_once(_items(model)))
        for model in owners
    }
    if len(models) < 2 or len(keys) != 1:
        return ()
    (key,) = keys
    colors = [color for _, color in key]
    if "" in colors or len(set(colors)) < len(colors):
        return ()
    for owner in owners:
        for side in ("right", "below", "center"):
            parts = getattr(owner, side)
            setattr(owner, side, [part for part in parts if not isinstance(part, Legend)])
    return key


def _items(model: Any) -> list[LegendItem]:
    """Items of the legends of a panel."""
    return [item for legend in _legends(model) for item in legend.items]


def _main_color(item: LegendItem) -> str:
    """Colour by which an item of a legend is known."""
    for renderer in item.renderers:
        for name in ("fill_color", "line_color"):
            value = getattr(renderer.glyph, name, None)
            if isinstance(value, str) and value.startswith("#"):
                return value
    return ""


def _label(item: LegendItem) -> str:
    """Text of an item of a legend."""
    label = item.label
    text = label.get("value", "") if isinstance(label, Mapping) else getattr(label, "value", label)
    return str(text or "")


def _sources(model: Any) -> list[Any]:
    """Data of points and lines, each once; of bars, areas and images none can be left out."""
    found = {}
    for renderer in model.renderers:
        source: Any = getattr(renderer, "data_source", None)
        glyph = type(getattr(renderer, "glyph", None)).__name__
        if source is not None and source.data and glyph in _OF_POINTS:
            found[source.id] = source
    return list(found.values())


def _lines(source: Any) -> bool:
    """Whether each entry of some data is a whole line."""
    return "xs" in source.data and "ys" in source.data


def _length(source: Any) -> int:
    """Number of points of some data."""
    if _lines(source):
        return sum(map(len, source.data["xs"]))
    return max(map(len, source.data.values()))


def _points(model: Any) -> int:
    """Number of points that a panel shows."""
    return sum(map(_length, _sources(model)))


def _some(n: int, step: int) -> Any:
    """Positions of points that are kept: evenly, and the last; of few all."""
    return np.arange(n) if n <= FEW else np.unique(np.append(np.arange(0, n, step), n - 1))


def _thinned(model: Any, step: int) -> str:
    """Leave points out, of each line alike, and say so."""
    total = shown = 0
    for source in _sources(model):
        data, total = source.data, total + _length(source)
        if _lines(source):
            source.data = dict(data) | {
                name: [np.asarray(line)[_some(len(line), step)] for line in data[name]]
                for name in ("xs", "ys")
            }
        else:
            kept = _some(_length(source), step)
            source.data = {name: np.asarray(column)[kept] for name, column in data.items()}
        shown += _length(source)
    return f"{shown:,} of {total:,} points are drawn, evenly chosen" if shown < total else ""


def _hover(model: Any, places: pd.DataFrame) -> None:
    """Let the pointer tell about places of a regular grid."""
    x, y = places.columns[:2]
    widths = [float(np.diff(np.unique(places[name])).min(initial=np.inf)) for name in (x, y)]
    width, height = (value if np.isfinite(value) else 1.0 for value in widths)
    columns = {f"c{i}": places[name].to_numpy() for i, name in enumerate(places.columns)}
    cells = model.rect(
        "c0", "c1", width=width, height=height, source=columns, fill_alpha=0, line_alpha=0
    )
    model.toolbar.tools = [t for t in model.toolbar.tools if not isinstance(t, HoverTool)]
    tips = []
    for i, name in enumerate(places.columns):
        number = pd.api.types.is_float_dtype(places[name])
        tips.append((str(name), f"@c{i}{{0.[000]}}" if number else f"@c{i}"))
    model.add_tools(HoverTool(renderers=[cells], tooltips=tips))


def _fit(model: Any) -> None:
    """Let a panel take the width that there is, with its legend below."""
    height = int(model.frame_height or 300) + 70
    model.frame_width = model.frame_height = None
    legends = [part for part in (*model.right, *model.below) if isinstance(part, Legend)]
    model.right = [part for part in model.right if part not in legends]
    model.below = [part for part in model.below if part not in legends]
    for legend in legends:
        legend.items = _named_once(legend.items)
        short = all(len(_label(item)) <= _SHORT_LABEL for item in legend.items)
        legend.title, legend.ncols = "", 2 if short else 1
        legend.click_policy = "hide"
        legend.location, legend.margin, legend.padding, legend.spacing = "left", 4, 2, 8
        legend.label_text_font_size, legend.glyph_height, legend.label_height = "12px", 16, 18
        model.add_layout(legend, "below")
        height += 26 * -(-len(legend.items) // legend.ncols) + 8
    model.output_backend = "canvas"  # a browser has few WebGL contexts for all its pages
    model.min_border_right = 12
    model.toolbar_location, model.toolbar.logo, model.toolbar.autohide = "above", None, True
    # the wheel and the finger scroll the page
    model.toolbar.active_drag = model.toolbar.active_scroll = None
    for axis in _parts(model, Axis):
        axis.axis_label = textwrap.fill(str(axis.axis_label or ""), _AXIS_CHARACTERS)
        axis.axis_label_text_font_size, axis.major_label_text_font_size = "12px", "11px"
        axis.axis_label_text_font_style = "normal"
        labels = dict(axis.major_label_overrides)
        # beside one another on a narrow screen: the second line stands in the table
        axis.major_label_overrides = {k: str(v).split("\n")[0] for k, v in labels.items()}
        if isinstance(axis.major_label_orientation, int | float) and axis in model.below:
            height += 6 * max((len(str(v)) for v in labels.values()), default=0)
    for axis in _parts(model, LogAxis):
        if axis in model.below:
            _tick_sizes(model, axis)
    for bar in _parts(model, ColorBar):
        bar.width, bar.title_text_font_size, bar.major_label_text_font_size = 12, "11px", "10px"
    model.sizing_mode, model.height = "stretch_width", height


def _tick_sizes(model: Any, axis: LogAxis) -> None:
    """Mark the sizes themselves on a logarithmic axis, where they are few."""
    places: set[float] = set()
    for renderer in model.renderers:
        if isinstance(renderer.glyph, Scatter) and isinstance(renderer.glyph.x, str):
            places |= {float(v) for v in renderer.data_source.data[renderer.glyph.x]}
    ticks = sorted(value for value in places if np.isfinite(value))
    if 0 < len(ticks) <= MOST_TICKS:
        axis.ticker = FixedTicker(ticks=ticks)
        axis.major_label_overrides = {value: f"{value:,.0f}" for value in ticks}


def _named_once(items: Sequence[LegendItem]) -> list[LegendItem]:
    """Items of a legend, each name once."""
    known: dict[str, LegendItem] = {}
    for item in items:
        name = _label(item)
        if name in known:
            known[name].renderers = [*known[name].renderers, *item.renderers]
        else:
            known[name] = item
    return list(known.values())


def _seen_in_the_dark(color: str) -> str:
    """The colour, or what stands for it on the dark page."""
    ink = _INK[True][0]
    return ink if color.lower() in _BLACK else _LIGHTER.get(color.lower(), color)


def _color(model: Any, dark: bool) -> None:
    """Give a panel the colours of the page."""
    ink, faint, paper, line = _INK[dark]
    model.background_fill_color = model.border_fill_color = paper
    model.outline_line_color = line
    for axis in _parts(model, Axis):
        axis.axis_label_text_color, axis.major_label_text_color = ink, ink
        axis.axis_line_color = axis.major_tick_line_color = faint
        axis.minor_tick_line_color = None
    for grid in _parts(model, Grid):
        grid.grid_line_color = line
    for part in _parts(model, Legend):
        part.label_text_color, part.background_fill_color, part.border_line_color = ink, paper, None
        part.inactive_fill_color = paper
    for part in _parts(model, ColorBar):
        part.background_fill_color = paper
        part.title_text_color = part.major_label_text_color = ink
    if not dark:
        return
    for renderer in model.renderers:
        glyphs = (
            getattr(renderer, n, None) for n in ("glyph", "nonselection_glyph", "muted_glyph")
        )
        for glyph in (*glyphs, renderer):
            for name in _COLORS:
                value = getattr(glyph, name, None)
                if isinstance(value, str):
                    setattr(glyph, name, _seen_in_the_dark(value))
