"""What the figures show, read back from the figure: circles, edges, limits, labels."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.data import Record
from echobound.errors import InputError
from echobound.identify import identify
from echobound.report import (
    ScorePanel,
    compare_figure,
    distribution_figure,
    learning_figure,
    networks_figure,
    outputs_figure,
)
from echobound.report.figures import LIMIT, RASTERISED
from echobound.report.page import svg

CASES = [("max", "best"), ("max", "worst"), ("min", "best"), ("min", "worst")]
VIOLATED_ABOVE = {("max", "best"), ("min", "worst")}


def panel(scores, direction="max", case="best", threshold=10.0, label="FIT (%)", **more):
    content = {"scores": np.asarray(scores, dtype=float), "threshold": threshold, "label": label}
    return networks_figure([ScorePanel(**content, direction=direction, case=case, **more)]).axes[0]


def points(ax, marker):
    """Points drawn with a marker, as (network, score)."""
    found = [line for line in ax.get_lines() if line.get_marker() == marker]
    return [pair for line in found for pair in zip(line.get_xdata().tolist(), line.get_ydata().tolist(), strict=True)]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []


def notes(ax):
    return [text.get_text() for text in ax.texts]


# ---------------------------------------------------------------- violations


@pytest.mark.parametrize(("direction", "case"), CASES)
def test_exactly_the_violations_are_circled_where_they_are(direction, case):
    scores = [9.0, 12.0, 10.0, 11.0, 8.0, 10.5]
    ax = panel(scores, direction, case, circle_violations=True)
    above = [(1, 12.0), (3, 11.0), (5, 10.5)]
    below = [(0, 9.0), (4, 8.0)]
    expected = above if (direction, case) in VIOLATED_ABOVE else below
    assert points(ax, "o") == expected
    assert f"{len(expected)} violations" in legend(ax)
    assert points(ax, ".") == list(enumerate(scores)), "and every network is a dot"


@pytest.mark.parametrize(("direction", "case"), CASES)
def test_nothing_is_circled_unless_asked_for(direction, case):
    ax = panel([9.0, 12.0, 10.0, 11.0], direction, case)
    assert points(ax, "o") == []
    assert not any("violation" in text for text in legend(ax))


@pytest.mark.parametrize(("direction", "case"), CASES)
@settings(max_examples=15, deadline=None)
@given(scores=st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12), threshold=st.integers(-5, 5))
def test_circles_are_strictly_beyond_the_threshold(direction, case, scores, threshold):
    ax = panel(scores, direction, case, threshold=float(threshold), circle_violations=True)
    sign = 1 if (direction, case) in VIOLATED_ABOVE else -1
    beyond = [index for index, score in enumerate(scores) if sign * (score - threshold) > 0]
    assert [index for index, _ in points(ax, "o")] == beyond
    assert f"{len(beyond)} violation{'' if len(beyond) == 1 else 's'}" in legend(ax)


@pytest.mark.parametrize(("direction", "worst"), [("max", -np.inf), ("min", np.inf)])
def test_a_diverged_network_violates_the_worst_case_on_the_edge_and_never_the_best(direction, worst):
    scores = [9.0, worst, 11.0, 10.0]
    ax = panel(scores, direction, "worst", circle_violations=True)
    low, high = ax.get_ylim()
    edge = low if direction == "max" else high
    assert (1, edge) in points(ax, "o")
    ax = panel(scores, direction, "best", circle_violations=True)
    assert 1 not in [index for index, _ in points(ax, "o")]


def test_panels_are_drawn_each_with_its_own_case():
    scores = np.array([9.0, 12.0])
    base = {"scores": scores, "threshold": 10.0, "circle_violations": True}
    upper, lower = networks_figure(
        [
            ScorePanel(**base, direction="max", case="best", label="FIT (%)"),
            ScorePanel(**base, direction="max", case="worst", label="RMSE (pH)"),
        ],
        title="Testing",
    ).axes
    assert (points(upper, "o"), points(lower, "o")) == ([(1, 12.0)], [(0, 9.0)])
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("FIT (%)", "RMSE (pH)")
    assert upper.get_title(loc="left") == "Testing"
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "network (index)")


# ---------------------------------------------------------------- outliers, limits, threshold

BULK = np.linspace(80.0, 90.0, 98)


@pytest.mark.parametrize(("direction", "marker"), [("max", "v"), ("min", "^")])
def test_outliers_and_diverged_networks_stand_on_the_bad_edge(direction, marker):
    sign = 1 if direction == "max" else -1
    ax = panel(sign * np.r_[BULK, -1e6, -np.inf], direction, threshold=sign * 90.0)
    low, high = ax.get_ylim()
    edge = low if direction == "max" else high
    off = points(ax, marker)
    assert {98, 99} <= {index for index, _ in off}
    assert {height for _, height in off} == {edge}
    assert len(off) + len(points(ax, ".")) == 100, "each network once"
    assert high - low < 20, "the bulk fills the axes"
    assert notes(ax) == [f"{len(off)} off the scale, 1 of them diverged"]


def test_outliers_that_did_not_diverge_are_not_said_to_have():
    ax = panel(np.r_[BULK, -1e6], threshold=90.0)
    [note] = notes(ax)
    assert note.endswith("off the scale")


def test_without_outliers_there_is_no_note_and_no_triangle():
    ax = panel([80.0, 85.0, 90.0], threshold=90.0)
    assert (notes(ax), points(ax, "v"), points(ax, "^")) == ([], [], [])


@pytest.mark.parametrize("direction", ["max", "min"])
def test_the_worst_case_shows_the_worst_network(direction):
    sign = 1 if direction == "max" else -1
    for threshold in (80.0, -1000.0):  # of fresh networks, some may be far beyond it
        ax = panel(sign * np.r_[BULK, -1000.0], direction, "worst", threshold=sign * threshold)
        assert (98, sign * -1000.0) in points(ax, ".")
        assert notes(ax) == []


@pytest.mark.parametrize(("direction", "case"), CASES)
@pytest.mark.parametrize("threshold", [-50.0, 300.0])
def test_the_limits_hold_the_threshold_with_a_margin(direction, case, threshold):
    ax = panel([80.0, 90.0], direction, case, threshold=threshold)
    low, high = ax.get_ylim()
    assert low < min(80.0, threshold)
    assert max(90.0, threshold) < high
    assert high - low < 1.2 * (max(90.0, threshold) - min(80.0, threshold))


def test_one_network_or_none_that_is_finite_can_be_drawn():
    low, high = panel([90.0], threshold=90.0).get_ylim()
    assert low < 90 < high
    ax = panel([-np.inf, -np.inf], threshold=-np.inf, circle_violations=True)
    assert np.isfinite(ax.get_ylim()).all()
    assert notes(ax) == ["2 off the scale, 2 of them diverged"]
    assert ax.get_legend() is None, "no line for a threshold that is no number"


@pytest.mark.parametrize("case", ["best", "worst"])
def test_the_threshold_is_a_line_that_says_its_value(case):
    ax = panel([80.0, 90.0], case=case, threshold=87.654321)
    [line] = [line for line in ax.get_lines() if line.get_color() == LIMIT]
    assert set(line.get_ydata()) == {87.654321}
    assert legend(ax) == [f"{case} of the search: 87.6543"]
    assert panel([80.0, 90.0], threshold=None).get_legend() is None


# ---------------------------------------------------------------- measured against simulated

K = np.arange(60.0)
Y = np.stack([np.sin(K / 5), 3 + np.cos(K / 7)], axis=1)


def test_measured_simulated_and_error_of_each_output():
    fits = {"model": [88.125, 70.0]}
    figure = outputs_figure(2 * K, Y, {"model": 0.9 * Y}, ["level", "flow"], ["m", ""], title="Validation", fits=fits)
    assert len(figure.axes) == 4
    for i in range(2):
        upper, lower = figure.axes[2 * i], figure.axes[2 * i + 1]
        measured, model = upper.get_lines()
        assert (measured.get_xdata() == 2 * K).all()
        assert (measured.get_ydata() == Y[:, i]).all()
        assert (model.get_ydata() == 0.9 * Y[:, i]).all()
        assert np.allclose(lower.get_lines()[0].get_ydata(), Y[:, i] - 0.9 * Y[:, i])
    assert figure.axes[0].get_title(loc="left") == "Validation"
    assert legend(figure.axes[0]) == ["measured", "model (FIT 88.12 %)"]
    assert legend(figure.axes[2]) == ["measured", "model (FIT 70.00 %)"]


@pytest.mark.parametrize(
    ("name", "unit", "label"),
    [("level", "m", "level (m)"), ("level", "", "level"), ("pH", "pH", "pH"), ("q3", "mL/s", "q3 (mL/s)")],
)
def test_labels_have_units(name, unit, label):
    figure = outputs_figure(K, Y[:, :1], {"model": Y[:, :1]}, [name], [unit])
    assert figure.axes[0].get_ylabel() == label
    assert figure.axes[1].get_ylabel() == ("error" if not unit else f"error ({unit})")
    assert figure.axes[-1].get_xlabel() == "time (s)"
    assert legend(figure.axes[0]) == ["measured", "model (FIT 100.00 %)"]


def test_the_measured_output_is_always_inside_the_limits():
    for simulated in (Y * 1e30, -Y * 1e30, Y + 5, Y):
        figure = outputs_figure(K, Y, {"model": simulated}, ["a", "b"], ["", ""])
        for i in range(2):
            low, high = figure.axes[2 * i].get_ylim()
            assert low < Y[:, i].min()
            assert Y[:, i].max() < high
            assert high - low < 3 * np.ptp(Y[:, i])


def test_a_constant_measured_output_can_be_drawn():
    flat = np.full((60, 1), 7.0)
    low, high = outputs_figure(K, flat, {"model": flat}, ["y"], [""], fits={"model": [100.0]}).axes[0].get_ylim()
    assert low < 7 < high


# ---------------------------------------------------------------- names that come from data

NASTY = [r"$\frac$", "$", "$x$ and $y", r"\alpha_{", "a_b^c", "température µ Ω", "水位", "%", "<b>&", "two\nlines", ""]


def drawn(figure):
    figure.savefig(io.BytesIO(), format="png", dpi=30)
    return svg(figure)


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", NASTY)
def test_names_and_units_do_not_break_drawing(name):
    assert drawn(outputs_figure(K, Y[:, :1], {name: Y[:, :1]}, [name], [name + "/s"])).startswith("<svg")
    assert drawn(panel([80.0, 90.0], label=name, circle_violations=True).figure).startswith("<svg")


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", NASTY)
def test_titles_do_not_break_drawing(name):
    assert drawn(outputs_figure(K, Y[:, :1], {"model": Y[:, :1]}, ["y"], [""], title=name)).startswith("<svg")
    scores = ScorePanel(scores=np.array([1.0, 2.0]), threshold=1.0, direction="max", case="best", label=name)
    assert drawn(networks_figure([scores], title=name)).startswith("<svg")
    assert drawn(distribution_figure(scores, title=name)).startswith("<svg")
    assert drawn(learning_figure(np.array([1.0, 2.0]), np.array([1.0, 2.0]), name, title=name)).startswith("<svg")


@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_run_with_such_names_ends_with_its_page(ph_records, tmp_path):
    training, validation = (
        Record(u=r.u, y=r.y, input_names=(r"$\frac$",), output_names=(r"$\sqrt$ 水",), output_units=("$",), name="$")
        for r in ph_records
    )
    options = {"law": "paper", "order": 5, "epsilon": 0.5, "beta": 0.1, "washout": 60}
    identify(training, validation, **options, run=tmp_path / "run")
    assert "</html>" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_a_nan_is_circled_as_it_is_counted():
    from echobound.scenario import count_violations

    scores = np.array([90.0, np.nan, 80.0, 95.0])
    for direction, case, threshold in (("max", "worst", 85.0), ("min", "worst", 93.0), ("max", "best", 92.0)):
        ax = panel(scores, direction, case, threshold, "s", circle_violations=True)
        [circles] = [line for line in ax.lines if line.get_marker() == "o"]
        assert len(circles.get_xdata()) == count_violations(scores, threshold, direction, case)[0]
        assert np.isfinite(circles.get_ydata()).all()


# ---------------------------------------------------------------- several models, gaps, distribution, learning curve


class Offset:
    """A model whose output is the measured one, moved."""

    washout = 10

    def __init__(self, by, washout=10):
        self.by, self.washout = by, washout

    def simulate(self, record, *, washout):
        return type("Simulation", (), {"y": record.y[washout:] + self.by})

    def predict(self, record, horizon, *, washout):
        return type("Simulation", (), {"y": record.y[washout:] + self.by / horizon})


RECORD = Record(u=K, y=Y[:, 0], sampling_time=2.0, output_names=("level",), output_units=("m",))


def test_models_are_compared_on_the_same_samples_each_with_its_fit():
    figure = compare_figure(RECORD, Offset(0.1), {"rough": Offset(0.5, washout=20)}, Offset(0.0))
    upper, lower = figure.axes
    assert [line.get_xdata()[0] for line in upper.get_lines()] == [40.0] * 4, "the longest washout, in seconds"
    y = Y[20:, 0]
    fits = [100 * (1 - np.sqrt(len(y)) * by / np.linalg.norm(y - y.mean())) for by in (0.1, 0.5, 0.0)]
    names = ["model 1", "rough", "model 3"]
    expected = [f"{name} (FIT {fit:.2f} %)" for name, fit in zip(names, fits, strict=True)]
    assert legend(upper) == ["measured", *expected]
    assert len({line.get_color() for line in upper.get_lines()}) == 4
    errors = [line.get_ydata() for line in lower.get_lines()[:-1]]
    assert np.allclose(errors, [[-0.1], [-0.5], [0.0]])


def test_predictions_can_be_compared():
    ahead = compare_figure(RECORD, Offset(0.5), horizon=5, washout=3)
    assert np.allclose(ahead.axes[1].get_lines()[0].get_ydata(), -0.1)
    assert ahead.axes[0].get_lines()[0].get_xdata()[0] == 6.0
    with pytest.raises(InputError, match="at least one model"):
        compare_figure(RECORD)


def test_a_name_with_an_underscore_is_in_the_legend():
    figure = compare_figure(RECORD, {"_hidden": Offset(0.5)})
    assert legend(figure.axes[0])[1].lstrip("\u200b").startswith("_hidden")


def test_a_gap_between_records_is_neither_drawn_nor_scored():
    y = np.vstack([Y[:30], np.full((1, 2), np.nan), Y[30:]])
    figure = outputs_figure(np.arange(61.0), y, {"model": y}, ["a", "b"], ["", ""])
    assert legend(figure.axes[0]) == ["measured", "model (FIT 100.00 %)"]
    assert np.isnan(figure.axes[0].get_lines()[0].get_ydata()[30])


def test_the_distribution_shows_every_network_and_its_band():
    scores = np.r_[np.linspace(80, 90, 99), -np.inf]
    networks = ScorePanel(scores=scores, threshold=90.0, direction="max", case="best", label="FIT (%)")
    limits = np.arange(100) / 200, np.arange(1, 101) / 100
    upper, lower = distribution_figure(networks, limits, beta=1e-3).axes
    assert upper.patches[0].get_data().values.sum() == 99
    assert legend(lower) == ["all networks, confidence 1 - 0.001", "networks of the search"]
    assert (lower.get_xlabel(), upper.get_ylabel()) == ("FIT (%)", "networks (count)")
    [line] = lower.get_lines()
    assert max(line.get_ydata()) == 0.99, "one diverged, and does better than nothing"
    assert legend(distribution_figure(networks).axes[1]) == ["networks of the search"]


def test_many_dots_become_an_image_and_few_stay_dots():
    few, many = (panel(np.linspace(0, 1, count), threshold=1.0) for count in (RASTERISED, RASTERISED + 1))
    assert "<image" not in svg(few.figure)
    assert "<image" in svg(many.figure)
    assert len(svg(many.figure)) < 100_000


def test_the_users_own_settings_do_not_matter_and_are_left_alone():
    import matplotlib

    with matplotlib.rc_context({"font.size": 30.0, "axes.spines.top": True}):
        ax = panel([1.0, 2.0], threshold=1.0)
        assert not ax.spines["top"].get_visible()
        assert matplotlib.rcParams["font.size"] == 30.0
