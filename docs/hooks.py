"""Reference pages that are generated from the code when the documentation is built: command line and Python.

MkDocs calls the functions whose names begin with ``on_``.
"""

from __future__ import annotations

import importlib
import inspect
import json
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from echobound.scenario import schema

PYTHON = {
    "python": (
        "Python",
        "echobound",
        "The names in `from echobound import ...`. The tests run the examples.",
    ),
    "scenario": (
        "Theory in code",
        "echobound.scenario",
        "Numbers in, statements out: these functions know nothing about networks.",
    ),
    "estimators": (
        "Estimators",
        "echobound.estimators",
        "The scikit-learn interface, and a certified search over any estimator with a random state.",
    ),
    "control": (
        "Control",
        "echobound.control",
        "From model to controller: observer, model predictive control, closed loops and scenario constraints.",
    ),
    "plants": ("Plants", "echobound.plants", "Simulated plants and the signals that excite them."),
    "scores": ("Scores", "echobound.scores", "Pure functions of (measured, simulated), and their registry."),
    "errors": (
        "Errors",
        "echobound.errors",
        "All deliberate errors derive from `EchoboundError`. The text of each is one sentence that says what was"
        " expected, what was found, and what to do. A network that diverges is not an error but a row.",
    ),
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the JSON Schema of certificates."""
    files.append(File.generated(config, "reference/command-line.md", content=command_line()))
    for page, content in python_pages().items():
        files.append(File.generated(config, f"reference/{page}.md", content=content))
    files.append(File.generated(config, "certificate.schema.json", content=json.dumps(schema(), indent=2)))
    return files


def python_pages() -> dict[str, str]:
    """A page for each module with its public names, in source order; each is documented on the first that has it."""
    pages: dict[str, str] = {}
    home: dict[str, str] = {}
    for page, (title, module, intro) in PYTHON.items():
        whole = importlib.import_module(module)
        names = getattr(whole, "_HOMES", vars(whole))  # those of the package itself are imported on first use
        parts, elsewhere = [f"# {title}", intro], []
        for name, thing in ((name, getattr(whole, name)) for name in names if name in whole.__all__):
            if not (inspect.isclass(thing) or inspect.isfunction(thing)):
                continue
            path = f"{thing.__module__}.{thing.__qualname__}"
            if home.setdefault(path, page) == page:
                parts.append(f"::: {path}")
            else:
                elsewhere.append(f"[`{name}`]({home[path]}.md#{path})")
        if elsewhere:
            parts.insert(2, f"On another page: {', '.join(elsewhere)}.")
        pages[page] = "\n\n".join(parts) + "\n"
    return pages


def command_line() -> str:
    """A page with every command, its arguments and options, taken from the commands themselves."""
    import typer

    from echobound.cli.main import app

    group: Any = typer.main.get_command(app)
    parts = [
        "# Command line",
        f"{group.help} Every command has `--help` with an example.",
        "| exit code | meaning |\n|---|---|\n"
        "| 0 | done |\n"
        "| 1 | done, and the answer is no: all networks diverged, a verification contradicts its certificate, or an"
        " audit found something |\n"
        "| 2 | bad input: one sentence on standard error says what to do, and nothing is written |\n"
        "| 130, 143 | interrupted (Ctrl-C, SIGTERM): the same command with the same `--run` resumes |",
    ]
    for name, command in sorted(group.commands.items()):
        parts += [f"## {name}", inspect.cleandoc(command.help or "")]
        rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
        parts.append("\n".join(["| option | default | meaning |", "|---|---|---|", *rows]))
        if command.epilog:
            parts.append(f"Example: `{command.epilog.removeprefix('Example: ')}`")
    return "\n\n".join(parts) + "\n"


def _row(parameter: Any) -> str:
    """One row of a command's table; it uses only attributes that every version of Typer has."""
    argument = parameter.param_type_name == "argument"
    names = [parameter.metavar or parameter.name.upper()] if argument else parameter.opts
    default = "required" if parameter.required else ""
    if parameter.default is not None and parameter.default is not False:
        default = f"`{parameter.default}`"
    meaning = (parameter.help or "").replace("|", "&#124;")
    return f"| {', '.join(f'`{name}`' for name in names)} | {default} | {meaning} |"
