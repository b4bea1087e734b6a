"""The search by a stopping rule, and the further statements of its certificate."""

import json
import signal

import jsonschema
import numpy as np
import pytest

from echobound.audit import audit
from echobound.errors import DamagedFile, InputError, RunError
from echobound.files import digest
from echobound.identify import identify
from echobound.kernels.base import row_dtype
from echobound.plan import SettledPlan, settle_stop
from echobound.plants import ph_experiment
from echobound.runs.folder import RunFolder
from echobound.runs.ledger import Ledger
from echobound.scenario import (
    Anytime,
    BothEnds,
    Certificate,
    Families,
    Gain,
    JointScores,
    Optimism,
    Patience,
    Removal,
    Stopped,
    any_of,
    certify,
    schema,
)
from echobound.typed import digest_of
from echobound.verify import verify

SMALL = {"law": "paper", "order": 8, "epsilon": 0.2, "beta": 1e-2, "washout": 60, "committee": 0}


@pytest.fixture(scope="module")
def many(ph_records):
    """Scores of the first 200 networks."""
    return identify(*ph_records, **(SMALL | {"epsilon": None}), networks=200).table["scores"][:, 0]


@pytest.fixture(scope="module")
def patient(ph_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "patient"
    return folder, identify(*ph_records, **SMALL, stop="patience:25", discarded=1, run=folder)


def stops_at(scores, draws, least):
    """Where patience stops, straight from its definition; scores without ties."""
    return next(n for n in range(least, len(scores)) if n >= int(np.argmax(scores[:n])) + 1 + draws)


@pytest.mark.parametrize("draws", [3, 10, 25, 40])
def test_patience_stops_where_its_definition_says_whatever_the_workers(ph_records, many, draws):
    assert len(set(many)) == len(many)
    expected = stops_at(many, draws, least=21)  # 0.8**21 <= 0.01
    results = [
        identify(*ph_records, **SMALL, stop=f"patience:{draws}", workers=workers, engine=engine)
        for workers, engine in ((1, "threads"), (2, "threads"))
    ]
    for result in results:
        assert result.certificate.networks == len(result.table) == expected
        assert result.certificate.threshold == many[:expected].max()
        assert (result.table["scores"][:, 0] == many[:expected]).all()
    assert results[0].certificate == results[1].certificate


def test_patience_draws_nothing_in_vain(patient, many):
    folder, result = patient
    assert len(RunFolder(folder).rows()) == result.certificate.networks
    assert result.certificate.networks > 26, "it went on from the least number at least once"


def test_what_the_certificate_says_then(patient, many):
    _, result = patient
    certificate = result.certificate
    assert certificate.rule == "patience"
    stopped, removal, both, gain = certificate.statements
    assert isinstance(stopped, Stopped)
    assert stopped.rule == Patience(beta=1e-2, draws=25, least=31)  # 31 certify 0.2 with one set aside
    assert stopped.networks == removal.networks == both.networks == gain.networks == certificate.networks
    assert certificate.epsilon_exact == stopped.epsilon == pytest.approx(1 - 0.01 ** (1 / certificate.networks))
    assert isinstance(removal, Removal)
    assert removal.threshold == np.sort(many[: certificate.networks])[-2]
    assert removal.epsilon <= 0.2
    assert isinstance(both, BothEnds)
    assert isinstance(gain, Gain)
    assert "stopping rule that were settled beforehand" in " ".join(certificate.not_stated)
    jsonschema.validate(certificate.to_dict(), schema(), cls=jsonschema.Draft202012Validator)
    assert Certificate.from_dict(certificate.to_dict()) == certificate


def test_rows_beyond_where_it_stopped_are_kept_but_not_used(patient, ph_records):
    folder, result = patient
    plan = RunFolder(folder).plan
    further = np.zeros(3, dtype=row_dtype(2))
    further["index"] = result.certificate.networks + np.arange(3)
    further["scores"] = [1000.0, 0.0]  # better than all, and too late
    with Ledger(folder / "ledger.sqlite", plan.digest, plan.scores) as ledger:
        ledger.append(further)
    opened = RunFolder(folder)
    assert len(opened.rows()) == result.certificate.networks + 3
    assert len(opened.search) == result.certificate.networks
    assert opened.certificate == result.certificate
    again = identify(*ph_records, **SMALL, stop="patience:25", discarded=1, run=folder)
    assert again.certificate == result.certificate


def test_a_search_that_was_interrupted_stops_at_the_same_network(patient, ph_records, tmp_path):
    class Enough(Exception):
        pass

    def interrupt(event):
        if event.fresh >= 13:
            raise Enough

    arguments = SMALL | {"stop": "patience:25", "discarded": 1, "run": tmp_path / "r"}
    for _ in range(2):
        with pytest.raises(Enough):
            identify(*ph_records, **arguments, on_progress=interrupt)
    assert identify(*ph_records, **arguments).certificate == patient[1].certificate


def test_another_rule_is_another_plan(patient, ph_records):
    with pytest.raises(RunError, match=r"another plan \(other networks, stop\)"):
        identify(*ph_records, **SMALL, stop="patience:40", discarded=1, run=patient[0])
    with pytest.raises(RunError, match=r"other networks, stop, discarded\)"):
        identify(*ph_records, **SMALL, run=patient[0])


@pytest.mark.parametrize(
    ("stop", "networks"), [("anytime:10", 39), ("between:10,1000", 38), ("mixture", 38), ("looks:20,60", 60)]
)
def test_rules_for_stopping_at_will_go_on_until_they_certify_epsilon(ph_records, many, stop, networks):
    certificate = identify(*ph_records, **SMALL, stop=stop).certificate
    assert (certificate.rule, certificate.networks) == (stop.partition(":")[0], networks)
    assert certificate.networks_required == networks
    stopped, gain = certificate.statements
    assert certificate.epsilon_exact == stopped.epsilon <= 0.2
    assert certificate.epsilon_exact > 1 - 0.01 ** (1 / networks), "not what a number settled beforehand certifies"
    assert stopped.rule.epsilon(networks - 1) > 0.2
    assert certificate.beta_exact == certificate.beta
    assert isinstance(gain, Gain)


def test_at_will_nothing_is_promised_about_divergence():
    scores = np.append(np.arange(50.0), np.nan)
    rule = Anytime(beta=0.01, first=10)
    about = {"score": "fit", "direction": "max", "epsilon": 0.2, "beta": 0.01, "law": {}, "seed": 0, "digests": {}}
    at_will = certify(scores, **about, statements=[Stopped.of(scores, rule, score="fit")])
    assert at_will.worst.divergence_bound is None
    assert "promises nothing at this end" in at_will.worst.statement
    jsonschema.validate(at_will.to_dict(), schema(), cls=jsonschema.Draft202012Validator)
    at_will.check(scores)
    patience = certify(
        scores, **about, statements=[Stopped.of(scores, Patience(beta=0.01, draws=1, least=51), score="fit")]
    )
    assert patience.worst.divergence_bound == certify(scores, **about).worst.divergence_bound


def forged(certificate, change):
    content = certificate.to_dict()
    change(content)
    identity = {name: value for name, value in content.items() if name not in ("digest", "provenance")}
    return content | {"digest": digest_of(identity)}


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["statements"].pop(),
        lambda c: c["statements"].pop(1),
        lambda c: c["statements"].reverse(),
        lambda c: c["statements"][0].update(networks=c["networks"] + 1),
        lambda c: c["statements"][0].update(epsilon=0.01),
        lambda c: c["statements"][0].update(threshold=99.0),
        lambda c: c["statements"][0]["rule"].update(draws=24),
        lambda c: c["statements"][0].update(words="All is well."),
        lambda c: c["statements"][1].update(discarded=0),
        lambda c: c["statements"][1].update(threshold=99.0),
        lambda c: c["statements"][2].update(best=99.0),
        lambda c: c["statements"][3].update(tail=1e-3),
        lambda c: c["statements"].append(dict(c["statements"][3])),
        lambda c: c["statements"].append(Optimism.of(1.0, 2.0).to_dict()),
        lambda c: c.update(statements=[]),
        lambda c: c.update(statements=["trust me"]),
        lambda c: c.update(rule="fixed"),
        lambda c: c.update(rule="anytime"),
    ],
)  # fmt: skip
def test_statements_that_do_not_follow_are_found_though_the_digest_fits(patient, change):
    folder, result = patient
    path = folder / "certificate.json"
    before = path.read_text()
    assert RunFolder(folder).certificate == result.certificate
    try:
        path.write_text(json.dumps(forged(result.certificate, change)))
        with pytest.raises(DamagedFile):
            _ = RunFolder(folder).certificate
    finally:
        path.write_text(before)


def test_a_rule_in_the_plan(patient):
    plan = RunFolder(patient[0]).plan
    assert SettledPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    content = plan.to_dict()
    for change in (
        {"stop": None},
        {"stop": {"kind": "gain"}},
        {"stop": content["stop"] | {"draws": 3}},
        {"discarded": 2},
    ):
        with pytest.raises(InputError):
            SettledPlan.from_dict(content | change)


def test_networks_set_aside_with_a_number_settled_beforehand(ph_records, many):
    certificate = identify(*ph_records, **SMALL, discarded=3).certificate
    assert certificate.rule == "fixed"
    removal, both, gain = certificate.statements
    assert certificate.networks == 47  # smallest N with sum_{i<=3} C(N, i) 0.2^i 0.8^(N-i) <= 0.01
    assert removal.threshold == np.sort(many[:47])[-4]
    assert removal.epsilon <= 0.2 < Removal.of(many[:46], discarded=3, beta=0.01).epsilon
    assert (both.best, both.worst) == (many[:47].max(), many[:47].min())
    assert gain == Gain.of(many[:47], score="fit", unit="%")


def test_blocks_are_named_in_the_statements(ph_records):
    certificate = identify(ph_records[0], **SMALL, blocks=3, stop="patience:5").certificate
    assert "a mean FIT" in certificate.statements[0].words
    assert "over 3 blocks of these training data" in certificate.statements[0].words
    assert all(statement.blocks == 3 for statement in certificate.statements)


def test_one_network_has_no_range():
    with pytest.raises(InputError):
        BothEnds.of([1.0], beta=0.1)


def test_a_single_network_is_certified_all_the_same(ph_records):
    certificate = identify(*ph_records, **(SMALL | {"epsilon": None, "beta": 0.5}), networks=1).certificate
    assert [statement.kind for statement in certificate.statements] == ["gain"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stop": "patience:200", "networks": 400}, "as in patience:200,400"),
        ({"stop": "patience:200", "bound": "explicit"}, "exact bound"),
        ({"stop": "patience"}, "unknown stopping rule"),
        ({"stop": Patience(beta=0.1, draws=5)}, "give the same"),
        ({"stop": "anytime", "discarded": 2}, "leave out one of the two"),
        ({"stop": "anytime", "networks": 50, "epsilon": None}, "50 networks certify nothing"),
        ({"stop": "anytime:10", "networks": 20}, "20 networks certify epsilon="),
        ({"stop": "between:10,20"}, "never certifies"),
        ({"discarded": -1}, "not negative"),
        ({"stop": "anytime", "joint": True}, "leave out one of the two"),
        ({"target": float("nan")}, "a target is a finite number, got nan"),
        ({"scores": ("fit", "fit")}, "each score must be named once, .*got fit, fit"),
        ({"scores": ("fit",), "joint": True}, "fit is the only one"),
        ({"discarded": 40, "networks": 40}, "less than those drawn"),
    ],
)
def test_bad_rules_are_refused_before_anything_is_written(ph_records, tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        identify(*ph_records, **(SMALL | arguments), run=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_epsilon_follows_from_the_networks_by_the_rule():
    rule, networks, epsilon = settle_stop("anytime", None, 1e-7, 645)
    assert (networks, epsilon) == (645, rule.epsilon(645))
    assert settle_stop("patience:20,500", None, 1e-7, None)[1] == 500
    assert settle_stop("patience:700", 0.05, 1e-7, None)[1] == 701


@pytest.mark.parametrize("score", ["fit", "rmse"])
def test_optimism_is_reported_with_test_data(ph_records, score):
    training, validation = ph_records
    [test] = ph_experiment(samples=(300,), seed=9)
    result = identify(training, validation, **SMALL, test=test, scores=[score])
    found = result.optimism
    assert found.validation == pytest.approx(result.certificate.threshold, rel=1e-9)
    assert found.test == pytest.approx(result.scores["test"][score], rel=1e-9)
    worse = found.validation - found.test if score == "fit" else found.test - found.validation
    assert found.difference == pytest.approx(worse)
    assert (result.episodes.episodes, result.episodes.epsilon) == (1, pytest.approx(0.95)), "one record says little"
    assert identify(training, validation, **SMALL).optimism is None


def test_twenty_test_records_limit_the_error_of_the_model(ph_records):
    training, validation = ph_records
    parts = ph_experiment(samples=[90] * 20, seed=9)
    result = identify(training, validation, **SMALL, test=parts)
    assert result.episodes.episodes == 20
    assert result.episodes.limit >= result.scores["test"]["rmse"]
    assert result.episodes.epsilon == pytest.approx(1 - 0.05 ** (1 / 20))


def test_a_target_is_reached_at_the_first_network_that_has_it(ph_records, many, tmp_path):
    order = np.argsort(many)
    for rank in (1, 2, 3):  # targets met by the best, the second best, the third best of 200
        target = float(many[order[-rank]])
        expected = max(39, int(np.argmax(many >= target)) + 1)  # 39 certify 0.2 by this rule
        result = identify(*ph_records, **SMALL, stop="anytime:10", target=target, run=tmp_path / str(rank))
        assert result.certificate.networks == len(result.table) == expected
        assert result.certificate.threshold == many[:expected].max() >= target
        assert result.certificate.epsilon_exact == Anytime(beta=0.01, first=10).epsilon(expected)
        assert RunFolder(tmp_path / str(rank)).certificate == result.certificate
    certificate = identify(*ph_records, **SMALL, target=float(many[0])).certificate
    assert certificate.rule == "anytime", "a target needs a rule, and gets one"


def test_a_target_that_is_never_reached_ends_with_the_horizon(ph_records):
    for stop, last in (("between:10,150", 150), ("looks:20,60,130", 130)):
        assert identify(*ph_records, **SMALL, stop=stop, target=99.9).certificate.networks == last


def test_a_target_that_small_is_better(ph_records):
    rmse = identify(*ph_records, **(SMALL | {"epsilon": None}), networks=100, scores=("rmse",)).table["scores"][:, 0]
    target = float(np.sort(rmse)[1])
    found = identify(*ph_records, **SMALL, stop="anytime:10", target=target, scores=("rmse",)).certificate
    assert found.networks == max(39, int(np.argmax(rmse <= target)) + 1)


def interrupted_at(count, signum=signal.SIGINT):
    sent = []

    def watch(event):
        if event.done >= count and not sent:
            sent.append(event.done)
            signal.raise_signal(signum)

    return watch


def test_an_interruption_ends_a_search_that_may_stop_at_will(ph_records, many, tmp_path):
    arguments = SMALL | {"stop": "anytime:10", "run": tmp_path / "r", "epsilon": 0.02}
    result = identify(*ph_records, **arguments, workers=2, on_progress=interrupted_at(15))
    count, rule = result.certificate.networks, Anytime(beta=0.01, first=10)
    assert 15 <= count < rule.networks(0.02)
    assert result.certificate.epsilon == result.certificate.epsilon_exact == rule.epsilon(count) > 0.02
    assert result.certificate.threshold == many[:count].max()
    assert f"Stopped at {count} networks" in result.certificate.stopped.words
    opened = RunFolder(tmp_path / "r")
    assert opened.certificate == result.certificate
    assert opened.model.digest == result.model.digest
    # Whoever may stop at will may also go on: the same call does, to the end and with the same networks.
    whole = identify(*ph_records, **arguments)
    assert whole.certificate.networks == rule.networks(0.02)
    assert (whole.table["scores"][:count, 0] == many[:count]).all()
    assert RunFolder(tmp_path / "r").certificate == whole.certificate


@pytest.mark.parametrize(
    ("stop", "signum", "count"),
    [
        (None, signal.SIGINT, 5),
        ("patience:25", signal.SIGINT, 5),
        ("anytime:2000", signal.SIGINT, 1),  # certifies nothing yet
        ("anytime:10", signal.SIGTERM, 15),  # a machine that goes down is no wish to end the search
    ],
)
def test_after_other_interruptions_the_search_can_be_resumed(ph_records, tmp_path, stop, signum, count):
    arguments = SMALL | {"stop": stop, "run": tmp_path / "r", "epsilon": 0.02}
    with pytest.raises(KeyboardInterrupt, match="resumes from there"):
        identify(*ph_records, **arguments, workers=1, on_progress=interrupted_at(count, signum))
    assert not (tmp_path / "r" / "certificate.json").exists()


def test_targets_need_a_rule_that_may_look(ph_records):
    with pytest.raises(InputError, match=r"a target looks at the scores.*not patience"):
        identify(*ph_records, **SMALL, stop="patience:20", target=80.0)


@pytest.fixture(scope="module")
def joint(ph_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "joint"
    return folder, identify(*ph_records, **SMALL, scores=("fit", "rmse", "peak"), joint=True, run=folder)


def test_several_scores_are_stated_together(joint):
    folder, result = joint
    assert result.certificate.networks == any_of(3).networks(0.2, 0.01) > 21
    statement = next(s for s in result.certificate.statements if isinstance(s, JointScores))
    table = result.table["scores"]
    assert statement.thresholds == (table[:, 0].max(), table[:, 1].min(), table[:, 2].min())
    assert statement.epsilon_joint <= 0.2
    result.certificate.check(table)
    changed = table.copy()
    changed[3, 2] = table[:, 2].min() / 2
    result.certificate.check(changed[:, 0])  # the first score alone knows nothing of it
    with pytest.raises(DamagedFile, match=r"joint scores\.thresholds"):
        result.certificate.check(changed)
    jsonschema.validate(result.certificate.to_dict(), schema(), cls=jsonschema.Draft202012Validator)
    assert RunFolder(folder).certificate == result.certificate
    assert audit(folder, sample=2).passed
    with pytest.raises(InputError, match="not under the rule anytime"):
        identify(RunFolder(folder).experiments.training, **SMALL, joint=True, stop="anytime")


def test_no_search_is_resumed_after_its_test_data_were_opened(ph_records, tmp_path):
    training, validation = ph_records
    test = ph_experiment(seed=5, samples=(300, 300))[0]
    arguments = SMALL | {"stop": "anytime:10", "run": tmp_path / "r", "epsilon": 0.02, "test": test}
    ended = identify(training, validation, **arguments, on_progress=interrupted_at(15))
    before = {file.name: file.read_bytes() for file in (tmp_path / "r").iterdir()}
    with pytest.raises(
        RunError, match=f"ended at {ended.certificate.networks} networks, and its test data were opened"
    ):
        identify(training, validation, **arguments)
    assert {file.name: file.read_bytes() for file in (tmp_path / "r").iterdir()} == before
    whole = arguments | {"run": tmp_path / "whole", "epsilon": 0.2}
    results = [identify(training, validation, **whole) for _ in range(2)]  # a finished one may be asked for again
    assert results[0].certificate == results[1].certificate


def test_a_verification_of_a_search_stopped_at_will_pools_by_the_martingale(ph_records, tmp_path):
    run = identify(*ph_records, **SMALL, stop="anytime:10", run=tmp_path / "r").run
    outcome = verify(run, fresh=30)
    for case in (outcome, outcome["worst"]):
        assert case["epsilon_combined"] < case["epsilon_fresh"]
        assert "however often one looks and adds more" in case["statement"]
    settled = verify(identify(*ph_records, **SMALL, run=tmp_path / "settled").run, fresh=30)
    assert settled["epsilon_combined"] < settled["epsilon_fresh"]


def test_at_will_the_worst_is_not_said_to_be_covered_where_it_diverged():
    about = {"score": "fit", "direction": "max", "epsilon": 0.2, "beta": 0.01, "law": {}, "seed": 0, "digests": {}}
    for last, covered in ((np.nan, "the best score alone"), (-1.0, "the best and the worst score")):
        scores = np.append(np.arange(50.0), last)
        stopped = Stopped.of(scores, Anytime(beta=0.01, first=10), score="fit")
        certificate = certify(scores, **about, statements=[stopped])
        assert any(f"It covers {covered}." in sentence for sentence in certificate.not_stated)


@pytest.mark.parametrize(
    "change",
    [
        {"discarded": 2},  # no rule for stopping at will covers these two
        {"joint": True},
        {"target": "20"},
        {"target": True},
        {"networks": 20.0},
        {"committee": -1},
    ],
)
def test_a_plan_that_could_not_have_been_settled_is_refused_though_all_digests_fit(ph_records, tmp_path, change):
    run = identify(*ph_records, **SMALL, stop="anytime:10", target=20.0, run=tmp_path / "r").run
    content = json.loads((run / "plan.json").read_text()) | change
    del content["digest"]
    (run / "plan.json").write_text(json.dumps(content | {"digest": digest(content)}))
    with pytest.raises(DamagedFile, match=r"plan\.json"):
        _ = RunFolder(run).certificate
    assert any(finding.part == "plan.json" for finding in audit(run, sample=0).findings)


def test_thresholds_in_words_are_rounded_outwards():
    values = {"fit": [90.00000049, 80.0], "rmse": [0.10000009, 0.2]}
    said = JointScores.of(values, beta=0.5, directions=["max", "min"]).words
    assert "FIT 90.0001, RMSE 0.1." in said
    families = Families.of({"a": [90.00000049, 80.0], "b": [70.0, 60.0]}, beta=0.5, unit="%").words
    assert "The best of each family: a 90.0001 %, b 70 %." in families
