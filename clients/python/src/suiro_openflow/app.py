"""An os-ken application that turns the extension's messages into `events`. Load it with `require_app("suiro_openflow.app")`."""

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3

from . import envelope, events

READY = [CONFIG_DISPATCHER, MAIN_DISPATCHER]


class SteeringEvents(app_manager.OSKenApp):
    """Its state: the parts of replies whose ends have not come yet."""

    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]
    _EVENTS = [
        events.HostInfo, events.VmStatus, events.VmInfo, events.CoreStats, events.PlacementStats, events.Refused,
    ]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.parts = {}  # (datapath, xid) -> elements

    @set_ev_cls([ofp_event.EventOFPExperimenter, ofp_event.EventOFPVendor, ofp_event.EventOFPErrorMsg], READY)
    def on_message(self, event):
        msg = event.msg
        found = envelope.read(msg)
        if found is None:
            return
        exp_type, value = found
        kinds = {
            envelope.HOST_INFO: events.HostInfo, envelope.VM_STATUS: events.VmStatus, "error": events.Refused,
        }
        if exp_type in kinds:
            self.send_event_to_observers(kinds[exp_type](msg.datapath, msg.xid, value))

    @set_ev_cls([ofp_event.EventOFPExperimenterStatsReply, ofp_event.EventOFPVendorStatsReply], READY)
    def on_reply(self, event):
        msg = event.msg
        found = envelope.read(msg)
        if found is None or found[0] not in envelope.MULTIPARTS:
            return
        exp_type, part = found
        key = (msg.datapath, msg.xid)
        elements = self.parts.pop(key, []) + part
        if msg.flags & 1:  # OFPMPF_REPLY_MORE
            self.parts[key] = elements
            return
        kind = {
            envelope.VM_INFO: events.VmInfo, envelope.CORE_STATS: events.CoreStats,
            envelope.PLACEMENT_STATS: events.PlacementStats,
        }[exp_type]
        self.send_event_to_observers(kind(msg.datapath, msg.xid, elements))

    @set_ev_cls(ofp_event.EventOFPStateChange, DEAD_DISPATCHER)
    def on_end(self, event):
        self.parts = {key: part for key, part in self.parts.items() if key[0] is not event.datapath}
