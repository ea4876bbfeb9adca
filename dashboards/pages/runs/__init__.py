"""The page Runs: all stored and running studies."""
