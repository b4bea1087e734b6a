"""Models as C, FMU, ONNX, CasADi, python-control, MATLAB and Structured Text: a file for each target."""

from echobound.export.base import Check, Export, Target
from echobound.export.card import Card
from echobound.export.registry import TARGETS, export_model, get_target

__all__ = ["TARGETS", "Card", "Check", "Export", "Target", "export_model", "get_target"]
