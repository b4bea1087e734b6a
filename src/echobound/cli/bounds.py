"""`plan`: the number of networks, epsilon or beta from the other two, and what a stopping rule promises."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from echobound import scenario
from echobound.cli.terminal import AsJson, console, print_json
from echobound.errors import InputError
from echobound.scenario.words import upward

BOUNDS = ("explicit", "exact")
RULES = "patience:200 (the last 200 brought no improvement), looks:100,200,400, between:100,10000, anytime, mixture"
MOST_SCORES = 1000  # a joint statement adds up as many terms, in many digits


def plan(
    epsilon: Annotated[str | None, typer.Option(help="Violation probability, between 0 and 1.")] = None,
    beta: Annotated[str | None, typer.Option(help="1 - confidence, between 0 and 1.")] = None,
    networks: Annotated[int | None, typer.Option(help="Number of networks.")] = None,
    d: Annotated[int, typer.Option("--d", help="Number of optimisation variables; 1 for best of N.")] = 1,
    discarded: Annotated[
        int, typer.Option(help="Best networks that will be set aside, settled now: the threshold is the next one.")
    ] = 0,
    families: Annotated[
        int, typer.Option(help="Orders or laws in one campaign, settled now: the networks are those of each.")
    ] = 1,
    scores: Annotated[int, typer.Option(help="Scores that something will be stated about, settled now.")] = 1,
    stop: Annotated[str | None, typer.Option(help=f"A stopping rule: {RULES}.")] = None,
    fresh: Annotated[
        int | None, typer.Option(help="Fresh networks to verify with: what they and the search will certify together.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan a certificate: give two of epsilon, beta and the number of networks, get the third.

    The explicit bound is the paper's; the exact one is tight and needs about half as many networks. With nothing
    given: epsilon 0.05 and beta 1e-7. A stopping rule is named before the first draw; with --stop, what it promises is
    shown beside what a number of networks settled beforehand does.
    """
    program = (d, discarded)
    settled: tuple[Any, ...]
    if networks is None:
        epsilon, beta = epsilon or "0.05", beta or "1e-7"
        asked, settled = "networks", (epsilon, beta)
    elif epsilon is None:
        beta = beta or "1e-7"
        asked, settled = "epsilon", (networks, beta)
    elif beta is None:
        asked, settled = "beta", (networks, epsilon)
    else:
        raise InputError("epsilon, beta and networks were all given: leave one out, and it will be computed")
    given: dict[str, Any] = {"epsilon": epsilon, "beta": beta, "networks": networks, "d": d}
    given |= {"discarded": discarded, "families": families, "scores": scores, "stop": stop, "fresh": fresh}
    result = {bound: getattr(scenario, f"{asked}_{bound}")(*settled, *program) for bound in BOUNDS}
    certified = {}
    if beta is not None and asked == "networks":
        certified = {f"{bound}_epsilon": scenario.epsilon_exact(result[bound], beta, *program) for bound in BOUNDS}
    several = _several(asked, settled, given)
    verification = [] if fresh is None else _verified(result["exact"] if networks is None else networks, fresh, given)
    promise = {} if stop is None else _promise(_rule(stop, beta, program), epsilon, networks)
    if as_json:
        numbers = {k: float(v) if k in ("epsilon", "beta") and v is not None else v for k, v in given.items()}
        more = ({"several": several} if several else {}) | ({"stop": promise} if promise else {})
        more |= {"verification": verification} if verification else {}
        print_json({"asked": asked, **result, **certified, **more, "given": numbers})
        return
    from rich.table import Table

    out = console()
    table = Table(title=_title(given), title_justify="left", box=None, pad_edge=False, title_style="")
    table.add_column("bound")
    table.add_column(asked, justify="right")
    if certified:
        table.add_column("what so many networks certify exactly")
    exactly = {bound: f"epsilon = {certified[f'{bound}_epsilon']:.12g}" for bound in BOUNDS if certified}
    rows = [(bound, result[bound], exactly.get(bound, "")) for bound in BOUNDS]
    rows += [(entry["statement"], entry[asked], f"for {entry['words']}") for entry in several]
    if promise:
        rows.append((promise["rule"], promise[asked], f"epsilon = {promise['epsilon']:.12g}, by this rule"))
    for name, value, certifies in rows:
        table.add_row(name, f"{value:.12g}" if asked != "networks" else str(value), *([certifies] if certified else []))
    out.print(table)
    if verification:
        out.print(f"\n{fresh} fresh networks and those of the search will certify together, however often one looks:")
        for row in verification:
            chance = f"{row['violations']} or more violate with probability {row['at_least']:.3g}"
            out.print(f"epsilon = {upward(row['epsilon'])} if {row['violations']} violate ({chance})")
    if promise:
        out.print(f"\n{promise['words']}", width=min(out.width, 100) if out.is_terminal else None)


def _several(asked: str, settled: tuple[Any, ...], given: dict[str, Any]) -> list[dict[str, Any]]:
    """What statements about several families or scores need beyond that of the global best, each by the exact bound."""
    families, scores = given["families"], given["scores"]
    if families < 1 or scores < 1:
        raise InputError(f"families and scores are counted from 1 on, got {families} and {scores}")
    if scores > MOST_SCORES:
        raise InputError(f"at most {MOST_SCORES} scores can be stated jointly, got {scores}")
    if (families, scores) == (1, 1):
        return []
    if (given["d"], given["discarded"], given["stop"]) != (1, 0, None):
        raise InputError(
            "several families or scores are for the plain best of N: leave out --d, --discarded and --stop"
        )
    if families > 1 and scores > 1:
        raise InputError("several scores are stated for one family: leave out --families or --scores")
    wanted = [
        ("own best", f"each of {families} families' own best, all together", scenario.each_of(families)),
        ("joint", f"the best in one or more of {scores} scores", scenario.any_of(scores)),
        ("separate", f"the best in each of {scores} scores, all together", scenario.each_of(scores)),
    ]
    found = wanted[:1] if families > 1 else wanted[1:]
    return [{"statement": name, asked: getattr(bound, asked)(*settled), "words": words} for name, words, bound in found]


def _verified(networks: int, fresh: int, given: dict[str, Any]) -> list[dict[str, Any]]:
    """What search and fresh networks will certify together, by the number of fresh ones that violate."""
    plain = {"d": 1, "discarded": 0, "families": 1, "scores": 1, "stop": None}
    if fresh < 1 or any(given[name] != value for name, value in plain.items()) or given["beta"] is None:
        raise InputError(
            "fresh networks, from 1 on, are planned for the plain best of N at a beta: give beta, and leave out"
            f" {', '.join('--' + name for name in plain)}"
        )
    planned = scenario.planned_verification(networks, fresh, given["beta"])
    return [{"violations": one.violations, "at_least": one.p_value, "epsilon": one.epsilon_combined} for one in planned]


def _rule(text: str, beta: str | None, program: tuple[int, int]) -> scenario.StoppingRule:
    if program != (1, 0):
        raise InputError("a stopping rule is for the best of all networks: leave out --d and --discarded")
    if beta is None:
        raise InputError("a stopping rule needs beta: give it, and leave out epsilon or networks")
    return scenario.stopping_rule(text, float(beta))


def _promise(rule: scenario.StoppingRule, epsilon: str | None, networks: int | None) -> dict[str, Any]:
    """What a rule certifies after so many networks, or after how many it certifies an epsilon."""
    count = rule.networks(float(epsilon or "0.05")) if networks is None else networks
    return {"rule": rule.kind, "networks": count, "epsilon": rule.epsilon(count), "words": rule.words}


def _title(given: dict[str, Any]) -> str:
    silent = {"discarded": 0, "families": 1, "scores": 1}
    shown = {name: value for name, value in given.items() if value is not None and silent.get(name) != value}
    return ", ".join(f"{name} = {value}" for name, value in shown.items())
