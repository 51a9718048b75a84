"""The extension's actions, for the action lists of either version."""

import struct

from .envelope import EXPERIMENTER, is_v10
from .values import Place

PLACE, SET_FCF = 1, 2

_PLACE = struct.Struct("!HHH2x")
_SET_FCF = struct.Struct("!HBB4x")
_SUBTYPE = struct.Struct("!H")


def _action(datapath, data):
    parser = datapath.ofproto_parser
    kind = parser.OFPActionVendorUnknown if is_v10(datapath) else parser.OFPActionExperimenterUnknown
    return kind(EXPERIMENTER, data)


def place(datapath, where):
    """The action PLACE."""
    return _action(datapath, _PLACE.pack(PLACE, where.core, where.flags))


def set_fcf(datapath, value, mask=0xFF):
    """Sets the bits `mask` of the flow control field: VM id in the upper 7 bits, priority in the lowest.

    OpenFlow 1.3 has OFPActionSetField(fcf=value) for the whole byte.
    """
    return _action(datapath, _SET_FCF.pack(SET_FCF, value, mask))


def read_action(action):
    """`Place`, or ("fcf", value, mask), or None if the action is none of the extension's."""
    ids = {getattr(action, "vendor", None), getattr(action, "experimenter", None)}
    data = bytes(getattr(action, "data", None) or b"")
    if EXPERIMENTER not in ids or len(data) < _PLACE.size:
        return None
    (subtype,) = _SUBTYPE.unpack_from(data)
    if subtype == PLACE:
        _, core, flags = _PLACE.unpack_from(data)
        return Place.of(core, flags)
    if subtype == SET_FCF:
        _, value, mask = _SET_FCF.unpack_from(data)
        return "fcf", value, mask
    return None
