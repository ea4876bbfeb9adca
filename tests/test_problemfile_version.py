"""The version of a problem from a file follows what its answers depend on."""

import own_problem
import pytest
from own_problem import spoil

from vitolab.problemfile import ProblemError, read_problem
from vitolab.store import list_runs
from vitolab.studies import OWN
from vitolab.studies import running as studies

own = own_problem.own


def test_the_version_follows_what_the_answers_depend_on(own):
    before = read_problem(own / "problem.toml")
    again = read_problem(own / "problem.toml")
    assert (again.key, again.problem.version) == (before.key, before.problem.version)
    (own / "model.py").write_text((own / "model.py").read_text() + "\n")
    touched = read_problem(own / "problem.toml")
    assert touched.problem.version != before.problem.version
    touched.check_key("")
    with pytest.raises(ProblemError, match="was changed after the run was started"):
        touched.check_key(before.key)
    spoil(own, ("tolerance = 2.0", "tolerance = 2.5"))
    wider = read_problem(own / "problem.toml")
    assert wider.problem.version == touched.problem.version  # walks are the same
    assert wider.key != touched.key


@pytest.mark.parametrize(
    "changes",
    [
        [('output = "mean"', 'output = "X"'), ('"systolic"', '"mean"'), ('"X"', '"systolic"')],
        [('output = "systolic"', 'output = "systolic"\noutput_unit = "kPa"')],
        [('name = "mean_pressure"', 'name = "pressure"')],
        [('name = "resistance"', 'name = "x1"'), ('name = "compliance"', 'name = "resistance"')],
        [("time_limit = 10.0 ", "time_limit = 11.0 ")],
        [('version = "1"', 'version = "2"')],
    ],
    ids=["outputs", "unit", "objective", "parameters", "limit", "version"],
)
def test_what_changes_an_answer_changes_the_version(own, changes):
    before = read_problem(own / "problem.toml")
    now = read_problem(spoil(own, *changes))
    assert now.problem.version != before.problem.version
    assert now.key != before.key


def test_order_is_part_of_the_version_and_number_of_workers_is_not(own):
    path = own / "problem.toml"
    before = read_problem(path)
    text = path.read_text()
    path.write_text(text.replace("# workers = 2 ", "workers = 2 "))
    assert read_problem(path).key == before.key
    head, first, second, rest = text.split("[[objectives]]")[0:4]
    path.write_text("[[objectives]]".join([head, second, first, rest]))
    assert read_problem(path).problem.version != before.problem.version


def test_what_a_model_imports_from_beside_it_is_part_of_the_version(own):
    (own / "constants.py").write_text("import deeper.inner\nK = 1.0\n")
    (own / "deeper").mkdir()
    (own / "deeper" / "inner.py").write_text("pass\n")
    (own / "model.py").write_text("from constants import K\n" + (own / "model.py").read_text())
    versions = {read_problem(own / "problem.toml").problem.version}
    (own / "constants.py").write_text("import deeper.inner\nK = 2.0\n")
    versions.add(read_problem(own / "problem.toml").problem.version)
    (own / "deeper" / "inner.py").write_text("...\n")
    versions.add(read_problem(own / "problem.toml").problem.version)
    (own / "other.py").write_text("nobody imports this\n")
    versions.add(read_problem(own / "problem.toml").problem.version)
    assert len(versions) == 3


def test_resuming_with_something_else_is_refused_field_by_field(own, tmp_path, monkeypatch):
    def begun(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(studies, "execute", begun)
    given = {"problem": str(own / "problem.toml"), "patients": str(own / "patients.csv")}
    results = tmp_path / "results"
    with pytest.raises(KeyboardInterrupt):
        studies.run(OWN, overrides=given, results=results)
    (before,) = list_runs(results)
    assert before.status == "interrupted"
    spoil(own, ("upper = 3.0", "upper = 3.5"), ("tolerance = 2.0", "tolerance = 2.5"))
    csv = own / "patients.csv"
    csv.write_text(csv.read_text().replace("103.6", "104.6"))
    (own / "model.py").write_text((own / "model.py").read_text() + "\n")
    with pytest.raises(ProblemError) as caught:
        studies.run(OWN, overrides=given, results=results)
    text = str(caught.value)
    assert "parameters, resistance, upper was 3.0, is 3.5" in text
    assert "objectives, mean_pressure, tolerance was 2.0, is 2.5" in text
    assert "version was" in text
    assert "model, files, model.py was" in text
    assert "patients.csv, row 2: was W01,95.0,62.0,103.6" in text
    assert "again=True" in text
    assert [run.path for run in list_runs(results)] == [before.path]
    with pytest.raises(KeyboardInterrupt):
        studies.run(OWN, overrides=given, results=results, seed=1)  # another run altogether
    monkeypatch.setattr(studies, "execute", lambda *arguments: "")
    done = studies.run(OWN, overrides=given, results=results, again=True)
    assert done.status == "complete"
    assert len(list_runs(results)) == 3
    # which the old one does not stand in the way of
    assert studies.run(OWN, overrides=given, results=results).path == done.path
