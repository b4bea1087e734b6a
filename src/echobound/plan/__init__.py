"""What is settled before the first draw."""

from echobound.plan.numbers import settle_networks, settle_stop
from echobound.plan.plan import Plan, Renewed
from echobound.plan.validation import Validation, settle_validation

__all__ = ["Plan", "Renewed", "Validation", "settle_networks", "settle_stop", "settle_validation"]
