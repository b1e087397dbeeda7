r"""Inside one box: devices, their links to the host's hub, the NICs.

        pcie_tree, nvswitch              nvlink_mesh                    cpu_only
    gpu0  gpu1  gpu2  gpu3           gpu0 === gpu1                 processors on the hub
       \    |    |    /                | \   / |   (and a bus            itself
        \   |    |   /  bus/nvlink     | nvlink|    each to the            |
         [   hub    ]                gpu2 === gpu3  hub)                 [hub]
            |  |  nics                                                     |

Each device has one full-duplex link to the hub (`bus` or `nvlink`), the hub has `nics` links of the
topology's kind to the network; device i of c uses NIC `i * nics // c`. Several NVSwitches of a box are one
hub: drawn apart, a flow on a single path would see a fraction of the bandwidth that striping gives it.
Links of a box with c devices: 2c (trees), 2c + c(c-1) (mesh), none (`cpu_only`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from simulator.spec import Spec
from simulator.units import Quantity
from topologies.links import LinkSpec

DEFAULT_BUS = LinkSpec(bandwidth=Quantity(12e9), latency=Quantity(1e-6))
"""PCIe 3.0 x16 as seen by a payload (from memory)."""
DEFAULT_GPU = "a100_80gb_sxm"
"""Profile of a GPU where a file names none."""
DEFAULT_CPU = "xeon_6226r"
"""Profile of a `cpu_only` host's processor where a file names none."""


class Devices(Spec):
    """The accelerators of a host, all alike.

    Attributes:
        profile: name of a device profile.
        count: how many; 0 makes a host without workers, for a parameter server.
        device_class: what `where: {class: NAME}` calls them (key `class`).
    """

    model_config = ConfigDict(serialize_by_alias=True)

    profile: str = DEFAULT_GPU
    count: int = Field(default=1, ge=0, le=1024)
    device_class: str = Field(default="gpu", alias="class", min_length=1)


class Processors(Devices):
    """The processors of a `cpu_only` host; keys as for `Devices`."""

    profile: str = DEFAULT_CPU
    device_class: str = Field(default="cpu", alias="class", min_length=1)


class PcieTree(Spec):
    """Devices behind a PCIe switch: one `bus` link each to the hub."""

    kind: Literal["pcie_tree"] = "pcie_tree"
    devices: Devices = Devices()
    bus: LinkSpec = DEFAULT_BUS
    nics: int = Field(default=1, ge=1, le=64)


class NvlinkMesh(Spec):
    """Devices joined pairwise by NVLink, and by a `bus` each to the hub (NICs and host).

    Attributes:
        nvlink: of each pair; by default the profile's (a device's total) shared out evenly among its peers.
    """

    kind: Literal["nvlink_mesh"] = "nvlink_mesh"
    devices: Devices = Devices()
    nvlink: LinkSpec | None = None
    bus: LinkSpec = DEFAULT_BUS
    nics: int = Field(default=1, ge=1, le=64)


class NvSwitch(Spec):
    """Devices around NVSwitches: one `nvlink` each to the hub; by default the profile's."""

    kind: Literal["nvswitch"] = "nvswitch"
    devices: Devices = Devices()
    nvlink: LinkSpec | None = None
    nics: int = Field(default=1, ge=1, le=64)


class CpuOnly(Spec):
    """Processors that sit on the hub itself: no link between device and network."""

    kind: Literal["cpu_only"] = "cpu_only"
    devices: Processors = Processors()
    nics: int = Field(default=1, ge=1, le=64)


Host = Annotated[PcieTree | NvlinkMesh | NvSwitch | CpuOnly, Field(discriminator="kind")]
"""Any server interior."""
