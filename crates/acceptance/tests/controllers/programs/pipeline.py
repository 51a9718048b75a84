"""An os-ken application that programs three tables with metadata, a group and a meter.

Datagrams from port 1 to UDP port 9 pass a meter of 50 packets a second, burst 20, and are copied to ports 2 and 3 by a group. ARP is
flooded. Datagrams to these ports are commands, answered on standard output:
7001 prints statistics, 7002 takes port 2 out of the group, 7003 deletes the meter, 7004 asks for a stale mastership.
"""
import json
import sys

from os_ken.lib import hub

hub.patch()

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import packet, udp
from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser as parser

ofp = ofproto_v1_3
FROM_ONE, FROM_OTHERS, MASK = 0x10, 0x20, 0xFF
UDP = {"eth_type": 0x0800, "ip_proto": 17}


def say(what, **facts):
    print(json.dumps({"said": what, **facts}), flush=True)


def apply(*actions):
    return parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, list(actions))


def group(command, *ports):
    def of(datapath):
        buckets = [parser.OFPBucket(actions=[parser.OFPActionOutput(port)]) for port in ports]
        return parser.OFPGroupMod(datapath, command, ofp.OFPGT_ALL, 1, buckets)
    return of


def meter(command):
    def of(datapath):
        bands = [parser.OFPMeterBandDrop(rate=50, burst_size=20)] if command == ofp.OFPMC_ADD else []
        flags = ofp.OFPMF_PKTPS | ofp.OFPMF_BURST | ofp.OFPMF_STATS
        return parser.OFPMeterMod(datapath, command, flags, 1, bands)
    return of


def flow(table, priority, instructions, **match):
    def of(datapath):
        return parser.OFPFlowMod(
            datapath, table_id=table, priority=priority, match=parser.OFPMatch(**match),
            instructions=instructions, flags=ofp.OFPFF_SEND_FLOW_REM, cookie=table << 8 | priority)
    return of


def pipeline():
    yield group(ofp.OFPGC_ADD, 2, 3)
    yield meter(ofp.OFPMC_ADD)
    for port, mark in [(1, FROM_ONE), (2, FROM_OTHERS), (3, FROM_OTHERS)]:
        yield flow(0, 10, [parser.OFPInstructionWriteMetadata(mark, MASK), parser.OFPInstructionGotoTable(1)], in_port=port)
    yield flow(1, 30, [parser.OFPInstructionMeter(1), parser.OFPInstructionGotoTable(2)],
               metadata=(FROM_ONE, MASK), udp_dst=9, **UDP)
    for command in (7001, 7002, 7003, 7004):
        yield flow(1, 30, [apply(parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER))],
                   metadata=(FROM_ONE, MASK), udp_dst=command, **UDP)
    yield flow(1, 10, [parser.OFPInstructionActions(ofp.OFPIT_WRITE_ACTIONS, [parser.OFPActionOutput(ofp.OFPP_FLOOD)])],
               eth_type=0x0806)
    yield flow(2, 10, [parser.OFPInstructionActions(ofp.OFPIT_WRITE_ACTIONS, [parser.OFPActionGroup(1)])],
               udp_dst=9, **UDP)


class Pipeline(app_manager.OSKenApp):
    OFP_VERSIONS = [ofp.OFP_VERSION]

    def send(self, datapath, *messages):
        for message in messages:
            datapath.send_msg(message(datapath))
        datapath.send_msg(parser.OFPBarrierRequest(datapath))

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_features(self, event):
        datapath = event.msg.datapath
        datapath.send_msg(parser.OFPRoleRequest(datapath, ofp.OFPCR_ROLE_MASTER, 5))
        self.send(datapath, *pipeline())

    @set_ev_cls(ofp_event.EventOFPBarrierReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_barrier(self, event):
        say("done")

    @set_ev_cls(ofp_event.EventOFPRoleReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_role(self, event):
        say("role", role=event.msg.role, generation=event.msg.generation_id)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event):
        say("error", type=event.msg.type, code=event.msg.code)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event):
        datapath = event.msg.datapath
        command = packet.Packet(event.msg.data).get_protocol(udp.udp).dst_port
        say("packet-in", command=command, metadata=event.msg.match["metadata"], table=event.msg.table_id)
        if command == 7001:
            self.send(
                datapath,
                lambda to: parser.OFPFlowStatsRequest(to),
                lambda to: parser.OFPGroupStatsRequest(to),
                lambda to: parser.OFPMeterStatsRequest(to),
                lambda to: parser.OFPTableStatsRequest(to, 0),
                lambda to: parser.OFPPortDescStatsRequest(to, 0))
        elif command == 7002:
            self.send(datapath, group(ofp.OFPGC_MODIFY, 3))
        elif command == 7003:
            self.send(datapath, meter(ofp.OFPMC_DELETE))
        elif command == 7004:
            self.send(datapath, lambda to: parser.OFPRoleRequest(to, ofp.OFPCR_ROLE_MASTER, 4))

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def on_flows(self, event):
        say("flows", packets={f"{one.cookie:#x}": one.packet_count for one in event.msg.body if one.cookie != 0x10a})

    @set_ev_cls(ofp_event.EventOFPGroupStatsReply, MAIN_DISPATCHER)
    def on_groups(self, event):
        [one] = event.msg.body
        say("group", packets=one.packet_count, buckets=[bucket.packet_count for bucket in one.bucket_stats], users=one.ref_count)

    @set_ev_cls(ofp_event.EventOFPMeterStatsReply, MAIN_DISPATCHER)
    def on_meters(self, event):
        [one] = event.msg.body
        say("meter", packets=one.packet_in_count, dropped=one.band_stats[0].packet_band_count, users=one.flow_count)

    @set_ev_cls(ofp_event.EventOFPTableStatsReply, MAIN_DISPATCHER)
    def on_tables(self, event):
        say("tables", entries=[one.active_count for one in event.msg.body[:4]])

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, MAIN_DISPATCHER)
    def on_ports(self, event):
        say("ports", names={one.port_no: one.name.decode() for one in event.msg.body if one.port_no < ofp.OFPP_MAX})

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_removed(self, event):
        say("removed", cookie=event.msg.cookie, reason=event.msg.reason, packets=event.msg.packet_count)


def main():
    host, _, port = sys.argv[1].rpartition(":")
    cfg.CONF(args=[f"--ofp-listen-host={host}", f"--ofp-tcp-listen-port={port}"], project="os_ken")
    app_manager.AppManager.run_apps(["pipeline", "os_ken.controller.ofp_handler"])


if __name__ == "__main__":
    main()
