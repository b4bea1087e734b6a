"""Golden values are compared in the digits they are given in."""

from decimal import Decimal


def agrees(value: float, golden: str) -> bool:
    """Whether a number, rounded to the digits of the text, is the text (0.6 of the last digit for ties)."""
    unit = Decimal(1).scaleb(int(Decimal(golden).as_tuple().exponent))
    return abs(Decimal(repr(float(value))) - Decimal(golden)) <= Decimal("0.6") * unit


def test_agrees():
    assert agrees(0.04349, "0.0435")
    assert not agrees(0.04342, "0.0435")
    assert agrees(9.51e-10, "9.5e-10")
    assert not agrees(0.0, "1e-7")
