"""The JSON Schema of ``certificate.json``, made from the fields of the classes and the list of statements."""

from __future__ import annotations

from typing import Any

from echobound import typed
from echobound.scenario.certificate import SCHEMA_VERSION, Certificate
from echobound.scenario.statements import registry
from echobound.scenario.stopping import RULES


def schema() -> dict[str, Any]:
    """The JSON Schema of ``certificate.json``.

    Examples
    --------
    >>> schema()["properties"]["direction"]["enum"]
    ['max', 'min']
    """
    # Set here and not by type hints: what the file has besides the fields, and what depends on the lists of variants.
    content = typed.schema(Certificate)
    inside = content["properties"]
    inside["schema_version"] = {"const": SCHEMA_VERSION}
    inside["digest"] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    inside["rule"] = {
        "enum": ["fixed", *(rule.kind for rule in RULES)],
        "description": "How the number of networks was found: settled before the first draw (fixed), or by a stopping"
        " rule that was; what it says is the first of the statements.",
    }
    inside["families"] = {
        "type": "array",
        "minItems": 1,
        "items": FAMILY,
        "description": "Where there are several laws or orders: name, networks, failures and law of each; the networks"
        " are numbered family after family.",
    }
    inside["statements"] = {
        "type": "array",
        "items": {"anyOf": [kind.json_schema() for kind in registry.OF_SEARCH]},
        "description": "What else these scores say.",
    }
    # What goes together, which the type of a single field cannot say.
    inside["worst"] |= _either(
        {"diverged": {"const": True}},
        {"threshold": {"type": "null"}},
        {"threshold": {"type": "number"}, "divergence_bound": {"type": "null"}},
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "echobound certificate",
        "description": "What is promised about the best (and the worst) of N random networks. Everything but provenance"
        " and digest is covered by the digest.",
        **content,
        "required": [name for name in inside if name != "members"],  # which came later
        **_either(
            {"status": {"const": "all diverged"}},
            {"winner": {"type": "null"}, "threshold": {"type": "null"}},
            {"winner": {"type": "integer"}, "threshold": {"type": "number"}},
        ),
    }


FAMILY = {
    "type": "object",
    "required": ["family", "networks"],
    "properties": {
        "family": {"type": "integer", "minimum": 0},
        "networks": {"type": "integer", "minimum": 1},
        "name": {"type": "string", "minLength": 1},
        "failures": {"type": "integer", "minimum": 0},
        "law": {"type": "object"},
    },
}


def _either(condition: dict[str, Any], then: dict[str, Any], otherwise: dict[str, Any]) -> dict[str, Any]:
    return {"if": {"properties": condition}, "then": {"properties": then}, "else": {"properties": otherwise}}
