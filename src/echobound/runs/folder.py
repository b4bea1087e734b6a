"""RunFolder: everything that a run leaves behind, complete in itself, and its only reader.

Each file is read once and compared with the others. A fault is raised, or collected (`Faults`): the audit is a reader
that collects. The ledger is opened and checked once: by the writer for as long as it writes, otherwise on first use.
The module is long because no other one may know how the files of a run depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
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
from echobound.plan import DescribedLaw, SettledPlan, Validation, settle_questions
from echobound.runs.derivation import by_family, certificate_of, networks_due, search_rows
from echobound.runs.drawn import candidates_of
from echobound.runs.faults import Faults, Unusable
from echobound.runs.ledger import Ledger, rows_digest
from echobound.scenario import Certificate, Generalisation, Patience, Questions, ranking
from echobound.scores import Score, get_score

__all__ = ["RunFolder", "make_folder"]

NAMED = 5  # rows that are named one by one
CERTIFIED = {"ledger": "ledger.sqlite", "model": "model.npz", "committee": "committee.npz"}  # files by their digest
T = TypeVar("T")


def make_folder(path: Path, why: str) -> None:
    """Make a folder for a run. A folder that holds anything else is refused; `why` says what it is not."""
    leftovers = (".plan.json.",)  # temporary name of the first file, left behind by a killed process
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = not all(file.name.startswith(leftovers) for file in path.iterdir())
    except OSError as error:
        raise RunError(f"cannot make the folder {path} ({error.strerror}): choose another") from None
    if occupied:
        raise RunError(f"{path} is not empty and {why}: nothing was changed; choose another")


def _part(file: str) -> Callable[[Callable[[RunFolder], T]], cached_property[T]]:
    """A part of the folder that is read once; one that cannot be used is reported once."""

    def reader(read: Callable[[RunFolder], T]) -> cached_property[T]:
        def value(self: RunFolder) -> T:
            if read.__name__ in self._unusable:
                raise Unusable(f"{file} cannot be used")
            try:
                return read(self)
            except EchoboundError as error:
                if not self.faults.collect:
                    raise
                self._unusable.add(read.__name__)
                self.faults.collect_error(file, error)
                raise Unusable(f"{file} cannot be used") from None

        value.__doc__ = read.__doc__
        return cached_property(value)

    return reader


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
        self._responses: dict[str, dict[str, tuple[Signal, Signal]]] = {}
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
        folder.__dict__["plan"] = plan  # this one has the scores themselves, which may be the user's own
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
        opened = self.plan.at_will and self.has("generalisation.json")
        if opened and drawn < networks_due(self.plan, self.search["scores"][:, 0]):
            raise RunError(
                f"the search of {self.path} was ended at {drawn} networks, and its test data were opened then: to"
                " resume it would be to choose by them; nothing was changed; start another run with other data"
            )
        for name in ("certificate", "stated", "search", "_rows"):  # they are about to change
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
        content = certificate.to_dict()
        self.__dict__ |= {"certificate": certificate, "stated": content, "model": model, "committee": committee}
        if not self.stored:
            return
        if model is not None:
            model.save(self.path / "model.npz")
        if committee is not None:
            committee.save(self.path / "committee.npz")
        write_json(self.path / "certificate.json", content)

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
            self.faults.report("plan.json", "", "a plan that could have been settled", str(error), why=str(error))
            raise Unusable("plan.json cannot be used") from None

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
        if experiments.digest != self.plan.data:
            if not self.faults.collect:  # as with the models, the file to restore is named
                raise DamagedFile(self.path / "data.npz", "digest", "these are not the data of plan.json")
            self.faults.report("plan.json", "data", experiments.digest, self.plan.data)
        self._require_folds(experiments)
        return experiments

    def _require_folds(self, experiments: Experiments) -> None:
        """The folds of the plan must be those that follow from the data, the blocks and the washout."""
        plan = self.plan
        derived = self.faults.attempt(
            "plan.json, folds", lambda: Validation(experiments, plan.blocks, plan.washout).folds
        )
        if derived is not None and derived != plan.folds:
            ours, theirs = (plan.replaced(folds=folds).to_dict()["folds"] for folds in (derived, plan.folds))
            self.faults.report("plan.json", "folds", ours, theirs)

    def candidates(self, kernel: str | Kernel = "cpu") -> tuple[Candidates, ...]:
        """The candidates of each family on the stream of the search, made from plan and data."""
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
        """The rows that the certificate is about, family after family."""
        rows, plan = self.rows(SEARCH), self.plan
        stated = None
        if plan.at_will and self.has("certificate.json"):  # any number is as good, so it is the certificate's own
            networks = (self.faults.attempt("certificate.json", lambda: self.stated) or {}).get("networks")
            stated = networks if isinstance(networks, int) else None
        complete = [self._require_complete(number, part, stated) for number, part in enumerate(by_family(plan, rows))]
        found = search_rows(plan, rows[rows["index"] >= 0], stated)
        self._require_status("search", found)
        self.complete = all(complete)
        return found

    def _require_complete(self, number: int, rows: Rows, stated: int | None) -> bool:
        """Whether there is a row for each network of a family; too many rows are a fault as well."""
        plan = self.plan
        due = networks_due(plan, rows["scores"][:, 0])
        due = stated or due if plan.at_will else due
        # Patience may find out late that it had enough, and a search stopped at will may be resumed: both may leave
        # more rows than the certificate is about.
        too_many = len(rows) > due and not (isinstance(plan.stop, Patience) or plan.at_will)
        missing = np.setdiff1d(np.arange(due), rows["index"])
        if too_many or len(missing):
            of = f" of {plan.families[number].name}" if len(plan.families) > 1 else ""
            found = f"{len(rows)} rows" + (f", none of network {missing[0]}" if len(missing) else "")
            expected, why = f"one for each of {due} networks{of}", f"{found}, but {due} networks{of} are due"
            self.faults.report("ledger.sqlite", "rows of the search", expected, found, why)
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
            expected, why = (
                f"at most the {most} fresh rows of the ledger",
                f"{count}, but the ledger has {most} fresh rows",
            )
            self.faults.report("verification.json", "fresh", expected, count, why)
            count = most
        found = np.concatenate([part[:count] for part in parts])
        if (found["index"] != np.tile(np.arange(count), len(parts))).any():
            others = f"others, up to {found['index'].max()}"
            why = f"networks 0 to {count - 1} were counted, but there are {others}"
            self.faults.report("ledger.sqlite", "fresh rows", f"networks 0 to {count - 1}", others, why)
        why = "the fresh rows of the ledger are not those that it counts"
        seal, found_seal = rows_digest(found), stored.pop("rows", "nothing")
        self.faults.require("verification.json", "rows", expected=seal, found=found_seal, why=why)
        self.faults.compare("verification.json", {"fresh": count}, stored | {"fresh": count})
        if len(rows) > len(found):
            more = len(rows) - len(found)
            self.faults.notes.append(f"{more} more fresh networks are in the ledger than verifications count")
        self._require_status("verification", found)
        return found

    @_part("model.npz")
    def _model(self) -> EchoStateNetwork:
        return EchoStateNetwork.load(self.path / "model.npz")

    @_part("committee.npz")
    def _committee(self) -> Committee:
        return Committee.load(self.path / "committee.npz")

    @cached_property
    def model(self) -> EchoStateNetwork:
        """The network that was picked; it must be that of the certificate, which must follow."""
        self._require_certified()
        return self._model

    @cached_property
    def committee(self) -> Committee | None:
        """The best networks as one model, which must be that of the certificate; None if there is none."""
        self._require_certified()
        return self._committee if self.has("committee.npz") else None

    def _require_certified(self) -> None:
        if not self.faults.collect:  # an audit looks at the models of a certificate that does not follow, too
            _ = self.certificate

    @property
    def models(self) -> dict[str, EchoStateNetwork | Committee]:
        """What simulates: the picked network and, where there is one, the committee; nothing if all diverged."""
        if self.certificate.winner is None or "model" not in self.certificate.digests:
            return {}
        return {"model": self.model} | ({} if self.committee is None else {"committee": self.committee})

    def respond(self, records: Sequence[Record]) -> dict[str, list[tuple[Signal, Signal]]]:
        """Measured and simulated outputs of each record, by model; no model runs over the same record twice."""
        found: dict[str, list[tuple[Signal, Signal]]] = {name: [] for name in self.models}
        for record in records:
            key = records_digest([record])  # a record read from a file again is still the same record
            if key not in self._responses:
                fast, horizon = compiled_dynamics(), self.plan.horizon
                runs = {name: respond(model, [record], horizon, dynamics=fast) for name, model in self.models.items()}
                self._responses[key] = {name: pair for name, [pair] in runs.items()}
            for name, pair in self._responses[key].items():
                found[name].append(pair)
        return found

    @_part("certificate.json")
    def stated(self) -> dict[str, Any]:
        """The certificate as it stands in its file, not checked."""
        return self.json("certificate.json")

    @_part("certificate.json")
    def certificate(self) -> Certificate:
        """The certificate, every number of it derived again from plan, data, ledger and models."""
        _ = self.plan  # whoever names a folder that is no run should hear that, not that a file is missing
        stated = self.stated
        found = {name: value for name, value in stated.items() if name != "provenance"}
        before = len(self.faults.findings)
        derived = self.faults.attempt("certificate.json, what is claimed", self._derived)
        expected = self._planned() if derived is None else derived
        if derived is None:
            found = {name: found.get(name, "nothing") for name in expected}
        self._name_other_files(expected, found)
        self.faults.compare("certificate.json", expected, found)
        if len(self.faults.findings) > before:
            raise Unusable("certificate.json does not follow")
        return Certificate.from_dict(stated, path=self.path / "certificate.json")

    def _name_other_files(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Raise an error that names the file which is not the one that was certified.

        An audit lists digests instead: it cannot know whether the file or the certificate was changed.
        """
        for name, file in CERTIFIED.items() if not self.faults.collect else ():
            if stated_of(expected, "digests", name) != stated_of(found, "digests", name):
                raise DamagedFile(self.path / file, "digest", f"this is not the {name} that was certified")

    def _derived(self) -> dict[str, Any] | None:
        """The certificate, all of it, without its provenance; None if rows are missing."""
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
        found = {"model": "", "committee": ""}
        if not self.ranked(1):  # all networks diverged
            return found
        wanted = ["model", "committee"] if self.plan.committee else ["model"]
        for name in wanted:
            # A file that is missing is a finding by its digest alone.
            there = self.has(f"{name}.npz") or not self.faults.collect
            model = self.faults.attempt(f"{name}.npz", partial(getattr, self, f"_{name}")) if there else None
            found[name] = model.digest if model else f"that of a {name}.npz"
        return found

    def _planned(self) -> dict[str, Any]:
        """Fields of the certificate that follow from the plan alone."""
        plan = jsonable(self.plan.to_dict())
        fields = {name: plan[name] for name in ("seed", "epsilon", "beta", "bound", "rule", "horizon")}
        return {**fields, "law": plan.get("law", {}), "score": self.plan.scores[0], "blocks": self.plan.blocks}

    def ranked(self, count: int) -> list[int]:
        """Positions of the best networks in the search, the best first; diverged ones are not among them."""
        return ranking(self.search["scores"][:, 0], self.plan.measures[0].direction, count)

    @_part("generalisation.json")
    def generalisation(self) -> Generalisation | None:
        """The second certificate, every statement derived again from what was seen; None if there is none.

        The errors that were seen are taken as stored, like the rows of the ledger: only an audit runs the models again.
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
        if self.tested(found) is self.experiments.test:
            why = "a criterion that is not in plan.json was named when the test data had been opened"
            self.faults.require(file, "late", expected=self.comes_late(found.settled), found=found.late, why=why)
        return found

    def comes_late(self, questions: Questions) -> bool:
        """Whether a criterion for the run's own test data was named once these were open: it is not in the plan."""
        planned = settle_questions(self.plan.criterion).criterion
        return questions.criterion is not None and questions.criterion != planned

    def tested(self, second: Generalisation) -> tuple[Record, ...]:
        """The records that a second certificate is about: the run's own test data, or those given later."""
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
