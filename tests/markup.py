"""HTML, taken apart."""

from __future__ import annotations

from html.parser import HTMLParser


class Elements(HTMLParser):
    """Names of the elements of some HTML, and all text in it."""

    def __init__(self):
        super().__init__()
        self.found, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data):
        self.text += data


def elements(markup):
    """Parse some HTML."""
    parser = Elements()
    parser.feed(markup)
    parser.close()
    return parser
