"""The page of a run, and figures for papers. Bokeh, Matplotlib and Jinja are loaded on first use."""

from echobound.report.export import run_figures, write_figures
from echobound.report.figures import (
    compare_figure,
    distribution_figure,
    learning_figure,
    networks_figure,
    outputs_figure,
)
from echobound.report.page import write_page
from echobound.report.panels import ScorePanel

__all__ = [
    "ScorePanel",
    "compare_figure",
    "distribution_figure",
    "learning_figure",
    "networks_figure",
    "outputs_figure",
    "run_figures",
    "write_figures",
    "write_page",
]
