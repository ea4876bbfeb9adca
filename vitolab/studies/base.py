"""The type of a study, what its runs show, and what several studies share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vitolab.catalogue import CIRCULATION, ELECTROPHYSIOLOGY
from vitolab.methods import AGENTS, REFERENCES
from vitolab.settings import Settings

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from vitolab.store import OpenRun
    from vitolab.store.records import ProblemRecord

#: Parameters of every notebook that are not the study's: they come from arguments of `run`.
GIVEN = ("seed", "n_jobs", "results", "run_folder")
#: Parameters that name a file of data, of which a copy is kept; empty for none.
FILES = ("data", "patients")

#: Numbers of states that the paper chose for the circulation (section 3.3.2).
N_STATES = {setup: CIRCULATION.n_states[setup] for setup in ("2p", "3p", "5p", "6p")}
#: States of the paper's electrophysiology, for both lead fields (section 3.2.2).
EP_STATES = dict(ELECTROPHYSIOLOGY.n_states)
#: The paper's number of states and largest number of forward runs there (sections 3.2.2, 3.2.4).
EP: Mapping[str, Any] = {
    "n_states": EP_STATES[ELECTROPHYSIOLOGY.setup],
    "max_runs": ELECTROPHYSIOLOGY.max_runs,
}
#: Patients of the frozen cohorts.
N_CIRCULATION = CIRCULATION.n_patients
N_HEARTS = ELECTROPHYSIOLOGY.n_patients
#: How the paper's agent acts: the threshold of its policy (section 2.4), and the recurrence of a
#: parameter vector that is an oscillation (section 2.6).
ACTING: Mapping[str, Any] = {"epsilon": Settings.epsilon, "recurrences": Settings.recurrences}
#: Methods that a user would take instead of an agent.
PEERS = ["nelder-mead", "least-squares", "least-squares-multistart"]
#: What a user would build who has the walks that an agent learns from.
OPPONENTS = ["least-squares-nearest", "quadratic", "gp-emulator", "correlation"]
#: The paper's simplex methods, and its peers; for any problem.
SIMPLEX_AND_PEERS = [
    "nelder-mead",
    "nelder-mead-unweighted",
    "nelder-mead-wide",
    "nelder-mead-default",
    *PEERS[1:],
    "least-squares-default",
]
#: The paper's methods of electrophysiology, and its peers; speeds act by ratio, which is shown.
BOBYQA_AND_PEERS = [
    "bobyqa-simple",
    "bobyqa-simple-ratio",
    "bobyqa-simple-default",
    "bobyqa-cascade",
    "bobyqa-cascade-stable",
    *PEERS[1:],
    "least-squares-default",
]


class StoredRun(Protocol):
    """A stored run, as sections read it: `vitolab.store.Run`, or a run of the dashboard."""

    @property
    def study(self) -> str:
        """Name of its study."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of its study."""
        ...

    @property
    def finished(self) -> bool:
        """Whether all tables are there; before, only the personalisations can be read."""
        ...

    @property
    def personalizations(self) -> pd.DataFrame:
        """One row per personalisation, so far."""
        ...

    @property
    def patients(self) -> pd.DataFrame:
        """One row per setup and patient."""
        ...

    @property
    def traces(self) -> pd.DataFrame:
        """One row per forward run of what was traced."""
        ...

    @property
    def failures(self) -> pd.DataFrame:
        """Failed forward runs by patient and cause."""
        ...

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Arrays by name."""
        ...

    @property
    def problems(self) -> Mapping[str, ProblemRecord]:
        """Problems by setup, as they were stored."""
        ...


#: A caption and its table.
Table = tuple[str, "pd.DataFrame"]


@dataclass(frozen=True)
class Content:
    """The content of a section: a sentence, a figure, its numbers.

    Attributes
    ----------
    sentence : str
        The outcome in words.
    figure : HoloViews object or None
        For notebooks and files.
    tables : tuple of (str, DataFrame)
        The numbers of the figure, with their captions.
    web : HoloViews object or None
        For the browser, where it differs.
    hover : tuple of DataFrame
        For each panel of the browser, what is said where the pointer is.
    """

    sentence: str
    figure: Any = None
    tables: tuple[Table, ...] = ()
    web: Any = None
    hover: tuple[pd.DataFrame, ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of what a run shows, by the name that addresses of the dashboard hold.

    Attributes
    ----------
    name, title : str
    build : callable
        ``build(stored, repeat) -> Content``; ValueError where the run lacks what it shows. It
        imports `vitolab.plots` itself: studies are listed without HoloViews and pandas.
    """

    name: str
    title: str
    build: Callable[[StoredRun, int], Content]


def check_acting(study: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse what an agent cannot act by, see `ACTING`; nothing follows from these parameters."""
    try:
        Settings(**{name: parameters[name] for name in ACTING})
    except ValueError as error:
        raise ValueError(f"{study}: {error}") from None
    return {}


def _nothing_follows(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Accept all parameters."""
    return {}


@dataclass(frozen=True)
class Study:
    """A notebook, the sizes at which it is run, and what its runs show.

    Attributes
    ----------
    name : str
        With hyphens; runs are stored under ``results/<name>/``.
    notebook : str
        File name, or an absolute path.
    title : str
    profiles : mapping of str to mapping of str to JSON value
        Parameters of each size.
    duration : mapping of str to str
        What to expect of each size on a laptop with two cores.
    sections : tuple of Section
        What a run shows: in the notebook, on the page Results, in the HTML report.
    choices : mapping of str to tuple of str
        What parameters may be, or hold.
    least, most : mapping of str to int
        Limits of counts; those that are not named are at least 1.
    check : callable
        ``check(parameters)``: parameters that follow from the others; ValueError where these
        cannot be run.
    read : callable or None
        Reads a file that a parameter names, and refuses a malformed one.
    traces, policy : bool
        Whether runs store forward runs of their personalisations (for the page Patient), and a
        policy (for the page Policy).
    perturbed : bool
        Whether fits of one patient differ in the measurements: these are no solutions of one
        problem.
    tiny : mapping of str to JSON value
        Changes of the quick profile that make a run of seconds, for tests.
    """

    name: str
    notebook: str
    title: str
    profiles: Mapping[str, Mapping[str, Any]]
    duration: Mapping[str, str]
    sections: tuple[Section, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _nothing_follows
    read: Callable[[Path], object] | None = None
    traces: bool = False
    policy: bool = False
    perturbed: bool = False
    tiny: Mapping[str, Any] = field(default_factory=dict)

    def open(self, namespace: Mapping[str, Any]) -> OpenRun:
        """Open the run that a notebook fills; see `vitolab.store.open_run`.

        The notebook calls it once, after its cell of parameters and before it computes, and none
        of these variables has another value by then.

        Parameters
        ----------
        namespace : mapping of str to object
            Variables of the notebook, ``globals()``. By name it holds each parameter of the
            profiles, and ``results`` (folder of all results), ``seed``, and ``run_folder`` (folder
            of the run that `vitolab.studies.run` started, empty if the notebook is opened by
            hand). Other variables do not count.

        Returns
        -------
        OpenRun

        Raises
        ------
        RunInUse
            If a live process owns the run.
        ValueError
            If variables are missing, or the run was started with others.
        """
        from vitolab.store import open_run

        names = next(iter(self.profiles.values()))
        needed = (*names, "results", "seed", "run_folder")
        if missing := [name for name in needed if name not in namespace]:
            values = "its value" if len(missing) == 1 else "their values"
            raise ValueError(
                f"{self.name}: the notebook has no {', '.join(map(repr, missing))}, expected "
                f"{values}"
            )
        return open_run(
            self.name,
            {name: namespace[name] for name in names},
            results=namespace["results"],
            seed=namespace["seed"],
            folder=namespace["run_folder"],
        )

    def show(self, stored: StoredRun, section: str, table: str = "", *, repeat: int = 0) -> Any:
        """One section of a run, for a cell of a notebook.

        Parameters
        ----------
        stored : Run
        section : str
            Its name.
        table : str
            Caption of the table to show; otherwise it is the figure, below its sentence.
        repeat : int

        Returns
        -------
        HoloViews object or DataFrame or None
            None where the run lacks what the section shows: a sentence says so.

        Raises
        ------
        ValueError
            If the study has no such section.
        """
        known = {own.name: own for own in self.sections}
        if section not in known:
            raise ValueError(
                f"{self.name}: there is no section {section!r}, expected one of {', '.join(known)}"
            )
        try:
            part = known[section].build(stored, repeat)
        except ValueError as error:
            print(error)
            return None
        tables = dict(part.tables)
        if table:
            if table not in tables:
                print(f"The run holds nothing for the table {table!r}.")
            return tables.get(table)
        print(part.sentence)
        return part.figure


#: What parameters of these names may be, or hold, in all studies of this package.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "setups": tuple(CIRCULATION.n_states),
    "lead_fields": tuple(ELECTROPHYSIOLOGY.n_states),
    "lead_field": tuple(ELECTROPHYSIOLOGY.n_states),
    "mode": ("table", "exact"),
    "agents": AGENTS,
    "methods": REFERENCES,
}


def choices(*names: str) -> dict[str, tuple[str, ...]]:
    """Some of `CHOICES`, for a study."""
    return {name: CHOICES[name] for name in names}
