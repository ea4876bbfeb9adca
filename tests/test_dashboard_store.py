"""The dashboard without a server: what of a folder of results is listed and read."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time

import pandas as pd
import pytest
import stores
from dashboard_runs import listed

from vitolab.dashboard import load_dashboards

source = load_dashboards("kit.source")


def test_folders_that_are_no_runs_are_listed_with_a_reason(tmp_path):
    good = stores.stored_run(tmp_path)
    bad = stores.bad_folders(tmp_path)
    found = listed(tmp_path)
    assert len(found.entries) == 5
    by_name = {entry.info.path: entry for entry in found.entries}
    assert by_name[good].info.status == "complete"
    for path in bad.values():
        assert by_name[path].info.status == "unreadable"
        assert by_name[path].info.reason
        with pytest.raises(ValueError, match="cannot be read"):
            found.run(by_name[path].id)
    assert "another version" in by_name[bad["future"]].info.reason
    assert len(found.table(good.name, "personalizations")) == 6  # and nothing else is harmed


@pytest.mark.parametrize(
    "name", ["../secret", "..", "/etc", "wbc-fit/..", "", ".", "secret", "walks", ".claims"]
)
def test_only_what_is_listed_can_be_opened(tmp_path, name):
    root = tmp_path / "results"
    stores.stored_run(root)
    shutil.copytree(stores.stored_run(tmp_path / "other"), tmp_path / "secret")
    found = listed(root)
    with pytest.raises(ValueError, match="no run"):
        found.run(name)
    with pytest.raises(ValueError, match="no run"):
        found.table(name, "traces")


@pytest.mark.parametrize("name", ["../x", "run.json", "start", "arrays"])
def test_only_known_tables_can_be_read(tmp_path, name):
    run = stores.stored_run(tmp_path)
    with pytest.raises(ValueError, match="no table"):
        listed(tmp_path).table(run.name, name)


def test_links_out_of_the_store_are_not_followed(tmp_path):
    outside = stores.stored_run(tmp_path / "outside")
    root = tmp_path / "results"
    inside = stores.stored_run(root, seed=1)
    (root / "wbc-fit" / "20200101T000000Z-link").symlink_to(outside)
    (inside / "traces.parquet").symlink_to(outside / "personalizations.parquet")
    found = listed(root)
    entry = next(e for e in found.entries if e.info.path.name.endswith("link"))
    assert entry.info.status == "unreadable"
    assert entry.info.seed is None  # nothing of it is shown
    with pytest.raises(ValueError, match="cannot be read"):
        found.table(entry.id, "personalizations")
    with pytest.raises(ValueError, match="leads out"):
        found.table(inside.name, "traces")


def test_the_folder_of_results_may_itself_be_a_link(tmp_path):
    run = stores.stored_run(tmp_path / "disk")
    (tmp_path / "results").symlink_to(tmp_path / "disk")
    assert len(listed(tmp_path / "results").table(run.name, "personalizations")) == 6


def test_tables_are_read_once_and_again_when_they_changed(tmp_path):
    run = stores.stored_run(tmp_path)
    found = listed(tmp_path)
    first = found.table(run.name, "personalizations")
    assert found.table(run.name, "personalizations") is first
    (run / "personalizations.parquet").write_bytes(b"PAR1 something else PAR1")
    with pytest.raises(ValueError, match="as stored"):
        found.table(run.name, "personalizations")


def test_a_run_that_goes_on_shows_what_is_finished(tmp_path):
    run = stores.start_run(tmp_path)
    found = listed(tmp_path)
    assert found.entries[0].info.status == "running"
    with pytest.raises(ValueError, match="no finished part"):
        found.table(run.path.name, "personalizations")
    done = stores.stored_run(tmp_path / "other")
    table = pd.read_parquet(done / "personalizations.parquet")
    run.write_part("first", table.iloc[:2])
    assert len(found.table(run.path.name, "personalizations")) == 2
    run.release()


def test_key_results_tell_vito_and_the_best_reference(tmp_path):
    run = stores.stored_run(tmp_path)
    found = listed(tmp_path)
    found.learn_facts([run.name, "unknown"])
    facts = found.entry(run.name).facts
    assert (facts.patients, facts.personalizations) == (3, 6)
    assert facts.solved == pytest.approx(200 / 3)
    assert facts.runs == pytest.approx(11.0)
    assert facts.best == "nelder-mead 0 %"


def test_a_folder_that_was_moved_away_is_not_taken_for_an_empty_one(tmp_path):
    run = stores.stored_run(tmp_path / "results")
    found = listed(tmp_path / "results")
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    found.refresh(0)
    assert found.problem == f"{tmp_path}/results: the folder is gone, expected a folder of results"
    assert [entry.id for entry in found.entries] == [run.name]
    (tmp_path / "elsewhere").rename(tmp_path / "results")
    found.refresh(0)
    assert found.problem == ""


def test_an_absent_folder_is_an_empty_store_and_a_file_is_none(tmp_path):
    assert listed(tmp_path / "absent").entries == ()
    (tmp_path / "file").touch()
    found = listed(tmp_path / "file")
    assert "expected a folder" in found.problem


def test_a_clock_that_is_set_back_stops_no_listing(tmp_path, monkeypatch):
    found = listed(tmp_path)
    stores.stored_run(tmp_path)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    found.refresh(older_than=0.0)
    assert len(found.entries) == 1


def test_a_slow_listing_keeps_no_other_session_waiting(tmp_path, monkeypatch):
    found, go_on = listed(tmp_path), threading.Event()
    monkeypatch.setattr(source, "list_runs", lambda root: go_on.wait(10) and [])
    slow = threading.Thread(target=lambda: found.refresh(older_than=0.0))
    slow.start()
    began = time.monotonic()
    found.refresh(older_than=0.0)
    assert found.entry("nothing") is None
    assert time.monotonic() - began < 5.0
    go_on.set()
    slow.join()


def test_a_device_in_the_place_of_a_record_is_no_record(tmp_path):
    """It would be read for ever."""
    run = stores.stored_run(tmp_path)
    (run / "run.json").unlink()
    (run / "run.json").symlink_to("/dev/zero")
    (entry,) = listed(tmp_path).entries
    assert entry.info.status == "unreadable"


def test_nothing_outside_the_run_is_looked_at(tmp_path):
    """Neither by a name in the manifest nor by a link of a run that goes on."""
    secret = tmp_path / "secret.json"
    secret.write_text("x")
    run = stores.stored_run(tmp_path / "results")
    record = json.loads((run / "run.json").read_text())
    record["files"]["../../../secret.json"] = {"size": 1, "sha256": "0"}
    (run / "run.json").write_text(json.dumps(record))
    found = listed(tmp_path / "results")
    found.learn_facts([run.name])
    assert "what lies outside the run is not looked at" in found.entries[0].facts.damaged
    going = stores.start_run(tmp_path / "results")
    (going.path / "problems.json").symlink_to(secret)
    found.refresh(older_than=0.0)
    with pytest.raises(ValueError, match="a link that leads out is not followed"):
        found.run(going.path.name)


def test_a_sampler_is_no_reference_method(tmp_path):
    run = stores.stored_run(tmp_path)
    table = pd.read_parquet(run / "personalizations.parquet")
    table.loc[table["method"] != "vito", "method"] = "posterior"
    table.to_parquet(run / "personalizations.parquet")
    assert load_dashboards("kit.facts").read_facts(run / "personalizations.parquet").best == ""


def test_a_run_whose_files_lead_out_of_the_store_is_not_read(tmp_path):
    run = stores.stored_run(tmp_path / "outside", "wbc-fit", 7)
    inside = tmp_path / "results" / "wbc-fit" / run.name
    inside.mkdir(parents=True)
    for name in ("start.json", "run.json"):
        (inside / name).symlink_to(run / name)
    (entry,) = listed(tmp_path / "results").entries
    assert entry.info.status == "unreadable"
    assert entry.info.seed is None


def test_a_link_in_a_circle_and_a_pipe_harm_nothing_else(tmp_path):
    run = stores.stored_run(tmp_path, "wbc-fit")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "wbc-fit" / "loop").symlink_to("loop")
    pipe = tmp_path / "wbc-fit" / "20200101T000000Z-00000001"
    pipe.mkdir()
    os.mkfifo(pipe / "run.json")
    found = {entry.info.path.name: entry.info.status for entry in listed(tmp_path).entries}
    assert found == {run.name: "complete", pipe.name: "unreadable"}


def test_a_linked_study_is_one_entry_and_tells_nothing_of_what_is_in_it(tmp_path):
    stores.stored_run(tmp_path / "outside", "secret")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "linked").symlink_to(tmp_path / "outside" / "secret")
    (entry,) = listed(tmp_path / "results").entries
    assert (entry.info.path.name, entry.info.status) == ("linked", "unreadable")


def test_a_run_whose_table_is_destroyed_is_not_listed_as_whole(tmp_path):
    run = stores.stored_run(tmp_path)
    (run / "personalizations.parquet").write_bytes(b"")
    found = listed(tmp_path)
    found.learn_facts([run.name])
    shown = load_dashboards("pages.runs.rows").row(found.entries[0])
    assert shown["status"] == "⚠ damaged"


@pytest.mark.parametrize("name", ["personalizations.parquet", "patients.parquet"])
@pytest.mark.parametrize("gone", [True, False])
def test_damage_while_the_page_is_open_is_seen(tmp_path, name, gone):
    """Any file that the run says it stored, missing or of another length."""
    run = stores.stored_run(tmp_path)
    found = listed(tmp_path)
    found.learn_facts([run.name])
    assert found.entries[0].facts.damaged == ""
    content = (run / name).read_bytes()
    (run / name).unlink()
    if not gone:
        (run / name).write_bytes(content[:-9])
    found.refresh(older_than=0)
    assert found.entries[0].facts is None
    found.learn_facts([run.name])
    why = f"{name} is {'missing' if gone else 'not as long as it was stored'}"
    assert found.entries[0].facts.damaged == why
    assert load_dashboards("pages.runs.rows").row(found.entries[0])["note"].endswith(why)
