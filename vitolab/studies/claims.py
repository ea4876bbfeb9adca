"""What the paper claims, and whether it holds on the published runs.

A claim *holds* if the 95 % interval of its quantity lies on the side that the paper states, *does
not hold* if the interval lies on the other side, and is *not decided* if it lies on both. The
patients of all studies are synthetic: rates are not comparable to the paper's, relations are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from vitolab.studies import (
    ep_personalization,
    ep_scouting,
    rosenbrock_grid,
    wbc_convergence,
)
from vitolab.studies.evidence import (
    NEXT_TO_NOTHING,
    Claim,
    Evidence,
    Verdict,
    above,
    equal,
    fewer_runs,
    more,
    more_without_restart,
    never_solved,
    share_of_starts,
    solved_with,
    success_beside,
    varies_with_start,
    weighted,
    wide_range,
)

if TYPE_CHECKING:
    import pandas as pd


def _alike(ends: tuple[float, float]) -> Verdict:
    """Verdict on two success rates that are claimed to be the same."""
    return equal(ends, NEXT_TO_NOTHING)


_MAJORITY, _EVERY = 50.0, 100.0

#: In the order of the paper.
CLAIMS: tuple[Claim, ...] = (
    Claim(
        "3.1",
        "Rosenbrock: most starts converge",
        rosenbrock_grid.STUDY.name,
        share_of_starts("base, free", _MAJORITY),
    ),
    Claim(
        "3.1",
        "Rosenbrock, longer steps too: every start converges",
        rosenbrock_grid.STUDY.name,
        share_of_starts("extended, free", _EVERY),
    ),
    Claim(
        "3.1",
        "Rosenbrock: with restarts every start converges",
        rosenbrock_grid.STUDY.name,
        share_of_starts("base, free, restart", _EVERY),
    ),
    Claim(
        "3.2.2",
        "Hearts: 50 to 300 states do equally well",
        ep_scouting.STUDY.name,
        wide_range("bem", 50, 300),
    ),
    Claim(
        "3.2.3",
        "Hearts: the start of BOBYQA changes its success by 25 points or more",
        ep_personalization.STUDY.name,
        varies_with_start("bem", "bobyqa-simple", 25.0),
    ),
    Claim(
        "3.2.4",
        "Hearts: Vito solves as many as the BOBYQA cascade",
        ep_personalization.STUDY.name,
        success_beside(
            "bem", "bobyqa-cascade-stable", lambda e: equal(e, NEXT_TO_NOTHING), best=True
        ),
    ),
    Claim(
        "3.2.4",
        "Hearts: Vito solves more than BOBYQA alone",
        ep_personalization.STUDY.name,
        success_beside("bem", "bobyqa-simple", more, best=True),
    ),
    Claim(
        "3.2.4",
        "Hearts: Vito makes 2.5 times fewer runs than the cascade",
        ep_personalization.STUDY.name,
        fewer_runs("bem", "bobyqa-cascade-stable", 2.5),
    ),
    Claim(
        "4.1",
        "Hearts: some 20 % are solved by no method",
        ep_personalization.STUDY.name,
        never_solved("bem", 20.0),
    ),
    *(
        Claim(
            "3.3.3",
            f"Circulation, {setup}: the simplex solves more with the normalised misfit",
            wbc_convergence.STUDY.name,
            weighted(setup),
        )
        for setup in ("2p", "3p", "5p", "6p")
    ),
    Claim(
        "3.3.4",
        "Circulation, 2p: 80 % solved with fewer than 50 samples per patient",
        wbc_convergence.STUDY.name,
        solved_with("2p", 50, 80.0),
    ),
    Claim(
        "3.3.4",
        "Circulation, 2p: seven times fewer runs than the best simplex, from 1,000 samples on",
        wbc_convergence.STUDY.name,
        fewer_runs("2p", "nelder-mead", 7.0, 1000),
    ),
    *(
        Claim(
            "3.3.4",
            f"Circulation, {setup}: at least 1.8 times fewer runs than the best simplex",
            wbc_convergence.STUDY.name,
            fewer_runs(setup, "nelder-mead", 1.8),
        )
        for setup in ("3p", "5p", "6p")
    ),
    *(
        Claim(
            "3.3.4",
            f"Circulation, {setup}: success at least that of the simplex",
            wbc_convergence.STUDY.name,
            success_beside(setup, "nelder-mead", lambda e: above(e, 0.0)),
        )
        for setup in ("2p", "3p", "5p", "6p")
    ),
    Claim(
        "4.2",
        "Circulation, 6p: more patients need no restart with more training",
        wbc_convergence.STUDY.name,
        more_without_restart("6p"),
    ),
)


def on_published() -> pd.DataFrame:
    """Table of all claims on the published runs."""
    from vitolab.store import list_published, published

    known = {info.study for info in list_published()}
    return judged(lambda study: published(study).personalizations if study in known else None)


def as_markdown(table: pd.DataFrame) -> str:
    """A table of text as it stands in a README."""
    rows = [list(map(str, table.columns)), ["---"] * len(table.columns)]
    rows += [[str(cell) for cell in row] for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def judged(personalizations: Callable[[str], pd.DataFrame | None]) -> pd.DataFrame:
    """Table of all claims with their evidence.

    Parameters
    ----------
    personalizations : callable
        Gives the personalisations of a study, None if there are none.

    Returns
    -------
    DataFrame
        One row per claim.
    """
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "section": claim.section,
                "claim": claim.words,
                "verdict": evidence.verdict,
                "found here (95 % interval)": evidence.found,
                "study": claim.study,
            }
            for claim, evidence in _evidence(personalizations)
        ]
    )


def _evidence(
    personalizations: Callable[[str], pd.DataFrame | None],
) -> Iterator[tuple[Claim, Evidence]]:
    """Each claim with its evidence."""
    for claim in CLAIMS:
        rows = personalizations(claim.study)
        try:
            found = Evidence("not run", "") if rows is None else claim.judge(rows)
        except KeyError as error:
            found = Evidence("not run", f"the run holds no {error.args[0]}")
        yield claim, found
