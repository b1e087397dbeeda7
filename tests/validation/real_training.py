"""One process of real distributed training over gloo, in plain torch: what simulated runs are held against.

    python real_training.py RANK WORLD RUN.npz...

A RUN.npz holds the data, the start, the samples of every gradient and, for asynchronous methods, the
order of events that the simulation recorded. Nothing of Paceline is imported: the model is written down
anew, with autograd. The last rank is the parameter server, and idle in all other methods.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy


class Trainer:
    """A model, its optimiser and its data in one process."""

    def __init__(self, run: Path, rank: int, workers: dist.ProcessGroup) -> None:
        stored = np.load(run)
        self.config = json.loads(str(stored["config"]))
        self.rank, self.n, self.workers = rank, int(self.config["n"]), workers
        dtype = getattr(torch, self.config["dtype"])
        self.inputs = torch.tensor(stored["inputs"], dtype=dtype)
        self.labels = torch.tensor(stored["labels"])
        self.samples = torch.tensor(stored["samples"])
        self.x = torch.nn.Parameter(torch.tensor(stored["start"], dtype=dtype))
        self.optimizer = torch.optim.SGD([self.x], lr=self.config["lr"], momentum=self.config["momentum"])
        self.drawn = 0

    def gradient(self, x: torch.Tensor) -> torch.Tensor:
        """The next gradient of this rank at x."""
        chosen = self.samples[self.rank, self.drawn]
        self.drawn += 1
        x = x.detach().clone().requires_grad_()
        shapes = list(pairwise(self.config["sizes"]))
        tensors = torch.split(x, [a * b for a, b in shapes] + [b for _, b in shapes])
        layer = self.inputs[chosen]
        for number, (inputs, outputs) in enumerate(shapes):
            layer = layer @ tensors[number].view(inputs, outputs) + tensors[len(shapes) + number]
            layer = layer.relu() if number < len(shapes) - 1 else layer
        (slope,) = torch.autograd.grad(cross_entropy(layer, self.labels[chosen]), [x])
        return slope

    def step(self, g: torch.Tensor) -> None:
        """One step of the optimiser."""
        self.x.grad = g
        self.optimizer.step()

    def put(self, x: torch.Tensor) -> None:
        """Make x the model."""
        self.x.data = x.clone()

    # methods

    def sync_sgd(self) -> None:
        """All-reduce of gradients."""
        for _ in range(self.config["steps"]):
            g = self.gradient(self.x)
            dist.all_reduce(g, group=self.workers)
            self.step(g / self.n)

    def local_sgd(self) -> None:
        """All-reduce of models every h steps."""
        for t in range(1, self.config["steps"] + 1):
            self.step(self.gradient(self.x))
            if t % self.config["h"] == 0:
                total = self.x.data.clone()
                dist.all_reduce(total, group=self.workers)
                self.put(total / self.n)

    def dpsgd(self) -> None:
        """Step, then mix with both neighbours of a ring."""
        around = [(self.rank - 1) % self.n, (self.rank + 1) % self.n]
        for _ in range(self.config["steps"]):
            self.step(self.gradient(self.x))
            left, right = (self.swap(self.x.data, peer) for peer in sorted(around, key=self.turn))
            self.put((left + self.x.data + right) / 3)

    def turn(self, peer: int) -> int:
        """A ring of even length trades in two rounds; the round of a pair."""
        low = min(self.rank, peer) if abs(self.rank - peer) == 1 else max(self.rank, peer)
        return low % 2

    def swap(self, mine: torch.Tensor, peer: int) -> torch.Tensor:
        """Trade tensors with a peer."""
        theirs = torch.empty_like(mine)
        if self.rank < peer:
            dist.send(mine.contiguous(), peer)
            dist.recv(theirs, peer)
        else:
            dist.recv(theirs, peer)
            dist.send(mine.contiguous(), peer)
        return theirs

    def parameter_server(self) -> None:
        """Rank n serves pushes in the order recorded; a worker computes on the version it was sent last."""
        for worker in self.config["events"]:
            if self.rank == worker:
                dist.send(self.gradient(self.x), self.n)
                dist.recv(self.x.data, self.n)
            elif self.rank == self.n:
                g = torch.empty_like(self.x.data)
                dist.recv(g, worker)
                self.step(g)
                dist.send(self.x.data, worker)

    def ad_psgd(self) -> None:
        """Exchanges and steps end in the order recorded."""
        snapshot = self.x.data.clone()
        for kind, worker, peer in self.config["events"]:
            if kind == "average" and self.rank in (worker, peer):
                other = peer if self.rank == worker else worker
                mine = self.x.data.clone()
                self.put((mine + self.swap(mine, other)) / 2)
            elif kind == "step" and self.rank == worker:
                self.step(self.gradient(snapshot))
                snapshot = self.x.data.clone()


def main(rank: int, world: int, runs: list[Path]) -> None:
    """Do one run after the other; leave each model beside its run's file."""
    torch.set_num_threads(1)
    store = f"file://{runs[0].with_suffix('.store')}"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    workers = dist.new_group(list(range(world - 1)))
    for run in runs:
        trainer = Trainer(run, rank, workers)
        if rank < trainer.n or trainer.config["method"] == "parameter_server":
            getattr(trainer, trainer.config["method"])()
            np.save(run.with_name(f"{run.stem}-{rank}.npy"), trainer.x.detach().numpy())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), [Path(run) for run in sys.argv[3:]])
