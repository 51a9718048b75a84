"""The extension's match fields, taught to os-ken's OpenFlow 1.3.

`tun_ipv4_src`, `tun_ipv6_src`, `ip_frag` and their like have Nicira's numbers, which os-ken knows already.
"""

from os_ken.lib import type_desc
from os_ken.ofproto import ofproto_v1_3, oxm_fields

from .envelope import EXPERIMENTER


class _Field(oxm_fields._Experimenter):
    experimenter_id = EXPERIMENTER


FIELDS = [
    _Field("fcf", 0, type_desc.Int1),  # flow control field: VM id in 7 bits, priority in the lowest
    _Field("vm_id", 1, type_desc.Int2),
]


def register():
    """Adds the fields; a second time changes nothing."""
    known = {field.name for field in ofproto_v1_3.oxm_types}
    new = [field for field in FIELDS if field.name not in known]
    if new:
        ofproto_v1_3.oxm_types.extend(new)
        oxm_fields.generate(ofproto_v1_3.__name__)
