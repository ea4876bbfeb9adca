"""Hostile text, addresses and machines against the dashboard in a real browser."""

from __future__ import annotations

import base64
import http.client
import itertools
import re
import urllib.request
from urllib.parse import quote, urlsplit

import pytest
import served_runs
import stores

store = served_runs.store
url = served_runs.url


def test_hostile_text_is_shown_and_never_acts(url, store, new_page):
    chosen = ",".join(sorted(path.name for path in (store / "hostile").glob("2020*")))
    page = new_page(f"{url}?runs={chosen}&status=failed")
    page.get_by_text("6 of 34 runs").wait_for()
    for payload in stores.PAYLOADS:
        page.locator("td").get_by_text(payload, exact=True).first.wait_for()
        page.locator("td.c-note").get_by_text(payload, exact=True).wait_for()
    for text in page.get_by_role("cell", name="bold").all():
        text.hover()
    for payload in stores.PAYLOADS[:2]:
        page.get_by_label("Search").fill(payload)
        page.get_by_text("1 of 34 runs").wait_for()
    assert page.evaluate("window.hit") is None


def test_hostile_names_never_act_on_any_page(tmp_path, serve_store, new_page):
    """Setup, patient, method, problem, parameters, objectives, units: all are payloads."""
    stores.hostile_study(tmp_path, stores.PAYLOADS)
    page = new_page(serve_store(tmp_path).url, width=390, dark=True)
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert color == "rgb(21, 24, 28)"
    for title, sign in (
        ("Results", "Vito solves 0 %"),
        ("Policy", "stands for misfits of"),
        ("Patient", "by vito: not solved"),
    ):
        page.get_by_role("button", name=title, exact=True).first.click()
        for text in (stores.PAYLOADS[0], sign):
            page.get_by_text(text).locator("visible=true").first.wait_for()
        page.locator(".bk-Figure:visible canvas").first.wait_for()
        page.locator(".bk-Figure:visible").first.hover()
        assert page.evaluate("document.documentElement.scrollWidth") == 390, title
    assert page.evaluate("window.hit") is None


def test_the_browser_is_told_to_ask_no_other_machine(url, new_page, watched):
    page = new_page(url)
    watched.expected += ["other.example", "Content Security Policy"]
    refused = page.evaluate(
        """async () => {
          const told = []
          document.addEventListener('securitypolicyviolation', (e) => told.push(e.blockedURI))
          document.body.append(Object.assign(new Image(), {src: 'http://other.example/x.png'}))
          await fetch('http://other.example/').catch(() => null)
          await new Promise((resolve) => setTimeout(resolve, 100))
          return told
        }"""
    )
    assert sorted(refused) == ["http://other.example/", "http://other.example/x.png"]


#: Of an address; the last is none.
NAMES = ("page", "runs", "study", "setup", "patient", "step", "view", "sort", "status", "<b>")


def test_hostile_values_of_the_address_never_act(url, new_page):
    payloads = itertools.cycle(stores.PAYLOADS)
    state = "&".join(f"{name}={quote(next(payloads))}" for name in NAMES)
    page = new_page(f"{url}?{state}#{quote(stores.PAYLOADS[0])}")
    page.get_by_text("The address held values that make no sense").wait_for()
    page.get_by_text("34 runs. Choose").wait_for()
    assert page.evaluate("window.hit") is None


def handshake(url: str, origin: str, host: str | None = None) -> int:
    """Status with which the server answers a WebSocket of some origin, for some host."""
    parts = urlsplit(url)
    with urllib.request.urlopen(url) as answer:
        token = re.search(r'"token":"([^"]+)"', answer.read().decode())
    assert token
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.request(
        "GET",
        "/ws",
        headers={
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
            "Sec-WebSocket-Protocol": f"bokeh, {token.group(1)}",
            "Origin": origin,
            "Host": host or parts.netloc,
        },
    )
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:1", "http://localhost.evil.example", "null"]
)
def test_a_foreign_origin_is_refused(url, origin):
    assert handshake(url, origin) == 403


def test_a_foreign_name_that_points_here_is_refused(url):
    """The page and the socket: a name that its owner lets point at this machine (rebinding)."""
    name = f"evil.example:{urlsplit(url).port}"
    assert handshake(url, f"http://{name}", name) == 403
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port, timeout=10)
    connection.request("GET", "/", headers={"Host": name})
    answer = connection.getresponse()
    assert answer.status == 403
    assert b"--origin" in answer.read()


def test_the_own_origin_is_not_refused(url):
    assert handshake(url, url.rstrip("/")) != 403
