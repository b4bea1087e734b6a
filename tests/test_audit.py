"""The audit finds what was tampered with, and honest runs pass it."""

import dataclasses
import json
import shutil
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from test_cli import echobound

from echobound.audit import audit, detection
from echobound.data import Record, split
from echobound.data.experiments import Experiments, records_digest
from echobound.diagnostics.first_line import first_line
from echobound.diagnostics.verdict import Evidence, verdict_of
from echobound.draws import SEARCH, VERIFICATION
from echobound.errors import InputError, RunError
from echobound.files import digest, jsonable, read_json, write_json
from echobound.generalise import generalise
from echobound.identify import identify
from echobound.kernels import get_kernel
from echobound.kernels.training import train_network
from echobound.network import Choice, Committee, EchoStateNetwork, LeastSquares, ReservoirLaw, broad, paper
from echobound.plan import SettledPlan
from echobound.plants import ph_experiment
from echobound.runs.assessed import content_of
from echobound.runs.derivation import certificate_of
from echobound.runs.folder import RunFolder
from echobound.runs.ledger import Ledger, rows_digest
from echobound.runs.opening import generalisation_of
from echobound.scenario import Generalisation
from echobound.typed import digest_of as certificate_digest
from echobound.typed import from_json
from echobound.verify import verify

SMALL = {"law": "paper", "order": 6, "networks": 40, "beta": 1e-3, "washout": 60, "committee": 4}


@pytest.fixture(scope="module")
def records():
    return ph_experiment(samples=(300, 250))


@pytest.fixture(scope="module")
def original(records, tmp_path_factory):
    """An honest run with 10 fresh networks."""
    run = tmp_path_factory.mktemp("honest") / "run"
    identify(*records, **SMALL, run=run)
    verify(run, fresh=10)
    return run


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run")


@pytest.fixture
def no_pages(monkeypatch):
    """Pages are not audited, and take longer than networks this small."""
    monkeypatch.setattr(sys.modules["echobound.identify"], "write_page", lambda folder: None)


def found(run, **options):
    """The parts in which something was found."""
    return [finding.part for finding in audit(run, **{"seed": 1, **options}).findings]


# What a forger does ---------------------------------------------------------------------------------------------


def sql(run, *statements):
    with closing(sqlite3.connect(run / "ledger.sqlite")) as db, db:
        for statement in statements:
            db.execute(*statement) if isinstance(statement, tuple) else db.execute(statement)


def sign(run, **changes):
    """Change fields of the certificate and make its digest again."""
    content = read_json(run / "certificate.json") | changes
    identity = {k: v for k, v in content.items() if k not in ("digest", "provenance")}
    write_json(run / "certificate.json", {**content, "digest": certificate_digest(identity)})


def remake(run, *, force=False, **changes):
    """Change the plan, and make every digest, number and sentence of the folder fit it again."""
    content = {**read_json(run / "plan.json"), **changes, "data": Experiments.load(run / "data.npz").digest}
    del content["digest"]
    write_json(run / "plan.json", {**content, "digest": digest(jsonable(content))})
    plan = SettledPlan.from_dict(read_json(run / "plan.json"))
    sql(run, ("UPDATE about SET value = ? WHERE name = 'plan'", (plan.digest,)))
    sql(run, ("UPDATE about SET value = ? WHERE name = 'scores'", ("\n".join(plan.scores),)))
    with Ledger(run / "ledger.sqlite", plan.digest, plan.scores, write=False) as ledger:
        rows, fresh = ledger.rows(SEARCH), ledger.rows(VERIFICATION)
    write_json(run / "verification.json", {"fresh": len(fresh), "rows": rows_digest(fresh)})
    digests = {"data": plan.data, "plan": plan.digest, "ledger": rows_digest(rows)}
    digests |= {"model": EchoStateNetwork.load(run / "network.npz").digest}
    digests |= {"committee": Committee.load(run / "model.npz").digest}
    if force:  # what is claimed does not follow: the numbers are put in by hand
        named = {name: content[name] for name in ("epsilon", "beta", "bound", "networks")}
        sign(run, **named, digests=digests)
        return
    made = certificate_of(plan, rows, digests=digests)
    write_json(run / "certificate.json", made.to_dict())


def other(value):
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 0.99
    if isinstance(value, str):
        return {"exact": "explicit", "max": "min"}.get(value, f"{value}!")
    if isinstance(value, list):
        return value[:-1] if len(value) > 1 else [*value, *value]
    if isinstance(value, dict):
        name = next(iter(value))
        return {**value, name: other(value[name])}
    return 3  # instead of nothing


def best(run, rank=0):
    scores = RunFolder(run).rows(SEARCH)["scores"][:, 0]
    return int(np.argsort(-scores)[rank])


def rewrite_data(run, change):
    experiments = Experiments.load(run / "data.npz")
    replace(experiments, training=(change(experiments.training[0]),)).save(run / "data.npz")


def outlier_removed(record):
    y = record.y.copy()
    y[100] += 0.01
    return replace(record, y=y)


# Every field ----------------------------------------------------------------------------------------------------

CERTIFICATE = [
    *("score", "direction", "unit", "networks", "epsilon", "beta", "bound", "networks_required", "epsilon_exact"),
    *("beta_exact", "log10_beta_exact", "status", "winner", "threshold", "failures", "statement", "not_stated"),
    *("worst", "law", "seed", "families", "digests", "horizon", "blocks", "kind", "rule", "rank", "schema_version"),
    *("statements", "digest"),
]  # fmt: skip
PLAN = [
    *("schema_version", "rule", "law", "seed", "scores", "validation", "folds", "horizon", "networks", "epsilon"),
    *("beta", "bound", "committee", "data", "digest"),
]  # fmt: skip


def test_the_lists_of_fields_are_complete(original):
    assert {*CERTIFICATE, "provenance"} == set(read_json(original / "certificate.json"))
    assert set(PLAN) == set(read_json(original / "plan.json"))


@pytest.mark.parametrize("name", CERTIFICATE)
@pytest.mark.parametrize("signed", [False, True])
def test_every_field_of_the_certificate(run, name, signed):
    changed = {name: other(read_json(run / "certificate.json")[name])}
    if signed and name != "digest":
        sign(run, **changed)
    else:
        write_json(run / "certificate.json", read_json(run / "certificate.json") | changed)
    parts = found(run, sample=0)
    assert any(part.startswith(f"certificate.json, {name}") for part in parts)
    assert len(parts) <= 2, "nothing but the field and perhaps the digest is blamed"


@pytest.mark.parametrize("key", ["data", "plan", "ledger", "model", "committee"])
def test_every_digest(run, key):
    sign(run, digests=read_json(run / "certificate.json")["digests"] | {key: "0" * 64})
    assert f"certificate.json, digests, {key}" in found(run, sample=0)


@pytest.mark.parametrize("name", PLAN)
def test_every_field_of_the_plan(run, name):
    content = read_json(run / "plan.json")
    write_json(run / "plan.json", content | {name: other(content[name])})
    assert any(part.startswith("plan.json") for part in found(run, sample=0))


@pytest.mark.parametrize("name", ["provenance", "law", "seed", "worst"])
def test_a_field_that_is_missing(run, name):
    content = read_json(run / "certificate.json")
    del content[name]
    write_json(run / "certificate.json", content)
    assert any(part.startswith("certificate.json") for part in found(run, sample=0))


# The clever forger: all digests, numbers and sentences are made again --------------------------------------------


def swapped_law(run):
    remake(run, law=replace(paper(6), norm=0.5).to_dict())


def swapped_seed(run):
    remake(run, seed=7)


def smaller_epsilon(run):
    remake(run, force=True, epsilon=0.05)


def smaller_beta(run):
    remake(run, force=True, beta=1e-9)


def other_bound(run):
    remake(run, force=True, bound="explicit")


def overstated_by_invented_rows(run):
    columns = "stream, family, number, status, ordr, ridge, score_0, score_1, seconds, origin"
    invent = f"INSERT INTO rows ({columns}) SELECT stream, family, number + 40, status, ordr, ridge, score_0 - 0.5,"
    sql(run, f"{invent} score_1 + 0.001, seconds, origin FROM rows WHERE stream = 0")
    remake(run, networks=80, epsilon=0.1)


def overstated(run):
    remake(run, force=True, networks=80, epsilon=0.1)


def other_horizon(run):
    remake(run, horizon=5)


def other_scores(run):
    remake(run, scores=["rmse", "fit"])


def other_folds(run):
    folds = read_json(run / "plan.json")["folds"]
    folds[0]["training"][0][3] = 50
    remake(run, folds=folds)


def trained_on_validation(run):
    folds = read_json(run / "plan.json")["folds"]
    folds[0]["training"] += folds[0]["scored"]
    remake(run, folds=folds)


def other_committee(run):
    remake(run, committee=3)


def other_data(run):
    rewrite_data(run, outlier_removed)
    remake(run)


def other_sampling_time(run):
    rewrite_data(run, lambda record: replace(record, sampling_time=2 * record.sampling_time))


def better_winner(run):
    sql(run, f"UPDATE rows SET score_0 = score_0 + 1 WHERE stream = 0 AND number = {best(run)}")
    remake(run)


def slightly_better_winner(run):
    sql(run, f"UPDATE rows SET score_0 = score_0 * (1 + 1e-7) WHERE stream = 0 AND number = {best(run)}")
    remake(run)


def better_second_score(run):
    sql(run, f"UPDATE rows SET score_1 = score_1 / 2 WHERE stream = 0 AND number = {best(run)}")
    remake(run)


def invented_winner(run):
    sql(run, f"UPDATE rows SET score_0 = 99 WHERE stream = 0 AND number = {best(run, 20)}")
    remake(run)


def better_worst(run):
    sql(run, f"UPDATE rows SET score_0 = score_0 + 0.001 WHERE stream = 0 AND number = {best(run, -1)}")
    remake(run)


def better_member(run):
    sql(run, f"UPDATE rows SET score_0 = score_0 + 1e-6 WHERE stream = 0 AND number = {best(run, 2)}")
    remake(run)


def other_order(run):
    sql(run, f"UPDATE rows SET ordr = 5 WHERE stream = 0 AND number = {best(run)}")
    remake(run)


def other_ridge(run):
    sql(run, f"UPDATE rows SET ridge = 1e-3 WHERE stream = 0 AND number = {best(run)}")
    remake(run)


def other_status(run):
    sql(run, f"UPDATE rows SET status = 1 WHERE stream = 0 AND number = {best(run)}")
    remake(run)


def status_of_no_meaning(run):
    sql(run, f"UPDATE rows SET status = 7 WHERE stream = 0 AND number = {best(run, 20)}")
    remake(run)


def best_removed(run):
    sql(run, f"DELETE FROM rows WHERE stream = 0 AND number = {best(run)}")


def row_added(run):
    columns = "family, status, ordr, ridge, score_0, score_1, seconds, origin"
    sql(run, f"INSERT INTO rows (stream, number, {columns}) SELECT 0, 40, {columns} FROM rows WHERE number = 3 LIMIT 1")


def row_of_another_family(run):
    columns = "stream, number, status, ordr, ridge, score_0, score_1, seconds, origin"
    sql(run, f"INSERT INTO rows (family, {columns}) SELECT 1, {columns} FROM rows WHERE number = 3 LIMIT 1")


def search_as_verification(run):
    copied = ("score_0", "score_1")
    for name in copied:
        sql(
            run,
            f"UPDATE rows SET {name} = (SELECT {name} FROM rows AS o WHERE o.stream = 0 AND o.number = rows.number)"
            " WHERE stream = 1",
        )
    remake(run)


def fresh_row_changed(run):
    sql(run, "UPDATE rows SET score_0 = -9 WHERE stream = 1 AND number = 4")


def fresh_row_removed(run):
    sql(run, "DELETE FROM rows WHERE stream = 1 AND number = 4")


def fresh_rows_overstated(run):
    write_json(run / "verification.json", read_json(run / "verification.json") | {"fresh": 500})


def verification_of_more_words(run):
    write_json(run / "verification.json", read_json(run / "verification.json") | {"violations": 0})


def other_model(run):
    problem = RunFolder(run).candidates()[0].problem
    train_network(get_kernel("cpu"), problem, best(run, 5))[0].save(run / "network.npz")
    remake(run)


def other_readout(run):
    model = EchoStateNetwork.load(run / "network.npz")
    replace(model, readout=model.readout * (1 + 1e-5)).save(run / "network.npz")
    remake(run)


def unsigned_readout(run):
    model = EchoStateNetwork.load(run / "network.npz")
    replace(model, readout=model.readout * (1 + 1e-5)).save(run / "network.npz")


def other_origin(run):
    model = EchoStateNetwork.load(run / "network.npz")
    replace(model, origin={**model.origin, "seed": 4}).save(run / "network.npz")
    remake(run)


def no_model(run):
    (run / "network.npz").unlink()


def no_committee(run):
    (run / "model.npz").unlink()


def no_data(run):
    (run / "data.npz").unlink()


def no_ledger(run):
    (run / "ledger.sqlite").unlink()


def members_swapped(run):
    committee = Committee.load(run / "model.npz")
    Committee(committee.members[::-1]).save(run / "model.npz")
    remake(run)


def member_replaced(run):
    members = Committee.load(run / "model.npz").members
    fifth = train_network(get_kernel("cpu"), RunFolder(run).candidates()[0].problem, best(run, 4))[0]
    Committee((*members[:-1], fifth)).save(run / "model.npz")
    remake(run)


def member_changed(run):
    members = Committee.load(run / "model.npz").members
    changed = replace(members[1], readout=members[1].readout * 1.001)
    Committee((members[0], changed, *members[2:])).save(run / "model.npz")
    remake(run)


def bytes_changed(run):
    content = bytearray((run / "data.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (run / "data.npz").write_bytes(content)


FORGERIES = {
    swapped_law: "ledger.sqlite, network",
    swapped_seed: "ledger.sqlite, network",
    smaller_epsilon: "certificate.json",
    smaller_beta: "certificate.json",
    other_bound: "certificate.json",
    overstated_by_invented_rows: "ledger.sqlite, network",
    overstated: "ledger.sqlite, rows of the search",
    other_horizon: "ledger.sqlite, network",
    other_scores: "ledger.sqlite, network",
    other_folds: "plan.json, folds",
    trained_on_validation: "plan.json, folds",
    other_committee: "model.npz, members",
    other_data: "ledger.sqlite, network",
    other_sampling_time: "plan.json, data",
    better_winner: "ledger.sqlite, network",
    slightly_better_winner: "ledger.sqlite, network",
    better_second_score: "ledger.sqlite, network",
    invented_winner: "ledger.sqlite, network",
    better_worst: "ledger.sqlite, network",
    better_member: "ledger.sqlite, network",
    other_order: "ledger.sqlite, network",
    other_ridge: "ledger.sqlite, network",
    other_status: "ledger.sqlite, network",
    status_of_no_meaning: "ledger.sqlite, network",
    best_removed: "ledger.sqlite, rows of the search",
    row_added: "ledger.sqlite, rows of the search",
    row_of_another_family: "ledger.sqlite",
    search_as_verification: "ledger.sqlite, network",
    fresh_row_changed: "verification.json, rows",
    fresh_row_removed: "verification.json",
    fresh_rows_overstated: "verification.json, fresh",
    verification_of_more_words: "verification.json, violations",
    other_model: "network.npz",
    other_readout: "network.npz",
    unsigned_readout: "certificate.json, digests, model",
    other_origin: "network.npz",
    no_model: "certificate.json, digests, model",
    no_committee: "certificate.json, digests, committee",
    no_data: "data.npz",
    no_ledger: "ledger.sqlite",
    members_swapped: "model.npz, members",
    member_replaced: "model.npz, members",
    member_changed: "model.npz, network",
    bytes_changed: "data.npz",
}


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_forgeries_are_found(run, forge):
    forge(run)
    parts = found(run)
    assert any(part.startswith(FORGERIES[forge]) for part in parts), parts


def test_a_finding_says_what_was_expected_and_what_is_there(run):
    before = RunFolder(run).search["scores"][best(run), 0]
    better_winner(run)
    [finding, *_] = audit(run, sample=0).findings
    assert finding.part == f"ledger.sqlite, network {best(run)} of the search"
    assert finding.expected.startswith(f"FIT {before:.10g}, RMSE")
    assert finding.found.startswith(f"FIT {before + 1:.10g}, RMSE")


def test_damage_of_one_part_does_not_hide_that_of_another(run):
    better_winner(run)
    other_sampling_time(run)
    sign(run, unit="dB")
    parts = found(run, sample=0)
    assert {"certificate.json, unit", "plan.json, data", f"ledger.sqlite, network {best(run)} of the search"} <= set(
        parts
    )


# What the model is worth ----------------------------------------------------------------------------------------


def believed(run, change):
    """Change the assessment, and make all that follows from its numbers again, as whoever forges it would."""
    folder = RunFolder(run)
    content = json.loads(json.dumps(content_of(folder, folder.assessment)))
    change(content)
    evidence = from_json(Evidence, content["evidence"])
    stated = dataclasses.replace(folder.assessment, evidence=evidence, verdict=verdict_of(evidence))
    made = content | {"verdict": stated.verdict.to_dict()}
    certificate = folder.certificate
    known = {"epsilon": certificate.epsilon, "beta": certificate.beta, "networks": certificate.networks}
    line = first_line(evidence, **known, delivered=folder.delivered, blocks=certificate.blocks, members=1)
    write_json(run / "assessment.json", {**made, "summary": line})


def better_fit(content):
    content["evidence"]["fit"] = content["scores"]["validation"]["fit"] = 93.0


def better_output(content):
    content["scores"]["validation"]["per_output"]["pH"]["rmse"] *= 0.5


def worse_linear(content):
    content["evidence"]["linear"] = content["linear"]["fit"] = content["linear"]["scores"]["validation"]["fit"] = 1.0


def no_alarm(content):
    for one in content["evidence"]["findings"]:
        one["alarm"] = False


def other_coefficients(content):
    content["linear"]["coefficients"]["c"] = [3.0]


@pytest.mark.parametrize("change", [better_fit, better_output, worse_linear, no_alarm, other_coefficients])
def test_a_better_verdict_that_follows_from_forged_numbers_is_found(run, change):
    believed(run, lambda content: None)
    assert found(run, sample=0) == []
    believed(run, change)
    assert RunFolder(run).assessment is not None, "it follows from its own numbers"
    parts = found(run, sample=0)
    assert parts
    assert all(part.startswith("assessment.json, ") for part in parts), parts


def test_an_assessment_of_something_else_is_said_to_be_of_no_use(run):
    content = read_json(run / "assessment.json")
    write_json(run / "assessment.json", {**content, "about": content["about"] | {"test": "0" * 64}})
    outcome = audit(run, sample=0)
    assert outcome.passed
    assert any("assessment.json is about other models or test data" in note for note in outcome.notes)
    write_json(run / "assessment.json", content | {"summary": "It explains everything."})
    assert found(run, sample=0) == ["assessment.json, summary"]


# The second certificate ------------------------------------------------------------------------------------------

GENERALISATION = [
    *("schema_version", "settled", "late", "earlier", "horizon", "episodes", "outputs", "scales", "digests", "seen"),
    *("optimism", "statements", "together", "words", "not_stated", "digest", "samples"),
]  # fmt: skip


@pytest.fixture(scope="module")
def tested(records, tmp_path_factory):
    """An honest run with test data of its own, opened with a criterion."""
    run = tmp_path_factory.mktemp("tested") / "run"
    episodes = ph_experiment(samples=(300, 250, *[120] * 4))[2:]
    identify(*records, **SMALL, test=episodes, criterion="rmse<1", run=run)
    return run


@pytest.fixture(scope="module")
def given(records, tmp_path_factory):
    """An honest run with test data given later."""
    run = tmp_path_factory.mktemp("given") / "run"
    identify(*records, **SMALL, run=run)
    generalise(run, ph_experiment(samples=(300, 250, *[120] * 4))[2:])
    return run


@pytest.fixture
def second(tested, tmp_path):
    return shutil.copytree(tested, tmp_path / "run")


@pytest.fixture
def later(given, tmp_path):
    return shutil.copytree(given, tmp_path / "run")


def write_second(run, content):
    """Write the second certificate with a digest that fits."""
    identity = {name: value for name, value in content.items() if name != "digest"}
    write_json(run / "generalisation.json", {**identity, "digest": certificate_digest(identity)})


def rederive(run, change):
    """Change what a second certificate holds, and derive all the rest from it."""
    path = run / "generalisation.json"
    made = change(Generalisation.from_dict(read_json(path)))
    write_json(path, made.to_dict())


def test_honest_second_certificates_pass(tested, given):
    assert set(GENERALISATION) == set(read_json(tested / "generalisation.json"))
    for run in (tested, given):
        outcome = audit(run, sample=0)
        assert (outcome.findings, outcome.notes) == ((), ())


@pytest.mark.parametrize("name", GENERALISATION)
@pytest.mark.parametrize("signed", [False, True])
def test_every_field_of_the_second_certificate(second, name, signed):
    content = read_json(second / "generalisation.json")
    changed = content | {name: other(content[name])}
    if signed and name != "digest":
        write_second(second, changed)
    else:
        write_json(second / "generalisation.json", changed)
    parts = found(second, sample=0)
    assert parts
    assert all(part.startswith("generalisation.json") for part in parts)


def one_error(run, factor, who="model"):
    def change(made):
        seen = made.seen[who]
        return replace(made, seen={**made.seen, who: replace(seen, rmse=(seen.rmse[0] * factor, *seen.rmse[1:]))})

    rederive(run, change)


def better_error(run):
    one_error(run, 0.5)


def slightly_better_error(run):
    one_error(run, 1 - 1e-6)


def better_committee(run):
    one_error(run, 0.99, "committee")


def better_peak(run):
    def change(made):
        seen = made.seen["model"]
        return replace(made, seen={**made.seen, "model": replace(seen, peaks=((0.0,), *seen.peaks[1:]))})

    rederive(run, change)


def better_score(run):
    def change(made):
        seen = made.seen["model"]
        return replace(made, seen={**made.seen, "model": replace(seen, scores=(0.0, *seen.scores[1:]))})

    rederive(run, change)


def better_on_test_data(run):
    rederive(run, lambda made: replace(made, optimism=replace(made.optimism, test=made.optimism.test + 1)))


def worse_on_validation_data(run):
    rederive(run, lambda made: replace(made, optimism=replace(made.optimism, validation=10.0)))


def episode_left_out(run):
    def change(made):
        parts = {
            who: replace(seen, rmse=seen.rmse[1:], peaks=seen.peaks[1:], scores=seen.scores[1:])
            for who, seen in made.seen.items()
        }
        return replace(made, seen=parts, samples=made.samples[: next(iter(parts.values())).episodes])

    rederive(run, change)


def committee_left_out(run):
    rederive(run, lambda made: replace(made, seen={"model": made.seen["model"]}))


def diverged_episode_hidden(run):
    def change(made):
        seen = made.seen["model"]
        return replace(made, seen={**made.seen, "model": replace(seen, rmse=(None, *seen.rmse[1:]))})

    rederive(run, change)


def narrower_scale(run):
    rederive(run, lambda made: replace(made, scales=(2.0,)))


def other_test_digest(run):
    rederive(run, lambda made: replace(made, digests={**made.digests, "test": "0" * 64}))


def other_model_digest(run):
    rederive(run, lambda made: replace(made, digests={**made.digests, "model": "0" * 64}))


def no_second_model(run):
    content = read_json(run / "generalisation.json")
    write_second(run, {**content, "seen": "nothing"})


def settled_is_nothing(run):
    write_second(run, read_json(run / "generalisation.json") | {"settled": None})


@pytest.mark.parametrize(
    "forge",
    [
        *(better_error, slightly_better_error, better_committee, better_peak, better_score, better_on_test_data),
        *(worse_on_validation_data, episode_left_out, committee_left_out, diverged_episode_hidden, narrower_scale),
        *(other_test_digest, other_model_digest, no_second_model, settled_is_nothing),
    ],
    ids=lambda forge: forge.__name__,
)
def test_forged_second_certificates_are_found(second, forge):
    forge(second)
    parts = found(second, sample=0)
    assert parts
    assert all(part.startswith("generalisation.json") for part in parts), parts


def test_a_forged_error_is_named_with_what_it_is(second):
    before = Generalisation.from_dict(read_json(second / "generalisation.json")).seen["model"].rmse[0]
    better_error(second)
    [finding] = audit(second, sample=0).findings
    assert finding.part == "generalisation.json, model, rmse, 1"
    assert float(finding.expected) == pytest.approx(before)
    assert float(finding.found) == pytest.approx(before / 2)


def test_test_data_given_later(later, records):
    test = ph_experiment(samples=(300, 250, *[120] * 4))[2:]
    assert not found(later, sample=0, data=[*records, *test])
    asked = audit(later, sample=0, seed=1, data=[*records, *test[:3]])
    assert asked.passed, "a file that was not given is asked for, not a fault"
    assert any("test record 4" in note and "with --data as well" in note for note in asked.notes)
    off = replace(test[3], y=np.concatenate([test[3].y[:-1], test[3].y[-1:] + 1]))
    assert "data.npz, test record 4" in found(later, sample=0, data=[*records, *test[:3], off])
    path = later / "test.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert any(part.startswith("test.npz") for part in found(later, sample=0))
    smooth = [replace(test[0], y=test[0].y * 0.999), *test[1:]]
    Experiments((), (), tuple(smooth)).save(path)
    assert "generalisation.json, digests, test" in found(later, sample=0)
    rederive(later, lambda made: replace(made, digests={**made.digests, "test": records_digest(smooth)}))
    assert any(part.startswith("generalisation.json, model, rmse") for part in found(later, sample=0))
    path.unlink()
    assert "generalisation.json, digests, test" in found(later, sample=0)


@pytest.mark.parametrize("role", ["training", "test"])
def test_test_data_that_something_was_chosen_by_are_found(second, role):
    """Data of the run given as new ones, with everything derived from them as it should be."""
    folder = RunFolder(second)
    made, record = folder.generalisation, getattr(folder.experiments, role)[0]
    test = [record.part(0, 110, "monday"), record.part(10, len(record), "tuesday")]
    models = {"model": folder.network, "committee": folder.committee}
    about = {"score": made.optimism.score, "picked": made.optimism.validation}
    forged = generalisation_of(models, folder.experiments.training, test, made.settled, **about)
    folder.record_generalisation(replace(forged, earlier=len(folder.experiments.test)), test)
    assert RunFolder(second).generalisation == replace(forged, earlier=4), "it follows from what was seen"
    # They also share data with each other, which is a finding of its own.
    [finding, _] = audit(second, sample=0).findings
    assert finding.part == "test data"
    assert f"monday is among the {role} data" in finding.found


def test_without_a_model_there_is_nothing_to_certify(second):
    (second / "network.npz").unlink()
    assert "generalisation.json" in found(second, sample=0)


def test_rounding_is_no_tampering(second, monkeypatch):
    """Errors further apart than 1e-9, which a readout changed by rounding moves as much, are sensitive."""
    one_error(second, 1 + 1e-8)
    assert found(second, sample=0)
    monkeypatch.setattr(sys.modules["echobound.audit.replay"], "READOUT", 1e-4)
    outcome = audit(second, sample=0)
    assert outcome.passed
    assert any("errors in test episodes" in sentence for sentence in outcome.sensitive)


# Rows that carry no claim ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [SEARCH, VERIFICATION])
def test_a_single_other_row_is_found_when_all_are_trained_again(run, stream):
    rows = RunFolder(run).rows(stream)
    middle = int(rows["index"][np.argsort(rows["scores"][:, 0])[len(rows) // 2]])
    sql(run, f"UPDATE rows SET score_0 = score_0 - 1e-5 WHERE stream = {stream} AND number = {middle}")
    remake(run)
    assert not found(run, sample=0), "the forgery is a good one"
    name = "search" if stream == SEARCH else "verification"
    assert found(run, everything=True) == [f"ledger.sqlite, network {middle} of the {name}"]


def test_the_sample_finds_as_often_as_said(run):
    scores = RunFolder(run).search["scores"][:, 0]
    forged = np.argsort(scores)[10:14]
    for index in forged:
        sql(run, f"UPDATE rows SET score_0 = score_0 - 1e-5 WHERE stream = 0 AND number = {index}")
    remake(run)
    outcomes = [audit(run, sample=8, seed=seed) for seed in range(25)]
    expected = detection(outcomes[0].others, 8, 4)
    hits = sum(not outcome.passed for outcome in outcomes)
    assert scipy.stats.binomtest(hits, 25, expected).pvalue > 1e-3


def test_probabilities_of_detection():
    for rows, sample, forged in ((69, 20, 1), (600, 20, 30), (50, 50, 1), (40, 0, 4)):
        law = scipy.stats.hypergeom(rows, forged, sample)
        assert detection(rows, sample, forged) == pytest.approx(law.sf(0), rel=1e-9, abs=1e-15)


def test_counts_and_the_auditors_own_randomness(original):
    outcome = audit(original, sample=7, seed=3)
    assert (outcome.claimed, outcome.others, outcome.retrained, outcome.seed) == (5, 45, 12, 3)
    assert [row["forged"] for row in outcome.detection] == [1, 3, 5]
    assert audit(original, sample=0).seed != audit(original, sample=0).seed
    assert audit(original, everything=True).retrained == 50
    assert audit(original, sample=1000).retrained == 50


def test_bad_arguments(original, tmp_path):
    with pytest.raises(InputError, match="whole number of networks"):
        audit(original, sample=-1)
    with pytest.raises(InputError, match="seed must be"):
        audit(original, seed=-1)
    with pytest.raises(RunError, match="not a run folder"):
        audit(tmp_path)
    shutil.copy(original / "plan.json", tmp_path)
    with pytest.raises(RunError, match="nothing to audit"):
        audit(tmp_path)


# The original data ----------------------------------------------------------------------------------------------


def test_data_are_held_against_the_original(original, records):
    training, validation = records
    assert not found(original, data=records, sample=0)
    assert not found(original, data=[validation, training], sample=0), "in any order"
    [finding] = audit(original, data=[outlier_removed(training), validation], sample=0).findings
    assert finding.part == "data.npz, training record 1"
    assert "1 other values: the first is sample 101 of pH" in finding.found
    assert found(original, data=[training], sample=0) == ["data.npz, validation record 1"]
    longer = replace(training, u=np.concatenate([training.u, [[1.0]]]), y=np.concatenate([training.y, [[7.0]]]))
    assert found(original, data=[longer, validation], sample=0) == ["data.npz"]
    assert found(original, data=[replace(training, sampling_time=3.0), validation], sample=0) == [
        "data.npz, training record 1, sampling_time"
    ]


def test_a_clever_change_of_the_data_with_all_networks_made_again(records, tmp_path, no_pages):
    training, validation = records
    identify(outlier_removed(training), validation, **SMALL, run=tmp_path / "run")
    assert not found(tmp_path / "run", everything=True), "nobody can see it without the original"
    assert found(tmp_path / "run", data=records, sample=0) == ["data.npz, training record 1"]


def test_parts_of_a_record_are_found_in_it(records, tmp_path, no_pages):
    training, _ = records
    identify(training, **SMALL | {"blocks": 0, "washout": 30}, run=tmp_path / "run")
    assert not found(tmp_path / "run", data=[training])
    first, second = split(training)
    assert len(Experiments.load(tmp_path / "run" / "data.npz").validation[0]) == len(second)
    assert found(tmp_path / "run", data=[first], sample=0) == ["data.npz, validation record 1"]


# Honest runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_honest_runs_pass(tmp_path, seed, records, no_pages):
    options = SMALL | {"order": 5 + seed % 6, "networks": 30, "seed": seed, "law": ("paper", "broad")[seed % 2]}
    run = tmp_path / "run"
    identify(*records, **options, workers=1 + seed % 2, run=run, kernel=("cpu", "reference")[seed % 4 == 0])
    outcomes = [
        audit(run, workers=1),
        audit(run, workers=2, batch=3),
        audit(run, everything=True),
        audit(run, sample=5, kernel="reference"),
    ]
    assert [outcome.findings for outcome in outcomes] == [()] * 4


def test_honest_runs_of_other_kinds_pass(tmp_path, mimo_records, records, no_pages):
    small = {"order": 5, "networks": 25, "beta": 1e-2, "law": "paper"}
    identify(records[0], blocks=3, **small, washout=30, run=tmp_path / "blocks")
    identify(*mimo_records, **small | {"law": "broad"}, horizon=3, committee=0, run=tmp_path / "mimo")
    law = replace(paper(8), training=LeastSquares((1e-8, 1e-4, 0.0)))
    identify(*records, law=law, networks=25, beta=1e-2, scores=("rmse",), washout=60, run=tmp_path / "ridges")
    identify(*records, **small | {"networks": None}, epsilon=0.2, stop="patience:20", run=tmp_path / "patience")
    identify(*records, **small | {"networks": None}, epsilon=0.2, stop="anytime", run=tmp_path / "anytime")
    identify(*records, **small, discarded=3, run=tmp_path / "aside")
    for name in ("blocks", "mimo", "ridges", "patience", "anytime", "aside"):
        assert audit(tmp_path / name, everything=True).findings == (), name
        assert audit(tmp_path / name, sample=3, kernel="reference").findings == (), name


def test_diverged_networks_are_audited_like_any_other(tmp_path, no_pages):
    record = Record(u=np.sin(0.1 * np.arange(300)), y=np.exp(0.2 * np.arange(300)))
    long = Record(u=np.sin(0.1 * np.arange(8000)), y=np.exp(0.2 * (np.arange(8000) % 300)))
    law = ReservoirLaw(order=3, output_delays=Choice((0, 1)), norm=0.1, feedback_scale=0.0, input_scale=0.01)
    result = identify(record, long, law=law, epsilon=0.3, beta=0.05, washout=100, run=tmp_path / "run", committee=2)
    assert 0 < result.certificate.failures < result.certificate.networks, "the test needs some networks that diverge"
    assert audit(tmp_path / "run", everything=True).findings == ()
    table = result.table
    hidden = int(table["index"][table["status"] == 1][0])
    sql(tmp_path / "run", f"UPDATE rows SET status = 0, score_0 = 1.0, score_1 = 9e8 WHERE number = {hidden}")
    assert f"ledger.sqlite, network {hidden} of the search" in found(tmp_path / "run", everything=True)


def test_all_networks_diverged(tmp_path, no_pages):
    record = Record(u=np.sin(0.1 * np.arange(300)), y=np.exp(0.2 * np.arange(300)))
    long = Record(u=np.sin(0.1 * np.arange(8000)), y=np.exp(0.2 * (np.arange(8000) % 300)))
    options = {"order": 3, "networks": 1, "beta": 0.5, "seed": 3}
    unclipped = dataclasses.replace(broad(), clip=False)
    result = identify(record, long, law=unclipped, **options, run=tmp_path / "run")
    assert result.model is None, "the test needs all networks to diverge"
    assert audit(tmp_path / "run", everything=True).findings == ()


# The command ----------------------------------------------------------------------------------------------------


def test_the_command(run, tmp_path):
    passed = json.loads(echobound("audit", run, "--json", "--sample", "3", "--seed", "5", cwd=tmp_path).stdout)
    assert (passed["passed"], passed["retrained"], passed["seed"]) == (True, 8, 5)
    better_winner(run)
    said = echobound("audit", run, "--quiet", cwd=tmp_path, code=1).stdout
    assert "of the search: expected FIT" in said
    assert "finding" in said
    assert "not a run folder" in echobound("audit", tmp_path, cwd=tmp_path, code=2).stderr
