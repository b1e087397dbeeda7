"""Cables the hosts' NICs to switches."""

from __future__ import annotations

import numpy as np

from simulator.fabric import IntArray
from topologies.links import LinkSpec, within_bounds
from topologies.regular import Site
from topologies.routing import Attachment


def attach(site: Site, switch: IntArray, link: LinkSpec) -> Attachment:
    """All NICs of host h on `switch[h]`, shape (hosts,), host by host."""
    return attach_ports(site, np.repeat(switch, site.interior.nics), link)


def attach_ports(site: Site, switch: IntArray, link: LinkSpec) -> Attachment:
    """Each NIC on a switch of its own choice, shape (NICs of all hosts,), host by host."""
    nics = site.interior.nics
    within_bounds(len(site.wiring.names), site.wiring.links + 2 * len(switch))
    cables = site.wiring.cable(np.repeat(site.interior.hubs, nics), switch, link)
    return Attachment(cables[np.cumsum(nics) - nics])
