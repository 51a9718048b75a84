"""An OpenFlow 1.3 controller for networks with loops, for os-ken: what `suiro lab domain demo` lets program a tenant's switches.

    .venv/bin/python demo/tree_switch.py 0.0.0.0:6653

os-ken's topology application finds the links by LLDP. Frames to all and to unknown addresses go along a spanning tree of them, so no loop is
closed; what is learnt becomes flow entries. Nothing is forwarded until the topology has been the same for a while.
"""

import sys
import time

# os-ken's hub patches the standard library, so it comes before everything that opens a socket.
from os_ken.lib import hub

hub.patch()

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ether_types, ethernet, packet
from os_ken.ofproto import ofproto_v1_3
from os_ken.topology import event as topology

TABLE_MISS, LEARNT = 0, 10
IDLE_TIMEOUT_S = 60
# By each port os-ken sends LLDP so often.
LLDP_S = 0.9
# Two rounds of it.
QUIET_S = 2.0


class TreeSwitch(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.datapaths = {}
        self.links = set()  # ((datapath id, port), (datapath id, port)), the way that LLDP went
        self.inner = set()  # (datapath id, port) that ever had a link: no host is there
        self.tree = set()  # (datapath id, port) of the tree
        self.hosts = {}  # (datapath id, address) -> port
        self.changed = time.monotonic()
        hub.spawn(self.tell)
        hub.spawn(self.keep_asking)

    @staticmethod
    def keep_asking():
        """Wakes os-ken's link discovery: in the hub of its version 4 a wait ends by a wake-up alone, never by time.

        Without it LLDP is sent once, so a frame that is lost is a link that is not found, and links never expire.
        """
        while True:
            hub.sleep(LLDP_S)
            switches = app_manager.lookup_service_brick("switches")
            if switches is not None:
                switches.lldp_event.set()
                switches.link_event.set()

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_features(self, event):
        self.datapaths[event.msg.datapath.id] = event.msg.datapath
        self.begin_anew()

    @set_ev_cls(ofp_event.EventOFPStateChange, DEAD_DISPATCHER)
    def on_dead(self, event):
        if self.datapaths.get(event.datapath.id) is event.datapath:
            del self.datapaths[event.datapath.id]

    @set_ev_cls(topology.EventLinkAdd)
    def on_link(self, event):
        ends = self.ends(event.link)
        if ends not in self.links:
            self.links.add(ends)
            self.inner.update(ends)
            self.begin_anew()

    @set_ev_cls(topology.EventLinkDelete)
    def on_link_lost(self, event):
        if self.ends(event.link) in self.links:
            self.links.discard(self.ends(event.link))
            self.begin_anew()

    @staticmethod
    def ends(link):
        return (link.src.dpid, link.src.port_no), (link.dst.dpid, link.dst.port_no)

    def both_ways(self):
        """The links that LLDP passes in both directions, each once."""
        return sorted((a, b) for a, b in self.links if a < b and (b, a) in self.links)

    def begin_anew(self):
        """Forgets what was learnt, and makes a tree of the links: the first of two that would close a loop."""
        self.changed = time.monotonic()
        root, tree = {}, set()

        def find(switch):
            while switch in root:
                switch = root[switch]
            return switch

        for a, b in self.both_ways():
            if find(a[0]) != find(b[0]):
                root[find(a[0])] = find(b[0])
                tree.update((a, b))
        self.tree, self.hosts = tree, {}
        for datapath in list(self.datapaths.values()):
            self.clear(datapath)

    def tell(self):
        told = None
        while True:
            hub.sleep(0.2)
            links = [f"{a[0]}:{a[1]}-{b[0]}:{b[1]}" for a, b in self.both_ways()]
            found = f"{len(self.datapaths)} switches, {len(links)} links: {' '.join(links)}"
            if found != told and self.is_settled():
                told = found
                print(f"topology: {found}", flush=True)

    def is_settled(self):
        return time.monotonic() - self.changed > QUIET_S

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event):
        msg = event.msg
        datapath = msg.datapath
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        in_port = msg.match["in_port"]
        eth = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        here = (datapath.id, in_port)
        is_closed = here in self.inner and here not in self.tree
        if eth.ethertype == ether_types.ETH_TYPE_LLDP or is_closed or not self.is_settled():
            return
        self.hosts[datapath.id, eth.src] = in_port
        port = self.hosts.get((datapath.id, eth.dst))
        if port is not None:
            match = parser.OFPMatch(in_port=in_port, eth_src=eth.src, eth_dst=eth.dst)
            self.add_flow(datapath, LEARNT, match, [parser.OFPActionOutput(port)], IDLE_TIMEOUT_S)
        ports = [port] if port is not None else self.open_ports(datapath, in_port)
        datapath.send_msg(parser.OFPPacketOut(
            datapath=datapath, buffer_id=ofp.OFP_NO_BUFFER, in_port=in_port, data=msg.data,
            actions=[parser.OFPActionOutput(port) for port in ports]))

    def open_ports(self, datapath, in_port):
        """Where hosts are, and the tree."""
        ports = [port for port in datapath.ports if port <= datapath.ofproto.OFPP_MAX and port != in_port]
        return [port for port in ports
                if (datapath.id, port) in self.tree or (datapath.id, port) not in self.inner]

    def clear(self, datapath):
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        datapath.send_msg(parser.OFPFlowMod(
            datapath=datapath, command=ofp.OFPFC_DELETE, priority=LEARNT, table_id=ofp.OFPTT_ALL,
            out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY))
        to_controller = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
        self.add_flow(datapath, TABLE_MISS, parser.OFPMatch(), to_controller)

    @staticmethod
    def add_flow(datapath, priority, match, actions, idle_timeout=0):
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        apply = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
        datapath.send_msg(parser.OFPFlowMod(
            datapath=datapath, priority=priority, match=match, instructions=apply, idle_timeout=idle_timeout))


def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:6653").rpartition(":")
    listen = [f"--ofp-listen-host={host}", f"--ofp-tcp-listen-port={port}", "--observe-links"]
    # The option belongs to an application that is loaded only now.
    from os_ken.topology import switches  # noqa: F401
    cfg.CONF(args=listen, project="os_ken")
    apps = ["tree_switch", "os_ken.topology.switches", "os_ken.controller.ofp_handler"]
    app_manager.AppManager.run_apps(apps)


if __name__ == "__main__":
    main()
