"""RunFolder: everything that a run leaves behind, complete in itself: started, written and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from echobound.data.experiments import Experiments
from echobound.data.record import Record
from echobound.diagnostics.linear import Linear
from echobound.diagnostics.verdict import Verdict
from echobound.draws import VERIFICATION
from echobound.errors import InputError, RunError
from echobound.files import jsonable, write_json
from echobound.network import Committee, of_run
from echobound.plan import SettledPlan
from echobound.plan.laws import measures_of
from echobound.runs.assessed import FILE, content_of, read_assessment
from echobound.runs.assessment import Assessment, assess
from echobound.runs.delivery import Delivery
from echobound.runs.derivation import by_family, networks_due
from echobound.runs.diagnosing import Diagnostics
from echobound.runs.ledger import Ledger, rows_digest
from echobound.runs.lock import NAME as LOCK
from echobound.runs.lock import lock
from echobound.runs.reader import RunReader
from echobound.runs.rows import FILES
from echobound.scenario import Certificate, Generalisation


def make_folder(path: Path, why: str) -> None:
    """Make a folder for a run. A folder that holds anything else is refused; `why` says what it is not."""
    leftovers = (".plan.json.", LOCK)  # temporary name of the first file and the lock, left behind by a killed process
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = not all(file.name.startswith(leftovers) for file in path.iterdir())
    except OSError as error:
        raise RunError(f"cannot make the folder {path} ({error.strerror}): choose another") from None
    if occupied:
        raise RunError(f"{path} is not empty and {why}: nothing was changed; choose another")


class RunFolder(RunReader):
    """A run on disk: the plan first, then data, ledger, models, certificate and page.

    Parameters
    ----------
    path
        The folder.
    faults
        What to do about faults; the first one is raised if not given.

    Examples
    --------
    >>> RunFolder("no such folder").plan
    Traceback (most recent call last):
        ...
    echobound.errors.RunError: no such folder is not a run folder (it has no plan.json): give the folder of a run
    """

    @classmethod
    @contextmanager
    def start(cls, path: str | Path | None, plan: SettledPlan, experiments: Experiments | None) -> Iterator[RunFolder]:
        """Start a run, or resume one of the same plan; the ledger is open for writing while inside.

        A folder with anything else in it is refused; no path keeps the run in memory. ``{plan}`` in it becomes the
        first digits of the plan's digest. Of candidates whose data are not stored, `experiments` is None.
        """
        folder = cls("" if path is None else str(path).replace("{plan}", plan.digest[:8]))
        folder.stored = path is not None
        if folder.stored and experiments is not None:
            _require_registered(plan)
        with ExitStack() as held:
            release = None
            if folder.stored:
                # The lock first: of two that start here at once, one finds the plan of the other, or that it is in use.
                if not folder.has("plan.json"):
                    make_folder(folder.path, "not a run folder")
                release = lock(folder.path)
                held.callback(release)
                folder._begin(plan)
            folder.__dict__["plan"] = plan  # this one has the scores themselves, which may be the user's own
            if experiments is not None:
                if folder.stored and (folder.path / "data.npz").exists():
                    _ = folder.experiments  # they must still be those of the plan
                elif folder.stored:
                    experiments.save(folder.path / "data.npz")
                folder.__dict__["experiments"] = experiments
            with folder.writing(release):
                if folder.has("certificate.json"):
                    folder._require_as_left()
                yield folder

    def _begin(self, plan: SettledPlan) -> None:
        """Check the plan that is there, or record this one; only while the lock is held."""
        if self.has("plan.json"):
            self._require_same_plan(plan)
        else:
            make_folder(self.path, "not a run folder")  # again: somebody may have begun meanwhile
            write_json(self.path / "plan.json", plan.to_dict())
        for left in self.path.glob(".*.????????"):  # temporary files of a process that was killed
            if left.name[1:-9] in FILES:
                left.unlink(missing_ok=True)

    def _require_same_plan(self, plan: SettledPlan) -> None:
        ours, theirs = plan.to_dict(), self.plan.to_dict()
        names = [name for name in {**ours, **theirs} if name not in ("digest", "rule")]
        differs = [name for name in names if jsonable(ours.get(name)) != jsonable(theirs.get(name))]
        if "law" in differs and not self.stores_data:  # an estimator may differ in one parameter among many
            law, old = jsonable(ours["law"]), jsonable(theirs["law"])
            parts = ", ".join(part for part in {**old, **law} if law.get(part) != old.get(part))
            differs[differs.index("law")] = f"law ({parts})"
        if "data" in differs and set(differs) <= {"data", "folds"}:  # folds follow from the length of the data
            raise RunError(
                f"the data have changed since the plan of {self.path} was recorded (digest {theirs['data'][:8]}, now"
                f" {ours['data'][:8]}): nothing was changed; give the same data to resume, or choose another folder"
            )
        if differs:
            raise RunError(
                f"{self.path} holds a run of another plan (other {', '.join(differs)}): nothing was changed; choose"
                " another folder with --run, or give the options of that run to resume it"
            )

    def _require_as_left(self) -> None:
        """What was certified must still follow; once its test data were opened, a search must not be resumed."""
        _ = self.certificate
        drawn = len(self.search)
        opened = self.plan.at_will and self.has("generalisation.json")
        if opened and drawn < networks_due(self.plan, self.search["scores"][:, 0]):
            raise RunError(
                f"the search of {self.path} was ended at {drawn} networks, and its test data were opened then: to"
                " resume it would be to choose by them; nothing was changed; start another run with other data"
            )
        for name in ("certificate", "stated", "search", "_rows", "delivery"):  # they are about to change
            self.__dict__.pop(name, None)

    @contextmanager
    def writing(self, release: Callable[[], None] | None = None) -> Iterator[Ledger]:
        """The ledger, open for writing; nobody else writes meanwhile, and all rows are read through it.

        `release` lets go of the lock afterwards, where it is held already.
        """
        path = self.path / "ledger.sqlite" if self.stored else None
        with Ledger(path, self.plan.digest, self.plan.scores, release=release) as ledger:
            self._ledger = ledger
            try:
                yield ledger
            finally:
                self._ledger = None

    @property
    def ledger(self) -> Ledger:
        """The ledger while it is open for writing."""
        if self._ledger is None:
            raise RunError(f"the ledger of {self.path} is not open for writing")
        return self._ledger

    def finish(
        self,
        certificate: Certificate,
        picked: Any = None,
        best: Committee | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        """Keep the models, the one that is delivered as ``model.npz``, and, last, the certificate."""
        content = certificate.to_dict()
        self.__dict__.pop("model", None)
        self.__dict__ |= {"certificate": certificate, "stated": content}
        picked, best = of_run(picked, certificate), of_run(best, certificate)
        self.__dict__ |= {"picked": picked, "best": best, "delivery": delivery}
        if not self.stored:
            return
        beside = best is not None and delivery is not None and delivery.delivered == "committee"
        models: dict[str, Any] = {"model.npz": best if beside else picked}
        models |= {"network.npz": picked if beside else None, "committee.npz": None if beside else best}
        if self._certifies_others(certificate):
            # Of a search that was continued. Without it the run is one to be resumed; with it and other models beside
            # it, as a kill between the two would leave them, it would be damaged.
            (self.path / "certificate.json").unlink()
        for file, model in models.items():
            if model is None:
                (self.path / file).unlink(missing_ok=True)  # of a search that was continued
            else:
                model.save(self.path / file)
        write_json(self.path / "certificate.json", content)

    @cached_property
    def assessment(self) -> Assessment | None:
        """What the model is worth: read from its file, or made where that is not there; None where no data are stored.

        It is made again where the folder has other test data than the file is about.
        """
        if not self.stores_data:
            return None
        stored = read_assessment(self, self.path / FILE) if self.has(FILE) else None
        return assess(self) if stored is None else stored

    @property
    def verdict(self) -> Verdict | None:
        """What the delivered model is worth, in a word, with reasons and what to do next."""
        return None if self.assessment is None else self.assessment.verdict

    @property
    def linear(self) -> Linear | None:
        """The linear model beside it."""
        return None if self.assessment is None else self.assessment.linear

    @property
    def diagnostics(self) -> Diagnostics:
        """What diagnostics say of the delivered model, computed when it is asked for."""
        return Diagnostics(self)

    def record_assessment(self) -> Assessment | None:
        """Assess the delivered model as the folder is now, and keep it."""
        self.__dict__.pop("assessment", None)
        found = assess(self) if self.stores_data else None
        self.__dict__["assessment"] = found
        if found is not None and self.stored:
            write_json(self.path / FILE, content_of(self, found))
        return found

    def _certifies_others(self, certificate: Certificate) -> bool:
        """Whether the folder has a certificate of other models or rows than this one."""
        if not self.has("certificate.json"):
            return False
        return bool(self.json("certificate.json").get("digests") != jsonable(certificate.digests))

    def record_fresh(self, count: int, before: int | None = None) -> None:
        """Record that the first `count` fresh rows of each family are the verification.

        `before` is how many there were when it began, and says that it has not ended: whoever starts it again resumes
        it.
        """
        rows = np.concatenate([part[:count] for part in by_family(self.plan, self.rows(VERIFICATION))])
        unfinished = {} if before is None else {"before": before}
        write_json(self.path / "verification.json", {"fresh": count, "rows": rows_digest(rows), **unfinished})
        self.__dict__["fresh"], self.verified = rows, count if before is None else before

    def fresh_due(self, fresh: int) -> int:
        """How many fresh networks of each family there are after so many were added to those verified before.

        None that was ever drawn is left out: a verification that was interrupted has drawn some, and to start again
        without them would be to choose among outcomes.
        """
        counted, indices = len(self.fresh) // len(self.plan.families), self.rows(VERIFICATION)["index"]
        drawn = int(indices.max()) + 1 if len(indices) else 0
        return max(self.verified + fresh, counted, drawn)

    def record_generalisation(self, second: Generalisation, given: Sequence[Record] = ()) -> None:
        """Write the second certificate, after the test data if they were given for it."""
        self.__dict__["generalisation"] = second
        if not self.stored:
            return
        if given:
            Experiments((), (), tuple(given)).save(self.path / "test.npz")
        write_json(self.path / "generalisation.json", second.to_dict())


def _require_registered(plan: SettledPlan) -> None:
    """Whoever opens the folder later must find each score by its name."""
    for score, found in zip(plan.measures, measures_of(plan.law[0], plan.scores), strict=True):
        if score != found:
            raise InputError(f"score {score.name!r} is not the one registered under that name: register_score it first")
