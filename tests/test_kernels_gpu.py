"""The GPU kernel's own promises; what it shares with the others is in test_kernels_contract.py."""

import dataclasses
import shutil
import subprocess

import numpy as np
import pytest
from campaigns import same
from gpu_at_hand import needs_gpu
from kernel_agreement import agreement

from echobound.data import Record
from echobound.draws import draw_key, draw_keys
from echobound.errors import InputError, MissingExtra
from echobound.kernels import Status, blocks_in_turn, get_kernel, gpu, hold_out
from echobound.kernels.gpu import batch as batches
from echobound.kernels.gpu import device, work
from echobound.kernels.training import network_and_run, train_network
from echobound.network import LeastSquares, MixedLaw, ReservoirLaw, broad, paper, register_trainer
from echobound.network.distribution import Choice, Uniform
from echobound.network.reservoir import VALUES, draw_reservoir, symmetric
from echobound.network.spectral_norm import spectral_norm
from echobound.scores import get_score

SCORES = [get_score("fit"), get_score("rmse")]


def drawn(problem, count, monkeypatch, normalised):
    """A batch of networks after the draw, with or without the norm."""
    keys = draw_keys(problem.seed, problem.stream, problem.family, range(count))
    hypers = problem.law.draw_all(keys)
    kinds = tuple(sorted({hyper.scaling for hyper in hypers}))
    batch = batches.Batch(problem, [batches.FoldOnCard.load(problem, 0, kinds)], keys, hypers, device.Lane())
    if not normalised:
        monkeypatch.setattr(batch, "_normalise", lambda *_: None)
    batch._draw()
    _, values, columns, W_u, W_y, bias, leak, _ = (getattr(a, "get", lambda a=a: a)() for a in batch.net)
    return hypers, values, columns, W_u, W_y, bias, leak, batch.factors.get()


@needs_gpu
@pytest.mark.parametrize("pattern", ["diagonals", "random"])
@pytest.mark.parametrize("order", [1, 7, 33, 500, 1500])
def test_weights_are_those_of_the_host_bit_for_bit(order, pattern, mimo_records, monkeypatch):
    law = dataclasses.replace(broad(order), pattern=pattern)
    problem = hold_out(*mimo_records, law=law, scores=SCORES, washout=30, seed=3)
    hypers, values, columns, W_u, W_y, bias, leak, _ = drawn(problem, 4, monkeypatch, normalised=False)
    for b, hyper in enumerate(hypers):
        key, n, slots = draw_key(3, 0, 0, b), hyper.order, min(10, hyper.order)
        host = draw_reservoir(law, 2, 2, 3, index=b)
        assert (values[b, :slots, :n] == symmetric(key, VALUES, (slots, n))).all()
        offsets = columns[b, :slots, None] + np.arange(n) if pattern == "diagonals" else columns[b, :slots, :n]
        assert (offsets % n == host.columns).all()
        assert (W_u[b, :, :n] == host.W_u.T).all()
        assert (W_y[b, :, :n] == host.W_y.T).all()
        assert (bias[b, :n] == host.bias).all()
        assert (leak[b, :n] == host.leak).all()


@needs_gpu
@pytest.mark.parametrize("pattern", ["diagonals", "random"])
@pytest.mark.parametrize(("order", "nonzeros"), [(1, 10), (2, 10), (30, 1), (500, 10), (300, 1), (2000, 3)])
def test_norm_agrees_to_1e_10(order, nonzeros, pattern, ph_records, monkeypatch):
    law = dataclasses.replace(paper(order), pattern=pattern, nonzeros=nonzeros)
    problem = hold_out(*ph_records, law=law, scores=SCORES, washout=60)
    *_, factors = drawn(problem, 6, monkeypatch, normalised=True)
    for b, factor in enumerate(factors):
        host = draw_reservoir(law, 1, 1, 0, index=b)
        raw = symmetric(draw_key(0, 0, 0, b), VALUES, host.values.shape)
        assert factor == pytest.approx(0.99 / spectral_norm(host.columns, raw), rel=1e-10)


@needs_gpu
def test_mixed_orders_and_all_kinds_of_draws_in_one_call(mimo_records):
    law = dataclasses.replace(broad(), order=Choice((5, 31, 32, 33, 90, 300)), norm=Uniform(0.5, 0.9))
    problem = hold_out(*mimo_records, law=law, scores=SCORES, washout=30)
    _, _, disagree = agreement(problem, get_kernel("cpu"), get_kernel("gpu"), range(24))
    assert not disagree


@needs_gpu
def test_more_states_than_threads(ph_records):
    problem = hold_out(*ph_records, law=paper(1300), scores=SCORES, washout=60)
    _, _, disagree = agreement(problem, get_kernel("cpu"), get_kernel("gpu"), range(2))
    assert not disagree


@needs_gpu
@pytest.mark.parametrize("pattern", ["diagonals", "random"])
def test_order_4000(pattern, ph_records):
    law = dataclasses.replace(paper(4000), pattern=pattern, training=LeastSquares((1e-4,)))
    problem = hold_out(*ph_records, law=law, scores=SCORES, washout=60)
    one, other = (get_kernel(name).evaluate(problem, [0])["scores"] for name in ("cpu", "gpu"))
    assert one == pytest.approx(other, rel=1e-7)


@needs_gpu
@pytest.mark.parametrize("ridges", [(1e-8,), (0.0,)])
def test_more_rows_than_are_held_at_once(ridges):
    """20,000 training samples in two segments: the Gram matrix and the triangle are accumulated."""
    k = np.arange(10_000.0)
    u = np.sin(0.1 * k) + np.sin(0.0331 * k**1.1)
    y = np.zeros(len(k))
    for t in range(1, len(k)):
        y[t] = 0.8 * y[t - 1] + 0.3 * np.tanh(u[t - 1])
    record = Record(u=u, y=y + 1e-3 * np.cos(k**1.3))
    law = ReservoirLaw(order=24, training=LeastSquares(ridges))
    problem = hold_out([record, record.part(100, 9_500)], record.part(0, 900), law=law, scores=SCORES)
    _, _, disagree = agreement(problem, get_kernel("cpu"), get_kernel("gpu"), range(3))
    assert not disagree


@needs_gpu
def test_rows_do_not_depend_on_the_memory_that_is_free(ph_records, monkeypatch):
    problem = hold_out(*ph_records, law=broad(), scores=SCORES, washout=60)
    kernel = get_kernel("gpu")
    whole = kernel.evaluate(problem, range(40))
    monkeypatch.setattr(work, "free_bytes", lambda: 60 * 2**20)
    cut = kernel.evaluate(problem, range(40))
    for name in ("scores", "ridge", "status", "order"):
        assert (whole[name] == cut[name]).all(), name
    monkeypatch.setattr(work, "free_bytes", lambda: 2**20)
    with pytest.raises(InputError, match=r"one network needs .* GiB on the GPU, but .* free"):
        kernel.evaluate(problem, range(4))


@needs_gpu
def test_more_states_than_a_thread_block_can_hold(ph_records):
    problem = hold_out(*ph_records, law=paper(20_000), scores=SCORES, washout=60)
    with pytest.raises(InputError, match="more than a thread block of this GPU can hold"):
        get_kernel("gpu").evaluate(problem, [0])


@needs_gpu
def test_no_draws_no_rows(ph_records):
    assert len(get_kernel("gpu").evaluate(hold_out(*ph_records, law=paper(5), scores=SCORES), [])) == 0


# ---------------------------------------------------------------- limits and demanding scores on the card


def drifting(outputs=1):
    """A plant that integrates, and a longer record of it: many free runs drift to their limits."""
    k = np.arange(1500.0)
    u = np.sin(0.11 * k) + 0.5 * np.sin(0.037 * k**1.1)
    y = np.stack([np.cumsum(0.02 * u), np.minimum(np.cumsum(0.01 * u) + 0.1, 0.15)], axis=1)[:, :outputs]
    return Record(u=u[:500], y=y[:500]), Record(u=3.0 * u[500:], y=y[500:])


CLIPPED = ReservoirLaw(
    order=Choice((6, 40)), output_delays=2, bias_scale=0.3, training=LeastSquares((1e-10, 1e-4)), clip=True,
    scaling=Choice(("minmax", "standard")),
)  # fmt: skip


@needs_gpu
@pytest.mark.parametrize("horizon", [None, 20])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("scores", [SCORES, [get_score("peak")]], ids=["rms", "outputs"])
def test_clipped_rows_agree_and_so_does_what_is_held(outputs, horizon, scores):
    problem = hold_out(*drifting(outputs), law=CLIPPED, scores=scores, washout=50, horizon=horizon)
    _, _, disagree = agreement(problem, get_kernel("cpu"), get_kernel("gpu"), range(24))
    assert not disagree
    if horizon is None:
        assert (get_kernel("gpu").evaluate(problem, range(24))["status"] == Status.HELD).any()


@needs_gpu
def test_outputs_on_the_card_stay_within_the_bound_bit_for_bit():
    problem = hold_out(*drifting(2), law=CLIPPED, scores=SCORES, washout=50)
    for index in range(8):
        model, [outputs] = train_network(get_kernel("gpu"), problem, index)
        assert (outputs >= model.bound[:, 0]).all()
        assert (outputs <= model.bound[:, 1]).all()


@needs_gpu
@pytest.mark.parametrize("blocks", [False, True])
def test_demanding_scores_agree(blocks, ph_records):
    scores = [get_score("robust"), *SCORES]
    law = dataclasses.replace(broad(), order=Choice((10, 40)))
    one = blocks_in_turn(ph_records[0], 3, law=law, scores=scores, washout=40)
    problem = one if blocks else hold_out(*ph_records, law=law, scores=scores, washout=60)
    _, _, disagree = agreement(problem, get_kernel("cpu"), get_kernel("gpu"), range(8))
    assert not disagree


@needs_gpu
def test_a_mixed_law_agrees(ph_records):
    law = MixedLaw((broad(order=20), dataclasses.replace(paper(15), training=Other((1e-6,)))))
    problem = hold_out(*ph_records, law=law, scores=SCORES, washout=60)
    _, _, disagree = agreement(problem, get_kernel("cpu"), get_kernel("gpu"), range(16))
    assert not disagree


# ---------------------------------------------------------------- shared with the host, without a card


@register_trainer
@dataclasses.dataclass(frozen=True)
class Other(LeastSquares):
    """A trainer that the card does not know, although it is made from one that it knows."""

    kind = "other least squares"

    def chosen(self, alternative):
        return Other((self.ridges[alternative],))


class PretendedCard(gpu.GPUKernel):
    """A kernel whose card is the compiled code, and that remembers what it was asked for."""

    def __init__(self):
        self.cpu, self.asked = get_kernel("cpu"), []

    def rows_on_card(self, problem, numbers):
        self.asked.append((problem.law, numbers.tolist()))
        return self.cpu.evaluate(problem, numbers.tolist())

    def runs_on_card(self, problem, numbers):
        self.asked.append((problem.law, numbers.tolist()))
        return self.cpu.runs(problem, numbers.tolist())


MIXED = MixedLaw(
    (paper(6), dataclasses.replace(paper(9), training=Other((1e-8, 1e-4))), dataclasses.replace(paper(12), clip=True)),
    (2, 1, 1),
)


@pytest.mark.parametrize("scores", [SCORES, [get_score("robust"), *SCORES]], ids=["plain", "demanding"])
@pytest.mark.parametrize("blocks", [False, True])
def test_draws_of_a_mixed_law_are_shared_and_come_back_in_order(scores, blocks, ph_records):
    in_turn = blocks_in_turn(ph_records[0], 3, law=MIXED, scores=scores, washout=40, seed=2)
    problem = in_turn if blocks else hold_out(*ph_records, law=MIXED, scores=scores, washout=60, seed=2)
    indices = [11, 3, 0, 7, 5, 2, 9, 4, 20, 8, 1]
    kernel, cpu = PretendedCard(), get_kernel("cpu")
    rows, expected = kernel.evaluate(problem, indices), cpu.evaluate(problem, indices)
    assert same(rows, expected)
    kinds = {index: MIXED.component(problem.key(index)) for index in indices}
    for law, asked in kernel.asked:
        assert asked == [index for index in indices if kinds[index] is law], "one call for each kind that it knows"
    assert {id(law) for law, _ in kernel.asked} == {id(MIXED.laws[0]), id(MIXED.laws[2])}
    assert {id(kind) for kind in kinds.values()} == {id(law) for law in MIXED.laws}, "the test needs all kinds"
    for cut in ([[one] for one in indices], [indices[:4], indices[4:]]):
        assert same(np.concatenate([kernel.evaluate(problem, batch) for batch in cut]), expected)
    for one, other in zip(kernel.runs(problem, indices), cpu.runs(problem, indices), strict=True):
        assert (one.order, one.setting, one.clipped) == (other.order, other.setting, other.clipped)
        assert (one.scores(problem) == other.scores(problem)).all()


def test_what_the_card_does_not_know_is_made_on_the_host(ph_records):
    scores = [get_score("robust")]
    law = dataclasses.replace(paper(9), training=Other((1e-8, 1e-4)))
    problem = hold_out(*ph_records, law=law, scores=scores, washout=60)
    kernel, cpu = PretendedCard(), get_kernel("cpu")
    assert same(kernel.evaluate(problem, range(3)), cpu.evaluate(problem, range(3)))
    assert not kernel.asked
    one, other = network_and_run(kernel, problem, 2), network_and_run(cpu, problem, 2)
    assert one[0].digest == other[0].digest
    assert (one[1].scores(problem) == other[1].scores(problem)).all()


def test_an_error_on_the_card_ends_the_call(ph_records):
    problem = hold_out(*ph_records, law=MIXED, scores=SCORES, washout=60)
    kernel = PretendedCard()

    def fail(*_):
        raise InputError("a network is too large")

    kernel.rows_on_card = fail
    with pytest.raises(InputError, match="too large"):
        kernel.evaluate(problem, range(12))


def test_status_from_counts_is_the_one_from_outputs(monkeypatch):
    """What is counted on the card decides as the outputs themselves do."""
    problem = hold_out(*drifting(2), law=CLIPPED, scores=SCORES, washout=50)
    runs = get_kernel("cpu").runs(problem, range(12))
    low, high = problem.limits[0].ends
    held = np.array([[((y <= low) | (y >= high)).sum(axis=0) / len(y) for y in run.outputs] for run in runs])
    rms = np.ones_like(held)
    rms[3] = np.inf
    one = object.__new__(work.Work)
    one.problem = problem
    result = batches.BatchResult(rms=[rms], held=[held], failed=[], outputs=[], readouts=[])
    expected = [[run.status(problem)] for run in runs]
    expected[3] = [Status.DIVERGED]
    assert one.status(result).tolist() == expected
    assert [Status.HELD] in expected, "the test needs a network that is held"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no CUDA compiler")
@pytest.mark.parametrize("diagonals", [0, 1])
@pytest.mark.parametrize(("inputs", "outputs", "units"), [(1, 1, 1), (3, 2, 2), (2, 3, 5)])
def test_sources_compile(inputs, outputs, units, diagonals, tmp_path):
    sizes = {"NU": inputs, "NY": outputs, "SLOTS": 10, "DIAGONALS": diagonals, "UNITS": units, "THREADS": 128}
    sizes |= {"RESIDENT": 4, "SETTLED": 1e-12, "CHECK_EVERY": 8}
    sizes |= {"MOST": 10, "RING": 2, "TAIL": 12, "WEIGHTS": 256, "FITTING": 2}
    sizes |= {"TILE": 64, "DEPTH": 8, "STAGES": 4}
    groups = [("gram",), ("draw", "norm", "step", "run"), ("solve", "fallback")]
    groups += [("step", "run", "descent")] if units == 1 else []
    for number, names in enumerate(groups):
        source = tmp_path / f"{number}.cu"
        source.write_text("\n".join((device.SOURCES / f"{name}.cu").read_text() for name in ("common", *names)))
        options = [f"-D{name}={value}" for name, value in sizes.items()]
        command = ["nvcc", "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", *options, "-ptx", str(source)]
        done = subprocess.run([*command, "-o", str(source) + ".ptx"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- is there a card?


class Runtime:
    """As much of CuPy as the search for a GPU looks at."""

    def __init__(self, count=1, capability=(9, 0), error=None, compiler=True):
        self.cuda = self.runtime = self.nvrtc = self
        self._count, self._capability, self._error, self._compiler = count, capability, error, compiler

    def getDeviceCount(self):
        if self._error:
            raise self._error
        return self._count

    def Device(self):
        return self

    id = 0

    def getDeviceProperties(self, _):
        return {"major": self._capability[0], "minor": self._capability[1], "name": b"Test card"}

    def getVersion(self):
        if not self._compiler:
            raise RuntimeError("libnvrtc.so: cannot open shared object file")
        return 13, 0


@pytest.fixture
def pretend(monkeypatch):
    """Pretend that CuPy finds this."""

    def start(runtime):
        monkeypatch.setattr(device, "cupy", lambda: runtime)
        device.gpu_problem.cache_clear()

    yield start
    device.gpu_problem.cache_clear()


@pytest.mark.parametrize(
    ("runtime", "sentence"),
    [
        (Runtime(error=RuntimeError("cudaErrorInsufficientDriver: too old\nmore")), "driver does not answer .*too old"),
        (Runtime(count=0), "no NVIDIA GPU was found.*nvidia-smi"),
        (Runtime(capability=(7, 5)), "Test card has compute capability 7.5, but 8.0"),
        (Runtime(compiler=False), "run-time compiler does not load .*pip install"),
    ],
)
def test_no_usable_gpu_is_one_sentence_with_the_remedy(runtime, sentence, pretend):
    pretend(runtime)
    with pytest.raises(InputError, match=sentence) as caught:
        get_kernel("gpu")
    assert "\n" not in str(caught.value)
    assert "--device cpu" in str(caught.value)
    assert get_kernel("auto").name == "cpu"


def test_a_usable_gpu_is_taken(pretend):
    pretend(Runtime())
    assert get_kernel("gpu").name == "gpu"
    assert get_kernel("auto").name == "gpu"


def test_without_cupy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    device.cupy.cache_clear()
    device.gpu_problem.cache_clear()
    try:
        with pytest.raises(MissingExtra, match=r"echobound\[gpu\]"):
            get_kernel("gpu")
        assert get_kernel("auto").name == "cpu"
    finally:
        device.cupy.cache_clear()
        device.gpu_problem.cache_clear()
