"""A three-element windkessel: arterial pressure from the ejected volume, beat after beat.

The heart ejects a half sine of flow during a third of the beat. The compliance C keeps the pressure
p of the arteries, which drains through the resistance R; the characteristic impedance Z adds the
pressure that moves the flow:  C dp/dt = q - p / R,  aortic pressure = p + Z q.
"""

import numpy as np

N = 400  # points of a beat


def windkessel(x, patient):
    """Pressures of a beat that repeats itself.

    Called with one parameter vector, in the order of problem.toml, and the patient; answers with
    numbers by name of output. An exception, a NaN, and no answer within the time limit are failed
    runs: they are counted and shown, and never end a study.
    """
    resistance, compliance, impedance = x
    beat = 60.0 / patient.data["heart_rate"]
    t = np.linspace(0.0, beat, N + 1)
    ejection = beat / 3.0
    flow = np.where(t < ejection, np.sin(np.pi * t / ejection), 0.0)
    flow *= patient.data["stroke_volume"] / np.trapezoid(flow, t)

    # each step is exact for a flow that is constant in it
    tau = resistance * compliance
    keep = np.exp(-(t[1] - t[0]) / tau)
    inflow = resistance * (1.0 - keep) * (flow[:-1] + flow[1:]) / 2.0
    added = 0.0
    for step in inflow:
        added = keep * added + step
    pressure = np.empty(N + 1)
    pressure[0] = added / (1.0 - keep**N)  # the beginning to which a beat returns
    for i, step in enumerate(inflow):
        pressure[i + 1] = keep * pressure[i] + step

    aortic = pressure + impedance * flow
    return {
        "mean": np.trapezoid(aortic, t) / beat,
        "systolic": aortic.max(),
        "diastolic": aortic.min(),
    }
