"""The page Patient: one personalisation run by run."""
