"""Ten runs of all kinds, small, whose numbers a redesign must not move.

``python tests/reference_runs.py record`` writes them to ``reference_runs.json``; `test_reference_runs.py` makes them
again and compares. Numbers are stored as hexadecimal text, so that equal means equal in every bit.
"""

import dataclasses
import hashlib
import json
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).with_suffix(".json")
PROSE = {"digest", "digests", "provenance", "law", "laws", "words", "schema_version", "statement", "not_stated", "says"}


def machine():
    """What the last bits depend on.

    Virtual machines may call very different processors by one name; what BLAS and the compiler choose their code by
    are the processor's abilities.
    """
    from echobound.runs.provenance import here

    place, versions = here(), {name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    named = ("cpu family", "model\t", "stepping", "flags", "Features", "CPU part")
    abilities = "\n".join(sorted({line for line in lines if line.startswith(named)}))
    found = {"processor": place.processor, "abilities": hashlib.sha256(abilities.encode()).hexdigest()[:16]}
    return found | {"machine": place.machine, **versions}


def exact(value):
    """A number that keeps all its bits in JSON."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    return float(value).hex()


def numbers(content, path=""):
    """Every number of a JSON value by its path; digests, laws and words are left out."""
    if isinstance(content, dict):
        found = {}
        for name, value in content.items():
            if name not in PROSE:
                found |= numbers(value, f"{path}/{name}")
        return found
    if isinstance(content, list | tuple):
        return {key: value for i, item in enumerate(content) for key, value in numbers(item, f"{path}/{i}").items()}
    return {path: content if content is None or isinstance(content, str) else exact(content)}


def weights(model):
    """SHA-256 of each array of a model."""
    _, arrays = model.content()
    return {name: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() for name, array in arrays.items()}


def table_of(rows):
    names = ("family", "index", "status", "order", "ridge")
    return {name: [exact(v) for v in rows[name]] for name in names} | {
        "scores": [[exact(v) for v in row] for row in rows["scores"]]
    }


def facts(result):
    """All numbers of an identification."""
    found = {
        "table": table_of(result.table),
        "certificate": numbers(result.certificate.to_dict()),
        "scores": numbers(result.network_scores),
        "model": weights(result.network),
    }
    if result.committee is not None:
        found["committee"] = [weights(member) for member in result.committee.members]
    if result.generalisation is not None:
        found["generalisation"] = numbers(result.generalisation.to_dict())
    return found


def unclipped(order):
    """The law broad as it was when these numbers were recorded."""
    from echobound.network import broad

    return dataclasses.replace(broad(order), clip=False)


def one_order(data, folder):
    from echobound import identify

    return facts(identify(data[0], data[1], law="paper", order=30, networks=40, bound="exact", beta=1e-3))


def families(data, folder):
    from echobound import identify, verify

    result = identify(data[0], data[1], law="paper", order=[10, 20], networks=24, beta=1e-2, run=folder / "families")
    return facts(result) | {"verification": numbers(verify(result.run, fresh=12))}


def blocks(data, folder):
    from echobound import identify

    return facts(identify(data[0], law=unclipped(25), networks=12, beta=1e-1, seed=3))


def patience(data, folder):
    from echobound import identify

    options = {"law": "paper", "order": 12, "epsilon": 0.3, "beta": 1e-3, "stop": "patience:15", "discarded": 2}
    return facts(identify(data[0], data[1], **options))


def joint(data, folder):
    from echobound import identify

    options = {"law": "paper", "order": 12, "epsilon": 0.3, "beta": 1e-2}
    return facts(identify(data[0], data[1], scores=("fit", "rmse", "peak"), joint=True, **options))


def at_will(data, folder):
    from echobound import identify, verify

    options = {"law": "paper", "order": 12, "epsilon": 0.3, "beta": 1e-2, "stop": "anytime:10", "target": 60.0}
    result = identify(data[0], data[1], run=folder / "will", **options)
    return facts(result) | {"verification": numbers(verify(result.run, fresh=10))}


def renewed(data, folder):
    from echobound import identify, renew

    options = {"law": "paper", "order": 12, "networks": 20, "beta": 1e-2, "seed": 5}
    first = identify(data[0], data[1], run=folder / "first", **options)
    return facts(renew(first.run, data[2], data[3], closed_loop=False, updates=3, into=folder / "second"))


def committee(data, folder):
    from echobound import identify, verify

    options = {"networks": 15, "beta": 1e-1, "law": unclipped(40), "committee": 4, "washout": 60, "horizon": 3}
    result = identify(data[0], data[1], run=folder / "committee", **options)
    return facts(result) | {"verification": numbers(verify(result.run, fresh=8))}


def test_data(data, folder):
    from echobound import identify

    options = {"law": "paper", "order": 15, "networks": 20, "beta": 1e-2}
    return facts(identify(data[0], data[1], test=data[2:], criterion="fit>20", run=folder / "test", **options))


def estimator(data, folder):
    from sklearn.ensemble import ExtraTreesRegressor

    from echobound.estimators import CertifiedSearch

    u, y = data[0].u, data[0].y[:, 0]
    X = np.concatenate([u[2:], u[1:-1], u[:-2], y[1:-1, None]], axis=1)
    search = CertifiedSearch(
        ExtraTreesRegressor(5, max_depth=4), epsilon=0.3, beta=1e-2, stop="patience:6", discarded=1, random_state=4
    ).fit(X, y[2:])
    return {
        "table": {name: [exact(v) for v in search.results_[name]] for name in ("index", "score", "rank", "diverged")},
        "certificate": numbers(search.certificate_.to_dict()),
        "best": [exact(search.best_score_), exact(search.best_index_)],
        "model": hashlib.sha256(search.predict(X).tobytes()).hexdigest(),
    }


KINDS = (one_order, families, blocks, patience, joint, at_will, renewed, committee, test_data, estimator)


def run(kind):
    """Make one of the runs."""
    from echobound import ph_experiment

    data = ph_experiment(samples=(500, 350, 450, 320), seed=1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(data, Path(folder))


if __name__ == "__main__":
    if sys.argv[1:] != ["record"]:
        sys.exit("usage: python tests/reference_runs.py record")
    content = {"machine": machine(), "runs": {kind.__name__: run(kind) for kind in KINDS}}
    RECORDED.write_text(json.dumps(content, indent=1) + "\n")
    print(*(f"{name}: {len(facts['certificate'])} numbers" for name, facts in content["runs"].items()), sep="\n")
