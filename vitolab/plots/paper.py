"""What the paper reports of the circulation studies, to stand beside what is found here.

Section 3.3, its figures' captions and the table of setups in section 4.1. The paper's patients
are real; success rates on synthetic patients are not comparable to its rates.
"""

from __future__ import annotations

# number of representative states (section 3.3.2)
N_STATES = {"2p": 70, "3p": 150, "5p": 400, "6p": 600}
# samples per patient at which the performance plateau begins (table in section 4.1)
PLATEAU = {"2p": 450, "3p": 2_000, "5p": 3_500, "6p": 20_000}
# samples per patient for a success rate of 80 % (section 3.3.4; 6p: "almost 90 times as many")
SAMPLES_FOR_80 = {"2p": "< 50", "6p": "≈ 90 times as many as 2p"}
# mean runs of Vito in 2p from 1,000 samples on, and of the best run of the simplex there
RUNS_2P = 3.0
RUNS_2P_FROM = 1_000
RUNS_2P_SIMPLEX = 22.6
# forward runs of the best simplex run over those of Vito: at least this in every setup
SPEED_UP = {"2p": 7.0, "3p": 1.8, "5p": 1.8, "6p": 1.8}
# success rate of Vito over that of the simplex, percentage points, at most (section 3.3.4)
SUCCESS_GAIN = {"6p": 11.0}
# normalised against plain misfit in the simplex (section 3.3.3): at most these
WEIGHTING_FASTER = 20.0
WEIGHTING_SUCCESS = 8.0
