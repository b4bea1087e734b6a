"""Several orders or laws in one campaign: from the plan to the certificate, the verification and the audit."""

import json
import shutil
from decimal import Decimal

import jsonschema
import numpy as np
import pytest
import scipy.stats

from echobound.audit import audit
from echobound.data import Record
from echobound.draws import VERIFICATION
from echobound.errors import DamagedFile, InputError, RunError
from echobound.identify import identify
from echobound.kernels import get_kernel, hold_out
from echobound.network import ReservoirLaw, broad, family_names, get_laws, paper
from echobound.plan import SettledPlan
from echobound.runs.folder import RunFolder
from echobound.runs.verification import verification_of
from echobound.scenario import Certificate, Families, Gain, certify, schema
from echobound.scenario.sequences import sequential_limit
from echobound.scores import get_score
from echobound.verify import verify

ORDERS = (5, 9, 14)
SMALL = {"law": "paper", "order": ORDERS, "epsilon": 0.2, "beta": 1e-2, "washout": 60, "committee": 5}
EACH = 21  # 0.8**21 <= 0.01


@pytest.fixture(scope="module")
def families(ph_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "families"
    events = []
    return folder, identify(*ph_records, **SMALL, run=folder, on_progress=events.append), events


@pytest.fixture
def copy(families, tmp_path):
    return shutil.copytree(families[0], tmp_path / "copy")


def test_each_family_has_its_own_draws_and_law(families, ph_records):
    table = families[1].table
    assert table["family"].tolist() == np.repeat([0, 1, 2], EACH).tolist()
    assert table["index"].tolist() == [*range(EACH)] * 3
    assert table["order"].tolist() == np.repeat(ORDERS, EACH).tolist()
    for family, order in enumerate(ORDERS):
        problem = hold_out(*ph_records, law=paper(order), scores=[get_score("fit"), get_score("rmse")], washout=60)
        alone = get_kernel("cpu").evaluate(problem.of_family(family, paper(order)), range(EACH))
        assert (table["scores"][table["family"] == family] == alone["scores"]).all()


def test_what_is_certified(families):
    folder, result, _ = families
    certificate, scores = result.certificate, result.table["scores"][:, 0]
    assert (certificate.networks, certificate.each) == (3 * EACH, EACH)
    assert certificate.winner == int(np.argmax(scores))
    assert certificate.threshold == scores.max()
    assert certificate.epsilon_exact == pytest.approx(1 - 0.01 ** (1 / EACH), rel=1e-12)
    assert "any of the 3 families (order 5, order 9, order 14)" in certificate.statement
    assert [family["name"] for family in certificate.families] == ["order 5", "order 9", "order 14"]
    assert [family["law"]["order"] for family in certificate.families] == list(ORDERS)
    assert certificate.family_name(certificate.winner) == f"order {result.network.order}"
    statement, gain = certificate.statements
    assert isinstance(gain, Gain)
    assert isinstance(statement, Families)
    assert statement.epsilon == certificate.epsilon_exact
    assert statement.epsilon_mixture == pytest.approx(1 - 0.01 ** (1 / (3 * EACH)), rel=1e-12)
    assert statement.epsilons[0] == pytest.approx(1 - (0.01 / 3) ** (1 / EACH), rel=1e-12)
    assert statement.thresholds == tuple(part.max() for part in np.split(scores, 3))
    jsonschema.validate(certificate.to_dict(), schema(), cls=jsonschema.Draft202012Validator)
    assert Certificate.from_dict(certificate.to_dict()) == certificate == RunFolder(folder).certificate


def test_the_model_and_the_committee_come_from_all_families(families):
    folder, result, _ = families
    best = np.argsort(-result.table["scores"][:, 0], kind="stable")[:5]
    members = [(m.origin["family"], m.origin["index"]) for m in result.committee.members]
    assert members == [(int(r["family"]), int(r["index"])) for r in result.table[best]]
    assert [result.certificate.position(*member) for member in members] == best.tolist()
    assert result.network.origin["law"] == paper(result.network.order).to_dict()
    assert RunFolder(folder).model.digest == result.model.digest


def test_progress_is_that_of_the_whole(families):
    _, result, events = families
    assert {event.planned for event in events} == {3 * EACH}
    done = [event.done for event in events]
    assert done == sorted(done)
    assert done[-1] == 3 * EACH
    assert events[-1].best == result.certificate.threshold
    best = [event.best for event in events if event.best is not None]
    assert best == sorted(best), "the best of all families so far"


def test_an_interrupted_run_is_resumed(families, ph_records, tmp_path):
    class Enough(Exception):
        pass

    def interrupt(event):
        if event.done >= EACH + 5:
            raise Enough

    with pytest.raises(Enough):
        identify(*ph_records, **SMALL, workers=1, run=tmp_path / "r", on_progress=interrupt)
    again = identify(*ph_records, **SMALL, run=tmp_path / "r")
    assert again.certificate == families[1].certificate
    with pytest.raises(RunError, match="other laws"):
        identify(*ph_records, **(SMALL | {"order": (5, 9, 15)}), run=tmp_path / "r")


def test_laws_and_orders_and_their_names():
    assert [law.order for law in get_laws("paper", [5, 10])] == [5, 10]
    assert family_names(get_laws(["paper", "broad"])) == ("paper", "broad")
    both = get_laws(["paper", "broad"], [5, 10])
    assert family_names(both) == (
        "paper of order 5",
        "paper of order 10",
        "broad of order 5",
        "broad of order 10",
    )
    assert family_names([ReservoirLaw(order=5), ReservoirLaw(order=5, norm=0.5)]) == ("law 1", "law 2")
    assert family_names([broad(), broad(samples=100_000)]) == ("law 1", "law 2")
    for law, order in (("paper", [5, 5]), (["paper", "paper"], None)):
        with pytest.raises(InputError, match="twice"):
            get_laws(law, order)
    with pytest.raises(InputError, match="empty list"):
        get_laws("paper", [])


def test_what_goes_with_one_law_only(ph_records):
    for more in ({"stop": "patience:5"}, {"discarded": 2}, {"joint": True}, {"target": 90.0}):
        with pytest.raises(InputError, match=r"3 families were given.*leave out one of the two"):
            identify(*ph_records, **SMALL, **more)


def test_the_plan_lists_the_laws(families):
    plan = RunFolder(families[0]).plan
    content = plan.to_dict()
    assert "law" not in content
    assert [law["order"] for law in content["laws"]] == list(ORDERS)
    assert SettledPlan.from_dict(json.loads(json.dumps(content))) == plan


def test_divergence_is_limited_for_whichever_family():
    scores = np.concatenate([np.arange(40.0), np.arange(30.0)])
    scores[[0, 1, 45]] = np.nan
    listed = [
        {"family": 0, "name": "a", "networks": 40, "law": {}},
        {"family": 1, "name": "b", "networks": 30, "law": {}},
    ]
    about = {"score": "fit", "direction": "max", "law": {}, "seed": 0, "digests": {}, "epsilon": 0.2, "beta": 0.01}
    certificate = certify(scores, **about, families=listed)
    limits = [scipy.stats.beta.ppf(1 - 0.01, f + 1, n - f) for f, n in ((2, 40), (1, 30))]
    assert certificate.worst.divergence_bound == pytest.approx(max(limits), rel=1e-9)
    assert [family["failures"] for family in certificate.families] == [2, 1]
    assert "from any of the 2 families (a, b) diverges" in certificate.worst.statement
    certificate.check(scores)
    with pytest.raises(DamagedFile, match="winner"):
        certificate.check(np.roll(scores, 40))
    with pytest.raises(InputError, match="15 networks cannot certify"):  # the smallest family counts
        certify(scores, **about, families=[listed[0] | {"networks": 55}, listed[1] | {"networks": 15}])
    with pytest.raises(InputError, match="do not have 70 networks"):
        certify(scores, **about, families=[listed[0], listed[1] | {"networks": 31}])


def test_verification_holds_each_family_against_its_own_best(copy):
    outcome = verify(copy, fresh=12)
    folder = RunFolder(copy)
    rows = folder.rows(VERIFICATION)
    assert rows["family"].tolist() == np.repeat([0, 1, 2], 12).tolist()
    fresh, threshold = rows["scores"][:, 0], folder.certificate.threshold
    assert outcome["fresh"] == 36
    assert outcome["violations"] == int((fresh > threshold).sum())
    own = np.split(folder.search["scores"][:, 0], 3)
    for part, scores, tests in zip(outcome["families"], own, np.split(fresh, 3), strict=True):
        count = int((tests > scores.max()).sum())
        assert part["violations"] == count
        assert part["p_value"] == pytest.approx(scipy.stats.betabinom(12, 1, EACH).sf(count - 1), rel=1e-9)
    assert outcome["p_value"] == min(1.0, 3 * min(part["p_value"] for part in outcome["families"]))
    assert outcome["epsilon_combined"] == max(part["epsilon_combined"] for part in outcome["families"])
    assert verify(copy, fresh=3)["fresh"] == 45
    assert verification_of(RunFolder(copy)) == verify(copy, fresh=0)


def test_the_audit_of_an_honest_run(families, copy):
    verify(copy, fresh=4)
    for options in ({"everything": True}, {"kernel": "reference", "sample": 5}, {"workers": 2, "batch": 3}):
        found = audit(copy, **options)
        assert found.passed, found.findings
    assert found.claimed >= 6
    assert found.claimed + found.others == 3 * EACH + 12


def test_the_audit_finds_forged_rows_of_any_family(copy):
    import sqlite3

    table = RunFolder(copy).search
    own = [int(np.argmax(part)) for part in np.split(table["scores"][:, 0], 3)]
    for family, index in enumerate(own):  # the best of each family carries a claim
        forged = shutil.copytree(copy, copy.with_name(f"forged{family}"))
        with sqlite3.connect(forged / "ledger.sqlite") as db:
            where = (family, index)
            db.execute("UPDATE rows SET score_0 = score_0 - 1e-3 WHERE stream=0 AND family=? AND number=?", where)
        found = audit(forged, sample=0)
        name = f"network {index} of order {ORDERS[family]} of the search"
        assert any(name in finding.part for finding in found.findings), found.findings


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["families"][1].update(networks=22),
        lambda c: c["families"][1].update(name="order 10"),
        lambda c: c["families"][1]["law"].update(order=10),
        lambda c: c["families"].pop(),
        lambda c: c["statements"].pop(0),
        lambda c: c["statements"][0].update(epsilon=0.01),
        lambda c: c["statements"][0].update(winners=[0, 0, 0]),
        lambda c: c.update(epsilon_exact=c["epsilon_exact"] / 3),
        lambda c: c.update(law=paper(5).to_dict()),
        lambda c: c.update(winner=(c["winner"] + EACH) % (3 * EACH)),
    ],
)
def test_forged_certificates_are_found(copy, change):
    from echobound.typed import digest_of

    path = copy / "certificate.json"
    content = json.loads(path.read_text())
    change(content)
    identity = {name: value for name, value in content.items() if name not in ("digest", "provenance")}
    path.write_text(json.dumps(content | {"digest": digest_of(identity)}))
    with pytest.raises(DamagedFile):
        _ = RunFolder(copy).certificate
    assert not audit(copy, sample=0).passed


def growing(output_delays):
    """Networks that see the output before diverge on a record that grows, those that do not see it do not."""
    small = {"norm": 0.1, "feedback_scale": 0.0, "input_scale": 0.01}
    return ReservoirLaw(order=3, output_delays=output_delays, **small)


@pytest.fixture(scope="module")
def diverging(tmp_path_factory):
    """Two families, of which the second diverged wholly, with fresh networks."""
    u, y = (lambda k: np.sin(0.1 * k)), (lambda k: np.exp(0.2 * (k % 300)))
    training, validation = (Record(u=u(np.arange(n)), y=y(np.arange(n))) for n in (300, 8000))
    run = tmp_path_factory.mktemp("diverging") / "run"
    options = {"law": [growing(0), growing(1)], "networks": 12, "beta": 0.05, "washout": 100, "committee": 3}
    result = identify(training, validation, **options, run=run)
    assert [family["failures"] for family in result.certificate.families] == [0, 12], "the test needs this"
    return result, verify(run, fresh=30)


def test_a_family_that_diverged_wholly(diverging):
    result, outcome = diverging
    certificate = RunFolder(result.run).certificate
    assert "law 2 none, all diverged" in certificate.statements[0].words
    assert certificate.worst.divergence_bound == 1.0
    assert audit(result.run, sample=3).passed
    # Of the second family no fresh network has a score either: it is all but certain that none has.
    first, second = outcome["families"]
    assert second["epsilon_combined"] == sequential_limit(0, 30, Decimal("0.025"), (1, 12))
    assert outcome["epsilon_combined"] == first["epsilon_combined"] > second["epsilon_combined"]
    assert "30 diverged. Beyond each family's own worst: law 1" in outcome["worst"]["statement"]
    assert "a new network from any family diverges with probability at most 1 " in outcome["worst"]["statement"]


@pytest.mark.parametrize("rates", [(0.2, 0.2, 0.2), (0.3, 0.1, 0.0), (0.15, 0.14, 0.16)])
def test_the_limit_of_divergence_needs_no_share_of_beta(rates):
    rng, networks, beta, campaigns = np.random.default_rng(3), 40, 0.1, 20_000
    failures = rng.binomial(networks, rates, size=(campaigns, len(rates)))
    limits = np.append(scipy.stats.beta.ppf(1 - beta, np.arange(networks) + 1, networks - np.arange(networks)), 1.0)
    missed = int((max(rates) > limits[failures].max(axis=1)).sum())
    assert scipy.stats.binomtest(missed, campaigns, beta, alternative="greater").pvalue > 1e-3
