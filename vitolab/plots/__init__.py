"""Figures and tables: functions of stored data, drawn for files and for the browser alike."""

from __future__ import annotations

from vitolab.methods import label as method_label
from vitolab.plots.agents import agent_curves, agent_table, scaling_curves, singular_values
from vitolab.plots.budget import budget_table
from vitolab.plots.budget_curves import budget_curves
from vitolab.plots.continuing import cumulative_curves, position_curves
from vitolab.plots.convergence import (
    convergence_curves,
    learning_panel,
    policy_curves,
    reference_deciles,
    restart_curves,
)
from vitolab.plots.decisions import action_choice, visits_map
from vitolab.plots.ecg import ecg_paper
from vitolab.plots.electrophysiology import ep_table, initialization_boxes, initialization_table
from vitolab.plots.fit import fit_curves, fit_table, pressure_volume_loops
from vitolab.plots.grid import (
    grid_error_map,
    grid_error_maps,
    grid_success_map,
    grid_success_maps,
    grid_table,
    start_errors,
)
from vitolab.plots.learning import candidates, policy_map, state_space, value_convergence
from vitolab.plots.needed import samples_needed
from vitolab.plots.orders import continuing_table, giving_up_table, paired_table
from vitolab.plots.overview import overview
from vitolab.plots.paired import comparison_table, comparisons
from vitolab.plots.quantization import state_map
from vitolab.plots.scouting import scouting_curves, scouting_table
from vitolab.plots.segments import bullseye
from vitolab.plots.style import METHOD_COLORS, layout, save, use
from vitolab.plots.summary import summarize
from vitolab.plots.surface import activation_view
from vitolab.plots.tables import (
    convergence_table,
    reference_table,
    solvable_table,
    weighting_table,
)
from vitolab.plots.uncertainty import (
    coverage_curves,
    forecast_changes,
    posterior_marginals,
    solution_ranges,
    stability_spread,
)
from vitolab.plots.walks import (
    explored_walks,
    function_map,
    misfit_history,
    personalization_paths,
)
from vitolab.plots.widths import posterior_widths

__all__ = [
    "METHOD_COLORS",
    "action_choice",
    "activation_view",
    "agent_curves",
    "agent_table",
    "budget_curves",
    "budget_table",
    "bullseye",
    "candidates",
    "comparison_table",
    "comparisons",
    "continuing_table",
    "convergence_curves",
    "convergence_table",
    "coverage_curves",
    "cumulative_curves",
    "ecg_paper",
    "ep_table",
    "explored_walks",
    "fit_curves",
    "fit_table",
    "forecast_changes",
    "function_map",
    "giving_up_table",
    "grid_error_map",
    "grid_error_maps",
    "grid_success_map",
    "grid_success_maps",
    "grid_table",
    "initialization_boxes",
    "initialization_table",
    "layout",
    "learning_panel",
    "method_label",
    "misfit_history",
    "overview",
    "paired_table",
    "personalization_paths",
    "policy_curves",
    "policy_map",
    "position_curves",
    "posterior_marginals",
    "posterior_widths",
    "pressure_volume_loops",
    "reference_deciles",
    "reference_table",
    "restart_curves",
    "samples_needed",
    "save",
    "scaling_curves",
    "scouting_curves",
    "scouting_table",
    "singular_values",
    "solution_ranges",
    "solvable_table",
    "stability_spread",
    "start_errors",
    "state_map",
    "state_space",
    "summarize",
    "use",
    "value_convergence",
    "visits_map",
    "weighting_table",
]
