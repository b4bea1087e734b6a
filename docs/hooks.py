"""Pages that are written from the code while the documentation is built: the command line and the Python reference.

MkDocs calls the functions whose name begins with ``on_``.
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
        "What `from echobound import ...` gives. The examples are run by the tests.",
    ),
    "scenario": (
        "Theory in code",
        "echobound.scenario",
        "Numbers in, statements out: these functions know nothing of networks.",
    ),
    "estimators": (
        "Estimators",
        "echobound.estimators",
        "The same, the scikit-learn way, and the certified search over any estimator with a random state.",
    ),
    "plants": ("Plants", "echobound.plants", "Simulated plants and the signals that excite them."),
    "scores": ("Scores", "echobound.scores", "Pure functions of (measured, simulated), and their registry."),
    "errors": (
        "Errors",
        "echobound.errors",
        "All errors that are raised on purpose derive from `EchoboundError`; the text of each is one sentence that"
        " says what was expected, what came, and what to do. A network that diverges is not an error but a row.",
    ),
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the schema of certificates."""
    files.append(File.generated(config, "reference/command-line.md", content=command_line()))
    for page, content in python_pages().items():
        files.append(File.generated(config, f"reference/{page}.md", content=content))
    files.append(File.generated(config, "certificate.schema.json", content=json.dumps(schema(), indent=2)))
    return files


def python_pages() -> dict[str, str]:
    """A page for each module with its public names as it imports or defines them; each stands on the first page."""
    pages: dict[str, str] = {}
    home: dict[str, str] = {}
    for page, (title, module, intro) in PYTHON.items():
        names = vars(importlib.import_module(module))
        parts, elsewhere = [f"# {title}", intro], []
        for name, thing in names.items():
            if name not in names["__all__"] or not (inspect.isclass(thing) or inspect.isfunction(thing)):
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
    """A page with every command, its arguments and options, from the commands themselves."""
    import typer

    from echobound.cli.main import app

    group: Any = typer.main.get_command(app)
    parts = [
        "# Command line",
        f"{group.help} Every command has `--help` with an example.",
        "| exit code | meaning |\n|---|---|\n"
        "| 0 | done |\n"
        "| 1 | done, and the answer is no: all networks diverged, or a verification speaks against its certificate |\n"
        "| 2 | bad input: one sentence on standard error says what to do, and nothing was written |\n"
        "| 130 | interrupted: the same command with the same `--run` goes on |",
    ]
    for name, command in sorted(group.commands.items()):
        parts += [f"## {name}", inspect.cleandoc(command.help or "")]
        rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
        parts.append("\n".join(["| option | default | meaning |", "|---|---|---|", *rows]))
        if command.epilog:
            parts.append(f"Example: `{command.epilog.removeprefix('Example: ')}`")
    return "\n\n".join(parts) + "\n"


def _row(parameter: Any) -> str:
    """One line of a command's table; only what every version of Typer knows of a parameter."""
    argument = parameter.param_type_name == "argument"
    names = [parameter.metavar or parameter.name.upper()] if argument else parameter.opts
    default = "required" if parameter.required else ""
    if parameter.default is not None and parameter.default is not False:
        default = f"`{parameter.default}`"
    meaning = (parameter.help or "").replace("|", "&#124;")
    return f"| {', '.join(f'`{name}`' for name in names)} | {default} | {meaning} |"
