"""The page Results without a server: sections drawn once, and files to take away."""

from __future__ import annotations

import io
import re
import shutil
import xml.etree.ElementTree as ET

import dashboard_runs as made
import pandas as pd
import pytest
import result_pages
from dashboard_runs import listed

from vitolab.dashboard import load_dashboards

runs = result_pages.runs

export = load_dashboards("kit.export")
report = load_dashboards("pages.results.report")


def test_a_page_says_whose_patients_it_shows(runs, tmp_path):
    found, ids = runs
    _, content = report.make_file(found, [ids["prediction"]], "forecast", None, "html")
    assert "<td>synthetic</td>" in content.decode()
    run = made.prediction(tmp_path, parameters={"data": "surgery.csv"})
    _, content = report.make_file(listed(tmp_path), [run], "forecast", None, "html")
    assert "<td>of a user</td>" in content.decode()


def test_a_section_is_drawn_once(runs):
    found, ids = runs
    drawn = [report.prepare(found, [ids["scouting"]], *asked, False) for asked in ASKED]
    assert all(shown is drawn[0] for shown in drawn)
    dark = report.prepare(found, [ids["scouting"]], "curves", None, True)
    assert dark.pictures[0].item != drawn[0].pictures[0].item


#: The same section and repeat, as addresses may ask for them.
ASKED = (("curves", None), ("curves", 0), ("", None), ("nothing", 99))


def test_a_section_is_drawn_anew_when_the_files_of_its_run_changed(tmp_path):
    ids = [made.convergence(tmp_path / f"store {solved}", solved=solved) for solved in (1, 3)]
    one, three = (tmp_path / f"store {n}" / "wbc-convergence" for n in (1, 3))
    found = listed(tmp_path / "store 1")
    before = report.prepare(found, [ids[0]], "curves", None, False)
    shutil.rmtree(one / ids[0])
    shutil.copytree(three / ids[1], one / ids[0])
    after = report.prepare(found, [ids[0]], "curves", None, False)
    assert "33 % (0 to 100) with 100" in before.sentence
    assert "100 % (44 to 100) with 100" in after.sentence


def test_a_table_as_csv_holds_all_rows_and_no_formula():
    frame = pd.DataFrame({"name": ["=1+1", "plain", "@x"], "value": [-1.5, 2.0, 3.0]})
    text = export.csv((("one", frame),)).decode("utf-8-sig")
    back = pd.read_csv(io.StringIO(text))
    assert back["name"].tolist() == ["'=1+1", "plain", "'@x"]
    assert back["value"].tolist() == [-1.5, 2.0, 3.0]
    long = pd.DataFrame({"k": range(1_000)})
    assert len(pd.read_csv(io.StringIO(export.csv((("k", long),)).decode("utf-8-sig")))) == 1_000
    assert "200 of 1,000 rows" in export.short_table("k", long)


def test_figures_are_saved_as_png_and_svg(runs):
    found, ids = runs
    name, png = report.make_file(found, [ids["scouting"]], "curves", None, "png")
    assert name == f"wbc-scouting-{ids['scouting']}-curves-synthetic.png"
    assert png.startswith(b"\x89PNG")
    _, svg = report.make_file(found, [ids["scouting"]], "curves", None, "svg")
    assert ET.fromstring(svg).tag.endswith("svg")


def test_a_saved_page_holds_its_pictures_and_asks_no_other_machine(runs):
    found, ids = runs
    name, content = report.make_file(found, [ids["initialization"]], "boxes", None, "html")
    page = content.decode("utf-8")
    assert name.endswith(".html")
    assert page.count('<img src="data:image/png;base64,') == 2
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", page)
    assert "<script" not in page
    for title in ("Errors of the start", "Methods"):
        assert f"<h2>{title}</h2>" in page


@pytest.mark.parametrize("words", [("../../etc", "pass wd"), ("<b>", ""), ("", "")])
def test_names_of_files_hold_no_path(words):
    name = export.file_name(*words, kind="csv")
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*\.csv", name)
    assert ".." not in name
