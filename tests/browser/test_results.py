"""The pages Results and Policy in a real browser: figures, comparison, files, clicks, looks."""

from __future__ import annotations

import base64
import time

import dashboard_runs as made
import pandas as pd
import pytest

# the page is asked for pieces that Panel keeps within shadow roots, which locators go through
SUMMARY = ".summary li, .summary p"


def until(condition, timeout: float = 100.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Runs of several kinds, and their identifiers."""
    root = tmp_path_factory.mktemp("results")
    ids = {
        "first": made.convergence(root),
        "second": made.convergence(root, solved=1, seed=7, parameters={"n_starts": 5}),
        "grid": made.grid(root),
        "boxes": made.initialization(root),
    }
    return root, ids


@pytest.fixture
def look(store, serve_store, new_page):
    """Opens a page of the store with a state in its address."""
    root, _ = store
    url = serve_store(root).url

    def open_page(query: str, **options):
        page = new_page(f"{url}?{query}", **options)
        page.locator(SUMMARY).first.wait_for()
        return page

    return open_page


def figures(page, n: int) -> None:
    """Wait until so many figures are drawn."""
    visible = page.locator(".bk-Figure:visible")
    until(lambda: visible.count() == n)
    until(lambda: page.locator(".bk-Figure:visible canvas").count() >= n)


def search(page) -> str:
    """State in the address."""
    return page.evaluate("window.location.search")


def has_no_horizontal_scroll(page) -> bool:
    """Whether the page is as wide as the screen."""
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_two_runs_are_compared_numbers_follow_and_the_way_back(look, store):
    """By a copied address, and by the widget."""
    ids = store[1]
    page = look(f"page=results&runs={ids['first']},{ids['second']}")
    figures(page, 4)
    assert page.get_by_text("What differs between the runs").is_visible()
    assert page.get_by_role("cell", name="n_starts").is_visible()
    page.get_by_role("button", name="This run only").click()
    until(lambda: ids["second"] not in search(page))
    page.get_by_text("What differs between the runs").wait_for(state="detached")
    page.get_by_role("button", name="Numbers", exact=True).click()
    page.get_by_text("Samples needed").first.wait_for()
    assert "view=numbers" in search(page)
    assert page.locator(".bk-Figure:visible").count() == 0
    page.go_back()
    figures(page, 4)
    tail = ids["second"].rpartition("-")[2]
    widget = page.get_by_label("Compare with")
    widget.select_option(widget.locator("option", has_text=tail).get_attribute("value"))
    page.get_by_text("What differs between the runs").wait_for()
    assert ids["second"] in search(page)


def test_files_are_saved_and_open(look, store, tmp_path, browser):
    page = look(f"page=results&runs={store[1]['boxes']}")
    figures(page, 2)
    saved = {}
    for button, kind in (
        ("Save CSV", "csv"),
        ("Save SVG", "svg"),
        ("Save as a page (HTML)", "html"),
    ):
        with page.expect_download() as download:
            page.get_by_role("button", name=button, exact=True).click()
        saved[kind] = tmp_path / download.value.suggested_filename
        assert saved[kind].suffix == f".{kind}"
        download.value.save_as(saved[kind])
        page.get_by_text("was handed to the browser").wait_for()
    assert "start" in pd.read_csv(saved["csv"]).columns
    size = page.evaluate(  # a browser shows it
        """async (data) => {
          const image = new Image()
          image.src = `data:image/svg+xml;base64,${data}`
          await image.decode()
          return image.naturalWidth
        }""",
        _base64(saved["svg"]),
    )
    assert size > 300
    # the page stands for itself
    context = browser.new_context(offline=True)
    asked: list[str] = []
    alone = context.new_page()
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto(saved["html"].as_uri())
    widths = alone.evaluate("Array.from(document.images, (image) => image.naturalWidth)")
    assert len(widths) == 2
    assert min(widths) > 300
    assert all(url.startswith(("file:", "data:")) for url in asked)
    assert page.get_by_role("button", name="Save PNG").is_enabled()  # which the page holds
    context.close()


def _base64(path) -> str:
    """Content of a file as an address of data holds it."""
    return base64.b64encode(path.read_bytes()).decode("ascii")


def test_a_state_is_chosen_by_click_and_by_keys(look, store):
    page = look(f"page=policy&runs={store[1]['grid']}&state=3")
    page.get_by_text("State 3 stands for misfits").wait_for()
    figures(page, 4)
    box = page.locator(".bk-Figure:visible").first.bounding_box()
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.6 * box["height"])
    until(lambda: "state=3" not in search(page))
    number = int(search(page).split("state=")[1].split("&")[0])
    page.get_by_text(f"State {number} stands for misfits").wait_for()
    assert page.get_by_text("Its actions (").is_visible()
    page.set_viewport_size({"width": 390, "height": 900})
    page.get_by_label("State", exact=True).focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("5")
    page.keyboard.press("Tab")
    page.get_by_text("State 5 stands for misfits").wait_for()
    assert "state=5" in search(page)
    assert has_no_horizontal_scroll(page)


@pytest.mark.timeout(400)  # the first to ask for real studies waits for them
def test_results_of_real_studies_open(quick_store, serve_store, new_page):
    page = new_page(f"{serve_store(quick_store).url}?page=results")
    page.locator(SUMMARY).first.wait_for()
    widget = page.get_by_label("Run", exact=True)
    options = widget.locator("option")
    assert widget.input_value() == "the newest"
    for value in [options.nth(k).get_attribute("value") for k in range(1, options.count())]:
        widget.select_option(value)
        tail = value.rpartition("(")[2].rstrip(")")
        until(lambda tail=tail: tail in search(page))
        until(lambda: page.locator(".bk-Figure:visible canvas").count() > 0)
        assert page.locator(".note-error").count() == 0
