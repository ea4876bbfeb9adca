"""The version of the code: every method that a study can use is part of it."""

from __future__ import annotations

import pytest
from extras import AGENTS_HERE

from vitolab import version
from vitolab.exploration import explore
from vitolab.methods import AGENTS, METHODS, REFERENCES, Settings, build, learn
from vitolab.models import electrophysiology
from vitolab.studies import STUDIES


def modules_of(method: object) -> set[str]:
    """Modules of this package in which the class of a method and its bases are written."""
    homes = {kind.__module__ for kind in type(method).__mro__}
    return {home for home in homes if home.startswith("vitolab.")}


@pytest.fixture(scope="module")
def homes(linear_problem, linear_patients) -> dict[str, set[str]]:
    """Modules of each method that is built or learned."""
    walks = explore(linear_problem, linear_patients[:3], n_episodes=10, n_steps=4, seed=0)
    learned = learn(AGENTS_HERE, linear_problem, walks, 0, Settings(n_states=5, n_replays=1))
    whole = electrophysiology.problem("bem")  # every reference applies
    built = {name: build(name, whole) for name in REFERENCES}
    found = {name: modules_of(method) for name, method in {**learned, **built}.items()}
    # what it learns is there with its extra only
    neural = {f"vitolab.reference.opponents.{module}" for module in ("neural", "flow")}
    return found | {"npe": neural | found.get("npe", set())}


def test_every_study_depends_on_all_methods_that_it_can_use(homes):
    """An interrupted run never goes on with another code of a method."""
    assert set(homes) == {*AGENTS, *REFERENCES} < set(METHODS)
    assert all(homes.values())
    sources = version._sources(version.package_folder())
    n_studies = 0
    for study in STUDIES:
        notebook = version._notebook(version.package_folder(), study.name)
        assert notebook is not None
        reached = version._reached(sources, version._imported_by(notebook))
        if "vitolab.methods" not in reached:
            assert study.name == "tour"  # which names its methods, and stores no others
            continue
        n_studies += 1
        for name, modules in homes.items():
            assert modules <= reached, f"{study.name}: {name}"
    assert n_studies > 10
