"""An OpenFlow 1.3 learning switch for os-ken: what `make demo` lets program sw1.

    .venv/bin/python demo/learning_switch.py 127.0.0.1:6653

Every first packet between two addresses comes here; the answer is a flow entry with an idle timeout, so that the
table can be watched as it fills and empties. os-ken 4 has no manager command any more: `main` starts the application itself.
"""

import sys

# os-ken's hub patches the standard library, so it comes before everything that opens a socket.
from os_ken.lib import hub

hub.patch()

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3

TABLE_MISS, LEARNT = 0, 10
IDLE_TIMEOUT_S = 60


class LearningSwitch(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}  # (datapath id, address) -> port
        self.packet_ins = 0

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_features(self, event):
        datapath = event.msg.datapath
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        to_controller = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
        self.add_flow(datapath, TABLE_MISS, parser.OFPMatch(), to_controller)
        print(f"controller: switch {datapath.id:016x} connected", flush=True)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event):
        msg = event.msg
        datapath = msg.datapath
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        in_port = msg.match["in_port"]
        eth = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        self.packet_ins += 1
        self.ports[datapath.id, eth.src] = in_port
        out_port = self.ports.get((datapath.id, eth.dst), ofp.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofp.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=in_port, eth_src=eth.src, eth_dst=eth.dst)
            self.add_flow(datapath, LEARNT, match, actions, IDLE_TIMEOUT_S)
        datapath.send_msg(parser.OFPPacketOut(
            datapath=datapath, buffer_id=ofp.OFP_NO_BUFFER, in_port=in_port, actions=actions, data=msg.data))

    @staticmethod
    def add_flow(datapath, priority, match, actions, idle_timeout=0):
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        apply = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
        datapath.send_msg(parser.OFPFlowMod(
            datapath=datapath, priority=priority, match=match, instructions=apply, idle_timeout=idle_timeout))


def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:6653").rpartition(":")
    cfg.CONF(args=[f"--ofp-listen-host={host}", f"--ofp-tcp-listen-port={port}"], project="os_ken")
    app_manager.AppManager.run_apps([__name__ if __name__ != "__main__" else "learning_switch", "os_ken.controller.ofp_handler"])


if __name__ == "__main__":
    main()
