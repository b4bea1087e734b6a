"""What is settled before the first draw: the plan, its laws and numbers, how candidates are validated."""

from echobound.plan.laws import DescribedLaw, register_law
from echobound.plan.numbers import settle_networks, settle_stop
from echobound.plan.plan import Plan, PlanSettings
from echobound.plan.questions import settle_questions
from echobound.plan.renewal import RenewalStep
from echobound.plan.settled import SettledPlan
from echobound.plan.validation import Validation, settle_validation
from echobound.typed import setting

__all__ = [
    "DescribedLaw",
    "Plan",
    "PlanSettings",
    "RenewalStep",
    "SettledPlan",
    "Validation",
    "register_law",
    "setting",
    "settle_networks",
    "settle_questions",
    "settle_stop",
    "settle_validation",
]
