"""The controller of the VS-extend paper's figure 2, for os-ken: hosts and virtual machines register, and steering is programmed.

    python examples/vse_controller.py 127.0.0.1:6653 --priority-tenant 7

What happens is printed, a line for each message. For each machine with a number the controller writes

* on its host, a steering entry: its flows go where the policy chooses, those of priority tenants first; under overcommit the others go to
  the core of their own machine (the paper's table 1, VS-extend: match VM_ID, action IRQ);
* on every switch, for each of its IPv4 addresses, an entry that sets the flow control field and forwards as a bridge does (table 1,
  vSwitch: set_flow_control_field). Tunnels copy the field to the outer header.

It speaks OpenFlow 1.3 and 1.0. A switch must allow it: suiro switch add ... --steering program.
"""

import argparse
import pathlib
import sys

# os-ken's hub patches the standard library, so it comes before everything that opens a socket.
from os_ken.lib import hub

hub.patch()

# Beside the package's source it need not be installed.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "src"))

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3

import suiro_openflow as suiro
from suiro_openflow import envelope, events, values

app_manager.require_app("suiro_openflow.app")

IPV4 = 0x0800
FORWARD, MARK = 1, 10  # priorities of a switch's entries
PLACE = 100  # priority of a steering entry
FCF_MAX = 127  # largest number of a machine that the flow control field has room for
OPTIONS = argparse.Namespace(priority_tenant=[], every=2.0)


def say(datapath, text):
    print(f"{datapath.id:016x} {text}", flush=True)


def cores(numbers):
    return ",".join(map(str, numbers)) or "any"


def percent(per_mille):
    return f"{per_mille / 10:.1f}%"


class VseController(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.switches = {}  # datapath id -> datapath
        self.hosts = {}  # datapath id -> HostInfo
        self.addresses = {}  # (datapath id, name of a machine) -> IPv4 addresses that are marked

    # 1. The connection stands: the controller wants to hear.

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state(self, event):
        datapath = event.datapath
        if event.state == DEAD_DISPATCHER:
            if self.switches.pop(datapath.id, None):
                say(datapath, "disconnected")
            return
        self.switches[datapath.id] = datapath
        version = "1.0" if envelope.is_v10(datapath) else "1.3"
        say(datapath, f"connected, OpenFlow {version}; SUBSCRIBE to host and machines")
        self.forward(datapath)
        suiro.Steering(datapath).subscribe()
        hub.spawn(self.watch, datapath)

    # 2. The host registers.

    @set_ev_cls(events.HostInfo)
    def on_host(self, event):
        datapath, host = event.datapath, event.host
        self.hosts[datapath.id] = host
        may = "may program" if host.may_program else "may only read"
        say(datapath, f"HOST_INFO: {len(host.cores)} cores, policy {host.policy}, threshold {percent(host.threshold)}, {may}")
        for core in host.cores:
            node = "?" if core.numa is None else core.numa
            role = values.name(values.ROLES, core.role)
            say(datapath, f"  core {core.core}: NUMA node {node}, {role}, machines {cores(core.vms) if core.vms else 'none'}")
        for one in host.interfaces:
            words = {values.RSS: "RSS", values.NTUPLE: "ntuple", values.XDP_NATIVE: "XDP in the driver", values.RPS: "RPS"}
            able = ", ".join(word for bit, word in words.items() if one.abilities & bit) or "no abilities"
            say(datapath, f"  {one.name} ({one.driver or '?'}): {values.name(values.MODES, one.mode)}, {one.rx_queues} queues, {able}")

    # 3. Machines start, and 4. the controller programs steering; 5. the flow control field is set.

    @set_ev_cls(events.VmStatus)
    def on_machine(self, event):
        datapath, vm = event.datapath, event.vm
        what = {suiro.ADDED: "added", suiro.DELETED: "deleted", suiro.MODIFIED: "modified"}.get(event.reason, event.reason)
        say(datapath, f"VM_STATUS {what}: {vm.name}, id {vm.vm_id}, tenant {vm.tenant}, cores {cores(vm.cores)}")
        if not vm.vm_id:
            return
        host = self.hosts.get(datapath.id)
        if host is None or not host.may_program:
            say(datapath, f"  no entry for {vm.name}: this controller may not program the host")
        elif event.reason == suiro.DELETED:
            suiro.Steering(datapath).delete(cookie=vm.vm_id, cookie_mask=2**64 - 1)
            say(datapath, f"  PLACE_MOD delete cookie={vm.vm_id}")
        else:
            self.place(datapath, vm)
        self.mark(datapath, vm, event.reason == suiro.DELETED)

    def place(self, datapath, vm):
        has_priority = vm.tenant in OPTIONS.priority_tenant
        where = suiro.Place(priority=has_priority, own=not has_priority)
        suiro.Steering(datapath).add({"vm_id": vm.vm_id}, where, priority=PLACE, cookie=vm.vm_id)
        say(datapath, f"  PLACE_MOD add priority={PLACE},vm_id={vm.vm_id} actions={where}")

    def forward(self, datapath):
        self.flow(datapath, FORWARD, {}, [])

    def mark(self, datapath, vm, is_gone):
        """Sets the flow control field of what is sent to the machine, on every switch."""
        addresses = [] if is_gone else [str(one) for one in vm.addresses if one.kind == 4 and one.prefix == 32]
        before = self.addresses.pop((datapath.id, vm.name), [])
        if vm.vm_id > FCF_MAX:
            return
        self.addresses[datapath.id, vm.name] = addresses
        has_priority = vm.tenant in OPTIONS.priority_tenant
        value = vm.vm_id << 1 | has_priority
        for switch in list(self.switches.values()):
            for address in set(before) - set(addresses):
                self.flow(switch, MARK, self.to(switch, address), None)
            for address in addresses:
                self.flow(switch, MARK, self.to(switch, address), [suiro.set_fcf(switch, value)])
                say(switch, f"  FLOW_MOD add ip,nw_dst={address} actions=set_field:{value:#04x}->fcf,NORMAL")

    @staticmethod
    def to(datapath, address):
        """A match of what is sent to an IPv4 address, in the version's words."""
        names = ("dl_type", "nw_dst") if envelope.is_v10(datapath) else ("eth_type", "ipv4_dst")
        return dict(zip(names, (IPV4, address)))

    @staticmethod
    def flow(datapath, priority, fields, before):
        """Adds an entry that forwards as a bridge after the actions `before`; deletes it if these are None."""
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        command = ofp.OFPFC_DELETE_STRICT if before is None else ofp.OFPFC_ADD
        actions = [*(before or []), parser.OFPActionOutput(ofp.OFPP_NORMAL)]
        match = parser.OFPMatch(**fields)
        if envelope.is_v10(datapath):
            message = parser.OFPFlowMod(
                datapath, match, 0, command, priority=priority, out_port=ofp.OFPP_NONE, actions=actions)
        else:
            apply = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
            message = parser.OFPFlowMod(
                datapath, command=command, priority=priority, match=match, out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY,
                instructions=apply)
        datapath.send_msg(message)

    # 6. What came of it.

    def watch(self, datapath):
        steering = suiro.Steering(datapath)
        while self.switches.get(datapath.id) is datapath:
            hub.sleep(OPTIONS.every)
            steering.request_core_stats()
            steering.request_placement_stats()

    @set_ev_cls(events.CoreStats)
    def on_core_stats(self, event):
        for one in event.cores:
            load = ", ".join(f"{stage} {percent(part)}" for stage, part in zip(values.STAGES, one.load))
            say(event.datapath, f"CORE_STATS core {one.core}: {load}, other {percent(one.other)}; {one.units} units, {one.frames} frames")

    @set_ev_cls(events.PlacementStats)
    def on_placement_stats(self, event):
        for one in event.placements:
            if one.kind == 1 and not one.packets:
                continue  # most flow groups of an idle host
            what = f"group {one.unit}" if one.kind == 1 else ",".join(f"{key}={value}" for key, value in one.fields.items()) or "any"
            where = "undecided" if one.core is None else f"core {one.core}, {values.name(values.REASONS, one.reason)}"
            say(event.datapath, f"PLACEMENT_STATS {one.interface} {what} {one.place}: {where}; {one.packets} packets")

    @set_ev_cls(events.Refused)
    def on_refused(self, event):
        say(event.datapath, f"refused: {event.error.what}")

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def on_error(self, event):
        msg = event.msg
        if getattr(msg, "experimenter", None) is None:
            say(msg.datapath, f"error type {msg.type} code {msg.code}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("listen", nargs="?", default="127.0.0.1:6653", help="address and port to wait for switches on")
    parser.add_argument("--priority-tenant", type=int, action="append", default=[], help="a tenant whose machines come first")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two looks at the statistics")
    parser.parse_args(namespace=OPTIONS)
    host, _, port = OPTIONS.listen.rpartition(":")
    cfg.CONF(args=[f"--ofp-listen-host={host}", f"--ofp-tcp-listen-port={port}"], project="os_ken")
    # As a module it must be this one, whose options were read.
    sys.modules["vse_controller"] = sys.modules["__main__"]
    app_manager.AppManager.run_apps(["vse_controller", "os_ken.controller.ofp_handler"])


if __name__ == "__main__":
    main()
