"""Work of the page Policy: draw the plane of states, one state, and how the values were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool
from numpy.typing import NDArray

from vitolab.store.policies import setups_of

from ...kit import export
from ...kit.gallery import Picture
from ...kit.source import Source
from ...kit.stored import Stored
from ..results.report import folded
from . import learned as policy
from .learned import Learned

_CHOSEN = "#D55E00"
#: Successors that are drawn.
MOST_SUCCESSORS = 12


@dataclass(frozen=True)
class Shown:
    """What a job makes ready for the page; see `pages.policy.page`.

    Attributes
    ----------
    study, run : str
    known : Learned
    setups : list of str
        Those whose policy the run stored.
    axes : (int, int)
        Objectives across and up.
    colors, all_marks : tuple of str
        What can be chosen, see `policy_figures`.
    color, marks : str
        What is.
    near : bool
        Whether the plane ends where most states do.
    inside : ndarray of bool, shape (n_states,)
        States within the plane that is shown.
    half : ndarray, shape (2,)
        Half its width and height, in the units of the objectives.
    first : int
        State that is shown where none is chosen.
    plane : Picture
    sentence, table : str
        The plane in words, and as HTML.
    """

    study: str
    run: str
    known: Learned
    setups: list[str]
    axes: tuple[int, int]
    colors: tuple[str, ...]
    color: str
    near: bool
    all_marks: tuple[str, ...]
    marks: str
    inside: NDArray[np.bool_]
    half: NDArray[np.float64]
    first: int
    plane: Picture
    sentence: str
    table: str

    def marks_at(self, state: int, action: int) -> dict[str, dict[str, list[float]]]:
        """Marks of a state in the plane, and of where an action leads from there."""
        at = self.known.states.centroids[:, list(self.axes)]
        reached = policy.successors(self.known, state, action)
        # a failed run is nowhere in the plane
        reached = reached[reached["state"] < self.known.states.n_states].head(MOST_SUCCESSORS)
        ends = at[reached["state"].to_numpy(int)]
        x, y = map(float, at[state])
        return {
            "ring": {"x": [x], "y": [y]},
            "ways": {
                "x": [x] * len(ends),
                "y": [y] * len(ends),
                "to_x": ends[:, 0].tolist(),
                "to_y": ends[:, 1].tolist(),
                "width": [1.0 + 5.0 * share for share in reached["probability"].tolist()],
            },
        }


@dataclass(frozen=True)
class ShownState:
    """A state in words, its figure and tables."""

    sentence: str
    pictures: tuple[Picture, ...]
    tables: str


@dataclass(frozen=True)
class ShownFurther:
    """How the values were found, and the policy over parameters, in words and figures."""

    sentence: str
    pictures: tuple[Picture, ...]
    functions: list[str]
    function: str


def prepare(
    source: Source,
    run_id: str,
    setup: str,
    objectives: Sequence[str],
    color: str,
    view: str,
    dark: bool,
) -> Shown:
    """Draw the plane of states of a run; for a worker.

    Raises
    ------
    ValueError
        If the run stored none, or what it stored is missing or damaged.
    """
    from ...charts.figures import draw
    from . import figures as figures

    run = Stored(source, run_id).run
    stored = "arrays.npz" in run.manifest.files or (run.path / "arrays.npz").exists()
    arrays = run.arrays if stored else {}
    setups = setups_of(arrays)
    if not setups:
        raise ValueError(
            f"The run {run_id} of {run.manifest.study} stored no policy; runs of "
            f"{', '.join(policy.STUDIES)} do."
        )
    name = _setup(setup, setups)
    known = source.made(
        run_id,
        f"{name}/learned",
        lambda run: policy.learned(run.arrays, run.manifest.problems, name),
    )
    axes = _axes(known, objectives)
    colors = tuple(c for c in figures.COLORS if c != "visits" or known.visits is not None)
    all_marks = tuple(m for m in figures.MARKS if m != "arrows" or known.mdp is not None)
    words = view.split(",")
    near = "near" in words
    marks = next((m for m in all_marks if m in words), all_marks[0])
    color = color if color in colors else colors[0]
    figure = figures.plane(known, axes, color, near, marks)
    inside = figures.inside(known, axes, near)

    def change(model: Any) -> None:
        _hover(model, known, axes, inside)
        _add_marks(model)

    (plane,) = draw(figure, dark, change=change)
    return Shown(
        run.manifest.study,
        run_id,
        known,
        setups,
        axes,
        colors,
        color,
        near,
        all_marks,
        marks,
        inside,
        figures.limits_of(known, axes, near),
        _first(known),
        plane,
        _told(known, inside, marks),
        folded("All states", policy.state_table(known)),
    )


def prepare_further(
    source: Source, run_id: str, known: Learned, patient: str, dark: bool
) -> ShownFurther:
    """Draw how the values were found, and the policy over parameters; for a worker."""
    from ...charts.figures import draw
    from . import figures as figures

    further: list[Picture] = []
    notes: list[str] = []
    functions: list[str] = []
    function = ""
    if known.rounds:
        further += draw(figures.convergence(known.rounds), dark)
        notes.append(_rounds_told(known))
    else:
        notes.append("How the values converged is not stored with this run.")
    try:
        patients = source.run(run_id).patients
        points, steps, optimum, function = policy.over_parameters(known, patients, patient)
        title = f"best action for {function} (α = {optimum[0]:.2f})"
        further += draw(figures.parameter_map(points, steps, optimum, title), dark)
        functions = sorted(patients["patient"].unique().tolist())
        notes.append(
            "Over parameter space: the misfits at each point follow from the function's α, the "
            "state and its best action from the stored policy."
        )
    except ValueError as error:
        notes.append(str(error))
    return ShownFurther("\n".join(notes), tuple(further), functions, function)


def prepare_state(known: Learned, state: int, action: int, dark: bool) -> ShownState:
    """Draw one state; for a worker."""
    from ...charts.figures import draw
    from . import figures as figures

    pictures = draw(figures.choices(known, state), dark) if state else ()
    tables = (
        folded("Its actions", policy.action_table(known, state), opened=True, more="")
        if state
        else ""
    )
    if state and known.mdp is not None:
        reached = policy.successors(known, state, action)
        name = known.actions[action]
        sentence = f"After {name}"
        if len(reached):
            reached["probability"] = reached["probability"].round(3)
            reached["state"] = [policy.state_name(known, s) for s in reached["state"].tolist()]
            tables += folded(
                f"{sentence}: the states that were reached", reached, opened=True, more=""
            )
        else:
            tables += folded(f"{sentence}: never seen here, any state is taken as likely", reached)
    return ShownState(policy.told(known, state), tuple(pictures), tables)


def make_file(shown: Shown, kind: str) -> tuple[str, bytes]:
    """Name and content of a file of the plane; for a worker."""
    from . import figures as figures

    name = export.file_name(shown.study, shown.run, shown.known.setup, "policy", kind=kind)
    if kind == "csv":
        return name, export.csv((("All states", policy.state_table(shown.known)),))
    figure = figures.plane(shown.known, shown.axes, shown.color, shown.near, shown.marks)
    return name, export.picture(figure, kind)


def _setup(wanted: str, setups: Sequence[str]) -> str:
    """The setup to show: with restarts an agent acts by the same policy."""
    wanted = wanted.removesuffix(", restart")
    return wanted if wanted in setups else setups[0]


def _axes(known: Learned, objectives: Sequence[str]) -> tuple[int, int]:
    """Objectives across and up; of a single one both."""
    names = [o.name for o in known.problem.objectives]
    chosen = [names.index(name) for name in objectives if name in names][:2]
    chosen += [k for k in range(len(names)) if k not in chosen]
    return chosen[0], chosen[min(1, len(chosen) - 1)]


def _first(known: Learned) -> int:
    """The state that is shown first: the most visited but success."""
    if known.states.n_states < 2:
        return 0
    if known.visits is None:
        return 1
    return 1 + int(np.argmax(known.visits[1:].sum(axis=1)))


def _add_marks(model: Any) -> None:
    """Place for a ring around the chosen state, and for the ways from there."""
    ring = ColumnDataSource({"x": [], "y": []}, name="ring")
    ways = ColumnDataSource({"x": [], "y": [], "to_x": [], "to_y": [], "width": []}, name="ways")
    model.segment(
        "x", "y", "to_x", "to_y", source=ways, line_width="width", line_color=_CHOSEN, alpha=0.55
    )
    model.scatter("x", "y", source=ring, size=18, fill_alpha=0, line_color=_CHOSEN, line_width=3)


def _hover(model: Any, known: Learned, axes: tuple[int, int], inside: NDArray[np.bool_]) -> None:
    """Let the pointer tell about each state."""
    at = known.states.centroids[inside][:, list(axes)]
    table = policy.state_table(known).set_index("state").loc[np.flatnonzero(inside)]
    columns = {"x": at[:, 0], "y": at[:, 1], "state": table.index.to_numpy()}
    tips = [("state", "@state")]
    for key, name in (("value", "value"), ("seen", "times seen"), ("best", "best action")):
        if name in table:
            columns[key] = table[name].to_numpy()
            tips.append((name, f"@{key}"))
    # text in a tip is shown as it is: Bokeh escapes what is not marked as safe
    dots = model.scatter("x", "y", source=columns, size=14, fill_alpha=0, line_alpha=0)
    model.toolbar.tools = [t for t in model.toolbar.tools if not isinstance(t, HoverTool)]
    model.add_tools(HoverTool(renderers=[dots], tooltips=tips))


def _told(known: Learned, inside: NDArray[np.bool_], marks: str) -> str:
    """What the plane shows, in words."""
    problem, n = known.problem, known.states.n_states
    others = problem.n_objectives - 2
    lines = [
        f"{n} representative states of {problem.n_objectives} misfits, {problem.n_actions} "
        f"actions; {int(inside.sum())} states are in the picture. Click on one, or give its "
        "number, to see what is done there."
    ]
    if others > 0:
        lines.append(
            f"The misfits of {others} further objective{'' if others == 1 else 's'} are not shown: "
            "states that lie upon each other here differ in them, and a state in the box need not "
            "be success."
        )
    if marks == "arrows":
        lines.append(
            "Arrows point to where the best action led on average while learning; long ones are "
            "cut."
        )
    elif known.mdp is None:
        lines.append("Where actions lead is not stored with this run, so there are no arrows.")
    if marks == "labels":
        lines.append("At most 60 labels are shown, of the states that were seen most.")
    if known.visits is not None:
        share = 100.0 * float(np.mean(known.visits[1:] > 0)) if n > 1 else 0.0
        lines.append(f"{share:.0f} % of all pairs of state and action were seen while learning.")
    if known.failed is not None:
        lines.append(
            f"A further state, of value {known.failed:.2f}, stands for failed runs: it has no "
            "misfits, so it is not in the picture."
        )
    return "\n".join(lines)


def _rounds_told(known: Learned) -> str:
    """How the values converged, in words."""
    told = "; ".join(f"{name}: {len(values)} rounds" for name, values in known.rounds.items())
    if known.mdp is None:
        return f"{told}. Value iteration cannot be repeated: the run stored no transitions."
    if "value iteration" in known.rounds:
        return f"{told}. Value iteration is repeated here, from the stored transitions."
    return f"{told}. Value iteration from the stored transitions gives other values than stored."
