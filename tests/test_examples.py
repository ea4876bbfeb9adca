"""Examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module

import pytest

import vitolab

NAMED = [name for name in vitolab._HOMES if name not in {"find_model", "StopReason"}]


@pytest.mark.parametrize("name", NAMED)
def test_an_example_of_every_public_name_gives_what_it_says(name):
    thing = getattr(vitolab, name)
    module = import_module(thing.__module__)
    text = inspect.getdoc(thing)
    test = doctest.DocTestParser().get_doctest(text, {}, name, module.__file__, 0)
    assert test.examples, f"{name} has no example"
    out: list[str] = []
    failed, _ = doctest.DocTestRunner().run(test, out=out.append)
    assert not failed, "".join(out)
