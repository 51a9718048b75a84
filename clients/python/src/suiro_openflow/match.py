"""`ofp_match` of OpenFlow 1.3 as a dictionary of os-ken's field names, whatever version the connection speaks."""

import struct

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from .bytes import Truncated

_HEAD = struct.Struct("!HH")


def pack(fields):
    """The bytes of a match such as {"eth_type": 0x0800, "vm_id": 1}; a value may be a pair of value and mask.

    OFPMatch would put experimenters' fields before those that are their prerequisites.
    """
    found = [ofp.oxm_from_user(*ofp.oxm_normalize_user(*item)) for item in fields.items()]
    found.sort(key=lambda one: (isinstance(one[0], tuple), one[0]))
    out = bytearray(_HEAD.size)
    for number, value, mask in found:
        ofp.oxm_serialize(number, value, mask, out, len(out))
    _HEAD.pack_into(out, 0, ofp.OFPMT_OXM, len(out))
    return bytes(out) + bytes(-len(out) % 8)


def unpack(data):
    """The fields of the match that `data` begins with."""
    if len(data) < 8:
        raise Truncated("a match")
    length = _HEAD.unpack_from(data)[1]
    if len(data) < (length + 7) // 8 * 8:
        raise Truncated("a match")
    return dict(parser.OFPMatch.parser(data, 0).items())
