"""What tests skip where an extra is missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from vitolab.methods import AGENTS

HAS_SBI = find_spec("sbi") is not None and find_spec("torch") is not None
needs_sbi = pytest.mark.skipif(not HAS_SBI, reason='sbi is missing: pip install "vitolab[npe]"')
#: Agents that can act here.
AGENTS_HERE = tuple(name for name in AGENTS if HAS_SBI or name != "npe")
