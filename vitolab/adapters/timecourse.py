"""A model in a file that runs over time: what its formats have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from vitolab.adapters.features import FEATURES, feature
from vitolab.problem import BoolArray, FloatArray, Patient


@dataclass(frozen=True)
class TimeCourse(ABC):
    """A model in a file, run from time 0; its outputs are features of its variables.

    Attributes
    ----------
    path : Path
        File of the model; kept absolute.
    parameters : tuple of str
        What x sets, in this order: names in the model of constants, or of variables, whose
        values at time 0 are then set.
    outputs : mapping of str to (str, str)
        By name of the output: a variable of the model and a feature of it, see
        `vitolab.adapters.features`.
    duration : float
        How long the model runs, in its own unit of time.
    n_points : int
        Number of points looked at, equally spaced from time 0 to the end, ends included.
    skip : float
        Outputs look at the points from this time on, at least two.
    data : mapping of str to str
        What the data of the patient set: by name there, the name in the model.

    Raises
    ------
    ValueError
        If the file or a name is not there, its format needs what is not installed, or a field
        has no meaning.
    """

    path: Path
    parameters: tuple[str, ...]
    outputs: Mapping[str, tuple[str, str]]
    duration: float
    n_points: int = 1001
    skip: float = 0.0
    data: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        path = Path(self.path).absolute()
        # plain containers: the model travels to other processes
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "parameters", tuple(self.parameters))
        outputs = {name: (variable, what) for name, (variable, what) in self.outputs.items()}
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "data", dict(self.data))
        if not path.is_file():
            found = "a folder" if path.is_dir() else "absent"
            raise ValueError(f"{path} is {found}, expected a file with a model")
        if not (np.isfinite(self.duration) and self.duration > 0):
            raise ValueError(f"{path.name}: duration is {self.duration:g}, expected above 0")
        if self.n_points < 2:
            raise ValueError(f"{path.name}: n_points is {self.n_points}, expected at least 2")
        if not self.skip >= 0 or self._seen.sum() < 2:
            raise ValueError(
                f"{path.name}: skip is {self.skip:g}, expected from 0 up to a time that leaves two "
                f"of {self.n_points} points before {self.duration:g}"
            )
        if not outputs:
            raise ValueError(f"{path.name}: there are no outputs, expected at least one")
        for name, (_, what) in outputs.items():
            if what not in FEATURES:
                raise ValueError(
                    f"{path.name}: output {name!r} is the feature {what!r}, expected one of "
                    f"{', '.join(FEATURES)}"
                )
        self._check_names()

    def __call__(self, x: FloatArray, patient: Patient) -> dict[str, float]:
        """Run the model once; what its library raises where a run fails is passed on.

        Parameters
        ----------
        x : ndarray, shape (n_parameters,)
        patient : Patient

        Returns
        -------
        dict of str to float
            Outputs by name.

        Raises
        ------
        ValueError
            If x has another shape, or the patient's data lack a number that the model needs.
        """
        x = np.asarray(x, dtype=np.float64)
        if x.shape != (len(self.parameters),):
            raise ValueError(
                f"{self.path.name}: x has shape {x.shape}, expected ({len(self.parameters)},)"
            )
        values = dict(zip(self.parameters, x.tolist(), strict=True))
        for name, own in self.data.items():
            values[own] = self._number(patient, name)
        variables = sorted({variable for variable, _ in self.outputs.values()})
        series = self._run(values, variables)
        seen = self._seen
        t = self._times[seen]
        return {
            name: feature(what, t, series[variable][seen])
            for name, (variable, what) in self.outputs.items()
        }

    def prepare(self) -> None:
        """Read the file, which may take longer than a run."""
        self._names()

    @property
    def sources(self) -> tuple[Path, ...]:
        """Files whose content determines the answers."""
        return (self.path,)

    @abstractmethod
    def _names(self) -> tuple[Collection[str], Collection[str]]:
        """Names in the model that can be set, and names that can be outputs."""

    @abstractmethod
    def _run(self, values: Mapping[str, float], variables: list[str]) -> dict[str, FloatArray]:
        """Run the model once, from scratch: values at `_times` of each variable asked for."""

    @property
    def _times(self) -> FloatArray:
        """Points looked at, shape (n_points,)."""
        return np.linspace(0.0, self.duration, self.n_points)

    @property
    def _seen(self) -> BoolArray:
        """Which of the points outputs look at, shape (n_points,)."""
        rounding = 1e-9 * self.duration
        seen: BoolArray = self._times >= self.skip - rounding
        return seen

    @property
    def _stamp(self) -> tuple[int, int]:
        """Changes when the file does."""
        status = self.path.stat()
        return status.st_mtime_ns, status.st_size

    def _check_names(self) -> None:
        """Check that the model has what is to be set and to be read."""
        settable, readable = self._names()
        wanted = (*self.parameters, *self.data.values())
        for own in wanted:
            _check(self.path, "parameter", own, settable)
            if wanted.count(own) > 1:
                raise ValueError(f"{self.path.name}: {own!r} is set twice, expected once")
        for variable, _ in self.outputs.values():
            _check(self.path, "variable", variable, readable)

    def _number(self, patient: Patient, name: str) -> float:
        """Read a number from the data of a patient."""
        value = patient.data.get(name)
        if not isinstance(value, (int, float)) or not np.isfinite(value):
            raise ValueError(
                f"patient {patient.name!r}: {name} is {value!r}, expected a finite number for "
                f"{self.data[name]} of {self.path.name}"
            )
        return float(value)


def unreadable(path: Path, kind: str, error: Exception) -> ValueError:
    """Refusal of a file that its library cannot read, with the first line of what it said."""
    lines = [line.strip().rstrip(".:") for line in str(error).splitlines() if line.strip()]
    because = lines[0] if lines else type(error).__name__
    return ValueError(f"{path.name} cannot be read ({because}), expected {kind}")


def _check(path: Path, what: str, name: str, known: Iterable[str]) -> None:
    """Check that the model has a name; those near it are said otherwise."""
    names = sorted(known)
    if name in names:
        return
    offered = get_close_matches(name, names, n=3) or names[:10]
    more = "" if len(offered) >= len(names) else f" ({len(names)} in all)"
    raise ValueError(
        f"{path.name}: there is no {what} {name!r}, expected one like "
        f"{', '.join(offered) or 'none'}{more}"
    )
