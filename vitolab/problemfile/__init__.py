"""A model of one's own, described in a TOML file: parameters, objectives, columns, simulator.

Everything that is wrong with a file is reported at once, one sentence each. What the answers
depend on (the file, and the sources of the model) is part of the version of the problem.
"""

from vitolab.problemfile.changes import changed_fields, changed_rows
from vitolab.problemfile.own import OwnProblem, read_problem
from vitolab.problemfile.reading import ProblemError

__all__ = ["OwnProblem", "ProblemError", "changed_fields", "changed_rows", "read_problem"]
