"""Compression: sizes, arithmetic, what is remembered, and what it costs in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from simulator.compression import Compression, PowerSgd, Qsgd, RandomK, Sign, Stream, TopK, matrix
from simulator.errors import VerbError
from simulator.job import Stop
from simulator.maths.compressors import compressed, low_rank, rounded
from simulator.optimizers import Sgd
from simulator.problems import Quadratic
from simulator.run import run
from simulator.strategies import DPSGD, EASGD, Gossip, LocalSGD, ParameterServer, SlowMo, SyncSGD
from simulator.streams import Draws
from topologies.gossip import CompleteGraph, RingGraph

DRAWS = Draws(1)
ALL = [TopK(share=0.2), RandomK(share=0.2), Sign(), Qsgd(levels=3, bucket=16), PowerSgd(rank=2)]
every_compressor = pytest.mark.parametrize("how", ALL, ids=lambda how: how.kind)


def gaussian(n: int, d: int = 100, purpose: str = "test") -> list[torch.Tensor]:
    from scipy.special import ndtri

    return list(torch.from_numpy(ndtri(DRAWS.block(purpose, 0, n * d))).view(n, d))


def sent(how: Compression, values: list[torch.Tensor], stream: Stream | None = None) -> Any:
    return compressed(how, stream or Stream("x"), range(len(values)), values, None, DRAWS)


# arithmetic


def test_top_k_keeps_the_largest():
    (v,) = gaussian(1)
    (arrived,) = sent(TopK(share=0.2), [v]).arrived
    assert int((arrived != 0).sum()) == 20
    assert (arrived[arrived != 0] == v[arrived != 0]).all()
    assert v[arrived == 0].abs().max() <= v[arrived != 0].abs().min()


def test_random_k_takes_the_same_entries_of_all_and_others_each_time():
    stream, how = Stream("x"), RandomK(share=0.2)
    first = sent(how, gaussian(3), stream).arrived
    assert len({tuple((a != 0).tolist()) for a in first}) == 1
    stream.uses += 1
    assert ((sent(how, gaussian(3), stream).arrived[0] != 0) != (first[0] != 0)).any()


def test_random_k_without_memory_keeps_the_mean():
    stream, how = Stream("x"), RandomK(share=0.2, error_feedback=False)
    (v,) = gaussian(1)
    total = torch.zeros_like(v)
    for stream.uses in range(4000):
        total += sent(how, [v], stream).arrived[0]
    assert float((total / 4000 - v).norm() / v.norm()) < 0.05
    assert (sent(RandomK(share=1, error_feedback=False), [v]).arrived[0] == v).all()


def test_signs_keep_the_mean_size():
    (v,) = gaussian(1)
    (arrived,) = sent(Sign(), [v]).arrived
    assert (arrived.sign() == v.sign()).all()
    assert arrived.abs().unique().tolist() == pytest.approx([float(v.abs().mean())])


@pytest.mark.parametrize("levels", [1, 3, 127])
def test_rounding_is_unbiased_and_to_levels(levels):
    (v,) = gaussian(1)
    rolls = torch.from_numpy(DRAWS.block("rolls", 0, 2000 * 100)).view(2000, 100)
    made = torch.stack([rounded(v, u, levels, 32) for u in rolls])
    largest = torch.cat([v[i : i + 32].abs().max().expand(len(v[i : i + 32])) for i in range(0, 100, 32)])
    steps = made / largest * levels
    assert float((steps - steps.round()).abs().max()) < 1e-9
    assert (made.abs() <= largest + 1e-12).all()
    assert float((made.mean(0) - v).abs().max()) < 0.1 / levels
    assert (rounded(torch.zeros(5).double(), torch.full((5,), 0.5).double(), levels, 32) == 0).all()


def test_power_method_finds_a_matrix_of_its_rank():
    """Exact at once, and the basis that is kept brings an unlike mean's best approximation nearer."""
    left, right = gaussian(2, 10, "left"), gaussian(2, 10, "right")
    v = (torch.stack(left).T @ torch.stack(right)).reshape(-1)
    (arrived,) = sent(PowerSgd(rank=2), [v]).arrived
    assert float((arrived - v).norm() / v.norm()) < 1e-10
    (v,) = gaussian(1)
    best = torch.linalg.svd(v.view(10, 10), full_matrices=False)
    nearest = float((best.S[2:] ** 2).sum().sqrt())
    basis, errors = torch.ones(10, 2).double(), []
    basis[0, 1] = 0
    for _ in range(60):
        (code,), basis = low_rank([v], basis, None)
        errors.append(float((code - v).norm()))
    assert errors[0] > 1.02 * nearest
    assert errors[-1] == pytest.approx(nearest, rel=1e-3)


def test_power_sgd_adds_up():
    """The mean of what arrives is the common P times the mean of Q^T: two all-reduces suffice."""
    values = gaussian(4)
    mean = torch.stack(sent(PowerSgd(rank=2), values).arrived).mean(0)
    (of_mean,) = sent(PowerSgd(rank=2), [torch.stack(values).mean(0)]).arrived
    assert float((mean - of_mean).norm() / of_mean.norm()) < 1e-12


@every_compressor
def test_with_error_feedback_nothing_is_lost(how):
    """What has arrived by then and what is remembered add up to what was sent."""
    how = how.model_copy(update={"error_feedback": True})
    stream, total, arrived = Stream("x"), torch.zeros(100).double(), torch.zeros(100).double()
    from simulator.maths.dense import Dense

    for number in range(20):
        (v,) = gaussian(1, purpose=f"step {number}")
        outcome = sent(how, [v], stream)
        dense = [Dense(t, 1.0) for t in (outcome.arrived[0], *outcome.left)]
        if outcome.basis is not None:
            dense.append(Dense(outcome.basis, 1.0))
        stream.take(how, (0,), dense)
        total, arrived = total + v, arrived + outcome.arrived[0]
    assert float((total - arrived - stream.errors[0].data).norm()) < 1e-10  # type: ignore[attr-defined]
    assert stream.uses == 20


# sizes

SIZES = {
    "top_k": (200_000 * 8,), "random_k": (200_000 * 4,), "sign": (125_004,),
    "qsgd": (1e6 * 3 / 8 + 62_500 * 4,), "powersgd": (2 * 1000 * 4, 2 * 1000 * 4),
}  # fmt: skip


@every_compressor
def test_sizes_follow_from_the_entries(how):
    assert how.messages(1_000_000, 4) == pytest.approx(SIZES[how.kind])
    assert len(how.coding()) == len(how.messages(100, 4))


@every_compressor
@pytest.mark.parametrize("d", [1, 2, 3, 17, 100])
def test_any_size_can_be_compressed(how, d):
    assert all(size > 0 for size in how.messages(d, 4))
    arrived = sent(how, gaussian(2, d)).arrived
    assert [a.shape for a in arrived] == [(d,), (d,)]
    assert all(torch.isfinite(a).all() for a in arrived)
    rows, columns = matrix(d)
    assert rows * columns >= d > rows * (columns - 1)


# runs


S, B, A = 40e6, 1e9, 20e-6


@pytest.fixture
def timed(make_job):
    """Seconds of a run of 4 equal workers whose passes take a millisecond."""

    def of(
        strategy: Any, how: Compression | None, n: int = 4, engine: Any = "process", **fields: Any
    ) -> float:
        given = {"stragglers": (), "optimizer_seconds": np.zeros(n), "pass_seconds": np.full(n, 1e-3)}
        given |= {"stop": Stop(steps=10), "compression": how, "seconds": 0.1}
        found = run(make_job(strategy, n, **(given | fields)), engine)
        return float(found.summary["simulated_s"]) / 10

    return of


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize("strategy", [SyncSGD(bucket_bytes="1 TB"), LocalSGD(h=1)], ids=["part", "model"])
@every_compressor
def test_a_step_takes_its_passes_and_its_messages(timed, how, strategy, engine):
    n = 4
    codes = how.messages(10_000_000, 4)
    rounds = 2 * (n - 1) if how.adds_up else n - 1
    travel = sum(rounds * (A + (code / n if how.adds_up else code) / B) for code in codes)
    passes = sum(how.coding()) + how.decoding(1 if how.adds_up else n)
    assert timed(strategy, how, engine=engine) == pytest.approx(0.1 + travel + passes * 1e-3, rel=1e-9)


@pytest.mark.parametrize("engine", ["process", "cohort"])
@every_compressor
def test_a_mean_is_one_round_however_many_messages_bring_it(make_job, how, engine):
    for strategy, rounds in ((SyncSGD(), 20), (LocalSGD(h=4), 5)):
        assert run(make_job(strategy, compression=how), engine).summary["rounds"] == rounds


def test_buckets_are_made_in_the_backward_pass_and_decoded_behind_it(timed):
    """Four buckets; each code travels beside the rest of the pass, but takes the device's time."""
    how = TopK(share=0.01)
    cut = timed(SyncSGD(bucket_bytes="10 MB"), how)
    last = 3 * (A + 25_000 * 8 / B)  # the all-gather of the last bucket's code
    coding, decoding = sum(how.coding()) * 1e-3, how.decoding(4) * 1e-3
    assert cut == pytest.approx(0.1 + coding + last + decoding, rel=1e-6)


def test_a_server_decodes_and_sends_its_model_whole(make_job):
    """The second step of a worker that nobody disturbs."""
    how = Sign()
    late = {"where": {"worker": 1}, "per": "run", "factor": {"kind": "constant", "value": 10.0}}
    fields = {"stragglers": (late,), "optimizer_seconds": np.zeros(2), "pass_seconds": np.full(2, 1e-3)}
    fields |= {"stop": Stop(steps=2), "server_seconds": 0.007, "compression": how}
    for discipline in ("fcfs", "lock_free"):
        steps = run(make_job(ParameterServer(discipline=discipline), 2, **fields)).steps
        second = (steps["worker"] == 0) & (steps["step"] == 2)
        passes = sum(how.coding()) + how.decoding(1)
        expected = 0.1 + (how.messages(10_000_000, 4)[0] + S) / B + 2 * A + 0.007 + passes * 1e-3
        assert (steps["end_s"] - steps["start_s"])[second] == pytest.approx(expected, rel=1e-9)


def test_gossip_decodes_each_neighbours_code(timed):
    how = Qsgd()
    code = how.messages(10_000_000, 4)[0]
    passes = sum(how.coding()) + how.decoding(2)
    expected = 0.1 + A + 2 * code / B + passes * 1e-3
    assert timed(DPSGD(), how, gossip=RingGraph()) == pytest.approx(expected, rel=1e-6)
    pulled = timed(Gossip(), how, 2, gossip=CompleteGraph())
    assert pulled == pytest.approx(
        0.1 + 2 * A + code / B + (sum(how.coding()) + how.decoding(1)) * 1e-3, rel=1e-6
    )


def test_half_precision_travels_in_halves(timed):
    assert timed(SyncSGD(bucket_bytes="1 TB"), TopK(share=0.1), item_bytes=2.0, pass_seconds=np.zeros(4)) == (
        pytest.approx(0.1 + 3 * (A + 2_000_000 * 6 / B), rel=1e-9)
    )


@pytest.fixture
def learned(make_job, finished):
    """The method's model after some steps on a quadratic."""

    def of(
        strategy: Any, how: Compression | None, steps: int = 200, engine: str = "process", **fields: Any
    ) -> Any:
        given = {"problem": Quadratic(condition=4), "optimizer": Sgd(lr=0.1), "stop": Stop(steps=steps)}
        given |= {"fidelity": "closed_form", "stragglers": (), "compression": how}
        return finished(make_job(strategy, 4, **(given | fields)), engine).model_now().data

    return of


@pytest.mark.parametrize(
    ("strategy", "fields"),
    [
        (SyncSGD(), {}), (SyncSGD(bucket_bytes="10 MB"), {}), (LocalSGD(h=3), {}),
        (DPSGD(), {"gossip": RingGraph()}),
    ],
    ids=["sync", "buckets", "local", "gossip"],
)  # fmt: skip
@pytest.mark.parametrize("how", [TopK(share=1), RandomK(share=1), PowerSgd(rank=5)], ids=lambda how: how.kind)
def test_what_leaves_nothing_out_changes_nothing(learned, strategy, fields, how):
    """All entries, or full rank: the plain method, to rounding."""
    how = how.model_copy(update={"consensus": 1.0})
    plain, coded = learned(strategy, None, 50, **fields), learned(strategy, how, 50, **fields)
    assert float((coded - plain).norm() / plain.norm()) < 1e-10


@pytest.mark.parametrize("strategy", [SyncSGD(), SyncSGD(bucket_bytes="10 MB"), LocalSGD(h=3)], ids=repr)
@every_compressor
def test_engines_agree(learned, strategy, how):
    process, cohort = (learned(strategy, how, 30, engine) for engine in ("process", "cohort"))
    assert (process == cohort).all()


LOGNORMAL = {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.3}}
STOPS = [Stop(steps=10), Stop(time=1.2345), Stop(samples=10 * 32 + 1)]
SYNCHRONOUS = [
    SyncSGD(), SyncSGD(bucket_bytes="1 MB"), SyncSGD(collective="halving_doubling"),
    SyncSGD(backup=1, late="finish"), LocalSGD(h=3), SlowMo(h=3),
]  # fmt: skip


@pytest.mark.parametrize("stop", STOPS, ids=["steps", "time", "samples"])
@pytest.mark.parametrize("strategy", SYNCHRONOUS, ids=repr)
@every_compressor
def test_engines_take_the_same_time(make_job, how, strategy, stop):
    """To the last span, wherever the run is cut: with several buckets in several messages too."""
    given = {"stragglers": (LOGNORMAL,), "pass_seconds": np.full(4, 1e-3), "compression": how, "stop": stop}
    process, cohort = (run(make_job(strategy, **given), engine).summary for engine in ("process", "cohort"))
    for key, value in process.items():
        if isinstance(value, float):
            assert cohort[key] == pytest.approx(value, rel=1e-9, abs=1e-12), key
    for key in ("digest", "rounds", "steps", "samples"):
        assert cohort[key] == process[key], key


def test_error_feedback_finds_the_optimum_where_forgetting_does_not(learned):
    """Karimireddy et al.: scaled signs and the largest entries are biased; with memory the bias goes."""
    best = torch.from_numpy(Quadratic(condition=4).optimum(4)[0])

    def off(how: Compression) -> float:
        found = learned(SyncSGD(bucket_bytes="1 TB"), how, 400, "cohort", optimizer=Sgd(lr=0.05))
        return float((found - best).norm())

    for how in (TopK(share=0.1), Sign(), PowerSgd(rank=1)):
        forgets = how.model_copy(update={"error_feedback": False})
        assert off(how) < 0.2 * off(forgets), how.kind


def test_compressed_gossip_keeps_the_mean_and_agrees(make_job, finished):
    """CHOCO: the copies' mean moves nobody's mean, and models come together without ever being sent whole."""
    fields = {
        "gossip": RingGraph(),
        "problem": Quadratic(),
        "optimizer": Sgd(lr=1e-12),
        "stop": Stop(steps=400),
    }
    how = TopK(share=0.25, consensus=0.5)

    class Apart(DPSGD):
        kind: str = "apart"  # type: ignore[assignment]

        def worker(self, w: Any) -> Any:
            x = w.initial_model() * float(w.rank)
            for _ in w.steps():
                yield from w.gradient(x)
                x = yield from w.neighbour_mean(x)
                w.report(x)

    engine = finished(make_job(Apart(), 4, compression=how, **fields))
    start = engine.maths.initial().data
    assert float((engine.model_now().data - 1.5 * start).norm() / start.norm()) < 1e-10
    assert engine.maths.distance(engine.models_now()) < 1e-6


def test_of_a_model_that_stays_the_server_has_a_copy(learned):
    """EASGD: what is new of the models shrinks, so the centre comes where it comes with whole models."""
    whole, coded = learned(EASGD(), None, 600), learned(EASGD(), TopK(share=0.1), 600)
    assert float((whole - coded).norm() / whole.norm()) < 1e-3


def test_a_method_of_ones_own_is_told_what_a_sparse_code_does_to_a_model(make_job):
    for strategy, verb in ((Gossip(), "fetch"), (Gossip(direction="push"), "send")):
        with pytest.raises(VerbError, match=f"`w.{verb}` sends a model to a worker that knows nothing of it"):
            run(make_job(strategy, gossip=CompleteGraph(), compression=TopK()))
