"""A function block of Structured Text, run by translation to Python: of the language, as much as our own texts use."""

from __future__ import annotations

import math
import re
from typing import Any

from echobound.errors import InputError

WORDS = {"AND": "and", "OR": "or", "NOT": "not", "TRUE": "True", "FALSE": "False", "EXP": "exp"}
NUMBER = re.compile(r"-?\d+(\.\d+)?(E-?\d+)?")


class FunctionBlock:
    """A function block with its variables; a call runs its body once.

    Examples
    --------
    >>> text = '''FUNCTION_BLOCK twice
    ... VAR_INPUT
    ...     x : LREAL;
    ... END_VAR
    ... VAR
    ...     i : DINT;
    ...     y : ARRAY[0..1] OF LREAL := [1.0, 2.5E-1];
    ... END_VAR
    ... FOR i := 0 TO 1 DO
    ...     IF y[i] < 1.0 THEN
    ...         y[i] := y[i] + 2.0 * x;
    ...     END_IF;
    ... END_FOR;
    ... END_FUNCTION_BLOCK'''
    >>> block = FunctionBlock(text)
    >>> block(x=3.0)
    >>> block["y"]
    [1.0, 6.25]
    """

    def __init__(self, text: str) -> None:
        text = re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
        self.variables: dict[str, Any] = {}
        for block in re.findall(r"^VAR.*?END_VAR", text, flags=re.DOTALL | re.MULTILINE):
            self._declare(block)
        found = re.search(r".*END_VAR(.*)END_FUNCTION_BLOCK", text, flags=re.DOTALL)
        if found is None:
            raise InputError("a function block with declarations and a body was expected: the file is not one of ours")
        self._code = compile(_python(found.group(1)), "function block", "exec")

    def __call__(self, **inputs: Any) -> None:
        """Set inputs, and run the body once."""
        self.variables |= inputs
        exec(self._code, {"__builtins__": {}, "range": range, "exp": math.exp}, self.variables)

    def __getitem__(self, name: str) -> Any:
        return self.variables[name]

    def _declare(self, block: str) -> None:
        pattern = r"(\w+)\s*:\s*(?:ARRAY\[0\.\.(\d+)\] OF )?(LREAL|DINT|BOOL)\s*(?::=\s*\[(.*?)\])?;"
        for name, last, kind, values in re.findall(pattern, block, flags=re.DOTALL):
            plain: Any = {"LREAL": 0.0, "DINT": 0, "BOOL": False}[kind]
            read = float if kind == "LREAL" else int
            numbers = [item.strip() for item in values.split(",")] if values else []
            for number in numbers:
                if not NUMBER.fullmatch(number):
                    raise InputError(f"{name} has {number!r} where a number was expected: the file is damaged")
            if not last:
                self.variables[name] = plain
            elif numbers and len(numbers) != int(last) + 1:
                raise InputError(f"{name} has {len(numbers)} numbers, not {int(last) + 1}: the file is damaged")
            else:
                self.variables[name] = [read(n) for n in numbers] if numbers else [plain] * (int(last) + 1)


def _python(body: str) -> str:
    """The statements in Python; a statement is a line."""
    lines, depth = ["pass"], 0
    for line in (raw.strip() for raw in body.splitlines()):
        if not line:
            continue
        if line in ("END_FOR;", "END_IF;"):
            depth -= 1
            continue
        loop = re.fullmatch(r"FOR (\w+) := (.+) TO (.+?)(?: BY (-1))? DO", line)
        condition = re.fullmatch(r"IF (.+) THEN", line)
        assignment = re.fullmatch(r"([\w\[\] +*-]+?) := (.+);", line)
        if loop:
            name, first, last, down = loop.groups()
            end = f"{_expression(last)} - 1, -1" if down else f"{_expression(last)} + 1"
            made = f"for {name} in range({_expression(first)}, {end}):"
        elif condition:
            made = f"if {_expression(condition.group(1))}:"
        elif assignment:
            made = f"{_expression(assignment.group(1))} = {_expression(assignment.group(2))}"
        else:
            raise InputError(f"{line!r} is not a statement that this translation knows: the file is not one of ours")
        lines.append("    " * depth + made)
        depth += made.endswith(":")
    return "\n".join(lines)


def _expression(text: str) -> str:
    if not re.fullmatch(r"[\w\s\[\]().+*/<>-]*", text):
        raise InputError(f"{text!r} is not an expression that this translation knows: the file is not one of ours")
    return re.sub(r"\b[A-Z]+\b", lambda word: WORDS.get(word.group(), word.group()), text)
