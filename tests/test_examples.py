"""Examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest
from extras import HAS_SBI

import vitolab

ROOT = Path(vitolab.__file__).parent
NAMED = [name for name in vitolab._HOMES if name not in {"find_model", "StopReason"}]
#: Every module that holds an example, of whichever class, method or function.
MODULES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", NAMED)
def test_every_public_name_has_an_example(name):
    assert ">>> " in inspect.getdoc(getattr(vitolab, name))


@pytest.mark.parametrize("name", MODULES)
def test_every_example_gives_what_it_says(name):
    if name.endswith(".neural") and not HAS_SBI:
        pytest.skip('sbi is missing: pip install "vitolab[npe]"')
    examples = doctest.DocTestFinder(exclude_empty=True).find(import_module(name))
    examples = [each for each in examples if each.examples]
    assert examples, f"{name} has no example that is found"
    runner, out = doctest.DocTestRunner(), list[str]()
    for each in examples:
        runner.run(each, out=out.append)
    assert not runner.failures, "".join(out)
