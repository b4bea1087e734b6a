"""How objects look in a session: short lines, small tables, figures, a progress bar; data in every form."""

import numpy as np
import pandas
import pytest

from echobound import compare, compare_figure, identify, ph_experiment
from echobound.errors import EchoboundError


@pytest.fixture(scope="module")
def records():
    return ph_experiment(samples=(300, 200))


@pytest.fixture(scope="module")
def result(records):
    return identify(*records, law="paper", order=5, networks=12, washout=40, beta=0.1)


def test_lines_are_short_and_tables_small(records, result):
    shown = [records[0], result, result.certificate, result.model, result.network, result.model.simulate(records[1])]
    for one in shown:
        assert "\n" not in repr(one)
        assert len(repr(one)) < 260
        assert one._repr_html_().startswith("<table>")
        assert len(one._repr_html_()) < 3000
    assert repr(records[0]).startswith("<Record 'pH training'") or repr(records[0]).startswith("<Record ")
    assert "networks 12" in repr(result.certificate)
    assert "FIT" in repr(result)


def test_names_from_files_are_escaped(records):
    from dataclasses import replace

    assert "<script>" not in replace(records[0], name="<script>")._repr_html_()


def test_plots_are_figures_that_notebooks_show(records, result):
    assert [axes.get_ylabel() for axes in records[0].plot().axes] == ["q3 (mL/s)", "pH"]
    for figure in (result.plot(), result.plot(horizon=3), result.plot((records[1].u, records[1].y))):
        assert len(figure.axes) == 2
    assert records[0].plot()._repr_png_().startswith(b"\x89PNG")


def test_a_progress_bar_in_scripts(records, capsys):
    identify(*records, law="paper", order=5, networks=12, washout=40, beta=0.1, progress=True)
    said = capsys.readouterr().err
    assert "\r[" in said
    assert "12/12" in said
    assert said.endswith("\n")


def test_data_in_every_form(records, result):
    record, model = records[1], result.model
    pair = (record.u, record.y)
    frame = pandas.DataFrame({"pH": record.y[:, 0], "q3": record.u[:, 0]})
    truth = model.simulate(record).y
    for one in (pair, frame):
        assert (model.simulate(one).y == truth).all()
        assert (model.predict(one, 2).y == model.predict(record, 2).y).all()
        assert compare(one, model)["model 1"]["fit"] == compare(record, model)["model 1"]["fit"]
        assert len(compare_figure(one, model).axes) == 2
    assert compare([frame, record], model)["model 1"]["fit"] == pytest.approx(
        compare([record] * 2, model)["model 1"]["fit"]
    )
    alone = model.simulate(frame[["q3"]])
    assert "training mean" in alone.start
    assert np.allclose(alone.y, model.simulate(record.u).y)
    with pytest.raises(EchoboundError):
        compare(frame[["q3"]], model)
    from_pair = identify((record.u, record.y), law="paper", order=5, networks=12, washout=20, beta=0.1, blocks=2)
    assert from_pair.certificate.networks == 12
    with pytest.raises(EchoboundError, match="read files and frames with read_records"):
        identify(frame)
