"""docs/JSON.md and what the commands print: neither may know a key that the other does not."""

import json
import math
import re
from pathlib import Path

import jsonschema
import pytest
from campaigns import UNCLIPPED
from test_cli import COMMANDS, echobound

from echobound.scenario import schema

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "JSON.md"
TYPES = {
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
    "array of strings": lambda v: isinstance(v, list) and all(isinstance(item, str) for item in v),
    "array of integers": lambda v: isinstance(v, list) and all(isinstance(item, int) for item in v),
    "array": lambda v: isinstance(v, list),
    "array of numbers": lambda v: isinstance(v, list) and all(isinstance(item, int | float) for item in v),
    "array of objects": lambda v: isinstance(v, list) and all(isinstance(item, dict) for item in v),
}


def tables():
    """For each heading of the page, its table: type and meaning by key."""
    found = {}
    for heading, body in re.findall(
        r"^#{2,3} (\S.*?)\n(.*?)(?=^#{2,3} |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    ):
        rows = re.findall(r"^\| `([^`]+)` \| ([^|]+?) \| (.+?) \|$", body, re.MULTILINE)
        assert len({key for key, _, _ in rows}) == len(rows), f"a key twice under {heading}"
        found[heading] = {key: (kind, meaning) for key, kind, meaning in rows}
    return found


def growing(path, samples):
    rows = [(math.sin(0.1 * k), math.exp(0.2 * (k % 300))) for k in range(samples)]
    path.write_text("u,y\n" + "".join(f"{u!r},{y!r}\n" for u, y in rows))


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Every command in every way that changes its keys: a list of objects for each."""
    desk = tmp_path_factory.mktemp("desk")
    growing(desk / "growing.csv", 300)
    (desk / "wanted.csv").write_text("pH\n" + 5 * "7.1\n")
    bounded = ["--scenarios", "2", "--output-high", "7.2", "--page", "loop.html", "--output", "loop.csv"]
    growing(desk / "long.csv", 8000)
    small = ["--law", "paper", "--order", "5", "--epsilon", "0.5", "--beta", "0.1", "--washout", "60"]
    columns = ["--inputs", "q3", "--outputs", "pH"]
    parts = ["--validation", "val.csv", "--test", "test.csv"]
    unstable = ["--inputs", "u", "--outputs", "y", "--law", "broad", "--order", "3", "--networks", "1"]
    unstable += ["--beta", "0.5", "--seed", "3"]
    short = ",".join(f"short{i}.csv" for i in range(20))
    twenty = ["--validation", "val.csv", "--test", short]
    blocks = ["--blocks", "3", "--law", "paper", "--order", "5", "--networks", "20", "--committee", "0"]
    rules = ["--stop", "patience:5", "--discarded", "1", "--scores", "fit,peak", "--joint"]
    families = [*small[:2], "--order", "5,8", *small[4:]]
    few = ["--networks", "20", "--fresh", "3"]
    pieces = ["--blocks", "4", "--gap", "80", "--mixing", "0.001", "--discarded", "1"]
    calls = [
        ("plan", [], 0),
        ("plan", ["--networks", "645"], 0),
        ("plan", ["--networks", "645", "--epsilon", "0.05"], 0),
        ("plan", ["--families", "21"], 0),
        ("plan", ["--scores", "3", "--networks", "424"], 0),
        ("plan", ["--scores", "3", "--networks", "424", "--epsilon", "0.05"], 0),
        ("plan", ["--stop", "patience:20"], 0),
        ("plan", ["--fresh", "500"], 0),
        ("plan", ["--stop", "anytime", "--networks", "645"], 0),
        ("simulate-plant", ["--samples", "400,300,250", "--output", "train.csv,val.csv,test.csv"], 0),
        ("simulate-plant", ["--samples", ",".join(20 * ["40"]), "--period", "10", "--output", short], 0),
        ("simulate-plant", ["--samples", "900", "--seed", "3", "--output", "long-test.csv"], 0),
        ("simulate-plant", ["--samples", "420", "--seed", "7", "--output", "later.csv"], 0),
        ("simulate-plant", ["--samples", "420", "--seed", "8", "--output", "last.csv"], 0),
        ("demo", ["--order", "5", "--networks", "40"], 0),
        ("identify", ["train.csv", *columns, *small, "--run", "one"], 0),
        ("identify", ["train.csv", *columns, *small, *parts, "--run", "two", *rules], 0),
        ("identify", ["growing.csv", *unstable, "--validation", "growing.csv", "--run", "growing"], 0),
        ("identify", ["train.csv", *columns, *small[:-2], *twenty, "--run", "twenty"], 0),
        ("identify", ["train.csv", *columns, *blocks, "--run", "blocks"], 0),
        ("identify", ["train.csv", *columns, *families, "--run", "families"], 0),
        ("verify", ["families", "--fresh", "3"], 0),
        ("show", ["families"], 0),
        ("audit", ["families"], 0),
        ("identify", ["growing.csv", *unstable, "--validation", "long.csv", "--run", "diverged"], 1),
        ("renew", ["one", "later.csv", "--open-loop", "--updates", "3", "--run", "renewed"], 0),
        ("renew", ["renewed", "last.csv", "--open-loop", "--test", "test.csv", "--run", "tested"], 0),
        ("show", ["one"], 0),
        ("adapt", ["one", "later.csv", "--test", "test.csv", "--output", "adapted.npz"], 0),
        ("adapt", ["one", "later.csv", "--forgetting", "1", "--output", "adapted.npz"], 0),
        ("export", ["one", "--to", "st", "--check"], 0),
        ("export", ["adapted.npz", "--to", "matlab"], 0),
        ("show", ["diverged"], 0),
        ("show", ["one", "--rank", "2", "--quantile", "0.5"], 0),
        ("verify", ["diverged", "--fresh", "2"], 0),
        ("verify", ["one", "--fresh", "3"], 0),
        ("generalise", ["two", "--criterion", "rmse<1"], 0),
        ("generalise", ["one", "long-test.csv", *pieces], 0),
        ("show", ["one"], 0),
        ("report", ["one"], 0),
        ("figures", ["one", "--format", "svg"], 0),
        ("simulate", ["one", "test.csv"], 0),
        ("simulate", ["growing", "long.csv"], 0),
        ("simulate", ["one", "test.csv", "--committee"], 0),
        ("simulate", ["one", "test.csv", "--model", "network"], 0),
        ("identify", ["train.csv", *columns, "--law", "broad", *small[2:], "--run", "clipped"], 0),
        ("show", ["clipped"], 0),
        ("simulate", ["clipped", "test.csv"], 0),
        ("identify", ["train.csv", *columns, "--law", "cascade", *small[4:], "--run", "cascades"], 0),
        ("simulate", ["one", "test.csv", "--from-mean", "--output", "simulated.csv"], 0),
        ("simulate", ["one", "test.csv", "val.csv"], 0),
        ("predict", ["one", "test.csv", "--horizon", "3"], 0),
        ("compare", ["one", "clipped", "test.csv"], 0),
        ("compare", ["one", "test.csv", "--horizon", "3"], 0),
        ("inspect", ["train.csv"], 0),
        ("inspect", ["growing.csv"], 0),
        ("control", ["one", "--reference", "wanted.csv", "--horizon", "4"], 0),
        ("control", ["one", "--reference", "wanted.csv", "--horizon", "4", "--model", "network", *bounded], 0),
        ("audit", ["one", "--data", "train.csv", "--data", "val.csv"], 1),
        ("audit", ["two", "--data", "train.csv,val.csv,test.csv", "--sample", "2", "--seed", "1"], 0),
        ("watch", ["one"], 0),
        ("watch", ["planned"], 0),
        ("reproduce", ["--orders", "5,10", *few, "--data-seed", "0", "--run", "paper"], 0),
    ]  # fmt: skip
    (desk / "planned").mkdir()
    (desk / "planned" / "plan.json").write_text("{}")  # a run that has just begun
    found = {}
    for command, arguments, code in calls:
        env = UNCLIPPED if "growing.csv" in arguments else None
        done = echobound(command, *arguments, "--json", cwd=desk, code=code, env=env)
        found.setdefault(command, []).append(json.loads(done.stdout, parse_constant=pytest.fail))
    return found


def require_as_documented(values, table):
    assert table, "there is a table"
    assert {key for value in values for key in value} == set(table), "every key of the one is in the other"
    for value in values:
        for key in set(table) - set(value):
            assert re.match("Only|Not if", table[key][1]), f"{key} is sometimes missing, and the page must say when"
        for key, content in value.items():
            kinds = table[key][0].split(" or ")
            assert any(TYPES[kind](content) for kind in kinds), f"{key}: {content!r} is not {table[key][0]}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_key_printed_is_documented_and_every_key_documented_is_printed(printed, command):
    require_as_documented(printed[command], tables()[command])


def test_the_objects_inside_are_documented_too(printed):
    inside = tables()
    identified = [*printed["identify"], *printed["demo"]]
    parts = [part for value in identified for part in value["scores"].values()]
    parts += [value["scores"] for value in printed["simulate"] if "scores" in value]
    committees = [value["committee"] for value in identified if value["committee"]]
    parts += [part for committee in committees for part in committee["scores"].values()]
    parts += [part for value in printed["adapt"] for part in (value["scores"] or {}).values()]
    require_as_documented(parts, inside["scores"])
    require_as_documented([value["card"] for value in printed["export"]], inside["card"])
    assert all(set(entry) == {"fit", "rmse"} for part in parts for entry in part["per_output"].values())
    assessed = [value for value in (*identified, *printed["show"], *printed["renew"]) if value["verdict"]]
    assert all(list(value)[:2] == ["summary", "verdict"] for value in assessed)
    require_as_documented([value["verdict"] for value in assessed], inside["verdict"])
    assert {value["verdict"]["grade"] for value in assessed} <= {"good", "usable", "poor", "unusable"}
    require_as_documented([value["linear"] for value in assessed if value["linear"]], inside["linear"])
    require_as_documented([one for value in assessed for one in value["diagnostics"]], inside["diagnostics"])
    require_as_documented([value["given"] for value in printed["plan"]], inside["given"])
    several = [entry for value in printed["plan"] for entry in value.get("several", [])]
    assert [entry["statement"] for entry in several] == ["own best", "joint", "separate", "joint", "separate"]
    require_as_documented(several, inside["several"])
    require_as_documented([value["stop"] for value in printed["plan"] if "stop" in value], inside["stop"])
    searched = [value["search"] for value in (*identified, *printed["show"]) if value["search"]]
    require_as_documented(searched, inside["search"])
    planned = [entry for value in printed["plan"] for entry in value.get("verification", [])]
    require_as_documented(planned, inside["planned verification"])
    require_as_documented([v["stability"] for v in identified if v["stability"]], inside["stability"])
    require_as_documented([value["worst"] for value in printed["verify"]], inside["worst"])
    shown = [value["committee"] for value in printed["show"] if "committee" in value]
    require_as_documented([*committees, *shown], inside["committee"])
    networks = [value["network"] for value in (*identified, *printed["show"]) if value.get("network")]
    require_as_documented(networks, inside["network"])
    held = [value["held"] for value in (*identified, *printed["show"], *networks, *shown) if value["held"]]
    assert held
    assert {role for each in held for role in each} <= {"training", "validation", "test"}
    assert all(0 <= share <= 1 for each in held for role in each.values() for share in role.values())
    bounds = [value["bound"] for value in printed["show"] if value["bound"]]
    assert bounds
    assert all(low < high for bound in bounds for low, high in bound)
    episodes = [found["episodes"] for found in (*identified, *committees) if found["episodes"]]
    require_as_documented(episodes, inside["episodes"])
    require_as_documented([v["optimism"] for v in identified if v["optimism"]], inside["optimism"])
    seconds = [
        v["generalisation"] for v in (*identified, *printed["generalise"], *printed["show"]) if v.get("generalisation")
    ]
    require_as_documented(seconds, inside["generalisation"])
    require_as_documented([second["settled"] for second in seconds], inside["settled"])
    require_as_documented([seen for second in seconds for seen in second["seen"].values()], inside["seen"])
    stated = [one for second in seconds for each in second["statements"].values() for one in each]
    limits = [one for one in stated if one["kind"] == "error limit"]
    require_as_documented([*episodes, *limits], inside["episodes"])
    assert {one["kind"] for one in stated} == {"error limit", "failure rate", "conformal band"}
    shared = {"kind", "episodes", "beta", "total_beta", "mixing", "samples", "words"}
    for kind, heading in (("failure rate", "rate"), ("conformal band", "band")):
        own = [{k: v for k, v in one.items() if k not in shared} for one in stated if one["kind"] == kind]
        require_as_documented(own, inside[heading])
    assert all(set(one) == {"about", "says"} for second in seconds for one in second["words"])
    assert [second["late"] for second in seconds[-3:]] == [True, False, False]
    for name in ("rank", "quantile"):
        require_as_documented([value[name] for value in printed["show"] if name in value], inside[name])
    for name in ("findings", "detection"):
        require_as_documented([one for value in printed["audit"] for one in value[name]], inside[name])
    loops = [loop for value in printed["control"] for loop in value["scores"].values()]
    require_as_documented(loops, inside["loop"])
    said = [value["scenarios"] for value in printed["control"] if value["scenarios"]]
    require_as_documented(said, inside["scenarios"])
    require_as_documented([row for value in printed["reproduce"] for row in value["orders"]], inside["orders"])
    [theirs] = [row["paper"] for value in printed["reproduce"] for row in value["orders"] if row["paper"]]
    assert all(f"`{key}`" in inside["orders"]["paper"][1] for key in theirs)


def test_what_the_page_says_of_the_values_holds(printed):
    assert [set(value["scores"]) for value in printed["identify"]] == [
        {"validation"},
        {"validation", "test"},
        {"validation"},
        {"validation", "test"},
        {"validation"},
        {"validation"},
        set(),
        {"validation"},
        {"validation"},
    ]
    assert [value["certificate"]["blocks"] for value in printed["identify"]] == [None] * 4 + [3] + [None] * 4
    without = [number for number, value in enumerate(printed["identify"]) if value["committee"] is None]
    assert without == [4, 6], "the one with --committee 0, and the one all networks of which diverge"
    assert printed["show"][-2]["verification"] == printed["verify"][-1]
    assert "verification" not in printed["show"][1]
    own = {"name", "fresh", "violations", "ties", "p_value", "epsilon_combined", "epsilon_fresh", "statement"}
    families = printed["verify"][0]
    assert all(set(one) == own for case in (families, families["worst"]) for one in case["families"])
    with_outputs, _, together, network, clipped, to_file, several = printed["simulate"]
    assert [set(one) for one in several["experiments"]] == [
        {"name", "samples", "first", "start", "extrapolation", "held", "useless", "notes", "scores", "outputs"}
    ] * 2
    assert several["experiments"][0]["outputs"] == with_outputs["outputs"]
    assert several["samples"] == sum(one["samples"] for one in several["experiments"])
    assert together["outputs"] == with_outputs["outputs"], "the committee is delivered"
    assert network["outputs"] != with_outputs["outputs"], "and the network another model"
    assert (with_outputs["held"], set(clipped["held"])) == (None, {"pH"})
    assert (with_outputs["first"], to_file["first"]) == (60, 0)
    assert len(with_outputs["outputs"]["pH"]) == with_outputs["samples"] == 190
    assert to_file["output"] == "simulated.csv"
    diverged = printed["identify"][6]
    assert (diverged["stability"], diverged["certificate"]["threshold"]) == (None, None)


def test_statements_are_named_with_when_they_are_there(printed):
    body = PAGE.read_text().split("### statements")[1].split("###")[0]
    named = re.findall(r"^\| ([a-z ]+?) \| (.+?) \|", body, re.MULTILINE)[1:]
    identified = (*printed["identify"], *printed["demo"], *printed["renew"])
    certificates = [value["certificate"] for value in identified]
    kinds = [[statement["kind"] for statement in certificate["statements"]] for certificate in certificates]
    assert {kind for each in kinds for kind in each} == {kind for kind, _ in named}
    for kind, when in named:
        assert (when == "Always.") == all(kind in each for each in kinds), kind
    assert kinds[1] == ["stopped", "removal", "both ends", "joint scores", "gain"]


def test_what_is_watched(printed):
    finished, planned = printed["watch"]
    assert (finished["running"], finished["holder"], finished["what"]) == (False, None, "fresh networks")
    assert finished["done"] == finished["planned"] == 3
    assert (planned["done"], planned["what"]) == (None, "")


def test_non_finite_numbers_are_null(printed):
    overflown = printed["simulate"][1]
    assert overflown["scores"]["fit"] is overflown["scores"]["rmse"] is None
    assert overflown["outputs"]["y"][-1] is None
    assert isinstance(overflown["outputs"]["y"][0], float)


def test_certificates_are_as_the_schema_says(printed):
    assert "`echobound.scenario.schema()`" in PAGE.read_text()
    content = schema()
    for value in (*printed["identify"], *printed["demo"], *printed["show"]):
        jsonschema.Draft202012Validator(content).validate(value["certificate"])
    named = re.findall(r"`(\w+)`", PAGE.read_text().split("Among its keys:")[1].split("###")[0])
    assert set(named) <= set(content["properties"])


def test_links_of_the_page_lead_somewhere():
    text = PAGE.read_text()
    anchors = {f"#{heading.lower().replace(' ', '-')}" for heading in tables()}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert target in anchors if target.startswith("#") else (PAGE.parent / target).exists(), target
    assert "Keys are stable" in text
    assert "Non-finite numbers are `null`" in text
