"""Work of the page Results: draw a section, make a file. Figures are loaded when first needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from vitolab.store.info import RunInfo
from vitolab.studies import sections_of
from vitolab.studies.base import FILES, Content

from ...kit import export, safe
from ...kit.choice import label_of
from ...kit.gallery import Picture
from ...kit.source import Entry, Source

COMPARE = "compare"
#: Whose patients a file shows, in its name: by whether they came from a file of a user.
WHOSE = {False: "synthetic", True: "own patients"}
IN_CSV = "; the CSV holds them all"


@dataclass(frozen=True)
class Shown:
    """What a job makes ready for the page.

    Attributes
    ----------
    runs : list of str
    sections : dict of str to str
        Titles by name.
    section : str
        The one that is shown.
    repeats : list of int
    pictures : tuple of Picture
    sentence : str
        The outcome in words, or why there is none.
    tables : str
        HTML.
    failed : bool
        Whether the section cannot be shown.
    """

    runs: list[str]
    sections: dict[str, str]
    section: str
    repeats: list[int]
    pictures: tuple[Picture, ...] = ()
    sentence: str = ""
    tables: str = ""
    failed: bool = False


class Report:
    """Sections of some runs; the first tells the study."""

    def __init__(self, source: Source, ids: Sequence[str]) -> None:
        from ...kit.stored import Stored

        self.ids, self.runs = ids, [Stored(source, run) for run in ids]
        self._sections = {s.name: s for s in sections_of(self.runs[0].study)}
        self.titles = {name: section.title for name, section in self._sections.items()}
        if len(ids) > 1:
            self.titles = {COMPARE: "Compare"} | self.titles

    def build(self, name: str, repeat: int) -> Content:
        """One section; ValueError where the run lacks what it shows."""
        from .compare import compared

        if name != COMPARE:
            return self._sections[name].build(self.runs[0], repeat)
        groups = [(label_of(run.entry), run.personalizations) for run in self.runs]
        labels = [label for label, _ in groups]
        patients = {label_of(run.entry): run.patients for run in self.runs if run.finished}
        return compared(groups, dict(zip(labels, self.ids, strict=True)), patients)

    def repeats(self) -> list[int]:
        """Repeats of the study, from 0."""
        known = self.runs[0].personalizations["repeat"].dropna().unique()
        return sorted(map(int, known)) or [0]


def prepare(source: Source, ids: Sequence[str], view: str, repeat: int | None, dark: bool) -> Shown:
    """Draw one section of some runs; for a worker."""
    report = Report(source, ids)
    section = view if view in report.titles else next(iter(report.titles))
    repeats = [0]
    try:
        repeats = report.repeats()
        own = repeat if repeat in repeats else repeats[0]
        if len(ids) > 1 or report.runs[0].entry.info.status != "complete":
            return _drawn(report, section, own, dark)
        name = f"section {section}, repeat {own}, {'dark' if dark else 'light'}"
        # read again: what is kept must be of the files that it is kept for
        return source.made(ids[0], name, lambda _: _drawn(Report(source, ids), section, own, dark))
    except ValueError as error:
        told = str(error)
        return Shown(list(ids), report.titles, section, repeats, sentence=told, failed=True)


def _drawn(report: Report, section: str, repeat: int, dark: bool) -> Shown:
    """One section, drawn; ValueError where the run lacks what it shows."""
    from ...charts.figures import draw

    part = report.build(section, repeat)
    figure = part.figure if part.web is None else part.web
    pictures = () if figure is None else draw(figure, dark, part.hover)
    tables = "".join(
        folded(caption, table, opened=figure is None) for caption, table in part.tables
    )
    repeats = report.repeats()
    return Shown(list(report.ids), report.titles, section, repeats, pictures, part.sentence, tables)


def folded(caption: str, table: pd.DataFrame, opened: bool = False, more: str = IN_CSV) -> str:
    """HTML of a table that is folded away until asked for; `more` is said of a long one."""
    words = f"{caption} ({len(table):,} row{'' if len(table) == 1 else 's'})"
    head = safe.fill("<summary>{words}</summary>", words=words)
    state = " open" if opened else ""
    return f"<details{state}>{head}{export.short_table('', table, more)}</details>"


def make_file(
    source: Source, ids: Sequence[str], view: str, repeat: int | None, kind: str
) -> tuple[str, bytes]:
    """Name and content of a file of what is shown; for a worker."""
    report = Report(source, ids)
    entry = report.runs[0].entry
    repeats = report.repeats()
    repeat = repeat if repeat in repeats else repeats[0]
    view = view if view in report.titles else next(iter(report.titles))
    if kind != "html":
        part = report.build(view, repeat)
        whose = WHOSE[_is_of_a_user(entry.info)]
        name = export.file_name(entry.info.study, entry.id, view, whose, kind=kind)
        if kind == "csv":
            return name, export.csv(part.tables)
        return name, export.picture(part.figure, kind)
    chapters = []
    for section, title in report.titles.items():
        try:
            part = report.build(section, repeat)
            chapter = export.Chapter(title, part.sentence, part.figure, part.tables)
        except ValueError as error:
            chapter = export.Chapter(title, str(error))
        chapters.append(chapter)
    facts = (
        pd.DataFrame({label_of(run.entry): _facts(run.entry) for run in report.runs})
        .rename_axis("run")
        .reset_index()
    )
    title = f"{entry.info.study}: results"
    whose = WHOSE[_is_of_a_user(entry.info)]
    name = export.file_name(entry.info.study, entry.id, whose, kind="html")
    return name, export.page(title, facts, chapters)


def _is_of_a_user(info: RunInfo) -> bool:
    """Whether the patients of a run came from a file of somebody's own."""
    return any(info.parameters.get(name) for name in FILES)


def _facts(entry: Entry) -> dict[str, str]:
    """What was run, for colleagues."""
    info = entry.info
    patients = "of a user" if _is_of_a_user(info) else "synthetic"
    facts = {
        "study": info.study,
        "patients": patients,
        "status": info.status,
        "started [UTC]": info.started,
    }
    facts |= {"seed": str(info.seed), "code": info.version, "folder": entry.key}
    return facts | {name: str(value) for name, value in info.parameters.items()}
