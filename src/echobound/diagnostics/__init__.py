"""What a model is worth: a linear baseline, tests of what is left over, coverage of the data, and the verdict."""

from echobound.diagnostics.finding import Finding
from echobound.diagnostics.linear import Linear
from echobound.diagnostics.verdict import Verdict

__all__ = ["Finding", "Linear", "Verdict"]
