"""Which device each worker runs on, and where a parameter server lives."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, StringConstraints

from simulator.errors import InputError
from simulator.fabric import Fabric, IntArray
from simulator.some_links import Patterns, hosts_named
from simulator.spec import Spec
from simulator.streams import Draws
from topologies.links import MOST_NODES, Impossible

Axis = Literal["tp", "cp", "ep", "dp", "pp"]


class Placement(Spec):
    """Where the workers run (key `placement` of a cluster).

    Attributes:
        workers: how many; by default one on every device (or host).
        hosts: on these hosts only, by name, `*` and `?` for any letters; by default on all.
        per: `device`: a worker a device; `host`: one a host, on its first device.
        order: `host_major`: worker r on the r-th device, host by host; `device_major`: first every
            host's device 0, then every device 1 ...; `random`: a random order from the run's seed; a
            list of the axes of a layout, innermost first (ranks are host-major, the layout numbers
            them).
        server: of `parameter_server` and the like: `own` (a host of its own behind one more link of the
            topology's kind) or a host's name or number, whose NICs it shares.
    """

    workers: int | None = Field(default=None, ge=1, le=MOST_NODES)
    hosts: Patterns | None = None
    per: Literal["device", "host"] = "device"
    order: Literal["host_major", "device_major", "random"] | tuple[Axis, ...] = "host_major"
    server: Annotated[int, Field(ge=0)] | Annotated[str, StringConstraints(min_length=1)] = "own"

    def place(self, fabric: Fabric, seed: int = 0, taken: IntArray | None = None) -> IntArray:
        """Index into `fabric.devices` of each worker, shape (workers,).

        Args:
            fabric: the network.
            seed: of a random order.
            taken: indices of devices that others have.

        Raises:
            Impossible: more workers than places.
        """
        places = self._ordered(fabric, seed)
        places = places[np.isin(places, self._on_hosts(fabric))]
        if taken is not None:
            places = places[~np.isin(places, taken)]
        wanted = len(places) if self.workers is None else self.workers
        if wanted > len(places) or not wanted:
            raise Impossible(
                f"{wanted} workers" if wanted else f"no {self.per} for a worker",
                f"at most {len(places)}, one per {self.per}" if wanted else "at least one device",
                "fewer workers, or more hosts or devices",
            )
        return places[:wanted]

    def _on_hosts(self, fabric: Fabric) -> IntArray:
        """Indices of the devices on the hosts named."""
        if self.hosts is None:
            return np.arange(len(fabric.devices))
        try:
            hosts = hosts_named(fabric, self.hosts)
        except InputError as error:
            raise Impossible(error.found, error.expected, error.hint, at=("hosts",)) from None
        return np.flatnonzero(np.isin([device.host for device in fabric.devices], hosts))

    def _ordered(self, fabric: Fabric, seed: int) -> IntArray:
        host = np.array([d.host for d in fabric.devices], dtype=np.int64)
        index = np.array([d.index for d in fabric.devices], dtype=np.int64)
        places = np.arange(len(host), dtype=np.int64)
        if self.per == "host":
            places = places[index == 0]
        if self.order == "device_major":
            return places[np.lexsort((host[places], index[places]))]
        if self.order == "random":
            order: IntArray = Draws(seed).permutation("placement", 0, len(places))
            return places[order]
        return places

    @property
    def extra_hosts(self) -> int:
        """Hosts to add for a server: what `build` takes when the strategy has one."""
        return int(self.server == "own")

    def server_node(self, fabric: Fabric, number: int = 0) -> int:
        """Node of the parameter server; `number` among servers that have hosts of their own.

        Raises:
            Impossible: no host of that name or number.
        """
        names = [fabric.node_names[hub] for hub in fabric.hosts.tolist()]
        if isinstance(self.server, int):
            if self.server >= len(names):
                raise Impossible(
                    f"server: {self.server}", f"a host number below {len(names)}, a host's name, or own"
                )
            return int(fabric.hosts[self.server])
        own = f"server{number}" if number else "server"
        name = own if self.server == "own" else self.server
        if name not in names:
            raise Impossible(f"server: {self.server}", f"own or a host's name ({', '.join(names[:4])} ...)")
        return int(fabric.hosts[names.index(name)])
