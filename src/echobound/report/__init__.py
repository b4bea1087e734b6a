"""Figures and the page. Reads a run folder; Matplotlib and Jinja are loaded on first use."""

from echobound.report.figures import compare_figure, networks_figure
from echobound.report.page import write_page

__all__ = ["compare_figure", "networks_figure", "write_page"]
