"""suiro's OpenFlow extension for os-ken: hosts, virtual machines, and on which core each flow is processed.

The specification is docs/reference/openflow-extension.md of suiro. `values` has what the messages say, `steering` sends them, `app` turns what
comes into `events`. Importing the package teaches os-ken the match fields `fcf` and `vm_id` of OpenFlow 1.3.
"""

from .actions import read_action, set_fcf
from .envelope import EXPERIMENTER, Error, read
from .fields import register as _register
from .steering import Steering
from .values import (
    ADDED,
    AUTO,
    DELETED,
    HASH,
    MODIFIED,
    CoreStats,
    HostCore,
    HostInfo,
    HostInterface,
    Place,
    PlaceMod,
    PlacementStats,
    Vm,
    VmAddress,
    VmStatus,
)

_register()

__all__ = [
    "ADDED", "AUTO", "DELETED", "EXPERIMENTER", "HASH", "MODIFIED", "CoreStats", "Error", "HostCore", "HostInfo",
    "HostInterface", "Place", "PlaceMod", "PlacementStats", "Steering", "Vm", "VmAddress", "VmStatus", "read", "read_action",
    "set_fcf",
]
