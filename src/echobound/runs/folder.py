"""RunFolder: all that a run leaves behind, complete in itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Rows
from echobound.runs.ledger import Ledger, rows_digest
from echobound.plan.plan import Plan
from echobound.runs.derivation import by_family, certificate_of, networks_due, scoring_of, search_rows, stops_at_will
from echobound.data.experiments import Experiments, records_digest
from echobound.data.record import Record
from echobound.draws import SEARCH, VERIFICATION
from echobound.errors import DamagedFile, InputError, RunError
from echobound.files import read_json, write_json
from echobound.kernels.problem import Problem
from echobound.network.committee import Committee
from echobound.network.model import EchoStateNetwork
from echobound.scenario import Certificate, Generalisation, QuantileInterval, RankBand
from echobound.scores import get_score

__all__ = ["RunFolder", "make_folder"]

RANKS = 50  # best networks whose limits hold together, so that one may be chosen after a look


def make_folder(path: Path, why: str) -> None:
    """Make a folder that is empty but for what a killed process left; of one that is not, `why` says what it is not."""
    leftovers = (".plan.json.", ".experiment.json.")  # temporary names of the first file that is written: not missed
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = not all(file.name.startswith(leftovers) for file in path.iterdir())
    except OSError as error:
        raise RunError(f"cannot make the folder {path} ({error.strerror}): choose another") from None
    if occupied:
        raise RunError(f"{path} is not empty and {why}: nothing was changed; choose another")


class RunFolder:
    """A run on disk: the plan first, then data, ledger, models, certificate and page.

    Parameters
    ----------
    path
        The folder.

    Examples
    --------
    >>> RunFolder("no such folder").plan
    Traceback (most recent call last):
        ...
    echobound.errors.RunError: no such folder is not a run folder (it has no plan.json): give the folder of a run
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def start(cls, path: str | Path, plan: Plan, experiments: Experiments) -> RunFolder:
        """Start a run, or go on with one of the same plan; a folder with anything else in it is refused."""
        folder = cls(path)
        if (folder.path / "plan.json").exists():
            found = folder.plan
            if found.digest != plan.digest:
                ours, theirs = plan.to_dict(), found.to_dict()
                follow = ("digest", "rule")
                names = [name for name in {**ours, **theirs} if name not in follow]
                differs = [name for name in names if ours.get(name) != theirs.get(name)]
                if "data" in differs and set(differs) <= {"data", "folds"}:  # folds follow from the length of the data
                    raise RunError(
                        f"the data have changed since the plan of {path} was recorded (digest {theirs['data'][:8]}, now"
                        f" {ours['data'][:8]}): nothing was changed; give the same data to go on, or choose another"
                    )
                raise RunError(
                    f"{path} holds a run of another plan (other {', '.join(differs)}): nothing was changed; choose"
                    " another folder with --run, or give the options of that run to go on with it"
                )
        else:
            make_folder(folder.path, "not a run folder")
            write_json(folder.path / "plan.json", plan.to_dict())
        if (folder.path / "data.npz").exists():
            _ = folder.experiments  # they must still be those of the plan
        else:
            experiments.save(folder.path / "data.npz")
        if (folder.path / "certificate.json").exists():
            cls(path)._require_as_left()
        return folder

    def _require_as_left(self) -> None:
        """What was certified must still follow; once its test data were opened, a search must not go on."""
        _ = self.certificate
        due = networks_due(self.plan, self.search["scores"][:, 0], get_score(self.plan.scores[0]).direction)
        if stops_at_will(self.plan) and (self.path / "generalisation.json").exists() and len(self.search) < due:
            raise RunError(
                f"the search of {self.path} was ended at {len(self.search)} networks, and its test data were opened"
                " then: to go on would be to choose by them; nothing was changed; start another run, with other data"
            )

    @cached_property
    def plan(self) -> Plan:
        """What was planned."""
        path = self.path / "plan.json"
        if not path.exists():
            raise RunError(f"{self.path} is not a run folder (it has no plan.json): give the folder of a run")
        content = read_json(path)
        if content.get("kind") == "estimator":
            raise RunError(
                f"{self.path} is the folder of a search over an estimator: open it with"
                " echobound.estimators.SearchFolder"
            )
        try:
            return Plan.from_dict(content)
        except InputError as error:
            raise DamagedFile(path, "content", str(error)) from None

    @cached_property
    def experiments(self) -> Experiments:
        """The records as used, after checking that they are those of the plan."""
        path = self.path / "data.npz"
        experiments = Experiments.load(path)
        if experiments.digest != self.plan.data:
            raise DamagedFile(path, "digest", "these are not the data of plan.json")
        return experiments

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """The problem on the search stream, for each family."""
        records = [*self.experiments.training, *self.experiments.validation]
        return self.plan.problems(records, [get_score(name) for name in self.plan.scores])

    def ledger(self, *, write: bool = False) -> Ledger:
        """The ledger, for reading unless said otherwise."""
        return Ledger(self.path / "ledger.sqlite", self.plan.digest, self.plan.scores, write=write)

    def rows(self, stream: int = SEARCH) -> Rows:
        """Rows of a stream, family after family, in the order of their index."""
        with self.ledger() as ledger:
            return np.concatenate([ledger.rows(stream, family) for family in range(len(self.plan.laws))])

    @cached_property
    def search(self) -> Rows:
        """The rows that the certificate speaks of, family after family."""
        stated, path = None, self.path / "certificate.json"
        if stops_at_will(self.plan) and path.exists():
            stated = Certificate.from_dict(read_json(path), path=path).networks
        return search_rows(self.plan, self.rows(SEARCH), stated)

    @property
    def verification(self) -> Rows:
        """The fresh rows that put it to the test, family after family: those of all verifications that were finished.

        There are as many of each family.
        """
        path = self.path / "verification.json"
        if not path.exists():
            return self.rows(VERIFICATION)[:0]
        stored, parts = read_json(path), by_family(self.plan, self.rows(VERIFICATION))
        fresh: int = stored["fresh"] if isinstance(stored.get("fresh"), int) else 0
        rows = np.concatenate([part[:fresh] for part in parts])
        indices = np.tile(np.arange(fresh), len(parts))
        if stored.get("rows") != rows_digest(rows) or not np.array_equal(rows["index"], indices):
            raise DamagedFile(self.path / "ledger.sqlite", "fresh rows", "they are not those of verification.json")
        return rows

    def record_verification(self, fresh: int) -> None:
        """Settle that the first `fresh` rows of each family of the verification stream are the test."""
        rows = np.concatenate([part[:fresh] for part in by_family(self.plan, self.rows(VERIFICATION))])
        write_json(self.path / "verification.json", {"fresh": fresh, "rows": rows_digest(rows)})

    @cached_property
    def model(self) -> EchoStateNetwork:
        """The network that was picked, after checking that it is the one of the certificate."""
        path, certificate = self.path / "model.npz", self.certificate
        model = EchoStateNetwork.load(path)
        if model.digest != certificate.digests.get("model"):
            raise DamagedFile(path, "digest", "this is not the model of certificate.json")
        return model

    @cached_property
    def committee(self) -> Committee | None:
        """The best networks as one model, after checking that it is the one named in the certificate; None if none."""
        path, stored = self.path / "committee.npz", self.certificate.digests.get("committee")
        if not stored:
            return None
        committee = Committee.load(path)
        if committee.digest != stored:
            raise DamagedFile(path, "digest", "this is not the committee of certificate.json")
        return committee

    @property
    def generalisation(self) -> Generalisation | None:
        """The second certificate, every statement derived again from what was seen; None if there is none.

        What was seen is taken as stored, as the rows of the ledger are: an audit runs the models again.
        """
        path, certificate = self.path / "generalisation.json", self.certificate
        if not path.exists():
            return None
        found = Generalisation.from_dict(read_json(path), path)
        expected = {name: certificate.digests.get(name, "") for name in ("model", "committee")}
        for part, value in expected.items():
            if found.digests.get(part) != value:
                raise DamagedFile(path, f"digest of the {part}", "certificate.json has another")
        optimism = found.optimism
        stated = (found.horizon, optimism.score, optimism.direction, optimism.unit, optimism.validation)
        score = certificate.score, certificate.direction, certificate.unit, certificate.threshold
        if stated != (certificate.horizon, *score):
            raise DamagedFile(path, "optimism", "certificate.json has another score, horizon or threshold")
        _ = self.tested(found)
        return found

    def tested(self, second: Generalisation) -> tuple[Record, ...]:
        """The records that a second certificate speaks of: the run's own test data, or those given later."""
        own, wanted = self.experiments.test, second.digests.get("test")
        if own and records_digest(own) == wanted:
            return own
        later = Experiments.load(self.path / "test.npz").test
        if records_digest(later) != wanted:
            raise DamagedFile(self.path / "test.npz", "digest", "these are not the data of generalisation.json")
        return later

    def record_generalisation(self, second: Generalisation, given: Sequence[Record] = ()) -> None:
        """Write the second certificate, after the test data if they were given for it."""
        if given:
            Experiments((), (), tuple(given)).save(self.path / "test.npz")
        write_json(self.path / "generalisation.json", second.to_dict())

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate, every number of it derived again from the ledger."""
        path = self.path / "certificate.json"
        expected = {"data": self.plan.data, "plan": self.plan.digest}
        certificate = Certificate.from_dict(read_json(path), path=path)
        for part, value in expected.items():
            if certificate.digests.get(part) != value:
                raise DamagedFile(path, f"digest of the {part}", f"this run folder's {part} has another")
        _ = self.experiments  # the data are part of what is certified
        if certificate.digests.get("ledger") != rows_digest(self.search):
            raise DamagedFile(self.path / "ledger.sqlite", "rows", "they are not those that were certified")
        try:
            certificate.require_equal(self._derived(certificate.digests), path)
        except InputError as error:
            raise DamagedFile(path, "content", str(error)) from None
        return certificate

    def _derived(self, digests: Mapping[str, str]) -> Certificate:
        scores = [get_score(name) for name in self.plan.scores]
        return certificate_of(self.plan, self.search, scores, digests=digests)

    def said_of_ranks(self, rank: int | None = None, quantile: float | None = None) -> dict[str, Any]:
        """What the scores say of a rank chosen after a look, and of a quantile, each as JSON under its name.

        Parameters
        ----------
        rank
            Among the 50 best; their limits hold together.
        quantile
            Level of the quantile, settled beforehand.
        """
        if rank is None and quantile is None:
            return {}
        if stops_at_will(self.plan) or len(self.plan.laws) > 1:
            raise InputError(
                "ranks and quantiles are stated for networks of one law, their number settled beforehand or found by"
                " patience: leave out the rank and the quantile"
            )
        scores, plan = self.search["scores"][:, 0], self.plan
        scoring, found = scoring_of(plan, get_score(plan.scores[0])), dict[str, Any]()
        if rank is not None:
            band = RankBand.of(scores, beta=plan.beta, ranks=min(RANKS, len(scores)), **scoring)
            words = band.words_of(rank)
            threshold, epsilon = band.thresholds[rank - 1], band.epsilons[rank - 1]
            found["rank"] = {"rank": rank, "threshold": threshold, "epsilon": epsilon, "words": words}
        if quantile is not None:
            found["quantile"] = QuantileInterval.of(scores, level=quantile, beta=plan.beta, **scoring).to_dict()
        return found

    def finish(
        self, model: EchoStateNetwork | None, certificate: Certificate, committee: Committee | None = None
    ) -> None:
        """Write the models and, last, the certificate."""
        if model is not None:
            model.save(self.path / "model.npz")
        if committee is not None:
            committee.save(self.path / "committee.npz")
        write_json(self.path / "certificate.json", certificate.to_dict())
