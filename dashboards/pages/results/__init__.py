"""The page Results: figures and tables of stored studies."""
