"""What the messages say: a class for each structure of the specification, with `pack` and `unpack` between it and its bytes.

Numbers that this version does not know stay numbers. `None` stands for "none", "unknown" or "undecided", as each field says.
"""

import ipaddress
import struct
from dataclasses import dataclass, field
from typing import Dict, List, Optional

from . import match
from .bytes import element, head, numbers, sized, text

NO_CORE = 0xFFFF
NO_PORT = 0xFFFFFFFF

# Places that are no core's number.
AUTO, HASH = 0xFFFF, 0xFFFE
# Flags of a place.
PRIORITY, OWN = 1, 2
# Reasons of a VM_STATUS.
ADDED, DELETED, MODIFIED = 0, 1, 2
# Commands of a PLACE_MOD, as OFPFC_*.
ADD, MODIFY, MODIFY_STRICT, DELETE, DELETE_STRICT = range(5)
# Abilities of a host.
MEASURES, MOVES, PROGRAM = 1, 2, 4
# Abilities of an interface.
RSS, RSS_TABLE, NTUPLE, XDP_NATIVE, RPS = 1, 2, 4, 8, 16

ROLES = ["allowed", "excluded", "reserved"]
MODES = ["detached", "native", "generic"]
KINDS = ["entry", "group"]
REASONS = [
    "undecided", "fixed", "hash", "least loaded", "priority", "own core", "own core wanted", "above threshold", "no core",
    "no match", "not steered", "overload", "balance", "collision", "yielded to priority", "not allowed",
]
STAGES = ["driver", "packet", "vhost", "guest"]


def name(names, number):
    """The word for a number, or the number itself."""
    return names[number] if number < len(names) else str(number)


def _none(number, none=NO_CORE):
    return None if number == none else number


def _number(value, none=NO_CORE):
    return none if value is None else value


@dataclass
class Place:
    """Where a flow shall be processed: a core's number, or AUTO or HASH."""

    core: int = AUTO
    priority: bool = False
    own: bool = False

    @property
    def flags(self):
        return (PRIORITY if self.priority else 0) | (OWN if self.own else 0)

    @classmethod
    def of(cls, core, flags):
        return cls(core, bool(flags & PRIORITY), bool(flags & OWN))

    def action(self, datapath):
        """The action PLACE for the action lists of this datapath's version."""
        from .actions import place

        return place(datapath, self)

    def __str__(self):
        core = {AUTO: "auto", HASH: "hash"}.get(self.core, self.core)
        return f"place(core={core}{',priority' if self.priority else ''}{',own' if self.own else ''})"


@dataclass
class HostCore:
    """One core. `numa` and `sibling` may be None."""

    core: int
    numa: Optional[int] = None
    sibling: Optional[int] = None
    role: int = 0
    vms: List[int] = field(default_factory=list)

    LAYOUT = struct.Struct("!HHHHBxH")

    def pack(self):
        fixed = self.LAYOUT.pack(
            0, self.core, _number(self.numa), _number(self.sibling), self.role, len(self.vms))
        return sized(fixed + struct.pack(f"!{len(self.vms)}H", *self.vms))

    @classmethod
    def unpack(cls, data):
        _, core, numa, sibling, role, count = head(cls.LAYOUT, data, "a core")
        vms = numbers(data[cls.LAYOUT.size:], count, "a core")
        return cls(core, _none(numa), _none(sibling), role, vms)


@dataclass
class HostInterface:
    """One interface that steering is attached to."""

    name: str
    index: int
    mode: int
    rx_queues: int
    abilities: int
    driver: str = ""

    LAYOUT = struct.Struct("!HBxIH2xI16s16s")

    def pack(self):
        return sized(self.LAYOUT.pack(
            0, self.mode, self.index, self.rx_queues, self.abilities, self.name.encode(), self.driver.encode()))

    @classmethod
    def unpack(cls, data):
        _, mode, index, queues, abilities, called, driver = head(cls.LAYOUT, data, "an interface")
        return cls(text(called), index, mode, queues, abilities, text(driver))


@dataclass
class HostInfo:
    """The host. `threshold` is per mille."""

    version: int
    threshold: int
    abilities: int
    policy: str
    cores: List[HostCore]
    interfaces: List[HostInterface]

    LAYOUT = struct.Struct("!BxHHHH2xI16s")

    def pack(self):
        fixed = self.LAYOUT.pack(
            self.version, self.LAYOUT.size, len(self.cores), len(self.interfaces), self.threshold, self.abilities,
            self.policy.encode())
        return fixed + b"".join(one.pack() for one in [*self.cores, *self.interfaces])

    @classmethod
    def unpack(cls, data):
        version, size, cores, interfaces, threshold, abilities, policy = head(cls.LAYOUT, data, "a host")
        rest, found = data[size:], []
        for kind in [HostCore] * cores + [HostInterface] * interfaces:
            one, rest = element(rest, "a host")
            found.append(kind.unpack(one))
        return cls(version, threshold, abilities, text(policy), found[:cores], found[cores:])

    @property
    def may_program(self):
        return bool(self.abilities & PROGRAM)


@dataclass
class VmAddress:
    """An address or prefix: `kind` 1 = MAC, 4 = IPv4, 6 = IPv6."""

    kind: int
    prefix: int
    address: bytes

    LAYOUT = struct.Struct("!BB2x16s")

    def pack(self):
        return self.LAYOUT.pack(self.kind, self.prefix, self.address)

    @classmethod
    def unpack(cls, data):
        return cls(*head(cls.LAYOUT, data, "an address"))

    def __str__(self):
        if self.kind == 1:
            return ":".join(f"{byte:02x}" for byte in self.address[:6])
        width = {4: 4, 6: 16}.get(self.kind)
        if width is None:
            return self.address.hex()
        address = ipaddress.ip_address(self.address[:width])
        return str(address) if self.prefix == 8 * width else f"{address}/{self.prefix}"


@dataclass
class Vm:
    """A virtual machine. `vm_id` 0 = it has no number; `port` None = none is known; no `cores` = it is not pinned."""

    vm_id: int
    tenant: int = 0
    port: Optional[int] = None
    found: bool = False
    cores: List[int] = field(default_factory=list)
    addresses: List[VmAddress] = field(default_factory=list)
    name: str = ""

    LAYOUT = struct.Struct("!HHIIBBHB7x")

    def pack(self):
        called = self.name.encode()
        fixed = self.LAYOUT.pack(
            0, self.vm_id, self.tenant, _number(self.port, NO_PORT), int(self.found), len(called), len(self.cores),
            len(self.addresses))
        lists = struct.pack(f"!{len(self.cores)}H", *self.cores) + b"".join(one.pack() for one in self.addresses)
        return sized(fixed + lists + called)

    @classmethod
    def unpack(cls, data):
        _, vm_id, tenant, port, source, name_len, n_cores, n_addresses = head(cls.LAYOUT, data, "a machine")
        rest = data[cls.LAYOUT.size:]
        cores = numbers(rest, n_cores, "a machine")
        rest = rest[2 * n_cores:]
        size = VmAddress.LAYOUT.size
        addresses = [VmAddress.unpack(rest[size * at:]) for at in range(n_addresses)]
        (called,) = head(struct.Struct(f"{name_len}s"), rest[size * n_addresses:], "a machine")
        called = called.decode("utf-8", "replace")
        return cls(vm_id, tenant, _none(port, NO_PORT), source == 1, cores, addresses, called)


@dataclass
class VmStatus:
    """News of a machine: ADDED, DELETED or MODIFIED."""

    reason: int
    vm: Vm

    LAYOUT = struct.Struct("!B7x")

    def pack(self):
        return self.LAYOUT.pack(self.reason) + self.vm.pack()

    @classmethod
    def unpack(cls, data):
        (reason,) = head(cls.LAYOUT, data, "news of a machine")
        one, _ = element(data[cls.LAYOUT.size:], "news of a machine")
        return cls(reason, Vm.unpack(one))


@dataclass
class PlaceMod:
    """A change of steering entries. `fields` as os-ken's OFPMatch takes them; no `interface` = every one."""

    command: int = ADD
    priority: int = 0x8000
    place: Place = field(default_factory=Place)
    cookie: int = 0
    cookie_mask: int = 0
    interface: str = ""
    fields: Dict[str, object] = field(default_factory=dict)

    LAYOUT = struct.Struct("!B3xHHH6xQQ16s")

    def pack(self):
        fixed = self.LAYOUT.pack(
            self.command, self.priority, self.place.core, self.place.flags, self.cookie, self.cookie_mask,
            self.interface.encode())
        return fixed + match.pack(self.fields)

    @classmethod
    def unpack(cls, data):
        command, priority, core, flags, cookie, mask, interface = head(cls.LAYOUT, data, "a change of entries")
        fields = match.unpack(data[cls.LAYOUT.size:])
        return cls(command, priority, Place.of(core, flags), cookie, mask, text(interface), fields)


@dataclass
class CoreStats:
    """What a core did. `load` by stage and `other` are per mille of the core's time in the last milliseconds."""

    core: int
    load: List[int]
    other: int
    units: int
    frames: int
    busy_ns: List[int]

    LAYOUT = struct.Struct("!HH4HH2xI4xQ4Q")

    def pack(self):
        return sized(self.LAYOUT.pack(0, self.core, *self.load, self.other, self.units, self.frames, *self.busy_ns))

    @classmethod
    def unpack(cls, data):
        _, core, *rest = head(cls.LAYOUT, data, "statistics of a core")
        other, units, frames = rest[4:7]
        return cls(core, rest[:4], other, units, frames, rest[7:])

    @property
    def total(self):
        """The whole load, per mille."""
        return sum(self.load) + self.other


@dataclass
class PlacementStats:
    """One entry or flow group, and where it is. `core` and `wanted` None = undecided, and then `age_ns` is None too."""

    kind: int
    reason: int
    core: Optional[int]
    wanted: Optional[int]
    place: Place
    priority: int
    vm_id: int
    unit: int
    moves: int
    cookie: int
    packets: int
    bytes: int
    age_ns: Optional[int]
    interface: str
    fields: Dict[str, object]

    LAYOUT = struct.Struct("!HBBHHHHHHIIQQQQ16s")
    UNDECIDED = 0xFFFFFFFFFFFFFFFF

    def pack(self):
        fixed = self.LAYOUT.pack(
            0, self.kind, self.reason, _number(self.core), _number(self.wanted), self.place.core, self.place.flags,
            self.priority, self.vm_id, self.unit, self.moves, self.cookie, self.packets, self.bytes,
            _number(self.age_ns, self.UNDECIDED), self.interface.encode())
        return sized(fixed + match.pack(self.fields))

    @classmethod
    def unpack(cls, data):
        found = head(cls.LAYOUT, data, "a placement")
        _, kind, reason, core, wanted, place, flags, priority, vm_id, unit, moves, cookie, packets, size, age, interface = found
        fields = match.unpack(data[cls.LAYOUT.size:])
        return cls(
            kind, reason, _none(core), _none(wanted), Place.of(place, flags), priority, vm_id, unit, moves, cookie, packets,
            size, _none(age, cls.UNDECIDED), text(interface), fields)
