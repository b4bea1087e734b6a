"""`plan`: how many networks, what epsilon, what beta: all directions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from echobound.cli.terminal import AsJson, console, print_json
from echobound.errors import InputError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: echobound plan --epsilon 0.05 --beta 1e-7")(plan)


def plan(
    epsilon: Annotated[str | None, typer.Option(help="Violation probability, between 0 and 1.")] = None,
    beta: Annotated[str | None, typer.Option(help="1 - confidence, between 0 and 1.")] = None,
    networks: Annotated[int | None, typer.Option(help="Number of networks.")] = None,
    d: Annotated[int, typer.Option("--d", help="Number of optimisation variables; 1 for best of N.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Plan a certificate: give two of epsilon, beta and the number of networks, get the third.

    The explicit bound is the paper's; the exact one is tight and needs about half as many networks. With nothing
    given: epsilon 0.05 and beta 1e-7.
    """
    from echobound import scenario

    if networks is None:
        epsilon, beta = epsilon or "0.05", beta or "1e-7"
        asked = "networks"
        explicit: float = scenario.networks_explicit(epsilon, beta, d)
        exact: float = scenario.networks_exact(epsilon, beta, d)
    elif epsilon is None:
        beta = beta or "1e-7"
        asked = "epsilon"
        explicit, exact = scenario.epsilon_explicit(networks, beta, d), scenario.epsilon_exact(networks, beta, d)
    elif beta is None:
        asked = "beta"
        explicit, exact = scenario.beta_explicit(networks, epsilon, d), scenario.beta_exact(networks, epsilon, d)
    else:
        raise InputError("epsilon, beta and networks were all given: leave one out, and it will be computed")
    given: dict[str, Any] = {"epsilon": epsilon, "beta": beta, "networks": networks, "d": d}
    result = {"asked": asked, "explicit": explicit, "exact": exact}
    certified = _what_networks_certify(result, beta, d) if asked == "networks" else {}
    if as_json:
        numbers = {k: float(v) if k in ("epsilon", "beta") and v is not None else v for k, v in given.items()}
        print_json({**result, **certified, "given": numbers})
        return
    from rich.table import Table

    table = Table(title=_title(given), title_justify="left", box=None, pad_edge=False, title_style="")
    table.add_column("bound")
    table.add_column(asked, justify="right")
    if certified:
        table.add_column("what so many networks certify exactly")
    for name in ("explicit", "exact"):
        value = f"{result[name]:.12g}" if asked != "networks" else str(result[name])
        table.add_row(name, value, *([f"epsilon = {certified[f'{name}_epsilon']:.12g}"] if certified else []))
    console().print(table)


def _what_networks_certify(result: dict[str, Any], beta: str | None, d: int) -> dict[str, float]:
    """Epsilon that each number of networks certifies by the exact bound."""
    from echobound.scenario import epsilon_exact

    return {f"{name}_epsilon": epsilon_exact(result[name], beta or "1e-7", d) for name in ("explicit", "exact")}


def _title(given: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in given.items() if value is not None)
