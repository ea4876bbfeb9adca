"""The frame and the page of runs in a real browser."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import served_runs
import stores

store = served_runs.store
url = served_runs.url


@pytest.fixture
def live(tmp_path, serve_store):
    """An empty store that a test fills, served by itself."""
    server = serve_store(tmp_path / "results")
    yield tmp_path / "results", server
    server.stop()


def query(page) -> str:
    """State in the address that the browser shows; `page.url` may be old."""
    return page.evaluate("window.location.search")


def rows(page):
    """Rows of the table of runs."""
    return page.locator("tbody tr:has(input)")


def cell(page, row: int, field: str):
    """Cell of the table of runs."""
    return rows(page).nth(row).locator(f".c-{field}")


def wait_address(page, pattern: str) -> None:
    """Wait for an address."""
    page.wait_for_function("p => new RegExp(p).test(window.location.search)", arg=pattern)


def test_opens_with_header_table_and_key_results(url, store, new_page):
    page = new_page(url)
    page.get_by_text(str(store), exact=True).wait_for()
    page.get_by_text("34 runs", exact=True).wait_for()
    rows(page).nth(19).wait_for()
    assert rows(page).count() == 20
    page.get_by_text(re.compile(r"updated \d\d:\d\d:\d\d UTC")).wait_for()
    solved = page.locator("td.c-solved", has_text="66.7")
    solved.first.wait_for()
    assert page.title() == "vitolab"


def test_deep_link_restores_filters_order_and_choice(url, store, new_page):
    starts = (store / "ep-scouting").glob("2*/start.json")
    run = next(path.parent.name for path in starts if '"seed": 0,' in path.read_text())
    page = new_page(f"{url}?page=runs&study=ep-scouting&search=setups&sort=seed,asc&runs={run}")
    page.get_by_text("6 of 34 runs").wait_for()
    assert cell(page, 0, "seed").inner_text() == "0"
    assert rows(page).nth(0).locator("input").is_checked()
    page.get_by_text("The chosen run").wait_for()
    assert page.get_by_label("Study").input_value() == "ep-scouting"


def test_filters_reach_the_address_and_back_undoes(url, new_page):
    page = new_page(url)
    page.get_by_label("Study").select_option("ep-scouting")
    page.get_by_text("6 of 34 runs").wait_for()
    wait_address(page, "study=ep-scouting")
    page.get_by_role("button", name="Results", exact=True).first.click()
    wait_address(page, "page=results")
    page.go_back()
    wait_address(page, r"^\?study=ep-scouting$")
    page.get_by_text("6 of 34 runs").wait_for()
    page.go_back()
    page.get_by_text(re.compile("^34 runs. Choose")).wait_for()
    assert page.get_by_label("Study").input_value() == "all studies"
    page.go_forward()
    page.get_by_text("6 of 34 runs").wait_for()


def test_search_and_order(url, new_page):
    page = new_page(url)
    page.get_by_label("Search").press_sequentially("schema 99", delay=5)
    page.get_by_text("1 of 34 runs").wait_for()
    page.get_by_label("Search").fill("<b>")
    page.get_by_text("None of 34 runs matches.").wait_for()
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_text(re.compile("^34 runs. Choose")).wait_for()
    assert page.get_by_label("Search").input_value() == ""
    page.get_by_label("Study").select_option("ep-scouting")
    page.get_by_text("6 of 34 runs").wait_for()
    for order, first in (("asc", "0"), ("desc", "20")):
        page.get_by_role("button", name="seed").click()
        wait_address(page, f"sort=seed,{order}")
        assert cell(page, 0, "seed").inner_text() == first


def test_several_are_chosen_and_compared(url, new_page):
    page = new_page(url)
    for row in (0, 2):
        rows(page).nth(row).locator("input").check()
    page.get_by_role("button", name="Compare 2 runs").wait_for()
    page.get_by_text("What differs").wait_for()
    wait_address(page, r"runs=[\w-]+,[\w-]+")
    page.get_by_role("button", name="Compare 2 runs").click()
    wait_address(page, "page=results.*runs=|runs=.*page=results")
    page.go_back()
    page.get_by_text("What differs").wait_for()
    page.get_by_role("button", name="Choose none").click()
    page.wait_for_function("() => !window.location.search.includes('runs')")
    assert page.locator("tbody input:checked").count() == 0


def test_works_by_keyboard(url, new_page):
    page = new_page(url)
    rows(page).first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the page"
    box = rows(page).nth(1).locator("input")
    box.focus()
    page.keyboard.press("Space")
    page.get_by_text("The chosen run").wait_for()
    results = page.get_by_role("button", name="Results", exact=True).first
    results.focus()
    page.keyboard.press("Enter")
    wait_address(page, "page=results")


def test_nothing_scrolls_sideways(url, store, new_page):
    run = sorted((store / "wbc-fit").glob("2*-*"))[-1].name
    page = new_page(f"{url}?runs={run}")
    rows(page).first.wait_for()
    page.get_by_text("The chosen run").wait_for()
    for width in (1280, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("w => document.documentElement.scrollWidth <= w", arg=width)
        last = rows(page).first.locator("td:visible").last.bounding_box()
        assert last["x"] + last["width"] <= width
        assert cell(page, 0, "study").is_visible()


def test_light_and_dark_follow_the_system(url, new_page):
    page = new_page(f"{url}?study=ep-scouting", dark=True)
    for dark in (True, False):
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.wait_for_function(
            """dark => {
              const [red] = getComputedStyle(document.body).backgroundColor.match(/\\d+/)
              return (red < 128) === dark
            }""",
            arg=dark,
        )
        page.get_by_text("6 of 34 runs").wait_for()
        assert query(page) == "?study=ep-scouting"


def test_a_running_study_is_seen_without_losing_place(live, new_page):
    root, server = live
    page = new_page(server.url)
    page.get_by_text("holds no runs as yet").wait_for()
    page.get_by_text(f"vitolab demo --results {root}").wait_for()
    for seed in range(25):
        stores.stored_run(root, seed=seed)
    run = stores.start_run(root, "ep-scouting")
    page.get_by_text("26 runs, 1 running").wait_for()
    page.locator("td.c-status", has_text="▶ running").wait_for()
    page.get_by_role("button", name="next ›").click()
    box = rows(page).nth(3).locator("input")
    box.check()
    page.get_by_text("The chosen run").wait_for()
    page.evaluate("window.scrollTo(0, 60)")
    before = page.evaluate("window.scrollY")
    run.progress("learning", 3, 10)  # a cell changes
    stores.stored_run(root, "wbc-scouting")  # a row comes
    page.get_by_text("27 runs, 1 running").wait_for()
    page.get_by_text("page 2 of 2").wait_for()
    assert page.locator("tbody input:checked").count() == 1
    assert page.evaluate("window.scrollY") == before
    page.get_by_label("Status").select_option("▶ running")
    cell(page, 0, "status").get_by_text("▶ running 30 %").wait_for()
    run.close("failed", stores.PAYLOADS[0])
    page.get_by_text("None of 27 runs matches.").wait_for()
    page.get_by_label("Status").select_option("✗ failed")
    cell(page, 0, "note").get_by_text(stores.PAYLOADS[0]).wait_for()
    assert page.evaluate("window.hit") is None


def test_a_lost_connection_is_told_and_comes_back(live, new_page, watched):
    root, server = live
    watched.expected += ["ERR_CONNECTION_REFUSED", "WebSocket", "Lost websocket", "ERR_EMPTY"]
    stores.stored_run(root)
    page = new_page(f"{server.url}?search=seed")
    page.get_by_text("1 run", exact=True).wait_for()
    port = server.port
    server.stop()
    page.get_by_text("The connection to the server was lost").wait_for()
    server.start(port)
    page.get_by_text("The connection to the server was lost").wait_for(state="hidden")
    page.get_by_text("1 run", exact=True).wait_for()
    assert query(page) == "?search=seed"


def test_a_password_is_asked_for_under_a_prefix(store, tmp_path, browser, watched, new_server):
    users = tmp_path / "users.json"
    users.write_text('{"ann": "secret"}', encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from vitolab.dashboard import serve; "
        "serve(sys.argv[1], port=0, prefix='/lab/ann', basic_auth=Path(sys.argv[3]), "
        "published=False)"
    )
    server = new_server(store, code=code, arguments=(str(users),))
    page = browser.new_page()
    watched.watch(page)
    try:
        script = page.request.get(f"{server.url}autoload.js?bokeh-autoload-element=1")
        assert script.status == 404  # pages of others do not embed this one
        page.goto(server.url)
        page.get_by_label("User").fill("ann")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("Invalid username or password").wait_for()
        assert rows(page).count() == 0
        page.get_by_label("User").fill("ann")
        page.get_by_label("Password").fill("secret")
        page.get_by_role("button", name="Log in").click()
        rows(page).first.wait_for()
        assert urlsplit(server.url).path == "/lab/ann/"
    finally:
        page.close()
        server.stop()


def test_panel_itself_can_serve_the_application(store, new_page):
    """``panel serve dashboards/app.py --args RESULTS``, with all options that Panel has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    application = Path(__file__).parents[2] / "dashboards" / "app.py"
    command = [sys.executable, "-m", "panel", "serve", str(application), "--port", str(port)]
    with subprocess.Popen([*command, "--args", str(store)], stderr=subprocess.PIPE, text=True) as p:
        try:
            assert p.stderr is not None
            assert any(f":{port}/app" in line for line in p.stderr)
            page = new_page(f"http://127.0.0.1:{port}/app")
            rows(page).first.wait_for()
        finally:
            p.terminate()
