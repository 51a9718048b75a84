"""What a controller asks and orders. Each method sends one message and returns its xid, by which answers are known."""

import struct

from . import envelope, values
from .values import Place, PlaceMod

HOST, VMS = 1, 2
ENTRIES, GROUPS = 1, 2

_SUBSCRIBE = struct.Struct("!I4x")
_NUMBER = struct.Struct("!H6x")
_PLACEMENTS = struct.Struct("!B7xQQ16s")


class Steering:
    """The steering of a datapath's host."""

    def __init__(self, datapath):
        self.datapath = datapath

    def _send(self, message):
        self.datapath.set_xid(message)
        self.datapath.send_msg(message)
        return message.xid

    def subscribe(self, events=HOST | VMS):
        """From now on these are told, and what holds now at once."""
        return self._send(envelope.message(self.datapath, envelope.SUBSCRIBE, _SUBSCRIBE.pack(events)))

    def request_host_info(self):
        return self._send(envelope.message(self.datapath, envelope.HOST_INFO_REQUEST))

    def change(self, place_mod):
        """Sends a `PlaceMod`."""
        return self._send(envelope.message(self.datapath, envelope.PLACE_MOD, place_mod.pack()))

    def add(self, fields, place=None, priority=0x8000, cookie=0, interface=""):
        """Adds an entry: frames with these fields are processed at that place."""
        return self.change(PlaceMod(values.ADD, priority, place or Place(), cookie, 0, interface, fields))

    def delete(self, fields=None, cookie=0, cookie_mask=0, interface=""):
        """Deletes every entry that these fields cover and that agrees with the cookie."""
        change = PlaceMod(values.DELETE, 0, Place(), cookie, cookie_mask, interface, fields or {})
        return self.change(change)

    def request_vm_info(self, vm_id=0):
        """One machine, or with 0 all."""
        return self._send(envelope.request(self.datapath, envelope.VM_INFO, _NUMBER.pack(vm_id)))

    def request_core_stats(self, core=values.NO_CORE):
        """One core, or every one."""
        return self._send(envelope.request(self.datapath, envelope.CORE_STATS, _NUMBER.pack(core)))

    def request_placement_stats(self, kinds=ENTRIES | GROUPS, cookie=0, cookie_mask=0, interface=""):
        body = _PLACEMENTS.pack(kinds, cookie, cookie_mask, interface.encode())
        return self._send(envelope.request(self.datapath, envelope.PLACEMENT_STATS, body))
