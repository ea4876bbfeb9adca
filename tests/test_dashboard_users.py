"""The file of passwords: what can be meant is accepted, all else is one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest

from vitolab.dashboard import read_users


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_mark_of_the_byte_order_is_no_part_of_the_file(tmp_path, encoding):
    path = tmp_path / "users.json"
    path.write_text('{"ada": "père"}', encoding=encoding)
    assert read_users(path) == {"ada": "père"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"ada": "a", "bob": "b", "ada": "c"}', "user 'ada' occurs twice, expected once"),
        (b'{"ada": "a\\u0000b"}', "user 'ada': name or password holds a control character"),
        (b'{"a\\u0000": "b"}', "name or password holds a control character"),
        (b'{"ada": "a\0b"}', "expected JSON such as"),
        (b'{"ada": "a"}\0', "expected JSON such as"),
        ('{"ada": "a"}'.encode("utf-16"), "expected JSON such as"),
        (b'{"ada": {"x": 1, "x": 2}}', "expected JSON such as"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(tmp_path, content, said):
    path = tmp_path / "users.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=said) as refused:
        read_users(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)
    assert "\0" not in str(refused.value)


@pytest.mark.timeout(120)
def test_a_user_of_a_file_with_a_mark_is_let_in_and_no_other(tmp_path):
    (tmp_path / "users.json").write_text('{"ada": "secret"}', encoding="utf-8-sig")
    command = [sys.executable, "-m", "vitolab", "dashboard", "--port", "0", "--basic-auth"]
    with subprocess.Popen(
        [*command, str(tmp_path / "users.json"), "--results", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            address = re.search(r"http://[\d.:]+/", process.stdout.readline())[0]
            assert "login" in opened(address, "bob", "secret")
            assert "login" in opened(address, "ada", "wrong")
            assert "login" not in opened(address, "ada", "secret")
        finally:
            process.terminate()


def opened(address: str, user: str, password: str) -> str:
    """Address at which a browser ends that logs in."""
    jar = urllib.request.HTTPCookieProcessor()
    browser = urllib.request.build_opener(jar)
    page = browser.open(address, timeout=30).read().decode()
    form = {"username": user, "password": password}
    form |= dict(re.findall(r'name="(_xsrf)" value="([^"]+)"', page))
    with browser.open(f"{address}login", urllib.parse.urlencode(form).encode(), timeout=60) as end:
        return end.geturl()
