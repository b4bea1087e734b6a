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


def test_who_draws_networks_waits_for_nothing_else():
    code = (
        "import sys; from echobound import Record, paper; from echobound.kernels import get_kernel; get_kernel('cpu');"
        "rooms = ('scenario', 'data.inspection', 'data.formats', 'network.committee', 'network.adaptation');"
        "print([room for room in rooms if f'echobound.{room}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_names_on_first_use_are_all_there():
    for room in ("data", "network"):
        package = import_module(f"echobound.{room}")
        assert [name for name in package.__all__ if not hasattr(package, name)] == []
    with pytest.raises(AttributeError, match=r"module 'echobound\.network' has no attribute 'netwrok'"):
        _ = import_module("echobound.network").netwrok
