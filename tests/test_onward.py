"""What objects do by rooms to their right: every entry of the table is there, and is what the object calls."""

import subprocess
import sys
from importlib import import_module

import pytest

from echobound.onward import DONE_BY, onward


@pytest.mark.parametrize("method", DONE_BY)
def test_every_entry_is_a_function_that_is_there(method):
    module, function = DONE_BY[method]
    assert callable(getattr(import_module(module), function))


def test_nothing_is_imported_before_it_is_asked_for():
    code = (
        "import sys, echobound.data, echobound.network;"
        "from echobound.onward import DONE_BY;"
        "print([module for module, _ in DONE_BY.values() if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_what_nobody_does_is_no_method():
    with pytest.raises(KeyError):
        onward("Record.fly")
