"""The page Policy: the states, values and actions that an agent has learned."""
