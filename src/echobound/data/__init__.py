"""Records, and what happens to them before a network sees them: reading, checks, scaling, splitting."""

from typing import TYPE_CHECKING

from echobound.data.checks import default_washout, require_longer_than_washout, require_varying_outputs
from echobound.data.record import Record, as_records
from echobound.data.scaling import Scaling
from echobound.data.splitting import split
from echobound.onward import on_first_use

if TYPE_CHECKING:
    from echobound.data.formats import read_table
    from echobound.data.inspection import Inspection, inspect_file
    from echobound.data.reading import read_csv, read_records
    from echobound.data.sampling import Reading

__all__ = [
    "Inspection",
    "Reading",
    "Record",
    "Scaling",
    "as_records",
    "default_washout",
    "inspect_file",
    "read_csv",
    "read_records",
    "read_table",
    "require_longer_than_washout",
    "require_varying_outputs",
    "split",
]

__getattr__ = on_first_use(
    __name__,
    {
        "formats": ("read_table",),
        "inspection": (
            "Inspection",
            "inspect_file",
        ),
        "reading": (
            "read_csv",
            "read_records",
        ),
        "sampling": ("Reading",),
    },
)
