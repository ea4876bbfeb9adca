"""Agents: learn off-line from explored walks, personalise on-line."""

from vitolab.agent.continuous import ContinuousVito
from vitolab.agent.vito import Vito, n_states_at_most

__all__ = ["ContinuousVito", "Vito", "n_states_at_most"]
