"""A model of one's own, described in a TOML file: parameters, objectives, columns, simulator.

Everything that is wrong with a file is reported at once, one sentence each. What the answers
depend on (the file, and the sources of the model) is part of the version of the problem.

The model is the one that was read. Its Python code, with what it imports from beside it, is kept
from then on: a file saved again counts when the problem is read again. Programs, files of a
format and ``sources`` cannot be kept; once one of them changes, the model refuses to go on.

Functions of the model are loaded and called with the folder of the problem file as working
folder, by every command and in every process, so that relative paths mean files beside it. A
program has a folder of its own for each call.
"""

from vitolab.problemfile.changes import changed_fields, changed_rows
from vitolab.problemfile.own import OwnProblem, read_problem
from vitolab.problemfile.reading import ProblemError

__all__ = ["OwnProblem", "ProblemError", "changed_fields", "changed_rows", "read_problem"]
