"""Agents that learn from explored walks: the paper's, and one with continuous actions."""

from vitolab.agent.continuous import ContinuousVito
from vitolab.agent.learning import n_states_allowed, n_states_at_most
from vitolab.agent.vito import Vito

__all__ = ["ContinuousVito", "Vito", "n_states_allowed", "n_states_at_most"]
