"""Records and what is done to them before a network sees them: reading, checks, scaling, splitting."""

from echobound.data.checks import require_longer_than_washout, require_varying_outputs
from echobound.data.reading import Table, read_csv, read_table
from echobound.data.record import Record, Signal, as_records
from echobound.data.scaling import SCALINGS, Scaling
from echobound.data.splitting import split

__all__ = [
    "SCALINGS",
    "Record",
    "Scaling",
    "Signal",
    "Table",
    "as_records",
    "read_csv",
    "read_table",
    "require_longer_than_washout",
    "require_varying_outputs",
    "split",
]
