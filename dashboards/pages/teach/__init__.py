"""The page Teach: a game against Vito."""
