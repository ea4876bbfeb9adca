"""The page Your own model: what a budget of forward runs buys."""
