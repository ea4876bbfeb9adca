"""A conditional density that is trained with torch and kept as plain arrays; torch loads late."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.failures import CannotRun
from vitolab.parallel.threads import one_thread
from vitolab.problem import BoolArray, FloatArray

#: Arrays of a trained network by name.
Network = Mapping[str, NDArray[Any]]

DENSITY = "maf"  # of sbi: five masked affine autoregressive transforms of 50 hidden features
RATE = 1e-3  # of Adam
BATCH = 50  # runs in one step
PATIENCE = 20  # epochs without a better density of what was held back, after which training ends
N_EPOCHS = 500  # at most
LARGEST = 5.0  # norm of a gradient, above which it is cut
NEEDS = 'method npe needs sbi and torch, expected `pip install "vitolab[npe]"`'
# torch has one random generator and one number of threads for all threads of a process
_ALONE = threading.Lock()


def check_installed() -> None:
    """Refuse to go on without sbi and torch, which are an extra.

    Raises
    ------
    CannotRun
    """
    if find_spec("torch") is None or find_spec("sbi") is None:
        raise CannotRun(NEEDS)


def train(u: FloatArray, a: FloatArray, held_back: BoolArray, seed: int) -> Network:
    """Train a density of u given a, by the likelihood of the runs.

    Parameters
    ----------
    u : ndarray, shape (n, n_parameters)
        Standardised.
    a : ndarray, shape (n, n_inputs)
        Standardised; what the density is conditional on.
    held_back : ndarray of bool, shape (n,)
        Runs that tell when to stop: of all epochs the network is kept that makes them likeliest.
    seed : int

    Returns
    -------
    mapping of str to ndarray

    Raises
    ------
    CannotRun
        If sbi or torch is missing.
    """
    with _reproducible(seed) as torch:
        network = _network(torch, u.shape[1], a.shape[1])
        runs, given = _tensor(torch, u[~held_back]), _tensor(torch, a[~held_back])
        others, theirs = _tensor(torch, u[held_back]), _tensor(torch, a[held_back])
        weights = list(network.parameters())
        adam = torch.optim.Adam(weights, lr=RATE)
        least, since = np.inf, 0
        kept = _arrays(network)
        for _ in range(N_EPOCHS):
            for batch in torch.randperm(len(runs)).split(BATCH):
                adam.zero_grad()
                network.loss(runs[batch], given[batch]).mean().backward()
                torch.nn.utils.clip_grad_norm_(weights, LARGEST)
                adam.step()
            with torch.no_grad():
                loss = float(network.loss(others, theirs).mean())
            since += 1
            if loss < least:
                least, since, kept = loss, 0, _arrays(network)
            if since == PATIENCE or not np.isfinite(loss):
                break
        return kept


def draw(network: Network, a: FloatArray, n_parameters: int, n: int, seed: int) -> FloatArray:
    """Draw from the density given one a, shape (n, n_parameters)."""
    with _reproducible(seed) as torch, torch.no_grad():
        trained = _network(torch, n_parameters, len(a))
        trained.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in network.items()})
        drawn = trained.sample((n,), condition=_tensor(torch, a[np.newaxis]))
        found: FloatArray = drawn.reshape(n, n_parameters).numpy().astype(np.float64)
        return found


@contextmanager
def _reproducible(seed: int) -> Iterator[Any]:
    """Torch, in one thread and from a seed; the user's own state of it is given back."""
    check_installed()
    import torch

    with _ALONE, one_thread(), torch.random.fork_rng(devices=[]):
        threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
        strict = torch.are_deterministic_algorithms_enabled()
        try:
            torch.set_num_threads(1)
            torch.set_default_dtype(torch.float32)
            torch.use_deterministic_algorithms(True)
            torch.manual_seed(seed)
            with warnings.catch_warnings():  # of sbi and its libraries, about each other
                warnings.simplefilter("ignore")
                yield torch
        finally:
            torch.use_deterministic_algorithms(strict)
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)


def _network(torch: Any, n_parameters: int, n_inputs: int) -> Any:
    """Untrained network."""
    from sbi.neural_nets import posterior_nn

    make = posterior_nn(DENSITY, z_score_theta="none", z_score_x="none")
    return make(torch.zeros(2, n_parameters), torch.zeros(2, n_inputs))


def _tensor(torch: Any, a: FloatArray) -> Any:
    return torch.tensor(a, dtype=torch.float32)


def _arrays(network: Any) -> dict[str, NDArray[Any]]:
    """Weights and masks, copied."""
    return {name: array.numpy().copy() for name, array in network.state_dict().items()}
