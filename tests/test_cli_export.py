"""`export` on the command line: a run or a file in, files and the largest difference out, one sentence if not."""

import json

import model_zoo
import pytest
from campaigns import cli

from echobound import identify, ph_experiment
