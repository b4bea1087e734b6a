"""The GPU kernel: the paper's study on one card, stage by stage, against the ceilings of the card and the host's cores.

``python benchmarks/gpu.py [--sections ceilings,stages,layouts,paper,growth,broad,long,cpu,winners] [--json FILE]``.
Everything is timed over the second of two equal runs (kernels compiled, memory taken), wall clock, with drawing and
transfers.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict

import numpy as np
from scipy.signal import lfilter

from echobound.campaign import get_engine, run_campaign, usable_cores
from echobound.candidates import Networks
from echobound.data import Record
from echobound.draws import draw_keys
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.gpu import batch as batches
from echobound.kernels.gpu.device import cupy, lanes, launch
from echobound.network import broad, paper
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sections", default="ceilings,stages,paper,growth,broad,long,cpu,winners")
    parser.add_argument("--json")
    options = parser.parse_args()
    wanted, result, kernel = options.sections.split(","), {}, get_kernel("gpu")
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
