"""RunFolder: all that a run leaves behind, complete in itself, and the one reader of it.

Each file is read once and held against the others. A fault is raised, or collected (`Faults`): the audit is a reader that
collects. The ledger is opened and checked once: by the writer for as long as it writes, else on the first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from echobound.arrays import Rows, Signal
from echobound.candidates import Candidates
from echobound.data.experiments import Experiments, records_digest
from echobound.data.record import Record
from echobound.draws import SEARCH, VERIFICATION
from echobound.errors import DamagedFile, EchoboundError, InputError, RunError
from echobound.files import digest, jsonable, read_json, write_json
from echobound.kernels import Kernel, Status, compiled_dynamics
from echobound.network import Committee, EchoStateNetwork, respond
from echobound.plan import DescribedLaw, SettledPlan, Validation
from echobound.runs.derivation import by_family, certificate_of, networks_due, search_rows
from echobound.runs.drawn import candidates_of
from echobound.runs.faults import Faults, Unusable
from echobound.runs.ledger import Ledger, rows_digest
from echobound.scenario import Certificate, Generalisation, Patience, ranking
from echobound.scores import Score, get_score

__all__ = ["RunFolder", "make_folder"]

NAMED = 5  # rows that are named one by one
T = TypeVar("T")


def make_folder(path: Path, why: str) -> None:
    """Make a folder for a run; one that holds anything else is refused, and `why` says why it is no run folder."""
    leftovers = (".plan.json.",)  # temporary name of the first file, left behind by a killed process
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = not all(file.name.startswith(leftovers) for file in path.iterdir())
    except OSError as error:
        raise RunError(f"cannot make the folder {path} ({error.strerror}): choose another") from None
    if occupied:
        raise RunError(f"{path} is not empty and {why}: nothing was changed; choose another")


def _part(file: str) -> Callable[[Callable[[RunFolder], T]], cached_property[T]]:
    """A part of the folder that is read once; one that cannot be read is reported once."""

    def reader(read: Callable[[RunFolder], T]) -> cached_property[T]:
        def value(self: RunFolder) -> T:
            if file in self._unusable:
                raise Unusable(f"{file} cannot be used")
            try:
                return read(self)
            except Unusable:
                raise
            except EchoboundError as error:
                if not self.faults.collect:
                    raise
                self._unusable.add(file)
                problem = error
                self.faults.attempt(file, lambda: _raise(problem))
                raise Unusable(f"{file} cannot be used") from None

        value.__doc__ = read.__doc__
        return cached_property(value)

    return reader


def _raise(error: EchoboundError) -> None:
    raise error


class RunFolder:
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

    def __init__(self, path: str | Path, faults: Faults | None = None) -> None:
        self.path = Path(path)
        self.faults = Faults(self.path) if faults is None else faults
        self.stored = True  # False for a run that is kept in memory alone
        self.outputs: dict[str, list[Signal]] = {}  # by model, on the scored samples of each fold, where at hand
        self._ledger: Ledger | None = None
        self._responses: dict[str, dict[str, list[tuple[Signal, Signal]]]] = {}
        self._unusable: set[str] = set()

    # Writing -------------------------------------------------------------------------------------------------------

    @classmethod
    @contextmanager
    def start(cls, path: str | Path | None, plan: SettledPlan, experiments: Experiments | None) -> Iterator[RunFolder]:
        """Start a run, or resume one of the same plan; the ledger is open for writing while inside.

        Parameters
        ----------
        path
            The folder; one with anything else in it is refused. None keeps the run in memory. ``{plan}`` in it becomes
            the first digits of the plan's digest.
        plan, experiments
            What will be done, and the data; None for candidates whose data are not stored.
        """
        folder = cls("" if path is None else str(path).replace("{plan}", plan.digest[:8]))
        folder.stored = path is not None
        if folder.stored and experiments is not None:
            _require_registered(plan.measures)
        if folder.has("plan.json"):
            folder._require_same_plan(plan)
        elif folder.stored:
            make_folder(folder.path, "not a run folder")
            write_json(folder.path / "plan.json", plan.to_dict())
        folder.__dict__["plan"] = plan  # with its scores, which a user may have defined
        if experiments is not None:
            if folder.stored and (folder.path / "data.npz").exists():
                _ = folder.experiments  # they must still be those of the plan
            elif folder.stored:
                experiments.save(folder.path / "data.npz")
            folder.__dict__["experiments"] = experiments
        with folder.writing():
            if folder.has("certificate.json"):
                folder._require_as_left()
            yield folder

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
        if self.plan.at_will and self.has("generalisation.json"):
            if drawn < networks_due(self.plan, self.search["scores"][:, 0]):
                raise RunError(
                    f"the search of {self.path} was ended at {drawn} networks, and its test data were opened then: to"
                    " resume it would be to choose by them; nothing was changed; start another run with other data"
                )
        for name in ("certificate", "search", "_rows"):  # about to change
            self.__dict__.pop(name, None)

    @contextmanager
    def writing(self) -> Iterator[Ledger]:
        """The ledger, open for writing; nobody else writes meanwhile, and all rows are read through it."""
        path = self.path / "ledger.sqlite" if self.stored else None
        with Ledger(path, self.plan.digest, self.plan.scores) as ledger:
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
        self, certificate: Certificate, model: EchoStateNetwork | None = None, committee: Committee | None = None
    ) -> None:
        """Keep the models and, last, the certificate."""
        self.__dict__ |= {"certificate": certificate, "model": model, "committee": committee}
        if not self.stored:
            return
        if model is not None:
            model.save(self.path / "model.npz")
        if committee is not None:
            committee.save(self.path / "committee.npz")
        write_json(self.path / "certificate.json", certificate.to_dict())

    def record_fresh(self, count: int) -> None:
        """Record that the first `count` fresh rows of each family are the verification."""
        rows = np.concatenate([part[:count] for part in by_family(self.plan, self.rows(VERIFICATION))])
        write_json(self.path / "verification.json", {"fresh": count, "rows": rows_digest(rows)})
        self.__dict__["fresh"] = rows

    def record_generalisation(self, second: Generalisation, given: Sequence[Record] = ()) -> None:
        """Write the second certificate, after the test data if they were given for it."""
        self.__dict__["generalisation"] = second
        if not self.stored:
            return
        if given:
            Experiments((), (), tuple(given)).save(self.path / "test.npz")
        write_json(self.path / "generalisation.json", second.to_dict())

    # Reading -------------------------------------------------------------------------------------------------------

    def has(self, file: str) -> bool:
        """Whether a file is there."""
        return self.stored and (self.path / file).exists()

    def json(self, file: str) -> dict[str, Any]:
        """A JSON file as it stands."""
        return read_json(self.path / file)

    @_part("plan.json")
    def plan(self) -> SettledPlan:
        """What was planned."""
        if not self.has("plan.json"):
            raise RunError(f"{self.path} is not a run folder (it has no plan.json): give the folder of a run")
        content = self.json("plan.json")
        expected = digest({name: value for name, value in content.items() if name != "digest"})
        self.faults.require("plan.json", "digest", expected=expected, found=content.get("digest", "nothing"))
        try:
            return SettledPlan.from_dict({**content, "digest": expected})
        except InputError as error:
            raise DamagedFile(self.path / "plan.json", "content", str(error)) from None

    @property
    def stores_data(self) -> bool:
        """Whether data and models are in the folder; any estimator's are not, since they may be anything."""
        return not isinstance(self.plan.law[0], DescribedLaw)

    @_part("data.npz")
    def experiments(self) -> Experiments:
        """The records as used, after checking that they are those of the plan."""
        if not self.stores_data:
            raise RunError(f"{self.path} does not hold its data: only what was drawn and what it scored is stored")
        experiments = Experiments.load(self.path / "data.npz")
        why = "data.npz does not hold the data of this plan"
        self.faults.require("plan.json", "data", expected=experiments.digest, found=self.plan.data, why=why)
        self._require_folds(experiments)
        return experiments

    def _require_folds(self, experiments: Experiments) -> None:
        """What was trained on and scored must be what the data and the washout give."""
        plan = self.plan
        derived = self.faults.attempt(
            "plan.json, folds", lambda: Validation(experiments, plan.blocks, plan.washout).folds
        )
        if derived is not None and derived != plan.folds:
            ours, theirs = (plan.replaced(folds=folds).to_dict()["folds"] for folds in (derived, plan.folds))
            self.faults.report("plan.json", "folds", ours, theirs)

    def candidates(self, kernel: str | Kernel = "cpu") -> tuple[Candidates, ...]:
        """What was drawn, of each family, on the stream of the search; made again from plan and data."""
        # Without its data, this says what cannot be redone.
        return candidates_of(self.plan, self.experiments if self.stores_data else Experiments((), ()), kernel)

    @_part("ledger.sqlite")
    def _rows(self) -> dict[int, Rows]:
        """All rows by stream, family after family, in the order of their index."""
        if self._ledger is not None:
            return self._read_rows(self._ledger)
        with Ledger(self.path / "ledger.sqlite", self.plan.digest, self.plan.scores, write=False) as ledger:
            return self._read_rows(ledger)

    def _read_rows(self, ledger: Ledger) -> dict[int, Rows]:
        streams, families = (SEARCH, VERIFICATION), [family.number for family in self.plan.families]
        for stream, family in sorted(set(ledger.counts()) - {(s, f) for s in streams for f in families}):
            found = f"some of stream {stream}, family {family}"
            self.faults.report("ledger.sqlite", "", "rows of search and verification", found)
        return {s: np.concatenate([ledger.rows(s, family) for family in families]) for s in streams}

    def rows(self, stream: int = SEARCH) -> Rows:
        """Rows of a stream, family after family, in the order of their index."""
        if self._ledger is not None:  # what is being written is read anew
            self.__dict__.pop("_rows", None)
        return self._rows[stream]

    @_part("rows of the search")
    def search(self) -> Rows:
        """The rows that the certificate speaks of, family after family."""
        rows, plan = self.rows(SEARCH), self.plan
        stated = None
        if plan.at_will and self.has("certificate.json"):
            networks = (self.faults.attempt("certificate.json", lambda: self.json("certificate.json")) or {}).get(
                "networks"
            )
            stated = networks if isinstance(networks, int) else None
        complete = [self._require_complete(number, part, stated) for number, part in enumerate(by_family(plan, rows))]
        found = search_rows(plan, rows[rows["index"] >= 0], stated)
        self._require_status("search", found)
        self.complete = all(complete)
        return found

    def _require_complete(self, number: int, rows: Rows, stated: int | None) -> bool:
        """Whether there is a row for each network of a family, and none beyond."""
        plan = self.plan
        due = networks_due(plan, rows["scores"][:, 0])
        due = stated or due if plan.at_will else due
        # Patience may learn late that it was enough, and a search stopped at will may be resumed: rows beyond are fine.
        beyond = len(rows) > due and not (isinstance(plan.stop, Patience) or plan.at_will)
        missing = np.setdiff1d(np.arange(due), rows["index"])
        if beyond or len(missing):
            said = [f"{len(rows)} rows"] + ([f"none of network {missing[0]}"] if len(missing) else [])
            of = f" of {plan.families[number].name}" if len(plan.families) > 1 else ""
            expected = f"one for each of {due} networks{of}"
            self.faults.report("ledger.sqlite", "rows of the search", expected, ", ".join(said))
        return not len(missing)

    def _require_status(self, name: str, rows: Rows) -> None:
        diverged = rows["status"] == Status.DIVERGED
        wrong = ~np.isin(rows["status"], [int(status) for status in Status])
        wrong |= diverged & np.isfinite(rows["scores"]).any(axis=1)
        for row in rows[wrong][:NAMED]:
            found = f"status {row['status']}, score {row['scores'][0]:.9g}"
            self.faults.report(
                "ledger.sqlite", f"network {row['index']} of the {name}", "no score where it diverged", found
            )

    @_part("fresh rows")
    def fresh(self) -> Rows:
        """The fresh rows of all finished verifications, family after family; there are as many of each family."""
        rows = self.rows(VERIFICATION)
        parts = by_family(self.plan, rows)
        if not self.has("verification.json"):
            if len(rows):
                self.faults.notes.append(
                    f"{len(rows)} fresh networks are in the ledger, but no verification counts them"
                )
            return rows[:0]
        stored = self.faults.attempt("verification.json", lambda: self.json("verification.json")) or {}
        count, most = stored.get("fresh"), min(len(part) for part in parts)
        if not isinstance(count, int) or not 0 <= count <= most:
            self.faults.report("verification.json", "fresh", f"at most the {most} fresh rows of the ledger", count)
            count = most
        found = np.concatenate([part[:count] for part in parts])
        if (found["index"] != np.tile(np.arange(count), len(parts))).any():
            others = f"others, up to {found['index'].max()}"
            self.faults.report("ledger.sqlite", "fresh rows", f"networks 0 to {count - 1}", others)
        self.faults.compare(
            "verification.json", {"fresh": count, "rows": rows_digest(found)}, stored | {"fresh": count}
        )
        if len(rows) > len(found):
            more = len(rows) - len(found)
            self.faults.notes.append(f"{more} more fresh networks are in the ledger than verifications count")
        self._require_status("verification", found)
        return found

    @_part("model.npz")
    def model(self) -> EchoStateNetwork:
        """The network that was picked."""
        return EchoStateNetwork.load(self.path / "model.npz")

    @_part("committee.npz")
    def committee(self) -> Committee | None:
        """The best networks as one model; None if there is none."""
        return Committee.load(self.path / "committee.npz") if self.has("committee.npz") else None

    @property
    def models(self) -> dict[str, EchoStateNetwork | Committee]:
        """What simulates: the picked network and, where there is one, the committee; nothing if all diverged."""
        if self.certificate.winner is None or "model" not in self.certificate.digests:
            return {}
        return {"model": self.model} | ({} if self.committee is None else {"committee": self.committee})

    def respond(self, role: str, records: Sequence[Record]) -> dict[str, list[tuple[Signal, Signal]]]:
        """Measured and simulated outputs of each record, by model; computed once for each role."""
        if role not in self._responses:
            self._responses[role] = {
                name: respond(model, records, self.plan.horizon, dynamics=compiled_dynamics())
                for name, model in self.models.items()
            }
        return self._responses[role]

    @_part("certificate.json")
    def certificate(self) -> Certificate:
        """The certificate, every number of it derived again from plan, data, ledger and models."""
        stated = self.json("certificate.json")
        found = {name: value for name, value in stated.items() if name != "provenance"}
        before = len(self.faults.findings)
        derived = self.faults.attempt("certificate.json, what is claimed", self._derived)
        expected = self._planned() if derived is None else derived
        if derived is None:
            found = {name: found.get(name, "nothing") for name in expected}
        self.faults.compare("certificate.json", expected, found)
        if len(self.faults.findings) > before:
            raise Unusable("certificate.json does not follow")
        return Certificate.from_dict(stated, path=self.path / "certificate.json")

    def _derived(self) -> dict[str, Any] | None:
        """The certificate, all of it, without its provenance."""
        rows, plan = self.search, self.plan
        if not self.complete:
            return None
        digests = {"data": plan.data, "plan": plan.digest, "ledger": rows_digest(rows)}
        if self.stores_data:
            experiments = self.faults.attempt("data.npz", lambda: self.experiments)
            digests["data"] = plan.data if experiments is None else experiments.digest
            digests |= self._model_digests()
        derived = certificate_of(plan, rows, digests=digests).to_dict()
        del derived["provenance"]
        return derived

    def _model_digests(self) -> dict[str, str]:
        """Digests of the models in the folder; of one that should be there and cannot be read, that it should."""
        any_left, found = bool(self.ranked(1)), {"model": "", "committee": ""}
        if any_left and self.has("model.npz"):
            model = self.faults.attempt("model.npz", lambda: self.model)
            found["model"] = model.digest if model else ""
        if any_left and self.plan.committee and self.has("committee.npz"):
            committee = self.faults.attempt("committee.npz", lambda: self.committee)
            found["committee"] = committee.digest if committee else ""
        for name, wanted in (("model", any_left), ("committee", any_left and self.plan.committee > 0)):
            if wanted and not found[name]:
                found[name] = f"that of a {name}.npz"
        return found

    def _planned(self) -> dict[str, Any]:
        """What the plan alone says of the certificate."""
        plan = jsonable(self.plan.to_dict())
        fields = {name: plan[name] for name in ("seed", "epsilon", "beta", "bound", "rule", "horizon")}
        return {**fields, "law": plan.get("law", {}), "score": self.plan.scores[0], "blocks": self.plan.blocks}

    def ranked(self, count: int) -> list[int]:
        """Positions of the best networks in the search, the best first; diverged ones are not among them."""
        return ranking(self.search["scores"][:, 0], self.plan.measures[0].direction, count)

    @_part("generalisation.json")
    def generalisation(self) -> Generalisation | None:
        """The second certificate, every statement derived again from what was seen; None if there is none.

        What was seen is taken as stored, as the rows of the ledger are: an audit runs the models again.
        """
        certificate, file = self.certificate, "generalisation.json"
        if not self.has(file):
            return None
        found = Generalisation.from_dict(self.json(file), self.path / file)
        for part in ("model", "committee"):
            self.faults.require(
                file, f"digest of the {part}", expected=certificate.digests.get(part, ""), found=found.digests.get(part)
            )
        optimism = found.optimism
        stated = (found.horizon, optimism.score, optimism.direction, optimism.unit, optimism.validation)
        score = certificate.score, certificate.direction, certificate.unit, certificate.threshold
        self.faults.require(file, "optimism", expected=(certificate.horizon, *score), found=stated)
        _ = self.tested(found)
        return found

    def tested(self, second: Generalisation) -> tuple[Record, ...]:
        """The records that a second certificate speaks of: the run's own test data, or those given later."""
        own, wanted = self.experiments.test, second.digests.get("test")
        if own and records_digest(own) == wanted:
            return own
        later = Experiments.load(self.path / "test.npz").test
        why = "these are not the data of generalisation.json"
        self.faults.require("test.npz", "digest", expected=records_digest(later), found=wanted, why=why)
        return later


def _require_registered(scores: Sequence[Score]) -> None:
    """Whoever opens the folder later must find each score by its name."""
    for score in scores:
        if score != get_score(score.name):
            raise InputError(f"score {score.name!r} is not the one registered under that name: register_score it first")


def stated_of(content: Mapping[str, Any], *names: str) -> Any:
    """A value inside nested objects; None where there is none."""
    value: Any = content
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
