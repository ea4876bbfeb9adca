"""Two kinds of function: of a batch of parameters, or of one vector; one taken for the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.failures import CannotRun


def refuse_scalar(
    model: Callable[..., Any],
    name: str,
    x: NDArray[np.float64],
    patient: Any,
    n_outputs: int,
    outputs: Sequence[str],
) -> None:
    """Refuse a model that answers one parameter vector but no batch.

    A model with processes of its own is an adapter, whose contract is known.

    Parameters
    ----------
    model : callable
    name : str
        Of the problem.
    x : ndarray, shape (1, n_parameters)
    patient : Patient
    n_outputs : int
        Numbers that the model answers per row.
    outputs : sequence of str
        Names for the remedy.

    Raises
    ------
    CannotRun
        If it answers the vector and not the batch.
    """
    if hasattr(model, "own_processes"):
        return
    if _shape(model, x, patient) == (1, n_outputs):
        return
    if _shape(model, x[0], patient) == (n_outputs,):
        called = getattr(model, "__name__", type(model).__name__)
        n = x.shape[1]
        raise CannotRun(
            f"problem {name!r}: {called} takes one parameter vector, expected simulate(x, patient) "
            f"with x of shape (n, {n}) and an answer of shape (n, {n_outputs}); give "
            f"vitolab.adapters.FunctionModel({called}, {tuple(outputs)!r}, n_workers=0) instead"
        )


def batched(
    function: Callable[..., Any], x: NDArray[np.float64], patient: Any, n_outputs: int
) -> str | None:
    """Sentence about a function that answers a batch and is to answer one parameter vector.

    Parameters
    ----------
    function : callable
    x : ndarray, shape (n_parameters,)
    patient : Patient
    n_outputs : int

    Returns
    -------
    str or None
        None if it answers no batch either.
    """
    if _shape(function, x[np.newaxis].copy(), patient) != (1, n_outputs):
        return None
    called = getattr(function, "__name__", type(function).__name__)
    return (
        f"{called} takes a batch of shape (n, {len(x)}), expected a function of one parameter "
        f"vector, which answers {n_outputs} numbers; give it as simulate of Problem, without "
        "FunctionModel"
    )


def _shape(function: Callable[..., Any], x: NDArray[np.float64], patient: Any) -> Any:
    """Shape of an answer in numbers; None where there is none."""
    try:
        found = function(x.copy(), patient)
        values = list(found.values()) if isinstance(found, Mapping) else found
        return np.array(values, dtype=np.float64).shape
    except (KeyboardInterrupt, GeneratorExit, CancelledError):
        raise
    except BaseException:  # some libraries raise what is no Exception: no answer either
        return None
