"""The studies as plain data: their notebooks, and the sizes at which they are run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vitolab.catalogue import CIRCULATION, ELECTROPHYSIOLOGY
from vitolab.methods import AGENTS, REFERENCES

#: Numbers of states that the paper chose for the circulation (section 3.3.2).
N_STATES = {setup: CIRCULATION.n_states[setup] for setup in ("2p", "3p", "5p", "6p")}


@dataclass(frozen=True)
class Study:
    """A notebook and the sizes at which it is run.

    Attributes
    ----------
    name : str
        With hyphens; runs are stored under ``results/<name>/``.
    notebook : str
        File name, or an absolute path.
    title : str
    profiles : mapping of str to mapping of str to JSON value
        Parameters of each size.
    duration : mapping of str to str
        What to expect of each size on a laptop with two cores.
    """

    name: str
    notebook: str
    title: str
    profiles: Mapping[str, Mapping[str, Any]]
    duration: Mapping[str, str]


#: Reference methods of the circulation studies.
METHODS = [
    *("nelder-mead", "nelder-mead-unweighted", "nelder-mead-wide"),
    *("least-squares", "least-squares-multistart"),
]
_GRID: Mapping[str, Any] = {
    "n_functions": 100,
    "grid_size": 21,
    "n_samples": 1000,
    "n_states": 100,
    "max_runs": 1000,
    "action_sets": ["base", "extended"],
    "borders": ["free", "clip"],
    "restarts": [False, True],
    "signs": ["signed", "absolute"],
    "methods": ["nelder-mead", "least-squares"],
    "n_compared": 40,
    "n_repeats": 1,
}
#: Reference methods of the electrophysiology studies.
EP_METHODS = [
    *("bobyqa-simple", "bobyqa-cascade", "bobyqa-cascade-stable"),
    *("least-squares", "least-squares-multistart"),
]
#: The paper's number of states and largest number of forward runs (sections 3.2.2, 3.2.4).
_EP: Mapping[str, Any] = {"n_states": 120, "max_runs": 100}

#: What parameters of these names may be, or hold, in every study.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "setups": tuple(CIRCULATION.n_states),
    "lead_fields": tuple(ELECTROPHYSIOLOGY.n_states),
    "mode": ("table", "exact"),
    "agents": AGENTS,
    "methods": REFERENCES,
    "borders": ("free", "clip", "reject"),
    "action_sets": ("base", "extended"),
    "signs": ("signed", "absolute"),
}
#: Smallest values of counts of these names; of all others 1.
LEAST = {
    **dict.fromkeys(("n_patients", "n_ep_patients", "n_functions", "n_perturbations"), 2),
    **{"n_steps": 2, "n_walkers": 4},  # of a sampler
}

#: Largest values of counts of these names: patients of the frozen cohorts.
MOST = {"n_patients": 48, "n_ep_patients": 75}
#: Studies whose patients are hearts.
HEARTS = ("ep-personalization", "ep-initialization", "ep-convergence")

#: What the sizes of the comparison of agents share.
_AGENTS: Mapping[str, Any] = {
    "n_states": {**N_STATES, "bem": 120, "infinite": 120},
    "mode": "table",
    "agents": ["vito", "vito-hindsight", "vito-continuous"],
    "n_replays": 5,
    "episode": 1,
    "n_repeats": 1,
}
#: What a user would take instead of an agent.
_PEERS = ["nelder-mead", "least-squares", "least-squares-multistart"]

_HINDSIGHT: Mapping[str, Any] = {
    "n_states": {**N_STATES, "rosenbrock": 100, "bem": 120, "infinite": 120},
    "mode": "table",
    "n_replays": 5,
}
_MANY: Mapping[str, Any] = {
    "n_states": dict(CIRCULATION.n_states),
    "n_replays": 5,
    "episode": 1,
}
#: The error of a measurement, in tolerances, and what the continuous agent learns from.
_ERRORS: Mapping[str, Any] = {"deviation_share": 0.5, "episode": 1}
_SURE: Mapping[str, Any] = {**_ERRORS, "n_samples": 100, "n_walkers": 32}
_STABLE: Mapping[str, Any] = {**_ERRORS, "n_states": N_STATES}
_BOLUS: Mapping[str, Any] = {"data": "", "n_samples": 100, "episode": 1}

STUDIES = (
    Study(
        name="tour",
        notebook="tour.ipynb",
        title="From walks to a personalised model, step by step",
        profiles={"quick": {}, "standard": {}, "paper": {}},
        duration={"quick": "a minute", "standard": "a minute", "paper": "a minute"},
    ),
    Study(
        name="rosenbrock-grid",
        notebook="rosenbrock_grid.ipynb",
        title="Rosenbrock functions from a grid of starts (section 3.1)",
        profiles={
            # a fifth of the functions, with as many samples in all
            "quick": {
                **_GRID,
                "n_functions": 20,
                "grid_size": 11,
                "n_samples": 5000,
                "max_runs": 300,
                "action_sets": ["base"],
                "borders": ["free"],
                "signs": ["signed"],
                "n_compared": 30,
            },
            "standard": _GRID,
            "paper": {**_GRID, "n_compared": 441, "n_repeats": 5},
        },
        duration={"quick": "a minute", "standard": "15 minutes", "paper": "about two hours"},
    ),
    Study(
        name="wbc-scouting",
        notebook="wbc_scouting.ipynb",
        title="Circulation: how many states (section 3.3.2)",
        profiles={
            "quick": {
                "setups": ["2p"],
                "n_states": {"2p": [20, 50, 70, 100]},
                "n_samples": 300,
                "n_repeats": 1,
            },
            "standard": {
                "setups": ["2p", "3p", "5p", "6p"],
                "n_states": {
                    "2p": [10, 20, 35, 50, 70, 100, 150, 200],
                    "3p": [20, 50, 75, 100, 150, 200, 300, 400],
                    "5p": [50, 100, 200, 300, 400, 500, 600, 800],
                    "6p": [100, 200, 300, 400, 500, 600, 700, 800],
                },
                "n_samples": 1000,
                "n_repeats": 2,
            },
            "paper": {
                "setups": ["2p", "3p", "5p", "6p"],
                # success and its neighbours alone take 2 n + 1 states
                "n_states": {
                    setup: [fewest, 20, 50, 70, 100, 150, 200, 300, 400, 500, 600, 700, 800]
                    for setup, fewest in (("2p", 10), ("3p", 10), ("5p", 12), ("6p", 14))
                },
                "n_samples": 10000,
                "n_repeats": 5,
            },
        },
        duration={"quick": "a minute", "standard": "10 minutes", "paper": "about half a day"},
    ),
    Study(
        name="wbc-convergence",
        notebook="wbc_convergence.ipynb",
        title="Circulation: how many training samples (section 3.3.4)",
        profiles={
            "quick": {
                "setups": ["2p", "6p"],
                "n_patients": 12,
                "n_samples": {"2p": [10, 300], "6p": [10, 300]},
                "n_states": N_STATES,
                "n_repeats": 1,
                "methods": ["nelder-mead", "least-squares", "least-squares-multistart"],
                "n_starts": 3,
            },
            "standard": {
                "setups": ["2p", "3p", "5p", "6p"],
                "n_patients": 48,
                "n_samples": {
                    "2p": [10, 100, 1000],
                    "3p": [10, 100, 1000],
                    "5p": [100, 1000, 4000],
                    "6p": [100, 1000, 4000],
                },
                "n_states": N_STATES,
                "n_repeats": 1,
                "methods": METHODS,
                "n_starts": 10,
            },
            "paper": {
                "setups": ["2p", "3p", "5p", "6p"],
                "n_patients": 48,
                "n_samples": {
                    setup: [1, 10, 100, 1000, 10000, 100000] for setup in ("2p", "3p", "5p", "6p")
                },
                "n_states": N_STATES,
                "n_repeats": 5,
                "methods": METHODS,
                "n_starts": 100,
            },
        },
        duration={"quick": "a minute", "standard": "15 minutes", "paper": "two to three days"},
    ),
    Study(
        name="wbc-fit",
        notebook="wbc_fit.ipynb",
        title="Circulation: one patient in full",
        profiles={
            profile: {
                "setups": ["2p", "3p", "5p", "6p"],
                "patient": "C01",
                "n_samples": n_samples,
                "n_states": N_STATES,
            }
            for profile, n_samples in (("quick", 300), ("standard", 1000), ("paper", 4000))
        },
        duration={"quick": "a minute", "standard": "a minute", "paper": "a few minutes"},
    ),
    Study(
        name="ep-scouting",
        notebook="ep_scouting.ipynb",
        title="Electrophysiology: how many states (section 3.2.2)",
        profiles={
            "quick": {
                "lead_fields": ["bem"],
                "mode": "table",
                "n_states": [10, 50, 120, 300],
                "n_samples": 300,
                "n_repeats": 1,
                "max_runs": 100,
            },
            "standard": {
                "lead_fields": ["bem"],
                "mode": "table",
                "n_states": [10, 20, 35, 50, 75, 100, 120, 150, 200, 300, 400, 500],
                "n_samples": 10_000,
                "n_repeats": 2,
                "max_runs": 100,
            },
            "paper": {
                "lead_fields": ["bem"],
                "mode": "exact",
                "n_states": list(range(10, 501, 10)),
                "n_samples": 10_000,
                "n_repeats": 5,
                "max_runs": 100,
            },
        },
        duration={"quick": "a minute", "standard": "10 minutes", "paper": "about two hours"},
    ),
    Study(
        name="ep-personalization",
        notebook="ep_personalization.ipynb",
        title="Electrophysiology: full personalisation (section 3.2.4)",
        profiles={
            "quick": {
                **_EP,
                "lead_fields": ["bem"],
                "mode": "table",
                "n_patients": 6,
                "n_samples": 1000,
                "n_repeats": 1,
                "methods": EP_METHODS,
                "n_starts": 3,
            },
            "standard": {
                **_EP,
                "lead_fields": ["bem", "infinite"],
                "mode": "table",
                "n_patients": 75,
                "n_samples": 10_000,
                "n_repeats": 1,
                "methods": EP_METHODS,
                "n_starts": 20,
            },
            "paper": {
                **_EP,
                "lead_fields": ["bem", "infinite"],
                "mode": "exact",
                "n_patients": 75,
                "n_samples": 100_000,
                "n_repeats": 1,
                "methods": EP_METHODS,
                "n_starts": 100,
            },
        },
        duration={"quick": "a minute", "standard": "15 minutes", "paper": "most of a day"},
    ),
    Study(
        name="ep-initialization",
        notebook="ep_initialization.ipynb",
        title="Electrophysiology: error after the first guess (section 3.2.5)",
        profiles={
            profile: {
                **_EP,
                "lead_field": "bem",
                "mode": mode,
                "n_patients": n_patients,
                "n_samples": [10**power for power in range(powers)],
                "n_starts": n_starts,
            }
            for profile, mode, n_patients, powers, n_starts in (
                ("quick", "table", 6, 4, 5),
                ("standard", "table", 75, 5, 20),
                ("paper", "exact", 75, 6, 100),
            )
        },
        duration={"quick": "a minute", "standard": "10 minutes", "paper": "half a day"},
    ),
    Study(
        name="ep-convergence",
        notebook="ep_convergence.ipynb",
        title="Electrophysiology: how many training samples (section 3.2.6)",
        profiles={
            "quick": {
                **_EP,
                "lead_fields": ["bem"],
                "mode": "table",
                "n_patients": 6,
                "n_samples": [10, 100, 1000],
                "n_repeats": 1,
                "methods": EP_METHODS,
                "n_starts": 5,
            },
            "standard": {
                **_EP,
                "lead_fields": ["bem"],
                "mode": "table",
                "n_patients": 75,
                "n_samples": [10, 30, 100, 300, 1000, 3000, 10_000],
                "n_repeats": 1,
                "methods": EP_METHODS,
                "n_starts": 20,
            },
            "paper": {
                **_EP,
                "lead_fields": ["bem"],
                "mode": "exact",
                "n_patients": 75,
                "n_samples": [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000],
                "n_repeats": 5,
                "methods": EP_METHODS,
                "n_starts": 100,
            },
        },
        duration={"quick": "a minute", "standard": "15 minutes", "paper": "two days"},
    ),
    Study(
        name="continuous-convergence",
        notebook="continuous_convergence.ipynb",
        title="What experience adds: three agents beside least squares",
        profiles={
            "quick": {
                **_AGENTS,
                "setups": ["2p", "6p"],
                "lead_fields": ["bem"],
                "n_patients": 12,
                "n_ep_patients": 6,
                "n_samples": {"2p": [2, 100], "6p": [2, 100], "bem": [2, 30]},
                "methods": ["least-squares-multistart"],
                "n_starts": 3,
            },
            "standard": {
                **_AGENTS,
                "setups": ["2p", "3p", "5p", "6p"],
                "lead_fields": ["bem"],
                "n_patients": 48,
                "n_ep_patients": 75,
                "n_samples": {
                    "2p": [10, 100, 1000],
                    "3p": [10, 100, 1000],
                    "5p": [2, 10, 100, 1000],
                    "6p": [2, 10, 100, 1000],
                    "bem": [2, 10, 100],
                },
                "methods": _PEERS,
                "n_starts": 5,
            },
            "paper": {
                **_AGENTS,
                "setups": ["2p", "3p", "5p", "6p"],
                "lead_fields": ["bem", "infinite"],
                "mode": "exact",
                "n_patients": 48,
                "n_ep_patients": 75,
                "n_samples": {
                    setup: [2, 10, 100, 1000, 10000]
                    for setup in ("2p", "3p", "5p", "6p", "bem", "infinite")
                },
                "n_repeats": 5,
                "methods": _PEERS,
                "n_starts": 100,
            },
        },
        duration={"quick": "a minute", "standard": "about an hour", "paper": "days"},
    ),
    Study(
        name="hindsight",
        notebook="hindsight.ipynb",
        title="Hindsight: what the same walks teach when they count again",
        profiles={
            "quick": {
                **_HINDSIGHT,
                "n_functions": 20,
                "setups": ["2p", "6p"],
                "lead_fields": ["bem"],
                "n_patients": 12,
                "n_ep_patients": 6,
                "n_samples": {
                    "rosenbrock": [10, 100],
                    "2p": [10, 100],
                    "6p": [10, 100],
                    "bem": [10, 30],
                },
                "n_repeats": 1,
                "methods": ["least-squares-multistart"],
                "n_starts": 3,
            },
            "standard": {
                **_HINDSIGHT,
                "n_functions": 40,
                "setups": ["2p", "3p", "5p", "6p"],
                "lead_fields": ["bem"],
                "n_patients": 48,
                "n_ep_patients": 75,
                "n_samples": {
                    "rosenbrock": [10, 100, 1000],
                    "2p": [10, 100, 1000],
                    "3p": [10, 100, 1000],
                    "5p": [10, 100, 1000],
                    "6p": [10, 100, 1000],
                    "bem": [10, 100, 1000],
                },
                "n_repeats": 1,
                "methods": _PEERS,
                "n_starts": 5,
            },
            "paper": {
                **_HINDSIGHT,
                "n_functions": 100,
                "setups": ["2p", "3p", "5p", "6p"],
                "lead_fields": ["bem", "infinite"],
                "mode": "exact",
                "n_patients": 48,
                "n_ep_patients": 75,
                "n_samples": {
                    setup: [10, 100, 1000, 10000]
                    for setup in ("rosenbrock", "2p", "3p", "5p", "6p", "bem", "infinite")
                },
                "n_repeats": 5,
                "methods": _PEERS,
                "n_starts": 100,
            },
        },
        duration={"quick": "two minutes", "standard": "about two hours", "paper": "days"},
    ),
    Study(
        name="wbc-12p",
        notebook="wbc_12p.ipynb",
        title="Circulation: more than ten parameters",
        profiles={
            "quick": {
                **_MANY,
                "setups": ["2p", "6p", "12p"],
                "n_patients": 8,
                "n_samples": {"2p": [100], "6p": [100], "12p": [5, 100]},
                "agents": ["vito", "vito-continuous"],
                "n_repeats": 1,
                "methods": ["nelder-mead", "least-squares-multistart"],
                "n_starts": 2,
            },
            "standard": {
                **_MANY,
                "setups": ["2p", "3p", "5p", "6p", "9p", "12p"],
                "n_patients": 48,
                "n_samples": {
                    **{setup: [100] for setup in ("2p", "3p", "5p", "6p", "9p")},
                    "12p": [5, 100, 1000],
                },
                "agents": ["vito", "vito-hindsight", "vito-continuous"],
                "n_repeats": 1,
                "methods": _PEERS,
                "n_starts": 3,
            },
            "paper": {
                **_MANY,
                "setups": ["2p", "3p", "5p", "6p", "9p", "12p"],
                "n_patients": 48,
                "n_samples": {
                    setup: [5, 100, 1000, 10000] for setup in ("2p", "3p", "5p", "6p", "9p", "12p")
                },
                "agents": ["vito", "vito-hindsight", "vito-continuous"],
                "n_repeats": 5,
                "methods": METHODS,
                "n_starts": 100,
            },
        },
        duration={"quick": "two minutes", "standard": "about an hour", "paper": "days"},
    ),
    Study(
        name="uncertainty",
        notebook="uncertainty.ipynb",
        title="How sure: all solutions, and their probability",
        profiles={
            "quick": {
                **_SURE,
                "setups": ["2p", "6p"],
                "n_patients": 4,
                "n_simulated": 8,
                "n_starts": 10,
                "methods": ["least-squares"],
                "n_steps": 400,
                "n_burn": 200,
                "n_draws": 200,
            },
            "standard": {
                **_SURE,
                "setups": ["2p", "3p", "5p", "6p"],
                "n_patients": 48,
                "n_simulated": 100,
                "n_starts": 20,
                "methods": ["least-squares", "nelder-mead"],
                "n_steps": 2000,
                "n_burn": 1000,
                "n_draws": 400,
            },
            "paper": {
                **_SURE,
                "setups": ["2p", "3p", "5p", "6p", "9p", "12p"],
                "n_patients": 48,
                "n_simulated": 1000,
                "n_starts": 100,
                "methods": ["least-squares", "nelder-mead"],
                "n_steps": 10000,
                "n_burn": 5000,
                "n_draws": 1000,
            },
        },
        duration={"quick": "two minutes", "standard": "some hours", "paper": "days"},
    ),
    Study(
        name="stability",
        notebook="stability.ipynb",
        title="How stable: measured again, would the answer be the same?",
        profiles={
            "quick": {
                **_STABLE,
                "setups": ["2p", "6p"],
                "n_patients": 4,
                "n_perturbations": 8,
                "n_samples": 100,
                "methods": ["nelder-mead", "least-squares"],
            },
            "standard": {
                **_STABLE,
                "setups": ["2p", "3p", "5p", "6p"],
                "n_patients": 48,
                "n_perturbations": 20,
                "n_samples": 1000,
                "methods": _PEERS,
            },
            "paper": {
                **_STABLE,
                "setups": ["2p", "3p", "5p", "6p"],
                "n_patients": 48,
                "n_perturbations": 100,
                "n_samples": 10000,
                "methods": METHODS,
            },
        },
        duration={"quick": "a minute", "standard": "about an hour", "paper": "about a day"},
    ),
    Study(
        name="prediction",
        notebook="prediction.ipynb",
        title="Does a personalised model predict? Arterial pressure after a fluid bolus",
        profiles={
            "quick": {**_BOLUS, "methods": ["nelder-mead", "least-squares"]},
            "standard": {**_BOLUS, "methods": _PEERS},
            "paper": {**_BOLUS, "methods": _PEERS, "n_samples": 1000},
        },
        duration={"quick": "a minute", "standard": "two minutes", "paper": "some minutes"},
    ),
)

#: A model and patients of one's own; the files are named by options of the command line.
_OWN: Mapping[str, Any] = {
    "problem": "",
    "problem_key": "",
    "patients": "",
    "allow_missing": False,
    "agents": ["vito", "vito-continuous"],
    "n_replays": 5,
    "episode": 1,
    "runs_per_parameter": 50,
}
OWN = Study(
    name="problem",
    notebook="problem.ipynb",
    title="Your own model, your own patients",
    profiles={
        "quick": {
            **_OWN,
            "n_states": [50, 100],
            "n_samples": [10, 100],
            "n_repeats": 1,
            "methods": ["nelder-mead", "least-squares-multistart"],
            "n_starts": 2,
        },
        "standard": {
            **_OWN,
            "n_states": [50, 100, 200, 400],
            "n_samples": [10, 100, 1000],
            "n_repeats": 1,
            "methods": _PEERS,
            "n_starts": 5,
        },
        "paper": {
            **_OWN,
            "n_states": [50, 100, 200, 300, 400, 500, 600],
            "n_samples": [10, 100, 1000, 10000],
            "n_repeats": 5,
            "methods": _PEERS,
            "n_starts": 100,
        },
    },
    duration=dict.fromkeys(("quick", "standard", "paper"), "as long as your model takes"),
)

#: Studies of the demonstration, each at its quick profile.
DEMO = ("rosenbrock-grid", "wbc-convergence", "ep-personalization")


def find_study(name: str) -> Study:
    """Study of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    known = {study.name: study for study in (*STUDIES, OWN)}
    if name not in known:
        raise ValueError(f"there is no study {name!r}, expected one of {', '.join(known)}")
    return known[name]
