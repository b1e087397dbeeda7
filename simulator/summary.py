"""From a finished engine to its result: `summary.json` (ARCHITECTURE.md, Formats) and the tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simulator.digest import finish
from simulator.engine import Engine
from simulator.fabric import FloatArray
from simulator.network import TICKS_PER_BYTE
from simulator.recorder import COMPUTE, IDLE, Recorder
from simulator.result import FRACTIONS, Coded, Columns, Result
from simulator.traffic import loads, transfers


def result_of(engine: Engine, cut: float) -> Result:
    """Close the record at `cut` (seconds) and sum up."""
    if engine.cohort is not None:
        engine.cohort.cut()
    for worker in engine.workers:
        worker.cut()
    recorder = engine.recorder
    quality = _quality(engine)
    simulated = recorder.close(cut)
    recorder.idle()
    engine.network.check_laws()
    shares = _shares(recorder, simulated)
    summary = _times(engine, simulated, shares) | _traffic(engine) | quality
    summary |= _worth(engine, simulated, summary["samples_costed"])
    if engine.job.others:
        summary["others"] = engine.surroundings.summaries(cut)
    summary |= {
        "band": None,
        **engine.job.names,
        "digest": finish(recorder.words, engine.network.link_ticks),
        "seed": engine.job.seed,
    }
    return Result(
        summary=summary,
        workers=_workers(engine, shares),
        links=_links(engine, cut),
        curve=engine.observer.curve() if engine.observer else None,
        steps=recorder.step_table(),
        spans=recorder.span_table(),
        transfers=transfers(engine.network, engine.job.workers, engine.job.server_node),
        loads=loads(engine.network),
    )


def _shares(recorder: Recorder, simulated: float) -> FloatArray:
    """Shares of each worker's time by kind, shape (kinds, n); each column sums to one."""
    seconds = recorder.seconds
    total = seconds.sum(axis=0)
    if not simulated:
        seconds = seconds.copy()
        seconds[IDLE], total = 1.0, np.ones(recorder.workers)
    return np.asarray(seconds / total)


def _times(engine: Engine, simulated: float, shares: FloatArray) -> dict[str, Any]:
    recorder, job = engine.recorder, engine.job
    steps = recorder.steps_done
    costed = int(steps.sum()) * job.samples_costed
    stale = recorder.staleness_count
    return {
        "simulated_s": simulated,
        "steps": int(steps.sum()),
        "steps_per_worker_min": int(steps.min()),
        "steps_per_worker_max": int(steps.max()),
        "rounds": engine.rounds(),
        "samples": int(recorder.samples.sum()),
        "samples_costed": costed,
        "samples_wasted": recorder.wasted,
        "samples_per_s": costed / simulated if simulated else None,
        "useful_samples_per_s": _useful(engine, costed) / simulated if simulated else None,
        "step_time_s": recorder.step_times.summary(),
        **{name: float(share) for name, share in zip(FRACTIONS, shares.mean(axis=1), strict=True)},
        "staleness_mean": recorder.staleness_sum / stale if stale else None,
        "staleness_max": recorder.staleness_max if stale else None,
    }


def _useful(engine: Engine, costed: int) -> float:
    """Costed samples whose gradients were used."""
    computed = int(engine.recorder.samples.sum())
    return costed * (1 - engine.recorder.wasted / computed) if computed else 0.0


def _worth(engine: Engine, simulated: float, samples: int) -> dict[str, Any]:
    """Money, energy, utilisation and memory; None where the profiles do not say.

    Energy: a device draws its busy power while it computes and its idle power else. Utilisation (MFU): the
    model's FLOP, without recomputation, over the devices' dense peak.
    """
    job, energy = engine.job, None
    if job.idle_watts is not None and job.busy_watts is not None:
        computing = engine.recorder.seconds[COMPUTE]
        joules = job.idle_watts * simulated + (job.busy_watts - job.idle_watts) * computing
        energy = float(joules.sum()) / 3.6e6
    known = job.peak_flops is not None and simulated > 0
    return {
        "cost_usd": None if job.usd_per_hour is None else job.usd_per_hour * simulated / 3600,
        "energy_kwh": energy,
        "mfu": samples * job.flop_per_sample / (simulated * (job.peak_flops or 1.0)) if known else None,
        "mfu_peak_dtype": job.peak_dtype if known else None,
        "memory_peak_bytes": job.memory_bytes,
    }


def _traffic(engine: Engine) -> dict[str, float]:
    """The run's own bytes, but for the busiest link's: those are all that it carried."""
    network, apart = engine.network, engine.surroundings.accounts()
    ticks = {
        "bytes_sent": network.sent_ticks - sum(one.sent_ticks for one in apart.values()),
        "bytes_received": network.received_ticks - sum(one.received_ticks for one in apart.values()),
        "bytes_dropped": network.dropped_ticks - sum(one.dropped_ticks for one in apart.values()),
        "bytes_in_flight": network.in_flight_ticks - sum(one.in_flight_ticks for one in apart.values()),
        "bytes_per_link_max": int(network.link_ticks.max(initial=0)),
    }
    return {name: count / TICKS_PER_BYTE for name, count in ticks.items()}


def _quality(engine: Engine) -> dict[str, Any]:
    names = ("final_loss", "final_accuracy", "final_train_loss", "final_accuracy_worker_mean")
    found: dict[str, Any] = dict.fromkeys(
        (*names, "consensus_distance", "time_to_target_s", "samples_to_target")
    )
    observer = engine.observer
    if observer is None:
        return found
    each = engine.models_now()
    found |= observer.finish(each)
    found["consensus_distance"] = engine.maths.distance(each)
    found["time_to_target_s"] = observer.time_to_target
    found["samples_to_target"] = observer.samples_to_target
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in found.items()}


def _workers(engine: Engine, shares: FloatArray) -> Columns:
    workers, recorder = engine.job.workers, engine.recorder
    return {
        "worker": np.arange(engine.size),
        "host": Coded(workers.host, workers.host_names),
        "device": workers.device,
        **{name: shares[kind] for kind, name in enumerate(FRACTIONS)},
        "bytes_sent": recorder.bytes_sent,
        "steps": recorder.steps_done,
        "samples": recorder.samples,
    }


def _links(engine: Engine, cut: float) -> Columns:
    """What links carried until the cut, seconds, which may lie behind the last finished span."""
    fabric, network = engine.job.fabric, engine.network
    carried = network.link_bytes
    capacity = network.supplied(cut) if cut else np.full(fabric.links, np.inf)
    apart = engine.surroundings.accounts()
    return {
        "link": np.array(fabric.link_names),
        "src": Coded(fabric.tail, fabric.node_names),
        "dst": Coded(fabric.head, fabric.node_names),
        "bandwidth_bytes_per_s": fabric.bandwidth,
        "latency_s": fabric.latency,
        "bytes": carried,
        "busy_s": network.busy_seconds,
        "utilisation": carried / capacity,
        "utilisation_peak": network.peak_utilisation,
        **{f"{name}_bytes": one.link_ticks / TICKS_PER_BYTE for name, one in apart.items()},
    }
