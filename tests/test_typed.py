"""Typed JSON: what is written comes back, and nothing else is read."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from echobound.errors import DamagedFile, InputError
from echobound.typed import Keywords, from_json, schema, shortened, to_json


@dataclass(frozen=True)
class Point:
    x: float
    name: str = "origin"


@dataclass(frozen=True)
class Everything:
    count: Annotated[int, Keywords("How many.", minimum=0)]
    share: float
    sure: bool
    kind: Literal["a", "b"]
    maybe: float | None
    points: tuple[Point, ...]
    pair: tuple[int, str]
    nested: tuple[tuple[float, ...] | None, ...] | None
    by_name: Mapping[str, Point]
    free: Mapping[str, Any] = field(default_factory=dict)
    middle: Point | None = None


GOOD = Everything(
    3, 0.5, True, "b", None, (Point(1.0), Point(2, "p")), (1, "one"), ((1.0,), None), {"p": Point(0.0)}, {"a": [1]}
)
STORED = json.loads(json.dumps(to_json(GOOD)))


def test_there_and_back():
    assert from_json(Everything, STORED) == GOOD
    Draft202012Validator.check_schema(schema(Everything))
    Draft202012Validator(schema(Everything)).validate(STORED)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("count", True, "count: a whole number was expected, found True"),
        ("count", 1.0, "count: a whole number was expected, found 1.0"),
        ("share", "0.5", "share: a number was expected, found '0.5'"),
        ("share", math.nan, "share: a number was expected, found nan"),
        ("share", False, "share: a number was expected"),
        ("sure", 1, "sure: true or false was expected, found 1"),
        ("kind", "c", "kind: 'a' or 'b' was expected, found 'c'"),
        ("maybe", "none", "maybe: a number or null was expected"),
        ("points", {}, "points: a list was expected, found {}"),
        ("points", [{"x": 1}], r"points\[0\]\.name: missing"),
        ("points", [{"x": 1, "name": 2}], r"points\[0\]\.name: a text was expected"),
        ("points", [3], r"points\[0\]: an object was expected, found 3"),
        ("pair", [1], "pair: a list was expected"),
        ("pair", ["one", 1], r"pair\[0\]: a whole number was expected"),
        ("nested", [[True]], r"nested\[0\]\[0\]: a number was expected"),
        ("by_name", [], "by_name: an object was expected"),
        ("by_name", {"p": {"x": None, "name": "p"}}, r"by_name\.p\.x: a number was expected, found None"),
        ("middle", {"x": 1.0, "name": "m", "y": 1}, r"middle\.y: unknown"),
    ],
)
def test_what_does_not_fit_is_named(name, value, said):
    content = STORED | {name: value}
    with pytest.raises(InputError, match=said):
        from_json(Everything, content)
    with pytest.raises(DamagedFile, match=rf"plan\.json.*{name}"):
        from_json(Everything, content, "plan.json")
    if not (isinstance(value, float) and (math.isnan(value) or value == 1.0)):  # JSON Schema takes 1.0 for an integer
        assert not Draft202012Validator(schema(Everything)).is_valid(content)


def test_a_whole_number_that_no_double_holds_is_refused():
    with pytest.raises(InputError, match="share: a number was expected, found 1000"):
        from_json(Everything, STORED | {"share": 10**400})


@pytest.mark.parametrize("name", STORED)
def test_missing_and_unknown(name):
    with pytest.raises(InputError, match=f"{name}: missing"):
        from_json(Everything, {key: value for key, value in STORED.items() if key != name})
    with pytest.raises(InputError, match="zzz: unknown"):
        from_json(Everything, STORED | {"zzz": 1})


@pytest.mark.parametrize("content", [None, 3, "text", [], True])
def test_what_is_no_object(content):
    with pytest.raises(InputError, match="Point: an object was expected"):
        from_json(Point, content)


@given(st.floats(), st.text())
def test_numbers_that_are_not_finite_become_null(x, name):
    stored = to_json(Point(x, name))
    json.dumps(stored, allow_nan=False)
    assert stored == {"x": x if math.isfinite(x) else None, "name": name}


def test_shortened():
    assert shortened("as it is") == "as it is"
    assert shortened([1]) == "[1]"
    assert len(shortened("x" * 500)) == 80
    assert shortened("x" * 500, 300).endswith("x...")
