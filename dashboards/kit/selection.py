"""What is being looked at: the whole state that the address of a page holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, get_args
from urllib.parse import parse_qsl, urlencode

import param

from vitolab.store.info import Status

#: Titles of the pages by name, in the order of the navigation.
PAGES = {
    "runs": "Runs",
    "results": "Results",
    "policy": "Policy",
    "patient": "Patient",
    "teach": "Teach",
    "own": "Your own model",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ ,-]{0,63}")
# the names that `vitolab.patients` takes from a file
_PATIENT = re.compile(r"\w[\w. -]{0,63}")
_TEXT = re.compile(r'(?=.*\w)[\w .,:="%+-]{1,64}')  # of rows and their parameters
_STATUS = re.compile("|".join(get_args(Status)))
_SORT = re.compile("[a-z]+,(asc|desc)")
_DECIMAL = re.compile(r"[0-9]{1,9}([.][0-9]{1,9})?")
_PATTERNS = {"patient": _PATIENT, "search": _TEXT, "status": _STATUS, "sort": _SORT}
_PATTERNS |= {"run_time": _DECIMAL, "unit": re.compile("s|min|h"), "hours": _DECIMAL}
_NUMBER = re.compile(r"[0-9]{1,9}")
_PATTERNS |= dict.fromkeys(("n_patients", "n_parameters", "n_workers"), _NUMBER)
_ITEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}")
#: Most items of a list in an address.
MOST = 8
#: A change of one of these is a step that the back button undoes; others replace the address.
STEPS = ("page", "study", "runs", "setup", "patient", "method", "model", "view")


class Selection(param.Parameterized):
    """What is being looked at.

    Several values at once are set by ``selection.param.update(...)``: one step of the history.
    A value that an address cannot hold is kept, and left out of the address.
    """

    page = param.String("runs", doc="One of `PAGES`.")
    study = param.String("", doc="Study, as a filter of the runs.")
    runs = param.List([], item_type=str, doc="Identifiers of the chosen runs, in their order.")
    setup = param.String("", doc="Setup within a run.")
    patient = param.String("", doc="Patient within a run.")
    method = param.String("", doc="Method within a run.")
    repeat = param.Integer(None, allow_None=True, doc="Repeat of the method.")
    start = param.Integer(None, allow_None=True, doc="Start of the method.")
    samples = param.Integer(None, allow_None=True, doc="Samples per patient (n_samples).")
    states = param.Integer(None, allow_None=True, doc="Number of states (n_states).")
    step = param.Integer(None, allow_None=True, doc="Forward run that is shown, from 0.")
    state = param.Integer(None, allow_None=True, doc="State of the policy.")
    action = param.Integer(None, allow_None=True, doc="Action of the policy.")
    objectives = param.List([], item_type=str, doc="Objectives on the axes.")
    view = param.String("", doc="Part of a page, such as a tab.")
    color = param.String("", doc="What colours show.")
    model = param.String("", doc="Model of the page Teach.")
    status = param.String("", doc="Status, as a filter of the runs.")
    search = param.String("", doc="Text that runs are searched for.")
    sort = param.String("", doc="Column and direction, such as ``started,desc``.")
    # of the page Your own model, as they were typed: what is no number is kept, and explained there
    run_time = param.String("5", doc="Time of one forward run of a model of one's own.")
    unit = param.String("min", doc="Its unit: s, min or h.")
    n_patients = param.String("20", doc="Patients to personalise.")
    n_parameters = param.String("6", doc="Parameters of that model.")
    n_workers = param.String("1", doc="Forward runs at the same time.")
    hours = param.String("8", doc="Wall time to spend [h].")

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        #: Names of values that the last address held and that were refused.
        self.refused: tuple[str, ...] = ()

    def query(self) -> str:
        """The part of the address after the question mark; what is at its default is left out."""
        pairs = []
        for name in FIELDS:
            value = getattr(self, name)
            if value == self.param[name].default:
                continue
            written = ",".join(value) if isinstance(value, list) else str(value)
            if _parsed(name, written) == value:
                pairs.append((name, written))
        return urlencode(pairs, safe=",")

    def read(self, query: str) -> None:
        """Take the state from an address, at one stroke; absent values take their default.

        Parameters
        ----------
        query : str
            With or without the question mark. What is not valid is left out and named in
            `refused`; what is not known is ignored, it may be of a proxy.
        """
        values = {name: self.param[name].default for name in FIELDS}
        refused = []
        try:
            pairs = parse_qsl(query.removeprefix("?")[:8192], max_num_fields=100)
        except ValueError:
            pairs, refused = [], ["address"]
        for name, written in pairs:
            if name in values:
                parsed = _parsed(name, written)
                if parsed is None:
                    many = name == "runs" and written.count(",") >= MOST
                    refused.append(f"runs, at most {MOST} of them" if many else name)
                else:
                    values[name] = parsed
        self.refused = tuple(dict.fromkeys(refused))
        copies = {n: list(v) if isinstance(v, list) else v for n, v in values.items()}
        self.param.update(**copies)

    def watch(self, function: Callable[..., Any], *names: str) -> None:
        """Call a function without arguments when one of the values has changed."""
        self.param.watch(lambda *events: function(), list(names))


#: Names of the values, in their order in the address.
FIELDS = tuple(name for name in Selection.param if name != "name")
FIELDS = tuple(sorted(FIELDS, key=list(vars(Selection)).index))


def _parsed(name: str, written: str) -> Any:
    """Value of one field of an address; None if it is refused."""
    kind = Selection.param[name]
    if isinstance(kind, param.List):
        items = written.split(",")
        valid = len(items) <= MOST and all(_ITEM.fullmatch(item) for item in items)
        return list(dict.fromkeys(items)) if valid else None
    if isinstance(kind, param.Integer):
        return int(written) if _NUMBER.fullmatch(written) and written.isascii() else None
    if name == "page":
        return written if written in PAGES else None
    return written if _PATTERNS.get(name, _NAME).fullmatch(written) else None
