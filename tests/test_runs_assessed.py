"""assessment.json as others may have changed it: every field is read by its type, or the file is refused."""

import copy
import json
import math
import shutil
import sys

import pytest

from echobound import identify, ph_experiment
from echobound.cli.main import main
from echobound.errors import DamagedFile
from echobound.runs import RunFolder
from echobound.runs.assessed import FILE, read_assessment

OTHERS = (None, 10**400, "\x1b[2J", [None], {"a": []})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("assessed") / "run"
    training, validation, test = ph_experiment(samples=(150, 120, 90))
    small = {"law": "paper", "order": 4, "networks": 12, "epsilon": None, "beta": 0.05, "washout": 20, "committee": 3}
    identify(training, validation, test=[test], **small, run=path)
    return path


@pytest.fixture
def opened(whole):
    """A folder that was read, so that only its assessment is read again, and what is in that file."""
    folder = RunFolder(whole)
    assert folder.assessment is not None
    return folder, folder.json(FILE)


def places(content, inside=()):
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [inside, *(place for key, item in items for place in places(item, (*inside, key)))]


def changed(content, place, value):
    holder = content = copy.deepcopy(content)
    for key in place[:-1]:
        holder = holder[key]
    if value is places:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return content


def test_any_value_in_any_place_is_refused_or_read_as_what_it_is(whole, opened, monkeypatch):
    folder, content = opened
    derived = folder.assessment
    tried = 0
    for place in places(content)[1:]:
        for value in (places, *OTHERS):
            other = changed(content, place, value)
            monkeypatch.setattr(folder, "json", lambda _, other=other: other)
            try:
                found = read_assessment(folder, whole / FILE)
            except DamagedFile:
                pass
            else:  # of other models, which is made again; or a number beside the ones that everything rests on
                assert found is None or found.summary == derived.summary
            tried += 1
    assert tried > 500


@pytest.mark.parametrize("value", [0.5, None, "x", {"fit": "x"}])
def test_show_refuses_scores_of_another_type_in_a_sentence(whole, tmp_path, monkeypatch, capsys, value):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    content = json.loads((run / FILE).read_text())
    (run / FILE).write_text(json.dumps(changed(content, ("scores", "validation"), value)))
    monkeypatch.setattr(sys, "argv", ["echobound", "show", str(run), "--details"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "assessment.json is damaged or was changed (scores.validation" in capsys.readouterr().err


def test_scores_that_are_not_those_of_the_verdict_are_refused(whole, opened):
    folder, content = opened
    for place in (("scores", "test", "fit"), ("scores", "validation", "fit"), ("linear", "scores", "test", "fit")):
        folder.json = lambda _, place=place: changed(content, place, 99.9)
        with pytest.raises(DamagedFile, match=r"99\.9 follows"):
            read_assessment(folder, whole / FILE)


def test_a_score_that_is_not_finite_is_read_as_a_number_that_is_not_known(whole, opened):
    folder, content = opened
    for role in ("validation", "test"):
        content = changed(content, ("linear", "scores", role, "rmse"), None)
    folder.json = lambda _: content
    assert math.isnan(read_assessment(folder, whole / FILE).linear.scores["test"]["rmse"])
