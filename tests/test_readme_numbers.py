"""Numbers of the README are those of the published runs."""

from __future__ import annotations

from pathlib import Path

from vitolab.store import published
from vitolab.studies import readme
from vitolab.studies.claims import on_published

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_table_of_the_circulation_is_that_of_its_published_run():
    assert readme.circulation(published("wbc-convergence").personalizations) in README


def test_the_totals_from_nothing_are_those_of_the_published_run():
    rows = published("from-nothing").personalizations
    for method in ("vito-continuous", "quadratic", "least-squares-nearest"):
        (line,) = (line for line in README.splitlines() if line.startswith(f"| `{method}` | 4"))
        cells = [cell.strip() for cell in line.split("|")[2:5]]
        for setup, cell in zip(("6p", "12p", "20p"), cells, strict=True):
            own = rows[(rows["setup"] == setup) & (rows["method"] == method)]
            totals = own.groupby("repeat")["n_runs"].sum()
            ends = sorted({f"{totals.min():,}", f"{totals.max():,}"}, key=lambda n: (len(n), n))
            assert cell.endswith(f", {' to '.join(ends)}"), f"{method}, {setup}"


def test_the_factors_beside_the_best_simplex_are_those_of_the_claims():
    found = on_published().set_index("claim")["found here (95 % interval)"]
    told = [text for claim, text in found.items() if "fewer runs than the best simplex" in claim]
    factors = [text.partition("factor ")[2].partition(";")[0] for text in told]
    words = " ".join(README.split())
    assert len(factors) == 4
    for factor in factors:
        value, _, interval = factor.partition(" (")
        short = f"{value} ({interval}"
        assert short in words or f"{value} (95 % interval {interval}" in words, factor
