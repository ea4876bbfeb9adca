"""A study opens the run of a notebook that holds its variables, and of no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitolab.studies import STUDIES, Study


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_notebook_without_the_variables_is_refused_in_one_sentence(
    study: Study, tmp_path: Path
) -> None:
    parameters = next(iter(study.profiles.values()))
    whole = {**parameters, "results": str(tmp_path), "seed": 0, "run_folder": ""}
    kept = ("results", "seed")
    missing = [name for name in whole if name not in kept]
    with pytest.raises(ValueError, match=f"^{study.name}: the notebook has no ") as caught:
        study.open({name: whole[name] for name in kept} | {"other": 1})
    value = "its value" if len(missing) == 1 else "their values"
    named = ", ".join(repr(name) for name in missing)
    assert str(caught.value).endswith(f"has no {named}, expected {value}")
    assert not list(tmp_path.iterdir())
