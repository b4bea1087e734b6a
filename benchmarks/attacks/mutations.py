"""Changes of bytes and of JSON, each made from a random number alone so that it can be made again."""

from __future__ import annotations

import random
import struct
from typing import Any

NUMBERS = (
    0,
    1,
    2,
    7,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**40,
    2**63 - 1,
    2**64 - 1,
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf")),
    *("", "x", "-1", "fit", "x" * 300, "\x1b[2J\x07", "\u202eabc", "../../x", "{plan}", "\ud800"),
    *([], {}, [[]], [None], {"a": []}, ["x"] * 50, [1e308] * 3, {"kind": "x"}),
)


def said_in_one_line(refusal: Exception) -> str:
    """The outcome of a refusal, which must be one sentence that a terminal can show."""
    text = str(refusal)
    assert "\n" not in text, "a refusal of several lines"
    return "refused"


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """Bytes with one to four changes."""
    found = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at, size = chance.randrange(len(found) or 1), chance.choice((1, 2, 4, 8, 64))
        # The ends of a file hold its tables: they are hit more often.
        if chance.random() < 0.4:
            at = (
                min(len(found), chance.randrange(400))
                if chance.random() < 0.5
                else max(0, len(found) - chance.randrange(1, 1200))
            )
        kind = chance.randrange(8)
        if kind == 0 and found:
            found[at % len(found)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            found[at : at + size] = chance.randbytes(size)
        elif kind == 2:
            found[at : at + size] = bytes(size) if chance.random() < 0.5 else b"\xff" * size
        elif kind == 3:
            number, layout = chance.choice(NUMBERS), chance.choice(("<I", ">I", "<Q", ">Q", "<H"))
            width = struct.calcsize(layout)
            found[at : at + width] = struct.pack(layout, number & (256**width - 1))
        elif kind == 4:
            del found[at : at + size]
        elif kind == 5:
            found[at:at] = found[at : at + size]
        elif kind == 6:
            found = found[:at] if chance.random() < 0.3 else found
        else:
            other = chance.randrange(len(found) or 1)
            found[at : at + size] = found[other : other + size]
    return bytes(found)


def places(content: Any, inside: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where values stand in JSON."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [inside, *(place for key, item in items for place in places(item, (*inside, key)))]


def changed(content: Any, chance: random.Random) -> Any:
    """JSON with one value of another kind, or an entry more or less."""
    place = chance.choice(places(content)[1:] or [()])
    if not place:
        return chance.choice(VALUES)
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    kind = chance.randrange(10)
    if kind == 0:
        del holder[place[-1]]
    elif kind == 1 and isinstance(holder, dict):
        holder[chance.choice(("x", "kind", "\x1b[31m"))] = chance.choice(VALUES)
    elif kind == 2 and isinstance(holder, list):
        holder.insert(0, chance.choice(VALUES))
    else:
        holder[place[-1]] = chance.choice(VALUES)
    return content
