"""How much longer a run with real maths takes than a bare loop of the same batched torch calls.

    python tests/benchmarks/bench_maths.py

64 workers train the digits MLP (batch 32 each, synchronous SGD with momentum). `bare` is written out
below: one stacked gradient of all workers, their mean, the update. The others add, one after the other,
batches by address and the arithmetic of values (`values`), and a simulated cluster (`cohort`, `process`).
Runs take turns and the fastest of each counts, so that what else the machine does matters little.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import process_time

import torch

from scenarios.build import job_of
from scenarios.loading import load
from simulator.maths.torch_maths import TorchMaths
from simulator.optimizers import Sgd
from simulator.problems import DigitsMlp
from simulator.problems.digits import digits
from simulator.run import EngineKind, run
from simulator.streams import Draws

WORKERS, BATCH, STEPS, TURNS = 64, 32, 100, 5
CLUSTER = (
    f"cluster={{topology: {{kind: star, hosts: {WORKERS}, link: {{bandwidth: 25 Gbit/s, latency: 2 us}}, "
    f"host: {{kind: cpu_only, devices: {{profile: p100_sxm2, count: 1, class: gpu}}}}}}, "
    f"placement: {{workers: {WORKERS}}}}}"
)
METHODS = {
    "sync_sgd": ["training.strategy={kind: sync_sgd}"],
    "local_sgd": ["training.strategy={kind: local_sgd, h: 8}"],
    "ad_psgd": ["training.strategy={kind: ad_psgd}", "training.gossip={graph: random_matching}"],
}


class Bare:
    """The sums alone, as one would write them with torch."""

    def __init__(self) -> None:
        self.inputs = torch.tensor(digits().train, dtype=torch.float32)
        self.labels = torch.tensor(digits().train_labels)
        generator = torch.Generator().manual_seed(0)
        self.batches = torch.randint(0, len(self.inputs), (STEPS, WORKERS, BATCH), generator=generator)
        self.start = torch.tensor(DigitsMlp().initial(Draws(1)), dtype=torch.float32)
        self.minus = torch.full((WORKERS, BATCH, 1), -1.0)

    def gradients(self, x: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        """Gradients of all workers, (64, d)."""
        models = x.expand(WORKERS, -1)
        weight1, weight2 = models[:, :8192].view(-1, 64, 128), models[:, 8192:9472].view(-1, 128, 10)
        inputs = self.inputs[batch]
        hidden = torch.bmm(inputs, weight1).add_(models[:, 9472:9600].unsqueeze(1)).relu_()
        delta = torch.bmm(hidden, weight2).add_(models[:, 9600:].unsqueeze(1)).softmax(-1)
        delta.scatter_add_(2, self.labels[batch].unsqueeze(2), self.minus).div_(BATCH)
        back = torch.bmm(delta, weight2.transpose(1, 2)).mul_(hidden > 0)
        slopes = torch.empty(WORKERS, 9610)
        slopes[:, :8192] = torch.bmm(inputs.transpose(1, 2), back).flatten(1)
        slopes[:, 8192:9472] = torch.bmm(hidden.transpose(1, 2), delta).flatten(1)
        slopes[:, 9472:9600], slopes[:, 9600:] = back.sum(1), delta.sum(1)
        return slopes

    def run(self) -> None:
        """All steps."""
        x, momentum = self.start, torch.zeros_like(self.start)
        for batch in self.batches:
            momentum = 0.9 * momentum + self.gradients(x, batch).mean(0)
            x = x - 0.1 * momentum


def values() -> None:
    """Gradients one worker at a time, their mean, the update: as the process engine asks for them."""
    maths, optimizer = TorchMaths(DigitsMlp(), WORKERS, Draws(1), 1.0), Sgd(lr=0.1, momentum=0.9)
    x, state = maths.initial(), optimizer.initial()
    for step in range(STEPS):
        gradients = [maths.gradient(x, worker, step) for worker in range(WORKERS)]
        x, state = optimizer.apply(x, maths.mean(gradients), state)  # type: ignore[assignment]


def simulated(method: str, engine: EngineKind) -> Callable[[], object]:
    """The run as a whole, without evaluations."""
    sets = [
        CLUSTER,
        *METHODS[method],
        f"stop={{steps: {STEPS}}}",
        "stragglers=[]",
        "evaluate={every: 1000 s}",
    ]
    scenario = load("quickstart", sets).scenarios[0]
    return lambda: run(job_of(scenario, "summary"), engine)


def main() -> None:
    """Print milliseconds a step and ratios to the bare loop."""
    torch.set_num_threads(1)
    runs: dict[str, Callable[[], object]] = {"bare": Bare().run, "values": values}
    runs["sync_sgd/cohort"] = simulated("sync_sgd", "cohort")
    runs |= {f"{method}/process": simulated(method, "process") for method in METHODS}
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(TURNS + 1):
        for name, one in runs.items():
            began = process_time()
            one()
            if turn:  # the first warms up
                taken[name].append(process_time() - began)
    bare = min(taken["bare"])
    told = {
        name: {"ms_per_step": round(1e3 * min(times) / STEPS, 3), "ratio": round(min(times) / bare, 3)}
        for name, times in taken.items()
    }
    print(json.dumps({"workers": WORKERS, "steps": STEPS, "runs": told}, indent=1))


if __name__ == "__main__":
    main()
