"""How to compute, as options: what all commands that draw networks have in common."""

from __future__ import annotations

from typing import Annotated

from echobound.campaign import Computing
from echobound.cli.options import Options

ComputingOptions = Annotated[Computing, Options("Computing")]
