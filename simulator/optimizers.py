"""Optimisers: pure functions of (model, gradient, state), written with the arithmetic of values only.

So one text serves ghosts, single workers (d,) and cohorts (n, d). Update rules and conventions are those
of `torch.optim`: the momentum buffer starts as the first gradient, weight decay is added to the gradient
(except in `adamw`), Adam corrects the bias of its moments.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal, NamedTuple, final

from pydantic import Field, NonNegativeFloat, PositiveFloat

from simulator.spec import Spec
from simulator.values import Vector

__all__ = [
    "Adam",
    "AdamW",
    "Momentum",
    "Nesterov",
    "Optimizer",
    "OptimizerSpec",
    "Qhm",
    "Sgd",
    "State",
]

Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class State(NamedTuple):
    """What an optimiser remembers between steps.

    Attributes:
        steps: updates made.
        first: momentum or first moment, shape of the model; None before the first step.
        second: second moment, likewise.
    """

    steps: int = 0
    first: Vector | None = None
    second: Vector | None = None


FRESH = State()  # one object for all, so that equal workers hold the same state


class Optimizer(Spec):
    """What all optimisers share.

    Attributes:
        lr: learning rate, before the schedule's factor.
        weight_decay: multiple of the model added to each gradient (`adamw`: taken off the model apart).
    """

    lr: PositiveFloat
    weight_decay: NonNegativeFloat = 0.0

    @property
    @abstractmethod
    def passes(self) -> int:
        """Vectors of the model's size read or written by one update: what it costs in memory traffic."""

    @abstractmethod
    def step(self, x: Vector, g: Vector, state: State, lr: float) -> tuple[Vector, State]:
        """The update for a gradient that includes its weight decay."""

    def initial(self) -> State:
        """The state before the first step."""
        return FRESH

    def apply(self, x: Vector, g: Vector, state: State, lr: float | None = None) -> tuple[Vector, State]:
        """One update.

        Args:
            x: model, shape (d,) or (n, d).
            g: gradient at (or near) x.
            state: what the last update returned.
            lr: learning rate of this step, schedule included; `self.lr` if None.

        Returns:
            The new model and state; the old ones are untouched.
        """
        if self.weight_decay:
            g = g + self.weight_decay * x
        return self.step(x, g, state, self.lr if lr is None else lr)


class _HeavyBall(Optimizer):
    """Buffer m <- momentum m + g, the first m being g; the subclasses differ in what they step along."""

    def buffer(self, g: Vector, state: State, momentum: float) -> Vector:
        """The momentum buffer after gradient g."""
        return g if state.first is None else momentum * state.first + g


@final
class Sgd(_HeavyBall):
    """x <- x - lr g; with `momentum` the heavy ball x <- x - lr m, m <- momentum m + g (Polyak 1964)."""

    kind: Literal["sgd"] = "sgd"
    momentum: Share = 0.0

    @property
    def passes(self) -> int:
        """Reads x, g and writes x; with momentum reads and writes m too."""
        return 5 if self.momentum else 3

    def step(self, x: Vector, g: Vector, state: State, lr: float) -> tuple[Vector, State]:
        """Step along g, or along m."""
        if not self.momentum:
            return x - lr * g, State(state.steps + 1)
        m = self.buffer(g, state, self.momentum)
        return x - lr * m, State(state.steps + 1, m)


@final
class Momentum(_HeavyBall):
    """Heavy ball: m <- momentum m + g, x <- x - lr m (Polyak 1964)."""

    kind: Literal["momentum"] = "momentum"
    momentum: Share = 0.9

    @property
    def passes(self) -> int:
        """Reads x, g, m and writes x, m."""
        return 5

    def step(self, x: Vector, g: Vector, state: State, lr: float) -> tuple[Vector, State]:
        """Step along m."""
        m = self.buffer(g, state, self.momentum)
        return x - lr * m, State(state.steps + 1, m)


@final
class Nesterov(_HeavyBall):
    """m <- momentum m + g, x <- x - lr (g + momentum m) (Sutskever et al. 2013, as in torch)."""

    kind: Literal["nesterov"] = "nesterov"
    momentum: Share = 0.9

    @property
    def passes(self) -> int:
        """Reads x, g, m and writes x, m."""
        return 5

    def step(self, x: Vector, g: Vector, state: State, lr: float) -> tuple[Vector, State]:
        """Step along g + momentum m."""
        m = self.buffer(g, state, self.momentum)
        return x - lr * (g + self.momentum * m), State(state.steps + 1, m)


@final
class Qhm(Optimizer):
    """Quasi-hyperbolic momentum: m <- momentum m + (1 - momentum) g, x <- x - lr ((1 - nu) g + nu m).

    Ma and Yarats, "Quasi-hyperbolic momentum and Adam for deep learning", ICLR 2019, equation (3).

    Quasi-global momentum on a complete graph is of this kind. It keeps m <- a m + (1 - mu) g with
    a = mu + (1 - mu) beta and steps by r along beta m_old + g. With b = c beta / (1 + c beta) and
    c = (1 - mu) / (1 - a) that is momentum = a, nu = b / a, lr = r / (1 - b).
    """

    kind: Literal["qhm"] = "qhm"
    momentum: Share = 0.999
    nu: Annotated[float, Field(ge=0.0, le=1.0)] = 0.7

    @property
    def passes(self) -> int:
        """Reads x, g, m and writes x, m."""
        return 5

    def step(self, x: Vector, g: Vector, state: State, lr: float) -> tuple[Vector, State]:
        """Step along (1 - nu) g + nu m."""
        fresh = (1.0 - self.momentum) * g
        m = fresh if state.first is None else self.momentum * state.first + fresh
        return x - lr * ((1.0 - self.nu) * g + self.nu * m), State(state.steps + 1, m)


class _Moments(Optimizer):
    """Adam's moments and its step (Kingma and Ba, "Adam", ICLR 2015, Algorithm 1)."""

    beta1: Share = 0.9
    beta2: Share = 0.999
    eps: PositiveFloat = 1e-8

    @property
    def passes(self) -> int:
        """Reads x, g, m, v and writes x, m, v."""
        return 7

    def step(self, x: Vector, g: Vector, state: State, lr: float) -> tuple[Vector, State]:
        """Step along m' / (sqrt(v') + eps), m' and v' being the bias-corrected moments."""
        t = state.steps + 1
        m, v = (1.0 - self.beta1) * g, (1.0 - self.beta2) * (g * g)
        if state.first is not None and state.second is not None:
            m, v = self.beta1 * state.first + m, self.beta2 * state.second + v
        m_hat, v_hat = m / (1.0 - self.beta1**t), v / (1.0 - self.beta2**t)
        return x - lr * (m_hat / (v_hat.sqrt() + self.eps)), State(t, m, v)


@final
class Adam(_Moments):
    """Adam; weight decay is coupled (added to the gradient)."""

    kind: Literal["adam"] = "adam"


@final
class AdamW(_Moments):
    """Adam with decoupled weight decay: x shrinks by lr weight_decay x (Loshchilov and Hutter, ICLR 2019)."""

    kind: Literal["adamw"] = "adamw"
    weight_decay: NonNegativeFloat = 0.01

    def apply(self, x: Vector, g: Vector, state: State, lr: float | None = None) -> tuple[Vector, State]:
        """One update, the decay apart from the gradient."""
        rate = self.lr if lr is None else lr
        return self.step((1.0 - rate * self.weight_decay) * x if self.weight_decay else x, g, state, rate)


OptimizerSpec = Annotated[Sgd | Momentum | Nesterov | Qhm | Adam | AdamW, Field(discriminator="kind")]
