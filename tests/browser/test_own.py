"""The page Your own model in a real browser: answer and address follow what is typed."""

from __future__ import annotations

import dashboard_runs as made
import pytest

SENTENCE = ".summary p"


@pytest.fixture(scope="module")
def url(tmp_path_factory, serve_store) -> str:
    """A store with a run of from-nothing."""
    root = tmp_path_factory.mktemp("own")
    made.from_nothing(root)
    return serve_store(root).url


def test_a_number_that_is_typed_changes_answer_and_address(url, new_page):
    page = new_page(f"{url}?page=own&n_patients=4&hours=1")
    page.locator(SENTENCE, has_text="1 h buy 12 forward runs of 5 min").wait_for()
    page.locator(".bk-Figure canvas").first.wait_for()
    page.get_by_label("Budget [h]").fill("0.5")
    page.get_by_label("Budget [h]").press("Enter")
    page.locator(SENTENCE, has_text="0.5 h buy 6 forward runs of 5 min").wait_for()
    page.wait_for_function("window.location.search.includes('hours=0.5')")
    page.get_by_label("Patients").fill("nan")
    page.get_by_label("Patients").press("Enter")
    page.locator(".note-error", has_text='"Patients" is "nan", expected a whole number').wait_for()
    assert page.locator(SENTENCE).count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_a_narrow_screen(url, new_page, dark):
    page = new_page(f"{url}?page=own&n_patients=4&hours=1", width=390, dark=dark)
    page.locator(SENTENCE, has_text="1 h buy 12 forward runs").wait_for()
    page.locator(".bk-Figure canvas").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_text("Your own model").wait_for()
