"""What is around the extension's bodies: experimenter messages and multiparts of OpenFlow 1.3, vendor messages and statistics of 1.0."""

import struct

from os_ken.ofproto import ofproto_v1_0

from . import values
from .bytes import Truncated, elements, head

EXPERIMENTER = 0x00025355

HOST_INFO_REQUEST, HOST_INFO, SUBSCRIBE, VM_STATUS, PLACE_MOD = range(5)
VM_INFO, CORE_STATS, PLACEMENT_STATS = 16, 17, 18

MESSAGES = {HOST_INFO: values.HostInfo, VM_STATUS: values.VmStatus, PLACE_MOD: values.PlaceMod}
MULTIPARTS = {VM_INFO: values.Vm, CORE_STATS: values.CoreStats, PLACEMENT_STATS: values.PlacementStats}
ERRORS = {
    1: "the switch's owner has not allowed it (suiro switch mod … --steering program)",
    2: "that interface is not attached (suiro steer attach IF)",
    3: "no such core, or an excluded one",
    4: "a match that the host cannot look up, or a machine whose frames nothing tells",
    5: "the host refused; see the node's log",
}

_TYPE = struct.Struct("!I")
_IDS = struct.Struct("!II")


class Error:
    """An error of the extension's own: `code`, and in words `what`."""

    def __init__(self, code):
        self.code = code
        self.what = ERRORS.get(code, f"error {code}")

    def __repr__(self):
        return f"Error({self.code}: {self.what})"


def is_v10(datapath):
    return datapath.ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION


def message(datapath, exp_type, body=b""):
    """An os-ken message with this body."""
    parser = datapath.ofproto_parser
    if not is_v10(datapath):
        return parser.OFPExperimenter(datapath, EXPERIMENTER, exp_type, body)
    vendor = parser.OFPVendor(datapath)
    vendor.vendor, vendor.data = EXPERIMENTER, _TYPE.pack(exp_type) + body
    return vendor


def request(datapath, exp_type, body):
    """An os-ken multipart request with this body."""
    parser = datapath.ofproto_parser
    if not is_v10(datapath):
        return parser.OFPExperimenterStatsRequest(datapath, 0, EXPERIMENTER, exp_type, body)
    return parser.OFPVendorStatsRequest(datapath, 0, EXPERIMENTER, _TYPE.pack(exp_type) + body)


def read(msg):
    """What an os-ken message says: (exp_type, value), or None if it is none of the extension's.

    The value is one of `values`, a list of them for (a part of) a multipart's reply, an `Error`, or the body's bytes.
    """
    found = _body(msg)
    if found is None:
        return None
    exp_type, body, is_multipart = found
    if exp_type == "error":
        return found[:2]
    if is_multipart and exp_type in MULTIPARTS:
        kind = MULTIPARTS[exp_type]
        return exp_type, [kind.unpack(one) for one in elements(body, "a reply")]
    if not is_multipart and exp_type in MESSAGES:
        return exp_type, MESSAGES[exp_type].unpack(body)
    return exp_type, body


def _body(msg):
    """Type and bytes, and whether it is a multipart; None if it is none of ours."""
    kind = type(msg).__name__
    if kind == "OFPErrorMsg" and getattr(msg, "experimenter", None) == EXPERIMENTER:
        return "error", Error(msg.exp_type), False
    if kind == "OFPExperimenter" and msg.experimenter == EXPERIMENTER:
        return msg.exp_type, bytes(msg.data), False
    if kind == "OFPExperimenterStatsReply" and msg.body.experimenter == EXPERIMENTER:
        return msg.body.exp_type, bytes(msg.body.data), True
    if kind == "OFPVendor" and msg.vendor == EXPERIMENTER:
        data = bytes(msg.data)
        return (*head(_TYPE, data, "a vendor message"), data[_TYPE.size:], False)
    if kind == "OFPVendorStatsReply":
        return _vendor_stats(bytes(msg.body.specific_data))
    return None


def _vendor_stats(data):
    try:
        vendor, exp_type = head(_IDS, data, "vendor statistics")
    except Truncated:
        return None  # another vendor's, who has no type
    return (exp_type, data[_IDS.size:], True) if vendor == EXPERIMENTER else None
