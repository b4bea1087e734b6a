"""MixedLaw: a law that draws several kinds of networks, each draw choosing its kind by weight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from echobound.arrays import Words
from echobound.draws import draw_key, unit, words
from echobound.errors import InputError
from echobound.network.cascade_law import CascadeLaw
from echobound.network.law import NetworkLaw, ReservoirLaw
from echobound.network.reservoir import KIND


@dataclass(frozen=True)
class MixedLaw(NetworkLaw):
    """Networks of several kinds: each draw first chooses one of the laws, with its own word, and is then drawn from it.

    The words that choose are used for nothing else. Given its kind, a draw is one of that law alone, with the same
    seed, stream, family and index. How it is trained and whether it is clipped is up to its kind (``draw.law``).

    Parameters
    ----------
    laws, weights
        The kinds and how often each is drawn; equally often if no weights are given.
    name
        What certificates call the law.

    Examples
    --------
    >>> from echobound.network import paper
    >>> law = MixedLaw((paper(10), paper(20)), (3, 1))
    >>> orders = [law.draw(draw_key(0, 0, 0, index)).order for index in range(400)]
    >>> 250 < orders.count(10) < 350
    True
    >>> MixedLaw.from_dict(law.to_dict()) == law
    True
    """

    kind: ClassVar[str] = "mixed"

    laws: tuple[NetworkLaw, ...]
    weights: tuple[float, ...] = ()
    name: str = "mixed"

    def __post_init__(self) -> None:
        laws, weights = tuple(self.laws), tuple(self.weights) or (1.0,) * len(self.laws)
        positive = all(isinstance(w, int | float) and 0 < w < math.inf for w in weights)
        if not laws or len(weights) != len(laws) or not positive:
            raise InputError(
                f"a mixed law needs one or more laws, each with a positive weight, got {len(laws)} laws and the weights"
                f" {list(weights)}"
            )
        for law in laws:
            if not isinstance(law, NetworkLaw):
                raise InputError(f"a mixed law is made of laws of networks, got {law!r}: give a ReservoirLaw, say")
            if isinstance(law, MixedLaw):
                raise InputError("a mixed law is made of laws that draw one kind each: give their parts instead")
        object.__setattr__(self, "laws", laws)
        object.__setattr__(self, "weights", tuple(float(w) for w in weights))

    def component(self, key: Words) -> NetworkLaw:
        """The kind that the draw of this key is of."""
        level = float(unit(words(key, KIND, 1))[0]) * sum(self.weights)
        for law, weight in zip(self.laws, self.weights, strict=True):
            if level < weight:
                return law
            level -= weight
        return self.laws[-1]  # rounding may leave a rest behind all weights

    def draw_at(self, inputs: int, outputs: int, seed: int, stream: int, family: int, index: int) -> Any:
        """Draw number `index`, of its kind."""
        law = self.component(draw_key(seed, stream, family, index))
        return law.draw_at(inputs, outputs, seed, stream, family, index)

    def draw(self, key: Words) -> Any:
        """The hyper-parameters of one draw."""
        return self.component(key).draw(key)

    def most_columns(self, inputs: int, outputs: int) -> int:
        """Largest number of readout columns that a draw can have."""
        return max(law.most_columns(inputs, outputs) for law in self.laws)

    def to_dict(self) -> dict[str, Any]:
        """The law as JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "laws": [law.to_dict() for law in self.laws],
            "weights": list(self.weights),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> MixedLaw:
        """Inverse of `to_dict`; unknown or missing fields are refused."""
        if set(content) != {"kind", "name", "laws", "weights"}:
            raise InputError(f"a mixed law has the fields kind, laws, name, weights, got {', '.join(sorted(content))}")
        if not all(isinstance(content[name], list) for name in ("laws", "weights")):
            raise InputError(f"the laws and the weights of a mixed law are a list each, got {dict(content)}")
        laws = tuple(network_law_from_dict(one) for one in content["laws"])
        return cls(laws, tuple(content["weights"]), content["name"])


def network_law_from_dict(content: Mapping[str, Any]) -> NetworkLaw:
    """Read a law of networks of any kind.

    Examples
    --------
    >>> from echobound.network import paper
    >>> network_law_from_dict(paper(50).to_dict()) == paper(50)
    True
    """
    kind = content.get("kind")
    if kind not in NETWORK_LAWS:
        raise InputError(f"unknown kind of law {kind!r}: known are {', '.join(str(k) for k in NETWORK_LAWS if k)}")
    law: NetworkLaw = NETWORK_LAWS[kind].from_dict(content)
    return law


def law_drawn_from(origin: Mapping[str, Any]) -> ReservoirLaw | CascadeLaw:
    """The law that the network of this origin was drawn from; of a mixed law, that of its kind.

    Examples
    --------
    >>> from echobound.network import paper, small
    >>> law = MixedLaw((paper(10), small()))
    >>> draws = [{"law": law.to_dict(), "seed": 0, "stream": 0, "family": 0, "index": index} for index in range(4)]
    >>> [law_drawn_from(origin).name for origin in draws]
    ['paper', 'small', 'paper', 'small']
    """
    key = draw_key(*(origin[name] for name in ("seed", "stream", "family", "index")))
    return cast("ReservoirLaw | CascadeLaw", network_law_from_dict(origin["law"]).component(key))


# A reservoir's law has no kind in its JSON: it was there before there were others.
NETWORK_LAWS: dict[str | None, Any] = {None: ReservoirLaw, **{one.kind: one for one in (MixedLaw, CascadeLaw)}}
