/* Three-element Windkessel under half-sine pulses, a functional mock-up unit (FMI 2.0) for
   co-simulation. Time is counted in beats, so that a whole number of them ends at the same time
   at any heart rate. Pressures in mmHg, volumes in mL, resistances in mmHg s/mL, flow in mL/s.

   It becomes an FMU as a shared library beside windkessel_fmu.xml in an archive (Linux, 64 bit):

     modelDescription.xml             this is windkessel_fmu.xml
     binaries/linux64/windkessel.so   gcc -shared -fPIC -O2 -I HEADERS windkessel.c -lm

   where HEADERS is the folder c-code of fmpy. */
#include <math.h>
#include <stdlib.h>

#include "fmi2Functions.h"

enum { R, ZC, C, HEART_RATE, STROKE_VOLUME, SYSTOLE, STORED, FLOW, PRESSURE, N_VALUES };
#define N_SET (SYSTOLE + 1) /* the first ones can be set */
#define STEP 1e-3         /* longest step, beats */

static const double PI = 3.141592653589793;
static const double START[N_SET] = {1.1, 0.05, 1.4, 70.0, 70.0, 0.35};

typedef struct {
    double value[N_VALUES];
} Model;

/* inflow, mL/s; its integral over a beat is the stroke volume */
static double flow(const double *v, double t) {
    double period = 60.0 / v[HEART_RATE], phase = t - floor(t);
    double peak = PI * v[STROKE_VOLUME] / (2.0 * v[SYSTOLE] * period);
    return phase < v[SYSTOLE] ? peak * sin(PI * phase / v[SYSTOLE]) : 0.0;
}

static double slope(const double *v, double t, double stored) {
    double period = 60.0 / v[HEART_RATE];
    return period * (flow(v, t) - stored / (v[R] - v[ZC])) / v[C];
}

static void observe(double *v, double t) {
    v[FLOW] = flow(v, t);
    v[PRESSURE] = v[STORED] + v[ZC] * v[FLOW];
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *functions, fmi2Boolean visible,
                              fmi2Boolean logging) {
    Model *model = type == fmi2CoSimulation ? calloc(1, sizeof(Model)) : NULL;
    if (model) fmi2Reset(model);
    return model;
}

void fmi2FreeInstance(fmi2Component c) { free(c); }

fmi2Status fmi2Reset(fmi2Component c) {
    for (int i = 0; i < N_SET; i++) ((Model *)c)->value[i] = START[i];
    return fmi2OK;
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean with_tolerance, fmi2Real tolerance,
                               fmi2Real start, fmi2Boolean with_stop, fmi2Real stop) {
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return fmi2OK; }

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
    double *v = ((Model *)c)->value;
    for (int i = 0; i < N_SET; i++)
        if (!(v[i] > 0.0)) return fmi2Error;
    if (!(v[R] > v[ZC])) return fmi2Error;
    v[STORED] = v[R] * v[STROKE_VOLUME] * v[HEART_RATE] / 60.0; /* the mean pressure */
    observe(v, 0.0);
    return fmi2OK;
}

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[]) {
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= N_VALUES) return fmi2Error;
        value[i] = ((Model *)c)->value[vr[i]];
    }
    return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                       const fmi2Real value[]) {
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= N_SET) return fmi2Error;
        ((Model *)c)->value[vr[i]] = value[i];
    }
    return fmi2OK;
}

/* Runge-Kutta steps of order 4 from one communication point to the next */
fmi2Status fmi2DoStep(fmi2Component c, fmi2Real now, fmi2Real length, fmi2Boolean final) {
    double *v = ((Model *)c)->value;
    int n = (int)ceil(length / STEP);
    double h = length / n;
    for (int i = 0; i < n; i++) {
        double t = now + i * h, p = v[STORED];
        double a = slope(v, t, p), b = slope(v, t + h / 2, p + h / 2 * a);
        double d = slope(v, t + h / 2, p + h / 2 * b), e = slope(v, t + h, p + h * d);
        v[STORED] = p + h / 6 * (a + 2 * b + 2 * d + e);
    }
    observe(v, now + length);
    return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c) { return fmi2OK; }

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

/* what every FMU exports and this one does without */
#define GET_SET(Type)                                                                             \
    fmi2Status fmi2Get##Type(fmi2Component c, const fmi2ValueReference vr[], size_t n,            \
                             fmi2##Type value[]) {                                                \
        return n ? fmi2Error : fmi2OK;                                                            \
    }                                                                                             \
    fmi2Status fmi2Set##Type(fmi2Component c, const fmi2ValueReference vr[], size_t n,            \
                             const fmi2##Type value[]) {                                          \
        return n ? fmi2Error : fmi2OK;                                                            \
    }
#define STATUS(Name, Type)                                                                        \
    fmi2Status fmi2Get##Name(fmi2Component c, const fmi2StatusKind kind, Type *value) {           \
        return fmi2Discard;                                                                       \
    }
#define NONE(name, ...)                                                                           \
    fmi2Status name(fmi2Component c, __VA_ARGS__) { return fmi2Error; }

GET_SET(Integer)
GET_SET(Boolean)
GET_SET(String)
STATUS(Status, fmi2Status)
STATUS(RealStatus, fmi2Real)
STATUS(IntegerStatus, fmi2Integer)
STATUS(BooleanStatus, fmi2Boolean)
STATUS(StringStatus, fmi2String)
NONE(fmi2GetFMUstate, fmi2FMUstate *state)
NONE(fmi2SetFMUstate, fmi2FMUstate state)
NONE(fmi2FreeFMUstate, fmi2FMUstate *state)
NONE(fmi2SerializedFMUstateSize, fmi2FMUstate state, size_t *size)
NONE(fmi2SerializeFMUstate, fmi2FMUstate state, fmi2Byte bytes[], size_t size)
NONE(fmi2DeSerializeFMUstate, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state)
NONE(fmi2GetDirectionalDerivative, const fmi2ValueReference unknown[], size_t n_unknown,
     const fmi2ValueReference known[], size_t n_known, const fmi2Real seed[], fmi2Real value[])
NONE(fmi2SetRealInputDerivatives, const fmi2ValueReference vr[], size_t n,
     const fmi2Integer order[], const fmi2Real value[])
NONE(fmi2GetRealOutputDerivatives, const fmi2ValueReference vr[], size_t n,
     const fmi2Integer order[], fmi2Real value[])
fmi2Status fmi2CancelStep(fmi2Component c) { return fmi2Error; }
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n,
                               const fmi2String categories[]) {
    return fmi2OK;
}
