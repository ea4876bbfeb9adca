"""The pages Patient and Teach in a real browser."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest

pytestmark = pytest.mark.timeout(func_only=True)  # studies are run before


@pytest.fixture(scope="module")
def url(quick_store, serve_store) -> str:
    """Address of a store of real studies."""
    return serve_store(quick_store).url


def run_of(quick_store, study: str) -> str:
    """Identifier of the stored run of a study."""
    return next(path.parent.name for path in (quick_store / study).glob("*/patients.parquet"))


def names(quick_store, study: str) -> list[str]:
    """Patients of the stored run of a study."""
    table = pd.read_parquet(quick_store / study / run_of(quick_store, study) / "patients.parquet")
    return sorted(table["patient"].unique())


def asked(page) -> dict[str, list[str]]:
    """Values of the address that the browser shows."""
    return parse_qs(urlsplit(page.evaluate("window.location.href")).query)


def wait_address(page, pattern: str) -> None:
    """Wait for an address."""
    page.wait_for_function("p => new RegExp(p).test(window.location.search)", arg=pattern)


def fits_the_screen(page) -> bool:
    """Whether nothing makes the page scroll sideways."""
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def wait_drawn(page, at_least: int) -> None:
    """Wait until so many charts are drawn wider than 200 px."""
    page.wait_for_function(
        """n => {
          let drawn = 0
          const walk = (node) => {
            for (const child of node.children || []) {
              const wide = child.getBoundingClientRect().width > 200
              if (child.tagName === 'CANVAS' && wide) drawn += 1
              walk(child)
              if (child.shadowRoot) walk(child.shadowRoot)
            }
          }
          walk(document.body)
          return drawn >= n
        }""",
        arg=at_least,
    )


# --- Patient --------------------------------------------------------------------------------------


def test_a_link_opens_the_same_run_and_the_film_goes_on(url, quick_store, new_page):
    """Study, setup, patient, method and forward run are restored; Back undoes."""
    run = run_of(quick_store, "wbc-convergence")
    name = names(quick_store, "wbc-convergence")[1]
    query = f"runs={run}&setup=2p&method=nelder-mead&patient={name}&step=2"
    page = new_page(f"{url}?page=patient&{query}")
    page.get_by_text(f"{name} by nelder-mead").wait_for()
    told = page.get_by_text(re.compile(r"Forward run 3 of \d+"))
    told.wait_for()
    n = int(told.inner_text().split()[-1])
    page.get_by_text("Run 3: chosen by the optimiser").wait_for()
    wait_drawn(page, 6)
    page.locator(".play").first.click()
    page.get_by_text(f"Forward run {min(n, 5)} of {n}").wait_for()
    page.locator(".pause").first.click()
    page.get_by_role("button", name="next ▶").click()
    wait_address(page, f"patient=(?!{name})")
    other = asked(page)["patient"][0]
    page.get_by_text(f"{other} by nelder-mead").wait_for()
    page.get_by_text(re.compile("Forward run 1 of")).wait_for()
    n = page.get_by_text(re.compile(r"Forward run 1 of \d+")).inner_text().split()[-1]
    page.wait_for_function(
        """n => {
          const find = (node) => [...node.children].some((child) =>
            (child.type === 'range' && child.max === n && child.value === '1')
            || find(child) || (child.shadowRoot && find(child.shadowRoot)))
          return find(document.body)
        }""",
        arg=n,
    )
    page.go_back()
    wait_address(page, f"patient={name}")
    page.get_by_text(f"{name} by nelder-mead").wait_for()


def test_the_page_fits_a_phone(url, quick_store, new_page):
    """At 390 px in the dark; every model has its picture; the list leads to a patient."""
    run = run_of(quick_store, "rosenbrock-grid")
    page = new_page(f"{url}?page=patient&runs={run}", width=390, dark=True)
    for study in ("rosenbrock-grid", "wbc-convergence", "ep-personalization"):
        run = run_of(quick_store, study)
        label = page.locator("option", has_text=study).first.inner_text()
        page.get_by_label("Run", exact=True).select_option(label=label)
        name = names(quick_store, study)[0]
        page.get_by_text(re.compile(f"{name} by vito")).wait_for()
        page.get_by_text("Model against measurements").wait_for()
        wait_drawn(page, 5)
        assert fits_the_screen(page), study
    cell = page.locator("tbody td.c-patient:visible").nth(2)
    name = cell.inner_text().strip()
    cell.click()
    wait_address(page, f"patient={name}")
    page.get_by_text(f"{name} by vito").first.wait_for()


# --- Teach ----------------------------------------------------------------------------------------


def test_a_patient_is_solved_by_hand_and_by_vito(url, new_page):
    """Buttons, advice, Vito to the end, scoreboard."""
    page = new_page(f"{url}?page=teach&model=circulation-2p&patient=C01")
    page.get_by_text("1 forward run;").wait_for()
    wait_drawn(page, 5)
    page.get_by_role("button", name="Initial volume +100 steps").click()
    page.get_by_text("2 forward runs").wait_for()
    page.get_by_text("Run 2, you: Initial volume +100 steps.").wait_for()
    page.get_by_role("button", name="Ask Vito").click()
    page.get_by_text(re.compile("Vito would take .* because in state")).wait_for()
    page.get_by_text("never saw this patient").wait_for()
    page.get_by_role("button", name="Let Vito play").click()
    page.get_by_text(re.compile("Solved in \\d+ forward runs")).wait_for()
    page.get_by_role("button", name="Let Vito play").wait_for()
    page.get_by_role("button", name="Compute the scoreboard").click()
    page.get_by_role("cell", name="nelder-mead-wide").wait_for()
    page.get_by_role("cell", name="Vito, from its own start").wait_for()
    page.get_by_role("cell", name="you, with Vito's help").wait_for()
    page.get_by_role("button", name="New game").click()
    page.get_by_text("1 forward run;").wait_for()


def test_the_game_fits_a_phone(url, new_page):
    """At 390 px in the dark: another model is another game, and is played by keys."""
    page = new_page(f"{url}?page=teach&model=rosenbrock", width=390, dark=True)
    page.get_by_text("1 forward run;").wait_for()
    for title, name, parameter, step in (
        ("Rosenbrock function", "rosenbrock", "x₂", "+10"),
        ("Circulation, 6 parameters", "circulation-6p", "Time to maximum elastance", "+1"),
        ("Electrophysiology", "electrophysiology", "RV endocardial speed", "+10"),
    ):
        if page.get_by_label("Model").input_value() != name:
            page.get_by_label("Model").select_option(label=title)
        wait_address(page, f"model={name}")
        page.get_by_text(parameter, exact=True).wait_for()
        page.get_by_text("1 forward run;").wait_for()
        wait_drawn(page, 3)
        assert fits_the_screen(page), title
        page.get_by_role("button", name=f"{step} step").first.focus()
        assert page.get_by_role("slider", name=parameter).count() == 1
        page.keyboard.press("Enter")
        page.get_by_text("2 forward runs").wait_for()
