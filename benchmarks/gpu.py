"""The GPU kernel: the paper's study on one card, stage by stage, against the ceilings of the card and the host's cores.

``python benchmarks/gpu.py [--sections ceilings,stages,layouts,paper,growth,broad,long,cpu,winners] [--json FILE]``.
Everything is timed over the second of two equal runs (kernels compiled, memory taken), wall clock, with drawing and
transfers. Section ``kinds`` has the networks per second of each kind of the default law, ``identify`` the whole way
from data to model, ``tiles`` variants of the Gram stage, and ``rows`` prints rows of all kinds of draws, which
``--compare FILE`` compares with the CPU's, on any machine.

``--apart SECONDS`` runs each section in a process of its own and ends after about so many seconds; of sections joined
by ``+`` all run at a time, ``pytest`` are the tests, and ``warm`` only compiles the host's code. On a card that is lent
for minutes, all that there is to know:
``python benchmarks/gpu.py --apart 260 --sections tiles+warm,rows+pytest,identify,kinds,paper,stages``.
"""

from __future__ import annotations

import argparse
import base64
import cProfile
import dataclasses
import json
import os
import pstats
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from echobound import identify
from echobound.campaign import get_engine, run_campaign, usable_cores
from echobound.candidates import Committees, Networks
from echobound.data import Record
from echobound.draws import draw_keys
from echobound.kernels import blocks_in_turn, get_kernel, hold_out
from echobound.kernels.gpu import batch as batches
from echobound.kernels.gpu.device import cupy, lanes, launch
from echobound.kernels.gpu.sharing import for_card
from echobound.kernels.sensitivity import TOLERANCE, compare_rows, relative
from echobound.kernels.training import network_and_run
from echobound.network import broad, paper
from echobound.network.laws import Shape, mixed, small, without_feedback
from echobound.plants import ph_experiment
from echobound.reproduce.table import PAPER_ORDERS
from echobound.runs.ledger import Ledger
from echobound.scores import get_score

SEARCH, FRESH = 645, 500
RECORDS = ph_experiment()


def problem_of(order):
    law = paper(order)
    return hold_out(*RECORDS, law=law, scores=[get_score("fit"), get_score("rmse")]).of_family(order, law)


def on_host(order, count):
    """Networks on all cores of the host."""
    with Ledger(None, "benchmark", ("fit", "rmse")) as ledger, get_engine() as engine:
        return run_campaign(Networks(get_kernel("cpu"), problem_of(order)), range(count), ledger, engine)


def second_of_two(function):
    function()
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def study(kernel, order):
    problem = problem_of(order)
    kernel.evaluate(problem, range(SEARCH))
    kernel.evaluate(problem.on(stream=1), range(FRESH))


def ceilings():
    cp = cupy()
    a = cp.asarray(np.random.default_rng(0).random((8192, 8192)))
    b = cp.empty_like(a)

    def timed(function, repeats):
        function()
        cp.cuda.Device().synchronize()
        begun = time.perf_counter()
        for _ in range(repeats):
            function()
        cp.cuda.Device().synchronize()
        return (time.perf_counter() - begun) / repeats

    product, copy = timed(lambda: cp.matmul(a, a, out=b), 5), timed(lambda: cp.copyto(b, a), 20)
    properties = cp.cuda.runtime.getDeviceProperties(0)
    return {
        "card": properties["name"].decode(),
        "matrix_tflops": 2 * 8192**3 / product / 1e12,
        "copy_tb_per_s": 2 * a.nbytes / copy / 1e12,
        "clock_mhz": properties["clockRate"] / 1e3,
        "multiprocessors": properties["multiProcessorCount"],
    }


STAGE = {
    "draw": "draw",
    "normalise": "norm",
    "states": "states",
    "fill_tails": "states",
    "gram": "Gram",
    "solve": "solve",
    "free_run": "free run",
    "measure": "score",
}


def stages(order, layout=None, networks=SEARCH + FRESH):
    """Milliseconds of each stage for one batch alone, by events; bytes and operations as counted on paper."""
    cp, problem, spent = cupy(), problem_of(order), defaultdict(list)
    lane, keys = lanes()[0], draw_keys(0, 0, order, range(networks))
    fold = [batches.FoldOnCard.load(problem, 0, ("minmax",))]
    cp.cuda.Device().synchronize()

    def timed(module, name, *arguments, **options):
        before, after = cp.cuda.Event(), cp.cuda.Event()
        before.record()
        launch(module, name, *arguments, **options)
        after.record()
        spent[STAGE[name]].append((before, after))

    usual, batches.launch = batches.layout_of, timed
    if layout is not None:
        batches.layout_of = lambda _: batches.Layout(*layout)
    try:
        for _ in range(2):
            spent.clear()
            with lane.stream:
                batch = batches.Batch(problem, fold, keys, problem.law.draw_all(keys), lane)
                begun = time.perf_counter()
                batch.start()
                batch.collect()
                total = time.perf_counter() - begun
    finally:
        batches.launch, batches.layout_of = launch, usual
    training, scored, p = len(RECORDS[0]), len(RECORDS[1]), order + 1
    rows, q = training - 100, order + 2
    per_step = order * (2 * 10 + 4 + 2 * 33)  # recurrent, inputs, tanh
    work = {  # floating-point operations, bytes through device memory
        "draw": (0, 8 * order * 14),
        "norm": (0, 8 * order * 20),
        "states": (training * per_step, 8 * rows * q),
        "Gram": (rows * q * (q + 1), 8 * (rows * q + q * q / 2)),
        "solve": (p**3 / 3 + 2 * p * p, 8 * 1.5 * q * q),
        "free run": (scored * (per_step + 2 * p), 8 * scored),
        "score": (5 * scored, 8 * 4 * scored),
    }
    return {
        "total_ms": 1e3 * total,
        "stages": {
            name: {
                "ms": sum(cp.cuda.get_elapsed_time(*pair) for pair in spent[name]),
                "gflop": networks * flop / 1e9,
                "gigabytes": networks * size / 1e9,
            }
            for name, (flop, size) in work.items()
        },
    }


# ---------------------------------------------------------------- every kind of draws


def two_by_two(length, phase):
    k = np.arange(length)
    u = np.stack([np.sin(0.05 * k + phase) + 0.3 * np.sin(0.31 * k), np.cos(0.083 * k + 2 * phase)], axis=1)
    y = np.zeros((length, 2))
    for t in range(1, length):
        y[t, 0] = 0.8 * y[t - 1, 0] + 0.2 * np.tanh(u[t - 1, 0]) + 0.05 * y[t - 1, 1]
        y[t, 1] = 0.6 * y[t - 1, 1] + 0.3 * u[t - 1, 1] ** 2 - 0.1 * y[t - 1, 0]
    return Record(u=u, y=y)


def rounded(records):
    """The same bits on every machine, whose libraries differ in the last one."""
    return [dataclasses.replace(one, u=np.round(one.u, 9), y=np.round(one.y, 9)) for one in records]


def problems():
    """Name, problem and number of draws."""
    plain, robust = [get_score("fit"), get_score("rmse")], [get_score("robust"), get_score("rmse")]
    short, long = rounded(ph_experiment(samples=(1500, 1000))), rounded(RECORDS)
    law, tight = small(), rounded([two_by_two(400, 0.0), two_by_two(300, 1.0)])
    random = dataclasses.replace(law, pattern="random", clip=False)
    yield "small", hold_out(*short, law=law, scores=plain), 48
    yield "small, 5000 samples", hold_out(*long, law=law, scores=plain), 32
    yield "small, random, no limits", hold_out(*short, law=random, scores=plain), 24
    yield "small, two by two", hold_out(tight, *rounded([two_by_two(300, 2.0)]), law=law, scores=plain, washout=30), 24
    yield "small, robust", hold_out(*short, law=law, scores=robust), 16
    yield "small, blocks, robust", blocks_in_turn(short[0], 3, law=law, scores=robust), 16
    yield "small, 20 ahead", hold_out(*short, law=law, scores=plain, horizon=20), 16
    whole = mixed(Shape(1500, 1, 1))
    yield "mixed, robust", hold_out(*short, law=whole, scores=robust), 48


def rows_on_card(kernel):
    """Rows of all kinds of draws, as text: whoever has more time than a card is lent for compares them."""
    for name, problem, count in problems():
        begun = time.perf_counter()
        rows = kernel.evaluate(problem, range(count))
        seconds = time.perf_counter() - begun
        parts = [base64.b64encode(np.ascontiguousarray(rows[part])).decode() for part in ("scores", "ridge", "status")]
        print("rows", name.replace(" ", "_"), *parts, f"{seconds:.1f}", flush=True)
    short = rounded(ph_experiment(samples=(1500, 1000)))
    problem = hold_out(*short, law=small(), scores=[get_score("fit")])
    rows = kernel.evaluate(problem, range(8))
    cut = np.concatenate([kernel.evaluate(problem, [i]) for i in range(8)])
    print("alone as in a batch:", (rows["scores"] == cut["scores"]).all(), flush=True)
    for index in range(2):
        model, run = network_and_run(kernel, problem, index)
        ran = np.abs(model.simulate(short[1]).y[-len(run.outputs[0]) :] - run.outputs[0]).max()
        print(f"model {index}: its score {relative(rows['scores'][index], run.scores(problem)):.1e}, it runs {ran:.1e}")
    law = mixed(Shape(1500, 1, 1))
    problem = hold_out(*short, law=law, scores=[get_score("robust")])
    committees = Committees(Networks(kernel, problem), 4).score(range(6))
    print("committees", base64.b64encode(np.ascontiguousarray(committees["scores"])).decode(), flush=True)


def compare(lines):
    """How rows that a card printed differ from the CPU's: how far, how many, and what rounding does not explain."""
    cpu = get_kernel("cpu")
    given = {words[1].replace("_", " "): words[2:5] for words in map(str.split, lines) if words[:1] == ["rows"]}
    for name, problem, count in problems():
        if name not in given:
            continue
        ours = cpu.evaluate(problem, range(count))
        theirs = ours.copy()
        for part, text in zip(("scores", "ridge", "status"), given[name], strict=True):
            theirs[part] = np.frombuffer(base64.b64decode(text), ours[part].dtype).reshape(ours[part].shape)
        far = [relative(one["scores"], other["scores"]) for one, other in zip(ours, theirs, strict=True)]
        found = [compare_rows(problem, cpu, one, other) for one, other in zip(ours, theirs, strict=True)]
        spread = f"median {np.median(far):.1e}, beyond 1e-9 {(np.array(far) > TOLERANCE).sum()}, most {max(far):.1e}"
        bad = [(i, how, far[i]) for i, how in enumerate(found) if how in ("different", "unconfirmed")]
        print(f"{name}: {dict(Counter(found))} {spread}", *bad, sep="\n    ", flush=True)


def tiles(kernel):
    """The Gram stage with other tiles and other numbers of rows on the way; then the whole paper with the best."""
    usual, found, base = (batches.TILES, dict(batches.GRAM)), {}, None
    problem = problem_of(500)
    for side, depth, ahead in (
        (128, 16, 4),
        (128, 8, 6),
        (128, 8, 8),
        (64, 16, 4),
        (64, 16, 3),
        (64, 8, 6),
        (64, 8, 4),
    ):
        batches.TILES, batches.GRAM = tuple(t for t in (32, 64, 128) if t <= side), {**usual[1], side: (depth, ahead)}
        each = {order: stages(order)["stages"]["Gram"] for order in (200, 500)}
        scores = kernel.evaluate(problem, range(16))["scores"]
        base = scores if base is None else base
        words = {order: f"{one['ms']:.2f} ms, {one['gflop'] / one['ms']:.1f} TF/s" for order, one in each.items()}
        same = bool((scores == base).all())
        print(f"tile {side}, {depth} rows, {ahead} stages: {words}, bits equal: {same}", flush=True)
        if same:
            found[side, depth, ahead] = each[500]["ms"]
    side, depth, ahead = min(found, key=found.get)
    batches.TILES, batches.GRAM = tuple(t for t in (32, 64, 128) if t <= side), {**usual[1], side: (depth, ahead)}
    whole = 1e3 * second_of_two(lambda: [study(kernel, order) for order in PAPER_ORDERS])
    batches.TILES, batches.GRAM = usual
    print(f"whole paper with {side}, {depth}, {ahead}: {whole:.0f} ms", flush=True)
    return {str(key): value for key, value in found.items()} | {"paper_ms": whole}


def kinds(kernel):
    """Networks per second of each kind of the default law, on the card and on all cores."""
    scores, found = [get_score("robust"), get_score("rmse")], {}
    law = mixed(Shape(5000, 1, 1))
    for one, count, on_cores in (
        (small(), 512, 96),
        (without_feedback(), 512, 96),
        (broad(), 512, 96),
        (law, 512, 128),
    ):
        problem = hold_out(*RECORDS, law=one, scores=scores)
        with Ledger(None, "benchmark", ("robust", "rmse")) as ledger, get_engine() as engine:
            begun = time.perf_counter()
            run_campaign(Networks(get_kernel("cpu"), problem), range(on_cores), ledger, engine)
            host = on_cores / (time.perf_counter() - begun)
        known = for_card(one, problem) if one is not law else True
        card = count / second_of_two(lambda problem=problem, count=count: kernel.evaluate(problem, range(count)))
        found[one.name] = {"card_per_s": card, "cores_per_s": host, "ratio": card / host, "on_card": known}
        print(one.name, found[one.name], flush=True)
    return found


def whole_way():
    """100,000 training and 78,800 test samples, law `broad`, 315 networks: from data to model, certificate and test."""
    count = 178_800
    k = np.arange(count)
    generator = np.random.default_rng(0)
    u = 3 * lfilter([0.05], [1, -0.95], generator.normal(size=count))
    y = lfilter([0, 0.2, 0.1], [1, -1.2, 0.5], np.tanh(lfilter([0, 0.3], [1, -0.7], u)))
    y += 1e-3 * generator.normal(size=count) + 0 * k
    record = Record(u=u, y=y)
    training, test = record.part(0, 100_000), record.part(100_000, count)
    settings = {"law": "broad", "networks": 315, "kernel": "gpu"}
    identify(training, test=test, **settings)
    profile = cProfile.Profile()
    begun = time.perf_counter()
    result = identify(training, test=test, **settings)
    seconds = time.perf_counter() - begun
    print(f"identify: {seconds:.2f} s, {result.delivered}, {result.scores}", flush=True)
    profile.runcall(identify, training, test=test, **settings)
    rows = pstats.Stats(profile).sort_stats("cumulative").stats
    own = [(v[3], v[0], f"{Path(k[0]).name}:{k[2]}") for k, v in rows.items() if "echobound" in k[0] and v[3] > 0.02]
    for spent, calls, name in sorted(own, reverse=True)[:40]:
        print(f"    {spent:7.3f} s {calls:6d} {name}")
    return {"seconds": seconds, "networks": 315, "training": 100_000, "test": 78_800}


MOST = {"tiles+warm": 55, "rows": 45, "identify": 45}  # seconds


def each_apart(sections, seconds):
    """Every section in a process of its own; those joined by + at a time. What one prints comes when it ends."""
    here = Path(__file__).resolve()
    begun = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(here.parent.parent / "src"), "ECHOBOUND_REQUIRE_GPU": "1"}
    tests = ["-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "tests/test_kernels_gpu.py"]
    tests += ["-k", "not compile"]
    for group in sections.split(","):
        started = []
        for name in group.split("+"):
            command = [sys.executable, "-u", *(tests if name == "pytest" else (str(here), "--sections", name))]
            log = Path(f"/tmp/echobound-{name}.log").open("w+")  # noqa: SIM115
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=here.parent.parent, env=environment
            )
            started.append((name, log, process))
        ends = min(begun + seconds, time.perf_counter() + MOST.get(group, 100))
        for name, log, process in started:
            try:
                code = process.wait(max(1.0, ends - time.perf_counter()))
            except subprocess.TimeoutExpired:
                process.kill()
                code = "out of time"
            log.seek(0)
            print(f"==== {name}: {code}, {time.perf_counter() - begun:.0f} s\n{log.read()[-9000:]}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--apart", type=float)
    parser.add_argument("--compare")
    parser.add_argument("--sections", default="ceilings,stages,paper,growth,broad,long,cpu,winners")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.compare:
        compare(Path(options.compare).read_text().splitlines())
        return
    if options.apart:
        each_apart(options.sections, options.apart)
        return
    wanted, result, kernel = options.sections.split(","), {}, get_kernel("gpu")
    if "warm" in wanted:
        short = ph_experiment(samples=(400, 300))
        for law in (small(), broad(order=20), mixed(Shape(400, 1, 1))):
            problem = hold_out(*short, law=law, scores=[get_score("robust")], washout=60)
            host = get_kernel("cpu")
            host.evaluate(problem, range(1 if law.name != "mixed" else 12))
            model, _ = network_and_run(host, problem, 0)
            model.simulate(short[1])
        print("compiled", flush=True)
    if "rows" in wanted:
        rows_on_card(kernel)
    if "tiles" in wanted:
        result["tiles"] = tiles(kernel)
    if "kinds" in wanted:
        result["kinds"] = kinds(kernel)
    if "identify" in wanted:
        result["identify"] = whole_way()
    if "ceilings" in wanted:
        result["ceilings"] = ceilings()
        print(result["ceilings"], flush=True)
    if "stages" in wanted:
        result["stages"] = {}
        for order in (50, 200, 500):
            result["stages"][order] = found = stages(order)
            line = "  ".join(
                f"{name} {s['ms']:.2f} ({s['gflop'] / s['ms']:.1f} TF/s, {s['gigabytes'] / s['ms']:.2f} TB/s)"
                for name, s in found["stages"].items()
            )
            print(f"n={order}: total {found['total_ms']:.1f} ms: {line}", flush=True)
    if "layouts" in wanted:
        for order in (50, 100, 200, 300, 500):
            for units in (1, 2, 4):
                threads = 32 * -(-order // (32 * units))
                found = stages(order, (threads, units))["stages"]
                print(
                    f"n={order}, {units} units a thread:", {k: round(v["ms"], 2) for k, v in found.items()}, flush=True
                )
    if "paper" in wanted:
        each = {}
        for order in PAPER_ORDERS:
            each[order] = 1e3 * second_of_two(lambda order=order: study(kernel, order))
        print("ms by order:", {o: round(t, 1) for o, t in each.items()}, "sum", round(sum(each.values())), flush=True)
        whole = 1e3 * second_of_two(lambda: [study(kernel, order) for order in PAPER_ORDERS])
        print(f"whole paper: {whole:.0f} ms", flush=True)
        result["paper"] = {"by_order_ms": each, "whole_ms": whole}
    if "growth" in wanted:
        few = second_of_two(lambda: kernel.evaluate(problem_of(100), range(1000))) / 1000
        many = second_of_two(lambda: kernel.evaluate(problem_of(100), range(100_000))) / 100_000
        result["growth"] = {"us_of_1000": 1e6 * few, "us_of_100000": 1e6 * many}
        print(result["growth"], flush=True)
    if "broad" in wanted:
        problem = hold_out(*RECORDS, law=broad(), scores=[get_score("fit"), get_score("rmse")])
        result["broad"] = {"networks": 315, "seconds": second_of_two(lambda: kernel.evaluate(problem, range(315)))}
        print("broad law:", result["broad"], flush=True)
    if "long" in wanted:
        k = np.arange(1_000_000)
        u = np.random.default_rng(0).normal(size=len(k)).cumsum() / 100
        u = np.sin(u) + 0.1 * np.sin(0.37 * k)
        y = lfilter([0, 0.3], [1, -0.7], np.tanh(u)) + 0.1 * lfilter([0, 0, 0.5], [1, -0.5], u**2)
        record = Record(u=u, y=y)
        problem = hold_out(record, record.part(0, 20_000), law=paper(500), scores=[get_score("fit"), get_score("rmse")])
        spent = second_of_two(lambda: kernel.evaluate(problem, range(132)))
        one, other = (get_kernel(name).evaluate(problem, range(2))["scores"] for name in ("cpu", "gpu"))
        apart = float(np.abs(one / other - 1).max())
        result["long"] = {"samples": len(k), "networks": 132, "seconds": spent, "apart_from_cpu": apart}
        print("a million samples, order 500:", result["long"], flush=True)
    if "cpu" in wanted:
        result["cpu"] = {"cores": usable_cores()}
        for order in (50, 200, 500):
            count = 320
            host = second_of_two(lambda order=order, count=count: on_host(order, count)) / count
            on_card = second_of_two(lambda order=order: kernel.evaluate(problem_of(order), range(1145))) / 1145
            result["cpu"][order] = {"cpu_ms": 1e3 * host, "gpu_ms": 1e3 * on_card, "ratio": host / on_card}
        print(result["cpu"], flush=True)
    if "winners" in wanted:
        same, result["winners"] = 0, {}
        for order in PAPER_ORDERS:
            host = on_host(order, SEARCH)["scores"][:, 0]
            card = kernel.evaluate(problem_of(order), range(SEARCH))["scores"][:, 0]
            finite = np.isfinite(host) & np.isfinite(card)
            apart = np.abs(host[finite] - card[finite]) / np.abs(host[finite])
            result["winners"][order] = {
                "cpu": int(host.argmax()),
                "gpu": int(card.argmax()),
                "beyond_1e-9": int((apart > 1e-9).sum()),
                "median": float(np.median(apart)),
                "largest": float(apart.max()),
            }
            same += int(host.argmax() == card.argmax())
            print(order, result["winners"][order], flush=True)
        print(f"same winner at {same} of {len(PAPER_ORDERS)} orders", flush=True)
    if options.json:
        with open(options.json, "w") as file:  # noqa: PTH123
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
