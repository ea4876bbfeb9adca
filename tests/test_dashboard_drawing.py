"""Figures are drawn beside the event loop: the page that it serves meanwhile is none of theirs."""

from __future__ import annotations

import threading

import holoviews as hv
import pytest
from bokeh.core.property.bases import validation_on
from bokeh.core.property.wrappers import PropertyValueColumnData
from bokeh.document import Document
from bokeh.io.doc import patch_curdoc
from bokeh.models import Plot, Title

from vitolab.dashboard import load_dashboards

figures = load_dashboards("charts.figures")


@pytest.fixture
def drawn():
    """Draws a figure in a thread, as a worker does."""

    def draw() -> None:
        pictures = []
        figure = hv.Overlay([hv.Curve([1, 2], label="a"), hv.Scatter([2, 1], label="b")])
        worker = threading.Thread(target=lambda: pictures.extend(figures.draw(figure)))
        worker.start()
        worker.join()
        assert len(pictures) == 1

    return draw


def test_drawing_leaves_the_page_alone_that_is_served_meanwhile(drawn):
    served, sent = Document(), []
    served.add_root(Plot(title=Title(text="of the page")))
    theme = served.theme
    served.on_change(sent.append)
    with patch_curdoc(served):
        drawn()
    assert sent == []
    assert served.theme is theme
    assert not served.callbacks.session_destroyed_callbacks


def test_drawing_does_not_change_which_page_is_served(drawn, monkeypatch):
    changed_by = []

    class Current(list):
        """Documents of Bokeh's callbacks, the current one last; all threads share them."""

        def append(self, document):
            changed_by.append(threading.current_thread())
            super().append(document)

    monkeypatch.setattr("bokeh.io.doc._PATCHED_CURDOCS", Current())
    served = Document()
    with patch_curdoc(served):
        drawn()
    assert changed_by == [threading.main_thread()]


def test_drawing_leaves_values_of_pages_validated(drawn, monkeypatch):
    """Bokeh has one switch for all threads; a value that is not validated is not converted."""
    on = []
    update = PropertyValueColumnData.update

    def updated(self, *args, **values):
        on.append(validation_on())
        return update(self, *args, **values)

    monkeypatch.setattr(PropertyValueColumnData, "update", updated)
    drawn()
    assert on  # sources are filled
    assert all(on)
