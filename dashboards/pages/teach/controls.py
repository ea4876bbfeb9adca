"""Buttons of the paper's actions and sliders, one block for each parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn
from numpy.typing import NDArray

from vitolab.explain import signed
from vitolab.problem import Problem

from ...kit import safe

BUTTON_CSS = ".bk-btn { padding: 4px 0; font-variant-numeric: tabular-nums; }"


class Controls:
    """What changes the parameters.

    Parameters
    ----------
    problem : Problem
    act : callable
        Called with an action.
    slide : callable
        Called with parameters, shape (n_parameters,), that were set by sliders.
    """

    def __init__(
        self,
        problem: Problem,
        act: Callable[[int], None],
        slide: Callable[[NDArray[np.float64]], None],
    ) -> None:
        self.problem = problem
        self._shown: NDArray[np.float64] = problem.default
        self.headings: list[Any] = []
        self.sliders: list[Any] = []
        self.buttons: list[Any] = []
        self._moved: set[int] = set()
        self._busy = False
        self.run = pn.widgets.Button(
            label="Run the model at the sliders", color="primary", width=240, disabled=True
        )
        self.run.on_click(lambda _: slide(self._wanted()))
        blocks = []
        per_parameter = 2 * len(problem.multipliers)
        for k, p in enumerate(problem.parameters):
            heading = safe.html("")
            self.headings.append(heading)
            buttons = []
            for action in range(k * per_parameter, (k + 1) * per_parameter):
                steps = int(problem.actions[action, k])
                button = pn.widgets.Button(
                    label=signed(f"{steps:+d}"),
                    width=50,
                    margin=2,
                    stylesheets=[BUTTON_CSS],
                    css_classes=[f"act-{action}"],
                    tags=[signed(problem.describe_action(action))],
                )
                button.on_click(lambda _, action=action: act(action))
                buttons.append(button)
            slider = pn.widgets.FloatSlider(
                label="",
                start=p.lower,
                end=p.upper,
                step=p.step / 10,
                value=p.default,
                show_value=False,
                tags=[p.label],
                sizing_mode="stretch_width",
                margin=(0, 8),
            )
            slider.param.watch(lambda event, k=k: self._slid(k), "value")
            self.buttons += buttons
            self.sliders.append(slider)
            blocks.append(
                pn.Column(
                    heading,
                    pn.FlexBox(*buttons, margin=0),
                    slider,
                    margin=(0, 0, 6, 0),
                    sizing_mode="stretch_width",
                    styles={"flex": "1 1 330px", "min-width": "0", "max-width": "460px"},
                )
            )
        self.panel = pn.Column(
            pn.FlexBox(*blocks, margin=0, gap="2px 24px", sizing_mode="stretch_width"),
            self.run,
            sizing_mode="stretch_width",
            margin=0,
        )

    def _wanted(self) -> NDArray[np.float64]:
        """Parameters with what was set by sliders."""
        x = self._shown.copy()
        for k in self._moved:
            x[k] = self.sliders[k].value
        return x

    def _slid(self, k: int) -> None:
        """A slider was moved: the model is not run before it is told to."""
        if not self._busy:
            self._moved.add(k)
            self.run.disabled = False
            self._head(k, self.sliders[k].value, "slider at ")

    def _head(self, k: int, value: float, words: str = "") -> None:
        """Heading of a parameter."""
        p = self.problem.parameters[k]
        self.headings[k].object = safe.fill(
            "<b>{label}</b> {words}{value} {unit} <span class='faint'>from {lower} to {upper}, one "
            "step is {step}</span>",
            label=p.label,
            words=words,
            value=signed(f"{value:.5g}"),
            unit=p.unit,
            lower=signed(f"{p.lower:g}"),
            upper=signed(f"{p.upper:g}"),
            step=f"{p.step:g} {p.unit}".strip(),
        )

    def show(self, x: NDArray[np.float64]) -> None:
        """Show the parameters from which the next move goes on."""
        self._shown = np.asarray(x, dtype=np.float64)
        self._moved.clear()
        self.run.disabled = True
        self._busy = True
        try:
            for k, value in enumerate(self._shown):
                self._head(k, float(value))
                self.sliders[k].value = float(
                    np.clip(value, self.problem.lower[k], self.problem.upper[k])
                )
        finally:
            self._busy = False

    def lock(self, locked: bool) -> None:
        """Take no input, or take it again."""
        for widget in (*self.buttons, *self.sliders):
            widget.disabled = locked
        self.run.disabled = locked or not self._moved
