"""Made-up results in the shape of real ones, to test what is done with results without running anything.

Workers compute (log-normal), the last one three times slower; `wait` says whether they meet after each step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.result import FRACTIONS, Coded, Columns, Result

KINDS = ("compute", "communication", "waiting")


def spans_of(workers: int, steps: int, wait: bool, speed: float, seed: int) -> dict[str, Any]:
    """Start and end of each phase, shape (workers, steps), and the time of the last end."""
    random = np.random.default_rng(seed)
    work = 0.1 * speed * random.lognormal(-0.005, 0.1, (workers, steps))
    work[-1] *= 3
    network = np.full((workers, steps), 0.02)
    start = np.zeros((workers, steps))
    begun = np.zeros((workers, steps))
    now = np.zeros(workers)
    for step in range(steps):
        start[:, step] = now
        ready = now + work[:, step]
        begun[:, step] = ready.max() if wait else ready
        now = begun[:, step] + network[:, step]
    return {"start": start, "computed": start + work, "begun": begun, "end": begun + network}


def span_table(times: dict[str, Any]) -> Columns:
    workers, steps = times["start"].shape
    edges = np.stack([times["start"], times["computed"], times["begun"], times["end"]], axis=2)
    rank, step, kind = np.meshgrid(np.arange(workers), np.arange(1, steps + 1), [0, 2, 1], indexing="ij")
    keep = (edges[:, :, 1:] > edges[:, :, :-1]).ravel()
    return {
        "worker": rank.ravel()[keep].astype(np.int32),
        "kind": Coded(kind.ravel()[keep].astype(np.int8), KINDS),
        "name": Coded(kind.ravel()[keep].astype(np.int8), ("gradient", "all_reduce", "wait")),
        "start_s": edges[:, :, :-1].ravel()[keep],
        "end_s": edges[:, :, 1:].ravel()[keep],
        "step": step.ravel()[keep].astype(np.int32),
        "size_bytes": np.where(kind.ravel()[keep] == 1, 44.7e6, 0.0),
        "peer": np.full(keep.sum(), -1, dtype=np.int32),
        "hidden": np.zeros(keep.sum(), dtype=bool),
    }


def step_table(times: dict[str, Any], batch: int) -> Columns:
    workers, steps = times["start"].shape
    zero = np.zeros(workers * steps)
    return {
        "worker": np.repeat(np.arange(workers, dtype=np.int32), steps),
        "step": np.tile(np.arange(1, steps + 1, dtype=np.int32), workers),
        "start_s": times["start"].ravel(),
        "end_s": times["end"].ravel(),
        "compute_s": (times["computed"] - times["start"]).ravel(),
        "communication_s": (times["end"] - times["begun"]).ravel(),
        "waiting_s": (times["begun"] - times["computed"]).ravel(),
        "bubble_s": zero,
        "other_s": zero,
        "bytes_sent": np.full(workers * steps, 83.8e6),
        "staleness": zero,
        "samples": np.full(workers * steps, batch, dtype=np.int64),
    }


def worker_table(times: dict[str, Any], total: float, batch: int) -> dict[str, Any]:
    workers, steps = times["start"].shape
    shares = {name: np.zeros(workers) for name in FRACTIONS}
    shares["compute_fraction"] = (times["computed"] - times["start"]).sum(axis=1) / total
    shares["exposed_communication_fraction"] = (times["end"] - times["begun"]).sum(axis=1) / total
    shares["waiting_fraction"] = (times["begun"] - times["computed"]).sum(axis=1) / total
    shares["idle_fraction"] = 1 - sum(shares[name] for name in FRACTIONS[:-1])
    return {
        "worker": np.arange(workers, dtype=np.int32),
        "host": Coded.of(f"h{rank // 4}" for rank in range(workers)),
        "device": np.arange(workers, dtype=np.int32) % 4,
        **shares,
        "bytes_sent": np.full(workers, 83.8e6 * steps),
        "steps": np.full(workers, steps, dtype=np.int64),
        "samples": np.full(workers, steps * batch, dtype=np.int64),
    }


def link_table(workers: int, total: float, seed: int) -> Columns:
    random = np.random.default_rng(seed)
    hosts = max(1, workers // 4)
    names = [f"h{h}->switch" for h in range(hosts)] + [f"switch->h{h}" for h in range(hosts)]
    share = random.uniform(0.1, 0.6, 2 * hosts)
    return {
        "link": np.array(names, dtype=object),
        "src": np.array([name.split("->")[0] for name in names], dtype=object),
        "dst": np.array([name.split("->")[1] for name in names], dtype=object),
        "bandwidth_bytes_per_s": np.full(2 * hosts, 2.875e9),
        "latency_s": np.full(2 * hosts, 2e-6),
        "bytes": share * total * 2.875e9,
        "busy_s": share * total,
        "utilisation": share,
        "utilisation_peak": np.ones(2 * hosts),
    }


def curve_table(total: float, samples: float, floor: float, seed: int) -> Columns:
    random = np.random.default_rng(seed)
    time = np.arange(0.0, total, 0.5)
    loss = floor + (2.3 - floor) * np.exp(-time / 3) + random.normal(0, 0.01, len(time))
    zero = np.zeros(len(time), dtype=np.int8)
    return {
        "time_s": time,
        "samples": time / total * samples,
        "steps": (time / total * 600).astype(np.int64),
        "epoch": time / total * samples / 1437,
        "split": Coded(zero, ("test",)),
        "model": Coded(zero, ("method",)),
        "loss": loss,
        "accuracy": np.clip(1 - loss / 2.4, 0, 1),
    }


def transfer_tables(times: dict[str, Any], workers: int) -> tuple[Columns, Columns]:
    steps = times["start"].shape[1]
    hosts = max(1, workers // 4)
    begin, end = times["begun"].max(axis=0), times["end"].max(axis=0)
    pair = np.arange(steps) % 2 == 1  # every other one a message from worker 0 to worker 1
    transfers = {
        "name": Coded(pair.astype(np.int8), ("all_reduce ring", "push")),
        "begin_s": begin,
        "end_s": end,
        "bytes": np.full(steps, 44.7e6),
        "src": np.where(pair, 0, -1).astype(np.int32),
        "dst": np.where(pair, min(1, workers - 1), -1).astype(np.int32),
    }
    loads = {
        "transfer": np.repeat(np.arange(steps), hosts),
        "link": np.tile(np.arange(hosts), steps),
        "bytes": np.full(steps * hosts, 0.5 * 2.875e9 * 0.02),
    }
    return transfers, loads


def make_result(
    workers: int = 4, steps: int = 20, *, wait: bool = True, speed: float = 1.0, seed: int = 1,
    variant: str = "sync", target_s: float | None = 4.5, learns: bool = True, batch: int = 32,
) -> Result:  # fmt: skip
    """A made-up run; faster with a smaller `speed`."""
    times = spans_of(workers, steps, wait, speed, seed)
    total = float(times["end"].max())
    rows = worker_table(times, total, batch)
    samples = workers * steps * batch
    transfers, loads = transfer_tables(times, workers)
    gaps = np.diff(times["end"], axis=1)
    summary: dict[str, Any] = {
        "simulated_s": total, "steps": workers * steps, "steps_per_worker_min": steps,
        "steps_per_worker_max": steps, "rounds": steps if wait else None,
        "samples": samples if learns else None, "samples_costed": samples, "samples_wasted": 0,
        "samples_per_s": samples / total,
        "step_time_s": {
            "mean": float(gaps.mean()), "p50": float(np.median(gaps)), "p95": float(np.quantile(gaps, 0.95))
        },
        **{name: float(np.mean(rows[name])) for name in FRACTIONS},
        "bytes_sent": 83.8e6 * steps * workers, "bytes_received": 83.8e6 * steps * workers,
        "bytes_dropped": 0, "bytes_in_flight": 0, "bytes_per_link_max": 1.0e9,
        "staleness_mean": 0.0, "staleness_max": 0,
        "consensus_distance": 0.0, "final_loss": 0.1 if learns else None,
        "final_accuracy": 0.97 if learns else None, "final_train_loss": 0.05 if learns else None,
        "time_to_target_s": target_s if learns else None, "samples_to_target": None, "mfu": 0.3,
        "mfu_peak_dtype": "fp32", "cost_usd": 0.12, "energy_kwh": 0.03, "memory_peak_bytes": 3.2e9,
        "band": {"simulated_s": [total * 0.9, total * 1.1]}, "executed": "digits_mlp" if learns else None,
        "costed": "resnet18", "validated": False,
        "digest": f"{variant}-{seed}", "seed": seed, "variant": variant,
    }  # fmt: skip
    return Result(
        summary=summary,
        workers=rows,
        links=link_table(workers, total, seed),
        curve=curve_table(total, samples, 0.05 + 0.1 * speed, seed) if learns else None,
        steps=step_table(times, batch),
        spans=span_table(times),
        transfers=transfers,
        loads=loads,
        facts={"engine": "cohort", "events": 12345},
    )


def make_scenario(
    variant: str = "sync", seed: int = 1, learns: bool = True, name: str = "quickstart"
) -> dict[str, Any]:
    """A resolved scenario, as far as the outputs read one."""
    problem = {"problem": {"kind": "digits_mlp", "batch": 32, "split": {"kind": "iid"}}} if learns else {}
    return {
        "paceline": 1, "name": name, "variant": variant, "seed": seed,
        "cluster": {
            "topology": {"kind": "star", "hosts": 4, "link": {"bandwidth": "25 Gbit/s", "latency": "2 us"}},
            "placement": {"workers": 16, "per": "device", "order": "host_major"},
        },
        "workload": {"model": "resnet18", "batch": 32, "dtype": "fp32"}, **problem,
        "training": {"strategy": {"kind": "sync_sgd"}, "optimizer": {"kind": "sgd", "lr": 0.1}},
        "network": {"fidelity": "bundles"},
        "stragglers": [{"where": {"worker": 5}, "per": "run", "factor": {"kind": "constant", "value": 3.0}}],
        "evaluate": {"every": "0.5 s", "split": "test"},
        "stop": {"time": "60 s", **({"target": {"accuracy": 0.95}} if learns else {})},
    }  # fmt: skip
