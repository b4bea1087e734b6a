"""Card: what every exported model carries about itself, whatever the target is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from echobound.errors import InputError
from echobound.network import Committee, bound_words
from echobound.scenario import Certificate

NONE = "None was given."


@dataclass(frozen=True)
class Card:
    """Where a model comes from, what is promised about it, and how it is used; texts of one line each.

    Parameters
    ----------
    name
        The model's name, also an identifier of every target's language.
    model, certificate
        SHA-256 of the model and of its certificate; the latter is empty if there is none.
    statement
        What the certificate promises, and whether it is about this very model.
    """

    name: str
    kind: str
    model: str
    certificate: str
    statement: str
    sampling_time: float
    inputs: tuple[str, ...]
    input_units: tuple[str, ...]
    outputs: tuple[str, ...]
    output_units: tuple[str, ...]
    scaling: str
    washout: int
    bound: str
    made_by: str

    @property
    def warm_up(self) -> str:
        """How a run starts, in words."""
        return (
            "Start from the first measured input and output, feed back measured outputs for"
            f" {max(self.washout, 1)} samples, then let the model run freely; without measured outputs, start from the"
            " training mean."
        )

    @property
    def lines(self) -> list[str]:
        """The card as text."""

        def channels(names: tuple[str, ...], units: tuple[str, ...]) -> str:
            return ", ".join(f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True))

        return [
            f"{self.name}: {self.kind}, exported by {self.made_by}",
            f"inputs: {channels(self.inputs, self.input_units)}",
            f"outputs: {channels(self.outputs, self.output_units)}",
            f"sampling time: {self.sampling_time!r} s; one step is one sample",
            f"scaling: {self.scaling}, inside: inputs and outputs are in the units of the data",
            f"warm-up: {self.warm_up}",
            f"bound: {self.bound}",
            f"model: SHA-256 {self.model}",
            f"certificate: {'SHA-256 ' + self.certificate if self.certificate else 'none'}",
            f"statement: {self.statement}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """The card as JSON."""
        return {**asdict(self), "warm_up": self.warm_up}


def card_of(model: Any, name: str, certificate: Certificate | Mapping[str, Any] | None) -> Card:
    """The card of a model with the certificate of its search, if there is one.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> result = identify(*ph_experiment(samples=(400, 300)), law="paper", order=5, networks=20)
    >>> card_of(result.network, "plant", result.certificate).statement[:35]
    'About this model: With confidence 1'
    >>> card_of(result.committee, "plant", result.certificate).statement[:56]
    'About the best network of the search, not this committee'
    >>> card_of(result.network, "plant", None).statement
    'None was given.'
    """
    content = (
        {} if certificate is None else certificate.to_dict() if isinstance(certificate, Certificate) else certificate
    )
    several = isinstance(model, Committee)
    members = model.members if several else (model,)
    kinds = sorted({member.structure or "echo state network" for member in members})
    orders = [member.order for member in members]
    size = f"{orders[0]} states" if len(set(orders)) == 1 else f"{min(orders)} to {max(orders)} states"
    return Card(
        name=name,
        kind=f"median of {len(members)} models ({', '.join(kinds)}, {size})" if several else f"{kinds[0]}, {size}",
        model=model.digest,
        certificate=str(content.get("digest", "")),
        statement=_statement(model, content),
        sampling_time=float(model.sampling_time),
        inputs=tuple(map(_line, model.input_names)),
        input_units=tuple(map(_line, model.input_units)),
        outputs=tuple(map(_line, model.output_names)),
        output_units=tuple(map(_line, model.output_units)),
        scaling=", ".join(sorted({member.scaling.kind for member in members})),
        washout=int(model.washout),
        bound=_line(bound_words(model)),
        made_by=f"echobound {_version()}",
    )


def _statement(model: Any, content: Mapping[str, Any]) -> str:
    if not content:
        return NONE
    digests = content.get("digests", {})
    if model.digest == digests.get("model"):
        return f"About this model: {_line(content['statement'])}"
    if model.digest == digests.get("committee"):
        return f"About the best network of the search, not this committee of the best: {_line(content['statement'])}"
    raise InputError(
        "the certificate is about another model, by its digest: export the model of the same run, or leave the"
        " certificate out"
    )


def identifier(text: str) -> str:
    """A text as an identifier of every target's language: letters, digits and single underscores, a letter first.

    Examples
    --------
    >>> identifier("pH plant/2"), identifier("7th"), identifier("°")
    ('pH_plant_2', 'm_7th', 'model')
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:24].rstrip("_")
    if not plain:
        return "model"
    return plain if plain[0].isalpha() else f"m_{plain}"


def _line(text: str) -> str:
    """A text on one line."""
    return " ".join(str(text).split())


def _version() -> str:
    try:
        return version("echobound")
    except PackageNotFoundError:  # run from its sources
        return "unknown"
