"""The dashboard without a server: text of others is shown as text."""

from __future__ import annotations

import pandas as pd
import pytest
import stores
from hypothesis import example, given
from hypothesis import strategies as st
from markup import elements

from vitolab.dashboard import load_dashboards

safe = load_dashboards("kit.safe")


@given(st.text(max_size=300))
@example(stores.PAYLOADS[0])
@example("&lt;b&gt;")
def test_text_is_shown_as_it_is(value):
    shown = elements(safe.text(value))
    assert shown.found == []
    assert shown.text == safe.plain(value)


@pytest.mark.parametrize("payload", stores.PAYLOADS)
def test_every_door_escapes(payload):
    frame = pd.DataFrame({payload: [payload, None, 1.5]})
    for markup, allowed in (
        (safe.fill("<b>{x}</b>", x=payload), {"b"}),
        (safe.note_html("error", payload, payload), {"div", "strong", "pre", "code"}),
        (
            safe.table_html(frame, caption=payload),
            {"div", "table", "caption", "thead", "tr", "th", "tbody", "td"},
        ),
    ):
        found = elements(markup)
        assert set(found.found) <= allowed
        assert payload in found.text


def test_text_cannot_turn_around_or_flood_the_page():
    assert safe.plain("a\u202eb\x00c\u2066d") == "abcd"
    assert len(safe.plain("x" * 10_000)) == safe.LIMIT
