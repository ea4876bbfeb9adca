"""The dashboard without a server: its state, and the address that brings it back."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote

import pytest
import stores
from hypothesis import example, given
from hypothesis import strategies as st

from vitolab.dashboard import load_dashboards

selection = load_dashboards("kit.selection")
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}", fullmatch=True)
numbers = st.none() | st.integers(0, 999_999_999)


@given(
    page=st.sampled_from(list(selection.PAGES)),
    runs=st.lists(names, max_size=8, unique=True),
    patient=st.just("") | st.from_regex(r"\w[\w. -]{0,63}", fullmatch=True),
    setup=st.just("") | names,
    step=numbers,
    repeat=numbers,
)
@example(page="patient", runs=["a", "b"], patient="Müller 2", setup="base", step=0, repeat=None)
def test_an_address_brings_the_same_state_back(page, runs, patient, setup, step, repeat):
    there = selection.Selection(
        page=page, runs=runs, patient=patient, setup=setup, step=step, repeat=repeat
    )
    back = selection.Selection()
    back.read("?" + there.query())
    assert {n: getattr(back, n) for n in selection.FIELDS} == {
        n: getattr(there, n) for n in selection.FIELDS
    }
    assert back.refused == ()


@given(st.text(max_size=200))
@example("page=%ff%fe&step=%F0%9F%98%80")
@example("step=٣")  # a digit, but not one of ours
@example("&".join(f"a{i}=1" for i in range(200)))
def test_no_address_breaks_the_state(query):
    state = selection.Selection()
    state.read(query)
    assert state.page in selection.PAGES
    for name, value in parse_qsl(state.query()):
        assert name in selection.FIELDS
        assert re.fullmatch(r"[\w., -]{1,600}", value)


def test_odd_filters_of_an_address_are_refused():
    state = selection.Selection()
    state.read("status=finished&sort=started,up&study=wbc-fit")
    assert state.refused == ("status", "sort")
    state.read("status=complete&sort=started,desc")
    assert state.refused == ()


@pytest.mark.parametrize("field", selection.FIELDS)
@pytest.mark.parametrize(
    "value",
    [*stores.PAYLOADS, "../../etc/passwd", "..", "/etc/passwd", "a/b", "a\\b", "a\x00b", "x" * 999],
)
def test_hostile_values_of_an_address_are_refused(field, value):
    state = selection.Selection()
    state.read(f"{field}={quote(value)}")
    assert getattr(state, field) == state.param[field].default
    assert state.refused == (field,)


def test_what_an_address_cannot_hold_stays_out_of_it():
    state = selection.Selection(search="a<b>", study="wbc-fit", runs=["x"] * 9)
    assert state.query() == "study=wbc-fit"


def test_going_back_resets_what_the_address_does_not_name():
    state = selection.Selection(page="patient", patient="C01", step=3)
    state.read("?page=results")
    assert (state.page, state.patient, state.step) == ("results", "", None)


def test_reading_an_address_is_one_change():
    state, seen = selection.Selection(), []
    state.watch(lambda: seen.append(state.patient), "patient", "step", "page")
    state.read("page=patient&patient=C01&step=3")
    assert seen == ["C01"]


def test_a_search_for_a_parameter_fits_into_an_address():
    state = selection.Selection(search='"n_samples": 100, größer')
    other = selection.Selection()
    other.read(state.query())
    assert other.search == state.search
