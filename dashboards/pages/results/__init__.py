"""The page Results: figures of a study, its numbers beside the paper's, runs compared."""
