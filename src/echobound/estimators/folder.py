"""SearchFolder: what a search over any estimator leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from echobound.arrays import Rows
from echobound.errors import DamagedFile, InputError, RunError
from echobound.estimators.plan import SearchPlan
from echobound.files import read_json, write_json
from echobound.runs.derivation import networks_due, statements_of
from echobound.runs.folder import make_folder
from echobound.runs.ledger import Ledger, rows_digest
from echobound.scenario import Certificate, certify
from echobound.scores import Score

__all__ = ["SearchFolder", "certificate_of", "draws_of"]


class SearchFolder:
    """A `CertifiedSearch` on disk: the plan first, then a ledger with a row for each draw, and the certificate.

    Neither data nor estimators are stored, since both may be anything; the plan names them by digest and by parameters.
    Whoever has them makes any draw again with `draw_estimator`, or all of it with `CertifiedSearch`.

    Parameters
    ----------
    path
        The folder.

    Examples
    --------
    >>> SearchFolder("no such folder").certificate
    Traceback (most recent call last):
        ...
    echobound.errors.RunError: no such folder is not the folder of a search (it has no plan.json): give the one that was
    given as run
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def start(cls, path: str | Path, plan: SearchPlan) -> SearchFolder:
        """Start a search, or go on with one of the same plan; a folder with anything else in it is refused."""
        folder = cls(path)
        if (folder.path / "plan.json").exists():
            ours, theirs = plan.to_dict(), folder.plan.to_dict()
            differs = [name for name in ours if ours[name] != theirs[name] and name not in ("digest", "rule")]
            if differs:
                raise RunError(
                    f"{path} holds a search of another plan (other {', '.join(differs)}): nothing was changed; choose"
                    " another folder, or give what that search was given to go on with it"
                )
            if (folder.path / "certificate.json").exists():
                _ = folder.certificate  # what was certified must still follow from the folder
            return folder
        make_folder(folder.path, "holds no search")
        write_json(folder.path / "plan.json", plan.to_dict())
        return folder

    @cached_property
    def plan(self) -> SearchPlan:
        """What was planned."""
        path = self.path / "plan.json"
        if not path.exists():
            raise RunError(
                f"{self.path} is not the folder of a search (it has no plan.json): give the one that was given as run"
            )
        try:
            return SearchPlan.from_dict(read_json(path))
        except InputError as error:
            raise DamagedFile(path, "content", str(error)) from None

    def ledger(self, *, write: bool = False) -> Ledger:
        """The ledger, for reading unless said otherwise."""
        return Ledger(self.path / "ledger.sqlite", self.plan.digest, [self.plan.score], write=write)

    @property
    def rows(self) -> Rows:
        """A row for each draw that the certificate speaks of, in the order of their index."""
        with self.ledger() as ledger:
            rows = ledger.rows()
        return rows[: draws_of(self.plan, rows)]

    @property
    def certificate(self) -> Certificate:
        """The certificate, every number of it derived again from plan and ledger."""
        path, plan, rows = self.path / "certificate.json", self.plan, self.rows
        certificate = Certificate.from_dict(read_json(path), path=path)
        for part, value in {"data": plan.data, "plan": plan.digest}.items():
            if certificate.digests.get(part) != value:
                raise DamagedFile(path, f"digest of the {part}", "plan.json has another")
        if certificate.digests.get("ledger") != rows_digest(rows):
            raise DamagedFile(self.path / "ledger.sqlite", "rows", "they are not those that were certified")
        certificate.require_equal(certificate_of(plan, rows, certificate.digests), path)
        return certificate

    def finish(self, certificate: Certificate) -> None:
        """Write the certificate, last."""
        write_json(self.path / "certificate.json", certificate.to_dict())


def draws_of(plan: SearchPlan, rows: Rows) -> int:
    """How many draws the search has, or has to have as far as these rows say."""
    return networks_due(plan, rows["scores"][:, 0], "max")


def certificate_of(
    plan: SearchPlan, rows: Rows, digests: Mapping[str, str], provenance: Mapping[str, Any] | None = None
) -> Certificate:
    """What the rows of a finished search are worth, by what was planned."""
    scores, score = rows["scores"][:, 0], Score(plan.score, max, "max")  # its name and direction; the scores are there
    return certify(
        scores,
        score=score.name,
        direction=score.direction,
        epsilon=plan.epsilon,
        beta=plan.beta,
        bound=plan.bound,
        law=plan.law,
        seed=plan.seed,
        digests=digests,
        statements=statements_of(plan, scores, score),
        provenance=provenance,
    )
